#pragma once
/* State of the tf.data loader.
 *
 *   readers -> shuffle buffer -> batch -> map -> prefetch -> the rank
 *
 * Every stage is pulled by the one after it. Readers are threads with buffers of their own; map and
 * prefetch have a thread each, where the workload asks for them. What lies before map is done by
 * whoever pulls: map's thread, else that of prefetch, else the rank. */
#include "loader/crew.h"

#define READS_AHEAD 2        /* buffer_output_elements of num_parallel_reads, in records */
#define BATCHES_AHEAD 3      /* a generator's: 2 * block_length + 1 */
#define AUTOTUNE_PREFETCH 64 /* batches that AUTOTUNE goes to at most */
#define ERRORS_KEPT 16       /* sentences of failed records in the shuffle buffer */

/* A record on its way to its batch. */
struct record {
	uint64_t sample, payload_bytes;
	int64_t begun_ns, done_ns;
	struct batch_work work;
	uint32_t worker;
	uint32_t failed; /* 0: read; else its sentence is error[failed - 1] */
};

struct record_slot {
	struct record record;
	struct err err;
};

struct tf_batch {
	struct batch batch;      /* first: what the loader hands out */
	uint64_t sample;         /* the first one, for words */
	_Atomic uint32_t mapped; /* futex word */
};

struct tensorflow;

/* One that reads: of records a file at a time, or (generators) of whole batches. */
struct tf_reader {
	struct sample_reader *reader; /* of the crew */
	struct tensorflow *loader;
	uint32_t number;
	struct queue in;          /* files, as number + 1; generators: places in `out` */
	struct queue out;         /* record slots, or batches */
	struct record_slot *slot; /* the loader's `slots` */
};

/* One of map's calls. */
struct tf_mapper {
	struct sample_reader *reader; /* of the crew: it waits */
	struct tensorflow *loader;
};

struct tensorflow {
	struct crew crew;    /* first */
	bool records;        /* TFRecordDataset; else generators */
	bool woven;          /* of interleave: not of num_parallel_reads */
	uint32_t cycle;      /* read_threads */
	uint32_t ahead;      /* records of a file beside the one that its thread is at */
	uint32_t slots;      /* of a reader: those, one being read, one being taken */
	uint32_t threads;    /* that read; 0: whoever pulls */
	uint32_t calls;      /* of map; 0: whoever pulls */
	uint32_t mappers;    /* threads that are in map: as many as calls, or none */
	uint32_t prefetch;   /* batches at most; 0: no thread */
	bool autotune, wait; /* of prefetch; a workload's preprocess_time in map */
	bool parse;          /* the framework's code in map, at its cost */
	bool endless;        /* DLIO repeats the records and drops the iterator in the middle */

	struct tf_reader *reader; /* one for each of the crew's */
	struct record_slot *slot; /* of all readers */
	struct tf_mapper *mapper; /* the crew's waiters: at least one when `wait` */
	struct tf_batch *batch;
	uint32_t batches;

	struct queue spare;                      /* batches not in use */
	struct queue map_room, mapping, calling; /* tokens; in order; for the mappers */
	struct queue ring_room, ready;
	_Atomic uint32_t ring; /* tokens that exist */
	bool was_full;
	_Atomic uint32_t in_ring;

	/* the pulling side */
	void *cycle_memory, *plan_memory;
	struct stream_cycle turns;
	struct stream_shuffle shuffle;
	struct record *buffer;
	uint64_t buffer_room, left, made, pulled;
	struct err *error; /* ERRORS_KEPT */
	uint32_t errors_used;

	/* framework.costs: the rank's code of tf.data; without costs where the profile has none. Of
	 * the iterator of this epoch: processor time; without one. */
	struct framework_code code;
	int64_t started_ns, started_late_ns;

	uint64_t all_steps;  /* of the whole epoch */
	uint64_t read_steps; /* batches that are read: the crew's steps, unless endless */
	bool over;           /* the rank asked past the last one; endless: and has taken one more */
};

static inline struct tensorflow *tensorflow_of(struct loader *l)
{
	return (struct tensorflow *)l;
}

static inline const struct tensorflow *tensorflow_of_const(const struct loader *l)
{
	return (const struct tensorflow *)l;
}

extern const struct loader_ops loader_tensorflow;
