/* Numbers of a workload, of those that a profile has. */
#include "trace/workload/workload_numbers.h"

#include <math.h>

bool workload_counts(const struct profile *a, enum profile_key f)
{
	return profile_has(a, f) || a->value[f].in_log > 0;
}

double workload_number(const struct profile *a, enum profile_key f, double otherwise)
{
	return profile_has(a, f)       ? a->value[f].number
	       : workload_counts(a, f) ? a->value[f].in_log
				       : otherwise;
}

#define UNREAD_BYTES 100e3 /* of a sample of a mapped file, where nothing shows steps either */

double workload_unread(const struct profile *a)
{
	double steps = workload_number(a, PROFILE_STEPS, 0) *
		       fmax(1, workload_number(a, PROFILE_RANKS, 1));
	double files = fmax(1, workload_number(a, PROFILE_FILES, 1));

	if (a->visits > 0 || profile_has(a, PROFILE_SAMPLES))
		return 0;
	if (steps > 0)
		return ceil(steps / fmax(1, workload_number(a, PROFILE_EPOCHS, 1)) / files);
	return a->job->sees & JOB_SEES_REQUESTS
		       ? fmax(1, round(workload_number(a, PROFILE_DATA_BYTES, 0) / files /
				       UNREAD_BYTES))
		       : 0;
}

double workload_mean_batch(const struct profile *a)
{
	double steps = workload_number(a, PROFILE_STEPS, 0) *
		       fmax(1, workload_number(a, PROFILE_RANKS, 1));
	size_t n = 0;

	for (size_t i = 0; i < a->visits; i++)
		n += !a->sample[a->visit[i].sample].evaluation &&
		     !a->reader[a->visit[i].reader].left_out;
	return profile_has(a, PROFILE_STEPS) && steps > 0 && !a->stream ? round((double)n / steps)
									: 0;
}

double workload_of_batch(const struct profile *a, bool evaluation, bool requests)
{
	enum profile_key f = evaluation && profile_has(a, PROFILE_EVAL_BATCH) ? PROFILE_EVAL_BATCH
									      : PROFILE_BATCH;

	if ((a->stream && requests) || workload_unread(a) > 0)
		return 1;
	return profile_has(a, f) ? a->value[f].number : workload_mean_batch(a);
}

uint32_t workload_of_evaluations(const struct profile *a)
{
	double each = workload_number(a, PROFILE_EVALUATIONS, 0) /
		      fmax(1, workload_number(a, PROFILE_EPOCHS, 1));

	return each > 1 && each == floor(each) ? (uint32_t)each : 1;
}
