/* The knee of a curve of AU, and the search that goes to it, against stores whose capacity follows
 * by arithmetic. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/rng.h"
#include "study/capacity.h"
#include "readback/curves.h"
#include "readback/knee.h"

#define TARGET 90.0

/* AU where a rate that feeds `fed` accelerators is shared. */
static double shared(double fed, uint32_t n)
{
	return fmin(100, 100 * fed / n);
}

static struct knee_run run_of(uint32_t n, double au, double error)
{
	return (struct knee_run){.accelerators = n, .au = au, .error = error, .blocks = 12};
}

static void test_knee(void **state)
{
	const uint32_t n[] = {1, 2, 4, 8, 16, 32};
	struct knee_run run[6];
	struct knee k;

	(void)state;
	for (int i = 0; i < 6; i++)
		run[5 - i] = run_of(n[i], shared(20, n[i]), 0.1);
	knee_find(run, 6, TARGET, &k);
	/* between 16 (100 %) and 32 (62.5 %), by 1/AU: 16 + 16 * (1/0.9 - 1) / (1.6 - 1) = 18.96 */
	assert_int_equal(k.accelerators, 18);
	assert_int_equal(k.points, 6);
	assert_false(k.bracketed);
	assert_false(k.at_least);
	assert_true(k.low <= 18 && k.high >= 18 && k.high < 20);
	knee_release(&k);

	knee_find(run + 1, 5, TARGET, &k); /* all but the largest meet it */
	assert_true(k.at_least);
	assert_int_equal(k.accelerators, 16);
	assert_int_equal(k.high, UINT32_MAX);
	knee_release(&k);

	run[0] = run_of(1, 71, 0.1);
	knee_find(run, 1, TARGET, &k);
	assert_int_equal(k.accelerators, 0);
	assert_int_equal(k.high, 0);
	assert_false(k.falls_short);
	knee_release(&k);

	run[0] = run_of(8, 71, 0.1);
	knee_find(run, 1, TARGET, &k);
	assert_true(k.falls_short);
	knee_release(&k);

	run[0] = run_of(4, 99, 0.1);
	run[1] = run_of(5, 60, 0.1);
	run[1].client = true;
	knee_find(run, 2, TARGET, &k);
	assert_true(k.at_least && k.bracketed);
	assert_int_equal(k.accelerators, 4);
	knee_release(&k);
	knee_find(run, 0, TARGET, &k);
	assert_int_equal(k.points, 0);
	knee_release(&k);
}

/* More accelerators that happened to get more: the fit is their mean, and the knee one number. */
static void test_reversed(void **state)
{
	struct knee_run run[] = {run_of(8, 98, 0.5), run_of(9, 86, 0.5), run_of(10, 93, 0.5),
				 run_of(12, 70, 0.5), run_of(11, NAN, 0.5)};
	struct knee k;

	(void)state;
	knee_find(run, 5, TARGET, &k);
	assert_int_equal(k.points, 4);
	assert_true(k.point[1].fit == k.point[2].fit);
	assert_true(fabs(k.point[1].fit - 89.5) < 0.2);
	assert_int_equal(k.accelerators, 8);
	assert_true(k.reversed);
	knee_release(&k);
}

static void test_undecided(void **state)
{
	struct knee_run run[] = {run_of(8, 90.2, 1), run_of(8, 90.4, 1), run_of(9, 89.8, 1),
				 run_of(10, 80, 0.3)};
	struct knee k;

	(void)state;
	assert_int_equal(knee_decides(run, 2, TARGET), 0);
	assert_int_equal(knee_decides(run + 3, 1, TARGET), -1);
	knee_find(run, 4, TARGET, &k);
	assert_int_equal(k.accelerators, 8);
	assert_true(k.low < 8 && k.high == 9);
	knee_release(&k);
	/* a run that was disturbed hardly counts */
	run[1] = run_of(8, 60, 20);
	assert_true(fabs(knee_mean(run, 2) - 90) < 0.5);
}

/* ---- the search ---- */

static uint64_t word;

static double noise(double size)
{
	double u = (philox_at(1, 2, word++) + 0.5) / 4294967296.0;

	return size * (2 * u - 1);
}

/* Searches a store that feeds `fed` accelerators at 100 %; *steps: runs that were made. */
static void search_of(double fed, double noisy, uint32_t most, uint32_t whole, struct knee *k,
		      size_t *steps)
{
	struct knee_run run[64];
	size_t n = 0;

	for (;;) {
		struct search_step s = search_next(
			run, n,
			&(struct search_bounds){.target = TARGET, .most = most, .whole = whole});

		if (s.done)
			break;
		assert_in_range(s.accelerators, 1, most);
		assert_true(!whole || s.accelerators < SEARCH_WHOLE_FROM * whole ||
			    s.accelerators % whole == 0);
		assert_true(n < 64);
		run[n++] = run_of(s.accelerators,
				  shared(fed, s.accelerators) * (1 + noise(noisy / 100)),
				  noisy / (s.longer ? 4 : 2));
		run[n - 1].lasting = s.confirms;
	}
	knee_find(run, n, TARGET, k);
	*steps = n;
}

static void search(double fed, double noisy, uint32_t most, struct knee *k, size_t *steps)
{
	search_of(fed, noisy, most, 0, k, steps);
}

