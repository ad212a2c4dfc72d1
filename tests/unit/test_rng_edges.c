/* The generators where no vectors reach: bounds, what draws nothing, seeding, the words of our own.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/rng.h"

static void test_interval_edges(void **state)
{
	struct rng_np a, b;

	(void)state;
	rng_np_seed(&a, 5);
	rng_np_seed(&b, 5);
	assert_true(rng_np_interval(&a, 0) == 0);
	assert_true(rng_np_interval(&a, UINT32_MAX) == rng_np_u32(&b));
	assert_true(rng_np_interval(&a, UINT64_MAX) == rng_np_u64(&b));
	for (int i = 0; i < 1000; i++) {
		assert_true(rng_np_interval(&a, 1) <= 1);
		assert_true(rng_np_interval(&a, 0x100000000ull) <= 0x100000000ull);
		assert_true(rng_np_interval(&a, 0x8000000000000000ull) <= 0x8000000000000000ull);
	}
}

static void test_empty_shuffles_draw_nothing(void **state)
{
	uint64_t x = 9;
	struct rng_np a, b;

	(void)state;
	rng_np_seed(&a, 5);
	rng_np_seed(&b, 5);
	rng_np_shuffle_u64(&a, NULL, 0);
	rng_np_shuffle_u64(&a, &x, 1);
	assert_true(x == 9);
	assert_true(rng_np_poisson(&a, 0) == 0);
	assert_true(rng_np_gamma(&a, 0, 3) == 0);
	assert_int_equal(rng_np_u32(&a), rng_np_u32(&b));
}

static void test_seeding_clears_the_gaussian(void **state)
{
	struct rng_np r;
	double first;

	(void)state;
	rng_np_seed(&r, 3);
	first = rng_np_gauss(&r);
	rng_np_seed(&r, 3);
	assert_true(rng_np_gauss(&r) == first);
	rng_np_seed_entropy(&r);
	assert_int_equal(r.has_gauss, 0);
}

static void test_entropy_differs(void **state)
{
	struct rng_np a, b;

	(void)state;
	rng_np_seed_entropy(&a);
	rng_np_seed_entropy(&b);
	assert_true(memcmp(a.key, b.key, sizeof(a.key)) != 0);
	assert_true(rng_np_double(&a) < 1.0);
}

static void test_large_poisson(void **state)
{
	struct rng_np r;

	(void)state;
	rng_np_seed(&r, 8);
	for (int i = 0; i < 1000; i++) {
		int64_t v = rng_np_poisson(&r, 9e18);

		assert_true(v > 8900000000000000000ll);
	}
}

/* The reference outputs of splitmix64 seeded with 0. */
static void test_words(void **state)
{
	(void)state;
	assert_true(rng_word(0, 0) == 0xe220a8397b1dcdafull);
	assert_true(rng_word(0, 1) == 0x6e789e6aa1b965f4ull);
	assert_true(rng_word(0, 2) == 0x06c45d188009454full);
	assert_true(rng_word(0x9e3779b97f4a7c15ull, 0) == rng_word(0, 1));
	assert_true(rng_mix64(0) == 0);
}

static int by_value(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

static void test_keys_are_distinct(void **state)
{
	static uint64_t key[32 * 32 * 32];
	size_t n = 0;

	(void)state;
	for (uint64_t k = 0; k < 32; k++)
		for (uint64_t a = 0; a < 32; a++)
			for (uint64_t b = 0; b < 32; b++)
				key[n++] = rng_key(k, a, b);
	qsort(key, n, sizeof(key[0]), by_value);
	for (size_t i = 1; i < n; i++)
		assert_true(key[i] != key[i - 1]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_interval_edges),
		cmocka_unit_test(test_empty_shuffles_draw_nothing),
		cmocka_unit_test(test_seeding_clears_the_gaussian),
		cmocka_unit_test(test_entropy_differs),
		cmocka_unit_test(test_large_poisson),
		cmocka_unit_test(test_words),
		cmocka_unit_test(test_keys_are_distinct),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
