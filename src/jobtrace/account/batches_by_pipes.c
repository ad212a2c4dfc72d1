/* Batches where pipes are seen: a worker's batch is what it reads between two messages of its index
 * pipe, and a step begins when the trainer takes a message of the result pipe. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "jobtrace/account/batches.h"
#include "jobtrace/account/observations.h"

#define LATE_NS 1000000 /* a batch that lay ready so long: it was not waited for */
#define KNOWN_SHARE 0.1 /* of the steps, for the time of computation */

/* The pipe of which a worker reads most messages. */
static void find_index_pipes(struct batches *b)
{
	struct account *a = b->a;
	const struct job *job = a->job;
	uint32_t *reader_of = xcalloc(job->processes + 1, sizeof(*reader_of));
	size_t *best = xcalloc(a->readers + 1, sizeof(*best));

	b->index_pipe = xcalloc(a->readers + 1, sizeof(*b->index_pipe));
	for (size_t i = 0; i < job->processes; i++)
		reader_of[i] = JOB_NONE;
	for (size_t i = 0; i < a->readers; i++) {
		b->index_pipe[i] = JOB_NONE;
		if (a->reader[i].worker && a->reader[i].thread == JOB_NONE)
			reader_of[a->reader[i].process] = (uint32_t)i;
	}
	for (size_t i = 0, end; i < b->messages.n; i = end) {
		const struct message *m = &b->messages.v[i];
		uint32_t r = reader_of[job->thread[m->thread].process];

		bool alone = true; /* workers of a pool share the pipe of their tasks */

		for (end = i; end < b->messages.n && b->messages.v[end].pipe == m->pipe; end++)
			alone &= job->thread[b->messages.v[end].thread].process ==
				 job->thread[m->thread].process;
		if (alone && r != JOB_NONE && end - i > best[r]) {
			best[r] = end - i;
			b->index_pipe[r] = m->pipe;
		}
	}
	free(best);
	free(reader_of);
}

/* The batch of each visit of a worker: the message before it. */
static bool find_batches(struct batches *b)
{
	struct account *a = b->a;
	bool any = false;

	for (size_t r = 0; r < a->readers; r++) {
		size_t n, k = 0;
		const struct message *m;

		if (b->index_pipe[r] == JOB_NONE)
			continue;
		m = messages_of(&b->messages, b->index_pipe[r], &n);
		for (size_t i = b->begin[r]; i < b->begin[r + 1]; i++) {
			struct visit *v = &a->visit[b->visit[i]];

			while (k < n && m[k].begin_ns <= v->begin_ns)
				k++;
			if (k > 0) {
				v->batch = (uint32_t)(k - 1);
				any = true;
			}
		}
	}
	return any;
}

/* Why there is no size of batches: what most of them are. */
static const char *varied_batches(struct account *a, const struct counts *c)
{
	uint32_t low = 0, high = 0;
	uint64_t sum = 0;

	for (uint32_t i = 1; i <= BATCH_MAX; i++) {
		if (!c->of[i])
			continue;
		sum += c->of[i];
		/* but the smallest and largest twentieth */
		if (low == 0 && 20 * sum >= c->all)
			low = i;
		if (high == 0 && 20 * sum >= 19 * c->all)
			high = i;
	}
	return account_text(a, "batches differ: most have %" PRIu32 " to %" PRIu32 " samples", low,
			    high);
}

static void say_batch(struct batches *b, bool evaluation, const char *rule)
{
	struct account *a = b->a;
	struct counts c = {0};
	uint64_t agree;
	uint32_t batch;
	enum account_fact f = evaluation ? ACCOUNT_EVAL_BATCH : ACCOUNT_BATCH;

	for (size_t r = 0; r < a->readers; r++)
		for (size_t i = b->begin[r], n = 0; i < b->begin[r + 1]; i++) {
			const struct visit *v = &a->visit[b->visit[i]];
			const struct visit *next =
				i + 1 < b->begin[r + 1] ? &a->visit[b->visit[i + 1]] : NULL;

			if (is_eval(a, v) != evaluation || v->batch == JOB_NONE)
				continue;
			n++;
			if (next && next->batch == v->batch && is_eval(a, next) == evaluation &&
			    next->epoch == v->epoch)
				continue;
			counts_add(&c, n);
			n = 0;
		}
	batch = counts_mode(&c, &agree);
	if (batch > 0 && !a->stream && 2 * agree > c.all)
		account_inferred(a, f, batch, rule, agree, c.all);
	else if (batch > 0 && !a->stream)
		account_unknown(a, f, varied_batches(a, &c));
	*(evaluation ? &b->eval_batch : &b->batch) = batch;
	free(c.of);
}

