/* Counters of processors, of the machine and of control groups. */
#include "metric/processors.h"

#include <ctype.h>
#include <inttypes.h>
#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/cgroup.h"
#include "base/clock.h"
#include "base/run_delay.h"
#include "base/sysinfo.h"
#include "metric/proc_io.h"

/* ---- control groups ---- */

static void take_group(void *arg, const char *folder, bool second)
{
	static const struct {
		const char *throttled;
		int64_t unit_ns;
	} names[] = {{"throttled_time", 1}, {"throttled_usec", 1000}};
	struct processors *p = arg;
	struct processor_group g = {.quota = host_group_quota(folder)};
	uint64_t periods, throttled, time;
	char path[PATH_MAX + 64];

	snprintf(path, sizeof(path), "%s/cpu.stat", folder);
	if (!(g.quota > 0) || p->groups == PROCESSOR_GROUPS_MAX ||
	    !cgroup_named_number(path, "nr_periods", &periods) ||
	    !cgroup_named_number(path, "nr_throttled", &throttled) ||
	    !cgroup_named_number(path, names[second].throttled, &time))
		return;
	g.periods = (int64_t)periods;
	g.throttled_periods = (int64_t)throttled;
	g.throttled_ns = (int64_t)time * names[second].unit_ns;
	p->group[p->groups++] = g;
}

static int64_t read_pressure(const char *path)
{
	FILE *f = fopen(path, "re");
	int64_t us = -1;

	if (!f)
		return -1;
	if (fscanf(f, "some avg10=%*f avg60=%*f avg300=%*f total=%" SCNd64, &us) != 1)
		us = -1;
	fclose(f);
	return us < 0 ? -1 : us * 1000;
}

/* The first that is found is the process's own group. */
static void take_pressure(void *arg, const char *folder, bool second)
{
	struct processors *p = arg;
	char path[PATH_MAX + 64];

	if (!second || p->pressure_ns >= 0)
		return;
	snprintf(path, sizeof(path), "%s/cpu.pressure", folder);
	p->pressure_ns = read_pressure(path);
}

/* ---- the machine ---- */

/* Adds the lines of the processors of the mask. */
static void read_stat(const char *path, const cpu_set_t *set, size_t set_bytes,
		      struct processors *out)
{
	long tick = sysconf(_SC_CLK_TCK);
	FILE *f = fopen(path, "re");
	double busy = 0, steal = 0;
	int cpus = 0;
	char line[512];

	while (f && tick > 0 && fgets(line, sizeof(line), f)) {
		uint64_t user, nice, system, idle, iowait, irq, softirq, stolen;
		unsigned cpu;

		/* the first line is the sum */
		if (strncmp(line, "cpu", 3) != 0 || !isdigit((unsigned char)line[3]) ||
		    sscanf(line,
			   "cpu%u %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64
			   " %" SCNu64 " %" SCNu64 " %" SCNu64,
			   &cpu, &user, &nice, &system, &idle, &iowait, &irq, &softirq,
			   &stolen) != 9 ||
		    cpu >= set_bytes * 8 || !CPU_ISSET_S(cpu, set_bytes, set))
			continue;
		busy += (double)(user + nice + system + irq + softirq);
		steal += (double)stolen;
		cpus++;
	}
	if (f)
		fclose(f);
	/* a container may show fewer processors than it may use, with numbers of its own */
	if (cpus == 0 || cpus != out->allowed)
		return;
	out->busy_ns = (int64_t)(busy * 1e9 / (double)tick);
	out->steal_ns = (int64_t)(steal * 1e9 / (double)tick);
}

static void read_own(struct processors *out)
{
	struct run_delay threads;
	struct rusage use;

	run_delay_sum(&threads);
	if (threads.known) {
		out->waited_ns = threads.waited_ns;
		out->ran_ns = threads.ran_ns;
	}
	if (getrusage(RUSAGE_SELF, &use) == 0)
		out->involuntary = use.ru_nivcsw;
	out->cpu_ns = proc_cpu_ns();
	out->nice = getpriority(PRIO_PROCESS, 0);
	out->idle_class = sched_getscheduler(0) == SCHED_IDLE;
	out->wall_ns = clock_now_ns();
}

void processors_read(const char *proc, const char *groups, struct processors *out)
{
	cpu_set_t set[64]; /* as in host_usable_cpus */
	char path[PATH_MAX];
	long online = sysconf(_SC_NPROCESSORS_ONLN);

	*out = (struct processors){.waited_ns = -1,
				   .ran_ns = -1,
				   .busy_ns = -1,
				   .steal_ns = -1,
				   .pressure_ns = -1,
				   .involuntary = -1,
				   .online = online > 0 ? (int)online : 1};
	out->allowed = out->online;
	CPU_ZERO_S(sizeof(set), set);
	if (sched_getaffinity(0, sizeof(set), set) == 0 && CPU_COUNT_S(sizeof(set), set) > 0)
		out->allowed = CPU_COUNT_S(sizeof(set), set);
	snprintf(path, sizeof(path), "%.1000s/stat", proc);
	read_stat(path, set, sizeof(set), out);
	snprintf(path, sizeof(path), "%.1000s/self/cgroup", proc);
	cgroup_walk(path, groups, "cpu", take_group, out);
	cgroup_walk(path, groups, "cpu", take_pressure, out);
	if (out->pressure_ns < 0) {
		snprintf(path, sizeof(path), "%.1000s/pressure/cpu", proc);
		out->pressure_ns = read_pressure(path);
	}
	read_own(out);
}

void processors_take(struct processors *out)
{
	processors_read("/proc", "/sys/fs/cgroup", out);
}

/* ---- differences ---- */

static int64_t since(int64_t now, int64_t before)
{
	return now < 0 || before < 0 || now < before ? -1 : now - before;
}

void processors_sub(struct processors *now, const struct processors *before)
{
	now->wall_ns = since(now->wall_ns, before->wall_ns);
	now->waited_ns = since(now->waited_ns, before->waited_ns);
	now->ran_ns = since(now->ran_ns, before->ran_ns);
	now->cpu_ns = since(now->cpu_ns, before->cpu_ns);
	now->busy_ns = since(now->busy_ns, before->busy_ns);
	now->steal_ns = since(now->steal_ns, before->steal_ns);
	now->pressure_ns = since(now->pressure_ns, before->pressure_ns);
	now->involuntary = since(now->involuntary, before->involuntary);
	/* a process that was moved between groups has others now */
	if (now->groups != before->groups)
		now->groups = 0;
	for (uint32_t i = 0; i < now->groups; i++) {
		struct processor_group *g = &now->group[i];
		const struct processor_group *old = &before->group[i];

		g->periods = since(g->periods, old->periods);
		g->throttled_periods = since(g->throttled_periods, old->throttled_periods);
		g->throttled_ns = since(g->throttled_ns, old->throttled_ns);
	}
}

int64_t processors_of_others(const struct processors *p, int64_t own_ns)
{
	if (p->busy_ns < 0 || own_ns < 0)
		return -1;
	return p->busy_ns > own_ns ? p->busy_ns - own_ns : 0;
}

const struct processor_group *processors_throttled(const struct processors *p)
{
	const struct processor_group *most = NULL;

	for (uint32_t i = 0; i < p->groups; i++)
		if (p->group[i].throttled_ns > (most ? most->throttled_ns : 0))
			most = &p->group[i];
	return most;
}
