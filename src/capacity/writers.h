#pragma once
/* How fast a storage takes and gives back checkpoints: runs of checkpoints alone with 1, 2, 4, ...
 * writers, until more of them bring nothing. docs/capacity.md. */
#include "capacity/capacity.h"

/* One number of writers. NaN: not known. */
struct writers_point {
	uint32_t writers;
	double bytes;                 /* of a checkpoint, all writers */
	double write_s, read_s;       /* of one checkpoint, the slowest writer; mean */
	double write_rate, read_rate; /* bytes/s */
	double read_cached;           /* share of the bytes that the page cache gave back */
	double seconds;
};

struct writers {
	struct writers_point point[32];
	size_t points;
	bool complete;
	char stopped_by[ERR_TEXT_MAX]; /* why more writers could not be measured; "" */
};

/* As capacity_find; o->max is the largest number of writers. The checkpoints are synced, and lie in
 * a folder of their own below checkpoint.checkpoint_folder, which is removed after each run. */
int writers_find(struct writers *x, const struct workload *w, const struct capacity_options *o,
		 capacity_event_fn tell, void *arg, struct err *e);
/* The point with the highest rate of writing, or of reading; NULL. */
const struct writers_point *writers_best(const struct writers *x, bool reading);
void writers_text(const struct writers *x, const struct capacity_options *o, struct buf *out);
json_t *writers_json(const struct writers *x, const struct capacity_options *o);
