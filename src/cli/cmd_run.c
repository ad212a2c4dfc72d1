/* stoker run: generate, train and evaluate as the workload says, and print the result. */
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
#include "base/log.h"
#include "base/say.h"
#include "base/str.h"
#include "cli/args.h"
#include "cli/cli.h"
#include "cli/job.h"
#include "conf/override.h"
#include "conf/node.h"
#include "judge/gate.h"
#include "os/signals.h"
#include "readback/result_folder.h"
#include "result/answer.h"
#include "result/fields.h"
#include "result/metrics.h"
#include "result/text.h"
#include "screen/terminal.h"
#include "study/repeat.h"
#include "study/runner.h"
#include "study/study.h"
#include "study/truth_table.h"

static struct stop_flag stop;

static void print_composed(const struct workload *w)
{
	struct buf b = {0};

	yaml_emit(w->tree, &b);
	cli_print(&b);
}

/* The short answer, or with -v everything. */
static void print_result(const struct cli_args *a, const struct result *r,
			 const struct run_metrics *m)
{
	bool color = terminal_has_colour(STDOUT_FILENO);
	unsigned before = log_console_lines();
	struct buf b = {0};

	if (a->verbose)
		result_text(r, m, color, &b);
	else
		result_answer(r, m, color, before < ANSWER_LINES ? ANSWER_LINES - before : 0, &b);
	cli_print(&b);
}

/* One line for each reason: all but the last are printed here, and that one is *e. */
static int check_failed(const struct buf *why, struct err *e)
{
	const char *line = why->data, *end;

	for (; (end = strchr(line, '\n')); line = end + 1)
		say(stderr, "stoker: check: %.*s\n", (int)(end - line), line);
	return err_set(e, ERR_TARGET, "check: %.800s: exit status 3", line);
}

/* 0, or 3 when the caller asked to check the run and it does not pass. */
static int check_run(const struct cli_args *a, const struct workload *w, const struct result *r,
		     const struct run_metrics *m, struct err *e)
{
	struct gate_limits want = {a->check, 100 * w->metric.au, a->samples_per_s};
	struct gate_run run;
	struct buf why = {0};
	int status = 0;

	gate_run_of(r, m, &run);
	if ((want.check || want.samples_per_s > 0) && !gate_passes(&run, 1, &want, &why)) {
		check_failed(&why, e);
		status = cli_fail(e);
	}
	buf_release(&why);
	return status;
}

/* Prints it; the exit status. */
static int show_outcome(const struct cli_args *a, const struct workload *w, const struct result *r,
			struct err *e)
{
	struct run_metrics m = {0};
	int status = 0;

	if (!r->trained && !r->checkpointed && !r->only_evaluated) {
		if (r->generated)
			say(stdout, "%llu files written, %llu already existed, in '%s'\n",
			    (unsigned long long)r->generation.files,
			    (unsigned long long)r->generation.skipped, r->dataset->folder);
		else
			say(stdout,
			    "nothing was done: this workload does not generate data, train, "
			    "evaluate or write checkpoints\n");
		if (r->generated || (!a->check && !(a->samples_per_s > 0)))
			return 0;
		err_set(e, ERR_TARGET,
			"check: the target AU %.4g %% (metric.au) cannot be judged: "
			"nothing was trained or evaluated: exit status 3",
			w->metric.au * 100);
		return cli_fail(e);
	}
	if (metrics_compute(&m, r, e) < 0)
		return cli_fail(e);
	print_result(a, r, &m);
	status = check_run(a, w, r, &m, e);
	metrics_release(&m);
	return status;
}

/* ---- --truth-table ---- */

static void tell_row(void *arg, const char *what)
{
	const struct cli_args *a = arg;

	if (a->quiet)
		return;
	/* on a terminal one line, which the table replaces */
	if (a->verbose)
		say(stderr, "truth table: %s\n", what);
	else if (terminal_can_draw(STDERR_FILENO))
		say(stderr, "\r\033[Ktruth table: %s", what);
}

static int write_table(const struct cli_args *a, const struct truth_table *t, const char *folder,
		       struct err *e)
{
	struct buf text = {0};

	if (!a->quiet && !a->verbose && terminal_can_draw(STDERR_FILENO))
		say(stderr, "\r\033[K");
	truth_table_text(t, a->verbose, &text);
	say_text(stdout, &text);
	say(stdout, "  results   %s\n", folder);
	buf_release(&text);
	return truth_table_write(t, folder, e);
}

