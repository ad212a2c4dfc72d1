#pragma once
/* A fleet: accelerators (ranks) on hosts that train from one store, simulated batch by batch with
 * the loaders' rules (predict/model.h). Times of requests are drawn from what was measured, each by
 * itself; requests wait where the store or a host can do no more; processors of a host are shared
 * by what computes on it; a barrier over all ranks ends each step. How the wait for the slowest
 * rank grows with their number is what comes out: no law of it is put in.
 *
 * All times in s. A ceiling, a number of servers, a rate that is 0 is no limit. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "result/basis.h"
#include "workload/backend.h"

#define FLEET_WAITS 8

enum fleet_limit {
	FLEET_COMPUTE,  /* nothing: ranks wait less than a hundredth of the time */
	FLEET_LATENCY,  /* a rank's own workers: no ceiling is reached */
	FLEET_STRAGGLE, /* the slowest rank of each step: means would do */
	FLEET_STORE_BYTES,
	FLEET_STORE_REQUESTS, /* a ceiling, or the servers */
	FLEET_STORE_OPENS,
	FLEET_HOST_BYTES,
	FLEET_HOST_REQUESTS,
	FLEET_HOST_OPENS,
	FLEET_CPU,
	FLEET_LIMITS
};

extern const char *const fleet_limit_names[FLEET_LIMITS]; /* "storage bandwidth", ... */

struct fleet_result {
	bool known; /* else `why`, a clause without a full stop, and nothing else */
	char why[160];
	/* Percent. As DLIO defines it: the first step of an epoch left out, with the wait for it;
	 * and by rate: computing / wall time, nothing left out. */
	double au, au_rate;
	double wall_s; /* of training: all epochs */
	double samples_per_s, bytes_per_s, requests_per_s, opens_per_s;
	/* Part of each ceiling that is used, 0 to 1, of the steps after the first of an epoch; 0
	 * without a ceiling. */
	double used[FLEET_LIMITS];
	enum fleet_limit limit;
	double in_flight; /* requests and opens under way at the store: mean */
	/* Exposed waits of ranks in a step, s: quantiles 0.5, 0.9, 0.99, 0.999 ..., and of the
	 * slowest rank of a step the mean. */
	double wait_mean_s, wait_of_slowest_s;
	double wait_quantile_s[FLEET_WAITS]; /* 1 - 10^-i of the waits are shorter; [0]: the median
					      */
	uint64_t steps;                      /* simulated, all epochs */
};

/* Memory that fleet_run takes at most, bytes: about 200 a reader, and 200 a rank. More than a
 * million readers are refused. */
uint64_t fleet_memory(const struct fleet *f);
/* The same seed gives the same result. Where all steps would take more than `events_max` events,
 * fewer are simulated, but at least 4 (window + 4) of an epoch; 0: all are. */
struct fleet_result fleet_run(const struct fleet *f, uint64_t seed, double events_max);
/* ---- with intervals, from what a run told ---- */

/* Ranks beyond this many times the run's are refused where the tail's shape is not known. */
#define FLEET_FAR 30

struct fleet_prediction {
	bool known; /* else `why`, a clause without a full stop */
	char why[200];
	struct fleet_result best;
	/* 95 %: resamples of the run's steps, explanations that are as good, how far off the model
	 * is of the run itself, and what one run differs by from another. */
	double au_low, au_high, au_rate_low, au_rate_high;
	/* What one run differs by from the next, points: a standard deviation. */
	double dev, dev_rate;
	double linear_au; /* baselines, au_rate: as the run; */
	double cap_au;    /* and what the bytes/s ceiling alone allows */
	/* More requests are under way than were ever seen, and no ceiling was: the storage may do
	 * no more than that, so the high end is not reached by everything that looks the same. */
	bool at_most;
	char assumption[240]; /* that decides most: a clause without a full stop; may be empty */
};

/* So many ranks on so many hosts that are like the run's. `steps` of an epoch; 0: the run's. What
 * limits a run on one host may be the host or the storage: both are tried where hosts > 1. */
struct fleet_prediction fleet_predict(const struct basis *b, uint32_t ranks, uint32_t hosts,
				      uint64_t steps, uint64_t seed);
