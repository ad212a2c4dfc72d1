/* The keyed permutation: each number once, other keys other orders, nothing favoured. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "base/rng.h"

static void check_bijection(uint64_t n, uint64_t key)
{
	AUTO_FREE unsigned char *seen = xcalloc(n + 1, 1);
	struct perm p;

	perm_init(&p, n, key);
	for (uint64_t i = 0; i < n; i++) {
		uint64_t v = perm_at(&p, i);

		assert_true(v < n);
		assert_false(seen[v]);
		seen[v] = 1;
	}
}

static void test_each_number_once(void **state)
{
	(void)state;
	for (uint64_t n = 0; n <= 70; n++)
		for (uint64_t key = 0; key < 20; key++)
			check_bijection(n, rng_word(9, key));
	for (unsigned bits = 7; bits <= 16; bits++)
		for (uint64_t n = (1ull << bits) - 1; n <= (1ull << bits) + 1; n++)
			check_bijection(n, n * 31);
	check_bijection(1000000, 0);
	check_bijection((1 << 20) + 1, UINT64_MAX);
}

static void test_same_key_same_order(void **state)
{
	struct perm a, b;

	(void)state;
	perm_init(&a, 1000, 5);
	perm_init(&b, 1000, 5);
	for (uint64_t i = 0; i < 1000; i++)
		assert_true(perm_at(&a, i) == perm_at(&b, i));
}

/* Two random orders of n share about one position, whatever n is. */
static void test_keys_differ(void **state)
{
	uint64_t same = 0;
	struct perm a, b;

	(void)state;
	for (uint64_t key = 0; key < 100; key++) {
		perm_init(&a, 1000, key);
		perm_init(&b, 1000, key + 1);
		for (uint64_t i = 0; i < 1000; i++)
			same += perm_at(&a, i) == perm_at(&b, i);
	}
	assert_in_range(same, 50, 160);
}

/* Over many keys each position gets each value equally often: a mean of 4000, +-6 deviations. */
static void test_small_are_fair(void **state)
{
	(void)state;
	for (uint64_t n = 2; n <= 9; n++) {
		unsigned count[9][9] = {{0}};
		double sigma = sqrt(4000.0 * (1.0 - 1.0 / (double)n));

		for (uint64_t key = 0; key < 4000 * n; key++) {
			struct perm p;

			perm_init(&p, n, rng_word(17, key));
			for (uint64_t i = 0; i < n; i++)
				count[i][perm_at(&p, i)]++;
		}
		for (uint64_t i = 0; i < n; i++)
			for (uint64_t v = 0; v < n; v++)
				assert_true(fabs(count[i][v] - 4000.0) < 6 * sigma);
	}
}

/* |i - p(i)| is n/3 on average, and neighbours end as far apart. */
static void test_displacement(void **state)
{
	static const uint64_t sizes[] = {1000, 4096, 65537, 1000000};

	(void)state;
	for (size_t k = 0; k < sizeof(sizes) / sizeof(sizes[0]); k++) {
		double n = (double)sizes[k], moved = 0, apart = 0, last = 0;
		struct perm p;

		perm_init(&p, sizes[k], 123);
		for (uint64_t i = 0; i < sizes[k]; i++) {
			double v = (double)perm_at(&p, i);

			moved += fabs(v - (double)i);
			apart += fabs(v - last);
			last = v;
		}
		assert_true(fabs(moved / n / n - 1.0 / 3) < 3 / sqrt(n));
		assert_true(fabs(apart / n / n - 1.0 / 3) < 3 / sqrt(n));
	}
}

static void test_huge(void **state)
{
	static const uint64_t sizes[] = {(1ull << 32) + 1, 1ull << 63, (1ull << 63) + 1,
					 UINT64_MAX};

	(void)state;
	for (size_t k = 0; k < sizeof(sizes) / sizeof(sizes[0]); k++) {
		uint64_t over_half = 0;
		struct perm p;

		perm_init(&p, sizes[k], 1);
		for (uint64_t i = 0; i < 1000; i++) {
			uint64_t v = perm_at(&p, sizes[k] - 1 - i);

			assert_true(v < sizes[k]);
			over_half += v > sizes[k] / 2;
		}
		assert_in_range(over_half, 400, 600);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_each_number_once), cmocka_unit_test(test_same_key_same_order),
		cmocka_unit_test(test_keys_differ),      cmocka_unit_test(test_small_are_fair),
		cmocka_unit_test(test_displacement),     cmocka_unit_test(test_huge),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
