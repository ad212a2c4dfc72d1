#pragma once
/* Curves of a run over time, from the steps of its ranks. */
#include "readback/record.h"

/* How busy a run's accelerators were over time, from its steps: `bins` shares from 0 to 1, mean
 * over the ranks, and samples a second. The time between the blocks of epochs counts as idle. false
 * when the files of no rank are there. The time of barriers is not in the files: within a block it
 * is spread evenly over the steps. */
struct timeline {
	double dt_s;
	size_t bins;
	double *busy, *rate;
};
#define TIMELINE_BINS 240
bool timeline_build(struct timeline *t, const struct run_record *r);
void timeline_release(struct timeline *t);
