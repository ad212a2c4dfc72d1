#pragma once
/* The thread that writes a rank's checkpoints while the rank goes on. Private to run/. */
#include "run/rank.h"

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
