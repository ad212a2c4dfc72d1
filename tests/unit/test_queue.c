/* The bounded queue: order, waiting, closing, time-outs, many threads. */
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/thread.h"
#include "loader/crew.h"

#define MS 1000000LL

static void *number(uintptr_t n)
{
	return (void *)n; /* never dereferenced */
}

static void test_first_in_first_out(void **state)
{
	struct queue q;
	void *item;
	uintptr_t in = 0, out = 0;

	(void)state;
	assert_int_equal(queue_init(&q, 3, NULL), 0);
	/* all fill levels at all places of the ring */
	for (int round = 0; round < 20; round++) {
		for (int i = 0; i < 1 + round % 3; i++)
			assert_int_equal(queue_put(&q, number(in++)), 0);
		for (int i = 0; i < 1 + round % 3; i++) {
			assert_int_equal(queue_get(&q, &item), 1);
			assert_ptr_equal(item, number(out++));
		}
	}
	queue_release(&q);
	queue_release(&q);
}

static void test_init(void **state)
{
	struct queue q;
	struct err e = {0};
	void *item;

	(void)state;
	assert_int_equal(queue_init(&q, SIZE_MAX, &e), -ENOMEM);
	assert_true(e.text[0] != '\0');
	queue_release(&q);
	assert_int_equal(queue_init(&q, 0, &e), 0);
	assert_int_equal(queue_put(&q, number(1)), 0);
	assert_int_equal(queue_get(&q, &item), 1);
	queue_release(&q);
}

static void test_close(void **state)
{
	struct queue q;
	void *item = number(9);

	(void)state;
	assert_int_equal(queue_init(&q, 4, NULL), 0);
	queue_put(&q, number(1));
	queue_put(&q, NULL);
	queue_close(&q);
	queue_close(&q);
	assert_int_equal(queue_put(&q, number(3)), ERR_CANCELED);
	assert_int_equal(queue_get(&q, &item), 1);
	assert_ptr_equal(item, number(1));
	assert_int_equal(queue_get_timeout(&q, &item, MS), 1);
	assert_null(item);
	item = number(9);
	assert_int_equal(queue_get(&q, &item), 0);
	assert_int_equal(queue_get_timeout(&q, &item, 3600 * NS_PER_S), 0);
	assert_ptr_equal(item, number(9));
	queue_reopen(&q);
	assert_int_equal(queue_get_timeout(&q, &item, 0), -ETIMEDOUT);
	assert_int_equal(queue_put(&q, number(5)), 0);
	queue_close(&q);
	queue_reopen(&q);
	assert_int_equal(queue_get_timeout(&q, &item, 0), -ETIMEDOUT);
	queue_release(&q);
}

static void test_timeout(void **state)
{
	struct queue q;
	int64_t start;
	void *item;

	(void)state;
	assert_int_equal(queue_init(&q, 1, NULL), 0);
	start = clock_now_ns();
	assert_int_equal(queue_get_timeout(&q, &item, 20 * MS), -ETIMEDOUT);
	assert_true(clock_now_ns() - start >= 20 * MS);
	assert_int_equal(queue_get_timeout(&q, &item, 0), -ETIMEDOUT);
	assert_int_equal(queue_get_timeout(&q, &item, -1), -ETIMEDOUT);
	assert_int_equal(queue_get_timeout(&q, &item, INT64_MIN), -ETIMEDOUT);
	queue_put(&q, number(1));
	assert_int_equal(queue_get_timeout(&q, &item, -1), 1);
	queue_put(&q, number(1));
	assert_int_equal(queue_get_timeout(&q, &item, INT64_MAX), 1);
	queue_release(&q);
}

struct waiter {
	struct queue *q;
	int64_t timeout;
	int rc;
};

static void *wait_put(void *arg)
{
	struct waiter *w = arg;

	w->rc = queue_put(w->q, number(2));
	return NULL;
}

static void *wait_get(void *arg)
{
	struct waiter *w = arg;
	void *item;

	w->rc = w->timeout ? queue_get_timeout(w->q, &item, w->timeout) : queue_get(w->q, &item);
	return NULL;
}

