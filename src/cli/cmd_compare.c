/* stoker compare: did it change, and is that more than chance? */
#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/say.h"
#include "cli/cli.h"
#include "cli/result_args.h"
#include "readback/audit.h"
#include "readback/compare.h"
#include "readback/result_folder.h"
#include "result/json_out.h"

/* A repeat.json has a few lines for each run. */
#define LIST_BYTES_MAX (64u << 20)

/* Of the folder of 'run --repeat': how many of its runs came to their end; SIZE_MAX: it is none. */
static int repeated_runs(const char *path, size_t *n, struct err *e)
{
	AUTO_FREE char *list = path_join(path, "repeat.json");
	struct buf text = {0};
	const json_t *runs;
	json_error_t why;
	json_t *root;
	int rc = file_read(list, LIST_BYTES_MAX, &text, e);

	*n = SIZE_MAX;
	if (rc < 0)
		return rc == -ENOENT || rc == -ENOTDIR ? 0 : rc;
	root = json_of_text(&text, &why);
	runs = json_object_get(root, "runs");
	if (!root)
		rc = err_set(e, ERR_DATA,
			     "'%s': line %d: %s: it is damaged; compare the folders of single runs",
			     list, why.line, why.text);
	else if (!json_is_integer(runs) || json_integer_value(runs) < 0)
		rc = err_set(e, ERR_DATA,
			     "'%s' does not say how many runs came to their end (\"runs\"): it is "
			     "damaged; compare the folders of single runs",
			     list);
	else
		*n = (size_t)json_integer_value(runs);
	json_decref(root);
	buf_release(&text);
	return rc;
}

/* Whether it is the run that was interrupted, the last one of such a folder. */
static bool is_unfinished(const struct run_record *r, const char *path, size_t runs)
{
	AUTO_FREE char *parent = path_dirname(r->folder);
	AUTO_FREE char *name = xasprintf("%zu", runs + 1);
	struct stat a, b;

	return runs != SIZE_MAX && strcmp(path_basename(r->folder), name) == 0 &&
	       stat(parent, &a) == 0 && stat(path, &b) == 0 && a.st_dev == b.st_dev &&
	       a.st_ino == b.st_ino;
}

static void check_alone(void *arg, size_t i, struct run_record *r)
{
	(void)arg;
	(void)i;
	audit_alone(r);
}

/* One side: the results below a path that have figures of training or of checkpoints. */
static int load_side(struct records *s, const char *path, struct texts *texts, struct err *e)
{
	const struct record_visit visit = {.texts = texts, .look = check_alone};
	int rc = records_visit(s, &path, 1, &visit, e);
	size_t kept = 0, runs = SIZE_MAX;

	if (rc == 0)
		rc = repeated_runs(path, &runs, e);
	for (size_t i = 0; rc == 0 && i < s->n; i++)
		if (s->v[i].broken && !is_unfinished(&s->v[i], path, runs))
			rc = err_set(e, ERR_DATA, "%s", s->v[i].broken);
	if (rc == 0 && s->unread.n)
		rc = err_set(e, ERR_DATA, "%s", s->unread.v[0]);
	if (rc == 0)
		result_tell_running(s);
	for (size_t i = 0; rc == 0 && i < s->n; i++) {
		if ((s->v[i].trained || s->v[i].checkpointed) &&
		    !is_unfinished(&s->v[i], path, runs))
			s->v[kept++] = s->v[i];
		else
			record_release(&s->v[i]);
	}
	if (rc == 0)
		s->n = kept;
	if (rc == 0 && kept == 0)
		rc = err_set(e, ERR_USAGE,
			     "'%s' has no completed training epoch and no checkpoint to compare",
			     path);
	return rc;
}

static bool has_training(const struct records *s)
{
	for (size_t i = 0; i < s->n; i++)
		if (s->v[i].trained)
			return true;
	return false;
}

/* Training where both sides have it, else checkpoints that were measured alone. */
static int keep_alike(struct records *s, bool trained, const char *path, struct err *e)
{
	size_t kept = 0;

	for (size_t i = 0; i < s->n; i++)
		if (s->v[i].trained == trained)
			s->v[kept++] = s->v[i];
		else
			record_release(&s->v[i]);
	s->n = kept;
	return kept ? 0
		    : err_set(e, ERR_USAGE,
			      "'%s' has results of training, and the other side has none but of "
			      "checkpoints: there is nothing to compare",
			      path);
}

