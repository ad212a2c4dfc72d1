/* Who reads and who trains: ranks, their workers, and the generations of these.
 *
 * A worker is a process that was forked, ran no other program, and reads samples for its parent:
 * where pipes are seen, it takes messages from one. A trainer is a worker's parent, or whoever
 * reads without one. Threads of a trainer that read beside others are its workers, too. */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "jobtrace/account_parts.h"

#define BESIDE_NS 5e7    /* workers that begin so shortly one after the other, */
#define BESIDE_SHARE 0.1 /* in such a part of their life, are of one generation */
#define PEEK_SHARE 0.05  /* of the visits: a trainer with workers that reads so little itself */

struct life {
	bool reads, executed, takes_messages, forked, marks;
	int64_t first_ns, last_ns; /* of its events */
	int64_t first_visit_ns;
	uint32_t trainer; /* index; JOB_NONE */
	uint32_t trains;  /* index of this one as a trainer, before they are sorted; JOB_NONE */
	bool worker;
};

static void look(const struct job *job, struct life *life)
{
	for (size_t i = 0; i < job->processes; i++)
		life[i] = (struct life){.first_ns = JOB_UNKNOWN,
					.last_ns = JOB_UNKNOWN,
					.first_visit_ns = JOB_UNKNOWN,
					.trainer = JOB_NONE,
					.trains = JOB_NONE};
	for (size_t i = 0; i < job->events; i++) {
		const struct job_event *v = &job->event[i];
		struct life *l = &life[job->thread[v->thread].process];

		if (l->first_ns == JOB_UNKNOWN)
			l->first_ns = v->begin_ns;
		if (v->end_ns > l->last_ns)
			l->last_ns = v->end_ns;
		if (v->kind == JOB_EXEC && v->result >= 0)
			l->executed = true;
		if (v->kind == JOB_COMPUTE)
			l->marks = true;
		if (v->kind == JOB_FORK && v->other != JOB_NONE && v->other < job->processes)
			life[v->other].forked = true;
		/* the length before a message of Python's connections */
		if (v->kind == JOB_READ && v->result == 4 && v->file != JOB_NONE &&
		    job->file[v->file].kind == JOB_FILE_PIPE)
			l->takes_messages = true;
	}
}

static bool is_worker(const struct job *job, const struct life *life, size_t p)
{
	const struct job_process *v = &job->process[p];

	if (v->parent == JOB_NONE)
		return false;
	/* over pipes, tasks come and results go: to a parent that takes messages, too. It may have
	 * started the process anew (spawn). */
	if (life[p].takes_messages && life[v->parent].takes_messages)
		return life[p].reads || !life[p].executed;
	if (strstr(v->command, "multiprocessing.spawn") || strstr(v->command, "forkserver"))
		return life[p].takes_messages || life[p].reads;
	if (life[p].executed || (v->rank >= 0 && job->process[v->parent].rank != v->rank))
		return false;
	return life[p].reads && !(job->sees & JOB_SEES_PIPES);
}

/* There is room for as many trainers as processes. */
static uint32_t add_trainer(struct account *a, struct life *life, uint32_t process)
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
static bool trainers_by_marks(struct account *a, struct life *life)
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

static void find_trainers(struct account *a, struct life *life)
{
	const struct job *job = a->job;

	a->trainer = xcalloc(job->processes + 1, sizeof(*a->trainer));
	if (trainers_by_marks(a, life))
		return;
	for (size_t i = 0; i < job->processes; i++)
		life[i].worker = is_worker(job, life, i);
	for (size_t i = 0; i < job->processes; i++) {
		if (life[i].worker)
			life[i].trainer = add_trainer(a, life, job->process[i].parent);
		else if (life[i].reads)
			life[i].trainer = add_trainer(a, life, (uint32_t)i);
	}
}

static int by_rank(const void *x, const void *y, void *of)
{
	const struct job_process *p = of;
	const struct job_process *a = &p[((const struct trainer *)x)->process];
	const struct job_process *b = &p[((const struct trainer *)y)->process];

	if (a->rank != b->rank)
		return a->rank < b->rank ? -1 : 1;
	if (a->begin_ns != b->begin_ns)
		return a->begin_ns < b->begin_ns ? -1 : 1;
	return (a > b) - (a < b);
}

