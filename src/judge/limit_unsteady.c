/* A run that changed in its middle is two runs: no setting explains both. */
#include <math.h>

#include "base/clock.h"
#include "judge/limit_view.h"
#include "judge/stalls.h"

static const double STALL_SHARE = 0.4;     /* of the lost time, in stalls */
static const double FORECAST_SHARE = 0.15; /* of the lost time in stalls: they spoil predictions */
static const double EFFECT_LEAST = 0.02;   /* of the training time: less limits nothing */
static const double SLOW_SHARE = 0.4;      /* of the lost time, by the last part's being slower */

/* `slow_s` of the time, by what is slower than the rest. */
static bool is_cause(const struct limit_view *v, double slow_s)
{
	return slow_s >= SLOW_SHARE * v->loss && slow_s >= EFFECT_LEAST * v->d->wall_s;
}

double limit_lost_to_stalls(const struct limit_view *v)
{
	const struct steadiness *c = &v->r->judged.steady;

	return c->stalls > 0 ? fmin(c->stalled_s, v->loss) : 0;
}

/* The time of the last part that it would not have taken at the rate before. */
double limit_lost_to_slower_part(const struct limit_view *v)
{
	const struct steadiness *c = &v->r->judged.steady;

	if (!c->changed || c->change == CHANGE_ALTERNATE || c->last_rate >= c->before_rate)
		return 0;
	return c->last_share * v->d->wall_s * (1 - c->last_rate / c->before_rate);
}

/* The time of slow phases that they would not have taken at the fast rate. */
double limit_lost_to_phases(const struct limit_view *v)
{
	const struct steadiness *c = &v->r->judged.steady;

	return c->changed && c->change == CHANGE_ALTERNATE
		       ? c->slow_phases * c->slow_s * (1 - c->last_rate / c->before_rate)
		       : 0;
}

bool limit_at_stall(struct limit_view *v)
{
	const struct steadiness *c = &v->r->judged.steady;
	const struct stall *s = &c->stall[0];
	double stalled = limit_lost_to_stalls(v);

	if (!(stalled > 0) || stalled < STALL_SHARE * v->loss)
		return false;
	if (s->process)
		limit_found(v, FACT(LIMIT_STALL_PROCESS, s->length_s, s->at_s, s->epoch,
				    (double)s->step, c->stalls, stalled, v->loss));
	else
		limit_found(v, FACT(LIMIT_STALL, s->length_s, s->at_s, s->epoch, (double)s->step,
				    c->stalls, stalled, v->loss));
	limit_would(v, FACT(EFFECT_UNTOLD));
	return true;
}

/* Steps that follow the end of a checkpoint within half of a slow phase's time, and those that are
 * far from any: of a rank that is there. */
struct after {
	double checkpoints;
	double near_n, near_s, far_n, far_s;
	double near_wait_s, far_wait_s; /* of that, for batches */
};

/* The last end of those that had ended by then, which `*next` and `last` are of an earlier moment.
 */
static int64_t last_end(const struct rank_epoch *ep, int64_t at, uint32_t *next, int64_t last)
{
	for (; *next < ep->saves && (!ep->save[*next].done || ep->save[*next].end_ns <= at);
	     (*next)++)
		if (ep->save[*next].done && ep->save[*next].end_ns > last)
			last = ep->save[*next].end_ns;
	return last;
}

static struct after after_checkpoints(const struct result *r, uint32_t epochs, double slow_s)
{
	const struct rank_result *k = &r->rank[result_present_rank(r)];
	struct after a = {0};

	for (uint32_t e = 0; e < epochs; e++) {
		uint32_t blocks, next = 0;
		const struct phase *p = phases_of(&k->epoch[e], false, &blocks);
		int64_t end = INT64_MIN;

		for (uint32_t b = 0; b < blocks; b++) {
			end = last_end(&k->epoch[e], p[b].begin_ns, &next, end);
			for (uint64_t i = 0; end != INT64_MIN && i < p[b].steps; i++) {
				const struct step_times *t = &p[b].step[i];
				double took = clock_seconds(t->barrier_out_ns - t->ask_ns);
				double since = clock_seconds(t->ask_ns - end);
				bool near = since < slow_s / 2;

				/* between them, phases end at various moments */
				if (!near && since < 1.5 * slow_s)
					continue;
				*(near ? &a.near_n : &a.far_n) += 1;
				*(near ? &a.near_s : &a.far_s) += took;
				*(near ? &a.near_wait_s : &a.far_wait_s) +=
					clock_seconds(t->got_ns - t->ask_ns);
			}
		}
		a.checkpoints += k->epoch[e].saves;
	}
	return a;
}

/* Whether what is slow is what follows checkpoints: steps near them are slow, the others are not.
 */
static bool follows_checkpoints(const struct limit_view *v)
{
	const struct steadiness *c = &v->r->judged.steady;
	struct after a = after_checkpoints(v->r, v->m->epochs, c->slow_s);
	double far, times = c->last_rate > 0 ? c->before_rate / c->last_rate : INFINITY;

	if (a.checkpoints < 2 || a.near_n < 2 || a.far_n < 2)
		return false;
	far = a.far_s / a.far_n;
	/* what is slow is reading */
	if (a.near_wait_s / a.near_n - a.far_wait_s / a.far_n < (a.near_s / a.near_n - far) / 2)
		return false;
	return a.near_s / a.near_n >= far + (times - 1) / 3 * far &&
	       c->slow_phases <= a.checkpoints + 1 && 2 * c->slow_phases >= a.checkpoints;
}

bool limit_at_phases(struct limit_view *v)
{
	const struct steadiness *c = &v->r->judged.steady;

	if (!is_cause(v, limit_lost_to_phases(v)))
		return false;
	if (follows_checkpoints(v))
		limit_found(v,
			    FACT(LIMIT_AFTER_CHECKPOINTS, c->last_rate, c->before_rate, c->slow_s));
	else
		limit_found(v, FACT(LIMIT_PHASES, c->before_rate, c->last_rate, c->slow_phases,
				    c->slow_s, c->period_s > 0 ? c->period_s : NAN));
	limit_would(v, FACT(EFFECT_UNTOLD));
	return true;
}

bool limit_at_slower_part(struct limit_view *v)
{
	const struct steadiness *c = &v->r->judged.steady;
	struct fact f;

	if (!is_cause(v, limit_lost_to_slower_part(v)))
		return false;
	f = c->change == CHANGE_TREND ? FACT(LIMIT_TREND, c->before_rate, c->last_rate)
				      : FACT(LIMIT_FELL, c->at_s, c->epoch, (double)c->step,
					     c->before_rate, c->last_rate);
	limit_found(v, fact_with(f, 0, time_part_names[c->part]));
	if (c->rank != UINT32_MAX)
		limit_found(v, FACT(LIMIT_FELL_RANK, c->rank));
	limit_would(v, FACT(EFFECT_UNSTEADY));
	return true;
}

bool limit_no_forecast(const struct limit_view *v, struct fact *why)
{
	const struct steadiness *c = &v->r->judged.steady;

	if (c->changed)
		*why = FACT(NO_MODEL_CHANGED);
	else if (c->stalled_s > 0 && c->stalled_s >= FORECAST_SHARE * v->loss)
		*why = FACT(NO_MODEL_STALLED, c->stalled_s);
	else
		return false;
	return true;
}
