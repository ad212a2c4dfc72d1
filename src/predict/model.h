#pragma once
/* A simulation of loaders with workers that read batches, or runs of them, in turn, fed by measured
 * times: what a run would do with other workers, windows, batches or another store. Each rank has
 * its own workers; reads share one bandwidth and computing workers share the processors, each
 * equally among those at it (processor sharing); opens and reads may wait in queues, first come,
 * first served, or for a ceiling of requests; a barrier ends each step. The loaders are the closed
 * network, the computing of ranks is its think time. */
#include <stdbool.h>
#include <stdint.h>

#include "base/hist.h"
#include "result/basis.h"
#include "workload/backend.h"

/* Where requests wait for each other. */
struct model_queue {
	uint32_t servers;     /* at once, first come, first served; 0: no queue */
	double serve_s;       /* of a batch, at one server */
	double serve_sized_s; /* of a batch, and goes with its bytes */
	uint32_t burst;       /* 0: no ceiling; of the requests of a batch, */
	double requests;      /* any burst + 1 in a row take burst * pace_s */
	double pace_s;
};

/* Times of requests that are drawn, each by itself; 0 of them: none are. */
struct model_drawn {
	const struct drawn *of;
	double requests; /* of a batch */
	double pace_s;   /* of all requests of a host: at least so long from one to the next */
};

struct model {
	uint32_t ranks, workers; /* workers 0: the rank reads */
	uint32_t hosts;          /* ranks are spread equally over them; 0: 1 */
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
	double bytes;       /* of a batch, */
	double stream;      /* bytes/s of one transfer at most; 0: no limit */
	double shared;      /* bytes/s of all; 0: no limit */
	double host_shared; /* bytes/s of all on a host; 0: no limit */
	double cpu_s;       /* CPU time of a batch, */
	double cpus;        /* and processors of a host for it; 0: no limit */
	/* Beside what is above: times at the server of a queue where there is one, else delays. */
	struct model_drawn drawn_open, drawn_read;
	uint64_t seed;  /* of all that is drawn */
	double start_s; /* before the first batch is begun */
	double hand_s;  /* from the end of a batch to a rank that waits for it */
	double step_s;  /* of a step, beside waiting and computing */
	/* CPU time of ranks and of starting: on the same processors as cpu_s, with an advantage
	 * over it. */
	double fork_s;  /* of a rank for each of its workers, one after another, before any reads */
	double begin_s; /* of a worker, before its first batch; */
	double ready_s; /* and what it then waits before that, for the store */
	double take_s;  /* of a rank for a batch, ready or not, before its place is free */
	double end_s;   /* of a rank in a step, after computing */
	double after_s; /* behind the last step, before the epoch ends */
	/* After each `stall_every` steps all ranks stand still, while reading goes on; 0: never. */
	uint64_t stall_every;
	double stall_s;
	/* Lists, one after another: rank k uses list k mod `lists`, ranks that share one begin
	 * apart. Used in turn from the first entry again. */
	uint32_t lists;
	const struct drawn
		*compute_drawn; /* of each rank and step by itself; NULL: from the lists */
	const double *compute;  /* s, of steps; `computes` in each list */
	uint32_t computes;
	const double *spread; /* factors of the times of batches, near 1; `spreads` in each list */
	uint32_t spreads;     /* 0: none */
	double spread_by;     /* how much of their distance from 1 counts, for delays */
	const double *size;   /* factors of the bytes and the computing of samples, near 1; */
	uint32_t sizes;       /* drawn at random; 0: none */
	double samples;       /* of a batch */
};

/* What happened to ranks; filled where the caller asks for it. */
struct model_seen {
	struct hist wait_ns;     /* of each rank in each step, for its batch */
	double wait_s;           /* the sum of these */
	double slowest_s;        /* the longest wait of each step, summed over steps */
	double first_s;          /* mean over ranks: of the first step, until it has computed */
	double computed_later_s; /* mean over ranks: in all steps but the first */
	double at_store_s;       /* of readers: at opens and requests */
	double cpu_s;            /* of all, of the steps that were made */
	uint64_t steps;          /* made */
};

struct modeled {
	double wall_s;
	double au;                       /* compute time / wall time, percent; NAN: too large */
	double later_au;                 /* the same of all steps but the first; NAN: no other */
	double service_s, service_dev_s; /* a run from begun to done: mean, standard deviation */
};

/* The window and runs by a loader's rule, of m->workers and m->samples; `prefetch` is of a worker
 * (RULE_PYTORCH) or of all. */
void model_rule(struct model *m, enum loader_rule rule, double prefetch);
/* Requests of a batch times so many, of bytes times so much in all. */
void model_queue_scale(struct model_queue *q, double requests, double bytes);
/* All that a queue takes time for takes so many times as long. */
void model_queue_slow(struct model_queue *q, double by);

/* One simulation of at most so many events: fewer parts, then fewer steps, are simulated where that
 * would take more; at least 4 (window + 4) steps. *seen may be NULL. */
struct modeled model_once(const struct model *m, uint64_t turn, double events_max,
			  struct model_seen *seen);
/* Memory of that, bytes. */
/* Events of one simulation, however few are asked for. */
double model_events_least(const struct model *m);
uint64_t model_memory(const struct model *m);
/* At most some 1e5 events: fewer parts, then fewer steps, are simulated where that would take more;
 * where it takes less, the mean of up to eight runs that draw other sizes. */
struct modeled model_run(const struct model *m);
