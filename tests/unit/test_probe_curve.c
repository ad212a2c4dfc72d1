/* What a probe's numbers of readers say of an explanation. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "predict/probe_curve.h"

/* Batches of two samples, 10 ms each, whoever else reads. */
static const struct model alone = {.ranks = 1,
				   .workers = 2,
				   .window = 4,
				   .steps = 100,
				   .parts = 2,
				   .delay_s = 0.05,
				   .samples = 2};

/* 1, 2, 4 and 8 readers get so many samples a second. */
static struct probe probe_of(double one, double two, double four, double eight)
{
	const double rate[] = {one, two, four, eight};
	struct probe p = {.done = true, .count = 4};

	for (uint32_t k = 0; k < p.count; k++)
		p.point[k] = (struct probe_point){.readers = 1u << k,
						  .seconds = 1,
						  .samples = (uint64_t)rate[k],
						  .requests = (uint64_t)rate[k],
						  .read_s = 1u << k};
	return p;
}

static void test_holds(void **state)
{
	const struct probe p = probe_of(100, 200, 400, 800);
	struct probe_curve c;
	struct misfit_range r;

	(void)state;
	probe_curve_of(&c, &p, &alone, 0.02);
	assert_int_equal(c.count, 4);
	r = probe_curve_from_to(&c, 2, 8);
	assert_float_equal(r.factor, 1, 1e-9);
	assert_true(r.low > 0.97 && r.high < 1.03);
	r = probe_curve_from_to(&c, 2, 64);
	assert_true(r.high < 1.03);
}

/* 150 a second is all there is. */
static void test_full(void **state)
{
	const struct probe p = probe_of(100, 150, 150, 150);
	struct probe_curve c;
	struct misfit_range r;

	(void)state;
	probe_curve_of(&c, &p, &alone, 0.02);
	r = probe_curve_from_to(&c, 2, 8);
	assert_float_equal(r.factor, 4, 0.1);
	assert_true(r.low < r.factor && r.high > r.factor);
	r = probe_curve_from_to(&c, 4, 1);
	assert_float_equal(r.factor, 1 / 2.67f, 0.02f);
	/* twice the readers beyond what was tried may wait twice as long */
	r = probe_curve_from_to(&c, 8, 16);
	assert_true(r.low <= 1 && r.high > 1.8);
}

static void test_too_little(void **state)
{
	struct probe p = probe_of(100, 2, 3, 3);
	struct probe_curve c;

	(void)state;
	probe_curve_of(&c, &p, &alone, 0.02);
	assert_int_equal(c.count, 0);
	p = (struct probe){.count = 0};
	probe_curve_of(&c, &p, &alone, 0.02);
	assert_int_equal(c.count, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_holds),
		cmocka_unit_test(test_full),
		cmocka_unit_test(test_too_little),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
