/* Who wrote a result folder. */
#include "readback/author.h"

#include <dirent.h>
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/str.h"
#include "base/transfer.h"
#include "result/fields.h"
#include "result/measures.h"
#include "result/seal.h"

/* A mark is in the first lines of a file. config.yaml, whose keys tell of old results, is longer.
 */
#define HEAD_BYTES ((size_t)64 << 10)
/* Of the files of ranks, which all say the same. */
#define RANKS_ASKED 8

/* ---- one file ---- */

/* Each within one line, so that no text of a workload reads like it by chance. */
static bool has_mark(const char *text)
{
	static const char *const marks[] = {
		"\"program\": \"stoker",             /* result.json, and all JSON since the mark */
		"\"program\":\"stoker",              /* trace.json */
		"\"name\":\"stoker\"",               /* the command of trace-R-of-N.pfw */
		"Written by stoker ",                /* YAML and the log */
		"\n    header: stoker emulates the", /* hydra.yaml before the mark */
	};

	for (size_t i = 0; i < sizeof(marks) / sizeof(marks[0]); i++)
		if (strstr(text, marks[i]))
			return true;
	return false;
}

/* "storage:" with a key "store", which DLIO does not have: config.yaml before the mark. */
static bool has_own_key(const char *text)
{
	const char *at = strstr(text, "\n  storage:\n");

	for (at = at ? strchr(at + 1, '\n') : NULL; at && str_starts(at, "\n    ");
	     at = strchr(at + 1, '\n'))
		if (str_starts(at, "\n    store: "))
			return true;
	return false;
}

static bool says_us(const char *folder, const char *name)
{
	AUTO_FREE char *path = path_join(folder, name);
	AUTO_FREE char *text = xmalloc(HEAD_BYTES + 1);
	int fd = file_open(path, NULL, NULL);
	ssize_t n;

	if (fd < 0)
		return false;
	n = read_fully(fd, text, HEAD_BYTES);
	close(fd);
	if (n <= 0)
		return false;
	text[n] = '\0';
	return has_mark(text) || (str_ends(name, "config.yaml") && has_own_key(text)) ||
	       (strcmp(name, MEASURES_FILE) == 0 && str_starts(text, "stoker measures "));
}

/* ---- all of them ---- */

static bool asked(const char *name)
{
	static const char *const names[] = {"result.json",    "summary.json",      "iostat.json",
					    "study_run.json", "capacity_run.json", MEASURES_FILE};
	uint32_t rank;

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (strcmp(name, names[i]) == 0)
			return true;
	if (seal_rank_file(name, &rank))
		return rank < RANKS_ASKED;
	return str_ends(name, ".log") || str_starts(name, "trace.") || str_starts(name, "trace-");
}

static bool any_in(const char *folder, bool all)
{
	DIR *d = WITH_MEMORY(opendir(folder));
	struct dirent *entry;
	bool us = false;

	if (!d && errno == ENOMEM)
		out_of_memory(); /* not a folder without files */
	while (!us && d && (entry = readdir(d)))
		us = (all ? str_ends(entry->d_name, ".yaml") : asked(entry->d_name)) &&
		     says_us(folder, entry->d_name);
	if (d)
		closedir(d);
	return us;
}

bool author_is_us(const char *folder)
{
	/* MLPerf Storage's wrapper renames .hydra */
	static const char *const subs[] = {".hydra", "dlio_config", "configs"};

	if (any_in(folder, false))
		return true;
	for (size_t i = 0; i < sizeof(subs) / sizeof(subs[0]); i++) {
		AUTO_FREE char *sub = path_join(folder, subs[i]);

		if (any_in(sub, true))
			return true;
	}
	return false;
}

bool author_of_result(const json_t *result)
{
	static const enum field keys[] = {F_RUN_PROGRAM, F_RUN_ID, F_RUN_INTEGRITY,
					  F_RUN_CONFIGURATION};
	const struct part *whole = part_whole(result);
	const char *program = figure_text(whole, F_RUN_PROGRAM);
	size_t known = 0;

	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
		known += figure_json(whole, keys[i]) != NULL;
	/* a changed byte of the name does not make it another program's */
	return (program && strcmp(program, "stoker") == 0) || known >= 2;
}
