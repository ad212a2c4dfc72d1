/* The machine in words. */
#include "os/system.h"

#include <ctype.h>
#include <dirent.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/utsname.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/file.h"
#include "base/str.h"
#include "os/file_system.h"

#define TEXT_MAX (1u << 20)
#define DEVICES_MAX 64

__attribute__((format(printf, 3, 4))) static void put(struct system_facts *s, const char *key,
						      const char *fmt, ...)
{
	char *value;
	va_list ap;

	va_start(ap, fmt);
	value = xvasprintf(fmt, ap);
	va_end(ap);
	s->pair = xrealloc(s->pair, (s->pairs + 1) * sizeof(*s->pair));
	s->pair[s->pairs++] = (struct sysinfo_pair){xstrdup(key), value};
}

/* A small file below root as one trimmed string, on the heap; NULL when it cannot be read. */
__attribute__((format(printf, 2, 3))) static char *text_of(const char *root, const char *fmt, ...)
{
	char path[512], *rest;
	struct buf b = {0};
	size_t n = (size_t)snprintf(path, sizeof(path), "%s", root);
	va_list ap;

	if (n >= sizeof(path))
		return NULL;
	va_start(ap, fmt);
	vsnprintf(path + n, sizeof(path) - n, fmt, ap);
	va_end(ap);
	if (file_read(path, TEXT_MAX, &b, NULL) < 0 || b.len == 0) {
		buf_release(&b);
		return NULL;
	}
	rest = buf_take(&b);
	n = strlen(rest);
	while (n && isspace((unsigned char)rest[n - 1]))
		rest[--n] = '\0';
	return rest;
}

static int64_t number_of(char *text)
{
	int64_t v = -1;

	if (text && !str_to_i64(text, &v))
		v = -1;
	free(text);
	return v;
}

/* ---- operating system ---- */

static void put_os(struct system_facts *s, const char *root)
{
	struct utsname u;
	AUTO_FREE char *release = text_of(root, "/etc/os-release");
	char *name = release ? strstr(release, "PRETTY_NAME=") : NULL;

	if (name) {
		name += strlen("PRETTY_NAME=");
		name += *name == '"';
		name[strcspn(name, "\"\n")] = '\0';
		put(s, "operating system", "%s", name);
	}
	if (uname(&u) == 0) {
		put(s, "kernel", "%s %s", u.sysname, u.release);
		put(s, "architecture", "%s", u.machine);
	}
}

/* ---- processors ---- */

/* The value of the first line "key : value" of cpuinfo. */
static char *cpu_field(const char *text, const char *key)
{
	size_t n = strlen(key);

	for (const char *line = text; line;
	     line = strchr(line, '\n'), line = line ? line + 1 : NULL) {
		const char *rest = line + n;

		if (strncmp(line, key, n) != 0)
			continue;
		rest += strspn(rest, " \t");
		if (*rest++ != ':')
			continue;
		rest += strspn(rest, " \t");
		return xstrndup(rest, strcspn(rest, "\n"));
	}
	return NULL;
}

/* ARM's cpuinfo has numbers where others have a name: implementer and part, as the Linux kernel's
 * arch/arm64/include/asm/cputype.h and util-linux's lscpu list them. */
