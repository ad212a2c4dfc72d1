#pragma once
/* What a chosen window (output.metric.exclude_start_steps, exclude_end_steps) leaves out beyond
 * DLIO's default, which is the first step, and what AU and throughput are without the choice. */
#include "result/metrics.h"
#include "result/result.h"

struct window_view {
	bool chosen;        /* more is left out than the first step of an epoch (compat.dlio: of a
			     * block) */
	bool known;         /* there are steps of that kind */
	double steps;       /* of all ranks and epochs */
	double start, end;  /* of them left out beyond the default: at the start, at the end */
	double steps_share; /* left out beyond the default */
	double time_share;  /* the same, of the time of all steps */
	double au;          /* in the window; percent, mean over epochs and ranks */
	double default_au;  /* in DLIO's default window */
	/* What the first steps cost: all blocks together, by time; in points, and as a share of the
	 * rate. */
	double start_points, start_share;
	double counted; /* compat.dlio, training: steps in its throughput over those measured */
};

/* Of training, or of evaluations. */
void window_look(const struct result *r, const struct run_metrics *m, bool eval,
		 struct window_view *out);
