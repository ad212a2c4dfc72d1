#pragma once
/* The folder of a recording, before and after the command: one a job, whichever of its processes
 * began it. */
#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "recorder/ring.h"

struct record_folder {
	char path[4096]; /* absolute */
	char key[33];    /* of names; "" when they are kept */
	bool joined;     /* another process of the job made it */
	int64_t ranks;   /* that record into it, where the launcher says; else 0 */
};

/* Makes the folder, or joins the one of this job, whose name launchers give (NULL: none). A folder
 * that holds something else, or another job, is refused. `path` NULL: `recording`, or
 * `recording-2` ... when that is taken. */
int record_folder_begin(struct record_folder *f, const char *path, const char *job, int64_t ranks,
			bool anonymous, struct err *e);
/* Ranks that have written what they saw. */
int64_t record_folder_done(const struct record_folder *f);
/* Syncs what they recorded (on one host), and then writes what was seen of the processes; the last
 * is that of all. A recording without it has no end. */
int record_folder_ends(const struct record_folder *f, const struct ring_end *end, size_t n,
		       struct err *e);
/* Gives back what the rings of ended processes do not use, and forgets the key with the last
 * process of the job. */
void record_folder_end(const struct record_folder *f);
/* Removes what record_folder_begin made, when nothing was recorded. */
void record_folder_undo(const struct record_folder *f);
