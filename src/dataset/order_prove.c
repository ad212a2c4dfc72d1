/* The proof of an epoch over several threads: the smaller of what was delivered and what was not is
 * walked in the order of the epoch. */
#include <stdio.h>
#include <string.h>

#include "dataset/order.h"

/* Positions that a thread takes at once, and looks at the stop flag after. */
#define SPAN (1u << 16)
#define THREADS_MAX 64

struct proving {
	const struct order *o;
	uint64_t per_rank;            /* delivered positions, from the beginning of each block */
	bool of_delivered;            /* which positions are walked */
	const struct stop_flag *stop; /* may be NULL */
	_Atomic uint64_t next;
	_Atomic uint32_t canceled;
};

struct prover {
	struct proving *job;
	pthread_t id;
	struct order_proof walked, all;
};

static uint64_t min_u64(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* Cuts positions [a, b) at the borders between delivered and not, and takes what is wanted. */
static void walk(struct prover *p, uint64_t a, uint64_t b)
{
	const struct proving *j = p->job;
	const struct order *o = j->o;

	while (a < b) {
		uint64_t rank = o->block ? a / o->block : o->ranks, end = b;
		bool delivered = false;

		if (rank < o->ranks) {
			uint64_t begin = rank * o->block, border = begin + j->per_rank;

			delivered = a < border;
			end = min_u64(b, delivered ? border : begin + o->block);
		}
		if (delivered == j->of_delivered)
			order_proof_positions(&p->walked, o, a, end);
		a = end;
	}
}

static void *prove_spans(void *arg)
{
	struct prover *p = arg;
	struct proving *j = p->job;
	uint64_t samples = j->o->samples;

	for (;;) {
		uint64_t a = atomic_fetch_add(&j->next, SPAN), b;

		if (a >= samples || atomic_load(&j->canceled))
			return NULL;
		if (j->stop && atomic_load_explicit(&j->stop->set, memory_order_relaxed)) {
			atomic_store(&j->canceled, 1);
			return NULL;
		}
		b = min_u64(samples, a + SPAN);
		walk(p, a, b);
		if (!j->of_delivered)
			order_proof_range(&p->all, a, b);
	}
}

static int run_provers(struct proving *j, unsigned threads, struct order_proof *walked,
		       struct order_proof *all, struct err *e)
{
	uint64_t spans = j->o->samples / SPAN + 1;
	struct prover p[THREADS_MAX] = {0};
	unsigned n = threads > THREADS_MAX ? THREADS_MAX : threads ? threads : 1, started = 1;

	n = n > spans ? (unsigned)spans : n;
	for (unsigned i = 0; i < n; i++)
		p[i].job = j;
	/* fewer threads than wanted prove the same */
	while (started < n &&
	       thread_start(&p[started].id, prove_spans, &p[started], 0, "proof", NULL) == 0)
		started++;
	prove_spans(&p[0]);
	for (unsigned i = 0; i < started; i++) {
		if (i > 0)
			pthread_join(p[i].id, NULL);
		order_proof_merge(walked, &p[i].walked);
		order_proof_merge(all, &p[i].all);
	}
	if (atomic_load(&j->canceled))
		return err_set(e, ERR_CANCELED, "stopped before the order was proved");
	return 0;
}

static bool same(const struct order_proof *a, const struct order_proof *b)
{
	return a->count == b->count && a->sum_a == b->sum_a && a->sum_b == b->sum_b;
}

static void tell_expected(const struct order *o, const struct order_proof *delivered,
			  const struct order_proof *want, char *why, size_t why_size)
{
	unsigned long long got = delivered->count, of = want->count;

	if (same(delivered, want))
		order_proof_tell(o, got, o->samples - got, why, why_size);
	else if (got != of)
		snprintf(why, why_size,
			 "%llu samples were delivered; the steps of the epoch have "
			 "%llu",
			 got, of);
	else
		snprintf(why, why_size,
			 "%llu samples were delivered, as many as the steps of the epoch have, but "
			 "not theirs, each once: some came twice, or others instead",
			 got);
}

int order_prove(const struct order *o, uint64_t steps, const struct order_proof *delivered,
		unsigned threads, const struct stop_flag *stop, bool *proved, char *why,
		size_t why_size, struct err *e)
{
	struct proving j = {.o = o, .stop = stop};
	struct order_proof walked = {0}, all = {0};
	uint64_t count;
	int rc;

	*proved = false;
	if (o->how == ORDER_STRIDED || o->how == ORDER_SHARDS) {
		for (uint32_t r = 0; r < o->ranks; r++)
			order_proof_undelivered(&walked, o, r, steps);
		*proved = order_proof_check(o, delivered, &walked, why, why_size);
		return 0;
	}
	j.per_rank = min_u64(steps, order_steps(o)) * o->batch;
	count = j.per_rank * o->ranks;
	j.of_delivered = count <= o->samples - count;
	rc = run_provers(&j, threads, &walked, &all, e);
	if (rc < 0) {
		snprintf(why, why_size, "the proof was stopped before its end");
		return rc;
	}
	if (j.of_delivered) {
		*proved = same(delivered, &walked);
		tell_expected(o, delivered, &walked, why, why_size);
	} else {
		*proved = order_proof_compare(o, delivered, &walked, &all, why, why_size);
	}
	return 0;
}
