/* The proof that an epoch was complete: sums of what was delivered and of what was not, by one
 * thread or, where positions can be asked for, by several. */
#include "dataset/order_proof.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/rng.h"

/* DALI's shuffle buffer over a shard. */

#define MINSTD_MODULUS 2147483647u
#define MINSTD_FACTOR 16807u

static uint32_t seed_mix(uint32_t x)
{
	return x ^ (x >> 27);
}

/* std::seed_seq{seed}.generate of the four words that a 31-bit linear engine asks for; the last one
 * counts ([rand.eng.lcong]: k = 1, word 3). With n = 4: t = (4-1)/2 = 1, p = 1, q = 2, s = 1. */
uint32_t order_stream_seed(uint32_t seed)
{
	enum { N = 4, P = 1, Q = 2, M = N };
	uint32_t b[N] = {0x8b8b8b8bu, 0x8b8b8b8bu, 0x8b8b8b8bu, 0x8b8b8b8bu}, x;

	for (uint32_t k = 0; k < M; k++) {
		uint32_t r1 = 1664525u * seed_mix(b[k % N] ^ b[(k + P) % N] ^ b[(k + N - 1) % N]);
		uint32_t r2 = r1 + (k == 0 ? 1 : k == 1 ? 1 + seed : k % N);

		b[(k + P) % N] += r1;
		b[(k + Q) % N] += r2;
		b[k % N] = r2;
	}
	for (uint32_t k = M; k < M + N; k++) {
		uint32_t r3 =
			1566083941u * seed_mix(b[k % N] + b[(k + P) % N] + b[(k + N - 1) % N]);
		uint32_t r4 = r3 - k % N;

		b[(k + P) % N] ^= r3;
		b[(k + Q) % N] ^= r4;
		b[k % N] = r4;
	}
	x = b[3] % MINSTD_MODULUS;
	return x ? x : 1;
}

uint32_t order_stream_draw(uint32_t *engine, uint32_t n)
{
	const uint32_t range = MINSTD_MODULUS - 2; /* engine's largest value less its smallest */
	uint32_t scale = range / n, past = n * scale, x;

	do {
		*engine = (uint32_t)((uint64_t)*engine * MINSTD_FACTOR % MINSTD_MODULUS);
		x = *engine - 1;
	} while (x >= past);
	return x / scale;
}

void order_stream_init(struct order_stream *s, const struct order *o, uint32_t rank,
		       struct order_held *held)
{
	uint64_t first;

	*s = (struct order_stream){.order = o, .rank = rank, .fill = o->fill, .held = held};
	if (o->how == ORDER_SHARDS) {
		order_shard(o, rank, &first, &s->count, &s->total);
	} else {
		s->count = s->total = order_steps(o) * o->batch;
		s->fill = 1;
	}
	s->engine = order_stream_seed(o->seed);
}

bool order_stream_more(const struct order_stream *s, uint64_t *sample)
{
	if (s->read == s->count)
		return false;
	*sample = order_at(s->order, s->rank, s->read);
	return true;
}

bool order_stream_wants(const struct order_stream *s, uint64_t *sample)
{
	return order_stream_more(s, sample) && s->have < s->fill;
}

void order_stream_add(struct order_stream *s, uint64_t sample, uint64_t item)
{
	assert(s->have < s->fill);
	s->held[(s->front + s->have++) % s->fill] = (struct order_held){sample, item};
	s->read++;
}

bool order_stream_next(struct order_stream *s, struct order_held *out, bool *again)
{
	uint64_t pick;

	*again = s->out >= s->count;
	if (s->out == s->total)
		return false;
	s->out++;
	if (!*again) {
		/* the oldest takes the place of the one picked */
		pick = order_stream_draw(&s->engine, (uint32_t)s->have);
		pick = (s->front + pick) % s->fill;
		s->last = s->held[pick];
		s->held[pick] = s->held[s->front];
		s->front = (s->front + 1) % s->fill;
		s->have--;
	}
	*out = s->last;
	return true;
}

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

static uint64_t rank_samples(const struct order *o)
{
	return order_steps(o) * o->batch;
}

void order_proof_add(struct order_proof *p, uint64_t sample)
{
	p->count++;
	p->sum_a += rng_mix64(sample ^ 0x8f14e45fceea167aULL);
	p->sum_b += rng_mix64(sample + 0x2545f4914f6cdd1dULL);
}

void order_proof_merge(struct order_proof *into, const struct order_proof *from)
{
	into->count += from->count;
	into->sum_a += from->sum_a;
	into->sum_b += from->sum_b;
	into->refused += from->refused;
}

