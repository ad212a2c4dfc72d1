#pragma once
/* Single heavy waits: a read that took far longer than reads do. Rules: docs/metrics.md, "Change
 * during the run". */
#include "result/result.h"

#define STALLS_MOST 64

/* The blocks of training of an epoch (from 0), or its evaluation. */
const struct phase *phases_of(const struct rank_epoch *ep, bool eval, uint32_t *n);

/* Reads that stood still, one after another; by the clock of the steps. */
struct stall_spans {
	uint32_t n;
	bool again; /* there are several, and not all in the beginning: the run goes on with them */
	struct stall_span {
		int64_t begin_ns, end_ns;
	} span[STALLS_MOST];
};

/* When checkpoint `index` of an epoch (both from 0) was under way on any rank: what is read
 * meanwhile is slow for a known reason. */
struct stall_span checkpoint_span(const struct result *r, uint32_t epoch, uint32_t index);

/* Of training or evaluations, mean over ranks. */
double phase_wall_s(const struct result *r, bool eval);
/* Fills the stalls of `out` from the training or the evaluations of finished epochs. `spans` are
 * the times to leave out of what ranks usually see; empty where heavy waits are so many that they
 * are usual. */
void stalls_find(const struct result *r, bool eval, struct steadiness *out,
		 struct stall_spans *spans);
/* Where the same finds more in shorter waits, which ranks have lost much of the time to: fills them
 * in instead. Which steps they lie in is not told. */
void stalls_find_brief(const struct result *r, bool eval, struct steadiness *out);
