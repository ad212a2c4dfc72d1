/* stoker run: generate, train and evaluate as the workload says, and print the result. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/file.h"
#include "cli/args.h"
#include "cli/cli.h"
#include "cli/job.h"
#include "cli/signals.h"
#include "cli/terminal.h"
#include "conf/node.h"
#include "result/metrics.h"
#include "result/text.h"
#include "study/truth_table.h"

static struct stop_flag stop;

static int print_composed(const struct workload *w)
{
	struct buf b = {0};

	yaml_emit(w->tree, &b);
	fputs(b.data ? b.data : "", stdout);
	buf_release(&b);
	return 0;
}

static void print_result(const struct result *r, const struct run_metrics *m)
{
	struct buf b = {0};

	result_text(r, m, terminal_has_colour(STDOUT_FILENO), &b);
	fputs(b.data ? b.data : "", stdout);
	fflush(stdout);
	buf_release(&b);
}

/* 0, or 3 when the caller asked to check the run: the target was missed or a verdict is FAIL. */
static int show_outcome(const struct cli_args *a, const struct workload *w, const struct result *r,
			struct err *e)
{
	struct run_metrics m = {0};
	const struct series_stat *au;
	int status = 0;

	if (!r->trained && !r->checkpointed && !r->only_evaluated) {
		if (r->generated)
			printf("%llu files written, %llu already existed, in '%s'\n",
			       (unsigned long long)r->generation.files,
			       (unsigned long long)r->generation.skipped, r->dataset->folder);
		else
			printf("nothing was done: this workload does not generate data, train, "
			       "evaluate or write checkpoints\n");
		if (r->generated || !a->check)
			return 0;
		err_set(e, ERR_TARGET,
			"the target AU %.2f %% (metric.au) cannot be judged: "
			"nothing was trained or evaluated",
			w->metric.au * 100);
		return cli_fail(e);
	}
	if (metrics_compute(&m, r, e) < 0)
		return cli_fail(e);
	print_result(r, &m);
	au = r->only_evaluated ? &m.eval_au : &m.train_au;
	if (a->check && (r->trained || r->only_evaluated) && au->count == 0) {
		err_set(e, ERR_TARGET,
			"the target AU %.2f %% (metric.au) cannot be judged: no AU was "
			"measured",
			w->metric.au * 100);
		status = cli_fail(e);
	} else if (a->check && (r->trained || r->only_evaluated) && au->mean < w->metric.au * 100) {
		err_set(e, ERR_TARGET, "%s %.2f %% is below the target %.2f %% (metric.au)",
			r->only_evaluated ? "AU of evaluation" : "AU", au->mean,
			w->metric.au * 100);
		status = cli_fail(e);
	}
	for (uint32_t i = 0;
	     a->check && status == 0 && r->status == RUN_COMPLETE && i < r->judged.verdicts; i++)
		if (r->judged.verdict[i].level == VERDICT_FAIL) {
			err_set(e, ERR_TARGET, "the verdict '%s' is FAIL: %.400s",
				r->judged.verdict[i].check, r->judged.verdict[i].text);
			status = cli_fail(e);
		}
	metrics_release(&m);
	return status;
}

/* ---- --truth-table ---- */

static void tell_row(void *arg, const char *what)
{
	const struct cli_args *a = arg;

	if (!a->quiet)
		fprintf(stderr, "truth table: %s\n", what);
}

static int write_table(const struct truth_table *t, const char *folder, struct err *e)
{
	struct buf text = {0};

	truth_table_text(t, &text);
	fputs(text.data ? text.data : "", stdout);
	printf("  results   %s\n", folder);
	buf_release(&text);
	return truth_table_write(t, folder, e);
}

/* The AU of the storage is what --check asks about. */
static int check_table(const struct cli_args *a, const struct truth_table *t, struct err *e)
{
	const struct truth_row *cold = &t->row[TRUTH_COLD];

	if (!a->check || !(t->target > 0) || (cold->measured && cold->au >= t->target))
		return 0;
	if (!cold->measured)
		return err_set(e, ERR_TARGET, "AU from the storage was not measured: %.600s",
			       cold->why);
	return err_set(e, ERR_TARGET,
		       "AU from the storage, %.2f %%, is below the target %.2f %% (metric.au)",
		       cold->au, t->target);
}

static int truth_table(const struct cli_args *a, struct job *j, struct workload *w, struct err *e)
{
	char program[4096];
	ssize_t n = readlink("/proc/self/exe", program, sizeof(program) - 1);
	struct truth_table_options o = {.program = program,
					.workload = a->workload,
					.config_dir = a->config_dir,
					.overrides = a->override,
					.override_count = a->overrides,
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
	if (n <= 0)
		return err_set(e, -ENOENT, "cannot find the path of this program (/proc/self/exe)");
	program[n] = '\0';
	cli_settle_folder(w);
	o.folder = w->output.folder ? w->output.folder : w->run_dir;
	t = xcalloc(1, sizeof(*t));
	rc = signals_start(j->stop, e);
	if (rc == 0)
		rc = truth_table_run(t, w, &o, e);
	if (rc == 0)
		rc = write_table(t, o.folder, e);
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
		status = j->speaks ? print_composed(&w) : 0;
	} else if (rc == 0 && a->truth_table) {
		rc = truth_table(a, j, &w, e);
	} else if (rc == 0) {
		rc = job_execute(j, a, &w, &o, &d, &r, e);
		if ((rc == 0 || r.trained || r.checkpointed || r.only_evaluated) && j->speaks) {
			struct err shown = {0};

			status = show_outcome(a, &w, &r, &shown);
		}
	}
	if (rc < 0)
		status = job_fail(j, e);
	if (r.stuck) {
		fflush(NULL);
		_exit(status);
	}
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
					   &flag_ranks,         &flag_per_process,
					   &flag_output,        &flag_check,
					   &flag_truth_table,   &flag_config_dir,
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
	.carry_out = run_main,
};