static void add_step(struct account *a, const struct step *s)
{
	if (a->steps == a->step_room) {
		a->step_room = a->step_room ? 2 * a->step_room : 64;
		a->step = xrealloc(a->step, a->step_room * sizeof(*a->step));
	}
	a->step[a->steps++] = *s;
}

static int by_step(const void *x, const void *y)
{
	const struct step *a = x, *b = y;

	if (a->rank != b->rank)
		return a->rank < b->rank ? -1 : 1;
	return (a->asked_ns > b->asked_ns) - (a->asked_ns < b->asked_ns);
}

/* What a worker is at. */
struct place {
	uint32_t epoch, batches;
	bool evaluation;
};

#define UNREAD_SHARE 0.05 /* of the batches: for these nothing was read */

/* Whether batches came for which the worker read nothing: it has the samples in memory, since it
 * keeps what it read, or since a file holds several of them and was read as a whole. Only of
 * messages that bring something in shared memory: others begin an epoch, or end it. */
static void find_unread(struct batches *b, const uint32_t *reader_of, const size_t *first,
			const uint32_t *of)
{
	struct account *a = b->a;
	size_t *sent = xcalloc(a->readers + 1, sizeof(*sent)), with = 0, without = 0, bare = 0;
	uint32_t *begins = xcalloc(a->readers + 1, sizeof(*begins)), epochs = 0;
	bool in_first = false, same = true;

	for (size_t i = 0; i < b->messages.n; i++) {
		const struct message *m = &b->messages.v[i];
		uint32_t r;
		size_t at;

		if (m->writer == JOB_NONE)
			continue;
		r = reader_of[a->job->thread[m->writer].process];
		if (r == JOB_NONE || b->index_pipe[r] == JOB_NONE)
			continue;
		at = first[r] + sent[r]++;
		if (at >= first[r + 1])
			continue;
		if (of[at] != JOB_NONE) {
			with += m->fetched;
			bare += !m->fetched;
		} else if (m->fetched) {
			without++;
			/* it read more afterwards, of the same pass */
			for (size_t k = at + 1; k < first[r + 1] && !in_first; k++)
				in_first = of[k] != JOB_NONE && a->visit[of[k]].epoch == 0;
		} else {
			begins[r]++;
		}
	}
	b->unread = !a->stream && a->visits > 0 && bare == 0 &&
		    (double)without > UNREAD_SHARE * (double)(with + without);
	b->many_in_file = b->unread && in_first;
	for (size_t r = 0; r < a->readers; r++) {
		if (!a->reader[r].worker || a->reader[r].left_out)
			continue;
		same &= epochs == 0 || begins[r] + 1 == epochs;
		epochs = begins[r] + 1;
	}
	b->begins = same && a->trainers == 1 && a->trainer[0].rounds == 1 ? epochs : 0;
	free(begins);
	free(sent);
}

/* Batches that trainers took. A worker sends its answers in the order of its tasks, so that the
 * k-th of it is about its k-th message. `first`: of each reader in `has`, by its messages. */
