#pragma once
/* The requests of a job made again: each thread of the job by a thread of this process, in a closed
 * loop. Timestamps of the log are not followed: faster storage makes the replay faster. */
#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/thread.h"
#include "trace/replay/replay_image.h"
#include "trace/replay/replay_plan.h"

/* More bytes are asked for in several requests. A thread has a buffer of its largest read; all
 * write from one of the largest write. */
#define REPLAY_TRANSFER_MAX (INT64_C(1) << 30)

struct replay_options {
	double think_scale;           /* 0: no thinking */
	const struct stop_flag *stop; /* may be NULL */
};

struct replay_done {
	uint64_t ops;       /* made */
	uint64_t differing; /* answers other than the log's: fewer bytes, a file that is there or
			       not */
	uint32_t differs;   /* the operation + 1 of the first of them, by the log's order */
	int64_t wall_ns;
	bool stopped;
};

/* Makes all operations of the plan over the image, whose files are there; their times are in the
 * plan afterwards. Fails with a sentence at the first request that the storage refuses although the
 * job's was served. */
int replay_run(struct replay_plan *p, const struct replay_image *image,
	       const struct replay_options *o, struct replay_done *done, struct err *e);

/* What a replay made, in the form of the log that it repeats: both can then be compared. */
/* The operations that were made as a job, with the times and results of the replay. Threads,
 * processes and files have the numbers that they have in the job. After the replay's threads have
 * ended. `out` is to be released in any case. Negative where memory or JOB_EVENTS_MAX is
 * exceeded. */
int replay_job(const struct replay_plan *p, struct job *out, struct err *e);
