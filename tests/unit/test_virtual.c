/* Virtual time: fibers, their order, the clock, and what threads, queues and words do there. */
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/queue.h"
#include "base/rng.h"
#include "base/thread.h"
#include "base/virtual.h"

#define MS (NS_PER_S / 1000)

/* What happened, in order. */
static struct {
	uint64_t said[1u << 16];
	size_t n;
} trace;

static void say_number(uint64_t number)
{
	assert_true(trace.n < sizeof(trace.said) / sizeof(trace.said[0]));
	trace.said[trace.n++] = number;
}

static void expect(const uint64_t *numbers, size_t n)
{
	assert_int_equal(trace.n, n);
	for (size_t i = 0; i < n; i++)
		assert_int_equal(trace.said[i], numbers[i]);
}

#define EXPECT(...)                                                                                \
	expect((const uint64_t[]){__VA_ARGS__},                                                    \
	       sizeof((const uint64_t[]){__VA_ARGS__}) / sizeof(uint64_t))

static struct virtual *world(uint32_t fibers)
{
	struct virtual *v;
	struct err e = {0};

	trace.n = 0;
	assert_int_equal(virtual_create(&v, &(struct virtual_settings){.fibers = fibers}, &e), 0);
	return v;
}

static void add(struct virtual *v, void (*fn)(void *), void *arg)
{
	struct err e = {0};

	if (virtual_spawn(v, fn, arg, &e) != 0)
		fail_msg("%s", e.text);
}

static void run(struct virtual *v)
{
	struct err e = {0};

	assert_false(virtual_on());
	if (virtual_run(v, &e) != 0)
		fail_msg("%s", e.text);
	assert_false(virtual_on());
	virtual_destroy(v);
}

/* ---- the clock, and who runs first ---- */

static void sleeper(void *arg)
{
	uint64_t ms = (uint64_t)(uintptr_t)arg;

	assert_true(virtual_on());
	say_number(ms);
	assert_int_equal(clock_sleep_until((int64_t)ms * MS), (int64_t)ms * MS);
	assert_int_equal(clock_now_ns(), (int64_t)ms * MS);
	say_number(1000 + ms);
	/* what is past is no wait */
	clock_sleep_until(0);
	virtual_sleep_until(clock_now_ns());
	say_number(2000 + ms);
}

static void test_clock_jumps(void **state)
{
	struct virtual *v = world(4);
	int64_t begin = clock_now_ns();

	(void)state;
	add(v, sleeper, (void *)300);
	add(v, sleeper, (void *)100);
	add(v, sleeper, (void *)200);
	add(v, sleeper, (void *)100);
	run(v);
	EXPECT(300, 100, 200, 100, 1100, 2100, 1100, 2100, 1200, 2200, 1300, 2300);
	assert_true(clock_now_ns() - begin < NS_PER_S);
}

static void yielder(void *arg)
{
	uint64_t n = (uint64_t)(uintptr_t)arg;

	for (uint64_t i = 0; i < 3; i++) {
		say_number(n + i);
		virtual_yield();
	}
}

static void test_yield(void **state)
{
	struct virtual *v = world(3);

	(void)state;
	add(v, yielder, (void *)10);
	add(v, yielder, (void *)20);
	run(v);
	EXPECT(10, 20, 11, 21, 12, 22);
	/* alone */
	v = world(1);
	add(v, yielder, (void *)10);
	run(v);
	EXPECT(10, 11, 12);
}

/* ---- many, and the same each time ---- */

/* Of large stacks, which sanitizers need, fewer. */
#define MANY (VIRTUAL_STACK < 65536 ? 50000u : 1000u)
#define TURNS 4

static struct {
	uint64_t sum;
	int64_t last_ns;
	uint32_t ended;
} many;

static void wanderer(void *arg)
{
	uint64_t me = (uint64_t)(uintptr_t)arg;

	for (uint64_t i = 0; i < TURNS; i++) {
		int64_t until = virtual_now_ns() + (int64_t)(rng_word(rng_key(me, i, 0), 0) % 1000);

		virtual_sleep_until(until);
		assert_int_equal(virtual_now_ns(), until);
		/* the clock never goes back */
		assert_true(virtual_now_ns() >= many.last_ns);
		many.last_ns = virtual_now_ns();
		many.sum = rng_mix64(many.sum + me * TURNS + i);
	}
	many.ended++;
}

static uint64_t wander(struct virtual_stats *stats)
{
	struct virtual *v = world(MANY);
	struct err e = {0};

	memset(&many, 0, sizeof(many));
	for (uintptr_t i = 0; i < MANY; i++)
		add(v, wanderer, (void *)i);
	assert_int_equal(virtual_run(v, &e), 0);
	assert_int_equal(many.ended, MANY);
	virtual_stats_of(v, stats);
	virtual_destroy(v);
	return many.sum;
}

