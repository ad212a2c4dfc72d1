/* The clock against the kernel's, before and after the processor's counter is used for it. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include <cmocka.h>

#include "base/clock.h"

#define THREADS 4
#define NEAR_NS 1000
#define READINGS 300000

static int64_t kernel_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * NS_PER_S + t.tv_nsec;
}

/* Readings without pause and after pauses: never back, and between two of the kernel's. *out
 * says what is wrong. */
static void *compare(void *out)
{
	const char **wrong = out;
	int64_t last = 0;

	for (int i = 0; i < READINGS; i++) {
		int64_t before = kernel_ns(), now = clock_now_ns(), after = kernel_ns();

		if (now < before - NEAR_NS || now > after + NEAR_NS)
			*wrong = "the clock is off";
		if (now < last)
			*wrong = "time went back";
		last = now;
		for (int k = 0; k < 3; k++) {
			now = clock_now_ns();
			if (now < last)
				*wrong = "time went back";
			last = now;
		}
		if (i % 30000 == 0)
			clock_sleep_until(last + 2 * (NS_PER_S / 1000));
	}
	return NULL;
}

static void check(void)
{
	pthread_t thread[THREADS];
	const char *wrong[THREADS] = {0};

	for (int i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&thread[i], NULL, compare, &wrong[i]), 0);
	for (int i = 0; i < THREADS; i++) {
		pthread_join(thread[i], NULL);
		if (wrong[i])
			fail_msg("%s", wrong[i]);
	}
}

static void test_of_the_kernel(void **state)
{
	(void)state;
	check();
}

static void test_of_the_counter(void **state)
{
	(void)state;
	clock_init();
	check();
	clock_init();
	assert_true(clock_now_ns() <= kernel_ns() + NEAR_NS);
}

static void test_sleep_reaches_its_time(void **state)
{
	int64_t until = clock_now_ns() + NS_PER_S / 100;

	(void)state;
	assert_true(clock_sleep_until(until) >= until - NEAR_NS);
	assert_true(kernel_ns() >= until - NEAR_NS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_of_the_kernel),
		cmocka_unit_test(test_of_the_counter),
		cmocka_unit_test(test_sleep_reaches_its_time),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
