/* Threads whose end is waited for with a limit. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/thread.h"

#define MS (NS_PER_S / 1000)

static _Atomic uint32_t gate; /* futex word: 1 lets the thread pass */
static uint32_t worked;       /* written by the thread, read after it was joined */

static void work(void *arg)
{
	while (!atomic_load(&gate))
		thread_wait(&gate, 0, -1);
	worked += *(uint32_t *)arg;
}

static void let_pass(void)
{
	atomic_store(&gate, 1);
	thread_wake(&gate, -1);
}

static void run(struct thread *t)
{
	static uint32_t one = 1;

	atomic_store(&gate, 0);
	assert_int_equal(thread_run(t, work, &one, 0, "test", NULL), 0);
	assert_true(t->running);
}

static void test_joins_what_ends(void **state)
{
	struct thread t = {0};

	(void)state;
	worked = 0;
	assert_true(thread_join_within(&t, 0));
	for (uint32_t i = 1; i <= 3; i++) {
		run(&t);
		assert_false(thread_join_within(&t, 0));
		assert_false(thread_join_within(&t, 5 * MS));
		let_pass();
		assert_true(thread_join_within(&t, i == 1 ? -1 : 20 * NS_PER_S));
		assert_false(t.running);
		assert_int_equal(worked, i);
	}
}

/* Asked four times before the stop. */
static int64_t stopped(void *arg)
{
	int *asked = arg;

	return ++*asked <= 4 ? 0 : clock_now_ns() - 10 * MS;
}

static int64_t never(void *arg)
{
	(void)arg;
	let_pass();
	return 0;
}

static void test_grace(void **state)
{
	int64_t begin = clock_now_ns();
	struct thread t = {0};
	int asked = 0;

	(void)state;
	run(&t);
	/* a grace that is over when the stop is seen */
	assert_false(thread_join_grace(&t, stopped, &asked, 5 * MS));
	assert_int_equal(asked, 5);
	assert_true(clock_now_ns() - begin >= 350 * MS);
	assert_true(t.running);
	/* no stop, however long it takes */
	assert_true(thread_join_grace(&t, never, NULL, 0));
	assert_false(t.running);
}

static void test_left_behind(void **state)
{
	static struct thread t; /* outlives this function, as the thread may */

	(void)state;
	run(&t);
	thread_leave(&t);
	assert_false(t.running);
	let_pass();
	while (!atomic_load(&t.ended))
		usleep(1000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_joins_what_ends),
		cmocka_unit_test(test_grace),
		cmocka_unit_test(test_left_behind),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
