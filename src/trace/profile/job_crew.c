/* Who reads and who trains: ranks, their workers, and the generations of these.
 *
 * Where pipes are seen, a worker is a process that alone takes messages of a pipe into which one of
 * its ancestors writes, and that answers over another pipe: DataLoader's workers. Those of a pool
 * share the pipe of their tasks. Elsewhere a worker is a process that was forked, ran no other
 * program, and reads samples for its parent. A trainer is whom workers answer, or whoever reads
 * without any. Threads of a trainer that read beside others are its workers, too. */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/compare.h"
#include "base/file.h"
#include "base/map.h"
#include "trace/profile/profile_parts.h"

#define THREAD_KINDS_MAX 16
/* Threads that read for different purposes: `left_out` of those that only look, and `round` of each
 * crew of threads, the one that reads most first. Of ranks without worker processes and with
 * THREAD_KINDS_MAX kinds of names at most. */
static void tell_thread_kinds(struct profile *a);

#define BESIDE_NS 5e7    /* workers that begin so shortly one after the other, */
#define BESIDE_SHARE 0.1 /* in such a part of their life, are of one generation */
#define PEEK_SHARE 0.05  /* of the visits: a trainer with workers that reads so little itself */

/* What the thread reads before that time is no part of the training. */
static void leave_out(struct profile *a, struct job_reader *r, int64_t until_ns);

struct life {
	bool reads, executed, takes_messages, forked, marks;
	bool threads;              /* several of its threads read */
	uint32_t reading;          /* the first of them; JOB_NONE */
	bool pooled;               /* shares the pipe of its tasks with others */
	uint32_t asked_by;         /* who alone writes to a pipe of which it alone takes messages */
	uint32_t boss;             /* of these, whom it answers; JOB_NONE */
	bool answered;             /* by those that it asks */
	uint32_t answers;          /* the pipe over which it answers; JOB_NONE */
	int64_t first_ns, last_ns; /* of its events */
	int64_t first_visit_ns;
	uint32_t trainer; /* index; JOB_NONE */
	uint32_t trains;  /* index of this one as a trainer, before they are sorted; JOB_NONE */
	bool worker;
};

/* ---- who talks to whom ---- */

/* Of a pipe: the process that takes messages of it, the one that writes to it. */
struct line {
	uint32_t reader, writer; /* JOB_NONE; SEVERAL */
};

#define SEVERAL (JOB_NONE - 1)

static void take_part(uint32_t *end, uint32_t process)
{
	*end = *end == JOB_NONE || *end == process ? process : SEVERAL;
}

static bool on_pipe(const struct job *job, const struct job_event *v)
{
	return profile_is_pipe(job, v->file) && v->result > 0;
}

/* The length before a message of Python's connections. */
static bool is_length(const struct job_event *v)
{
	return v->kind == JOB_READ && v->result == 4 && (v->asked == 4 || v->asked == JOB_UNKNOWN);
}

static bool is_ancestor(const struct job *job, uint32_t old, uint32_t young)
{
	/* parents come from a log: they may go round */
	for (size_t n = 0; n < job->processes && job->process[young].parent != JOB_NONE; n++) {
		young = job->process[young].parent;
		if (young == old)
			return true;
	}
	return false;
}

static struct line *find_lines(const struct job *job)
{
	struct line *line = xcalloc(job->files + 1, sizeof(*line));

	for (size_t i = 0; i < job->files; i++)
		line[i] = (struct line){JOB_NONE, JOB_NONE};
	for (size_t i = 0; i < job->events; i++) {
		const struct job_event *v = &job->event[i];

		if (!on_pipe(job, v))
			continue;
		if (is_length(v))
			take_part(&line[v->file].reader, job->thread[v->thread].process);
		else if (v->kind == JOB_WRITE)
			take_part(&line[v->file].writer, job->thread[v->thread].process);
	}
	return line;
}

/* Readers that send their batches unasked, each over a pipe of its own. */
static void find_producers(const struct job *job, struct life *life)
{
	AUTO_FREE struct line *line = find_lines(job);

	for (size_t i = 0; i < job->files; i++) {
		uint32_t r = line[i].reader, w = line[i].writer;

		if (r < SEVERAL && w < SEVERAL && r != w && life[w].reads && !life[w].pooled &&
		    life[w].boss == JOB_NONE && is_ancestor(job, r, w)) {
			life[w].boss = r;
			life[w].answers = (uint32_t)i;
		}
	}
}