const char *arm_processor_name(const char *implementer, const char *part)
{
	static const struct {
		unsigned implementer, part;
		const char *name;
	} parts[] = {
		{0x41, 0xd03, "Arm Cortex-A53"},
		{0x41, 0xd04, "Arm Cortex-A35"},
		{0x41, 0xd05, "Arm Cortex-A55"},
		{0x41, 0xd06, "Arm Cortex-A65"},
		{0x41, 0xd07, "Arm Cortex-A57"},
		{0x41, 0xd08, "Arm Cortex-A72"},
		{0x41, 0xd09, "Arm Cortex-A73"},
		{0x41, 0xd0a, "Arm Cortex-A75"},
		{0x41, 0xd0b, "Arm Cortex-A76"},
		{0x41, 0xd0c, "Arm Neoverse N1"},
		{0x41, 0xd0d, "Arm Cortex-A77"},
		{0x41, 0xd40, "Arm Neoverse V1"},
		{0x41, 0xd41, "Arm Cortex-A78"},
		{0x41, 0xd42, "Arm Cortex-A78AE"},
		{0x41, 0xd46, "Arm Cortex-A510"},
		{0x41, 0xd47, "Arm Cortex-A710"},
		{0x41, 0xd49, "Arm Neoverse N2"},
		{0x41, 0xd4a, "Arm Neoverse E1"},
		{0x41, 0xd4f, "Arm Neoverse V2"},
		{0x41, 0xd83, "Arm Neoverse V3AE"},
		{0x41, 0xd84, "Arm Neoverse V3"},
		{0x41, 0xd8e, "Arm Neoverse N3"},
		{0x42, 0x516, "Broadcom ThunderX2"},
		{0x43, 0x0a1, "Cavium ThunderX"},
		{0x43, 0x0af, "Cavium ThunderX2"},
		{0x43, 0x0b8, "Marvell ThunderX3"},
		{0x46, 0x001, "Fujitsu A64FX"},
		{0x46, 0x003, "Fujitsu MONAKA"},
		{0x48, 0xd01, "HiSilicon Kunpeng 920"},
		{0x48, 0xd02, "HiSilicon HIP09"},
		{0x4e, 0x003, "NVIDIA Denver 2"},
		{0x4e, 0x004, "NVIDIA Carmel"},
		{0x4e, 0x010, "NVIDIA Olympus"},
		{0x50, 0x000, "APM X-Gene"},
		{0x51, 0xc00, "Qualcomm Falkor"},
		{0x51, 0x001, "Qualcomm Oryon X1"},
		{0x61, 0x022, "Apple M1 (Icestorm)"},
		{0x61, 0x023, "Apple M1 (Firestorm)"},
		{0x6d, 0xd49, "Microsoft Cobalt 100"},
		{0xc0, 0xac3, "Ampere-1"},
		{0xc0, 0xac4, "Ampere-1a"},
		{0xc0, 0xac5, "Ampere-1b"},
	};

	unsigned long i_number = implementer ? strtoul(implementer, NULL, 0) : 0;
	unsigned long p_number = part && *part ? strtoul(part, NULL, 0) : ULONG_MAX;

	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
		if (parts[i].implementer == i_number && parts[i].part == p_number)
			return parts[i].name;
	return NULL;
}

static void put_cpu_name(struct system_facts *s, const char *cpuinfo)
{
	static const char *const keys[] = {"model name", "cpu model", "Model", "uarch", "cpu"};
	AUTO_FREE char *part = cpu_field(cpuinfo, "CPU part");
	AUTO_FREE char *implementer = cpu_field(cpuinfo, "CPU implementer");
	const char *name;

	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
		AUTO_FREE char *value = cpu_field(cpuinfo, keys[i]);

		if (value && value[0]) {
			put(s, "CPU", "%s", value);
			return;
		}
	}
	if (!part)
		return;
	name = arm_processor_name(implementer, part);
	if (name)
		put(s, "CPU", "%s", name);
	else
		put(s, "CPU", "implementer %s, part %s", implementer ? implementer : "?", part);
}

/* How many different values /sys has for a file of each processor's topology. */
static int different(const char *root, const char *file, int cpus)
{
	int64_t *seen = xcalloc((size_t)cpus, sizeof(*seen));
	int n = 0;

	for (int c = 0; c < cpus; c++) {
		int64_t v = number_of(
			text_of(root, "/sys/devices/system/cpu/cpu%d/topology/%s", c, file));
		bool known = v < 0;

		for (int i = 0; i < n && !known; i++)
			known = seen[i] == v;
		if (!known)
			seen[n++] = v;
	}
	free(seen);
	return n;
}

static int count_cpus(const char *root)
{
	char path[512];
	DIR *d;
	struct dirent *entry;
	int n = 0;

	snprintf(path, sizeof(path), "%s/sys/devices/system/cpu", root);
	d = WITH_MEMORY(opendir(path));
	while (d && (entry = readdir(d)) && n < 65536)
		n += strncmp(entry->d_name, "cpu", 3) == 0 &&
		     isdigit((unsigned char)entry->d_name[3]);
	if (d)
		closedir(d);
	return n;
}

