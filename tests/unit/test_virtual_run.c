/* Trainings in virtual time whose times follow from arithmetic, and how they end. */
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/clock.h"
#include "predict/virtual_run.h"
#include "workload_file.h"

#define MS (NS_PER_S / 1000)

/* What a test's model does and what was seen. */
static struct rig {
	struct workload w;
	struct dataset d;
	struct read_model model;
	struct virtual_training t;
	struct virtual_outcome out;
	struct stop_flag stop;
	int64_t read_ns;
	uint64_t reads, samples, works[MODEL_PIN + 1], steps, out_of_turn;
	int64_t slow_ns; /* of computation of rank 1 */
} rig;

static void take(void *arg, const struct modelled_read *r)
{
	(void)arg;
	assert_true(r->samples > 0 && r->rank < rig.t.ranks);
	assert_true(rig.model.whole == (r->sample == UINT64_MAX) || r->samples == 1);
	rig.reads++;
	rig.samples += r->samples;
	virtual_sleep_until(virtual_now_ns() + rig.read_ns * r->samples);
}

static void work(void *arg, const struct modelled_read *r, enum modelled_work what)
{
	(void)arg;
	(void)r;
	rig.works[what]++;
	virtual_sleep_until(virtual_now_ns() + MS);
}

static void note(void *arg, const struct virtual_step *s)
{
	(void)arg;
	assert_true(s->ask_ns <= s->got_ns && s->got_ns <= s->compute_end_ns &&
		    s->compute_end_ns <= s->barrier_out_ns && s->begun_ns <= s->done_ns);
	rig.steps++;
	rig.out_of_turn += s->batch != s->step;
}

static void load(const char *const *keys)
{
	struct err e;

	if (rig.w.tree) {
		dataset_release(&rig.d);
		workload_release(&rig.w);
	}
	memset(&rig, 0, sizeof(rig));
	if (load_request("framework: pytorch\n"
			 "workflow: {generate_data: false, train: true, evaluation: false}\n"
			 "dataset: {data_folder: /none, format: npz, num_files_train: 64,\n"
			 "  num_samples_per_file: 1, record_length_bytes: 4096}\n"
			 "reader: {data_loader: pytorch, batch_size: 2, read_threads: 2}\n"
			 "train: {epochs: 1, computation_time: 0.1}\n",
			 keys, (struct workload_request){.ranks = 1}, &rig.w, &e) < 0)
		fail_msg("%s", e.text);
	assert_int_equal(dataset_init_typical(&rig.d, &rig.w, &e), 0);
	rig.read_ns = 20 * MS;
	rig.model = (struct read_model){.whole = true, .read = take};
	rig.t = (struct virtual_training){.workload = &rig.w,
					  .dataset = &rig.d,
					  .ranks = 1,
					  .model = &rig.model,
					  .step = note,
					  .stop = &rig.stop};
}

#define LOAD(...) load((const char *const[]){__VA_ARGS__, NULL})

static void run(void)
{
	struct err e;

	if (virtual_training_run(&rig.t, &rig.out, &e) != 0)
		fail_msg("%s", e.text);
}

static void expect_wall(double s)
{
	if (fabs(rig.out.wall_s - s) > 1e-9)
		fail_msg("wall time %.9f s, not %.9f", rig.out.wall_s, s);
}

/* 32 steps; the first batch is waited for, then computing hides reading. */
static void test_hidden(void **state)
{
	(void)state;
	LOAD("reader.read_threads=2");
	run();
	expect_wall(0.04 + 32 * 0.1);
	assert_int_equal(rig.out.steps, 32);
	assert_int_equal(rig.out.samples, 64);
	assert_int_equal(rig.reads, 32);
	assert_int_equal(rig.steps, 32);
	assert_int_equal(rig.out_of_turn, 0);
	assert_true(fabs(rig.out.au - 100 * 3.2 / 3.24) < 1e-6);
	/* without the first step, whose wait goes with it */
	assert_true(fabs(rig.out.au_dlio - 100) < 1e-6);
	/* sample by sample it is the same */
	LOAD("reader.read_threads=2");
	rig.model.whole = false;
	run();
	expect_wall(0.04 + 32 * 0.1);
	assert_int_equal(rig.reads, 64);
}

