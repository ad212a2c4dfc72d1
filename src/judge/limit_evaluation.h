#pragma once
/* What held back a run of evaluations alone. */
#include "result/metrics.h"
#include "result/result.h"

/* From r->judged and the finished epochs; leaves it empty where nothing can be said. */
void limit_of_evaluation(const struct result *r, const struct run_metrics *m, struct limit *limit);
