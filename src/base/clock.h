#pragma once
/* Time. All durations are int64 nanoseconds. */
#include <stddef.h>
#include <stdint.h>

#define NS_PER_S 1000000000LL

/* CLOCK_MONOTONIC, in ns. */
int64_t clock_now_ns(void);
/* CLOCK_REALTIME, ns since the epoch. */
int64_t clock_wall_ns(void);
/* "2026-01-31T12:34:56.123456": local time, microseconds, no zone (DLIO's format). Needs 27 bytes.
 */
void clock_timestamp(int64_t wall_ns, char *out, size_t out_size);
/* Sleeps until the monotonic time `deadline_ns`; returns the time of waking. EINTR is resumed.
 * Returns at once when the deadline is past. */
int64_t clock_sleep_until(int64_t deadline_ns);
/* Asks the kernel for the finest timer slack for the calling thread (1 ns instead of 50 us), so
 * that emulated waits overshoot less. Best effort. */
void clock_precise_timers(void);
