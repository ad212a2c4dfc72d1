/* Requests of samples. Every visit of a sample is taken to make the same requests; one of them is
 * kept. Where readers keep files open, the first visit of a file has those of its opening, too:
 * what it has in front of what other visits of the sample have. */
#include "jobtrace/workload/sample_requests.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"

/* The requests of all visits, one list behind the other. */
struct of_visits {
	unsigned char *bytes;
	struct recorded_requests *list; /* of each visit */
	bool *opens;                    /* the visit opened its file */
};

const char *sample_requests_unknown(const struct account *a)
{
	if (!(a->job->sees & JOB_SEES_REQUESTS) || a->visits == 0)
		return "the log has no requests";
	if (!(a->job->sees & JOB_SEES_OFFSETS))
		return "the log does not have the places of requests";
	return NULL;
}

/* ---- which visit a request belongs to ---- */

struct walk {
	const struct account *a;
	uint32_t *of_process, *of_thread; /* the reader; JOB_NONE */
	size_t *next, *end;               /* of each reader: its place in `visit`, and the end */
	uint32_t *visit;                  /* by reader, in their order */
};

static void walk_begin(struct walk *w, const struct account *a)
{
	*w = (struct walk){
		.a = a,
		.of_process = xcalloc(a->job->processes + 1, sizeof(*w->of_process)),
		.of_thread = xcalloc(a->job->threads + 1, sizeof(*w->of_thread)),
		.next = xcalloc(a->readers + 2, sizeof(*w->next)),
		.end = xcalloc(a->readers + 2, sizeof(*w->end)),
		.visit = xcalloc(a->visits + 1, sizeof(*w->visit)),
	};
	for (size_t i = 0; i < a->job->processes; i++)
		w->of_process[i] = JOB_NONE;
	for (size_t i = 0; i < a->job->threads; i++)
		w->of_thread[i] = JOB_NONE;
	for (size_t i = 0; i < a->readers; i++) {
		if (a->reader[i].thread == JOB_NONE)
			w->of_process[a->reader[i].process] = (uint32_t)i;
		else
			w->of_thread[a->reader[i].thread] = (uint32_t)i;
	}
	for (size_t i = 0; i < a->visits; i++)
		w->end[a->visit[i].reader + 1]++;
	for (size_t i = 0; i < a->readers; i++) {
		w->end[i + 1] += w->end[i];
		w->next[i] = w->end[i];
	}
	for (size_t i = 0; i < a->visits; i++)
		w->visit[w->next[a->visit[i].reader]++] = (uint32_t)i;
	for (size_t i = 0; i < a->readers; i++) {
		w->next[i] = w->end[i];
		w->end[i] = w->end[i + 1];
	}
}

static void walk_end(struct walk *w)
{
	free(w->of_process);
	free(w->of_thread);
	free(w->next);
	free(w->end);
	free(w->visit);
}

/* The visit in which an event of the dataset is; JOB_NONE. Events come in their order. */
static uint32_t visit_of(struct walk *w, const struct job_event *v)
{
	const struct account *a = w->a;
	uint32_t r = w->of_thread[v->thread], at;

	if (r == JOB_NONE)
		r = w->of_process[a->job->thread[v->thread].process];
	if (r == JOB_NONE || w->next[r] == w->end[r])
		return JOB_NONE;
	while (w->next[r] + 1 < w->end[r] &&
	       a->visit[w->visit[w->next[r] + 1]].begin_ns <= v->begin_ns)
		w->next[r]++;
	at = w->visit[w->next[r]];
	if (v->begin_ns < a->visit[at].begin_ns || v->begin_ns > a->visit[at].end_ns ||
	    a->sample[a->visit[at].sample].file != v->file)
		return JOB_NONE;
	return at;
}

static bool is_data_read(const struct account *a, const struct job_event *v)
{
	return v->kind == JOB_READ && v->result > 0 && v->result <= UINT32_MAX &&
	       v->offset != JOB_UNKNOWN && v->offset >= 0 && v->file != JOB_NONE &&
	       (a->role[v->file] == FILE_DATASET || a->role[v->file] == FILE_EVALUATION);
}

