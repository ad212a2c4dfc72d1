/* Host facts from uname(2), sysconf(3) and /proc, in the form DLIO's files have. */
#include "os/sysinfo.h"

#include <ctype.h>
#include <inttypes.h>
#include <limits.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/thread.h"

static void walk_up(const char *root, const char *mount, const char *group, bool second,
		    cgroup_fn *each, void *arg)
{
	char folder[PATH_MAX];
	size_t stop;
	int n = snprintf(folder, sizeof(folder), "%s/%s", root, mount);

	if (n < 0 || (size_t)n >= sizeof(folder))
		return;
	stop = (size_t)n;
	n = snprintf(folder + stop, sizeof(folder) - stop, "%s", group);
	if (n < 0 || (size_t)n >= sizeof(folder) - stop)
		folder[stop] = '\0';
	for (;;) {
		each(arg, folder, second);
		if (strlen(folder) <= stop)
			return;
		*strrchr(folder, '/') = '\0';
		if (strlen(folder) < stop)
			return;
	}
}

static bool lists(char *controllers, const char *wanted)
{
	char *rest;

	for (char *c = strtok_r(controllers, ",", &rest); c; c = strtok_r(NULL, ",", &rest))
		if (strcmp(c, wanted) == 0)
			return true;
	return false;
}

void cgroup_walk(const char *list, const char *root, const char *controller, cgroup_fn *each,
		 void *arg)
{
	/* version 1 mounts the two controllers of processors together, under either name */
	const char *mounts[] = {"", "unified", controller, "cpu,cpuacct", "cpuacct,cpu"};
	size_t first_end = strcmp(controller, "cpu") == 0 ? 5 : 3;
	FILE *f = WITH_MEMORY(fopen(list, "re"));
	char *line = NULL;
	size_t cap = 0;

	if (!f)
		return;
	while (xgetline(&line, &cap, f) >= 0) {
		char *controllers = strchr(line, ':');
		char *group = controllers ? strchr(controllers + 1, ':') : NULL;
		bool second;

		if (!group)
			continue;
		*group++ = '\0';
		group[strcspn(group, "\n")] = '\0';
		second = controllers[1] == '\0';
		if (group[0] != '/' || (!second && !lists(controllers + 1, controller)))
			continue;
		for (size_t i = second ? 0 : 2; i < (second ? 2 : first_end); i++)
			walk_up(root, mounts[i], group, second, each, arg);
	}
	free(line);
	fclose(f);
}

bool cgroup_number(const char *folder, const char *name, uint64_t *out)
{
	char path[PATH_MAX + 64], text[64] = "", *end;
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	f = WITH_MEMORY(fopen(path, "re"));
	if (!f)
		return false;
	if (!fgets(text, sizeof(text), f))
		text[0] = '\0';
	fclose(f);
	*out = strtoull(text, &end, 10);
	return end != text;
}

bool cgroup_named_number(const char *path, const char *name, uint64_t *out)
{
	FILE *f = WITH_MEMORY(fopen(path, "re"));
	bool found = false;
	char line[256];
	size_t n = strlen(name);

	while (f && !found && fgets(line, sizeof(line), f))
		found = strncmp(line, name, n) == 0 && (line[n] == ' ' || line[n] == '\t') &&
			sscanf(line + n, "%" SCNu64, out) == 1;
	if (f)
		fclose(f);
	return found;
}

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

