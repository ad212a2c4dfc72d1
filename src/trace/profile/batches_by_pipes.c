/* Batches where pipes are seen: a worker's batch is what it reads between two messages of its index
 * pipe, and a step begins when the trainer takes a message of the result pipe. */
#include <stdlib.h>

#include "base/alloc.h"
#include "base/compare.h"
#include "base/vector.h"
#include "trace/profile/profile_parts.h"

/* ---- messages ---- */

/* Which bytes of a pipe are one message follows from how they are read: four bytes, then as many
 * requests as the message takes. When it was written follows from its place in the stream. */

#define AT_ONCE_NS 1000000
#define MODULES_NS 500000000

enum { AT_LENGTH, AT_MESSAGE, IN_MESSAGE };

struct stream {
	uint64_t read, written;
	int64_t left;
	uint32_t last; /* message */
	uint8_t state;
	bool other; /* no such messages */
};

struct written {
	uint32_t pipe, thread;
	int64_t end_ns;
	uint64_t end;
};

struct writes {
	struct written *v;
	size_t n, room;
};

/* What a thread is at. */
struct taking {
	uint32_t message; /* last one whose taking may go on; JOB_NONE */
	int64_t wait_ns;  /* begin of a wait that was its last event; JOB_UNKNOWN */
	int64_t last_ns;  /* end of its last event */
};

static void on_read(struct messages *m, struct stream *s, struct taking *t,
		    const struct job_event *v)
{
	bool waited;

	if (v->result <= 0 || s->other)
		return;
	if (s->state == AT_LENGTH) {
		if (v->result != 4 || (v->asked != JOB_UNKNOWN && v->asked != 4)) {
			s->other = true;
			return;
		}
		s->last = t->message = (uint32_t)m->n;
		waited = t->wait_ns != JOB_UNKNOWN;
		VECTOR_PUSH(m->v, m->n, m->room,
			    {.pipe = v->file,
			     .thread = v->thread,
			     .writer = JOB_NONE,
			     .ready_ns = JOB_UNKNOWN,
			     .asked_ns = waited ? t->wait_ns : v->begin_ns,
			     .begin_ns = v->begin_ns,
			     .taken_ns = v->end_ns,
			     .position = s->read,
			     .waited = waited});
		s->state = AT_MESSAGE;
	} else {
		if (s->state == AT_MESSAGE)
			s->left = v->asked == JOB_UNKNOWN ? v->result : v->asked;
		s->left -= v->result;
		s->state = s->left > 0 ? IN_MESSAGE : AT_LENGTH;
		m->v[s->last].taken_ns = v->end_ns;
	}
	s->read += (uint64_t)v->result;
}

static void on_write(struct writes *w, struct stream *s, const struct job_event *v)
{
	if (v->result <= 0)
		return;
	s->written += (uint64_t)v->result;
	VECTOR_PUSH(w->v, w->n, w->room, {v->file, v->thread, v->end_ns, s->written});
}

static int by_pipe(const void *x, const void *y)
{
	const struct message *a = x, *b = y;

	return ORDER(a->pipe, b->pipe) ?: ORDER(a->position, b->position);
}

static int by_pipe_written(const void *x, const void *y)
{
	const struct written *a = x, *b = y;

	return ORDER(a->pipe, b->pipe) ?: ORDER(a->end, b->end);
}

static void match(struct messages *m, const struct writes *w)
{
	size_t k = 0;

	for (size_t i = 0; i < m->n; i++) {
		struct message *v = &m->v[i];

		while (k < w->n && (w->v[k].pipe < v->pipe ||
				    (w->v[k].pipe == v->pipe && w->v[k].end <= v->position)))
			k++;
		if (k == w->n || w->v[k].pipe != v->pipe)
			continue;
		v->ready_ns = w->v[k].end_ns;
		v->writer = w->v[k].thread;
	}
}

/* Whether an event belongs to taking a batch: what came over the pipe names sockets over which
 * descriptors of shared memory come. */
static bool belongs(const struct job *job, const struct job_event *v)
{
	return v->file != JOB_NONE && (job->file[v->file].kind == JOB_FILE_SOCKET ||
				       job->file[v->file].kind == JOB_FILE_MEMORY);
}

