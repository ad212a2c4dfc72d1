/* From visits to the order of a sampler. */
#include "trace/workload/workload_of.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/compare.h"
#include "base/map.h"
#include "trace/profile/profile_parts.h"
#include "trace/workload/recorded_work.h"
#include "trace/workload/workload_numbers.h"
#include "workload/recorded_file.h"

/* Why the log does not show them: a clause without a full stop; NULL: it does. */
static const char *sample_requests_unknown(const struct profile *a);
/* The requests of all visits, one list behind the other. */
struct of_visits {
	unsigned char *bytes;
	struct recorded_requests *list; /* of each visit */
	bool *opens;                    /* the visit opened its file */
};

/* What the workload will ask for. */
struct lists {
	struct of_visits visits;
	struct sample_requests samples;
	/* Visits of one sample differ, or files have different numbers of them: then a sample of
	 * the workload is one way in which a file is read. */
	bool exact;
	uint64_t per_file; /* of exact: the most ways in which a file is read */
	uint32_t *number;  /* of each visit: which of its file's ways */
	double *work;      /* of each visit, ns; NULL: not known */
	struct recorded_has *has;
};

/* Memory: 12 bytes a request to the dataset, beside 40 a visit. -ENOMEM; release in any case. */
static int lists_make(const struct profile *a, struct lists *l, struct err *e);
static void lists_release(struct lists *l);

/* The files of a part of the dataset by name, and where its samples are. */
struct part {
	bool evaluation;
	uint32_t *file;
	size_t files;
	size_t samples;
	uint32_t *number; /* of each sample of the profile; UINT32_MAX: of the other part */
	size_t per_file;  /* 0: differs from file to file */
	uint32_t *place;  /* of each file of the job */
	const struct lists *lists; /* NULL: there are none */
	/* Visits of every rank in every epoch, with those of one file more that fill up; 0: as the
	 * job had them, and no such file. */
	uint64_t fill_to;
};

/* The sample of the workload that a visit is of. */
static uint32_t number_of_visit(const struct profile *a, const struct part *p, size_t visit)
{
	const struct job_sample *s = &a->sample[a->visit[visit].sample];

	if (p->lists && p->lists->exact)
		return (uint32_t)(p->place[s->file] * p->per_file + p->lists->number[visit]);
	return p->number[a->visit[visit].sample];
}

/* A sample's number: its file's times the samples of each, and its place among them. The samples of
 * the profile are by file and offset. */
static void number_samples(const struct profile *a, struct part *p)
{
	AUTO_FREE uint32_t *in_file = xcalloc(a->job->files + 1, sizeof(*in_file));

	for (size_t i = 0; i < p->files; i++)
		p->place[p->file[i]] = (uint32_t)i;
	for (size_t i = 0; i < a->samples; i++)
		if (a->sample[i].evaluation == p->evaluation)
			in_file[a->sample[i].file]++;
	p->per_file = p->files ? in_file[p->file[0]] : 0;
	for (size_t i = 0; i < p->files; i++)
		if (in_file[p->file[i]] != p->per_file)
			p->per_file = 0;
	memset(in_file, 0, (a->job->files + 1) * sizeof(*in_file));
	for (size_t i = 0; i < a->samples; i++) {
		uint32_t file = a->sample[i].file;

		p->number[i] = UINT32_MAX;
		if (a->sample[i].evaluation != p->evaluation)
			continue;
		p->number[i] = (uint32_t)(p->place[file] * p->per_file + in_file[file]++);
		p->samples++;
	}
	if (p->lists && p->lists->exact)
		p->per_file = p->lists->per_file;
}

/* A file counts as one of the part if a sample of it does. */
static void part_make(const struct profile *a, bool evaluation, const struct lists *lists,
		      struct part *p)
{
	AUTO_FREE bool *taken = xcalloc(a->job->files + 1, sizeof(*taken));

	*p = (struct part){.evaluation = evaluation,
			   .lists = lists,
			   .place = xcalloc(a->job->files + 1, sizeof(*p->place)),
			   .file = xcalloc(a->job->files + 1, sizeof(*p->file)),
			   .number = xcalloc(a->samples + 1, sizeof(*p->number))};
	for (size_t i = 0; i < a->samples; i++) {
		uint32_t file = a->sample[i].file;

		if (a->sample[i].evaluation != evaluation || taken[file])
			continue;
		taken[file] = true;
		p->file[p->files++] = file;
	}
	job_sort_by_number(a->job, p->file, p->files);
	number_samples(a, p);
}

