#pragma once
/* Which number of accelerators is measured next: doubling, then between the numbers that meet the
 * target and those that miss it, then again near the knee. A pure function of what was measured, so
 * that a search which was killed goes the same way again. */
#include "readback/knee.h"

/* Runs of one number, at most. */
#define SEARCH_RUNS_MOST 3
/* Of the two numbers at the knee. */
#define SEARCH_RUNS_KNEE 2

struct search_step {
	bool done;
	uint32_t accelerators;
	bool longer; /* as long as may be: it is near the knee, or was not decided */
};

/* The next step after `run`s, in the order in which they were made. `most`: numbers above are not
 * measured. A client that limits ends the way upwards like a storage. */
struct search_step search_next(const struct knee_run *run, size_t runs, double target,
			       uint32_t most);
/* The distance of the two numbers at the knee at which a search ends: 1, or 2 %. */
uint32_t search_resolution(uint32_t accelerators);
