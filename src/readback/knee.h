#pragma once
/* The curve of AU against the number of accelerators, and its knee: the largest number that meets
 * the target. From runs of one workload that differ in nothing else (or in their length): of a
 * search (capacity/), or of a study that varies `processes`. docs/capacity.md, "Statistics". */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct knee_run {
	uint32_t accelerators;
	double au;     /* percent: steady_au */
	double error;  /* standard error of it, points */
	double blocks; /* that the error is from; below 2: it is not known */
	bool client;   /* this machine limited it, not the storage */
	bool lasting;  /* for a search: long enough to show what varies slowly */
	size_t index;  /* of the caller */
};

struct knee_point {
	uint32_t accelerators;
	size_t runs;
	double au;        /* mean of its runs, weighted by their errors */
	double low, high; /* 95 % interval of that */
	double fit;       /* monotone fit through all points */
	bool client;      /* of all of its runs */
};

/* Numbers up to that may miss the target where a larger one meets it: a store that gathers requests
 * feeds several accelerators better than one. */
#define KNEE_GATHERED_MOST 4

struct knee {
	struct knee_point *point; /* by accelerators */
	size_t points;
	size_t gathered; /* the first of them: they surely miss the target, and more meet it */
	double target;   /* percent */
	/* The largest number that the curve says meets the target, between measured points by
	 * interpolation; 0: none does. */
	uint32_t accelerators;
	uint32_t low, high; /* its 95 % interval; high UINT32_MAX: there is no upper end */
	bool at_least;      /* every point meets the target, or the client limits where one does
			     * not: the storage may feed more */
	bool bracketed;     /* `accelerators` and the next whole number were both measured */
	bool falls_short;   /* the smallest point misses the target, and is not 1 accelerator */
	double spread; /* of repeated runs beyond their own errors: standard deviation over AU */
	bool reversed; /* more accelerators had a higher AU, by more than chance */
};

/* Points are means of their runs. The fit is the nonincreasing sequence nearest to them in weighted
 * squares (pool adjacent violators); between two points 1/AU is linear, which is exact where a
 * ceiling is shared, and nothing is extrapolated. The interval: the same from 2,000 curves drawn
 * anew, each run by Student's t with its blocks, all runs of a point by the spread of repeated runs
 * (at least KNEE_SPREAD_LEAST: no two runs of one storage agree better in the long run).
 * Release with knee_release. `runs` may be in any order; those without a finite AU are left out. */
#define KNEE_SPREAD_LEAST 0.004
void knee_find(const struct knee_run *run, size_t runs, double target, struct knee *out);
void knee_release(struct knee *k);

/* AU of runs of one number of accelerators together: their mean, weighted by their errors. */
double knee_mean(const struct knee_run *run, size_t runs);
/* Whether AU of these runs of one number of accelerators, taken together, is above (1) or below
 * (-1) the target with 95 % certainty; 0: it is not decided. */
int knee_decides(const struct knee_run *run, size_t runs, double target);
/* The largest number that meets the target if the rate which `au` percent of `accelerators` is
 * stays the same: a guess of where to measure next, never a result. */
uint32_t knee_guess(uint32_t accelerators, double au, double target);
