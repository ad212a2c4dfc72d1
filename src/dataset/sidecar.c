/* Companion files: sized, written and compared beside their blobs. */
#include "dataset/sidecar.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define SIDECAR_PATH_MAX (DATASET_PATH_MAX + 32)

uint64_t sidecar_bytes(const struct dataset *d, const struct file_spec *f)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < d->format->sidecars; i++)
		if (__builtin_add_overflow(sum, d->format->sidecar_bytes(f, i), &sum))
			return UINT64_MAX;
	return sum;
}

static int path_of(const struct dataset *d, const char *blob_path, uint32_t which,
		   char out[SIDECAR_PATH_MAX], struct err *e)
{
	int rc = d->format->sidecar_path(blob_path, which, out, SIDECAR_PATH_MAX);

	return rc < 0 ? err_set(e, rc, "the path of a companion file of '%s' is too long",
				blob_path)
		      : 0;
}

/* 1: there with its size. */
static int is_whole(const struct dataset *d, const struct io *io, const char *path,
		    const struct file_spec *f, uint32_t which, uint64_t *bytes, struct err *e)
{
	struct store_stat st;
	int rc = io_stat_path(io, path, &st, e);

	if (rc < 0)
		return rc == -ENOENT || rc == -ENOTDIR ? 0 : rc;
	if (st.is_dir)
		return err_set(e, -EISDIR,
			       "'%s' is a folder, but the dataset needs a file of that name: "
			       "remove the folder",
			       path);
	*bytes += st.bytes;
	return st.bytes == d->format->sidecar_bytes(f, which);
}

int sidecars_whole(const struct dataset *d, const struct io *io, const char *path,
		   const struct file_spec *f, uint64_t *bytes, struct err *e)
{
	char name[SIDECAR_PATH_MAX];
	int whole = 1;

	for (uint32_t i = 0; i < d->format->sidecars; i++) {
		int rc = path_of(d, path, i, name, e);

		if (rc == 0)
			rc = is_whole(d, io, name, f, i, bytes, e);
		if (rc < 0)
			return rc;
		whole = whole && rc;
	}
	return whole;
}

static int write_one(const struct dataset *d, struct each_worker *w, struct store_batch *batch,
		     const char *path, const struct file_spec *f, uint32_t which, struct err *e)
{
	int rc = store_batch_open(batch, &w->io, path, w->blob, e);

	if (rc < 0)
		return rc;
	rc = d->format->sidecar_write(&w->io, w->blob, path, f, which, w->scratch, w->scratch_bytes,
				      e);
	return store_batch_close(batch, &w->io, w->blob, rc, NULL, e);
}

int sidecars_write(const struct dataset *d, struct each_worker *w, struct store_batch *batch,
		   const struct file_spec *f, bool missing, struct err *e)
{
	char name[SIDECAR_PATH_MAX];
	uint64_t bytes = 0;

	for (uint32_t i = 0; i < d->format->sidecars; i++) {
		int rc = path_of(d, w->path, i, name, e);

		if (rc == 0 && missing)
			rc = is_whole(d, &w->io, name, f, i, &bytes, e);
		if (rc == 0)
			rc = write_one(d, w, batch, name, f, i, e);
		if (rc < 0)
			return rc;
	}
	return 0;
}

int sidecars_verify(const struct dataset *d, struct each_worker *w, const struct file_spec *f,
		    struct err *e)
{
	char name[SIDECAR_PATH_MAX];
	int rc = 0;

	for (uint32_t i = 0; i < d->format->sidecars && rc == 0; i++) {
		rc = path_of(d, w->path, i, name, e);
		if (rc == 0)
			rc = d->format->sidecar_verify(&w->io, name, f, i, w->scratch,
						       w->scratch_bytes, e);
	}
	return rc;
}

int sidecars_remove(const struct dataset *d, struct store *store, const char *path, struct err *e)
{
	char name[SIDECAR_PATH_MAX];
	int rc = 0;

	for (uint32_t i = 0; i < d->format->sidecars && rc == 0; i++) {
		rc = path_of(d, path, i, name, e);
		if (rc == 0)
			rc = store_remove(store, name, e);
		if (rc == -ENOENT || rc == -ENOTDIR)
			rc = 0;
	}
	return rc;
}

/* Cuts the last component off. False when none is left. */
static bool cut(char *path)
{
	char *slash = strrchr(path, '/');

	if (!slash || slash == path)
		return false;
	*slash = '\0';
	return true;
}

int sidecar_folders(const struct dataset *d, struct store *store, const char *folder,
		    int (*fn)(struct store *s, const char *path, struct err *e), struct err *e)
{
	char any[DATASET_PATH_MAX + 8], path[SIDECAR_PATH_MAX], above[SIDECAR_PATH_MAX];

	snprintf(any, sizeof(any), "%s/any", folder);
	for (uint32_t i = 0; i < d->format->sidecars; i++) {
		int rc = path_of(d, any, i, path, e);

		if (rc < 0)
			return rc;
		if (!cut(path) || strcmp(path, folder) == 0)
			continue;
		rc = fn(store, path, e);
		memcpy(above, path, sizeof(path));
		if (rc == 0 && cut(above))
			rc = fn(store, above, e);
		if (rc < 0)
			return rc;
	}
	return 0;
}
