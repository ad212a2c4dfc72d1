/* Batches, and what follows from them: steps, read-ahead, computation. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "trace/profile/profile_parts.h"
#include "workload/backend.h"

static void batches_starts(struct batches *b);

/* Threads that read for one trainer and purpose share its batches: their visits are one sequence,
 * which is that of the first of them. */
static uint32_t *find_sequences(const struct profile *a)
{
	uint32_t *of = xcalloc(a->readers + 1, sizeof(*of)), *first;
	size_t *begin = profile_rounds(a);

	first = job_numbers(begin[a->trainers]);
	for (size_t i = 0; i < a->readers; i++) {
		const struct job_reader *r = &a->reader[i];

		of[i] = (uint32_t)i;
		if (!r->worker || r->thread == JOB_NONE || r->left_out)
			continue;
		if (first[begin[r->rank] + r->round] == JOB_NONE)
			first[begin[r->rank] + r->round] = (uint32_t)i;
		of[i] = first[begin[r->rank] + r->round];
	}
	free(begin);
	free(first);
	return of;
}

static void sort_by_reader(struct batches *b)
{
	const struct profile *a = b->a;
	uint32_t *of = find_sequences(a);
	size_t *at = xcalloc(a->readers + 1, sizeof(*at));

	b->begin = xcalloc(a->readers + 2, sizeof(*b->begin));
	b->visit = xcalloc(a->visits + 1, sizeof(*b->visit));
	for (size_t i = 0; i < a->visits; i++)
		b->begin[of[a->visit[i].reader] + 1]++;
	for (size_t i = 0; i < a->readers; i++)
		b->begin[i + 1] += b->begin[i];
	memcpy(at, b->begin, a->readers * sizeof(*at));
	for (size_t i = 0; i < a->visits; i++)
		b->visit[at[of[a->visit[i].reader]]++] = (uint32_t)i;
	for (size_t i = 0; i < a->readers; i++)
		b->threads |= of[i] != i;
	free(at);
	free(of);
}

static void say_persistent(struct profile *a)
{
	uint64_t epochs = 0, rounds = 0;

	if (!has_workers(a) || a->trainers == 0)
		return;
	for (size_t i = 0; i < a->trainers; i++) {
		epochs += a->trainer[i].epochs + a->trainer[i].evaluations;
		rounds += a->trainer[i].rounds;
	}
	if (a->trainer[0].epochs > 1)
		profile_inferred(a, PROFILE_PERSISTENT, rounds < epochs,
				 FACT(JOB_GENERATIONS_AND_PASSES), 0, 0);
}

/* Whether the reader of a stream stops between its reads, for half of the time or more. */
static bool pauses(const struct profile *a)
{
	double read = 0, all = 0;

	for (size_t i = 0; i < a->visits; i++) {
		read += (double)a->visit[i].read_ns;
		all += (double)(a->visit[i].end_ns - a->visit[i].begin_ns);
	}
	return all > 0 && read < 0.5 * all;
}

/* Two passes over the same files may be anything, too: one that copies them and one that checks
 * them. Those of a training are more, or are made by workers, in another order each time, or with
 * pauses. */
static bool passes_of_training(const struct profile *a)
{
	if (!profile_has(a, PROFILE_EPOCHS) || a->value[PROFILE_EPOCHS].number < 2)
		return false;
	if (has_workers(a) || (a->stream && pauses(a)) || a->value[PROFILE_EPOCHS].number > 2)
		return true;
	return profile_has(a, PROFILE_ORDER) && a->order > JOB_ORDER_RANDOM_SAME;
}

/* A file that is read as a whole is a sample where a batch reads several, or where its format holds
 * one image. Else it may hold many, too. */
static void admit_whole_files(struct profile *a)
{
	const struct format_facts *f = a->value[PROFILE_FORMAT].text
					       ? profile_format_of(a->value[PROFILE_FORMAT].text)
					       : NULL;

	if (a->container || a->stream || a->companions > 0 || (f && f->flags & FORMAT_IMAGE) ||
	    (profile_has(a, PROFILE_BATCH) && a->value[PROFILE_BATCH].number > 1) ||
	    (a->value[PROFILE_BATCH].how == HOW_UNKNOWN && a->steps > 0))
		return;
	for (size_t i = 0; i < 3; i++) {
		static const enum profile_key of_files[] = {
			PROFILE_SAMPLES, PROFILE_SAMPLES_PER_FILE, PROFILE_BATCH};
		struct profile_value *v = &a->value[of_files[i]];

		if (v->how == HOW_INFERRED) {
			v->how = HOW_ASSUMED;
			v->rule = FACT(JOB_FILE_TAKEN_FOR_SAMPLE);
			v->of = 0;
		}
	}
}

#define KEPT_LEAST 8 /* visits that are missing */

/* Readers that live through several epochs and draw from all samples come to the same one again.
 * Where none does, they keep what they read. */
static void doubt_kept(struct profile *a)
{
	uint32_t *last = job_numbers(a->samples);
	uint32_t readers = 0, epochs = 0;
	size_t again = 0, visits = 0;
	double expected;

	for (size_t i = 0; i < a->readers; i++)
		readers += a->reader[i].worker && a->reader[i].visits > 0;
	for (size_t i = 0; i < a->visits; i++) {
		const struct visit *v = &a->visit[i];

		if (a->sample[v->sample].evaluation)
			continue;
		visits++;
		again += last[v->sample] == v->reader;
		last[v->sample] = v->reader;
		if (v->epoch + 1 > epochs)
			epochs = v->epoch + 1;
	}
	free(last);
	if (a->trainers != 1 || a->trainer[0].rounds != 1 || readers < 2 || epochs < 2 || again > 0)
		return;
	expected = (double)visits * (epochs - 1) / epochs / readers;
	if (expected >= KEPT_LEAST && profile_has(a, PROFILE_EPOCHS) &&
	    profile_has(a, PROFILE_ORDER) && a->order > JOB_ORDER_NEARLY_SAME)
		profile_unknown(a, PROFILE_EPOCHS, FACT(JOB_NEVER_TWICE));
}

