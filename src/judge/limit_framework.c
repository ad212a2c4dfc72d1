/* The framework's own code, whose time is emulated (framework.costs): in workers, where more of
 * them share it, and in the rank, where nobody does. */
#include <math.h>

#include "judge/limit_view.h"

static const double LEAST_SHARE = 0.3; /* of the lost time */

/* Of the time that ranks waited for busy workers, what those were at. */
static double busy_with(const struct limit_view *v, double work_s)
{
	const double *mean = v->d->mean_s;
	double queued = mean[TIME_WAIT + WAIT_QUEUE] + mean[TIME_WAIT + WAIT_STARVED];

	return v->work > 0 ? queued * work_s / v->work : 0;
}

/* Of the lost time the most that has another reason. */
static double largest_other(const struct limit_view *v)
{
	const double *mean = v->d->mean_s, *work = v->d->work_s;
	const double others[] = {
		mean[TIME_WAIT + WAIT_OPEN] + mean[TIME_WAIT + WAIT_DATA] + busy_with(v, v->io),
		mean[TIME_WAIT + WAIT_DECODE] + busy_with(v, work[WORK_DECODE]),
		mean[TIME_WAIT + WAIT_PREPROCESS] + busy_with(v, work[WORK_PREPROCESS]),
		mean[TIME_WAIT + WAIT_TRANSPORT] + busy_with(v, work[WORK_TRANSPORT]),
		mean[TIME_NO_CPU] + busy_with(v, work[WORK_NO_CPU]),
		mean[TIME_WAIT + WAIT_START],
		mean[TIME_CHECKPOINT],
		mean[TIME_COLLECTIVE] + mean[TIME_OTHER],
		v->skew,
	};
	double most = 0;

	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		most = fmax(most, others[i]);
	return most;
}

bool limit_at_framework(struct limit_view *v)
{
	double code = v->d->mean_s[TIME_FRAMEWORK] + busy_with(v, v->d->work_s[WORK_FRAMEWORK]);
	double of_rank = v->d->framework_step_s, of_start = v->d->framework_start_s;

	if (code < LEAST_SHARE * v->loss || code <= largest_other(v))
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
