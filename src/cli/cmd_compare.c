/* stoker compare: did it change, and is that more than chance? */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "cli/cli.h"
#include "report/compare.h"

extern const struct command command_compare;

static const char help[] =
	"A and B are each the folder of a run (with summary.json), ours or DLIO's, or a\n"
	"folder that holds several repetitions of one. Repetitions are compared by the\n"
	"means of the runs, single runs by their epochs, with Welch's t-test at 5 %.\n"
	"\n"
	"  --json     the comparison as JSON\n"
	"  --check    exit with 3 when a measure became worse\n"
	"  -h, --help\n";

/* One side: the trained results below a path. */
struct side {
	struct run_record *record;
	size_t n;
};

static int load_side(struct side *s, const char *path, struct err *e)
{
	struct str_list folders = {0};
	int rc = record_find(&path, 1, &folders, e);

	if (rc == 0)
		s->record = xcalloc(folders.n, sizeof(*s->record));
	for (size_t i = 0; rc == 0 && i < folders.n; i++) {
		struct run_record *r = &s->record[s->n];

		rc = record_load(r, folders.v[i], e);
		if (rc < 0 || !r->trained)
			record_release(r);
		else
			s->n++;
	}
	if (rc == 0 && s->n == 0)
		rc = err_set(e, ERR_USAGE, "'%s' holds no result of a training", path);
	str_list_release(&folders);
	return rc;
}

static void release_side(struct side *s)
{
	for (size_t i = 0; i < s->n; i++)
		record_release(&s->record[i]);
	free(s->record);
}

static bool worse(const struct comparison *c)
{
	for (size_t i = 0; i < c->measures; i++)
		if (c->measure[i].verdict == COMPARE_WORSE)
			return true;
	return false;
}

static void print(const struct comparison *c, bool json)
{
	struct buf text = {0};

	if (json) {
		json_t *root = comparison_json(c);
		char *dump = json_dumps(root, JSON_INDENT(4));

		json_decref(root);
		buf_printf(&text, "%s\n", dump ? dump : "{}");
		free(dump);
	} else {
		comparison_text(c, &text);
	}
	fputs(text.data ? text.data : "", stdout);
	buf_release(&text);
}

static int compare(const char *a, const char *b, bool json, bool check, struct err *e)
{
	struct side sa = {0}, sb = {0};
	struct comparison c = {0};
	int rc = load_side(&sa, a, e);

	if (rc == 0)
		rc = load_side(&sb, b, e);
	if (rc == 0) {
		compare_records(&c, sa.record, sa.n, sb.record, sb.n);
		print(&c, json);
		if (check && worse(&c))
			rc = err_set(e, ERR_TARGET, "'%s' is worse than '%s'", b, a);
	}
	comparison_release(&c);
	release_side(&sa);
	release_side(&sb);
	return rc;
}

static int compare_main(int argc, char **argv)
{
	static const struct option options[] = {{"json", no_argument, NULL, 'j'},
						{"check", no_argument, NULL, 'c'},
						{"help", no_argument, NULL, 'h'},
						{0}};
	bool json = false, check = false;
	struct err e = {0};
	int c;

	opterr = 0;
	optind = 1;
	while ((c = getopt_long(argc, argv, "h", options, NULL)) != -1) {
		if (c == 'h') {
			printf("usage: stoker %s\n\n%s\n\n%s", command_compare.usage,
			       command_compare.help, help);
			return 0;
		}
		if (c == '?') {
			err_set(&e, ERR_USAGE,
				"compare has no option '%s'; see stoker compare --help",
				argv[optind - 1]);
			return cli_fail(&e);
		}
		json = json || c == 'j';
		check = check || c == 'c';
	}
	if (argc - optind != 2)
		err_set(&e, ERR_USAGE, "compare needs two folders of results");
	else
		compare(argv[optind], argv[optind + 1], json, check, &e);
	return e.code ? cli_fail(&e) : 0;
}

const struct command command_compare = {
	.name = "compare",
	.usage = "compare A B [--json] [--check]",
	.help = "Compare two results or sets of repetitions, with a stated test.",
	.alone = true,
	.main = compare_main,
};
