/* A run that changed in its middle is two runs: no setting explains both. */
#include "judge/limit_unsteady.h"

#include <stdio.h>

#include "base/str.h"

static const double STALL_SHARE = 0.4;     /* of the lost time, in stalls */
static const double FORECAST_SHARE = 0.15; /* of the lost time in stalls: they spoil predictions */
static const double EFFECT_LEAST = 0.02;   /* of the training time: less limits nothing */
static const double SLOW_SHARE = 0.4;      /* of the lost time, by the last part's being slower */

static bool mostly_stalled(const struct steadiness *c, double loss_s, double share)
{
	return c->stalls > 0 && c->stalled_s > 0 && c->stalled_s >= share * loss_s;
}

/* `slow_s` of the time, by what is slower than the rest. */
static bool is_cause(const struct result *r, double slow_s, double loss_s)
{
	return slow_s >= SLOW_SHARE * loss_s && slow_s >= EFFECT_LEAST * r->judged.time.wall_s;
}

/* The time of the last part that it would not have taken at the rate before. */
static bool mostly_slower(const struct result *r, double loss_s)
{
	const struct steadiness *c = &r->judged.steady;
	double last_s = c->last_share * r->judged.time.wall_s;

	return c->changed && c->change != CHANGE_ALTERNATE && c->last_rate < c->before_rate &&
	       is_cause(r, last_s * (1 - c->last_rate / c->before_rate), loss_s);
}

/* The time of slow phases that they would not have taken at the fast rate. */
static bool mostly_phases(const struct result *r, double loss_s)
{
	const struct steadiness *c = &r->judged.steady;

	return c->changed && c->change == CHANGE_ALTERNATE && r->judged.time.wall_s > 0 &&
	       is_cause(r, c->slow_phases * c->slow_s * (1 - c->last_rate / c->before_rate),
			loss_s);
}

bool limit_unsteady(const struct result *r, double loss_s, char *cause, size_t cause_size,
		    char *out, size_t size)
{
	const struct steadiness *c = &r->judged.steady;
	const struct stall *s = &c->stall[0];

	out[0] = '\0';
	if (mostly_stalled(c, loss_s, STALL_SHARE)) {
		snprintf(cause, cause_size, "stall");
		str_append(out, size,
			   "limited by %s: %s stood still for %.3g s at %.3g s (epoch %u, step "
			   "%llu)",
			   c->stalls > 1 ? "stalls" : "a single stall",
			   s->process ? "all threads of this program" : "reading", s->length_s,
			   s->at_s, s->epoch, (unsigned long long)s->step);
		if (c->stalls > 1)
			str_append(out, size, ", the longest of %u", c->stalls);
		str_append(out, size,
			   "; %.3g s of the %.3g s lost were in %s. Other settings would not "
			   "change that.",
			   c->stalled_s < loss_s ? c->stalled_s : loss_s, loss_s,
			   c->stalls > 1 ? "them" : "it");
		return true;
	}
	if (mostly_phases(r, loss_s)) {
		snprintf(cause, cause_size, "unsteady");
		str_append(out, size,
			   "limited by slow phases: throughput alternates between %.4g and %.4g "
			   "samples/s, with %u slow phases of %.2g s on average",
			   c->before_rate, c->last_rate, c->slow_phases, c->slow_s);
		if (c->period_s > 0)
			str_append(out, size, ", one every %.2g s", c->period_s);
		str_append(out, size, ". Other settings would not change that.");
		return true;
	}
	if (!mostly_slower(r, loss_s))
		return false;
	snprintf(cause, cause_size, "unsteady");
	if (c->change == CHANGE_TREND)
		str_append(out, size,
			   "limited by throughput that fell during the run: %.4g samples/s in the "
			   "last quarter of the time, %.4g before",
			   c->last_rate, c->before_rate);
	else
		str_append(out, size,
			   "limited by throughput that fell at %.3g s (epoch %u, step %llu) from "
			   "%.4g to %.4g samples/s",
			   c->at_s, c->epoch, (unsigned long long)c->step, c->before_rate,
			   c->last_rate);
	str_append(out, size, ", because of %s", time_part_names[c->part]);
	if (c->rank != UINT32_MAX)
		str_append(out, size, " on rank %u alone", c->rank);
	str_append(out, size,
		   ". The effect of other settings cannot be predicted from such a run; measure "
		   "the lasting rate with a longer one.");
	return true;
}

bool limit_no_forecast(const struct result *r, double loss_s, char *out, size_t size)
{
	const struct steadiness *c = &r->judged.steady;

	if (c->changed)
		snprintf(out, size, "throughput changed during the run");
	else if (mostly_stalled(c, loss_s, FORECAST_SHARE))
		snprintf(out, size, "reading stood still for %.3g s", c->stalled_s);
	else
		return false;
	return true;
}
