#include "metric/ticker.h"

#include <assert.h>

#include "base/clock.h"
#include "base/thread.h"

static void *ticker_main(void *arg)
{
	struct ticker *t = arg;
	int64_t next = clock_now_ns() + t->interval_ns;

	/* the word carries nothing but itself: the join orders the rest */
	while (atomic_load_explicit(&t->quit, memory_order_relaxed) == 0) {
		int64_t left = next - clock_now_ns();

		if (left > 0) {
			thread_wait(&t->quit, 0, left);
			continue;
		}
		t->fn(t->arg);
		next += t->interval_ns;
		if (next < clock_now_ns())
			next = clock_now_ns() + t->interval_ns;
	}
	return NULL;
}

int ticker_start(struct ticker *t, const char *name, struct err *e)
{
	assert(t->fn && t->interval_ns > 0);
	atomic_store_explicit(&t->quit, 0, memory_order_relaxed);
	return thread_start(&t->thread, ticker_main, t, 0, name, e);
}

void ticker_stop(struct ticker *t)
{
	atomic_store_explicit(&t->quit, 1, memory_order_relaxed);
	thread_wake(&t->quit, 1);
	pthread_join(t->thread, NULL);
}
