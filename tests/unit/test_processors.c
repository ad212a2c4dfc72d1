/* What the kernel says of processors, from files made by hand; the waits of real threads; and times
 * in which the process stood still, from ticks made by hand. */
#include <setjmp.h>
#include <stdatomic.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cmocka.h>

#include "put_file.h"

#include "base/clock.h"
#include "base/run_delay.h"
#include "base/thread.h"
#include "metric/processors.h"
#include "metric/standstill.h"

static char root[] = "/tmp/stoker-processors-XXXXXX";

static void put(const char *name, const char *text)
{
	put_file(root, name, text);
}

static void look(struct processors *p)
{
	char proc[64], groups[64];

	snprintf(proc, sizeof(proc), "%s/proc", root);
	snprintf(groups, sizeof(groups), "%s/cgroup", root);
	processors_read(proc, groups, p);
}

/* As many lines as this process has processors, all alike; others that it may not use. */
static void put_stat(int ticks, int steal)
{
	char text[65536];
	int n = 0, cpus = (int)sysconf(_SC_NPROCESSORS_CONF);

	n += snprintf(text + n, sizeof(text) - n, "cpu  1 1 1 1 1 1 1 1 0 0\n");
	for (int i = 0; i < cpus && n < 60000; i++)
		n += snprintf(text + n, sizeof(text) - n, "cpu%d %d 0 %d 70 5 1 2 %d 0 0\n", i,
			      ticks, ticks, steal);
	snprintf(text + n, sizeof(text) - n, "cpu60001 9 9 9 9 9 9 9 9 0 0\nintr 5\n");
	put("proc/stat", text);
}

static void counters(void **state)
{
	struct processors before, now;
	long tick = sysconf(_SC_CLK_TCK);
	char rm[64];

	(void)state;
	assert_non_null(mkdtemp(root));
	/* a kernel that says nothing of all this */
	look(&now);
	assert_int_equal(now.busy_ns, -1);
	assert_int_equal(now.steal_ns, -1);
	assert_int_equal(now.pressure_ns, -1);
	assert_int_equal(now.groups, 0);
	assert_null(processors_throttled(&now));
	assert_int_equal(processors_of_others(&now, 5), -1);

	put_stat(100, 7);
	put("proc/pressure/cpu", "some avg10=1.00 avg60=0.00 avg300=0.00 total=5000\n");
	look(&before);
	assert_int_equal(before.busy_ns, before.allowed * 203 * (1000000000 / tick));
	assert_int_equal(before.steal_ns, before.allowed * 7 * (1000000000 / tick));
	put_stat(150, 27);
	put("proc/pressure/cpu", "some avg10=1.00 avg60=0.00 avg300=0.00 total=5600\n");
	look(&now);
	processors_sub(&now, &before);
	assert_int_equal(now.busy_ns, now.allowed * 100 * (1000000000 / tick));
	assert_int_equal(now.steal_ns, now.allowed * 20 * (1000000000 / tick));
	assert_int_equal(now.pressure_ns, 600000);
	assert_int_equal(processors_of_others(&now, now.busy_ns / 4),
			 now.busy_ns - now.busy_ns / 4);
	assert_int_equal(processors_of_others(&now, 2 * now.busy_ns), 0);
	/* a container with fewer lines than processors */
	put("proc/stat", "cpu  1 1 1 1 1 1 1 1 0 0\n");
	look(&now);
	assert_int_equal(now.busy_ns, -1);

	snprintf(rm, sizeof(rm), "rm -r %s", root);
	assert_int_equal(system(rm), 0);
}

