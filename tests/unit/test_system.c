/* The machine in words, from a made-up /proc and /sys: an ARM machine with a GPU and two disks. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "base/file.h"
#include "os/file_system.h"
#include "os/system.h"

static char root[64];

static void put(const char *path, const char *text)
{
	AUTO_FREE char *full = xasprintf("%s%s", root, path);
	AUTO_FREE char *folder = path_dirname(full);
	struct err e = {0};

	assert_int_equal(file_mkdirs(folder, &e), 0);
	assert_int_equal(file_write(full, text, strlen(text), &e), 0);
}

static const char *value(const struct system_facts *s, const char *key)
{
	for (size_t i = 0; i < s->pairs; i++)
		if (strcmp(s->pair[i].key, key) == 0)
			return s->pair[i].value;
	return "";
}

static void expect(const struct system_facts *s, const char *key, const char *want)
{
	if (strcmp(value(s, key), want) != 0)
		fail_msg("%s: '%s', not '%s'", key, value(s, key), want);
}

static int make(void **state)
{
	(void)state;
	snprintf(root, sizeof(root), "/tmp/test_system_%d", (int)getpid());
	put("/etc/os-release", "ID=x\nPRETTY_NAME=\"Some Linux 12\"\n");
	put("/proc/cpuinfo", "processor\t: 0\nBogoMIPS\t: 2000.00\nCPU implementer\t: 0x41\n"
			     "CPU part\t: 0xd4f\n\nprocessor\t: 1\n");
	put("/proc/meminfo", "MemTotal:       898883328 kB\n");
	for (int i = 0; i < 4; i++) {
		AUTO_FREE char *path =
			xasprintf("/sys/devices/system/cpu/cpu%d/topology/physical_package_id", i);

		put(path, i < 2 ? "0\n" : "36\n");
	}
	put("/sys/devices/system/cpu/cpufreq/x", "");
	put("/sys/devices/system/node/online", "0-2,8\n");
	put("/proc/driver/nvidia/version", "NVRM version: NVIDIA UNIX 550.54\nGCC version: 12\n");
	put("/proc/driver/nvidia/gpus/0000:01:00.0/information",
	    "Model: \t\t NVIDIA GH200 480GB\nIRQ: 1\n");
	put("/sys/block/nvme0n1/size", "3750748848\n");
	put("/sys/block/nvme0n1/queue/rotational", "0\n");
	put("/sys/block/nvme0n1/queue/nr_requests", "1023\n");
	put("/sys/block/nvme0n1/queue/read_ahead_kb", "128\n");
	put("/sys/block/nvme0n1/queue/logical_block_size", "512\n");
	put("/sys/block/nvme0n1/queue/scheduler", "[none] mq-deadline\n");
	put("/sys/block/nvme0n1/device/model", "Some Disk   \n");
	put("/sys/block/loop0/size", "100\n");
	put("/sys/block/sda/size", "not a number");
	return 0;
}

static int unmake(void **state)
{
	struct err e = {0};

	(void)state;
	return remove_tree(root, &e);
}

static void test_arm(void **state)
{
	struct system_facts s;

	(void)state;
	system_facts_load(&s, root, NULL);
	expect(&s, "operating system", "Some Linux 12");
	expect(&s, "CPU", "Arm Neoverse V2");
	expect(&s, "processors", "4");
	expect(&s, "sockets", "2");
	expect(&s, "NUMA nodes", "4 (nodes 0-2,8)");
	expect(&s, "memory", "857 GiB");
	expect(&s, "GPU", "NVIDIA GH200 480GB (0000:01:00.0)");
	expect(&s, "GPU driver", "NVIDIA UNIX 550.54");
	expect(&s, "device nvme0n1",
	       "Some Disk, 1.75 TiB, not rotational, scheduler none, 1023 requests, read-ahead 128 "
	       "KiB, block 512 bytes");
	expect(&s, "device loop0", "");
	expect(&s, "device sda", "");
	system_facts_release(&s);
}

static void test_unknown_part(void **state)
{
	struct system_facts s;

	(void)state;
	put("/proc/cpuinfo", "CPU implementer\t: 0x99\nCPU part\t: 0x123\n");
	system_facts_load(&s, root, NULL);
	expect(&s, "CPU", "implementer 0x99, part 0x123");
	system_facts_release(&s);
	put("/proc/cpuinfo", "model name\t: Some CPU\n");
	system_facts_load(&s, root, NULL);
	expect(&s, "CPU", "Some CPU");
	system_facts_release(&s);
}

/* Texts of cpuinfo as the kernels of these machines print them. */
static void test_parts(void **state)
{
	static const struct {
		const char *implementer, *part, *name;
	} machines[] = {
		{"0x41", "0xd0c", "Arm Neoverse N1"},
		{"0x41", "0xd40", "Arm Neoverse V1"},
		{"0x41", "0xd49", "Arm Neoverse N2"},
		{"0x41", "0xd4f", "Arm Neoverse V2"},
		{"0x41", "0xd84", "Arm Neoverse V3"},
		{"0x46", "0x001", "Fujitsu A64FX"},
		{"0x48", "0xd01", "HiSilicon Kunpeng 920"},
		{"0xc0", "0xac3", "Ampere-1"},
		{"0x6d", "0xd49", "Microsoft Cobalt 100"},
		{"0x61", "0x023", "Apple M1 (Firestorm)"},
		/* the same part of another implementer */
		{"0x42", "0xd4f", "implementer 0x42, part 0xd4f"},
		{"0x41", "0xfff", "implementer 0x41, part 0xfff"},
		{"0x41", "", "implementer 0x41, part "},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(machines) / sizeof(machines[0]); i++) {
		AUTO_FREE char *text =
			xasprintf("processor\t: 0\nBogoMIPS\t: 2000.00\nFeatures\t: fp asimd sve\n"
				  "CPU implementer\t: %s\nCPU architecture: 8\nCPU variant\t: 0x0\n"
				  "CPU part\t: %s\nCPU revision\t: 0\n\nprocessor\t: 1\n",
				  machines[i].implementer, machines[i].part);
		struct system_facts s;

		put("/proc/cpuinfo", text);
		system_facts_load(&s, root, NULL);
		expect(&s, "CPU", machines[i].name);
		system_facts_release(&s);
	}
	assert_null(arm_processor_name(NULL, NULL));
	assert_null(arm_processor_name(NULL, "0xd4f"));
	assert_null(arm_processor_name("0x41", NULL));
}

