#pragma once
/* What held the run back most, in one sentence with its evidence. The rules: docs/metrics.md. */
#include "result/metrics.h"
#include "result/result.h"

/* From the finished epochs, with r->judged.time and .epoch filled; leaves both empty where nothing
 * can be said. */
void limit_find(const struct result *r, const struct run_metrics *m, struct limit *limit,
		struct outlook *outlook);

/* ---- what memory had to do with it (limit_memory.c) ---- */

/* Whether the page cache served most of what was read. */
bool limit_cached(const struct result *r);
/* Whether memory was too short for the run; then the sentence is in `out`. */
bool limit_memory(const struct result *r, char *out, size_t size);
