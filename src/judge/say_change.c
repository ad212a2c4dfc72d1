/* The sentences about a run that changed, for training and for evaluations. */
#include "judge/say_change.h"

#include <math.h>
#include <stdio.h>

#include "base/clock.h"
#include "base/str.h"

static const double STALL_WAITED_S = 0.25;      /* ranks waited in stalls: worth a warning */
static const double STALL_WAITED_SHARE = 0.005; /* and of the training time */
static const double STALL_HIDDEN_S = 0.5;       /* of a stall that prefetching hid */

static double target_of(const struct result *r)
{
	return 100 * r->workload->metric.au;
}

/* " on rank 3", when only its reading changed. */
static const char *whose(const struct steadiness *c, char *out, size_t size)
{
	out[0] = '\0';
	if (c->rank != UINT32_MAX)
		snprintf(out, size, " on rank %u alone", c->rank);
	return out;
}

static void say_rate_change(struct verdict *v, const struct result *r, bool eval,
			    const struct steadiness *c, const struct series_stat *au)
{
	bool fell = c->last_rate < c->before_rate;
	const char *went = fell ? "fell" : "rose";
	char bytes[32], rank[32];

	str_bytes(c->last_payload, bytes, sizeof(bytes));
	if (c->change == CHANGE_ALTERNATE) {
		verdict_say(v,
			    "The rate alternates between %.4g and %.4g samples/s: %u slow phases "
			    "of %.2g s on average",
			    c->before_rate, c->last_rate, c->slow_phases, c->slow_s);
		if (c->period_s > 0)
			verdict_say(v, ", one every %.2g s", c->period_s);
		verdict_say(v, ".");
		return;
	}
	if (c->change == CHANGE_TREND)
		verdict_say(v,
			    "Throughput %s during the whole run: %.4g samples/s in the last "
			    "quarter of the time (from %.3g s), %.4g before",
			    went, c->last_rate, c->at_s, c->before_rate);
	else
		verdict_say(v,
			    "Throughput %s at %.3g s (epoch %u, step %llu) from %.4g to %.4g "
			    "samples/s",
			    went, c->at_s, c->epoch, (unsigned long long)c->step, c->before_rate,
			    c->last_rate);
	verdict_say(v, "; a step spends %s time on %s%s.", fell ? "more" : "less",
		    time_part_names[c->part], whose(c, rank, sizeof(rank)));
	verdict_say(v,
		    " The lasting rate is %.4g samples/s (%s/s decoded). AU of this last part "
		    "(%.0f %% of "
		    "the time) is %.1f %%; before it %.1f %%; of %s %.1f %%.",
		    c->last_rate, bytes, 100 * c->last_share, c->last_au, c->before_au,
		    eval ? "all evaluations" : "the whole run", c->whole_au);
	if (fell && au && au->count && au->mean >= target_of(r) && c->last_au < target_of(r)) {
		verdict_worsen(v, VERDICT_FAIL);
		verdict_say(v, " The target of %.4g %% (metric.au) is met only by the faster part.",
			    target_of(r));
	}
}

static void say_hidden_change(struct verdict *v, const struct steadiness *c)
{
	char rank[32];

	whose(c, rank, sizeof(rank));
	if (c->change == CHANGE_TREND)
		verdict_say(v, "Reading became slower during the whole run%s", rank);
	else
		verdict_say(v, "Reading became slower at %.3g s (epoch %u, step %llu)%s", c->at_s,
			    c->epoch, (unsigned long long)c->step, rank);
	verdict_say(v,
		    ": a batch took %.3g ms, then %.3g ms. Computation hides it so far: the "
		    "workers read for %.0f %% of the time, and AU does not show it.",
		    1e3 * c->before_read_s, 1e3 * c->last_read_s, 100 * fmin(1, c->read_busy));
	if (c->kept_up_s > 0)
		verdict_say(v,
			    " If this continues, the workers no longer keep up after about "
			    "another %.2g s.",
			    c->kept_up_s);
}

static void say_stalls(struct verdict *v, bool eval, const struct steadiness *c)
{
	const struct stall *s = &c->stall[0];

	verdict_say(v, " %s stood still for %.3g s at %.3g s (epoch %u, step %llu, rank %u)",
		    s->process ? "All threads of this program" : "Reading", s->length_s, s->at_s,
		    s->epoch, (unsigned long long)s->step, s->rank);
	if (s->waited_s < 0.05 * s->length_s)
		verdict_say(v, ", hidden by prefetching");
	else
		verdict_say(v, "; a rank waited for %.3g s of it", s->waited_s);
	if (c->stalls > 1)
		verdict_say(v, ". %u such stalls took %.3g s", c->stalls, c->stalled_s);
	verdict_say(v, ".");
	if (c->stalled_s > 0 && c->au_without_stalls >= 1)
		verdict_say(v, " Without %s, %s is %.1f %%.", c->stalls > 1 ? "them" : "it",
			    eval ? "AU of all evaluations" : "whole-run AU", c->au_without_stalls);
}

/* Of training or evaluations, mean over ranks. */
static double wall_of(const struct result *r, bool eval)
{
	double wall = 0, ranks = 0;

	if (!eval)
		return r->judged.time.wall_s;
	for (uint32_t k = 0; r->rank && k < r->ranks; k++) {
		ranks += !r->rank[k].lost;
		for (uint32_t e = 0; !r->rank[k].lost && e < r->epochs_done; e++)
			wall += clock_seconds(r->rank[k].epoch[e].eval.end_ns -
					      r->rank[k].epoch[e].eval.begin_ns);
	}
	return ranks > 0 ? wall / ranks : 0;
}

bool stalls_matter(const struct result *r, bool eval)
{
	const struct steadiness *c = eval ? &r->judged.eval_steady : &r->judged.steady;

	return c->stalls > 0 &&
	       (c->stalled_s >= fmax(STALL_WAITED_S, STALL_WAITED_SHARE * wall_of(r, eval)) ||
		c->stall[0].length_s >= STALL_HIDDEN_S);
}

void say_change(struct verdict *v, const struct result *r, bool eval, const struct series_stat *au)
{
	const struct steadiness *c = eval ? &r->judged.eval_steady : &r->judged.steady;
	bool long_enough = v->level == VERDICT_PASS;

	if (!c->changed && !c->hidden && !stalls_matter(r, eval))
		return;
	verdict_worsen(v, VERDICT_WARN);
	/* of a window that is long enough there is nothing else to say */
	if (long_enough)
		v->text[0] = '\0';
	if (c->changed || c->hidden) {
		verdict_say(v, "%sNot steady: ", v->text[0] ? " " : "");
		if (c->changed)
			say_rate_change(v, r, eval, c, au);
		else
			say_hidden_change(v, c);
	}
	if (!stalls_matter(r, eval))
		return;
	if (v->text[0] == '\0')
		verdict_say(v, "Steady but for heavy waits:");
	say_stalls(v, eval, c);
}
