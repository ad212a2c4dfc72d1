/* The rate of the processor's counter. */
#include "base/ticks.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#ifdef __x86_64__
#include <cpuid.h>
#endif

_Atomic uint64_t ticks_scale;

#ifdef __x86_64__
#define SPAN_NS (NS_PER_S / 1000)
#define LOOKS 8
#define INVARIANT (1u << 8) /* CPUID 8000_0007h, EDX */

/* Linux uses the counter for its own clock only as long as it finds all processors' in step. */
static bool trusted_by_linux(void)
{
	FILE *f = fopen("/sys/devices/system/clocksource/clocksource0/current_clocksource", "re");
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

/* The counter and the clock at one moment: of several looks the quickest. */
static void look(int64_t *ticks, int64_t *ns)
{
	int64_t best = INT64_MAX;

	for (int i = 0; i < LOOKS; i++) {
		int64_t before = TICKS_COUNTER(), now = clock_now_ns(), after = TICKS_COUNTER();

		if (after - before >= best)
			continue;
		best = after - before;
		*ticks = before + best / 2;
		*ns = now;
	}
}

static void measure(void)
{
	int64_t ticks[2] = {0}, ns[2] = {0};
	uint64_t scale;

	if (!invariant() || !trusted_by_linux())
		return;
	look(&ticks[0], &ns[0]);
	clock_sleep_until(ns[0] + SPAN_NS);
	look(&ticks[1], &ns[1]);
	if (ticks[1] <= ticks[0] || ns[1] <= ns[0])
		return;
	scale = (uint64_t)(((unsigned __int128)(uint64_t)(ns[1] - ns[0]) << 32) /
			   (uint64_t)(ticks[1] - ticks[0]));
	atomic_store_explicit(&ticks_scale, scale, memory_order_relaxed);
}
#else
static void measure(void)
{
}
#endif

void ticks_init(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, measure);
}
