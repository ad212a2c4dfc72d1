/* index.json of MDS and LitData: written as the libraries write it, and theirs compared with what a
 * workload needs, within bounds. */
#include "format/chunks/chunks_index.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/little_endian.h"
#include "base/str.h"
#include "codec/json_scan.h"
#include "format/blob_stream.h"

#define NAME_ROOM 256
#define WORD_ROOM 64
/* of the libraries */
#define KEY_BYTES "bytes"
#define KEY_CONFIG "config"

/* ---- writing ---- */

#define MDS_COLUMNS                                                                                \
	"\"column_encodings\": [\"bytes\", \"int\"], \"column_names\": [\"data\", \"label\"], "    \
	"\"column_sizes\": [null, 8], \"compression\": null, \"format\": \"mds\", \"hashes\": []"
#define LIMITED "67108864"

static size_t mds_config(char out[CHUNKS_CONFIG_MAX], bool limited)
{
	return (size_t)snprintf(out, CHUNKS_CONFIG_MAX,
				"{" MDS_COLUMNS ", \"size_limit\": %s, \"version\": 2}",
				limited ? LIMITED : "null");
}

const struct chunks_kind chunks_mds = {.sizes = 1, .config = mds_config};
const struct chunks_kind chunks_litdata = {.sizes = 2, .keeps_open = true};

static int put_text(struct blob_stream *s, const char *text, struct err *e)
{
	return blob_stream_put(s, text, strlen(text), e);
}

/* One entry after another; `put` makes its text. */
static int put_entries(struct blob_stream *s, const struct folder_files *files,
		       const struct chunks_kind *k,
		       int (*put)(char *out, size_t room, const char *name,
				  const struct file_spec *f, const struct chunks_layout *l),
		       struct err *e)
{
	int rc = 0;

	for (uint64_t i = 0; rc == 0 && i < files->files; i++) {
		char name[NAME_ROOM], text[NAME_ROOM + 1024];
		struct chunks_layout l = {0};
		struct file_spec f;

		rc = files->file(files, i, name, sizeof(name), &f, e);
		if (rc == 0)
			rc = chunks_layout_of(k, &f, &l, e);
		if (rc < 0)
			break;
		put(text, sizeof(text), name, &f, &l);
		rc = i ? put_text(s, ", ", e) : 0;
		if (rc == 0)
			rc = put_text(s, text, e);
	}
	return rc;
}

static int mds_entry(char *out, size_t room, const char *name, const struct file_spec *f,
		     const struct chunks_layout *l)
{
	return snprintf(out, room,
			"{" MDS_COLUMNS ", \"raw_data\": {\"basename\": \"%s\", \"bytes\": %" PRIu64
			", \"hashes\": {}}, \"samples\": %" PRIu64
			", \"size_limit\": %s, \"version\": 2, \"zip_data\": null}",
			name, l->file_bytes, f->samples,
			strstr(l->config, LIMITED) ? LIMITED : "null");
}

int mds_folder_put(struct blob_stream *s, const struct folder_files *files, struct err *e)
{
	return put_text(s, "{\"shards\": [", e) ?:
	       put_entries(s, files, &chunks_mds, mds_entry, e) ?:
	       put_text(s, "], \"version\": 2}", e);
}

static int litdata_entry(char *out, size_t room, const char *name, const struct file_spec *f,
			 const struct chunks_layout *l)
{
	return snprintf(out, room,
			"{\"chunk_bytes\": %" PRIu64 ", \"chunk_size\": %" PRIu64
			", \"dim\": null, \"filename\": \"%s\"}",
			l->file_bytes, f->samples, name);
}

/* The structure is that of {"data": ..., "label": ...}, in PyTorch's words. What depends on the
 * time of writing is always the same here. */
