#pragma once
/* Companion files of a dataset's blobs (format.h): written before their blob gets its name, so that
 * they are there whenever it is. */
#include "dataset/each.h"
#include "store/batch.h"

/* Of all companions of one blob; UINT64_MAX when they are more than a 64-bit number can count. */
uint64_t sidecar_bytes(const struct dataset *d, const struct file_spec *f);
/* 1 when every companion of the blob at `path` is there with its size, else 0. Adds the sizes of
 * those that are there to *bytes. */
int sidecars_whole(const struct dataset *d, const struct io *io, const char *path,
		   const struct file_spec *f, uint64_t *bytes, struct err *e);
/* Writes the companions of the blob at w->path into the batch; with `missing` only those that are
 * not there with their size. w->blob is closed. */
int sidecars_write(const struct dataset *d, struct each_worker *w, struct store_batch *batch,
		   const struct file_spec *f, bool missing, struct err *e);
/* Compares every companion of the blob at w->path. */
int sidecars_verify(const struct dataset *d, struct each_worker *w, const struct file_spec *f,
		    struct err *e);
/* Removes every companion of the blob at `path`; those that are not there are no error. */
int sidecars_remove(const struct dataset *d, struct store *store, const char *path, struct err *e);
/* Calls fn for the folders that the companions of blobs in `folder` lie in, and for the folder
 * above each, where those are not `folder` itself. */
int sidecar_folders(const struct dataset *d, struct store *store, const char *folder,
		    int (*fn)(struct store *s, const char *path, struct err *e), struct err *e);
