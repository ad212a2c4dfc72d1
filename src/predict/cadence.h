#pragma once
/* The checkpoints of a run, as the model takes them: how often training stands still and how long,
 * and what fewer of them, or writing them in the background, would leave of that. */
#include "predict/model.h"
#include "result/result.h"

/* Seconds are means of a checkpoint. */
struct cadence {
	uint32_t count, epochs;    /* checkpoints, in so many epochs */
	double stall_s, stdev_s;   /* training stood still */
	double waited_s, staged_s; /* of that: for the one before, for a copy to memory */
	double write_s;            /* from its turn until it was whole, the longest of a rank */
	double apart_s;            /* from one to the next, less the stall */
	double stage_s;            /* a copy would take with checkpoint.async */
	double share;              /* of the wall time that is stalls */
	uint64_t steps;            /* of an epoch */
	uint64_t every;            /* steps from one to the next; by time or epochs: about */
};

/* How sure a foretold stall is: as the mean of those seen, or the ends of its interval. */
enum cadence_end { CADENCE_MEAN, CADENCE_SHORT, CADENCE_LONG };

/* Of the first `epochs` epochs of so many steps that took `wall_s` (mean over ranks). Count is 0
 * where there were none. */
void cadence_of(const struct result *r, uint32_t epochs, uint64_t steps, double wall_s,
		struct cadence *out);
/* As it was. */
void cadence_now(const struct cadence *c, struct model *m);
/* `by` times as far apart; false where a run of this length would then have none. */
bool cadence_apart(const struct cadence *c, const struct workload *w, double by,
		   enum cadence_end end, struct model *m);
/* Written while training goes on. CADENCE_LONG: reading stands still for as long. */
bool cadence_async(const struct cadence *c, const struct workload *w, enum cadence_end end,
		   struct model *m);
/* The key and its value that put them so far apart. */
void cadence_key(const struct workload *w, double by, char *out, size_t size);
