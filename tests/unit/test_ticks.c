/* Times by the processor's counter against the clock around them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/ticks.h"

/* ns by the counter of about `ns`, between what the clock says within and around. */
static void check_time(int64_t ns)
{
	int64_t around = clock_now_ns(), from = ticks_now(), within = clock_now_ns();
	int64_t to, took, least, most;

	clock_sleep_until(within + ns);
	least = clock_now_ns() - within;
	to = ticks_now();
	most = clock_now_ns() - around;
	took = ticks_between(from, to);
	assert_true(took >= least - least / 1000 - 100);
	assert_true(took <= most + most / 1000 + 100);
}

static void test_before_it_is_measured(void **state)
{
	int64_t before = clock_now_ns(), t = ticks_now();

	(void)state;
	assert_true(ticks_scale == 0);
	assert_true(t >= before && t <= clock_now_ns());
	assert_int_equal(ticks_between(100, 350), 250);
	check_time(5000000);
}

static void test_measured(void **state)
{
	uint64_t scale;

	(void)state;
	ticks_init();
	scale = ticks_scale;
	check_time(0);
	check_time(1000000);
	check_time(100000000);
	ticks_init();
	assert_true(ticks_scale == scale);
}

static void test_never_negative(void **state)
{
	(void)state;
	assert_int_equal(ticks_between(350, 100), 0);
	assert_int_equal(ticks_between(INT64_MAX, INT64_MIN), 0);
	assert_int_equal(ticks_between(7, 7), 0);
}

/* A tick of a third of a ns, and of ten: over days without overflow. */
static void test_scales(void **state)
{
	uint64_t scale = ticks_scale;
	int64_t day = 86400 * NS_PER_S;

	(void)state;
	ticks_scale = (1ull << 32) / 3 + 1;
	assert_int_equal(ticks_between(5, 3000005), 1000000);
	assert_true(ticks_between(0, 3 * 30 * day) / day == 30);
	ticks_scale = 10ull << 32;
	assert_int_equal(ticks_between(0, 30 * day / 10), 30 * day);
	ticks_scale = scale;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_before_it_is_measured),
		cmocka_unit_test(test_measured),
		cmocka_unit_test(test_never_negative),
		cmocka_unit_test(test_scales),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
