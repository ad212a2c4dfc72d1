/* Batches of streams as visits. Whatever a worker reads between two messages of its index pipe is
 * of the batch that the first of them asks for. Of each file that it reads then, that is one visit;
 * a batch has as many visits as samples, most of which read nothing: what they deliver was read
 * before. */
#include <stdlib.h>

#include "base/alloc.h"
#include "base/compare.h"
#include "base/map.h"
#include "base/vector.h"
#include "trace/profile/profile_parts.h"

/* A read of a worker. */
struct read {
	uint32_t reader, task; /* of the reader, from 0 */
	uint32_t file, event;
	uint32_t epoch;
	bool evaluation;
};

/* Visits of one worker as they are made. */
struct making {
	struct profile *a;
	size_t piece_room, event_room, events;
	uint32_t *sample_of; /* of each file; JOB_NONE */
};

static int by_task(const void *x, const void *y)
{
	const struct read *a = x, *b = y;

	return ORDER(a->reader, b->reader) ?: ORDER(a->task, b->task) ?:
	       ORDER(a->file, b->file) ?: ORDER(a->event, b->event);
}

static uint32_t *readers_of_processes(const struct profile *a)
{
	uint32_t *of = job_numbers(a->job->processes);

	for (size_t i = 0; i < a->readers; i++)
		if (a->reader[i].worker && !a->reader[i].left_out &&
		    a->reader[i].thread == JOB_NONE)
			of[a->reader[i].process] = (uint32_t)i;
	return of;
}

/* Tasks of each reader: the first of them, and behind the last reader how many there are. */
static size_t *tasks_of_readers(const struct profile *a)
{
	size_t *first = xcalloc(a->readers + 2, sizeof(*first));

	for (size_t i = 0; i < a->tasks; i++)
		first[a->task[i].reader + 1]++;
	for (size_t i = 0; i < a->readers; i++)
		first[i + 1] += first[i];
	return first;
}

/* The epoch of each reader at a time is that of its visit of the file. */
static size_t find_reads(const struct profile *a, const size_t *first, struct read *out,
			 size_t *outside)
{
	AUTO_FREE uint32_t *of = readers_of_processes(a);
	AUTO_FREE size_t *at = xcalloc(a->readers + 1, sizeof(*at));
	/* of each reader: its next visit; visits are by time */
	AUTO_FREE size_t *begin = xcalloc(a->readers + 2, sizeof(*begin));
	AUTO_FREE uint32_t *visit = xcalloc(a->visits + 1, sizeof(*visit));
	AUTO_FREE size_t *next = xcalloc(a->readers + 1, sizeof(*next));
	int64_t begin_ns = INT64_MAX; /* of the first task */
	size_t n = 0;

	for (size_t i = 0; i < a->visits; i++)
		begin[a->visit[i].reader + 2]++;
	for (size_t i = 1; i <= a->readers; i++)
		begin[i + 1] += begin[i];
	for (size_t i = 0; i < a->visits; i++)
		visit[begin[a->visit[i].reader + 1]++] = (uint32_t)i;
	for (size_t r = 0; r < a->readers; r++)
		next[r] = begin[r];
	*outside = 0;
	for (size_t i = 0; i < a->tasks; i++)
		LOWER(begin_ns, a->task[i].begin_ns);
	for (size_t i = 0; i < a->job->events; i++) {
		const struct job_event *v = &a->job->event[i];
		const struct visit *x;
		uint32_t r;

		if (v->kind != JOB_READ || v->result <= 0 || v->result > UINT32_MAX ||
		    v->offset < 0 || !profile_is_data(a, v->file) || profile_is_apart(a, v))
			continue;
		r = of[a->job->thread[v->thread].process];
		if (r == JOB_NONE || begin[r] == begin[r + 1]) {
			/* before, a trainer looks at the files: at footers, an index */
			*outside += v->begin_ns > begin_ns;
			continue;
		}
		while (at[r] < first[r + 1] - first[r] &&
		       a->task[first[r] + at[r]].begin_ns <= v->begin_ns)
			at[r]++;
		while (next[r] + 1 < begin[r + 1] &&
		       a->visit[visit[next[r] + 1]].begin_ns <= v->begin_ns)
			next[r]++;
		x = &a->visit[visit[next[r]]];
		out[n++] = (struct read){.reader = r,
					 .task = at[r] > 0 ? (uint32_t)(at[r] - 1) : 0,
					 .file = v->file,
					 .event = (uint32_t)i,
					 .epoch = x->epoch,
					 .evaluation = is_eval(a, x)};
	}
	return n;
}