static void quotas(void **state)
{
	struct processors before, now;
	const struct processor_group *g;
	char rm[64];

	(void)state;
	strcpy(root + strlen(root) - 6, "XXXXXX");
	assert_non_null(mkdtemp(root));
	/* version 1: the group above has the quota, the lower one none */
	put("proc/self/cgroup", "3:cpu,cpuacct:/a/b\n");
	put("cgroup/cpu/a/b/cpu.cfs_quota_us", "-1\n");
	put("cgroup/cpu/a/b/cpu.cfs_period_us", "100000\n");
	put("cgroup/cpu/a/b/cpu.stat", "nr_periods 0\nnr_throttled 0\nthrottled_time 0\n");
	put("cgroup/cpu/a/cpu.cfs_quota_us", "30000\n");
	put("cgroup/cpu/a/cpu.cfs_period_us", "100000\n");
	put("cgroup/cpu/a/cpu.stat", "nr_periods 10\nnr_throttled 4\nthrottled_time 70000\n");
	look(&before);
	put("cgroup/cpu/a/cpu.stat", "nr_periods 30\nnr_throttled 15\nthrottled_time 900070000\n");
	look(&now);
	processors_sub(&now, &before);
	g = processors_throttled(&now);
	assert_non_null(g);
	assert_true(g->quota > 0.29 && g->quota < 0.31);
	assert_int_equal(g->periods, 20);
	assert_int_equal(g->throttled_periods, 11);
	assert_int_equal(g->throttled_ns, 900000000);
	/* nothing more: not throttled */
	before = now;
	look(&now);
	look(&before);
	processors_sub(&now, &before);
	assert_null(processors_throttled(&now));

	/* version 2, in microseconds, with a pressure of its own */
	put("proc/self/cgroup", "0::/s\n");
	put("proc/pressure/cpu", "some avg10=1.00 avg60=0.00 avg300=0.00 total=1\n");
	put("cgroup/s/cpu.max", "150000 100000\n");
	put("cgroup/s/cpu.pressure", "some avg10=1.00 avg60=0.00 avg300=0.00 total=44\n");
	put("cgroup/s/cpu.stat", "usage_usec 7\nnr_periods 0\nnr_throttled 0\nthrottled_usec 0\n");
	look(&before);
	assert_int_equal(before.pressure_ns, 44000);
	put("cgroup/s/cpu.stat", "usage_usec 7\nnr_periods 8\nnr_throttled 2\nthrottled_usec 90\n");
	look(&now);
	processors_sub(&now, &before);
	g = processors_throttled(&now);
	assert_non_null(g);
	assert_int_equal(g->throttled_ns, 90000);
	assert_int_equal(g->periods, 8);
	/* moved to another group meanwhile: nothing is known */
	put("proc/self/cgroup", "0::/\n");
	look(&now);
	processors_sub(&now, &before);
	assert_int_equal(now.groups, 0);

	snprintf(rm, sizeof(rm), "rm -r %s", root);
	assert_int_equal(system(rm), 0);
}

struct asleep {
	struct thread thread;
	_Atomic pid_t tid;
	_Atomic uint32_t quit;
};

static void sleep_on(void *arg)
{
	struct asleep *a = arg;

	atomic_store(&a->tid, (pid_t)syscall(SYS_gettid));
	while (!atomic_load(&a->quit))
		thread_wait(&a->quit, 0, NS_PER_S);
}

/* Only a thread is in a group with a quota, from the middle of an epoch on. */
static void groups_of_threads(void **state)
{
	struct processors before, now;
	const struct processor_group *g;
	struct asleep a = {0};
	char name[64], rm[64];
	struct err e;

	(void)state;
	strcpy(root + strlen(root) - 6, "XXXXXX");
	assert_non_null(mkdtemp(root));
	put("proc/self/cgroup", "3:cpu,cpuacct:/\n");
	put("cgroup/cpu/q/cpu.cfs_quota_us", "1000\n");
	put("cgroup/cpu/q/cpu.cfs_period_us", "100000\n");
	put("cgroup/cpu/q/cpu.stat", "nr_periods 100\nnr_throttled 50\nthrottled_time 7000\n");
	run_delay_enable(true);
	assert_int_equal(thread_run(&a.thread, sleep_on, &a, 0, "w0.0", &e), 0);
	while (!atomic_load(&a.tid))
		thread_wait(&a.quit, 0, NS_PER_S / 1000);
	snprintf(name, sizeof(name), "proc/self/task/%d/cgroup", (int)a.tid);
	put(name, "3:cpu,cpuacct:/\n");
	look(&before);
	assert_int_equal(before.groups, 0);
	/* moved: what the group did before is not this thread's */
	put(name, "3:cpu,cpuacct:/q\n");
	look(&now);
	assert_int_equal(now.groups, 1);
	put("cgroup/cpu/q/cpu.stat", "nr_periods 130\nnr_throttled 75\nthrottled_time 9000\n");
	look(&now);
	processors_sub(&now, &before);
	g = processors_throttled(&now);
	assert_non_null(g);
	assert_true(g->of_threads);
	assert_int_equal(g->periods, 30);
	assert_int_equal(g->throttled_periods, 25);
	assert_int_equal(g->throttled_ns, 2000);
	/* it still counts when the thread has ended */
	look(&before);
	atomic_store(&a.quit, 1);
	thread_wake(&a.quit, -1);
	assert_true(thread_join_within(&a.thread, -1));
	run_delay_enable(false);
	put("cgroup/cpu/q/cpu.stat", "nr_periods 132\nnr_throttled 76\nthrottled_time 9500\n");
	look(&now);
	processors_sub(&now, &before);
	g = processors_throttled(&now);
	assert_non_null(g);
	assert_int_equal(g->periods, 2);
	assert_int_equal(g->throttled_ns, 500);
	/* the whole process is in it: its own */
	put("proc/self/cgroup", "3:cpu,cpuacct:/q\n");
	look(&now);
	assert_int_equal(now.groups, 1);
	assert_false(now.group[0].of_threads);

	snprintf(rm, sizeof(rm), "rm -r %s", root);
	assert_int_equal(system(rm), 0);
}

