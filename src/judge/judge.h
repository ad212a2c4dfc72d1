#pragma once
/* Judges a run: can its numbers be trusted, where did its time and bytes go, what held it back, and
 * what would change it. */
#include "result/metrics.h"
#include "result/result.h"

/* Fills r->judged from all else in the result, and its measures; replaces what was there. Changes
 * nothing else. */
int judge_result(struct result *r, const struct run_metrics *m, struct err *e);
/* The same without what limits and what would change it, which take a hundred times as long. */
int judge_trust(struct result *r, const struct run_metrics *m, struct err *e);
/* Memory it takes for a run of `epochs` epochs: part of the stated bound. */
uint64_t judge_memory_bytes(uint64_t epochs);