static void find_bosses(const struct job *job, struct life *life)
{
	AUTO_FREE struct line *line = find_lines(job);

	for (size_t i = 0; i < job->files; i++) {
		uint32_t r = line[i].reader, w = line[i].writer;

		if (r < SEVERAL && w < SEVERAL && r != w && is_ancestor(job, w, r))
			life[r].asked_by = w;
	}
	for (size_t i = 0; i < job->events; i++) {
		const struct job_event *v = &job->event[i];
		uint32_t p = job->thread[v->thread].process;

		if (!on_pipe(job, v))
			continue;
		if (v->kind == JOB_WRITE && life[p].asked_by != JOB_NONE &&
		    line[v->file].reader == life[p].asked_by) {
			life[p].boss = life[p].asked_by;
			life[p].answers = v->file;
		}
		if (v->kind == JOB_WRITE && life[p].boss != JOB_NONE)
			life[life[p].boss].answered = true;
		if (is_length(v) && line[v->file].reader == SEVERAL &&
		    line[v->file].writer == job->process[p].parent)
			life[p].pooled = true;
	}
	/* one that never had a batch to read, beside others that had */
	for (size_t p = 0; p < job->processes; p++)
		if (life[p].asked_by != JOB_NONE && life[life[p].asked_by].answered)
			life[p].boss = life[p].asked_by;
}

static void look(const struct job *job, struct life *life)
{
	for (size_t i = 0; i < job->processes; i++)
		life[i] = (struct life){.reading = JOB_NONE,
					.asked_by = JOB_NONE,
					.boss = JOB_NONE,
					.answers = JOB_NONE,
					.first_ns = JOB_UNKNOWN,
					.last_ns = JOB_UNKNOWN,
					.first_visit_ns = JOB_UNKNOWN,
					.trainer = JOB_NONE,
					.trains = JOB_NONE};
	for (size_t i = 0; i < job->events; i++) {
		const struct job_event *v = &job->event[i];
		struct life *l = &life[job->thread[v->thread].process];

		if (l->first_ns == JOB_UNKNOWN)
			l->first_ns = v->begin_ns;
		RAISE(l->last_ns, v->end_ns);
		if (v->kind == JOB_EXEC && v->result >= 0)
			l->executed = true;
		if (v->kind == JOB_COMPUTE)
			l->marks = true;
		if (v->kind == JOB_FORK && v->other != JOB_NONE && v->other < job->processes)
			life[v->other].forked = true;
		if (on_pipe(job, v) && is_length(v))
			l->takes_messages = true;
	}
	if (job->sees & JOB_SEES_PIPES)
		find_bosses(job, life);
}

static bool is_worker(const struct job *job, const struct life *life, size_t p)
{
	const struct job_process *v = &job->process[p];

	if (v->parent == JOB_NONE)
		return false;
	if (life[p].boss != JOB_NONE || life[p].pooled)
		return life[p].reads || !life[p].executed;
	/* started anew by a program, and the log does not show its pipes */
	if (strstr(v->command, "multiprocessing.spawn") || strstr(v->command, "forkserver"))
		return !(job->sees & JOB_SEES_PIPES) && (life[p].takes_messages || life[p].reads);
	if (life[p].executed || (v->rank >= 0 && job->process[v->parent].rank != v->rank))
		return false;
	/* a loader's worker reads in one thread */
	return life[p].reads && !life[p].threads && !(job->sees & JOB_SEES_PIPES);
}

/* There is room for as many trainers as processes. */
static uint32_t add_trainer(struct profile *a, struct life *life, uint32_t process)
{
	if (life[process].trains == JOB_NONE) {
		life[process].trains = (uint32_t)a->trainers;
		a->trainer[a->trainers++] =
			(struct trainer){.process = process, .thread = JOB_NONE};
	}
	return life[process].trains;
}

/* Logs that do not tell who forked whom: those that train, by their marks or checkpoints, do not
 * read, and the readers are their workers. */
