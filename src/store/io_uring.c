/* Files of a mounted file system through io_uring: each queue has a ring of its own, and each
 * thread that reads or writes one request at a time another. All else is as in the posix store. */
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <liburing.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/abi.h"
#include "base/alloc.h"
#include "base/clock.h"
#include "store/async.h"
#include "store/posix.h"

/* What O_DIRECT may ask of offsets, sizes and memory; a file that wants more does not open. */
#define URING_ALIGN 4096u

struct uring_options {
	bool direct, sqpoll, registered_buffers;
	int64_t sqpoll_idle_ms;
};

struct uring {
	struct io_uring ring;
	const void *registered; /* buffers inside are known to the kernel; NULL: none */
	size_t registered_bytes;
	unsigned unsubmitted; /* requests that the kernel was not told of */
};

/* A thread's buffer for requests that O_DIRECT does not take as they are. */
#define BOUNCE_BYTES (1u << 20)

static const struct opt uring_rows[] = {
	STORE_OPTION("direct", struct uring_options, direct, OPT_BOOL, bool, "false",
		     "Whether files that are only read are opened with O_DIRECT, past the page "
		     "cache. Files that are written go through it."),
	STORE_OPTION("sqpoll", struct uring_options, sqpoll, OPT_BOOL, bool, "false",
		     "Whether a kernel thread polls each queue of requests, so that submitting "
		     "takes no system call; it uses a CPU of its own."),
	STORE_OPTION("sqpoll_idle_ms", struct uring_options, sqpoll_idle_ms, OPT_I64, int64_t,
		     "1000", "How long that thread polls without a request before it sleeps.",
		     .min = 1, .max = 1000000, .unit = "ms"),
	STORE_OPTION("registered_buffers", struct uring_options, registered_buffers, OPT_BOOL, bool,
		     "false",
		     "Whether the buffers of queues are registered with the kernel, so that their "
		     "pages need not be pinned for each request; they count against ulimit -l. It "
		     "helps with direct."),
};

/* ---- a ring ---- */

/* Linux moves at most this much in one request, in whole pages. */
#define REQUEST_MAX 0x7ffff000u
/* Completions looked at together. */
#define REAP_BATCH 64u

/* A ring may be mapped where another thread's has just been unmapped. The kernel orders the two,
 * but out of sight of the thread sanitizer; this lock shows it. */
static pthread_mutex_t mapping = PTHREAD_MUTEX_INITIALIZER;

static int cannot_open(int code, struct err *e)
{
	switch (-code) {
	case ENOSYS:
		return err_set(
			e, ERR_ABSENT,
			"this kernel has no io_uring (it requires Linux 5.1); use the store posix");
	case EPERM:
	case EACCES:
		return err_sys(
			e, -code,
			"io_uring is not permitted: the sysctl kernel.io_uring_disabled or a "
			"seccomp filter, such as a container's, may forbid it; allow it or use the "
			"store posix");
	case ENOMEM:
		return err_sys(e, -code,
			       "the kernel has no memory for an io_uring (before Linux 5.12 it "
			       "counts against the locked memory, ulimit -l)");
	case EMFILE:
	case ENFILE:
		return err_sys(e, -code,
			       "cannot open an io_uring, of which each thread that reads needs one "
			       "or two (ulimit -n)");
	default:
		return err_sys(e, -code, "cannot open an io_uring");
	}
}

/* Completions need no interrupt of the thread, as it comes and looks: newer kernels are told so. */
static int ring_init(struct uring *u, const struct uring_options *o, unsigned entries, bool poll)
{
	struct io_uring_params p = {.flags = IORING_SETUP_COOP_TASKRUN | IORING_SETUP_CLAMP};
	int rc;

	if (poll && o->sqpoll) {
		p.flags = IORING_SETUP_SQPOLL | IORING_SETUP_CLAMP;
		p.sq_thread_idle = (unsigned)o->sqpoll_idle_ms;
		return io_uring_queue_init_params(entries, &u->ring, &p);
	}
	rc = io_uring_queue_init_params(entries, &u->ring, &p);
	if (rc != -EINVAL)
		return rc;
	p = (struct io_uring_params){0};
	return io_uring_queue_init_params(entries, &u->ring, &p);
}

