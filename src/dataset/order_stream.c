/* DALI's shuffle buffer over a shard. */
#include "dataset/order_stream.h"

#include <assert.h>

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
