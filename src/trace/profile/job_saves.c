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
#include "trace/profile/profile_parts.h"

/* Between writes of a file whose opens the log does not show: of two checkpoints. */
#define APART_NS 100000000

/* Checkpoints whose distance is looked at: each costs a pass over the steps. */
#define CADENCE_MAX 64

struct save {
	uint32_t file, thread;
	int64_t begin_ns, end_ns, bytes;
	uint64_t writes;
	bool synced, renamed;
	uint32_t checkpoint;
};

struct saves {
	struct save *v;
	size_t n, room;
	uint64_t by_size[64];
	int64_t write_size; /* the one by which most bytes went */
};

static struct save *begin_save(struct saves *s, const struct job_event *v)
{
	if (s->n == s->room) {
		s->room = s->room ? 2 * s->room : 16;
		s->v = xrealloc(s->v, s->room * sizeof(*s->v));
	}
	s->v[s->n] = (struct save){
		.file = v->file, .thread = v->thread, .begin_ns = v->begin_ns, .end_ns = v->end_ns};
	return &s->v[s->n++];
}

static void collect(const struct profile *a, struct saves *s)
{
	const struct job *job = a->job;
	uint32_t *now = job_numbers(job->files);
	bool *opened = xcalloc(job->files + 1, sizeof(*opened));
	double step = profile_has(a, PROFILE_STEP) ? a->value[PROFILE_STEP].number : 0;
	int64_t apart_ns = APART_NS;

	if (step * 2e9 > APART_NS)
		apart_ns = (int64_t)(step * 2e9);
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
				begin_save(s, v);
				now[v->file] = (uint32_t)(s->n - 1);
			}
			x = &s->v[now[v->file]];
			x->bytes = i64_sum(x->bytes, v->result > 0 ? v->result : 0);
			x->writes++;
			if (v->result > 0)
				s->by_size[63 - (unsigned)__builtin_clzll(
							(unsigned long long)v->result)] +=
					(uint64_t)v->result;
		} else if (now[v->file] == JOB_NONE) {
			continue;
		}
		x = &s->v[now[v->file]];
		if (v->kind == JOB_WRITE || v->kind == JOB_SYNC || v->kind == JOB_CLOSE)
			if (v->end_ns > x->end_ns)
				x->end_ns = v->end_ns;
		x->synced |= v->kind == JOB_SYNC;
		x->renamed |= v->kind == JOB_RENAME;
	}
	free(opened);
	free(now);
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


/* Numbers of checkpoints; how many. */
static uint32_t cluster(const struct profile *a, struct saves *s)
{
	const struct profile_value *step =
		&a->value[profile_has(a, PROFILE_STEP) ? PROFILE_STEP : PROFILE_COMPUTE];
	double apart = profile_has(a, PROFILE_STEP) || profile_has(a, PROFILE_COMPUTE)
			       ? step->number * 0.5
			       : 1;
	uint32_t n = 0, first = 0;
	uint32_t *last = xcalloc(a->job->files + 1, sizeof(*last));
	uint32_t *wrote = xcalloc(a->job->processes + 1, sizeof(*wrote)); /* in which, last */
	int64_t end = INT64_MIN;

	qsort(s->v, s->n, sizeof(*s->v), by_begin);
	for (size_t i = 0; i < s->n; i++) {
		struct save *x = &s->v[i];

		if (i == 0 || last[x->file] == n ||
		    in_another_folder(a->job->file[x->file].name, a->job->file[first].name) ||
		    (x->begin_ns != JOB_UNKNOWN && (double)(x->begin_ns - end) / 1e9 > apart)) {
			n++;
			first = x->file;
		}
		x->checkpoint = n - 1;
		last[x->file] = n;
		if (x->end_ns > end)
			end = x->end_ns;
	}
	free(wrote);
	free(last);
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
		if (a->reader[v->reader].rank == 0 && !a->sample[v->sample].evaluation)
			n += !last || last->batch != v->batch;
	}
	return n;
}