/* The rank reads; then one worker that is too slow. */
static void test_exposed(void **state)
{
	(void)state;
	LOAD("reader.read_threads=0");
	run();
	expect_wall(32 * (0.04 + 0.1));
	LOAD("reader.read_threads=1");
	rig.read_ns = 80 * MS;
	run();
	expect_wall(32 * 0.16 + 0.1);
	assert_true(fabs(rig.out.wait_s - (32 * 0.16 - 31 * 0.1)) < 1e-9);
}

static int64_t compute(void *arg, uint32_t rank, uint32_t epoch, uint64_t step)
{
	(void)arg;
	(void)epoch;
	return (rank == step % 4 ? 150 : 100) * MS;
}

/* A barrier makes each step as long as the longest, and costs something itself. */
static void test_barrier(void **state)
{
	(void)state;
	LOAD("dataset.num_files_train=256");
	rig.t.ranks = 4;
	rig.t.compute_ns = compute;
	rig.t.barrier_ns = 5 * MS;
	run();
	expect_wall(0.04 + 32 * 0.155);
	assert_true(fabs(rig.out.compute_s - 32 * 0.1125) < 1e-9);
	LOAD("dataset.num_files_train=256");
	rig.t.ranks = 4;
	rig.t.compute_ns = compute;
	rig.t.no_barrier = true;
	run();
	expect_wall(0.04 + 32 * 0.1125);
}

/* Epochs, fewer steps, workers that take their time to begin. */
static void test_epochs(void **state)
{
	(void)state;
	LOAD("train.epochs=3", "reader.worker_init_time=0.5", "reader.persistent_workers=true");
	rig.t.steps = 10;
	run();
	expect_wall(0.5 + 3 * (0.04 + 10 * 0.1));
	assert_int_equal(rig.out.steps, 30);
	LOAD("reader.worker_init_time=0.5", "reader.persistent_workers=false");
	rig.t.epochs = 2;
	run();
	expect_wall(2 * (0.5 + 0.04 + 32 * 0.1));
}

/* What is done beside reading. */
static void test_work(void **state)
{
	(void)state;
	LOAD("reader.pin_thread=true", "reader.transport=shared_memory");
	rig.model.work = work;
	run();
	assert_int_equal(rig.works[MODEL_PACK], 32);
	assert_int_equal(rig.works[MODEL_UNPACK], 32);
	assert_int_equal(rig.works[MODEL_PIN], 32);
	expect_wall(0.043 + 32 * 0.1);
	LOAD("reader.data_loader=native_dali", "dataset.format=npy");
	rig.model.work = work;
	run();
	assert_int_equal(rig.works[MODEL_COPY], 64);
	assert_int_equal(rig.reads, 64);
}

/* Every loader ends, delivers all, and keeps within the memory it says. */
static void test_every_loader(void **state)
{
	(void)state;
	for (size_t i = 0; loader_table[i]; i++) {
		char loader[64], format[64], framework[64];
		struct err e;

		snprintf(loader, sizeof(loader), "reader.data_loader=%s", loader_table[i]->is.name);
		snprintf(format, sizeof(format), "dataset.format=%s", i % 2 ? "npy" : "tfrecord");
		snprintf(framework, sizeof(framework), "framework=%s",
			 loader_table[i]->is.default_of & (1u << FRAMEWORK_TENSORFLOW)
				 ? "tensorflow"
				 : "pytorch");
		LOAD(loader, format, framework, "dataset.num_files_train=256", "train.epochs=2",
		     "reader.prefetch_size=2");
		rig.t.ranks = 4;
		rig.model.work = work;
		run();
		assert_int_equal(rig.out.samples, 512);
		assert_true(rig.out.au > 0 && rig.out.au <= 100);
		assert_true(virtual_training_bytes(&rig.t, &e) > 0);
		assert_true(rig.out.stats.stack_most < VIRTUAL_STACK / 4 * 3);
	}
}

