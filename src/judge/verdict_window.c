/* Whether the steps that AU is measured in stand for the run, or were chosen. */
#include <math.h>

#include "judge/verdict.h"
#include "judge/window.h"

static const double SHARE = 0.2;          /* of the steps or of the time, left out by choice */
static const double CHOICE_POINTS = 2;    /* AU off by the choice, up or down */
static const double WHOLE_POINTS = 5;     /* AU off whole-run AU, checkpoints apart */
static const double COUNTED_SHARE = 0.05; /* compat.dlio: steps counted in throughput */

static struct fact window_fact(const struct result *r)
{
	double start = (double)r->workload->output.metric.exclude_start_steps;
	double end = (double)r->workload->output.metric.exclude_end_steps;
	bool dlio = r->workload->compat.dlio;

	return start > 0 ? FACT(WINDOW_LEAVES, start > 1 ? start : NAN, end > 0 ? end : NAN, dlio,
				start <= 1)
			 : FACT(WINDOW_LEAVES_END, end, dlio);
}

/* What the choice leaves out and does to AU, and at which end. */
static void judge_choice(struct verdict *v, const struct window_view *w, double whole_au, bool eval)
{
	double off = w->au - w->default_au;
	bool start = w->start > 0, end = w->end > 0, both = start && end;
	bool much = w->steps_share > SHARE || w->time_share > SHARE;

	if (fabs(off) <= CHOICE_POINTS && fabs(w->au - whole_au) > WHOLE_POINTS)
		off = w->au - whole_au;
	verdict_found(v, VERDICT_PASS,
		      FACT(WINDOW_CHOICE, 100 * w->steps_share, 100 * w->time_share, w->au,
			   w->default_au, whole_au, eval));
	if (fabs(off) > CHOICE_POINTS)
		verdict_found(v, VERDICT_FAIL,
			      off > 0 ? FACT(WINDOW_RAISES, off, !end, !start, both)
				      : FACT(WINDOW_LOWERS, -off, !end, !start, both));
	else if (much)
		verdict_found(v, VERDICT_FAIL, FACT(WINDOW_MUCH, SHARE, !end, !start, both));
}

/* DLIO divides all steps but two by the time of the window. */
static void judge_counted(struct verdict *v, const struct run_metrics *m,
			  const struct window_view *w)
{
	double off = w->counted - 1;

	if (!(w->counted > 0) || fabs(off) <= COUNTED_SHARE)
		return;
	verdict_found(v, w->chosen && off > 0 ? VERDICT_FAIL : VERDICT_WARN,
		      FACT(WINDOW_COUNTED, m->train_throughput.mean, 100 * fabs(off), off > 0));
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
		verdict_found(v, VERDICT_PASS, window_fact(r));
	if (train.chosen && train.known && m->train_au.count)
		judge_choice(v, &train, whole_au(r, m), false);
	if (r->workload->compat.dlio && train.known && m->train_throughput.count)
		judge_counted(v, m, &train);
	/* DLIO divides AU of evaluation by the number of ranks */
	if (eval.chosen && eval.known && m->eval_au.count && !r->workload->compat.dlio)
		judge_choice(v, &eval, NAN, true);
}

extern const struct verdict_ops verdict_window;
const struct verdict_ops verdict_window = {
	.name = "window",
	.help = "Do the steps that AU is measured in stand for the whole run?",
	.takes = TAKES_WINDOW,
	.judge = judge_window,
};
