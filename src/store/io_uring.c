/* Files of a mounted file system through io_uring: each queue has a ring of its own, and each
 * thread that reads or writes one request at a time another. All else is as in the posix store. */
#include "store/io_uring.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"

/* A thread's buffer for requests that O_DIRECT does not take as they are. */
#define BOUNCE_BYTES (1u << 20)

#define FIELD(name, type) OPT_FIELD(struct uring_options, name, type)

static const struct opt uring_rows[] = {
	{.key = "direct",
	 .type = OPT_BOOL,
	 .offset = FIELD(direct, bool),
	 .def = "false",
	 .help = "Whether files that are only read are opened with O_DIRECT, past the page cache. "
		 "Files that are written go through it.",
	 .flags = OPT_STOKER},
	{.key = "sqpoll",
	 .type = OPT_BOOL,
	 .offset = FIELD(sqpoll, bool),
	 .def = "false",
	 .help = "Whether a thread of the kernel polls each queue of requests, so that submitting "
		 "takes no system call; it uses a processor of its own.",
	 .flags = OPT_STOKER},
	{.key = "sqpoll_idle_ms",
	 .type = OPT_I64,
	 .offset = FIELD(sqpoll_idle_ms, int64_t),
	 .def = "1000",
	 .min = 1,
	 .max = 1000000,
	 .unit = "ms",
	 .help = "How long that thread polls without a request before it sleeps.",
	 .flags = OPT_STOKER},
	{.key = "registered_buffers",
	 .type = OPT_BOOL,
	 .offset = FIELD(registered_buffers, bool),
	 .def = "false",
	 .help = "Whether the buffers of queues are registered with the kernel, which then need "
		 "not pin their pages for each request; they count against ulimit -l. It helps "
		 "with direct.",
	 .flags = OPT_STOKER},
};

struct uring_store {
	struct store base;
	struct uring_options options;
	pthread_key_t key;    /* a thread's own ring */
	pthread_mutex_t lock; /* of the list; taken when a thread comes or goes */
	struct thread_ring *first;
};

struct thread_ring {
	struct uring ring;
	struct uring_store *store;
	struct thread_ring *prev, *next;
	unsigned char *bounce; /* NULL without direct */
};

struct uring_blob {
	struct posix_blob file;
	bool direct;
};

static struct uring_store *of(const struct store *s)
{
	return (struct uring_store *)(uintptr_t)s;
}

const struct uring_options *uring_options_of(const struct store *s)
{
	return &of(s)->options;
}

static void thread_ring_free(struct thread_ring *t)
{
	uring_close(&t->ring);
	buffer_free(t->bounce, BOUNCE_BYTES);
	free(t);
}

static void thread_ends(void *p)
{
	struct thread_ring *t = p;
	struct uring_store *s = t->store;

	pthread_mutex_lock(&s->lock);
	if (t->prev)
		t->prev->next = t->next;
	else
		s->first = t->next;
	if (t->next)
		t->next->prev = t->prev;
	pthread_mutex_unlock(&s->lock);
	thread_ring_free(t);
}

/* The calling thread's ring, which its first request makes. */
static struct thread_ring *thread_ring_of(struct uring_store *s, struct err *e)
{
	struct thread_ring *t = pthread_getspecific(s->key);
	int rc = 0;

	if (t)
		return t;
	t = try_calloc(1, sizeof(*t), "an io_uring", e);
	if (!t)
		return NULL;
	if (s->options.direct)
		t->bounce = buffer_alloc(BOUNCE_BYTES, "a buffer for O_DIRECT", e);
	if (!s->options.direct || t->bounce)
		rc = uring_open(&t->ring, &s->options, 2, false, NULL, 0, e);
	if (rc < 0 || (s->options.direct && !t->bounce)) {
		buffer_free(t->bounce, BOUNCE_BYTES);
		free(t);
		return NULL;
	}
	t->store = s;
	pthread_mutex_lock(&s->lock);
	t->next = s->first;
	if (t->next)
		t->next->prev = t;
	s->first = t;
	pthread_mutex_unlock(&s->lock);
	pthread_setspecific(s->key, t);
	return t;
}