static void test_many(void **state)
{
	struct virtual_stats a, b;
	uint64_t first = wander(&a);

	(void)state;
	assert_int_equal(wander(&b), first);
	assert_int_equal(a.switches, b.switches);
	assert_int_equal(a.deadlines, b.deadlines);
	assert_int_equal(a.fibers_most, MANY);
	assert_true(a.deadlines <= (uint64_t)MANY * TURNS);
	assert_true(a.stack_most > 0 && a.stack_most < VIRTUAL_STACK);
}

/* ---- lists of who waits ---- */

static struct virtual_waiters line;

static void waiter(void *arg)
{
	uint64_t me = (uint64_t)(uintptr_t)arg;

	/* 7 goes when its time has come */
	if (me == 7)
		say_number(100 + virtual_wait_until(&line, 5 * MS));
	else
		virtual_wait(&line);
	say_number(me);
}

static void waker(void *arg)
{
	(void)arg;
	virtual_sleep_until(10 * MS);
	virtual_wake(&line, 1);
	virtual_wake(&line, 0);
	say_number(50);
	virtual_yield();
	virtual_wake(&line, -1);
	virtual_wake(&line, -1);
	say_number(51);
}

static void test_waiters(void **state)
{
	struct virtual *v = world(8);

	(void)state;
	for (uintptr_t i = 6; i < 10; i++)
		add(v, waiter, (void *)i);
	add(v, waker, NULL);
	run(v);
	EXPECT(100, 7, 50, 6, 51, 8, 9);
	assert_null(line.first);
	assert_null(line.last);
}

static void woken_in_time(void *arg)
{
	(void)arg;
	/* its deadline is gone when it is woken before: it does not wake the next wait */
	assert_true(virtual_wait_until(&line, 20 * MS));
	assert_false(virtual_wait_until(&line, 100 * MS));
	assert_int_equal(virtual_now_ns(), 100 * MS);
	assert_false(virtual_wait_until(&line, 100 * MS));
}

static void wake_once(void *arg)
{
	(void)arg;
	virtual_sleep_until(10 * MS);
	virtual_wake(&line, 1);
}

static void test_deadline_is_dropped(void **state)
{
	struct virtual *v = world(2);

	(void)state;
	add(v, woken_in_time, NULL);
	add(v, wake_once, NULL);
	run(v);
}

/* ---- timers ---- */

static struct virtual_timer timers[3];

static void ring(void *arg)
{
	say_number((uint64_t)(uintptr_t)arg);
	say_number((uint64_t)virtual_now_ns());
	if (arg == (void *)1)
		virtual_timer_set(&timers[2], virtual_now_ns() + 4);
	virtual_wake(&line, 1);
}

static void setter(void *arg)
{
	(void)arg;
	for (uintptr_t i = 0; i < 3; i++)
		timers[i] = (struct virtual_timer){.fn = ring, .arg = (void *)i};
	for (int i = 0; i < 1000; i++)
		virtual_timer_set(&timers[0], 1000 + i);
	virtual_timer_set(&timers[0], 20);
	virtual_timer_set(&timers[1], 10);
	virtual_timer_set(&timers[2], 5);
	virtual_timer_clear(&timers[2]);
	virtual_timer_clear(&timers[2]);
	virtual_wait(&line);
	say_number(90);
	virtual_sleep_until(50);
}

static void test_timers(void **state)
{
	struct virtual *v = world(1);

	(void)state;
	add(v, setter, NULL);
	run(v);
	EXPECT(1, 10, 90, 2, 14, 0, 20);
}

/* ---- threads and words ---- */

static _Atomic uint32_t gate;

static void at_gate(void *arg)
{
	while (!atomic_load(&gate))
		thread_wait(&gate, 0, -1);
	say_number((uint64_t)(uintptr_t)arg);
}

static void starter(void *arg)
{
	struct thread t[3] = {{0}};
	_Atomic uint32_t other = 0;
	struct err e = {0};

	(void)arg;
	for (uintptr_t i = 0; i < 3; i++)
		assert_int_equal(thread_run(&t[i], at_gate, (void *)i, 0, "gate", &e), 0);
	assert_false(thread_join_within(&t[0], 3 * MS));
	assert_int_equal(clock_now_ns(), 3 * MS);
	/* another word, another value, a wait that ends by itself */
	thread_wake(&other, -1);
	thread_wait(&other, 1, -1);
	thread_wait(&other, 0, 4 * MS);
	assert_int_equal(clock_now_ns(), 7 * MS);
	atomic_store(&gate, 1);
	thread_wake(&gate, 2);
	virtual_yield();
	say_number(40);
	thread_wake(&gate, -1);
	for (int i = 0; i < 3; i++) {
		assert_true(thread_join_within(&t[i], i == 1 ? MS : -1));
		assert_true(thread_join_within(&t[i], 0));
	}
	/* it can be run again */
	assert_int_equal(thread_run(&t[1], at_gate, (void *)9, 0, "again", &e), 0);
	assert_true(thread_join_within(&t[1], -1));
	assert_int_equal(clock_now_ns(), 7 * MS);
}