static void sort_trainers(struct account *a, struct life *life)
{
	uint32_t *now;

	if (a->trainers < 2)
		return;
	now = xcalloc(a->job->processes, sizeof(*now));
	for (size_t i = 0; i < a->job->processes; i++)
		if (life[i].trainer != JOB_NONE)
			life[i].trainer = a->trainer[life[i].trainer].process;
	qsort_r(a->trainer, a->trainers, sizeof(*a->trainer), by_rank, a->job->process);
	for (size_t i = 0; i < a->trainers; i++)
		now[a->trainer[i].process] = (uint32_t)i;
	for (size_t i = 0; i < a->job->processes; i++)
		if (life[i].trainer != JOB_NONE)
			life[i].trainer = now[life[i].trainer];
	free(now);
}

/* A reader for each worker process and for each thread of a trainer that reads. */
static void make_readers(struct account *a, struct life *life)
{
	const struct job *job = a->job;
	uint32_t *of_process = xcalloc(job->processes + 1, sizeof(*of_process));
	uint32_t *of_thread = xcalloc(job->threads + 1, sizeof(*of_thread));

	for (size_t i = 0; i < job->processes; i++)
		of_process[i] = JOB_NONE;
	for (size_t i = 0; i < job->threads; i++)
		of_thread[i] = JOB_NONE;
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
				.begin_ns = v->begin_ns,
				.end_ns = v->end_ns,
			};
		}
		r = &a->reader[*of];
		if (r->visits++ == 0 && r->begin_ns == JOB_UNKNOWN)
			r->begin_ns = v->begin_ns;
		if (v->end_ns > r->end_ns)
			r->end_ns = v->end_ns;
		v->reader = *of;
	}
	free(of_process);
	free(of_thread);
}

/* Of a trainer that has worker processes, its own few visits are looks at the dataset; threads of
 * one that has none are workers where several read. */
static void tell_threads(struct account *a)
{
	struct {
		size_t workers, own, of_workers, of_own; /* readers; their visits */
	} *of = xcalloc(a->trainers + 1, sizeof(*of));

	for (size_t i = 0; i < a->readers; i++) {
		const struct job_reader *r = &a->reader[i];

		*(r->worker ? &of[r->rank].workers : &of[r->rank].own) += 1;
		*(r->worker ? &of[r->rank].of_workers : &of[r->rank].of_own) += r->visits;
	}
	for (size_t i = 0; i < a->readers; i++) {
		struct job_reader *r = &a->reader[i];
		size_t workers = of[r->rank].workers, own = of[r->rank].own;
		double of_own = (double)of[r->rank].of_own,
		       of_workers = (double)of[r->rank].of_workers;

		if (r->worker)
			continue;
		if (workers > 0 && of_own <= PEEK_SHARE * (of_own + of_workers) + 2)
			r->left_out = true;
		else if (workers == 0 && own > 1)
			r->worker = (double)r->visits > PEEK_SHARE * of_own / (double)own;
	}
	free(of);
}

static void drop_left_out(struct account *a)
{
	size_t kept = 0;

	for (size_t i = 0; i < a->visits; i++)
		if (!a->reader[a->visit[i].reader].left_out)
			a->visit[kept++] = a->visit[i];
	a->visits = kept;
}

/* ---- generations of workers ---- */

static int by_begin_of_reader(const void *x, const void *y, void *of)
{
	const struct job_reader *r = of;
	uint32_t i = *(const uint32_t *)x, k = *(const uint32_t *)y;

	if (r[i].rank != r[k].rank)
		return r[i].rank < r[k].rank ? -1 : 1;
	if (r[i].begin_ns != r[k].begin_ns)
		return r[i].begin_ns < r[k].begin_ns ? -1 : 1;
	return (i > k) - (i < k);
}