/* A list of ranges as the kernel writes them: "0-3,8". */
static void put_nodes(struct system_facts *s, const char *list)
{
	long n = 0;

	for (const char *p = list; isdigit((unsigned char)*p);) {
		char *end;
		long first = strtol(p, &end, 10), last = first;

		if (*end == '-')
			last = strtol(end + 1, &end, 10);
		n += last >= first ? last - first + 1 : 1;
		p = *end == ',' ? end + 1 : end;
	}
	put(s, "NUMA nodes", "%ld (%s %s)", n, n == 1 ? "node" : "nodes", list);
}

static void put_cpus(struct system_facts *s, const char *root)
{
	AUTO_FREE char *cpuinfo = text_of(root, "/proc/cpuinfo");
	AUTO_FREE char *nodes = text_of(root, "/sys/devices/system/node/online");
	int cpus = count_cpus(root),
	    sockets = cpus ? different(root, "physical_package_id", cpus) : 0;

	if (cpuinfo)
		put_cpu_name(s, cpuinfo);
	if (cpus)
		put(s, "processors", "%d", cpus);
	if (sockets)
		put(s, "sockets", "%d", sockets);
	if (nodes)
		put_nodes(s, nodes);
}

/* ---- memory and GPUs ---- */

static void put_memory(struct system_facts *s, const char *root)
{
	AUTO_FREE char *meminfo = text_of(root, "/proc/meminfo");
	const char *total = meminfo ? strstr(meminfo, "MemTotal:") : NULL;
	char text[32];

	if (total)
		put(s, "memory", "%s",
		    str_bytes(strtod(total + strlen("MemTotal:"), NULL) * 1024, text,
			      sizeof(text)));
}

/* What the driver of NVIDIA tells without its library. */
static void put_gpus(struct system_facts *s, const char *root)
{
	AUTO_FREE char *version = text_of(root, "/proc/driver/nvidia/version");
	char path[512];
	DIR *d;
	struct dirent *entry;

	snprintf(path, sizeof(path), "%s/proc/driver/nvidia/gpus", root);
	d = WITH_MEMORY(opendir(path));
	while (d && (entry = readdir(d))) {
		AUTO_FREE char *info = NULL;
		char *model;

		if (entry->d_name[0] == '.')
			continue;
		info = text_of(root, "/proc/driver/nvidia/gpus/%s/information", entry->d_name);
		model = info ? strstr(info, "Model:") : NULL;
		if (!model)
			continue;
		model += strlen("Model:");
		model += strspn(model, " \t");
		model[strcspn(model, "\n")] = '\0';
		put(s, "GPU", "%s (%s)", model, entry->d_name);
	}
	if (d)
		closedir(d);
	if (version) {
		version[strcspn(version, "\n")] = '\0';
		put(s, "GPU driver", "%s",
		    strncmp(version, "NVRM version: ", 14) == 0 ? version + 14 : version);
	}
}

/* ---- block devices ---- */

/* "none [mq-deadline] kyber" -> "mq-deadline". */
static void active_scheduler(const char *text, char *out, size_t out_size)
{
	const char *open = strchr(text, '[');

	if (open)
		snprintf(out, out_size, "%.*s", (int)strcspn(open + 1, "]"), open + 1);
	else
		snprintf(out, out_size, "%s", text);
}