static bool trainers_by_marks(struct profile *a, struct life *life)
{
	const struct job *job = a->job;
	size_t readers = 0, trainers = 0;

	for (size_t i = 0; i < job->processes; i++) {
		if (job->process[i].parent != JOB_NONE)
			return false;
		readers += life[i].reads;
		trainers += life[i].marks && !life[i].reads;
	}
	if (trainers == 0 || readers == 0 || readers % trainers != 0)
		return false;
	for (size_t i = 0; i < job->processes; i++)
		if (life[i].marks && !life[i].reads)
			add_trainer(a, life, (uint32_t)i);
	for (size_t i = 0, k = 0; i < job->processes; i++)
		if (life[i].reads) {
			life[i].worker = true;
			life[i].trainer = (uint32_t)(k++ * trainers / readers);
		}
	return true;
}

static void find_trainers(struct profile *a, struct life *life)
{
	const struct job *job = a->job;

	a->trainer = xcalloc(job->processes + 1, sizeof(*a->trainer));
	if (trainers_by_marks(a, life))
		return;
	for (size_t i = 0; i < job->processes; i++)
		life[i].worker = is_worker(job, life, i);
	for (size_t i = 0; i < job->processes; i++) {
		if (life[i].worker)
			life[i].trainer = add_trainer(
				a, life,
				life[i].boss != JOB_NONE ? life[i].boss : job->process[i].parent);
		else if (life[i].reads)
			life[i].trainer = add_trainer(a, life, (uint32_t)i);
	}
}

static int by_rank(const void *x, const void *y, void *of)
{
	const struct job_process *p = of;
	const struct job_process *a = &p[((const struct trainer *)x)->process];
	const struct job_process *b = &p[((const struct trainer *)y)->process];

	return ORDER(a->rank, b->rank) ?: ORDER(a->begin_ns, b->begin_ns) ?: ORDER(a, b);
}

static void sort_trainers(struct profile *a, struct life *life)
{
	AUTO_FREE uint32_t *now = xcalloc(a->job->processes + 1, sizeof(*now));

	for (size_t i = 0; i < a->job->processes; i++)
		if (life[i].trainer != JOB_NONE)
			life[i].trainer = a->trainer[life[i].trainer].process;
	qsort_r(a->trainer, a->trainers, sizeof(*a->trainer), by_rank, a->job->process);
	for (size_t i = 0; i < a->trainers; i++)
		now[a->trainer[i].process] = (uint32_t)i;
	for (size_t i = 0; i < a->job->processes; i++)
		if (life[i].trainer != JOB_NONE)
			life[i].trainer = now[life[i].trainer];
}

/* A reader for each worker process and for each thread of a trainer that reads. */
static void make_readers(struct profile *a, struct life *life)
{
	const struct job *job = a->job;
	AUTO_FREE uint32_t *of_process = job_numbers(job->processes),
			   *of_thread = job_numbers(job->threads);

	a->reader = xcalloc(job->processes + job->threads + 1, sizeof(*a->reader));
	for (size_t i = 0; i < job->processes; i++) {
		const struct job_process *p = &job->process[i];

		if (!life[i].worker)
			continue;
		of_process[i] = (uint32_t)a->readers;
		a->reader[a->readers++] = (struct job_reader){
			.process = (uint32_t)i,
			.thread = JOB_NONE,
			.rank = life[i].trainer,
			.worker = true,
			.answers = life[i].answers,
			.begin_ns = p->begin_ns != JOB_UNKNOWN ? p->begin_ns : life[i].first_ns,
			.end_ns = p->end_ns != JOB_UNKNOWN ? p->end_ns : life[i].last_ns,
		};
	}
	for (size_t i = 0; i < a->visits; i++) {
		struct visit *v = &a->visit[i];
		uint32_t process = job->thread[v->reader].process;
		uint32_t *of = of_process[process] != JOB_NONE ? &of_process[process]
							       : &of_thread[v->reader];
		struct job_reader *r;

		if (*of == JOB_NONE) {
			*of = (uint32_t)a->readers;
			a->reader[a->readers++] = (struct job_reader){
				.process = process,
				.thread = v->reader,
				.rank = life[process].trainer,
				.answers = JOB_NONE,
				.begin_ns = v->begin_ns,
				.end_ns = v->end_ns,
			};
		}
		r = &a->reader[*of];
		if (r->visits++ == 0 && r->begin_ns == JOB_UNKNOWN)
			r->begin_ns = v->begin_ns;
		RAISE(r->end_ns, v->end_ns);
		v->reader = *of;
	}
}

