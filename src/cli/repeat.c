/* Repetitions of one run, and their summary. */
#include "cli/repeat.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/file_out.h"
#include "base/say.h"
#include "cli/cli.h"
#include "conf/override.h"
#include "judge/gate.h"
#include "result/json_out.h"
#include "screen/progress.h"
#include "study/runner.h"
#include "study/study.h"
#include "workload/backend.h"

struct repeating {
	const struct cli_args *a;
	struct job *j;
	const struct workload *w; /* as the user asked for it */
	void (*show)(const struct cli_args *a, const struct result *r, const struct run_metrics *m);
	char *folder;
	bool cold;      /* by default */
	bool generated; /* before the first run */
	bool own_checkpoints;
	char *progress_file; /* "/dev/fd/N": all runs write to what was opened once; or NULL */
	struct gate_run *run;
	size_t begun, done;
	bool kept;              /* the folder of the last run's checkpoints was there before it */
	bool stuck, unwritable; /* as in struct result */
};

/* ---- what makes the runs alike ---- */

static char *checkpoints_of(const struct repeating *x, size_t k)
{
	return xasprintf("%s/%zu", x->w->checkpoint.checkpoint_folder, k);
}

/* What run `k` is told beyond what the user said. */
static void overrides_of(const struct repeating *x, size_t k, struct str_list *list)
{
	AUTO_FREE char *folder = xasprintf("%s/%zu", x->folder, k);

	override_put_text(list, "output.folder", folder);
	if (x->cold)
		override_put(list, "storage.page_cache", "cold_epochs");
	if (x->generated)
		override_put(list, "workflow.generate_data", "false");
	/* the last one removes what was generated, where that is asked for */
	if (x->generated && !x->w->dataset.keep_files && k < (size_t)x->a->repeat)
		override_put(list, "dataset.keep_files", "true");
	if (x->own_checkpoints) {
		AUTO_FREE char *checkpoints = checkpoints_of(x, k);

		override_put_text(list, "checkpoint.checkpoint_folder", checkpoints);
	}
}

static int agree(const struct repeating *x, int rc, struct err *e)
{
	if (rc == 0 && stop_is_set(x->j->stop))
		rc = err_set(e, ERR_CANCELED, "stopped by a signal");
	return job_agree(x->j, rc, e);
}

/* The checkpoints of run `k`, in a folder that was made for it. Hosts may have folders of their
 * own. */
static int remove_checkpoints(const struct repeating *x, size_t k, struct err *e)
{
	AUTO_FREE char *folder = checkpoints_of(x, k);
	int rc = job_leads(x->j) ? remove_tree(folder, e) : 0;

	rc = agree(x, rc, e);
	if (rc == 0 && !job_leads(x->j))
		remove_tree(folder, NULL);
	return rc;
}

/* Of an earlier command: of a single run, and of repetitions, which would be taken for ours. */
static int forget_results(const struct repeating *x, struct err *e)
{
	AUTO_FREE char *list = path_join(x->folder, "repeat.json");
	int rc = run_forget_results(x->folder, e);

	if (rc == 0 && unlink(list) != 0 && errno != ENOENT && errno != ENOTDIR)
		rc = err_sys(e, errno, "cannot remove '%s', the result of an earlier command",
			     list);
	for (size_t k = 1; rc == 0; k++) {
		AUTO_FREE char *folder = xasprintf("%s/%zu", x->folder, k);

		int kind = path_look(folder, e);

		if (kind < 0)
			return kind;
		if (kind != PATH_FOLDER)
			break;
		rc = run_forget_results(folder, e);
	}
	return rc;
}

/* ---- one run ---- */

/* Prepares the next run: all processes agree to go on, and on the time at which it begins. */
static int next_run(struct repeating *x, struct err *e)
{
	int64_t now = clock_wall_ns();
	int rc;

	if (x->j->net)
		net_next_run(x->j->net);
	/* what a run has left behind still uses its memory */
	rc = x->stuck ? err_set(e, -ETIMEDOUT,
				"the storage has not answered at the end of a run: the next one "
				"is not begun")
		      : 0;
	rc = agree(x, rc, e);
	if (rc == 0 && x->j->net)
		rc = comm_broadcast(&x->j->comm, 0, &now, sizeof(now));
	x->j->begin_wall_ns = now;
	return rc;
}

