/* What the lack of processors had to do with it. */
#include "judge/limit_cpu.h"

#include <math.h>
#include <stdio.h>

#include "base/str.h"
#include "judge/cpu_loss.h"

static const double LOSS_SHARE = 0.4;  /* of what was lost, by threads without a processor */
static const double STEAL_SHARE = 0.2; /* of the processors: decoding takes so much longer */

static const char *const causes[] = {
	[CPU_TAKEN_BY_SELF] = "decode",     [CPU_TAKEN_BY_OTHERS] = "other_programs",
	[CPU_TAKEN_BY_QUOTA] = "cpu_quota", [CPU_STOPPED] = "stopped",
	[CPU_FROZEN] = "stopped",
};

static const char *const heads[] = {
	[CPU_TAKEN_BY_SELF] = "decoding on this machine",
	[CPU_TAKEN_BY_OTHERS] = "other programs on this machine",
	[CPU_TAKEN_BY_QUOTA] = "the processor quota of its control group",
};

static const char *const remedies[] = {
	[CPU_TAKEN_BY_SELF] = "use more processors, or decode less",
	[CPU_TAKEN_BY_OTHERS] = "end them, or run where processors are free",
	[CPU_TAKEN_BY_QUOTA] = "raise the quota",
};

/* Whether decoding, or the framework's code, is most of what the workers do when they are not
 * waiting for a processor. */
static bool decodes(const double work[WORK_KINDS])
{
	double computed = work[WORK_DECODE] + work[WORK_FRAMEWORK];

	return computed > 0 && computed >= work[WORK_OPEN] + work[WORK_META] + work[WORK_DATA] &&
	       computed >= work[WORK_PREPROCESS];
}

/* What of that is the framework's own code, and no work of this program. */
static bool is_framework(const double work[WORK_KINDS])
{
	return work[WORK_FRAMEWORK] > work[WORK_DECODE];
}

/* Of the loss; the critical path has what a rank alone lost, and all others waited for. */
static double share_of_loss(const struct decomposition *d, double stopped_s)
{
	double loss = d->wall_s - d->mean_s[TIME_COMPUTE];

	return loss > 0
		       ? fmax(fmax(d->mean_s[TIME_NO_CPU], d->critical_s[TIME_NO_CPU]), stopped_s) /
				 loss
		       : 0;
}

bool limit_cpu(const struct result *r, char *cause, struct outlook *outlook, char *out, size_t size)
{
	const struct decomposition *d = &r->judged.time;
	struct cpu_loss l;
	char who[256];
	bool framework;

	cpu_loss_of(r, false, &l);
	if (!l.measured)
		return false;
	if (l.steal_share >= STEAL_SHARE && decodes(d->work_s)) {
		snprintf(cause, 32, "hypervisor");
		snprintf(out, size,
			 "limited by the hypervisor of this machine, which took %.0f %% of its "
			 "processors (steal) while the run was decoding.",
			 100 * l.steal_share);
		return true;
	}
	if ((share_of_loss(d, l.stopped_s) < LOSS_SHARE && !cpu_loss_spoils(&l)) ||
	    l.taker == CPU_TAKEN_BY_NOBODY || (l.taker == CPU_TAKEN_BY_SELF && !decodes(d->work_s)))
		return false;
	framework = l.taker == CPU_TAKEN_BY_SELF && is_framework(d->work_s);
	snprintf(cause, 32, "%s", framework ? "framework" : causes[l.taker]);
	out[0] = '\0';
	if (l.taker != CPU_TAKEN_BY_SELF) {
		*outlook = (struct outlook){0};
		snprintf(outlook->why, sizeof(outlook->why),
			 "threads of the run had no processor for %.0f %% of the training time",
			 100 * l.lost_share);
	}
	cpu_loss_who(r, &l, who, sizeof(who));
	if (l.taker == CPU_STOPPED || l.taker == CPU_FROZEN)
		str_append(out, size,
			   "limited by an interruption: %s, which cost %.0f %% of the "
			   "training time; repeat the run.",
			   who, 100 * l.lost_share);
	else
		str_append(out, size,
			   "limited by %s: threads of the run had no processor for %.0f %% of the "
			   "training time, because %s; %s.",
			   l.taker == CPU_TAKEN_BY_QUOTA && l.quota_of_threads
				   ? "the processor quota of a control group"
			   : framework ? "the framework's own code (framework.costs)"
				       : heads[l.taker],
			   100 * l.lost_share, who,
			   framework ? "use more processors" : remedies[l.taker]);
	return true;
}