static void part_release(struct part *p)
{
	free(p->file);
	free(p->number);
	free(p->place);
	*p = (struct part){0};
}

static bool sizes_known(const struct profile *a, const struct part *p)
{
	for (size_t i = 0; i < p->files; i++)
		if (a->job->file[p->file[i]].size < 0)
			return false;
	return p->files > 0 && a->companions == 0;
}

/* ---- order ---- */

struct placed { /* a visit in the order of the sampler */
	uint32_t rank, epoch;
	uint32_t pass;   /* of several evaluations in one epoch */
	uint32_t batch;  /* of the reader in the epoch, from 0 */
	uint32_t number; /* of the worker in its round */
	size_t visit;
};

static int by_place(const void *a, const void *b)
{
	const struct placed *x = a, *y = b;

	return ORDER(x->epoch, y->epoch) ?: ORDER(x->rank, y->rank) ?:
	       ORDER(x->pass, y->pass) ?: ORDER(x->batch, y->batch) ?:
	       ORDER(x->number, y->number) ?: ORDER(x->visit, y->visit);
}

static bool is_of(const struct profile *a, const struct part *p, const struct visit *v)
{
	return a->sample[v->sample].evaluation == p->evaluation && !a->reader[v->reader].left_out &&
	       a->reader[v->reader].rank < a->trainers;
}

/* Whether the order can be told: a worker beside others needs batches. */
static const char *no_order(const struct profile *a, const struct part *p)
{
	size_t n = 0;

	if (a->stream && !(p->lists && p->lists->exact))
		return "the log does not tell the samples of a stream apart";
	for (size_t i = 0; i < a->visits; i++) {
		const struct visit *v = &a->visit[i];

		if (!is_of(a, p, v))
			continue;
		n++;
		if (v->batch == JOB_NONE && a->reader[v->reader].worker)
			return "the batches of the workers are not known";
	}
	if (n == 0)
		return "the log has no visits of samples";
	return p->per_file == 0 ? "files have different numbers of samples" : NULL;
}

/* Batches of each reader are counted anew in each epoch: `first` is that of its first visit there.
 */
static size_t place_visits(const struct profile *a, const struct part *p, struct placed *out,
			   uint32_t *epochs)
{
	AUTO_FREE uint32_t *epoch = job_numbers(a->readers), *first = job_numbers(a->readers);
	size_t n = 0;
	/* where the log does not tell epochs apart, all is one; generations of workers follow */
	bool one = !p->evaluation && a->value[PROFILE_EPOCHS].how == HOW_UNKNOWN &&
		   !(a->value[PROFILE_EPOCHS].in_log > 0);

	uint32_t each = p->evaluation ? workload_of_evaluations(a) : 1;

	*epochs = 0;
	for (size_t i = 0; i < a->visits; i++) {
		const struct visit *v = &a->visit[i];
		uint32_t pass = one ? a->reader[v->reader].round : v->epoch;
		/* threads share batches, and read in the order of the sampler */
		bool thread = a->reader[v->reader].thread != JOB_NONE;
		uint32_t batch = v->batch == JOB_NONE || thread ? 0 : v->batch;

		if (!is_of(a, p, v))
			continue;
		if (epoch[v->reader] != pass) {
			epoch[v->reader] = pass;
			first[v->reader] = batch;
		}
		RAISE(*epochs, one ? 1 : pass / each + 1);
		out[n++] = (struct placed){
			.rank = a->reader[v->reader].rank,
			.epoch = pass / each,
			.pass = pass,
			.batch = batch >= first[v->reader] ? batch - first[v->reader] : batch,
			.number = thread ? 0 : a->reader[v->reader].number,
			.visit = i};
	}
	qsort(out, n, sizeof(*out), by_place);
	for (size_t i = 0; i < n && one; i++)
		out[i].epoch = 0;
	return n;
}

/* The lists of all epochs and ranks, which point into `sample`. */
static void list_visits(const struct profile *a, const struct part *p, const struct placed *placed,
			size_t n, uint32_t *sample, struct recorded_visits *lists)
{
	for (size_t i = 0; i < n; i++) {
		struct recorded_visits *l =
			&lists[(size_t)placed[i].epoch * a->trainers + placed[i].rank];

		sample[i] = number_of_visit(a, p, placed[i].visit);
		if (l->n++ == 0)
			l->sample = &sample[i];
	}
}

