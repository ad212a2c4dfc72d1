/* Whether emulated computation took the time it should. */
#include <math.h>

#include "judge/verdict.h"

static const double CHANGE_SHARE = 0.02; /* of the training time: AU or throughput change by it */
static const double NO_CPU_SHARE = 0.5;  /* of the lateness: threads had no processor */

static void judge_compute(const struct result *r, const struct run_metrics *m, struct verdict *v)
{
	double nominal = r->workload->train.computation_time.a, share, late, change;
	const struct decomposition *d = &r->judged.time;

	if (!m->overshoot_known)
		return;
	share = m->compute_overshoot_mean_s / nominal;
	late = d->ranks ? m->compute_overshoot_mean_s * (double)d->steps / d->ranks : 0;
	change = d->wall_s > 0 ? late / d->wall_s : 0;
	verdict_found(v, VERDICT_PASS,
		      FACT(COMPUTE_TOOK, nominal, m->compute_overshoot_mean_s, 100 * share,
			   m->compute_overshoot_max_s));
	if (fabs(change) > CHANGE_SHARE)
		verdict_found(v, VERDICT_WARN,
			      d->late_compute_s >= NO_CPU_SHARE * late
				      ? FACT(COMPUTE_NO_PROCESSOR, 100 * change)
				      : FACT(COMPUTE_LATE, 100 * change));
}

extern const struct verdict_ops verdict_compute;
const struct verdict_ops verdict_compute = {
	.name = "compute",
	.help = "Did the emulated computation take the configured time?",
	.about = ABOUT_MACHINE,
	.needs = VERDICT_OF_TRAINING,
	.judge = judge_compute,
};
