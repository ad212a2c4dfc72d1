/* DLIO's own arithmetic of files, blocks and sample maps, with NumPy's random numbers. */
#include "dataset/order_dlio.h"

#include <errno.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/rng.h"

uint64_t order_dlio_files(uint64_t files, uint64_t samples_per_file, uint64_t batch, uint64_t ranks)
{
	uint64_t step;

	if (samples_per_file != 1)
		return files;
	if (__builtin_mul_overflow(batch, ranks, &step) || step == 0)
		return 0;
	return files / step * step;
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

/* The rank's samples, shuffled as NumPy would from a fresh seed of the epoch. Heap. */
static uint64_t *rank_samples(const struct order_dlio *c, uint64_t epoch, uint32_t rank,
			      uint64_t *count, struct err *e)
{
	uint64_t first, *ids;
	struct rng_np rng;

	order_dlio_block(c->files * c->samples_per_file, c->ranks, rank, &first, count);
	ids = try_calloc(*count ? *count : 1, sizeof(*ids), "the sample map of a rank", e);
	if (!ids)
		return NULL;
	for (uint64_t i = 0; i < *count; i++)
		ids[i] = first + i;
	if (c->sample_shuffle) {
		rng_np_seed(&rng, (uint32_t)(c->seed + (c->seed_change_epoch ? epoch : 0)));
		rng_np_shuffle_u64(&rng, ids, *count);
	}
	return ids;
}

int order_dlio_index_map(const struct order_dlio *c, uint64_t epoch, uint32_t rank,
			 struct order_dlio_entry *out, struct err *e)
{
	uint64_t count, *ids = rank_samples(c, epoch, rank, &count, e);

	if (!ids)
		return -ENOMEM;
	for (uint64_t i = 0; i < count; i++) {
		out[i].sample = ids[i];
		out[i].file = ids[i] / c->samples_per_file;
		out[i].in_file = ids[i] % c->samples_per_file;
	}
	free(ids);
	return 0;
}

int order_dlio_iterative_map(const struct order_dlio *c, uint64_t epoch, uint32_t rank,
			     uint64_t *file_list, struct order_dlio_entry *out, uint32_t *thread,
			     struct err *e)
{
	uint64_t samples = c->files * c->samples_per_file, threads = c->threads ? c->threads : 1;
	uint64_t per_thread = (samples / c->ranks + (samples % c->ranks != 0)) / threads;
	uint64_t count, *ids;
	struct rng_np rng;

	if (samples > 0 && per_thread == 0)
		return err_set(e, ERR_USAGE,
			       "%u ranks with %llu reading threads each are too many for %llu "
			       "samples: each thread needs at least one sample",
			       c->ranks, (unsigned long long)threads, (unsigned long long)samples);
	if (c->file_shuffle) {
		rng_np_seed(&rng, (uint32_t)(c->seed + (c->seed_change_epoch ? epoch : 0)));
		rng_np_shuffle_u64(&rng, file_list, c->files);
	}
	ids = rank_samples(c, epoch, rank, &count, e);
	if (!ids)
		return -ENOMEM;
	/* Only the first entry of a rank looks at the rank; all others begin at the first file. */
	for (uint64_t i = 0; i < count; i++) {
		uint64_t file = i == 0 ? rank * (c->files / c->ranks % c->files)
				       : i / c->samples_per_file % c->files;

		out[i].sample = ids[i];
		out[i].file = file_list[file];
		out[i].in_file = i % c->samples_per_file;
		thread[i] = (uint32_t)(i / per_thread % threads);
	}
	free(ids);
	return 0;
}
