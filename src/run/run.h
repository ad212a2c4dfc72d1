#pragma once
/* One run, from a loaded workload to a written result: generation, training, evaluation. The only
 * place where the tables of stores, formats and loaders are joined. */
#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/thread.h"
#include "comm/comm.h"
#include "report/result.h"
#include "workload/workload.h"

enum progress_phase { PROGRESS_GENERATE, PROGRESS_CHECK, PROGRESS_TRAIN, PROGRESS_EVAL };

/* Told to the caller a few times a second from a thread of the run's own. */
struct run_progress {
	enum progress_phase phase;
	uint64_t done, total; /* files or steps (of rank 0, over all epochs) */
	uint64_t bytes_done;  /* generation: written; training: payload read so far, all ranks */
	uint32_t epoch, epochs;
	double au_so_far;   /* whole-run, rank 0, percent; < 0 unknown */
	int64_t elapsed_ns; /* of the phase */
};

struct run_options {
	uint32_t ranks;         /* of all processes */
	struct net *net;        /* NULL: this process is alone */
	struct comm *processes; /* with a net: this process among them */
	int64_t start_wall_ns;
	struct stop_flag *stop; /* set by signal handling: the run ends early and keeps results */
	void (*progress)(void *arg, const struct run_progress *p); /* may be NULL */
	void *progress_arg;
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
