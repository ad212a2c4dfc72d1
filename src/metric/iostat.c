#include "metric/iostat.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/file_out.h"
#include "base/log.h"
#include "base/program.h"
#include "metric/proc_io.h"
#include "metric/ticker.h"

#define DEVICES_MAX 512
#define INTERVAL_NS NS_PER_S

/* /proc/diskstats after the name, in its order (Documentation/admin-guide/iostats.rst). */
enum {
	READS,
	READ_MERGES,
	READ_SECTORS,
	READ_MS,
	WRITES,
	WRITE_MERGES,
	WRITE_SECTORS,
	WRITE_MS,
	UNDER_WAY,
	BUSY_MS,
	QUEUED_MS,
	DISCARDS, /* from Linux 4.18 on */
	DISCARD_MERGES,
	DISCARD_SECTORS,
	DISCARD_MS,
	FLUSHES, /* from 5.5 on */
	FLUSH_MS,
	FIELDS
};

struct disk {
	char name[64];
	bool seen; /* in this sample */
	uint64_t now[FIELDS], before[FIELDS];
};

struct iostat {
	struct out_file out;
	char **wanted;
	size_t wanted_count;
	struct disk disk[DEVICES_MAX];
	size_t disks;
	uint64_t cpu[CPU_STATES];
	int64_t last_ns;
	bool any;
	struct ticker ticker;
};

static bool is_wanted(const struct iostat *s, const char *name, const uint64_t v[FIELDS])
{
	char path[128];

	for (size_t i = 0; i < s->wanted_count; i++)
		if (strcmp(s->wanted[i], name) == 0)
			return true;
	if (s->wanted_count > 0 || v[READS] + v[WRITES] + v[DISCARDS] + v[FLUSHES] == 0)
		return false;
	snprintf(path, sizeof(path), "/sys/block/%s", name);
	return access(path, F_OK) == 0;
}

static struct disk *disk_of(struct iostat *s, const char *name, const uint64_t v[FIELDS])
{
	struct disk *d;

	for (size_t i = 0; i < s->disks; i++)
		if (strcmp(s->disk[i].name, name) == 0)
			return &s->disk[i];
	if (s->disks == DEVICES_MAX || !is_wanted(s, name, v))
		return NULL;
	d = &s->disk[s->disks++];
	*d = (struct disk){0};
	snprintf(d->name, sizeof(d->name), "%s", name);
	/* a device that was added during the run begins with this sample */
	memcpy(d->now, v, sizeof(d->now));
	return d;
}

static void sample_disks(struct iostat *s)
{
	FILE *f = WITH_MEMORY(fopen("/proc/diskstats", "re"));
	char line[512];

	for (size_t i = 0; i < s->disks; i++)
		s->disk[i].seen = false;
	while (f && fgets(line, sizeof(line), f)) {
		uint64_t v[FIELDS] = {0};
		char name[64], *at;
		struct disk *d;
		int n = 0;

		if (sscanf(line, " %*u %*u %63s%n", name, &n) != 1)
			continue;
		at = line + n;
		for (int i = 0; i < FIELDS; i++) {
			char *end;

			v[i] = strtoull(at, &end, 10);
			if (end == at)
				break;
			at = end;
		}
		d = disk_of(s, name, v);
		if (!d)
			continue;
		d->seen = true;
		memcpy(d->before, d->now, sizeof(d->before));
		memcpy(d->now, v, sizeof(d->now));
	}
	if (f)
		fclose(f);
}

/* Idle and waiting times are known to go back a little at times. */
static double grown(uint64_t now, uint64_t before)
{
	return now > before ? (double)(now - before) : 0;
}

static void put_cpu(struct iostat *s, const uint64_t now[CPU_STATES])
{
	double d[CPU_STATES], all = 0;

	for (int i = 0; i < CPU_STATES; i++) {
		d[i] = grown(now[i], s->cpu[i]);
		all += d[i];
	}
	all = all > 0 ? 100 / all : 0;
	out_file_print(&s->out,
		       "\t\t\t\t\t\"avg-cpu\":  {\"user\": %.2f, \"nice\": %.2f, \"system\": %.2f, "
		       "\"iowait\": %.2f, \"steal\": %.2f, \"idle\": %.2f},\n",
		       d[CPU_USER] * all, d[CPU_NICE] * all,
		       (d[CPU_SYSTEM] + d[CPU_IRQ] + d[CPU_SOFTIRQ]) * all, d[CPU_IOWAIT] * all,
		       d[CPU_STEAL] * all, d[CPU_IDLE] * all);
}

