#pragma once
/* A clock that stops: the stalls of an emulated storage system. Everything that is due during a
 * stall is due after it; what was due before is unchanged. */
#include <stdatomic.h>
#include <stdint.h>

struct throttle_stall {
	int64_t at_ns;     /* the first stall, since the start */
	int64_t every_ns;  /* from the beginning of one stall to that of the next; 0: one only */
	int64_t length_ns; /* shorter than every_ns; 0: no stalls */
	_Atomic int64_t start_ns; /* of the monotonic clock; 0 before the first request */
};

/* The first request arrives: the stalls are counted from here. Later calls change nothing. Any
 * thread. */
void throttle_stall_start(struct throttle_stall *s, int64_t now_ns);
/* The time on the clock that stops, at the time `real_ns`; and back: when the clock that stops gets
 * to `work_ns` (INT64_MAX stays). NULL: a clock that does not stop. */
int64_t throttle_stall_work_ns(const struct throttle_stall *s, int64_t real_ns);
int64_t throttle_stall_real_ns(const struct throttle_stall *s, int64_t work_ns);
