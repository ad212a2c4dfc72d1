/* Where a law is off, by how many requests are under way. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "predict/misfit.h"

#define N 160

static double took[N], beyond[N];
static uint32_t level[N];

/* `per_level` of each of 1, 2, 4 and 8 under way: the law says 10 ms, `more` for each other one. */
static struct misfit of(size_t per_level, double more_ns, double noise_ns)
{
	struct misfit m;
	size_t n = 0;

	for (uint32_t l = 1; l <= 8; l *= 2)
		for (size_t i = 0; i < per_level; i++) {
			level[n] = l;
			beyond[n] = more_ns * (l - 1) + (i % 2 ? noise_ns : -noise_ns);
			took[n] = 1e7 + beyond[n];
			n++;
		}
	misfit_of(&m, n, took, beyond, level, 1);
	return m;
}

static void test_right(void **state)
{
	struct misfit m = of(40, 0, 1e5);
	struct misfit_range r = misfit_from_to(&m, 4, 8);

	(void)state;
	assert_int_equal(m.count, 4);
	assert_float_equal(r.factor, 1, 1e-12);
	assert_float_equal(r.low, 1, 1e-12);
	assert_float_equal(r.high, 1, 1e-12);
	r = misfit_from_to(&m, 4, 64);
	assert_float_equal(r.high, 1, 1e-12);
	assert_false(misfit_refutes(&m, 4, 0.25));
	assert_false(misfit_scatters(&m));
}

/* 10, 20, 40, 80 ms: beside 8 it takes 80 / 40 of what it takes beside 4. */
static void test_crowd(void **state)
{
	struct misfit m = of(40, 1e7, 1e5);
	struct misfit_range r = misfit_from_to(&m, 4, 8);

	(void)state;
	assert_float_equal(r.factor, 2, 0.01);
	assert_true(r.low > 1.9 && r.high < 2.1);
	r = misfit_from_to(&m, 4, 1);
	assert_float_equal(r.factor, 0.25, 0.01);
	/* between what was seen, and beyond it: then only that it may take longer */
	r = misfit_from_to(&m, 4, 6);
	assert_true(r.factor > 1.3 && r.factor < 2);
	r = misfit_from_to(&m, 4, 32);
	assert_float_equal(r.factor, 2, 0.01);
	assert_true(r.high > 3);
	assert_true(misfit_refutes(&m, 4, 0.25));
}

/* Too few for groups: the line through them tells that fewer take less. */
static void test_few(void **state)
{
	struct misfit m, few;
	struct misfit_range r;

	(void)state;
	few = of(2, 1e7, 1e5);
	assert_int_equal(few.count, 0);
	r = misfit_from_to(&few, 8, 2);
	assert_float_equal(r.factor, 1, 1e-12);
	assert_true(r.low < 0.7);
	/* one that is special says nothing */
	for (size_t i = 0; i < 40; i++) {
		level[i] = i ? 4 : 1;
		beyond[i] = i ? (double)(i % 3) * 1e4 : 5e7;
		took[i] = 1e7 + beyond[i];
	}
	misfit_of(&m, 40, took, beyond, level, 1);
	r = misfit_from_to(&m, 4, 1);
	assert_float_equal(r.high, 1, 1e-12);
}

/* The mean is met, and no request is: beside 8 others only. */
static void test_scatter(void **state)
{
	struct misfit m;

	(void)state;
	of(40, 0, 1e4);
	for (size_t i = 120; i < N; i++) {
		beyond[i] = i % 4 ? -9e6 : 2.7e7;
		took[i] = 1e7 + beyond[i];
	}
	misfit_of(&m, N, took, beyond, level, 1);
	assert_true(misfit_scatters(&m));
	assert_false(misfit_refutes(&m, 4, 0.25));
}

static void test_nothing(void **state)
{
	struct misfit m;
	struct misfit_range r;

	(void)state;
	misfit_of(&m, 0, NULL, NULL, NULL, 1);
	assert_int_equal(m.count, 0);
	for (size_t i = 0; i < N; i++) {
		beyond[i] = NAN;
		took[i] = 1;
		level[i] = 0;
	}
	misfit_of(&m, N, took, beyond, level, 1);
	r = misfit_from_to(&m, 1, 8);
	assert_float_equal(r.factor, 1, 1e-12);
	assert_false(misfit_refutes(&m, 1, 0.25) || misfit_scatters(&m));
	/* what never took any time */
	for (size_t i = 0; i < N; i++)
		beyond[i] = took[i] = 0;
	misfit_of(&m, N, took, beyond, level, 1);
	assert_int_equal(m.count, 0);
}

static void test_falls(void **state)
{
	struct misfit m = of(40, 3e7, 1e5);

	(void)state;
	/* 8 in 220 ms are fewer than one in 10 */
	assert_float_equal(misfit_falls(&m), 0.36, 0.02);
	m = of(40, 1e7, 1e5);
	assert_float_equal(misfit_falls(&m), 1, 1e-12);
	m = of(40, 0, 1e5);
	assert_float_equal(misfit_falls(&m), 1, 1e-12);
	/* what few say may be chance */
	m = of(5, 3e7, 1e5);
	assert_float_equal(misfit_falls(&m), 1, 1e-12);
}

/* A law of one time for reads of two places, of which one takes three times as long. */
static void test_misplaced(void **state)
{
	uint8_t group[N];

	(void)state;
	for (size_t i = 0; i < N; i++) {
		group[i] = i % 2;
		took[i] = i % 2 ? 3e6 : 1e6;
		beyond[i] = took[i] - 2e6;
	}
	assert_float_equal(misfit_misplaced(N, took, beyond, group), 0.25, 1e-9);
	/* off as a whole, but for each place alike */
	for (size_t i = 0; i < N; i++)
		beyond[i] = took[i] / 2;
	assert_float_equal(misfit_misplaced(N, took, beyond, group), 0, 1e-9);
	for (size_t i = 0; i < N; i++)
		beyond[i] = NAN;
	assert_float_equal(misfit_misplaced(N, took, beyond, group), 0, 1e-9);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_right),     cmocka_unit_test(test_crowd),
		cmocka_unit_test(test_few),       cmocka_unit_test(test_scatter),
		cmocka_unit_test(test_nothing),   cmocka_unit_test(test_falls),
		cmocka_unit_test(test_misplaced),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
