#pragma once
/* A simulation of PyTorch's loader fed by measured times: what a run would do with other workers,
 * windows or service times. Each rank has its own workers; the shared part of all reading divides
 * one capacity equally among those at work (processor sharing); a barrier ends each step. */
#include <stdbool.h>
#include <stdint.h>

struct model {
	uint32_t ranks, workers; /* workers 0: the rank reads */
	uint64_t window;         /* batches that may exist beyond the one in use */
	bool in_order;
	uint64_t steps;
	uint32_t parts;    /* a batch is read in so many: fixed, shared, fixed, shared ... */
	double fixed_s;    /* of a batch, whatever else is read */
	double shared_s;   /* of a batch that is alone; n times as long beside n - 1 others */
	double start_s;    /* before the first batch is begun */
	double overhead_s; /* of a step, beside waiting and computing */
	/* Lists, one after another: rank k uses list k mod `lists`, ranks that share one begin
	 * apart. Used in turn from the first entry again. */
	uint32_t lists;
	const double *compute; /* s, of steps; `computes` in each list */
	uint32_t computes;
	const double *spread; /* factors of the times of batches, near 1; `spreads` in each list */
	uint32_t spreads;     /* 0: none */
	double cpu_s;         /* CPU time of a batch, */
	double cpus;          /* and processors for it; 0: no limit */
};

/* Compute time / wall time in percent; NAN when memory is missing. At most about 3e6 inner steps:
 * fewer `steps` are simulated where that would take more. */
double model_au(const struct model *m);
/* The same, and how long a batch was read on average, s. */
double model_run(const struct model *m, double *service_s);
