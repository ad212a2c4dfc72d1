/* A store that keeps nothing: what is written is gone at once, and no name is ever there. Datasets
 * of any size can be written to it, and runs whose format reads nothing need no more. */
#include <errno.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "store/store.h"

#define BLOCK_BYTES 4096

struct synthetic_blob {
	struct blob base;
	uint64_t bytes; /* end of what was written */
};

static int absent_error(const char *path, struct err *e)
{
	return err_set(e, -ENOENT, "'%s': the synthetic store keeps nothing", path);
}

static int synthetic_create(struct store **out, const void *config, struct store *lower,
			    struct err *e)
{
	(void)config;
	(void)lower;
	(void)e;
	*out = xcalloc(1, sizeof(**out));
	return 0;
}

static void synthetic_destroy(struct store *s)
{
	free(s);
}

static int synthetic_open(struct store *s, const char *path, unsigned how, struct blob *b,
			  struct err *e)
{
	(void)s;
	if (!(how & STORE_CREATE))
		return absent_error(path, e);
	((struct synthetic_blob *)b)->bytes = 0;
	return 0;
}

static int synthetic_close(struct blob *b, struct err *e)
{
	(void)b;
	(void)e;
	return 0;
}

static ssize_t synthetic_pread(struct blob *b, void *p, size_t n, uint64_t offset, struct err *e)
{
	(void)b;
	(void)p;
	(void)n;
	(void)offset;
	return err_set(e, -EIO, "the synthetic store keeps no data that could be read");
}

static ssize_t synthetic_pwrite(struct blob *b, const void *p, size_t n, uint64_t offset,
				struct err *e)
{
	struct synthetic_blob *sb = (struct synthetic_blob *)b;
	uint64_t end;

	(void)p;
	if (__builtin_add_overflow(offset, (uint64_t)n, &end) || end > INT64_MAX)
		return err_set(e, -EFBIG, "a file of more than 2^63 - 1 bytes");
	if (end > sb->bytes)
		sb->bytes = end;
	return (ssize_t)n;
}

static int synthetic_sync(struct blob *b, struct err *e)
{
	(void)b;
	(void)e;
	return 0;
}

static int synthetic_stat_blob(struct blob *b, struct store_stat *out, struct err *e)
{
	(void)e;
	*out = (struct store_stat){.bytes = ((struct synthetic_blob *)b)->bytes,
				   .block_bytes = BLOCK_BYTES};
	return 0;
}

static int synthetic_stat(struct store *s, const char *path, struct store_stat *out, struct err *e)
{
	(void)s;
	(void)out;
	return absent_error(path, e);
}

/* Making a folder, removing and listing what is in it: there is nothing to do. */
static int synthetic_path(struct store *s, const char *path, struct err *e)
{
	(void)s;
	(void)path;
	(void)e;
	return 0;
}

static int synthetic_list(struct store *s, const char *path, store_list_fn fn, void *arg,
			  struct err *e)
{
	(void)fn;
	(void)arg;
	return synthetic_path(s, path, e);
}

static int synthetic_rename(struct store *s, const char *from, const char *to, struct err *e)
{
	(void)to;
	return synthetic_path(s, from, e);
}

static int synthetic_space(struct store *s, const char *path, uint64_t *bytes, uint64_t *files,
			   struct err *e)
{
	*bytes = UINT64_MAX;
	*files = UINT64_MAX;
	return synthetic_path(s, path, e);
}

const struct store_ops store_synthetic = {
	.is.name = "synthetic",
	.is.help =
		"discards what is written, so that only the client's own work takes time; every "
		"dataset counts as present; training needs dataset.format=synthetic, which reads "
		"nothing",
	.is.flags = STORE_KEEPS_NOTHING,
	.blob_bytes = sizeof(struct synthetic_blob),
	.create = synthetic_create,
	.destroy = synthetic_destroy,
	.open = synthetic_open,
	.close = synthetic_close,
	.pread = synthetic_pread,
	.pwrite = synthetic_pwrite,
	.sync = synthetic_sync,
	.stat_blob = synthetic_stat_blob,
	.stat = synthetic_stat,
	.mkdirs = synthetic_path,
	.list = synthetic_list,
	.remove = synthetic_path,
	.rename = synthetic_rename,
	.sync_dir = synthetic_path,
	.space = synthetic_space,
};
