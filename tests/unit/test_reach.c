/* Where a curve becomes flat: the point, its interval, a curve that falls again. */
#include "readback/reach.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/rng.h"
#include "readback/effects.h"

#define POINTS 8

static struct reach of(const double rate[POINTS], double error)
{
	struct reach_point p[POINTS];
	struct reach r;

	for (size_t i = 0; i < POINTS; i++)
		p[i] = (struct reach_point){(double)(i + 1), rate[i], error * rate[i], 2};
	reach_find(p, POINTS, &r);
	return r;
}

static void it_is_where_the_last_low_one_ends(void **state)
{
	struct reach r = of((double[]){10, 20, 40, 80, 99, 100, 98, 97}, 0.001);

	(void)state;
	assert_int_equal(r.best, 5);
	assert_int_equal(r.from, 4);
	assert_int_equal(r.to, 7);
	assert_int_equal(r.low, 4);
	assert_int_equal(r.high, 4);
	/* one that is low in between counts */
	r = of((double[]){10, 95, 40, 95, 99, 100, 98, 97}, 0.001);
	assert_int_equal(r.from, 3);
	/* all alike */
	r = of((double[]){95, 95, 95, 95, 95, 100, 95, 95}, 0.001);
	assert_int_equal(r.from, 0);
	assert_int_equal(r.to, 7);
}

static void it_ends_where_the_curve_falls(void **state)
{
	struct reach r = of((double[]){10, 20, 95, 100, 92, 80, 95, 60}, 0.001);

	(void)state;
	assert_int_equal(r.from, 2);
	assert_int_equal(r.to, 4);
	r = of((double[]){100, 20, 20, 20, 20, 20, 20, 20}, 0.001);
	assert_int_equal(r.from, 0);
	assert_int_equal(r.to, 0);
}

static void what_is_near_the_bound_is_not_sure(void **state)
{
	/* 91 and 89 of 100, with 2 %: either may be on the other side */
	struct reach r = of((double[]){10, 20, 40, 89, 91, 100, 100, 100}, 0.02);

	(void)state;
	assert_int_equal(r.from, 4);
	assert_int_equal(r.low, 3);
	assert_int_equal(r.high, 5);
	assert_true(r.errors);
	r = of((double[]){10, 20, 40, 89, 91, 100, 100, 100}, NAN);
	assert_false(r.errors);
	assert_int_equal(r.low, 4);
	assert_int_equal(r.high, 4);
}

/* Curves drawn anew around one whose place is known: the interval holds it as often as it says. */
static void the_interval_holds_the_truth(void **state)
{
	static const double truth[POINTS] = {20, 40, 60, 80, 94, 100, 100, 100};
	struct rng_np rng;
	int held = 0, tries = 2000;

	(void)state;
	rng_np_seed(&rng, 7);
	for (int t = 0; t < tries; t++) {
		struct reach_point p[POINTS];
		struct reach r;

		for (size_t i = 0; i < POINTS; i++) {
			double v[3];
			struct sample_stat s;

			for (int k = 0; k < 3; k++)
				v[k] = truth[i] * (1 + 0.03 * rng_np_normal(&rng, 0, 1));
			s = sample_stat_of(v, 3);
			p[i] = (struct reach_point){(double)i, s.mean, s.stdev / sqrt(3), 2};
		}
		reach_find(p, POINTS, &r);
		held += r.low <= 4 && 4 <= r.high;
	}
	if (held < 0.95 * tries)
		fail_msg("%d of %d", held, tries);
}

static void values_have_units(void **state)
{
	double v;

	(void)state;
	assert_true(key_number("reader.transfer_size", "64KiB", &v));
	assert_true(v == 65536);
	assert_true(key_number("reader.transfer_size", "1MiB", &v));
	assert_true(v == 1048576);
	assert_true(key_number("reader.batch_size", "12", &v));
	assert_false(key_number("dataset.compression", "gzip", &v));
	assert_false(key_number("reader.batch_size", "", &v));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(it_is_where_the_last_low_one_ends),
		cmocka_unit_test(it_ends_where_the_curve_falls),
		cmocka_unit_test(what_is_near_the_bound_is_not_sure),
		cmocka_unit_test(the_interval_holds_the_truth),
		cmocka_unit_test(values_have_units),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