/* Over seven processes, from 350 on only multiples of them. */
static void test_search_whole(void **state)
{
	const double fed[] = {3.4, 120.2, 345.1, 352.9, 900.5, 3000.7};

	(void)state;
	for (size_t i = 0; i < sizeof(fed) / sizeof(fed[0]); i++) {
		uint32_t truth = (uint32_t)floor(fed[i] / TARGET * 100);
		struct knee k;
		size_t steps;

		search_of(fed[i], 0.01, 10000, 7, &k, &steps);
		assert_true(fabs((double)k.accelerators - truth) <= fmax(1, 0.05 * truth));
		assert_true((double)steps < 2 * log2(truth + 2) + 12);
		knee_release(&k);
	}
	for (uint32_t most = 349; most < 360; most++) {
		struct knee k;
		size_t steps;

		search_of(1e6, 0.01, most, 7, &k, &steps);
		assert_true(k.at_least && k.accelerators + 7 > most);
		knee_release(&k);
	}
}

static void test_search(void **state)
{
	size_t held = 0, all = 0;

	(void)state;
	for (double fed = 0.3; fed < 900; fed = fed * 1.6 + 0.11) {
		uint32_t truth = (uint32_t)floor(fed / TARGET * 100);
		double tolerance = fmax(1, 0.05 * truth);

		for (int noisy = 0; noisy < 2; noisy++) {
			struct knee k;
			size_t steps;

			search(fed, noisy ? 0.6 : 0.01, 1024, &k, &steps);
			if (fabs((double)k.accelerators - truth) > tolerance)
				fail_msg("fed %g: %u, not %u", fed, k.accelerators, truth);
			assert_true((double)steps < 2 * log2(truth + 2) + 12);
			held += k.low <= truth && truth <= k.high;
			all++;
			knee_release(&k);
		}
	}
	assert_true((double)held >= 0.9 * (double)all);
}

/* One alone waits for others to come: two and more are fed as long as the rate lasts. */
static double gathered(double fed, uint32_t n)
{
	return n == 1 ? 62 : shared(fed, n);
}

static void test_search_gathered(void **state)
{
	struct knee_run run[64];
	struct search_bounds bounds = {.target = TARGET, .most = 64};
	struct search_step s;
	struct knee k;
	size_t n = 0;

	(void)state;
	while (!(s = search_next(run, n, &bounds)).done) {
		assert_true(n < 40);
		run[n] = run_of(s.accelerators, gathered(6, s.accelerators), 0.1);
		run[n++].lasting = s.confirms;
	}
	knee_find(run, n, TARGET, &k);
	assert_int_equal(k.gathered, 1);
	assert_int_equal(k.accelerators, 6);
	assert_true(k.low >= 5 && k.high <= 7 && k.bracketed && !k.reversed);
	knee_release(&k);
	/* what may be chance is no gathering */
	run[0] = run_of(1, 89.5, 1);
	run[1] = run_of(2, 90.5, 1);
	run[2] = run_of(3, 60, 0.1);
	knee_find(run, 3, TARGET, &k);
	assert_int_equal(k.gathered, 0);
	knee_release(&k);
}

/* The answer was measured for long at least once. */
static void test_search_confirms(void **state)
{
	struct knee_run run[64];
	struct search_bounds bounds = {.target = TARGET, .most = 64};
	struct search_step s;
	bool lasting = false;
	size_t n = 0;

	(void)state;
	while (!(s = search_next(run, n, &bounds)).done) {
		assert_true(n < 40);
		/* 5 meet it at first, and miss it in the long run */
		run[n] = run_of(s.accelerators, shared(s.confirms ? 4 : 4.6, s.accelerators), 0.1);
		run[n].lasting = s.confirms;
		lasting = lasting || (s.accelerators == 4 && s.confirms);
		n++;
	}
	assert_true(lasting);
}

static void test_search_ends(void **state)
{
	struct knee k;
	size_t steps;

	(void)state;
	search(1000, 0.01, 24, &k, &steps);
	assert_true(k.at_least);
	assert_int_equal(k.accelerators, 24);
	knee_release(&k);
	search(0.5, 0.01, 1024, &k, &steps);
	assert_int_equal(k.accelerators, 0);
	assert_true(steps == 3); /* 1, 2 as a store may gather requests, and 1 again */
	knee_release(&k);
	search(1, 0.01, 1, &k, &steps);
	assert_true(k.at_least && k.accelerators == 1);
	knee_release(&k);
}

/* A number of which nothing is shown is no answer. */
static void test_words(void **state)
{
	static const struct {
		struct knee k;
		const char *says;
	} cases[] = {
		{{.at_least = true}, "not known (95 %: 0 accelerators or more)"},
		{{.high = UINT32_MAX}, "not known (95 %: 0 accelerators or more)"},
		{{.high = 0}, "no accelerator (95 %: 0 to 0)"},
		{{.at_least = true, .accelerators = 1}, "at least 1 accelerator"},
		{{.accelerators = 3, .low = 2, .high = 4}, "3 accelerators (95 %: 2 to 4)"},
	};
	struct buf text = {0};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		buf_reset(&text);
		curve_put_answer(&cases[i].k, &text);
		assert_string_equal(text.data, cases[i].says);
	}
	buf_release(&text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_words),
		cmocka_unit_test(test_knee),
		cmocka_unit_test(test_reversed),
		cmocka_unit_test(test_undecided),
		cmocka_unit_test(test_search),
		cmocka_unit_test(test_search_gathered),
		cmocka_unit_test(test_search_confirms),
		cmocka_unit_test(test_search_ends),
		cmocka_unit_test(test_search_whole),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
