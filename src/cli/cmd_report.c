/* stoker report: results as a page, a table, plots. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/file_out.h"
#include "base/say.h"
#include "base/str.h"
#include "cli/cli.h"
#include "cli/flags.h"
#include "cli/result_args.h"
#include "page/page.h"
#include "readback/groups.h"
#include "result/json_out.h"
#include "study/study.h"

/* Traces may be large, and each is read several times. */
#define TIMELINES_MAX 4

struct report_args {
	struct str_list result; /* first: the operands */
	const char *output, *title, *csv, *plots;
	const char *steps, *epoch, *ranks;
	struct str_list traces;
	struct trace_choice choice;
	bool json;
};

/* "A" or "A-B". */
static int parse_range(const char *option, const char *text, uint64_t least, uint64_t most,
		       uint64_t *first, uint64_t *last, struct err *e)
{
	AUTO_FREE char *copy = xstrdup(text);
	char *dash = strchr(copy, '-');

	if (dash)
		*dash = '\0';
	if (!str_to_u64(copy, first) || !str_to_u64(dash ? dash + 1 : copy, last) ||
	    *first < least || *last < *first || *last > most)
		return err_set(
			e, ERR_USAGE,
			"--%s: '%s' is neither a number of at least %llu nor a range FIRST-LAST",
			option, text, (unsigned long long)least);
	return 0;
}

static int parse_choice(struct report_args *a, struct err *e)
{
	struct trace_choice *c = &a->choice;
	uint64_t first = 0, last = 0;
	int rc = 0;

	if (a->steps)
		rc = parse_range("steps", a->steps, 1, UINT32_MAX, &c->first_step, &c->last_step,
				 e);
	if (rc == 0 && a->epoch) {
		rc = parse_range("epoch", a->epoch, 1, UINT32_MAX, &first, &last, e);
		c->epoch = first;
	}
	if (rc == 0 && a->ranks) {
		rc = parse_range("ranks", a->ranks, 0, UINT32_MAX - 1, &first, &last, e);
		c->has_ranks = true;
		c->first_rank = (uint32_t)first;
		c->last_rank = (uint32_t)last;
	}
	return rc;
}

/* Whether anything about the timeline was asked for: then what is wrong with it is a failure. */
static bool asks(const struct report_args *a)
{
	return a->steps || a->epoch || a->ranks || a->traces.n;
}

static int load_trace(struct page_trace *t, const struct run_record *r, const struct report_args *a,
		      struct err *e)
{
	struct str_list files = {0};
	int rc = 0;

	if (!a->traces.n)
		trace_view_files(r->folder, &files);
	if (a->traces.n || files.n) {
		t->found = true;
		rc = trace_view_build(&t->view, a->traces.n ? &a->traces : &files, &a->choice, e);
	}
	str_list_release(&files);
	return rc;
}

/* The page's sentence as one of the program's: no capital, no full stop. */
static void say_note(const char *note)
{
	size_t n = strlen(note);

	say(stderr, "stoker: %c%.*s\n", tolower((unsigned char)note[0]),
	    (int)(n - 1 - (note[n - 1] == '.')), note + 1);
}

static int load_traces(struct page_trace *t, const struct run_record *r, size_t n,
		       const struct report_args *a, struct err *e)
{
	size_t drawn = 0, more = 0;

	if (a->traces.n && n != 1)
		return err_set(e, ERR_USAGE, "--trace needs exactly one RESULT, not %zu", n);
	for (size_t i = 0; i < n; i++) {
		struct err why = {0};
		struct str_list files = {0};

		if (drawn == TIMELINES_MAX) {
			trace_view_files(r[i].folder, &files);
			more += files.n > 0;
			str_list_release(&files);
			continue;
		}
		if (load_trace(&t[i], &r[i], a, &why) < 0) {
			if (asks(a)) {
				*e = why;
				return why.code;
			}
			say(stderr, "stoker: %s; the timeline is left out\n", why.text);
			snprintf(t[i].note, sizeof(t[i].note), "%s", why.text);
		} else if (t[i].view.note[0]) {
			say_note(t[i].view.note);
		}
		drawn += t[i].found;
	}
	if (more)
		say(stderr,
		    "stoker: only %d timelines are drawn, but %zu more of these runs %s a "
		    "trace; name a single run to see its timeline\n",
		    TIMELINES_MAX, more, more == 1 ? "has" : "have");
	if (asks(a) && drawn == 0)
		return err_set(e, ERR_USAGE,
			       "these runs have no traces; run.trace=chrome records one, and "
			       "--trace names a file");
	return 0;
}

static int write_page(const struct run_groups *g, const struct key_findings *k,
		      const struct page_runs *runs, const struct page_trace *t,
		      const struct report_args *a, struct err *e)
{
	struct buf page = {0};
	int rc;

	page_render(g, k, runs, t, a->title, &page);
	rc = file_write(a->output, page.data, page.len, e);
	buf_release(&page);
	return rc;
}

static int write_table(const struct run_groups *g, const char *path, struct err *e)
{
	struct buf text = {0};
	int rc;

	table_csv(g, &text);
	rc = file_write(path, text.data, text.len, e);
	buf_release(&text);
	return rc;
}

/* Nothing is mixed into a page that goes to stdout. */
static void write_lines(const struct key_findings *k, const struct report_args *a)
{
	FILE *out = place_named_descriptor(a->output) == STDOUT_FILENO ? stderr : stdout;
	AUTO_FREE char *where = path_absolute(a->output);

	for (size_t i = 0; i < k->n; i++)
		say(out, "* %s\n", k->v[i].text.data);
	say(out, "report: %s\n", where);
	fflush(out);
}

