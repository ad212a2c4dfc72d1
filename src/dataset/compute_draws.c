/* What DLIO's and our own generators are seeded with. */
#include "dataset/compute_draws.h"

#include "dataset/order.h"

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
