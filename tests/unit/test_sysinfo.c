/* Host facts: the parsing rules on files of other machines, and this host's own. */
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "put_file.h"

#include "os/sysinfo.h"

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

static double quota_of(const char *root, const char *list)
{
	char path[512];

	put_file(root, "list", list);
	snprintf(path, sizeof(path), "%s/list", root);
	return host_cpu_quota(path, root);
}

static void near(double have, double want)
{
	if (have < want - 1e-9 || have > want + 1e-9)
		fail_msg("%g is not %g", have, want);
}

static void test_quota(void **state)
{
	char root[] = "/tmp/stoker-cgroup-XXXXXX", rm[64];

	(void)state;
	assert_non_null(mkdtemp(root));
	near(host_cpu_quota("/nonexistent", root), 0);
	put_file(root, "a/cpu.max", "250000 100000\n");
	put_file(root, "a/b/cpu.max", "max 100000\n");
	put_file(root, "a/b/c/cpu.max", "400000 100000\n");
	near(quota_of(root, "0::/a/b/c\n"), 2.5); /* bound by the group above */
	near(quota_of(root, "0::/a/b\n"), 2.5);
	near(quota_of(root, "0::/\n"), 0);
	near(quota_of(root, "no colon\n0:\n0::\n0::relative\n\n"), 0);
	put_file(root, "cpu/cpu.cfs_quota_us", "-1\n");
	put_file(root, "cpu/cpu.cfs_period_us", "100000\n");
	put_file(root, "cpu/box/cpu.cfs_quota_us", "50000\n");
	put_file(root, "cpu/box/cpu.cfs_period_us", "100000\n");
	near(quota_of(root, "3:cpuset:/box\n1:cpuacct,cpu:/box\n0::/\n"), 0.5);
	near(quota_of(root, "3:cpuset:/box\n1:cpuacct:/box\n"), 0); /* not these controllers */
	near(quota_of(root, "1:cpu:/\n"), 0);
	/* in a container the host's folder is missing and the mount is the group */
	put_file(root, "cpu/cpu.cfs_quota_us", "150000\n");
	near(quota_of(root, "1:cpu:/docker/0123\n"), 1.5);
	put_file(root, "cpu.max", "");
	near(quota_of(root, "0::/\n"), 0);
	put_file(root, "cpu.max", "100000 0\n");
	near(quota_of(root, "0::/\n"), 0);
	snprintf(rm, sizeof(rm), "rm -r %s", root);
	assert_int_equal(system(rm), 0);
}

static uint64_t room_of(const char *root, const char *list)
{
	char path[512];

	put_file(root, "list", list);
	snprintf(path, sizeof(path), "%s/list", root);
	return host_group_room(path, root);
}

static void test_room(void **state)
{
	char root[] = "/tmp/stoker-cgroup-XXXXXX", rm[64];

	(void)state;
	assert_non_null(mkdtemp(root));
	assert_true(host_group_room("/nonexistent", root) == UINT64_MAX);
	assert_true(room_of(root, "0::/job/step\n") == UINT64_MAX);
	put_file(root, "job/step/memory.max", "max\n");
	put_file(root, "job/memory.max", "1000\n");
	put_file(root, "job/memory.current", "900\n");
	/* bound by the group above */
	assert_int_equal(room_of(root, "0::/job/step\n"), 100);
	/* the page cache makes way for the program, shared memory does not */
	put_file(root, "job/memory.stat",
		 "anon 120\nfile 780\nshmem 80\nactive_file_x 1\ninactive_file 500\nactive_file "
		 "200\n");
	assert_int_equal(room_of(root, "0::/job/step\n"), 800);
	put_file(root, "job/memory.current", "1100\n");
	assert_int_equal(room_of(root, "0::/job/step\n"), 600);
	put_file(root, "job/memory.current", "300\n");
	assert_int_equal(room_of(root, "0::/job/step\n"), 1000);
	put_file(root, "job/memory.current", "2000\n");
	assert_int_equal(room_of(root, "0::/job\n"), 0);
	/* version 1, in a container: the mount is the group */
	put_file(root, "memory/memory.limit_in_bytes", "5000\n");
	put_file(root, "memory/memory.usage_in_bytes", "4900\n");
	put_file(root, "memory/memory.stat", "active_file 1\ntotal_active_file 1900\n");
	assert_int_equal(room_of(root, "3:cpu:/\n4:memory:/docker/0123\n0::/\n"), 2000);
	snprintf(rm, sizeof(rm), "rm -r %s", root);
	assert_int_equal(system(rm), 0);
}

static void test_usable(void **state)
{
	cpu_set_t all, one;
	double before = host_usable_cpus();
	int first = 0;

	(void)state;
	assert_true(before > 0 && before <= (double)sysconf(_SC_NPROCESSORS_CONF));
	assert_int_equal(sched_getaffinity(0, sizeof(all), &all), 0);
	while (!CPU_ISSET(first, &all))
		first++;
	CPU_ZERO(&one);
	CPU_SET(first, &one);
	assert_int_equal(sched_setaffinity(0, sizeof(one), &one), 0);
	assert_true(host_usable_cpus() <= 1);
	assert_int_equal(host_threads(), 1);
	assert_int_equal(sched_setaffinity(0, sizeof(all), &all), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_arm),
		cmocka_unit_test(test_odd_lines),
		cmocka_unit_test(test_nothing_to_read),
		cmocka_unit_test(test_this_host),
		cmocka_unit_test(test_quota),
		cmocka_unit_test(test_room),
		cmocka_unit_test(test_usable),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