static double ratio(double part, double whole)
{
	return whole > 0 ? part / whole : 0;
}

static void put_disk(struct iostat *s, const struct disk *d, double seconds)
{
	double v[FIELDS], busy;

	for (int i = 0; i < FIELDS; i++)
		v[i] = grown(d->now[i], d->before[i]);
	busy = v[BUSY_MS] / seconds / 10;
	out_file_print(&s->out,
		       "\t\t\t\t\t\t{\"disk_device\": \"%s\", \"r/s\": %.2f, \"w/s\": %.2f, "
		       "\"d/s\": %.2f, \"f/s\": %.2f, \"rMB/s\": %.2f, \"wMB/s\": %.2f, "
		       "\"dMB/s\": %.2f, ",
		       d->name, v[READS] / seconds, v[WRITES] / seconds, v[DISCARDS] / seconds,
		       v[FLUSHES] / seconds, v[READ_SECTORS] / 2048 / seconds,
		       v[WRITE_SECTORS] / 2048 / seconds, v[DISCARD_SECTORS] / 2048 / seconds);
	out_file_print(&s->out,
		       "\"rrqm/s\": %.2f, \"wrqm/s\": %.2f, \"drqm/s\": %.2f, \"rrqm\": %.2f, "
		       "\"wrqm\": %.2f, \"drqm\": %.2f, ",
		       v[READ_MERGES] / seconds, v[WRITE_MERGES] / seconds,
		       v[DISCARD_MERGES] / seconds,
		       100 * ratio(v[READ_MERGES], v[READ_MERGES] + v[READS]),
		       100 * ratio(v[WRITE_MERGES], v[WRITE_MERGES] + v[WRITES]),
		       100 * ratio(v[DISCARD_MERGES], v[DISCARD_MERGES] + v[DISCARDS]));
	out_file_print(
		&s->out,
		"\"r_await\": %.2f, \"w_await\": %.2f, \"d_await\": %.2f, \"f_await\": %.2f, "
		"\"rareq-sz\": %.2f, \"wareq-sz\": %.2f, \"dareq-sz\": %.2f, \"aqu-sz\": %.2f, "
		"\"util\": %.2f}",
		ratio(v[READ_MS], v[READS]), ratio(v[WRITE_MS], v[WRITES]),
		ratio(v[DISCARD_MS], v[DISCARDS]), ratio(v[FLUSH_MS], v[FLUSHES]),
		ratio(v[READ_SECTORS] / 2, v[READS]), ratio(v[WRITE_SECTORS] / 2, v[WRITES]),
		ratio(v[DISCARD_SECTORS] / 2, v[DISCARDS]), v[QUEUED_MS] / seconds / 1000,
		busy > 100 ? 100 : busy);
}

/* As the C locale writes it: month/day/year, and the time where it is wanted. */
static void local_time(char out[64], bool with_time)
{
	time_t now = time(NULL);
	struct tm tm = {0};
	int n;

	localtime_r(&now, &tm);
	n = snprintf(out, 64, "%02d/%02d/%02d", tm.tm_mon + 1, tm.tm_mday, tm.tm_year % 100);
	if (with_time && n > 0)
		snprintf(out + n, 64 - (size_t)n, " %02d:%02d:%02d", tm.tm_hour, tm.tm_min,
			 tm.tm_sec);
}

static void put_sample(void *arg)
{
	struct iostat *s = arg;
	int64_t now = clock_now_ns();
	double seconds = (double)(now - s->last_ns) / 1e9;
	const char *between = "";
	uint64_t cpu[CPU_STATES];
	char when[64];

	host_cpu_ticks(cpu);
	sample_disks(s);
	local_time(when, true);
	out_file_print(&s->out, "%s\t\t\t\t{\n\t\t\t\t\t\"timestamp\": \"%s\",\n",
		       s->any ? ",\n" : "", when);
	put_cpu(s, cpu);
	out_file_print(&s->out, "\t\t\t\t\t\"disk\": [\n");
	for (size_t i = 0; i < s->disks; i++) {
		if (!s->disk[i].seen)
			continue;
		out_file_print(&s->out, "%s", between);
		put_disk(s, &s->disk[i], seconds);
		between = ",\n";
	}
	out_file_print(&s->out, "\n\t\t\t\t\t]\n\t\t\t\t}");
	s->any = true;
	memcpy(s->cpu, cpu, sizeof(s->cpu));
	s->last_ns = now;
}

