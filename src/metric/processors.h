#pragma once
/* Processors as this process gets them: how long its threads waited for one, who had it, what its
 * control groups allow. Cumulative; -1 is what the kernel does not say. */
#include <stdbool.h>
#include <stdint.h>

/* Groups with a quota that bind a process, its own and those above. */
#define PROCESSOR_GROUPS_MAX 8

struct processor_group {
	double quota; /* in processors */
	int64_t periods, throttled_periods;
	int64_t throttled_ns; /* summed over processors in version 1, of the group in version 2 */
	uint64_t id;          /* of its folder, within the process */
	/* Some counted threads (base/run_delay.h) are in it or were, but not the process. */
	bool of_threads;
	/* Of such a group: the counters when it was first seen. */
	int64_t first_periods, first_throttled_periods, first_throttled_ns;
};

struct processors {
	int64_t wall_ns; /* the moment; of a difference the time in between */
	/* Of the threads of ranks and readers (base/run_delay.h). */
	int64_t waited_ns, ran_ns;
	int64_t cpu_ns; /* of this process */
	/* Of the processors that this process may use. */
	int64_t busy_ns;     /* by all programs; in ticks of the kernel */
	int64_t steal_ns;    /* taken by the hypervisor */
	int64_t pressure_ns; /* some program waited for a processor: cpu.pressure of the group, or
			      * of the machine */
	int64_t involuntary; /* switches of this process to another one */
	struct processor_group group[PROCESSOR_GROUPS_MAX];
	uint32_t groups;
	int allowed, online; /* processors: of the affinity mask (and cpuset); of the machine */
	int nice;
	bool idle_class; /* SCHED_IDLE */
	/* The process, or one of its threads, stood still: stopped, frozen, or the machine paused.
	 * Filled by run/. */
	int64_t stopped_ns, frozen_ns;
	uint32_t stops, freezes;
	char frozen_thread[16];
};

/* Some files of /proc and of the control groups are read. The affinity and priority are those of
 * the calling thread. */
void processors_take(struct processors *out);
/* The same from `proc` and the control groups mounted below `groups`. */
void processors_read(const char *proc, const char *groups, struct processors *out);
/* Looks which groups the counted threads are in, of at most 256 of them: to be called now and then,
 * because what such a group did before it was first seen is not counted. Any thread. */
void processors_note_groups(void);
/* ns in which some program waited, of a file of pressure (PSI); -1: not known. */
int64_t pressure_ns(const char *path);
/* What was added since `before`; allowed, online, quotas, nice stay. */
void processors_sub(struct processors *now, const struct processors *before);
/* Processor time of other programs on the processors that this process may use; -1: not known.
 * `own_ns`: of this run on them. */
int64_t processors_of_others(const struct processors *p, int64_t own_ns);
/* The group in whose quota threads were stopped for longest; NULL: in none. */
const struct processor_group *processors_throttled(const struct processors *p);
