#pragma once
/* The order in which DLIO itself reads: pure functions that reproduce what it computes, so that the
 * order given with reader.order "dlio" is known to be its own. */
#include <stdint.h>

#include "base/err.h"

/* How many of `files` DLIO keeps before an epoch, so that all ranks make the same number of steps:
 * a multiple of batch * ranks with one sample a file. Its formula takes samples for files when a
 * file holds several (and then drops most of the dataset); here nothing is cut in that case. */
uint64_t order_dlio_files(uint64_t files, uint64_t samples_per_file, uint64_t batch,
			  uint64_t ranks);

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

/* First sample of a rank, and how many it has: blocks of ceil(samples / ranks). */
void order_dlio_block(uint64_t samples, uint32_t ranks, uint32_t rank, uint64_t *first,
		      uint64_t *count);

/* The index sampler's map of an epoch (from 1) in the order of its insertion. `out` holds the
 * rank's count of entries. The loader looks entries up by ascending sample, so the order shows only
 * in what a worker opens when it starts. -ENOMEM when the order cannot be held. */
int order_dlio_index_map(const struct order_dlio *c, uint64_t epoch, uint32_t rank,
			 struct order_dlio_entry *out, struct err *e);

/* The iterative sampler's lists of an epoch. `file_list` (c->files file numbers, ascending before
 * the first epoch) is shuffled in place and must be handed from epoch to epoch. Entry i goes to
 * thread thread[i]; each thread's list is its entries in this order. ERR_USAGE when a rank has
 * fewer samples than threads, with which DLIO divides by zero. */
int order_dlio_iterative_map(const struct order_dlio *c, uint64_t epoch, uint32_t rank,
			     uint64_t *file_list, struct order_dlio_entry *out, uint32_t *thread,
			     struct err *e);