/* Whether a reader began hardly later than the one before it, of whose life that was a small part:
 * a process that was started before the other read may get a processor after it. */
static bool begins_beside(const struct job_reader *r, const struct job_reader *last)
{
	double late = (double)(r->begin_ns - last->begin_ns);

	return late <= BESIDE_NS && r->begin_ns < last->end_ns &&
	       late <= BESIDE_SHARE * (double)(last->end_ns - last->begin_ns);
}

/* The workers of an iterator are started before any of them reads: one that begins after another
 * of the generation has read is of the next. */
static void find_rounds(struct account *a)
{
	uint32_t *order = xcalloc(a->readers + 1, sizeof(*order));
	int64_t *first = xcalloc(a->readers + 1, sizeof(*first));
	int64_t read_ns = INT64_MAX; /* when the first of the present generation read */
	uint32_t rank = JOB_NONE, round = 0, number = 0;
	const struct job_reader *last = NULL;

	for (size_t i = 0; i < a->readers; i++) {
		order[i] = (uint32_t)i;
		/* of one whose reads are not seen, its end */
		first[i] = a->visits > 0 ? INT64_MAX : a->reader[i].end_ns;
	}
	for (size_t i = a->visits; i-- > 0;)
		first[a->visit[i].reader] = a->visit[i].begin_ns;
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
		} else if (process && r->begin_ns > read_ns && !begins_beside(r, last)) {
			round++;
			number = 0;
			read_ns = INT64_MAX;
		}
		r->round = round;
		r->number = number++;
		last = r;
		if (first[order[i]] < read_ns)
			read_ns = first[order[i]];
		a->trainer[rank].rounds = round + 1;
	}
	free(first);
	free(order);
}

/* ---- what is said of it ---- */

static void say_workers(struct account *a)
{
	uint64_t rounds = 0, agree = 0;
	uint32_t mode = 0, best = 0, most = 0;
	uint32_t *size, *count;
	uint64_t *first = xcalloc(a->trainers + 1, sizeof(*first)); /* round of each rank */
	bool processes = false;

	for (size_t i = 0; i < a->trainers; i++) {
		first[i] = rounds;
		rounds += a->trainer[i].rounds;
	}
	size = xcalloc(rounds + 1, sizeof(*size));
	for (size_t i = 0; i < a->readers; i++) {
		const struct job_reader *r = &a->reader[i];
		uint64_t at;

		if (!r->worker || r->left_out)
			continue;
		processes |= r->thread == JOB_NONE;
		at = first[r->rank] + r->round;
		size[at]++;
		if (size[at] > most)
			most = size[at];
	}
	free(first);
	if (rounds == 0) {
		account_inferred(a, ACCOUNT_WORKERS, 0,
				 "the thread that trains reads the samples itself", 0, 0);
		free(size);
		return;
	}
	count = xcalloc((size_t)most + 1, sizeof(*count));
	for (size_t i = 0; i < rounds; i++)
		if (++count[size[i]] > best || (count[size[i]] == best && size[i] > mode)) {
			best = count[size[i]];
			mode = size[i];
		}
	agree = count[mode];
	account_inferred(a, ACCOUNT_WORKERS, mode,
			 processes ? "processes that a rank forked and that read samples, alive at "
				     "once; of the generations of workers"
				   : "threads of the rank that read samples",
			 agree, rounds)
		->text = processes ? "processes" : "threads";
	free(count);
	free(size);
}

void account_crew(struct account *a)
{
	const struct job *job = a->job;
	struct life *life = xcalloc(job->processes + 1, sizeof(*life));

	look(job, life);
	for (size_t i = 0; i < a->visits; i++)
		life[job->thread[a->visit[i].reader].process].reads = true;
	find_trainers(a, life);
	sort_trainers(a, life);
	make_readers(a, life);
	tell_threads(a);
	drop_left_out(a);
	find_rounds(a);
	free(life);
	if (a->readers == 0)
		return;
	account_inferred(a, ACCOUNT_RANKS, (double)a->trainers,
			 "processes that have workers which read samples, or read them without", 0,
			 0);
	say_workers(a);
}