/* The same again. */
static void test_repeats(void **state)
{
	struct virtual_outcome first;

	(void)state;
	for (int i = 0; i < 2; i++) {
		LOAD("train.computation_time={mean: 0.1, stdev: 0.03}", "reader.in_order=false",
		     "reader.preprocess_time={mean: 0.05, stdev: 0.02}",
		     "dataset.num_files_train=512");
		rig.t.ranks = 8;
		run();
		if (i == 0)
			first = rig.out;
	}
	assert_true(first.au == rig.out.au && first.wall_s == rig.out.wall_s &&
		    first.stats.switches == rig.out.stats.switches);
}

/* ---- ends that are none ---- */

static void stop_at_ten(void *arg, const struct virtual_step *s)
{
	(void)arg;
	rig.steps++;
	if (s->step == 10)
		atomic_store(&rig.stop.set, STOP_SOON);
}

static struct virtual_waiters nobody;

static void never(void *arg, const struct modelled_read *r)
{
	(void)arg;
	if (r->batch == 5)
		virtual_wait(&nobody);
}

static int too_many(void *arg, struct virtual *v, struct err *e)
{
	(void)arg;
	(void)v;
	return err_set(e, -ENOMEM, "no memory for the model");
}

static void test_failures(void **state)
{
	struct err e;

	(void)state;
	LOAD("dataset.num_files_train=256");
	rig.t.ranks = 4;
	rig.t.step = stop_at_ten;
	assert_int_equal(virtual_training_run(&rig.t, &rig.out, &e), ERR_CANCELED);
	assert_true(rig.steps < 4 * 12);

	LOAD("reader.read_threads=2");
	rig.t.begin = too_many;
	assert_int_equal(virtual_training_run(&rig.t, &rig.out, &e), -ENOMEM);
	assert_string_equal(e.text, "no memory for the model");

	LOAD("reader.read_threads=2");
	rig.t.ranks = 0;
	assert_int_equal(virtual_training_run(&rig.t, &rig.out, &e), ERR_USAGE);
	assert_int_equal(virtual_training_bytes(&rig.t, &e), 0);
	LOAD("reader.read_threads=2");
	rig.w.reader.read_threads = -1;
	assert_int_equal(virtual_training_run(&rig.t, &rig.out, &e), ERR_USAGE);
	LOAD("reader.read_threads=2");
	free(rig.w.reader.data_loader);
	rig.w.reader.data_loader = NULL;
	assert_int_equal(virtual_training_run(&rig.t, &rig.out, &e), ERR_USAGE);
	/* an order that has no step */
	LOAD("reader.read_threads=2");
	rig.t.ranks = 100;
	run();
	assert_int_equal(rig.out.steps, 0);
	assert_true(isnan(rig.out.au_dlio));
}

/* What its fibers hold is lost: not where leaks are looked for. */
static void test_stuck_model(void **state)
{
	struct err e;

	(void)state;
	if (VIRTUAL_STACK > 65536)
		return;
	LOAD("reader.read_threads=2");
	rig.model.read = never;
	assert_int_equal(virtual_training_run(&rig.t, &rig.out, &e), -EDEADLK);
	assert_non_null(strstr(e.text, "wait for what nobody will do"));
}

static void test_steps(void **state)
{
	(void)state;
	LOAD("dataset.num_samples_per_file=5", "dataset.num_files_train=20");
	virtual_steps(&rig.w, 3, 7);
	assert_int_equal(rig.w.dataset.num_files_train, 9); /* 42 samples */
}

static int leave(void **state)
{
	dataset_release(&rig.d);
	workload_release(&rig.w);
	return drop_folder(state);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_hidden),      cmocka_unit_test(test_exposed),
		cmocka_unit_test(test_barrier),     cmocka_unit_test(test_epochs),
		cmocka_unit_test(test_work),        cmocka_unit_test(test_every_loader),
		cmocka_unit_test(test_repeats),     cmocka_unit_test(test_failures),
		cmocka_unit_test(test_stuck_model), cmocka_unit_test(test_steps),
	};
	return cmocka_run_group_tests(tests, make_folder, leave);
}
