#pragma once
/* Facts about this host, from uname and /proc. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Control groups of versions 1 and 2: the files of those that bind a process. */

/* Gets the folder of a group; `second`: of version 2. */
typedef void cgroup_fn(void *arg, const char *folder, bool second);

/* Calls `each` for the groups that `list` (as /proc/self/cgroup) names for a controller, "cpu" or
 * "memory", and for those above them, which bind as well, up to where they are mounted below
 * `root`. Folders may be missing: in a container the names may be the host's, and the mount itself
 * the group. One may come more than once. */
void cgroup_walk(const char *list, const char *root, const char *controller, cgroup_fn *each,
		 void *arg);
/* The number that a group's file begins with; false where there is none ("max"). */
bool cgroup_number(const char *folder, const char *name, uint64_t *out);
/* The number beside a name in a file of such lines, as memory.stat; false where it is not there. */
bool cgroup_named_number(const char *path, const char *name, uint64_t *out);

struct sysinfo_pair {
	char *key, *value;
};

struct host_facts {
	char hostname[256];
	char kernel[256];   /* "Linux 6.1.0 x86_64" */
	char processor[64]; /* what Python's platform.processor() gives: "" on Debian */
	int cpu_count;      /* online */
	double usable_cpus; /* host_usable_cpus() */
	double memory_gib;  /* MemTotal */
	struct sysinfo_pair *cpuinfo, *meminfo; /* DLIO's maps: see host_facts_load */
	size_t cpuinfo_count, meminfo_count;
};

/* cpuinfo and meminfo: each line of /proc/cpuinfo, /proc/meminfo with exactly one colon, key and
 * value trimmed, later lines replace earlier ones in place, key "processor" dropped. What cannot be
 * had (no /proc, say) stays empty or 0. */
void host_facts_load(struct host_facts *h);
void host_facts_release(struct host_facts *h);
/* CPUs that the calling thread may use: its affinity mask, and not more than the cgroups' CPU time
 * quota, so that it may be a fraction. At least some positive number. */
double host_usable_cpus(void);
/* Threads that keep those CPUs busy: host_usable_cpus rounded up. */
unsigned host_threads(void);
/* The least quota, in CPUs, of the cgroups that `list` (as /proc/self/cgroup) names and of those
 * above them, below the mount folder `root`; versions 1 and 2. 0: there is none to be read. */
double host_cpu_quota(const char *list, const char *root);
/* That of one group, by its folder; 0: it has none. */
double host_group_quota(const char *folder);
/* Reads /proc/meminfo again into `pairs`, released with host_pairs_free. */
void host_meminfo_load(struct sysinfo_pair **pairs, size_t *count);
/* The pairs of any file of that form; none when it cannot be read. */
void host_pairs_load(const char *path, struct sysinfo_pair **pairs, size_t *count);
void host_pairs_free(struct sysinfo_pair *pairs, size_t count);
/* The least that the memory control groups which `list` names, and those above them, still give,
 * as host_cpu_quota finds them: the limit (v2 memory.max, v1 memory.limit_in_bytes) less what is
 * used, but for the page cache. UINT64_MAX: there is no limit to be read. */
uint64_t host_group_room(const char *list, const char *root);
/* Memory this process can still have: MemAvailable, or less where its control groups give less. */
uint64_t host_available_bytes(void);

/* ---- how fast this machine copies memory ---- */

#define MEMORY_COPIERS_MAX 64

/* Bytes per second that `threads` threads (1 to MEMORY_COPIERS_MAX) copy together from blocks
 * larger than any cache near a processor to small ones, as a read from the page cache does. Takes
 * some 50 ms, where each thread has a processor, and 16 MiB a thread; 0 when they cannot be had, or
 * would be more than half of the memory that this process can still have. */
double memory_copy_speed(unsigned threads);
