/* Whether evaluations were made, were long enough to measure the storage, and went on as they
 * began. */
#include <math.h>

#include "judge/run_length.h"
#include "judge/change_facts.h"
#include "judge/window.h"

static const double GAP_POINTS = 2;   /* difference from AU over all steps that is still accepted */
static const double START_POINTS = 5; /* the same where the window is long enough: a slow start */

/* Steps of the shortest evaluation that a rank made. */
static uint64_t shortest(const struct result *r)
{
	uint64_t least = UINT64_MAX;

	for (uint32_t k = 0; k < r->ranks; k++)
		for (uint32_t e = 0; !r->rank[k].lost && e < r->epochs_done; e++) {
			const struct rank_epoch *ep = &r->rank[k].epoch[e];

			if (ep->has_eval && ep->eval.steps < least)
				least = ep->eval.steps;
		}
	return least == UINT64_MAX ? 0 : least;
}

/* AU points that a slow start costs: AU without the first step, less AU of all steps. */
static double start_points(const struct result *r, const struct run_metrics *m, double gap)
{
	struct window_view w;

	window_look(r, m, true, &w);
	return w.known ? fmin(gap, w.start_points) : gap;
}

/* As for training: are the measured steps more than the queue? */
static void judge_length(struct verdict *v, const struct result *r, const struct run_metrics *m)
{
	uint64_t ahead = r->rank[result_present_rank(r)].prefetch_batches, steps = shortest(r);
	uint64_t out = (uint64_t)(r->workload->output.metric.exclude_start_steps +
				  r->workload->output.metric.exclude_end_steps);
	double queue = run_length_queue_share(ahead, steps > out ? steps - out : 0);
	double whole = r->judged.eval_steady.whole_au,
	       gap = m->eval_au.mean - whole - r->judged.eval_steady.late_percent;

	if (gap > GAP_POINTS && queue >= RUN_LENGTH_QUEUE_MOST)
		/* beside training, these are not the numbers that a target is for */
		verdict_found(v, r->only_evaluated ? VERDICT_FAIL : VERDICT_WARN,
			      FACT(EVALUATION_QUEUE, (double)steps, (double)ahead, whole,
				   m->eval_au.mean, (double)run_length_needed(ahead, out)));
	else if (gap > GAP_POINTS && queue > RUN_LENGTH_QUEUE_NOTICED)
		verdict_found(
			v, VERDICT_WARN,
			FACT(EVALUATION_BARELY, queue, (double)ahead, whole, m->eval_au.mean));
	else if (start_points(r, m, gap) > START_POINTS)
		verdict_found(v, VERDICT_WARN, FACT(EVALUATION_SLOW_START, whole, m->eval_au.mean));
	else
		verdict_found(v, VERDICT_PASS,
			      FACT(EVALUATION_STEADY, (double)steps, (double)ahead, whole,
				   m->eval_au.mean, m->eval_throughput.mean));
}

static void judge_evaluation(const struct result *r, const struct run_metrics *m, struct verdict *v)
{
	if (r->eval_steps == 0) {
		verdict_found(
			v, VERDICT_WARN,
			FACT(EVALUATION_NO_STEP, (double)r->workload->dataset.num_files_eval));
		return;
	}
	for (uint32_t i = 0; i < m->epochs; i++) {
		if (!m->epoch[i].has_eval || m->epoch[i].eval_valid)
			continue;
		verdict_found(v, r->only_evaluated ? VERDICT_FAIL : VERDICT_WARN,
			      fact_with(FACT(EVALUATION_NO_AU, i + 1), 0, m->epoch[i].eval_why));
		return;
	}
	if (m->eval_au.count == 0) {
		verdict_found(v, VERDICT_UNKNOWN, FACT(EVALUATION_NONE));
		return;
	}
	judge_length(v, r, m);
	judge_change(v, r, true, r->only_evaluated ? &m->eval_au : NULL);
}

extern const struct verdict_ops verdict_evaluation;
const struct verdict_ops verdict_evaluation = {
	.name = "evaluation",
	.help = "Were evaluations carried out, long enough, and did they go on as they began?",
	.about = ABOUT_LENGTH,
	.needs = VERDICT_OF_EVALUATION,
	.takes = TAKES_LASTING,
	.judge = judge_evaluation,
};