static int generate(struct repeating *x, struct err *e)
{
	struct workload w = {0};
	struct run_options o = {.dataset_only = true};
	struct dataset d = {0};
	struct result r = {0};
	struct cli_args loading = *x->a;
	int rc;

	loading.quiet = true; /* its warnings were printed */
	rc = job_agree(x->j, cli_load_workload(&loading, x->j->begin_wall_ns, &w, e), e);
	if (rc == 0)
		rc = job_execute(x->j, x->a, &w, &o, &d, &r, e);
	if (rc == 0 && x->j->speaks)
		say(stdout, "%llu files written, %llu already existed, in '%s'\n",
		    (unsigned long long)r.generation.files,
		    (unsigned long long)r.generation.skipped, w.dataset.data_folder);
	x->stuck = x->stuck || r.stuck;
	if (!x->stuck) {
		result_release(&r);
		dataset_release(&d);
		workload_release(&w);
	}
	return rc == 0 ? next_run(x, e) : rc;
}

static void put_percent(struct buf *out, double v)
{
	if (isfinite(v))
		buf_say(out, "AU %.1f %%", v);
	else
		buf_puts(out, "no AU was measured");
}

/* Of one run: what the gate sees, and a line. */
static int take_result(struct repeating *x, const struct result *r, struct err *e)
{
	struct gate_run *run = &x->run[x->done];
	struct run_metrics m = {0};
	struct buf line = {0};
	int rc = metrics_compute(&m, r, e);

	if (rc < 0)
		return rc;
	gate_run_of(r, &m, run);
	if (x->a->verbose)
		x->show(x->a, r, &m);
	buf_say(&line, "run %zu of %lld: ", x->done + 1, (long long)x->a->repeat);
	if (run->reads)
		put_percent(&line, run->au);
	else
		buf_puts(&line, "done");
	if (isfinite(run->samples_per_s))
		buf_say(&line, ", %.4g samples/s", run->samples_per_s);
	say(stdout, "%s\n", line.data);
	fflush(stdout);
	buf_release(&line);
	metrics_release(&m);
	return 0;
}

static int run_loaded(struct repeating *x, const struct cli_args *b, struct workload *w,
		      struct err *e)
{
	struct run_options o = {0};
	struct dataset d = {0};
	struct result r = {0};
	int rc = job_execute(x->j, b, w, &o, &d, &r, e);

	if (rc == 0 && x->j->speaks)
		rc = take_result(x, &r, e);
	x->done += rc == 0;
	x->stuck = x->stuck || r.stuck;
	x->unwritable = x->unwritable || r.unwritable;
	if (!x->stuck) {
		result_release(&r);
		dataset_release(&d);
	}
	return rc;
}

static int run_once(struct repeating *x, size_t k, struct err *e)
{
	struct cli_args b = *x->a, loading;
	struct workload w = {0};
	AUTO_FREE char *title =
		xasprintf("%s, run %zu of %lld", cli_workload_name(x->a), k, (long long)b.repeat);
	int rc;

	b.override = (struct str_list){0};
	str_list_copy(&b.override, &x->a->override);
	overrides_of(x, k, &b.override);
	b.title = title;
	b.progress_file = x->progress_file ? x->progress_file : b.progress_file;
	loading = b;
	loading.quiet = true;
	rc = job_agree(x->j, cli_load_workload(&loading, x->j->begin_wall_ns, &w, e), e);
	if (rc == 0)
		rc = run_loaded(x, &b, &w, e);
	if (!x->stuck)
		workload_release(&w);
	str_list_release(&b.override);
	return rc;
}

/* ---- the design ---- */

static int next_row(void *arg, struct runner_row *row, struct err *e)
{
	struct repeating *x = arg;

	(void)e;
	row->index = ++x->begun;
	return row->index <= (size_t)x->a->repeat;
}

/* Whether the checkpoints of run `k` have a folder already; process 0's counts. */
static int look_at_checkpoints(struct repeating *x, size_t k)
{
	AUTO_FREE char *folder = checkpoints_of(x, k);

	x->kept = file_exists(folder);
	if (!x->j->net)
		return 0;
	return comm_broadcast(&x->j->comm, 0, &x->kept, sizeof(x->kept));
}

static int make_row(void *arg, struct runner_row *row, struct err *e)
{
	struct repeating *x = arg;
	bool before = x->kept;
	int rc = 0;

	if (row->index > 1)
		rc = next_run(x, e);
	if (rc == 0 && row->index > 1 && x->own_checkpoints && !before)
		rc = remove_checkpoints(x, row->index - 1, e);
	if (rc == 0 && x->own_checkpoints)
		rc = look_at_checkpoints(x, row->index);
	return rc == 0 ? run_once(x, row->index, e) : rc;
}

