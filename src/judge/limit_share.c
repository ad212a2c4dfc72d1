/* To what the lost time of a run went: every cause is held against its share of it. */
#include "judge/limit_view.h"

static const enum lost_to of_wait[WAIT_PARTS] = {
	[WAIT_START] = LOST_START,           [WAIT_STARVED] = LOST_UNTOLD,
	[WAIT_QUEUE] = LOST_UNTOLD,          [WAIT_OPEN] = LOST_REQUESTS,
	[WAIT_DATA] = LOST_REQUESTS,         [WAIT_DECODE] = LOST_DECODE,
	[WAIT_PREPROCESS] = LOST_PREPROCESS, [WAIT_TRANSPORT] = LOST_TRANSPORT,
	[WAIT_FRAMEWORK] = LOST_FRAMEWORK,   [WAIT_NO_CPU] = LOST_NO_CPU,
	[WAIT_OTHER] = LOST_UNTOLD,
};

static const enum lost_to of_work[WORK_KINDS] = {
	[WORK_OPEN] = LOST_REQUESTS,         [WORK_META] = LOST_REQUESTS,
	[WORK_DATA] = LOST_REQUESTS,         [WORK_DECODE] = LOST_DECODE,
	[WORK_PREPROCESS] = LOST_PREPROCESS, [WORK_TRANSPORT] = LOST_TRANSPORT,
	[WORK_FRAMEWORK] = LOST_FRAMEWORK,   [WORK_NO_CPU] = LOST_NO_CPU,
};

void limit_view_lost(struct limit_view *v)
{
	const double *mean = v->d->mean_s;
	double queued = mean[TIME_WAIT + WAIT_QUEUE] + mean[TIME_WAIT + WAIT_STARVED];
	double handed = v->d->work_s[WORK_TRANSPORT] > 0 ? 0 : mean[TIME_WAIT + WAIT_TRANSPORT];
	double late = v->skew - v->skew_of_compute, waited = 0;

	for (int w = 0; w < WAIT_PARTS; w++) {
		v->lost[of_wait[w]] += mean[TIME_WAIT + w];
		waited += mean[TIME_WAIT + w];
	}
	/* a rank that waits for busy workers waits for what those are at; so does one that wakes up
	 * for a batch that takes no packing: it slept because of that */
	v->lost[LOST_TRANSPORT] -= handed;
	v->lost[LOST_UNTOLD] += handed;
	queued += handed;
	for (int k = 0; k < WORK_KINDS && v->work > 0; k++) {
		double s = queued * v->d->work_s[k] / v->work;

		v->lost[of_work[k]] += s;
		v->lost[LOST_UNTOLD] -= s;
	}
	/* and one that waits for a rank whose data is late, for that data */
	for (int k = 0; k < LOST_KINDS && waited > 0; k++)
		v->lost[k] *= 1 + late / waited;
	v->lost[LOST_BARRIER] = waited > 0 ? v->skew_of_compute : v->skew;
	v->lost[LOST_CHECKPOINT] = mean[TIME_CHECKPOINT];
	v->lost[LOST_BETWEEN] = mean[TIME_COLLECTIVE] + mean[TIME_OTHER];
}

enum lost_to limit_most_lost(const struct limit_view *v)
{
	int most = 0;

	for (int k = 1; k < LOST_KINDS; k++)
		most = v->lost[k] > v->lost[most] ? k : most;
	return (enum lost_to)most;
}
