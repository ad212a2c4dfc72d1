#pragma once
/* What the kernel says of memory being short: for the memory control group with the least limit
 * that this process is in (version 1 or 2), else for the machine. Cumulative. */
#include <stdint.h>

struct memory_pressure {
	int64_t stall_ns;      /* some program waited for pages being reclaimed, read back or
				* swapped: "some" of memory.pressure; -1: the kernel does not say */
	int64_t refault_bytes; /* of files, read again after they had been evicted for lack of
				* memory; -1: as above */
	uint64_t limit_bytes;  /* the group's, whatever the machine has; 0: there is none */
};

void memory_pressure_take(struct memory_pressure *out);
/* The same from `proc` and the control groups mounted below `groups` instead of /proc and
 * /sys/fs/cgroup. */
void memory_pressure_read(const char *proc, const char *groups, struct memory_pressure *out);
/* What was added since `before`. */
void memory_pressure_sub(struct memory_pressure *now, const struct memory_pressure *before);
