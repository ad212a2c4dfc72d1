/* Which sample comes at which position of an epoch: computed, or from a list in memory. */
#include "dataset/order.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/rng.h"
#include "base/saturate.h"
#include "dataset/deal.h"
#include "format/format.h"
#include "workload/recorded_file.h"

/* PyTorch's permutations and recorded orders, held in memory. */

static bool order_list_wanted(const struct workload *w)
{
	if (w->reader.order == ORDER_RECORDED)
		return w->recorded != NULL;
	return (w->reader.order == ORDER_DISTRIBUTED || w->reader.order == ORDER_RANDOM) &&
	       w->reader.sample_shuffle != SHUFFLE_OFF;
}

static bool is_wide(uint64_t n)
{
	return n > UINT32_MAX;
}

uint64_t order_list_bytes(uint64_t n)
{
	return n * (is_wide(n) ? sizeof(uint64_t) : sizeof(uint32_t));
}

uint64_t order_list_entries(const struct workload *w, bool evaluation, uint64_t samples)
{
	if (!order_list_wanted(w))
		return 0;
	return w->reader.order == ORDER_RECORDED
		       ? recorded_visits_most(w->recorded,
					      evaluation ? RECORDED_EVAL : RECORDED_TRAIN)
		       : samples;
}

uint64_t order_file_sums(const struct workload *w, const struct sample_counts *counts)
{
	bool shuffled = w->reader.order == ORDER_SHUFFLED &&
			w->reader.sample_shuffle == SHUFFLE_OFF &&
			w->reader.file_shuffle != SHUFFLE_OFF &&
			!(workload_loader(w)->flags & LOADER_STREAMS);

	return counts && shuffled ? counts->files + 1 : 0;
}

int order_list_init_files(struct order_list *l, const struct sample_counts *counts, struct err *e)
{
	*l = (struct order_list){.n = counts->files + 1, .counts = counts};
	l->wide = try_calloc(l->n, sizeof(*l->wide), "the order of the files", e);
	return l->wide ? 0 : -ENOMEM;
}

int order_list_init(struct order_list *l, uint64_t n, struct err *e)
{
	*l = (struct order_list){.n = n};
	if (is_wide(n))
		l->wide = try_calloc(n, sizeof(*l->wide), "the permutation of the samples", e);
	else
		l->narrow = try_calloc(n ? n : 1, sizeof(*l->narrow),
				       "the permutation of the samples", e);
	return l->wide || l->narrow ? 0 : -ENOMEM;
}

void order_list_release(struct order_list *l)
{
	free(l->wide);
	free(l->narrow);
	free(l->deal.memory);
	*l = (struct order_list){0};
}

uint64_t order_deal_bytes(const struct workload *w, uint64_t samples, uint32_t ranks,
			  uint64_t batch)
{
	struct deal d;

	if (workload_loader(w)->deal == DEAL_NONE)
		return 0;
	deal_rules(&d, w, samples, ranks, batch, 0, 1);
	return u64_sum(order_list_bytes(deal_entries(&d)), deal_memory(&d));
}

int order_deal_init(struct order_list *l, const struct workload *w, uint64_t samples,
		    uint32_t ranks, uint64_t batch, struct err *e)
{
	struct deal d;
	int rc;

	deal_rules(&d, w, samples, ranks, batch, 0, 1);
	rc = order_list_init(l, deal_entries(&d), e);
	if (rc < 0)
		return rc;
	l->deal.samples = samples;
	l->deal.ranks = ranks;
	l->deal.batch = batch;
	l->deal.memory = try_calloc(1, deal_memory(&d) + 1, "the shuffle of the samples", e);
	return l->deal.memory ? 0 : -ENOMEM;
}

/* Tensor.random_() of an int64. */
static uint64_t draw_int64(struct rng_np *r)
{
	return rng_np_u64(r) & INT64_MAX;
}

static uint64_t random_sampler_seed(const struct workload *w, uint64_t seed, uint64_t epoch)
{
	bool persistent = w->reader.persistent_workers && w->reader.read_threads > 0;
	uint64_t value = 0;
	struct rng_np rng;

	rng_np_seed(&rng, (uint32_t)seed);
	for (uint64_t i = 0; i < epoch; i++) {
		if (i == 0 || !persistent)
			draw_int64(&rng);
		value = draw_int64(&rng);
	}
	return value;
}

