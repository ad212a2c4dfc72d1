#pragma once
/* AU that a run would go on with: of the steps after those that prefetched batches and the start of
 * the workers serve, with its standard error. Short runs that differ in their number of steps can
 * be compared by it, as whole-run AU (the start is in it) and AU by DLIO's definition (the queue is
 * in it) cannot. docs/metrics.md, "Capacity". */
#include <stdbool.h>
#include <stdint.h>

struct run_record;

struct steady_au {
	bool known;         /* a phase of training has steps beyond its first ones */
	double au;          /* percent, mean over ranks, without lateness of computation */
	double error;       /* its standard error, points: circular block bootstrap over steps */
	double blocks;      /* of steps that the error is made from */
	double step_s;      /* mean time of a measured step, with its barrier */
	uint64_t steps;     /* measured, of a rank, all epochs */
	uint64_t left_out;  /* of a rank: before them, in all phases */
	uint64_t ahead;     /* batches that a rank reads ahead */
	uint64_t turn;      /* batches of a rank that are read at once: one a worker */
	uint64_t per_block; /* steps of a block of the bootstrap */
};

/* From a record that is whole. Of each phase (the steps between two checkpoints) the first
 * 1 + ahead steps are left out, and up to a worker's turn more, so that whole turns are measured:
 * workers that began together deliver together, one wait for a batch of each.
 *
 *     AU = sum of compute / sum of the time of steps
 *
 * The time of a step is that of the slowest rank from asking for its batch to the end of
 * computation, as a barrier ends each step; what barriers and the rest take beside it, the
 * difference to the wall time of the phase, is spread over its steps. Pure. */
void steady_au_find(const struct run_record *r, struct steady_au *out);
