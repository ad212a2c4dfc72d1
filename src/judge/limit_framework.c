/* The framework's own code, whose time is emulated (framework.costs): in workers, where more of
 * them share it, and in the rank, where nobody does. */
#include "judge/limit_view.h"

bool limit_at_framework(struct limit_view *v)
{
	double code = v->lost[LOST_FRAMEWORK];
	double of_rank = v->d->framework_step_s, of_start = v->d->framework_start_s;

	if (v->doing != LOST_FRAMEWORK)
		return false;
	limit_found(v, fact_with(FACT(LIMIT_FRAMEWORK, code / v->d->wall_s), 0,
				 v->r->workload->framework_costs));
	if (of_start >= 0.5 * code) {
		limit_found(v, FACT(LIMIT_FRAMEWORK_START));
		return true;
	}
	if (result_workers(v->r) == 0)
		of_rank = code; /* it loads, too */
	if (of_rank >= 0.5 * code)
		limit_found(
			v, FACT(LIMIT_FRAMEWORK_RANK, of_rank * v->r->ranks / (double)v->d->steps));
	else
		limit_found(v, FACT(LIMIT_FRAMEWORK_WORKERS,
				    v->d->work_s[WORK_FRAMEWORK] / (double)v->d->batches, v->busy));
	limit_workers_would(v);
	return true;
}