/* The AU of the storage is what --check asks about. */
static int check_table(const struct cli_args *a, const struct truth_table *t, struct err *e)
{
	const struct truth_row *cold = &t->row[TRUTH_COLD];

	if (!a->check || !(t->target > 0) || (cold->measured && cold->whole_au >= t->target))
		return 0;
	if (!cold->measured)
		return err_set(e, ERR_TARGET,
			       "check: AU from the storage was not measured: %.600s: exit status 3",
			       cold->why);
	return err_set(e, ERR_TARGET,
		       "check: AU from the storage, %.2f %% of the whole run, is below the target "
		       "%.4g %% (metric.au): exit status 3",
		       cold->whole_au, t->target);
}

static int truth_table(const struct cli_args *a, struct job *j, struct workload *w, struct err *e)
{
	AUTO_FREE char *program = path_of_program(e);
	struct truth_table_options o = {.base = {.program = program,
						 .workload = a->workload,
						 .config_dir = a->config_dir,
						 .overrides = (const char *const *)a->override.v,
						 .override_count = a->override.n},
					.ranks = a->ranks,
					.stop = j->stop,
					.tell = tell_row,
					.arg = (void *)(uintptr_t)a};
	struct truth_table *t;
	int rc;

	if (j->net)
		return err_set(e, ERR_USAGE,
			       "--truth-table starts runs of its own: start one process, with -n "
			       "for its ranks");
	if (!program)
		return e->code;
	cli_settle_folder(w);
	o.folder = w->output.folder ? w->output.folder : w->run_dir;
	t = xcalloc(1, sizeof(*t));
	rc = signals_start(&(struct signal_work){.stop = j->stop, .hurries = true}, e);
	if (rc == 0)
		rc = truth_table_run(t, w, &o, e);
	if (rc == 0)
		rc = write_table(a, t, o.folder, e);
	if (rc == 0)
		rc = truth_table_outcome(t, e);
	if (rc == 0)
		rc = check_table(a, t, e);
	free(t);
	return rc;
}

/* ---- --repeat ---- */

struct repeating {
	const struct cli_args *a;
	struct job *j;
	const struct workload *w; /* as the user asked for it */
	struct repeated of;
	bool generated; /* before the first run */
	bool own_checkpoints;
	char *progress_file; /* "/dev/fd/N": all runs write to what was opened once; or NULL */
	size_t begun;
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
	AUTO_FREE char *folder = xasprintf("%s/%zu", x->of.folder, k);

	override_put_text(list, "output.folder", folder);
	if (x->of.cold)
		override_put(list, "storage.page_cache", "cold_epochs");
	/* what one adds to tell more by itself would come between it and the next */
	if (x->w->run.probe == PROBE_AUTO)
		override_put(list, "run.probe", "false");
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
	AUTO_FREE char *list = path_join(x->of.folder, "repeat.json");
	int rc = run_forget_results(x->of.folder, e);

