/* Whether emulated computation took the time it should. */
#include <math.h>

#include "judge/verdict.h"

static const double CHANGE_SHARE = 0.02; /* of the training time: AU or throughput change by it */
static const double NO_CPU_SHARE = 0.5;  /* of the lateness: threads had no processor */

static void judge_compute(const struct result *r, const struct run_metrics *m, struct verdict *v)
{
	double nominal = r->workload->train.computation_time.a, share, late, change;
	const struct decomposition *d = &r->judged.time;
	bool no_cpu;

	if (!m->overshoot_known)
		return;
	share = m->compute_overshoot_mean_s / nominal;
	late = d->ranks ? m->compute_overshoot_mean_s * (double)d->steps / d->ranks : 0;
	change = d->wall_s > 0 ? late / d->wall_s : 0;
	verdict_say(v,
		    "The emulated computation time of %.6g s was exceeded by %.3f ms on average "
		    "(%.2f %%), by %.3f ms at most.",
		    nominal, 1e3 * m->compute_overshoot_mean_s, 100 * share,
		    1e3 * m->compute_overshoot_max_s);
	if (fabs(change) <= CHANGE_SHARE)
		return;
	v->level = VERDICT_WARN;
	no_cpu = d->late_compute_s >= NO_CPU_SHARE * late;
	verdict_say(v,
		    " That is %.1f %% of the training time: AU%s is up to %.1f points too high, or "
		    "throughput up to %.1f %% too low, because %s.",
		    100 * change, no_cpu ? " by DLIO's definition" : "", 100 * change, 100 * change,
		    no_cpu ? "threads had no processor when they should have gone on (whole-run AU "
			     "does not count this time as computation)"
			   : "this machine wakes threads late");
}

extern const struct verdict_ops verdict_compute;
const struct verdict_ops verdict_compute = {
	.name = "compute",
	.help = "Did the emulated computation take the configured time?",
	.about = ABOUT_MACHINE,
	.needs = VERDICT_OF_TRAINING,
	.judge = judge_compute,
};
