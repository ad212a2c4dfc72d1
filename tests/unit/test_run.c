/* Whole runs in this process: the error of a run that succeeds is left alone, and what a rank's
 * counters take. */
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/log.h"
#include "run/run.h"

#define RANKS 2
/* of a rank without checkpoints */
#define COUNTERS_MAX 140000

static char folder[] = "/tmp/stoker-run-XXXXXX";

struct one_run {
	struct workload w;
	struct dataset d;
	struct result r;
	struct run_progress last;
	struct err e, before;
	int rc;
};

static void note_progress(void *arg, const struct run_progress *p)
{
	struct one_run *o = arg;

	o->last = *p;
}

/* Runs the workload "default", made small, in memory; `more` is NULL-terminated. */
static void run_begin(struct one_run *o, const char *name, const char *const *more)
{
	AUTO_FREE char *out = xasprintf("output.folder=%s/%s", folder, name);
	AUTO_FREE char *saved = xasprintf("checkpoint.checkpoint_folder=%s/%s-saved", folder, name);
	const char *keys[32] = {out,
				saved,
				"storage.store=memory",
				"workflow.generate_data=true",
				"dataset.num_files_train=16",
				"dataset.num_files_eval=4",
				"dataset.record_length_bytes=4096",
				"reader.batch_size=2",
				"reader.batch_size_eval=1",
				"train.epochs=2",
				"train.computation_time=0.001",
				"evaluation.eval_time=0.001"};
	struct workload_request req = {
		.workload = "default", .overrides = keys, .start_wall_ns = clock_wall_ns()};
	struct run_options options = {.ranks = RANKS,
				      .start_wall_ns = req.start_wall_ns,
				      .progress = note_progress,
				      .progress_arg = o};
	size_t n = 12;

	while (*more)
		keys[n++] = *more++;
	req.override_count = n;
	memset(o, 0, sizeof(*o));
	if (workload_load(&o->w, &req, &o->e) < 0)
		fail_msg("%s", o->e.text);
	memset(&o->e, 0x5a, sizeof(o->e));
	o->before = o->e;
	o->rc = run_execute(&o->w, &options, &o->d, &o->r, &o->e);
}

static void run_end(struct one_run *o)
{
	result_release(&o->r);
	dataset_release(&o->d);
	workload_release(&o->w);
}

static const char *const evaluated[] = {"workflow.evaluation=true", NULL};
static const char *const saved[] = {"workflow.evaluation=true", "workflow.checkpoint=true",
				    "checkpoint.steps_between_checkpoints=2", NULL};
static const char *const restored[] = {"workflow.train=false",
				       "workflow.evaluation=false",
				       "workflow.generate_data=false",
				       "workflow.checkpoint=true",
				       "checkpoint.num_checkpoints_write=2",
				       "checkpoint.num_checkpoints_read=1",
				       NULL};

static void success_leaves_the_error_alone(void **state)
{
	struct one_run *o = xcalloc(1, sizeof(*o));

	(void)state;
	run_begin(o, "good", evaluated);
	assert_int_equal(o->rc, 0);
	assert_int_equal(o->r.status, RUN_COMPLETE);
	assert_memory_equal(&o->e, &o->before, sizeof(o->e));
	run_end(o);
	free(o);
}

/* Leaves room for names only. */
static void fill(const char *path)
{
	static const char page[4096];
	int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	while (write(fd, page, sizeof(page)) > 0)
		;
	assert_int_equal(errno, ENOSPC);
	close(fd);
}

