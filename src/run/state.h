#pragma once
/* What the threads of one run share. Private to run/. */
#include <pthread.h>
#include <stdatomic.h>

#include "base/folder_lock.h"
#include "dataset/generate.h"
#include "metric/iostat.h"
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
	struct rank *rank;      /* `locals` of them */
	uint32_t ranks;         /* of all processes */
	uint32_t locals, first; /* of this one: how many, and the first one's number */
	struct net *net;        /* NULL: this process is alone */
	struct iostat *iostat;  /* NULL: not asked for */
	uint64_t seed;          /* of the shuffles: train.seed, or drawn for "random" */
	uint64_t steps[2];      /* per epoch: training, evaluation */
	struct order_list list[DATASET_KINDS]; /* of the present epoch, when the order takes one */
	int64_t train_begin_ns;
	_Atomic uint32_t epoch; /* rank 0's, from 1 */
	_Atomic int phase;      /* enum progress_phase */
	struct generate_progress generate;
	_Atomic uint64_t checked; /* files and names looked at by the check of the dataset */
	int64_t phase_begin_ns;

	struct file_lock output; /* of the folder of results, held by the leading process */

	struct stop_flag stop;   /* seen by every thread of the run */
	_Atomic uint32_t halt;   /* futex word beside it: emulated waits end when it is 1 */
	_Atomic int64_t stop_ns; /* when it was set, 0 before */
	pthread_mutex_t lock;    /* of reason */
	struct err reason;       /* first cause of the stop; code 0 while there is none */

	/* the monitor's own */
	struct rank_progress *seen_rank;                                  /* `locals` of them */
	uint64_t total_steps, total_eval_steps, total_saves, total_loads; /* of the run */
	int64_t next_tell_ns;
	char device_name[64];
	/* when `checked` was last seen to move */
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

/* ---- several processes (together.c); each of these is at rest when this one is alone ---- */

bool run_leads(const struct run_state *s); /* process 0 */
/* Whether this process is the one that looks at its host's counters for all of it. */
bool run_tells_host(const struct run_state *s);
/* Whether all processes got this far; see comm_agree. */
int run_agree(struct run_state *s, int rc, struct err *e);
/* Process 0's bytes to all. */
int run_share(struct run_state *s, void *p, size_t n, struct err *e);
/* As run_agree, for what process 0 alone did: its outcome and its bytes become everybody's. */
int run_follow(struct run_state *s, int rc, void *p, size_t n, struct err *e);
/* Do all hosts see the dataset that process 0 sees? Compares the manifest and a sample of files. */
int run_check_shared(struct run_state *s, struct err *e);
/* Processes of this one's host. */
uint32_t run_processes_here(const struct run_state *s);
/* The end of a run: brings this process's part of the result to process 0, which merges all.
 * `*rc` and `e` become those of the run. Then s->r->speaks tells who goes on to write. */
void run_gather(struct run_state *s, int *rc, struct err *e);
/* Tells the others that the results are written; returns the run's code everywhere. */
int run_conclude(struct run_state *s, int rc);

/* Of a process that writes the results because process 0 is gone; in the folder of results. */
#define RUN_TAKEN_OVER ".stoker-taken-over"
/* Makes and locks the folder of results (-EBUSY: another run writes there), removes an earlier
 * run's files from it, and opens the log. */
int run_open_folder(struct run_state *s, struct err *e);
/* Judges the measures and renders every sink. */
int run_write_results(struct run_state *s, struct err *e);
/* The trace of this process's ranks, where one is kept: before results are gathered. */
int run_write_trace(struct run_state *s, struct err *e);

/* Steps of epoch `epoch` (from 1), after total_training_steps. */
uint64_t run_epoch_steps(const struct run_state *s, uint32_t epoch);
/* Epochs that have a step: a cap on the steps of the run ends it where it is reached. */
uint32_t run_planned_epochs(const struct run_state *s);
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

/* Sampling of the machine while ranks train, what of it is wanted. After the end s->r->series can
 * be read; both must be called from one thread. */
int run_sampling_begin(struct run_state *s, struct err *e);
void run_sampling_end(struct run_state *s);

/* Tells the caller how far the run is, if it is due or `now_due`. */
void run_tell(struct run_state *s, int64_t now, bool now_due);
/* Before the monitor watches ranks: what run_tell needs. Afterwards: the last word of them. */
int run_tell_begin(struct run_state *s, struct err *e);
void run_tell_end(struct run_state *s);

/* Progress, watchdog and the passing on of signals. */
int monitor_start(struct run_state *s, struct err *e);
void monitor_stop(struct run_state *s);
