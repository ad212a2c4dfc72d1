/* Files that list the files of a folder. */
#include "dataset/folder_file.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"

struct kind_files {
	struct folder_files base; /* first */
	const struct dataset *d;
	enum dataset_kind kind;
};

static int file_of(const struct folder_files *files, uint64_t i, char *name, size_t name_size,
		   struct file_spec *f, struct err *e)
{
	const struct kind_files *k = (const struct kind_files *)files;
	char path[DATASET_PATH_MAX];
	int rc = dataset_path(k->d, k->kind, i, path, sizeof(path), e);
	const char *base = strrchr(path, '/');

	if (rc < 0)
		return rc;
	base = base ? base + 1 : path;
	if ((size_t)snprintf(name, name_size, "%s", base) >= name_size)
		return err_set(e, -ENAMETOOLONG, "the name '%s' is too long for an index", base);
	dataset_file_spec(k->d, k->kind, i, f);
	return 0;
}

/* False where there is no such file. */
static bool kind_files(struct kind_files *k, const struct dataset *d, int kind, uint64_t files)
{
	*k = (struct kind_files){
		.base = {.files = files, .file = file_of}, .d = d, .kind = (enum dataset_kind)kind};
	return d->format->is.folder_file && files > 0;
}

static int path_of(const struct dataset *d, int kind, const char *before, const char *behind,
		   char out[DATASET_PATH_MAX], struct err *e)
{
	char folder[DATASET_PATH_MAX];
	int rc = dataset_folder(d, (enum dataset_kind)kind, 0, folder, sizeof(folder), e);

	if (rc < 0)
		return rc;
	if ((size_t)snprintf(out, DATASET_PATH_MAX, "%s/%s%s%s", folder, before,
			     d->format->is.folder_file, behind) >= DATASET_PATH_MAX)
		return err_set(e, -ENAMETOOLONG, "the path of the index in '%s' is too long",
			       folder);
	return 0;
}

static int write_one(const struct kind_files *k, const struct io *io, const char *path,
		     void *scratch, struct err *e)
{
	AUTO_FREE struct blob *b = store_blob_new(io->store, e);
	int rc = b ? io_open(io, path, STORE_WRITE | STORE_CREATE, b, e) : -ENOMEM;

	if (rc < 0)
		return rc;
	rc = format_folder_write(k->d->format, io, b, path, &k->base, scratch, FORMAT_WRITE_SCRATCH,
				 e);
	if (rc == 0)
		rc = io_sync(io, b, e);
	if (rc < 0) {
		io_close(io, b, NULL);
		return rc;
	}
	return io_close(io, b, e);
}

static int write_kind(const struct kind_files *k, const struct io *io, void *scratch, struct err *e)
{
	/* an object appears whole in any case */
	bool objects = store_base_flags(io->store) & STORE_HAS_OBJECTS;
	char path[DATASET_PATH_MAX], part[DATASET_PATH_MAX];
	int rc = path_of(k->d, k->kind, "", "", path, e);

	if (rc == 0)
		rc = path_of(k->d, k->kind, objects ? "" : ".", objects ? "" : ".part", part, e);
	if (rc == 0)
		rc = write_one(k, io, part, scratch, e);
	if (rc == 0 && !objects)
		rc = store_rename(io->store, part, path, e);
	return rc;
}

int folder_file_write(const struct dataset *d, struct store *store, struct err *e)
{
	const struct io io = {.store = store};
	void *scratch;
	int rc = 0;

	if (!d->format->is.folder_file)
		return 0;
	scratch = buffer_alloc(FORMAT_WRITE_SCRATCH, "the index of a dataset", e);
	if (!scratch)
		return -ENOMEM;
	for (int kind = 0; kind < DATASET_KINDS && rc == 0; kind++) {
		struct kind_files k;

		if (kind_files(&k, d, kind, d->name_total[kind]))
			rc = write_kind(&k, &io, scratch, e);
	}
	buffer_free(scratch, FORMAT_WRITE_SCRATCH);
	return rc;
}

int folder_file_verify(const struct dataset *d, struct store *store, uint64_t *bytes, struct err *e)
{
	const struct io io = {.store = store};
	char path[DATASET_PATH_MAX];
	struct store_stat st;
	void *scratch;
	int rc = 0;

	if (!d->format->is.folder_file)
		return 0;
	scratch = buffer_alloc(FORMAT_WRITE_SCRATCH, "the index of a dataset", e);
	if (!scratch)
		return -ENOMEM;
	for (int kind = 0; kind < DATASET_KINDS && rc == 0; kind++) {
		struct kind_files k;

		if (!kind_files(&k, d, kind, d->name_total[kind]) || d->files[kind] == 0)
			continue;
		rc = path_of(d, kind, "", "", path, e);
		if (rc == 0)
			rc = format_folder_verify(d->format, &io, path, &k.base, scratch,
						  FORMAT_WRITE_SCRATCH, e);
		if (rc == 0 && io_stat_path(&io, path, &st, NULL) == 0)
			*bytes += st.bytes;
	}
	buffer_free(scratch, FORMAT_WRITE_SCRATCH);
	return rc;
}

static int read_and_check(const struct kind_files *k, const struct io *io, struct blob *b,
			  const char *path, struct err *e)
{
	struct store_stat st;
	ssize_t got;
	char *text;
	int rc = io_stat_blob(io, b, &st, e);

	if (rc < 0)
		return rc;
	if (st.bytes > FOLDER_FILE_MAX)
		return err_set(e, ERR_DATA,
			       "the index '%s' has %" PRIu64 " bytes; at most %u are read", path,
			       st.bytes, FOLDER_FILE_MAX);
	text = try_calloc(1, st.bytes + 1, "the index of a dataset", e);
	if (!text)
		return -ENOMEM;
	got = st.bytes ? io_pread(io, IO_META, b, text, st.bytes, 0, e) : 0;
	rc = got < 0 ? (int)got : k->d->format->folder_check(text, (size_t)got, &k->base, e);
	free(text);
	return rc == ERR_DATA ? err_name(rc, e, "the index '%s'", path) : rc;
}

int folder_file_check(const struct dataset *d, struct store *store, int kinds, struct err *e)
{
	const struct io io = {.store = store};
	char path[DATASET_PATH_MAX];
	int rc = 0;

	for (int kind = 0; kind < kinds && rc == 0; kind++) {
		AUTO_FREE struct blob *b = NULL;
		struct kind_files k;
		int closed;

		if (!kind_files(&k, d, kind, d->files[kind]))
			continue;
		b = store_blob_new(store, e);
		rc = b ? path_of(d, kind, "", "", path, e) : -ENOMEM;
		if (rc == 0)
			rc = io_open(&io, path, STORE_READ, b, e);
		if (rc < 0)
			break;
		rc = read_and_check(&k, &io, b, path, e);
		closed = io_close(&io, b, rc == 0 ? e : NULL);
		rc = rc == 0 ? closed : rc;
	}
	return rc;
}

int folder_file_remove(const struct dataset *d, struct store *store, struct err *e)
{
	char path[DATASET_PATH_MAX];
	int rc = 0;

	for (int kind = 0; kind < DATASET_KINDS && rc == 0; kind++) {
		struct kind_files k;

		if (!kind_files(&k, d, kind, d->name_total[kind]))
			continue;
		rc = path_of(d, kind, "", "", path, e);
		if (rc == 0)
			rc = store_remove(store, path, e);
		if (rc == -ENOENT || rc == -ENOTDIR)
			rc = 0;
	}
	return rc;
}
