#pragma once
/* Which sample a rank reads at each position of an epoch: a pure function of (seed, epoch, rank,
 * position), in constant memory. order_proof.h proves that an epoch kept it. */
#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/rng.h"
#include "dataset/dataset.h"
#include "dataset/sample_counts.h"
#include "dataset/shard_stream.h"
#include "dataset/tf_stream.h"
#include "workload/workload.h"

/* A sequence of samples that is held in memory because nothing can be asked for one position alone:
 * a permutation of PyTorch's randperm, or the recorded order of a real job. One list serves all
 * ranks of a process; 4 bytes a sample, 8 from 2^32 samples on. */

struct order_list {
	uint64_t n;
	/* Not NULL: no samples, but in `wide` the sums of the samples of files in their order. */
	const struct sample_counts *counts;
	uint32_t *narrow; /* n < 2^32 */
	uint64_t *wide;
	/* What it holds; epoch 0: nothing yet. */
	struct {
		bool evaluation;
		uint64_t seed, epoch;
	} filled;
	/* Of an order that is dealt (deal.h): what it is dealt over. */
	struct {
		uint64_t samples, batch;
		uint32_t ranks;
		void *memory;
	} deal;
};

/* Memory of a list. */
uint64_t order_list_bytes(uint64_t n);
/* Entries of the list for samples of training, or of evaluations, of which the dataset has
 * `samples`; 0: none is taken. */
uint64_t order_list_entries(const struct workload *w, bool evaluation, uint64_t samples);
/* The same for files of different lengths whose order alone is shuffled: entries, which are of 8
 * bytes; and the list of them, in place of order_list_init. */
uint64_t order_file_sums(const struct workload *w, const struct sample_counts *counts);
int order_list_init_files(struct order_list *l, const struct sample_counts *counts, struct err *e);
/* Memory of the list of an order that is dealt to `ranks` in batches, and of its shuffle; 0: there
 * is none. order_deal_init takes it, in place of order_list_init. */
uint64_t order_deal_bytes(const struct workload *w, uint64_t samples, uint32_t ranks,
			  uint64_t batch);
int order_deal_init(struct order_list *l, const struct workload *w, uint64_t samples,
		    uint32_t ranks, uint64_t batch, struct err *e);
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

/* Places of DALI's shuffle buffer at most. */
#define ORDER_FILL_MAX (1u << 30)

struct order {
	enum {
		ORDER_SEQUENTIAL,
		ORDER_SAMPLES,
		ORDER_FILES,
		ORDER_STRIDED,
		ORDER_LISTED,
		ORDER_DEALT,
		ORDER_SHARDS,
		ORDER_TF_RECORDS,
		ORDER_TF_LISTS,
		ORDER_STREAMS
	} how;
	uint64_t samples;                   /* in the dataset */
	uint64_t samples_per_file;          /* with counts, of the longest file */
	const struct sample_counts *counts; /* NULL: all files have the same */
	uint64_t used; /* samples of this epoch over all ranks: a whole number of steps */
	uint32_t ranks;
	uint64_t block; /* consecutive positions of one rank */
	uint64_t batch; /* samples of a batch */
	struct perm perm;
	/* ORDER_STRIDED: rank r has positions r, r + ranks, ... of a sequence of `total` */
	/* LISTED and DEALT: the same of a list */
	const struct order_list *list; /* the caller's, set after order_init; NULL: ascending */
	uint64_t total; /* with repeats, or without what was left out; SHARDS: of one rank; LISTED:
			 * of an epoch */
	/* ORDER_SHARDS */
	uint32_t shift;             /* rank r has shard (r + shift) mod ranks */
	bool one_shard;             /* with DLIO: all ranks have shard 0 */
	uint64_t fill;              /* places of the shuffle buffer (order_proof.h) */
	uint32_t seed;              /* of its picks */
	uint64_t files;             /* ORDER_TF_LISTS: that are left */
	bool shuffle_files;         /* ORDER_TF_LISTS */
	struct stream_rules stream; /* ORDER_TF_RECORDS */
	struct shard_rules shards;  /* ORDER_STREAMS */
};

/* Whether the workload's loader has an order of its own, that of tf.data's TFRecordDataset. */
bool order_tf_records(const struct workload *w);

