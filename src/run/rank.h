#pragma once
/* One rank: its loop over epochs, steps and evaluations. Private to run/. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>

#include "base/rng.h"
#include "comm/comm.h"
#include "loader/loader.h"
#include "result/result.h"
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
	/* published for progress and watchdog; relaxed, but for the order of rank_publish_step */
	_Atomic int64_t progress_ns; /* last progress; in the future while a wait is planned */
	_Atomic int activity;        /* enum rank_activity */
	_Atomic int evaluating;
	_Atomic uint64_t payload_bytes; /* delivered so far */
	_Atomic uint64_t samples;       /* the same */
	/* of finished training steps of all epochs */
	_Atomic int64_t train_ns, wait_ns, compute_ns;
	_Atomic uint64_t train_bytes, train_samples, steps_done;
	_Atomic int64_t eval_ns; /* the same of evaluations */
	_Atomic uint64_t eval_done;
	_Atomic uint64_t eval_before; /* eval_done when the last one began */
	_Atomic uint64_t saves_done, loads_done, checkpoint_bytes;
	/* the rank's own */
	int64_t train_zero_ns; /* where train_ns counts from, were there nothing but training */
	int64_t eval_zero_ns;
	struct requested train_requested, eval_requested; /* until the last look */
};

void rank_publish(struct rank *k, enum rank_activity what, int64_t progress_ns);
/* A step is over, in which so much was delivered. */
void rank_publish_step(struct rank *k, const struct phase *p, const struct step_times *t,
		       uint64_t bytes, uint64_t samples);
/* Waits until the deadline or the end of the run; returns the time of waking. */
int64_t rank_wait_until(struct run_state *s, int64_t deadline_ns);

/* The thread's function; `arg` is a struct rank. */
void *rank_main(void *arg);
