/* Student's t and Welch's test against printed tables and worked examples. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/rng.h"
#include "base/stats.h"

static void close_to(double got, double want, double tolerance)
{
	if (!(fabs(got - want) <= tolerance))
		fail_msg("%.9g, not %.9g", got, want);
}

/* Two-sided 5 % and 1 % points of Student's t, as every statistics book prints them. */
static void test_quantiles(void **state)
{
	static const struct {
		double p, df, t;
	} table[] = {{0.05, 1, 12.7062},  {0.05, 2, 4.30265},  {0.05, 4, 2.77645},
		     {0.05, 10, 2.22814}, {0.05, 30, 2.04227}, {0.01, 1, 63.6567},
		     {0.01, 5, 4.03214},  {0.01, 20, 2.84534}, {0.05, 1e6, 1.95997}};

	(void)state;
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		close_to(student_t(table[i].p, table[i].df), table[i].t, 1e-4 * table[i].t / 10);
		close_to(student_p(table[i].t, table[i].df), table[i].p, 1e-5);
		close_to(student_p(-table[i].t, table[i].df), table[i].p, 1e-5);
	}
	/* one degree of freedom is Cauchy's distribution, which has a closed form */
	close_to(student_p(1, 1), 0.5, 1e-12);
	close_to(student_p(3, 1), 1 - 2 / M_PI * atan(3), 1e-12);
	close_to(student_p(0, 7), 1, 1e-12);
}

static void test_sample(void **state)
{
	const double v[] = {2, 4, 4, 4, 5, 5, 7, 9};
	struct sample_stat s = sample_stat_of(v, 8);

	(void)state;
	close_to(s.mean, 5, 1e-12);
	close_to(s.stdev, sqrt(32.0 / 7), 1e-12);
	assert_true(s.min == 2 && s.max == 9 && s.n == 8);
	s = sample_stat_of(v, 0);
	assert_true(s.n == 0 && s.stdev == 0);
}

/* Two samples whose t and degrees of freedom follow by hand: variances 1 and 4, four values each.
 */
static void test_welch(void **state)
{
	const double a[] = {9, 10, 10, 11}, b[] = {12, 13, 15, 16};
	struct welch w = welch_test(a, 4, b, 4);
	double va = (2.0 / 3) / 4, vb = (10.0 / 3) / 4;

	(void)state;
	close_to(w.change, 4, 1e-12);
	close_to(w.t, 4 / sqrt(va + vb), 1e-12);
	close_to(w.df, (va + vb) * (va + vb) / (va * va / 3 + vb * vb / 3), 1e-12);
	close_to(w.high - w.low, 2 * student_t(0.05, w.df) * sqrt(va + vb), 1e-9);
	assert_true(w.p > 0.005 && w.p < 0.02);
	w = welch_test(b, 4, a, 4);
	close_to(w.change, -4, 1e-12);
}

static void test_no_spread(void **state)
{
	const double a[] = {1, 1}, b[] = {2, 2};

	(void)state;
	assert_true(welch_test(a, 2, b, 2).p == 0);
	assert_true(welch_test(a, 2, a, 2).p == 1);
}

/* As in the sorted values, whatever their order was, also where many are equal. */
static void any_place(void **state)
{
	enum { N = 600 };
	double v[N], sorted[N], moved[N];

	(void)state;
	for (uint64_t turn = 0; turn < 200; turn++) {
		size_t n = 1 + (size_t)(rng_word(turn, 0) % N),
		       at = (size_t)(rng_word(turn, 1) % n);

		for (size_t i = 0; i < n; i++) {
			uint64_t few = 1 + turn % 7;

			switch (turn % 4) {
			case 0:
				v[i] = (double)(rng_word(turn, 2 + i) % 1000000);
				break;
			case 1:
				v[i] = (double)(rng_word(turn, 2 + i) % few);
				break;
			case 2:
				v[i] = (double)(i < n / 2 ? i : n - i);
				break;
			default:
				v[i] = (double)(turn % 8 < 4 ? i : n - i);
			}
		}
		memcpy(sorted, v, sizeof(v));
		memcpy(moved, v, sizeof(v));
		sort_numbers(sorted, n);
		assert_true(nth_number(moved, n, at) == sorted[at]);
		for (size_t i = 0; i < n; i++)
			assert_true(i < at ? moved[i] <= moved[at] : moved[i] >= moved[at]);
		sort_numbers(moved, n);
		assert_memory_equal(moved, sorted, n * sizeof(*v));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(any_place),      cmocka_unit_test(test_quantiles),
		cmocka_unit_test(test_sample),    cmocka_unit_test(test_welch),
		cmocka_unit_test(test_no_spread),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
