#pragma once
/* What the time of a read depends on: t = latency + bytes * a + bytes * beside * b, by least
 * squares with no negative part; `beside` is how many reads were under way with it on
 * average, itself included. Part b is capacity that all share, part a what one stream gets. */
#include <stdbool.h>
#include <stddef.h>

#include "metric/read_log.h"

/* Sums over reads: of 1, s (bytes), q (bytes * beside), t (ns) and their products. */
struct read_fit {
	double n, s, q, t, ss, sq, qq, st, qt, tt;
};

struct read_law {
	double latency_ns, stream_ns_per_byte, shared_ns_per_byte;
	/* The shares of all time that the three explain; sum to 1 unless there was no read. */
	double latency_share, stream_share, shared_share;
	bool sizes_differ;  /* else the latency holds what one stream's rate costs, too */
	bool beside_differ; /* else what is shared cannot be told, and is counted as the others */
};

void read_fit_add(struct read_fit *f, double bytes, double beside, double ns);
/* Adds the reads that lie in one window as a whole, so that all their company is known: n of them,
 * as read_log_join returns them. False without memory. */
bool read_fit_add_seen(struct read_fit *f, const struct read_seen *seen, size_t n, uint64_t apart,
		       uint64_t wide);
struct read_law read_fit_law(const struct read_fit *f);
