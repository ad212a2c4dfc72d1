/* Evaluations have no barrier and no model: where their time went is what can be said. */
#include "judge/limit_evaluation.h"

#include <math.h>
#include <stdio.h>

#include "base/clock.h"
#include "base/str.h"

static const double SMALL_LOSS = 0.05;   /* of the time: nothing to find */
static const double CACHED_SHARE = 0.5;  /* of the files in the page cache: it served */
static const double STALLED_SHARE = 0.4; /* of the lost time, in stalls */

struct shares {
	double wall_s, compute_s; /* of all ranks */
	double work_s[WORK_KINDS], work;
	double workers; /* of all ranks */
};

static struct shares sum_of(const struct result *r)
{
	struct shares s = {0};

	for (uint32_t k = 0; k < r->ranks; k++) {
		if (r->rank[k].lost)
			continue;
		s.workers += r->rank[k].workers ? r->rank[k].workers : 1;
		for (uint32_t e = 0; e < r->epochs_done; e++) {
			const struct rank_epoch *ep = &r->rank[k].epoch[e];

			if (!ep->has_eval)
				continue;
			s.wall_s += clock_seconds(ep->eval.end_ns - ep->eval.begin_ns);
			for (uint64_t i = 0; i < ep->eval.steps; i++)
				s.compute_s += clock_seconds(ep->eval.step[i].compute_end_ns -
							     ep->eval.step[i].compute_begin_ns -
							     step_late_ns(&ep->eval.step[i]));
			for (int w = 0; w < WORK_KINDS; w++)
				s.work_s[w] += clock_seconds(ep->eval_split.work_ns[w]);
		}
	}
	for (int w = 0; w < WORK_KINDS; w++)
		s.work += s.work_s[w];
	return s;
}

static bool was_cached(const struct result *r)
{
	double held = 0, of = 0;

	for (uint32_t i = 0; i < r->epochs_done; i++) {
		const struct residency *c = &r->usage[i].cache_eval;

		held += c->known ? (double)c->cached_bytes : 0;
		of += c->known ? (double)c->bytes : 0;
	}
	return of > 0 && held >= CACHED_SHARE * of;
}

void limit_of_evaluation(const struct result *r, const struct run_metrics *m, struct limit *limit)
{
	static const struct {
		enum work_kind kind;
		const char *cause, *what;
	} kinds[] = {
		{WORK_OPEN, "metadata", "opening files"},
		{WORK_META, "metadata", "reading headers and indexes"},
		{WORK_DATA, "storage", "reading samples"},
		{WORK_DECODE, "decode", "decoding"},
		{WORK_PREPROCESS, "preprocess", "preprocessing"},
		{WORK_TRANSPORT, "transport", "handing over batches"},
		{WORK_FRAMEWORK, "framework", "the framework's own code"},
	};
	const struct steadiness *c = &r->judged.eval_steady;
	struct shares s;
	double loss, busy;
	size_t most = 0;

	if (!r->rank || !r->usage || m->evals == 0)
		return;
	s = sum_of(r);
	if (!(s.wall_s > 0))
		return;
	loss = s.wall_s - s.compute_s;
	limit->loss_share = 100 * loss / s.wall_s;
	for (size_t i = 1; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		most = s.work_s[kinds[i].kind] > s.work_s[kinds[most].kind] ? i : most;
	busy = s.work * (r->ranks / s.workers) / s.wall_s;
	snprintf(limit->text, sizeof(limit->text), "Whole-run AU of evaluation %.1f %%: ",
		 m->eval_au.count ? c->whole_au : 100 * s.compute_s / s.wall_s);
	if (loss < SMALL_LOSS * s.wall_s) {
		snprintf(limit->cause, sizeof(limit->cause), "compute");
		str_append(limit->text, sizeof(limit->text),
			   "limited by computation (workers %.0f %% busy)", 100 * fmin(1, busy));
	} else if (c->stalls > 0 && c->stalled_s * r->ranks >= STALLED_SHARE * loss) {
		snprintf(limit->cause, sizeof(limit->cause), "stall");
		str_append(limit->text, sizeof(limit->text),
			   "limited by %s: reading stood still for %.3g s at %.3g s",
			   c->stalls > 1 ? "stalls" : "a single stall", c->stall[0].length_s,
			   c->stall[0].at_s);
	} else if (s.work > 0) {
		bool memory = was_cached(r) && kinds[most].kind <= WORK_DATA;

		snprintf(limit->cause, sizeof(limit->cause), "%s",
			 memory ? "page_cache" : kinds[most].cause);
		str_append(limit->text, sizeof(limit->text),
			   "limited by %s%s: %.0f %% of the time is lost waiting for batches; the "
			   "workers are busy %.0f %% of the time, %.0f %% of that with it",
			   kinds[most].what, memory ? " from the page cache" : "",
			   100 * loss / s.wall_s, 100 * fmin(1, busy),
			   100 * s.work_s[kinds[most].kind] / s.work);
	} else {
		snprintf(limit->cause, sizeof(limit->cause), "other");
		str_append(limit->text, sizeof(limit->text),
			   "limited by what is between the steps: %.0f %% of the time is neither "
			   "computation nor work of the workers",
			   100 * loss / s.wall_s);
	}
	str_append(limit->text, sizeof(limit->text), ". Measured: %s", r->judged.measured.text);
}
