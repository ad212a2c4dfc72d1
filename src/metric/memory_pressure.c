#include "metric/memory_pressure.h"

#include <inttypes.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <unistd.h>

#include "metric/counter.h"
#include "metric/processors.h"
#include "os/sysinfo.h"

/* Version 1 writes "no limit" as a number near this one. */
static const uint64_t NO_LIMIT = INT64_MAX / 2;

/* A version of control groups: its names. */
struct version {
	const char *limit;
	const char *refaults[2]; /* in memory.stat, with the groups below; the older name last */
};

static const struct version versions[] = {
	{"memory.limit_in_bytes", {"total_workingset_refault_file", "total_workingset_refault"}},
	{"memory.max", {"workingset_refault_file", "workingset_refault"}},
};

struct group {
	char folder[PATH_MAX];
	const struct version *version;
	uint64_t limit;
};

static void take_limit(void *arg, const char *folder, bool second)
{
	const struct version *v = &versions[second];
	struct group *least = arg;
	uint64_t limit;

	if (!cgroup_number(folder, v->limit, &limit) || limit >= least->limit)
		return;
	least->version = v;
	least->limit = limit;
	snprintf(least->folder, sizeof(least->folder), "%s", folder);
}

/* A limit above the machine's memory has no effect. */
static void find_group(const char *proc, const char *root, struct group *least)
{
	char path[PATH_MAX];
	uint64_t kib;

	*least = (struct group){.limit = NO_LIMIT};
	snprintf(path, sizeof(path), "%.1000s/meminfo", proc);
	if (cgroup_named_number(path, "MemTotal:", &kib) && kib < NO_LIMIT / 1024)
		least->limit = kib * 1024;
	snprintf(path, sizeof(path), "%.1000s/self/cgroup", proc);
	cgroup_walk(path, root, "memory", take_limit, least);
}

void memory_pressure_read(const char *proc, const char *groups, struct memory_pressure *out)
{
	char path[PATH_MAX + 64];
	int64_t stall = -1;
	struct group least;
	uint64_t pages;
	bool known = false;

	find_group(proc, groups, &least);
	*out = (struct memory_pressure){.limit_bytes = least.version ? least.limit : 0};
	if (least.version) {
		snprintf(path, sizeof(path), "%s/memory.pressure", least.folder);
		stall = pressure_ns(path);
		snprintf(path, sizeof(path), "%s/memory.stat", least.folder);
	} else {
		least.version = &versions[1]; /* the names of vmstat too */
		snprintf(path, sizeof(path), "%.1000s/vmstat", proc);
	}
	for (int i = 0; i < 2 && !known; i++)
		known = cgroup_named_number(path, least.version->refaults[i], &pages);
	if (stall < 0) {
		snprintf(path, sizeof(path), "%.1000s/pressure/memory", proc);
		stall = pressure_ns(path);
	}
	out->stall_ns = stall;
	out->refault_bytes = known ? (int64_t)pages * sysconf(_SC_PAGESIZE) : -1;
}

void memory_pressure_take(struct memory_pressure *out)
{
	memory_pressure_read("/proc", "/sys/fs/cgroup", out);
}

void memory_pressure_sub(struct memory_pressure *now, const struct memory_pressure *before)
{
	now->stall_ns = counter_since(now->stall_ns, before->stall_ns);
	now->refault_bytes = counter_since(now->refault_bytes, before->refault_bytes);
}
