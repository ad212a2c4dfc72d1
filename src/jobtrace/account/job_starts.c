/* What starting workers takes. PyTorch starts them one after another, and sends the first indices
 * when all are started. */
#include <stdlib.h>

#include "base/alloc.h"
#include "jobtrace/account/batches.h"

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

static double mean_of(const struct values *v)
{
	double sum = 0;

	for (size_t i = 0; i < v->n; i++)
		sum += v->v[i];
	return sum / (double)v->n;
}

/* From its begin to its first request for a sample, without the wait for its first indices. */
static void add_init(const struct batches *b, size_t r, const struct message *m,
		     struct values *init)
{
	const struct account *a = b->a;
	int64_t begin = a->job->process[a->reader[r].process].begin_ns;
	const struct visit *v;

	if (b->begin[r] == b->begin[r + 1] || begin == JOB_UNKNOWN || m->asked_ns == JOB_UNKNOWN)
		return;
	v = &a->visit[b->visit[b->begin[r]]];
	if (v->batch == 0 && m->asked_ns >= begin && v->begin_ns >= m->begin_ns)
		values_add(init, (double)(m->asked_ns - begin + v->begin_ns - m->begin_ns) / 1e9);
}

void batches_starts(struct batches *b)
{
	struct account *a = b->a;
	struct values start = {0}, init = {0};
	size_t *of_rank = xcalloc(a->trainers + 1, sizeof(*of_rank)), rounds = 0;
	int64_t *forked = fork_times(a->job);
	struct round *round;

	for (size_t t = 0; t < a->trainers; t++) {
		of_rank[t] = rounds;
		rounds += a->trainer[t].rounds;
	}
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
		account_inferred(a, ACCOUNT_WORKER_START, mean_of(&start),
				 account_text(a,
					      "mean of %zu starts; from the first fork to the "
					      "first indices sent, for each worker",
					      start.n),
				 0, 0);
	if (init.n > 0)
		account_inferred(a, ACCOUNT_WORKER_INIT, mean_of(&init),
				 account_text(a,
					      "mean of %zu workers; from a worker's begin to its "
					      "first sample, without the wait for indices",
					      init.n),
				 0, 0);
	free(init.v);
	free(start.v);
	free(round);
	free(forked);
	free(of_rank);
}
