/* Buffers in which readers of streams shuffle samples. They do not show by the order of requests,
 * which stays that of the files, but by how far the reads are ahead of the batches: a worker reads
 * until its buffer holds enough to begin, and then more than it delivers until it is full. */
#include <math.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/compare.h"
#include "trace/profile/profile_parts.h"

#define WORKERS_LEAST 2   /* passes of workers */
#define READS_OF_SAMPLE 1 /* of samples, at least: larger reads hide a buffer */
#define SLACK 2.0         /* samples by which libraries read ahead without one */
#define GROWS 0.5         /* of a batch, from one to the next */

/* One worker while its events are gone through. */
struct ahead {
	size_t task, end;     /* its next answer, and behind its last */
	int64_t last_read_ns; /* then its files are at their end */
	double read;          /* samples */
	double delivered;
	double first, most; /* ahead: at its first batch, at most before the end of its files */
	double last[2];     /* likewise: at its last two batches, the older one first */
	size_t seen;
};

static void answer(struct ahead *r, const struct profile *a, int64_t until, double batch)
{
	for (; r->task < r->end; r->task++) {
		int64_t at = a->task[r->task].answered_ns;
		double ahead;

		if (at == JOB_UNKNOWN || at > until)
			return;
		r->delivered += batch;
		ahead = r->read - r->delivered;
		if (r->seen == 0)
			r->first = ahead;
		r->seen++;
		if (at >= r->last_read_ns)
			continue;
		RAISE(r->most, ahead);
		r->last[0] = r->last[1];
		r->last[1] = ahead;
	}
}

/* Which of the readers are workers of a pass of their own; the begin and end of their tasks. */
static size_t begin_readers(const struct profile *a, struct ahead *out, uint32_t *of_process)
{
	size_t n = 0;

	for (size_t i = 0; i < a->tasks; i++) {
		struct ahead *r = &out[a->task[i].reader];

		if (r->end == 0)
			r->task = i;
		r->end = i + 1;
	}
	for (size_t i = 0; i < a->readers; i++)
		if (a->reader[i].worker && a->reader[i].thread == JOB_NONE && out[i].end > 0) {
			of_process[a->reader[i].process] = (uint32_t)i;
			n++;
		}
	return n;
}

static double samples_in(const struct profile *a, const struct job_event *v)
{
	double bytes = profile_file_bytes(&a->job->file[v->file]);

	return bytes > 0 ? (double)v->result * (double)a->held[v->file] / bytes : 0;
}

static bool is_read(const struct profile *a, const struct job_event *v)
{
	return v->kind == JOB_READ && v->result > 0 && profile_is_data(a, v->file) &&
	       a->role[v->file] == FILE_DATASET && a->held[v->file] >= 0;
}

void profile_shuffle_ahead(struct profile *a)
{
	AUTO_FREE struct ahead *r = xcalloc(a->readers + 1, sizeof(*r));
	AUTO_FREE uint32_t *of = job_numbers(a->job->processes);
	double batch = profile_has(a, PROFILE_BATCH) ? a->value[PROFILE_BATCH].number : 0;
	double reads = 0, samples = 0;
	struct values first = {0}, most = {0};
	bool grows = false;

	if (!a->held || batch < 1 || !a->stream || begin_readers(a, r, of) < WORKERS_LEAST ||
	    (profile_has(a, PROFILE_PERSISTENT) && a->value[PROFILE_PERSISTENT].number != 0))
		return;
	for (size_t i = 0; i < a->job->events; i++) {
		const struct job_event *v = &a->job->event[i];
		uint32_t k = of[a->job->thread[v->thread].process];

		if (k == JOB_NONE || !is_read(a, v))
			continue;
		RAISE(r[k].last_read_ns, v->begin_ns);
		reads++;
		samples += samples_in(a, v);
	}
	if (reads < READS_OF_SAMPLE * samples) {
		profile_unknown(a, PROFILE_SHUFFLE_WINDOW, FACT(JOB_BUFFER_HIDDEN));
		return;
	}
	for (size_t i = 0; i < a->job->events; i++) {
		const struct job_event *v = &a->job->event[i];
		uint32_t k = of[a->job->thread[v->thread].process];

		if (k == JOB_NONE || !is_read(a, v))
			continue;
		answer(&r[k], a, v->begin_ns, batch);
		r[k].read += samples_in(a, v);
	}
	for (size_t i = 0; i < a->readers; i++) {
		if (r[i].seen == 0 || !(r[i].read > 0))
			continue;
		values_add(&first, r[i].first);
		values_add(&most, r[i].most);
		/* a buffer that is not full yet grows by a sample with each that is delivered */
		grows |= r[i].last[1] - r[i].last[0] > GROWS * batch;
	}
	if (most.n >= WORKERS_LEAST && values_median(&most) > SLACK) {
		double size = round(values_median(&most));
		double initial = round(values_median(&first));

		profile_inferred(a, PROFILE_SHUFFLE_WINDOW, size,
				 FACT(JOB_AHEAD_OF_BATCHES, initial), 0, 0)
			->at_least = grows;
		a->shuffle_initial = initial;
	}
	free(first.v);
	free(most.v);
}