/* Epochs that had begun; a save between two is after a whole number of them. */
static bool between_epochs(const struct profile *a, int64_t ns, double *epochs)
{
	uint32_t begun = 0, ended = 0, all = a->trainers ? a->trainer[0].epochs : 0;
	int64_t *first = xcalloc((size_t)all + 1, sizeof(*first)),
		*last = xcalloc((size_t)all + 1, sizeof(*last));

	for (size_t i = 0; i < all; i++) {
		first[i] = INT64_MAX;
		last[i] = INT64_MIN;
	}
	for (size_t i = 0; i < a->visits; i++) {
		const struct visit *v = &a->visit[i];

		if (a->sample[v->sample].evaluation || v->epoch >= all)
			continue;
		if (v->begin_ns < first[v->epoch])
			first[v->epoch] = v->begin_ns;
		if (v->end_ns > last[v->epoch])
			last[v->epoch] = v->end_ns;
	}
	for (size_t i = 0; i < all; i++) {
		begun += first[i] < ns;
		ended += last[i] <= ns;
	}
	free(last);
	free(first);
	*epochs = ended;
	return begun == ended;
}

static void say_cadence(struct profile *a, const int64_t *begin, uint32_t n)
{
	double *steps = xcalloc((size_t)n + 1, sizeof(*steps)),
	       *seconds = xcalloc((size_t)n + 1, sizeof(*seconds));
	uint64_t agree = 0, whole = 0;
	double apart = 0;

	if (n > CADENCE_MAX)
		n = CADENCE_MAX;
	for (uint32_t i = 0; i < n; i++) {
		double before = steps_before(a, begin[i]), epochs;

		steps[i] = before - (i > 0 ? steps_before(a, begin[i - 1]) : 0);
		if (before < 0)
			steps[i] = -1;
		if (i > 0)
			seconds[i - 1] = (double)(begin[i] - begin[i - 1]) / 1e9;
		whole += between_epochs(a, begin[i], &epochs);
	}
	if (n > 1) {
		qsort(seconds, n - 1, sizeof(*seconds), values_compare);
		profile_seen(a, PROFILE_CHECKPOINT_SECONDS, seconds[(n - 1) / 2])->text =
			n > 2 ? "median" : NULL;
	}
	if (n > 0 && steps[0] > 0) {
		qsort(steps, n, sizeof(*steps), values_compare);
		apart = steps[n / 2];
		for (uint32_t i = 0; i < n; i++)
			agree += steps[i] == apart;
		profile_inferred(a, PROFILE_CHECKPOINT_STEPS, apart,
				 FACT(JOB_BATCHES_BETWEEN_SAVES), agree, n);
	} else if (n > 0 && whole == n && profile_has(a, PROFILE_STEPS) && a->trainers > 0 &&
		   a->trainer[0].epochs > 0) {
		double epochs = 1;

		(void)between_epochs(a, begin[0], &epochs);
		if (epochs < 1)
			epochs = 1;
		profile_inferred(a, PROFILE_CHECKPOINT_STEPS,
				 epochs * a->value[PROFILE_STEPS].number / a->trainer[0].epochs,
				 FACT(JOB_SAVES_BETWEEN_EPOCHS), whole, n)
			->text = epochs == 1 ? "after each epoch" : NULL;
	} else if (n > 0) {
		profile_unknown(a, PROFILE_CHECKPOINT_STEPS,
				a->trains ? FACT(JOB_SAVE_STEP_NOT_SHOWN) : FACT(JOB_NO_TRAINING));
	}
	free(seconds);
	free(steps);
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

static void say_saves(struct profile *a, struct saves *s, uint32_t n)
{
	int64_t *begin = xcalloc((size_t)n + 1, sizeof(*begin));
	double *bytes = xcalloc((size_t)n + 1, sizeof(*bytes)), sum = 0, squares = 0;
	uint64_t synced = 0, renamed = 0;
	unsigned best = 0;

	for (size_t i = s->n; i-- > 0;) {
		begin[s->v[i].checkpoint] = s->v[i].begin_ns;
		bytes[s->v[i].checkpoint] += (double)s->v[i].bytes;
		synced += s->v[i].synced;
		renamed += s->v[i].renamed;
	}
	profile_seen(a, PROFILE_CHECKPOINTS, n);
	for (uint32_t i = 0; i < n; i++)
		sum += bytes[i];
	for (uint32_t i = 0; i < n; i++)
		squares += pow(bytes[i] - sum / n, 2);
	profile_seen(a, PROFILE_CHECKPOINT_BYTES, sum / n)->stdev =
		n > 1 ? sqrt(squares / (n - 1)) : -1;
	profile_seen(a, PROFILE_CHECKPOINT_FILES, (double)s->n / n);
	for (unsigned i = 1; i < 64; i++)
		if (s->by_size[i] > s->by_size[best])
			best = i;
	s->write_size = INT64_C(1) << best;
	{
		uint64_t writes = 0;
		double moved = 0;

		for (size_t i = 0; i < a->job->events; i++) {
			const struct job_event *v = &a->job->event[i];

			if (v->kind != JOB_WRITE || v->file == JOB_NONE || v->result <= 0 ||
			    a->role[v->file] != FILE_CHECKPOINT || v->result < s->write_size ||
			    v->result / 2 >= s->write_size)
				continue;
			writes++;
			moved += (double)v->result;
		}
		profile_seen(a, PROFILE_CHECKPOINT_WRITE, writes ? moved / (double)writes : 0)
			->text = "mean of those by which most bytes went";
	}
	if (a->job->sees & JOB_SEES_METADATA) {
		profile_seen(a, PROFILE_CHECKPOINT_SYNC, synced > 0);
		profile_seen(a, PROFILE_CHECKPOINT_RENAME, renamed > 0);
	}
	if (a->job->sees & JOB_SEES_TIMES) {
		say_cadence(a, begin, n);
		say_stops(a, s);
	}
	free(bytes);
	free(begin);
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
		if (g->in_bin[i] > most)
			most = g->in_bin[i];
	return g->bytes > 0 && g->begins <= 1 && g->write < GROWS_WRITE &&
	       (double)(g->last_ns - g->first_ns) >= GROWS_LONG * training_ns &&
	       (double)most < GROWS_MOST * (double)g->bytes;
}

/* Events, metrics, a run's record: a file that is written through the training, however large it
 * gets, and never from its begin again, is no checkpoint. */
static void drop_grown_files(struct profile *a)
{
	const struct job *job = a->job;
	struct growth *g = xcalloc(job->files + 1, sizeof(*g));
	size_t *left = xcalloc(a->groups + 1, sizeof(*left));
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
		if (v->result > g[v->file].write)
			g[v->file].write = v->result;
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
	free(left);
	free(g);
}

/* Where nothing shows a training, a large file that is written may be anything; a checkpoint is one
 * by its name. */
static void drop_other_files(struct profile *a)
{
	bool any = false;

	for (size_t g = 0; g < a->groups; g++)
		if (a->group[g].role == FILE_CHECKPOINT &&
		    !profile_is_checkpoint_name(a->group[g].extension)) {
			a->group[g].role = FILE_OTHER;
			any = true;
		}
	if (any)
		profile_sort_groups(a);
}

void profile_saves(struct profile *a)
{
	struct saves s = {0};
	uint32_t n;

	if (!a->trains)
		drop_other_files(a);
	else if (a->visits > 0 && a->job->sees & JOB_SEES_TIMES)
		drop_grown_files(a);
	collect(a, &s);
	if (s.n > 0) {
		n = cluster(a, &s);
		say_saves(a, &s, n);
	}
	free(s.v);
}
