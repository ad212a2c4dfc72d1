/* Whole blobs in this process's memory: for tests, and for measuring what the client itself costs.
 */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "store/mem_body.h"
#include "store/store.h"

struct memory_config {
	int64_t size;
	int64_t block_bytes;
};

static const struct opt memory_options[] = {
	STORE_OPTION("size", struct memory_config, size, OPT_I64, int64_t, "0",
		     "The most that all blobs can hold together; a write beyond it fails as on a "
		     "full disk; 0 sets no limit.",
		     .max = 1e18, .unit = "bytes"),
	STORE_OPTION("block_bytes", struct memory_config, block_bytes, OPT_I64, int64_t, "4096",
		     "The preferred request size that the store reports (st_blksize), by which "
		     "libraries size their reads.",
		     .min = 1, .max = 1 << 30, .unit = "bytes"),
};

struct memory_store {
	struct store base;
	struct mem_space space;
	uint32_t block_bytes;
	pthread_rwlock_t lock; /* the tree; not the bytes */
	struct mem_tree tree;
};

struct memory_blob {
	struct blob base;
	struct mem_body *body;
	unsigned how;
};

static struct memory_store *of(struct store *s)
{
	return (struct memory_store *)s;
}

static int memory_create(struct store **out, const void *config, struct store *lower, struct err *e)
{
	const struct memory_config *c = config;
	struct memory_store *m = xcalloc(1, sizeof(*m));

	(void)lower;
	(void)e;
	m->space.limit = (uint64_t)c->size;
	m->block_bytes = (uint32_t)c->block_bytes;
	pthread_rwlock_init(&m->lock, NULL);
	mem_tree_init(&m->tree);
	*out = &m->base;
	return 0;
}

static void memory_destroy(struct store *s)
{
	mem_tree_release(&of(s)->tree);
	pthread_rwlock_destroy(&of(s)->lock);
	free(s);
}

/* Truncating gives the name a new body: whoever has the old one open keeps reading it, as after a
 * removal, and never meets freed memory. */
static int create_body(struct memory_store *m, const char *path, struct mem_body **out)
{
	struct mem_body *body = mem_body_new(&m->space);
	int rc;

	mem_body_ref(body);
	pthread_rwlock_wrlock(&m->lock);
	rc = mem_tree_put(&m->tree, path, body);
	pthread_rwlock_unlock(&m->lock);
	if (rc < 0) {
		mem_body_unref(body);
		mem_body_unref(body);
		return rc;
	}
	*out = body;
	return 0;
}

static int find_body(struct memory_store *m, const char *path, struct mem_body **out)
{
	struct mem_node *n = NULL;
	int rc;

	pthread_rwlock_rdlock(&m->lock);
	rc = mem_tree_find(&m->tree, path, &n);
	if (rc == 0 && !n->body)
		rc = -EISDIR;
	if (rc == 0) {
		mem_body_ref(n->body);
		*out = n->body;
	}
	pthread_rwlock_unlock(&m->lock);
	return rc;
}

static int memory_open(struct store *s, const char *path, unsigned how, struct blob *b,
		       struct err *e)
{
	struct memory_blob *mb = (struct memory_blob *)b;
	bool create = how & STORE_CREATE;
	int rc = create ? create_body(of(s), path, &mb->body) : find_body(of(s), path, &mb->body);

	mb->how = how;
	if (rc < 0)
		return err_sys(e, -rc, create ? "cannot create '%s'" : "cannot open '%s'", path);
	return 0;
}

static int memory_close(struct blob *b, struct err *e)
{
	struct memory_blob *mb = (struct memory_blob *)b;

	(void)e;
	mem_body_unref(mb->body);
	mb->body = NULL;
	return 0;
}

static ssize_t memory_pread(struct blob *b, void *p, size_t n, uint64_t offset, struct err *e)
{
	struct memory_blob *mb = (struct memory_blob *)b;

	if (!(mb->how & STORE_READ))
		return err_set(e, -EBADF, "reading from a blob that was opened for writing only");
	return (ssize_t)mem_body_read(mb->body, p, n, offset);
}

static ssize_t memory_pwrite(struct blob *b, const void *p, size_t n, uint64_t offset,
			     struct err *e)
{
	struct memory_blob *mb = (struct memory_blob *)b;
	int rc;

	if (!(mb->how & STORE_WRITE))
		return err_set(e, -EBADF, "writing to a blob that was opened for reading only");
	rc = mem_body_write(mb->body, p, n, offset, e);
	return rc < 0 ? rc : (ssize_t)n;
}

static int memory_sync(struct blob *b, struct err *e)
{
	(void)b;
	(void)e;
	return 0;
}

static void fill_stat(const struct memory_store *m, struct mem_body *body, int64_t folder_mtime_ns,
		      struct store_stat *out)
{
	memset(out, 0, sizeof(*out));
	out->is_dir = !body;
	out->block_bytes = m->block_bytes;
	out->mtime_ns = body ? atomic_load_explicit(&body->mtime_ns, memory_order_relaxed)
			     : folder_mtime_ns;
	out->bytes = body ? atomic_load_explicit(&body->size, memory_order_acquire) : 0;
}

