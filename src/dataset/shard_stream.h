#pragma once
/* The order of samples that WebDataset delivers: shards are dealt out to ranks, and a rank's to its
 * workers, each of which goes through its own in an order that a buffer of shards gives, from the
 * first sample of a shard to its last, through a buffer of samples. Everything is a pure function
 * of the rules, and walked from its beginning.
 *
 * A worker with real reads goes through the same steps as the plan: while shard_stream_wants says
 * so it reads the sample it is told and calls shard_stream_add; then shard_stream_take delivers.
 *
 * (Reference: webdataset 1.0.2: shardlists.py split_by_node and split_by_worker, filters.py
 * _shuffle, pick and detshuffle; CPython's Lib/random.py.) */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/rng.h"
#include "dataset/sample_counts.h"

/* WebDataset's `initial` of the buffer of shards. */
#define SHARD_INITIAL 100u

/* Of one epoch, the same for all ranks. */
struct shard_rules {
	uint64_t files, samples_per_file, batch;
	const struct sample_counts *counts; /* NULL: all files have samples_per_file */
	uint32_t ranks, workers;            /* of a rank; 0 is 1: the rank itself */
	uint64_t file_buffer;               /* shards of the buffer; 0: none */
	uint64_t buffer, initial; /* samples, and with how many it begins to deliver; 0: none */
	uint64_t seed;            /* of both buffers, in every worker */
};

/* Whole batches that a worker has. */
uint64_t shard_batches(const struct shard_rules *r, uint32_t rank, uint32_t worker);
/* All of a rank's; those of the rank that has fewest, which sets the steps for all. With counts
 * linear in the files. */
uint64_t shard_steps(const struct shard_rules *r, uint32_t rank);
uint64_t shard_steps_least(const struct shard_rules *r);

/* A buffer out of which one is drawn while it is filled: up to two come in for each that goes. */
struct shard_buffer {
	uint64_t *item, have, size, initial;
	unsigned came; /* since one was drawn: 0, 1, or 2 when no further one is asked for */
	bool ended;
	struct rng_np random;
};

struct shard_stream {
	const struct shard_rules *rules;
	uint32_t rank, worker;
	uint64_t files, dealt; /* of this worker */
	struct shard_buffer shards, samples;
	uint64_t file, in_file; /* being read; its samples that were read */
	bool open;
};

/* Bytes of memory that a worker's stream needs; aligned to 8. */
size_t shard_stream_bytes(const struct shard_rules *r);
/* Begins the worker's epoch. The rules stay where they are; `memory` is lent. */
void shard_stream_begin(struct shard_stream *s, const struct shard_rules *r, uint32_t rank,
			uint32_t worker, void *memory);
/* Whether a sample has to be read before the next is delivered; *sample says which. */
bool shard_stream_wants(struct shard_stream *s, uint64_t *sample);
/* The sample last asked for was read. */
void shard_stream_add(struct shard_stream *s, uint64_t sample);
/* The sample that is delivered now; false: there is none left. Nothing is wanted. */
bool shard_stream_take(struct shard_stream *s, uint64_t *sample);

/* For one who looks ahead, with a stream that is asked nothing else: the file that the worker reads
 * next; false: there is none left. */
bool shard_stream_next_file(struct shard_stream *s, uint64_t *file);
