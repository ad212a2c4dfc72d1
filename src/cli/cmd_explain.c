/* stoker explain: what a real job did, from its log. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/file_out.h"
#include "base/say.h"
#include "base/vector.h"
#include "cli/cli.h"
#include "cli/flags.h"
#include "page/job_page.h"
#include "readback/record.h"
#include "result/fields.h"
#include "trace/confirm.h"
#include "trace/darshan/darshan_log.h"
#include "trace/profile/job_advice.h"
#include "trace/profile/profile.h"
#include "trace/replay/fidelity.h"
#include "trace/trace_reader.h"
#include "trace/workload/workload_of.h"

struct explain_args {
	struct str_list log; /* first: the operands */
	bool json, verbose, counters;
	struct str_list fidelity;
	const char *output, *confirm;
};

static bool ends_in(const char *s, const char *end)
{
	size_t n = strlen(s), k = strlen(end);

	return n > k && strcmp(s + n - k, end) == 0;
}

static void print_profile(const struct profile *a, const struct explain_args *x)
{
	struct buf text = {0};

	if (x->json)
		profile_json(a, &text);
	else
		profile_print(a, x->verbose, &text);
	if (!x->json)
		job_advice_put(a, &x->log,
			       x->output && !ends_in(x->output, ".html") ? x->output : NULL, &text);
	cli_print(&text);
}

/* A workload, and what the user has to add to it. */
static int write_workload(const struct profile *a, const char *path, struct err *e)
{
	struct buf asked = {0};
	int rc = workload_of_write(a, path, &asked, e);

	if (rc == 0 && asked.len)
		say_text(stderr, &asked);
	buf_release(&asked);
	return rc;
}

static int write_output(const struct profile *a, const char *path, struct err *e)
{
	struct buf page = {0};
	int rc;

	if (!ends_in(path, ".html"))
		return write_workload(a, path, e);
	job_page_render(a, &page);
	rc = file_write(path, page.data, page.len, e);
	buf_release(&page);
	return rc;
}

static void put_text(void *context, const char *text, size_t n)
{
	fwrite(text, 1, n, context);
}

static int print_counters(const struct explain_args *x, struct err *e)
{
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < x->log.n; i++)
		rc = darshan_print(x->log.v[i], put_text, stdout, e);
	fflush(stdout);
	return rc;
}

/* The requests of the log against those of the run in the folder of results. */
static int confirm_run(const struct job *job, const struct explain_args *x, struct err *e)
{
	struct run_record record;
	struct confirmation c;
	struct buf text = {0};
	int rc;

	record_load(&record, x->confirm);
	if (record.broken)
		rc = err_set(e, ERR_USAGE, "--confirm: %s", record.broken);
	else if (!record.has_workload)
		rc = err_set(e, ERR_USAGE,
			     "--confirm: '%s' does not hold the workload of its run "
			     "(.hydra/config.yaml)",
			     x->confirm);
	else
		rc = confirm(&record.workload, record.ours, job, &c, e);
	record_release(&record);
	if (rc < 0)
		return rc;
	confirm_print(&c, &text);
	cli_print(&text);
	return c.differ ? err_set(e, ERR_TARGET, "the requests differ") : 0;
}

/* ---- how near the run of a workload came to the job ---- */

struct steps {
	double *s;
	size_t n, room;
	double wall_s; /* of training; NAN */
};

/* From having one batch to having the next: the rest of this step, whose time has that of loading
 * in it, and the wait for the next. */
static void take_block(const struct record_phase *b, struct steps *out)
{
	for (size_t i = 0; i + 1 < b->loads && i < b->procs; i++) {
		double s = b->proc[i] - b->load[i] + b->load[i + 1];

		if (isfinite(s))
			VECTOR_PUSH(out->s, out->n, out->room, s);
	}
}

static int take_results(const char *folder, struct steps *out, struct err *e)
{
	struct run_record r;
	int rc = record_check(folder, e);

	if (rc < 0)
		return rc;
	record_load(&r, folder);
	out->wall_s = figure(part(record_part(&r, F_RUN_TRAINING), F_TRAINING_DECOMPOSITION),
			     F_DECOMPOSITION_WALL);
	/* a run without an epoch has none */
	if (isnan(out->wall_s))
		out->wall_s = 0;
	for (uint32_t k = 0; r.rank && k < r.ranks; k++)
		for (size_t n = 0; n < r.rank[k].epochs; n++)
			for (size_t b = 0; b < r.rank[k].epoch[n].blocks; b++)
				take_block(&r.rank[k].epoch[n].block[b], out);
	record_release(&r);
	return 0;
}

static bool has_results(const char *path)
{
	AUTO_FREE char *result = path_join(path, "result.json");

	return file_there(result, NULL) > 0;
}

/* The run of a workload compared with the job that the workload was made of. Of a run there is a
 * log (of 'stoker record' or another that explain reads), which gives its requests; a folder of
 * results, which gives its steps and its time; or both, in any order. */
