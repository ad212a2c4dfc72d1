/* Changes in series whose truth is known, and how often noise is taken for one. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "base/change.h"
#include "base/rng.h"

#define SERIES 2000

/* n values of 1 with noise of about `share`; each has `alike` of its neighbour's. */
static void noise(struct rng_np *g, double *x, size_t n, double share, double alike)
{
	double at = rng_np_gauss(g);

	for (size_t i = 0; i < n; i++) {
		at = alike * at + sqrt(1 - alike * alike) * rng_np_gauss(g);
		x[i] = exp(share * at);
	}
}

static void finds_a_step(void **state)
{
	static const struct {
		size_t n, at;
		double share, factor;
	} row[] = {{64, 6, 0.05, 10},
		   {64, 32, 0.1, 1.5},
		   {9, 3, 0.05, 8},
		   {40, 36, 0.05, 4},
		   {128, 100, 0.1, 0.5}};
	struct rng_np g;
	(void)state;

	rng_np_seed(&g, 7);
	for (size_t k = 0; k < sizeof(row) / sizeof(row[0]); k++) {
		size_t found = 0;

		for (int again = 0; again < 200; again++) {
			struct change_point p;
			double x[CHANGE_MOST];

			noise(&g, x, row[k].n, row[k].share, 0);
			for (size_t i = row[k].at; i < row[k].n; i++)
				x[i] *= row[k].factor;
			if (!change_level(x, row[k].n, 1.25, &p))
				continue;
			found += fabs((double)p.at - (double)row[k].at) <= 1 &&
				 fabs(p.after / p.before / row[k].factor - 1) < 0.25;
		}
		if (found < 196)
			fail_msg("row %zu: found in %zu of 200", k, found);
	}
}

/* The last of several changes is the one that lasts. */
static void the_last_change_counts(void **state)
{
	struct change_point p;
	double x[60];
	(void)state;

	for (size_t i = 0; i < 60; i++)
		x[i] = (i < 20 ? 1 : i < 45 ? 3 : 9) * (1 + 0.01 * (double)(i % 3));
	assert_true(change_level(x, 60, 1.25, &p));
	assert_int_equal(p.at, 45);
}

static void one_outlier_is_no_change(void **state)
{
	struct change_point p;
	struct change_phases f;
	struct change_line l;
	double x[32];
	(void)state;

	for (size_t at = 0; at < 32; at++) {
		for (size_t i = 0; i < 32; i++)
			x[i] = 1 + 0.03 * (double)(i * 7 % 5);
		x[at] = 50;
		assert_false(change_level(x, 32, 1.25, &p));
		assert_false(change_trend(x, 32, 1.25, &l));
		assert_false(change_alternates(x, 32, 1.25, &f));
	}
}

static void finds_a_trend(void **state)
{
	struct rng_np g;
	size_t found = 0, better = 0;
	(void)state;

	rng_np_seed(&g, 11);
	for (int again = 0; again < 200; again++) {
		struct change_point p = {0};
		struct change_line l;
		double x[64];

		noise(&g, x, 64, 0.1, 0);
		for (size_t i = 0; i < 64; i++)
			x[i] *= exp(log(2) * (double)i / 63);
		found += change_trend(x, 64, 1.25, &l) && fabs(l.last / l.first / 2 - 1) < 0.2;
		change_level(x, 64, 1.25, &p);
		better += p.at == 0 || l.rest < p.rest;
	}
	assert_true(found >= 198);
	assert_true(better >= 195);
}

static void finds_phases(void **state)
{
	struct change_phases f;
	double x[64];
	(void)state;

	for (size_t i = 0; i < 64; i++)
		x[i] = (i / 8 % 2 ? 4 : 1) * (1 + 0.05 * (double)(i * 5 % 7));
	assert_true(change_alternates(x, 64, 1.5, &f));
	assert_int_equal(f.phases, 4);
	assert_true(fabs(f.period - 16) < 0.01 && fabs(f.length - 8) < 0.01);
	/* single values, every seventh */
	for (size_t i = 0; i < 64; i++)
		x[i] = i % 7 == 3 ? 3 : 1 + 0.05 * (double)(i * 5 % 7);
	assert_true(change_alternates(x, 64, 1.5, &f));
	assert_int_equal(f.phases, 9);
	/* one step is no alternation */
	for (size_t i = 0; i < 64; i++)
		x[i] = i < 30 ? 1 : 4;
	assert_false(change_alternates(x, 64, 1.5, &f));
}

