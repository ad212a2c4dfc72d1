#pragma once
/* What a store is, from reads (or opens) whose times are known. Explanations that are tried:
 *
 *  - each read takes a latency, then its bytes move at min(stream rate, bandwidth / n), n being the
 *    reads whose bytes move at that moment (processor sharing);
 *  - a queue: `servers` reads are served at once, each for a time and its bytes, the others wait,
 *    first come, first served; a latency comes on top;
 *  - a ceiling: of any `burst` + 1 reads in a row the last one ends at least burst * pace after the
 *    first one, as with a token bucket, or a limit that is granted in slices of time;
 *  - each read takes a latency that is drawn by itself from those of all, then its bytes.
 *
 * Each read is predicted from its beginning and the ends of those that began before it. Kept are
 * all explanations that are not clearly worse than the best. A queue with as many servers as reads
 * were ever under way is always among them: it explains the reads as well as no queue does. */
#include <stdbool.h>
#include <stddef.h>

#include "metric/read_log.h"
#include "predict/misfit.h"

/* A part that was not seen is 0. */
struct read_rates {
	double latency_ns;
	double stream_ns_per_byte; /* of one read, however few there are */
	double shared_ns_per_byte; /* of all together */
	uint32_t servers;          /* 0: no queue */
	double serve_ns, serve_ns_per_byte;
	uint32_t burst;       /* 0: no ceiling */
	double pace_ns;       /* between reads, in the long run */
	double error_ns;      /* mean distance of a read from this */
	struct misfit misfit; /* by how many reads are under way when one begins */
	/* Of the reads' time: given to other places in files, or sizes, than those that took it. */
	double misplaced;
};

#define READ_LAWS_MAX 10

struct read_law {
	struct read_rates best;
	/* All that are not clearly worse and differ in what they foretell, the best first. */
	struct read_rates one[READ_LAWS_MAX];
	uint32_t count;
	/* No explanation: the mean time of the run's reads, and how it differs with how many are
	 * under way. */
	struct read_rates table;
	double falls;      /* misfit_falls of it; 0: there is no law */
	bool sizes_differ; /* else what goes with requests may go with their bytes */
	/* Of the time of the reads, by the best; sum to 1 unless there was no read. That of a queue
	 * or ceiling is the wait and the service. */
	double latency_share, stream_share, shared_share, queue_share;
	double concurrency;         /* reads under way, itself included: mean over reads */
	double beside_share;        /* of the reads: another one was under way when it began */
	uint32_t most;              /* under way at once, of all that share the store */
	double mean_ns, mean_bytes; /* of a read */
	size_t reads;               /* looked at: of those that lie in one window as a whole */
};

/* Reads as read_log_join returns them. Those of several sets were not under way together, and each
 * set ends before the next one begins. */
struct read_set {
	const struct read_seen *seen;
	size_t n;
	uint64_t apart, wide;
};

/* The first set is the run, of which the shares and means are; others are sweeps beside it. `times`
 * as many readers as are in the sets share the store. All 0 without memory or with fewer than four
 * reads in the first set. Takes up to 0.4 s. */
struct read_law read_fit(const struct read_set *sets, size_t count, double times);
/* The ends of the ceilings of all explanations, in reads/s. */
void read_law_ceilings(const struct read_law *law, double *low, double *high);
/* How many reads are served at a time, if all explanations of such a queue say the same; else 0. */
uint32_t read_law_servers(const struct read_law *law);
/* Reads/s that all together can have, of `bytes` each; INFINITY without a limit. */
double read_rates_ceiling(const struct read_rates *r, double bytes);
/* The time of a read that waits for nothing, ns. */
double read_rates_alone(const struct read_rates *r, double bytes);
/* Makes one[i] the best. */
void read_law_prefer(struct read_law *law, uint32_t i);