static int memory_stat_blob(struct blob *b, struct store_stat *out, struct err *e)
{
	(void)e;
	fill_stat(of(b->store), ((struct memory_blob *)b)->body, 0, out);
	return 0;
}

static int memory_stat(struct store *s, const char *path, struct store_stat *out, struct err *e)
{
	struct memory_store *m = of(s);
	struct mem_node *n = NULL;
	int rc;

	pthread_rwlock_rdlock(&m->lock);
	rc = mem_tree_find(&m->tree, path, &n);
	if (rc == 0)
		fill_stat(m, n->body, n->mtime_ns, out);
	pthread_rwlock_unlock(&m->lock);
	return rc < 0 ? err_sys(e, -rc, "cannot find '%s'", path) : 0;
}

static int memory_mkdirs(struct store *s, const char *path, struct err *e)
{
	int rc;

	pthread_rwlock_wrlock(&of(s)->lock);
	rc = mem_tree_mkdirs(&of(s)->tree, path);
	pthread_rwlock_unlock(&of(s)->lock);
	if (rc == -ENOTDIR)
		return err_set(e, rc, "cannot create the folder '%s': a part of it is a file",
			       path);
	return rc < 0 ? err_sys(e, -rc, "cannot create the folder '%s'", path) : 0;
}

/* One byte 'd' or 'f', the name, a NUL, for each entry. */
static int copy_names(struct memory_store *m, const char *path, struct buf *names)
{
	struct mem_node *n = NULL;
	int rc;

	pthread_rwlock_rdlock(&m->lock);
	rc = mem_tree_find(&m->tree, path, &n);
	if (rc == 0 && n->body)
		rc = -ENOTDIR;
	if (rc == 0 && n->first) {
		const struct mem_node *entry = n->first;

		do {
			buf_putc(names, entry->body ? 'f' : 'd');
			buf_append(names, entry->name, strlen(entry->name) + 1);
			entry = entry->next;
		} while (entry != n->first);
	}
	pthread_rwlock_unlock(&m->lock);
	return rc;
}

/* From a copy, so that `fn` may use the store. */
static int memory_list(struct store *s, const char *path, store_list_fn fn, void *arg,
		       struct err *e)
{
	struct buf names = {0};
	int rc = copy_names(of(s), path, &names);

	if (rc < 0)
		err_sys(e, -rc, "cannot list the folder '%s'", path);
	for (size_t at = 0; rc >= 0 && at < names.len; at += strlen(names.data + at) + 1)
		rc = fn(arg, names.data + at + 1, names.data[at] == 'd');
	buf_release(&names);
	return rc < 0 ? rc : 0;
}

static int memory_remove(struct store *s, const char *path, struct err *e)
{
	int rc;

	pthread_rwlock_wrlock(&of(s)->lock);
	rc = mem_tree_remove(&of(s)->tree, path);
	pthread_rwlock_unlock(&of(s)->lock);
	return rc < 0 ? err_sys(e, -rc, "cannot remove '%s'", path) : 0;
}

static int memory_rename(struct store *s, const char *from, const char *to, struct err *e)
{
	int rc;

	pthread_rwlock_wrlock(&of(s)->lock);
	rc = mem_tree_rename(&of(s)->tree, from, to);
	pthread_rwlock_unlock(&of(s)->lock);
	return rc < 0 ? err_sys(e, -rc, "cannot rename '%s' to '%s'", from, to) : 0;
}

static int memory_sync_dir(struct store *s, const char *path, struct err *e)
{
	struct store_stat st = {0};
	int rc = memory_stat(s, path, &st, e);

	if (rc == 0 && !st.is_dir)
		rc = err_sys(e, ENOTDIR, "cannot sync the folder '%s'", path);
	return rc;
}

static int memory_space(struct store *s, const char *path, uint64_t *bytes, uint64_t *files,
			struct err *e)
{
	const struct mem_space *space = &of(s)->space;

	(void)path;
	(void)e;
	*bytes = UINT64_MAX;
	if (space->limit)
		*bytes = space->limit - atomic_load_explicit(&space->used, memory_order_relaxed);
	*files = UINT64_MAX;
	return 0;
}

const struct store_ops store_memory = {
	.is.name = "memory",
	.is.help = "blobs in this process's memory, lost when it ends: for trials without a disk "
		   "and for measuring the cost of the client; the dataset must be generated in the "
		   "same run",
	.is.flags = STORE_IS_VOLATILE,
	.is.options = memory_options,
	.is.option_count = sizeof(memory_options) / sizeof(memory_options[0]),
	.is.config_bytes = sizeof(struct memory_config),
	.blob_bytes = sizeof(struct memory_blob),
	.create = memory_create,
	.destroy = memory_destroy,
	.open = memory_open,
	.close = memory_close,
	.pread = memory_pread,
	.pwrite = memory_pwrite,
	.sync = memory_sync,
	.stat_blob = memory_stat_blob,
	.stat = memory_stat,
	.mkdirs = memory_mkdirs,
	.list = memory_list,
	.remove = memory_remove,
	.rename = memory_rename,
	.sync_dir = memory_sync_dir,
	.space = memory_space,
};
