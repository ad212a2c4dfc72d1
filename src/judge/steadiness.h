#pragma once
/* Whether training went on as it began: changes of its rate, of reading that computation hides, and
 * single heavy waits. Rules and thresholds: docs/metrics.md, "Change during the run". */
#include "base/err.h"
#include "result/metrics.h"
#include "result/result.h"

/* From the training of the finished epochs, or from their evaluations; `out->known` is false where
 * there are too few steps. */
int steadiness_find(const struct result *r, const struct run_metrics *m, bool eval,
		    struct steadiness *out, struct err *e);
/* Memory it takes while it looks. */
uint64_t steadiness_bytes(void);
