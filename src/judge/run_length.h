#pragma once
/* Whether training, or an evaluation, has enough steps to measure the storage instead of the
 * prefetch queue: batches that were read before the measured steps began are served at once. What
 * the verdicts `steady` and `evaluation` go by, and what a plan can know before the run. Pure. */
#include <stdint.h>

/* Of the measured steps that the queue can serve, a share from which on it is noticed, and one from
 * which on it is what was measured. */
#define RUN_LENGTH_QUEUE_NOTICED 0.1
#define RUN_LENGTH_QUEUE_MOST 0.5

/* The share of `measured` steps that `ahead` prefetched batches can serve, at most 1. */
static inline double run_length_queue_share(uint64_t ahead, uint64_t measured)
{
	double share = (double)ahead / (measured ? (double)measured : 1);

	return share < 1 ? share : 1;
}

/* The least number of steps of an epoch, or of an evaluation, with which the queue is not noticed
 * when `excluded` of them are not measured. At least one step is measured. */
static inline uint64_t run_length_needed(uint64_t ahead, uint64_t excluded)
{
	return (ahead ? 10 * ahead : 1) + excluded;
}