	if (rc == 0 && unlink(list) != 0 && errno != ENOENT && errno != ENOTDIR)
		rc = err_sys(e, errno, "cannot remove '%s', the result of an earlier command",
			     list);
	/* any of them may be gone */
	for (int k = 1; rc == 0 && k <= REPEAT_MAX; k++) {
		AUTO_FREE char *folder = xasprintf("%s/%d", x->of.folder, k);
		int kind = path_look(folder, e);

		rc = kind == PATH_FOLDER ? run_forget_results(folder, e) : kind < 0 ? kind : 0;
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
	struct gate_run *run = &x->of.run[x->of.done];
	struct run_metrics m = {0};
	struct buf line = {0};
	int rc = metrics_compute(&m, r, e);

	if (rc < 0)
		return rc;
	gate_run_of(r, &m, run);
	if (x->a->verbose)
		print_result(x->a, r, &m);
	buf_say(&line, "run %zu of %lld: ", x->of.done + 1, (long long)x->a->repeat);
	if (run->reads)
		put_percent(&line, run->au);
	else
		buf_puts(&line, "done");
	if (isfinite(run->samples_per_s))
		buf_say(&line, ", %s samples/s", NUMBER(run->samples_per_s, 4));
	buf_putc(&line, '\n');
	cli_print(&line);
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
	x->of.done += rc == 0;
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

static int next_run_row(void *arg, struct runner_row *row, struct err *e)
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

static int make_run(void *arg, struct runner_row *row, struct err *e)
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
static int take_run(void *arg, const struct runner_row *row, struct err *e)
{
	(void)arg;
	if (row->end == ROW_FAILED)
		*e = row->why;
	return row->end == ROW_FAILED ? e->code : 0;
}

static int run_all(struct repeating *x, struct err *e)
{
	/* all processes agree on when to stop, between two runs */
	const struct runner r = {
		.next = next_run_row, .make = make_run, .take = take_run, .arg = x};
	int rc = x->generated ? generate(x, e) : 0;

	return rc == 0 ? runner_run(&r, e) : rc;
}

/* Of the process that has the results. */
static int finish(const struct repeating *x, int rc, struct err *e)
{
	const struct gate_limits *want = &x->of.want;
	bool asked = want->check || want->samples_per_s > 0, passed = true;
	struct buf text = {0}, why = {0};
	struct err unwritten = {0};
	int written;

	buf_puts(&why, "");
	repeated_text(&x->of, &text);
	cli_print(&text);
	if (asked)
		passed = gate_passes(x->of.run, x->of.done, want, &why);
	/* that of the last run did not answer, and this one is around it */
	written = x->unwritable
			  ? 0
			  : repeated_write(&x->of, passed,
					   asked ? (why.data ? why.data : "") : NULL, &unwritten);
	if (rc == 0 && written < 0) {
		*e = unwritten;
		rc = written;
	}
	if (rc == 0 && !passed)
		rc = check_failed(&why, e);
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
	x->of.folder = xstrdup(w->output.folder ? w->output.folder : w->run_dir);
	x->of.cold = workload_reads(w) && study_begins_cold(w);
	x->generated = w->workflow.generate_data && workload_base_store(w)->flags & STORE_HAS_FILES;
	x->own_checkpoints = w->workflow.checkpoint &&
			     (w->workflow.train || w->checkpoint.num_checkpoints_write > 0);
	x->of.run = xcalloc((size_t)x->a->repeat, sizeof(*x->of.run));
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

/* Makes a->repeat runs of `w` (loaded as `a` says), with their results in the folders 1, 2, ... of
 * the output folder, and prints a summary. All processes of the job call it.
 *
 * Each run begins as the others do: a dataset that is to be generated is generated once, before
 * the first; checkpoints are written to a folder of the run's own, which is removed when the next
 * one begins unless it was there before; and where storage.page_cache is not set and there is a
 * page cache, it is cold_epochs. Results of an earlier command in the same folders are removed.
 *
 * The first run that fails or is interrupted is the last; those before it count. Returns the exit
 * status, and has printed why it is not 0. *stuck: a thread hangs, end the process. */
static int repeat_runs(const struct cli_args *a, struct job *j, struct workload *w, bool *stuck)
{
	struct repeating x = {.a = a,
			      .j = j,
			      .w = w,
			      .of = {.name = cli_workload_name(a),
				     .asked = a->repeat,
				     .ranks = a->ranks,
				     .target = 100 * w->metric.au,
				     .want = {a->check, 100 * w->metric.au, a->samples_per_s}}};
	struct err e = {0};
	int rc = check_can_repeat(w, &e);

	if (rc == 0)
		rc = prepare(&x, w, &e);
	if (rc == 0)
		rc = run_all(&x, &e);
	if (x.of.done && j->speaks && job_leads(j))
		rc = finish(&x, rc, &e);
	*stuck = x.stuck;
	if (x.progress_file)
		close(place_named_descriptor(x.progress_file));
	free(x.progress_file);
	free(x.of.folder);
	free(x.of.run);
	return rc < 0 ? job_fail(j, &e) : 0;
}

/* ---- what is in the folder ---- */

/* True when there is a result, which this run replaces: of another workload it is not lost without
 * a word. */
static bool say_replaced(const struct workload *w, const char *folder)
{
	AUTO_FREE char *summary = path_join(folder, "summary.json");
	json_t *old = result_folder_json(folder, "result.json", NULL);
	const struct part *whole = part_whole(old);
	const char *workload = old ? figure_text(whole, F_RUN_WORKLOAD) : "another program";
	const char *date = old ? figure_text(whole, F_RUN_START) : NULL;
	bool found = old || file_exists(summary);

	if (found && !(workload && strcmp(workload, w->choice) == 0))
		say(stderr, "stoker: the result of %s%s%.10s in '%s' is replaced\n",
		    workload ? workload : "another workload", date ? " of " : "", date ? date : "",
		    folder);
	json_decref(old);
	return found;
}

static void look_at_folder(const struct cli_args *a, const struct job *j, const struct workload *w)
{
	const char *folder = w->output.folder ? w->output.folder : w->run_dir;
	AUTO_FREE char *first = path_join(folder, "1");
	char who[FILE_LOCK_WHO_MAX];

	/* of a folder that is used, nothing is replaced: the run is refused */
	if (!folder || !j->speaks || !job_leads(j) || result_folder_is_used(folder, who))
		return;
	if (!say_replaced(w, folder) && a->repeat)
		say_replaced(w, first);
}

/* ---- */

static int run(const struct cli_args *a, struct job *j, struct err *e)
{
	struct workload w = {0};
	struct dataset d = {0};
	struct result r = {0};
	struct run_options o = {0};
	const char *document = a->truth_table ? "truth_table.json"
			       : a->repeat    ? "repeat.json"
					      : "result.json";
	int status = 0, rc = job_load(j, a, &w, e);
	bool answers = false;

	if (a->json)
		cli_only_json();
	if (rc == 0 && a->json && a->cfg >= 0) {
		rc = err_set(e, ERR_USAGE,
			     "--cfg prints the workload and --json its result: give one of them");
	} else if (rc == 0 && a->cfg >= 0) {
		if (j->speaks)
			print_composed(&w);
	} else if (rc == 0 && a->truth_table && a->repeat) {
		rc = err_set(e, ERR_USAGE,
			     "--truth-table and --repeat cannot be combined: each makes runs of "
			     "its own");
	} else if (rc == 0 && a->truth_table) {
		rc = truth_table(a, j, &w, e);
		answers = rc == 0 || rc == ERR_TARGET;
	} else if (rc == 0 && a->repeat) {
		look_at_folder(a, j, &w);
		status = repeat_runs(a, j, &w, &r.stuck);
		answers = !r.stuck && (status == 0 || status == 3);
	} else if (rc == 0) {
		look_at_folder(a, j, &w);
		rc = job_execute(j, a, &w, &o, &d, &r, e);
		if ((rc == 0 || r.trained || r.checkpointed || r.only_evaluated) && j->speaks) {
			struct err shown = {0};

			status = show_outcome(a, &w, &r, &shown);
			answers = !r.stuck && !r.unwritable;
		}
	}
	if (a->json && answers && j->speaks) {
		struct err missing = {0};

		if (cli_put_json_file(w.output.folder ? w.output.folder : w.run_dir, document,
				      &missing) < 0)
			status = cli_fail(&missing);
	}
	if (rc < 0)
		status = job_fail(j, e);
	if (r.stuck)
		cli_leave(status);
	result_release(&r);
	dataset_release(&d);
	workload_release(&w);
	return status;
}

static int run_main(const struct command *c, int argc, char **argv)
{
	return job_main(c, argc, argv, &stop, run);
}

static const struct flag *const flags[] = {&operand_workload,
					   &operand_key,
					   &flag_data,
					   &flag_ranks,
					   &flag_per_process,
					   &flag_hosts,
					   &flag_ssh,
					   &flag_ssh_arg,
					   &flag_copy_binary,
					   &flag_output,
					   &flag_check,
					   &flag_samples_per_s,
					   &flag_repeat,
					   &flag_truth_table,
					   &flag_small,
					   &flag_config_dir,
					   &flag_strict,
					   &flag_verbose,
					   &flag_quiet,
					   &flag_progress,
					   &flag_progress_file,
					   &flag_progress_interval,
					   &flag_cfg,
					   &flag_print_json,
					   NULL};

const struct command command_run = {
	.name = "run",
	.operands = "WORKLOAD [key=value ...]",
	.help = "Generate, train, evaluate and checkpoint as the workload says.",
	.flags = flags,
	.link = "dlio_benchmark",
	.examples = {"stoker run cosmoflow_h100 dataset.num_files_train=64 "
		     "workflow.generate_data=true train.epochs=1 --repeat 3 -o before",
		     "stoker run cosmoflow_h100 dataset.num_files_train=64 reader.read_threads=8 "
		     "train.epochs=1 --repeat 3 -o after"},
	.carry_out = run_main,
};
