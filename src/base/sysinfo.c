/* Host facts from uname(2), sysconf(3) and /proc, in the form DLIO's files have. */
#include "base/sysinfo.h"

#include <ctype.h>
#include <limits.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/alloc.h"

static char *trimmed(char *s)
{
	size_t n;

	while (isspace((unsigned char)*s))
		s++;
	n = strlen(s);
	while (n > 0 && isspace((unsigned char)s[n - 1]))
		n--;
	s[n] = '\0';
	return s;
}

void host_pairs_free(struct sysinfo_pair *pairs, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		free(pairs[i].key);
		free(pairs[i].value);
	}
	free(pairs);
}

static void put(struct sysinfo_pair **pairs, size_t *count, const char *key, const char *value)
{
	for (size_t i = 0; i < *count; i++) {
		if (strcmp((*pairs)[i].key, key) == 0) {
			free((*pairs)[i].value);
			(*pairs)[i].value = xstrdup(value);
			return;
		}
	}
	*pairs = xrealloc(*pairs, (*count + 1) * sizeof(**pairs));
	(*pairs)[*count] = (struct sysinfo_pair){xstrdup(key), xstrdup(value)};
	(*count)++;
}

void host_pairs_load(const char *path, struct sysinfo_pair **pairs, size_t *count)
{
	FILE *f = fopen(path, "re");
	char *line = NULL;
	size_t cap = 0;

	*pairs = NULL;
	*count = 0;
	if (!f)
		return;
	while (getline(&line, &cap, f) >= 0) {
		char *colon = strchr(line, ':');
		char *key;

		/* DLIO takes only lines with one colon apart */
		if (!colon || strchr(colon + 1, ':'))
			continue;
		*colon = '\0';
		key = trimmed(line);
		if (strcmp(key, "processor") != 0)
			put(pairs, count, key, trimmed(colon + 1));
	}
	free(line);
	fclose(f);
}

void host_meminfo_load(struct sysinfo_pair **pairs, size_t *count)
{
	host_pairs_load("/proc/meminfo", pairs, count);
}

/* One line of numbers, "max" or "-1" for none. */
static double quota_file(const char *folder, const char *name, double *second)
{
	char path[4352], line[64] = "";
	double quota = 0;
	char *end;
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	f = fopen(path, "re");
	if (!f)
		return 0;
	if (fgets(line, sizeof(line), f)) {
		quota = strtod(line, &end);
		if (second)
			*second = strtod(end, NULL);
	}
	fclose(f);
	return quota;
}

static double folder_quota(const char *folder)
{
	double period = 0, quota = quota_file(folder, "cpu.max", &period);

	if (!(period > 0)) {
		quota = quota_file(folder, "cpu.cfs_quota_us", NULL);
		period = quota_file(folder, "cpu.cfs_period_us", NULL);
	}
	return quota > 0 && period > 0 ? quota / period : 0;
}

/* A group is also bound by those above it. In a container the folders of the host's names may be
 * missing and the mount itself be the group: the way up ends there. */
static double least_quota(const char *root, const char *mount, const char *group)
{
	double least = 0, quota;
	char folder[4096];
	size_t stop;
	int n = snprintf(folder, sizeof(folder), "%s/%s", root, mount);

	if (n < 0 || (size_t)n >= sizeof(folder))
		return 0;
	stop = (size_t)n;
	n = snprintf(folder + stop, sizeof(folder) - stop, "%s", group);
	if (n < 0 || (size_t)n >= sizeof(folder) - stop)
		folder[stop] = '\0';
	for (;;) {
		quota = folder_quota(folder);
		if (quota > 0 && (least <= 0 || quota < least))
			least = quota;
		if (strlen(folder) <= stop)
			return least;
		*strrchr(folder, '/') = '\0';
		if (strlen(folder) < stop)
			return least;
	}
}

static bool lists_cpu(char *controllers)
{
	char *rest;

	for (char *c = strtok_r(controllers, ",", &rest); c; c = strtok_r(NULL, ",", &rest))
		if (strcmp(c, "cpu") == 0)
			return true;
	return false;
}

double host_cpu_quota(const char *list, const char *root)
{
	static const char *const mounts[] = {"", "unified", "cpu", "cpu,cpuacct", "cpuacct,cpu"};
	FILE *f = fopen(list, "re");
	double least = 0, quota;
	char *line = NULL;
	size_t cap = 0;

	if (!f)
		return 0;
	while (getline(&line, &cap, f) >= 0) {
		char *controllers = strchr(line, ':');
		char *group = controllers ? strchr(controllers + 1, ':') : NULL;
		bool second;

		if (!group)
			continue;
		*group++ = '\0';
		group[strcspn(group, "\n")] = '\0';
		second = controllers[1] == '\0';
		if (group[0] != '/' || (!second && !lists_cpu(controllers + 1)))
			continue;
		for (size_t i = second ? 0 : 2; i < (second ? 2 : 5); i++) {
			quota = least_quota(root, mounts[i], group);
			if (quota > 0 && (least <= 0 || quota < least))
				least = quota;
		}
	}
	free(line);
	fclose(f);
	return least;
}

