/* The orders of the tensorflow loader. */
#include "dataset/order_tf.h"

#include <string.h>

#include "base/philox.h"
#include "base/rng.h"
#include "dataset/order_dlio.h"
#include "format/format.h"

/* TensorFlow's first seed of an operation that was given only its own. */
#define TF_GRAPH_SEED 87654321u

static uint64_t min_u64(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static bool is_tensorflow(const struct workload *w)
{
	return w->reader.data_loader && strcmp(w->reader.data_loader, "tensorflow") == 0;
}

bool order_tf_records(const struct workload *w)
{
	const struct format_ops *f = w->dataset.format ? format_find(w->dataset.format) : NULL;

	return f && f->is.flags & FORMAT_STREAM && is_tensorflow(w);
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

void order_tf_init(struct order *o, const struct workload *w, uint64_t seed, uint64_t epoch)
{
	struct stream_rules *s = &o->stream;

	o->how = ORDER_TF_RECORDS;
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

void order_tf_lists(struct order *o, const struct workload *w, uint64_t files, uint64_t seed,
		    uint64_t epoch)
{
	if (!is_tensorflow(w))
		return;
	o->how = ORDER_TF_LISTS;
	o->files = files;
	o->shuffle_files = w->reader.file_shuffle != SHUFFLE_OFF;
	perm_init(&o->perm, files, rng_key(seed, w->train.seed_change_epoch ? epoch : 0, 0));
}

/* Entry k of a rank's list. Only the first looks at the rank. */
uint64_t order_tf_list_at(const struct order *o, uint32_t rank, uint64_t k)
{
	uint64_t file = k == 0 ? rank * (o->files / o->ranks % o->files)
			       : k / o->samples_per_file % o->files;

	if (o->shuffle_files)
		file = perm_at(&o->perm, file);
	return file * o->samples_per_file + k % o->samples_per_file;
}

/* Each rank accounts for the end of its own list; rank 0 for the files that were cut. */
void order_tf_lists_undelivered(struct order_proof *p, const struct order *o, uint32_t rank,
				uint64_t steps_done)
{
	uint64_t first, count;

	order_dlio_block(o->files * o->samples_per_file, o->ranks, rank, &first, &count);
	for (uint64_t k = min_u64(steps_done, order_steps(o)) * o->batch; k < count; k++)
		order_proof_add(p, order_tf_list_at(o, rank, k));
	if (rank == 0)
		order_proof_range(p, o->files * o->samples_per_file, o->samples);
}
