#pragma once
/* The end of a run: what all processes measured becomes one result, which is proved, judged and
 * written into the output folder. And that folder before the run. Private to run/. */
#include "base/err.h"
#include "base/folder_lock.h"
#include "result/result.h"
#include "run/plan.h"
#include "run/shared.h"

/* What writing the results of so many ranks allocates, to be set aside (base/alloc.h). */
size_t finish_memory(uint32_t ranks);
/* Makes and locks the folder of results (-EBUSY: another run writes there), removes an earlier
 * run's files from it, and opens the log. */
int finish_open_folder(const struct workload *w, const char *folder, struct file_lock *lock,
		       struct err *e);
/* Brings this process's part of the result to process 0, which merges all, proves the order, judges
 * and writes, and closes the log; r->speaks tells who did so. `rc` and `cause` are those of what
 * went before, and become those of the run; the code is returned. `stop` (may be NULL) cuts long
 * proofs short. A folder that does not answer is left behind (r->unwritable): then the results are
 * in a new folder below $TMPDIR or /tmp, which is r->folder from then on, and it is an error that
 * names both; "" when there was no such place either. */
/* How long one call to the system at the folder of results may take after the run: run.watchdog, or
 * a few seconds when the storage has not answered before. Seconds; 0: for ever. */
double finish_limit_s(const struct run_plan *p, const struct result *r);
int finish_run(const struct run_plan *p, struct run_shared *shared, const struct stop_flag *stop,
	       struct result *r, int rc, struct err *cause);
