#pragma once
/* What a phase of an epoch cost the process and its host, by their counters. Process-wide counters
 * are its first rank's to take: training ends everywhere with its last step's barrier, and no rank
 * leaves an epoch before all enter the next one, so that what is taken there belongs to one phase.
 */
#include "run/state.h"

/* Counters of the process, and of its host where it is the one that looks at it. All zeros at
 * first.
 */
struct usage_mark {
	struct proc_io process;
	struct host_io host;
	struct memory_pressure memory;
	int64_t cpu_ns;
};

/* Before training of `epoch` (from 1). Fills the epoch's snapshot of memory. */
void usage_begin(struct run_state *s, uint32_t epoch, struct usage_mark *m);
/* The differences since `since`, which becomes now, into the epoch's usage; nothing but CPU time
 * with run.measure=none. May wait some 50 ms for the device: call outside of all that is timed. */
void usage_of_training(struct run_state *s, uint32_t epoch, struct usage_mark *since);
void usage_of_evaluation(struct run_state *s, uint32_t epoch, struct usage_mark *since);

/* ---- the page cache around the epochs of a run: eviction as storage.page_cache asks, and looks
 * that prove it. Done by one rank while the others wait, outside every measured time. ---- */

/* ERR_USAGE when the store or its file system cannot do what storage.page_cache asks. */
int run_page_cache_check(const struct run_state *s, struct err *e);
/* Before the measures of epoch `epoch` (from 1) begin. `progress_ns` tells the watchdog. */
int run_page_cache_begin(struct run_state *s, uint32_t epoch, _Atomic int64_t *progress_ns,
			 struct err *e);
/* After they have ended. */
int run_page_cache_end(struct run_state *s, uint32_t epoch, _Atomic int64_t *progress_ns,
		       struct err *e);