/* Makes one ring at once, so that a kernel that has none is found out before anything begins. */
static int uring_create(struct store **out, const void *config, struct store *lower, struct err *e)
{
	struct uring_store *s = xcalloc(1, sizeof(*s));
	struct uring probe;
	int rc;

	(void)lower;
	s->options = *(const struct uring_options *)config;
	rc = uring_open(&probe, &s->options, 2, true, NULL, 0, e);
	if (rc == 0) {
		uring_close(&probe);
		rc = -pthread_key_create(&s->key, thread_ends);
		if (rc < 0)
			err_sys(e, -rc, "too many stores are open");
	}
	if (rc < 0) {
		free(s);
		return rc;
	}
	pthread_mutex_init(&s->lock, NULL);
	*out = &s->base;
	return 0;
}

static void uring_destroy(struct store *base)
{
	struct uring_store *s = of(base);

	pthread_key_delete(s->key);
	while (s->first) {
		struct thread_ring *t = s->first;

		s->first = t->next;
		thread_ring_free(t);
	}
	pthread_mutex_destroy(&s->lock);
	free(s);
}

static int no_direct(const char *path, struct err *e)
{
	return err_set(e, -EINVAL,
		       "the file system of '%s' does not support O_DIRECT on it; "
		       "storage.io_uring.direct: false reads through the page cache",
		       path);
}

/* What is wrong with reading this file past the page cache. */
static int check_direct(struct posix_blob *pb, const char *path, struct err *e)
{
	struct statx sx = {0};
	unsigned mask = STATX_TYPE | STATX_SIZE;

#ifdef STATX_DIOALIGN
	mask |= STATX_DIOALIGN;
#endif
	if (statx(pb->fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, mask, &sx) != 0)
		return err_sys(e, errno, "cannot open '%s'", path);
	if (S_ISDIR(sx.stx_mode))
		return err_sys(e, EISDIR, "cannot open '%s'", path);
	if (S_ISREG(sx.stx_mode) && (sx.stx_mask & STATX_SIZE))
		pb->bytes = sx.stx_size;
#ifdef STATX_DIOALIGN
	if (!(sx.stx_mask & STATX_DIOALIGN))
		return 0;
	if (sx.stx_dio_offset_align == 0)
		return no_direct(path, e);
	if (sx.stx_dio_offset_align > URING_ALIGN || sx.stx_dio_mem_align > URING_ALIGN)
		return err_set(e, -EINVAL,
			       "O_DIRECT on '%s' needs requests at multiples of %u bytes; up to %u "
			       "is possible here",
			       path, (unsigned)sx.stx_dio_offset_align, URING_ALIGN);
#endif
	return 0;
}

static int open_direct(struct store *s, const char *path, unsigned how, struct blob *b,
		       struct err *e)
{
	struct posix_blob *pb = (struct posix_blob *)b;
	int rc;

	pb->bytes = UINT64_MAX;
	pb->fd = posix_open_fd(path, posix_open_flags(how) | O_DIRECT);
	if (pb->fd < 0 && errno == EINVAL) {
		/* a folder gets another sentence than a file that cannot be read in this way */
		rc = posix_open(s, path, how, b, e);
		if (rc == 0)
			close(pb->fd);
		return rc < 0 ? rc : no_direct(path, e);
	}
	if (pb->fd < 0)
		return err_sys(e, errno, "cannot open '%s'", path);
	rc = check_direct(pb, path, e);
	if (rc < 0)
		close(pb->fd);
	return rc;
}

static int uring_open_blob(struct store *s, const char *path, unsigned how, struct blob *b,
			   struct err *e)
{
	struct uring_blob *ub = (struct uring_blob *)b;

