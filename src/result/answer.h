#pragma once
/* The short answer: what was asked for and what came of it, what limits it and what would change
 * that, whether to trust it, and where the rest is. The long form is result/text.h. */
#include "base/buf.h"
#include "result/metrics.h"
#include "result/result.h"

#define ANSWER_LINES 14 /* at most, with what was printed before */

/* All of it, in at most `lines` lines of 100 columns where its parts allow (7 or 8 are the least).
 * Nothing is cut: a fact is said as a whole or left out, but for the first of what limits the run
 * and what would help most, and verdicts that have no line of their own are named. */
void result_answer(const struct result *r, const struct run_metrics *m, bool color, unsigned lines,
		   struct buf *out);

/* The first rows of it, which the long form begins with, too: the title, AU with its target, the
 * rate. */
void answer_head(const struct result *r, const struct run_metrics *m, bool color, struct buf *out);
/* And the last ones: where the results, the trace and a page are. */
void answer_places(const struct result *r, struct buf *out);
