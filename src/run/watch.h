#pragma once
/* The run watched from beside it, by a thread of its own: it tells progress, passes a stop request
 * on to everyone who waits, and ends a run in which nothing moves any more. And the sampling of the
 * machine while ranks train. Private to run/. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>

#include "base/err.h"
#include "metric/iostat.h"
#include "metric/standstill.h"
#include "result/result.h"
#include "run/plan.h"
#include "run/rank.h"
#include "run/run.h"
#include "run/shared.h"

struct run_watch {
	/* set before the first call; constant while the thread runs */
	const struct run_plan *plan;
	const struct run_options *o;
	struct run_shared *shared;
	struct result *r;  /* its series and sources are made here */
	struct rank *rank; /* `locals` of them; NULL before they are there */
	/* ---- watch.c's ---- */
	struct rank_progress *seen_rank; /* `locals` of them */
	int64_t next_tell_ns;
	uint64_t read_samples, read_bytes; /* last told: loaders end before the last word */
	char device_name[64];
	/* when the check or the generation of the dataset was last seen to move */
	uint64_t seen_checked, seen_generated;
	int64_t seen_ns;
	int64_t round_ns,
		awake_ns;         /* the last look; since when this process has run without a gap */
	struct iostat *iostat;    /* NULL: not asked for */
	struct standstills stops; /* while ranks run, unless nothing is measured */
	int64_t next_groups_ns;
	pthread_t thread;
	_Atomic uint32_t quit; /* futex */
};

/* Begins a phase, which is watched from here to watch_stop. With w->rank set, these are watched
 * too. */
int watch_start(struct run_watch *w, enum progress_phase phase, struct err *e);
void watch_stop(struct run_watch *w);
/* Tells the caller how far the run is, whether or not it is due. While no thread watches. */
void watch_tell(struct run_watch *w);
/* The last word of the ranks. */
void watch_tell_end(struct run_watch *w);
/* Keeps what workers have read for the last word. While the loaders exist and no thread watches. */
void watch_keep_reads(struct run_watch *w);
void watch_release(struct run_watch *w);

/* Sampling of the machine while ranks train, as far as it is asked for. After the end r->series can
 * be read; both must be called from one thread. */
int watch_sampling_begin(struct run_watch *w, struct err *e);
int watch_sampling_end(struct run_watch *w, struct err *e);