/* Of a trainer that has worker processes, its own few visits are looks at the dataset. Threads of
 * one that has none are workers where several of a crew read, or where crews are apart. */
static void tell_threads(struct profile *a)
{
	struct crew {
		size_t readers, visits;
	};
	AUTO_FREE struct crew *workers = xcalloc(a->trainers + 1, sizeof(*workers)),
			      *own = xcalloc((a->trainers + 1) * THREAD_KINDS_MAX, sizeof(*own));

	tell_thread_kinds(a);
	for (size_t i = 0; i < a->readers; i++) {
		const struct job_reader *r = &a->reader[i];

		struct crew *c =
			r->worker ? &workers[r->rank] : &own[r->rank * THREAD_KINDS_MAX + r->round];

		if (!r->worker && r->left_out)
			continue;
		c->readers++;
		c->visits += r->visits;
	}
	for (size_t i = 0; i < a->readers; i++) {
		struct job_reader *r = &a->reader[i];
		const struct crew *crew = &own[r->rank * THREAD_KINDS_MAX];
		size_t readers = crew[r->round].readers;
		double visits = (double)crew[r->round].visits;

		if (r->worker || r->left_out)
			continue;
		if (workers[r->rank].readers > 0) {
			if (visits <= PEEK_SHARE * (visits + (double)workers[r->rank].visits) + 2)
				r->left_out = true;
		} else if (crew[1].readers > 0) {
			r->worker = true;
		} else if (readers > 1) {
			r->worker = (double)r->visits > PEEK_SHARE * visits / (double)readers;
		}
	}
}

/* Without their visits; samples that only they came to are none. */
static void drop_left_out(struct profile *a)
{
	AUTO_FREE bool *visited = xcalloc(a->samples + 1, sizeof(*visited));
	size_t kept = 0;

	for (size_t i = 0; i < a->visits; i++)
		if (!a->reader[a->visit[i].reader].left_out) {
			visited[a->visit[i].sample] = true;
			a->visit[kept++] = a->visit[i];
		}
	a->visits = kept;
	profile_keep_samples(a, visited);
}

/* ---- generations of workers ---- */

static int by_begin_of_reader(const void *x, const void *y, void *of)
{
	const struct job_reader *r = of;
	uint32_t i = *(const uint32_t *)x, k = *(const uint32_t *)y;

	return ORDER(r[i].rank, r[k].rank) ?: ORDER(r[i].begin_ns, r[k].begin_ns) ?: ORDER(i, k);
}

/* Whether a reader began hardly later than the one before it, of whose life that was a small part:
 * a process that was started before the other read may get a processor after it. */
static bool begins_beside(const struct job_reader *r, const struct job_reader *last)
{
	double late = (double)(r->begin_ns - last->begin_ns);

	return late <= BESIDE_NS && r->begin_ns < last->end_ns &&
	       late <= BESIDE_SHARE * (double)(last->end_ns - last->begin_ns);
}

/* The workers of one iterator answer over one pipe, even those that get a processor late. */
static bool begins_anew(const struct job_reader *r, const struct job_reader *last)
{
	if (r->answers != JOB_NONE && last->answers != JOB_NONE)
		return r->answers != last->answers;
	return !begins_beside(r, last);
}

/* The workers of an iterator are started before any of them reads: one that begins after another
 * of the generation has read is of the next. */
static void find_rounds(struct profile *a)
{
	AUTO_FREE uint32_t *order = xcalloc(a->readers + 1, sizeof(*order));
	AUTO_FREE int64_t *first = xcalloc(a->readers + 1, sizeof(*first));
	int64_t read_ns = INT64_MAX; /* when the first of the present generation read */
	uint32_t rank = JOB_NONE, round = 0, number = 0, of_kind[THREAD_KINDS_MAX];
	const struct job_reader *last = NULL;

	for (size_t i = 0; i < a->readers; i++) {
		order[i] = (uint32_t)i;
		first[i] = INT64_MAX;
	}
	for (size_t i = a->visits; i-- > 0;)
		first[a->visit[i].reader] = a->visit[i].begin_ns;
	/* of one whose reads are not seen, its end */
	for (size_t i = 0; i < a->readers; i++)
		if (first[i] == INT64_MAX)
			first[i] = a->reader[i].end_ns;
	qsort_r(order, a->readers, sizeof(*order), by_begin_of_reader, a->reader);
	for (size_t i = 0; i < a->readers; i++) {
		struct job_reader *r = &a->reader[order[i]];
		bool process = r->thread == JOB_NONE;

		if (!r->worker || r->left_out)
			continue;
		if (r->rank != rank) {
			rank = r->rank;
			round = number = 0;
			read_ns = INT64_MAX;
			memset(of_kind, 0, sizeof(of_kind));
		} else if (process && r->begin_ns > read_ns && begins_anew(r, last)) {
			round++;
			number = 0;
			read_ns = INT64_MAX;
		}
		if (!process) {
			r->number = of_kind[r->round]++;
			RAISE(a->trainer[rank].rounds, r->round + 1);
			continue;
		}
		r->round = round;
		r->number = number++;
		last = r;
		LOWER(read_ns, first[order[i]]);
		a->trainer[rank].rounds = round + 1;
	}
}

