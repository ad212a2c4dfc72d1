#pragma once
/* What the threads of one run share while it goes on: its end, what ranks publish of themselves,
 * and how far the phase is. Private to run/. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/folder_lock.h"
#include "base/thread.h"
#include "comm/comm.h"
#include "dataset/dataset.h"
#include "dataset/generate.h"
#include "dataset/order.h"
#include "metric/step.h"

/* ---- the end of a run ---- */

struct run_stop {
	struct stop_flag flag;         /* seen by every thread of the run */
	_Atomic uint32_t halt;         /* futex word beside it: emulated waits end when it is 1 */
	_Atomic int64_t at_ns;         /* when it was set, 0 before */
	pthread_mutex_t lock;          /* of reason */
	struct err reason;             /* first cause of the stop; code 0 while there is none */
	struct net *net;               /* told of the stop; NULL: this process is alone */
	const struct stop_flag *asked; /* by signals; NULL: never */
	_Atomic int64_t hurried_ns;    /* when a hurry was first seen, 0 before */
	struct comm_group *group; /* of the ranks, to be woken; set while no other thread runs */
};

/* How long the threads of a run may take to leave after it was stopped, and readers of a loader
 * within that time: a request that is on its way ends, one that hangs does not hold the results. */
#define RUN_LEAVE_NS (9 * NS_PER_S / 2)
#define RUN_LOADER_LEAVE_NS (3 * NS_PER_S)
/* The same after a second signal. */
#define RUN_HURRY_NS NS_PER_S

void run_stop_init(struct run_stop *s, struct net *net, const struct stop_flag *asked);
void run_stop_release(struct run_stop *s);
/* Ends the run: records the first cause, sets the flag and wakes whoever waits. Any thread. */
void run_stop(struct run_stop *s, const struct err *why);
bool run_stopped(const struct run_stop *s);
/* Stops the run when a signal asked for it, or another process ended it. */
void run_stop_look(struct run_stop *s);
/* Whether a second signal asked for the end. */
bool run_hurries(const struct run_stop *s);
/* Whether threads have had their time to leave; false while the run goes on. */
bool run_leave_is_over(struct run_stop *s);
/* The first cause: its code and sentence; 0, and nothing written, when there is none. */
int run_stop_reason(struct run_stop *s, struct err *e);
/* Waits until the deadline or the end of the run; returns the time of waking. */
int64_t run_wait_until(struct run_stop *s, int64_t deadline_ns);
/* Waits for a thread; once the run was stopped, not longer than it may take to leave. False when it
 * is stuck in the system: then nothing it uses may be freed. */
bool run_join(struct run_stop *s, struct thread *t);

/* ---- a rank, seen from other threads ---- */

enum rank_activity {
	RANK_STARTING,
	RANK_WAITING, /* for a batch */
	RANK_COMPUTING,
	RANK_BARRIER,
	RANK_LOOKING, /* at the page cache */
	RANK_SAVING,
	RANK_LOADING,
	RANK_PAUSING,
	RANK_DONE,
};

/* Published for progress and watchdog; relaxed, but for the order of rank_publish_step. One writer,
 * the rank; of the checkpoints' counters its background thread where it has one. */
struct rank_live {
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
	/* the rank's own: where train_ns and eval_ns count from, were there nothing else */
	int64_t train_zero_ns, eval_zero_ns;
};

void rank_publish(struct rank_live *k, enum rank_activity what, int64_t progress_ns);
/* A step is over, in which so much was delivered. */
void rank_publish_step(struct rank_live *k, const struct phase *p, const struct step_times *t,
		       uint64_t bytes, uint64_t samples);

/* ---- all of it ---- */

struct run_shared {
	struct run_stop stop;
	_Atomic int phase;      /* enum progress_phase */
	int64_t phase_begin_ns; /* set while nobody watches */
	struct generate_progress generate;
	_Atomic uint64_t checked; /* files and names that the check of the dataset is done with */
	_Atomic uint32_t epoch;   /* rank 0's, from 1 */
	_Atomic uint32_t probe_done, probe_total; /* points of a probe */
	/* Of the present epoch, when the order takes one; rewritten by one thread while no rank is
	 * in an epoch. */
	struct order_list list[DATASET_KINDS];
	struct file_lock apart; /* of this host's own folder of results, where it is cut off */
};
