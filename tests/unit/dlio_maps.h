#pragma once
/* The sample maps that DLIO itself makes, with NumPy's random numbers: held against recorded ones,
 * and then what reader.order "dlio" is held against. */
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/rng.h"
#include "dataset/order.h"

/* What the sample maps depend on. `files` is the number after trimming. */
struct order_dlio {
	uint64_t files, samples_per_file;
	uint32_t ranks;
	uint32_t threads; /* read_threads; 0 counts as 1 */
	uint32_t seed;
	int seed_change_epoch;
	int file_shuffle;   /* the key was given, even as "off": DLIO shuffles then too */
	int sample_shuffle; /* 0: off */
};

/* One entry of a map: global sample, file number, sample in the file. */
struct order_dlio_entry {
	uint64_t sample, file, in_file;
};

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

/* The index sampler's map of an epoch (from 1) in the order of its insertion. `out` holds the
 * rank's count of entries. The loader looks entries up by ascending sample, so the order shows only
 * in what a worker opens when it starts. -ENOMEM when the order cannot be held. */
static int order_dlio_index_map(const struct order_dlio *c, uint64_t epoch, uint32_t rank,
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

/* The iterative sampler's lists of an epoch. `file_list` (c->files file numbers, ascending before
 * the first epoch) is shuffled in place and must be handed from epoch to epoch. Entry i goes to
 * thread thread[i]; each thread's list is its entries in this order. ERR_USAGE when a rank has
 * fewer samples than threads, with which DLIO divides by zero. */
static int order_dlio_iterative_map(const struct order_dlio *c, uint64_t epoch, uint32_t rank,
				    uint64_t *file_list, struct order_dlio_entry *out,
				    uint32_t *thread, struct err *e)
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
