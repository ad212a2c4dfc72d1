/* Batches, and what follows from them: steps, read-ahead, computation. */
#include <math.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/compare.h"
#include "trace/profile/profile_parts.h"

static void batches_starts(struct batches *b);

/* Threads that read for one trainer and purpose share its batches: their visits are one sequence,
 * which is that of the first of them. */
static void find_sequences(struct batches *b)
{
	const struct profile *a = b->a;
	AUTO_FREE size_t *begin = profile_rounds(a);
	AUTO_FREE uint32_t *first = job_numbers(begin[a->trainers]);

	b->sequence = job_numbers(a->readers);
	for (size_t i = 0; i < a->readers; i++) {
		const struct job_reader *r = &a->reader[i];
		uint32_t own = (uint32_t)i, *of = &own;

		if (r->worker && r->thread != JOB_NONE && !r->left_out)
			of = &first[begin[r->rank] + r->round];
		if (*of == JOB_NONE)
			*of = own;
		b->sequence[i] = *of;
		b->threads |= *of != own;
	}
}

static void sort_by_sequence(struct batches *b)
{
	const struct profile *a = b->a;

	b->begin = xcalloc(a->readers + 2, sizeof(*b->begin));
	b->visit = xcalloc(a->visits + 1, sizeof(*b->visit));
	/* while they are filled, the begin of each is in the place of the next one's */
	for (size_t i = 0; i < a->visits; i++)
		b->begin[b->sequence[a->visit[i].reader] + 2]++;
	for (size_t i = 1; i <= a->readers; i++)
		b->begin[i + 1] += b->begin[i];
	for (size_t i = 0; i < a->visits; i++)
		b->visit[b->begin[b->sequence[a->visit[i].reader] + 1]++] = (uint32_t)i;
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

#define BATCHES_ALIKE 0.9 /* of the runs between pauses, where nothing else names a training */

/* Whether files with names of checkpoints were written. */
static bool saved(const struct profile *a)
{
	for (size_t g = 0; g < a->groups; g++)
		if (a->group[g].role == FILE_CHECKPOINT && a->group[g].bytes_written > 0 &&
		    profile_is_checkpoint_name(a->group[g].extension))
			return true;
	return false;
}

/* What shows a training. Most of what reads files reads them once and in their order: an inference,
 * an extraction of features, a copy. A training draws its samples at random, or passes over them
 * several times, takes them in batches, and more than one thing speaks for it: a loader's messages,
 * batches of one size, a framework, checkpoints. */
static bool shows_training(const struct profile *a)
{
	const struct profile_value *batch = &a->value[PROFILE_BATCH];
	bool random = profile_has(a, PROFILE_ORDER) && a->order > JOB_ORDER_NEARLY_SAME;
	bool anew = random && a->order != JOB_ORDER_RANDOM_SAME;
	bool passes = profile_has(a, PROFILE_EPOCHS) && a->value[PROFILE_EPOCHS].number >= 2;
	bool loader = a->steps > 0;
	bool batches = profile_has(a, PROFILE_BATCH) && batch->number > 1;
	bool alike = batches && (double)batch->agree >= BATCHES_ALIKE * (double)batch->of;
	/* a library is loaded by what uses a model, too, which reads in order */
	bool loaded = profile_has(a, PROFILE_FRAMEWORK);
	bool named = (loaded && !a->loaded) || saved(a);

	if (a->pooled)
		return false;
	if (loader)
		return random || passes || (!profile_has(a, PROFILE_ORDER) && saved(a));
	if (a->stream)
		return passes && (loaded || named || a->processes) &&
		       (random || (pauses(a) && (named || a->processes || a->tensorflow)));
	/* threads take what comes next in any order */
	if (passes && random)
		return anew ? loaded || named || batches || a->processes ||
				       profile_has(a, PROFILE_EVALUATIONS)
			    : alike;
	if (passes && batches)
		return named || (alike && a->processes);
	return random && alike && (loaded || named);
}

/* Why none is seen. */
static struct fact no_training(const struct profile *a)
{
	bool passes = profile_has(a, PROFILE_EPOCHS) && a->value[PROFILE_EPOCHS].number >= 2;

	if (profile_has(a, PROFILE_ORDER) && a->order <= JOB_ORDER_NUMBERS)
		return passes ? FACT(JOB_PASSES_IN_ORDER) : FACT(JOB_ONE_PASS_IN_ORDER);
	return passes ? FACT(JOB_PASSES_ALONE) : FACT(JOB_NOTHING_TRAINED);
}

/* A file that is read as a whole is a sample where a batch reads several, or where its format holds
 * one image. Else it may hold many, too. */
static void admit_whole_files(struct profile *a)
{
	static const enum profile_key of_files[] = {PROFILE_SAMPLES, PROFILE_SAMPLES_PER_FILE,
						    PROFILE_BATCH};

	if (a->container || a->stream || a->companions > 0 || profile_is_image(a) ||
	    (profile_has(a, PROFILE_BATCH) && a->value[PROFILE_BATCH].number > 1) ||
	    (a->value[PROFILE_BATCH].how == HOW_UNKNOWN && a->steps > 0))
		return;
	for (size_t i = 0; i < sizeof(of_files) / sizeof(of_files[0]); i++) {
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
	AUTO_FREE uint32_t *last = job_numbers(a->samples);
	uint32_t readers = 0, epochs = 0;
	size_t again = 0, visits = 0;
	double expected;

	for (size_t i = 0; i < a->readers; i++)
		readers += a->reader[i].worker && a->reader[i].visits > 0;
	for (size_t i = 0; i < a->visits; i++) {
		const struct visit *v = &a->visit[i];

		if (is_eval(a, v))
			continue;
		visits++;
		again += last[v->sample] == v->reader;
		last[v->sample] = v->reader;
		RAISE(epochs, v->epoch + 1);
	}
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

	if (a->readers == 0)
		return;
	find_sequences(&b);
	sort_by_sequence(&b);
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
	a->trains = shows_training(a);
	a->no_training = no_training(a);
	if (!b.unread)
		doubt_kept(a);
	admit_whole_files(a);
	say_persistent(a);
	messages_release(&b.messages);
	free(b.index_pipe);
	free(b.worker_of);
	free(b.sequence);
	free(b.begin);
	free(b.visit);
}

/* ---- starts of workers ---- */

/* PyTorch starts workers one after another, and sends the first indices when all are started. */

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
	int64_t begin = b->a->job->process[b->a->reader[r].process].begin_ns;
	const struct visit *v;

	if (b->begin[r] == b->begin[r + 1] || begin == JOB_UNKNOWN || m->asked_ns == JOB_UNKNOWN)
		return;
	v = batches_visit(b, b->begin[r]);
	if (v->batch == 0 && m->asked_ns >= begin && v->begin_ns >= m->begin_ns)
		values_add(init, (double)(m->asked_ns - begin + v->begin_ns - m->begin_ns) / 1e9);
}

/* An epoch of training of one rank. */
struct opening {
	int64_t begin_ns;          /* workers were created, or told to go on; INT64_MAX */
	int64_t sent_ns;           /* the first indices were sent; INT64_MAX */
	int64_t before_ns;         /* the rank had the batch before it; INT64_MIN */
	int64_t first_ns, last_ns; /* it had the first and the last of this one; INT64_MAX, _MIN */
	int64_t stop_ns, end_ns;   /* its workers were told to end, and had ended */
	bool anew;                 /* workers were created */
};

/* Which opening is the first of each rank; of the last, how many there are. */
static size_t *count_openings(const struct profile *a)
{
	size_t *first = xcalloc(a->trainers + 1, sizeof(*first));

	for (size_t i = 0; i < a->visits; i++) {
		uint32_t rank = a->reader[a->visit[i].reader].rank;

		if (rank < a->trainers)
			RAISE(first[rank + 1], a->visit[i].epoch + (size_t)1);
	}
	for (size_t t = 0; t < a->trainers; t++)
		first[t + 1] += first[t];
	return first;
}

/* What a worker was told of each epoch that it read for. */
static void open_by_worker(const struct batches *b, size_t r, int64_t forked,
			   struct opening *of_rank)
{
	const struct visit *last = NULL;
	struct opening *o = NULL;
	const struct message *m;
	bool one = true;
	size_t n;

	m = messages_of(&b->messages, b->index_pipe[r], &n);
	for (size_t i = b->begin[r]; i < b->begin[r + 1]; i++) {
		const struct visit *v = batches_visit(b, i);
		int64_t begin;

		if (is_eval(b->a, v) || v->batch >= n) /* or none */
			continue;
		if (!last || last->epoch != v->epoch) {
			one &= !last;
			o = &of_rank[v->epoch];
			begin = !last ? forked
				      : m[last->batch + 1 < v->batch ? last->batch + 1 : v->batch]
						.ready_ns;
			if (begin != JOB_UNKNOWN && begin < o->begin_ns) {
				o->begin_ns = begin;
				o->anew = !last;
			}
			if (m[v->batch].ready_ns != JOB_UNKNOWN)
				LOWER(o->sent_ns, m[v->batch].ready_ns);
		}
		last = v;
	}
	/* one of this epoch alone, which a last message told to end */
	if (o && one && last->batch + 1 < n && m[n - 1].ready_ns != JOB_UNKNOWN) {
		LOWER(o->stop_ns, m[n - 1].ready_ns);
		RAISE(o->end_ns, b->a->job->process[b->a->reader[r].process].end_ns);
	}
}

static void open_by_steps(const struct profile *a, const size_t *first, struct opening *opening)
{
	for (size_t i = 0; i < a->steps; i++) {
		const struct step *s = &a->step[i];
		struct opening *o = &opening[first[s->rank] + s->epoch];

		if (s->evaluation || first[s->rank] + s->epoch >= first[s->rank + 1])
			continue;
		if (o->last_ns == INT64_MIN && i > 0 && s[-1].rank == s->rank)
			o->before_ns = s[-1].taken_ns;
		LOWER(o->first_ns, s->taken_ns);
		RAISE(o->last_ns, s->taken_ns);
	}
}

/* `init_s`: from the begin of a worker to its first request. */
static void add_opening(struct profile *a, const struct opening *o, bool later, double init_s)
{
	double compute = profile_has(a, PROFILE_COMPUTE) ? a->value[PROFILE_COMPUTE].number : 0;
	double start, end = 0;
	int64_t begin = o->begin_ns > o->before_ns ? o->begin_ns : o->before_ns;

	if (begin >= o->first_ns || o->first_ns == INT64_MAX)
		return;
	start = (double)(o->first_ns - begin) / 1e9;
	if (o->before_ns > o->begin_ns) /* the step before computed meanwhile */
		start = fmax(0, start - compute);
	if (o->stop_ns >= o->last_ns && o->end_ns > o->stop_ns)
		end = (double)(o->end_ns - o->stop_ns) / 1e9;
	a->starts.n++;
	a->starts.all_s += start + end;
	if (later && o->anew && o->sent_ns > begin)
		a->starts.spared_s +=
			end + fmin(start, (double)(o->sent_ns - begin) / 1e9 + init_s);
}

static void starts_of_epochs(const struct batches *b, const int64_t *forked, double init_s)
{
	struct profile *a = b->a;
	AUTO_FREE size_t *first = count_openings(a);
	AUTO_FREE struct opening *o = xcalloc(first[a->trainers] + 1, sizeof(*o));

	for (size_t i = 0; i < first[a->trainers]; i++)
		o[i] = (struct opening){INT64_MAX, INT64_MAX, INT64_MIN, INT64_MAX,
					INT64_MIN, INT64_MAX, INT64_MIN, false};
	for (size_t r = 0; r < a->readers; r++)
		if (b->index_pipe[r] != JOB_NONE && a->reader[r].rank < a->trainers)
			open_by_worker(b, r, forked[a->reader[r].process],
				       o + first[a->reader[r].rank]);
	open_by_steps(a, first, o);
	for (size_t t = 0; t < a->trainers; t++)
		for (size_t i = first[t]; i < first[t + 1]; i++)
			add_opening(a, &o[i], i > first[t], init_s);
}

static void batches_starts(struct batches *b)
{
	struct profile *a = b->a;
	struct values start = {0}, init = {0};
	AUTO_FREE size_t *of_rank = profile_rounds(a);
	size_t rounds = of_rank[a->trainers];
	AUTO_FREE int64_t *forked = fork_times(a->job);
	AUTO_FREE struct round *round = xcalloc(rounds + 1, sizeof(*round));

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
		LOWER(x->first_ns, forked[reader->process]);
		LOWER(x->sent_ns, m->ready_ns);
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
	if (!b->unread)
		starts_of_epochs(b, forked, values_mean(&init));
	free(init.v);
	free(start.v);
}

/* ---- marks ---- */

/* What the application itself marked in the log. */
void profile_marks(struct profile *a)
{
	struct values s = {0};
	double all;
	struct profile_value *f;

	for (size_t i = 0; i < a->job->events; i++) {
		const struct job_event *v = &a->job->event[i];

		if (v->kind == JOB_COMPUTE && v->begin_ns != JOB_UNKNOWN &&
		    v->end_ns != JOB_UNKNOWN)
			values_add(&s, (double)(v->end_ns - v->begin_ns) / 1e9);
	}
	if (s.n && a->job->sees & JOB_SEES_COMPUTE) {
		a->trains = true;
		all = (double)s.n;
		f = profile_seen(a, PROFILE_COMPUTE, values_middle(&s));
		/* of all there are, not of a sample */
		f->stdev = s.n > 1 ? values_stdev(&s) * sqrt((all - 1) / all) : 0;
		f->rule = FACT(JOB_MARKED);
		f->of = f->agree = s.n;
	}
	free(s.v);
}