/* ---- what is said of it ---- */

static void say_workers(struct profile *a)
{
	AUTO_FREE size_t *first = profile_rounds(a);
	size_t rounds = first[a->trainers];
	/* of each crew its size, and of each size how many crews have it and what they read */
	AUTO_FREE uint32_t *size = xcalloc(rounds + 1, sizeof(*size)),
			   *count = xcalloc(a->readers + 1, sizeof(*count));
	AUTO_FREE size_t *visits = xcalloc(rounds + 1, sizeof(*visits)),
			 *read = xcalloc(a->readers + 1, sizeof(*read));
	uint64_t crews = 0;
	size_t most = 0;
	uint32_t mode = 0;
	bool processes = false;

	if (rounds == 0) {
		profile_inferred(a, PROFILE_WORKERS, 0, FACT(JOB_TRAINER_READS), 0, 0);
		return;
	}
	for (size_t i = 0; i < a->readers; i++) {
		const struct job_reader *r = &a->reader[i];

		if (!r->worker || r->left_out)
			continue;
		processes |= r->thread == JOB_NONE;
		/* of crews of threads, the one that reads most */
		if (r->thread == JOB_NONE || r->round == 0) {
			size[first[r->rank] + r->round]++;
			visits[first[r->rank] + r->round] += r->visits;
		}
	}
	for (size_t i = 0; i < rounds; i++) {
		crews += size[i] > 0;
		count[size[i]]++;
		/* one that read nothing counts a little */
		read[size[i]] += 1 + visits[i] * (rounds + 1);
	}
	/* of equals the largest; crews that evaluate are more often than they read */
	for (uint32_t i = (uint32_t)a->readers; i > 0; i--)
		if (read[i] > most) {
			most = read[i];
			mode = i;
		}
	profile_inferred(a, PROFILE_WORKERS, mode,
			 processes ? FACT(JOB_WORKER_PROCESSES) : FACT(JOB_WORKER_THREADS),
			 count[mode], crews)
		->text = processes ? "processes" : "threads";
	a->processes = processes;
}

struct span {
	int64_t begin_ns, end_ns;
};

static int by_span(const void *x, const void *y)
{
	const struct span *a = x, *b = y;

	return ORDER(a->begin_ns, b->begin_ns);
}

/* How many of the trainers there are at once: those of trainings that follow each other are no
 * ranks of one. */
static size_t trainers_at_once(const struct profile *a)
{
	AUTO_FREE struct span *span = xcalloc(a->trainers + 1, sizeof(*span));
	size_t most = 0, now = 0, n = 0;
	int64_t end = INT64_MIN;

	for (size_t t = 0; t < a->trainers; t++)
		span[t] = (struct span){INT64_MAX, INT64_MIN};
	for (size_t i = 0; i < a->visits; i++) {
		const struct visit *v = &a->visit[i];
		struct span *s = &span[a->reader[v->reader].rank];

		LOWER(s->begin_ns, v->begin_ns);
		RAISE(s->end_ns, v->end_ns);
	}
	for (size_t t = 0; t < a->trainers; t++) {
		const struct job_process *p = &a->job->process[a->trainer[t].process];

		if (p->begin_ns != JOB_UNKNOWN && p->begin_ns < span[t].begin_ns)
			span[t].begin_ns = p->begin_ns;
		if (p->end_ns != JOB_UNKNOWN && p->end_ns > span[t].end_ns)
			span[t].end_ns = p->end_ns;
	}
	for (size_t t = 0; t < a->trainers; t++)
		if (span[t].begin_ns != INT64_MAX && span[t].begin_ns != JOB_UNKNOWN)
			span[n++] = span[t];
	qsort(span, n, sizeof(*span), by_span);
	for (size_t i = 0; i < n; i++) {
		now = span[i].begin_ns > end ? 1 : now + 1;
		RAISE(end, span[i].end_ns);
		RAISE(most, now);
	}
	return n == a->trainers ? most : a->trainers;
}

