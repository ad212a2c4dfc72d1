/* Checkpoints: files written from the beginning, in one go, by those who train.
 *
 * Files that are written within one step of each other are one checkpoint. How many steps are
 * between two is counted where the log shows steps; else checkpoints may lie between epochs. */
#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/compare.h"
#include "base/saturate.h"
#include "base/vector.h"
#include "trace/profile/profile_parts.h"

/* Between writes of a file whose opens the log does not show: of two checkpoints. */
#define APART_NS 100000000

/* Checkpoints whose distance is looked at: each costs a pass over the steps. */
#define CADENCE_MAX 64

struct save {
	uint32_t file, thread;
	int64_t begin_ns, end_ns, bytes;
	bool synced, renamed;
	uint32_t checkpoint;
};

struct saves {
	struct save *v;
	size_t n, room;
	/* of writes of 2^i to 2^(i+1) - 1 bytes: */
	double writes_of[64], bytes_of[64];
};

static void collect(const struct profile *a, struct saves *s)
{
	const struct job *job = a->job;
	AUTO_FREE uint32_t *now = job_numbers(job->files);
	AUTO_FREE bool *opened = xcalloc(job->files + 1, sizeof(*opened));
	double step = profile_has(a, PROFILE_STEP) ? a->value[PROFILE_STEP].number : 0;
	int64_t apart_ns = (int64_t)fmax(APART_NS, step * 2e9);

	for (size_t i = 0; i < job->events; i++) {
		const struct job_event *v = &job->event[i];
		struct save *x;

		if (v->file == JOB_NONE || a->role[v->file] != FILE_CHECKPOINT || v->result < 0)
			continue;
		if (v->kind == JOB_OPEN && (v->flags & O_ACCMODE) != O_RDONLY) {
			opened[v->file] = true;
			now[v->file] = JOB_NONE;
			continue;
		}
		if (v->kind == JOB_WRITE) {
			bool again = !opened[v->file] && now[v->file] != JOB_NONE &&
				     (v->offset == 0 ||
				      (v->begin_ns != JOB_UNKNOWN &&
				       v->begin_ns - s->v[now[v->file]].end_ns > apart_ns));

			if (now[v->file] == JOB_NONE || again) {
				now[v->file] = (uint32_t)s->n;
				VECTOR_PUSH(s->v, s->n, s->room,
					    {.file = v->file,
					     .thread = v->thread,
					     .begin_ns = v->begin_ns,
					     .end_ns = v->end_ns});
			}
			x = &s->v[now[v->file]];
			x->bytes = i64_sum(x->bytes, v->result);
			if (v->result > 0) {
				s->writes_of[log2_of(v->result)]++;
				s->bytes_of[log2_of(v->result)] += (double)v->result;
			}
		} else if (now[v->file] == JOB_NONE) {
			continue;
		}
		x = &s->v[now[v->file]];
		if (v->kind == JOB_WRITE || v->kind == JOB_SYNC || v->kind == JOB_CLOSE)
			RAISE(x->end_ns, v->end_ns);
		x->synced |= v->kind == JOB_SYNC;
		x->renamed |= v->kind == JOB_RENAME;
	}
}

static int by_begin(const void *x, const void *y)
{
	const struct save *a = x, *b = y;

	return ORDER(a->begin_ns, b->begin_ns);
}

/* Whether one of two files of a name is in another folder: that of another checkpoint. */
static bool in_another_folder(const char *name, const char *of)
{
	const char *x = strrchr(name, '/'), *y = strrchr(of, '/');

	return x && y && strcmp(x, y) == 0 && strcmp(name, of) != 0;
}

/* Whether names differ only in their digits: e1.pt, e2.pt. */
static bool numbered_alike(const char *x, const char *y)
{
	for (;; x++, y++) {
		x += strspn(x, "0123456789");
		y += strspn(y, "0123456789");
		if (*x != *y || !*x)
			return *x == *y;
	}
}

