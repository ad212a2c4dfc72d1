#pragma once
/* Time. All durations are int64 nanoseconds. */
#include <stddef.h>
#include <stdint.h>

#define NS_PER_S 1000000000LL

static inline double clock_seconds(int64_t ns)
{
	return (double)ns / 1e9;
}

/* CLOCK_MONOTONIC, in ns; never less than the same thread got before, as far as that was at most a
 * microsecond ago. After clock_init, where Linux itself keeps time by the processor's counter
 * (x86-64 with an invariant TSC that all processors share), it is read from that counter, at about
 * half the price: each thread looks at the real clock every tenth of a millisecond, and is within
 * a tenth of a microsecond of it between. Not for signal handlers. */
int64_t clock_now_ns(void);
/* Measures the rate of the processor's counter, which takes a millisecond; only the first call does
 * anything. Any thread, at any time. */
void clock_init(void);
/* CLOCK_REALTIME, ns since the epoch. */
int64_t clock_wall_ns(void);
/* "2026-01-31T12:34:56.123456": local time, microseconds, no zone (DLIO's format). Needs 27 bytes.
 */
void clock_timestamp(int64_t wall_ns, char *out, size_t out_size);
/* Sleeps until the time of clock_now_ns is `deadline_ns`; returns the time of waking. EINTR is
 * resumed. Returns at once when the deadline is past. */
int64_t clock_sleep_until(int64_t deadline_ns);
/* Asks the kernel for the finest timer slack for the calling thread (1 ns instead of 50 us), so
 * that emulated waits overshoot less. Best effort. */
void clock_precise_timers(void);
