#pragma once
/* From which value of a numeric key on a measure stays near its best: where the curve of a study
 * becomes flat, such as the size of requests from which a store gives its bandwidth. */
#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "readback/effects.h"

/* What counts as the best: as much of it. */
#define REACH_SHARE 0.9
/* Fewer values make no curve. */
#define REACH_POINTS 4

struct reach_point {
	double x;     /* of the key; ascending */
	double rate;  /* mean */
	double error; /* standard error of it; NaN: not known */
	double df;    /* degrees of freedom of that */
};

struct reach {
	size_t best; /* the point with the highest rate */
	/* From `from` to `to` all rates are at least REACH_SHARE of the best, which is among them.
	 */
	size_t from, to;
	/* 95 % interval of `from`: between `low` and the best none is surely below, between `high`
	 * and the best all are surely above. Where errors are not known, both are `from`. */
	size_t low, high;
	bool errors; /* they are known of all points */
};

/* At least one point; rates above 0. */
void reach_find(const struct reach_point *p, size_t n, struct reach *out);

/* The sentence about a family, as a finding has it: where throughput in bytes of samples gets near
 * its best, and what limits the runs before and behind that. false, and nothing is appended, where
 * the key is no number, the values are few, or one of the runs has no rate. */
bool reach_put(struct buf *out, const struct family *f, const struct run_groups *g);

/* What limits the runs of each value of a family, where that is not the same for all: "none:
 * bandwidth; gzip: decode". Whether there is something to say. */
bool limits_put(struct buf *out, const struct family *f, const struct run_groups *g);