static void test_nothing_there(void **state)
{
	struct system_facts s;

	(void)state;
	system_facts_load(&s, "/nonexistent", NULL);
	expect(&s, "CPU", "");
	assert_true(value(&s, "kernel")[0]);
	system_facts_release(&s);
}

/* This machine: a folder that does not exist yet lies on the file system of its parent. */
static void test_folder(void **state)
{
	struct system_facts s;

	(void)state;
	system_facts_load(&s, "", "/proc/self/none/at/all");
	assert_non_null(strstr(value(&s, "data file system"), "proc from proc on /proc"));
	assert_non_null(strstr(value(&s, "data space"), "free of"));
	system_facts_release(&s);
}

/* A file system that counts no blocks, as /proc and tmpfs without a size, is not full. */
static void room_that_is_not_told(void **state)
{
	uint64_t bytes = 0, files = 0;

	(void)state;
	assert_true(file_system_room("/proc", &bytes, &files));
	assert_true(bytes == UINT64_MAX);
	assert_true(file_system_room("/", &bytes, &files));
	assert_true(bytes != UINT64_MAX);
	assert_false(file_system_room("/proc/no/such", &bytes, &files));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(room_that_is_not_told), cmocka_unit_test(test_arm),
		cmocka_unit_test(test_unknown_part),     cmocka_unit_test(test_nothing_there),
		cmocka_unit_test(test_folder),           cmocka_unit_test(test_parts),
	};

	return cmocka_run_group_tests(tests, make, unmake);
}
