#pragma once
/* What a run will do and need, computed before anything is read or written: for who plans runs.
 * Steps, epochs, checkpoints and the memory bound are those of the plan that the run itself makes
 * (plan.h), and whether an epoch is long enough is what the verdicts say (judge/run_length.h). */
#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "dataset/dataset.h"
#include "workload/workload.h"

struct run_foresight {
	/* of the shortest epoch of training; 0: none */
	uint64_t steps;    /* that each rank makes */
	uint64_t measured; /* of them in the window of AU */
	uint64_t needed;   /* steps with which the verdict `steady` is sure to have enough */
	/* of each evaluation; 0: none */
	uint64_t eval_steps, eval_needed;
	uint32_t workers; /* of a rank, for training */
	uint64_t ahead;   /* batches that a rank may have read ahead */
	uint32_t epochs;
	uint64_t train_steps, eval_steps_of_run; /* of a rank in the whole run */
	/* Computation alone, of training and evaluations: the run takes at least that long. */
	double compute_s;
	uint64_t read_bytes; /* of samples, in training and evaluations of all ranks; an estimate */
	uint64_t checkpoint_bytes; /* of one, all ranks; 0: there are none */
	uint64_t checkpoints;      /* that are written; by time: not known */
	uint64_t checkpoints_kept; /* on the storage at a time, at most; by time: at least */
	bool checkpoints_by_time;
	uint64_t memory_bytes; /* the bound, of one process with all ranks; 0: not asked for */
};

/* What run_execute would plan for `w` with `ranks` ranks in one process. `d` is its dataset; NULL
 * when it reads none. With `memory` it also states the memory bound, which takes some milliseconds,
 * and is -ENOMEM when this host has less. Any other error is the one with which the run would end
 * at its start; *out has what was found until then. */
int run_foresee(const struct workload *w, struct dataset *d, uint32_t ranks, bool memory,
		struct run_foresight *out, struct err *e);