/* Visits of a job that ended within its last epoch: what the epoch would have had is not known, and
 * every epoch needs as many. The lists of the last epoch get samples that were not visited, up to
 * what the first has; they have `room` behind them. */
static void fill_up_last(const struct profile *a, const struct part *p, uint32_t epochs,
			 uint32_t *room, struct recorded_visits *lists)
{
	AUTO_FREE bool *seen = xcalloc(p->files * p->per_file + 1, sizeof(*seen));
	struct recorded_visits *last = lists + (size_t)(epochs - 1) * a->trainers;
	uint64_t next = 0, samples = p->files * p->per_file;

	for (size_t r = 0; r < a->trainers; r++)
		for (uint64_t i = 0; i < last[r].n; i++)
			seen[last[r].sample[i]] = true;
	for (size_t r = 0; r < a->trainers; r++) {
		uint32_t *to = room;

		if (last[r].n >= lists[r].n)
			continue;
		if (last[r].n > 0)
			memcpy(to, last[r].sample, last[r].n * sizeof(*to));
		last[r].sample = to;
		for (; last[r].n < lists[r].n; last[r].n++) {
			while (next < samples && seen[next])
				next++;
			to[last[r].n] = (uint32_t)(next < samples ? next++ : 0);
		}
		room += last[r].n;
	}
}

#define FILL_MOST 8 /* times the visits, with those that fill up */

/* Short batches, and epochs with fewer visits than others, are filled up where the requests of each
 * visit are known: a run has whole batches and epochs of one length. */
static void find_fill(const struct profile *a, struct part *p)
{
	double batch = workload_of_batch(a, p->evaluation, true);
	AUTO_FREE struct placed *placed = xcalloc(a->visits + 1, sizeof(*placed));
	AUTO_FREE uint64_t *of = NULL;
	uint64_t most = 0;
	bool same = true;
	uint32_t epochs;
	size_t n;

	if (no_order(a, p) || batch < 1 || batch > UINT32_MAX)
		return;
	n = place_visits(a, p, placed, &epochs);
	/* logs may be anything */
	if ((double)epochs * (double)a->trainers > (double)n)
		return;
	of = xcalloc((size_t)epochs * a->trainers + 1, sizeof(*of));
	for (size_t i = 0; i < n; i++)
		of[(size_t)placed[i].epoch * a->trainers + placed[i].rank]++;
	for (size_t i = 0; i < (size_t)epochs * a->trainers; i++)
		RAISE(most, of[i]);
	most = (most + (uint64_t)batch - 1) / (uint64_t)batch * (uint64_t)batch;
	for (size_t i = 0; i < (size_t)epochs * a->trainers; i++)
		same &= of[i] == most;
	/* an epoch that the job did not end has an end of its own */
	if (!same && (double)most * epochs * (double)a->trainers <= FILL_MOST * (double)n &&
	    (p->evaluation || !recorded_of_cut(a)))
		p->fill_to = most;
}

/* Every list of a part as long as all shall be. */
static int fill_up(const struct profile *a, const struct part *p, uint32_t epochs,
		   struct recorded_visits *lists, uint32_t **sample, struct err *e)
{
	size_t n = (size_t)epochs * a->trainers;
	uint32_t *to = try_calloc(n * p->fill_to + 1, sizeof(*to), "the order", e);

	if (!to)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++) {
		uint32_t *at = to + i * p->fill_to;

		for (uint64_t k = 0; k < p->fill_to; k++)
			at[k] = k < lists[i].n ? lists[i].sample[k]
					       : (uint32_t)(p->files * p->per_file);
		lists[i] = (struct recorded_visits){p->fill_to, at};
	}
	free(*sample);
	*sample = to;
	return 0;
}

/* ---- both ---- */

bool recorded_of_cut(const struct profile *a)
{
	double batch = profile_has(a, PROFILE_BATCH) ? a->value[PROFILE_BATCH].number : 1;
	/* batches that differ, as by what a library keeps in memory, are counted themselves */
	bool steps = a->steps > 0 && !profile_has(a, PROFILE_BATCH);
	uint32_t last = 0;
	size_t n = 0, first = 0;

	for (size_t i = 0; i < a->visits; i++)
		if (!a->sample[a->visit[i].sample].evaluation)
			RAISE(last, a->visit[i].epoch);
	for (size_t i = 0; i < a->steps && steps; i++) {
		n += !a->step[i].evaluation && a->step[i].epoch == last;
		first += !a->step[i].evaluation && a->step[i].epoch == 0;
	}
	for (size_t i = 0; i < a->visits && !steps; i++) {
		if (a->sample[a->visit[i].sample].evaluation)
			continue;
		n += a->visit[i].epoch == last;
		first += a->visit[i].epoch == 0;
	}
	return last > 0 && !a->stream &&
	       (double)n + batch * (double)(a->trainers ? a->trainers : 1) <= (double)first;
}

