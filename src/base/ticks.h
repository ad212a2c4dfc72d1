#pragma once
/* Short times at a small cost. Where Linux itself keeps time by the processor's counter (x86-64
 * with an invariant TSC that all processors share), one is two readings of that counter, at less
 * than half the price of clock_now_ns; elsewhere, and before ticks_init, the clock.
 *
 * A reading is not held back until earlier instructions are done, so that a time may be some ten ns
 * off. Its rate is measured once, to within 1e-4, and does not follow the clock being slewed: for
 * the length of a request, not for dates. */
#include <stdatomic.h>
#include <stdint.h>

#include "base/clock.h"

#ifdef __x86_64__
#include <x86intrin.h>
#define TICKS_COUNTER() ((int64_t)__rdtsc())
#else
#define TICKS_COUNTER() clock_now_ns()
#endif

extern _Atomic uint64_t ticks_scale; /* 2^32 times the ns of a tick; 0: the clock is used */

/* Measures the rate, which takes a millisecond; only the first call does anything. No other thread
 * may be between two readings. */
void ticks_init(void);

/* A reading: means nothing but to ticks_between. */
static inline int64_t ticks_now(void)
{
	return atomic_load_explicit(&ticks_scale, memory_order_relaxed) ? TICKS_COUNTER()
									: clock_now_ns();
}

/* ns from one reading to another, never negative. */
static inline int64_t ticks_between(int64_t from, int64_t to)
{
	uint64_t scale = atomic_load_explicit(&ticks_scale, memory_order_relaxed);

	if (to <= from)
		return 0;
	return scale ? (int64_t)(((unsigned __int128)(uint64_t)(to - from) * scale) >> 32)
		     : to - from;
}
