/* A run that changed in its middle is two runs: no setting explains both. */
#include <math.h>

#include "judge/limit_view.h"

static const double STALL_SHARE = 0.4;     /* of the lost time, in stalls */
static const double FORECAST_SHARE = 0.15; /* of the lost time in stalls: they spoil predictions */
static const double EFFECT_LEAST = 0.02;   /* of the training time: less limits nothing */
static const double SLOW_SHARE = 0.4;      /* of the lost time, by the last part's being slower */

static bool mostly_stalled(const struct steadiness *c, double loss_s, double share)
{
	return c->stalls > 0 && c->stalled_s > 0 && c->stalled_s >= share * loss_s;
}

/* `slow_s` of the time, by what is slower than the rest. */
static bool is_cause(const struct limit_view *v, double slow_s)
{
	return slow_s >= SLOW_SHARE * v->loss && slow_s >= EFFECT_LEAST * v->d->wall_s;
}

/* The time of the last part that it would not have taken at the rate before. */
static bool mostly_slower(const struct limit_view *v)
{
	const struct steadiness *c = &v->r->judged.steady;
	double last_s = c->last_share * v->d->wall_s;

	return c->changed && c->change != CHANGE_ALTERNATE && c->last_rate < c->before_rate &&
	       is_cause(v, last_s * (1 - c->last_rate / c->before_rate));
}

/* The time of slow phases that they would not have taken at the fast rate. */
static bool mostly_phases(const struct limit_view *v)
{
	const struct steadiness *c = &v->r->judged.steady;

	return c->changed && c->change == CHANGE_ALTERNATE && v->d->wall_s > 0 &&
	       is_cause(v, c->slow_phases * c->slow_s * (1 - c->last_rate / c->before_rate));
}

bool limit_at_stall(struct limit_view *v)
{
	const struct steadiness *c = &v->r->judged.steady;
	const struct stall *s = &c->stall[0];
	double stalled = c->stalled_s < v->loss ? c->stalled_s : v->loss;

	if (!mostly_stalled(c, v->loss, STALL_SHARE))
		return false;
	if (s->process)
		limit_found(v, FACT(LIMIT_STALL_PROCESS, s->length_s, s->at_s, s->epoch,
				    (double)s->step, c->stalls, stalled, v->loss));
	else
		limit_found(v, FACT(LIMIT_STALL, s->length_s, s->at_s, s->epoch, (double)s->step,
				    c->stalls, stalled, v->loss));
	limit_would(v, FACT(EFFECT_NO_SETTING));
	return true;
}

bool limit_at_phases(struct limit_view *v)
{
	const struct steadiness *c = &v->r->judged.steady;

	if (!mostly_phases(v))
		return false;
	limit_found(v, FACT(LIMIT_PHASES, c->before_rate, c->last_rate, c->slow_phases, c->slow_s,
			    c->period_s > 0 ? c->period_s : NAN));
	limit_would(v, FACT(EFFECT_NO_SETTING));
	return true;
}

bool limit_at_slower_part(struct limit_view *v)
{
	const struct steadiness *c = &v->r->judged.steady;
	struct fact f;

	if (!mostly_slower(v))
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
	else if (mostly_stalled(c, v->loss, FORECAST_SHARE))
		*why = FACT(NO_MODEL_STALLED, c->stalled_s);
	else
		return false;
	return true;
}
