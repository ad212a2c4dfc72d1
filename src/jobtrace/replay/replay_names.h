#pragma once
/* Which files of a job have one name, and which folders above them the job itself changes.
 *
 * A log may have a name as several files: as a folder where it was listed, as a file where it was
 * only asked about. For the storage they are one. What lies below a folder that the job makes,
 * renames or removes depends on that.
 *
 * Memory: the names of the files once more, and 8 bytes a file. */
#include <stdint.h>

#include "base/err.h"
#include "base/texts.h"
#include "jobtrace/job_log.h"

struct replay_names {
	uint32_t *of;    /* of each file of the job: the first one with its name */
	uint32_t *above; /* of each: the nearest such folder above it, by the number of `of`;
			  * JOB_NONE */
	uint32_t *first; /* of each text */
	struct texts texts;
};

/* Release in any case. Files that are neither regular nor folders stand for themselves. */
int replay_names_make(struct replay_names *n, const struct job *job, struct err *e);
/* The first file with this name; JOB_NONE. */
uint32_t replay_names_find(const struct replay_names *n, const char *name);
void replay_names_release(struct replay_names *n);