static void say_ranks(struct profile *a)
{
	size_t ranks = trainers_at_once(a);
	struct profile_value *f = profile_inferred(a, PROFILE_RANKS, (double)ranks,
						   FACT(JOB_RANKS_WITH_WORKERS), 0, 0);

	if (ranks < a->trainers) {
		a->trainings = a->trainers / ranks;
		f->text = a->trainers % ranks ? "of several trainings, one after the other"
					      : profile_text(a,
							     "of %zu trainings, one after the "
							     "other",
							     a->trainings);
	}
}

/* ---- passes before the training ---- */

#define SCAN_LEAST 0.5     /* of the samples */
#define SCAN_ASCENDS 0.97  /* of its neighbours */
#define LATER_ASCENDS 0.93 /* at most, of those behind it */

/* Where the training of a rank without workers begins: behind a pass over the samples in order,
 * which the passes after it are not: it looked at the files, or checked them. INT64_MIN: no such
 * pass. */
static int64_t scan_end(const struct profile *a, uint32_t rank)
{
	AUTO_FREE bool *seen = xcalloc(a->samples + 1, sizeof(*seen));
	uint64_t pairs[2] = {0}, ascending[2] = {0};
	uint32_t last = JOB_NONE;
	int64_t begin = INT64_MIN;
	size_t n = 0;

	for (size_t i = 0; i < a->visits; i++) {
		const struct visit *v = &a->visit[i];
		int later;

		if (a->reader[v->reader].rank != rank)
			continue;
		if (seen[v->sample] && begin == INT64_MIN)
			begin = v->begin_ns;
		later = begin != INT64_MIN;
		n += !later;
		seen[v->sample] = true;
		if (last != JOB_NONE && !(later && pairs[1] == 0 && last == JOB_NONE)) {
			pairs[later]++;
			ascending[later] += v->sample > last;
		}
		last = v->sample;
	}
	return (double)n >= SCAN_LEAST * (double)a->samples && pairs[0] >= 8 && pairs[1] >= 8 &&
			       (double)ascending[0] >= SCAN_ASCENDS * (double)pairs[0] &&
			       (double)ascending[1] < LATER_ASCENDS * (double)pairs[1]
		       ? begin
		       : INT64_MIN;
}

/* What a trainer reads itself before its worker processes read, and a pass in order before one
 * without workers draws its samples: neither is an epoch. */
static void leave_out_scans(struct profile *a)
{
	AUTO_FREE int64_t *until = xcalloc(a->trainers + 1, sizeof(*until));

	for (uint32_t t = 0; t < a->trainers; t++)
		until[t] = INT64_MAX;
	for (size_t i = a->visits; i-- > 0;) {
		const struct job_reader *r = &a->reader[a->visit[i].reader];

		if (r->worker && r->thread == JOB_NONE)
			until[r->rank] = a->visit[i].begin_ns;
	}
	for (uint32_t t = 0; t < a->trainers; t++)
		if (until[t] == INT64_MAX)
			until[t] = a->trainer[t].rounds ? INT64_MIN : scan_end(a, t);
	for (size_t i = 0; i < a->readers; i++) {
		struct job_reader *r = &a->reader[i];

		if (!r->worker && !r->left_out && r->thread != JOB_NONE &&
		    until[r->rank] != INT64_MIN && r->begin_ns < until[r->rank])
			leave_out(a, r, until[r->rank]);
	}
}