static void test_threads(void **state)
{
	struct virtual *v = world(4);

	(void)state;
	atomic_store(&gate, 0);
	add(v, starter, NULL);
	run(v);
	EXPECT(0, 1, 40, 2, 9);
}

static void one_more(void *arg)
{
	struct thread t = {0}, u = {0};
	struct err e = {0};

	(void)arg;
	atomic_store(&gate, 1);
	assert_int_equal(thread_run(&t, at_gate, NULL, 0, "gate", &e), 0);
	assert_int_equal(thread_run(&u, at_gate, NULL, 0, "gate", &e), -EAGAIN);
	assert_false(u.running);
	assert_non_null(strstr(e.text, "2 threads"));
	assert_true(thread_join_within(&t, -1));
	/* whose stack is free again */
	assert_int_equal(thread_run(&u, at_gate, NULL, 0, "gate", &e), 0);
	assert_true(thread_join_within(&u, -1));
}

static void test_too_many(void **state)
{
	struct virtual *v = world(2);

	(void)state;
	add(v, one_more, NULL);
	run(v);
}

/* ---- queues ---- */

static struct queue pipe_queue;

static void producer(void *arg)
{
	(void)arg;
	for (uintptr_t i = 1; i <= 6; i++) {
		assert_int_equal(queue_put(&pipe_queue, (void *)i), 0);
		say_number(i);
	}
	clock_sleep_until(10 * MS);
	queue_close(&pipe_queue);
	assert_int_equal(queue_put(&pipe_queue, NULL), ERR_CANCELED);
}

static void consumer(void *arg)
{
	void *item;

	(void)arg;
	clock_sleep_until(MS);
	while (queue_get(&pipe_queue, &item) == 1)
		say_number(100 + (uint64_t)(uintptr_t)item);
	assert_int_equal(clock_now_ns(), 10 * MS);
	assert_int_equal(queue_get_timeout(&pipe_queue, &item, MS), 0);
	queue_reopen(&pipe_queue);
	assert_int_equal(queue_get_timeout(&pipe_queue, &item, 0), -ETIMEDOUT);
	assert_int_equal(queue_get_timeout(&pipe_queue, &item, 5 * MS), -ETIMEDOUT);
	assert_int_equal(clock_now_ns(), 15 * MS);
}

static void test_queue(void **state)
{
	struct virtual *v = world(2);
	struct err e = {0};

	(void)state;
	assert_int_equal(queue_init(&pipe_queue, 2, &e), 0);
	add(v, producer, NULL);
	add(v, consumer, NULL);
	run(v);
	EXPECT(1, 2, 101, 102, 3, 4, 103, 104, 5, 6, 105, 106);
	queue_release(&pipe_queue);
}

/* ---- processor time ---- */

static void half_speed(void *arg, int64_t ns)
{
	say_number((uint64_t)(uintptr_t)arg);
	virtual_sleep_until(virtual_now_ns() + 2 * ns);
}

static void computer(void *arg)
{
	(void)arg;
	virtual_compute(3 * MS);
	virtual_compute(0);
	virtual_compute(MS);
	assert_int_equal(virtual_computed_ns(), 4 * MS);
}

static void half_computer(void *arg)
{
	computer(arg);
	assert_int_equal(virtual_now_ns(), 8 * MS);
	assert_int_equal(virtual_compute_waited_ns(), 4 * MS);
	assert_int_equal(virtual_compute_waited_ns(), 0);
}

static void test_compute(void **state)
{
	struct virtual *v = world(1);
	struct err e = {0};

	(void)state;
	add(v, computer, NULL);
	run(v);
	assert_int_equal(virtual_create(&v,
					&(struct virtual_settings){.fibers = 1,
								   .compute = half_speed,
								   .compute_arg = (void *)5},
					&e),
			 0);
	add(v, half_computer, NULL);
	run(v);
	EXPECT(5, 5);
}

/* ---- how it ends ---- */

static void waits_for_nobody(void *arg)
{
	virtual_wait(arg);
}