static void uring_close(struct uring *u)
{
	pthread_mutex_lock(&mapping);
	io_uring_queue_exit(&u->ring);
	pthread_mutex_unlock(&mapping);
}

/* ERR_ABSENT, or the system's code, in one sentence where the kernel has no io_uring, does not
 * allow it or has no room. `memory` (may be NULL) is registered if the options say so. */
static int uring_open(struct uring *u, const struct uring_options *o, unsigned entries, bool poll,
		      const void *memory, size_t memory_bytes, struct err *e)
{
	struct iovec all = {.iov_base = (void *)(uintptr_t)memory, .iov_len = memory_bytes};
	int rc;

	pthread_mutex_lock(&mapping);
	rc = ring_init(u, o, entries, poll);
	pthread_mutex_unlock(&mapping);
	u->registered = NULL;
	u->registered_bytes = 0;
	u->unsubmitted = 0;
	if (rc < 0)
		return cannot_open(rc, e);
	if (!o->registered_buffers || !memory || memory_bytes == 0)
		return 0;
	rc = io_uring_register_buffers(&u->ring, &all, 1);
	if (rc < 0) {
		uring_close(u);
		return err_sys(
			e, -rc,
			"cannot register %zu bytes of buffers with io_uring (each at most 1 GiB, "
			"and together at most the locked memory that ulimit -l allows); set "
			"storage.io_uring.registered_buffers to false to avoid registering them",
			memory_bytes);
	}
	u->registered = memory;
	u->registered_bytes = memory_bytes;
	return 0;
}

static bool is_registered(const struct uring *u, const char *p, size_t n)
{
	const char *from = u->registered;

	return from && p >= from && n <= u->registered_bytes &&
	       (size_t)(p - from) <= u->registered_bytes - n;
}

/* Queues what is left of a request: r->moved bytes of it are done. There is room. */
static void uring_put(struct uring *u, struct store_request *r)
{
	const struct posix_blob *pb = (const struct posix_blob *)r->blob;
	struct io_uring_sqe *sqe = io_uring_get_sqe(&u->ring);
	size_t left = r->n - r->moved;
	unsigned n = left < REQUEST_MAX ? (unsigned)left : REQUEST_MAX;
	char *p = (char *)r->buffer + r->moved;
	uint64_t at = r->offset + r->moved;

	assert(r->moved <= r->n);
	/* the polling thread may not have taken earlier ones yet */
	while (!sqe) {
		io_uring_submit(&u->ring);
		/* the library has a function for it since 2.0 */
		syscall(SYS_io_uring_enter, u->ring.ring_fd, 0, 0, IORING_ENTER_SQ_WAIT, NULL, 0);
		sqe = io_uring_get_sqe(&u->ring);
	}
	if (is_registered(u, p, n)) {
		if (r->write)
			io_uring_prep_write_fixed(sqe, pb->fd, p, n, at, 0);
		else
			io_uring_prep_read_fixed(sqe, pb->fd, p, n, at, 0);
	} else if (r->write) {
		io_uring_prep_write(sqe, pb->fd, p, n, at);
	} else {
		io_uring_prep_read(sqe, pb->fd, p, n, at);
	}
	io_uring_sqe_set_data(sqe, r);
	u->unsubmitted++;
}

static int ring_broken(int code, struct err *e)
{
	return err_sys(e, -code, "the io_uring no longer accepts requests");
}

