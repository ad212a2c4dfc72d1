#include "base/queue.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <time.h>

#include "base/alloc.h"
#include "base/clock.h"

int queue_init(struct queue *q, size_t capacity, struct err *e)
{
	pthread_condattr_t attr;

	*q = (struct queue){0};
	q->slot = try_calloc(capacity, sizeof(void *), "queue", e);
	if (!q->slot)
		return -ENOMEM;
	q->cap = capacity ? capacity : 1;
	pthread_mutex_init(&q->lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&q->not_empty.changed, &attr);
	pthread_cond_init(&q->not_full.changed, &attr);
	pthread_condattr_destroy(&attr);
	return 0;
}

void queue_release(struct queue *q)
{
	if (!q->slot)
		return;
	pthread_mutex_destroy(&q->lock);
	pthread_cond_destroy(&q->not_empty.changed);
	pthread_cond_destroy(&q->not_full.changed);
	free(q->slot);
	*q = (struct queue){0};
}

/* In virtual time nobody else runs until this thread waits. */
static void lock(struct queue *q)
{
	if (!virtual_on())
		pthread_mutex_lock(&q->lock);
}

static void unlock(struct queue *q)
{
	if (!virtual_on())
		pthread_mutex_unlock(&q->lock);
}

/* Until the deadline, INT64_MAX being never: false when that came first. */
static bool wait_for(struct queue *q, struct queue_side *s, int64_t deadline_ns)
{
	const struct timespec ts = {deadline_ns / NS_PER_S, deadline_ns % NS_PER_S};

	if (virtual_on())
		return virtual_wait_until(&s->fibers, deadline_ns);
	if (deadline_ns == INT64_MAX)
		return pthread_cond_wait(&s->changed, &q->lock) == 0;
	return pthread_cond_timedwait(&s->changed, &q->lock, &ts) == 0;
}

static void tell_one(struct queue_side *s)
{
	if (virtual_on())
		virtual_wake(&s->fibers, 1);
	else
		pthread_cond_signal(&s->changed);
}

static void tell_all(struct queue_side *s)
{
	if (virtual_on())
		virtual_wake(&s->fibers, -1);
	else
		pthread_cond_broadcast(&s->changed);
}

int queue_put(struct queue *q, void *item)
{
	lock(q);
	while (q->count == q->cap && !q->closed)
		wait_for(q, &q->not_full, INT64_MAX);
	if (q->closed) {
		unlock(q);
		return ERR_CANCELED;
	}
	q->slot[(q->head + q->count++) % q->cap] = item;
	tell_one(&q->not_empty);
	unlock(q);
	return 0;
}

static int take_first(struct queue *q, void **item)
{
	assert(q->count <= q->cap);
	if (q->count == 0)
		return 0;
	*item = q->slot[q->head];
	q->head = (q->head + 1) % q->cap;
	q->count--;
	tell_one(&q->not_full);
	return 1;
}

int queue_get(struct queue *q, void **item)
{
	int got;

	lock(q);
	while (q->count == 0 && !q->closed)
		wait_for(q, &q->not_empty, INT64_MAX);
	got = take_first(q, item);
	unlock(q);
	return got;
}

int queue_get_timeout(struct queue *q, void **item, int64_t timeout_ns)
{
	int64_t deadline;
	bool in_time = true;
	int got = 0;

	if (timeout_ns < 0)
		timeout_ns = 0;
	if (__builtin_add_overflow(clock_now_ns(), timeout_ns, &deadline))
		deadline = INT64_MAX;

	lock(q);
	while (q->count == 0 && !q->closed && in_time)
		in_time = wait_for(q, &q->not_empty, deadline);
	got = take_first(q, item);
	if (got == 0 && !q->closed)
		got = -ETIMEDOUT;
	unlock(q);
	return got;
}

void queue_close(struct queue *q)
{
	lock(q);
	q->closed = true;
	tell_all(&q->not_empty);
	tell_all(&q->not_full);
	unlock(q);
}

void queue_reopen(struct queue *q)
{
	lock(q);
	q->closed = false;
	q->head = 0;
	q->count = 0;
	unlock(q);
}
