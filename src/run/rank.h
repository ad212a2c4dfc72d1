#pragma once
/* One rank: its loop over epochs, steps and evaluations. Private to run/. */
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/rng.h"
#include "base/thread.h"
#include "comm/comm.h"
#include "loader/loader.h"
#include "result/result.h"
#include "run/checkpoints.h"
#include "run/plan.h"
#include "run/shared.h"

struct rank {
	const struct run_plan *plan;
	struct run_shared *shared;
	struct result *r; /* of what is the process's, local rank 0 writes */
	struct rank_result *out;
	struct comm comm;
	struct thread thread;
	/* set once, by the rank; others wake and describe them while it runs */
	_Atomic(struct loader *) loader[DATASET_KINDS];
	struct rng_np rng;          /* of the emulated compute times */
	struct framework_code code; /* of the training loop */
	struct framework_spent spent;
	int64_t began_ns; /* when the phase's first step could ask for its batch */
	int64_t spent_before[DATASET_KINDS]; /* processor time, until the last look */
	bool hung;              /* a worker never came back: of an epoch it says nothing */
	_Atomic bool collected; /* the counters of training's workers are in the result */
	struct rank_live live;
	struct rank_checkpoints checkpoints;
	struct requested train_requested, eval_requested; /* until the last look */
	struct fetched train_fetched, eval_fetched;       /* the same */
};

/* NULL: not made. Any thread. */
static inline struct loader *rank_loader(const struct rank *k, enum dataset_kind kind)
{
	return atomic_load_explicit(&k->loader[kind], memory_order_acquire);
}

/* The ranks of this process and the places of their results, `locals` of each; *out is released
 * with free(), even after a failure. */
int ranks_create(struct rank **out, const struct run_plan *p, struct run_shared *shared,
		 struct result *r, struct err *e);
/* What a rank takes beside its loaders, checkpoints and times of steps. */
uint64_t rank_bytes(const struct run_plan *p);

/* The thread's function; `arg` is a struct rank. */
void rank_main(void *arg);
/* Takes what the workers of a rank counted: of one whose thread has ended its evaluations, of one
 * that was left behind all. */
void rank_collect(struct rank *k);
/* Ends the loaders of a rank whose thread has ended; false when a reader is stuck: then nothing it
 * uses may be freed. */
bool rank_release_loaders(struct rank *k);
