#pragma once
/* Loaders: the policies by which a framework turns an epoch's order into batches in a rank's hands,
 * over worker threads that read. One loader serves one rank; its workers belong to it alone.
 *
 * A batch here is a promise kept, not a payload: the samples were read and decoded by a worker into
 * the worker's own buffer, and what is handed over is which samples, by whom, and when. */
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/rng.h"
#include "base/thread.h"
#include "dataset/dataset.h"
#include "dataset/order_proof.h"
#include "loader/framework.h"
#include "metric/fetched.h"
#include "metric/io_stat.h"
#include "metric/slow_samples.h"
#include "metric/split.h"
#include "metric/span.h"
#include "workload/backend.h"

/* Totals of one worker since the loader was created, over all epochs and restarts of its thread.
 * Written by the worker; read between finish and the next start, but for what worker_read_so_far
 * tells at any time. */
struct worker_stat {
	struct io_stat *io;
	uint64_t samples, payload_bytes; /* added to by worker_has_read */
	uint64_t batches;
	int64_t read_ns, preprocess_ns; /* inside format read; in preprocess waits */
	int64_t idle_ns;                /* waiting for an index batch within an epoch */
	int64_t no_cpu_ns; /* of reading, preprocessing and packing: ready to run, and without a
			    * processor (base/run_delay.h) */
	struct slow_samples slow;
	int64_t in_flight_ns; /* of samples in flight, each from its first request to its end */
	/* reader.transport: packing by the worker, unpacking by the receiver, who writes that one;
	 * reader.pin_thread: copying, by its thread, in the first worker's */
	int64_t transport_ns, unpack_ns, pin_ns;
	/* framework.costs: the time that the worker was at it, lack of a processor included; and
	 * what was spent by the worker, and, in the first one's, by the thread that pins and by the
	 * rank, who write these. */
	int64_t framework_ns;
	struct framework_spent framework, framework_pin, framework_rank;
	/* reader.cache_folder: by its thread that downloads, and by itself */
	struct fetched fetched;
};

struct batch {
	uint64_t index; /* within the epoch, from 0 */
	uint64_t first; /* position of its first sample in the rank's epoch */
	uint32_t samples;
	uint32_t worker;           /* who read it; 0 when inline */
	int64_t sent_ns;           /* indexes queued */
	int64_t begun_ns, done_ns; /* read by the worker */
	int64_t late_ns;           /* before begun_ns: the worker had no processor */
	struct batch_work work;    /* how the time of its readers divides */
	struct batch_costs costs;  /* the framework's code beside that */
	uint64_t payload_bytes;    /* delivered by the format's reads */
	struct order_proof proof;  /* of the samples really read, by the ids the worker was given */
	struct err err;            /* code != 0: reading failed; delivered in its turn */
};

struct shard_cache;

struct loader_config {
	const struct workload *workload;
	const struct dataset *dataset;
	enum dataset_kind kind;
	struct store *store;
	struct shard_cache *cache; /* of its files (loader/shard_cache.h); NULL: none is used */
	const struct framework_costs *costs; /* of the framework's own code; NULL: none */
	uint32_t rank, ranks;                /* ranks: of the run, for the stated bound alone */
	uint64_t batch_size;
	const struct stop_flag *stop; /* run-wide; set: next() returns ERR_CANCELED soon */
	/* For the watchdog: what the loader is doing, one word each, never read by it. */
	_Atomic int64_t *progress_ns; /* time of last progress; may be NULL */
	struct trace *trace;          /* where its readers keep their spans; NULL: nowhere */
	bool one_request;             /* at a time and reader, whatever reader.queue_depth says */
	int64_t grace_ns;             /* how long a hung read is waited for after wake; 0: 5 s */
};

/* Memory of one reader's spans, for the stated bound. */
static inline uint64_t loader_trace_bytes(const struct loader_config *c)
{
	return c->workload->run.trace == TRACE_OFF
		       ? 0
		       : trace_ring_bytes((uint64_t)c->workload->run.trace_events);
}

/* Batches a rank may hold at once without giving one back. */
#define LOADER_HELD_MAX 2

/* First member of every loader's struct. */
struct loader {
	const struct loader_ops *ops;
};

