/* Requests in flight: the counted way to a queue of any store, and the helper threads of those that
 * have no queue of their own. */
#include "store/async.h"

#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/run_delay.h"

/* ---- helper threads, one a request; with depth 1 the calling thread itself ---- */

/* Sanitizers grow every frame; shims and stores need a few KiB. */
#define STACK_BYTES (256u * 1024u)
#define STACK_TOUCHED (16u * 1024u)

struct list {
	struct store_request *first, **last;
};

struct thread_queue {
	struct store_queue base;
	pthread_mutex_t lock;
	pthread_cond_t work, done;
	struct list pending, finished;
	bool waiting, quit; /* waiting: the caller sleeps on `done` */
	int64_t rank;       /* that whoever made the queue works for; negative: none */
	unsigned threads;
	pthread_t thread[];
};

static struct thread_queue *of(struct store_queue *q)
{
	return (struct thread_queue *)q;
}

static void list_clear(struct list *l)
{
	l->first = NULL;
	l->last = &l->first;
}

static void list_put(struct list *l, struct store_request *r)
{
	r->next = NULL;
	*l->last = r;
	l->last = &r->next;
}

static struct store_request *list_take(struct list *l)
{
	struct store_request *r = l->first;

	if (r) {
		l->first = r->next;
		if (!l->first)
			l->last = &l->first;
	}
	return r;
}

static void perform(struct store_request *r)
{
	r->result = r->write ? store_pwrite(r->blob, r->buffer, r->n, r->offset, &r->err)
			     : store_pread(r->blob, r->buffer, r->n, r->offset, &r->err);
	r->done_ns = clock_now_ns();
}

static void *helper_main(void *arg)
{
	struct thread_queue *t = arg;
	struct run_delay_thread counted;

	run_delay_begin(&counted);
	if (t->rank >= 0)
		store_serve_rank((uint32_t)t->rank);
	pthread_mutex_lock(&t->lock);
	for (;;) {
		struct store_request *r;

		while (!t->quit && !t->pending.first)
			pthread_cond_wait(&t->work, &t->lock);
		if (t->quit)
			break;
		r = list_take(&t->pending);
		pthread_mutex_unlock(&t->lock);
		perform(r);
		pthread_mutex_lock(&t->lock);
		list_put(&t->finished, r);
		if (t->waiting)
			pthread_cond_signal(&t->done);
	}
	pthread_mutex_unlock(&t->lock);
	run_delay_end(&counted);
	return NULL;
}

static uint64_t threads_bytes(const struct store *s, unsigned depth, bool objects)
{
	unsigned threads = depth > 1 ? depth : 0;

	(void)s;
	(void)objects;
	return sizeof(struct thread_queue) + threads * (sizeof(pthread_t) + STACK_TOUCHED);
}

static uint32_t threads_align(const struct store *s)
{
	/* a shim asks for what the store below it asks for */
	while (!s->ops->align && s->lower)
		s = s->lower;
	if (s->ops->queue)
		return s->ops->queue->align(s);
	return s->ops->align ? s->ops->align : 1;
}

static void threads_destroy(struct store_queue *q)
{
	struct thread_queue *t = of(q);

	pthread_mutex_lock(&t->lock);
	t->quit = true;
	pthread_cond_broadcast(&t->work);
	pthread_mutex_unlock(&t->lock);
	for (unsigned i = 0; i < t->threads; i++)
		pthread_join(t->thread[i], NULL);
	pthread_cond_destroy(&t->done);
	pthread_cond_destroy(&t->work);
	pthread_mutex_destroy(&t->lock);
	free(t);
}

static int threads_create(struct store_queue **out, struct store *s,
			  const struct store_queue_config *config, struct err *e)
{
	unsigned threads = config->depth > 1 ? config->depth : 0;
	struct thread_queue *t = try_calloc(1, sizeof(*t) + threads * sizeof(t->thread[0]),
					    "a queue of requests", e);

	(void)s;
	if (!t)
		return -ENOMEM;
	pthread_mutex_init(&t->lock, NULL);
	pthread_cond_init(&t->work, NULL);
	pthread_cond_init(&t->done, NULL);
	list_clear(&t->pending);
	list_clear(&t->finished);
	t->rank = store_served_rank();
	while (t->threads < threads) {
		char name[16];
		int rc;

		snprintf(name, sizeof(name), "io%u", t->threads);
		rc = thread_start(&t->thread[t->threads], helper_main, t, STACK_BYTES, name, e);
		if (rc < 0) {
			threads_destroy(&t->base);
			return rc;
		}
		t->threads++;
	}
	*out = &t->base;
	return 0;
}

static int threads_submit(struct store_queue *q, struct store_request *r, struct err *e)
{
	struct thread_queue *t = of(q);

	(void)e;
	if (t->threads == 0) {
		perform(r);
		list_put(&t->finished, r);
		return 0;
	}
	pthread_mutex_lock(&t->lock);
	list_put(&t->pending, r);
	pthread_cond_signal(&t->work);
	pthread_mutex_unlock(&t->lock);
	return 0;
}

static int threads_flush(struct store_queue *q, struct err *e)
{
	(void)q;
	(void)e;
	return 0;
}

static int threads_reap(struct store_queue *q, struct store_request **out, unsigned max,
			struct err *e)
{
	struct thread_queue *t = of(q);
	int n = 0;

