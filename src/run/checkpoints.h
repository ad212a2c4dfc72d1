#pragma once
/* Checkpoints of a run: when they are due, who waits for whom, and asynchronous writing. Private to
 * run/.
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

struct checkpoint_times;
struct rank;
struct run_state;

enum background_state { BACKGROUND_IDLE, BACKGROUND_WRITING, BACKGROUND_QUIT };

struct rank_checkpoints {
	struct checkpoint_rank *rank;
	struct io io, load_io;
	uint64_t device; /* of the folder, see disk_io.h */
	/* those that are whole on all ranks and not removed, oldest first */
	struct checkpoint_name {
		int64_t epoch, step;
	} * kept;
	uint32_t kept_count;
	struct checkpoint_times *open; /* written in the background, not settled yet */
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
/* Checkpoints of the whole run, to be written and to be read back. */
uint64_t run_saves_planned(const struct run_state *s);
uint64_t run_loads_planned(const struct run_state *s);
/* Whether an epoch (from 1) is followed by one; steps from one to the next, 0: none within. */
bool run_epoch_has_checkpoint(const struct workload *w, uint32_t epoch);
uint64_t run_checkpoint_steps(const struct workload *w);
/* The most blocks and checkpoints that an epoch of `steps` can have. */
uint32_t run_epoch_blocks(const struct workload *w, uint64_t steps);
uint32_t run_epoch_saves(const struct workload *w, uint32_t epoch, uint64_t steps);

/* A rank's memory and, if wanted, its thread; before the first barrier. */
int rank_checkpoints_open(struct rank *k, struct err *e);
/* Writes one in the rank's turn: `steps` of the epoch were made. Collective. */
int rank_save(struct rank *k, uint32_t epoch, int64_t step, uint64_t steps, struct err *e);
/* Waits for what is under way, and settles it. Collective. */
int rank_checkpoints_drain(struct rank *k, struct err *e);
/* A checkpoint benchmark: all writes, then all reads. Collective. */
int rank_checkpoints_only(struct rank *k, struct err *e);
/* Ends the thread. Its counters go to the rank's result. Waits for a request under way. */
void rank_checkpoints_close(struct rank *k);
