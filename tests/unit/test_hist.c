/* The histogram: buckets, quantiles against sorted values, merging. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/hist.h"
#include "base/rng.h"

#define LAST (HIST_BUCKETS - 1)

static void test_buckets_follow_each_other(void **state)
{
	(void)state;
	assert_true(hist_bucket_low(0) == 0);
	for (size_t b = 0; b < HIST_BUCKETS; b++) {
		uint64_t low = hist_bucket_low(b), high = hist_bucket_low(b + 1) - 1;

		assert_true(low <= high);
		assert_int_equal(hist_bucket_of(low), b);
		assert_int_equal(hist_bucket_of(high), b);
		assert_true((high - low) * 32 <= low);
	}
	assert_true(hist_bucket_low(HIST_BUCKETS) == 1ull << 44);
	assert_int_equal(hist_bucket_of(1ull << 44), LAST);
	assert_int_equal(hist_bucket_of(UINT64_MAX), LAST);
}

static void test_empty(void **state)
{
	struct hist h, other;

	(void)state;
	hist_init(&h);
	hist_init(&other);
	hist_merge(&h, &other);
	assert_true(hist_quantile(&h, 0.5) == 0);
	assert_true(h.total == 0 && h.sum == 0);
	hist_add(&other, 7);
	hist_merge(&h, &other);
	hist_init(&other);
	hist_merge(&h, &other);
	assert_true(h.total == 1 && h.min == 7 && h.max == 7);
}

static void test_one_value(void **state)
{
	static const uint64_t value[] = {0, 1, 31, 32, 1000003, 1ull << 43, 1ull << 60, UINT64_MAX};

	(void)state;
	for (size_t i = 0; i < sizeof(value) / sizeof(value[0]); i++) {
		struct hist h;

		hist_init(&h);
		hist_add(&h, value[i]);
		assert_true(hist_quantile(&h, 0) == value[i]);
		assert_true(hist_quantile(&h, 0.5) == value[i]);
		assert_true(hist_quantile(&h, 1) == value[i]);
	}
}

/* Every value has a bucket of its own here, so each rank must be exact. */
static void test_exact_ranks(void **state)
{
	struct hist h;

	(void)state;
	hist_init(&h);
	for (uint64_t v = 1; v <= 25; v++)
		for (int i = 0; i < 4; i++)
			hist_add(&h, v);
	for (unsigned percent = 1; percent <= 100; percent++)
		assert_int_equal(hist_quantile(&h, percent / 100.0), (percent + 3) / 4);
	assert_int_equal(hist_quantile(&h, 0.04001), 2);
	assert_int_equal(hist_quantile(&h, 0), 1);
}

static int by_value(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

static void check_quantiles(const uint64_t *value, size_t n)
{
	static uint64_t sorted[5000];
	struct hist h;

	hist_init(&h);
	for (size_t i = 0; i < n; i++)
		hist_add(&h, sorted[i] = value[i]);
	qsort(sorted, n, sizeof(sorted[0]), by_value);
	assert_true(h.min == sorted[0] && h.max == sorted[n - 1]);
	for (unsigned k = 0; k <= 1000; k++) {
		size_t rank = (k * n + 999) / 1000;
		uint64_t exact = sorted[rank ? rank - 1 : 0];
		uint64_t got = hist_quantile(&h, k / 1000.0);

		assert_true(got >= exact && got <= h.max);
		assert_int_equal(hist_bucket_of(got), hist_bucket_of(exact));
	}
}

static void test_quantiles_against_sorted(void **state)
{
	static uint64_t value[5000];

	(void)state;
	for (uint64_t round = 0; round < 60; round++) {
		size_t n = 1 + rng_word(5, round) % 5000;
		unsigned spread = (unsigned)(rng_word(6, round) % 43);

		for (size_t i = 0; i < n; i++)
			value[i] = rng_word(round, i) >>
				   (20 + (round % 2 ? rng_word(7, i) % 44 : spread));
		check_quantiles(value, n);
	}
}

static void test_merge_is_adding_all(void **state)
{
	struct hist part[3], merged, all;

	(void)state;
	hist_init(&merged);
	hist_init(&all);
	for (uint64_t k = 0; k < 3; k++) {
		hist_init(&part[k]);
		for (uint64_t i = 0; i < 1000; i++) {
			uint64_t v = rng_word(k, i) >> (24 + rng_word(k + 10, i) % 40);

			hist_add(&part[k], v);
			hist_add(&all, v);
		}
	}
	for (size_t k = 0; k < 3; k++)
		hist_merge(&merged, &part[k]);
	assert_memory_equal(merged.count, all.count, sizeof(all.count));
	assert_true(merged.total == all.total && merged.min == all.min && merged.max == all.max);
	assert_true(merged.sum == all.sum); /* integers below 2^53 add exactly */
}

static void test_saturation(void **state)
{
	struct hist a, b;

	(void)state;
	hist_init(&a);
	hist_init(&b);
	hist_add(&a, 5);
	hist_add(&b, 5);
	a.count[5] = UINT32_MAX - 1;
	b.count[5] = 7;
	hist_merge(&a, &b);
	assert_true(a.count[5] == UINT32_MAX);
	hist_add(&a, 5);
	assert_true(a.count[5] == UINT32_MAX);
	assert_true(a.total == 3);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_buckets_follow_each_other),
		cmocka_unit_test(test_empty),
		cmocka_unit_test(test_one_value),
		cmocka_unit_test(test_exact_ranks),
		cmocka_unit_test(test_quantiles_against_sorted),
		cmocka_unit_test(test_merge_is_adding_all),
		cmocka_unit_test(test_saturation),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