double host_usable_cpus(void)
{
	cpu_set_t set[64]; /* room for 65536 processors: a smaller one is refused where more are */
	long online = sysconf(_SC_NPROCESSORS_ONLN);
	double cpus = online > 0 ? (double)online : 1;
	double quota = host_cpu_quota("/proc/self/cgroup", "/sys/fs/cgroup");

	if (sched_getaffinity(0, sizeof(set), set) == 0 && CPU_COUNT_S(sizeof(set), set) > 0)
		cpus = CPU_COUNT_S(sizeof(set), set);
	return quota > 0 && quota < cpus ? quota : cpus;
}

unsigned host_threads(void)
{
	double cpus = host_usable_cpus();
	unsigned whole = (unsigned)cpus;

	return whole + ((double)whole < cpus);
}

void host_facts_load(struct host_facts *h)
{
	struct utsname u;
	long cpus = sysconf(_SC_NPROCESSORS_ONLN);
	long pages = sysconf(_SC_PHYS_PAGES), page_bytes = sysconf(_SC_PAGESIZE);

	*h = (struct host_facts){0};
	if (uname(&u) == 0) {
		snprintf(h->hostname, sizeof(h->hostname), "%s", u.nodename);
		snprintf(h->kernel, sizeof(h->kernel), "%s %s %s", u.sysname, u.release, u.machine);
	}
	if (pages > 0 && page_bytes > 0)
		h->memory_gib = (double)pages * (double)page_bytes / 0x1p30;
	h->cpu_count = cpus > 0 ? (int)cpus : 1;
	h->usable_cpus = host_usable_cpus();
	host_pairs_load("/proc/cpuinfo", &h->cpuinfo, &h->cpuinfo_count);
	host_meminfo_load(&h->meminfo, &h->meminfo_count);
	for (size_t i = 0; i < h->meminfo_count; i++)
		if (strcmp(h->meminfo[i].key, "MemTotal") == 0)
			h->memory_gib = strtod(h->meminfo[i].value, NULL) / 0x1p20;
}

void host_facts_release(struct host_facts *h)
{
	host_pairs_free(h->cpuinfo, h->cpuinfo_count);
	host_pairs_free(h->meminfo, h->meminfo_count);
	*h = (struct host_facts){0};
}

static bool read_number(const char *path, uint64_t *out)
{
	char text[64] = "";
	FILE *f = fopen(path, "re");
	char *end;

	if (!f)
		return false;
	if (!fgets(text, sizeof(text), f))
		text[0] = '\0';
	fclose(f);
	*out = strtoull(text, &end, 10);
	return end != text;
}

/* The group's own files are at the root of the mount inside a container, which is where limits are
 * met; elsewhere the path is in /proc/self/cgroup. */
static uint64_t group_room(const char *folder, const char *limit_name, const char *used_name)
{
	char path[PATH_MAX];
	uint64_t limit, used;

	snprintf(path, sizeof(path), "%s/%s", folder, limit_name);
	if (!read_number(path, &limit))
		return UINT64_MAX;
	snprintf(path, sizeof(path), "%s/%s", folder, used_name);
	if (!read_number(path, &used))
		used = 0;
	return limit > used ? limit - used : 0;
}

static uint64_t own_group_room(void)
{
	FILE *f = fopen("/proc/self/cgroup", "re");
	char line[PATH_MAX], folder[PATH_MAX + 64];
	uint64_t room = UINT64_MAX, one;

	while (f && fgets(line, sizeof(line), f)) {
		char *controllers = strchr(line, ':');
		char *path = controllers ? strchr(controllers + 1, ':') : NULL;

		if (!path)
			continue;
		*path++ = '\0';
		path[strcspn(path, "\n")] = '\0';
		if (strcmp(controllers + 1, "") == 0) {
			snprintf(folder, sizeof(folder), "/sys/fs/cgroup%s", path);
			one = group_room(folder, "memory.max", "memory.current");
		} else if (strstr(controllers + 1, "memory")) {
			snprintf(folder, sizeof(folder), "/sys/fs/cgroup/memory%s", path);
			one = group_room(folder, "memory.limit_in_bytes", "memory.usage_in_bytes");
		} else {
			continue;
		}
		if (one < room)
			room = one;
	}
	if (f)
		fclose(f);
	return room;
}

uint64_t host_available_bytes(void)
{
	struct sysinfo_pair *pairs;
	size_t count;
	uint64_t avail = (uint64_t)sysconf(_SC_AVPHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);
	uint64_t room = own_group_room();

	host_meminfo_load(&pairs, &count);
	for (size_t i = 0; i < count; i++)
		if (strcmp(pairs[i].key, "MemAvailable") == 0)
			avail = strtoull(pairs[i].value, NULL, 10) * 1024;
	host_pairs_free(pairs, count);
	return room < avail ? room : avail;
}