struct loader_ops {
	struct loader_facts is;
	/* What a workload means for this loader: reader threads of a rank (0: the rank reads), and
	 * the batches that may exist beyond the one handed out. Pure. */
	void (*window)(const struct workload *w, uint32_t *workers, uint64_t *batches);
	/* Bytes one rank's loader will allocate, buffers included; part of the stated bound. */
	int (*memory_bytes)(const struct loader_config *c, uint64_t *out, struct err *e);
	/* Allocates everything: workers' buffers, batches, queues. Threads start at the first
	 * start(). */
	int (*create)(struct loader **out, const struct loader_config *c, struct err *e);
	/* Begins an epoch: from now on batches are read ahead as the framework would. `order` is
	 * copied. `steps` batches will be asked for at most: nothing beyond them is read.
	 * ERR_CANCELED once woken. */
	int (*start)(struct loader *l, const struct order *order, uint64_t steps, struct err *e);
	/* The next batch, waiting for it: 1 and *out (valid until give_back), 0 at the end of the
	 * epoch, negative on failure (of a read that this batch needed, in its turn: there is
	 * nothing to give back and the following batches can still be asked for) or ERR_CANCELED.
	 */
	int (*next)(struct loader *l, struct batch **out, struct err *e);
	void (*give_back)(struct loader *l, struct batch *b);
	/* Ends the epoch (also one not read to its end): afterwards no request is in flight and no
	 * index is queued. Workers may live on, as the framework's do. Queued batches are dropped,
	 * batches in reading end after their current sample. -ETIMEDOUT, saying who hangs where,
	 * when a read did not return within grace_ns of wake. Does nothing when no epoch is open.
	 */
	int (*finish)(struct loader *l, struct err *e);
	/* What the workers did so far, one struct a worker, valid until the next start. */
	const struct worker_stat *(*stats)(const struct loader *l, uint32_t *workers);
	/* Adds what order_proof_undelivered would after `steps_done` batches of this epoch, where
	 * the loader gives a rank its samples in an order of its own. false, and nothing added,
	 * where it does not; NULL: it never does. From the order alone, not from what was read; the
	 * rank's thread. */
	bool (*undelivered)(struct loader *l, uint64_t steps_done, struct order_proof *p);
	/* One sentence on what the loader waits for, for the watchdog. Any thread. */
	void (*describe)(const struct loader *l, char *out, size_t out_size);
	/* Makes waits of this loader end: next and start return ERR_CANCELED, workers end after
	 * their current sample. To be called from any thread once config.stop is set (without it a
	 * waiting next notices the flag within a second). Afterwards only finish, stats, describe
	 * and destroy make sense. */
	void (*wake)(struct loader *l);
	/* Joins the threads and frees everything, returning 0; accepts NULL. No other thread may be
	 * in wake or describe. After wake, a thread that hangs in a read is left behind when
	 * grace_ns is over: the number of such threads is returned and nothing is freed, so that
	 * describe still works. What the threads use (workload, dataset, store, stop, progress_ns)
	 * must then be kept as long as the process lives. */
	unsigned (*destroy)(struct loader *l);
};

/* What every loader checks of a workload: a batch size, and reader.read_threads, that it can have.
 */
int loader_check_batch(const struct loader_config *c, struct err *e);
int loader_check_threads(const struct loader_config *c, struct err *e);

/* Called by the worker itself: so many samples are read. Relaxed stores, which cost no more than
 * plain ones. */
static inline void worker_has_read(struct worker_stat *s, uint64_t samples, uint64_t payload_bytes)
{
	__atomic_store_n(&s->samples, s->samples + samples, __ATOMIC_RELAXED);
	__atomic_store_n(&s->payload_bytes, s->payload_bytes + payload_bytes, __ATOMIC_RELAXED);
}
/* What the workers of a loader have read so far, also of batches that are not whole: adds samples,
 * and bytes that requests returned (payload where requests are not counted). Any thread, as long as
 * the loader exists. */
void worker_read_so_far(const struct loader *l, uint64_t *samples, uint64_t *bytes);
/* A copy of the totals of a worker that may be counting, and in out->io, unless that is NULL, of
 * its requests: each of them as it was at some moment of the call, and not all at the same one. Any
 * thread, as long as the loader exists. */
void worker_stat_glance(struct worker_stat *out, const struct worker_stat *s);
/* Called by the worker itself after `took_ns` of work: notes what of it was without a processor. */
void worker_note_delay(struct worker_stat *s, int64_t took_ns);
/* Takes a worker's totals off, or adds them: the work between two looks. */
void worker_work_begin(const struct worker_stat *s, struct batch_work *w);
void worker_work_end(const struct worker_stat *s, struct batch_work *w);
void batch_work_merge(struct batch_work *into, const struct batch_work *from);

extern const struct loader_ops *const loader_table[]; /* NULL-terminated, written by the build */
const struct loader_ops *loader_find(const char *name);
/* The stack of a loader's thread. */
size_t loader_stack_bytes(const struct workload *w);