static void add_visit(struct making *m, const struct read *of, uint32_t batch, uint32_t task,
		      uint32_t file, int64_t begin_ns)
{
	struct profile *a = m->a;
	size_t room = m->piece_room;

	VECTOR_PUSH(a->visit, a->visits, a->visit_room,
		    {.begin_ns = begin_ns,
		     .end_ns = begin_ns,
		     .sample = m->sample_of[file],
		     .reader = of->reader,
		     .epoch = of->epoch,
		     .batch = batch});
	if (a->visits > room) {
		m->piece_room = 2 * a->visits + 64;
		a->piece = xrealloc(a->piece, m->piece_room * sizeof(*a->piece));
	}
	a->piece[a->visits - 1] = (struct piece){m->events, 0, task};
}

static void add_event(struct making *m, uint32_t event)
{
	struct profile *a = m->a;
	const struct job_event *v = &a->job->event[event];
	struct visit *x = &a->visit[a->visits - 1];

	VECTOR_PUSH(a->piece_event, m->events, m->event_room, event);
	a->piece[a->visits - 1].n++;
	x->requests++;
	x->bytes += v->result;
	RAISE(x->end_ns, v->end_ns);
	if (v->end_ns > v->begin_ns)
		x->read_ns += v->end_ns - v->begin_ns;
}

/* Batches that readers delivered in passes: each is counted under its rank, pass and place among
 * the workers. */
struct delivered {
	uint32_t *rank; /* of each reader: the first of its rank and place */
	struct map of;  /* of that reader and the pass */
};

static int64_t pass_of(uint32_t epoch, bool evaluation)
{
	return (int64_t)epoch * 2 + evaluation;
}

static void count_delivered(const struct profile *a, uint32_t workers, struct delivered *d)
{
	struct map first = {0};

	*d = (struct delivered){.rank = job_numbers(a->readers)};
	for (size_t i = 0; i < a->readers; i++) {
		const struct job_reader *r = &a->reader[i];
		uint32_t at = map_get2(&first, r->rank, r->number);

		if (at == MAP_NONE)
			map_put2(&first, r->rank, r->number, at = (uint32_t)i);
		d->rank[i] = at;
	}
	for (size_t s = 0; s < a->steps; s++) {
		uint32_t r = map_get2(&first, a->step[s].rank, (int64_t)(a->step[s].at % workers));
		int64_t pass = pass_of(a->step[s].epoch, a->step[s].evaluation);
		uint32_t n;

		if (r == MAP_NONE)
			continue;
		n = map_get2(&d->of, r, pass);
		map_put2(&d->of, r, pass, n == MAP_NONE ? 1 : n + 1);
	}
	map_release(&first);
}

static uint32_t batches_of(const struct delivered *d, const struct read *of)
{
	uint32_t n = map_get2(&d->of, d->rank[of->reader], pass_of(of->epoch, of->evaluation));

	return n == MAP_NONE ? 0 : n;
}

static void delivered_release(struct delivered *d)
{
	map_release(&d->of);
	free(d->rank);
}

/* One worker's reads of a pass as visits: `batch` of each task. A stream begins with a read, so the
 * first of them is of the first task. What is read behind the last task is of the last. */
static void make_visits(struct making *m, const struct read *read, size_t n, uint32_t tasks,
			uint32_t batch)
{
	struct profile *a = m->a;
	size_t i = 0;
	const struct read *last = read;
	uint32_t begin = read->task;

	for (uint32_t task = 0; task < tasks && n > 0; task++) {
		uint32_t made = 0, file = JOB_NONE;
		bool final = task + 1 == tasks;

		while (i < n && (read[i].task - begin <= task || final)) {
			if (read[i].file != file) {
				/* those of one file more than there are samples: with the next
				 * batch */
				if (made == batch && !final)
					break;
				made++;
				file = read[i].file;
				add_visit(m, &read[i], task, begin + task, file,
					  a->job->event[read[i].event].begin_ns);
			}
			add_event(m, read[i].event);
			last = &read[i++];
		}
		for (; made < batch; made++)
			add_visit(m, last, task, begin + task, last->file,
				  a->visits > 0 ? a->visit[a->visits - 1].begin_ns
						: a->job->event[last->event].begin_ns);
	}
}

struct ordered {
	int64_t begin_ns;
	uint32_t at;
};

static int by_begin(const void *x, const void *y)
{
	const struct ordered *a = x, *b = y;

	return ORDER(a->begin_ns, b->begin_ns) ?: ORDER(a->at, b->at);
}

