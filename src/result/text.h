#pragma once
/* A judged result as people read it on a terminal, verdicts first. */
#include "base/buf.h"
#include "result/metrics.h"
#include "result/result.h"

void result_text(const struct result *r, const struct run_metrics *m, bool color, struct buf *out);
