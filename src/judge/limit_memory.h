#pragma once
/* What memory had to do with it: whether the page cache served, and whether there was too little.
 */
#include "result/metrics.h"
#include "result/result.h"

/* Whether the page cache served most of what was read. */
bool limit_cached(const struct result *r);
/* Whether samples come from a store in memory, without a shim, which is there to be slow. */
bool limit_in_memory(const struct workload *w);
/* Threads that copying memory is to be measured with before the run is judged (r->memory_copy); 0:
 * nothing is judged by it. */
uint32_t limit_copiers(const struct result *r, const struct run_metrics *m);
/* Whether memory was too short for the run; then why is added to `out`. */
bool limit_memory(const struct result *r, struct fact_list *out);
