#pragma once
/* The PyTorch loader's state, shared by its files: setup (memory), policy, words for the watchdog.
 */
#include "loader/worker.h"

struct pytorch {
	struct loader base;
	struct loader_config config;
	struct reader_config settings;
	uint32_t workers;          /* 0: the rank reads */
	uint64_t factor, capacity; /* P; P * W */
	bool in_order, persistent;

	_Atomic uint32_t halt;    /* futex word, HALT_* */
	_Atomic int64_t woken_ns; /* 0: not woken */
	struct queue results;
	struct worker *worker; /* W of them */
	struct sample_reader inline_reader;
	struct worker_stat *stat;   /* max(W, 1) */
	uint64_t *assigned;         /* per worker: sent and not handed out */
	struct task *task, **spare; /* all; those not in use */
	uint64_t spares, held;      /* held: with the rank */
	struct task **window;       /* in order: batch k at k mod capacity */

	struct order order;
	uint64_t steps, sent, handed, received; /* batches of this epoch */
	uint32_t cursor;                        /* the worker whose turn it is */
	bool open, threads;                     /* within an epoch; workers run */

	/* For describe. */
	_Atomic uint64_t epoch, last_step, waiting; /* waiting: batch + 1, 0 when not */
	_Atomic int64_t waiting_since;
	_Atomic uint32_t stuck; /* threads given up */
};

static inline struct pytorch *pytorch_of(struct loader *l)
{
	return (struct pytorch *)l;
}

static inline const struct pytorch *pytorch_of_const(const struct loader *l)
{
	return (const struct pytorch *)l;
}

/* The rank itself counts as a reader when there are no workers. */
static inline uint32_t pytorch_readers(const struct pytorch *l)
{
	return l->workers ? l->workers : 1;
}

void pytorch_window(const struct workload *w, uint32_t *workers, uint64_t *batches);
int pytorch_memory_bytes(const struct loader_config *c, uint64_t *out, struct err *e);
int pytorch_create(struct loader **out, const struct loader_config *c, struct err *e);
int pytorch_close_readers(struct pytorch *l, struct err *e);
/* Frees everything; no thread runs. */
void pytorch_release(struct pytorch *l);
void pytorch_describe(const struct loader *base, char *out, size_t out_size);

extern const struct loader_ops loader_pytorch;