void profile_crew(struct profile *a)
{
	const struct job *job = a->job;
	AUTO_FREE struct life *life = xcalloc(job->processes + 1, sizeof(*life));

	look(job, life);
	for (size_t i = 0; i < a->visits; i++) {
		struct life *l = &life[job->thread[a->visit[i].reader].process];

		l->reads = true;
		l->threads |= l->reading != JOB_NONE && l->reading != a->visit[i].reader;
		l->reading = a->visit[i].reader;
	}
	if (job->sees & JOB_SEES_PIPES)
		find_producers(job, life);
	for (size_t i = 0; a->apart_until_ns && i < job->threads; i++)
		life[job->thread[i].process].threads |= a->apart_until_ns[i] != INT64_MIN;
	for (size_t i = 0; i < job->processes; i++)
		a->pooled |= life[i].pooled && life[i].reads;
	find_trainers(a, life);
	sort_trainers(a, life);
	make_readers(a, life);
	tell_threads(a);
	drop_left_out(a);
	find_rounds(a);
	if (!a->apart_until_ns && a->job->sees & JOB_SEES_TIMES)
		leave_out_scans(a);
	if (a->readers == 0)
		return;
	say_ranks(a);
	say_workers(a);
}

/* ---- kinds of threads ---- */

/* Programs name their threads: those that load samples alike but for a number, those that check
 * files or evaluate otherwise. Each kind by name is a crew of its own. A crew that comes to the
 * files of one that reads more looks at the dataset beside it; one with files of its own reads for
 * evaluation. Where names do not tell, a thread that reads little before the others begin, or after
 * they end, looks at the dataset. */

#define NAME_MAX_BYTES 32
#define OWN_FILES 0.5 /* of those that a crew reads */
#define LITTLE 0.25   /* of what the thread reads that reads most */

struct kind {
	uint32_t stem; /* text of the names of threads without digits */
	size_t visits, files, own;
	uint32_t round; /* JOB_NONE: left out */
};

/* "reader-#" of "reader-12". */
static uint32_t stem_of(struct texts *stems, const char *name)
{
	char stem[NAME_MAX_BYTES];
	size_t n = 0;

	for (; name && *name && n + 1 < sizeof(stem); name++) {
		bool digit = *name >= '0' && *name <= '9';

		if (!digit)
			stem[n++] = *name;
		else if (n == 0 || stem[n - 1] != '#')
			stem[n++] = '#';
	}
	stem[n] = '\0';
	return (uint32_t)texts_add(stems, stem);
}

static int by_visits(const void *x, const void *y)
{
	const struct kind *a = x, *b = y;

	return ORDER(b->visits, a->visits) ?: ORDER(a->stem, b->stem);
}

/* Of the crews of a rank, the one that reads most first: which read files of their own. Not
 * samples: those that check a file may read it by other requests than those that train. */
static void choose(struct profile *a, uint32_t rank, struct kind *kind, size_t n,
		   const uint32_t *stem)
{
	AUTO_FREE size_t *seen = xcalloc(a->job->files + 1, sizeof(*seen));
	AUTO_FREE bool *taken = xcalloc(a->job->files + 1, sizeof(*taken));
	uint32_t rounds = 0;

	qsort(kind, n, sizeof(*kind), by_visits);
	for (size_t k = 0; k < n; k++) {
		for (size_t i = 0; i < a->visits; i++) {
			const struct visit *v = &a->visit[i];
			uint32_t file = a->sample[v->sample].file;

			if (a->reader[v->reader].rank != rank || stem[v->reader] != kind[k].stem ||
			    seen[file] == k + 1)
				continue;
			seen[file] = k + 1;
			kind[k].files++;
			kind[k].own += !taken[file];
		}
		kind[k].round = (double)kind[k].own > OWN_FILES * (double)kind[k].files ? rounds++
											: JOB_NONE;
		for (size_t i = 0; i < a->job->files && kind[k].round != JOB_NONE; i++)
			taken[i] |= seen[i] == k + 1;
	}
}

/* What it reads before that time. */
static void leave_out(struct profile *a, struct job_reader *r, int64_t until_ns)
{
	if (!a->apart_until_ns) {
		a->apart_until_ns = xcalloc(a->job->threads, sizeof(*a->apart_until_ns));
		for (size_t i = 0; i < a->job->threads; i++)
			a->apart_until_ns[i] = INT64_MIN;
	}
	a->apart_until_ns[r->thread] = until_ns;
	r->left_out = until_ns == INT64_MAX;
}

