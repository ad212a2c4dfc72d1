#pragma once
/* What held the run back most, in one sentence with its evidence. The rules: docs/metrics.md. */
#include "result/metrics.h"
#include "result/result.h"

/* From the finished epochs, with r->judged.time and .epoch filled; leaves all empty where nothing
 * can be said. *basis is allocated: judgement_release. */
void limit_find(const struct result *r, const struct run_metrics *m, struct limit *limit,
		struct outlook *outlook, struct basis **basis);
/* From r->judged and the finished epochs; leaves it empty where nothing can be said. */
void limit_of_evaluation(const struct result *r, const struct run_metrics *m, struct limit *limit);