static void sort_visits(struct profile *a)
{
	AUTO_FREE struct ordered *o = xcalloc(a->visits + 1, sizeof(*o));
	struct visit *visit = xcalloc(a->visits + 1, sizeof(*visit));
	struct piece *piece = xcalloc(a->visits + 1, sizeof(*piece));

	for (size_t i = 0; i < a->visits; i++)
		o[i] = (struct ordered){a->visit[i].begin_ns, (uint32_t)i};
	qsort(o, a->visits, sizeof(*o), by_begin);
	for (size_t i = 0; i < a->visits; i++) {
		visit[i] = a->visit[o[i].at];
		piece[i] = a->piece[o[i].at];
	}
	free(a->visit);
	free(a->piece);
	a->visit = visit;
	a->piece = piece;
}

#define OUTSIDE 0.001                /* of the reads */
#define VISITS_MAX (size_t)(1 << 24) /* 80 bytes each, and as much to sort them */

/* Each file is a sample. Returns which of each file; JOB_NONE. */
static uint32_t *make_samples(struct profile *a, const struct profile *of)
{
	uint32_t *sample_of = job_numbers(of->job->files);

	a->sample = xcalloc(of->samples + 1, sizeof(*a->sample));
	a->samples = 0;
	for (size_t i = 0; i < of->samples; i++) {
		const struct job_sample *s = &of->sample[i];

		if (sample_of[s->file] != JOB_NONE) {
			a->sample[sample_of[s->file]].bytes += s->bytes;
			continue;
		}
		sample_of[s->file] = (uint32_t)a->samples;
		a->sample[a->samples] = *s;
		a->sample[a->samples++].offset = 0;
	}
	return sample_of;
}

bool profile_make_pieces(struct profile *a, const struct profile *of)
{
	AUTO_FREE size_t *first = tasks_of_readers(of);
	AUTO_FREE struct read *read = xcalloc(of->job->events + 1, sizeof(*read));
	uint32_t workers =
		profile_has(of, PROFILE_WORKERS) ? (uint32_t)of->value[PROFILE_WORKERS].number : 0;
	uint32_t batch = profile_has(of, PROFILE_BATCH) && of->value[PROFILE_BATCH].number < 65536
				 ? (uint32_t)of->value[PROFILE_BATCH].number
				 : 1;
	uint32_t of_eval =
		profile_has(of, PROFILE_EVAL_BATCH) && of->value[PROFILE_EVAL_BATCH].number < 65536
			? (uint32_t)of->value[PROFILE_EVAL_BATCH].number
			: batch;
	struct delivered delivered;
	struct making m = {.a = a};
	size_t n, outside;

	if (!(of->larger || (of->stream && !of->container)) || of->tasks == 0 || of->steps == 0 ||
	    workers == 0 ||
	    (double)of->steps * (batch > of_eval ? batch : of_eval) > (double)VISITS_MAX)
		return false;
	n = find_reads(of, first, read, &outside);
	if (n == 0 || (double)outside > OUTSIDE * (double)n)
		return false;
	*a = *of;
	a->visit = NULL;
	a->visits = a->visit_room = 0;
	a->piece = NULL;
	a->piece_event = NULL;
	a->stream = a->container = a->again = a->larger = false;
	m.sample_of = make_samples(a, of);
	count_delivered(of, workers, &delivered);
	qsort(read, n, sizeof(*read), by_task);
	for (size_t i = 0, end; i < n; i = end) {
		for (end = i;
		     end < n && read[end].reader == read[i].reader &&
		     read[end].epoch == read[i].epoch && read[end].evaluation == read[i].evaluation;
		     end++)
			;
		make_visits(&m, read + i, end - i, batches_of(&delivered, &read[i]),
			    read[i].evaluation ? of_eval : batch);
	}
	delivered_release(&delivered);
	sort_visits(a);
	for (size_t i = 0; of->held && i < of->samples; i++)
		if (of->held[of->sample[i].file] > 0)
			RAISE(a->held_most, (uint64_t)of->held[of->sample[i].file]);
	free(m.sample_of);
	profile_inferred(a, PROFILE_KEPT_OPEN, 1, FACT(JOB_NOT_OPENED_AGAIN), 0, 0);
	if (!profile_has(of, PROFILE_BATCH))
		profile_inferred(a, PROFILE_BATCH, 1, FACT(JOB_STREAMS), 0, 0);
	return true;
}

void profile_release_pieces(struct profile *a)
{
	free(a->visit);
	free(a->sample);
	free(a->piece);
	free(a->piece_event);
	*a = (struct profile){0};
}