static int uring_submit(struct uring *u, struct err *e)
{
	int rc;

	if (!u->unsubmitted)
		return 0;
	do {
		rc = io_uring_submit(&u->ring);
	} while (rc == -EINTR || rc == -EAGAIN || rc == -EBUSY);
	u->unsubmitted = 0;
	return rc < 0 ? ring_broken(rc, e) : 0;
}

/* Takes the result of one completion. True when the request is done. */
static bool request_complete(struct uring *u, struct store_request *r, int res)
{
	const struct posix_blob *pb = (const struct posix_blob *)r->blob;
	size_t left = r->n - r->moved;

	if (res == -EINTR || res == -EAGAIN) {
		uring_put(u, r);
		return false;
	}
	if (res < 0 || (res == 0 && r->write && left > 0)) {
		r->result =
			err_sys(&r->err, res < 0 ? -res : EIO, "%s %zu bytes at offset %llu failed",
				r->write ? "writing" : "reading", left,
				(unsigned long long)(r->offset + r->moved));
		return true;
	}
	r->moved += (size_t)res;
	if (r->moved < r->n && (r->write || !posix_at_end(pb, res, r->offset + r->moved))) {
		uring_put(u, r);
		return false;
	}
	r->result = (ssize_t)r->moved;
	return true;
}

/* As store_queue_ops.reap. Short requests are continued inside. */
static int uring_reap(struct uring *u, struct store_request **out, unsigned max, struct err *e)
{
	struct io_uring_cqe *cqe[REAP_BATCH];
	unsigned want = max < REAP_BATCH ? max : REAP_BATCH;
	int done = 0;

	while (done == 0) {
		unsigned n;
		int64_t now;
		int rc;

		n = io_uring_peek_batch_cqe(&u->ring, cqe, want);
		if (n == 0 || u->unsubmitted) {
			do {
				rc = io_uring_submit_and_wait(&u->ring, n ? 0 : 1);
			} while (rc == -EINTR || rc == -EAGAIN || rc == -EBUSY);
			u->unsubmitted = 0;
			if (rc < 0)
				return ring_broken(rc, e);
			n = io_uring_peek_batch_cqe(&u->ring, cqe, want);
		}
		now = clock_now_ns();
		for (unsigned i = 0; i < n; i++) {
			struct store_request *r = io_uring_cqe_get_data(cqe[i]);

			if (!request_complete(u, r, cqe[i]->res))
				continue;
			r->done_ns = now;
			out[done++] = r;
		}
		io_uring_cq_advance(&u->ring, n);
	}
	return done;
}

/* ---- the store ---- */

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
		       "the file system of '%s' does not support O_DIRECT; set "
		       "storage.io_uring.direct to false to read through the page cache",
		       path);
}

/* What is wrong with reading this file past the page cache. */
static int check_direct(struct posix_blob *pb, const char *path, struct err *e)
{
	struct statx sx = {0};
	unsigned mask = STATX_TYPE | STATX_SIZE | STATX_DIOALIGN;
	int rc;

	if (statx(pb->fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, mask, &sx) != 0)
		return err_sys(e, errno, "cannot open '%s'", path);
	rc = posix_settle(pb->fd, O_DIRECT, sx.stx_mode, path, e);
	if (rc < 0)
		return rc;
	if (sx.stx_mask & STATX_SIZE)
		pb->bytes = sx.stx_size;
	if (!(sx.stx_mask & STATX_DIOALIGN))
		return 0;
	if (statx_direct_offset_align(&sx) == 0)
		return no_direct(path, e);
	if (statx_direct_offset_align(&sx) > URING_ALIGN ||
	    statx_direct_memory_align(&sx) > URING_ALIGN)
		return err_set(e, -EINVAL,
			       "O_DIRECT on '%s' needs requests at multiples of %u bytes; at most "
			       "%u is supported",
			       path, statx_direct_offset_align(&sx), URING_ALIGN);
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
		return posix_not_opened(path, how, errno, e);
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
static ssize_t transfer_one(struct uring_store *s, struct blob *b, void *p, size_t n,
			    uint64_t offset, bool write, struct err *e)
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
		got = transfer_one(s, b, t->bounce, ask, at, false, e);
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
	return transfer_one(of(b->store), b, p, n, offset, false, e);
}

