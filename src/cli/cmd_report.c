/* stoker report: results as a page, a table, plots. */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/file.h"
#include "cli/cli.h"
#include "report/page.h"
#include "report/table.h"
#include "study/plots.h"

extern const struct command command_report;

static const char help[] =
	"Each RESULT is the folder of a run (with summary.json), ours or DLIO's, or one\n"
	"that holds such folders.\n"
	"\n"
	"  -o FILE        the page (default: report.html)\n"
	"  --title TEXT   its title\n"
	"  --csv FILE     a table of all runs too (benchmark_results.csv of a study)\n"
	"  --plots DIR    the charts for papers too: PNG (150 dpi), SVG, PDF; needs\n"
	"                 gnuplot\n"
	"  -h, --help\n";

struct report_args {
	const char *output, *title, *csv, *plots;
};

static int write_page(const struct run_groups *g, const struct key_findings *k,
		      const struct report_args *a, struct err *e)
{
	struct buf page = {0};
	int rc;

	page_render(g, k, a->title, &page);
	rc = file_write_atomic(a->output, page.data, page.len, e);
	buf_release(&page);
	return rc;
}

static int write_table(const struct run_groups *g, const char *path, struct err *e)
{
	struct buf text = {0};
	int rc;

	table_csv(g, &text);
	rc = file_write_atomic(path, text.data, text.len, e);
	buf_release(&text);
	return rc;
}

static int render(const struct run_record *r, size_t n, const struct report_args *a, struct err *e)
{
	struct audit audit;
	struct run_groups g;
	struct key_findings k;
	int rc;

	audit_run(&audit, r, n);
	run_groups_build(&g, r, n, &audit);
	key_findings_build(&k, &g);
	rc = write_page(&g, &k, a, e);
	if (rc == 0 && a->csv)
		rc = write_table(&g, a->csv, e);
	if (rc == 0 && a->plots)
		rc = plots_write(&g, a->plots, e);
	if (rc == 0) {
		for (size_t i = 0; i < k.n; i++)
			printf("* %s\n", k.v[i].text);
		AUTO_FREE char *where = path_absolute(a->output);

		printf("report: %s\n", where);
	}
	key_findings_release(&k);
	run_groups_release(&g);
	audit_release(&audit);
	return rc;
}

static int report(const char *const *path, size_t n, const struct report_args *a, struct err *e)
{
	struct records all;
	int rc = records_load(&all, path, n, e);

	if (rc == 0)
		rc = render(all.v, all.n, a, e);
	records_release(&all);
	return rc;
}

static int report_main(int argc, char **argv)
{
	static const struct option options[] = {
		{"output", required_argument, NULL, 'o'}, {"title", required_argument, NULL, 't'},
		{"csv", required_argument, NULL, 'c'},    {"plots", required_argument, NULL, 'p'},
		{"help", no_argument, NULL, 'h'},         {0}};
	struct report_args a = {.output = "report.html", .title = "Storage for accelerators"};
	struct err e = {0};
	int c;

	opterr = 0;
	optind = 1;
	while ((c = getopt_long(argc, argv, "ho:", options, NULL)) != -1) {
		const char **const texts[] = {
			['o'] = &a.output, ['t'] = &a.title, ['c'] = &a.csv, ['p'] = &a.plots};

		if (c == 'h') {
			printf("usage: stoker %s\n\n%s\n\n%s", command_report.usage,
			       command_report.help, help);
			return 0;
		}
		if (c == '?') {
			err_set(&e, ERR_USAGE,
				"report: '%s' is no option, or lacks its value; see stoker report "
				"--help",
				argv[optind - 1]);
			return cli_fail(&e);
		}
		*texts[c] = optarg;
	}
	if (optind == argc)
		err_set(&e, ERR_USAGE, "report needs the folder of at least one result");
	else
		report((const char *const *)argv + optind, (size_t)(argc - optind), &a, &e);
	return e.code ? cli_fail(&e) : 0;
}

const struct command command_report = {
	.name = "report",
	.usage = "report RESULT... [-o report.html] [--csv FILE] [--plots DIR]",
	.help = "Results, ours or DLIO's, as one page; tables and plots.",
	.alone = true,
	.main = report_main,
};
