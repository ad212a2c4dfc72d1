#pragma once
/* One run, from a loaded workload to a written result: generation, training, evaluation. The only
 * place where the tables of stores, formats and loaders are joined. */
#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/thread.h"
#include "comm/comm.h"
#include "result/result.h"
#include "run/tell.h"
#include "workload/workload.h"

struct run_options {
	uint32_t ranks;         /* of all processes */
	struct net *net;        /* NULL: this process is alone */
	struct comm *processes; /* with a net: this process among them */
	int64_t start_wall_ns;
	struct stop_flag *stop; /* set by signal handling: the run ends early and keeps results */
	/* Called about every progress_ns (at least 100 ms), more seldom where so many ranks are
	 * looked at that it would cost over 1 % of a processor. It should not block. May be NULL.
	 */
	void (*progress)(void *arg, const struct run_progress *p);
	void *progress_arg;
	int64_t progress_ns;
	bool dataset_only; /* stoker generate */
};

/* With a net all processes call this. Process 0 gathers what all measured and writes the results;
 * when it is lost, another one does so with what it has itself. r->speaks tells which one it was;
 * elsewhere `r` holds no more than this process's part.
 *
 * Carries out the workflow of `w`. Fills `r` whatever happens (status and reason tell), writes the
 * output folder unless dataset_only, and returns 0, or the reason's code. A missed metric.au is not
 * an error here. `d` must outlive `r`. */
int run_execute(const struct workload *w, const struct run_options *o, struct dataset *d,
		struct result *r, struct err *e);