static void a_full_log_is_no_success(void **state)
{
	struct one_run *o = xcalloc(1, sizeof(*o));
	AUTO_FREE char *out = xasprintf("%s/full", folder);
	AUTO_FREE char *log = xasprintf("%s/dlio.log", out);
	AUTO_FREE char *filler = xasprintf("%s/filler", out);

	(void)state;
	assert_int_equal(mkdir(out, 0755), 0);
	if (mount("full", out, "tmpfs", 0, "size=4096") != 0) {
		printf("no tmpfs can be mounted here: %s\n", strerror(errno));
		free(o);
		skip();
	}
	fill(filler);
	run_begin(o, "full", evaluated);
	umount2(out, MNT_DETACH);
	assert_int_equal(o->rc, -ENOSPC);
	assert_int_equal(o->e.code, -ENOSPC);
	assert_non_null(strstr(o->e.text, log));
	assert_int_equal(o->r.status, RUN_COMPLETE);
	run_end(o);
	free(o);
}

static size_t counters(const struct result *r, uint32_t rank)
{
	const struct rank_result *k = &r->rank[rank];

	return sizeof(*k) + (k->save_io ? sizeof(*k->save_io) : 0) +
	       (k->load_io ? sizeof(*k->load_io) : 0);
}

static void counters_of_checkpoints_on_demand(void **state)
{
	struct one_run *o = xcalloc(1, sizeof(*o));
	uint64_t without;

	(void)state;
	run_begin(o, "plain", evaluated);
	assert_int_equal(o->rc, 0);
	for (uint32_t k = 0; k < RANKS; k++) {
		print_message("a rank without checkpoints has %zu bytes of counters\n",
			      counters(&o->r, k));
		assert_true(counters(&o->r, k) <= COUNTERS_MAX);
		assert_null(o->r.rank[k].save_io);
		assert_null(o->r.rank[k].load_io);
	}
	/* evaluations are counted once for all ranks: two of four files, opened and closed */
	assert_int_equal(o->r.eval_io->kind[IO_OPEN].requests, 16);
	without = o->r.memory_bound_bytes;
	run_end(o);

	run_begin(o, "saved", saved);
	assert_int_equal(o->rc, 0);
	assert_true(o->r.rank[0].save_io->kind[IO_WRITE].requests > 0);
	assert_non_null(o->r.rank[1].save_io); /* which writes nothing of this model */
	assert_null(o->r.rank[0].load_io);
	assert_true(o->r.memory_bound_bytes >= without + RANKS * sizeof(struct io_stat));
	run_end(o);

	run_begin(o, "restored", restored);
	assert_int_equal(o->rc, 0);
	assert_true(o->r.rank[0].save_io->kind[IO_WRITE].requests > 0);
	assert_true(o->r.rank[0].load_io->kind[IO_DATA].requests > 0);
	assert_null(o->r.eval_io);
	run_end(o);
	free(o);
}

/* Four epochs of four steps are asked for, and a checkpoint after each; six steps are made. */
static void a_cap_on_steps_leaves_out_checkpoints(void **state)
{
	static const char *const keys[] = {"workflow.checkpoint=true", "train.epochs=4",
					   "train.total_training_steps=6", NULL};
	struct one_run *o = xcalloc(1, sizeof(*o));

	(void)state;
	run_begin(o, "capped", keys);
	assert_int_equal(o->rc, 0);
	assert_int_equal(o->last.phase, PROGRESS_FINISH);
	assert_int_equal(o->last.epochs, 2);
	assert_int_equal(o->last.total, 6);
	assert_int_equal(o->last.done, 6);
	assert_int_equal(o->last.saves, 2);
	assert_int_equal(o->last.saves_total, 2);
	run_end(o);
	free(o);
}

static int enter(void **state)
{
	(void)state;
	log_set_console(LOG_CONSOLE_ERRORS);
	return mkdtemp(folder) ? 0 : -1;
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *at)
{
	(void)st;
	(void)type;
	(void)at;
	return remove(path);
}

static int leave(void **state)
{
	(void)state;
	return nftw(folder, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(success_leaves_the_error_alone),
		cmocka_unit_test(a_full_log_is_no_success),
		cmocka_unit_test(counters_of_checkpoints_on_demand),
		cmocka_unit_test(a_cap_on_steps_leaves_out_checkpoints),
	};

	return cmocka_run_group_tests(tests, enter, leave);
}
