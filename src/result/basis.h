#pragma once
/* What a run tells of larger ones, in plain numbers: predict/ fills it, result.json keeps it (key
 * "fleet"), and readback/ reads it. A fleet are accelerators (ranks) on hosts that train from one
 * store. All times in s; a ceiling, a number of servers, a rate that is 0 is no limit. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "metric/drawn.h"

#define BASIS_MAX 32

/* What all requests together can get. */
struct fleet_ceiling {
	double bytes_per_s; /* shared equally by those in transfer */
	double requests_per_s, opens_per_s;
};

struct fleet {
	uint32_t ranks, hosts; /* ranks are spread equally over hosts; hosts <= ranks */
	uint64_t steps; /* of an epoch: the loaders begin anew with each, which DLIO's AU shows */
	uint32_t epochs;
	/* ---- the loader of a rank ---- */
	uint32_t workers; /* 0: the rank reads */
	uint64_t window;  /* batches that may exist beyond the one in use */
	uint32_t runs;    /* that a batch is cut into, each read by the next worker; 0: 1 */
	bool in_order;
	/* ---- a batch ---- */
	double samples, bytes;
	double requests;      /* for bytes, one after another, of one worker */
	double opens;         /* and stats by name */
	double stream;        /* bytes/s of one transfer at most */
	struct drawn request; /* of each, before its bytes move */
	struct drawn open;
	double delay_s; /* else, whatever others do */
	double cpu_s;   /* processor time in the worker that reads it */
	/* ---- the store, hosts ---- */
	uint32_t servers;      /* requests that the store serves at once, others wait in turn */
	uint32_t open_servers; /* the same of opens */
	struct fleet_ceiling store, host;
	double cpus; /* of a host */
	/* ---- a step of a rank ---- */
	struct drawn compute; /* the accelerator's */
	double step_s;        /* beside waiting and computing, whatever others do */
	double hand_s;        /* from the end of a batch to a rank that waits for it */
	double start_s;       /* of an epoch, before any batch is begun */
	/* Processor time of the framework's own code. */
	double fork_s;  /* of a rank for each of its workers, before any reads */
	double begin_s; /* of a worker, before its first batch */
	double take_s;  /* of a rank for a batch */
	double end_s;   /* of a rank in a step, after computing */
};

struct basis {
	bool known; /* else `why`, a clause without a full stop, and nothing else */
	char why[200];
	double au, au_rate; /* as measured, percent: by DLIO's definition; computing / wall time */
	/* one[0] is the run itself, by its best explanation; the others differ from it in requests,
	 * opens, what limits them and computation: explanations that are as good (`explanations` of
	 * them, one[0] included, first), then what a resample of the run's steps gives. */
	uint32_t count, explanations;
	struct fleet one[BASIS_MAX];
	double modeled[BASIS_MAX]; /* au_rate of the run itself by each explanation; NAN */
	double most_in_flight;     /* requests under way at once, the most seen */
	bool probed;               /* with more readers than the run's */
	double taken;              /* points of AU that another run may differ by, as other programs
				    * used the processors */
	bool untold;               /* no ceiling was seen, and none beyond that could have been */
	/* The shape of the tail of requests' times, and its 90 % interval; no tail was fitted where
	 * low > high. */
	double shape, shape_low, shape_high;
};

/* The members of struct fleet, by which result.json has them. */
struct fleet_field {
	const char *name;
	enum {
		FIELD_REAL,
		FIELD_COUNT,
		FIELD_LONG,
		FIELD_FLAG,
		FIELD_DRAWN
	} kind; /* double, uint32_t, uint64_t, bool, struct drawn */
	size_t offset;
	double max;  /* of a number that is read back */
	bool varies; /* between the fleets of one basis; the others are those of one[0] */
};

extern const struct fleet_field fleet_fields[];
extern const size_t fleet_field_count;
