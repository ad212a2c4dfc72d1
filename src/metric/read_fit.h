#pragma once
/* What a store is, from reads whose times are known: each read takes a latency, then its bytes move
 * at min(stream rate, bandwidth / n), n being the reads whose bytes move at that moment. Each read
 * is tried beside those that were under way with it; the sum of absolute errors is minimized. */
#include <stdbool.h>
#include <stddef.h>

#include "metric/read_log.h"

/* A part that was not seen is 0. */
struct read_rates {
	double latency_ns;
	double stream_ns_per_byte; /* of one read, however few there are */
	double shared_ns_per_byte; /* of all together */
	double error_ns;           /* mean distance of a read from this */
};

struct read_law {
	struct read_rates best;
	/* With the least and with the most sharing that explain the reads not clearly worse. A
	 * bandwidth that the reads never came near is in none of them. */
	struct read_rates least, most;
	bool sizes_differ; /* else the latency holds what one stream's rate costs, too */
	/* Of the time of the reads, by the best; sum to 1 unless there was no read. */
	double latency_share, stream_share, shared_share;
	double concurrency; /* reads under way, itself included: mean over reads */
	size_t reads;       /* looked at: of those that lie in one window as a whole */
};

/* From n reads by their beginning, as read_log_join returns them; `times` as many readers as are in
 * them share the store. All 0 without memory or with fewer than four reads. Takes up to 0.3 s. */
struct read_law read_fit(const struct read_seen *seen, size_t n, uint64_t apart, uint64_t wide,
			 double times);
