/* The manifest of a dataset: JSON through the store, replaced at one moment. */
#include "dataset/manifest.h"

#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/str.h"

#define VERSION 1
#define BYTES_MAX (1u << 20)
#define KIND_NAME "stoker dataset"

static const char *const state_names[] = {"complete", "writing", "clearing"};

/* The keys that decide what a dataset is, as overrides would give them: whoever finds the folder
 * can build the workload again. */
static json_t *keys_json(const struct workload *w)
{
	json_t *keys = json_object();

	for (size_t i = 0; i < workload_row_count; i++) {
		const struct opt *row = &workload_rows[i];

		if ((!str_starts(row->key, "dataset.") && strcmp(row->key, "compat.dlio") != 0) ||
		    strcmp(row->key, "dataset.data_folder") == 0 ||
		    strcmp(row->key, "dataset.keep_files") == 0 || row->type == OPT_MAP)
			continue;
		/* how it is looked at, not what it is */
		if (strcmp(row->key, "dataset.skip_listing") == 0 ||
		    strcmp(row->key, "dataset.listing_validation_interval") == 0 ||
		    strcmp(row->key, "dataset.total_disk_bytes") == 0)
			continue;
		/* one of the two, as when they are set */
		if (w->file_bytes_decide == FILE_BYTES_SHAPE &&
		    strcmp(row->key, "dataset.record_length_bytes") == 0)
			continue;
		AUTO_FREE char *text = opt_get_text(row, w);

		json_object_set_new(keys, row->key, json_string(text));
	}
	return keys;
}

static json_t *to_json(const struct dataset *d, enum manifest_state state)
{
	char shape[128], created[32], hash[24];
	json_t *total = d->total_bytes == UINT64_MAX ? json_null()
						     : json_integer((json_int_t)d->total_bytes);

	dataset_shape_text(d, shape, sizeof(shape));
	clock_timestamp(clock_wall_ns(), created, sizeof(created));
	snprintf(hash, sizeof(hash), "%016" PRIx64, d->config_hash);
	return json_pack("{ss si ss ss ss ss ss ss sI sI sI sI sI so sI ss ss ss so}", "kind",
			 KIND_NAME, "version", VERSION, "state", state_names[state], "format",
			 d->format->is.name, "element_type", d->elem->name, "shape", shape,
			 "compression", d->compression, "file_prefix", d->prefix, "files_train",
			 (json_int_t)d->files[DATASET_TRAIN], "files_eval",
			 (json_int_t)d->files[DATASET_EVAL], "subfolders_train",
			 (json_int_t)d->subfolders[DATASET_TRAIN], "subfolders_eval",
			 (json_int_t)d->subfolders[DATASET_EVAL], "samples_per_file",
			 (json_int_t)d->samples_per_file, "total_bytes", total, "content_seed",
			 (json_int_t)d->content.seed, "config_hash", hash, "created", created,
			 "program", "stoker " STOKER_VERSION, "keys", keys_json(d->workload));
}

/* What files turned out to have. */
static void put_mean(json_t *root, const struct dataset *d)
{
	enum dataset_sizes how;
	double mean = dataset_mean_file_bytes(d, DATASET_TRAIN, &how);

	if (how == SIZES_EXACT || how == SIZES_SEEN)
		json_object_set_new(root, "mean_train_file_bytes", json_real(mean));
}

static int put_file(const struct io *io, const char *path, const char *text, struct err *e)
{
	AUTO_FREE struct blob *b = store_blob_new(io->store, e);
	size_t n = strlen(text);
	ssize_t put;
	int rc;

	if (!b)
		return -ENOMEM;
	rc = io_open(io, path, STORE_WRITE | STORE_CREATE, b, e);
	if (rc < 0)
		return rc;
	put = io_pwrite(io, b, text, n, 0, e);
	rc = put < 0 ? (int)put : io_sync(io, b, e);
	if (rc < 0) {
		io_close(io, b, NULL);
		return rc;
	}
	return io_close(io, b, e);
}