static int gather(const struct account *a, struct of_visits *out, struct err *e)
{
	size_t all = 0;
	unsigned char *to;
	struct walk w;

	out->list = xcalloc(a->visits + 1, sizeof(*out->list));
	out->opens = xcalloc(a->visits + 1, sizeof(*out->opens));
	walk_begin(&w, a);
	for (size_t i = 0; i < a->job->events; i++) {
		const struct job_event *v = &a->job->event[i];
		bool opens = v->kind == JOB_OPEN && v->file != JOB_NONE && v->result >= 0;
		uint32_t at;

		if (!opens && !is_data_read(a, v))
			continue;
		at = visit_of(&w, v);
		if (at == JOB_NONE)
			continue;
		out->opens[at] |= opens;
		out->list[at].n += !opens;
		all += !opens;
	}
	walk_end(&w);
	to = out->bytes = try_calloc(all + 1, RECORDED_REQUEST_BYTES, "the requests", e);
	if (!to)
		return -ENOMEM;
	for (size_t i = 0; i < a->visits; i++) {
		out->list[i].at = to;
		to += (size_t)out->list[i].n * RECORDED_REQUEST_BYTES;
		out->list[i].n = 0;
	}
	walk_begin(&w, a);
	for (size_t i = 0; i < a->job->events; i++) {
		const struct job_event *v = &a->job->event[i];
		uint32_t at = is_data_read(a, v) ? visit_of(&w, v) : JOB_NONE;

		if (at != JOB_NONE)
			recorded_request_put(out->bytes + (out->list[at].at - out->bytes) +
						     (size_t)out->list[at].n++ *
							     RECORDED_REQUEST_BYTES,
					     (uint64_t)v->offset, (uint32_t)v->result);
	}
	walk_end(&w);
	return 0;
}

/* ---- what belongs to the opening ---- */

static size_t bytes_of(const struct recorded_requests *l)
{
	return (size_t)l->n * RECORDED_REQUEST_BYTES;
}

static bool ends_with(const struct recorded_requests *l, const struct recorded_requests *end)
{
	return end->n > 0 && l->n >= end->n &&
	       memcmp(l->at + bytes_of(l) - bytes_of(end), end->at, bytes_of(end)) == 0;
}

/* `l` without its first n requests. */
static struct recorded_requests behind(const struct recorded_requests *l, uint32_t n)
{
	return (struct recorded_requests){l->n - n, l->at + (size_t)n * RECORDED_REQUEST_BYTES};
}

/* Visits that found their file open tell the requests of their samples; the others' then those of
 * opening, and these those of samples that were never found open. */
static void part_openings(const struct account *a, const struct of_visits *v,
			  struct sample_requests *out)
{
	const struct recorded_requests *any = NULL;

	for (size_t i = 0; i < a->visits; i++) {
		struct recorded_requests *l = &out->sample[a->visit[i].sample];

		if (!v->opens[i] && l->n == 0)
			*l = v->list[i];
	}
	for (size_t i = 0; i < a->visits; i++) {
		const struct recorded_requests *l = &out->sample[a->visit[i].sample];
		struct recorded_requests *o = &out->opening[a->sample[a->visit[i].sample].file];

		if (!v->opens[i] || o->n > 0 || !ends_with(&v->list[i], l))
			continue;
		*o = v->list[i];
		o->n -= l->n;
		any = any ? any : o;
	}
	for (size_t i = 0; i < a->visits; i++) {
		struct recorded_requests *l = &out->sample[a->visit[i].sample];
		struct recorded_requests *o = &out->opening[a->sample[a->visit[i].sample].file];

		if (l->n > 0 || v->list[i].n == 0)
			continue;
		if (o->n == 0 && any && v->list[i].n > any->n)
			*o = (struct recorded_requests){any->n, v->list[i].at};
		*l = behind(&v->list[i], v->list[i].n > o->n ? o->n : 0);
	}
}

int sample_requests_make(const struct account *a, struct sample_requests *out, struct err *e)
{
	struct of_visits v = {0};
	int rc;

	*out = (struct sample_requests){
		.sample = xcalloc(a->samples + 1, sizeof(*out->sample)),
		.opening = xcalloc(a->job->files + 1, sizeof(*out->opening)),
	};
	rc = gather(a, &v, e);
	out->bytes = v.bytes;
	if (rc == 0 && account_has(a, ACCOUNT_KEPT_OPEN))
		part_openings(a, &v, out);
	else if (rc == 0)
		for (size_t i = 0; i < a->visits; i++)
			if (out->sample[a->visit[i].sample].n == 0)
				out->sample[a->visit[i].sample] = v.list[i];
	free(v.list);
	free(v.opens);
	return rc;
}

void sample_requests_release(struct sample_requests *s)
{
	free(s->sample);
	free(s->opening);
	free(s->bytes);
}
