#pragma once
/* What the storage does with more and fewer readers than a run had: measured after it, outside
 * every measured time, when run.probe asks for it (run/sweep.h). Readers read samples of the
 * training files in random order and do nothing else: no decoding, no waits, no computation. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "metric/read_log.h"

#define PROBE_POINTS_MAX 12
#define PROBE_READERS_MAX 64
/* Points with requests of another size: with one reader and with the most. */
#define PROBE_SIZED_MAX 2

/* Some of the requests of one point by their beginning, as read_log_join returns them: all that
 * touch its windows. Of this process's readers: `processes` times as many were under way. */
struct probe_log {
	struct read_seen *seen;
	size_t n;
	uint64_t apart, wide;
};

/* So many readers at once, for so long: from their common beginning to the last one's end. All
 * processes. */
struct probe_point {
	uint32_t readers;
	double seconds;
	uint64_t samples;          /* read to their end */
	uint64_t opens;            /* files opened */
	uint64_t requests, bytes;  /* metadata and data: requests for bytes, bytes returned */
	double open_s, read_s;     /* of all readers together: in opens and closes, in requests */
	double meta_s;             /* of read_s: in requests for what is no sample */
	double reader_s;           /* from the common beginning to each one's end */
	double longest_s;          /* the longest of those requests */
	double cpu_s;              /* processor time of the processes */
	struct probe_log reads;    /* requests for bytes */
	struct probe_log open_log; /* and stats by name, of one byte each */
};

struct probe {
	bool asked;    /* for it; else all else is 0 */
	bool own;      /* by the run itself, whose measures left open what more readers would do */
	bool done;     /* the points tell what the run's storage does */
	bool hung;     /* a thread is still in a request and uses what it was given */
	char why[256]; /* why it is not done, or has fewer points than it should; else empty */
	/* The bytes came from the storage below this machine's page cache, or from a store without
	 * one. */
	bool cold;
	double evict_s;       /* spent on eviction between the points */
	uint32_t run_readers; /* of the run, all ranks */
	uint32_t processes;
	uint32_t count;
	struct probe_point point[PROBE_POINTS_MAX]; /* by readers, each more than the one before */
	/* Requests of one other size, anywhere in the files: what a request costs and what a byte
	 * costs look alike where all have one size. No samples. */
	uint32_t sized_count;
	struct probe_point sized[PROBE_SIZED_MAX];
};

/* All points: probe_points(p) of them, those of the other size last. */
uint32_t probe_points(const struct probe *p);
const struct probe_point *probe_point_at(const struct probe *p, uint32_t i);

/* Samples/s of a point. */
static inline double probe_rate(const struct probe_point *p)
{
	return p->seconds > 0 ? (double)p->samples / p->seconds : 0;
}

void probe_release(struct probe *p);
/* "95.5 samples/s with 1 reader, 190 with 2", or "not done". */
void probe_text(const struct probe *p, struct buf *out);
/* Of one that the run decided on: the fewest readers and the most, how long it took, and the key
 * without it; on one line. */
void probe_own_text(const struct probe *p, struct buf *out);
