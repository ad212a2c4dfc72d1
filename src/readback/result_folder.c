/* One file at a time. */
#include "readback/result_folder.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/str.h"
#include "base/transfer.h"
#include "result/fields.h"
#include "result/measures.h"
#include "result/seal.h"

#define JSON_BYTES_MAX (256u << 20)

/* Values, and of them objects and lists, that a file of a result has at most: as the times of
 * millions of steps. One takes 36 bytes and up to 225. */
#define JSON_VALUES_MAX (16u << 20)
#define JSON_NESTS_MAX (4u << 20)

json_t *json_of_text(const struct buf *text, json_error_t *why)
{
	size_t values = 0, nests = 0;

	for (size_t i = 0; text->len > JSON_NESTS_MAX && i < text->len; i++) {
		nests += text->data[i] == '[' || text->data[i] == '{';
		values += text->data[i] == ',';
	}
	if (nests <= JSON_NESTS_MAX && values <= JSON_VALUES_MAX)
		return json_loadb(text->data ? text->data : "", text->len, 0, why);
	*why = (json_error_t){.line = 1, .column = 1};
	snprintf(why->text, sizeof(why->text), "it has more values than any file of a result");
	return NULL;
}

/* The number of characters at p that are one of the words which JSON does not have; 0: none. */
static size_t nonfinite(const char *p, size_t left)
{
	static const char *const words[] = {"-Infinity", "Infinity", "NaN"};

	for (size_t w = 0; w < sizeof(words) / sizeof(words[0]); w++) {
		size_t n = strlen(words[w]);

		if (left >= n && memcmp(p, words[w], n) == 0)
			return n;
	}
	return 0;
}

/* Python writes NaN and Infinity where JSON has no word: outside of strings they become null. */
static void null_nonfinite(const struct buf *in, struct buf *out)
{
	const char *p = in->data, *end = in->data + in->len, *done = p;

	while (p < end) {
		size_t n = 0;

		if (*p == '"') {
			for (p++; p < end && *p != '"'; p++)
				p += *p == '\\' && p + 1 < end;
		} else if (*p == '-' || *p == 'I' || *p == 'N') {
			n = nonfinite(p, (size_t)(end - p));
		}
		if (n) {
			buf_append(out, done, (size_t)(p - done));
			buf_puts(out, "null");
			done = p + n;
			p = done;
		} else if (p < end) {
			p++;
		}
	}
	buf_append(out, done, (size_t)(end - done));
}

json_t *result_folder_json(const char *folder, const char *name, struct err *e)
{
	AUTO_FREE char *path = path_join(folder, name);
	struct buf raw = {0}, text = {0};
	json_error_t why;
	json_t *root = NULL;

	if (file_read(path, JSON_BYTES_MAX, &raw, e) < 0)
		return NULL;
	if (raw.data &&
	    (memmem(raw.data, raw.len, "NaN", 3) || memmem(raw.data, raw.len, "Infinity", 8))) {
		null_nonfinite(&raw, &text);
	} else {
		text = raw;
		raw = (struct buf){0};
	}
	buf_release(&raw);
	if (text.data)
		root = json_of_text(&text, &why);
	if (!root && (!text.data || text.len == 0))
		err_set(e, ERR_DATA, "'%s' is empty", path);
	else if (!root && json_error_code(&why) == json_error_out_of_memory)
		err_set(e, -ENOMEM, "there is no memory to read '%s'", path);
	else if (!root)
		err_set(e, ERR_DATA, "'%s' is damaged in line %d, column %d: %s", path, why.line,
			why.column, why.text);
	else if (!json_is_object(root)) {
		err_set(e, ERR_DATA, "'%s' is damaged: it is not a JSON object", path);
		json_decref(root);
		root = NULL;
	}
	buf_release(&text);
	return root;
}

bool result_has_summary(const json_t *result)
{
	const struct part *whole = part_whole(result);
	const json_t *files = figure_json(part(whole, F_RUN_INTEGRITY), F_INTEGRITY_FILES);

	if (files)
		return json_object_get(files, "summary.json") != NULL;
	return figure_json(whole, F_RUN_TRAINING) || figure_json(whole, F_RUN_EVALUATION) ||
	       figure_json(whole, F_RUN_CHECKPOINT);
}

int result_check_keys(const char *folder, const json_t *result, struct err *e)
{
	static const enum field texts[] = {F_RUN_VERSION, F_RUN_STATUS, F_RUN_WORKLOAD, F_RUN_START,
					   F_RUN_END};
	const struct part *whole = part_whole(result);
	struct buf bad = {0};
	int rc = 0;

	if (!json_is_integer(figure_json(whole, F_RUN_SCHEMA)))
		buf_printf(&bad, ", %s", field_key(F_RUN_SCHEMA));
	if (!json_is_integer(figure_json(whole, F_RUN_ACCELERATORS)))
		buf_printf(&bad, ", %s", field_key(F_RUN_ACCELERATORS));
	if (!json_is_number(figure_json(whole, F_RUN_WALL)))
		buf_printf(&bad, ", %s", field_key(F_RUN_WALL));
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		if (!figure_text(whole, texts[i]))
			buf_printf(&bad, ", %s", field_key(texts[i]));
	if (!json_is_object(figure_json(whole, F_RUN_CONFIGURATION)))
		buf_printf(&bad, ", %s", field_key(F_RUN_CONFIGURATION));
	if (bad.len)
		rc = err_set(e, ERR_DATA,
			     "'%s/result.json' is no whole result of this program: what it always "
			     "has is missing or not of its kind (%s); it was edited or replaced",
			     folder, bad.data + 2);
	buf_release(&bad);
	return rc;
}

bool result_folder_is_used(const char *folder, char who[FILE_LOCK_WHO_MAX])
{
	AUTO_FREE char *lock = path_join(folder, RUN_LOCK_NAME);

	return file_lock_held(lock, who);
}

char *result_folder_used_text(const char *folder, const char *who)
{
	return xasprintf("a run is still writing its results to '%s'%s%s: wait for it to end",
			 folder, who[0] ? ": " : "", who);
}

/* ---- who wrote it ---- */

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