void order_proof_range(struct order_proof *p, uint64_t first, uint64_t last)
{
	for (uint64_t s = first; s < last; s++)
		order_proof_add(p, s);
}

static void add_positions(struct order_proof *p, const struct order *o, uint64_t first,
			  uint64_t last)
{
	for (uint64_t i = first; i < last; i++)
		order_proof_add(p, order_sequence_at(o, i));
}

/* Samples of the dataset, counted without the numbers that are nobody's. */
static void add_samples(struct order_proof *p, const struct order *o, uint64_t first, uint64_t last)
{
	if (!o->counts) {
		order_proof_range(p, first, last);
		return;
	}
	for (uint64_t s = first; s < last; s++)
		order_proof_add(p, sample_number(o->counts, s));
}

/* What no rank is asked to read: the end of each block beyond the whole steps, and all after the
 * blocks. */
static void add_left_over(struct order_proof *p, const struct order *o)
{
	uint64_t per_rank = order_steps(o) * o->batch, begin = 0;

	for (uint32_t r = 0; r < o->ranks && o->block > 0 && begin < o->samples; r++) {
		uint64_t end = begin + min_u64(o->block, o->samples - begin);

		add_positions(p, o, begin + min_u64(per_rank, end - begin), end);
		begin = end;
	}
	add_positions(p, o, begin, o->samples);
}

/* What the shuffle buffer would hand out after `steps_done`. */
static void add_stream(struct order_proof *p, const struct order *o, uint32_t rank,
		       uint64_t steps_done)
{
	struct order_stream s;
	struct order_held got;
	uint64_t sample, n = 0;
	bool again;
	struct order_held *held = try_calloc(o->fill, sizeof(*held), "the proof of an epoch", NULL);

	if (!held) {
		p->refused++;
		return;
	}
	order_stream_init(&s, o, rank, held);
	do {
		while (order_stream_wants(&s, &sample))
			order_stream_add(&s, sample, 0);
		if (!order_stream_next(&s, &got, &again))
			break;
		if (n >= steps_done * o->batch)
			order_proof_add(p, got.sample);
	} while (++n);
	free(held);
}

/* Each rank accounts for the end of its own list; rank 0 for the files that were cut. */
static void add_tf_lists(struct order_proof *p, const struct order *o, uint32_t rank,
			 uint64_t steps_done)
{
	uint64_t first, count;

	order_dlio_block(o->files * o->samples_per_file, o->ranks, rank, &first, &count);
	for (uint64_t k = min_u64(steps_done, order_steps(o)) * o->batch; k < count; k++)
		order_proof_add(p, order_at(o, rank, k));
	if (rank == 0)
		order_proof_range(p, o->files * o->samples_per_file, o->samples);
}

/* All that the ranks' lists have together, and what they leave out. */
static void add_expected(struct order_proof *p, const struct order *o)
{
	if (o->how == ORDER_LISTED || (o->how == ORDER_DEALT && o->total != o->samples)) {
		add_positions(p, o, 0, o->total);
		return;
	}
	if (o->how != ORDER_SHARDS) {
		add_samples(p, o, 0, o->samples);
		if (o->how == ORDER_STRIDED)
			add_positions(p, o, o->samples, o->total);
		return;
	}
	for (uint32_t r = 0; r < o->ranks; r++)
		add_stream(p, o, r, 0);
}

void order_proof_undelivered(struct order_proof *p, const struct order *o, uint32_t rank,
			     uint64_t steps_done)
{
	uint64_t steps = order_steps(o), begin = rank * o->block;

	if (o->how == ORDER_TF_LISTS) {
		add_tf_lists(p, o, rank, steps_done);
		return;
	}
	if (o->how == ORDER_SHARDS) {
		add_stream(p, o, rank, min_u64(steps_done, steps));
		return;
	}
	if (o->how == ORDER_STRIDED || o->how == ORDER_LISTED || o->how == ORDER_DEALT) {
		for (uint64_t k = min_u64(steps_done, steps) * o->batch; k < rank_samples(o); k++)
			order_proof_add(p, order_at(o, rank, k));
		if (rank == 0)
			add_positions(p, o, o->used,
				      o->how != ORDER_STRIDED || o->total > o->samples
					      ? o->total
					      : o->samples);
		return;
	}

	add_positions(p, o, begin + min_u64(steps_done, steps) * o->batch,
		      begin + steps * o->batch);
	if (rank == 0)
		add_left_over(p, o);
}

