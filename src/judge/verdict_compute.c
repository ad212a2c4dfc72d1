/* Whether emulated computation took the time it should. */
#include <math.h>

#include "judge/verdict.h"

static const double OVERSHOOT_SHARE = 0.02;

static void judge_compute(const struct result *r, const struct run_metrics *m, struct verdict *v)
{
	double nominal = r->workload->train.computation_time.a, share;

	if (!m->overshoot_known)
		return;
	share = m->compute_overshoot_mean_s / nominal;
	verdict_say(v,
		    "The emulated computation time of %.6g s was exceeded by %.3f ms on average "
		    "(%.2f %%), by %.3f ms at most.",
		    nominal, 1e3 * m->compute_overshoot_mean_s, 100 * share,
		    1e3 * m->compute_overshoot_max_s);
	if (fabs(share) > OVERSHOOT_SHARE) {
		v->level = VERDICT_WARN;
		verdict_say(v, " AU is overstated by up to that share, because this machine wakes "
			       "threads late.");
	}
}

extern const struct verdict_ops verdict_compute;
const struct verdict_ops verdict_compute = {
	.name = "compute",
	.help = "Did the emulated computation take the configured time?",
	.needs = VERDICT_OF_TRAINING,
	.judge = judge_compute,
};
