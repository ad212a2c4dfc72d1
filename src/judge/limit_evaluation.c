/* Evaluations have no barrier and no model: where their time went is what can be said. */
#include "judge/limit.h"

#include <math.h>

#include "base/clock.h"
#include "judge/cpu_loss.h"

static const double SMALL_LOSS = 0.05;   /* of the time: nothing to find */
static const double CACHED_SHARE = 0.5;  /* of the files in the page cache: it served */
static const double STALLED_SHARE = 0.4; /* of the lost time, in stalls */
static const double NO_CPU_SHARE = 0.4;  /* of the lost time, without a processor */

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

/* What the workers did most. */
static enum cause of_work(const struct shares *s, struct fact *f, double lost, double busy,
			  bool *reads)
{
	static const struct {
		enum work_kind kind;
		enum cause cause;
		enum reason reason;
	} kinds[] = {
		{WORK_OPEN, CAUSE_METADATA, REASON_LIMIT_EVAL_OPENS},
		{WORK_META, CAUSE_METADATA, REASON_LIMIT_EVAL_METADATA},
		{WORK_DATA, CAUSE_STORAGE, REASON_LIMIT_EVAL_STORAGE},
		{WORK_DECODE, CAUSE_DECODE, REASON_LIMIT_EVAL_DECODE},
		{WORK_PREPROCESS, CAUSE_PREPROCESS, REASON_LIMIT_EVAL_PREPROCESS},
		{WORK_TRANSPORT, CAUSE_TRANSPORT, REASON_LIMIT_EVAL_TRANSPORT},
		{WORK_FRAMEWORK, CAUSE_FRAMEWORK, REASON_LIMIT_EVAL_FRAMEWORK},
	};
	size_t most = 0;

	for (size_t i = 1; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		most = s->work_s[kinds[i].kind] > s->work_s[kinds[most].kind] ? i : most;
	*f = fact_of(kinds[most].reason, 3,
		     (const double[]){lost, busy, s->work_s[kinds[most].kind] / s->work});
	*reads = kinds[most].kind <= WORK_DATA;
	return kinds[most].cause;
}

/* Whether most of the loss is of threads that had no processor; `loss_s` of a rank. */
static bool at_processors(const struct result *r, double loss_s, struct limit *limit)
{
	static const enum cause cause_of_taker[] = {[CPU_TAKEN_BY_NOBODY] = CAUSE_PROCESSORS,
						    [CPU_TAKEN_BY_SELF] = CAUSE_PROCESSORS,
						    [CPU_TAKEN_BY_OTHERS] = CAUSE_OTHER_PROGRAMS,
						    [CPU_TAKEN_BY_QUOTA] = CAUSE_CPU_QUOTA,
						    [CPU_STOPPED] = CAUSE_STOPPED,
						    [CPU_FROZEN] = CAUSE_STOPPED};
	struct cpu_loss c;
	struct fact taker;

	cpu_loss_of(r, true, &c);
	if (!c.measured || !(c.lost_s > 0) || c.lost_s < NO_CPU_SHARE * loss_s)
		return false;
	limit->cause = cause_of_taker[c.taker];
	limit->cause_share = 100 * fmin(1, c.lost_s / loss_s);
	fact_add(&limit->facts, FACT(LIMIT_EVAL_NO_CPU, c.lost_share));
	if (cpu_loss_fact(r, &c, &taker))
		fact_add(&limit->facts, taker);
	return true;
}

void limit_of_evaluation(const struct result *r, const struct run_metrics *m, struct limit *limit)
{
	const struct steadiness *c = &r->judged.eval_steady;
	struct shares s;
	double loss, busy;

	if (!r->rank || !r->usage || m->evals == 0 || r->eval_steps == 0)
		return;
	s = sum_of(r);
	if (!(s.wall_s > 0))
		return;
	loss = s.wall_s - s.compute_s;
	limit->loss_share = 100 * loss / s.wall_s;
	busy = fmin(1, s.work * (r->ranks / s.workers) / s.wall_s);
	if (loss < SMALL_LOSS * s.wall_s) {
		limit->cause = CAUSE_COMPUTE;
		fact_add(&limit->facts, FACT(LIMIT_EVAL_COMPUTE, busy));
	} else if (at_processors(r, loss / r->ranks, limit)) {
		return;
	} else if (c->stalls > 0 && c->stalled_s * r->ranks >= STALLED_SHARE * loss) {
		limit->cause = CAUSE_STALL;
		fact_add(&limit->facts,
			 FACT(LIMIT_EVAL_STALL, c->stalls, c->stall[0].length_s, c->stall[0].at_s));
	} else if (s.work > 0) {
		struct fact f;
		bool reads;

		limit->cause = of_work(&s, &f, loss / s.wall_s, busy, &reads);
		fact_add(&limit->facts, f);
		if (reads && was_cached(r)) {
			limit->cause = CAUSE_PAGE_CACHE;
			fact_add(&limit->facts, FACT(LIMIT_EVAL_CACHED));
		}
	} else {
		limit->cause = CAUSE_OTHER;
		fact_add(&limit->facts, FACT(LIMIT_EVAL_OTHER, loss / s.wall_s));
	}
}
