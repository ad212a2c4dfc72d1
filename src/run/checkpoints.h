#pragma once
/* Checkpoints of a run: when they are due, who waits for whom, and asynchronous writing. Private to
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
#include "result/result.h"

struct rank;
struct run_state;

/* By time: the checkpoints that each epoch has room for before its lists grow. */
#define CHECKPOINTS_AT_FIRST 16u

enum background_state { BACKGROUND_IDLE, BACKGROUND_WRITING, BACKGROUND_QUIT };

struct rank_checkpoints {
	struct checkpoint_rank *rank;
	struct io io, load_io;
	int64_t source;  /* the rank whose files it reads back */
	uint64_t device; /* of the folder, see disk_io.h */
	/* those that are whole on all ranks and not removed, oldest first */
	struct checkpoint_name {
		int64_t epoch, step;
	} * kept;
	uint32_t kept_count, kept_capacity;
	int64_t due_ns; /* by time: the next one, of rank 0 */
	bool due;       /* by time: after the step that ended last */
	/* Written in the background, not settled yet: what it takes is noted in `writing`, and
	 * copied when it is known. */
	struct checkpoint_times *open, writing;
	pthread_t thread;
	bool started;
	_Atomic uint32_t state; /* enum background_state; futex */
	int rc;                 /* of the write in the background, once idle again */
	struct err err;
};

/* Once a process. Opens the plan; states what it takes. */
int run_checkpoints_open(struct run_state *s, struct err *e);
/* All ranks of this process and the plan. */
uint64_t run_checkpoints_bytes(const struct run_state *s);
/* Checkpoints of the whole run, to be written (0 by time: not known) and to be read back. */
uint64_t run_saves_planned(const struct run_state *s);
uint64_t run_loads_planned(const struct run_state *s);
/* Whether an epoch (from 1) is followed by one; steps from one to the next, 0: none within. */
bool run_epoch_has_checkpoint(const struct workload *w, uint32_t epoch);
uint64_t run_checkpoint_steps(const struct workload *w);
/* From one to the next by time; 0: not by time. */
int64_t run_checkpoint_interval_ns(const struct workload *w);
/* The most blocks and checkpoints that an epoch of `steps` can have; by time
 * CHECKPOINTS_AT_FIRST. */
uint32_t run_epoch_blocks(const struct workload *w, uint64_t steps);
uint32_t run_epoch_saves(const struct workload *w, uint32_t epoch, uint64_t steps);

/* A rank's memory and, if wanted, its thread; before the first barrier. */
int rank_checkpoints_open(struct rank *k, struct err *e);
/* Writes one in the rank's turn: `steps` of the epoch were made. Collective. */
int rank_save(struct rank *k, uint32_t epoch, int64_t step, uint64_t steps, struct err *e);
/* By time, after a save: makes the epoch's next block of the steps that are left, whose times
 * follow those of the block before. */
int rank_block_after(struct rank *k, struct rank_epoch *ep, struct err *e);
/* Waits for what is under way, and settles it. Collective. */
int rank_checkpoints_drain(struct rank *k, struct err *e);
/* A checkpoint benchmark: all writes, then all reads. Collective. */
int rank_checkpoints_only(struct rank *k, struct err *e);
/* Ends the thread. Its counters go to the rank's result. Waits for a request under way. */
void rank_checkpoints_close(struct rank *k);

/* ---- the thread that writes a rank's checkpoints while the rank goes on ---- */

int background_start(struct rank *k, struct err *e);
/* Notes the end of a write: its time and the counters. The thread that wrote. */
void rank_checkpoint_ended(struct rank *k, struct checkpoint_times *t, bool whole);
/* Has the checkpoint `t` written, by way of k->checkpoints.writing; the one before must have ended.
 */
void background_write(struct rank *k, struct checkpoint_times *t);
/* Until nothing is being written or the run was stopped; the outcome of the last write. */
int background_wait(struct rank *k, struct err *e);
/* Ends the thread after the request that is under way. */
void background_stop(struct rank *k);

/* Under checkpoint.recovery_rank_shift: the rank whose files rank `rank` reads, where process p is
 * on host node[p] (hosts numbered from 0 without a gap) and has `each` ranks, from p times that on.
 * Hosts are taken in their order, each with its ranks in theirs, and this list is turned by as many
 * as the largest host has: with equal hosts that is the rank at the same place on the next host,
 * wherever the launcher put the ranks. All files are read, each by one rank, and none by its own
 * host unless one host has more than half of the ranks. With one host it is the rank itself. */
uint32_t recovery_source(const uint32_t *node, uint32_t processes, uint32_t each, uint32_t rank);