/* Numbers of checkpoints; how many. */
static uint32_t cluster(const struct profile *a, struct saves *s)
{
	const struct profile_value *step =
		&a->value[profile_has(a, PROFILE_STEP) ? PROFILE_STEP : PROFILE_COMPUTE];
	double apart = profile_has(a, PROFILE_STEP) || profile_has(a, PROFILE_COMPUTE)
			       ? step->number * 0.5
			       : 1;
	bool alone = !profile_has(a, PROFILE_STEP) && !profile_has(a, PROFILE_COMPUTE);
	uint32_t n = 0, first = 0, thread = JOB_NONE;
	AUTO_FREE uint32_t *last = xcalloc(a->job->files + 1, sizeof(*last));
	int64_t end = INT64_MIN;

	qsort(s->v, s->n, sizeof(*s->v), by_begin);
	for (size_t i = 0; i < s->n; i++) {
		struct save *x = &s->v[i];

		if (i == 0 || last[x->file] == n ||
		    in_another_folder(a->job->file[x->file].name, a->job->file[first].name) ||
		    /* one thread writes the files of one checkpoint under several names */
		    (alone && x->thread == thread && x->file != first &&
		     numbered_alike(a->job->file[x->file].name, a->job->file[first].name)) ||
		    (x->begin_ns != JOB_UNKNOWN && (double)(x->begin_ns - end) / 1e9 > apart)) {
			n++;
			first = x->file;
			thread = x->thread;
		}
		x->checkpoint = n - 1;
		last[x->file] = n;
		RAISE(end, x->end_ns);
	}
	return n;
}

/* The steps that training had made when a save began; by the log's steps, or by the batches that
 * the trainer read itself; negative: not known. */
static double steps_before(const struct profile *a, int64_t ns)
{
	double n = 0;

	if (a->steps > 0) {
		for (size_t i = 0; i < a->steps && a->step[i].rank == a->step[0].rank; i++)
			n += !a->step[i].evaluation && a->step[i].taken_ns <= ns;
		return n;
	}
	if (!profile_has(a, PROFILE_BATCH) || !profile_has(a, PROFILE_WORKERS) ||
	    a->value[PROFILE_WORKERS].number > 0)
		return -1;
	for (size_t i = 0; i < a->visits; i++) {
		const struct visit *v = &a->visit[i], *last = i > 0 ? v - 1 : NULL;

		if (v->begin_ns > ns)
			break;
		if (a->reader[v->reader].rank == 0 && !is_eval(a, v))
			n += !last || last->batch != v->batch;
	}
	return n;
}

/* Epochs that had begun; a save between two is after a whole number of them. */
static bool between_epochs(const struct profile *a, int64_t ns, double *epochs)
{
	uint32_t begun = 0, ended = 0, all = a->trainers ? a->trainer[0].epochs : 0;
	AUTO_FREE int64_t *first = xcalloc((size_t)all + 1, sizeof(*first)),
			  *last = xcalloc((size_t)all + 1, sizeof(*last));

	for (size_t i = 0; i < all; i++) {
		first[i] = INT64_MAX;
		last[i] = INT64_MIN;
	}
	for (size_t i = 0; i < a->visits; i++) {
		const struct visit *v = &a->visit[i];

		if (is_eval(a, v) || v->epoch >= all)
			continue;
		LOWER(first[v->epoch], v->begin_ns);
		RAISE(last[v->epoch], v->end_ns);
	}
	for (size_t i = 0; i < all; i++) {
		begun += first[i] < ns;
		ended += last[i] <= ns;
	}
	*epochs = ended;
	return begun == ended;
}

