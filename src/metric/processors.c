/* Counters of processors, of the machine and of control groups. */
#include "metric/processors.h"

#include <ctype.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/map.h"
#include "base/run_delay.h"
#include "os/sysinfo.h"
#include "metric/counter.h"
#include "metric/proc_io.h"

/* ---- control groups ---- */

/* False where the group has no quota. */
static bool read_group(const char *folder, bool second, struct processor_group *g)
{
	static const struct {
		const char *throttled;
		int64_t unit_ns;
	} names[] = {{"throttled_time", 1}, {"throttled_usec", 1000}};
	uint64_t periods, throttled, time;
	char path[PATH_MAX + 64];

	*g = (struct processor_group){.quota = host_group_quota(folder),
				      .id = fnv1a_text(FNV_START, folder)};
	snprintf(path, sizeof(path), "%s/cpu.stat", folder);
	if (!(g->quota > 0) || !cgroup_named_number(path, "nr_periods", &periods) ||
	    !cgroup_named_number(path, "nr_throttled", &throttled) ||
	    !cgroup_named_number(path, names[second].throttled, &time))
		return false;
	g->periods = (int64_t)periods;
	g->throttled_periods = (int64_t)throttled;
	g->throttled_ns = (int64_t)time * names[second].unit_ns;
	return true;
}

static void take_group(void *arg, const char *folder, bool second)
{
	struct processors *p = arg;
	struct processor_group g;

	if (p->groups < PROCESSOR_GROUPS_MAX && read_group(folder, second, &g))
		p->group[p->groups++] = g;
}

/* ---- groups of threads ---- */

#define THREADS_LOOKED_AT 256
#define FOLDERS_MAX PROCESSOR_GROUPS_MAX
#define LISTS_MAX 16

/* Groups with a quota that threads were seen in; they stay when the threads have ended. */
static struct {
	pthread_mutex_t lock;
	uint32_t n;
	struct {
		char folder[512];
		bool second;
		struct processor_group first;
	} of[FOLDERS_MAX];
} seen = {.lock = PTHREAD_MUTEX_INITIALIZER};

struct thread_look {
	const char *proc, *groups;
	uint64_t list[LISTS_MAX]; /* the first is the process's own */
	uint32_t lists, threads;
};

static void see_group(void *arg, const char *folder, bool second)
{
	struct processor_group g;
	uint32_t i = 0;

	(void)arg;
	if (strlen(folder) >= sizeof(seen.of[0].folder) || !read_group(folder, second, &g))
		return;
	pthread_mutex_lock(&seen.lock);
	while (i < seen.n && strcmp(seen.of[i].folder, folder) != 0)
		i++;
	if (i == seen.n && seen.n < FOLDERS_MAX) {
		memcpy(seen.of[i].folder, folder, strlen(folder) + 1);
		seen.of[i].second = second;
		seen.of[i].first = g;
		seen.n++;
	}
	pthread_mutex_unlock(&seen.lock);
}

/* Whether threads of that list of groups are still to be looked at. */
static bool new_list(struct thread_look *l, const char *path)
{
	char text[4096];
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
	uint64_t id;

	if (fd >= 0)
		close(fd);
	if (n <= 0)
		return false;
	text[n] = '\0';
	id = fnv1a_text(FNV_START, text);
	for (uint32_t i = 0; i < l->lists; i++)
		if (l->list[i] == id)
			return false;
	if (l->lists == LISTS_MAX)
		return false;
	l->list[l->lists++] = id;
	return true;
}

static void look_at_thread(void *arg, pid_t tid, const char *name)
{
	struct thread_look *l = arg;
	char path[PATH_MAX];

	(void)name;
	if (l->threads++ >= THREADS_LOOKED_AT)
		return;
	snprintf(path, sizeof(path), "%.1000s/self/task/%d/cgroup", l->proc, (int)tid);
	if (new_list(l, path))
		cgroup_walk(path, l->groups, "cpu", see_group, NULL);
}

static void note_groups(const char *proc, const char *groups)
{
	struct thread_look l = {.proc = proc, .groups = groups};
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "%.1000s/self/cgroup", proc);
	new_list(&l, path);
	run_delay_each(look_at_thread, &l);
}

void processors_note_groups(void)
{
	note_groups("/proc", "/sys/fs/cgroup");
}

/* Those that do not bind the whole process as well. */
static void take_thread_groups(struct processors *p)
{
	pthread_mutex_lock(&seen.lock);
	for (uint32_t i = 0; i < seen.n && p->groups < PROCESSOR_GROUPS_MAX; i++) {
		const struct processor_group *first = &seen.of[i].first;
		struct processor_group g;
		bool own = false;

		for (uint32_t k = 0; k < p->groups; k++)
			own = own || p->group[k].id == first->id;
		if (own || !read_group(seen.of[i].folder, seen.of[i].second, &g))
			continue;
		g.of_threads = true;
		g.first_periods = first->periods;
		g.first_throttled_periods = first->throttled_periods;
		g.first_throttled_ns = first->throttled_ns;
		p->group[p->groups++] = g;
	}
	pthread_mutex_unlock(&seen.lock);
}

