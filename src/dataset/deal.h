#pragma once
/* The orders in which MosaicML Streaming and LitData deal out samples. Both hand whole lists to the
 * ranks, cut them into batches, and give batch k of a rank to its worker k mod workers, as
 * PyTorch's DataLoader does with the others; so one list of all ranks says everything: entry k *
 * ranks + r is sample k of rank r, and behind the whole steps comes what is left.
 *
 * MDS (streaming 0.13.0, base/partition/orig.py, base/shuffle/{py1e, py1s, py1br, py2s,
 * naive}.py): the dataset is divided into canonical nodes, whose samples take turns; those of a
 * node's ranks take turns, too; samples are repeated until all ranks have the same number. The
 * shuffle comes before.
 *
 * LitData (0.2.64, utilities/shuffle.py, streaming/shuffle.py): each worker has a number of whole
 * batches; the chunks, with the shuffle in a permuted order (FullShuffle, else NoShuffle), are
 * dealt out one after another, and one at a border is cut; a worker goes through its part of a
 * chunk in another permutation. */
#include <stdbool.h>
#include <stdint.h>

#include "dataset/order.h"

struct deal {
	enum loader_deal of;
	uint64_t samples, samples_per_file, batch;
	uint32_t ranks, workers; /* workers of a rank, at least 1 */
	uint64_t nodes, canonical, block;
	int algorithm; /* enum shuffle_algorithm */
	bool shuffle;
	uint64_t seed, epoch; /* epoch as the library counts */
};

/* Of an epoch, from 1. */
void deal_rules(struct deal *d, const struct workload *w, uint64_t samples, uint32_t ranks,
		uint64_t batch, uint64_t seed, uint64_t epoch);
/* Entries of the list; steps of whole batches that every rank has. 0 where the library deals out
 * nothing: fewer samples than canonical nodes. */
uint64_t deal_entries(const struct deal *d);
uint64_t deal_steps(const struct deal *d);
/* Bytes that deal_fill needs; aligned to 8. */
uint64_t deal_memory(const struct deal *d);
void deal_fill(const struct deal *d, struct order_list *l, void *memory);
