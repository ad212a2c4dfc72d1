/* Hands operations down to the store below, for shims that leave them alone. */
#include "store/shim.h"

int shim_open(struct store *s, const char *path, unsigned how, struct blob *b, struct err *e)
{
	struct blob *below;

	b->store = s;
	below = shim_below(b);
	below->store = s->lower;
	return s->lower->ops->open(s->lower, path, how, below, e);
}

int shim_close(struct blob *b, struct err *e)
{
	return b->store->lower->ops->close(shim_below(b), e);
}

ssize_t shim_pread(struct blob *b, void *p, size_t n, uint64_t offset, struct err *e)
{
	return b->store->lower->ops->pread(shim_below(b), p, n, offset, e);
}

ssize_t shim_pwrite(struct blob *b, const void *p, size_t n, uint64_t offset, struct err *e)
{
	return b->store->lower->ops->pwrite(shim_below(b), p, n, offset, e);
}

ssize_t shim_preadv(struct blob *b, const struct iovec *v, int count, uint64_t offset,
		    struct err *e)
{
	/* not counted: the request was, above the shim */
	return io_preadv(NULL, IO_DATA, shim_below(b), v, count, offset, e);
}

ssize_t shim_pwritev(struct blob *b, const struct iovec *v, int count, uint64_t offset,
		     struct err *e)
{
	return io_pwritev(NULL, shim_below(b), v, count, offset, e);
}

int shim_sync(struct blob *b, struct err *e)
{
	return b->store->lower->ops->sync(shim_below(b), e);
}

int shim_stat_blob(struct blob *b, struct store_stat *out, struct err *e)
{
	return b->store->lower->ops->stat_blob(shim_below(b), out, e);
}

int shim_stat(struct store *s, const char *path, struct store_stat *out, struct err *e)
{
	return s->lower->ops->stat(s->lower, path, out, e);
}

int shim_mkdirs(struct store *s, const char *path, struct err *e)
{
	return s->lower->ops->mkdirs(s->lower, path, e);
}

int shim_list(struct store *s, const char *path, store_list_fn fn, void *arg, struct err *e)
{
	return s->lower->ops->list(s->lower, path, fn, arg, e);
}

int shim_remove(struct store *s, const char *path, struct err *e)
{
	return s->lower->ops->remove(s->lower, path, e);
}

int shim_rename(struct store *s, const char *from, const char *to, struct err *e)
{
	return s->lower->ops->rename(s->lower, from, to, e);
}

int shim_sync_dir(struct store *s, const char *path, struct err *e)
{
	return s->lower->ops->sync_dir(s->lower, path, e);
}

int shim_space(struct store *s, const char *path, uint64_t *bytes, uint64_t *files, struct err *e)
{
	return s->lower->ops->space(s->lower, path, bytes, files, e);
}
