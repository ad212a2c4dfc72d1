#pragma once
/* Which sample a rank reads at each position of an epoch: a pure function of (seed, epoch, rank,
 * position), in constant memory. And the proof that an epoch was complete. */
#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/perm.h"
#include "dataset/order_list.h"
#include "workload/workload.h"

/* Places of DALI's shuffle buffer at most. */
#define ORDER_FILL_MAX (1u << 30)

struct order {
	enum { ORDER_SEQUENTIAL, ORDER_SAMPLES, ORDER_FILES, ORDER_STRIDED, ORDER_SHARDS } how;
	uint64_t samples; /* in the dataset */
	uint64_t samples_per_file;
	uint64_t used; /* samples of this epoch over all ranks: a whole number of steps */
	uint32_t ranks;
	uint64_t block; /* consecutive positions of one rank */
	uint64_t batch; /* samples of a batch */
	struct perm perm;
	/* ORDER_STRIDED: rank r has positions r, r + ranks, ... of a sequence of `total` */
	const struct order_list *list; /* the caller's, set after order_init; NULL: ascending */
	uint64_t total; /* with repeats, or without what was left out; SHARDS: of one rank */
	/* ORDER_SHARDS */
	uint32_t shift; /* rank r has shard (r + shift) mod ranks */
	bool one_shard; /* every rank has shard 0, as DLIO's readers have */
	uint64_t fill;  /* places of the shuffle buffer (order_stream.h) */
	uint32_t seed;  /* of its picks */
};

/* The order of one epoch. Default (ORDER_SHUFFLED): rank r has positions [r*block, (r+1)*block) of
 * one global sequence, block = floor(samples / (batch * ranks)) * batch; the sequence is a keyed
 * permutation of all samples (sample_shuffle), of all files (file_shuffle alone), or ascending
 * (both off). Key: seed, plus the epoch if seed_change_epoch; for a random shuffle the caller hands
 * in a seed that all ranks share. ORDER_DLIO: rank r has samples [r*P, (r+1)*P), P = ceil(samples /
 * ranks), ascending, every epoch the same, cut to the whole batches of the rank that has fewest;
 * `samples` are those of the files that order_dlio_files leaves. `epoch` from 1. `samples` must be
 * a whole number of files.
 *
 * ORDER_DISTRIBUTED: PyTorch's DistributedSampler. A permutation of all samples (order_list.h; with
 * sample_shuffle off ascending), made a multiple of `ranks` by repeating its beginning, or with
 * reader.drop_last by leaving out its end; rank r has every ranks-th from r on; short batches are
 * dropped. ORDER_RANDOM: its RandomSampler, of one rank. With order_list_wanted the caller sets
 * o->list before a sample is asked for.
 *
 * ORDER_SHARDED: DALI's readers. Rank r reads shard s = r, in later epochs r + epoch - 1 unless
 * reader.stick_to_shard, modulo ranks: samples [floor(n s / ranks), floor(n (s+1) / ranks)); with
 * reader.pad_last_batch the shorter shards repeat a sample. What is handed out when is
 * order_stream's to say: order_at is the order of reading. */
void order_init(struct order *o, const struct workload *w, uint64_t samples, uint32_t ranks,
		uint64_t batch, uint64_t seed, uint64_t epoch);
/* Steps every rank makes in the epoch: the same number for all. */
uint64_t order_steps(const struct order *o);
/* The global sample (file = s / samples_per_file) at position `k` (< steps * batch) of `rank`. */
uint64_t order_at(const struct order *o, uint32_t rank, uint64_t k);

/* ORDER_SHARDS: the samples a rank reads, and how many it hands out, one repeated by padding. */
void order_shard(const struct order *o, uint32_t rank, uint64_t *first, uint64_t *count,
		 uint64_t *total);
/* Samples that the order itself gives out more than once among those of whole steps. */
uint64_t order_repeats(const struct order *o);

/* A multiset of samples in three words: count and two independent sums of 64-bit mixes. Two equal
 * multisets have equal proofs; different ones differ but for about one chance in 2^64. */
struct order_proof {
	uint64_t count, sum_a, sum_b;
};
void order_proof_add(struct order_proof *p, uint64_t sample);
void order_proof_merge(struct order_proof *into, const struct order_proof *from);
/* The multiset 0..n-1, restricted to [first, last). */
void order_proof_range(struct order_proof *p, uint64_t first, uint64_t last);
/* What `rank` was to deliver but did not, after `steps_done` of its steps, plus (rank 0 only) the
 * samples that fill no whole step. */
void order_proof_undelivered(struct order_proof *p, const struct order *o, uint32_t rank,
			     uint64_t steps_done);
/* delivered + undelivered == all samples, each once, and those that the order repeats? `why` gets
 * the sentence either way. */
bool order_proof_check(const struct order *o, const struct order_proof *delivered,
		       const struct order_proof *undelivered, char *why, size_t why_size);