static ssize_t uring_pwrite(struct blob *b, const void *p, size_t n, uint64_t offset, struct err *e)
{
	if (n == 0)
		return 0;
	return transfer_one(of(b->store), b, (void *)(uintptr_t)p, n, offset, true, e);
}

/* ---- queues of requests ---- */

/* From this depth on, a quarter of it is submitted at once: what came back together would otherwise
 * leave the device with nothing to do until all of it was handled. */
#define DEEP 16u

struct uring_queue {
	struct store_queue base;
	struct uring ring;
	unsigned burst; /* as many do not wait for the next reaping; 0: any number does */
};

static struct uring_queue *queue_of(struct store_queue *q)
{
	return (struct uring_queue *)q;
}

/* The rings' pages, which the kernel takes, are counted too: 64 bytes an entry to submit and 16 for
 * each of twice as many completions. */
static uint64_t queue_bytes(const struct store *s, unsigned depth, bool objects)
{
	(void)objects;
	(void)s;
	return sizeof(struct uring_queue) + 8192u + depth * (64u + 2u * 16u + 4u) * 2u;
}

static uint32_t queue_align(const struct store *s)
{
	return of(s)->options.direct ? URING_ALIGN : 1;
}

static int queue_create(struct store_queue **out, struct store *s,
			const struct store_queue_config *config, struct err *e)
{
	struct uring_queue *q = try_calloc(1, sizeof(*q), "a queue of requests", e);
	int rc;

	if (!q)
		return -ENOMEM;
	rc = uring_open(&q->ring, &of(s)->options, config->depth, true, config->memory,
			config->memory_bytes, e);
	if (rc < 0) {
		free(q);
		return rc;
	}
	q->burst = config->depth >= DEEP ? config->depth / 4 : 0;
	*out = &q->base;
	return 0;
}

static void queue_destroy(struct store_queue *q)
{
	struct store_request *r[REAP_BATCH];

	/* what the kernel has must come back before its memory may go */
	while (q->in_flight > 0) {
		int n = uring_reap(&queue_of(q)->ring, r, REAP_BATCH, NULL);

		if (n < 0)
			break;
		q->in_flight -= (unsigned)n;
	}
	uring_close(&queue_of(q)->ring);
	free(q);
}

static int queue_submit(struct store_queue *q, struct store_request *r, struct err *e)
{
	struct uring_queue *u = queue_of(q);

	(void)e;
	uring_put(&u->ring, r);
	/* a failure is told by the next reaping: for everyone the request is in flight */
	if (u->burst && u->ring.unsubmitted >= u->burst)
		uring_submit(&u->ring, NULL);
	return 0;
}

static int queue_flush(struct store_queue *q, struct err *e)
{
	return uring_submit(&queue_of(q)->ring, e);
}

static int queue_reap(struct store_queue *q, struct store_request **out, unsigned max,
		      struct err *e)
{
	return uring_reap(&queue_of(q)->ring, out, max, e);
}

static const struct store_queue_ops store_queue_uring = {
	.bytes = queue_bytes,
	.align = queue_align,
	.create = queue_create,
	.destroy = queue_destroy,
	.submit = queue_submit,
	.flush = queue_flush,
	.reap = queue_reap,
};

const struct store_ops store_io_uring = {
	.is.name = "io_uring",
	.is.help = "files of a mounted file system through io_uring: reader.queue_depth requests "
		   "in flight for each worker, without a thread for each",
	.is.flags = STORE_HAS_FILES | STORE_UNCOUNTED,
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
	POSIX_NAME_OPS,
	.map = posix_map,
	.drop = posix_drop,
	.queue = &store_queue_uring,
};
