#include "base/clock.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>

#include "base/alloc.h"

#ifdef __x86_64__
#include <cpuid.h>
#include <x86intrin.h>
#endif

static int64_t kernel_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * NS_PER_S + ts.tv_nsec;
}

#ifdef __x86_64__
#define SPAN_NS (NS_PER_S / 1000) /* over which the rate is measured */
#define LOOKS 8
#define INVARIANT (1u << 8) /* CPUID 8000_0007h, EDX */
#define TRUSTED (1u << 18)  /* ticks from a look at the clock: a tenth of a millisecond */
#define QUICK 512u          /* ticks that a look may take, to know when it was */
#define BACK_NS (NS_PER_S / 1000000)

/* 2^32 times the ns of a tick; 0: the counter is not used. */
static _Atomic uint64_t tick_ns;

/* The counter and the clock at one moment. All zeros: none yet. */
static _Thread_local struct moment {
	uint64_t ticks;
	int64_t ns;
} anchor;

static inline int64_t after(const struct moment *m, uint64_t ticks, uint64_t scale)
{
	return m->ns + (int64_t)((ticks * scale) >> 32);
}

/* A look at the clock. Returns how long it took, in ticks. */
static uint64_t look(struct moment *m)
{
	uint64_t before = __rdtsc();

	m->ns = kernel_ns();
	m->ticks = __rdtsc();
	before = m->ticks - before;
	m->ticks -= before / 2;
	return before;
}

static int64_t look_again(uint64_t scale)
{
	struct moment m;
	uint64_t took = look(&m), since = m.ticks - anchor.ticks;
	int64_t then;

	/* time of a thread does not go back */
	then = since < 2 * TRUSTED ? after(&anchor, since, scale) : 0;
	if (then > m.ns && then - m.ns < BACK_NS)
		m.ns = then;
	anchor = took <= QUICK ? m : (struct moment){0};
	return m.ns;
}

int64_t clock_now_ns(void)
{
	uint64_t scale = atomic_load_explicit(&tick_ns, memory_order_relaxed), since;

	if (scale == 0)
		return kernel_ns();
	since = __rdtsc() - anchor.ticks;
	return since < TRUSTED ? after(&anchor, since, scale) : look_again(scale);
}

/* Linux uses the counter for its own clock only as long as it finds all processors' in step. */
static bool trusted_by_linux(void)
{
	FILE *f = WITH_MEMORY(
		fopen("/sys/devices/system/clocksource/clocksource0/current_clocksource", "re"));
	char name[32] = "";
	bool read = f && fgets(name, sizeof(name), f);

	if (f)
		fclose(f);
	return read && strcmp(name, "tsc\n") == 0;
}

static bool invariant(void)
{
	unsigned a, b, c, d;

	return __get_cpuid(0x80000007, &a, &b, &c, &d) && (d & INVARIANT);
}

/* Some virtual machines and sandboxes make reading the counter dear. */
static bool cheap(void)
{
	uint64_t t[3], sum = 0, least[2] = {UINT64_MAX, UINT64_MAX};

	for (int i = 0; i < LOOKS; i++) {
		t[0] = __rdtsc();
		for (int k = 0; k < LOOKS; k++)
			sum += __rdtsc();
		t[1] = __rdtsc();
		for (int k = 0; k < LOOKS; k++)
			sum += (uint64_t)kernel_ns();
		t[2] = __rdtsc();
		for (int k = 0; k < 2; k++)
			least[k] = t[k + 1] - t[k] < least[k] ? t[k + 1] - t[k] : least[k];
	}
	return sum != 0 && least[0] < least[1];
}

/* The quickest of several looks knows best when it was. */
static struct moment careful_look(void)
{
	uint64_t least = UINT64_MAX;
	struct moment best = {0};

	for (int i = 0; i < LOOKS; i++) {
		struct moment m;
		uint64_t took = look(&m);

		if (took < least) {
			least = took;
			best = m;
		}
	}
	return best;
}

static void measure_rate(void)
{
	struct moment from, to;

	if (!invariant() || !trusted_by_linux() || !cheap())
		return;
	from = careful_look();
	clock_sleep_until(from.ns + SPAN_NS);
	to = careful_look();
	if (to.ticks <= from.ticks || to.ns <= from.ns)
		return;
	atomic_store_explicit(&tick_ns,
			      (uint64_t)(((unsigned __int128)(uint64_t)(to.ns - from.ns) << 32) /
					 (to.ticks - from.ticks)),
			      memory_order_relaxed);
}
#else
int64_t clock_now_ns(void)
{
	return kernel_ns();
}

static void measure_rate(void)
{
}
#endif

void clock_init(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, measure_rate);
}

int64_t clock_wall_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_REALTIME, &ts);
	return ts.tv_sec * NS_PER_S + ts.tv_nsec;
}

void clock_timestamp(int64_t wall_ns, char *out, size_t out_size)
{
	time_t s = (time_t)(wall_ns / NS_PER_S);
	int us = (int)(wall_ns % NS_PER_S / 1000);
	struct tm tm;
	char date[32];

	localtime_r(&s, &tm);
	strftime(date, sizeof(date), "%Y-%m-%dT%H:%M:%S", &tm);
	snprintf(out, out_size, "%s.%06d", date, us);
}

int64_t clock_sleep_until(int64_t deadline_ns)
{
	struct timespec ts = {deadline_ns / NS_PER_S, deadline_ns % NS_PER_S};
	int64_t now = clock_now_ns();

	if (now >= deadline_ns)
		return now;
	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &ts, NULL) == EINTR)
		;
	return clock_now_ns();
}

void clock_precise_timers(void)
{
	prctl(PR_SET_TIMERSLACK, 1UL, 0UL, 0UL, 0UL);
}