static void set_pair(struct sysinfo_pair **pairs, size_t *count, const char *key, const char *value)
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
	FILE *f = WITH_MEMORY(fopen(path, "re"));
	char *line = NULL;
	size_t cap = 0;

	*pairs = NULL;
	*count = 0;
	if (!f)
		return;
	while (xgetline(&line, &cap, f) >= 0) {
		char *colon = strchr(line, ':');
		char *key;

		/* DLIO takes only lines with one colon apart */
		if (!colon || strchr(colon + 1, ':'))
			continue;
		*colon = '\0';
		key = trimmed(line);
		if (strcmp(key, "processor") != 0)
			set_pair(pairs, count, key, trimmed(colon + 1));
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
	f = WITH_MEMORY(fopen(path, "re"));
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

double host_group_quota(const char *folder)
{
	double period = 0, quota = quota_file(folder, "cpu.max", &period);

	if (!(period > 0)) {
		quota = quota_file(folder, "cpu.cfs_quota_us", NULL);
		period = quota_file(folder, "cpu.cfs_period_us", NULL);
	}
	return quota > 0 && period > 0 ? quota / period : 0;
}

static void take_quota(void *arg, const char *folder, bool second)
{
	double *least = arg, quota = host_group_quota(folder);

	(void)second;
	if (quota > 0 && (*least <= 0 || quota < *least))
		*least = quota;
}

double host_cpu_quota(const char *list, const char *root)
{
	double least = 0;

	cgroup_walk(list, root, "cpu", take_quota, &least);
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

static void take_room(void *arg, const char *folder, bool second)
{
	static const struct {
		const char *limit, *used, *files[2];
	} names[] = {{"memory.limit_in_bytes",
		      "memory.usage_in_bytes",
		      {"total_active_file", "total_inactive_file"}},
		     {"memory.max", "memory.current", {"active_file", "inactive_file"}}};
	char stat[PATH_MAX + 64];
	uint64_t *least = arg, limit, used = 0, files;

	if (!cgroup_number(folder, names[second].limit, &limit))
		return;
	cgroup_number(folder, names[second].used, &used);
	snprintf(stat, sizeof(stat), "%s/memory.stat", folder);
	/* the page cache makes way, as in MemAvailable */
	for (int i = 0; i < 2; i++)
		if (cgroup_named_number(stat, names[second].files[i], &files))
			used -= files < used ? files : used;
	limit = limit > used ? limit - used : 0;
	if (limit < *least)
		*least = limit;
}

uint64_t host_group_room(const char *list, const char *root)
{
	uint64_t least = UINT64_MAX;

	cgroup_walk(list, root, "memory", take_room, &least);
	return least;
}

uint64_t host_available_bytes(void)
{
	struct sysinfo_pair *pairs;
	size_t count;
	uint64_t avail = (uint64_t)sysconf(_SC_AVPHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);
	uint64_t room = host_group_room("/proc/self/cgroup", "/sys/fs/cgroup");

	host_meminfo_load(&pairs, &count);
	for (size_t i = 0; i < count; i++)
		if (strcmp(pairs[i].key, "MemAvailable") == 0)
			avail = strtoull(pairs[i].value, NULL, 10) * 1024;
	host_pairs_free(pairs, count);
	return room < avail ? room : avail;
}

/* ---- how fast this machine copies memory ---- */

#define BLOCK_BYTES ((size_t)16 << 20)
#define PIECE_BYTES ((size_t)256 << 10)
#define ROUNDS 4

struct copier {
	char *block, *piece;
	pthread_t thread;
	_Atomic uint32_t *go;
	int64_t begin_ns, end_ns;
};

static void *copy(void *arg)
{
	struct copier *c = arg;

	while (atomic_load_explicit(c->go, memory_order_acquire) == 0)
		thread_wait(c->go, 0, -1);
	c->begin_ns = clock_now_ns();
	for (int r = 0; r < ROUNDS; r++)
		for (size_t at = 0; at < BLOCK_BYTES; at += PIECE_BYTES) {
			memcpy(c->piece, c->block + at, PIECE_BYTES);
			/* keeps the compiler from removing the copy, whose result is not used */
			__asm__ volatile("" : : "r"(c->piece) : "memory");
		}
	c->end_ns = clock_now_ns();
	return NULL;
}

static double speed_of(const struct copier *c, unsigned n)
{
	int64_t begin = c[0].begin_ns, end = c[0].end_ns;

	for (unsigned i = 1; i < n; i++) {
		begin = c[i].begin_ns < begin ? c[i].begin_ns : begin;
		end = c[i].end_ns > end ? c[i].end_ns : end;
	}
	return end > begin ? (double)n * ROUNDS * (double)BLOCK_BYTES * 1e9 / (double)(end - begin)
			   : 0;
}

double memory_copy_speed(unsigned threads)
{
	unsigned n = threads < 1                    ? 1
		     : threads > MEMORY_COPIERS_MAX ? MEMORY_COPIERS_MAX
						    : threads,
		 begun = 0;
	struct copier *c;
	_Atomic uint32_t go = 0;
	double speed = 0;
	struct err e;

	/* a control group ends who takes more than it gives, and no result was written yet */
	if (n * (BLOCK_BYTES + PIECE_BYTES) > host_available_bytes() / 2)
		return 0;
	c = calloc(n, sizeof(*c));

	for (unsigned i = 0; c && i < n; i++) {
		c[i].go = &go;
		c[i].block = malloc(BLOCK_BYTES);
		c[i].piece = malloc(PIECE_BYTES);
		if (!c[i].block || !c[i].piece)
			break;
		/* pages of one's own: untouched ones are all the same page of zeros */
		memset(c[i].block, (int)i + 1, BLOCK_BYTES);
		memset(c[i].piece, 0, PIECE_BYTES);
		if (thread_start(&c[i].thread, copy, &c[i], 0, "memory", &e) < 0)
			break;
		begun++;
	}
	atomic_store_explicit(&go, 1, memory_order_release);
	thread_wake(&go, (int)n);
	for (unsigned i = 0; i < begun; i++)
		pthread_join(c[i].thread, NULL);
	if (c && begun == n)
		speed = speed_of(c, n);
	for (unsigned i = 0; c && i < n; i++) {
		free(c[i].block);
		free(c[i].piece);
	}
	free(c);
	return speed;
}
