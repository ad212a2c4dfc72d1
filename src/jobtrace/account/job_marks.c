/* What the application itself marked in the log. */
#include <math.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "jobtrace/account/account_parts.h"
#include "jobtrace/account/observations.h"

void account_marks(struct account *a)
{
	const struct job *job = a->job;
	double *s, mean = 0, square = 0;
	size_t n = 0;
	struct fact *f;

	if (!(job->sees & JOB_SEES_COMPUTE))
		return;
	for (size_t i = 0; i < job->events; i++)
		n += job->event[i].kind == JOB_COMPUTE;
	s = xmalloc((n + 1) * sizeof(*s));
	n = 0;
	for (size_t i = 0; i < job->events; i++) {
		const struct job_event *v = &job->event[i];

		if (v->kind == JOB_COMPUTE && v->begin_ns != JOB_UNKNOWN &&
		    v->end_ns != JOB_UNKNOWN)
			s[n++] = (double)(v->end_ns - v->begin_ns) / 1e9;
	}
	if (n) {
		qsort(s, n, sizeof(*s), values_compare);
		for (size_t i = 0; i < n; i++)
			mean += s[i] / (double)n;
		for (size_t i = 0; i < n; i++)
			square += (s[i] - mean) * (s[i] - mean) / (double)n;
		f = account_seen(a, ACCOUNT_COMPUTE, s[n / 2]);
		f->stdev = sqrt(square);
		f->rule = "the median of what the application marked as computation";
		f->of = f->agree = n;
	}
	free(s);
}
