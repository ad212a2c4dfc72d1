/* How accelerators are spread over hosts. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "study/capacity.h"

static void spread(const struct spread_host *host, size_t hosts, uint32_t n, const char *list)
{
	struct str_list words = {0};

	spread_put(host, hosts, n, &words);
	assert_int_equal(words.n, 4);
	assert_string_equal(words.v[0], "--hosts");
	assert_string_equal(words.v[1], list);
	assert_string_equal(words.v[2], "-n");
	assert_int_equal(atoi(words.v[3]), n);
	str_list_release(&words);
}

static void test_equal(void **state)
{
	const struct spread_host host[] = {{"a", 1}, {"b", 1}, {"user@c", 1}};

	(void)state;
	spread(host, 3, 1, "a");
	spread(host, 3, 2, "a,b");
	spread(host, 3, 3, "a,b,user@c");
	spread(host, 3, 4, "a:2,b,user@c");
	spread(host, 3, 5, "a:2,b:2,user@c");
	spread(host, 3, 12, "a,b,user@c");
	spread(host, 3, 13, "a:5,b:4,user@c:4");
	spread(host, 1, 7, "a");
}

static void test_weighed(void **state)
{
	const struct spread_host host[] = {{"a", 2}, {"fe80::1", 1}, {"c", 4}};

	(void)state;
	assert_int_equal(spread_processes(host, 3), 7);
	assert_int_equal(spread_processes(NULL, 0), 0);
	spread(host, 3, 2, "a,fe80::1");
	spread(host, 3, 5, "a:2,fe80::1,c:2");
	spread(host, 3, 7, "a:2,fe80::1,c:4");
	spread(host, 3, 14, "a:2,fe80::1,c:4");
	/* two and four for each process, and three more */
	spread(host, 3, 31, "a:9,[fe80::1]:5,c:17");
	/* one left goes to the first */
	spread((const struct spread_host[]){{"a", 2}, {"b", 1}}, 2, 4, "a:3,b");
	spread((const struct spread_host[]){{"a", 4}, {"b", 2}}, 2, 8, "a:5,b:3");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_equal),
		cmocka_unit_test(test_weighed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
