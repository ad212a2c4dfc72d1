#pragma once
/* What is done and measured before and after the phases of an epoch, by one rank of each process
 * and outside every measured time: the page cache (eviction as storage.page_cache asks, and
 * residency that proves it), and the counters of the process and its host. Process-wide counters
 * belong to one phase: training ends everywhere with its last step's barrier, and no rank leaves an
 * epoch before all enter the next one. Private to run/. */
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/thread.h"
#include "metric/host_io.h"
#include "metric/memory_pressure.h"
#include "metric/proc_io.h"
#include "metric/processors.h"
#include "result/result.h"
#include "run/plan.h"

struct epoch_edges {
	/* set before the first call */
	const struct run_plan *plan;
	const struct stop_flag *stop;
	const struct host_io_source
		*host;                /* NULL: this process does not read its host's counters */
	struct epoch_usage *usage;    /* of this epoch; filled */
	struct servers *servers;      /* of the run; the timed part is counted */
	_Atomic int64_t *progress_ns; /* for the watchdog */
	uint32_t epoch;               /* from 1 */
	/* the counters when the phase began */
	struct proc_io process;
	struct host_io host_io;
	struct memory_pressure memory;
	struct processors processors;
	int64_t cpu_ns;
};

/* ERR_USAGE when the store or its file system cannot do what storage.page_cache asks. */
int page_cache_check(const struct run_plan *p, struct err *e);
/* Whether page_cache_begin will evict the dataset. */
bool page_cache_evicts(const struct epoch_edges *g);
/* Before that, while no rank of any process reads: files that this process has mapped would keep
 * their pages. */
void page_cache_let_go(struct epoch_edges *g);
/* Before the measures of the epoch begin, and after they have ended. */
int page_cache_begin(struct epoch_edges *g, struct err *e);
int page_cache_end(struct epoch_edges *g, struct err *e);
/* Of the evaluation files, when training has ended and its counters were taken. */
int page_cache_before_evaluation(struct epoch_edges *g, struct err *e);

/* Before training. Fills the epoch's snapshot of memory. */
void usage_begin(struct epoch_edges *g);
/* The differences since the phase began, into the epoch's usage; nothing but CPU time with
 * run.measure=none. May wait some 50 ms for the device. */
void usage_of_training(struct epoch_edges *g);
void usage_of_evaluation(struct epoch_edges *g);
