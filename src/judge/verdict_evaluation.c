/* Whether evaluations were made, were long enough to measure the storage, and went on as they
 * began. */
#include <math.h>

#include "judge/run_length.h"
#include "judge/say_change.h"
#include "judge/window.h"

static const double GAP_POINTS = 2;   /* AU above that of all steps that is still no trap */
static const double START_POINTS = 5; /* above it although the window is long enough */

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

/* Of all steps but the first of an evaluation, above those of all: what a slow start costs. */
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

	if (gap > GAP_POINTS && queue >= RUN_LENGTH_QUEUE_MOST) {
		/* beside training, these are not the numbers that a target is for */
		verdict_worsen(v, r->only_evaluated ? VERDICT_FAIL : VERDICT_WARN);
		verdict_say(
			v,
			"Not steady: %llu steps in each evaluation, %llu batches prefetched. AU "
			"of evaluation over all steps is %.1f %%; by DLIO's definition, %.1f %%, "
			"it describes the prefetch queue. At least %llu steps are needed.",
			(unsigned long long)steps, (unsigned long long)ahead, whole,
			m->eval_au.mean, (unsigned long long)run_length_needed(ahead, out));
	} else if (gap > GAP_POINTS && queue > RUN_LENGTH_QUEUE_NOTICED) {
		verdict_worsen(v, VERDICT_WARN);
		verdict_say(v,
			    "Barely steady: %.0f %% of the measured steps of an evaluation can be "
			    "served by the %llu prefetched batches. AU over all steps is %.1f %%, "
			    "%.1f %% by DLIO's definition.",
			    100 * queue, (unsigned long long)ahead, whole, m->eval_au.mean);
	} else if (start_points(r, m, gap) > START_POINTS) {
		verdict_worsen(v, VERDICT_WARN);
		verdict_say(v,
			    "Steady after a slow start: AU of evaluation over all steps is %.1f "
			    "%%; by DLIO's definition, %.1f %%, it leaves out the first step.",
			    whole, m->eval_au.mean);
	} else {
		verdict_say(v,
			    "%llu steps in each evaluation, %llu batches prefetched; AU over all "
			    "steps is %.1f %%, %.1f %% by DLIO's definition; %.1f samples/s.",
			    (unsigned long long)steps, (unsigned long long)ahead, whole,
			    m->eval_au.mean, m->eval_throughput.mean);
	}
}

static void judge_evaluation(const struct result *r, const struct run_metrics *m, struct verdict *v)
{
	if (r->eval_steps == 0) {
		v->level = VERDICT_WARN;
		verdict_say(v,
			    "Evaluation is enabled, but %lld evaluation files do not fill a step: "
			    "nothing was evaluated.",
			    (long long)r->workload->dataset.num_files_eval);
		return;
	}
	for (uint32_t i = 0; i < m->epochs; i++) {
		if (!m->epoch[i].has_eval || m->epoch[i].eval_valid)
			continue;
		v->level = r->only_evaluated ? VERDICT_FAIL : VERDICT_WARN;
		verdict_say(v, "The evaluation of epoch %u has no AU: %s.", i + 1,
			    m->epoch[i].eval_why);
		return;
	}
	if (m->eval_au.count == 0) {
		v->level = VERDICT_UNKNOWN;
		verdict_say(v, "No evaluation was completed.");
		return;
	}
	judge_length(v, r, m);
	say_change(v, r, true, r->only_evaluated ? &m->eval_au : NULL);
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
