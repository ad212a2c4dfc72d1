/* Delays: which generator call each kind makes, absolute values, and parameters out of range. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "workload/time_draw.h"

static int64_t draw(enum time_kind kind, double a, double b)
{
	struct rng_np r;

	rng_np_seed(&r, 42);
	return time_draw_ns(&(struct time_dist){kind, a, b}, &r);
}

static int64_t ns(double seconds)
{
	return llrint(fabs(seconds) * 1e9);
}

static void test_kinds(void **state)
{
	struct rng_np r;

	(void)state;
	assert_int_equal(draw(TIME_NONE, 5, 5), 0);
	assert_int_equal(draw(TIME_CONSTANT, 0.323, 9), 323000000);
	assert_int_equal(draw(TIME_CONSTANT, -1.5, 9), 1500000000);
	/* np.random.seed(42): normal(1, 2) = 1 + 2 * 0.4967141530112327 */
	assert_int_equal(draw(TIME_NORMAL, 1, 2), 1993428306);
	/* random() = 0.3745401188473625 */
	assert_int_equal(draw(TIME_UNIFORM, 1, 3), 1749080238);
	assert_int_equal(draw(TIME_EXPONENTIAL, 2, 0), ns(-2 * log(1 - 0.3745401188473625)));
	rng_np_seed(&r, 42);
	assert_int_equal(draw(TIME_GAMMA, 3, 0.5), ns(rng_np_gamma(&r, 3, 0.5)));
	rng_np_seed(&r, 42);
	assert_int_equal(draw(TIME_POISSON, 4, 0), rng_np_poisson(&r, 4) * 1000000000);
}

static void test_absolute(void **state)
{
	(void)state;
	assert_int_equal(draw(TIME_NORMAL, -1, 0), 1000000000);
	assert_int_equal(draw(TIME_UNIFORM, -3, -1), ns(-3 + 2 * 0.3745401188473625));
}

static void test_stream_advances(void **state)
{
	struct time_dist d = {TIME_NORMAL, 0, 1};
	struct rng_np r;

	(void)state;
	rng_np_seed(&r, 42);
	assert_int_equal(time_draw_ns(&d, &r), 496714153);
	assert_int_equal(time_draw_ns(&d, &r), 138264301); /* -0.13826430117118466 */
	d = (struct time_dist){TIME_CONSTANT, 1, 0};
	time_draw_ns(&d, &r);
	d = (struct time_dist){TIME_NORMAL, 0, 1};
	assert_int_equal(time_draw_ns(&d, &r), 647688538); /* constants draw nothing */
}

static void test_out_of_range(void **state)
{
	(void)state;
	assert_int_equal(draw(TIME_CONSTANT, NAN, 0), 0);
	assert_int_equal(draw(TIME_CONSTANT, INFINITY, 0), TIME_DRAW_MAX_NS);
	assert_int_equal(draw(TIME_CONSTANT, 1e300, 0), TIME_DRAW_MAX_NS);
	assert_int_equal(draw(TIME_CONSTANT, 1e-12, 0), 0);
	assert_int_equal(draw(TIME_NORMAL, 1, -1), 0);
	assert_int_equal(draw(TIME_GAMMA, -1, 1), 0);
	assert_int_equal(draw(TIME_GAMMA, NAN, 1), 0);
	assert_int_equal(draw(TIME_EXPONENTIAL, -1, 0), 0);
	assert_int_equal(draw(TIME_POISSON, -1, 0), 0);
	assert_int_equal(draw(TIME_POISSON, 1e30, 0), 0);
	assert_int_equal(draw((enum time_kind)99, 1, 1), 0);
}

static void test_predicates(void **state)
{
	(void)state;
	assert_false(time_dist_waits(&(struct time_dist){TIME_NONE, 1, 1}));
	assert_false(time_dist_waits(&(struct time_dist){TIME_CONSTANT, 0, 1}));
	assert_true(time_dist_waits(&(struct time_dist){TIME_CONSTANT, 1, 0}));
	assert_true(time_dist_waits(&(struct time_dist){TIME_NORMAL, 0, 1}));
	assert_false(time_dist_varies(&(struct time_dist){TIME_CONSTANT, 1, 0}));
	assert_true(time_dist_varies(&(struct time_dist){TIME_POISSON, 1, 0}));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_kinds),           cmocka_unit_test(test_absolute),
		cmocka_unit_test(test_stream_advances), cmocka_unit_test(test_out_of_range),
		cmocka_unit_test(test_predicates),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