int manifest_write(const struct io *io, const struct dataset *d, enum manifest_state state,
		   struct err *e)
{
	AUTO_FREE char *path = path_join(d->folder, MANIFEST_NAME);
	/* an object appears whole in any case */
	bool objects = store_base_flags(io->store) & STORE_HAS_OBJECTS;
	AUTO_FREE char *part =
		path_join(d->folder, objects ? MANIFEST_NAME : "." MANIFEST_NAME ".part");
	json_t *root = to_json(d, state);
	struct err why;
	char *text;
	int rc;

	if (root && state == MANIFEST_COMPLETE)
		put_mean(root, d);
	text = root ? json_dumps(root, JSON_INDENT(2) | JSON_ENSURE_ASCII) : NULL;
	json_decref(root);
	if (!text)
		return err_set(
			e, ERR_USAGE,
			"dataset.file_prefix '%s' is not valid UTF-8 and cannot be stored in '%s'",
			d->prefix, path);
	rc = put_file(io, part, text, &why);
	free(text);
	if (rc == 0 && !objects)
		rc = store_rename(io->store, part, path, &why);
	if (rc < 0) {
		store_remove(io->store, part, NULL);
		return err_set(e, rc, "cannot write the dataset's manifest '%s': %s", path,
			       why.text);
	}
	return store_sync_dir(io->store, d->folder, e);
}

static int name_path(int rc, const char *path, struct err *e)
{
	return rc < 0 && rc != ERR_CANCELED
		       ? err_name(rc, e, "cannot read the dataset's manifest '%s'", path)
		       : rc;
}

static int read_text(const struct io *io, const char *path, struct buf *out, struct err *e)
{
	AUTO_FREE struct blob *b = store_blob_new(io->store, e);
	AUTO_FREE char *text = NULL;
	ssize_t got;
	int rc;

	if (!b)
		return -ENOMEM;
	rc = io_open(io, path, STORE_READ, b, e);
	if (rc < 0)
		return name_path(rc, path, e);
	text = xmalloc(BYTES_MAX + 1);
	got = io_pread(io, IO_META, b, text, BYTES_MAX + 1, 0, e);
	if (got < 0) {
		io_close(io, b, NULL);
		return name_path((int)got, path, e);
	}
	rc = name_path(io_close(io, b, e), path, e);
	if (rc == 0 && got > (ssize_t)BYTES_MAX)
		rc = err_set(e, ERR_DATA, "'%s' is too large for a manifest (at most %u bytes)",
			     path, BYTES_MAX);
	if (rc == 0)
		buf_append(out, text, (size_t)got);
	return rc;
}

/* Reads the fields one after another; the first that is wrong decides. */
struct fields {
	const json_t *root;
	const char *path;
	struct err *e;
	int rc;
};

static void wrong_field(struct fields *f, const char *key, const char *want)
{
	if (f->rc == 0)
		f->rc = err_set(f->e, ERR_DATA,
				"'%s' is not a valid dataset manifest: \"%s\" is not %s. Remove it "
				"or generate the dataset again",
				f->path, key, want);
}

static const char *text_field(struct fields *f, const char *key, char *out, size_t out_size)
{
	const char *s = json_string_value(json_object_get(f->root, key));

	out[0] = '\0';
	if (!s || strlen(s) >= out_size)
		wrong_field(f, key, "a short text");
	else
		memcpy(out, s, strlen(s) + 1);
	return out;
}

static uint64_t count_field(struct fields *f, const char *key)
{
	const json_t *v = json_object_get(f->root, key);

	if (json_is_integer(v) && json_integer_value(v) >= 0)
		return (uint64_t)json_integer_value(v);
	wrong_field(f, key, "a number of 0 or more");
	return 0;
}

static void hash_field(struct fields *f, uint64_t *out)
{
	char text[24], *end;

	text_field(f, "config_hash", text, sizeof(text));
	*out = strtoull(text, &end, 16);
	if (strlen(text) != 16 || *end || strspn(text, "0123456789abcdef") != 16)
		wrong_field(f, "config_hash", "16 hexadecimal digits");
}

