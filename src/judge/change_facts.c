/* What verdicts find of a run that changed, for training and for evaluations. */
#include "judge/change_facts.h"

#include <math.h>

#include "judge/stalls.h"

static const double STALL_WAITED_S = 0.25;      /* ranks waited in stalls: worth a warning */
static const double STALL_WAITED_SHARE = 0.005; /* and of the training time */
static const double LASTS = 0.5;                /* of the time, that a rise lasts at least */
static const double STALL_HIDDEN_S = 0.5;       /* of a stall that prefetching hid */

static double target_of(const struct result *r)
{
	return 100 * r->workload->metric.au;
}

/* The rank whose reading alone changed; NAN: it was not a single rank. */
static double rank_of(const struct steadiness *c)
{
	return c->rank != UINT32_MAX ? (double)c->rank : (double)NAN;
}

static struct fact rate_fact(const struct steadiness *c, bool fell)
{
	double step = (double)c->step, rank = rank_of(c);

	if (c->change == CHANGE_ALTERNATE)
		return FACT(CHANGE_ALTERNATES, c->before_rate, c->last_rate, c->slow_phases,
			    c->slow_s, c->period_s > 0 ? c->period_s : NAN);
	if (c->change == CHANGE_TREND)
		return fell ? FACT(CHANGE_FELL_SLOWLY, c->last_rate, c->at_s, c->before_rate, rank)
			    : FACT(CHANGE_ROSE_SLOWLY, c->last_rate, c->at_s, c->before_rate, rank);
	return fell ? FACT(CHANGE_FELL, c->at_s, c->epoch, step, c->before_rate, c->last_rate, rank)
		    : FACT(CHANGE_ROSE, c->at_s, c->epoch, step, c->before_rate, c->last_rate,
			   rank);
}

static void judge_rate(struct verdict *v, const struct result *r, bool eval,
		       const struct steadiness *c, const struct series_stat *au)
{
	bool fell = c->last_rate < c->before_rate;
	struct fact f = rate_fact(c, fell);

	if (c->change == CHANGE_ALTERNATE) {
		verdict_found(v, VERDICT_WARN, f);
		return;
	}
	verdict_found(v, VERDICT_WARN, fact_with(f, 0, time_part_names[c->part]));
	if (c->cut_share > 0)
		verdict_found(v, VERDICT_WARN, FACT(CHANGE_CUT, c->cut_share));
	/* what was better for a while may be worse again */
	if (!fell && c->last_share < LASTS)
		return;
	verdict_found(v, VERDICT_WARN,
		      FACT(CHANGE_LASTING, c->last_rate, c->last_payload, c->last_share, c->last_au,
			   c->before_au, c->whole_au, eval));
	if (fell && au && au->count && au->mean >= target_of(r) && c->last_au < target_of(r))
		verdict_found(v, VERDICT_FAIL, FACT(CHANGE_TARGET, target_of(r)));
}

static void judge_hidden(struct verdict *v, const struct steadiness *c)
{
	double busy = fmin(1, c->read_busy);

	verdict_found(v, VERDICT_WARN,
		      c->change == CHANGE_TREND
			      ? FACT(CHANGE_HIDDEN_SLOWLY, c->before_read_s, c->last_read_s, busy,
				     rank_of(c))
			      : FACT(CHANGE_HIDDEN, c->at_s, c->epoch, (double)c->step,
				     c->before_read_s, c->last_read_s, busy, rank_of(c)));
	if (c->kept_up_s > 0)
		verdict_found(v, VERDICT_WARN, FACT(CHANGE_KEEPS_UP, c->kept_up_s));
}

static void judge_stalls(struct verdict *v, bool eval, const struct steadiness *c)
{
	const struct stall *s = &c->stall[0];
	double step = (double)s->step;
	bool hidden = s->waited_s < 0.05 * s->length_s;

	verdict_found(
		v, VERDICT_WARN,
		s->process ? FACT(CHANGE_STALL_PROCESS, s->length_s, s->at_s, s->epoch, step,
				  s->rank, hidden ? NAN : s->waited_s)
		: hidden ? FACT(CHANGE_STALL_HIDDEN, s->length_s, s->at_s, s->epoch, step, s->rank)
			 : FACT(CHANGE_STALL, s->length_s, s->at_s, s->epoch, step, s->rank,
				s->waited_s));
	if (c->stalls > 1)
		verdict_found(v, VERDICT_WARN, FACT(CHANGE_STALLS, c->stalls, c->stalled_s));
	if (c->stalled_s > 0 && c->au_without_stalls >= 1 && !c->stalls_again)
		verdict_found(v, VERDICT_WARN,
			      FACT(CHANGE_WITHOUT, c->au_without_stalls, c->stalls, eval));
}

bool stalls_matter(const struct result *r, bool eval)
{
	const struct steadiness *c = eval ? &r->judged.eval_steady : &r->judged.steady;

	return c->stalls > 0 &&
	       (c->stalled_s >= fmax(STALL_WAITED_S, STALL_WAITED_SHARE * phase_wall_s(r, eval)) ||
		c->stall[0].length_s >= STALL_HIDDEN_S);
}

void judge_change(struct verdict *v, const struct result *r, bool eval,
		  const struct series_stat *au)
{
	const struct steadiness *c = eval ? &r->judged.eval_steady : &r->judged.steady;
	bool waits = stalls_matter(r, eval);

	if (!c->changed && !c->hidden && !waits)
		return;
	/* of a window that is long enough there is nothing else to say */
	if (v->level == VERDICT_PASS)
		v->facts.count = 0;
	if (c->changed)
		judge_rate(v, r, eval, c, au);
	else if (c->hidden)
		judge_hidden(v, c);
	if (!waits)
		return;
	if (v->facts.count == 0)
		verdict_found(v, VERDICT_WARN, FACT(CHANGE_WAITS));
	judge_stalls(v, eval, c);
}