	(void)e;
	pthread_mutex_lock(&t->lock);
	t->waiting = true;
	while (!t->finished.first)
		pthread_cond_wait(&t->done, &t->lock);
	t->waiting = false;
	while ((unsigned)n < max && t->finished.first)
		out[n++] = list_take(&t->finished);
	pthread_mutex_unlock(&t->lock);
	return n;
}

static const struct store_queue_ops store_queue_threads = {
	.bytes = threads_bytes,
	.align = threads_align,
	.create = threads_create,
	.destroy = threads_destroy,
	.submit = threads_submit,
	.flush = threads_flush,
	.reap = threads_reap,
};

/* ---- the queue of any store ---- */

static const struct store_queue_ops *ops_of(const struct store *s)
{
	return s->ops->queue ? s->ops->queue : &store_queue_threads;
}

uint64_t store_queue_bytes(const struct store *s, unsigned depth, bool objects)
{
	return ops_of(s)->bytes(s, depth, objects);
}

uint32_t store_queue_align(const struct store *s)
{
	return ops_of(s)->align(s);
}

int store_queue_create(struct store_queue **out, const struct io *io,
		       const struct store_queue_config *config, struct err *e)
{
	const struct store_queue_ops *ops = ops_of(io->store);
	int rc;

	if (config->depth < 1 || config->depth > STORE_DEPTH_MAX)
		return err_set(e, ERR_USAGE, "a depth of %u requests is not between 1 and %u",
			       config->depth, STORE_DEPTH_MAX);
	if (config->objects && !io->store->ops->objects)
		return err_set(e, -ENOTSUP, "the store '%s' has no client of whole objects",
			       io->store->ops->is.name);
	rc = ops->create(out, io->store, config, e);
	if (rc < 0)
		return rc;
	(*out)->ops = ops;
	(*out)->io = io;
	(*out)->depth = config->depth;
	(*out)->in_flight = 0;
	return 0;
}

void store_queue_destroy(struct store_queue *q)
{
	if (q)
		q->ops->destroy(q);
}

static int check_request(const struct store_queue *q, const struct store_request *r, struct err *e)
{
	uint64_t align = q->ops->align(q->io->store), end;

	if (r->n > SSIZE_MAX || __builtin_add_overflow(r->offset, (uint64_t)r->n, &end) ||
	    end > INT64_MAX)
		return err_set(e, -EINVAL,
			       "cannot %s %zu bytes at offset %llu: beyond the largest possible "
			       "file offset",
			       r->write ? "write" : "read", r->n, (unsigned long long)r->offset);
	if (((r->offset | r->n | (uintptr_t)r->buffer) & (align - 1)) != 0)
		return err_set(e, -EINVAL,
			       "a request of %zu bytes at offset %llu is not aligned: this store "
			       "requires multiples of %llu, also for the memory address",
			       r->n, (unsigned long long)r->offset, (unsigned long long)align);
	return 0;
}

int store_queue_submit(struct store_queue *q, struct store_request *r, struct err *e)
{
	const struct io *io = q->io;
	int rc = check_request(q, r, e);

	if (rc < 0)
		return rc;
	if (q->in_flight == q->depth)
		return err_set(e, -EAGAIN, "%u requests are already in flight", q->depth);
	if (io->stop && atomic_load_explicit(&io->stop->set, memory_order_relaxed))
		return err_set(e, ERR_CANCELED, "the run was stopped");
	r->result = 0;
	r->moved = 0;
	r->done_ns = 0;
	r->submitted_ns = io->stat || io->trace ? clock_now_ns() : 0;
	rc = q->ops->submit(q, r, e);
	if (rc == 0)
		q->in_flight++;
	return rc;
}

int store_queue_flush(struct store_queue *q, struct err *e)
{
	return q->in_flight ? q->ops->flush(q, e) : 0;
}

static void trace_request(struct span_ring *r, const struct store_request *q)
{
	span_put(r, &(struct span){.begin_ns = q->submitted_ns,
				   .end_ns = q->done_ns,
				   .sample = SPAN_NONE,
				   .file = q->blob->file,
				   .step = r->step,
				   .offset = q->offset,
				   .asked = q->n,
				   .moved = q->result > 0 ? (uint64_t)q->result : 0,
				   .kind = q->write ? SPAN_WRITE : SPAN_READ,
				   .flags = (uint8_t)(SPAN_IN_FLIGHT |
						      (q->result < 0 ? SPAN_FAILED : 0))});
}

static void count_request(struct io_stat *s, struct store_request *q)
{
	io_stat_add(s, q->write ? IO_WRITE : IO_DATA, q->done_ns - q->submitted_ns, q->n,
		    q->result);
	if (!q->write && q->result >= 0)
		read_log_add(&s->reads, q->submitted_ns, q->done_ns, (uint64_t)q->result,
			     read_place(q->blob), q->blob->name);
}

int store_queue_reap(struct store_queue *q, struct store_request **out, unsigned max, struct err *e)
{
	int n;

	if (q->in_flight == 0 || max == 0)
		return 0;
	n = q->ops->reap(q, out, max, e);
	if (n < 0)
		return n;
	assert((unsigned)n <= max && (unsigned)n <= q->in_flight);
	q->in_flight -= (unsigned)n;
	for (int i = 0; q->io->stat && i < n; i++)
		count_request(q->io->stat, out[i]);
	for (int i = 0; q->io->trace && i < n; i++)
		trace_request(q->io->trace, out[i]);
	return n;
}
