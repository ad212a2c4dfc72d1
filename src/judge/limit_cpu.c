/* What the lack of processors had to do with it. */
#include <math.h>

#include "judge/limit_view.h"

static const double LOSS_SHARE = 0.4;  /* of what was lost, by threads without a processor */
static const double STEAL_SHARE = 0.2; /* of the processors: decoding takes so much longer */

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

/* The critical path has what a rank alone lost, and all others waited for. */
double limit_lost_to_cpu(const struct limit_view *v)
{
	double whole = fmax(v->no_cpu.lost_s, v->no_cpu.stopped_s);

	return fmin(fmax(v->lost[LOST_NO_CPU], whole), v->loss);
}

void limit_view_cpu(struct limit_view *v)
{
	cpu_loss_of(v->r, false, &v->no_cpu);
	v->short_of_cpu =
		v->no_cpu.measured && (limit_lost_to_cpu(v) >= LOSS_SHARE * v->loss ||
				       cpu_loss_spoils(&v->no_cpu) || v->doing == LOST_NO_CPU);
}

bool limit_at_hypervisor(struct limit_view *v)
{
	if (!v->no_cpu.measured || !(v->no_cpu.steal_share >= STEAL_SHARE) ||
	    !decodes(v->d->work_s))
		return false;
	limit_found(v, FACT(LIMIT_HYPERVISOR, v->no_cpu.steal_share));
	return true;
}

static bool taken_by(const struct limit_view *v, enum cpu_taker taker)
{
	return v->short_of_cpu && v->no_cpu.taker == taker;
}

static bool found(struct limit_view *v, struct fact what, struct fact effect)
{
	struct fact taker;

	limit_found(v, what);
	if (cpu_loss_fact(v->r, &v->no_cpu, &taker))
		limit_found(v, taker);
	limit_would(v, effect);
	return true;
}

/* Of a run that others took the processors from nothing can be said about the storage, nor
 * predicted. */
static bool found_others(struct limit_view *v, struct fact what, struct fact effect)
{
	*v->outlook = (struct outlook){.why = FACT(NO_MODEL_PROCESSOR, v->no_cpu.lost_share),
				       .costs = v->outlook->costs};
	return found(v, what, effect);
}

bool limit_at_own_decoding(struct limit_view *v)
{
	return taken_by(v, CPU_TAKEN_BY_SELF) && decodes(v->d->work_s) &&
	       found(v, FACT(LIMIT_NO_CPU_DECODE, v->no_cpu.lost_share),
		     FACT(EFFECT_LESS_DECODING));
}

bool limit_at_own_framework(struct limit_view *v)
{
	return taken_by(v, CPU_TAKEN_BY_SELF) && decodes(v->d->work_s) &&
	       is_framework(v->d->work_s) &&
	       found(v, FACT(LIMIT_NO_CPU_FRAMEWORK, v->no_cpu.lost_share),
		     FACT(EFFECT_MORE_PROCESSORS));
}

bool limit_at_other_programs(struct limit_view *v)
{
	return taken_by(v, CPU_TAKEN_BY_OTHERS) &&
	       found_others(v, FACT(LIMIT_NO_CPU_OTHERS, v->no_cpu.lost_share),
			    FACT(EFFECT_FREE_PROCESSORS));
}

bool limit_at_quota(struct limit_view *v)
{
	return taken_by(v, CPU_TAKEN_BY_QUOTA) &&
	       found_others(v, FACT(LIMIT_NO_CPU_QUOTA, v->no_cpu.lost_share),
			    FACT(EFFECT_RAISE_QUOTA));
}

bool limit_at_interruption(struct limit_view *v)
{
	return (taken_by(v, CPU_STOPPED) || taken_by(v, CPU_FROZEN)) &&
	       found_others(v, FACT(LIMIT_INTERRUPTED, v->no_cpu.lost_share), FACT(EFFECT_REPEAT));
}

/* By the run itself, which is not at decoding, or by nobody that is known. */
bool limit_at_no_processor(struct limit_view *v)
{
	return v->short_of_cpu &&
	       found(v, FACT(LIMIT_NO_CPU, v->no_cpu.lost_share), FACT(EFFECT_MORE_PROCESSORS));
}
