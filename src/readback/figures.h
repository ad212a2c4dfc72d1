#pragma once
/* Figures of a result for designs of many runs (study/, plan/): what one run says of itself beyond
 * its rates (readback/record.h). */
#include <stdbool.h>

#include "result/judgement.h"

struct run_record;
struct verdict_ops;

/* NaN, "", NULL: the result does not say. */
struct run_figures {
	double wall_s; /* of the run */
	/* Of training. */
	double whole_au, whole_rate; /* percent, samples/s */
	double samples, epochs_s;    /* sums over the epochs */
	double returned_bytes, fetched_bytes, device_bytes;
	double requests, opens;                              /* opens come with their closes */
	double busy_s, batches, later_busy_s, later_batches; /* of busy readers; later: without
							      * what the start reads ahead */
	/* Shares of the processors, 0 to 1, of the epoch in which most was done: with any program,
	 * of the host that had it hardest; with this run, of all its hosts. */
	double client_busy, run_busy;
	double no_processor; /* percent of the critical path */
	double cached_first; /* share of the files in the page cache when the first epoch began */
	bool emulated;       /* the storage is a store of this program */
	char storage[16];    /* whose speed was measured: "storage", "emulated", ... */
	enum cause cause;
	char limit[1024]; /* the same in sentences */
	/* The first verdict that fails, without those about the length of the run. */
	const struct verdict_ops *failed;
	bool machine_failed; /* one about this machine does */
	/* Of checkpoints: means of one; bytes/s. */
	double checkpoint_bytes, write_s, write_rate, read_s, read_rate;
	double read_cached; /* share of the bytes that the page cache gave back */
	/* How many were written; training stood still for one of them, mean; its deviation. */
	double saves, stall_s, stall_dev_s;
};

/* Of a record that is whole. */
void figures_find(struct run_figures *f, const struct run_record *r);
