#pragma once
/* The stations between a worker and its bytes: how busy each of them was, and what each of them can
 * carry as far as the run (with its probe) can tell. For naming a cause: a station limits a run
 * only if it was busy nearly all the time, or if its time, requests of a batch by the time of each,
 * is about the time of a batch. */
#include <stdbool.h>

#include "predict/costs.h"
#include "result/result.h"

enum station_kind {
	STATION_LATENCY,      /* a delay of each read, whatever else is under way */
	STATION_STREAM,       /* bytes/s of one read, whatever else is under way */
	STATION_BANDWIDTH,    /* bytes/s of all reads together, shared by those under way */
	STATION_QUEUE,        /* `servers` reads at once, others wait: first come, first served */
	STATION_REQUESTS,     /* reads/s of all together, each otherwise served at once */
	STATION_OPEN_LATENCY, /* a delay of each open */
	STATION_OPEN_QUEUE,   /* `servers` opens at once, others wait */
	STATION_KINDS
};

extern const char *const station_names[STATION_KINDS]; /* as in result.json */
extern const char *const station_units[STATION_KINDS]; /* of `ceiling`: "B/s", "reads/s", ... */

struct station {
	bool seen;          /* it takes part of the time by the best explanation */
	bool known;         /* by all explanations that are as good */
	double share;       /* of the workers' time in requests; sums to 1 over the stations */
	double each_s;      /* of a request there, without waiting; a stream: of a mean read */
	double of_batch_s;  /* requests of a batch by each_s */
	double ceiling;     /* of all requests, in its unit; 0: none was seen */
	double low, high;   /* by all explanations that are as good; high is INFINITY where one of
			     * them has no ceiling */
	double used;        /* in the same unit: mean over training, all ranks */
	double utilization; /* used / ceiling, 0 to 1; 0 without a ceiling */
	double servers;     /* of a queue; 0: no queue, or how many is not known */
};

struct stations {
	bool known; /* reads were seen at all: else all below is 0 */
	struct station of[STATION_KINDS];
	int saturated; /* the station with a known ceiling and the highest utilization, from 85 %
			* on; -1: none */
	/* Whether a queue or a ceiling can be told from readers that do not affect each other. */
	bool told;
	bool opens_told; /* the same of opens */
	double reads_of_batch, opens_of_batch;
	double batch_s;       /* a batch from begun to done */
	double read_s;        /* mean time of a read, with its waiting */
	double in_flight;     /* reads under way: mean over training, all ranks */
	double most_seen;     /* reads under way at once, the most that the logs show */
	double waiting_share; /* of the reads, which found another one under way */
};

/* From the finished epochs, whose decomposition is r->judged.time; `law` from costs_store_law. */
struct stations stations_of(const struct result *r, const struct store_law *law);