void recorded_of_look(const struct profile *a, struct recorded_has *has)
{
	struct lists l = {.has = has};
	struct part p;

	*has = (struct recorded_has){0};
	has->requests = !sample_requests_unknown(a) && lists_make(a, &l, NULL) == 0;
	part_make(a, false, &l, &p);
	has->sizes = sizes_known(a, &p);
	if (p.files == 0)
		has->no_sizes = "no dataset was found";
	else if (a->companions > 0)
		has->no_sizes = "a sample has several files";
	else if (!has->sizes)
		has->no_sizes = "the log does not have the size of every file";
	has->no_order = no_order(a, &p);
	has->order = !has->no_order;
	has->requests = has->requests && p.per_file > 0;
	has->work = has->requests && l.work;
	has->exact = has->requests && l.exact;
	if (has->requests)
		find_fill(a, &p);
	has->filled[RECORDED_TRAIN] = p.fill_to > 0;
	has->per_file = (double)p.per_file;
	for (size_t i = 0; i < p.files; i++)
		has->file_bytes =
			fmax(has->file_bytes, profile_file_bytes(&a->job->file[p.file[i]]));
	part_release(&p);
	part_make(a, true, &l, &p);
	if (has->requests && p.per_file > 0)
		find_fill(a, &p);
	has->filled[RECORDED_EVAL] = p.fill_to > 0;
	part_release(&p);
	lists_release(&l);
}

/* What of a part goes into the file; arrays are the caller's to free. */
struct made {
	uint64_t *bytes;
	uint32_t *sample;
	struct recorded_visits *lists;
	struct recorded_requests *requests;
	uint32_t *work;
};

static int make_order(const struct profile *a, const struct part *p, uint64_t most,
		      struct recorded_part *out, struct made *m, struct err *e)
{
	AUTO_FREE struct placed *placed =
		try_calloc(a->visits + 1, sizeof(*placed), "the order", e);
	uint32_t epochs = 0;
	size_t n;

	if (!placed)
		return -ENOMEM;
	n = place_visits(a, p, placed, &epochs);
	/* twice: the last epoch may become as long as the first */
	m->sample = try_calloc(2 * n + 1, sizeof(*m->sample), "the order", e);
	m->lists = try_calloc((size_t)epochs * a->trainers + 1, sizeof(*m->lists), "the order", e);
	if (m->sample && m->lists) {
		list_visits(a, p, placed, n, m->sample, m->lists);
		if (!p->evaluation && recorded_of_cut(a))
			fill_up_last(a, p, epochs, m->sample + n, m->lists);
		if (p->fill_to > 0 && fill_up(a, p, epochs, m->lists, &m->sample, e) < 0)
			return -ENOMEM;
		out->epochs = most && epochs > most ? most : epochs;
		out->visits = m->lists;
	}
	return m->sample && m->lists ? 0 : -ENOMEM;
}

#define US_MOST 4e9

/* Of each list, what the visits took beside it, in the mean. */
static int make_work(const struct profile *a, const struct part *p, struct recorded_part *out,
		     struct made *m, struct err *e)
{
	uint64_t each = p->per_file + 1, n = (p->files + 1) * each;
	AUTO_FREE double *sum = try_calloc(2 * n + 1, sizeof(*sum), "the work", e);

	m->work = sum ? try_calloc(n + 1, sizeof(*m->work), "the work", e) : NULL;
	if (!m->work)
		return -ENOMEM;
	for (size_t i = 0; i < a->visits; i++) {
		uint32_t k = number_of_visit(a, p, i);
		uint64_t at = k / p->per_file * each + 1 + k % p->per_file;

		if (!is_of(a, p, &a->visit[i]))
			continue;
		sum[2 * at] += p->lists->work[i] / 1e3;
		sum[2 * at + 1]++;
	}
	for (uint64_t i = 0; i < n; i++)
		if (sum[2 * i + 1] > 0)
			m->work[i] = (uint32_t)fmin(US_MOST, round(sum[2 * i] / sum[2 * i + 1]));
	out->work = m->work;
	return 0;
}

