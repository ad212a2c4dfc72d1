/* Batches, and what follows from them: steps, read-ahead, computation.
 *
 * Where pipes are seen, a worker's batch is what it reads between two messages of its index pipe,
 * and a step begins when the trainer takes a message of the result pipe. Else batches are runs of
 * samples between gaps in which a reader waits: the threshold between short and long gaps is the
 * one of the widest empty places among the logarithms of gaps for which most runs are alike. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "jobtrace/account_parts.h"
#include "jobtrace/messages.h"

#define RUNS_ALIKE 0.7
#define WIDEST 16       /* places that are tried as the threshold */
#define LATE_NS 1000000 /* a batch that lay ready so long: it was not waited for */
#define KNOWN_SHARE 0.1 /* of the steps, for the time of computation */
#define BATCH_MAX 65536

const char account_waiting_for_data[] = "the job was waiting for data";

/* ---- small statistics ---- */

struct values {
	double *v;
	size_t n, room;
};

static void add(struct values *s, double v)
{
	if (s->n == s->room) {
		s->room = s->room ? 2 * s->room : 64;
		s->v = xrealloc(s->v, s->room * sizeof(*s->v));
	}
	s->v[s->n++] = v;
}

static int by_value(const void *x, const void *y)
{
	double a = *(const double *)x, b = *(const double *)y;

	return (a > b) - (a < b);
}

static double median(struct values *s)
{
	if (s->n == 0)
		return 0;
	qsort(s->v, s->n, sizeof(*s->v), by_value);
	return s->n % 2 ? s->v[s->n / 2] : (s->v[s->n / 2 - 1] + s->v[s->n / 2]) / 2;
}

/* How many lie within 10 % of `v`. */
static uint64_t near(const struct values *s, double v)
{
	uint64_t n = 0;

	for (size_t i = 0; i < s->n; i++)
		n += fabs(s->v[i] - v) <= 0.1 * v;
	return n;
}

/* Counts of run lengths or batches. */
struct counts {
	uint32_t *of; /* BATCH_MAX + 1; the last: longer ones */
	uint64_t all;
};

static void count(struct counts *c, size_t n)
{
	if (!c->of)
		c->of = xcalloc(BATCH_MAX + 1, sizeof(*c->of));
	c->of[n < BATCH_MAX ? n : BATCH_MAX]++;
	c->all++;
}

static uint32_t mode(const struct counts *c, uint64_t *agree)
{
	uint32_t best = 0;

	*agree = 0;
	for (uint32_t i = 1; c->of && i < BATCH_MAX; i++)
		if (c->of[i] > *agree) {
			*agree = c->of[i];
			best = i;
		}
	return best;
}

/* ---- the parts of it ---- */

struct batches {
	struct account *a;
	struct messages messages;
	uint32_t *index_pipe; /* of each reader; JOB_NONE */
	size_t *begin;        /* of each reader in `visit`; readers + 1 */
	uint32_t *visit;      /* by reader, in their order */
	uint32_t batch, eval_batch;
	double threshold_s, eval_threshold_s; /* between short and long gaps; 0: none */
};

static void sort_by_reader(struct batches *b)
{
	const struct account *a = b->a;
	size_t *at = xcalloc(a->readers + 1, sizeof(*at));

	b->begin = xcalloc(a->readers + 2, sizeof(*b->begin));
	b->visit = xcalloc(a->visits + 1, sizeof(*b->visit));
	for (size_t i = 0; i < a->visits; i++)
		b->begin[a->visit[i].reader + 1]++;
	for (size_t i = 0; i < a->readers; i++)
		b->begin[i + 1] += b->begin[i];
	memcpy(at, b->begin, a->readers * sizeof(*at));
	for (size_t i = 0; i < a->visits; i++)
		b->visit[at[a->visit[i].reader]++] = (uint32_t)i;
	free(at);
}

static bool has_workers(const struct account *a)
{
	return account_has(a, ACCOUNT_WORKERS) && a->fact[ACCOUNT_WORKERS].number > 0;
}

