#pragma once
/* What those who look for the limit of a run share. Each of them is one function: it names a cause
 * with limit_say if its arithmetic explains the loss, and returns whether it did. They are asked in
 * the order of the table in limit.c. */
#include "predict/stations.h"
#include "result/metrics.h"
#include "result/result.h"

struct limit_view {
	const struct result *r;
	const struct run_metrics *m;
	struct limit *limit;
	const struct outlook *outlook;
	const struct decomposition *d;
	struct store_law law;
	struct stations stations;
	double compute, wait, skew, loss; /* mean over ranks, s */
	double skew_of_compute; /* of skew: because computation takes ranks differently long */
	double first;           /* of wait: for the first batches of epochs */
	double lost_to_data;    /* s: wait, and the part of skew that is not of compute */
	double workers;         /* of a rank, at least 1 */
	double busy, inside;    /* of the workers' time: with batches; in requests */
	double work, io;        /* s of the workers, all ranks: all; in requests */
	double cpu;             /* s of the process in the finished epochs */
};

/* What limits is `cause`; the sentence is "Whole-run AU so much %: " and the format. */
void limit_say(struct limit_view *v, const char *cause, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
/* Goes on with the sentence. */
void limit_add(struct limit_view *v, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Ends it with what more workers would do. */
void limit_add_workers(struct limit_view *v);

/* A host, a rank, or ranks that wait for each other. */
bool limit_at_ranks(struct limit_view *v);
/* The framework's own code (framework.costs). */
bool limit_at_framework(struct limit_view *v);
/* Reading, decoding, preprocessing or handing over: what the workers do most. */
bool limit_at_workers(struct limit_view *v);
/* What of it is the store's. Always names one. */
bool limit_at_store(struct limit_view *v);
