#pragma once
/* A simulation of loaders with workers that read batches, or runs of them, in turn, fed by measured
 * times: what a run would do with other workers, windows, batches or another store. Each rank has
 * its own workers; reads share one bandwidth and computing workers share the processors, each
 * equally among those at it (processor sharing); opens and reads may wait in queues, first come,
 * first served, or for a ceiling of requests; a barrier ends each step. The loaders are the closed
 * network, the computing of ranks is its think time. */
#include <stdbool.h>
#include <stdint.h>

/* Where requests wait for each other. */
struct model_queue {
	uint32_t servers;     /* at once, first come, first served; 0: no queue */
	double serve_s;       /* of a batch, at one server */
	double serve_sized_s; /* of a batch, and goes with its bytes */
	uint32_t burst;       /* 0: no ceiling; of the requests of a batch, */
	double requests;      /* any burst + 1 in a row take burst * pace_s */
	double pace_s;
};

struct model {
	uint32_t ranks, workers; /* workers 0: the rank reads */
	uint64_t window;         /* batches that may exist beyond the one in use */
	bool in_order;           /* true where runs > 1 */
	/* That a batch is cut into, each read by the next worker; 0: 1. Of whole samples where
	 * there are as many: the first ones have one more. */
	uint32_t runs;
	uint64_t steps;
	/* Parts in which a run is read, each of them opens, a delay, a queue, bytes, then
	 * computing. */
	uint32_t parts;
	struct model_queue open;
	double delay_s; /* of a batch, whatever else is read */
	struct model_queue read;
	double bytes;   /* of a batch, */
	double stream;  /* bytes/s of one transfer at most; 0: no limit */
	double shared;  /* bytes/s of all; 0: no limit */
	double cpu_s;   /* CPU time of a batch, */
	double cpus;    /* and processors for it; 0: no limit */
	double start_s; /* before the first batch is begun */
	double hand_s;  /* from the end of a batch to a rank that waits for it */
	double step_s;  /* of a step, beside waiting and computing */
	/* CPU time of ranks and of starting: on the same processors as cpu_s, with an advantage
	 * over it. */
	double fork_s;  /* of a rank for each of its workers, one after another, before any reads */
	double begin_s; /* of a worker, before its first batch */
	double take_s;  /* of a rank for a batch, ready or not, before its place is free */
	double end_s;   /* of a rank in a step, after computing */
	/* After each `stall_every` steps all ranks stand still, while reading goes on; 0: never. */
	uint64_t stall_every;
	double stall_s;
	/* Lists, one after another: rank k uses list k mod `lists`, ranks that share one begin
	 * apart. Used in turn from the first entry again. */
	uint32_t lists;
	const double *compute; /* s, of steps; `computes` in each list */
	uint32_t computes;
	const double *spread; /* factors of the times of batches, near 1; `spreads` in each list */
	uint32_t spreads;     /* 0: none */
	double spread_by;     /* how much of their distance from 1 counts, for delays */
	const double *size;   /* factors of the bytes and the computing of samples, near 1; */
	uint32_t sizes;       /* drawn at random; 0: none */
	double samples;       /* of a batch */
};

struct modeled {
	double wall_s;
	double au;                       /* compute time / wall time, percent; NAN: too large */
	double service_s, service_dev_s; /* a run from begun to done: mean, standard deviation */
};

/* At most some 1e5 events: fewer parts, then fewer steps, are simulated where that would take more;
 * where it takes less, the mean of up to eight runs that draw other sizes. */
struct modeled model_run(const struct model *m);