static void put_head(struct iostat *s)
{
	struct utsname u = {0};
	char date[64];

	uname(&u);
	local_time(date, false);
	out_file_print(&s->out,
		       "{\"program\": \"" PROGRAM_MARK
		       "\",\n\"sysstat\": {\n\t\"hosts\": [\n\t\t{\n\t\t\t\"nodename\": \"%s\",\n"
		       "\t\t\t\"sysname\": \"%s\",\n\t\t\t\"release\": \"%s\",\n"
		       "\t\t\t\"machine\": \"%s\",\n\t\t\t\"number-of-cpus\": %ld,\n"
		       "\t\t\t\"date\": \"%s\",\n\t\t\t\"statistics\": [\n\n",
		       u.nodename, u.sysname, u.release, u.machine, sysconf(_SC_NPROCESSORS_ONLN),
		       date);
}

static void iostat_free(struct iostat *s)
{
	for (size_t i = 0; i < s->wanted_count; i++)
		free(s->wanted[i]);
	free(s->wanted);
	free(s);
}

/* "/dev/mapper/data" -> "dm-3"; a name that is no file stays what it is. */
static char *kernel_name(const char *device)
{
	AUTO_FREE char *node = device[0] == '/' ? xstrdup(device) : xasprintf("/dev/%s", device);
	char real[PATH_MAX];
	const char *slash;

	if (!realpath(node, real))
		snprintf(real, sizeof(real), "%s", node);
	slash = strrchr(real, '/');
	return xstrdup(slash ? slash + 1 : real);
}

static void warn_absent(const struct iostat *s)
{
	for (size_t i = 0; i < s->wanted_count; i++) {
		bool found = false;

		for (size_t k = 0; k < s->disks && !found; k++)
			found = strcmp(s->disk[k].name, s->wanted[i]) == 0;
		if (!found)
			log_warning("profiling.iostat_devices: this machine has no block device "
				    "'%s'; it is left out of iostat.json",
				    s->wanted[i]);
	}
}

int iostat_start(struct iostat **out, const char *path, const char *const *devices, size_t n,
		 struct err *e)
{
	struct iostat *s = try_calloc(1, sizeof(*s), "counters of disks", e);
	struct err ignored;
	int rc;

	*out = NULL;
	if (!s)
		return -ENOMEM;
	s->wanted = xcalloc(n ? n : 1, sizeof(*s->wanted));
	for (; s->wanted_count < n; s->wanted_count++)
		s->wanted[s->wanted_count] = kernel_name(devices[s->wanted_count]);
	rc = out_file_open(&s->out, path, FILE_OURS, e);
	if (rc < 0) {
		iostat_free(s);
		return rc;
	}
	put_head(s);
	host_cpu_ticks(s->cpu);
	sample_disks(s);
	warn_absent(s);
	s->last_ns = clock_now_ns();
	s->ticker = (struct ticker){.fn = put_sample, .arg = s, .interval_ns = INTERVAL_NS};
	rc = ticker_start(&s->ticker, "iostat", e);
	if (rc < 0) {
		s->out.failed = rc;
		out_file_close(&s->out, &ignored);
		iostat_free(s);
		return rc;
	}
	*out = s;
	return 0;
}

int iostat_stop(struct iostat *s, struct err *e)
{
	int rc;

	if (!s)
		return 0;
	ticker_stop(&s->ticker);
	if (clock_now_ns() - s->last_ns >= INTERVAL_NS / 2)
		put_sample(s);
	out_file_print(&s->out, "\n\t\t\t]\n\t\t}\n\t]\n}}\n");
	rc = out_file_close(&s->out, e);
	iostat_free(s);
	return rc;
}
