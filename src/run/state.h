#pragma once
/* What the threads of one run share. Private to run/. */
#include <pthread.h>
#include <stdatomic.h>

#include "dataset/generate.h"
#include "run/rank.h"
#include "run/run.h"

struct run_state {
	const struct workload *w;
	const struct run_options *o;
	struct dataset *d;
	struct store *store;
	struct result *r;
	const struct loader_ops *loader_ops; /* NULL when nothing is trained */
	struct checkpoint *checkpoint;       /* NULL when none is asked for */
	struct comm_group *group;
	struct rank *rank;
	uint32_t ranks;
	uint64_t seed;     /* of the shuffles: train.seed, or drawn for "random" */
	uint64_t steps[2]; /* per epoch: training, evaluation */
	struct order_list list[DATASET_KINDS]; /* of the present epoch, when the order takes one */
	int64_t train_begin_ns;
	_Atomic uint32_t epoch; /* rank 0's, from 1 */
	_Atomic int phase;      /* enum progress_phase */
	struct generate_progress generate;
	_Atomic uint64_t checked; /* files and names looked at by the check of the dataset */
	int64_t phase_begin_ns;

	struct stop_flag stop;   /* seen by every thread of the run */
	_Atomic uint32_t halt;   /* futex word beside it: emulated waits end when it is 1 */
	_Atomic int64_t stop_ns; /* when it was set, 0 before */
	pthread_mutex_t lock;    /* of reason */
	struct err reason;       /* first cause of the stop; code 0 while there is none */

	/* the monitor's own: when `checked` was last seen to move */
	uint64_t seen_checked;
	int64_t seen_ns;
	pthread_t monitor;
	_Atomic uint32_t monitor_quit;
};

/* Ends the run: records the first cause, sets the flag and wakes whoever waits. Any thread. */
void run_stop(struct run_state *s, const struct err *why);

/* Makes the lists that the orders of an epoch take. One thread, while no rank is in an epoch. */
void run_fill_lists(struct run_state *s, uint32_t epoch);
/* The order of an epoch, its list included. */
void run_order(const struct run_state *s, int kind, uint32_t epoch, struct order *out);
/* Steps of epoch `epoch` (from 1), after total_training_steps. */
uint64_t run_epoch_steps(const struct run_state *s, uint32_t epoch);
bool run_epoch_has_eval(const struct workload *w, uint32_t epoch);

/* Waits for a thread; once the run was stopped, not longer than it may take to leave. False when it
 * is stuck in the system: then nothing it uses may be freed. */
bool run_join(struct run_state *s, pthread_t thread);
/* dataset_check with progress, stop and watchdog, in a thread of its own, so that storage that does
 * not answer cannot hold the run: then the result says stuck. */
int run_check_dataset(struct run_state *s, struct err *e);
/* Proves the order of the epochs that every rank ended, from the ranks of the result. Looks at the
 * stop flag of the options. */
int run_prove_order(struct run_state *s, struct err *e);

/* Progress, watchdog and the passing on of signals (monitor.c). */
int monitor_start(struct run_state *s, struct err *e);
void monitor_stop(struct run_state *s);
