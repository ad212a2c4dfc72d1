/* The order of an epoch and the proof that it was kept. */
#include "dataset/order.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/rng.h"
#include "dataset/order_dlio.h"
#include "dataset/order_stream.h"

static uint64_t min_u64(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* Whole steps in `samples`; none when a step is larger than any number. */
static uint64_t whole_steps(uint64_t samples, uint64_t batch, uint64_t ranks)
{
	uint64_t step;

	if (__builtin_mul_overflow(batch, ranks, &step) || step == 0)
		return 0;
	return samples / step;
}

/* Every rank has the same block but the last ones, which set the number of steps for all. */
static void init_dlio(struct order *o)
{
	uint64_t files = o->samples / o->samples_per_file, first, last_count;
	uint64_t samples;

	files = order_dlio_files(files, o->samples_per_file, o->batch, o->ranks);
	samples = files * o->samples_per_file;
	o->how = ORDER_SEQUENTIAL;
	if (o->ranks == 0 || o->batch == 0)
		return;
	o->block = samples / o->ranks + (samples % o->ranks != 0);
	order_dlio_block(samples, o->ranks, o->ranks - 1, &first, &last_count);
	o->used = last_count / o->batch * o->batch * o->ranks;
}

static void init_shuffled(struct order *o, const struct workload *w, uint64_t seed, uint64_t epoch)
{
	uint64_t key = rng_key(seed, w->train.seed_change_epoch ? epoch : 0, 0);

	o->block = whole_steps(o->samples, o->batch, o->ranks) * o->batch;
	o->used = o->block * o->ranks;
	if (w->reader.sample_shuffle != SHUFFLE_OFF) {
		o->how = ORDER_SAMPLES;
		perm_init(&o->perm, o->samples, key);
	} else if (w->reader.file_shuffle != SHUFFLE_OFF) {
		o->how = ORDER_FILES;
		perm_init(&o->perm, o->samples / o->samples_per_file, key);
	} else {
		o->how = ORDER_SEQUENTIAL;
	}
}

/* DistributedSampler; with one rank it neither repeats nor leaves out, which is RandomSampler. */
static void init_strided(struct order *o, const struct workload *w)
{
	uint64_t share;

	if (o->ranks == 0 || o->batch == 0)
		return;
	o->how = ORDER_STRIDED;
	share = o->samples / o->ranks;
	if (o->samples % o->ranks && !w->reader.drop_last)
		share++;
	o->total = share * o->ranks;
	o->used = share / o->batch * o->batch * o->ranks;
}

static void init_shards(struct order *o, const struct workload *w, uint64_t seed, uint64_t epoch)
{
	uint64_t share;

	if (o->ranks == 0 || o->batch == 0)
		return;
	o->how = ORDER_SHARDS;
	o->one_shard = w->compat.dlio;
	if (!w->reader.stick_to_shard && !w->compat.dlio)
		o->shift = (uint32_t)((epoch - 1) % o->ranks);
	share = o->samples / o->ranks;
	/* DALI refuses fewer samples than shards; a shard without any has none to repeat */
	if (o->samples % o->ranks && w->reader.pad_last_batch && share > 0)
		share++;
	o->total = share;
	o->used = share / o->batch * o->batch * o->ranks;
	o->fill = order_stream_fill(w, o->samples);
	o->seed = (uint32_t)(seed + (w->train.seed_change_epoch ? epoch - 1 : 0));
}

void order_init(struct order *o, const struct workload *w, uint64_t samples, uint32_t ranks,
		uint64_t batch, uint64_t seed, uint64_t epoch)
{
	int64_t per_file = w->dataset.num_samples_per_file;

	memset(o, 0, sizeof(*o));
	o->samples = samples;
	o->samples_per_file = per_file > 0 ? (uint64_t)per_file : 1;
	o->ranks = ranks;
	o->batch = batch;
	assert(samples % o->samples_per_file == 0);
	if (w->reader.order == ORDER_DLIO)
		init_dlio(o);
	else if (w->reader.order == ORDER_DISTRIBUTED || w->reader.order == ORDER_RANDOM)
		init_strided(o, w);
	else if (w->reader.order == ORDER_SHARDED)
		init_shards(o, w, seed, epoch);
	else
		init_shuffled(o, w, seed, epoch);
}

uint64_t order_steps(const struct order *o)
{
	return o->used == 0 ? 0 : o->used / o->ranks / o->batch;
}

/* The sample at a position of the global sequence. */
static uint64_t sequence_at(const struct order *o, uint64_t position)
{
	switch (o->how) {
	case ORDER_SAMPLES:
		return perm_at(&o->perm, position);
	case ORDER_FILES:
		return perm_at(&o->perm, position / o->samples_per_file) * o->samples_per_file +
		       position % o->samples_per_file;
	case ORDER_STRIDED:
		position %= o->samples;
		return o->list ? order_list_at(o->list, position) : position;
	case ORDER_SHARDS:
	case ORDER_SEQUENTIAL:
		break;
	}
	return position;
}

/* floor(samples * s / ranks) */
static uint64_t shard_begin(const struct order *o, uint64_t s)
{
	return (uint64_t)((unsigned __int128)o->samples * s / o->ranks);
}

void order_shard(const struct order *o, uint32_t rank, uint64_t *first, uint64_t *count,
		 uint64_t *total)
{
	uint64_t shard = o->one_shard ? 0 : ((uint64_t)rank + o->shift) % o->ranks;

	*first = shard_begin(o, shard);
	*count = shard_begin(o, shard + 1) - *first;
	*total = o->total > *count && *count > 0 ? o->total : *count;
}

uint64_t order_at(const struct order *o, uint32_t rank, uint64_t k)
{
	uint64_t first, count, total;

	if (o->how == ORDER_STRIDED)
		return sequence_at(o, rank + k * o->ranks);
	if (o->how != ORDER_SHARDS)
		return sequence_at(o, rank * o->block + k);
	order_shard(o, rank, &first, &count, &total);
	return first + (k < count ? k : count - 1);
}

static uint64_t rank_steps(const struct order *o)
{
	return order_steps(o) * o->batch;
}

uint64_t order_repeats(const struct order *o)
{
	uint64_t repeats = 0;

	if (o->how == ORDER_STRIDED)
		return o->used > o->samples ? o->used - o->samples : 0;
	for (uint32_t r = 0; o->how == ORDER_SHARDS && r < o->ranks; r++) {
		uint64_t first, count, total;

		order_shard(o, r, &first, &count, &total);
		repeats += rank_steps(o) > count;
	}
	return repeats;
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
		order_proof_add(p, sequence_at(o, i));
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
	/* without memory nothing is added, and the proof fails for it */
	struct order_held *held = try_calloc(o->fill, sizeof(*held), "the proof of an epoch", NULL);

	if (!held)
		return;
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

/* All that the ranks' lists have together, and what they leave out. */
static void add_expected(struct order_proof *p, const struct order *o)
{
	if (o->how != ORDER_SHARDS) {
		order_proof_range(p, 0, o->samples);
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

	if (o->how == ORDER_SHARDS) {
		add_stream(p, o, rank, min_u64(steps_done, steps));
		return;
	}
	if (o->how == ORDER_STRIDED) {
		for (uint64_t k = min_u64(steps_done, steps) * o->batch; k < rank_steps(o); k++)
			order_proof_add(p, order_at(o, rank, k));
		if (rank == 0)
			add_positions(p, o, o->used, o->total > o->samples ? o->total : o->samples);
		return;
	}

	add_positions(p, o, begin + min_u64(steps_done, steps) * o->batch,
		      begin + steps * o->batch);
	if (rank == 0)
		add_left_over(p, o);
}

static bool check_sums(const struct order *o, const struct order_proof *delivered,
		       const struct order_proof *undelivered, char *why, size_t why_size)
{
	unsigned long long got = delivered->count, rest = undelivered->count;
	struct order_proof sum = *delivered, expected = {0};

	order_proof_merge(&sum, undelivered);
	add_expected(&expected, o);
	if (sum.count != expected.count) {
		snprintf(why, why_size,
			 "%llu samples were delivered and %llu were left out, %llu together: the "
			 "%s has %llu",
			 got, rest, got + rest, expected.count == o->samples ? "dataset" : "order",
			 (unsigned long long)expected.count);
		return false;
	}
	if (sum.sum_a != expected.sum_a || sum.sum_b != expected.sum_b) {
		snprintf(why, why_size,
			 "%llu samples were delivered and %llu were left out, as many as the "
			 "%s has, but not each once: some came twice and others never",
			 got, rest, expected.count == o->samples ? "dataset" : "order");
		return false;
	}
	return true;
}

bool order_proof_check(const struct order *o, const struct order_proof *delivered,
		       const struct order_proof *undelivered, char *why, size_t why_size)
{
	unsigned long long all = o->samples, got = delivered->count, rest = undelivered->count;
	unsigned long long repeats = order_repeats(o), shard;

	if (!check_sums(o, delivered, undelivered, why, why_size))
		return false;
	if (o->how == ORDER_SHARDS && o->one_shard && o->ranks > 1) {
		shard = shard_begin(o, 1);
		snprintf(why, why_size,
			 "%llu samples were delivered: each of the %u ranks read the same %llu of "
			 "%llu, as DLIO's readers do, and nobody the others",
			 got, o->ranks, shard, all);
	} else if (repeats > 0 && got == o->used) {
		snprintf(why, why_size,
			 "%llu samples were delivered: %llu of %llu exactly once, and %llu again "
			 "to give every rank as many (%s)",
			 got, got - repeats, all, repeats,
			 o->how == ORDER_STRIDED ? "DistributedSampler repeats, unless "
						   "reader.drop_last is set"
						 : "reader.pad_last_batch");
	} else if (rest == 0) {
		snprintf(why, why_size, "each of the %llu samples was delivered exactly once", all);
	} else {
		snprintf(why, why_size,
			 "%llu of %llu samples were delivered, each exactly once; the other %llu "
			 "were not to be read or the epoch ended before them",
			 got, all, rest);
	}
	return true;
}
