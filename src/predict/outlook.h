#pragma once
/* Feeds the model with what a run measured, and asks it for changes. */
#include "metric/read_fit.h"
#include "judge/decompose.h"
#include "result/result.h"

/* Over the first `epochs` epochs, whose decomposition is `d`. Fills *out. */
void outlook_compute(const struct result *r, uint32_t epochs, const struct decomposition *d,
		     struct outlook *out);
/* The law of all ranks' reads in training. */
struct read_law outlook_law(const struct result *r);
