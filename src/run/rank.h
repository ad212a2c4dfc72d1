#pragma once
/* One rank: its loop over epochs, steps and evaluations. Private to run/. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>

#include "base/rng.h"
#include "comm/comm.h"
#include "loader/loader.h"
#include "report/result.h"
#include "run/checkpoints.h"

struct run_state;

enum rank_activity {
	RANK_STARTING,
	RANK_WAITING, /* for a batch */
	RANK_COMPUTING,
	RANK_BARRIER,
	RANK_SAVING,
	RANK_LOADING,
	RANK_PAUSING,
	RANK_DONE,
};

struct rank {
	struct run_state *run;
	struct comm comm;
	pthread_t thread;
	bool started, joined;
	/* atomic: the monitor wakes and describes them while the rank runs */
	_Atomic(struct loader *) train, eval;
	struct rng_np rng; /* of the emulated compute times */
	bool hung;         /* a worker never came back: its counters are still its own */
	struct rank_checkpoints checkpoints;
	struct rank_result *out;
	/* published for progress and watchdog; relaxed */
	_Atomic int64_t progress_ns; /* last progress; in the future while a wait is planned */
	_Atomic int activity;        /* enum rank_activity */
	_Atomic int evaluating;
	_Atomic uint64_t steps_done;    /* training steps of all epochs */
	_Atomic uint64_t payload_bytes; /* delivered so far */
	_Atomic int64_t compute_ns;     /* emulated so far, training */
};

void rank_publish(struct rank *k, enum rank_activity what, int64_t progress_ns);
/* Waits until the deadline or the end of the run; returns the time of waking. */
int64_t rank_wait_until(struct run_state *s, int64_t deadline_ns);

/* The thread's function; `arg` is a struct rank. */
void *rank_main(void *arg);
