#pragma once
/* Reader workers of one loader and what every loader does with them, whatever its policy: memory,
 * starting and ending their threads, waiting for what they read, being woken, and telling whom one
 * waits for. With no workers the rank reads, with a reader of its own. */
#include "loader/worker.h"

struct crew {
	struct loader_config config;
	struct reader_config settings;
	uint32_t workers; /* 0: the rank reads */
	bool persistent;  /* threads live on between epochs */
	bool threads;     /* they run */

	_Atomic uint32_t halt;    /* futex word, HALT_* */
	_Atomic int64_t woken_ns; /* 0: not woken */
	_Atomic uint32_t stuck;   /* threads given up */
	struct queue results;     /* tasks done */
	struct queue *inbox;      /* where the rank takes them: results, or a later stage's */
	struct worker *worker;
	struct sample_reader inline_reader;
	struct worker_stat *stat; /* max(workers, 1) */
	struct order order;       /* of the epoch; workers read it */

	/* For describe. */
	_Atomic uint64_t epoch, steps, waiting; /* waiting: batch + 1, 0 when not */
	_Atomic int64_t waiting_since;
};

/* Tasks that exist at once: `depth` queued to one worker, `results` in all. */
int crew_memory_bytes(const struct loader_config *c, uint32_t workers, uint64_t depth,
		      uint64_t results, uint64_t *out, struct err *e);
/* Takes all memory and opens the readers. Needs crew_release in any case. */
int crew_init(struct crew *c, const struct loader_config *config, uint32_t workers, uint64_t depth,
	      uint64_t results, struct err *e);
/* Frees everything but the struct; no thread runs. */
void crew_release(struct crew *c);

/* The rank itself counts as a reader when there are no workers. */
static inline uint32_t crew_readers(const struct crew *c)
{
	return c->workers ? c->workers : 1;
}
struct sample_reader *crew_reader(struct crew *c, uint32_t i);

/* struct loader_ops' wake. */
void crew_wake(struct crew *c);
/* Whether the run is to end; notices a stop flag that was set without wake. */
bool crew_stopped(struct crew *c);
int crew_canceled(const struct crew *c, struct err *e);
/* The next task that comes back; ERR_CANCELED once stopped. */
int crew_receive(struct crew *c, struct task **out);

/* Begins an epoch of `steps` batches: workers that live on acknowledge, others are started, one
 * after another. -EINVAL when the order has other batches than the loader. */
int crew_begin(struct crew *c, const struct order *order, uint64_t steps, struct err *e);
/* Tells workers to leave their batches after the present sample. */
void crew_drop(struct crew *c);
/* Ends an epoch once every task is back, or (`woken`) the run: threads that do not live on are
 * joined. -ETIMEDOUT when one hangs, with `describe`'s sentence. */
int crew_end(struct crew *c, bool woken, const struct loader *l, struct err *e);
/* Joins all threads; the number of those that hang and were left behind. */
unsigned crew_dismiss(struct crew *c);

/* How long to wait for a thread before looking again; 0 once the grace after the loader was woken
 * is over. The grace counts from wake, so that giving up on many loaders one after another takes no
 * longer than on one. woken_ns 0: not woken. */
int64_t crew_patience_ns(int64_t woken_ns, int64_t grace_ns);

/* What the rank waits for, for describe: batch + 1, or 0. */
void crew_waits(struct crew *c, uint64_t batch);
/* Says that the rank got somewhere. */
void crew_progress(struct crew *c);
/* The sentence for the watchdog. `due`: the worker to blame when a batch is waited for, or
 * UINT32_MAX for the one that has been busy longest. */
void crew_describe(const struct crew *c, uint32_t due, char *out, size_t out_size);
