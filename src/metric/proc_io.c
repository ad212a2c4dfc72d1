#include "metric/proc_io.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

#include "base/clock.h"

void proc_io_sample(struct proc_io *out)
{
	FILE *f = fopen("/proc/self/io", "re");
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

uint64_t proc_peak_rss_bytes(void)
{
	struct rusage ru;

	getrusage(RUSAGE_SELF, &ru);
	return (uint64_t)ru.ru_maxrss * 1024u;
}