static void state_field(struct fields *f, struct manifest *m)
{
	char text[16];

	text_field(f, "state", text, sizeof(text));
	for (int i = 0; i < 3; i++)
		if (strcmp(text, state_names[i]) == 0) {
			m->state = (enum manifest_state)i;
			m->complete = m->state == MANIFEST_COMPLETE;
			return;
		}
	wrong_field(f, "state", "complete, writing or clearing");
}

static int from_json(const json_t *root, const char *path, struct manifest *m, struct err *e)
{
	struct fields f = {.root = root, .path = path, .e = e};
	const json_t *total = json_object_get(root, "total_bytes"),
		     *seed = json_object_get(root, "content_seed");
	uint64_t version = count_field(&f, "version");
	char kind[32];

	if (strcmp(text_field(&f, "kind", kind, sizeof(kind)), KIND_NAME) != 0)
		wrong_field(&f, "kind", "\"" KIND_NAME "\"");
	if (f.rc == 0 && version != VERSION)
		return err_set(e, ERR_DATA,
			       "'%s' has manifest version %" PRIu64
			       ", but this program supports only version %d: use the program that "
			       "generated the dataset, or generate it again",
			       path, version, VERSION);
	m->version = (int)version;
	state_field(&f, m);
	text_field(&f, "format", m->format, sizeof(m->format));
	text_field(&f, "element_type", m->elem, sizeof(m->elem));
	text_field(&f, "shape", m->shape, sizeof(m->shape));
	text_field(&f, "compression", m->compression, sizeof(m->compression));
	text_field(&f, "file_prefix", m->prefix, sizeof(m->prefix));
	text_field(&f, "created", m->created, sizeof(m->created));
	m->files[DATASET_TRAIN] = count_field(&f, "files_train");
	m->files[DATASET_EVAL] = count_field(&f, "files_eval");
	m->subfolders[DATASET_TRAIN] = count_field(&f, "subfolders_train");
	m->subfolders[DATASET_EVAL] = count_field(&f, "subfolders_eval");
	m->samples_per_file = count_field(&f, "samples_per_file");
	m->total_bytes = json_is_null(total) ? UINT64_MAX : count_field(&f, "total_bytes");
	if (!json_is_integer(seed))
		wrong_field(&f, "content_seed", "a number");
	m->seed = (uint64_t)json_integer_value(seed);
	hash_field(&f, &m->config_hash);
	return f.rc;
}

int manifest_parse(const char *text, size_t n, const char *path, struct manifest *out,
		   struct err *e)
{
	json_error_t why;
	json_t *root = json_loadb(text, n, JSON_REJECT_DUPLICATES, &why);
	int rc;

	memset(out, 0, sizeof(*out));
	if (!root)
		return err_set(e, ERR_DATA,
			       "'%s', line %d: invalid JSON: %s. Remove the file or generate the "
			       "dataset again",
			       path, why.line, why.text);
	rc = from_json(root, path, out, e);
	json_decref(root);
	if (rc < 0)
		memset(out, 0, sizeof(*out));
	out->found = rc == 0;
	return rc;
}

int manifest_read(const struct io *io, const char *folder, struct manifest *out, struct err *e)
{
	AUTO_FREE char *path = path_join(folder, MANIFEST_NAME);
	struct buf text = {0};
	int rc = read_text(io, path, &text, e);

	memset(out, 0, sizeof(*out));
	if (rc == 0)
		rc = manifest_parse(text.data ? text.data : "", text.len, path, out, e);
	else if (rc == -ENOENT || rc == -ENOTDIR)
		rc = 0;
	buf_release(&text);
	return rc;
}

