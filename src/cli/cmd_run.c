/* stoker run: generate, train and evaluate as the workload says, and print the result. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/log.h"
#include "base/say.h"
#include "cli/args.h"
#include "cli/cli.h"
#include "cli/job.h"
#include "cli/repeat.h"
#include "conf/node.h"
#include "judge/gate.h"
#include "os/signals.h"
#include "result/answer.h"
#include "result/metrics.h"
#include "result/text.h"
#include "screen/terminal.h"
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
		err_set(e, ERR_TARGET, "check: %.800s: exit status 3", why.data);
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
	rc = signals_start(j->stop, e);
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

static int run(const struct cli_args *a, struct job *j, struct err *e)
{
	struct workload w = {0};
	struct dataset d = {0};
	struct result r = {0};
	struct run_options o = {0};
	int status = 0, rc = job_load(j, a, &w, e);

	if (rc == 0 && a->cfg >= 0) {
		if (j->speaks)
			print_composed(&w);
	} else if (rc == 0 && a->truth_table && a->repeat) {
		rc = err_set(e, ERR_USAGE,
			     "--truth-table and --repeat cannot be combined: each makes runs of "
			     "its own");
	} else if (rc == 0 && a->truth_table) {
		rc = truth_table(a, j, &w, e);
	} else if (rc == 0 && a->repeat) {
		status = repeat_runs(a, j, &w, print_result, &r.stuck);
	} else if (rc == 0) {
		rc = job_execute(j, a, &w, &o, &d, &r, e);
		if ((rc == 0 || r.trained || r.checkpointed || r.only_evaluated) && j->speaks) {
			struct err shown = {0};

			status = show_outcome(a, &w, &r, &shown);
		}
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

static const struct flag *const flags[] = {&operand_workload,   &operand_key,
					   &flag_data,          &flag_ranks,
					   &flag_per_process,   &flag_hosts,
					   &flag_ssh,           &flag_ssh_arg,
					   &flag_copy_binary,   &flag_output,
					   &flag_check,         &flag_samples_per_s,
					   &flag_repeat,        &flag_truth_table,
					   &flag_small,         &flag_config_dir,
					   &flag_strict,        &flag_verbose,
					   &flag_quiet,         &flag_progress,
					   &flag_progress_file, &flag_progress_interval,
					   &flag_cfg,           NULL};

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