static uint64_t key_of_epoch(const struct workload *w, uint64_t seed, uint64_t epoch)
{
	return rng_key(seed, w->train.seed_change_epoch ? epoch : 0, 0);
}

static void fill_file_sums(struct order_list *l, uint64_t key)
{
	const struct sample_counts *c = l->counts;
	struct perm perm;

	perm_init(&perm, c->files, key);
	for (uint64_t i = 0; i < c->files; i++)
		l->wide[i + 1] = l->wide[i] + samples_in_file(c, perm_at(&perm, i), 0);
}

void order_list_fill(struct order_list *l, const struct workload *w, bool evaluation, uint64_t seed,
		     uint64_t epoch)
{
	struct rng_np rng;

	assert(epoch > 0 && (l->narrow || l->wide || l->n == 0));
	/* the proof asks for the last epoch, which is there */
	if (l->filled.epoch == epoch && l->filled.seed == seed &&
	    l->filled.evaluation == evaluation)
		return;
	l->filled.epoch = epoch;
	l->filled.seed = seed;
	l->filled.evaluation = evaluation;
	if (l->counts) {
		fill_file_sums(l, key_of_epoch(w, seed, epoch));
		return;
	}
	if (l->deal.memory) {
		struct deal d;

		deal_rules(&d, w, l->deal.samples, l->deal.ranks, l->deal.batch, seed, epoch);
		deal_fill(&d, l, l->deal.memory);
		return;
	}
	if (w->reader.order == ORDER_RECORDED) {
		recorded_sequence(w->recorded, evaluation ? RECORDED_EVAL : RECORDED_TRAIN, epoch,
				  l->narrow);
		return;
	}
	if (w->reader.order == ORDER_RANDOM)
		seed = random_sampler_seed(w, seed, epoch);
	else if (w->train.seed_change_epoch)
		seed += epoch - 1;
	/* the engine takes the low 32 bits */
	rng_np_seed(&rng, (uint32_t)seed);
	if (l->narrow)
		rng_torch_randperm_u32(&rng, l->narrow, l->n);
	else
		rng_torch_randperm(&rng, l->wide, l->n);
}

/* What DLIO's and our own generators are seeded with. */

/* DLIO re-seeds its global generator at every shuffle, so that compute times are a function of seed
 * and epoch and the same on every rank: the draws of one shuffle of `n` elements, without the
 * array. */
static void draw_shuffle(struct rng_np *rng, uint64_t n)
{
	for (uint64_t i = n; i-- > 1;)
		rng_np_interval(rng, i);
}

bool compute_draws_begin(struct rng_np *rng, const struct workload *w, const struct dataset *d,
			 uint64_t seed, uint32_t epoch, uint32_t rank, uint32_t ranks)
{
	uint64_t changed = seed + (w->train.seed_change_epoch ? epoch : 0);

	if (!w->compat.dlio) {
		rng_np_seed(rng, (uint32_t)rng_key(changed, epoch, rank));
		return true;
	}
	if (w->reader.sample_shuffle == SHUFFLE_OFF)
		return false;
	for (int kind = 0; kind < DATASET_KINDS; kind++) {
		uint64_t per_file = d->samples_per_file, first, count;
		uint64_t files = order_dlio_files(d->files[kind], per_file,
						  (uint64_t)(kind == DATASET_TRAIN
								     ? w->reader.batch_size
								     : w->reader.batch_size_eval),
						  ranks);

		if (files == 0)
			continue;
		order_dlio_block(files * per_file, ranks, rank, &first, &count);
		rng_np_seed(rng, (uint32_t)changed);
		draw_shuffle(rng, count);
	}
	return true;
}

/* TensorFlow's first seed of an operation that was given only its own. */
#define TF_GRAPH_SEED 87654321u

/* Whole steps in `samples`; none when a step is larger than any number. */
static uint64_t whole_steps(uint64_t samples, uint64_t batch, uint64_t ranks)
{
	uint64_t step;

	if (__builtin_mul_overflow(batch, ranks, &step) || step == 0)
		return 0;
	return samples / step;
}

