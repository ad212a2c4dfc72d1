#pragma once
/* Training in virtual time: for each rank the loop of a rank over its loader, which is the loader's
 * own code (loader/loader.h) with a model of reading below it (loader/read_model.h), all of them
 * fibers of one thread (base/virtual.h). Nothing is read, opened or measured; what a model does not
 * say takes no time.
 *
 * A rank asks for a batch, gives it back, computes, and meets the others in a barrier, as in a run;
 * an epoch begins with all ranks. The model's functions, `compute_ns` and `step` are called in
 * fibers of the world and may use all of base/virtual.h. The same run gives the same result. */
#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/thread.h"
#include "base/virtual.h"
#include "dataset/dataset.h"
#include "loader/loader.h"

/* One step of one rank, when it is over. Times are the world's; it begins at 0. */
struct virtual_step {
	uint32_t rank, epoch;      /* epoch from 1 */
	uint64_t step;             /* of the epoch, from 0 */
	uint64_t batch;            /* of the epoch: which one was delivered, */
	uint32_t worker;           /* by whom it was read, */
	int64_t begun_ns, done_ns; /* and from when to when */
	int64_t ask_ns, got_ns, compute_end_ns, barrier_out_ns;
};

struct virtual_training {
	/* The loader's settings: as loaded (workload_load), or made by hand. Its dataset is
	 * described and need not exist; see virtual_steps for one of a given number of steps. */
	const struct workload *workload;
	const struct dataset *dataset;
	uint32_t ranks;
	uint32_t epochs; /* 0: the workload's */
	uint64_t steps;  /* of each epoch at most; 0: all that it has */
	const struct read_model *model;
	const struct framework_costs *costs; /* of the framework's code; NULL: none. Each sample
					      * then waits by itself, whatever model->whole says */
	/* Computation of a step, ns. NULL: drawn from train.computation_time as a run draws it. */
	int64_t (*compute_ns)(void *arg, uint32_t rank, uint32_t epoch, uint64_t step);
	/* After a step, in the rank's fiber. NULL: nothing. */
	void (*step)(void *arg, const struct virtual_step *s);
	/* Processor time, of framework's code and of whoever calls virtual_compute. NULL: there are
	 * processors for all. */
	void (*processors)(void *arg, int64_t ns);
	/* In the thread, before the first rank's fiber: fibers of the model may be added, which
	 * serve (virtual_serve) or end. NULL: nothing. */
	int (*begin)(void *arg, struct virtual *v, struct err *e);
	void *arg;                    /* of all of them */
	uint32_t fibers_more;         /* that they add at most */
	int64_t barrier_ns;           /* from the last rank's coming to all ranks' going on */
	bool no_barrier;              /* ranks do not wait for each other at a step */
	const struct stop_flag *stop; /* NULL: never */
};

struct virtual_outcome {
	uint64_t steps, samples; /* of a rank; of all ranks; all epochs */
	/* Means over ranks, of all epochs. Percent: computing / wall time of training, nothing left
	 * out; and as DLIO defines it, without the first step of an epoch (the workload's
	 * output.metric.exclude_start_steps and exclude_end_steps), NAN where that leaves none. */
	double au, au_dlio;
	double wall_s, compute_s, wait_s, barrier_s; /* of a rank */
	struct virtual_stats stats;
	double took_s; /* real time */
};

/* Bytes that a training takes at once at most. 0 and `e` when the loader cannot have the workload.
 */
uint64_t virtual_training_bytes(const struct virtual_training *t, struct err *e);
/* Runs it in a thread of its own, in which signals are blocked. ERR_CANCELED soon after `stop` was
 * set. Several may run at once in threads of the caller. */
int virtual_training_run(const struct virtual_training *t, struct virtual_outcome *out,
			 struct err *e);
/* Makes the workload's training dataset one of just so many steps of an epoch for these ranks, with
 * files as they are. To be called before dataset_init_typical, which then describes it. */
void virtual_steps(struct workload *w, uint32_t ranks, uint64_t steps);