void order_tf_undelivered(struct order_proof *p, const struct order *o, uint32_t rank,
			  uint64_t steps_done, void *memory)
{
	const struct stream_rules *r = &o->stream;
	uint64_t done = min_u64(steps_done, order_steps(o)) * o->batch, sample;
	struct stream s;

	if (rank == 0)
		order_proof_range(p, r->files * r->samples_per_file, o->samples);
	if (done == stream_records(r, rank))
		return;
	stream_begin(&s, r, rank, memory);
	for (uint64_t i = 0; stream_next(&s, &sample); i++)
		if (i >= done)
			order_proof_add(p, sample);
}

/* The samples of the files from `first` on, which no rank has. */
static void add_files(struct order_proof *p, const struct order *o, uint64_t first)
{
	uint64_t each = o->samples_per_file;

	if (!o->counts)
		order_proof_range(p, first * each, o->samples);
	for (uint64_t f = first; o->counts && f < o->counts->files; f++)
		order_proof_range(p, f * each, f * each + samples_in_file(o->counts, f, each));
}

void order_stream_undelivered(struct order_proof *p, const struct order *o, uint32_t rank,
			      uint32_t worker, uint64_t batches, void *memory)
{
	uint64_t done = batches * o->batch, sample;
	struct shard_stream s;

	if (rank == 0 && worker == 0)
		add_files(p, o, o->shards.files);
	shard_stream_begin(&s, &o->shards, rank, worker, memory);
	for (uint64_t i = 0;; i++) {
		while (shard_stream_wants(&s, &sample))
			shard_stream_add(&s, sample);
		if (!shard_stream_take(&s, &sample))
			return;
		if (i >= done)
			order_proof_add(p, sample);
	}
}

static enum order_kept check_sums(const struct order *o, const struct order_proof *delivered,
				  const struct order_proof *undelivered,
				  const struct order_proof *all, char *why, size_t why_size)
{
	unsigned long long got = delivered->count, rest = undelivered->count;
	struct order_proof sum = *delivered, expected = *all;

	order_proof_merge(&sum, undelivered);
	/* no memory is needed for these: a loader does not know which samples came */
	if (undelivered->refused && o->how != ORDER_SHARDS && o->how != ORDER_TF_RECORDS &&
	    o->how != ORDER_STREAMS) {
		snprintf(why, why_size,
			 "%llu samples were delivered; whether each was delivered exactly once is "
			 "unknown, because objects come in any order and the epoch ended early",
			 got);
		return ORDER_UNKNOWN;
	}
	if (sum.refused || expected.refused) {
		snprintf(why, why_size,
			 "%llu samples were delivered; whether each was delivered exactly once is "
			 "unknown, because there was not enough memory for the check (a shuffle "
			 "buffer of %llu samples)",
			 got, (unsigned long long)o->fill);
		return ORDER_UNKNOWN;
	}
	if (sum.count != expected.count) {
		snprintf(why, why_size,
			 "%llu samples were delivered and %llu were left out, %llu in total, but "
			 "the %s has %llu",
			 got, rest, got + rest,
			 expected.count == o->samples && o->how != ORDER_LISTED ? "dataset"
										: "order",
			 (unsigned long long)expected.count);
		return ORDER_BROKEN;
	}
	if (sum.sum_a != expected.sum_a || sum.sum_b != expected.sum_b) {
		snprintf(why, why_size,
			 "%llu samples were delivered and %llu were left out; the total matches "
			 "the %s, but some samples came twice and others never",
			 got, rest, expected.count == o->samples ? "dataset" : "order");
		return ORDER_BROKEN;
	}
	return ORDER_KEPT;
}

static void tell_proved(const struct order *o, uint64_t delivered, uint64_t rest, char *why,
			size_t why_size)
{
	unsigned long long all = o->samples, got = delivered;

	if (rest == 0)
		snprintf(why, why_size, "each of the %llu samples was delivered exactly once", all);
	else
		snprintf(why, why_size,
			 "%llu of %llu samples were delivered, each exactly once; the other %llu "
			 "were left out of the epoch or the epoch ended before they were read",
			 got, all, (unsigned long long)rest);
}

static enum order_kept compare_with(const struct order *o, const struct order_proof *delivered,
				    const struct order_proof *undelivered,
				    const struct order_proof *all, char *why, size_t why_size)
{
	enum order_kept kept = check_sums(o, delivered, undelivered, all, why, why_size);

	if (kept == ORDER_KEPT)
		tell_proved(o, delivered->count, undelivered->count, why, why_size);
	return kept;
}