/* Of one checkpoint at least. */
static void say_cadence(struct profile *a, const int64_t *begin, uint32_t n)
{
	struct values steps = {0}, seconds = {0};
	uint64_t agree = 0, whole = 0;
	double apart, last = 0, epochs = 1;

	LOWER(n, CADENCE_MAX);
	for (uint32_t i = 0; i < n; i++) {
		double before = steps_before(a, begin[i]), ended;

		values_add(&steps, before < 0 ? -1 : before - last);
		last = before;
		if (i > 0)
			values_add(&seconds, (double)(begin[i] - begin[i - 1]) / 1e9);
		whole += between_epochs(a, begin[i], &ended);
		if (i == 0)
			RAISE(epochs, ended);
	}
	if (n > 1)
		profile_seen(a, PROFILE_CHECKPOINT_SECONDS, values_middle(&seconds))->text =
			n > 2 ? "median" : NULL;
	if (steps.v[0] > 0) {
		apart = values_middle(&steps);
		for (uint32_t i = 0; i < n; i++)
			agree += steps.v[i] == apart;
		profile_inferred(a, PROFILE_CHECKPOINT_STEPS, apart,
				 FACT(JOB_BATCHES_BETWEEN_SAVES), agree, n);
	} else if (whole == n && profile_has(a, PROFILE_STEPS) && a->trainers > 0 &&
		   a->trainer[0].epochs > 0) {
		profile_inferred(a, PROFILE_CHECKPOINT_STEPS,
				 epochs * a->value[PROFILE_STEPS].number / a->trainer[0].epochs,
				 FACT(JOB_SAVES_BETWEEN_EPOCHS), whole, n)
			->text = epochs == 1 ? "after each epoch" : NULL;
	} else {
		profile_unknown(a, PROFILE_CHECKPOINT_STEPS, FACT(JOB_SAVE_STEP_NOT_SHOWN));
	}
	free(seconds.v);
	free(steps.v);
}

/* Whether the thread that takes batches wrote them. */
static void say_stops(struct profile *a, const struct saves *s)
{
	uint64_t own = 0;

	/* Darshan's requests have no thread */
	if (!(a->job->sees & JOB_SEES_PROCESSES) && !(a->job->sees & JOB_SEES_COMPUTE)) {
		profile_unknown(a, PROFILE_CHECKPOINT_STOPS, FACT(JOB_SAVE_THREAD_NOT_SHOWN));
		return;
	}

	for (size_t i = 0; i < s->n; i++) {
		const struct job_thread *t = &a->job->thread[s->v[i].thread];
		bool by_trainer = false;

		for (size_t k = 0; k < a->trainers && !by_trainer; k++)
			by_trainer = a->trainer[k].process == t->process &&
				     (a->trainer[k].thread == s->v[i].thread ||
				      t->tid == a->job->process[t->process].pid ||
				      a->trainer[k].thread == JOB_NONE);
		own += by_trainer;
	}
	profile_inferred(a, PROFILE_CHECKPOINT_STOPS, 2 * own > s->n, FACT(JOB_SAVE_THREAD),
			 2 * own > s->n ? own : s->n - own, s->n);
}

static void say_saves(struct profile *a, const struct saves *s, uint32_t n)
{
	AUTO_FREE int64_t *begin = xcalloc(n, sizeof(*begin));
	AUTO_FREE double *bytes = xcalloc(n, sizeof(*bytes));
	struct values size = {bytes, n, n};
	bool synced = false, renamed = false;
	unsigned best = 0;

	for (size_t i = s->n; i-- > 0;) {
		begin[s->v[i].checkpoint] = s->v[i].begin_ns;
		bytes[s->v[i].checkpoint] += (double)s->v[i].bytes;
		synced |= s->v[i].synced;
		renamed |= s->v[i].renamed;
	}
	profile_seen(a, PROFILE_CHECKPOINTS, n);
	profile_seen(a, PROFILE_CHECKPOINT_BYTES, values_mean(&size))->stdev = values_stdev(&size);
	profile_seen(a, PROFILE_CHECKPOINT_FILES, (double)s->n / n);
	for (unsigned i = 1; i < 64; i++)
		if (s->bytes_of[i] > s->bytes_of[best])
			best = i;
	profile_seen(a, PROFILE_CHECKPOINT_WRITE, s->bytes_of[best] / fmax(1, s->writes_of[best]))
		->text = "mean of those by which most bytes went";
	if (a->job->sees & JOB_SEES_METADATA) {
		profile_seen(a, PROFILE_CHECKPOINT_SYNC, synced);
		profile_seen(a, PROFILE_CHECKPOINT_RENAME, renamed);
	}
	if (a->job->sees & JOB_SEES_TIMES) {
		say_cadence(a, begin, n);
		say_stops(a, s);
	}
}

