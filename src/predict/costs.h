#pragma once
/* What a run's batches cost, as the model takes it: made to agree with the run itself, once for
 * each explanation of its reads that is as good as the others. */
#include "predict/model.h"
#include "metric/read_fit.h"
#include "result/result.h"

/* s and bytes of a batch. */
struct costs {
	enum loader_rule rule;
	double service, service_dev; /* of a run from begun to done; the deviation of batches */
	double open, reads, decode;  /* reads: metadata and data */
	double requests, bytes;      /* that asked for bytes; what they returned */
	double samples;
	double payload; /* bytes that one request for each sample would return, */
	double plain;   /* and of arrays without any packing; 0: not known */
	double cpu;     /* of the process */
	double others;  /* processors that other programs used */
	struct read_law law;
};

/* One explanation. */
struct variant {
	struct read_rates rates;
	struct model m;            /* as it was */
	double latency;            /* s of a batch: part of m.delay_s */
	double decode;             /* s of a batch: part of m.delay_s, where it is not m.cpu_s */
	struct modeled reproduced; /* the run itself, by this model */
};

#define VARIANTS_MAX 5
struct variants {
	struct costs costs;
	struct variant one[VARIANTS_MAX]; /* the best first */
	uint32_t count;
	uint64_t prefetch;               /* of a worker (PyTorch) or of all */
	double *compute, *spread, *size; /* the models' */
};

/* The law of all ranks' reads in training. */
struct read_law costs_read_law(const struct result *r);
/* From the first `epochs` epochs, whose decomposition is r->judged.time and whose reads go by
 * `law`; false with out->why when there is no model. Needs variants_release in any case. */
bool variants_make(struct variants *v, const struct result *r, uint32_t epochs,
		   const struct read_law *law, struct outlook *out);
/* So many workers; the window and the runs follow by the loader's rule. */
void rule_workers(const struct variants *v, uint32_t workers, struct model *m);
/* prefetch_size times so much. */
void rule_window(const struct variants *v, double by, struct model *m);
void variants_release(struct variants *v);
