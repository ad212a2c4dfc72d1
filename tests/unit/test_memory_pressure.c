/* Which control group is short of memory, and what the kernel says of it, from files made by hand.
 */
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

#include "metric/memory_pressure.h"

static char root[] = "/tmp/stoker-pressure-XXXXXX";

static void put(const char *name, const char *text)
{
	put_file(root, name, text);
}

static void expect(uint64_t limit, int64_t stall_us, int64_t pages)
{
	char proc[64], groups[64];
	struct memory_pressure p;

	snprintf(proc, sizeof(proc), "%s/proc", root);
	snprintf(groups, sizeof(groups), "%s/cgroup", root);
	memory_pressure_read(proc, groups, &p);
	assert_int_equal(p.limit_bytes, limit);
	assert_int_equal(p.stall_ns, stall_us < 0 ? -1 : stall_us * 1000);
	assert_int_equal(p.refault_bytes, pages < 0 ? -1 : pages * sysconf(_SC_PAGESIZE));
}

#define PRESSURE(total)                                                                            \
	"some avg10=0.00 avg60=1.25 avg300=0.00 total=" total "\n"                                 \
	"full avg10=0.00 avg60=0.00 avg300=0.00 total=1\n"

static void each_place(void **state)
{
	char rm[64];

	(void)state;
	assert_non_null(mkdtemp(root));
	expect(0, -1, -1); /* a kernel that says nothing */
	put("proc/vmstat", "nr_free_pages 17\nworkingset_refault 5\n");
	put("proc/pressure/memory", "rubbish\n");
	expect(0, -1, 5);
	put("proc/pressure/memory", PRESSURE("700"));
	put("proc/vmstat", "workingset_refault_anon 9\nworkingset_refault_file 6\n");
	expect(0, 700, 6);
	/* version 2: the least limit counts, which is that of the group above */
	put("proc/self/cgroup", "0::/job/step\n");
	put("cgroup/job/step/memory.max", "max\n");
	expect(0, 700, 6);
	put("cgroup/job/memory.max", "1048576\n");
	put("cgroup/job/memory.stat", "anon 1\nworkingset_refault_file 40\n");
	expect(1048576, 700, 40);
	put("cgroup/job/memory.pressure", PRESSURE("90"));
	expect(1048576, 90, 40);
	/* version 1 beside it, which says less */
	put("proc/self/cgroup", "4:memory:/box\n1:cpuset:/job\n0::/\n");
	put("cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
	expect(0, 700, 6);
	put("cgroup/memory/box/memory.limit_in_bytes", "65536\n");
	put("cgroup/memory/box/memory.stat",
	    "workingset_refault_file 1\ntotal_workingset_refault_file 3\n");
	expect(65536, 700, 3);
	/* inside a container the mount is the group */
	put("proc/self/cgroup", "4:memory:/docker/0123\n");
	put("cgroup/memory/memory.limit_in_bytes", "131072\n");
	expect(131072, 700, -1);
	/* a limit that the machine's memory is below is none: the machine is short of it */
	put("proc/meminfo", "MemTotal:        128 kB\nMemFree: 1 kB\n");
	expect(0, 700, 6);
	put("proc/meminfo", "MemTotal:        129 kB\nMemFree: 1 kB\n");
	expect(131072, 700, -1);
	put("proc/self/cgroup", "memory\n4:memory\n4:memory:box\n0::\n:::\n\n9:xmemory:/box\n");
	expect(0, 700, 6);
	snprintf(rm, sizeof(rm), "rm -r %s", root);
	assert_int_equal(system(rm), 0);
}

static void differences(void **state)
{
	struct memory_pressure a = {100, -1, 7}, b = {150, 10, 8}, back = {90, 5, 8};

	(void)state;
	memory_pressure_sub(&b, &a);
	assert_int_equal(b.stall_ns, 50);
	assert_int_equal(b.refault_bytes, -1);
	assert_int_equal(b.limit_bytes, 8);
	/* the process was moved to another group meanwhile */
	memory_pressure_sub(&back, &a);
	assert_int_equal(back.stall_ns, -1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_place),
		cmocka_unit_test(differences),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