/* The first that fails is the last. */
static int take_row(void *arg, const struct runner_row *row, struct err *e)
{
	(void)arg;
	if (row->end == ROW_FAILED)
		*e = row->why;
	return row->end == ROW_FAILED ? e->code : 0;
}

static int run_all(struct repeating *x, struct err *e)
{
	/* all processes agree on when to stop, between two runs */
	const struct runner r = {.next = next_row, .make = make_row, .take = take_row, .arg = x};
	int rc = x->generated ? generate(x, e) : 0;

	return rc == 0 ? runner_run(&r, e) : rc;
}

/* ---- the summary ---- */

static void put_interval(struct buf *out, const struct gate_measure *m, size_t n, int digits,
			 double most)
{
	if (n > 1)
		buf_say(out, ", stdev %.2g", m->of.stdev);
	if (m->interval)
		buf_say(out, ", 95 %% interval %.*f to %.*f", digits, fmax(0, m->low), digits,
			fmin(most, m->high));
	else if (n > 1)
		buf_say(out, ", %.*f to %.*f (an interval needs %d runs)", digits, m->low, digits,
			m->high, GATE_RUNS_FOR_INTERVAL);
	else
		buf_say(out, " (one run: no interval)");
}

static void put_au(const struct repeating *x, struct buf *out)
{
	struct gate_measure m = gate_au(x->run, x->done);
	double target = 100 * x->w->metric.au;

	if (m.of.n == 0)
		return;
	buf_say(out, "  %-15s %.1f %% of the %s", "AU", m.of.mean,
		x->run[0].only_evaluated ? "evaluation" : "whole run");
	put_interval(out, &m, x->done, 1, 100);
	if (target > 0)
		buf_say(out, "\n  %-15s %.4g %%: %s", "target", target,
			m.of.n == x->done && m.low >= target ? "met" : "missed");
	if (target > 0 && x->done > 1)
		buf_say(out, " (by the %s)",
			m.interval ? "lower end of the interval" : "lowest run");
	buf_putc(out, '\n');
}

static void put_rate(const struct repeating *x, struct buf *out)
{
	struct gate_measure m = gate_rate(x->run, x->done);
	int digits;

	if (m.of.n == 0)
		return;
	digits = m.of.mean < 100 ? 2 : m.of.mean < 1000 ? 1 : 0;
	buf_say(out, "  %-15s %.*f samples/s", "rate", digits, m.of.mean);
	put_interval(out, &m, x->done, digits, INFINITY);
	buf_putc(out, '\n');
}

static void put_cache(const struct repeating *x, struct buf *out)
{
	double least = INFINITY, most = -INFINITY;

	for (size_t i = 0; i < x->done; i++) {
		least = fmin(least, x->run[i].cached_share);
		most = fmax(most, x->run[i].cached_share);
	}
	if (!(most >= least))
		return;
	buf_say(out, "  %-15s ", "page cache");
	if (most - least >= 0.005)
		buf_say(out, "%.0f to ", 100 * least);
	buf_say(out, "%.0f %% of the bytes came from it%s\n", 100 * most,
		x->cold ? "; the dataset is evicted from it before every epoch" : "");
}

static void put_failures(const struct repeating *x, struct buf *out)
{
	for (size_t i = 0; i < x->done; i++)
		if (x->run[i].failed[0])
			buf_say(out, "  %-15s %s in run %zu\n", "FAIL", x->run[i].failed, i + 1);
}

static void summary_text(const struct repeating *x, struct buf *out)
{
	buf_say(out, "%s: %zu of %lld runs, %lld accelerator%s\n", cli_workload_name(x->a), x->done,
		(long long)x->a->repeat, (long long)x->a->ranks, x->a->ranks == 1 ? "" : "s");
	put_au(x, out);
	put_rate(x, out);
	put_cache(x, out);
	put_failures(x, out);
	buf_say(out, "  %-15s %s/1", "results", x->folder);
	if (x->done > 1)
		buf_say(out, " to %zu", x->done);
	buf_say(out, "; summary: %s/repeat.json\n", x->folder);
}

static json_t *measure_json(const struct gate_measure *m)
{
	json_t *o = json_stat(&m->of);

	if (m->interval) {
		json_put_real(o, "low_95", m->low);
		json_put_real(o, "high_95", m->high);
	}
	return o;
}

