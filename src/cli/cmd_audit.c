/* stoker audit: is a result valid, ours or DLIO's? */
#include <unistd.h>

#include "base/alloc.h"
#include "base/file.h"
#include "cli/cli.h"
#include "cli/result_args.h"
#include "readback/audit.h"
#include "screen/terminal.h"
#include "readback/sums.h"

static int print_findings(const struct audit *a, const struct audit *sums,
			  const struct result_args *args, struct err *e)
{
	struct buf text = {0};
	int rc = 0;

	if (args->json) {
		if (audit_json(a, sums, &text))
			buf_putc(&text, '\n');
		else
			rc = err_set(e, ERR_DATA, "the findings cannot be written as JSON");
	} else {
		audit_text(a, sums, terminal_has_colour(STDOUT_FILENO), args->verbose, &text);
	}
	if (rc < 0)
		buf_reset(&text);
	cli_print(&text);
	return rc;
}

static int sums_damage(const struct sums *s, struct err *e)
{
	size_t files;
	const struct finding *first = audit_damage(&s->audit, &files);
	struct buf text = {0};
	int rc = 0;

	if (first) {
		finding_sentence(&s->audit, first, &text);
		rc = err_set(e, ERR_DATA, "%s", text.data);
	}
	buf_release(&text);
	return rc;
}

static const struct sums_ops *const kinds[] = {&sums_repeat,   &sums_truth_table, &sums_writers,
					       &sums_capacity, &sums_plan,        NULL};

/* Files that were named themselves. */
static void take_files(const struct str_list *paths, struct str_list *folders,
		       struct str_list *files)
{
	struct err ignored = {0};

	for (size_t i = 0; i < paths->n; i++)
		str_list_add(path_look(paths->v[i], &ignored) == PATH_OTHER ? files : folders,
			     xstrdup(paths->v[i]));
}

static int audit(void *of, struct err *e)
{
	const struct result_args *args = of;
	struct str_list folders = {0}, files = {0};
	struct records all;
	struct sums sums = {0};
	struct audit a;
	int rc;

	if (args->folder.n == 0)
		return err_set(e, ERR_USAGE, "'audit' needs the folder of at least one result");
	take_files(&args->folder, &folders, &files);
	rc = audit_read(&a, &all, (const char *const *)folders.v, folders.n, !args->quick, NULL, e);
	if (rc == 0) {
		str_list_copy(&all.sums, &files);
		sums_audit(&sums, kinds, &all.sums, args->quick);
		result_tell_running(&all);
		rc = print_findings(&a, &sums.audit, args, e);
	}
	if (rc == 0)
		rc = result_damage(&all, &a, e);
	if (rc == 0)
		rc = sums_damage(&sums, e);
	if (rc == 0 && args->check && audit_worst(&a) == AUDIT_FAIL)
		rc = err_set(e, ERR_TARGET, "at least one result is invalid");
	if (rc == 0 && args->check && audit_worst(&sums.audit) == AUDIT_FAIL)
		rc = err_set(e, ERR_TARGET,
			     "at least one file that sums up results does not follow from them");
	sums_release(&sums);
	audit_release(&a);
	records_release(&all);
	str_list_release(&folders);
	str_list_release(&files);
	return rc;
}

static int audit_main(const struct command *c, int argc, char **argv)
{
	struct result_args a = {.tolerance = -1};

	return flags_carry_out(c, &a, argc, argv, flags_list_operand, audit);
}

#define FLAG_ARGS struct result_args

/* clang-format off */
static const struct flag *const flags[] = {
	F(OPERAND, "RESULT",
	  "the folder of a run (with summary.json), a folder that holds such folders, or a file of "
	  "several runs: repeat.json, truth_table.json, capacity.json, the JSON of a plan"),
	F(SET, "--verbose", verbose,
	  "list the findings of each of several results, and what was checked", .letter = "-v"),
	&flag_json,
	F(SET, "--quick", quick,
	  "do not make limit and predictions again, which takes up to ten seconds a result, nor "
	  "the answers of plans"),
	F(SET, "--check", check,
	  "exit with status 3 when a result is invalid (a finding of level FAIL)"),
	NULL};
/* clang-format on */

const struct command command_audit = {
	.name = "audit",
	.operands = "RESULT...",
	.help = "Check whether results, Stoker's or DLIO's, are valid, and why.",
	.about = "Results given together are also compared with each other: this shows, for "
		 "example, a run that read the dataset of another one.",
	.flags = flags,
	.alone = true,
	.examples = {"stoker audit before", "stoker audit before after --json"},
	.carry_out = audit_main,
};
