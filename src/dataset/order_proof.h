#pragma once
/* The proof that an epoch was complete: what was delivered and what was not are together every
 * sample once. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/thread.h"
#include "dataset/order.h"

/* A multiset of samples in three words: count and two independent sums of 64-bit mixes. Two equal
 * multisets have equal proofs; different ones differ but for about one chance in 2^64. */
struct order_proof {
	uint64_t count, sum_a, sum_b;
	uint64_t refused; /* parts that are missing because the system refused memory */
};

enum order_kept {
	ORDER_BROKEN,
	ORDER_KEPT,
	ORDER_UNKNOWN, /* there was no memory for the proof */
};

void order_proof_add(struct order_proof *p, uint64_t sample);
void order_proof_merge(struct order_proof *into, const struct order_proof *from);
/* The multiset 0..n-1, restricted to [first, last). */
void order_proof_range(struct order_proof *p, uint64_t first, uint64_t last);
/* What `rank` was to deliver but did not, after `steps_done` of its steps, plus (rank 0 only) the
 * samples that do not fill a whole step. Not for ORDER_TF_RECORDS and ORDER_STREAMS. */
void order_proof_undelivered(struct order_proof *p, const struct order *o, uint32_t rank,
			     uint64_t steps_done);
/* The same for ORDER_TF_RECORDS, where each rank also accounts for the records it keeps beyond its
 * steps. `memory` is that of stream_begin. */
void order_tf_undelivered(struct order_proof *p, const struct order *o, uint32_t rank,
			  uint64_t steps_done, void *memory);
/* The same for ORDER_STREAMS, of one worker that delivered `batches`. `memory` is that of
 * shard_stream_begin. */
void order_stream_undelivered(struct order_proof *p, const struct order *o, uint32_t rank,
			      uint32_t worker, uint64_t batches, void *memory);
/* delivered + undelivered == all samples, each once, and those that the order repeats? `why` gets
 * the sentence in any case. */
enum order_kept order_proof_check(const struct order *o, const struct order_proof *delivered,
				  const struct order_proof *undelivered, char *why,
				  size_t why_size);
/* Proves an epoch of which every rank made `steps` steps: `delivered` (of all ranks together) must
 * be the samples at just those positions. Where more than half of the samples were delivered, what
 * was not is walked instead, and both together must be every sample once. Time is linear in the
 * smaller of the two and, in the second case, a few ns a sample; memory is constant. Uses up to
 * `threads` threads; orders that repeat samples or run through a buffer are proved by one.
 * ERR_CANCELED soon after `stop` (may be NULL) is set; `why` gets a sentence in any case. Without
 * memory *kept is ORDER_UNKNOWN, which is no failure. */
int order_prove(const struct order *o, uint64_t steps, const struct order_proof *delivered,
		unsigned threads, const struct stop_flag *stop, enum order_kept *kept, char *why,
		size_t why_size, struct err *e);

/* A shard read in ascending order and handed out through DALI's shuffle buffer: before the first
 * sample is handed out `fill` are read, then each one handed out is picked among those buffered and
 * one more is read. Without shuffling the buffer has one place.
 *
 * Picks are DALI's: std::minstd_rand0 seeded through std::seed_seq, std::uniform_int_distribution
 * as in libstdc++. (Reference: NVIDIA DALI, operators/reader/loader/loader.h; ISO C++
 * [rand.util.seedseq], [rand.predef].) */

struct order_stream {
	const struct order *order;
	uint32_t rank;
	uint64_t count; /* of the shard; of another order, all that it asks for */
	uint64_t total; /* handed out in all: count, or one more that repeats the last */
	uint64_t read, out;
	uint64_t fill, have, front;
	struct order_held {
		uint64_t sample;
		uint64_t item; /* the caller's */
	} * held;
	struct order_held last;
	uint32_t engine;
};

/* `held` has room for o->fill entries, at least 1, and is the caller's. An order without shards is
 * handed out as it is. */
void order_stream_init(struct order_stream *s, const struct order *o, uint32_t rank,
		       struct order_held *held);
/* Whether a sample has to be read before the next one is handed out; *sample says which. The caller
 * reads it and calls order_stream_add. */
bool order_stream_wants(const struct order_stream *s, uint64_t *sample);
void order_stream_add(struct order_stream *s, uint64_t sample, uint64_t item);
/* The next sample handed out; false at the end. *again: it repeats the one before, by padding. The
 * caller then reads one more, if order_stream_more. */
bool order_stream_next(struct order_stream *s, struct order_held *out, bool *again);
/* After a sample was handed out: the one read into its place, if any is left. */
bool order_stream_more(const struct order_stream *s, uint64_t *sample);

/* libstdc++'s engine and distribution, for tests. */
uint32_t order_stream_seed(uint32_t seed);
/* Uniform in 0..n-1, 1 <= n < 2^31 - 2. */
uint32_t order_stream_draw(uint32_t *engine, uint32_t n);