/* `why`: of the gate; NULL: nothing was asked of it. */
static int write_summary(const struct repeating *x, bool passed, const char *why, struct err *e)
{
	struct gate_measure au = gate_au(x->run, x->done), rate = gate_rate(x->run, x->done);
	json_t *root = json_object(), *runs = json_array();

	json_put_mark(root);
	json_put_text(root, "workload", cli_workload_name(x->a));
	json_put_int(root, "runs_asked", (uint64_t)x->a->repeat);
	json_put_int(root, "runs", x->done);
	json_put_int(root, "accelerators", (uint64_t)x->a->ranks);
	json_put_bool(root, "cold_by_default", x->cold);
	json_put(root, "whole_au_percent", measure_json(&au));
	json_put(root, "whole_throughput_samples_per_s", measure_json(&rate));
	for (size_t i = 0; i < x->done; i++) {
		json_t *o = json_object();
		AUTO_FREE char *folder = xasprintf("%zu", i + 1);

		json_put_text(o, "folder", folder);
		json_put_real(o, "whole_au_percent", x->run[i].au);
		json_put_real(o, "whole_throughput_samples_per_s", x->run[i].samples_per_s);
		json_put_real(o, "page_cache_percent", 100 * x->run[i].cached_share);
		json_put_text(o, "failed_verdicts", x->run[i].failed);
		json_array_append_new(runs, o);
	}
	json_put(root, "each", runs);
	if (why) {
		json_put_bool(root, "check_passed", passed);
		json_put_text(root, "check", why);
	}
	return json_write(root, x->folder, "repeat.json", e);
}

/* Of the process that has the results. */
static int finish(const struct repeating *x, int rc, struct err *e)
{
	struct gate_limits want = {x->a->check, 100 * x->w->metric.au, x->a->samples_per_s};
	bool asked = want.check || want.samples_per_s > 0, passed = true;
	struct buf text = {0}, why = {0};
	struct err unwritten = {0};
	int written;

	buf_puts(&why, "");
	summary_text(x, &text);
	say_text(stdout, &text);
	fflush(stdout);
	if (asked)
		passed = gate_passes(x->run, x->done, &want, &why);
	/* that of the last run did not answer, and this one is around it */
	written = x->unwritable
			  ? 0
			  : write_summary(x, passed, asked ? (why.data ? why.data : "") : NULL,
					  &unwritten);
	if (rc == 0 && written < 0) {
		*e = unwritten;
		rc = written;
	}
	if (rc == 0 && !passed)
		rc = err_set(e, ERR_TARGET, "check: %.800s: exit status 3", why.data);
	buf_release(&text);
	buf_release(&why);
	return rc;
}

/* ---- the whole ---- */

static int check_can_repeat(const struct workload *w, struct err *e)
{
	if (workload_reads(w) || w->workflow.checkpoint)
		return 0;
	return err_set(e, ERR_USAGE,
		       "--repeat: this workload has nothing to repeat: it does not train, evaluate "
		       "or write checkpoints");
}

static int prepare(struct repeating *x, struct workload *w, struct err *e)
{
	int fd, rc = job_settle(x->j, w, true, e);

	if (rc < 0)
		return rc;
	x->folder = xstrdup(w->output.folder ? w->output.folder : w->run_dir);
	x->cold = workload_reads(w) && study_begins_cold(w);
	x->generated = w->workflow.generate_data && workload_base_store(w)->flags & STORE_HAS_FILES;
	x->own_checkpoints = w->workflow.checkpoint &&
			     (w->workflow.train || w->checkpoint.num_checkpoints_write > 0);
	x->run = xcalloc((size_t)x->a->repeat, sizeof(*x->run));
	if (job_leads(x->j))
		rc = forget_results(x, e);
	if (rc == 0 && x->j->speaks && x->a->progress_file &&
	    place_named_descriptor(x->a->progress_file) < 0) {
		fd = progress_open(x->a->progress_file, e);
		rc = fd < 0 ? e->code : 0;
		if (fd >= 0)
			x->progress_file = xasprintf("/dev/fd/%d", fd);
	}
	return agree(x, rc, e);
}

int repeat_runs(const struct cli_args *a, struct job *j, struct workload *w,
		void (*show)(const struct cli_args *a, const struct result *r,
			     const struct run_metrics *m),
		bool *stuck)
{
	struct repeating x = {.a = a, .j = j, .w = w, .show = show};
	struct err e = {0};
	int rc = check_can_repeat(w, &e);

	if (rc == 0)
		rc = prepare(&x, w, &e);
	if (rc == 0)
		rc = run_all(&x, &e);
	if (x.done && j->speaks && job_leads(j))
		rc = finish(&x, rc, &e);
	*stuck = x.stuck;
	if (x.progress_file)
		close(place_named_descriptor(x.progress_file));
	free(x.progress_file);
	free(x.folder);
	free(x.run);
	return rc < 0 ? job_fail(j, &e) : 0;
}