#define GROWS_BINS 10
#define GROWS_MOST 0.5        /* of the bytes of a file that grows come in one tenth of its time */
#define GROWS_WRITE (1 << 20) /* records are smaller */
#define GROWS_LONG 0.3        /* of the time of training, in which it grows */

/* How a file was written. */
struct growth {
	int64_t first_ns, last_ns, bytes;
	int64_t in_bin[GROWS_BINS];
	uint32_t begins; /* writes at its begin */
	int64_t write;   /* the largest */
};

static bool may_grow(const struct profile *a, const struct job_event *v)
{
	return v->kind == JOB_WRITE && v->file != JOB_NONE && v->result > 0 &&
	       v->begin_ns != JOB_UNKNOWN && a->role[v->file] == FILE_CHECKPOINT &&
	       !profile_is_checkpoint_name(a->group[a->group_of[v->file]].extension);
}

static bool grows(const struct growth *g, double training_ns)
{
	int64_t most = 0;

	for (int i = 0; i < GROWS_BINS; i++)
		RAISE(most, g->in_bin[i]);
	return g->bytes > 0 && g->begins <= 1 && g->write < GROWS_WRITE &&
	       (double)(g->last_ns - g->first_ns) >= GROWS_LONG * training_ns &&
	       (double)most < GROWS_MOST * (double)g->bytes;
}

/* Events, metrics, a run's record: a file that is written through the training, however large it
 * gets, and never from its begin again, is no checkpoint. */
static void drop_grown_files(struct profile *a)
{
	const struct job *job = a->job;
	AUTO_FREE struct growth *g = xcalloc(job->files + 1, sizeof(*g));
	AUTO_FREE size_t *left = xcalloc(a->groups + 1, sizeof(*left));
	double training_ns = (double)(a->visit[a->visits - 1].end_ns - a->visit[0].begin_ns);
	bool any = false;

	for (size_t i = 0; i < job->events; i++) {
		const struct job_event *v = &job->event[i];

		if (!may_grow(a, v))
			continue;
		if (g[v->file].bytes == 0)
			g[v->file].first_ns = v->begin_ns;
		g[v->file].last_ns = v->begin_ns;
		g[v->file].bytes = i64_sum(g[v->file].bytes, v->result);
		g[v->file].begins += v->offset == 0;
		RAISE(g[v->file].write, v->result);
	}
	for (size_t i = 0; i < job->events; i++) {
		const struct job_event *v = &job->event[i];
		struct growth *x;
		double at;

		if (!may_grow(a, v))
			continue;
		x = &g[v->file];
		at = (double)(v->begin_ns - x->first_ns) / ((double)(x->last_ns - x->first_ns) + 1);
		x->in_bin[(int)(at * GROWS_BINS)] += v->result;
	}
	for (size_t i = 0; i < job->files; i++) {
		if (a->role[i] != FILE_CHECKPOINT)
			continue;
		if (grows(&g[i], training_ns)) {
			a->role[i] = FILE_LOG;
			any = true;
		} else {
			left[a->group_of[i]]++;
		}
	}
	for (size_t i = 0; any && i < a->groups; i++)
		if (a->group[i].role == FILE_CHECKPOINT && left[i] == 0)
			a->group[i].role = FILE_LOG;
}

void profile_saves(struct profile *a)
{
	struct saves s = {0};

	if (a->visits > 0 && a->job->sees & JOB_SEES_TIMES)
		drop_grown_files(a);
	collect(a, &s);
	if (s.n > 0)
		say_saves(a, &s, cluster(a, &s));
	free(s.v);
}