static void steps_by_pipes(struct batches *b)
{
	struct account *a = b->a;
	const struct job *job = a->job;
	uint32_t *reader_of = xcalloc(job->processes + 1, sizeof(*reader_of));
	uint32_t *trainer_of = xcalloc(job->processes + 1, sizeof(*trainer_of));
	size_t *first = xcalloc(a->readers + 2, sizeof(*first)),
	       *sent = xcalloc(a->readers + 1, sizeof(*sent));
	struct place *place = xcalloc(a->readers + 1, sizeof(*place));
	uint32_t *of; /* a visit of the batch */
	/* batches whose samples the log does not show */
	bool unseen = a->stream || a->visits == 0, fetched = false;
	uint32_t workers = has_workers(a) ? (uint32_t)a->fact[ACCOUNT_WORKERS].number : 1;

	for (size_t i = 0; i < b->messages.n; i++)
		fetched |= b->messages.v[i].fetched;
	for (size_t i = 0; i < job->processes; i++)
		reader_of[i] = trainer_of[i] = JOB_NONE;
	for (size_t i = 0; i < a->trainers; i++)
		trainer_of[a->trainer[i].process] = (uint32_t)i;
	for (size_t i = 0; i < a->readers; i++) {
		size_t n = 0;

		if (b->index_pipe[i] != JOB_NONE) {
			reader_of[a->reader[i].process] = (uint32_t)i;
			messages_of(&b->messages, b->index_pipe[i], &n);
		}
		first[i + 1] = first[i] + n;
	}
	of = xcalloc(first[a->readers] + 1, sizeof(*of));
	for (size_t i = 0; i < first[a->readers]; i++)
		of[i] = JOB_NONE;
	for (size_t i = 0; i < a->visits; i++) {
		const struct visit *v = &a->visit[i];

		if (v->batch != JOB_NONE && b->index_pipe[v->reader] != JOB_NONE)
			of[first[v->reader] + v->batch] = (uint32_t)i;
	}
	find_unread(b, reader_of, first, of);
	unseen |= b->unread;
	for (size_t i = 0; i < b->messages.n; i++) {
		const struct message *m = &b->messages.v[i];
		uint32_t t = trainer_of[job->thread[m->thread].process], r, visit, epoch;
		bool evaluation;
		size_t at;

		if (t == JOB_NONE || m->writer == JOB_NONE)
			continue;
		r = reader_of[job->thread[m->writer].process];
		if (r == JOB_NONE || a->reader[r].rank != t)
			continue;
		at = first[r] + sent[r]++;
		visit = at < first[r + 1] ? of[at] : JOB_NONE;
		/* no samples: the begin of an epoch, or its end */
		if (visit == JOB_NONE && !unseen)
			continue;
		if (unseen && fetched && !m->fetched)
			continue;
		a->trainer[t].thread = m->thread;
		/* one that was not read is of the pass that its worker is at */
		epoch = visit == JOB_NONE ? place[r].epoch : a->visit[visit].epoch;
		evaluation = visit == JOB_NONE ? place[r].evaluation : is_eval(a, &a->visit[visit]);
		if (place[r].epoch != epoch || place[r].evaluation != evaluation)
			place[r] = (struct place){.epoch = epoch, .evaluation = evaluation};
		add_step(a,
			 &(struct step){
				 .rank = t,
				 .epoch = epoch,
				 .evaluation = evaluation,
				 .at = (uint64_t)place[r].batches++ * workers + a->reader[r].number,
				 .ready_ns = m->ready_ns,
				 .asked_ns = m->asked_ns,
				 .waited = m->waited,
				 .taken_ns = m->taken_ns,
			 });
	}
	if (a->steps > 1)
		qsort(a->step, a->steps, sizeof(*a->step), by_step);
	free(of);
	free(place);
	free(sent);
	free(first);
	free(trainer_of);
	free(reader_of);
}

/* A task that was sent (1), or an answer that was taken (-1). */
struct traffic {
	int64_t ns;
	uint32_t generation;
	int32_t change;
};

static int by_traffic(const void *x, const void *y)
{
	const struct traffic *a = x, *b = y;

	if (a->generation != b->generation)
		return a->generation < b->generation ? -1 : 1;
	if (a->ns != b->ns)
		return a->ns < b->ns ? -1 : 1;
	return (a->change > b->change) - (a->change < b->change);
}

/* The worker that wrote a message; JOB_NONE. */
static uint32_t answered_by(const struct batches *b, const struct message *m,
			    const uint32_t *reader_of)
{
	return m->writer == JOB_NONE ? JOB_NONE : reader_of[b->a->job->thread[m->writer].process];
}