/* Some moments may be missing; where it is not clear how many, there is no period. */
static void finds_a_period(void **state)
{
	static const struct {
		size_t n;
		double at[8], period;
	} row[] = {
		{4, {3, 6, 9, 12}, 3},       {3, {3, 9, 12}, 3},
		{4, {3.1, 6, 12.2, 15}, 3},  {6, {0, 1.1, 2, 3.05, 4, 5.1}, 1.02},
		{6, {1, 2, 4, 5, 6, 9}, 1},  {2, {3, 6}, 0},
		{5, {0, 1, 2.5, 3, 4.6}, 0}, {4, {0, 2, 4, 7}, 0},
		{4, {0, 1, 4, 8}, 0},
	};
	(void)state;

	for (size_t k = 0; k < sizeof(row) / sizeof(row[0]); k++) {
		double got = change_period(row[k].at, row[k].n);

		if (fabs(got - row[k].period) > 0.05 * row[k].period)
			fail_msg("row %zu: %g, not %g", k, got, row[k].period);
	}
}

/* Growth of 30 % by its end goes on; a step of 30 %, a rise that ended, and noise do not. */
static void slight_growth_goes_on(void **state)
{
	struct rng_np g;
	size_t found = 0, wrong = 0;
	(void)state;

	rng_np_seed(&g, 5);
	for (int again = 0; again < 1000; again++) {
		struct change_line l;
		double grows[64], step[64], ends[64], spreads[64];

		noise(&g, grows, 64, 0.03, 0);
		noise(&g, step, 64, 0.03, 0);
		noise(&g, ends, 64, 0.03, 0);
		for (size_t i = 0; i < 64; i++) {
			double x = (double)i / 63;

			grows[i] *= 1 + 0.3 * x;
			step[i] *= i < 20 + (size_t)again % 24 ? 1 : 1.3;
			ends[i] *= 1 + 0.3 * fmin(1, 2.5 * x);
			/* noise that grows from 5 to 50 % */
			spreads[i] = exp((0.05 + 0.45 * x) * rng_np_gauss(&g));
		}
		found += change_trend(grows, 64, 1.2, &l) && change_goes_on(grows, 64, 0.03);
		wrong += change_goes_on(step, 64, 0.03) || change_goes_on(ends, 64, 0.02);
		wrong += change_trend(spreads, 64, 1.2, &l) && change_goes_on(spreads, 64, 0.03);
	}
	printf("slight growth: found in %zu of 1000, wrongly in %zu of 3000\n", found, wrong);
	assert_true(found >= 950);
	assert_true(wrong <= 30);
}

/* Of series without a change, at most 3 in a thousand have one for any of the three. */
static void noise_is_no_change(void **state)
{
	static const struct {
		size_t n;
		double share, alike;
	} row[] = {{64, 0.02, 0},  {64, 0.1, 0}, {64, 0.3, 0},   {128, 0.2, 0},
		   {12, 0.2, 0},   {6, 0.2, 0},  {20, 0.3, 0.3}, {64, 0.2, 0.3},
		   {64, 0.1, 0.6}, {30, 0.5, 0}, {128, 0.3, 0.6}};
	struct rng_np g;
	size_t worst = 0;
	(void)state;

	rng_np_seed(&g, 3);
	for (size_t k = 0; k < sizeof(row) / sizeof(row[0]); k++) {
		size_t wrong = 0;

		for (int again = 0; again < SERIES; again++) {
			struct change_point p;
			struct change_phases f;
			struct change_line l;
			double x[CHANGE_MOST];

			noise(&g, x, row[k].n, row[k].share, row[k].alike);
			wrong += change_level(x, row[k].n, 1.25, &p) ||
				 change_trend(x, row[k].n, 1.2, &l) ||
				 change_alternates(x, row[k].n, 1.5, &f);
		}
		printf("noise %.2f, alike %.1f, %zu values: %zu of %d\n", row[k].share,
		       row[k].alike, row[k].n, wrong, SERIES);
		worst = worst > wrong ? worst : wrong;
	}
	/* heavy tails, as of latencies: means of few exponential draws */
	for (size_t draws = 1; draws <= 16; draws *= 4) {
		size_t wrong = 0;

		for (int again = 0; again < SERIES; again++) {
			struct change_point p;
			struct change_phases f;
			struct change_line l;
			double x[64];

			for (size_t i = 0; i < 64; i++)
				x[i] = rng_np_gamma(&g, (double)draws, 1 / (double)draws);
			wrong += change_level(x, 64, 1.25, &p) || change_trend(x, 64, 1.25, &l) ||
				 change_alternates(x, 64, 1.5, &f);
		}
		printf("mean of %zu exponential draws: %zu of %d\n", draws, wrong, SERIES);
		worst = worst > wrong ? worst : wrong;
	}
	assert_true(worst <= 3 * SERIES / 1000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(finds_a_step),
		cmocka_unit_test(the_last_change_counts),
		cmocka_unit_test(one_outlier_is_no_change),
		cmocka_unit_test(finds_a_trend),
		cmocka_unit_test(finds_phases),
		cmocka_unit_test(finds_a_period),
		cmocka_unit_test(slight_growth_goes_on),
		cmocka_unit_test(noise_is_no_change),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
