/* PyTorch's permutations of so many samples that the draws have 64 bits, against PyTorch 1.13.
 * 1.7 GB of memory. */
/* tier: long */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "../skip.h"
#include "base/alloc.h"
#include "base/rng.h"

#define LARGEST_32 214748363 /* the largest permutation whose draws have 32 bits */

static uint64_t available_bytes(void)
{
	FILE *f = fopen("/proc/meminfo", "r");
	unsigned long long kib = 0;
	char line[128];

	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, "MemAvailable: %llu kB", &kib) == 1)
			break;
	if (f)
		fclose(f);
	return kib << 10;
}

static void test_torch_large(void **state)
{
	static const uint64_t last32[6] = {105399001, 199900638, 3068019,
					   143601337, 137413004, 127521970};
	static const uint64_t first64[6] = {85514504, 93417259, 199404010,
					    60269803, 87481865, 115296688};
	uint64_t n = LARGEST_32;
	uint64_t *x;
	struct rng_np r;

	(void)state;
	if (available_bytes() < UINT64_C(2500) << 20)
		skip_because("2.5 GB of memory are not available");
	x = xcalloc(n + 1, sizeof(*x));
	rng_np_seed(&r, 42);
	rng_torch_randperm(&r, x, n);
	assert_memory_equal(x, last32, sizeof(last32));
	assert_true(x[n - 1] == 104620125);
	rng_np_seed(&r, 42);
	rng_torch_randperm(&r, x, n + 1);
	assert_memory_equal(x, first64, sizeof(first64));
	assert_true(x[n] == 144026194);
	free(x);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_torch_large)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