/* Python looks for the modules that take the first batch behind its message. */
static bool prepares(const struct job *job, const struct messages *m, const struct taking *t,
		     const struct job_event *v)
{
	return t->message != JOB_NONE && !m->v[t->message].fetched && v->kind != JOB_WRITE &&
	       (job_is_stored(&job->file[v->file]) || job->file[v->file].kind == JOB_FILE_OTHER) &&
	       v->begin_ns - m->v[t->message].taken_ns < MODULES_NS;
}

/* The batch before is let go when the next one is handed out: at once, or, where that lay ready,
 * after the computation. */
static bool is_later_close(const struct taking *t, const struct job_event *v)
{
	return v->kind == JOB_CLOSE && v->begin_ns - t->last_ns > AT_ONCE_NS;
}

void messages_find(struct messages *m, const struct job *job)
{
	AUTO_FREE struct stream *stream = xcalloc(job->files + 1, sizeof(*stream));
	AUTO_FREE struct taking *taking = xcalloc(job->threads + 1, sizeof(*taking));
	struct writes w = {0};
	size_t kept = 0;

	*m = (struct messages){0};
	for (size_t i = 0; i < job->threads; i++)
		taking[i] = (struct taking){JOB_NONE, JOB_UNKNOWN, JOB_UNKNOWN};
	for (size_t i = 0; i < job->events; i++) {
		const struct job_event *v = &job->event[i];
		struct taking *t = &taking[v->thread];

		if (v->kind == JOB_WAIT) {
			t->wait_ns = v->begin_ns;
			continue;
		}
		if (v->kind == JOB_READ && profile_is_pipe(job, v->file))
			on_read(m, &stream[v->file], t, v);
		else if (v->kind == JOB_WRITE && profile_is_pipe(job, v->file))
			on_write(&w, &stream[v->file], v);
		else if (t->message != JOB_NONE && belongs(job, v) && !is_later_close(t, v) &&
			 (m->v[t->message].fetched || v->kind != JOB_CLOSE))
			m->v[t->message].taken_ns = v->end_ns, m->v[t->message].fetched = true;
		else if (v->file != JOB_NONE && !prepares(job, m, t, v))
			t->message = JOB_NONE; /* something else has begun */
		t->last_ns = v->end_ns;
		t->wait_ns = JOB_UNKNOWN;
	}
	for (size_t i = 0; i < m->n; i++)
		if (!stream[m->v[i].pipe].other)
			m->v[kept++] = m->v[i];
	m->n = kept;
	if (m->n > 0)
		qsort(m->v, m->n, sizeof(*m->v), by_pipe);
	if (w.n > 0)
		qsort(w.v, w.n, sizeof(*w.v), by_pipe_written);
	match(m, &w);
	free(w.v);
	for (size_t i = 0; i < m->n; i++)
		if (i == 0 || m->v[i].pipe != m->v[i - 1].pipe)
			map_put(&m->first, m->v[i].pipe, (uint32_t)i);
}

void messages_release(struct messages *m)
{
	map_release(&m->first);
	free(m->v);
	*m = (struct messages){0};
}

const struct message *messages_of(const struct messages *m, uint32_t pipe, size_t *n)
{
	uint32_t first = map_get(&m->first, pipe);

	*n = 0;
	if (first == MAP_NONE)
		return NULL;
	while (first + *n < m->n && m->v[first + *n].pipe == pipe)
		++*n;
	return m->v + first;
}

/* ---- batches ---- */

#define LATE_NS 1000000 /* a batch that lay ready so long: it was not waited for */
#define KNOWN_SHARE 0.1 /* of the steps, for the time of computation */

/* The pipe of which a worker reads most messages. */
static void find_index_pipes(struct batches *b)
{
	struct profile *a = b->a;
	const struct job *job = a->job;
	AUTO_FREE uint32_t *reader_of = job_numbers(job->processes);
	AUTO_FREE size_t *best = xcalloc(a->readers + 1, sizeof(*best));

	b->index_pipe = job_numbers(a->readers);
	b->worker_of = job_numbers(job->processes);
	for (size_t i = 0; i < a->readers; i++)
		if (a->reader[i].worker && a->reader[i].thread == JOB_NONE)
			reader_of[a->reader[i].process] = (uint32_t)i;
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
			b->worker_of[a->reader[r].process] = r;
		}
	}
}

/* The worker that wrote a message; JOB_NONE. */
static uint32_t answered_by(const struct batches *b, const struct message *m)
{
	return m->writer == JOB_NONE ? JOB_NONE
				     : b->worker_of[b->a->job->thread[m->writer].process];
}