/* Lists of files and samples by their numbers. */
static int make_requests(const struct profile *a, const struct part *p, struct recorded_part *out,
			 struct made *m, struct err *e)
{
	const struct lists *l = p->lists;
	uint64_t each = p->per_file + 1;

	m->requests =
		try_calloc((p->files + 1) * each + 1, sizeof(*m->requests), "the requests", e);
	if (!m->requests)
		return -ENOMEM;
	for (size_t i = 0; i < p->files && !l->exact; i++)
		m->requests[i * each] = l->samples.opening[p->file[i]];
	for (size_t i = 0; i < a->visits; i++) {
		uint32_t n = number_of_visit(a, p, i);

		if (is_of(a, p, &a->visit[i]))
			m->requests[n / p->per_file * each + 1 + n % p->per_file] =
				l->exact ? l->visits.list[i]
					 : l->samples.sample[a->visit[i].sample];
	}
	out->samples_per_file = p->per_file;
	out->requests = m->requests;
	return l->work ? make_work(a, p, out, m, e) : 0;
}

static int make_part(const struct profile *a, const struct part *p, uint64_t epochs, bool requests,
		     struct recorded_part *out, struct made *m, struct err *e)
{
	bool order = !no_order(a, p);
	double sum = 0;

	*out = (struct recorded_part){.files = p->files + (p->fill_to > 0),
				      .samples_per_file = order && p->per_file ? p->per_file : 1};
	if (sizes_known(a, p)) {
		m->bytes = try_calloc(p->files + 2, sizeof(*m->bytes), "the sizes", e);
		if (!m->bytes)
			return -ENOMEM;
		for (size_t i = 0; i < p->files; i++) {
			m->bytes[i] = (uint64_t)a->job->file[p->file[i]].size;
			sum += (double)m->bytes[i];
		}
		m->bytes[p->files] = (uint64_t)(sum / (double)p->files);
		out->bytes = m->bytes;
	}
	if (requests && p->per_file > 0 && make_requests(a, p, out, m, e) < 0)
		return -ENOMEM;
	return order ? make_order(a, p, epochs, out, m, e) : 0;
}

int recorded_of_write(const struct profile *a, const char *path, uint64_t epochs, bool requests,
		      struct err *e)
{
	struct recorded r = {.ranks = a->trainers ? (uint32_t)a->trainers : 1};
	struct made made[RECORDED_PARTS] = {0};
	struct lists l = {0};
	int rc = 0;

	requests = requests && !sample_requests_unknown(a);
	if (requests)
		rc = lists_make(a, &l, e);

	for (int k = 0; k < RECORDED_PARTS && rc == 0; k++) {
		struct part p;

		part_make(a, k == RECORDED_EVAL, &l, &p);
		if (requests && p.per_file > 0)
			find_fill(a, &p);
		rc = make_part(a, &p, k == RECORDED_TRAIN ? epochs : 0, requests, &r.part[k],
			       &made[k], e);
		part_release(&p);
	}
	if (rc == 0)
		rc = recorded_write(path, &r, e);
	for (int k = 0; k < RECORDED_PARTS; k++) {
		free(made[k].bytes);
		free(made[k].sample);
		free(made[k].lists);
		free(made[k].requests);
		free(made[k].work);
	}
	lists_release(&l);
	return rc;
}

/* ---- requests of samples ---- */

/* Where every visit of a sample makes the same requests, one of them is kept. Where readers keep
 * files open, the first visit of a file has those of its opening, too: what it has in front of what
 * other visits of the sample have. Elsewhere (pages in a cache of a library, pieces at any place,
 * buffers) the visits themselves are kept. */

static const char *sample_requests_unknown(const struct profile *a)
{
	if (!(a->job->sees & JOB_SEES_REQUESTS) || a->visits == 0)
		return "the log has no requests";
	if (!(a->job->sees & JOB_SEES_OFFSETS))
		return "the log does not have the places of requests";
	return NULL;
}

/* ---- which visit a request belongs to ---- */

struct walk {
	const struct profile *a;
	uint32_t *of_process, *of_thread; /* the reader; JOB_NONE */
	size_t *next, *end;               /* of each reader: its place in `visit`, and the end */
	uint32_t *visit;                  /* by reader, in their order */
};

