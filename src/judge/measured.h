#pragma once
/* What the numbers of a run are numbers of, by its verdicts: so that no headline is kinder than
 * they are. The words: docs/metrics.md, "What was measured". */
#include "judge/verdict.h"

/* From r->judged.verdict, made by the rows of `table`. */
void measured_find(const struct result *r, const struct verdict_ops *const *table,
		   struct measured *out);