void profile_batches(struct profile *a)
{
	struct batches b = {.a = a};
	bool passes;

	if (a->readers == 0)
		return;
	sort_by_reader(&b);
	messages_find(&b.messages, a->job);
	if (!batches_by_pipes(&b)) {
		if (a->visits > 0 && a->job->sees & JOB_SEES_TIMES && !a->stream)
			batches_by_gaps(&b);
		else
			profile_unknown(a, PROFILE_BATCH,
					a->stream ? FACT(JOB_STREAMS) : FACT(JOB_NO_TIMES));
	}
	if (b.index_pipe)
		batches_starts(&b);
	passes = passes_of_training(a);
	if (!b.unread)
		doubt_kept(a);
	admit_whole_files(a);
	say_persistent(a);
	a->trains = passes || a->steps > 0 || profile_has(a, PROFILE_BATCH);
	messages_release(&b.messages);
	free(b.index_pipe);
	free(b.visit);
	free(b.begin);
}

/* ---- starts of workers ---- */

/* What starting workers takes. PyTorch starts them one after another, and sends the first indices
 * when all are started. */

/* The workers of a rank that were started together. */
struct round {
	int64_t first_ns; /* the trainer began to start the first of them */
	int64_t sent_ns;  /* the first indices were sent */
	uint32_t workers;
};

/* When the trainer began to fork each process; its own begin where that is not seen. */
static int64_t *fork_times(const struct job *job)
{
	int64_t *t = xcalloc(job->processes + 1, sizeof(*t));

	for (size_t i = 0; i < job->processes; i++)
		t[i] = job->process[i].begin_ns;
	for (size_t i = 0; i < job->events; i++) {
		const struct job_event *v = &job->event[i];

		if (v->kind == JOB_FORK && v->other != JOB_NONE && v->begin_ns != JOB_UNKNOWN)
			t[v->other] = v->begin_ns;
	}
	return t;
}

/* From its begin to its first request for a sample, without the wait for its first indices. */
static void add_init(const struct batches *b, size_t r, const struct message *m,
		     struct values *init)
{
	const struct profile *a = b->a;
	int64_t begin = a->job->process[a->reader[r].process].begin_ns;
	const struct visit *v;

	if (b->begin[r] == b->begin[r + 1] || begin == JOB_UNKNOWN || m->asked_ns == JOB_UNKNOWN)
		return;
	v = &a->visit[b->visit[b->begin[r]]];
	if (v->batch == 0 && m->asked_ns >= begin && v->begin_ns >= m->begin_ns)
		values_add(init, (double)(m->asked_ns - begin + v->begin_ns - m->begin_ns) / 1e9);
}

static void batches_starts(struct batches *b)
{
	struct profile *a = b->a;
	struct values start = {0}, init = {0};
	size_t *of_rank = profile_rounds(a), rounds = of_rank[a->trainers];
	int64_t *forked = fork_times(a->job);
	struct round *round;

	round = xcalloc(rounds + 1, sizeof(*round));
	for (size_t i = 0; i < rounds; i++)
		round[i] = (struct round){INT64_MAX, INT64_MAX, 0};
	for (size_t r = 0; r < a->readers; r++) {
		const struct job_reader *reader = &a->reader[r];
		struct round *x;
		const struct message *m;
		size_t n;

		if (b->index_pipe[r] == JOB_NONE || reader->rank >= a->trainers)
			continue;
		m = messages_of(&b->messages, b->index_pipe[r], &n);
		if (n == 0 || forked[reader->process] == JOB_UNKNOWN || m->ready_ns == JOB_UNKNOWN)
			continue;
		x = &round[of_rank[reader->rank] + reader->round];
		x->workers++;
		if (forked[reader->process] < x->first_ns)
			x->first_ns = forked[reader->process];
		if (m->ready_ns < x->sent_ns)
			x->sent_ns = m->ready_ns;
		add_init(b, r, m, &init);
	}
	for (size_t i = 0; i < rounds; i++)
		if (round[i].workers > 0 && round[i].sent_ns > round[i].first_ns)
			values_add(&start, (double)(round[i].sent_ns - round[i].first_ns) / 1e9 /
						   round[i].workers);
	if (start.n > 0)
		profile_inferred(a, PROFILE_WORKER_START, values_mean(&start),
				 FACT(JOB_STARTS, (double)start.n), 0, 0);
	if (init.n > 0)
		profile_inferred(a, PROFILE_WORKER_INIT, values_mean(&init),
				 FACT(JOB_INITS, (double)init.n), 0, 0);
	free(init.v);
	free(start.v);
	free(round);
	free(forked);
	free(of_rank);
}

/* ---- marks ---- */

/* What the application itself marked in the log. */

void profile_marks(struct profile *a)
{
	const struct job *job = a->job;
	double *s, mean = 0, square = 0;
	size_t n = 0;
	struct profile_value *f;

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
		f = profile_seen(a, PROFILE_COMPUTE, s[n / 2]);
		f->stdev = sqrt(square);
		f->rule = FACT(JOB_MARKED);
		f->of = f->agree = n;
	}
	free(s);
}
