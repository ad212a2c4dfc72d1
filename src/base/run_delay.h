#pragma once
/* How long threads of this process were ready to run and had no processor: the second number of
 * /proc/thread-self/schedstat (Documentation/scheduler/sched-stats.rst of the Linux kernel). Other
 * programs had it, or other threads of this one, or the quota of a control group was used up; what
 * a hypervisor took is not in it. A kernel without CONFIG_SCHED_INFO does not say. */
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct run_delay {
	bool known;
	int64_t waited_ns; /* ready to run, without a processor */
	int64_t ran_ns;
	uint32_t threads; /* counted ones that live */
};

/* A thread that is counted; lies in its own frame. */
struct run_delay_thread {
	struct run_delay_thread *next, **link;
	pid_t tid;
	int fd; /* of its schedstat; -1: opened each time, which costs eight times as much */
	int64_t taken_ns; /* waited_ns when it was last taken */
	int64_t worth_ns; /* what takes less is not looked at */
	bool known;
	char name[16];
};

/* Whether threads are looked at at all; off at first. To be set while no counted thread runs. */
void run_delay_enable(bool on);
/* The first and last thing in a counted thread. */
void run_delay_begin(struct run_delay_thread *t);
void run_delay_end(struct run_delay_thread *t);
/* What the calling thread waited since it last took it, if what it did took at least so long that
 * looking costs less than half a percent of it (0.5 ms; 4 ms where descriptors are short); else 0,
 * and it is part of what is taken next. 0 also for threads that are not counted. */
int64_t run_delay_take(int64_t took_ns);
/* The calling thread's, counted or not, since it began. */
void run_delay_self(struct run_delay *out);
/* Of all counted threads since the process began, those that ended included. Any thread. */
void run_delay_sum(struct run_delay *out);
/* Calls `fn` for each counted thread that lives; none begins or ends meanwhile. */
void run_delay_each(void (*fn)(void *arg, pid_t tid, const char *name), void *arg);
/* Parses a line of schedstat; false when the kernel does not say. */
bool run_delay_parse(const char *line, struct run_delay *out);
