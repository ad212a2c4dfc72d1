/* What the readers of a job did beside their requests: decoding, Python, the wait for a processor.
 *
 * Where the messages of the workers are seen, what a worker took from a batch's message to its
 * answer, less its requests, is divided among the samples of the batch: all of it counts, whatever
 * lies between, before or behind the requests. Of a stream, among those with requests: samples
 * without any are the same visit in all batches, and batches differ. Elsewhere it is what lies
 * between the samples of a batch. */
#include "trace/workload/recorded_work.h"

#include <stdlib.h>

#include "base/alloc.h"
#include "base/compare.h"
#include "trace/profile/profile_parts.h"

#define KNOWN_SHARE 0.5 /* of the visits */

/* Of a batch of one reader. */
struct of_batch {
	double visits, reading, read_ns;
	int64_t first_ns; /* begin of its first visit */
};

static size_t *tasks_of_readers(const struct profile *a)
{
	size_t *first = xcalloc(a->readers + 2, sizeof(*first));

	for (size_t i = 0; i < a->tasks; i++)
		first[a->task[i].reader + 1]++;
	for (size_t i = 0; i < a->readers; i++)
		first[i + 1] += first[i];
	return first;
}

/* The task of a visit; SIZE_MAX: not known. */
static size_t task_of(const struct profile *a, const size_t *first, size_t visit)
{
	const struct visit *v = &a->visit[visit];
	uint32_t k = a->piece ? a->piece[visit].task : v->batch;
	size_t n = first[v->reader + 1] - first[v->reader];

	return k == JOB_NONE || k >= n ? SIZE_MAX : first[v->reader] + k;
}

static bool has_reads(const struct profile *a, size_t visit)
{
	return !a->piece || a->piece[visit].n > 0;
}

static void add(struct values *known, double *work, double ns)
{
	*work = ns > 0 ? ns : 0;
	values_add(known, *work);
}

static void by_tasks(const struct profile *a, double *work, struct values *known)
{
	AUTO_FREE size_t *first = tasks_of_readers(a);
	AUTO_FREE struct of_batch *of = xcalloc(a->tasks + 1, sizeof(*of));

	for (size_t i = 0; i < a->tasks; i++)
		of[i].first_ns = INT64_MAX;
	for (size_t i = 0; i < a->visits; i++) {
		size_t t = task_of(a, first, i);

		if (t == SIZE_MAX)
			continue;
		of[t].visits++;
		of[t].reading += has_reads(a, i);
		of[t].read_ns += (double)a->visit[i].read_ns;
		LOWER(of[t].first_ns, a->visit[i].begin_ns);
	}
	for (size_t i = 0; i < a->visits; i++) {
		size_t t = task_of(a, first, i);
		const struct of_batch *b = t == SIZE_MAX ? NULL : &of[t];
		int64_t begin;
		double part;

		if (!b || a->task[t].answered_ns == JOB_UNKNOWN ||
		    a->task[t].begin_ns == JOB_UNKNOWN)
			continue;
		/* samples come elsewhere in other epochs, without what a first batch takes */
		if (!a->piece && t == first[a->visit[i].reader])
			continue;
		begin = a->task[t].begin_ns;
		/* what is before the first request of a worker belongs to its start */
		if (t == first[a->visit[i].reader])
			RAISE(begin, b->first_ns);
		part = !(b->reading > 0) ? 1 / b->visits : has_reads(a, i) ? 1 / b->reading : 0;
		add(known, &work[i],
		    part * ((double)(a->task[t].answered_ns - begin) - b->read_ns));
	}
}

static double within(const struct visit *v)
{
	return v->begin_ns == JOB_UNKNOWN || v->end_ns == JOB_UNKNOWN
		       ? 0
		       : (double)(v->end_ns - v->begin_ns - v->read_ns);
}

/* The last sample of a batch takes what the others take in the mean: behind it is more. */
static void by_gaps(const struct profile *a, double *work, struct values *known)
{
	AUTO_FREE uint32_t *last = job_numbers(a->readers);
	struct values gap = {0};
	double mean;

	for (size_t i = 0; i < a->visits; i++) {
		const struct visit *v = &a->visit[i], *before;
		uint32_t at = last[v->reader];

		last[v->reader] = (uint32_t)i;
		if (at == JOB_NONE || v->begin_ns == JOB_UNKNOWN)
			continue;
		before = &a->visit[at];
		if (before->batch == JOB_NONE || before->batch != v->batch ||
		    before->epoch != v->epoch || is_eval(a, before) != is_eval(a, v) ||
		    v->begin_ns < before->end_ns)
			continue;
		add(&gap, &work[at], (double)(v->begin_ns - before->end_ns));
	}
	mean = values_mean(&gap);
	for (size_t i = 0; i < a->visits && gap.n > 2; i++) {
		double rest = within(&a->visit[i]);

		add(known, &work[i], (work[i] < 0 ? mean : work[i]) + (rest > 0 ? rest : 0));
	}
	free(gap.v);
}

static bool has_threads(const struct profile *a)
{
	for (size_t i = 0; i < a->readers; i++)
		if (a->reader[i].worker && a->reader[i].thread != JOB_NONE)
			return true;
	return false;
}

double *recorded_work_of(const struct profile *a)
{
	double *work = xcalloc(a->visits + 1, sizeof(*work)), mean;
	struct values known = {0};

	for (size_t i = 0; i < a->visits; i++)
		work[i] = -1;
	if (a->job->sees & JOB_SEES_TIMES && !a->stream && !has_threads(a)) {
		if (a->tasks > 0)
			by_tasks(a, work, &known);
		else
			by_gaps(a, work, &known);
	}
	mean = values_mean(&known);
	for (size_t i = 0; i < a->visits; i++)
		work[i] = work[i] < 0 ? mean : work[i];
	if (known.n < 3 || (double)known.n < KNOWN_SHARE * (double)a->visits) {
		free(work);
		work = NULL;
	}
	free(known.v);
	return work;
}