/* ---- threads ---- */

static void lines(void **state)
{
	struct run_delay d;

	(void)state;
	assert_true(run_delay_parse("1234 567 8\n", &d));
	assert_int_equal(d.ran_ns, 1234);
	assert_int_equal(d.waited_ns, 567);
	/* a kernel that does not count */
	assert_false(run_delay_parse("0 0 0\n", &d));
	assert_false(run_delay_parse("", &d));
	assert_false(run_delay_parse("max\n", &d));
	assert_false(d.known);
}

#define BUSY 6

struct busy {
	struct thread thread;
	int64_t until_ns, took_ns, taken_ns;
};

static void keep_busy(void *arg)
{
	struct busy *b = arg;
	int64_t begin = clock_now_ns();

	while (clock_now_ns() < b->until_ns)
		;
	b->took_ns = clock_now_ns() - begin;
	b->taken_ns = run_delay_take(b->took_ns);
	/* too short to be looked at */
	assert_int_equal(run_delay_take(1000), 0);
}

/* Threads bound to one processor wait for each other: what they wait and run is their time, and it
 * is counted once, also when they have ended. */
static void real_threads(void **state)
{
	struct run_delay before, now;
	struct busy b[BUSY] = {0};
	int64_t until, taken = 0, took = 0;
	cpu_set_t old, one;
	struct err e;

	(void)state;
	run_delay_self(&now);
	if (!now.known)
		skip();
	run_delay_sum(&before);
	run_delay_enable(true);
	assert_int_equal(sched_getaffinity(0, sizeof(old), &old), 0);
	CPU_ZERO(&one);
	for (int c = 0; CPU_COUNT(&one) == 0; c++)
		if (CPU_ISSET(c, &old))
			CPU_SET(c, &one);
	assert_int_equal(sched_setaffinity(0, sizeof(one), &one), 0);
	until = clock_now_ns() + 400000000;
	for (int i = 0; i < BUSY; i++) {
		b[i].until_ns = until;
		assert_int_equal(thread_run(&b[i].thread, keep_busy, &b[i], 0, "busy", &e), 0);
	}
	for (int i = 0; i < BUSY; i++) {
		assert_true(thread_join_within(&b[i].thread, -1));
		taken += b[i].taken_ns;
		took += b[i].took_ns;
	}
	sched_setaffinity(0, sizeof(old), &old);
	run_delay_enable(false);
	run_delay_sum(&now);
	assert_true(now.known);
	assert_int_equal(now.threads, 0);
	/* five of six wait at any time */
	assert_in_range(taken, took / 10 * 7, took);
	assert_in_range(now.waited_ns - before.waited_ns, taken, taken + 400000000);
	/* not counted: reads nothing */
	assert_int_equal(run_delay_take(400000000), 0);
}

/* ---- standing still ---- */

#define TICK (NS_PER_S / 10)