bool order_tf_records(const struct workload *w)
{
	return workload_format(w)->flags & FORMAT_STREAM &&
	       workload_loader(w)->flags & LOADER_ITERATES;
}

uint64_t order_dlio_files(uint64_t files, uint64_t samples_per_file, uint64_t batch, uint64_t ranks)
{
	uint64_t step;

	if (__builtin_mul_overflow(batch, ranks, &step) ||
	    __builtin_mul_overflow(step, samples_per_file, &step) || step == 0)
		return 0;
	return files / step * step;
}

static uint64_t files_in(const struct order *o)
{
	return o->counts ? o->counts->files : o->samples / o->samples_per_file;
}

/* Of the files of this order. */
static uint64_t files_kept(const struct order *o, const struct workload *w)
{
	uint64_t files = files_in(o);

	if (o->samples_per_file != 1 && !w->compat.dlio)
		return files;
	return order_dlio_files(files, o->samples_per_file, o->batch, o->ranks);
}

void order_dlio_block(uint64_t samples, uint32_t ranks, uint32_t rank, uint64_t *first,
		      uint64_t *count)
{
	uint64_t block = samples / ranks + (samples % ranks != 0);

	/* rank * block may pass the end by up to ranks * ranks: the last ranks can be empty. */
	if (__builtin_mul_overflow(block, (uint64_t)rank, first) || *first > samples)
		*first = samples;
	*count = samples - *first < block ? samples - *first : block;
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

static void init_tf_records(struct order *o, const struct workload *w, uint64_t seed,
			    uint64_t epoch)
{
	struct stream_rules *s = &o->stream;

	o->how = ORDER_TF_RECORDS;
	s->files = o->samples / o->samples_per_file;
	s->samples_per_file = o->samples_per_file;
	s->ranks = o->ranks;
	s->cycle = (uint32_t)w->reader.read_threads;
	s->ahead = w->reader.interleave == INTERLEAVE_ONE ? 0 : 2 * s->cycle;
	s->block = w->reader.interleave == INTERLEAVE_READS ? 1 : (uint64_t)w->reader.block_length;
	if (o->ranks == 0 || o->batch == 0)
		return;
	if (w->reader.order == ORDER_DLIO) {
		s->files = files_kept(o, w);
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

static void init_tf_lists(struct order *o, const struct workload *w, uint64_t files, uint64_t seed,
			  uint64_t epoch)
{
	if (!(workload_loader(w)->flags & LOADER_ITERATES))
		return;
	o->how = ORDER_TF_LISTS;
	o->files = files;
	o->shuffle_files = w->reader.file_shuffle != SHUFFLE_OFF;
	perm_init(&o->perm, files, rng_key(seed, w->train.seed_change_epoch ? epoch : 0, 0));
}

/* Every rank has the same block but the last ones, which set the number of steps for all. */
static void init_dlio(struct order *o, const struct workload *w, uint64_t seed, uint64_t epoch)
{
	uint64_t files = files_kept(o, w), samples = files * o->samples_per_file;
	uint64_t first, last_count;

	o->how = ORDER_SEQUENTIAL;
	if (o->ranks == 0 || o->batch == 0)
		return;
	init_tf_lists(o, w, files, seed, epoch);
	o->block = samples / o->ranks + (samples % o->ranks != 0);
	order_dlio_block(samples, o->ranks, o->ranks - 1, &first, &last_count);
	o->used = last_count / o->batch * o->batch * o->ranks;
}

static void init_shuffled(struct order *o, const struct workload *w, uint64_t seed, uint64_t epoch)
{
	uint64_t key = key_of_epoch(w, seed, epoch);

	o->block = whole_steps(o->samples, o->batch, o->ranks) * o->batch;
	o->used = o->block * o->ranks;
	if (w->reader.sample_shuffle != SHUFFLE_OFF) {
		o->how = ORDER_SAMPLES;
		perm_init(&o->perm, o->samples, key);
	} else if (w->reader.file_shuffle != SHUFFLE_OFF) {
		o->how = ORDER_FILES;
		perm_init(&o->perm, files_in(o), key);
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

/* Divided as init_strided does. */
static void init_listed(struct order *o, const struct workload *w, int part)
{
	if (o->ranks == 0 || o->batch == 0)
		return;
	o->how = ORDER_LISTED;
	o->total = w->recorded && w->recorded->part[part].epochs
			   ? recorded_visits_least(w->recorded, part)
			   : o->samples;
	o->used = o->total / o->ranks / o->batch * o->batch * o->ranks;
}

/* Of the loader's own library, from a list. */
static void init_dealt(struct order *o, const struct workload *w)
{
	struct deal d;

	o->how = ORDER_DEALT;
	if (o->ranks == 0 || o->batch == 0)
		return;
	deal_rules(&d, w, o->samples, o->ranks, o->batch, 0, 1);
	o->total = deal_entries(&d);
	o->used = deal_steps(&d) * o->batch * o->ranks;
}

uint64_t order_fill(const struct workload *w, uint64_t samples)
{
	uint64_t fill = w->reader.sample_shuffle != SHUFFLE_OFF && w->reader.shuffle_size > 1
				? (uint64_t)w->reader.shuffle_size
				: 1;

	if (fill > ORDER_FILL_MAX)
		fill = ORDER_FILL_MAX;
	return samples && fill > samples ? samples : fill;
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
	o->fill = order_fill(w, o->samples);
	o->seed = (uint32_t)(seed + (w->train.seed_change_epoch ? epoch - 1 : 0));
}

static void init_streams(struct order *o, const struct workload *w, uint64_t seed, uint64_t epoch)
{
	struct shard_rules *s = &o->shards;

	o->how = ORDER_STREAMS;
	s->files = files_in(o);
	s->samples_per_file = o->samples_per_file;
	s->counts = o->counts;
	s->batch = o->batch;
	s->ranks = o->ranks;
	s->workers = (uint32_t)w->reader.read_threads;
	s->seed = seed + (w->train.seed_change_epoch ? epoch - 1 : 0);
	if (w->reader.file_shuffle != SHUFFLE_OFF)
		s->file_buffer = (uint64_t)w->reader.file_shuffle_size;
	if (w->reader.sample_shuffle != SHUFFLE_OFF) {
		s->buffer = (uint64_t)w->reader.shuffle_size;
		s->initial = (uint64_t)w->reader.shuffle_initial;
	}
	if (s->buffer > ORDER_FILL_MAX)
		s->buffer = ORDER_FILL_MAX;
	if (s->file_buffer > ORDER_FILL_MAX)
		s->file_buffer = ORDER_FILL_MAX;
	if (o->ranks == 0 || o->batch == 0)
		return;
	/* DLIO gives every rank as many files */
	if (w->compat.dlio)
		s->files -= s->files % o->ranks;
	o->used = shard_steps_least(s) * o->batch * o->ranks;
}

static void init(struct order *o, const struct workload *w, int part,
		 const struct sample_counts *counts, uint64_t samples, uint32_t ranks,
		 uint64_t batch, uint64_t seed, uint64_t epoch)
{
	int64_t per_file = w->dataset.num_samples_per_file;

	memset(o, 0, sizeof(*o));
	o->counts = counts;
	assert(epoch > 0);
	o->samples = samples;
	o->samples_per_file = per_file > 0 ? (uint64_t)per_file : 1;
	o->ranks = ranks;
	o->batch = batch;
	if (counts)
		o->samples_per_file = counts->stride;
	if (workload_loader(w)->flags & LOADER_STREAMS)
		init_streams(o, w, seed, epoch);
	else if (workload_loader(w)->deal != DEAL_NONE)
		init_dealt(o, w);
	else if (order_tf_records(w))
		init_tf_records(o, w, seed, epoch);
	else if (w->reader.order == ORDER_DLIO)
		init_dlio(o, w, seed, epoch);
	else if (w->reader.order == ORDER_DISTRIBUTED || w->reader.order == ORDER_RANDOM)
		init_strided(o, w);
	else if (w->reader.order == ORDER_SHARDED)
		init_shards(o, w, seed, epoch);
	else if (w->reader.order == ORDER_RECORDED)
		init_listed(o, w, part);
	else
		init_shuffled(o, w, seed, epoch);
}

void order_init(struct order *o, const struct workload *w, uint64_t samples, uint32_t ranks,
		uint64_t batch, uint64_t seed, uint64_t epoch)
{
	init(o, w, RECORDED_TRAIN, NULL, samples, ranks, batch, seed, epoch);
}

void order_init_evaluation(struct order *o, const struct workload *w, uint64_t samples,
			   uint32_t ranks, uint64_t batch, uint64_t seed, uint64_t epoch)
{
	init(o, w, RECORDED_EVAL, NULL, samples, ranks, batch, seed, epoch);
}

void order_of_dataset(struct order *o, const struct workload *w, const struct dataset *d,
		      enum dataset_kind kind, uint32_t ranks, uint64_t batch, uint64_t seed,
		      uint64_t epoch)
{
	init(o, w, kind == DATASET_EVAL ? RECORDED_EVAL : RECORDED_TRAIN, dataset_counts(d, kind),
	     dataset_samples(d, kind), ranks, batch, seed, epoch);
}

uint64_t order_steps(const struct order *o)
{
	return o->used == 0 ? 0 : o->used / o->ranks / o->batch;
}

/* Positions in the order in which files are taken, by the sums of their samples. */
static uint64_t in_shuffled_files(const struct order *o, uint64_t position)
{
	const uint64_t *sum = o->list->wide;
	uint64_t place = place_of_sum(sum, o->counts->files, position);

	return perm_at(&o->perm, place) * o->samples_per_file + (position - sum[place]);
}

/* The nth sample that comes, counted without the numbers that are nobody's. */
static uint64_t nth_at(const struct order *o, uint64_t position)
{
	switch (o->how) {
	case ORDER_SAMPLES:
		return perm_at(&o->perm, position);
	case ORDER_FILES:
		return perm_at(&o->perm, position / o->samples_per_file) * o->samples_per_file +
		       position % o->samples_per_file;
	case ORDER_STRIDED:
		/* a division for each sample would be most of what it costs */
		position = position < o->samples ? position : position % o->samples;
		return o->list ? order_list_at(o->list, position) : position;
	case ORDER_DEALT:
		return o->list ? order_list_at(o->list, position) : position % o->samples;
	case ORDER_LISTED:
		return o->list ? order_list_at(o->list, position) : position;
	case ORDER_SHARDS:
	case ORDER_SEQUENTIAL:
	case ORDER_TF_RECORDS:
	case ORDER_TF_LISTS:
	case ORDER_STREAMS:
		break;
	}
	return position;
}

uint64_t order_sequence_at(const struct order *o, uint64_t position)
{
	if (!o->counts)
		return nth_at(o, position);
	if (o->how == ORDER_FILES)
		return in_shuffled_files(o, position);
	return sample_number(o->counts, nth_at(o, position));
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

/* Entry k of a rank's list. Only the first looks at the rank. */
static uint64_t tf_list_at(const struct order *o, uint32_t rank, uint64_t k)
{
	uint64_t file = k == 0 ? rank * (o->files / o->ranks % o->files)
			       : k / o->samples_per_file % o->files;

	if (o->shuffle_files)
		file = perm_at(&o->perm, file);
	return file * o->samples_per_file + k % o->samples_per_file;
}

uint64_t order_at(const struct order *o, uint32_t rank, uint64_t k)
{
	uint64_t first, count, total;

	if (o->how == ORDER_TF_LISTS)
		return tf_list_at(o, rank, k);
	if (o->how == ORDER_STRIDED || o->how == ORDER_LISTED || o->how == ORDER_DEALT)
		return order_sequence_at(o, rank + k * o->ranks);
	if (o->how != ORDER_SHARDS)
		return order_sequence_at(o, rank * o->block + k);
	order_shard(o, rank, &first, &count, &total);
	return sample_number(o->counts, first + (k < count ? k : count - 1));
}

static uint64_t rank_steps(const struct order *o)
{
	return order_steps(o) * o->batch;
}

uint64_t order_repeats(const struct order *o)
{
	uint64_t repeats = 0;

	if (o->how == ORDER_STRIDED || o->how == ORDER_DEALT)
		return o->used > o->samples ? o->used - o->samples : 0;
	for (uint32_t r = 0; o->how == ORDER_SHARDS && r < o->ranks; r++) {
		uint64_t first, count, total;

		order_shard(o, r, &first, &count, &total);
		repeats += rank_steps(o) > count;
	}
	return repeats;
}