enum order_kept order_proof_check(const struct order *o, const struct order_proof *delivered,
				  const struct order_proof *undelivered, char *why, size_t why_size)
{
	unsigned long long all = o->samples, got = delivered->count, rest = undelivered->count;
	unsigned long long repeats = order_repeats(o);
	uint64_t first, shard, total;
	struct order_proof expected = {0};
	enum order_kept kept;

	add_expected(&expected, o);
	kept = check_sums(o, delivered, undelivered, &expected, why, why_size);
	if (kept != ORDER_KEPT)
		return kept;
	if (o->how == ORDER_LISTED) {
		snprintf(why, why_size,
			 "%llu samples were delivered, which are exactly those of the recorded "
			 "order; it has %llu more in this epoch",
			 got, rest);
	} else if (o->how == ORDER_SHARDS && o->one_shard && o->ranks > 1) {
		order_shard(o, 0, &first, &shard, &total);
		snprintf(why, why_size,
			 "%llu samples were delivered: each of the %u ranks read the same %llu of "
			 "%llu samples, as with DLIO's readers; the others were not read",
			 got, o->ranks, (unsigned long long)shard, all);
	} else if (repeats > 0 && got == o->used) {
		snprintf(why, why_size,
			 "%llu samples were delivered: %llu of %llu exactly once, and %llu again "
			 "so that all ranks have the same number (%s)",
			 got, got - repeats, all, repeats,
			 o->how == ORDER_STRIDED ? "DistributedSampler repeats samples unless "
						   "reader.drop_last is set"
			 : o->how == ORDER_DEALT ? "StreamingDataset repeats samples"
						 : "reader.pad_last_batch");
	} else {
		tell_proved(o, got, rest, why, why_size);
	}
	return ORDER_KEPT;
}

/* Cuts positions [a, b) at the borders between delivered and not, and takes what is wanted. */
static void walk_positions(struct prover *p, uint64_t a, uint64_t b)
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
			add_positions(&p->walked, o, a, end);
		a = end;
	}
}

static void *prove_spans(void *arg)
{
	struct prover *p = arg;
	struct proving *j = p->job;
	uint64_t samples = j->o->samples;

	for (;;) {
		/* relaxed: spans only need to differ, and sums are read after the threads were
		 * joined */
		uint64_t a = atomic_fetch_add_explicit(&j->next, SPAN, memory_order_relaxed), b;

		if (a >= samples || atomic_load_explicit(&j->canceled, memory_order_relaxed))
			return NULL;
		if (stop_is_set(j->stop)) {
			atomic_store_explicit(&j->canceled, 1, memory_order_relaxed);
			return NULL;
		}
		b = min_u64(samples, a + SPAN);
		walk_positions(p, a, b);
		if (!j->of_delivered)
			add_samples(&p->all, j->o, a, b);
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
	if (atomic_load_explicit(&j->canceled, memory_order_relaxed))
		return err_set(e, ERR_CANCELED, "stopped before the order was checked");
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
		tell_proved(o, got, o->samples - got, why, why_size);
	else if (got != of)
		snprintf(why, why_size,
			 "%llu samples were delivered, but the steps of the epoch have %llu", got,
			 of);
	else
		snprintf(why, why_size,
			 "%llu samples were delivered; the number matches the steps of the epoch, "
			 "but some samples came twice or were not those of these steps",
			 got);
}

int order_prove(const struct order *o, uint64_t steps, const struct order_proof *delivered,
		unsigned threads, const struct stop_flag *stop, enum order_kept *kept, char *why,
		size_t why_size, struct err *e)
{
	struct proving j = {.o = o, .stop = stop};
	struct order_proof walked = {0}, all = {0};
	uint64_t count;
	int rc;

	*kept = ORDER_BROKEN;
	if (o->how == ORDER_STRIDED || o->how == ORDER_LISTED || o->how == ORDER_DEALT ||
	    o->how == ORDER_SHARDS) {
		for (uint32_t r = 0; r < o->ranks; r++)
			order_proof_undelivered(&walked, o, r, steps);
		*kept = order_proof_check(o, delivered, &walked, why, why_size);
		return 0;
	}
	j.per_rank = min_u64(steps, order_steps(o)) * o->batch;
	count = j.per_rank * o->ranks;
	assert(count <= o->samples);
	j.of_delivered = count <= o->samples - count;
	rc = run_provers(&j, threads, &walked, &all, e);
	if (rc < 0) {
		snprintf(why, why_size, "the check was stopped before it was complete");
		return rc;
	}
	if (j.of_delivered) {
		*kept = same(delivered, &walked) ? ORDER_KEPT : ORDER_BROKEN;
		tell_expected(o, delivered, &walked, why, why_size);
	} else {
		*kept = compare_with(o, delivered, &walked, &all, why, why_size);
	}
	return 0;
}
