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
	pthread_cond_init(&q->not_empty, &attr);
	pthread_cond_init(&q->not_full, &attr);
	pthread_condattr_destroy(&attr);
	return 0;
}

void queue_release(struct queue *q)
{
	if (!q->slot)
		return;
	pthread_mutex_destroy(&q->lock);
	pthread_cond_destroy(&q->not_empty);
	pthread_cond_destroy(&q->not_full);
	free(q->slot);
	*q = (struct queue){0};
}

int queue_put(struct queue *q, void *item)
{
	pthread_mutex_lock(&q->lock);
	while (q->count == q->cap && !q->closed)
		pthread_cond_wait(&q->not_full, &q->lock);
	if (q->closed) {
		pthread_mutex_unlock(&q->lock);
		return ERR_CANCELED;
	}
	q->slot[(q->head + q->count++) % q->cap] = item;
	pthread_cond_signal(&q->not_empty);
	pthread_mutex_unlock(&q->lock);
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
	pthread_cond_signal(&q->not_full);
	return 1;
}

int queue_get(struct queue *q, void **item)
{
	int got;

	pthread_mutex_lock(&q->lock);
	while (q->count == 0 && !q->closed)
		pthread_cond_wait(&q->not_empty, &q->lock);
	got = take_first(q, item);
	pthread_mutex_unlock(&q->lock);
	return got;
}

int queue_get_timeout(struct queue *q, void **item, int64_t timeout_ns)
{
	struct timespec until;
	int64_t deadline;
	bool in_time = true;
	int got = 0;

	if (timeout_ns < 0)
		timeout_ns = 0;
	if (__builtin_add_overflow(clock_now_ns(), timeout_ns, &deadline))
		deadline = INT64_MAX;
	until = (struct timespec){deadline / NS_PER_S, deadline % NS_PER_S};
	pthread_mutex_lock(&q->lock);
	while (q->count == 0 && !q->closed && in_time)
		in_time = pthread_cond_timedwait(&q->not_empty, &q->lock, &until) == 0;
	got = take_first(q, item);
	if (got == 0 && !q->closed)
		got = -ETIMEDOUT;
	pthread_mutex_unlock(&q->lock);
	return got;
}

void queue_close(struct queue *q)
{
	pthread_mutex_lock(&q->lock);
	q->closed = true;
	pthread_cond_broadcast(&q->not_empty);
	pthread_cond_broadcast(&q->not_full);
	pthread_mutex_unlock(&q->lock);
}

void queue_reopen(struct queue *q)
{
	pthread_mutex_lock(&q->lock);
	q->closed = false;
	q->head = 0;
	q->count = 0;
	pthread_mutex_unlock(&q->lock);
}