static void walk_begin(struct walk *w, const struct profile *a)
{
	*w = (struct walk){
		.a = a,
		.of_process = job_numbers(a->job->processes),
		.of_thread = job_numbers(a->job->threads),
		.next = xcalloc(a->readers + 1, sizeof(*w->next)),
		.end = xcalloc(a->readers + 1, sizeof(*w->end)),
		.visit = xcalloc(a->visits + 1, sizeof(*w->visit)),
	};
	for (size_t i = 0; i < a->readers; i++) {
		if (a->reader[i].thread == JOB_NONE)
			w->of_process[a->reader[i].process] = (uint32_t)i;
		else
			w->of_thread[a->reader[i].thread] = (uint32_t)i;
	}
	for (size_t i = 0; i < a->visits; i++)
		w->next[a->visit[i].reader + 1]++;
	for (size_t i = 0; i < a->readers; i++) {
		w->next[i + 1] += w->next[i];
		w->end[i] = w->next[i]; /* so far */
	}
	for (size_t i = 0; i < a->visits; i++)
		w->visit[w->end[a->visit[i].reader]++] = (uint32_t)i;
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
	const struct profile *a = w->a;
	uint32_t r = w->of_thread[v->thread], at;

	if (r == JOB_NONE)
		r = w->of_process[a->job->thread[v->thread].process];
	if (r == JOB_NONE || w->next[r] == w->end[r])
		return JOB_NONE;
	while (w->next[r] + 1 < w->end[r] &&
	       a->visit[w->visit[w->next[r] + 1]].begin_ns <= v->begin_ns)
		w->next[r]++;
	at = w->visit[w->next[r]];
	/* what lies between two visits of a file, as its directory, is of the next; else of the
	 * last */
	if (v->begin_ns > a->visit[at].end_ns && w->next[r] + 1 < w->end[r] &&
	    a->sample[a->visit[w->visit[w->next[r] + 1]].sample].file == v->file)
		return w->visit[w->next[r] + 1];
	return a->sample[a->visit[at].sample].file == v->file ? at : JOB_NONE;
}

static bool is_data_read(const struct profile *a, const struct job_event *v)
{
	return v->kind == JOB_READ && v->result > 0 && v->result <= UINT32_MAX && v->offset >= 0 &&
	       profile_is_data(a, v->file) && !profile_is_apart(a, v);
}

/* Of visits that are pieces of a stream. */
static int gather_pieces(const struct profile *a, struct of_visits *out, struct err *e)
{
	size_t all = 0;
	unsigned char *to;

	out->list = xcalloc(a->visits + 1, sizeof(*out->list));
	out->opens = xcalloc(a->visits + 1, sizeof(*out->opens));
	for (size_t i = 0; i < a->visits; i++)
		all += a->piece[i].n;
	to = out->bytes = try_calloc(all + 1, RECORDED_REQUEST_BYTES, "the requests", e);
	if (!to)
		return -ENOMEM;
	for (size_t i = 0; i < a->visits; i++) {
		const struct piece *p = &a->piece[i];

		out->list[i] = (struct recorded_requests){(uint32_t)p->n, to};
		for (size_t k = 0; k < p->n; k++, to += RECORDED_REQUEST_BYTES) {
			const struct job_event *v = &a->job->event[a->piece_event[p->first + k]];

			recorded_request_put(to, (uint64_t)v->offset, (uint32_t)v->result);
		}
	}
	return 0;
}

