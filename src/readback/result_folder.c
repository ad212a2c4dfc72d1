/* One file at a time. */
#include "readback/result_folder.h"

#include <errno.h>
#include <string.h>

#include "base/alloc.h"
#include "base/file.h"
#include "result/fields.h"

#define JSON_BYTES_MAX (256u << 20)

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
		root = json_loadb(text.data, text.len, 0, &why);
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
