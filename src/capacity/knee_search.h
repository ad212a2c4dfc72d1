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

/* What a search may measure. */
struct search_bounds {
	double target;  /* percent */
	uint32_t most;  /* numbers above are not measured */
	uint32_t whole; /* from SEARCH_WHOLE_FROM times that on only its multiples; 0: any */
};
#define SEARCH_WHOLE_FROM 50

/* The next step after `run`s, in the order in which they were made. A client that limits ends the
 * way upwards like a storage. */
struct search_step search_next(const struct knee_run *run, size_t runs,
			       const struct search_bounds *b);
/* `accelerators`, or the next number below it that may be measured. */
uint32_t search_number(const struct search_bounds *b, uint32_t accelerators);
/* The distance of the two numbers at the knee at which a search ends: 1, or 2 %. */
uint32_t search_resolution(uint32_t accelerators);
