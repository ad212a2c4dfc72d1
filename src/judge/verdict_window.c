/* Whether the steps that AU is measured in stand for the run, or were chosen. */
#include <math.h>

#include "judge/verdict.h"
#include "judge/window.h"

static const double SHARE = 0.2;          /* of the steps or of the time, left out by choice */
static const double CHOICE_POINTS = 2;    /* AU off by the choice, up or down */
static const double WHOLE_POINTS = 5;     /* AU off whole-run AU, checkpoints apart */
static const double COUNTED_SHARE = 0.05; /* compat.dlio: steps counted in throughput */

/* "the first 30 and the last 10 steps of each epoch" */
static void say_what(struct verdict *v, const struct result *r)
{
	long long start = (long long)r->workload->output.metric.exclude_start_steps;
	long long end = (long long)r->workload->output.metric.exclude_end_steps;

	verdict_say(v, "AU by DLIO's definition leaves out ");
	if (start == 1)
		verdict_say(v, "the first step and ");
	else if (start > 0)
		verdict_say(v, "the first %lld%s", start, end > 0 ? " and " : " steps");
	if (end > 0)
		verdict_say(v, "the last %lld step%s", end, end == 1 ? "" : "s");
	verdict_say(v, " of each %s (output.metric.exclude_start_steps, exclude_end_steps).",
		    r->workload->compat.dlio ? "block" : "epoch or evaluation");
}

/* What the choice leaves out and does to AU, and at which end. */
static void judge_choice(struct verdict *v, const struct window_view *w, double whole_au,
			 const char *of)
{
	double off = w->au - w->default_au;
	const char *at = w->start > 0 && w->end > 0 ? "start and end"
			 : w->end > 0               ? "end"
						    : "start";
	bool much = w->steps_share > SHARE || w->time_share > SHARE, apart;

	if (fabs(off) <= CHOICE_POINTS && fabs(w->au - whole_au) > WHOLE_POINTS)
		off = w->au - whole_au;
	apart = fabs(off) > CHOICE_POINTS;
	verdict_say(v, " Beyond the first step these are %.1f %% of the %s steps and %.1f %% of ",
		    100 * w->steps_share, of, 100 * w->time_share);
	verdict_say(v, "their time. AU is %.1f %%, with the default window %.1f %%", w->au,
		    w->default_au);
	if (isfinite(whole_au))
		verdict_say(v, ", over all steps %.1f %%", whole_au);
	verdict_say(v, ".");
	if (!much && !apart)
		return;
	verdict_worsen(v, VERDICT_FAIL);
	verdict_say(v, " The excluded %s ", at);
	if (apart)
		verdict_say(v, "%s AU by %.1f points", off > 0 ? "raises" : "lowers", fabs(off));
	else
		verdict_say(v, "%s more than %.0f %%", w->start > 0 && w->end > 0 ? "are" : "is",
			    100 * SHARE);
	verdict_say(v, ": this AU does not count for a target.");
}

/* DLIO divides all steps but two by the time of the window. */
static void judge_counted(struct verdict *v, const struct run_metrics *m,
			  const struct window_view *w)
{
	double off = w->counted - 1;

	if (!(w->counted > 0) || fabs(off) <= COUNTED_SHARE)
		return;
	verdict_worsen(v, w->chosen && off > 0 ? VERDICT_FAIL : VERDICT_WARN);
	verdict_say(v,
		    "%sThroughput by DLIO's formula (compat.dlio) is %.1f samples/s: it counts all "
		    "steps but two of each block and divides by the time of those in the window, "
		    "which makes it %.0f %% too %s.",
		    v->text[0] ? " " : "", m->train_throughput.mean, 100 * fabs(off),
		    off > 0 ? "high" : "low");
}

/* Compute over all steps, without the time that checkpoints stop training: in no window either. */
static double whole_au(const struct result *r, const struct run_metrics *m)
{
	const struct decomposition *d = &r->judged.time;
	double share = d->wall_s > 0 ? d->mean_s[TIME_CHECKPOINT] / d->wall_s : 0;

	return share < 1 ? (m->whole_au.mean + m->late_percent) / (1 - share) : NAN;
}

static void judge_window(const struct result *r, const struct run_metrics *m, struct verdict *v)
{
	struct window_view train, eval;

	window_look(r, m, false, &train);
	window_look(r, m, true, &eval);
	if (train.chosen &&
	    ((train.known && m->train_au.count) || (eval.known && m->eval_au.count)))
		say_what(v, r);
	if (train.chosen && train.known && m->train_au.count)
		judge_choice(v, &train, whole_au(r, m), "training");
	if (r->workload->compat.dlio && train.known && m->train_throughput.count)
		judge_counted(v, m, &train);
	/* DLIO divides AU of evaluation by the number of ranks */
	if (eval.chosen && eval.known && m->eval_au.count && !r->workload->compat.dlio)
		judge_choice(v, &eval, NAN, "evaluation");
}

extern const struct verdict_ops verdict_window;
const struct verdict_ops verdict_window = {
	.name = "window",
	.help = "Do the steps that AU is measured in stand for the whole run?",
	.takes = TAKES_WINDOW,
	.judge = judge_window,
};
