#pragma once
/* The gate: whether a run, or repetitions of one, are as good as someone asked for. The one
 * decision behind --check and --min-samples-per-s. */
#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/stats.h"
#include "result/metrics.h"
#include "result/result.h"

/* From this share on, the page cache fails a run that did not ask for it. */
#define GATE_CACHE_SHARE 0.10
/* Repetitions that an interval needs: the spread of two is no estimate of it. */
#define GATE_RUNS_FOR_INTERVAL 3

/* What one run brings to the gate. */
struct gate_run {
	bool reads;           /* it trained, or evaluated alone: it has an AU and a rate */
	bool only_evaluated;  /* they are those of evaluation */
	double au;            /* percent: of the whole run, nothing left out; NAN: not measured */
	double samples_per_s; /* over the whole run; NAN: not measured */
	double cached_share;  /* of the bytes that reads returned, 0 to 1, what came from the page
			       * cache; NAN: not known, or there is none */
	bool warm;            /* the page cache, or memory, was asked for */
	char failed[256];     /* verdicts that are FAIL: "steady, order"; "": none, or the run did
			       * not come to its end */
	char failure[400];    /* the sentence of the first of them */
};

/* What is asked for. */
struct gate_limits {
	bool check;           /* the target AU, the page cache and the verdicts */
	double au;            /* the target, percent; 0: none */
	double samples_per_s; /* at least; 0: not asked for */
};

/* A measure over the runs. With GATE_RUNS_FOR_INTERVAL of them `low` and `high` are its 95 %
 * interval (Student's t over runs); below that, the least and the largest value. */
struct gate_measure {
	struct sample_stat of; /* of the runs that have it */
	bool interval;
	double low, high; /* NAN where no run has it */
};

/* Takes from a judged result what the gate looks at. The share of the page cache: the lower of what
 * it held of the files before the epochs, and what reads returned without its being fetched; where
 * the ledger of bytes cannot explain the latter, or the former is not known, the latter alone.
 *
 * A warm cache is asked for by storage.page_cache=keep, written out in the workload or on the
 * command line, by a store without files, and by a file system that is memory. */
void gate_run_of(const struct result *r, const struct run_metrics *m, struct gate_run *out);

struct gate_measure gate_au(const struct gate_run *run, size_t n);
struct gate_measure gate_rate(const struct gate_run *run, size_t n);

/* Whether `n` runs pass. AU and rate by the lower end of their interval; by the lowest of 2 runs,
 * where there is no interval; of a single run by itself. The page cache and the verdicts must pass
 * in each run, and the runs must have had alike shares of the page cache. When not, `why` gets the
 * reasons as one line without a full stop. A measure that was asked for and that a run lacks fails.
 * Pure. */
bool gate_passes(const struct gate_run *run, size_t n, const struct gate_limits *want,
		 struct buf *why);
