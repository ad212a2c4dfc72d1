#pragma once
/* What the runs of a search for accelerators say: the point of each, which of them count, and how
 * long points must be for that. A search asks it after each run, an audit with all of them again.
 */
#include "study/capacity.h"

#define CAPACITY_CONFIRM_S 12 /* of steps, of the number that is the answer */
#define CAPACITY_HALF_ENOUGH                                                                       \
	0.5 /* of the time that a point should last: planned for it, and cut                       \
	     * to periods */

/* The run of a row of the search, from its folder, into what was planned of it. */
int capacity_read_point(const struct capacity *c, const char *folder, struct capacity_run *out,
			struct err *e);
/* Adds a run, and leaves out those that it says count no longer. */
void capacity_add(struct capacity *c, const struct capacity_run *run);
/* The knee of those that count. */
void capacity_know(struct capacity *c);
/* Those that count, for the search and the knee; `out` has room for all. */
size_t capacity_knee_runs(const struct capacity *c, struct knee_run *out);
/* Of the measured steps of a point, so that they show what varies. */
double capacity_least_seconds(const struct capacity *c, uint32_t accelerators);
/* The run that tells best why more accelerators miss the target: the longest of the smallest number
 * that does; NULL: none does. */
const struct capacity_run *capacity_limited(const struct capacity *c);
/* The repetition that the next run of a number is. */
unsigned capacity_repeats(const struct capacity *c, uint32_t accelerators);
/* Whether the workload of a run writes checkpoints. */
bool capacity_saves(const struct capacity_run *r);
/* What the design knew of a run, and its result does not say: beside its result. */
void capacity_put_mark(const struct capacity_run *r, json_t *about);
