#pragma once
/* The generator of emulated computation: train.computation_time is drawn from it step by step. */
#include <stdbool.h>
#include <stdint.h>

#include "base/rng.h"
#include "dataset/dataset.h"

/* Seeds a rank's generator for an epoch (from 1). With compat.dlio as DLIO's is left by the
 * shuffles that come before: the same on every rank. False, and nothing seeded, where DLIO never
 * seeds it: in the first epoch it is then the system's, and goes on in the others. */
bool compute_draws_begin(struct rng_np *rng, const struct workload *w, const struct dataset *d,
			 uint64_t seed, uint32_t epoch, uint32_t rank, uint32_t ranks);
