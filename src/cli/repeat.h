#pragma once
/* stoker run --repeat: one run several times, each begun alike, and what they say together. */
#include "cli/job.h"
#include "result/metrics.h"
#include "result/result.h"

/* Makes a->repeat runs of `w` (loaded as `a` says), with their results in the folders 1, 2, ... of
 * the output folder, and prints a summary, which is also in its repeat.json. All processes of the
 * job call it. `show` prints one run's result where -v asks for it.
 *
 * Each run begins as the others do: a dataset that is to be generated is generated once, before
 * the first; checkpoints are written to a folder of the run's own, which is removed when the next
 * one begins unless it was there before; and where storage.page_cache is not set and there is a
 * page cache, it is cold_epochs. Results of an earlier command in the same folders are removed.
 *
 * The first run that fails or is interrupted is the last; those before it count. Returns the exit
 * status, and has printed why it is not 0. *stuck: a thread hangs, end the process. */
int repeat_runs(const struct cli_args *a, struct job *j, struct workload *w,
		void (*show)(const struct cli_args *a, const struct result *r,
			     const struct run_metrics *m),
		bool *stuck);