static int gather(const struct profile *a, struct of_visits *out, struct err *e)
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
static void part_openings(const struct profile *a, const struct of_visits *v,
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

/* ---- whether one visit of a sample tells of the others ---- */

#define ALIKE_LEAST 0.999 /* of the requests */

static bool same_list(const struct recorded_requests *x, const struct recorded_requests *y)
{
	return x->n == y->n && (x->n == 0 || memcmp(x->at, y->at, bytes_of(x)) == 0);
}

static double list_bytes(const struct recorded_requests *l)
{
	double sum = 0;

	for (uint32_t i = 0; i < l->n; i++) {
		uint64_t at;
		uint32_t n;

		recorded_request(l, i, &at, &n);
		sum += n;
	}
	return sum;
}

/* What the workload asks for where each sample has one list; whether that is what the job did. */
static bool alike(const struct profile *a, const struct lists *l, struct recorded_has *has)
{
	double others = 0;

	for (size_t i = 0; i < a->visits; i++) {
		const struct job_sample *s = &a->sample[a->visit[i].sample];
		const struct recorded_requests *had = &l->visits.list[i];
		const struct recorded_requests *sample = &l->samples.sample[a->visit[i].sample];
		const struct recorded_requests *opening = &l->samples.opening[s->file];
		uint32_t before = l->visits.opens[i] ? opening->n : 0;
		struct recorded_requests rest = behind(had, had->n > before ? before : 0);

		has->reads += before + sample->n;
		has->read_bytes += list_bytes(sample) + (before ? list_bytes(opening) : 0);
		if (!same_list(&rest, sample))
			others += fmax(had->n, before + sample->n);
	}
	return others <= (1 - ALIKE_LEAST) * has->reads;
}

#define HELD_LISTS 4000000u /* lists of requests, most of them empty */

/* Which lists of a file are the same. */
static void number_ways(const struct profile *a, struct lists *l)
{
	AUTO_FREE uint32_t *ways = xcalloc(a->job->files + 1, sizeof(*ways));
	struct map known = {0};

	l->number = xcalloc(a->visits + 1, sizeof(*l->number));
	l->per_file = 1;
	for (size_t i = 0; i < a->visits; i++) {
		uint32_t file = a->sample[a->visit[i].sample].file, n;
		const struct recorded_requests *list = &l->visits.list[i];
		uint64_t hash = 0xcbf29ce484222325u;

		for (size_t k = 0; k < bytes_of(list); k++)
			hash = (hash ^ list->at[k]) * 0x100000001b3u;
		n = map_get2(&known, file, (int64_t)hash);
		if (n == MAP_NONE) {
			n = ways[file]++;
			map_put2(&known, file, (int64_t)hash, n);
		}
		l->number[i] = n;
		RAISE(l->per_file, ways[file]);
	}
	/* as many as the files hold, where that can be */
	if (a->held_most <= HELD_LISTS / (a->job->files + 1))
		RAISE(l->per_file, a->held_most);
	map_release(&known);
}

/* Whether training and evaluation have as many samples in each file, and all files the same. */
static bool counts_alike(const struct profile *a)
{
	size_t each = 0;
	bool same = true;

	for (int k = 0; k < RECORDED_PARTS && same; k++) {
		struct part p;

		part_make(a, k == RECORDED_EVAL, NULL, &p);
		same = p.files == 0 || (p.per_file > 0 && (each == 0 || each == p.per_file));
		each = p.files ? p.per_file : each;
		part_release(&p);
	}
	return same;
}

static int lists_make(const struct profile *a, struct lists *l, struct err *e)
{
	struct recorded_has has = {0};
	int rc;

	l->samples = (struct sample_requests){
		.sample = xcalloc(a->samples + 1, sizeof(*l->samples.sample)),
		.opening = xcalloc(a->job->files + 1, sizeof(*l->samples.opening)),
	};
	rc = a->piece ? gather_pieces(a, &l->visits, e) : gather(a, &l->visits, e);
	if (rc < 0)
		return rc;
	if (profile_has(a, PROFILE_KEPT_OPEN))
		part_openings(a, &l->visits, &l->samples);
	else
		for (size_t i = 0; i < a->visits; i++)
			if (l->samples.sample[a->visit[i].sample].n == 0)
				l->samples.sample[a->visit[i].sample] = l->visits.list[i];
	l->work = recorded_work_of(a);
	l->exact = !alike(a, l, &has) || !counts_alike(a) || a->again || a->piece;
	/* without an order, samples are drawn, and then each needs one list */
	for (size_t i = 0; i < a->visits; i++)
		l->exact &= a->visit[i].batch != JOB_NONE || !a->reader[a->visit[i].reader].worker;
	if (l->exact) {
		number_ways(a, l);
		has.reads = has.read_bytes = 0;
		for (size_t i = 0; i < a->visits; i++) {
			has.reads += l->visits.list[i].n;
			has.read_bytes += list_bytes(&l->visits.list[i]);
		}
	}
	if (l->has) {
		l->has->reads = has.reads;
		l->has->read_bytes = has.read_bytes;
	}
	return 0;
}

static void lists_release(struct lists *l)
{
	free(l->visits.list);
	free(l->visits.opens);
	free(l->visits.bytes);
	free(l->samples.sample);
	free(l->samples.opening);
	free(l->number);
	free(l->work);
	*l = (struct lists){0};
}