	ub->direct = of(s)->options.direct && !(how & STORE_WRITE);
	return ub->direct ? open_direct(s, path, how, b, e) : posix_open(s, path, how, b, e);
}

/* One request, waited for. */
static ssize_t transfer(struct uring_store *s, struct blob *b, void *p, size_t n, uint64_t offset,
			bool write, struct err *e)
{
	struct thread_ring *t = thread_ring_of(s, e);
	struct store_request r, *done;

	if (!t)
		return -EIO;
	r.blob = b;
	r.buffer = p;
	r.n = n;
	r.offset = offset;
	r.write = write;
	r.moved = 0;
	uring_put(&t->ring, &r);
	if (uring_reap(&t->ring, &done, 1, e) < 0)
		return -EIO;
	if (r.result < 0)
		return err_set(e, (int)r.result, "%s", r.err.text);
	return r.result;
}

/* Reads the whole blocks that hold the range, piece by piece. */
static ssize_t read_bounced(struct uring_store *s, struct blob *b, void *p, size_t n,
			    uint64_t offset, struct err *e)
{
	struct thread_ring *t = thread_ring_of(s, e);
	size_t done = 0;

	if (!t)
		return -EIO;
	while (done < n) {
		uint64_t at = (offset + done) & ~(uint64_t)(URING_ALIGN - 1);
		size_t skip = (size_t)(offset + done - at), left = n - done;
		size_t ask = left < BOUNCE_BYTES - skip ? skip + left : BOUNCE_BYTES;
		ssize_t got;

		ask = (ask + URING_ALIGN - 1) & ~(size_t)(URING_ALIGN - 1);
		got = transfer(s, b, t->bounce, ask, at, false, e);
		if (got < 0)
			return got;
		if ((size_t)got <= skip)
			break;
		if (left > (size_t)got - skip)
			left = (size_t)got - skip;
		memcpy((char *)p + done, t->bounce + skip, left);
		done += left;
		if ((size_t)got < ask)
			break;
	}
	return (ssize_t)done;
}

static ssize_t uring_pread(struct blob *b, void *p, size_t n, uint64_t offset, struct err *e)
{
	bool aligned = ((offset | n | (uintptr_t)p) & (URING_ALIGN - 1)) == 0;

	if (n == 0)
		return 0;
	if (((struct uring_blob *)b)->direct && !aligned)
		return read_bounced(of(b->store), b, p, n, offset, e);
	return transfer(of(b->store), b, p, n, offset, false, e);
}

static ssize_t uring_pwrite(struct blob *b, const void *p, size_t n, uint64_t offset, struct err *e)
{
	if (n == 0)
		return 0;
	return transfer(of(b->store), b, (void *)(uintptr_t)p, n, offset, true, e);
}

const struct store_ops store_io_uring = {
	.is.name = "io_uring",
	.is.help = "files of a mounted file system through io_uring: as many requests at once as "
		   "reader.queue_depth says, without a thread for each",
	.is.flags = STORE_HAS_FILES,
	.is.options = uring_rows,
	.is.option_count = sizeof(uring_rows) / sizeof(uring_rows[0]),
	.is.config_bytes = sizeof(struct uring_options),
	.blob_bytes = sizeof(struct uring_blob),
	.create = uring_create,
	.destroy = uring_destroy,
	.open = uring_open_blob,
	.close = posix_close,
	.pread = uring_pread,
	.pwrite = uring_pwrite,
	.sync = posix_sync,
	.stat_blob = posix_stat_blob,
	.stat = posix_stat,
	.mkdirs = posix_mkdirs,
	.list = posix_list,
	.remove = posix_remove,
	.rename = posix_rename,
	.sync_dir = posix_sync_dir,
	.space = posix_space,
	.map = posix_map,
	.drop = posix_drop,
	.queue = &store_queue_uring,
};
