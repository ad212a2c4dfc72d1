/* Requests in flight by helper threads, one a request; with depth 1 the calling thread itself. */
#include "store/async_threads.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/clock.h"

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
	const struct store_ops *ops = r->blob->store->ops;

	r->result = r->write ? ops->pwrite(r->blob, r->buffer, r->n, r->offset, &r->err)
			     : ops->pread(r->blob, r->buffer, r->n, r->offset, &r->err);
	r->done_ns = clock_now_ns();
}

static void *helper(void *arg)
{
	struct thread_queue *t = arg;

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
	return NULL;
}

static uint64_t threads_bytes(const struct store *s, unsigned depth)
{
	unsigned threads = depth > 1 ? depth : 0;

	(void)s;
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
	while (t->threads < threads) {
		char name[16];
		int rc;

		snprintf(name, sizeof(name), "io%u", t->threads);
		rc = thread_start(&t->thread[t->threads], helper, t, STACK_BYTES, name, e);
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

const struct store_queue_ops store_queue_threads = {
	.bytes = threads_bytes,
	.align = threads_align,
	.create = threads_create,
	.destroy = threads_destroy,
	.submit = threads_submit,
	.flush = threads_flush,
	.reap = threads_reap,
};