/* Significant changes below this are no reason to fail: percent. */
#define TOLERANCE 2.0

struct checked {
	enum compare_outcome outcome;
	struct buf why;
};

static json_t *checked_json(const struct checked *checked)
{
	json_t *o = json_object();

	json_put_bool(o, "passed", checked->outcome == COMPARE_PASSES);
	json_put_bool(o, "told", checked->outcome != COMPARE_CANNOT_TELL);
	json_put_text(o, "why", checked->why.data);
	return o;
}

static void print_comparison(const struct comparison *c, const struct checked *checked, bool json)
{
	struct buf text = {0};

	if (json) {
		json_t *root = comparison_json(c);

		if (checked)
			json_put(root, "check", checked_json(checked));
		json_put_document(&text, root);
	} else {
		comparison_text(c, &text);
		if (checked && checked->outcome == COMPARE_PASSES)
			buf_say(&text, "\nCheck passed: %s.\n", checked->why.data);
	}
	cli_print(&text);
}

static int compare_and_check(const struct comparison *c, const struct result_args *a, struct err *e)
{
	struct checked checked = {0};
	int rc = 0;

	checked.outcome =
		comparison_check(c, a->tolerance < 0 ? TOLERANCE : a->tolerance, &checked.why);
	print_comparison(c, &checked, a->json);
	if (checked.outcome != COMPARE_PASSES)
		rc = err_set(e, ERR_TARGET,
			     "check: '%.100s' against '%.100s': %.600s: exit status 3",
			     a->folder.v[1], a->folder.v[0], checked.why.data);
	buf_release(&checked.why);
	return rc;
}

static int compare(void *args, struct err *e)
{
	const struct result_args *a = args;
	struct records first = {0}, second = {0};
	struct comparison c = {0};
	struct texts texts = {0};
	bool trained;
	int rc;

	if (a->folder.n != 2)
		return err_set(e, ERR_USAGE, "'compare' needs two folders of results, not %zu",
			       a->folder.n);
	if (a->tolerance >= 0 && !a->check)
		return err_set(e, ERR_USAGE,
			       "--tolerance says how much worse --check accepts: add --check");
	rc = load_side(&first, a->folder.v[0], &texts, e);
	if (rc == 0)
		rc = load_side(&second, a->folder.v[1], &texts, e);
	trained = has_training(&first) && has_training(&second);
	if (rc == 0)
		rc = keep_alike(&first, trained, a->folder.v[0], e);
	if (rc == 0)
		rc = keep_alike(&second, trained, a->folder.v[1], e);
	if (rc == 0) {
		compare_records(&c, first.v, first.n, second.v, second.n);
		if (a->check)
			rc = compare_and_check(&c, a, e);
		else
			print_comparison(&c, NULL, a->json);
		/* whatever the check says: it went by other figures than the run left */
		if (c.sides.damage.n)
			rc = err_set(e, ERR_DATA, "%s", c.sides.damage.v[0]);
	}
	comparison_release(&c);
	records_release(&first);
	records_release(&second);
	texts_release(&texts);
	return rc;
}

static int compare_main(const struct command *c, int argc, char **argv)
{
	struct result_args a = {.tolerance = -1};

	return flags_carry_out(c, &a, argc, argv, flags_list_operand, compare);
}

#define FLAG_ARGS struct result_args

/* clang-format off */
static const struct flag *const flags[] = {
	F(OPERAND, "BASELINE, NEW",
	  "each the folder of a run (with summary.json), or a folder that holds several "
	  "repetitions of one run, such as that of 'run --repeat'"),
	&flag_json,
	F(SET, "--check", check,
	  "exit with status 3 when NEW is worse than BASELINE, or when this cannot be told: the "
	  "sides measured different things, have fewer than 3 runs each, or vary so much that the "
	  "95 % interval of a change leaves room for a loss above the tolerance"),
	F(REAL, "--tolerance", "PERCENT", tolerance, 0, 10000,
	  "with --check: how much worse than BASELINE still passes (default: 2)"),
	NULL};
/* clang-format on */

const struct command command_compare = {
	.name = "compare",
	.operands = "BASELINE NEW",
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
	.examples = {"stoker compare before after",
		     "stoker compare before after --check --tolerance 5"},
	.carry_out = compare_main,
};