int manifest_keys(const struct io *io, const char *folder, struct str_list *out, struct err *e)
{
	AUTO_FREE char *path = path_join(folder, MANIFEST_NAME);
	struct buf text = {0};
	json_t *root = NULL, *keys, *value;
	const char *key;
	int rc = read_text(io, path, &text, e);

	if (rc == -ENOENT)
		return err_set(e, ERR_USAGE,
			       "'%s' has no " MANIFEST_NAME ", which says what a dataset should "
			       "hold: give its workload instead, with "
			       "dataset.data_folder='%s' (content that DLIO generated is random "
			       "and cannot be compared)",
			       folder, folder);
	if (rc < 0)
		return rc;
	root = json_loadb(text.data ? text.data : "", text.len, JSON_REJECT_DUPLICATES, NULL);
	keys = json_object_get(root, "keys");
	if (!json_is_object(keys)) {
		rc = err_set(e, ERR_DATA,
			     "'%s' does not contain the keys of its workload: specify the workload",
			     path);
	}
	json_object_foreach(keys, key, value)
	{
		out->v = xrealloc(out->v, (out->n + 1) * sizeof(*out->v));
		out->v[out->n++] =
			xasprintf("++workload.%s=%s", key,
				  json_string_value(value) ? json_string_value(value) : "null");
	}
	json_decref(root);
	buf_release(&text);
	return rc;
}

static void differ(struct buf *why, bool *same, const char *what, const char *there,
		   const char *here)
{
	*same = false;
	if (why)
		buf_printf(why, "%s%s is %s in the manifest and %s in the workload",
			   why->len ? "; " : "", what, there[0] ? there : "empty",
			   here[0] ? here : "empty");
}

static void compare_text(struct buf *why, bool *same, const char *what, const char *there,
			 const char *here)
{
	if (strcmp(there, here) != 0)
		differ(why, same, what, there, here);
}

static void compare_count(struct buf *why, bool *same, const char *what, uint64_t there,
			  uint64_t here)
{
	char a[24], b[24];

	if (there == here)
		return;
	snprintf(a, sizeof(a), "%" PRIu64, there);
	snprintf(b, sizeof(b), "%" PRIu64, here);
	differ(why, same, what, a, b);
}

/* How many files there are decides between the same and a larger one. */
static void compare_files(const struct manifest *m, const struct dataset *d, enum dataset_kind kind,
			  struct buf *why, bool *same, bool *larger)
{
	static const char *const files[] = {"num_files_train", "num_files_eval"},
				 *const folders[] = {"num_subfolders_train", "num_subfolders_eval"};

	if (m->files[kind] < d->files[kind])
		compare_count(why, same, files[kind], m->files[kind], d->files[kind]);
	else if (m->files[kind] > d->files[kind])
		*larger = true;
	if (d->files[kind])
		compare_count(why, same, folders[kind], m->subfolders[kind], d->subfolders[kind]);
}

enum manifest_fit manifest_compare(const struct manifest *m, const struct dataset *d,
				   bool need_eval, struct buf *why)
{
	bool same = true, larger = false;
	char shape[128];

	compare_text(why, &same, "format", m->format, d->format->is.name);
	compare_text(why, &same, "record_element_type", m->elem, d->elem->name);
	compare_text(why, &same, "the shape of a sample", m->shape,
		     dataset_shape_text(d, shape, sizeof(shape)));
	compare_count(why, &same, "num_samples_per_file", m->samples_per_file, d->samples_per_file);
	compare_text(why, &same, "compression", m->compression, d->compression);
	compare_text(why, &same, "file_prefix", m->prefix, d->prefix);
	compare_count(why, &same, "the seed of the content", m->seed, d->content.seed);
	compare_files(m, d, DATASET_TRAIN, why, &same, &larger);
	if (need_eval)
		compare_files(m, d, DATASET_EVAL, why, &same, &larger);
	if (same && m->config_hash != d->config_hash) {
		same = false;
		if (why)
			buf_puts(why,
				 "a setting that changes the contents of the files differs (hash)");
	}
	return !same ? MANIFEST_OTHER : larger ? MANIFEST_LARGER : MANIFEST_SAME;
}

bool manifest_matches(const struct manifest *m, const struct dataset *d, struct buf *why)
{
	enum manifest_fit fit = manifest_compare(m, d, true, why);

	if (fit == MANIFEST_LARGER && why)
		buf_printf(why,
			   "%sit describes %" PRIu64 " + %" PRIu64
			   " files and the workload %" PRIu64 " + %" PRIu64,
			   why->len ? "; " : "", m->files[DATASET_TRAIN], m->files[DATASET_EVAL],
			   d->files[DATASET_TRAIN], d->files[DATASET_EVAL]);
	return fit == MANIFEST_SAME;
}
