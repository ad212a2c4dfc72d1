#pragma once
/* Readers in growing numbers over the dataset, after everything else was measured: how the storage
 * behaves beyond what the run itself varied. Private to run/. */
#include <stdint.h>

#include "result/result.h"
#include "run/plan.h"
#include "run/shared.h"

/* Memory that the readers of a probe in this process take, while the loaders of the ranks are gone;
 * 0 when none is asked for. */
uint64_t probe_bytes(const struct run_plan *p);
/* Whether the storage is to be probed, and for how long in all; 0: not. With run.probe=auto the
 * measures of this process are judged: whether they leave open what more readers would do, and a
 * probe could tell. Others have theirs, so that a run of several processes never decides by itself.
 * After training. */
double probe_time_s(const struct run_plan *p, struct result *r);
/* Fills r->probe. Collective: all processes call it, after training, when no other thread reads.
 * Takes about `time_s` and the evictions; a read that takes
 * longer is waited for a few seconds more and then left behind (r->probe.hung: nothing that it uses
 * may be released). It ends early with the run. Whatever happens is said in r->probe.why and is not
 * a failure of the run. */
void probe_sweep(const struct run_plan *p, struct run_shared *shared, double time_s,
		 struct result *r);
