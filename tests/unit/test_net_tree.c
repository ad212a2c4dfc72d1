/* The shape of the tree of processes: nobody has more than NET_TREE_BELOW below, each host is
 * entered once, and the way to process 0 is short. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "comm/net_tree.h"

/* `node_of(p)` for each process; checks the tree and returns its depth. */
static uint32_t check_shape(uint32_t processes, uint32_t (*node_of)(uint32_t p))
{
	struct net_process *table = calloc(processes, sizeof(*table));
	uint32_t *parent = calloc(processes, sizeof(*parent));
	uint32_t *below = calloc(processes, sizeof(*below));
	uint32_t nodes = 0, crossings = 0, deepest = 0, said;

	for (uint32_t p = 0; p < processes; p++) {
		table[p].node = node_of(p);
		nodes = table[p].node >= nodes ? table[p].node + 1 : nodes;
	}
	said = net_tree_shape(table, processes, parent);
	assert_int_equal(parent[0], 0);
	for (uint32_t p = 1; p < processes; p++) {
		uint32_t depth = 0;

		assert_true(++below[parent[p]] <= NET_TREE_BELOW);
		crossings += table[p].node != table[parent[p]].node;
		for (uint32_t q = p; q != 0; q = parent[q])
			assert_true(++depth < processes);
		deepest = depth > deepest ? depth : deepest;
	}
	assert_int_equal(deepest, said);
	assert_int_equal(crossings, nodes - 1);
	free(below);
	free(parent);
	free(table);
	return deepest;
}

static uint32_t one(uint32_t p)
{
	(void)p;
	return 0;
}

static uint32_t own(uint32_t p)
{
	return p;
}

static uint32_t eights(uint32_t p)
{
	return p / 8;
}

static uint32_t halves(uint32_t p)
{
	return p % 2; /* one after the other, as some launchers place them */
}

static uint32_t uneven(uint32_t p)
{
	return p < 200 ? 0 : p < 203 ? 1 : 2 + (p - 203) / 40;
}

static void one_host(void **state)
{
	(void)state;
	assert_int_equal(check_shape(1, one), 0);
	assert_int_equal(check_shape(5, one), 1);
	assert_int_equal(check_shape(21, one), 2);
	assert_int_equal(check_shape(512, one), 5);
	assert_true(check_shape(100000, one) <= 9);
}

static void many_hosts(void **state)
{
	(void)state;
	assert_int_equal(check_shape(2, own), 1);
	assert_int_equal(check_shape(512, own), 5);
	assert_true(check_shape(512, eights) <= 7);
	assert_true(check_shape(512, halves) <= 6);
	assert_true(check_shape(512, uneven) <= 8);
	for (uint32_t n = 2; n < 150; n++)
		check_shape(n, n % 3 ? eights : own);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_host),
		cmocka_unit_test(many_hosts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
