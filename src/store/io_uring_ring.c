/* One ring of the io_uring store. */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "store/io_uring.h"

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
		return err_set(e, ERR_ABSENT,
			       "this kernel has no io_uring (it came with Linux 5.1); the store "
			       "posix works everywhere");
	case EPERM:
	case EACCES:
		return err_set(e, code,
			       "io_uring is forbidden here: by the sysctl kernel.io_uring_disabled "
			       "or by a seccomp filter, such as a container's; allow it there or "
			       "take the store posix");
	case ENOMEM:
		return err_sys(e, -code,
			       "the kernel has no room for an io_uring (before Linux 5.12 it "
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
static int init(struct uring *u, const struct uring_options *o, unsigned entries, bool poll)
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

int uring_open(struct uring *u, const struct uring_options *o, unsigned entries, bool poll,
	       const void *memory, size_t memory_bytes, struct err *e)
{
	struct iovec all = {.iov_base = (void *)(uintptr_t)memory, .iov_len = memory_bytes};
	int rc;

	pthread_mutex_lock(&mapping);
	rc = init(u, o, entries, poll);
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
		return err_sys(e, -rc,
			       "cannot register %zu bytes of buffers with io_uring (each at most 1 "
			       "GiB, and together at most the locked memory that ulimit -l "
			       "allows); storage.io_uring.registered_buffers: false does without",
			       memory_bytes);
	}
	u->registered = memory;
	u->registered_bytes = memory_bytes;
	return 0;
}

void uring_close(struct uring *u)
{
	pthread_mutex_lock(&mapping);
	io_uring_queue_exit(&u->ring);
	pthread_mutex_unlock(&mapping);
}

static bool is_registered(const struct uring *u, const char *p, size_t n)
{
	const char *from = u->registered;

	return from && p >= from && n <= u->registered_bytes &&
	       (size_t)(p - from) <= u->registered_bytes - n;
}

void uring_put(struct uring *u, struct store_request *r)
{
	const struct posix_blob *pb = (const struct posix_blob *)r->blob;
	struct io_uring_sqe *sqe = io_uring_get_sqe(&u->ring);
	size_t left = r->n - r->moved;
	unsigned n = left < REQUEST_MAX ? (unsigned)left : REQUEST_MAX;
	char *p = (char *)r->buffer + r->moved;
	uint64_t at = r->offset + r->moved;

	/* the polling thread may not have taken earlier ones yet */
	while (!sqe) {
		io_uring_submit(&u->ring);
		io_uring_sqring_wait(&u->ring);
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

static int broken(int code, struct err *e)
{
	return err_sys(e, -code, "an io_uring does not take requests any more");
}

int uring_submit(struct uring *u, struct err *e)
{
	int rc;

	if (!u->unsubmitted)
		return 0;
	do {
		rc = io_uring_submit(&u->ring);
	} while (rc == -EINTR || rc == -EAGAIN || rc == -EBUSY);
	u->unsubmitted = 0;
	return rc < 0 ? broken(rc, e) : 0;
}

/* Takes the result of one completion. True when the request is done. */
static bool complete(struct uring *u, struct store_request *r, int res)
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

int uring_reap(struct uring *u, struct store_request **out, unsigned max, struct err *e)
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
				return broken(rc, e);
			n = io_uring_peek_batch_cqe(&u->ring, cqe, want);
		}
		now = clock_now_ns();
		for (unsigned i = 0; i < n; i++) {
			struct store_request *r = io_uring_cqe_get_data(cqe[i]);

			if (!complete(u, r, cqe[i]->res))
				continue;
			r->done_ns = now;
			out[done++] = r;
		}
		io_uring_cq_advance(&u->ring, n);
	}
	return done;
}

/* ---- the queue ---- */

/* From this depth on, a quarter of it is submitted at once: what came back together would otherwise
 * leave the device with nothing to do until all of it was handled. */
#define DEEP 16u

struct uring_queue {
	struct store_queue base;
	struct uring ring;
	unsigned burst; /* as many do not wait for the next reaping; 0: any number does */
};

static struct uring_queue *of(struct store_queue *q)
{
	return (struct uring_queue *)q;
}

/* The rings' pages, which the kernel takes, are counted too: 64 bytes an entry to submit and 16 for
 * each of twice as many completions. */
static uint64_t queue_bytes(const struct store *s, unsigned depth)
{
	(void)s;
	return sizeof(struct uring_queue) + 8192u + depth * (64u + 2u * 16u + 4u) * 2u;
}

static uint32_t queue_align(const struct store *s)
{
	return uring_options_of(s)->direct ? URING_ALIGN : 1;
}

static int queue_create(struct store_queue **out, struct store *s,
			const struct store_queue_config *config, struct err *e)
{
	struct uring_queue *q = try_calloc(1, sizeof(*q), "a queue of requests", e);
	int rc;

	if (!q)
		return -ENOMEM;
	rc = uring_open(&q->ring, uring_options_of(s), config->depth, true, config->memory,
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
		int n = uring_reap(&of(q)->ring, r, REAP_BATCH, NULL);

		if (n < 0)
			break;
		q->in_flight -= (unsigned)n;
	}
	uring_close(&of(q)->ring);
	free(q);
}

static int queue_submit(struct store_queue *q, struct store_request *r, struct err *e)
{
	struct uring_queue *u = of(q);

	(void)e;
	uring_put(&u->ring, r);
	/* a failure is told by the next reaping: for everyone the request is in flight */
	if (u->burst && u->ring.unsubmitted >= u->burst)
		uring_submit(&u->ring, NULL);
	return 0;
}

static int queue_flush(struct store_queue *q, struct err *e)
{
	return uring_submit(&of(q)->ring, e);
}

static int queue_reap(struct store_queue *q, struct store_request **out, unsigned max,
		      struct err *e)
{
	return uring_reap(&of(q)->ring, out, max, e);
}

const struct store_queue_ops store_queue_uring = {
	.bytes = queue_bytes,
	.align = queue_align,
	.create = queue_create,
	.destroy = queue_destroy,
	.submit = queue_submit,
	.flush = queue_flush,
	.reap = queue_reap,
};