/* Tasks and answers of each generation of workers. */
static size_t find_traffic(const struct batches *b, const size_t *of_rank, struct traffic *out)
{
	const struct account *a = b->a;
	uint32_t *reader_of = xcalloc(a->job->processes + 1, sizeof(*reader_of));
	int64_t *answers = xcalloc(a->readers + 1, sizeof(*answers));
	size_t n = 0;

	for (size_t i = 0; i < a->job->processes; i++)
		reader_of[i] = JOB_NONE;
	for (size_t r = 0; r < a->readers; r++)
		if (b->index_pipe[r] != JOB_NONE)
			reader_of[a->reader[r].process] = (uint32_t)r;
	for (size_t i = 0; i < b->messages.n; i++) {
		uint32_t r = answered_by(b, &b->messages.v[i], reader_of);

		if (r != JOB_NONE)
			answers[r]++;
	}
	for (size_t i = 0; i < b->messages.n; i++) {
		const struct message *m = &b->messages.v[i];
		uint32_t from = answered_by(b, m, reader_of);
		uint32_t to = reader_of[a->job->thread[m->thread].process];
		uint32_t r = from != JOB_NONE ? from : to;

		if (r == JOB_NONE || (from == JOB_NONE && m->pipe != b->index_pipe[r]))
			continue;
		/* the end of a worker, and what it was asked for and left, have no answer */
		if (from == JOB_NONE && answers[r]-- <= 0)
			continue;
		out[n++] = (struct traffic){
			.ns = from != JOB_NONE ? m->begin_ns : m->ready_ns,
			.generation = (uint32_t)of_rank[a->reader[r].rank] + a->reader[r].round,
			.change = from != JOB_NONE ? -1 : 1,
		};
		if (out[n - 1].ns == JOB_UNKNOWN)
			n--;
	}
	free(answers);
	free(reader_of);
	if (n > 0)
		qsort(out, n, sizeof(*out), by_traffic);
	return n;
}

/* Of a pass over the samples: how many tasks there were, and the most on their way at once. */
struct pass {
	int64_t most, tasks;
};

static void take_pass(struct pass *best, const struct pass *p)
{
	if (p->most > best->most || (p->most == best->most && p->tasks > best->tasks))
		*best = *p;
}

/* The most tasks that were on their way while answers were still taken: the trainer sends so many
 * at the begin, and then one for each batch that it takes. A thread of it sends them, which may be
 * late: then there seem to be fewer. */
static void prefetch_by_pipes(struct batches *b)
{
	struct account *a = b->a;
	struct counts c = {0};
	uint64_t agree = 0, whole = 0;
	uint32_t rounds = 0, ahead = 0;
	size_t *of_rank = xcalloc(a->trainers + 1, sizeof(*of_rank)), n;
	struct traffic *t = xcalloc(b->messages.n + 1, sizeof(*t));
	bool *training;

	for (size_t i = 0; i < a->trainers; i++) {
		of_rank[i] = rounds;
		rounds += a->trainer[i].rounds;
	}
	training = xcalloc((size_t)rounds + 1, sizeof(*training));
	for (size_t i = 0; i < a->visits; i++) {
		const struct job_reader *r = &a->reader[a->visit[i].reader];

		if (r->worker && !is_eval(a, &a->visit[i]))
			training[of_rank[r->rank] + r->round] = true;
	}
	n = find_traffic(b, of_rank, t);
	for (size_t i = 0, end; i < n; i = end) {
		struct pass best = {0}, pass = {0};
		int64_t now = 0;
		size_t last = i;

		for (end = i; end < n && t[end].generation == t[i].generation; end++)
			if (t[end].change < 0)
				last = end;
		for (size_t k = i; k < end; k++) {
			if (now == 0 && k < last) { /* workers live on to another pass */
				take_pass(&best, &pass);
				pass = (struct pass){0};
			}
			pass.tasks += t[k].change > 0;
			if (k < last)
				now += t[k].change;
			if (now > pass.most)
				pass.most = now;
		}
		take_pass(&best, &pass);
		if (!training[t[i].generation] || best.most <= 0)
			continue;
		counts_add(&c, (size_t)best.most);
		if ((uint32_t)best.most > ahead)
			ahead = (uint32_t)best.most;
		whole += best.most + 2 >= best.tasks; /* all there were */
	}
	if (ahead > 0 && ahead <= BATCH_MAX)
		agree = c.of[ahead];
	if (ahead > 0 && 2 * whole < c.all)
		account_inferred(a, ACCOUNT_PREFETCH, ahead,
				 "the most batches that were asked for and not yet taken; of the "
				 "generations of workers",
				 agree, c.all);
	else if (ahead > 0)
		account_unknown(a, ACCOUNT_PREFETCH,
				"all batches of an epoch were asked for at once");
	free(c.of);
	free(training);
	free(t);
	free(of_rank);
}