static int compare_run(const struct job *log, const struct str_list *runs, bool json, struct err *e)
{
	const char **logs = xcalloc(runs->n + 1, sizeof(*logs));
	struct steps steps = {.wall_s = NAN};
	struct buf text = {0};
	struct fidelity f;
	struct job run;
	size_t n = 0;
	int rc = 0;

	job_init(&run);
	for (size_t i = 0; i < runs->n && rc == 0; i++) {
		if (has_results(runs->v[i]))
			rc = take_results(runs->v[i], &steps, e);
		else
			logs[n++] = runs->v[i];
	}
	if (rc == 0 && n)
		rc = job_read(&run, logs, n, e);
	if (rc == 0) {
		fidelity_of(log, &run, false, true, &f);
		if (!n)
			fidelity_forget_requests(&f);
		if (steps.n)
			fidelity_set_steps(&f, log, steps.s, steps.n);
		if (!isnan(steps.wall_s))
			f.wall_s.run = steps.wall_s;
		if (json)
			fidelity_json(&f, &text);
		else
			fidelity_print(&f, &text);
		cli_print(&text);
	}
	job_release(&run);
	free(steps.s);
	free(logs);
	return rc;
}

/* ---- */

static int explain_job(const struct explain_args *x, struct err *e)
{
	struct job job;
	struct profile a;
	int rc;

	job_init(&job);
	rc = job_read(&job, (const char *const *)x->log.v, x->log.n, e);
	if (rc == 0 && x->fidelity.n) {
		rc = compare_run(&job, &x->fidelity, x->json, e);
	} else if (rc == 0 && x->confirm) {
		rc = confirm_run(&job, x, e);
	} else if (rc == 0) {
		profile_make(&a, &job);
		if (x->output)
			rc = write_output(&a, x->output, e);
		if (rc == 0)
			print_profile(&a, x);
		profile_release(&a);
	}
	job_release(&job);
	return rc;
}

/* Each of these prints something of its own, in place of what the job did. */
static int check_together(const struct explain_args *x, struct err *e)
{
	const struct {
		const char *name;
		bool given;
	} alone[] = {{"--fidelity", x->fidelity.n > 0},
		     {"--confirm", x->confirm},
		     {"--counters", x->counters}};
	const char *first = NULL;

	for (size_t i = 0; i < sizeof(alone) / sizeof(alone[0]); i++) {
		if (!alone[i].given)
			continue;
		if (first)
			return err_set(e, ERR_USAGE, "%s and %s cannot be used together", first,
				       alone[i].name);
		first = alone[i].name;
	}
	if (first && x->output)
		return err_set(e, ERR_USAGE, "%s writes no file: leave out -o %s, or %s", first,
			       x->output, first);
	if (x->json && (x->confirm || x->counters))
		return err_set(e, ERR_USAGE, "%s has no JSON: leave out --json", first);
	return 0;
}

/* Both files of a workload. */
static int name_outputs(const char *path, struct err *e)
{
	AUTO_FREE char *recorded = xasprintf("%s.recorded", path);
	int rc = named_output_add(path, e);

	return rc < 0 || ends_in(path, ".html") ? rc : named_output_add(recorded, e);
}

static int explain(void *args, struct err *e)
{
	const struct explain_args *x = args;
	int rc = x->log.n ? 0 : err_set(e, ERR_USAGE, "'explain' needs the log of a job");

	if (rc == 0 && x->output && !ends_in(x->output, ".html") && !ends_in(x->output, ".yaml") &&
	    !ends_in(x->output, ".yml"))
		rc = err_set(
			e, ERR_USAGE,
			"-o %s: the name must end in .yaml, which writes a workload, or .html, "
			"which writes a page",
			x->output);
	if (rc == 0)
		rc = check_together(x, e);
	if (rc == 0 && x->output)
		rc = name_outputs(x->output, e);
	if (rc < 0)
		return rc;
	return x->counters ? print_counters(x, e) : explain_job(x, e);
}

static int explain_main(const struct command *c, int argc, char **argv)
{
	struct explain_args x = {0};

	return flags_carry_out(c, &x, argc, argv, flags_list_operand, explain);
}

#define FLAG_ARGS struct explain_args

/* clang-format off */
static const struct flag *const flags[] = {
	F(OPERAND, "LOG", "; several of one kind are one job", .put_rows = trace_readers_put),
	F(TEXT, "--confirm", "RESULT", confirm,
	  "RESULT: the results of the run, of this program or DLIO, whose log it is; compare "
	  "what its readers asked for with what the format's library is known to ask for"),
	F(LIST, "--fidelity", "RUN", fidelity,
	  "compare with the run of a workload made of the log: a log of that run, which has its "
	  "requests, or its folder of results, which has its steps, or both"),
	F(TEXT, "--output", "FILE", output,
	  "FILE.yaml: write a workload that 'stoker run' emulates, with the recorded sizes and "
	  "order beside it; FILE.html: write a page with a timeline of the processes",
	  .letter = "-o"),
	F(SET, "--verbose", verbose,
	  "print the rule by which each value was inferred, and all files and processes",
	  .letter = "-v"),
	F(SET, "--json", json, "print as JSON"),
	F(SET, "--counters", counters,
	  "print what Darshan logs hold, one counter or request a line, as Darshan's own "
	  "parsers do"),
	NULL};
/* clang-format on */

const struct command command_explain = {
	.name = "explain",
	.operands = "LOG...",
	.help = "Say what a real job did, from its log.",
	.about = "Each value is marked: seen (counted in the log), inferred (by a rule; "
		 "how many observations agree), assumed (a usual value). What the log cannot "
		 "show is said to be not identifiable, with the reason.",
	.flags = flags,
	.alone = true,
	.examples = {"stoker explain examples/job.strace.gz",
		     "stoker explain examples/job.strace.gz -o recorded_job.yaml"},
	.carry_out = explain_main,
};
