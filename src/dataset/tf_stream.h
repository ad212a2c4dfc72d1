#pragma once
/* The order of records that a pipeline of tf.data delivers: a list of files, each read from its
 * first record to its last, several in turn, through a shuffle buffer. A pure function of the rules
 * and the rank, but one that is walked from its beginning and not asked at any position.
 *
 * The parts are those that a loader needs to live through the same order with real reads: who gives
 * the next record (stream_cycle), which one leaves the shuffle buffer (stream_shuffle). stream_next
 * is both without any read: the plan, and what the proof of an epoch is held against. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/rng.h"

/* Of one epoch, the same for all ranks. */
struct stream_rules {
	uint64_t files, samples_per_file;
	uint32_t ranks;
	/* Files read in turn, `block` records of each (0 is 1), and further files whose first
	 * records are read ahead: num_parallel_reads = k, and interleave with num_parallel_calls,
	 * are 2k ahead; interleave without them has none. 0: one file after another. */
	uint32_t cycle, ahead;
	uint64_t block;
	uint64_t shuffle; /* records of the shuffle buffer; 0: none */
	uint64_t seed_low, seed_high;
	bool shuffle_files;
	struct perm perm; /* of files */
};

/* Records a rank keeps. It reads every ranks-th file, or with fewer files than ranks all of them,
 * of which it then keeps every ranks-th record that leaves the shuffle buffer. */
uint64_t stream_records(const struct stream_rules *r, uint32_t rank);
/* What the rank with fewest keeps: it sets the steps for all. */
uint64_t stream_records_least(const struct stream_rules *r);

/* What tf.data's interleaves do (kernels/data/experimental/parallel_interleave_dataset_op.cc, and
 * the files of that name and of interleave beside it), in order: the first `cycle` workers take
 * turns, the next
 * `ahead` wait in a line with files of their own. When it is the turn of a worker whose file has
 * ended, that worker gets the next file and goes to the end of the line, the first of the line
 * takes its place, and the turn passes on. */
struct stream_worker {
	uint64_t file, next, left; /* records of the file: the next one, those not given */
};

struct stream_cycle {
	const struct stream_rules *rules;
	uint32_t rank;
	uint64_t files, given; /* of the rank; handed to workers */
	uint32_t *place, places, turn;
	uint64_t in_block; /* records given since the turn came */
	uint32_t *line, line_room, line_first, line_length;
	struct stream_worker *worker;
	/* Told of each file that a worker gets; may be NULL. */
	void (*assign)(void *arg, uint32_t worker, uint64_t file);
	void *arg;
};

size_t stream_cycle_bytes(const struct stream_rules *r);
/* `memory` is lent, aligned to 8. The first files are assigned at once. */
void stream_cycle_begin(struct stream_cycle *c, const struct stream_rules *r, uint32_t rank,
			void *memory, void (*assign)(void *arg, uint32_t worker, uint64_t file),
			void *arg);
/* Which worker gives the next record, and which sample that is. false after the last one. */
bool stream_cycle_next(struct stream_cycle *c, uint32_t *worker, uint64_t *sample);

/* Places of a shuffle buffer (kernels/data/shuffle_dataset_op.cc). It is filled before anything
 * leaves it; the caller keeps what lies at its places. */
struct stream_shuffle {
	uint64_t places, begin, end;
	struct philox random;
};

/* Places a rank's buffer needs: no more than it reads records. */
uint64_t stream_shuffle_places(const struct stream_rules *r, uint32_t rank);
void stream_shuffle_begin(struct stream_shuffle *s, const struct stream_rules *r, uint32_t rank);
static inline bool stream_shuffle_full(const struct stream_shuffle *s)
{
	return s->end - s->begin == s->places;
}
/* Where the next record is to be put; the buffer must not be full. */
uint64_t stream_shuffle_put(struct stream_shuffle *s);
/* Which record leaves: what lies at *pick, whose place is then filled with what lies at *front.
 * false when the buffer is empty. */
bool stream_shuffle_take(struct stream_shuffle *s, uint64_t *pick, uint64_t *front);

/* The whole plan of a rank. */
struct stream {
	struct stream_cycle cycle;
	struct stream_shuffle shuffle;
	uint64_t *buffer;
	uint64_t left; /* out of the shuffle buffer so far */
	bool by_record;
};

/* `memory`: stream_cycle_bytes, and 8 bytes for each of stream_shuffle_places. */
void stream_begin(struct stream *s, const struct stream_rules *r, uint32_t rank, void *memory);
/* The next sample that the rank keeps; false at the end. */
bool stream_next(struct stream *s, uint64_t *sample);