/* The order of one epoch. Default (ORDER_SHUFFLED): rank r has positions [r*block, (r+1)*block) of
 * one global sequence, block = floor(samples / (batch * ranks)) * batch; the sequence is a keyed
 * permutation of all samples (sample_shuffle), of all files (file_shuffle alone), or ascending
 * (both off). Key: seed, plus the epoch if seed_change_epoch; for a random shuffle the caller hands
 * in a seed that all ranks share. ORDER_DLIO: rank r has samples [r*P, (r+1)*P), P = ceil(samples /
 * ranks), ascending, every epoch the same, cut to the whole batches of the rank that has fewest;
 * `samples` are those of the files that order_dlio_files leaves, which without compat.dlio cuts
 * only where a file has one sample. `epoch` from 1. `samples` must be a whole number of files.
 *
 * ORDER_DISTRIBUTED: PyTorch's DistributedSampler. A permutation of all samples (below; with
 * sample_shuffle off ascending), made a multiple of `ranks` by repeating its beginning, or with
 * reader.drop_last by leaving out its end; rank r has every ranks-th from r on; short batches are
 * dropped. ORDER_RANDOM: its RandomSampler, of one rank. Where order_list_entries is not 0 the
 * caller sets o->list before a sample is asked for.
 *
 * ORDER_SHARDED: DALI's readers. Rank r reads shard s = r, in later epochs r + epoch - 1 unless
 * reader.stick_to_shard, modulo ranks: samples [floor(n s / ranks), floor(n (s+1) / ranks)); with
 * reader.pad_last_batch the shorter shards repeat a sample. What is handed out when is
 * order_stream's to say: order_at is the order of reading.
 *
 * ORDER_TF_LISTS, ORDER_DLIO with the tensorflow loader but not order_tf_records: DLIO's iterative
 * lists, by which every rank reads from the first file on, but for its first sample (file_shuffle:
 * of a keyed permutation of the files). With more than one rank the proof fails, as it should.
 *
 * ORDER_TF_RECORDS, whenever order_tf_records: file_shuffle is a keyed permutation of the files
 * (list_files' shuffle), sample_shuffle the shuffle buffer of shuffle_size records with
 * TensorFlow's seeds (87654321, seed), drawn again each epoch if seed_change_epoch
 * (reshuffle_each_iteration). ORDER_DLIO there: files ascending and cut as above, the buffer drawn
 * again whatever seed_change_epoch is. All ranks make the steps of the one with fewest records.
 *
 * ORDER_STREAMS, whenever the loader has LOADER_STREAMS: each worker goes through files of its own
 * (shard_stream.h), with file_shuffle through a buffer of reader.file_shuffle_size files, with
 * sample_shuffle through one of shuffle_size samples that delivers from shuffle_initial on. Seed:
 * seed, plus epoch - 1 if seed_change_epoch. All ranks make the steps of the one with fewest whole
 * batches. With compat.dlio the last files are left out where ranks would have different numbers.
 *
 * ORDER_DEALT, whenever the loader has a `deal`: that of the library (deal.h), from a list of all
 * samples, which may have some again so that all ranks have the same number.
 *
 * ORDER_RECORDED: the visits of a real job (workload/recorded_file.h), which may come to a sample
 * several times or never; rank r has every ranks-th from r on of the sequence that takes the
 * recorded ranks in turn. All epochs have the steps of the shortest. This is the order of training;
 * evaluations have order_init_evaluation, and without a recorded order ascending samples. */
void order_init(struct order *o, const struct workload *w, uint64_t samples, uint32_t ranks,
		uint64_t batch, uint64_t seed, uint64_t epoch);
/* The same for the samples of evaluations. */
void order_init_evaluation(struct order *o, const struct workload *w, uint64_t samples,
			   uint32_t ranks, uint64_t batch, uint64_t seed, uint64_t epoch);
/* The order of a kind of files of a dataset, whose counts it keeps: what runs have. */
void order_of_dataset(struct order *o, const struct workload *w, const struct dataset *d,
		      enum dataset_kind kind, uint32_t ranks, uint64_t batch, uint64_t seed,
		      uint64_t epoch);
/* Steps every rank makes in the epoch: the same number for all. */
uint64_t order_steps(const struct order *o);
/* The global sample (file = s / samples_per_file) at position `k` (< steps * batch) of `rank`. Not
 * for ORDER_TF_RECORDS and ORDER_STREAMS. */
uint64_t order_at(const struct order *o, uint32_t rank, uint64_t k);

/* How many of `files` DLIO keeps before an epoch, so that all ranks make the same number of steps:
 * a multiple of samples_per_file * batch * ranks (main.py, DLIOBenchmark.initialize). The formula
 * takes samples for files, so that with several samples a file most of a dataset may be left out,
 * or all of it. */
uint64_t order_dlio_files(uint64_t files, uint64_t samples_per_file, uint64_t batch,
			  uint64_t ranks);

/* First sample of a rank, and how many it has: blocks of ceil(samples / ranks). */
void order_dlio_block(uint64_t samples, uint32_t ranks, uint32_t rank, uint64_t *first,
		      uint64_t *count);

/* The sample at a position of the global sequence, of orders that have one. */
uint64_t order_sequence_at(const struct order *o, uint64_t position);
/* Places of the shuffle buffer of an order over `samples` samples (order_proof.h). */
uint64_t order_fill(const struct workload *w, uint64_t samples);
/* ORDER_SHARDS: the samples a rank reads, and how many it hands out, one repeated by padding. */
void order_shard(const struct order *o, uint32_t rank, uint64_t *first, uint64_t *count,
		 uint64_t *total);
/* Samples that the order itself gives out more than once among those of whole steps. */
uint64_t order_repeats(const struct order *o);

/* The generator of emulated computation: train.computation_time is drawn from it step by step. */

/* Seeds a rank's generator for an epoch (from 1). With compat.dlio as DLIO's is left by the
 * shuffles that come before: the same on every rank. False, and nothing seeded, where DLIO never
 * seeds it: in the first epoch it is then the system's, and goes on in the others. */
bool compute_draws_begin(struct rng_np *rng, const struct workload *w, const struct dataset *d,
			 uint64_t seed, uint32_t epoch, uint32_t rank, uint32_t ranks);
