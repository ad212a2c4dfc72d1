/* The order of an epoch and the proof that it was kept. */
#include "dataset/order.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/rng.h"
#include "dataset/order_dlio.h"
#include "format/format.h"

/* TensorFlow's first seed of an operation that was given only its own. */
#define TF_GRAPH_SEED 87654321u

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

static bool is_tensorflow(const struct workload *w)
{
	return w->reader.data_loader && strcmp(w->reader.data_loader, "tensorflow") == 0;
}

/* Every rank has the same block but the last ones, which set the number of steps for all. */
static void init_dlio(struct order *o, const struct workload *w, uint64_t seed, uint64_t epoch)
{
	uint64_t files = o->samples / o->samples_per_file, first, last_count;
	uint64_t samples;

	files = order_dlio_files(files, o->samples_per_file, o->batch, o->ranks);
	samples = files * o->samples_per_file;
	o->how = ORDER_SEQUENTIAL;
	if (o->ranks == 0 || o->batch == 0)
		return;
	if (is_tensorflow(w)) {
		o->how = ORDER_ITERATIVE;
		o->files = files;
		o->shuffle_files = w->reader.file_shuffle != SHUFFLE_OFF;
		perm_init(&o->perm, files,
			  rng_key(seed, w->train.seed_change_epoch ? epoch : 0, 0));
	}
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

bool order_streams(const struct workload *w)
{
	const struct format_ops *f = w->dataset.format ? format_find(w->dataset.format) : NULL;

	return f && f->flags & FORMAT_STREAM && is_tensorflow(w);
}

static void stream_seeds(struct stream_rules *s, const struct workload *w, uint64_t seed,
			 uint64_t epoch)
{
	s->seed_low = TF_GRAPH_SEED;
	s->seed_high = seed;
	/* each iterator takes two words of the generator that has the seeds */
	if (w->train.seed_change_epoch || w->reader.order == ORDER_DLIO) {
		s->seed_low = philox_at(TF_GRAPH_SEED, seed, 2 * (epoch - 1));
		s->seed_high = philox_at(TF_GRAPH_SEED, seed, 2 * (epoch - 1) + 1);
	}
}

static void init_stream(struct order *o, const struct workload *w, uint64_t seed, uint64_t epoch)
{
	struct stream_rules *s = &o->stream;

	o->how = ORDER_STREAM;
	s->files = o->samples / o->samples_per_file;
	s->samples_per_file = o->samples_per_file;
	s->ranks = o->ranks;
	s->cycle = (uint32_t)w->reader.read_threads;
	s->ahead = 2 * s->cycle;
	if (o->ranks == 0 || o->batch == 0)
		return;
	if (w->reader.order == ORDER_DLIO) {
		s->files = order_dlio_files(s->files, s->samples_per_file, o->batch, o->ranks);
	} else if (w->reader.file_shuffle != SHUFFLE_OFF) {
		s->shuffle_files = true;
		perm_init(&s->perm, s->files,
			  rng_key(seed, w->train.seed_change_epoch ? epoch : 0, 0));
	}
	if (w->reader.sample_shuffle != SHUFFLE_OFF)
		s->shuffle = (uint64_t)w->reader.shuffle_size;
	stream_seeds(s, w, seed, epoch);
	o->used = stream_records_least(s) / o->batch * o->batch * o->ranks;
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
	if (order_streams(w))
		init_stream(o, w, seed, epoch);
	else if (w->reader.order == ORDER_DLIO)
		init_dlio(o, w, seed, epoch);
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
	case ORDER_SEQUENTIAL:
	case ORDER_STREAM:
	case ORDER_ITERATIVE:
		break;
	}
	return position;
}

/* Entry k of a rank's list. Only the first looks at the rank. */
static uint64_t iterative_at(const struct order *o, uint32_t rank, uint64_t k)
{
	uint64_t file = k == 0 ? rank * (o->files / o->ranks % o->files)
			       : k / o->samples_per_file % o->files;

	if (o->shuffle_files)
		file = perm_at(&o->perm, file);
	return file * o->samples_per_file + k % o->samples_per_file;
}

/* Each rank accounts for the end of its own list; rank 0 for the files that were cut. */
static void iterative_undelivered(struct order_proof *p, const struct order *o, uint32_t rank,
				  uint64_t steps_done)
{
	uint64_t first, count;

	order_dlio_block(o->files * o->samples_per_file, o->ranks, rank, &first, &count);
	for (uint64_t k = min_u64(steps_done, order_steps(o)) * o->batch; k < count; k++)
		order_proof_add(p, iterative_at(o, rank, k));
	if (rank == 0)
		order_proof_range(p, o->files * o->samples_per_file, o->samples);
}

uint64_t order_at(const struct order *o, uint32_t rank, uint64_t k)
{
	if (o->how == ORDER_ITERATIVE)
		return iterative_at(o, rank, k);
	return sequence_at(o, rank * o->block + k);
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

void order_proof_undelivered(struct order_proof *p, const struct order *o, uint32_t rank,
			     uint64_t steps_done)
{
	uint64_t steps = order_steps(o), begin = rank * o->block;

	if (o->how == ORDER_ITERATIVE) {
		iterative_undelivered(p, o, rank, steps_done);
		return;
	}
	add_positions(p, o, begin + min_u64(steps_done, steps) * o->batch,
		      begin + steps * o->batch);
	if (rank == 0)
		add_left_over(p, o);
}

void order_stream_undelivered(struct order_proof *p, const struct order *o, uint32_t rank,
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

bool order_proof_check(const struct order *o, const struct order_proof *delivered,
		       const struct order_proof *undelivered, char *why, size_t why_size)
{
	unsigned long long all = o->samples, got = delivered->count, rest = undelivered->count;
	struct order_proof sum = *delivered, expected = {0};

	order_proof_merge(&sum, undelivered);
	order_proof_range(&expected, 0, o->samples);
	if (sum.count != expected.count) {
		snprintf(why, why_size,
			 "%llu samples were delivered and %llu were left out, %llu together: the "
			 "dataset has %llu",
			 got, rest, got + rest, all);
		return false;
	}
	if (sum.sum_a != expected.sum_a || sum.sum_b != expected.sum_b) {
		snprintf(why, why_size,
			 "%llu samples were delivered and %llu were left out, as many as the "
			 "dataset has, but not each once: some came twice and others never",
			 got, rest);
		return false;
	}
	if (rest == 0)
		snprintf(why, why_size, "each of the %llu samples was delivered exactly once", all);
	else
		snprintf(why, why_size,
			 "%llu of %llu samples were delivered, each exactly once; the other %llu "
			 "were not to be read or the epoch ended before them",
			 got, all, rest);
	return true;
}
