#pragma once
/* A sequence of samples that is held in memory because nothing can be asked for one position alone:
 * a permutation of PyTorch's randperm, or the recorded order of a real job. One list serves all
 * ranks of a process; 4 bytes a sample, 8 from 2^32 samples on. */
#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "workload/workload.h"

struct order_list {
	uint64_t n;
	uint32_t *narrow; /* n < 2^32 */
	uint64_t *wide;
};

/* Whether this workload's order takes a list. */
bool order_list_wanted(const struct workload *w);
uint64_t order_list_bytes(uint64_t n);
/* Entries of the list for samples of training, or of evaluations, of which the dataset has
 * `samples`; 0: none is taken. */
uint64_t order_list_entries(const struct workload *w, bool evaluation, uint64_t samples);
/* Takes the memory for n samples. Release in any case. */
int order_list_init(struct order_list *l, uint64_t n, struct err *e);
void order_list_release(struct order_list *l);
/* The permutation of epoch `epoch` (from 1). distributed: randperm of an engine seeded with seed +
 * epoch - 1 (DistributedSampler counts from 0), or seed alone without train.seed_change_epoch.
 * random: RandomSampler's, after manual_seed(seed): each epoch draws a base seed for the workers
 * (persistent workers: the first one only) and then the seed of its permutation. recorded: what the
 * file has. No reader may be under way. */
void order_list_fill(struct order_list *l, const struct workload *w, bool evaluation, uint64_t seed,
		     uint64_t epoch);

static inline uint64_t order_list_at(const struct order_list *l, uint64_t i)
{
	return l->narrow ? l->narrow[i] : l->wide[i];
}