/* --json: the findings, and the table of runs. */
static void put_document(const struct run_groups *g, const struct key_findings *k,
			 const struct report_args *a)
{
	AUTO_FREE char *where = path_absolute(a->output);
	json_t *root = json_object(), *findings = json_array();

	for (size_t i = 0; i < k->n; i++)
		json_array_append_new(findings, json_text(k->v[i].text.data));
	json_put_text(root, "report", where);
	json_put(root, "findings", findings);
	json_put(root, "runs", table_json(g));
	cli_put_json(root);
}

static int write_outputs(const struct records *all, const struct audit *audit,
			 const struct page_runs *runs, const struct page_trace *t,
			 const struct report_args *a, struct err *e)
{
	struct run_groups g;
	struct key_findings k;
	struct err damage = {0};
	int rc, damaged;

	run_groups_build(&g, all->v, all->n, audit);
	key_findings_build(&k, &g);
	rc = write_page(&g, &k, runs, t, a, e);
	if (rc == 0 && a->csv)
		rc = write_table(&g, a->csv, e);
	if (rc == 0 && a->plots)
		rc = plots_write(&g, a->plots, e);
	if (rc == 0 && a->json)
		put_document(&g, &k, a);
	else if (rc == 0)
		write_lines(&k, a);
	damaged = result_damage(all, audit, &damage);
	if (rc == 0 && damaged < 0) {
		rc = damaged;
		*e = damage;
	}
	key_findings_release(&k);
	run_groups_release(&g);
	return rc;
}

static int write_report(const struct report_args *a, struct err *e)
{
	struct page_runs runs = {0};
	struct texts texts = {0};
	const struct record_visit visit = {.arg = &runs,
					   .texts = &texts,
					   .begin = page_runs_begin,
					   .look = page_runs_look,
					   .take = page_runs_take};
	struct records all;
	struct audit audit;
	struct page_trace *trace = NULL;
	int rc = audit_read(&audit, &all, (const char *const *)a->result.v, a->result.n, false,
			    &visit, e);

	if (rc == 0) {
		result_tell_running(&all);
		trace = xcalloc(all.n, sizeof(*trace));
		rc = load_traces(trace, all.v, all.n, a, e);
	}
	if (rc == 0)
		rc = write_outputs(&all, &audit, &runs, trace, a, e);
	for (size_t i = 0; trace && i < all.n; i++)
		trace_view_release(&trace[i].view);
	free(trace);
	audit_release(&audit);
	page_runs_release(&runs);
	records_release(&all);
	texts_release(&texts);
	return rc;
}

static int report(void *args, struct err *e)
{
	struct report_args *a = args;
	int rc = parse_choice(a, e);

	if (rc == 0 && a->result.n == 0)
		rc = err_set(e, ERR_USAGE, "'report' needs the folder of at least one result");
	if (rc == 0)
		rc = named_output_add(a->output, e);
	if (rc == 0 && a->json && place_named_descriptor(a->output) == STDOUT_FILENO)
		rc = err_set(e, ERR_USAGE,
			     "--json has standard output: give the page a file of its own (-o)");
	if (rc == 0 && a->json)
		cli_only_json();
	if (rc == 0 && a->csv)
		rc = named_output_add(a->csv, e);
	return rc == 0 ? write_report(a, e) : rc;
}

static int report_main(const struct command *c, int argc, char **argv)
{
	struct report_args a = {.output = "report.html"};

	return flags_carry_out(c, &a, argc, argv, flags_list_operand, report);
}

#define FLAG_ARGS struct report_args

/* clang-format off */
static const struct flag *const flags[] = {
	F(OPERAND, "RESULT",
	  "the folder of a run (with summary.json), Stoker's or DLIO's, or a folder that holds "
	  "such folders"),
	F(TEXT, "--output", "FILE", output,
	  "file for the page (default: report.html)", .letter = "-o"),
	F(TEXT, "--title", "TEXT", title,
	  "title of the page (default: workload and number of accelerators, or of results)"),
	F(TEXT, "--csv", "FILE", csv,
	  "also write a table of all runs (benchmark_results.csv of a study)"),
	F(TEXT, "--plots", "DIR", plots,
	  "also write the charts for papers: PNG (150 dpi), SVG and PDF; needs gnuplot"),
	F(TEXT, "--steps", "A-B", steps,
	  "timeline: steps of the epoch, counted from 1, or one step A (default: the first "
	  "steps of the first epoch, and the slowest step with its neighbors)"),
	F(TEXT, "--epoch", "E", epoch, "timeline: epoch (default: the first one in the trace)"),
	F(TEXT, "--ranks", "A-B", ranks,
	  "timeline: ranks, counted from 0, or one rank A (default: 16 ranks)"),
	F(LIST, "--trace", "FILE", traces,
	  "timeline: draw this file instead of the traces in the folder of the one RESULT: .pfw "
	  "(also DFTracer's, and with gzip) or Chrome's JSON; may be repeated"),
	F(SET, "--json", json,
	  "print the findings and the table of all runs as JSON, and nothing else on standard "
	  "output"),
	NULL};
/* clang-format on */

const struct command command_report = {
	.name = "report",
	.operands = "RESULT...",
	.help = "Write results, Stoker's or DLIO's, as a page; tables and plots.",
	.about = "Runs with a trace (run.trace) get a timeline of some steps.",
	.flags = flags,
	.alone = true,
	.examples = {"stoker report before",
		     "stoker report before after -o report.html --csv runs.csv"},
	.carry_out = report_main,
};
