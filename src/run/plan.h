#pragma once
/* What a run will do: its ranks, steps, epochs and checkpoints, and the memory they take. Made once
 * before anything is timed; constant afterwards. Private to run/.
 *
 * By time (checkpoint.seconds_between_checkpoints) how many checkpoints there will be is not known
 * before: lists of them have room for CHECKPOINTS_AT_FIRST an epoch and grow between blocks. */
#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "dataset/dataset.h"
#include "dataset/order.h"
#include "loader/loader.h"
#include "loader/shard_cache.h"
#include "run/together.h"
#include "store/store.h"
#include "workload/workload.h"

#define CHECKPOINTS_AT_FIRST 16u

struct run_plan {
	const struct workload *w;
	const struct run_place *at;
	struct dataset *d;
	struct store *store;
	/* That its ranks share, of each kind of files that is read; NULL: there is none. */
	struct shard_cache *cache[DATASET_KINDS];
	const struct loader_ops *loader; /* NULL when nothing is trained */
	struct checkpoint *checkpoint;   /* NULL when none is asked for */
	uint64_t seed;                   /* of the shuffles: train.seed, or drawn for "random" */
	uint64_t steps[DATASET_KINDS];   /* per epoch: training, before any cap; evaluation */
	uint64_t dropped_samples;        /* an epoch; they do not fill a step */
	uint32_t epochs;                 /* that have a step; 1 in a checkpoint benchmark */
	uint64_t save_every;             /* steps from a checkpoint to the next; 0: not by steps */
	int64_t save_every_ns;           /* time from a checkpoint to the next; 0: not by time */
	/* of the whole run; a rank's */
	uint64_t train_steps, eval_steps;
	uint64_t saves, loads;       /* checkpoints written (0 by time: not known) and read back */
	uint64_t memory_bound_bytes; /* of this process */
	bool no_own_probe;           /* where run.probe is auto */
};

/* One epoch of it. */
struct epoch_plan {
	uint64_t steps; /* training, after total_training_steps */
	bool evaluated;
	bool saved_after;      /* a checkpoint follows the epoch */
	uint32_t blocks;       /* of steps between checkpoints; by time: to begin with */
	uint32_t saves, loads; /* checkpoints; by time: to begin with */
};

/* Steps, epochs and checkpoints, from what is set before: w, at, d. ERR_USAGE when nothing can be
 * trained. */
int plan_make(struct run_plan *p, struct err *e);
/* Draws the seed of the shuffles where it is random. Collective. */
int plan_draw_seed(struct run_plan *p, struct err *e);
/* States the memory of the run, and refuses it when the host has less. `rank_bytes`: of the structs
 * of a rank and of its threads; `checkpoint_bytes`: of the checkpoints of all ranks here;
 * `later_bytes`: of what is there while the loaders are not, before them or after them. */
int plan_memory(struct run_plan *p, uint64_t rank_bytes, uint64_t checkpoint_bytes,
		uint64_t later_bytes, struct err *e);

/* Writers of the dataset in this process. */
unsigned plan_generate_threads(const struct run_place *at);
/* Whether checkpoints are written, however many. */
static inline bool plan_saves(const struct run_plan *p)
{
	return p->saves > 0 || p->save_every_ns > 0;
}

/* Epoch `epoch`, from 1. Pure. */
struct epoch_plan plan_epoch(const struct run_plan *p, uint32_t epoch);
/* The order of an epoch; `list` is that of its kind, for orders that take one. */
void plan_order(const struct run_plan *p, const struct order_list *list, int kind, uint32_t epoch,
		struct order *out);
/* The lists that the orders of this run take, and their content in an epoch. One thread, while no
 * rank is in an epoch. Released with order_list_release. */
int plan_lists(const struct run_plan *p, struct order_list list[DATASET_KINDS], struct err *e);
void plan_fill_lists(const struct run_plan *p, struct order_list list[DATASET_KINDS],
		     uint32_t epoch);