/* The batch of each visit of a worker: the message before it. */
static bool find_batches(struct batches *b)
{
	struct profile *a = b->a;
	bool any = false;

	for (size_t r = 0; r < a->readers; r++) {
		size_t n, k = 0;
		const struct message *m;

		if (b->index_pipe[r] == JOB_NONE)
			continue;
		m = messages_of(&b->messages, b->index_pipe[r], &n);
		for (size_t i = 0; i < n; i++)
			VECTOR_PUSH(a->task, a->tasks, a->task_room,
				    {(uint32_t)r, m[i].begin_ns, JOB_UNKNOWN});
		for (size_t i = b->begin[r]; i < b->begin[r + 1]; i++) {
			struct visit *v = batches_visit(b, i);

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
static struct fact varied_batches(const struct counts *c)
{
	uint32_t low = 0, high = 0;
	uint64_t sum = 0;

	for (uint32_t i = 1; i <= COUNTS_MAX; i++) {
		if (!c->of[i])
			continue;
		sum += c->of[i];
		/* but the smallest and largest twentieth */
		if (low == 0 && 20 * sum >= c->all)
			low = i;
		if (high == 0 && 20 * sum >= 19 * c->all)
			high = i;
	}
	return FACT(JOB_BATCHES_DIFFER, low, high);
}

static void say_batch(struct batches *b, bool evaluation, struct fact rule)
{
	struct profile *a = b->a;
	struct counts c = {0};
	uint64_t agree;
	uint32_t batch;
	enum profile_key f = evaluation ? PROFILE_EVAL_BATCH : PROFILE_BATCH;

	for (size_t i = 0, n = 0; i < a->visits; i++) {
		const struct visit *v = batches_visit(b, i);

		if (is_eval(a, v) != evaluation || v->batch == JOB_NONE)
			continue;
		n++;
		if (batches_follows(b, i + 1) && batches_visit(b, i + 1)->batch == v->batch)
			continue;
		counts_add(&c, n);
		n = 0;
	}
	batch = counts_mode(&c, &agree);
	if (batch > 0 && !a->stream && 2 * agree > c.all)
		profile_inferred(a, f, batch, rule, agree, c.all);
	else if (batch > 0 && !a->stream)
		profile_unknown(a, f, varied_batches(&c));
	b->batch[evaluation] = batch;
	free(c.of);
}

static int by_step(const void *x, const void *y)
{
	const struct step *a = x, *b = y;

	return ORDER(a->rank, b->rank) ?: ORDER(a->asked_ns, b->asked_ns);
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
static void find_unread(struct batches *b, const size_t *first, const uint32_t *of)
{
	struct profile *a = b->a;
	AUTO_FREE size_t *sent = xcalloc(a->readers + 1, sizeof(*sent));
	AUTO_FREE uint32_t *begins = xcalloc(a->readers + 1, sizeof(*begins));
	size_t with = 0, without = 0, bare = 0;
	uint32_t epochs = 0;
	bool in_first = false, same = true;

	for (size_t i = 0; i < b->messages.n; i++) {
		const struct message *m = &b->messages.v[i];
		uint32_t r = answered_by(b, m);
		size_t at;

		if (r == JOB_NONE)
			continue;
		at = first[r] + sent[r]++;
		if (at >= first[r + 1])
			continue;
		a->task[at].answered_ns = m->ready_ns;
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
}

/* Batches that trainers took. A worker sends its answers in the order of its tasks, so that the
 * k-th of it is about its k-th message. `first`: of each reader in `has`, by its messages. */
static void steps_by_pipes(struct batches *b)
{
	struct profile *a = b->a;
	const struct job *job = a->job;
	AUTO_FREE uint32_t *trainer_of = job_numbers(job->processes);
	AUTO_FREE size_t *first = xcalloc(a->readers + 2, sizeof(*first)),
			 *sent = xcalloc(a->readers + 1, sizeof(*sent));
	AUTO_FREE struct place *place = xcalloc(a->readers + 1, sizeof(*place));
	AUTO_FREE uint32_t *of = NULL; /* a visit of the batch */
	/* batches whose samples the log does not show */
	bool unseen = a->stream || a->visits == 0, fetched = false;
	uint32_t workers = has_workers(a) ? (uint32_t)a->value[PROFILE_WORKERS].number : 1;

	for (size_t i = 0; i < b->messages.n; i++)
		fetched |= b->messages.v[i].fetched;
	for (size_t i = 0; i < a->trainers; i++)
		trainer_of[a->trainer[i].process] = (uint32_t)i;
	for (size_t i = 0; i < a->readers; i++) {
		size_t n;

		messages_of(&b->messages, b->index_pipe[i], &n);
		first[i + 1] = first[i] + n;
	}
	of = job_numbers(first[a->readers]);
	for (size_t i = 0; i < a->visits; i++) {
		const struct visit *v = &a->visit[i];

		if (v->batch != JOB_NONE && b->index_pipe[v->reader] != JOB_NONE)
			of[first[v->reader] + v->batch] = (uint32_t)i;
	}
	find_unread(b, first, of);
	unseen |= b->unread;
	for (size_t i = 0; i < b->messages.n; i++) {
		const struct message *m = &b->messages.v[i];
		uint32_t t = trainer_of[job->thread[m->thread].process], visit, epoch;
		uint32_t r = answered_by(b, m);
		bool evaluation;
		size_t at;

		if (t == JOB_NONE || r == JOB_NONE || a->reader[r].rank != t)
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
		VECTOR_PUSH(a->step, a->steps, a->step_room,
			    {.rank = t,
			     .epoch = epoch,
			     .evaluation = evaluation,
			     .at = (uint64_t)place[r].batches++ * workers + a->reader[r].number,
			     .ready_ns = m->ready_ns,
			     .asked_ns = m->asked_ns,
			     .waited = m->waited,
			     .taken_ns = m->taken_ns});
	}
	if (a->steps > 1)
		qsort(a->step, a->steps, sizeof(*a->step), by_step);
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

	return ORDER(a->generation, b->generation) ?: ORDER(a->ns, b->ns) ?:
	       ORDER(a->change, b->change);
}

/* Tasks and answers of each generation of workers. */
static size_t find_traffic(const struct batches *b, const size_t *of_rank, struct traffic *out)
{
	const struct profile *a = b->a;
	AUTO_FREE int64_t *answers = xcalloc(a->readers + 1, sizeof(*answers));
	size_t n = 0;

	for (size_t i = 0; i < b->messages.n; i++) {
		uint32_t r = answered_by(b, &b->messages.v[i]);

		if (r != JOB_NONE)
			answers[r]++;
	}
	for (size_t i = 0; i < b->messages.n; i++) {
		const struct message *m = &b->messages.v[i];
		uint32_t from = answered_by(b, m);
		uint32_t to = b->worker_of[a->job->thread[m->thread].process];
		uint32_t r = from != JOB_NONE ? from : to;

		if (r == JOB_NONE || (from == JOB_NONE && m->pipe != b->index_pipe[r]))
			continue;
		/* the end of a worker, and what it was asked for and left, have no answer */
		if (from == JOB_NONE && answers[r]-- <= 0)
			continue;
		out[n] = (struct traffic){
			.ns = from != JOB_NONE ? m->begin_ns : m->ready_ns,
			.generation = (uint32_t)of_rank[a->reader[r].rank] + a->reader[r].round,
			.change = from != JOB_NONE ? -1 : 1,
		};
		n += out[n].ns != JOB_UNKNOWN;
	}
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
	struct profile *a = b->a;
	struct counts c = {0};
	uint64_t agree = 0, whole = 0;
	uint32_t ahead = 0;
	AUTO_FREE size_t *of_rank = profile_rounds(a);
	AUTO_FREE struct traffic *t = xcalloc(b->messages.n + 1, sizeof(*t));
	AUTO_FREE bool *training = xcalloc(of_rank[a->trainers] + 1, sizeof(*training));
	size_t n;

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
			RAISE(pass.most, now);
		}
		take_pass(&best, &pass);
		if (!training[t[i].generation] || best.most <= 0)
			continue;
		counts_add(&c, (size_t)best.most);
		RAISE(ahead, (uint32_t)best.most);
		whole += best.most + 2 >= best.tasks; /* all there were */
	}
	if (ahead > 0 && ahead <= COUNTS_MAX)
		agree = c.of[ahead];
	if (ahead > 0 && 2 * whole < c.all)
		profile_inferred(a, PROFILE_PREFETCH, ahead, FACT(JOB_ASKED_NOT_TAKEN), agree,
				 c.all);
	else if (ahead > 0)
		profile_unknown(a, PROFILE_PREFETCH, FACT(JOB_ALL_ASKED_AT_ONCE));
	free(c.of);
}

static bool same_pass(const struct step *a, const struct step *b)
{
	return a->rank == b->rank && a->epoch == b->epoch && a->evaluation == b->evaluation;
}

/* Of streams: where each worker's batches end in the pass that begins with step `i`. Of others, all
 * workers go on to the last batch. */
static void find_ends(const struct profile *a, size_t i, uint64_t workers, uint64_t *end)
{
	const struct step *first = &a->step[i];

	for (uint64_t k = 0; k < workers; k++)
		end[k] = a->stream ? 0 : UINT64_MAX;
	for (; i < a->steps && same_pass(&a->step[i], first) && a->stream; i++)
		RAISE(end[a->step[i].at % workers], a->step[i].at + 1);
}

/* After which batches the trainer computes: batches are handed out in their order, one that came
 * early waits. `times`: for each step, how many batches are handed out before the trainer takes the
 * next message. False where they do not come in this order. */
static bool hand_out(const struct profile *a, uint32_t *times)
{
	uint64_t most = 0, known = 0, next = 0;
	AUTO_FREE uint32_t *got = NULL;
	AUTO_FREE uint64_t *end = NULL; /* of each worker, behind its last batch of the pass */
	uint64_t workers = has_workers(a) ? (uint64_t)a->value[PROFILE_WORKERS].number : 1;
	uint32_t pass = 0;

	for (size_t i = 0; i < a->steps; i++)
		RAISE(most, a->step[i].at);
	if (most > 8 * a->steps + 65536)
		return false;
	got = xcalloc(most + 2, sizeof(*got));
	end = xcalloc(workers + 1, sizeof(*end));
	for (size_t i = 0; i < a->steps; i++) {
		const struct step *s = &a->step[i], *last = i > 0 ? s - 1 : NULL;

		if (!last || !same_pass(last, s)) {
			pass++;
			next = 0;
			find_ends(a, i, workers, end);
		}
		got[s->at] = pass;
		times[i] = 0;
		/* of streams, a worker that has come to its end is left out */
		for (; next <= most && (got[next] == pass || next >= end[next % workers]); next++)
			times[i] += got[next] == pass;
		known += times[i];
	}
	return known >= a->steps - a->steps / 20;
}

static bool main_thread_takes(const struct profile *a)
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
	struct values own;     /* what the trainer takes between two batches, without waits */
	uint64_t taken;        /* batches, by the rank that took most */
	uint64_t handed;       /* of these, in order, to the training */
};

/* From one message to the next, without the wait for it. */
static double own_time(const struct step *s, const struct step *last)
{
	int64_t from = s->asked_ns;
	double before = s->asked_ns == JOB_UNKNOWN ? 0 : (double)(s->asked_ns - last->taken_ns);

	if (from == JOB_UNKNOWN || s->ready_ns == JOB_UNKNOWN)
		return (double)(s->taken_ns - last->taken_ns) / 1e9;
	RAISE(from, s->ready_ns);
	RAISE(from, last->taken_ns);
	return ((before > 0 ? before : 0) +
		(s->taken_ns > from ? (double)(s->taken_ns - from) : 0)) /
	       1e9;
}

static void observe(const struct profile *a, bool evaluation, const uint32_t *times, bool ordered,
		    struct step_times *t)
{
	uint64_t now = 0, given = 0;
	double own = 0;

	*t = (struct step_times){0};
	for (size_t i = 0; i < a->steps; i++) {
		const struct step *s = &a->step[i], *last = i > 0 ? s - 1 : NULL;
		uint32_t let_go;
		double gap;

		if (last && last->rank != s->rank)
			now = given = 0;
		if (s->evaluation != evaluation)
			continue;
		if (++now > t->taken)
			t->taken = now;
		given += times[i];
		RAISE(t->handed, given);
		if (!last || last->rank != s->rank || last->epoch != s->epoch ||
		    last->evaluation != evaluation) {
			own = 0;
			continue;
		}
		values_add(&t->period, (double)(s->taken_ns - last->taken_ns) / 1e9);
		/* between two messages, the trainer computes as many batches as the first one let
		 * go; after none, it only took a batch that came early */
		own += own_time(s, last);
		let_go = ordered ? times[i - 1] : 1;
		for (uint32_t k = 0; k < let_go; k++)
			values_add(&t->own, own / let_go);
		own = let_go > 0 ? 0 : own;
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

/* It is known where the trainer is seen to begin waiting, and where batches lay ready before it
 * asked for them. */
static void say_compute(struct profile *a, enum profile_key f, struct step_times *t)
{
	double v = values_median(&t->compute);
	uint64_t near = values_near(&t->compute, v);

	if (!main_thread_takes(a) && t->period.n > 2) {
		double step = values_median(&t->period);

		/* of batches that come in bursts, the median is no bound */
		if (2 * values_near(&t->period, step) > t->period.n)
			profile_inferred(a, f, step, FACT(JOB_PIN_MEMORY_BOUND), 0, 0)->at_most =
				true;
		else
			profile_unknown(a, f, FACT(JOB_PIN_MEMORY_BURSTS));
	} else if ((t->compute.n >= 5 || (t->compute.n >= 3 && near == t->compute.n)) &&
		   (double)t->compute.n >= KNOWN_SHARE * (double)t->upper.n &&
		   2 * near >= t->compute.n)
		profile_inferred(a, f, v, FACT(JOB_TAKEN_TO_ASKED), near, t->compute.n);
	else if (t->upper.n > 0)
		profile_unknown(a, f,
				t->compute.n >= 3 ? FACT(JOB_TIMES_DIFFER)
						  : FACT(JOB_WAITED_FOR_DATA));
}

/* Time of a step and of computation. */
static void times_by_pipes(struct batches *b)
{
	struct profile *a = b->a;
	AUTO_FREE uint32_t *times = xcalloc(a->steps + 1, sizeof(*times));
	bool ordered = hand_out(a, times);

	for (int evaluation = 0; evaluation < 2; evaluation++) {
		struct step_times t;

		observe(a, evaluation, times, ordered, &t);
		if (!evaluation && t.taken > 0)
			profile_seen(a, PROFILE_STEPS,
				     (double)(ordered && !b->unread ? t.handed : t.taken));
		if (!evaluation && t.period.n > 2)
			batches_say_step(a, &t.period, FACT(JOB_BATCH_TO_BATCH_MEDIAN));
		if (main_thread_takes(a))
			*(evaluation ? &a->eval_between_s : &a->between_s) = values_mean(&t.upper);
		if (main_thread_takes(a) && !evaluation && t.own.n > 2) {
			a->own_mean_s = values_mean(&t.own);
			a->own_s = values_median(&t.own);
		}
		say_compute(a, evaluation ? PROFILE_EVAL_COMPUTE : PROFILE_COMPUTE, &t);
		free(t.period.v);
		free(t.compute.v);
		free(t.upper.v);
		free(t.own.v);
	}
}

/* What cannot be told where batches came without a request for them. */
static void say_unread(struct batches *b)
{
	struct profile *a = b->a;
	static const enum profile_key of_samples[] = {
		PROFILE_SAMPLES, PROFILE_SAMPLES_PER_FILE, PROFILE_SAMPLE_BYTES,
		PROFILE_SIZES,   PROFILE_REQUESTS,         PROFILE_BATCH};

	if (b->many_in_file) {
		for (size_t i = 0; i < sizeof(of_samples) / sizeof(of_samples[0]); i++)
			profile_unknown(a, of_samples[i], FACT(JOB_UNREAD_MANY_IN_FILE));
		a->larger = true;
		return;
	}
	if (b->begins > 1)
		profile_inferred(a, PROFILE_EPOCHS, b->begins, FACT(JOB_TOLD_EPOCHS), 0, 0);
	else
		profile_unknown(a, PROFILE_EPOCHS, FACT(JOB_UNREAD_IN_MEMORY));
}

bool batches_by_pipes(struct batches *b)
{
	struct profile *a = b->a;

	find_index_pipes(b);
	if (b->messages.n == 0 || !(a->job->sees & JOB_SEES_PIPES) ||
	    (!find_batches(b) && a->visits > 0))
		return false;
	say_batch(b, false, FACT(JOB_BY_INDEX_PIPE));
	say_batch(b, true, FACT(JOB_BY_INDEX_PIPE));
	steps_by_pipes(b);
	prefetch_by_pipes(b);
	times_by_pipes(b);
	if (b->unread)
		say_unread(b);
	if (a->visits == 0)
		profile_unknown(a, PROFILE_BATCH, FACT(JOB_SAMPLES_NOT_SHOWN));
	if (a->stream)
		profile_unknown(a, PROFILE_BATCH, FACT(JOB_STREAMS));
	return true;
}
