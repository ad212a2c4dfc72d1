#pragma once
/* A shard read in ascending order and handed out through DALI's shuffle buffer: before the first
 * sample is handed out `fill` are read, then each one handed out is picked among those buffered and
 * one more is read. Without shuffling the buffer has one place.
 *
 * Picks are DALI's: std::minstd_rand0 seeded through std::seed_seq, std::uniform_int_distribution
 * as in libstdc++. (Reference: NVIDIA DALI, operators/reader/loader/loader.h; ISO C++
 * [rand.util.seedseq], [rand.predef].) */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "dataset/order.h"

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
