/* Host facts: the parsing rules on files of other machines, and this host's own. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/sysinfo.h"

static void load_text(const char *text, size_t n, struct sysinfo_pair **pairs, size_t *count)
{
	char path[] = "/tmp/stoker-sysinfo-XXXXXX";
	int fd = mkstemp(path);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, n), (ssize_t)n);
	close(fd);
	host_pairs_load(path, pairs, count);
	unlink(path);
}

static const char *find(const struct sysinfo_pair *pairs, size_t count, const char *key)
{
	for (size_t i = 0; i < count; i++)
		if (strcmp(pairs[i].key, key) == 0)
			return pairs[i].value;
	return NULL;
}

static void test_arm(void **state)
{
	static const char text[] = "processor\t: 0\n"
				   "BogoMIPS\t: 243.75\n"
				   "Features\t: fp asimd evtstrm\n"
				   "CPU implementer\t: 0x41\n"
				   "CPU part\t: 0xd0c\n"
				   "\n"
				   "processor\t: 1\n"
				   "BogoMIPS\t: 250.00\n"
				   "Features\t: fp\n";
	struct sysinfo_pair *pairs;
	size_t count;

	(void)state;
	load_text(text, sizeof(text) - 1, &pairs, &count);
	assert_int_equal(count, 4);
	/* the last processor's values in the first one's places */
	assert_string_equal(pairs[0].key, "BogoMIPS");
	assert_string_equal(pairs[0].value, "250.00");
	assert_string_equal(pairs[1].key, "Features");
	assert_string_equal(pairs[1].value, "fp");
	assert_string_equal(pairs[2].value, "0x41");
	assert_null(find(pairs, count, "processor"));
	host_pairs_free(pairs, count);
}

static void test_odd_lines(void **state)
{
	static const char text[] = "no colon\n"
				   "a: b: c\n"
				   "::\n"
				   "\n"
				   "empty :\n"
				   "  padded key \t:   padded value \t\n"
				   "last: no newline";
	struct sysinfo_pair *pairs;
	size_t count;

	(void)state;
	load_text(text, sizeof(text) - 1, &pairs, &count);
	assert_int_equal(count, 3);
	assert_string_equal(find(pairs, count, "empty"), "");
	assert_string_equal(find(pairs, count, "padded key"), "padded value");
	assert_string_equal(find(pairs, count, "last"), "no newline");
	host_pairs_free(pairs, count);
}

static void test_nothing_to_read(void **state)
{
	static const char *const paths[] = {"/nonexistent/cpuinfo", "/", "/dev/null"};

	(void)state;
	for (size_t i = 0; i < 3; i++) {
		struct sysinfo_pair *pairs = (void *)1;
		size_t count = 9;

		host_pairs_load(paths[i], &pairs, &count);
		assert_null(pairs);
		assert_int_equal(count, 0);
		host_pairs_free(pairs, count);
	}
}

static void test_this_host(void **state)
{
	struct host_facts h;
	struct sysinfo_pair *pairs;
	size_t count;

	(void)state;
	host_facts_load(&h);
	assert_true(h.hostname[0] != '\0');
	assert_memory_equal(h.kernel, "Linux ", 6);
	assert_true(h.cpu_count >= 1);
	assert_true(h.memory_gib > 0.01 && h.memory_gib < 1e6);
	if (h.meminfo_count) {
		const char *total = find(h.meminfo, h.meminfo_count, "MemTotal");

		assert_non_null(total);
		assert_non_null(strstr(total, " kB"));
	}
	host_meminfo_load(&pairs, &count);
	assert_int_equal(count, h.meminfo_count);
	host_pairs_free(pairs, count);
	host_facts_release(&h);
	assert_null(h.meminfo);
	host_facts_release(&h);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_arm),
		cmocka_unit_test(test_odd_lines),
		cmocka_unit_test(test_nothing_to_read),
		cmocka_unit_test(test_this_host),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
