/* Which runs of a search count: what varies, short runs beside longer ones. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "study/capacity_known.h"

static const struct capacity_options options = {.target = 90, .time_s = 60};

static struct capacity_run run(uint32_t accelerators, double au, double measured_s)
{
	return (struct capacity_run){.accelerators = accelerators,
				     .steps = 100,
				     .au = au,
				     .between_au = au,
				     .error = 0.5,
				     .blocks = 20,
				     .step_s = 0.05,
				     .measured_s = measured_s,
				     .fresh = true,
				     .seconds = measured_s};
}

static void add(struct capacity *c, struct capacity_run r)
{
	r.repeat = capacity_repeats(c, r.accelerators);
	capacity_add(c, &r);
}

/* A run of 3 accelerators that shows a stall every `period` seconds. */
static struct capacity_run stalled(double au, double measured_s, double period)
{
	struct capacity_run r = run(3, au, measured_s);

	r.varies_s = period;
	return r;
}

/* Points must last for two periods: a short one that met the target no longer counts, one that
 * missed it does until a longer one of its number tells by how much. */
static void test_short_beside_longer(void **state)
{
	struct capacity c = {.o = &options};

	(void)state;
	add(&c, run(1, 99, 2));
	add(&c, run(4, 60, 2));
	add(&c, run(5, 55, 2));
	add(&c, stalled(91, 6, 5));
	assert_true(c.least_s > 10 && c.least_s < 12);
	assert_true(c.run[0].outdated && !c.run[1].outdated && !c.run[2].outdated);
	/* too short itself to take the place of another */
	add(&c, run(4, 61, 3));
	assert_true(!c.run[1].outdated && !c.run[4].outdated);
	/* long enough, cut to whole periods: the shorter ones of its number alone are let go of */
	add(&c, run(4, 70, 0.55 * c.least_s));
	assert_true(c.run[1].outdated && c.run[4].outdated && !c.run[5].outdated);
	assert_false(c.run[2].outdated);
	capacity_release(&c);
}

/* The interval is of the longer one: the short ones do not widen it. */
static void test_short_do_not_widen(void **state)
{
	struct capacity c = {.o = &options};
	struct capacity_run bad = run(8, 20, 2);

	(void)state;
	bad.error = 12;
	add(&c, bad);
	add(&c, stalled(88, 6, 5));
	add(&c, run(7, 95, 12));
	add(&c, run(8, 80, 12));
	capacity_know(&c);
	assert_true(c.run[0].outdated);
	assert_int_equal(c.knee.points, 3);
	capacity_release(&c);
}

/* A lasting drop does not come again: half as much again, not two periods. */
static void test_drop_needs_less(void **state)
{
	struct capacity c = {.o = &options};
	struct capacity_run r = run(3, 70, 4);

	(void)state;
	r.slowed_s = 10;
	add(&c, r);
	assert_true(c.least_s > 14.9 && c.least_s < 15.1);
	/* what a credit is used up by is shared: more accelerators need less time */
	assert_true(c.least_use > 44.9 && c.least_use < 45.1);
	capacity_release(&c);
}

/* A run that cannot be longer stays, however short. */
static void test_full_stays(void **state)
{
	struct capacity c = {.o = &options};
	struct capacity_run r = run(4, 60, 2);

	(void)state;
	r.full = true;
	add(&c, stalled(91, 6, 5));
	add(&c, r);
	add(&c, run(4, 62, 12));
	assert_false(c.run[1].outdated);
	capacity_release(&c);
}

/* A run that may have read nothing but what was read before says nothing where it met the target:
 * all runs together count, not the largest. What lies between the largest number that met it cold
 * and the smallest that missed it is not known. */
static void test_warm_runs(void **state)
{
	struct capacity c = {.o = &options};
	const struct {
		uint32_t accelerators;
		double au, read_s, samples;
	} made[] = {{1, 98, 0.019, 23},  {2, 98, 0.008, 46},  {4, 98, 0.013, 92},
		    {5, 80, 0.049, 115}, {4, 99, 0.012, 428}, {4, 99, 0.005, 964}};

	(void)state;
	for (size_t i = 0; i < sizeof(made) / sizeof(made[0]); i++) {
		struct capacity_run r = run(made[i].accelerators, made[i].au, 2);

		r.fresh = i == 0;
		r.read_s = made[i].read_s;
		r.samples_read = made[i].samples;
		/* cold reads after those that the cache served */
		if (i == 3)
			r.varies_s = 3;
		add(&c, r);
	}
	capacity_know(&c);
	assert_true(c.warms && c.least_s <= 0);
	assert_false(c.run[0].outdated);
	assert_false(c.run[3].outdated);
	assert_true(c.run[1].outdated && c.run[2].outdated && c.run[4].outdated);
	assert_true(c.run[5].outdated);
	assert_int_equal(c.knee.low, 1);
	assert_int_equal(c.knee.high, 4);
	capacity_release(&c);
}

/* A cache that had part of the data from the start: each run was helped alike, so that no number
 * reads faster later, but many of their reads are far faster than one alone was. */
static void test_helped_runs(void **state)
{
	struct capacity c = {.o = &options};
	const struct {
		uint32_t accelerators;
		double au, read_s, request_s, fast_s;
	} made[] = {{1, 99, 0.016, 0.016, 0.016},   {2, 99, 0.008, 0.0002, 0.0002},
		    {4, 98, 0.013, 0.0002, 0.0002}, {8, 79, 0.036, 0.02, 0.0002},
		    {7, 52, 0.080, 0.08, 0.06},     {5, 80, 0.049, 0.05, 0.0002},
		    {4, 97, 0.0108, 0.0003, 0.0002}};

	(void)state;
	for (size_t i = 0; i < sizeof(made) / sizeof(made[0]); i++) {
		struct capacity_run r = run(made[i].accelerators, made[i].au, 2);

		r.fresh = false;
		r.read_s = made[i].read_s;
		r.request_s = made[i].request_s;
		r.fast_s = made[i].fast_s;
		add(&c, r);
	}
	capacity_know(&c);
	assert_true(c.helped && !c.warms);
	assert_int_equal(c.knee.accelerators, 4);
	assert_int_equal(c.knee.low, 1);
	assert_int_equal(c.knee.high, 4);
	/* the same with reads that wait alike */
	for (size_t i = 0; i < c.runs; i++)
		c.run[i].fast_s = 0.015;
	capacity_know(&c);
	assert_true(!c.helped && c.knee.low == 4);
	capacity_release(&c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_short_beside_longer),
		cmocka_unit_test(test_short_do_not_widen),
		cmocka_unit_test(test_drop_needs_less),
		cmocka_unit_test(test_full_stays),
		cmocka_unit_test(test_warm_runs),
		cmocka_unit_test(test_helped_runs),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
