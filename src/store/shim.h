#pragma once
/* For stores that stand over another one. A shim's blob is followed, in the same block, by the blob
 * of the store below. The shim_* functions below hand an operation down unchanged; they fit the
 * table of any shim whose own blob part is named by its ops. */
#include "store/store.h"

static inline size_t shim_align(size_t n)
{
	return (n + 15) & ~(size_t)15;
}

/* The blob of the store below `b`. */
static inline struct blob *shim_below(struct blob *b)
{
	return (struct blob *)((char *)b + shim_align(b->store->ops->blob_bytes));
}

int shim_open(struct store *s, const char *path, unsigned how, struct blob *b, struct err *e);
int shim_close(struct blob *b, struct err *e);
ssize_t shim_pread(struct blob *b, void *p, size_t n, uint64_t offset, struct err *e);
ssize_t shim_pwrite(struct blob *b, const void *p, size_t n, uint64_t offset, struct err *e);
/* Piece by piece where the store below has no requests of many pieces. */
ssize_t shim_preadv(struct blob *b, const struct iovec *v, int count, uint64_t offset,
		    struct err *e);
ssize_t shim_pwritev(struct blob *b, const struct iovec *v, int count, uint64_t offset,
		     struct err *e);
int shim_sync(struct blob *b, struct err *e);
int shim_stat_blob(struct blob *b, struct store_stat *out, struct err *e);
int shim_stat(struct store *s, const char *path, struct store_stat *out, struct err *e);
int shim_mkdirs(struct store *s, const char *path, struct err *e);
int shim_list(struct store *s, const char *path, store_list_fn fn, void *arg, struct err *e);
int shim_remove(struct store *s, const char *path, struct err *e);
int shim_rename(struct store *s, const char *from, const char *to, struct err *e);
int shim_sync_dir(struct store *s, const char *path, struct err *e);
int shim_space(struct store *s, const char *path, uint64_t *bytes, uint64_t *files, struct err *e);
