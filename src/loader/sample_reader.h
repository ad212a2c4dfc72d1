#pragma once
/* Reading samples for one worker, whatever the policy that chose them: path, format read,
 * preprocess wait, counters, proof and error context. All memory is taken by the first
 * sample_reader_open and kept until sample_reader_release. */
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "base/rng.h"
#include "loader/row_groups.h"
#include "loader/loader.h"
#include "workload/recorded_file.h"

/* Bits of the word by which a loader calls its readers off. */
enum {
	HALT_DROP = 1u << 0, /* the epoch ends early */
	HALT_STOP = 1u << 1, /* the run ends; never cleared */
};

struct sample_reader {
	const struct loader_config *config;
	const struct reader_config *settings;
	_Atomic uint32_t *halt; /* futex word: not 0 ends a batch after its current sample */
	struct worker_stat *stat;
	struct io io;
	/* Of the sample that is being read; where code costs. */
	struct io_waits waits;
	struct io_before before;
	struct own_times {
		int64_t begin_ns, thread_ns, requests_ns;
		uint64_t opens, data_bytes;
	} from;
	double loaded_bytes;    /* of the sample before it, or as many as any has */
	struct span_ring *ring; /* NULL: no trace is kept */
	void *memory;           /* of the format's reader; kept while closed */
	size_t memory_bytes;
	const struct format_ops *ops; /* of the reader */
	struct reader *reader;        /* NULL while closed */
	struct flight *flight;        /* NULL: one request at a time */
	struct ahead *ahead;          /* whole objects; NULL: files are read by their format */
	struct fetch *fetch;          /* files come into a cache first; NULL: they do not */
	/* Batches of the epoch, of which this worker has every so-manieth, for `ahead` and `fetch`;
	 * 0: objects are read one by one. */
	uint64_t steps;
	struct shard_stream *stream; /* whose next samples batches get; NULL: by positions */
	/* Row groups; NULL: samples are read one by one. With a stream, a second walk of it says
	 * what is asked for; `fresh`: it is at its beginning, as is the stream. */
	struct groups *groups;
	struct group_plan {
		struct groups_source source; /* first */
		uint64_t per_file, file, next;
		struct shard_stream walk;
		void *memory; /* of the walk; the loader's */
		bool open;
	} plan;
	bool fresh;
	struct framework_code code; /* of the framework, that this reader's thread spends */
	uint64_t along;             /* samples that came with the one that was read last */
	double share;               /* samples of the rank */
	int64_t code_from_ns; /* in flight: its processor time when the last sample was whole */
	struct rng_np rng;    /* of preprocess delays: a stream of (seed, kind, rank, worker) */
	uint32_t worker;
	bool preprocess;
	/* Whose work this reader repeats, in place of preprocessing and of the framework's code;
	 * NULL: of no recorded job. */
	const struct recorded_part *recorded;
	/* For the watchdog: what this reader does now (activity in the low bits, sample above) and
	 * since when. */
	_Atomic uint64_t doing;
	_Atomic int64_t since_ns;
	bool prepared;      /* sample_reader_prepare was done since it was opened */
	struct err failed;  /* by it: of every batch that follows */
	int64_t rested_ns;  /* since when it has read no batch */
	uint64_t path_file; /* whose path this is; UINT64_MAX: nobody's */
	char path[DATASET_PATH_MAX];
};

/* Whether it spends what the framework's code takes. */
static inline bool sample_reader_at_cost(const struct sample_reader *r)
{
	return framework_on(&r->code) && !r->recorded;
}

/* What the format's readers of this loader are told. Asks the store for its preferred request size.
 */
void sample_reader_settings(struct reader_config *out, const struct loader_config *config);
/* Bytes of memory the first sample_reader_open takes, with what sample_reader_prepare needs for a
 * moment; or 0 and `e` when no machine has them. */
size_t sample_reader_bytes(const struct loader_config *config, const struct reader_config *settings,
			   struct err *e);

/* The pointers are borrowed. of_rank: no thread of its own, the rank's reads. */
void sample_reader_init(struct sample_reader *r, const struct loader_config *config,
			const struct reader_config *settings, uint32_t worker, bool of_rank,
			_Atomic uint32_t *halt, struct worker_stat *stat);
/* Builds the format's reader, in the memory that the first call takes and touches; on failure the
 * reader stays closed. Does nothing when open. */
int sample_reader_open(struct sample_reader *r, struct err *e);
/* Closes what is open, in any case; the memory stays. Fine when closed. */
int sample_reader_close(struct sample_reader *r, struct err *e);
/* Frees the memory of a closed reader. */
void sample_reader_release(struct sample_reader *r);

/* Reads one sample, and spends what the framework's code takes for it. *now is the time before it
 * and then after it, *payload grows. On failure `e` says which sample, by whom. */
int sample_reader_read(struct sample_reader *r, uint64_t sample, int64_t *now, uint64_t *payload,
		       struct err *e);
/* The workload's wait after a sample, if it has one; a closed reader will do. */
void sample_reader_preprocess(struct sample_reader *r, uint64_t sample, int64_t *now);
/* Reads the samples at positions b->first ... of the rank's epoch, or the next ones of its stream,
 * one after another or, with reader.queue_depth, with that many requests in flight. Fills
 * begun_ns, done_ns, proof and err: the first failure ends the batch, ERR_CANCELED when it was
 * called off. */
void sample_reader_batch(struct sample_reader *r, const struct order *o, struct batch *b);

/* Once after it was opened, before its first sample: with compat.dlio, loads what DLIO's reader
 * loads when its worker begins, which is the index of every file of the rank, in the order in which
 * train.seed has shuffled the samples. A failure is that of the batches that follow.
 * sample_reader_batch calls it; a worker does when it begins, whether a batch comes or not. */
void sample_reader_prepare(struct sample_reader *r, const struct order *o);

/* Says that nothing is being read. */
void sample_reader_idle(struct sample_reader *r);
/* Any thread: when the present activity began, 0 while idle. */
int64_t sample_reader_busy_since(const struct sample_reader *r);
/* Any thread: "worker 2 has been reading sample 118 ('...') for 34 s". */
void sample_reader_describe(const struct sample_reader *r, char *out, size_t out_size);
