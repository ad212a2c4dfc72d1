#pragma once
/* What the stores over a mounted file system share: their blobs begin with a struct posix_blob, and
 * all that is not reading or writing bytes is the same for them. Contracts as in store/store.h. */
#include <stdbool.h>
#include <sys/uio.h>

#include "store/store.h"

struct posix_blob {
	struct blob base;
	int fd;
	/* Of a regular file opened for reading, as last seen; UINT64_MAX: unknown. */
	uint64_t bytes;
};

void posix_destroy(struct store *s);
/* The flags of open(2) for STORE_*. */
int posix_open_flags(unsigned how);
/* open(2), again after EINTR; errno says why it is negative. Opening never waits for a FIFO: a
 * descriptor that is to be read or written is handed to posix_settle when its type is known. With
 * O_CREAT the file is new, and no link is followed: what had its name is removed, but for folders
 * and devices, and -EEXIST with O_EXCL. */
int posix_open_fd(const char *path, int flags);
/* Of what was opened by posix_open_fd with these flags, and is of that type: a folder, a FIFO, a
 * device, ... is refused with a sentence. The descriptor is closed by the caller then. */
int posix_settle(int fd, int flags, mode_t mode, const char *path, struct err *e);
/* The sentence for a failed posix_open_fd. A link that leads to nothing is not an absent file. */
int posix_not_opened(const char *path, unsigned how, int code, struct err *e);
int posix_open(struct store *s, const char *path, unsigned how, struct blob *b, struct err *e);
int posix_close(struct blob *b, struct err *e);
/* Whether a short read of `r` bytes ended where the file ends. Elsewhere something interrupted it
 * and the rest must be asked for; at the end, asking again would be a request that the emulated
 * library does not make. The size seen at opening is enough where the read reached it. */
bool posix_at_end(const struct posix_blob *pb, ssize_t r, uint64_t end);
/* The pieces of `v` that lie behind the first `done` bytes, `max` at most; *n gets their bytes.
 * Returns how many. */
int posix_pieces_after(const struct iovec *v, int count, size_t done, struct iovec *out, int max,
		       size_t *n);
ssize_t posix_pread(struct blob *b, void *p, size_t n, uint64_t offset, struct err *e);
ssize_t posix_pwrite(struct blob *b, const void *p, size_t n, uint64_t offset, struct err *e);
int posix_sync(struct blob *b, struct err *e);
int posix_stat_blob(struct blob *b, struct store_stat *out, struct err *e);
int posix_stat(struct store *s, const char *path, struct store_stat *out, struct err *e);
int posix_mkdirs(struct store *s, const char *path, struct err *e);
int posix_list(struct store *s, const char *path, store_list_fn fn, void *arg, struct err *e);
int posix_remove(struct store *s, const char *path, struct err *e);
int posix_rename(struct store *s, const char *from, const char *to, struct err *e);
int posix_sync_dir(struct store *s, const char *path, struct err *e);
int posix_space(struct store *s, const char *path, uint64_t *bytes, uint64_t *files, struct err *e);
int posix_descriptor(struct blob *b);
int posix_map(struct blob *b, uint64_t bytes, const void **at, struct err *e);
int posix_drop(struct blob *b, uint64_t offset, uint64_t bytes, struct err *e);

/* The members of a row that are the same for all of them. */
#define POSIX_NAME_OPS                                                                             \
	.descriptor = posix_descriptor, .sync = posix_sync, .stat_blob = posix_stat_blob,          \
	.stat = posix_stat, .mkdirs = posix_mkdirs, .list = posix_list, .remove = posix_remove,    \
	.rename = posix_rename, .sync_dir = posix_sync_dir, .space = posix_space
