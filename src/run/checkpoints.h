#pragma once
/* Checkpoints of a run: who waits for whom, asynchronous writing, and reading back. Private to
 * run/.
 *
 * By time (checkpoint.seconds_between_checkpoints) one is due that long after rank 0 began the one
 * before, or training, by process 0's clock, and follows the first step whose barrier is passed
 * from then on: the barrier itself tells all ranks (comm_barrier_until). Waiting for data,
 * evaluations and the checkpoints themselves count, so that checkpoints that take longer than the
 * interval follow every step. So PyTorch Lightning counts its ModelCheckpoint's train_time_interval
 * (lightning.pytorch.callbacks: _last_time_checked is set when a save begins, and the decision is
 * broadcast). How many there will be is not known before, so lists grow between blocks of steps.
 *
 * A rank's own files are written by its own thread, or by a thread of its own in the background
 * (checkpoint.async): then the rank stands still for the copy to memory (its bytes at
 * checkpoint.stage_rate) and for a checkpoint before that is still being written, and the bytes of
 * the copy are emulated, not held. What needs all ranks (commit of formats that have one, removal
 * of old checkpoints) is done on the ranks' own threads between barriers; after an asynchronous
 * write when the next begins, or at the end. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "checkpoint/checkpoint.h"
#include "comm/comm.h"
#include "result/result.h"
#include "run/plan.h"
#include "run/shared.h"

enum background_state { BACKGROUND_IDLE, BACKGROUND_WRITING, BACKGROUND_QUIT };

/* A rank's. */
struct rank_checkpoints {
	/* of the rank, set before the first call */
	const struct run_plan *plan;
	struct run_shared *shared;
	struct result *r; /* its trace; the rest is read */
	struct comm *comm;
	struct rank_live *live;
	struct rank_result *out;
	/* when the next is due, by time */
	int64_t due_ns; /* of rank 0 */
	bool due;       /* after the step that ended last */
	/* ---- checkpoints.c's ---- */
	struct checkpoint_rank *rank;
	struct io io, load_io;
	int64_t source; /* the rank whose files it reads back */
	/* below the folder; NULL: none that is known */
	const struct block_list *disks;
	/* those that are whole on all ranks and not removed, oldest first */
	struct checkpoint_name {
		int64_t epoch, step;
	} * kept;
	uint32_t kept_count, kept_capacity;
	/* Written in the background, not settled yet: what it takes is noted in `writing`, and
	 * copied when it is known. */
	struct checkpoint_times *open, writing;
	pthread_t thread;
	bool started;
	_Atomic uint32_t state; /* enum background_state; futex */
	int rc;                 /* of the write in the background, once idle again */
	struct err err;
};

/* Once a process, after p->checkpoint is opened: states in the result and the log what checkpoints
 * take. -ENOSPC when even the first cannot fit. */
int checkpoints_check(const struct run_plan *p, struct result *r, struct err *e);
/* The memory of all ranks here and of p->checkpoint. */
uint64_t checkpoints_bytes(const struct run_plan *p);

/* ---- of a rank; 0 and nothing done when the run has no checkpoints ---- */

/* A rank's memory and, if wanted, its thread; before the first barrier. */
int checkpoints_open(struct rank_checkpoints *c, struct err *e);
/* Writes one in the rank's turn: `steps` of the epoch were made. Collective. */
int checkpoints_save(struct rank_checkpoints *c, uint32_t epoch, int64_t step, uint64_t steps,
		     struct err *e);
/* By time, after a save: makes the epoch's next block of the steps that are left, whose times
 * follow those of the block before. */
int checkpoints_block_after(struct rank_checkpoints *c, struct rank_epoch *ep, struct err *e);
/* Waits for what is under way, and settles it. Collective. */
int checkpoints_drain(struct rank_checkpoints *c, struct err *e);
/* A checkpoint benchmark: all writes, then all reads. Collective. */
int checkpoints_only(struct rank_checkpoints *c, struct err *e);
/* Ends the thread. Its counters go to the rank's result. Waits for a request under way. */
void checkpoints_close(struct rank_checkpoints *c);

/* Under checkpoint.recovery_rank_shift: the rank whose files rank `rank` reads, where process p is
 * on host node[p] (hosts numbered from 0 without a gap) and has `each` ranks, from p times that on.
 * Hosts are taken in their order, each with its ranks in theirs, and this list is turned by the
 * number of ranks on the largest host: with equal hosts that is the rank at the same place on the
 * next host, wherever the launcher put the ranks. All files are read, each by one rank, and none by
 * its own host unless one host has more than half of the ranks. With one host it is the rank
 * itself. */
uint32_t recovery_source(const uint32_t *node, uint32_t processes, uint32_t each, uint32_t rank);