/* After which batches the trainer computes: batches are handed out in their order, one that came
 * early waits. `times`: for each step, how many batches are handed out before the trainer takes the
 * next message. False where they do not come in this order. */
static bool hand_out(const struct account *a, uint32_t *times)
{
	uint64_t most = 0, known = 0;
	uint32_t *got, pass = 0;
	uint64_t next = 0;

	for (size_t i = 0; i < a->steps; i++)
		if (a->step[i].at > most)
			most = a->step[i].at;
	if (most > 8 * a->steps + 65536)
		return false;
	got = xcalloc(most + 2, sizeof(*got));
	for (size_t i = 0; i < a->steps; i++) {
		const struct step *s = &a->step[i], *last = i > 0 ? s - 1 : NULL;

		if (!last || last->rank != s->rank || last->epoch != s->epoch ||
		    last->evaluation != s->evaluation) {
			pass++;
			next = 0;
		}
		got[s->at] = pass;
		times[i] = 0;
		for (; next <= most && got[next] == pass; next++)
			times[i]++;
		known += times[i];
	}
	free(got);
	return known >= a->steps - a->steps / 20;
}

static bool main_thread_takes(const struct account *a)
{
	for (size_t t = 0; t < a->trainers; t++) {
		uint32_t thread = a->trainer[t].thread;

		if (thread != JOB_NONE &&
		    a->job->thread[thread].tid != a->job->process[a->trainer[t].process].pid)
			return false;
	}
	return true;
}

/* Times of steps of training, or of evaluation. */
struct step_times {
	struct values period;  /* from one batch to the next */
	struct values compute; /* where the begin of asking for the next is known */
	struct values upper;   /* of all */
	uint64_t taken;        /* batches, by the rank that took most */
	uint64_t handed;       /* of these, in order, to the training */
};

static void observe(const struct account *a, bool evaluation, const uint32_t *times, bool ordered,
		    struct step_times *t)
{
	uint64_t now = 0, given = 0;

	*t = (struct step_times){0};
	for (size_t i = 0; i < a->steps; i++) {
		const struct step *s = &a->step[i], *last = i > 0 ? s - 1 : NULL;
		double gap;

		if (last && last->rank != s->rank)
			now = given = 0;
		if (s->evaluation != evaluation)
			continue;
		if (++now > t->taken)
			t->taken = now;
		given += times[i];
		if (given > t->handed)
			t->handed = given;
		if (!last || last->rank != s->rank || last->epoch != s->epoch ||
		    last->evaluation != evaluation)
			continue;
		values_add(&t->period, (double)(s->taken_ns - last->taken_ns) / 1e9);
		gap = (double)(s->asked_ns - last->taken_ns) / 1e9;
		if (s->asked_ns == JOB_UNKNOWN || gap < 0)
			continue;
		/* several batches that lay ready, or none: this one came early */
		if (ordered && times[i - 1] == 0)
			continue;
		if (ordered)
			gap /= times[i - 1];
		values_add(&t->upper, gap);
		if (s->waited ||
		    (s->ready_ns != JOB_UNKNOWN &&
		     (s->ready_ns <= last->taken_ns || s->asked_ns - s->ready_ns > LATE_NS)))
			values_add(&t->compute, gap);
	}
}

static double mean_of(const struct values *v)
{
	double sum = 0;

	for (size_t i = 0; i < v->n; i++)
		sum += v->v[i];
	return v->n > 0 ? sum / (double)v->n : 0;
}

/* It is known where the trainer is seen to begin waiting, and where batches lay ready before it
 * asked for them. */