/* Whoever sleeps in the queue leaves it when it closes; a long time-out is no obstacle. */
static void test_close_wakes_everyone(void **state)
{
	struct queue full, empty;
	struct waiter w[9];
	pthread_t thread[9];

	(void)state;
	assert_int_equal(queue_init(&full, 1, NULL), 0);
	assert_int_equal(queue_init(&empty, 1, NULL), 0);
	queue_put(&full, number(1));
	for (int i = 0; i < 9; i++) {
		w[i] = (struct waiter){i < 3 ? &full : &empty, i < 6 ? 0 : INT64_MAX, 77};
		assert_int_equal(thread_start(&thread[i], i < 3 ? wait_put : wait_get, &w[i], 0,
					      "waiter", NULL),
				 0);
	}
	usleep(20000);
	queue_close(&full);
	queue_close(&empty);
	for (int i = 0; i < 9; i++) {
		pthread_join(thread[i], NULL);
		assert_int_equal(w[i].rc, i < 3 ? ERR_CANCELED : 0);
	}
	assert_int_equal(full.count, 1);
	queue_release(&full);
	queue_release(&empty);
}

#define PRODUCERS 6
#define CONSUMERS 5
#define EACH 4000

struct crowd {
	struct queue q;
	_Atomic unsigned char seen[PRODUCERS * EACH + 1];
	_Atomic uintptr_t next;
	_Atomic int out_of_order;
};

static void *produce(void *arg)
{
	struct crowd *c = arg;
	uintptr_t base = atomic_fetch_add(&c->next, 1) * EACH;

	for (uintptr_t i = 1; i <= EACH; i++)
		queue_put(&c->q, number(base + i));
	return NULL;
}

static void *consume(void *arg)
{
	struct crowd *c = arg;
	uintptr_t last[PRODUCERS] = {0};
	void *item;
	int rc;

	/* waiting now and then for no time at all, as a loader that looks whether it may stop */
	for (int turn = 0;; turn++) {
		rc = turn % 3 ? queue_get(&c->q, &item)
			      : queue_get_timeout(&c->q, &item, turn % 50);
		if (rc == 0)
			return NULL;
		if (rc == 1) {
			uintptr_t v = (uintptr_t)item, who = (v - 1) / EACH;

			atomic_fetch_add(&c->seen[v], 1);
			if (v <= last[who])
				atomic_fetch_add(&c->out_of_order, 1);
			last[who] = v;
		}
	}
}

/* Each item comes out once, those of one producer in its order. */
static void crowd_of(size_t capacity)
{
	struct crowd *c = xcalloc(1, sizeof(*c));
	pthread_t p[PRODUCERS], k[CONSUMERS];

	assert_int_equal(queue_init(&c->q, capacity, NULL), 0);
	for (int i = 0; i < CONSUMERS; i++)
		assert_int_equal(thread_start(&k[i], consume, c, 0, "consumer", NULL), 0);
	for (int i = 0; i < PRODUCERS; i++)
		assert_int_equal(thread_start(&p[i], produce, c, 0, "producer", NULL), 0);
	for (int i = 0; i < PRODUCERS; i++)
		pthread_join(p[i], NULL);
	queue_close(&c->q);
	for (int i = 0; i < CONSUMERS; i++)
		pthread_join(k[i], NULL);
	for (size_t i = 1; i <= PRODUCERS * EACH; i++)
		assert_int_equal(c->seen[i], 1);
	assert_int_equal(c->out_of_order, 0);
	queue_release(&c->q);
	free(c);
}

static void test_crowd(void **state)
{
	(void)state;
	crowd_of(1);
	crowd_of(7);
	crowd_of(1000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_first_in_first_out),
		cmocka_unit_test(test_init),
		cmocka_unit_test(test_close),
		cmocka_unit_test(test_timeout),
		cmocka_unit_test(test_close_wakes_everyone),
		cmocka_unit_test(test_crowd),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