/* False where all threads are of one kind. */
static bool tell(struct profile *a, uint32_t rank, const uint32_t *stem)
{
	struct kind kind[THREAD_KINDS_MAX] = {{0}};
	size_t n = 0;

	for (size_t i = 0; i < a->readers; i++) {
		size_t k = 0;

		if (a->reader[i].rank != rank)
			continue;
		while (k < n && kind[k].stem != stem[i])
			k++;
		if (k == THREAD_KINDS_MAX)
			return true;
		kind[k].stem = stem[i];
		kind[k].visits += a->reader[i].visits;
		n += k == n;
	}
	if (n < 2)
		return false;
	choose(a, rank, kind, n, stem);
	for (size_t i = 0; i < a->readers; i++) {
		struct job_reader *r = &a->reader[i];

		for (size_t k = 0; k < n && r->rank == rank; k++)
			if (kind[k].stem == stem[i] && kind[k].round == JOB_NONE)
				leave_out(a, r, INT64_MAX);
			else if (kind[k].stem == stem[i])
				r->round = kind[k].round;
	}
	return true;
}

/* Where the looks at the dataset before the training end: behind the last visit of a thread that
 * reads little, up to which such threads have made most visits. Numbers of threads are used again:
 * some of these visits may be of a thread that trains later. INT64_MIN: there are none. */
static int64_t preface_end(const struct profile *a, uint32_t rank, size_t little)
{
	size_t looks = 0, others = 0;
	int64_t end = INT64_MIN;

	for (size_t i = 0; i < a->visits; i++) {
		const struct visit *v = &a->visit[i];
		const struct job_reader *r = &a->reader[v->reader];

		if (r->rank != rank)
			continue;
		if (r->visits >= little)
			others++;
		else if (++looks > others)
			end = v->begin_ns + 1;
	}
	/* with the ends of those that are under way */
	for (size_t i = 0; end != INT64_MIN && i < a->visits && a->visit[i].begin_ns < end; i++)
		if (a->reader[a->visit[i].reader].rank == rank && a->visit[i].end_ns >= end)
			end = a->visit[i].end_ns + 1;
	return end;
}

/* Threads without names: those that read files of evaluation, and the others. And those that read
 * little, all of it before the others begin or after they end. */
static void tell_by_time(struct profile *a, uint32_t rank, uint32_t *stem, struct texts *stems)
{
	AUTO_FREE size_t *evaluation = xcalloc(a->readers + 1, sizeof(*evaluation));
	size_t most = 0, little;
	int64_t begin, last = INT64_MIN;

	for (size_t i = 0; i < a->readers; i++)
		if (a->reader[i].rank == rank && a->reader[i].visits > most)
			most = a->reader[i].visits;
	little = (size_t)(LITTLE * (double)most);
	begin = preface_end(a, rank, little);
	for (size_t i = 0; i < a->visits; i++) {
		const struct visit *v = &a->visit[i];
		const char *folder = a->group[a->group_of[a->sample[v->sample].file]].folder;

		evaluation[v->reader] += profile_is_evaluation_name(path_basename(folder));
		if (a->reader[v->reader].rank == rank && a->reader[v->reader].visits >= little &&
		    v->begin_ns > last)
			last = v->begin_ns;
	}
	for (size_t i = 0; i < a->readers; i++) {
		struct job_reader *r = &a->reader[i];

		if (r->rank != rank)
			continue;
		if (r->visits < little && (r->begin_ns > last || r->end_ns <= begin))
			leave_out(a, r, INT64_MAX);
		else if (r->begin_ns < begin)
			leave_out(a, r, begin);
		stem[i] = stem_of(stems, 2 * evaluation[i] > r->visits ? "evaluation" : "");
	}
	(void)tell(a, rank, stem);
}

static void tell_thread_kinds(struct profile *a)
{
	AUTO_FREE uint32_t *stem = xcalloc(a->readers + 1, sizeof(*stem));
	AUTO_FREE bool *apart = xcalloc(a->trainers + 1, sizeof(*apart));
	struct texts stems = {0};

	for (size_t i = 0; i < a->readers; i++) {
		const struct job_reader *r = &a->reader[i];

		stem[i] = stem_of(&stems,
				  r->thread == JOB_NONE ? NULL : a->job->thread[r->thread].name);
		apart[r->rank] |= r->worker;
	}
	for (uint32_t t = 0; t < a->trainers; t++)
		if (!apart[t] && !tell(a, t, stem))
			tell_by_time(a, t, stem, &stems);
	texts_release(&stems);
}