int litdata_folder_put(struct blob_stream *s, const struct folder_files *files, struct err *e)
{
	char size[32] = "null", name[NAME_ROOM];
	struct file_spec f;

	if (files->files && files->file(files, 0, name, sizeof(name), &f, NULL) == 0)
		snprintf(size, sizeof(size), "%" PRIu64, f.samples);
	return put_text(s, "{\"chunks\": [", e) ?:
	       put_entries(s, files, &chunks_litdata, litdata_entry, e) ?:
	       put_text(s, "], \"config\": {\"chunk_bytes\": null, \"chunk_size\": ", e) ?:
	       put_text(s, size, e) ?:
	       put_text(s,
			", \"compression\": null, \"data_format\": [\"bytes\", \"int\"], "
			"\"data_spec\": \"[1, {\\\"type\\\": \\\"builtins.dict\\\", "
			"\\\"context\\\": \\\"[\\\\\\\"data\\\\\\\", \\\\\\\"label\\\\\\\"]\\\", "
			"\\\"children_spec\\\": [{\\\"type\\\": null, \\\"context\\\": null, "
			"\\\"children_spec\\\": []}, {\\\"type\\\": null, \\\"context\\\": null, "
			"\\\"children_spec\\\": []}]}]\", \"encryption\": null, "
			"\"item_loader\": \"PyTreeLoader\"}, \"updated_at\": \"0.0\"}",
			e);
}

/* ---- what others wrote ---- */

/* An entry of the list, as far as it matters. */
struct entry {
	bool has_name, has_bytes, has_samples;
	char name[NAME_ROOM];
	uint64_t bytes, samples;
};

/* A member that has to be null, or absent, and why. */
static int only_null(struct json_scan *s, const char *key, const char *why, struct err *e)
{
	int rc;

	if (json_scan_null(s))
		return 0;
	rc = json_scan_skip(s, e);
	return rc < 0 ? rc : err_set(e, ERR_DATA, "'%s' is set: %s", key, why);
}

#define NOT_PLAIN "compressed and encrypted files are not supported, only plain ones"

static int only_word(struct json_scan *s, const char *key, const char *want, struct err *e)
{
	char word[WORD_ROOM];
	int rc = json_scan_string(s, word, sizeof(word), e);

	if (rc < 0 || strcmp(word, want) == 0)
		return rc;
	return err_set(e, ERR_DATA, "'%s' is '%s': only '%s' is supported", key, word, want);
}

static int only_version(struct json_scan *s, struct err *e)
{
	uint64_t version;
	int rc = json_scan_u64(s, &version, e);

	if (rc < 0 || version == 2)
		return rc;
	return err_set(e, ERR_DATA, "its version is %" PRIu64 ": only 2 is supported", version);
}

/* Walks an object: `member` reads the value of each key. */
static int each_member(struct json_scan *s, void *to,
		       int (*member)(struct json_scan *s, const char *key, void *to, struct err *e),
		       struct err *e)
{
	char key[WORD_ROOM];
	int rc = json_scan_enter(s, '{', e);

	while (rc == 0 && (rc = json_scan_more(s, '}', e)) == 1) {
		rc = json_scan_key(s, key, sizeof(key), e);
		if (rc == 0)
			rc = member(s, key, to, e);
	}
	return rc;
}

static int raw_member(struct json_scan *s, const char *key, void *to, struct err *e)
{
	struct entry *x = to;

	if (strcmp(key, "basename") == 0) {
		x->has_name = true;
		return json_scan_string(s, x->name, sizeof(x->name), e);
	}
	if (strcmp(key, KEY_BYTES) == 0) {
		x->has_bytes = true;
		return json_scan_u64(s, &x->bytes, e);
	}
	return json_scan_skip(s, e);
}

static int shard_member(struct json_scan *s, const char *key, void *to, struct err *e)
{
	struct entry *x = to;

	if (strcmp(key, "raw_data") == 0)
		return each_member(s, x, raw_member, e);
	if (strcmp(key, "samples") == 0) {
		x->has_samples = true;
		return json_scan_u64(s, &x->samples, e);
	}
	if (strcmp(key, "format") == 0)
		return only_word(s, key, "mds", e);
	if (strcmp(key, "version") == 0)
		return only_version(s, e);
	if (strcmp(key, "compression") == 0 || strcmp(key, "zip_data") == 0)
		return only_null(s, key, NOT_PLAIN, e);
	return json_scan_skip(s, e);
}

