#pragma once
/* What the kernel says this process moved: /proc/self/io (proc_pid_io(5)). */
#include <stdbool.h>
#include <stdint.h>

struct proc_io {
	bool known;
	uint64_t rchar_bytes; /* returned by read calls, page cache included */
	uint64_t read_bytes;  /* fetched from the storage layer: device bytes */
	uint64_t write_bytes; /* sent to it */
	uint64_t syscr;
};

/* known = false where the file cannot be read. */
void proc_io_sample(struct proc_io *out);
void proc_io_sub(struct proc_io *a, const struct proc_io *b);

/* CPU seconds of the process so far, user and system together, in ns. */
int64_t proc_cpu_ns(void);
/* CPU time of all processes of this machine since its start, in ns; 0 where it does not say. */
int64_t host_cpu_ns(void);
/* What its processors did since its start, in clock ticks over all of them: proc_stat(5). What an
 * old kernel leaves out is 0; false, and all 0, where the file cannot be read. */
enum {
	CPU_USER,
	CPU_NICE,
	CPU_SYSTEM,
	CPU_IDLE,
	CPU_IOWAIT,
	CPU_IRQ,
	CPU_SOFTIRQ,
	CPU_STEAL,
	CPU_STATES
};
bool host_cpu_ticks(uint64_t out[CPU_STATES]);
/* Peak resident set of this program (not of what the process was before it), bytes. */
uint64_t proc_peak_rss_bytes(void);
