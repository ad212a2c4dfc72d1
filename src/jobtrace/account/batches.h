#pragma once
/* Batches of a job while they are found: by the messages of pipes, or by gaps between samples.
 * Private to account_batches. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "jobtrace/account/account_parts.h"
#include "jobtrace/account/messages.h"
#include "jobtrace/account/observations.h"

#define BATCH_MAX COUNTS_MAX

struct batches {
	struct account *a;
	struct messages messages;
	uint32_t *index_pipe; /* of each reader; JOB_NONE */
	size_t *begin;   /* of each reader in `visit`; readers + 1. Of threads: the first has all */
	uint32_t *visit; /* by reader, in their order */
	bool threads;    /* some readers are threads that share batches */
	bool unread;     /* batches came for which nothing was read, */
	bool many_in_file; /* from the begin on: files hold several samples */
	uint32_t begins;   /* epochs that workers were told to begin; 0: not known */
	uint32_t batch, eval_batch;
	double threshold_s, eval_threshold_s; /* between short and long gaps; 0: none */
};

static inline bool has_workers(const struct account *a)
{
	return account_has(a, ACCOUNT_WORKERS) && a->fact[ACCOUNT_WORKERS].number > 0;
}

static inline bool is_eval(const struct account *a, const struct visit *v)
{
	return a->sample[v->sample].evaluation;
}

/* Batches, steps, prefetch and computation from what workers and the trainer tell each other. False
 * when the pipes show no batch: nothing was set. */
bool batches_by_pipes(struct batches *b);
/* The same from the gaps in which readers wait; says why what cannot be told. */
void batches_by_gaps(struct batches *b);
/* How long starting a worker takes the trainer, and a worker before its first sample: in
 * job_starts.c. After batches_by_pipes. */
void batches_starts(struct batches *b);
