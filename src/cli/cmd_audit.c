/* stoker audit: is a result valid, ours or DLIO's? */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "cli/cli.h"
#include "cli/terminal.h"
#include "report/audit.h"

extern const struct command command_audit;

static const char help[] =
	"Each RESULT is the folder of a run (with summary.json), or one that holds such\n"
	"folders. Results given together are also compared: a run that read the dataset\n"
	"of another shows.\n"
	"\n"
	"  --json     findings as JSON\n"
	"  --check    exit with 3 when a finding says that a number does not mean what it\n"
	"             says\n"
	"  -h, --help\n";

static int print(const struct audit *a, bool json, struct err *e)
{
	struct buf text = {0};
	int rc = 0;

	if (json) {
		json_t *root = audit_json(a);
		char *dump = json_dumps(root, JSON_INDENT(4));

		json_decref(root);
		if (dump)
			buf_printf(&text, "%s\n", dump);
		else
			rc = err_set(e, ERR_DATA, "the findings cannot be written as JSON");
		free(dump);
	} else {
		audit_text(a, terminal_has_colour(STDOUT_FILENO), &text);
	}
	if (text.data)
		fputs(text.data, stdout);
	buf_release(&text);
	return rc;
}

static int audit(const char *const *path, size_t n, bool json, bool check, struct err *e)
{
	struct str_list folders = {0};
	struct run_record *record = NULL;
	struct audit a = {0};
	size_t loaded = 0;
	int rc = record_find(path, n, &folders, e);

	if (rc == 0)
		record = xcalloc(folders.n, sizeof(*record));
	for (; rc == 0 && loaded < folders.n; loaded++)
		rc = record_load(&record[loaded], folders.v[loaded], e);
	if (rc == 0) {
		audit_run(&a, record, folders.n);
		rc = print(&a, json, e);
	}
	if (rc == 0 && check && audit_worst(&a) == AUDIT_FAIL)
		rc = err_set(e, ERR_TARGET, "at least one result does not mean what it says");
	audit_release(&a);
	for (size_t i = 0; i < loaded; i++)
		record_release(&record[i]);
	free(record);
	str_list_release(&folders);
	return rc;
}

static int audit_main(int argc, char **argv)
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
			printf("usage: stoker %s\n\n%s\n\n%s", command_audit.usage,
			       command_audit.help, help);
			return 0;
		}
		if (c == '?') {
			err_set(&e, ERR_USAGE, "audit has no option '%s'; see stoker audit --help",
				argv[optind - 1]);
			return cli_fail(&e);
		}
		json = json || c == 'j';
		check = check || c == 'c';
	}
	if (optind == argc)
		err_set(&e, ERR_USAGE, "audit needs the folder of at least one result");
	else
		audit((const char *const *)argv + optind, (size_t)(argc - optind), json, check, &e);
	return e.code ? cli_fail(&e) : 0;
}

const struct command command_audit = {
	.name = "audit",
	.usage = "audit RESULT... [--json] [--check]",
	.help = "Check whether results are valid, ours or DLIO's, with evidence.",
	.alone = true,
	.main = audit_main,
};