/* Lines of a file of the kernel, without memory of its own: a counter is not lost for lack of it.
 */
struct lines {
	int fd;
	size_t n;  /* bytes in text, */
	size_t at; /* and those of lines that were taken */
	char text[4096];
};

static void lines_open(struct lines *l, const char *path)
{
	l->fd = open(path, O_RDONLY | O_CLOEXEC);
	l->n = l->at = 0;
}

/* NULL at the end, and for a line longer than the room. */
static char *lines_next(struct lines *l)
{
	for (;;) {
		char *end = memchr(l->text + l->at, '\n', l->n - l->at), *line = l->text + l->at;
		ssize_t got;

		if (end) {
			*end = '\0';
			l->at = (size_t)(end + 1 - l->text);
			return line;
		}
		memmove(l->text, line, l->n - l->at);
		l->n -= l->at;
		l->at = 0;
		got = l->fd >= 0 ? read(l->fd, l->text + l->n, sizeof(l->text) - l->n) : 0;
		if (got <= 0)
			return NULL;
		l->n += (size_t)got;
	}
}

static void lines_close(struct lines *l)
{
	if (l->fd >= 0)
		close(l->fd);
}

int64_t pressure_ns(const char *path)
{
	struct lines l;
	int64_t us = -1;
	char *line;

	lines_open(&l, path);
	line = lines_next(&l);
	if (!line || sscanf(line, "some avg10=%*f avg60=%*f avg300=%*f total=%" SCNd64, &us) != 1)
		us = -1;
	lines_close(&l);
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
	p->pressure_ns = pressure_ns(path);
}

/* ---- the machine ---- */

/* Adds the lines of the processors of the mask. */
static void read_stat(const char *path, const cpu_set_t *set, size_t set_bytes,
		      struct processors *out)
{
	long tick = sysconf(_SC_CLK_TCK);
	double busy = 0, steal = 0;
	struct lines l;
	int cpus = 0;
	char *line;

	lines_open(&l, path);
	/* other lines follow those of the processors */
	while (tick > 0 && (line = lines_next(&l)) && strncmp(line, "cpu", 3) == 0) {
		uint64_t user, nice, system, idle, iowait, irq, softirq, stolen;
		unsigned cpu;

		/* the first line is the sum */
		if (!isdigit((unsigned char)line[3]) ||
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
	lines_close(&l);
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
	note_groups(proc, groups);
	take_thread_groups(out);
	cgroup_walk(path, groups, "cpu", take_pressure, out);
	if (out->pressure_ns < 0) {
		snprintf(path, sizeof(path), "%.1000s/pressure/cpu", proc);
		out->pressure_ns = pressure_ns(path);
	}
	read_own(out);
}

void processors_take(struct processors *out)
{
	processors_read("/proc", "/sys/fs/cgroup", out);
}

/* ---- differences ---- */

/* A process that was moved between groups has others now, of which nothing is known. */
static void sub_groups(struct processors *now, const struct processors *before)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < now->groups; i++) {
		struct processor_group g = now->group[i];
		const struct processor_group *old = NULL;

		for (uint32_t k = 0; k < before->groups && !old; k++)
			if (before->group[k].id == g.id)
				old = &before->group[k];
		if (!old && !g.of_threads)
			continue;
		g.periods = counter_since(g.periods, old ? old->periods : g.first_periods);
		g.throttled_periods =
			counter_since(g.throttled_periods,
				      old ? old->throttled_periods : g.first_throttled_periods);
		g.throttled_ns = counter_since(g.throttled_ns,
					       old ? old->throttled_ns : g.first_throttled_ns);
		now->group[kept++] = g;
	}
	now->groups = kept;
}

void processors_sub(struct processors *now, const struct processors *before)
{
	now->wall_ns = counter_since(now->wall_ns, before->wall_ns);
	now->waited_ns = counter_since(now->waited_ns, before->waited_ns);
	now->ran_ns = counter_since(now->ran_ns, before->ran_ns);
	now->cpu_ns = counter_since(now->cpu_ns, before->cpu_ns);
	now->busy_ns = counter_since(now->busy_ns, before->busy_ns);
	now->steal_ns = counter_since(now->steal_ns, before->steal_ns);
	now->pressure_ns = counter_since(now->pressure_ns, before->pressure_ns);
	now->involuntary = counter_since(now->involuntary, before->involuntary);
	sub_groups(now, before);
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
