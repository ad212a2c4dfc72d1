#pragma once
/* Times in which the process, or one of its threads, was not run although nothing in it slept:
 * stopped by a signal or a tracer, frozen by a control group, or the machine paused. Waits for a
 * processor are no such times (base/run_delay.h). Seen from a thread that ticks. */
#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"

#define STANDSTILLS_KEPT 512
/* How finely the ticks should come. */
#define STANDSTILL_TICK_NS (NS_PER_S / 100)
/* A tick that comes so much late was no matter of timers. */
#define STANDSTILL_LEAST_NS (NS_PER_S / 4)
/* One that comes so much late may have been: it counts together with others like it. */
#define STANDSTILL_BRIEF_NS (NS_PER_S / 50)

struct standstill {
	int64_t begin_ns, end_ns; /* monotonic; within a tick */
	char thread[16];          /* its name; "": the whole process */
	int tid;                  /* of the thread; 0: the whole process */
	/* Of a brief one: nothing in the process can have run from here to there; else both 0. */
	int64_t sure_begin_ns, sure_end_ns;
};

struct standstills {
	uint32_t n, dropped; /* kept; not kept, for lack of room */
	struct standstill of[STANDSTILLS_KEPT];
	/* the ticks' own */
	int64_t waited_ns; /* the ticking thread's, for a processor */
	int64_t looked_ns; /* when threads were last looked at */
	int64_t look_every_ns;
	bool waits_known;
};

/* Before the first tick. */
void standstill_begin(struct standstills *s);
/* The ticking thread slept from `from_ns` to `now_ns` and meant to sleep `tick_ns`: notes what that
 * was too long by STANDSTILL_BRIEF_NS, unless the thread waited for a processor meanwhile. Then
 * looks at the state of the counted threads, about twice a second and less often where that takes
 * long. */
void standstill_tick(struct standstills *s, int64_t from_ns, int64_t now_ns, int64_t tick_ns);
/* Once the ticks are over: keeps the brief ones only where they are no matter of one late thread,
 * that is where what is left of them lasts STANDSTILL_LEAST_NS in all. `ran`: whether anything else
 * in the process ran in [begin, end]. `steal_ns`: what the hypervisor took of all processors. */
void standstill_sift(struct standstills *s,
		     bool (*ran)(void *arg, int64_t begin_ns, int64_t end_ns), void *arg,
		     int64_t steal_ns);
/* A thread was seen not to run at `now_ns`: one interval from the look before it. */
void standstill_note_thread(struct standstills *s, int tid, const char *name, int64_t now_ns);
/* Of [begin, end] what the process (thread: any one thread) stood still, and how often, at most
 * once for each interval. `name` (16 bytes; may be NULL) gets that of the thread. */
int64_t standstill_within(const struct standstills *s, bool thread, int64_t begin_ns,
			  int64_t end_ns, uint32_t *times, char *name);
