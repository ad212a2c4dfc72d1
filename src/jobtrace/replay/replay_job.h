#pragma once
/* What a replay made, in the form of the log that it repeats: both can then be compared. */
#include "jobtrace/replay/replay_plan.h"

/* The operations that were made as a job, with the times and results of the replay. Threads,
 * processes and files have the numbers that they have in the job. After the replay's threads have
 * ended. `out` is to be released in any case. Negative where memory or JOB_EVENTS_MAX is
 * exceeded. */
int replay_job(const struct replay_plan *p, struct job *out, struct err *e);
