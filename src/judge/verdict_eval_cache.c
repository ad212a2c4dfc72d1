/* What the page cache held of the evaluation files before each evaluation. */
#include "base/str.h"
#include "judge/verdict.h"
#include "store/store.h"

static const double CACHE_SHARE = 0.10;      /* of the files, in the page cache: it was measured */
static const double NOT_STORAGE_SHARE = 0.5; /* from there on, it was not the storage */
static const double EVICTED_SHARE = 0.01;    /* the most that evicting may leave */

static double share_of(const struct residency *c)
{
	return c->bytes ? (double)c->cached_bytes / (double)c->bytes : 0;
}

/* Whether it was to be evicted before this epoch. */
static bool was_evicted(const struct result *r, uint32_t epoch)
{
	int how = r->workload->storage.page_cache;

	return how == PAGE_CACHE_COLD ? epoch == 0 : how != PAGE_CACHE_KEEP;
}

static void judge_eval_cache(const struct result *r, const struct run_metrics *m, struct verdict *v)
{
	const struct residency *most = NULL;
	uint32_t at = 0, evaluations = 0, warm = 0;
	char a[32], b[32];
	double share;

	/* O_DIRECT goes past whatever is there */
	if (workload_base_store(r->workload)->flags & STORE_IS_UNCACHED)
		return;
	for (uint32_t i = 0; i < m->epochs; i++) {
		const struct residency *c = &r->usage[i].cache_eval;

		if (!m->epoch[i].has_eval || !c->known)
			continue;
		evaluations++;
		warm += share_of(c) > CACHE_SHARE;
		if (!most || share_of(c) > share_of(most)) {
			most = c;
			at = i;
		}
	}
	if (!most) {
		v->level = VERDICT_UNKNOWN;
		verdict_say(v,
			    "How much of the evaluation files was in the page cache is unknown.");
		return;
	}
	if (most->memory) {
		v->level = VERDICT_WARN;
		verdict_say(v,
			    "The evaluation files are on %s, which is memory: no storage was "
			    "measured.",
			    most->file_system);
		verdict_takes(v, TAKES_STORAGE, "memory");
		return;
	}
	share = share_of(most);
	verdict_say(v,
		    "%s of %s of the evaluation files were in the page cache before the "
		    "evaluation of epoch %u%s",
		    str_bytes((double)most->cached_bytes, a, sizeof(a)),
		    str_bytes((double)most->bytes, b, sizeof(b)), at + 1,
		    evaluations > 1 ? ", the maximum" : "");
	if (was_evicted(r, at) && share > EVICTED_SHARE && most->cached_bytes > 65536) {
		v->level = share > CACHE_SHARE ? VERDICT_FAIL : VERDICT_WARN;
		verdict_say(v, ", although storage.page_cache should have kept them out of it");
	}
	if (share <= CACHE_SHARE) {
		verdict_close(v);
		return;
	}
	verdict_worsen(v, VERDICT_WARN);
	verdict_say(v, ": the evaluation measured memory%s",
		    share >= NOT_STORAGE_SHARE ? ", not storage" : " in part");
	if (evaluations > 1)
		verdict_say(v, " (%u of %u evaluations began with more than %.0f %% cached)", warm,
			    evaluations, 100 * CACHE_SHARE);
	verdict_close(v);
	verdict_takes(v, share >= NOT_STORAGE_SHARE ? TAKES_STORAGE : TAKES_PART, "the page cache");
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
