/* Who reads whose files after a shift: planted maps of processes to hosts. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "run/checkpoints.h"

#define RANKS_MAX 64

/* Every file is read by one rank; whether any is read by the host that wrote it. */
static bool stays(const uint32_t *node, uint32_t processes, uint32_t each)
{
	bool read[RANKS_MAX] = {false}, at_home = false;

	for (uint32_t r = 0; r < processes * each; r++) {
		uint32_t from = recovery_source(node, processes, each, r);

		assert_true(from < processes * each);
		assert_false(read[from]);
		read[from] = true;
		at_home = at_home || node[from / each] == node[r / each];
	}
	return at_home;
}

static void of_equal_hosts_the_next_ones(void **state)
{
	const uint32_t block[] = {0, 0, 1, 1, 2, 2}, cyclic[] = {0, 1, 2, 0, 1, 2};
	const uint32_t blocks_from[] = {2, 3, 4, 5, 0, 1}, cyclic_from[] = {1, 2, 0, 4, 5, 3};

	(void)state;
	for (uint32_t r = 0; r < 6; r++) {
		assert_int_equal(recovery_source(block, 6, 1, r), blocks_from[r]);
		assert_int_equal(recovery_source(cyclic, 6, 1, r), cyclic_from[r]);
		/* as DLIO means it, where a host's ranks follow each other */
		assert_int_equal(recovery_source(block, 6, 1, r), (r + 2) % 6);
	}
	assert_false(stays(block, 6, 1));
	assert_false(stays(cyclic, 6, 1));
	assert_false(stays(cyclic, 6, 4));
	/* ranks of a process keep their places */
	assert_int_equal(recovery_source(cyclic, 6, 4, 4 * 3 + 2), 4 * 4 + 2);
}

static void of_unequal_hosts_every_file_once(void **state)
{
	const uint32_t half[] = {0, 1, 0, 1, 0, 2}, few[] = {0, 1, 1, 2, 1, 2, 2};
	const uint32_t most[] = {0, 1, 0, 0, 0};

	(void)state;
	assert_false(stays(half, 6, 2));
	assert_false(stays(few, 7, 3));
	assert_true(stays(most, 5, 1));
}

static void of_one_host_itself(void **state)
{
	const uint32_t one[] = {0, 0, 0};

	(void)state;
	for (uint32_t r = 0; r < 12; r++)
		assert_int_equal(recovery_source(one, 3, 4, r), r);
	assert_int_equal(recovery_source(one, 1, 1, 0), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(of_equal_hosts_the_next_ones),
		cmocka_unit_test(of_unequal_hosts_every_file_once),
		cmocka_unit_test(of_one_host_itself),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
