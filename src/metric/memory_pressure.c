#include "metric/memory_pressure.h"

#include <inttypes.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Version 1 writes "no limit" as a number near this one. */
static const uint64_t NO_LIMIT = INT64_MAX / 2;

/* A version of control groups: where it may be mounted, and its names. */
struct version {
	const char *mounts[2];
	const char *limit;
	const char *refaults[2]; /* in memory.stat, with the groups below; the older name last */
};

static const struct version versions[] = {
	{{"memory", "memory"},
	 "memory.limit_in_bytes",
	 {"total_workingset_refault_file", "total_workingset_refault"}},
	{{"", "unified"}, "memory.max", {"workingset_refault_file", "workingset_refault"}},
};

struct group {
	char folder[PATH_MAX];
	const struct version *version;
	uint64_t limit;
};

static bool read_limit(const char *folder, const char *name, uint64_t *out)
{
	char path[PATH_MAX + 64], text[64] = "", *end;
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	f = fopen(path, "re");
	if (!f)
		return false;
	if (!fgets(text, sizeof(text), f))
		text[0] = '\0';
	fclose(f);
	*out = strtoull(text, &end, 10);
	return end != text && *out < NO_LIMIT;
}

/* Limits hold for all groups below; inside a container the path may be the host's, and the mount
 * itself the group. */
static void look_up(const char *root, const char *mount, const char *path, const struct version *v,
		    struct group *least)
{
	char at[PATH_MAX];
	uint64_t limit;

	snprintf(at, sizeof(at), "%.1000s/%s%.2000s", root, mount, path);
	for (;;) {
		char *slash = strrchr(at, '/');

		if (read_limit(at, v->limit, &limit) && limit < least->limit) {
			*least = (struct group){.version = v, .limit = limit};
			snprintf(least->folder, sizeof(least->folder), "%s", at);
		}
		if (strlen(at) <= strlen(root) || !slash)
			return;
		*slash = '\0';
	}
}

static bool lists_memory(const char *controllers)
{
	const char *p = strstr(controllers, "memory");

	return p && (p == controllers || p[-1] == ',') && (p[6] == '\0' || p[6] == ',');
}

static void find_group(const char *proc, const char *root, struct group *least)
{
	char path[PATH_MAX];
	char *line = NULL;
	size_t cap = 0;
	FILE *f;

	snprintf(path, sizeof(path), "%.1000s/self/cgroup", proc);
	f = fopen(path, "re");
	while (f && getline(&line, &cap, f) >= 0) {
		char *controllers = strchr(line, ':');
		char *group = controllers ? strchr(controllers + 1, ':') : NULL;
		const struct version *v;

		if (!group || group[1] != '/')
			continue;
		*group++ = '\0';
		group[strcspn(group, "\n")] = '\0';
		if (controllers[1] != '\0' && !lists_memory(controllers + 1))
			continue;
		v = &versions[controllers[1] == '\0'];
		for (int i = 0; i < 2; i++)
			look_up(root, v->mounts[i], group, v, least);
	}
	free(line);
	if (f)
		fclose(f);
}

/* The value beside a name in a file of such lines; -1: it is not there. */
static int64_t read_named(const char *path, const char *name)
{
	FILE *f = fopen(path, "re");
	char key[128];
	int64_t v, found = -1;

	while (f && found < 0 && fscanf(f, "%127s %" SCNd64, key, &v) == 2)
		if (strcmp(key, name) == 0)
			found = v;
	if (f)
		fclose(f);
	return found;
}

static int64_t read_stall(const char *path)
{
	FILE *f = fopen(path, "re");
	int64_t us = -1;

	if (!f)
		return -1;
	if (fscanf(f, "some avg10=%*f avg60=%*f avg300=%*f total=%" SCNd64, &us) != 1)
		us = -1;
	fclose(f);
	return us < 0 ? -1 : us * 1000;
}

void memory_pressure_read(const char *proc, const char *groups, struct memory_pressure *out)
{
	struct group least = {.limit = UINT64_MAX};
	char path[PATH_MAX + 64];
	int64_t pages = -1, stall = -1;

	find_group(proc, groups, &least);
	*out = (struct memory_pressure){.limit_bytes = least.version ? least.limit : 0};
	if (least.version) {
		snprintf(path, sizeof(path), "%s/memory.pressure", least.folder);
		stall = read_stall(path);
		snprintf(path, sizeof(path), "%s/memory.stat", least.folder);
	} else {
		least.version = &versions[1]; /* the names of vmstat too */
		snprintf(path, sizeof(path), "%.1000s/vmstat", proc);
	}
	for (int i = 0; i < 2 && pages < 0; i++)
		pages = read_named(path, least.version->refaults[i]);
	if (stall < 0) {
		snprintf(path, sizeof(path), "%.1000s/pressure/memory", proc);
		stall = read_stall(path);
	}
	out->stall_ns = stall;
	out->refault_bytes = pages < 0 ? -1 : pages * sysconf(_SC_PAGESIZE);
}

void memory_pressure_take(struct memory_pressure *out)
{
	memory_pressure_read("/proc", "/sys/fs/cgroup", out);
}

static int64_t since(int64_t now, int64_t before)
{
	return now < 0 || before < 0 || now < before ? -1 : now - before;
}

void memory_pressure_sub(struct memory_pressure *now, const struct memory_pressure *before)
{
	now->stall_ns = since(now->stall_ns, before->stall_ns);
	now->refault_bytes = since(now->refault_bytes, before->refault_bytes);
}