static void server(void *arg)
{
	virtual_serve();
	virtual_serve();
	for (;;) {
		virtual_sleep_until(virtual_now_ns() + MS);
		*(uint64_t *)arg += 1;
	}
}

static void test_ends(void **state)
{
	struct virtual *v = world(3);
	uint64_t served = 0;
	struct err e = {0};

	(void)state;
	/* nothing to do */
	run(v);
	v = world(3);
	add(v, waits_for_nobody, &line);
	add(v, waits_for_nobody, &line);
	add(v, sleeper, (void *)3);
	assert_int_equal(virtual_run(v, &e), -EDEADLK);
	assert_non_null(strstr(e.text, "2 threads"));
	virtual_destroy(v);
	line = (struct virtual_waiters){0};
	/* whoever serves is not waited for */
	v = world(3);
	add(v, server, &served);
	add(v, sleeper, (void *)20);
	run(v);
	assert_in_range(served, 19, 20);
}

/* Two worlds in two threads. */
static void *own_world(void *arg)
{
	struct virtual *v;
	struct err e = {0};

	if (virtual_create(&v, &(struct virtual_settings){.fibers = 100}, &e) != 0)
		return NULL;
	for (uintptr_t i = 0; i < 100; i++)
		virtual_spawn(v, server, arg, &e);
	virtual_spawn(v, computer, NULL, &e);
	virtual_run(v, &e);
	virtual_destroy(v);
	return arg;
}

static void test_worlds(void **state)
{
	uint64_t count[2] = {0};
	pthread_t id[2];
	struct err e = {0};
	void *got;

	(void)state;
	for (int i = 0; i < 2; i++)
		assert_int_equal(thread_start(&id[i], own_world, &count[i], 1u << 20, "w", &e), 0);
	for (int i = 0; i < 2; i++) {
		pthread_join(id[i], &got);
		assert_ptr_equal(got, &count[i]);
	}
	assert_int_equal(count[0], count[1]);
}

/* ---- what must not be done ends the process ---- */

static bool aborts(void (*misuse)(void))
{
	const struct rlimit none = {0};
	int status;
	pid_t pid = fork();

	if (pid == 0) {
		setrlimit(RLIMIT_CORE, &none);
		signal(SIGABRT, SIG_DFL);
		if (!freopen("/dev/null", "w", stderr))
			_exit(3);
		misuse();
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT;
}

static void wait_in_timer(void *arg)
{
	(void)arg;
	virtual_sleep_until(virtual_now_ns() + 1);
}

static void sets_bad_timer(void *arg)
{
	struct virtual_timer t = {.fn = wait_in_timer};

	(void)arg;
	virtual_timer_set(&t, 5);
	virtual_sleep_until(10);
}

static void misuse_timer(void)
{
	struct virtual *v = world(1);
	struct err e;

	add(v, sets_bad_timer, NULL);
	virtual_run(v, &e);
}

static void runs_again(void *arg)
{
	struct err e;

	virtual_run(arg, &e);
}

static void misuse_run(void)
{
	struct virtual *v = world(1);

	runs_again(v);
	add(v, runs_again, v);
	runs_again(v);
}

static void misuse_destroy(void)
{
	struct virtual *v = world(1);

	add(v, (void (*)(void *))virtual_destroy, v);
	runs_again(v);
}

#if VIRTUAL_STACK < 65536
__attribute__((noinline)) static void uses_too_much(void *arg)
{
	volatile char all[VIRTUAL_STACK - 64];

	(void)arg;
	/* what lies at its end */
	for (size_t i = 0; i < 512; i++)
		all[i] = 1;
	virtual_yield();
	if (all[5] != 1)
		_exit(4);
}

static void misuse_stack(void)
{
	struct virtual *v = world(2);

	/* the first one is at the beginning of the memory */
	add(v, sleeper, (void *)1);
	add(v, uses_too_much, NULL);
	runs_again(v);
}
#endif

static void test_misuse(void **state)
{
	(void)state;
	assert_true(aborts(misuse_timer));
	assert_true(aborts(misuse_run));
	assert_true(aborts(misuse_destroy));
#if VIRTUAL_STACK < 65536
	assert_true(aborts(misuse_stack));
#endif
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_clock_jumps),
		cmocka_unit_test(test_yield),
		cmocka_unit_test(test_many),
		cmocka_unit_test(test_waiters),
		cmocka_unit_test(test_deadline_is_dropped),
		cmocka_unit_test(test_timers),
		cmocka_unit_test(test_threads),
		cmocka_unit_test(test_too_many),
		cmocka_unit_test(test_queue),
		cmocka_unit_test(test_compute),
		cmocka_unit_test(test_ends),
		cmocka_unit_test(test_worlds),
		cmocka_unit_test(test_misuse),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