static void ticks(void **state)
{
	struct standstills s;
	uint32_t times = 0;
	int64_t t;
	char name[16] = "";

	(void)state;
	standstill_begin(&s);
	t = s.looked_ns;
	/* a tick a little late is none */
	standstill_tick(&s, t, t + TICK + STANDSTILL_BRIEF_NS / 2, TICK);
	assert_int_equal(s.n, 0);
	t += NS_PER_S;
	standstill_tick(&s, t, t + 2 * NS_PER_S, TICK);
	assert_int_equal(s.n, 1);
	assert_in_range(standstill_within(&s, false, t - NS_PER_S, t + 5 * NS_PER_S, &times, NULL),
			2 * NS_PER_S - TICK, 2 * NS_PER_S);
	assert_int_equal(times, 1);
	/* of a part of it */
	assert_int_equal(standstill_within(&s, false, t + NS_PER_S, t + NS_PER_S + 5, NULL, NULL),
			 5);
	assert_int_equal(standstill_within(&s, true, t, t + NS_PER_S, NULL, NULL), 0);
	/* late because it waited for a processor all the time */
	t += 5 * NS_PER_S;
	s.waited_ns -= 3 * NS_PER_S;
	standstill_tick(&s, t, t + 2 * NS_PER_S, TICK);
	assert_int_equal(s.n, 1);

	/* a thread that is seen at three looks stood still once */
	for (int i = 0; i < 3; i++) {
		s.looked_ns = t + i * NS_PER_S;
		standstill_note_thread(&s, 77, "w0.1", s.looked_ns + NS_PER_S);
	}
	assert_int_equal(s.n, 2);
	times = 0;
	assert_int_equal(standstill_within(&s, true, t, t + 9 * NS_PER_S, &times, name),
			 NS_PER_S / 2 + 2 * NS_PER_S);
	assert_int_equal(times, 1);
	assert_string_equal(name, "w0.1");
	/* again, later */
	s.looked_ns = t + 5 * NS_PER_S;
	standstill_note_thread(&s, 77, "w0.1", t + 6 * NS_PER_S);
	assert_int_equal(s.n, 3);
	/* no more room */
	for (int i = 0; i < 2 * STANDSTILLS_KEPT; i++) {
		s.waited_ns = INT64_MAX / 2;
		standstill_tick(&s, t + i * 3 * NS_PER_S, t + (i * 3 + 2) * NS_PER_S, TICK);
	}
	assert_int_equal(s.n, STANDSTILLS_KEPT);
	assert_int_equal(s.dropped, 2 * STANDSTILLS_KEPT - (STANDSTILLS_KEPT - 3));
}

static bool never_ran(void *arg, int64_t begin_ns, int64_t end_ns)
{
	(void)arg;
	assert_true(begin_ns < end_ns);
	return false;
}

static bool ran_at(void *arg, int64_t begin_ns, int64_t end_ns)
{
	const int64_t *at = arg;

	return *at >= begin_ns && *at <= end_ns;
}

/* Four that are too short to be told one by one, 0.12 s of each second, and one that is not. */
static int64_t brief_ones(struct standstills *s, uint32_t n)
{
	int64_t t;

	standstill_begin(s);
	t = s->looked_ns;
	for (uint32_t i = 0; i < n; i++)
		standstill_tick(s, t + i * NS_PER_S, t + i * NS_PER_S + TICK + 120000000, TICK);
	return t;
}

static void brief(void **state)
{
	struct standstills s;
	struct run_delay own;
	uint32_t times = 0;
	int64_t t, at;

	(void)state;
	run_delay_self(&own);
	if (!own.known)
		skip();
	/* nothing else ran: what they last together */
	t = brief_ones(&s, 4);
	standstill_sift(&s, never_ran, NULL, 0);
	assert_int_equal(s.n, 4);
	assert_int_equal(standstill_within(&s, false, t, t + 9 * NS_PER_S, &times, NULL),
			 4 * (120000000 + TICK / 2));
	assert_int_equal(times, 4);
	/* in the second one another thread went on: the ticking one was late, no more */
	t = brief_ones(&s, 4);
	at = t + NS_PER_S + TICK + 30000000;
	standstill_sift(&s, ran_at, &at, 0);
	assert_int_equal(s.n, 3);
	/* after it, or before it was due: says nothing */
	t = brief_ones(&s, 4);
	at = t + NS_PER_S + TICK - 1;
	standstill_sift(&s, ran_at, &at, 0);
	assert_int_equal(s.n, 4);
	at = t + NS_PER_S + TICK + 119000000;
	standstill_sift(&s, ran_at, &at, 0);
	assert_int_equal(s.n, 4);
	/* too little in all; the hypervisor explains it; a long one stays in any case */
	brief_ones(&s, 1);
	standstill_sift(&s, never_ran, NULL, 0);
	assert_int_equal(s.n, 0);
	t = brief_ones(&s, 4);
	standstill_tick(&s, t + 9 * NS_PER_S, t + 10 * NS_PER_S, TICK);
	standstill_sift(&s, never_ran, NULL, NS_PER_S);
	assert_int_equal(s.n, 1);
	/* late because it waited for a processor */
	t = brief_ones(&s, 0);
	s.waited_ns -= 110000000;
	standstill_tick(&s, t, t + TICK + 120000000, TICK);
	assert_int_equal(s.n, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(counters),
		cmocka_unit_test(quotas),
		cmocka_unit_test(lines),
		cmocka_unit_test(real_threads),
		cmocka_unit_test(ticks),
		cmocka_unit_test(brief),
		cmocka_unit_test(groups_of_threads),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