static int chunk_member(struct json_scan *s, const char *key, void *to, struct err *e)
{
	struct entry *x = to;

	if (strcmp(key, "filename") == 0) {
		x->has_name = true;
		return json_scan_string(s, x->name, sizeof(x->name), e);
	}
	if (strcmp(key, "chunk_bytes") == 0) {
		x->has_bytes = true;
		return json_scan_u64(s, &x->bytes, e);
	}
	if (strcmp(key, "chunk_size") == 0) {
		x->has_samples = true;
		return json_scan_u64(s, &x->samples, e);
	}
	if (strcmp(key, "dim") == 0)
		return only_null(s, key,
				 "chunks of tokens are not supported, only chunks of samples", e);
	return json_scan_skip(s, e);
}

/* What is asked of the index while it is walked. */
struct look {
	const struct folder_files *files;
	uint64_t seen;
	const char *list; /* key of the list of files */
	int (*entry)(struct json_scan *s, const char *key, void *to, struct err *e);
	bool found;
};

/* A path that leads elsewhere is no name. */
static bool is_name(const char *name)
{
	return name[0] && !strchr(name, '/') && strcmp(name, ".") != 0 && strcmp(name, "..") != 0;
}

static int compare_entry(const struct look *l, const struct entry *x, struct err *e)
{
	char name[NAME_ROOM];
	struct file_spec f;
	int rc;

	if (!x->has_name || !x->has_bytes || !x->has_samples)
		return err_set(e, ERR_DATA, "entry %" PRIu64 " has no %s", l->seen,
			       !x->has_name    ? "file name"
			       : !x->has_bytes ? "number of bytes"
					       : "number of samples");
	if (!is_name(x->name))
		return err_set(e, ERR_DATA,
			       "entry %" PRIu64
			       " names the file '%.100s', which is no name of a file in this "
			       "folder",
			       l->seen, x->name);
	/* those of a larger dataset, of which the first files are used */
	if (l->seen >= l->files->files)
		return 0;
	rc = l->files->file(l->files, l->seen, name, sizeof(name), &f, e);
	if (rc < 0)
		return rc;
	if (strcmp(name, x->name) != 0)
		return err_set(e, ERR_DATA,
			       "entry %" PRIu64 " is the file '%.100s', where '%s' should be",
			       l->seen, x->name, name);
	if (x->samples != f.samples)
		return err_set(e, ERR_DATA,
			       "'%s' has %" PRIu64 " samples, and files of the workload have "
			       "%" PRIu64 " (dataset.num_samples_per_file)",
			       name, x->samples, f.samples);
	return 0;
}

static int walk_list(struct json_scan *s, struct look *l, struct err *e)
{
	int rc = json_scan_enter(s, '[', e);

	l->found = true;
	while (rc == 0 && (rc = json_scan_more(s, ']', e)) == 1) {
		struct entry x = {0};

		rc = each_member(s, &x, l->entry, e);
		if (rc == 0)
			rc = compare_entry(l, &x, e);
		l->seen++;
	}
	return rc;
}

static int config_member(struct json_scan *s, const char *key, void *to, struct err *e)
{
	(void)to;
	if (strcmp(key, "item_loader") == 0)
		return only_word(s, key, "PyTreeLoader", e);
	if (strcmp(key, "compression") == 0 || strcmp(key, "encryption") == 0)
		return only_null(s, key, NOT_PLAIN, e);
	return json_scan_skip(s, e);
}

