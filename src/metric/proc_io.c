#include "metric/proc_io.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "os/sysinfo.h"

void proc_io_sample(struct proc_io *out)
{
	FILE *f = WITH_MEMORY(fopen("/proc/self/io", "re"));
	char line[128];
	uint64_t v;

	*out = (struct proc_io){0};
	if (!f)
		return;
	while (fgets(line, sizeof(line), f)) {
		if (sscanf(line, "rchar: %" SCNu64, &v) == 1)
			out->rchar_bytes = v;
		else if (sscanf(line, "syscr: %" SCNu64, &v) == 1)
			out->syscr = v;
		else if (sscanf(line, "read_bytes: %" SCNu64, &v) == 1) {
			out->read_bytes = v;
			out->known = true;
		} else if (sscanf(line, "write_bytes: %" SCNu64, &v) == 1)
			out->write_bytes = v;
	}
	fclose(f);
}

void proc_io_sub(struct proc_io *a, const struct proc_io *b)
{
	a->known = a->known && b->known;
	a->rchar_bytes -= b->rchar_bytes;
	a->read_bytes -= b->read_bytes;
	a->write_bytes -= b->write_bytes;
	a->syscr -= b->syscr;
}

static int64_t tv_ns(struct timeval tv)
{
	return tv.tv_sec * NS_PER_S + tv.tv_usec * 1000;
}

int64_t proc_cpu_ns(void)
{
	struct rusage ru;

	getrusage(RUSAGE_SELF, &ru);
	return tv_ns(ru.ru_utime) + tv_ns(ru.ru_stime);
}

bool host_cpu_ticks(uint64_t out[CPU_STATES])
{
	FILE *f = WITH_MEMORY(fopen("/proc/stat", "re"));
	uint64_t v[CPU_STATES] = {0};
	int n = 0;

	if (f) {
		n = fscanf(f,
			   "cpu %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64
			   " %" SCNu64 " %" SCNu64 " %" SCNu64,
			   &v[CPU_USER], &v[CPU_NICE], &v[CPU_SYSTEM], &v[CPU_IDLE], &v[CPU_IOWAIT],
			   &v[CPU_IRQ], &v[CPU_SOFTIRQ], &v[CPU_STEAL]);
		fclose(f);
	}
	for (int i = 0; i < CPU_STATES; i++)
		out[i] = n > CPU_IDLE ? v[i] : 0;
	return n > CPU_IDLE;
}

int64_t host_cpu_ns(void)
{
	long tick = sysconf(_SC_CLK_TCK);
	uint64_t v[CPU_STATES], busy = 0;

	if (tick <= 0 || !host_cpu_ticks(v))
		return 0;
	for (int i = 0; i < CPU_STATES; i++)
		busy += i == CPU_IDLE || i == CPU_IOWAIT ? 0 : v[i];
	return (int64_t)((double)busy * 1e9 / (double)tick);
}

uint64_t proc_peak_rss_bytes(void)
{
	struct sysinfo_pair *pair = NULL;
	size_t n = 0;
	uint64_t kib = 0;
	struct rusage ru;

	/* getrusage keeps what the process had before it became this program: a shell's, a
	 * script's */
	host_pairs_load("/proc/self/status", &pair, &n);
	for (size_t i = 0; i < n; i++)
		if (strcmp(pair[i].key, "VmHWM") == 0)
			kib = strtoull(pair[i].value, NULL, 10);
	host_pairs_free(pair, n);
	if (kib == 0) {
		getrusage(RUSAGE_SELF, &ru);
		kib = (uint64_t)ru.ru_maxrss;
	}
	return kib * 1024u;
}