static void put_device(struct system_facts *s, const char *root, const char *name)
{
	int64_t sectors = number_of(text_of(root, "/sys/block/%s/size", name));
	int64_t spins = number_of(text_of(root, "/sys/block/%s/queue/rotational", name));
	int64_t depth = number_of(text_of(root, "/sys/block/%s/queue/nr_requests", name));
	int64_t ahead = number_of(text_of(root, "/sys/block/%s/queue/read_ahead_kb", name));
	int64_t block = number_of(text_of(root, "/sys/block/%s/queue/logical_block_size", name));
	AUTO_FREE char *scheduler = text_of(root, "/sys/block/%s/queue/scheduler", name);
	AUTO_FREE char *model = text_of(root, "/sys/block/%s/device/model", name);
	char queue[32], size[32], key[300];
	struct buf b = {0};

	if (sectors <= 0)
		return;
	/* what is not known is left out */
	buf_printf(&b, "%s%s%s", model ? model : "", model ? ", " : "",
		   str_bytes((double)sectors * 512, size, sizeof(size)));
	if (spins >= 0)
		buf_puts(&b, spins == 1 ? ", rotational" : ", not rotational");
	if (scheduler) {
		active_scheduler(scheduler, queue, sizeof(queue));
		buf_printf(&b, ", scheduler %s", queue);
	}
	if (depth >= 0)
		buf_printf(&b, ", %lld requests", (long long)depth);
	if (ahead >= 0)
		buf_printf(&b, ", read-ahead %lld KiB", (long long)ahead);
	if (block >= 0)
		buf_printf(&b, ", block %lld bytes", (long long)block);
	snprintf(key, sizeof(key), "device %s", name);
	put(s, key, "%s", b.data ? b.data : "");
	buf_release(&b);
}

static int by_text(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static void put_devices(struct system_facts *s, const char *root)
{
	char *names[DEVICES_MAX], path[512];
	size_t n = 0;
	DIR *d;
	struct dirent *entry;

	snprintf(path, sizeof(path), "%s/sys/block", root);
	d = WITH_MEMORY(opendir(path));
	while (d && (entry = readdir(d)) && n < DEVICES_MAX)
		if (entry->d_name[0] != '.' && strncmp(entry->d_name, "loop", 4) != 0 &&
		    strncmp(entry->d_name, "ram", 3) != 0 && strncmp(entry->d_name, "zram", 4) != 0)
			names[n++] = xstrdup(entry->d_name);
	if (d)
		closedir(d);
	qsort(names, n, sizeof(names[0]), by_text);
	for (size_t i = 0; i < n; i++) {
		put_device(s, root, names[i]);
		free(names[i]);
	}
}

/* ---- the file system of the data ---- */

static void put_mount(struct system_facts *s, const char *root, const char *path)
{
	struct mount m;

	if (!mount_of_path(root, path, &m))
		return;
	put(s, "data file system", "%s from %s on %s", m.type, m.source, m.place);
	put(s, "data mount options", "%s; %s", m.options, m.super);
	mount_release(&m);
}

static void put_folder(struct system_facts *s, const char *root, const char *folder)
{
	struct stat st;
	AUTO_FREE char *path = path_nearest(folder, &st);
	struct statvfs v;
	char free_text[32], all[32];

	if (!path)
		return;
	put(s, "data folder", "%s", folder);
	put_mount(s, root, path);
	if (statvfs(path, &v) == 0)
		put(s, "data space", "%s free of %s, blocks of %lu bytes",
		    str_bytes((double)v.f_bavail * (double)v.f_frsize, free_text,
			      sizeof(free_text)),
		    str_bytes((double)v.f_blocks * (double)v.f_frsize, all, sizeof(all)),
		    (unsigned long)v.f_bsize);
}

/* ---- limits ---- */

static void put_limit(struct system_facts *s, const char *key, __rlimit_resource_t what)
{
	struct rlimit l;

	if (getrlimit(what, &l) < 0)
		return;
	if (l.rlim_cur == RLIM_INFINITY)
		put(s, key, "unlimited");
	else
		put(s, key, "%llu", (unsigned long long)l.rlim_cur);
}

void system_facts_load(struct system_facts *s, const char *root, const char *folder)
{
	*s = (struct system_facts){0};
	put_os(s, root);
	put_cpus(s, root);
	put_memory(s, root);
	put_gpus(s, root);
	put_devices(s, root);
	if (folder)
		put_folder(s, root, folder);
	put_limit(s, "limit of open files", RLIMIT_NOFILE);
	put_limit(s, "limit of locked memory (bytes)", RLIMIT_MEMLOCK);
	put_limit(s, "limit of processes", RLIMIT_NPROC);
}

void system_facts_release(struct system_facts *s)
{
	host_pairs_free(s->pair, s->pairs);
	*s = (struct system_facts){0};
}