static int top_member(struct json_scan *s, const char *key, void *to, struct err *e)
{
	struct look *l = to;

	if (strcmp(key, l->list) == 0)
		return walk_list(s, l, e);
	if (strcmp(key, KEY_CONFIG) == 0)
		return each_member(s, NULL, config_member, e);
	if (strcmp(key, "version") == 0)
		return only_version(s, e);
	return json_scan_skip(s, e);
}

static int check(struct look *l, const char *text, size_t n, struct err *e)
{
	struct json_scan s;
	int rc;

	json_scan_begin(&s, text, n);
	rc = each_member(&s, l, top_member, e) ?: json_scan_end(&s, e);
	if (rc < 0)
		return rc;
	if (!l->found)
		return err_set(e, ERR_DATA, "it has no list '%s'", l->list);
	if (l->seen < l->files->files)
		return err_set(e, ERR_DATA,
			       "it names %" PRIu64 " files, and the workload needs %" PRIu64,
			       l->seen, l->files->files);
	return 0;
}

int mds_folder_check(const char *text, size_t n, const struct folder_files *files, struct err *e)
{
	struct look l = {.files = files, .list = "shards", .entry = shard_member};

	return check(&l, text, n, e);
}

int litdata_folder_check(const char *text, size_t n, const struct folder_files *files,
			 struct err *e)
{
	struct look l = {.files = files, .list = "chunks", .entry = chunk_member};

	return check(&l, text, n, e);
}

/* ---- items of others ---- */

static int column_member(struct json_scan *s, const char *key, void *to, struct err *e)
{
	struct chunks_columns *c = to;
	int rc;

	if (strcmp(key, "column_sizes") != 0)
		return json_scan_skip(s, e);
	c->n = 0;
	rc = json_scan_enter(s, '[', e);
	while (rc == 0 && (rc = json_scan_more(s, ']', e)) == 1) {
		if (c->n == CHUNKS_PARTS_MAX)
			return err_set(e, ERR_DATA, "it has more than %u columns",
				       CHUNKS_PARTS_MAX);
		c->size[c->n] = 0;
		rc = json_scan_null(s) ? 0 : json_scan_u64(s, &c->size[c->n], e);
		c->n++;
	}
	return rc;
}

int chunks_columns_parse(const char *text, size_t n, struct chunks_columns *out, struct err *e)
{
	struct json_scan s;

	json_scan_begin(&s, text, n);
	out->n = 0;
	return each_member(&s, out, column_member, e) ?: json_scan_end(&s, e);
}

/* Parts of which `sizes` have their size in front: they must fill the item. */
static int64_t payload_of_parts(const uint64_t *size, uint32_t parts, uint64_t head, uint64_t n,
				uint64_t want)
{
	uint64_t at = head;
	int64_t found = -1;

	for (uint32_t i = 0; i < parts; i++) {
		if (size[i] > n - at)
			return -1;
		if (found < 0 && size[i] == want)
			found = (int64_t)at;
		at += size[i];
	}
	return at == n ? found : -1;
}

int64_t chunks_payload_at(const struct chunks_columns *c, const unsigned char *item, uint64_t n,
			  uint64_t want)
{
	uint64_t size[CHUNKS_PARTS_MAX];
	uint32_t given = 0;
	int64_t at;

	for (uint32_t i = 0; c && i < c->n; i++) {
		size[i] = c->size[i];
		if (size[i])
			continue;
		if (n - 4 * (uint64_t)given < 4 || n < 4 * (uint64_t)given)
			return -1;
		size[i] = le_get(item + 4 * given++, 4);
	}
	if (c)
		return payload_of_parts(size, c->n, 4 * (uint64_t)given, n, want);
	for (uint32_t parts = 1; parts <= CHUNKS_PARTS_MAX && 4 * (uint64_t)parts <= n; parts++) {
		size[parts - 1] = le_get(item + 4 * (parts - 1), 4);
		at = payload_of_parts(size, parts, 4 * (uint64_t)parts, n, want);
		if (at >= 0)
			return at;
	}
	return -1;
}
