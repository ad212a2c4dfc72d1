#pragma once
/* How near one run of requests came to another: the job's log, and what was measured when it was
 * replayed, or when its workload was run. Both are logs in the one form (job_log.h); nothing is
 * computed from the one for the other.
 *
 * Requests are compared as multisets: each request of one file, of one kind and size, has a partner
 * in the other or has none. Files of the same name are the same; else the n-th file of the dataset
 * by name is the n-th of the other. Order: Kendall's tau of the requests that have partners, within
 * each thread where the threads are the same, else over the whole job; 1 is the same order, -1 the
 * reverse. Times of two samples: medians, and the distance of Kolmogorov and Smirnov, the largest
 * difference of the two distributions (0: the same, 1: nothing in common).
 *
 * Memory: about 60 bytes a request of both. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "trace/job_log.h"

struct fidelity_pair {
	double log, run; /* NAN: not known */
};

struct fidelity_times {
	size_t log_n, run_n;
	struct fidelity_pair median, mean; /* s */
	double ks;                         /* NAN: one of them has none */
};

struct fidelity {
	struct fidelity_pair reads, writes, others; /* requests */
	struct fidelity_pair read_bytes, written_bytes;
	double equal; /* share of transfers that have a partner, 0 to 1; NAN: none at all */
	double equal_others;
	double tau; /* mean over readers, by their requests; NAN */
	size_t readers;
	struct fidelity_pair concurrency; /* requests in flight in the mean */
	struct fidelity_times sample;     /* time within the reads of a sample */
	struct fidelity_times step;
	struct fidelity_pair wall_s; /* from the first request to the end of the last */
};

/* `same`: threads and files of both have the same numbers. Only the reads and writes of files are
 * looked at if `dataset_only`, of those only the dataset's, which may be objects; then the run time
 * is that of training. */
void fidelity_of(const struct job *log, const struct job *run, bool same, bool dataset_only,
		 struct fidelity *out);
/* Nobody has the requests of the run. */
void fidelity_forget_requests(struct fidelity *f);
/* Step times that somebody else measured, in s, in place of those of the run's requests. */
void fidelity_set_steps(struct fidelity *f, const struct job *log, const double *run_s, size_t n);
void fidelity_print(const struct fidelity *f, struct buf *out);
/* How long the job takes here instead, as a sentence; nothing where that is not known. `think`: as
 * the job did between its requests. */
void fidelity_say_time(const struct fidelity *f, bool think, struct buf *out);
void fidelity_json(const struct fidelity *f, struct buf *out);

/* The largest difference of two empirical distributions; sorts both. NAN if one is empty. */
double fidelity_ks(double *a, size_t n, double *b, size_t m);
/* Kendall's tau-a of a permutation without ties: position i of the one is position order[i] of the
 * other. `spare` has room for n. NAN below two. */
double fidelity_tau(uint32_t *order, uint32_t *spare, size_t n);