static bool is_eval(const struct account *a, const struct visit *v)
{
	return a->sample[v->sample].evaluation;
}

/* ---- by pipes ---- */

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

		for (end = i; end < b->messages.n && b->messages.v[end].pipe == m->pipe; end++)
			;
		if (r != JOB_NONE && end - i > best[r]) {
			best[r] = end - i;
			b->index_pipe[r] = m->pipe;
		}
	}
	free(best);
	free(reader_of);
}

/* The batch of each visit of a worker: the message before it. */
static bool batches_by_pipes(struct batches *b)
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
			count(&c, n);
			n = 0;
		}
	batch = mode(&c, &agree);
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
		epoch = visit == JOB_NONE ? 0 : a->visit[visit].epoch;
		evaluation = visit != JOB_NONE && is_eval(a, &a->visit[visit]);
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

/* Batches of a generation that were asked for before its first answer was taken. */
static void prefetch_by_pipes(struct batches *b)
{
	struct account *a = b->a;
	struct counts c = {0};
	uint64_t agree, whole = 0;
	uint32_t rounds = 0, ahead;
	size_t *in, *all;
	int64_t *first;
	size_t *of_rank = xcalloc(a->trainers + 1, sizeof(*of_rank));
	bool *training;
	uint32_t *reader_of = xcalloc(a->job->processes + 1, sizeof(*reader_of));

	for (size_t i = 0; i < a->job->processes; i++)
		reader_of[i] = JOB_NONE;
	for (size_t r = 0; r < a->readers; r++)
		if (b->index_pipe[r] != JOB_NONE)
			reader_of[a->reader[r].process] = (uint32_t)r;
	for (size_t t = 0; t < a->trainers; t++) {
		of_rank[t] = rounds;
		rounds += a->trainer[t].rounds;
	}
	in = xcalloc((size_t)rounds + 1, sizeof(*in));
	all = xcalloc((size_t)rounds + 1, sizeof(*all));
	first = xcalloc((size_t)rounds + 1, sizeof(*first));
	training = xcalloc((size_t)rounds + 1, sizeof(*training));
	for (size_t i = 0; i < rounds; i++)
		first[i] = INT64_MAX;
	for (size_t i = 0; i < a->visits; i++) {
		const struct job_reader *r = &a->reader[a->visit[i].reader];

		if (r->worker && !is_eval(a, &a->visit[i]))
			training[of_rank[r->rank] + r->round] = true;
	}
	/* the first answer of each generation: that of its workers */
	for (size_t i = 0; i < b->messages.n; i++) {
		const struct message *m = &b->messages.v[i];
		uint32_t process, r;
		size_t at;

		if (m->writer == JOB_NONE)
			continue;
		process = a->job->thread[m->writer].process;
		r = reader_of[process];
		if (r == JOB_NONE)
			continue;
		at = of_rank[a->reader[r].rank] + a->reader[r].round;
		if (m->begin_ns < first[at])
			first[at] = m->begin_ns;
	}
	for (size_t r = 0; r < a->readers; r++) {
		size_t n, at = of_rank[a->reader[r].rank] + a->reader[r].round;
		const struct message *m;

		if (b->index_pipe[r] == JOB_NONE || !training[at])
			continue;
		m = messages_of(&b->messages, b->index_pipe[r], &n);
		for (size_t k = 0; k < n; k++) {
			all[at]++;
			in[at] += m[k].ready_ns != JOB_UNKNOWN && m[k].ready_ns <= first[at];
		}
	}
	for (size_t i = 0; i < rounds; i++) {
		if (!training[i] || in[i] == 0)
			continue;
		count(&c, in[i]);
		whole += in[i] + 4 >= all[i]; /* all there were; a worker's end is a message */
	}
	ahead = mode(&c, &agree);
	if (ahead > 0 && 2 * whole < c.all)
		account_inferred(a, ACCOUNT_PREFETCH, ahead,
				 "batches that were asked for before the first was taken; of the "
				 "generations of workers",
				 agree, c.all);
	else if (ahead > 0)
		account_unknown(a, ACCOUNT_PREFETCH,
				"all batches of an epoch were asked for at once");
	free(c.of);
	free(reader_of);
	free(training);
	free(first);
	free(all);
	free(in);
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

/* Time of a step and of computation. It is known where the batch lay ready before the trainer asked
 * for it. */
static void times_by_pipes(struct batches *b)
{
	struct account *a = b->a;
	struct values period = {0}, compute = {0}, upper = {0};
	uint64_t training = 0, most = 0, now = 0;
	uint32_t *times = xcalloc(a->steps + 1, sizeof(*times));
	bool ordered = hand_out(a, times);
	double step, v;

	for (size_t i = 0; i < a->steps; i++) {
		const struct step *s = &a->step[i], *last = i > 0 ? s - 1 : NULL;
		double gap;

		if (last && last->rank != s->rank)
			now = 0;
		if (s->evaluation)
			continue;
		training++;
		if (++now > most)
			most = now;
		if (!last || last->rank != s->rank || last->epoch != s->epoch || last->evaluation)
			continue;
		add(&period, (double)(s->taken_ns - last->taken_ns) / 1e9);
		gap = (double)(s->asked_ns - last->taken_ns) / 1e9;
		if (s->asked_ns == JOB_UNKNOWN || gap < 0)
			continue;
		/* several batches that lay ready, or none: this one came early */
		if (ordered && times[i - 1] == 0)
			continue;
		if (ordered)
			gap /= times[i - 1];
		add(&upper, gap);
		if (s->ready_ns != JOB_UNKNOWN &&
		    (s->ready_ns <= last->taken_ns || s->asked_ns - s->ready_ns > LATE_NS))
			add(&compute, gap);
	}
	if (training > 0)
		account_seen(a, ACCOUNT_STEPS, (double)most)->text = NULL;
	if (period.n > 2) {
		step = median(&period);
		account_inferred(a, ACCOUNT_STEP, step,
				 "median of the times from one batch to the next; within 10 %",
				 near(&period, step), period.n);
	}
	if (!main_thread_takes(a) && period.n > 2) {
		account_inferred(a, ACCOUNT_COMPUTE, median(&period),
				 "another thread takes the batches (pin_memory): the step is an "
				 "upper bound",
				 0, 0)
			->at_most = true;
	} else if ((compute.n >= 5 ||
		    (compute.n >= 3 && near(&compute, median(&compute)) == compute.n)) &&
		   (double)compute.n >= KNOWN_SHARE * (double)upper.n &&
		   2 * near(&compute, median(&compute)) >= compute.n) {
		v = median(&compute);
		account_inferred(a, ACCOUNT_COMPUTE, v,
				 "from a batch taken to asking for the next, where that lay ready; "
				 "within 10 %",
				 near(&compute, v), compute.n);
	} else if (upper.n > 0) {
		account_unknown(a, ACCOUNT_COMPUTE,
				compute.n >= 3 ? "the times in which a batch lay ready differ too "
						 "much"
					       : account_waiting_for_data);
	}
	free(times);
	free(upper.v);
	free(compute.v);
	free(period.v);
}

/* ---- by gaps ---- */

/* Whether a visit follows another of the same reader in one pass. */
static bool follows(const struct batches *b, size_t r, size_t i)
{
	const struct account *a = b->a;
	const struct visit *v, *last;

	if (i == b->begin[r])
		return false;
	v = &a->visit[b->visit[i]];
	last = &a->visit[b->visit[i - 1]];
	return v->epoch == last->epoch && is_eval(a, v) == is_eval(a, last);
}

static double gap_before(const struct batches *b, size_t i)
{
	const struct account *a = b->a;
	int64_t gap = a->visit[b->visit[i]].begin_ns - a->visit[b->visit[i - 1]].end_ns;

	return gap > 100 ? (double)gap / 1e9 : 1e-7;
}

struct runs {
	struct counts middle, first; /* lengths; of the first run of a reader in a pass */
	struct counts last;
};

/* Runs between gaps above the threshold. */
static void count_runs(const struct batches *b, double threshold, bool evaluation, struct runs *out)
{
	const struct account *a = b->a;

	*out = (struct runs){0};
	for (size_t r = 0; r < a->readers; r++) {
		size_t n = 0;
		bool first = true;

		for (size_t i = b->begin[r]; i < b->begin[r + 1]; i++) {
			bool end;

			if (is_eval(a, &a->visit[b->visit[i]]) != evaluation)
				continue;
			if (!follows(b, r, i)) {
				n = 0;
				first = true;
			}
			n++;
			end = i + 1 == b->begin[r + 1] || !follows(b, r, i + 1);
			if (!end && gap_before(b, i + 1) <= threshold)
				continue;
			if (first)
				count(&out->first, n);
			else
				count(end ? &out->last : &out->middle, n);
			first = false;
			n = 0;
		}
	}
}

static void runs_release(struct runs *r)
{
	free(r->middle.of);
	free(r->first.of);
	free(r->last.of);
}

struct jump {
	double width, at;
};

static int by_width(const void *x, const void *y)
{
	double a = ((const struct jump *)x)->width, b = ((const struct jump *)y)->width;

	return (a < b) - (a > b);
}

/* The threshold for which most runs are alike; 0: none. */
static double find_threshold(const struct batches *b, bool evaluation, uint32_t *batch,
			     uint64_t *agree, uint64_t *of)
{
	const struct account *a = b->a;
	struct values gap = {0};
	struct jump *jump;
	size_t jumps = 0;
	double best = 0, threshold = 0;

	for (size_t r = 0; r < a->readers; r++)
		for (size_t i = b->begin[r]; i < b->begin[r + 1]; i++)
			if (follows(b, r, i) && is_eval(a, &a->visit[b->visit[i]]) == evaluation)
				add(&gap, log(gap_before(b, i)));
	if (gap.n < 6) {
		free(gap.v);
		return 0;
	}
	qsort(gap.v, gap.n, sizeof(*gap.v), by_value);
	jump = xcalloc(gap.n, sizeof(*jump));
	for (size_t i = 2; i + 2 < gap.n; i++)
		jump[jumps++] =
			(struct jump){gap.v[i + 1] - gap.v[i], exp((gap.v[i + 1] + gap.v[i]) / 2)};
	qsort(jump, jumps, sizeof(*jump), by_width);
	for (size_t i = 0; i < jumps && i < WIDEST && jump[i].width > 0.05; i++) {
		struct runs runs;
		uint64_t same;
		uint32_t length;
		double share, score;

		count_runs(b, jump[i].at, evaluation, &runs);
		length = mode(&runs.middle, &same);
		share = runs.middle.all > 0 ? (double)same / (double)runs.middle.all : 0;
		score = share * (1 + 0.1 * fmin(jump[i].width, 3));
		if (length > 1 && same >= 3 && share >= RUNS_ALIKE && score > best) {
			best = score;
			threshold = jump[i].at;
			*batch = length;
			*agree = same;
			*of = runs.middle.all;
		}
		runs_release(&runs);
	}
	free(jump);
	free(gap.v);
	return threshold;
}

/* Numbers of the runs; a first run of several batches is cut. */
static void batches_by_gaps(struct batches *b)
{
	struct account *a = b->a;

	for (size_t r = 0; r < a->readers; r++) {
		uint32_t batch = 0, n = 0;

		for (size_t i = b->begin[r]; i < b->begin[r + 1]; i++) {
			struct visit *v = &a->visit[b->visit[i]];
			uint32_t most = is_eval(a, v) ? b->eval_batch : b->batch;
			double threshold = is_eval(a, v) ? b->eval_threshold_s : b->threshold_s;

			if (i > b->begin[r] &&
			    (!follows(b, r, i) || (n == most && has_workers(a)) ||
			     (threshold > 0 && gap_before(b, i) > threshold))) {
				batch++;
				n = 0;
			}
			v->batch = batch;
			n++;
		}
	}
}

/* A batch that a reader began after a wait: the trainer had just taken the batch of number
 * (index - read-ahead of a reader) * readers + number of the reader. */
struct arrival {
	uint32_t rank, epoch;
	uint32_t index, number, readers; /* of the reader's batches in the pass */
	uint64_t at;                     /* index * readers + number */
	double s, first_s;               /* since the job's begin; when the pass's first was read */
};

struct arrivals {
	struct arrival *v;
	size_t n, room;
};

static void add_arrival(struct arrivals *s, const struct arrival *v)
{
	if (s->n == s->room) {
		s->room = s->room ? 2 * s->room : 64;
		s->v = xrealloc(s->v, s->room * sizeof(*s->v));
	}
	s->v[s->n++] = *v;
}

static int by_arrival(const void *x, const void *y)
{
	const struct arrival *a = x, *b = y;

	if (a->rank != b->rank)
		return a->rank < b->rank ? -1 : 1;
	if (a->epoch != b->epoch)
		return a->epoch < b->epoch ? -1 : 1;
	return (a->at > b->at) - (a->at < b->at);
}

/* When each rank's first batch of each pass was read: the end of the batch of reader 0. */
struct firsts {
	size_t *of_rank; /* where its passes begin in `s` */
	double *s;       /* negative: not known */
};

static struct firsts find_firsts(const struct batches *b)
{
	const struct account *a = b->a;
	struct firsts f = {.of_rank = xcalloc(a->trainers + 1, sizeof(*f.of_rank))};

	for (size_t t = 0; t < a->trainers; t++)
		f.of_rank[t + 1] = f.of_rank[t] + a->trainer[t].epochs;
	f.s = xcalloc(f.of_rank[a->trainers] + 1, sizeof(*f.s));
	for (size_t i = 0; i < f.of_rank[a->trainers]; i++)
		f.s[i] = -1;
	for (size_t r = 0; r < a->readers; r++) {
		if (a->reader[r].number != 0)
			continue;
		for (size_t i = b->begin[r], n = 0; i < b->begin[r + 1]; i++) {
			const struct visit *v = &a->visit[b->visit[i]];

			n = follows(b, r, i) ? n + 1 : 1;
			if (n == b->batch && !is_eval(a, v) &&
			    v->epoch < a->trainer[a->reader[r].rank].epochs)
				f.s[f.of_rank[a->reader[r].rank] + v->epoch] =
					(double)v->end_ns / 1e9;
		}
	}
	return f;
}

static void find_arrivals(const struct batches *b, struct arrivals *out)
{
	const struct account *a = b->a;
	struct firsts firsts = find_firsts(b);
	uint32_t readers = (uint32_t)a->fact[ACCOUNT_WORKERS].number;

	for (size_t r = 0; r < a->readers; r++) {
		uint32_t index = 0, first = 0;

		for (size_t i = b->begin[r]; i < b->begin[r + 1]; i++) {
			const struct visit *v = &a->visit[b->visit[i]];

			if (is_eval(a, v) || v->epoch >= a->trainer[a->reader[r].rank].epochs)
				continue;
			if (!follows(b, r, i))
				first = v->batch;
			index = v->batch - first;
			if (!follows(b, r, i) || gap_before(b, i) <= b->threshold_s)
				continue;
			add_arrival(out,
				    &(struct arrival){
					    .rank = a->reader[r].rank,
					    .epoch = v->epoch,
					    .index = index,
					    .number = a->reader[r].number,
					    .readers = readers,
					    .at = (uint64_t)index * readers + a->reader[r].number,
					    .s = (double)v->begin_ns / 1e9,
					    .first_s = firsts.s[firsts.of_rank[a->reader[r].rank] +
								v->epoch],
				    });
		}
	}
	free(firsts.s);
	free(firsts.of_rank);
	if (out->n > 0)
		qsort(out->v, out->n, sizeof(*out->v), by_arrival);
}

/* Where the trainer decides the pace: an arrival comes so many steps after the first batch as the
 * trainer has taken since, which is its number less what was read ahead. */
static void prefetch_by_arrivals(struct account *a, const struct arrivals *s, double step)
{
	struct counts c = {0};
	uint64_t agree, known = 0;
	uint32_t ahead;

	for (size_t i = 0; i < s->n; i++) {
		const struct arrival *v = &s->v[i];
		double batches;

		if (v->first_s < 0 || v->s < v->first_s)
			continue;
		known++;
		batches = (double)v->index + (double)v->number / v->readers -
			  (v->s - v->first_s) / step / v->readers;
		if (batches > 0.5 && fabs(batches - round(batches)) < 0.4)
			count(&c, (size_t)round(batches));
	}
	ahead = mode(&c, &agree);
	if (ahead > 0 && agree >= 3 && (double)agree >= RUNS_ALIKE * (double)known)
		account_inferred(a, ACCOUNT_PREFETCH, (double)ahead * s->v[0].readers,
				 "by how many batches readers are ahead of the trainer when they "
				 "wait, from the times at which they go on",
				 agree, known);
	else
		account_unknown(a, ACCOUNT_PREFETCH,
				"the times at which readers go on after waiting do not agree");
	free(c.of);
}

static void times_with_workers(struct batches *b)
{
	struct account *a = b->a;
	struct arrivals s = {0};
	struct values period = {0};
	double step;

	find_arrivals(b, &s);
	for (size_t i = 1; i < s.n; i++) {
		const struct arrival *v = &s.v[i], *last = v - 1;

		if (v->rank == last->rank && v->epoch == last->epoch && v->at > last->at &&
		    v->at - last->at <= v->readers && v->s > last->s)
			add(&period, (v->s - last->s) / (double)(v->at - last->at));
	}
	if (period.n > 2) {
		step = median(&period);
		account_inferred(a, ACCOUNT_STEP, step,
				 "times from when a reader goes on after waiting to when the next "
				 "reader does; within 10 %",
				 near(&period, step), period.n);
		account_inferred(
			a, ACCOUNT_COMPUTE, step,
			"the step, in which the trainer also takes the batch: the log does "
			"not show it",
			0, 0)
			->at_most = true;
		prefetch_by_arrivals(a, &s, step);
	} else {
		account_unknown(a, ACCOUNT_COMPUTE, "readers waited too few times");
		account_unknown(a, ACCOUNT_PREFETCH, "readers waited too few times");
	}
	free(period.v);
	free(s.v);
}

static void times_without_workers(struct batches *b)
{
	struct account *a = b->a;
	struct values period = {0}, large = {0}, small = {0};
	double step, v;

	for (size_t r = 0; r < a->readers; r++) {
		int64_t begin = JOB_UNKNOWN; /* of the batch, where a gap was before it */

		for (size_t i = b->begin[r]; i < b->begin[r + 1]; i++) {
			const struct visit *x = &a->visit[b->visit[i]];
			double gap;

			if (is_eval(a, x))
				continue;
			if (!follows(b, r, i)) {
				begin = JOB_UNKNOWN;
				continue;
			}
			gap = gap_before(b, i);
			add(gap > b->threshold_s ? &large : &small, gap);
			if (gap <= b->threshold_s)
				continue;
			if (begin != JOB_UNKNOWN)
				add(&period, (double)(x->begin_ns - begin) / 1e9);
			begin = x->begin_ns;
		}
	}
	if (period.n > 2) {
		step = median(&period);
		account_inferred(a, ACCOUNT_STEP, step,
				 "time from one batch to the next; within 10 %",
				 near(&period, step), period.n);
		v = median(&large) - median(&small);
		account_inferred(a, ACCOUNT_COMPUTE, v,
				 "gap between batches, less the gap between samples; gaps within "
				 "10 %",
				 near(&large, median(&large)), large.n);
	}
	free(small.v);
	free(large.v);
	free(period.v);
}

static void times_by_gaps(struct batches *b)
{
	if (has_workers(b->a))
		times_with_workers(b);
	else
		times_without_workers(b);
}

static void by_gaps(struct batches *b)
{
	struct account *a = b->a;
	uint64_t agree = 0, of = 0, batches = 0;
	size_t *in_epoch;
	uint32_t epochs = 0;

	b->threshold_s = find_threshold(b, false, &b->batch, &agree, &of);
	if (b->threshold_s == 0) {
		const char *why = has_workers(a) ? account_waiting_for_data
						 : "the gaps between samples are of one kind: each "
						   "sample may be a batch, or there is no "
						   "computation between batches";

		account_unknown(a, ACCOUNT_BATCH, why);
		account_unknown(a, ACCOUNT_COMPUTE, why);
		if (has_workers(a))
			account_unknown(a, ACCOUNT_PREFETCH, why);
		return;
	}
	account_inferred(a, ACCOUNT_BATCH, b->batch,
			 "samples that a reader reads between two long gaps", agree, of);
	if (account_has(a, ACCOUNT_EVALUATIONS)) {
		b->eval_threshold_s = find_threshold(b, true, &b->eval_batch, &agree, &of);
		if (b->eval_threshold_s > 0)
			account_inferred(a, ACCOUNT_EVAL_BATCH, b->eval_batch,
					 "samples that a reader reads between two long gaps", agree,
					 of);
		else
			account_unknown(a, ACCOUNT_EVAL_BATCH,
					"too few batches between gaps of two kinds");
	}
	batches_by_gaps(b);
	times_by_gaps(b);
	/* steps of rank 0 */
	epochs = a->trainer[0].epochs;
	in_epoch = xcalloc((size_t)epochs + 1, sizeof(*in_epoch));
	for (size_t i = 0; i < a->visits; i++) {
		const struct visit *v = &a->visit[i];

		if (a->reader[v->reader].rank == 0 && !is_eval(a, v) && v->epoch < epochs)
			in_epoch[v->epoch]++;
	}
	for (size_t i = 0; i < epochs; i++)
		batches += (in_epoch[i] + b->batch - 1) / b->batch;
	account_inferred(a, ACCOUNT_STEPS, (double)batches, "samples of an epoch by the batch size",
			 0, 0);
	free(in_epoch);
}

static void say_persistent(struct account *a)
{
	uint64_t epochs = 0, rounds = 0;

	if (!has_workers(a) || a->trainers == 0)
		return;
	for (size_t i = 0; i < a->trainers; i++) {
		epochs += a->trainer[i].epochs + a->trainer[i].evaluations;
		rounds += a->trainer[i].rounds;
	}
	if (a->trainer[0].epochs > 1)
		account_inferred(a, ACCOUNT_PERSISTENT, rounds < epochs,
				 "generations of workers against passes over the samples", 0, 0);
}

void account_batches(struct account *a)
{
	struct batches b = {.a = a};

	if (a->readers == 0)
		return;
	sort_by_reader(&b);
	messages_find(&b.messages, a->job);
	find_index_pipes(&b);
	if (b.messages.n > 0 && a->job->sees & JOB_SEES_PIPES &&
	    (batches_by_pipes(&b) || a->visits == 0)) {
		say_batch(&b, false,
			  "samples that a worker reads for one message of its index pipe");
		say_batch(&b, true,
			  "samples that a worker reads for one message of its index pipe");
		steps_by_pipes(&b);
		prefetch_by_pipes(&b);
		times_by_pipes(&b);
		if (a->visits == 0)
			account_unknown(a, ACCOUNT_BATCH,
					"the log does not show which samples are "
					"read for a batch");
		if (a->stream)
			account_unknown(a, ACCOUNT_BATCH,
					"the files are streams of samples, and reads do not show "
					"where one ends");
	} else if (a->visits > 0 && a->job->sees & JOB_SEES_TIMES && !a->stream) {
		by_gaps(&b);
	} else {
		account_unknown(a, ACCOUNT_BATCH,
				a->stream ? "the files are streams of samples, and reads do not "
					    "show where one ends"
					  : "the log has no times");
	}
	say_persistent(a);
	a->trains = a->steps > 0 || account_has(a, ACCOUNT_BATCH) ||
		    (account_has(a, ACCOUNT_EPOCHS) && a->fact[ACCOUNT_EPOCHS].number > 1);
	messages_release(&b.messages);
	free(b.index_pipe);
	free(b.visit);
	free(b.begin);
}
