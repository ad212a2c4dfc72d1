/* What the page cache held of the evaluation files before each evaluation. */
#include <math.h>

#include "judge/verdict.h"

static const double EVICTED_SHARE = 0.01; /* the most that evicting may leave */

static void judge_eval_cache(const struct result *r, const struct run_metrics *m, struct verdict *v)
{
	const struct residency *most = NULL;
	uint32_t at = 0, evaluations = 0, warm = 0;
	unsigned taken;
	double share;

	/* O_DIRECT goes past whatever is there */
	if (workload_base_store(r->workload)->flags & STORE_IS_UNCACHED)
		return;
	for (uint32_t i = 0; i < m->epochs; i++) {
		const struct residency *c = &r->usage[i].cache_eval;

		if (!m->epoch[i].has_eval || !c->known)
			continue;
		evaluations++;
		warm += verdict_cached(c) > VERDICT_CACHE_SHARE;
		if (!most || verdict_cached(c) > verdict_cached(most)) {
			most = c;
			at = i;
		}
	}
	if (!most) {
		verdict_found(v, VERDICT_UNKNOWN, FACT(CACHE_UNKNOWN, true));
		return;
	}
	if (most->memory) {
		verdict_found(v, VERDICT_WARN,
			      fact_with(FACT(CACHE_MEMORY, true), 0, most->file_system));
		verdict_takes(v, TAKES_STORAGE, REASON_INSTEAD_MEMORY);
		return;
	}
	share = verdict_cached(most);
	verdict_found(v, VERDICT_PASS,
		      FACT(CACHE_EVAL_HELD, (double)most->cached_bytes, (double)most->bytes, at + 1,
			   evaluations > 1));
	if (verdict_evicted(r, at) && share > EVICTED_SHARE && most->cached_bytes > 65536)
		verdict_found(v, share > VERDICT_CACHE_SHARE ? VERDICT_FAIL : VERDICT_WARN,
			      FACT(CACHE_EVAL_NOT_EVICTED));
	if (share <= VERDICT_CACHE_SHARE)
		return;
	taken = verdict_takes_cached(share);
	verdict_found(v, VERDICT_WARN,
		      FACT(CACHE_EVAL_MEASURED, taken == TAKES_STORAGE,
			   evaluations > 1 ? warm : (double)NAN, evaluations));
	verdict_takes(v, taken, REASON_INSTEAD_PAGE_CACHE);
}

extern const struct verdict_ops verdict_eval_cache;
const struct verdict_ops verdict_eval_cache = {
	.name = "eval-cache",
	.help = "How much of the evaluation files was in the page cache?",
	.about = ABOUT_ORIGIN,
	.needs = VERDICT_OF_EVALUATION | VERDICT_OF_EVAL_STEPS | VERDICT_OF_EPOCHS |
		 VERDICT_OF_FILES,
	.about_cache = true,
	.takes = TAKES_PART,
	.judge = judge_eval_cache,
};
