#pragma once
/* How busy each rank's accelerator was over time. */
#include <stddef.h>

#include "result/result.h"

/* Per rank and bin: the share of the time from begin_ns + i * bin_ns to the next bin in which the
 * rank computed, in training and evaluation; out[rank * bins + i], 0 to 1. Time is CLOCK_MONOTONIC
 * as in the steps of `r`. One pass over the steps. Pure. */
void accelerator_use(const struct result *r, int64_t begin_ns, int64_t bin_ns, size_t bins,
		     float *out);