static void say_compute(struct account *a, enum account_fact f, struct step_times *t)
{
	double v = values_median(&t->compute);
	uint64_t near = values_near(&t->compute, v);

	if (!main_thread_takes(a) && t->period.n > 2) {
		double step = values_median(&t->period);

		/* of batches that come in bursts, the median is no bound */
		if (2 * values_near(&t->period, step) > t->period.n)
			account_inferred(a, f, step,
					 "another thread takes the batches (pin_memory): the step "
					 "is an upper bound",
					 0, 0)
				->at_most = true;
		else
			account_unknown(a, f,
					"another thread takes the batches (pin_memory), in bursts");
	} else if ((t->compute.n >= 5 || (t->compute.n >= 3 && near == t->compute.n)) &&
		   (double)t->compute.n >= KNOWN_SHARE * (double)t->upper.n &&
		   2 * near >= t->compute.n)
		account_inferred(a, f, v,
				 "from a batch taken to asking for the next, or to waiting for it; "
				 "within 10 %",
				 near, t->compute.n);
	else if (t->upper.n > 0)
		account_unknown(a, f,
				t->compute.n >= 3 ? "the times between batches differ too much"
						  : account_waiting_for_data);
}

/* Time of a step and of computation. */
static void times_by_pipes(struct batches *b)
{
	struct account *a = b->a;
	uint32_t *times = xcalloc(a->steps + 1, sizeof(*times));
	bool ordered = hand_out(a, times);

	for (int evaluation = 0; evaluation < 2; evaluation++) {
		struct step_times t;

		observe(a, evaluation, times, ordered, &t);
		if (!evaluation && t.taken > 0)
			account_seen(a, ACCOUNT_STEPS,
				     (double)(ordered && !b->unread ? t.handed : t.taken));
		if (!evaluation && t.period.n > 2) {
			double step = values_median(&t.period);

			account_inferred(a, ACCOUNT_STEP, step,
					 "median of the times from one batch to the next; within "
					 "10 %",
					 values_near(&t.period, step), t.period.n);
		}
		if (main_thread_takes(a))
			*(evaluation ? &a->eval_between_s : &a->between_s) = mean_of(&t.upper);
		say_compute(a, evaluation ? ACCOUNT_EVAL_COMPUTE : ACCOUNT_COMPUTE, &t);
		free(t.period.v);
		free(t.compute.v);
		free(t.upper.v);
	}
	free(times);
}

/* What cannot be told where batches came without a request for them. */
static void say_unread(struct batches *b)
{
	struct account *a = b->a;
	static const enum account_fact of_samples[] = {
		ACCOUNT_SAMPLES, ACCOUNT_SAMPLES_PER_FILE, ACCOUNT_SAMPLE_BYTES,
		ACCOUNT_SIZES,   ACCOUNT_REQUESTS,         ACCOUNT_BATCH};

	if (b->many_in_file) {
		for (size_t i = 0; i < sizeof(of_samples) / sizeof(of_samples[0]); i++)
			account_unknown(a, of_samples[i],
					"workers sent batches for which they read nothing: files "
					"that are read as a whole hold several samples each");
		return;
	}
	if (b->begins > 1)
		account_inferred(a, ACCOUNT_EPOCHS, b->begins,
				 "workers were told to begin an epoch; later ones are partly or "
				 "wholly read from the memory of the workers",
				 0, 0);
	else
		account_unknown(a, ACCOUNT_EPOCHS,
				"workers sent batches for which they read nothing: samples are "
				"kept in memory");
}

bool batches_by_pipes(struct batches *b)
{
	struct account *a = b->a;

	find_index_pipes(b);
	if (b->messages.n == 0 || !(a->job->sees & JOB_SEES_PIPES) ||
	    (!find_batches(b) && a->visits > 0))
		return false;
	say_batch(b, false, "samples that a worker reads for one message of its index pipe");
	say_batch(b, true, "samples that a worker reads for one message of its index pipe");
	steps_by_pipes(b);
	prefetch_by_pipes(b);
	times_by_pipes(b);
	if (b->unread)
		say_unread(b);
	if (a->visits == 0)
		account_unknown(a, ACCOUNT_BATCH,
				"the log does not show which samples are read for a batch");
	if (a->stream)
		account_unknown(a, ACCOUNT_BATCH,
				"the files are streams of samples, and reads do not show where one "
				"ends");
	return true;
}
