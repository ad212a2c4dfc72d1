/* stoker compare: did it change, and is that more than chance? */
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "cli/cli.h"
#include "cli/result_args.h"
#include "readback/compare.h"

/* One side: the trained results below a path. */
static int load_side(struct records *s, const char *path, struct err *e)
{
	int rc = records_load(s, &path, 1, e);
	size_t kept = 0;

	for (size_t i = 0; rc == 0 && i < s->n; i++) {
		if (s->v[i].trained)
			s->v[kept++] = s->v[i];
		else
			record_release(&s->v[i]);
	}
	if (rc == 0)
		s->n = kept;
	if (rc == 0 && kept == 0)
		rc = err_set(e, ERR_USAGE, "'%s' has no completed training epoch to compare", path);
	return rc;
}

static bool has(const struct comparison *c, enum compare_verdict verdict, const char **why)
{
	for (size_t i = 0; i < c->measures; i++)
		if (c->measure[i].verdict == verdict) {
			*why = c->measure[i].why;
			return true;
		}
	return false;
}

/* What --check asks: has a measure become worse, or can it not be told? */
static int check_worse(const struct comparison *c, const struct result_args *a, struct err *e)
{
	const char *why = "they have no measure in common";

	if (has(c, COMPARE_WORSE, &why))
		return err_set(e, ERR_TARGET, "'%s' is worse than '%s'", a->folder[1],
			       a->folder[0]);
	if (has(c, COMPARE_DIFFERENT, &why))
		return err_set(e, ERR_TARGET,
			       "whether '%s' is worse than '%s' cannot be told: the sides did "
			       "other work",
			       a->folder[1], a->folder[0]);
	if (c->measures == 0 || has(c, COMPARE_UNKNOWN, &why))
		return err_set(e, ERR_TARGET, "whether '%s' is worse than '%s' cannot be told: %s",
			       a->folder[1], a->folder[0],
			       c->sides.unlike.n ? c->sides.unlike.v[0] : why);
	return 0;
}

static void print_comparison(const struct comparison *c, bool json)
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

static int compare(const struct result_args *a, struct err *e)
{
	struct records first = {0}, second = {0};
	struct comparison c = {0};
	int rc = load_side(&first, a->folder[0], e);

	if (rc == 0)
		rc = load_side(&second, a->folder[1], e);
	if (rc == 0) {
		compare_records(&c, first.v, first.n, second.v, second.n);
		print_comparison(&c, a->json);
		if (a->check)
			rc = check_worse(&c, a, e);
	}
	comparison_release(&c);
	records_release(&first);
	records_release(&second);
	return rc;
}

static int compare_main(const struct command *c, int argc, char **argv)
{
	struct result_args a;
	struct err e = {0};
	int rc = result_args_parse(&a, c, argc, argv, &e);

	if (rc == 0 && a.folders != 2)
		rc = err_set(&e, ERR_USAGE, "'compare' needs two folders of results, not %zu",
			     a.folders);
	if (rc == 0)
		rc = compare(&a, &e);
	free(a.folder);
	return rc < 0 ? cli_fail(&e) : 0;
}

static const struct flag operand_side = {
	.name = "A, B",
	.help = "each the folder of a run (with summary.json), or a folder that holds several "
		"repetitions of one run"};
static const struct flag flag_check_worse = {
	.name = "--check",
	.kind = FLAG_SET,
	.offset = offsetof(struct result_args, check),
	.help = "exit with status 3 when a measure became worse, or when this cannot be told"};
static const struct flag *const flags[] = {&operand_side, &flag_json, &flag_check_worse, NULL};

const struct command command_compare = {
	.name = "compare",
	.operands = "A B",
	.help = "Compare two results or sets of repetitions, with a stated test.",
	.about =
		"Whatever makes the two sides measure different things is listed first: page cache "
		"or storage, the steps that count, the data, the machines. Means of runs are "
		"compared with Welch's "
		"t-test at the 5 % level, which needs 3 independent runs on each side; copies of "
		"a run are counted once. Single runs are shown by their epochs, without a test. "
		"Results of DLIO are accepted too.",
	.flags = flags,
	.alone = true,
	.carry_out = compare_main,
};
