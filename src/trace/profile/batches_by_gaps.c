/* Batches as runs of samples between gaps in which a reader waits: the threshold between short and
 * long gaps is the one of the widest empty places among the logarithms of gaps for which most runs
 * are alike. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/compare.h"
#include "base/vector.h"
#include "trace/profile/profile_parts.h"

#define RUNS_ALIKE 0.7
#define WIDEST 16    /* places that are tried as the threshold */
#define EXPLAINS 0.2 /* of the samples, by runs that are alike */
#define GAPS_MIN 6   /* fewer have no threshold */

static double gap_before(const struct batches *b, size_t i)
{
	const struct visit *v = batches_visit(b, i), *last = batches_visit(b, i - 1);
	/* of threads that read at once, from begin to begin */
	int64_t gap = v->begin_ns - (b->threads ? last->begin_ns : last->end_ns);

	return gap > 100 ? (double)gap / 1e9 : 1e-7;
}

struct runs {
	struct counts middle, first; /* lengths; of the first run of a reader in a pass */
	struct counts last;
};

/* Runs between gaps above the threshold. */
static void count_runs(const struct batches *b, double threshold, bool evaluation, struct runs *out)
{
	size_t n = 0;
	bool first = true;

	*out = (struct runs){0};
	for (size_t i = 0; i < b->a->visits; i++) {
		bool end = !batches_follows(b, i + 1);

		if (is_eval(b->a, batches_visit(b, i)) != evaluation)
			continue;
		if (!batches_follows(b, i)) {
			n = 0;
			first = true;
		}
		n++;
		if (!end && gap_before(b, i + 1) <= threshold)
			continue;
		counts_add(first ? &out->first : end ? &out->last : &out->middle, n);
		first = false;
		n = 0;
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
	const struct jump *a = x, *b = y;

	return ORDER(b->width, a->width);
}

/* The threshold for which most runs are alike; 0: none. */
static double find_threshold(const struct batches *b, bool evaluation, uint32_t *batch,
			     uint64_t *agree, uint64_t *of)
{
	struct values gap = {0};
	AUTO_FREE struct jump *jump = NULL;
	size_t jumps = 0;
	double best = 0, threshold = 0;

	for (size_t i = 0; i < b->a->visits; i++)
		if (batches_follows(b, i) && is_eval(b->a, batches_visit(b, i)) == evaluation)
			values_add(&gap, log(gap_before(b, i)));
	values_sort(gap.v, gap.n);
	jump = xcalloc(gap.n + 1, sizeof(*jump));
	for (size_t i = 2; i + 2 < gap.n && gap.n >= GAPS_MIN; i++)
		jump[jumps++] =
			(struct jump){gap.v[i + 1] - gap.v[i], exp((gap.v[i + 1] + gap.v[i]) / 2)};
	free(gap.v);
	qsort(jump, jumps, sizeof(*jump), by_width);
	for (size_t i = 0; i < jumps && i < WIDEST && jump[i].width > 0.05; i++) {
		struct runs runs;
		uint64_t same;
		uint32_t length;
		double share, score;

		count_runs(b, jump[i].at, evaluation, &runs);
		length = counts_mode(&runs.middle, &same);
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
	return threshold;
}

/* Numbers of the runs; a first run of several batches is cut. */
static void number_batches(struct batches *b)
{
	uint32_t batch = 0, n = 0;

	for (size_t i = 0; i < b->a->visits; i++) {
		struct visit *v = batches_visit(b, i);
		uint32_t most = b->batch[is_eval(b->a, v)];
		double threshold = b->threshold_s[is_eval(b->a, v)];

		if (i == b->begin[b->sequence[v->reader]]) {
			batch = n = 0;
		} else if (!batches_follows(b, i) ||
			   (n == most && has_workers(b->a) && !b->threads) ||
			   (threshold > 0 && gap_before(b, i) > threshold)) {
			batch++;
			n = 0;
		}
		v->batch = batch;
		n++;
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

static int by_arrival(const void *x, const void *y)
{
	const struct arrival *a = x, *b = y;

	return ORDER(a->rank, b->rank) ?: ORDER(a->epoch, b->epoch) ?: ORDER(a->at, b->at);
}

/* When each rank's first batch of each pass was read: the end of the batch of reader 0. */
struct firsts {
	size_t *of_rank; /* where its passes begin in `s` */
	double *s;       /* negative: not known */
};

static struct firsts find_firsts(const struct batches *b)
{
	const struct profile *a = b->a;
	struct firsts f = {.of_rank = xcalloc(a->trainers + 1, sizeof(*f.of_rank))};

	for (size_t t = 0; t < a->trainers; t++)
		f.of_rank[t + 1] = f.of_rank[t] + a->trainer[t].epochs;
	f.s = xcalloc(f.of_rank[a->trainers] + 1, sizeof(*f.s));
	for (size_t i = 0; i < f.of_rank[a->trainers]; i++)
		f.s[i] = -1;
	for (size_t i = 0, n = 0; i < a->visits; i++) {
		const struct visit *v = batches_visit(b, i);
		const struct job_reader *r = &a->reader[v->reader];

		n = batches_follows(b, i) ? n + 1 : 1;
		if (r->number == 0 && n == b->batch[0] && !is_eval(a, v) &&
		    v->epoch < a->trainer[r->rank].epochs)
			f.s[f.of_rank[r->rank] + v->epoch] = (double)v->end_ns / 1e9;
	}
	return f;
}

static void find_arrivals(const struct batches *b, struct arrivals *out)
{
	const struct profile *a = b->a;
	struct firsts firsts = find_firsts(b);
	uint32_t readers = (uint32_t)a->value[PROFILE_WORKERS].number, first = 0;

	for (size_t i = 0; i < a->visits; i++) {
		const struct visit *v = batches_visit(b, i);
		const struct job_reader *r = &a->reader[v->reader];
		uint32_t index;

		if (is_eval(a, v) || v->epoch >= a->trainer[r->rank].epochs)
			continue;
		if (!batches_follows(b, i))
			first = v->batch;
		index = v->batch - first;
		if (!batches_follows(b, i) || gap_before(b, i) <= b->threshold_s[0])
			continue;
		VECTOR_PUSH(out->v, out->n, out->room,
			    {.rank = r->rank,
			     .epoch = v->epoch,
			     .index = index,
			     .number = r->number,
			     .readers = readers,
			     .at = (uint64_t)index * readers + r->number,
			     .s = (double)v->begin_ns / 1e9,
			     .first_s = firsts.s[firsts.of_rank[r->rank] + v->epoch]});
	}
	free(firsts.s);
	free(firsts.of_rank);
	if (out->n > 0)
		qsort(out->v, out->n, sizeof(*out->v), by_arrival);
}

/* Where the trainer decides the pace: an arrival comes so many steps after the first batch as the
 * trainer has taken since, which is its number less what was read ahead. */
static void prefetch_by_arrivals(struct profile *a, const struct arrivals *s, double step)
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
			counts_add(&c, (size_t)round(batches));
	}
	ahead = counts_mode(&c, &agree);
	if (ahead > 0 && agree >= 3 && (double)agree >= RUNS_ALIKE * (double)known)
		profile_inferred(a, PROFILE_PREFETCH, (double)ahead * s->v[0].readers,
				 FACT(JOB_READ_AHEAD_BY_TIMES), agree, known);
	else
		profile_unknown(a, PROFILE_PREFETCH, FACT(JOB_READ_AHEAD_TIMES_DIFFER));
	free(c.of);
}

/* Computation is in the step; more is not known of it. */
static void say_bound(struct profile *a, double step)
{
	profile_inferred(a, PROFILE_COMPUTE, step, FACT(JOB_COMPUTE_IN_STEP), 0, 0)->at_most = true;
}

static void times_with_workers(struct batches *b)
{
	struct profile *a = b->a;
	struct arrivals s = {0};
	struct values period = {0};
	double step;

	find_arrivals(b, &s);
	for (size_t i = 1; i < s.n; i++) {
		const struct arrival *v = &s.v[i], *last = v - 1;

		if (v->rank == last->rank && v->epoch == last->epoch && v->at > last->at &&
		    v->at - last->at <= v->readers && v->s > last->s)
			values_add(&period, (v->s - last->s) / (double)(v->at - last->at));
	}
	if (period.n > 2) {
		step = batches_say_step(a, &period, FACT(JOB_READER_TO_READER));
		say_bound(a, step);
		prefetch_by_arrivals(a, &s, step);
	} else {
		profile_unknown(a, PROFILE_COMPUTE, FACT(JOB_FEW_WAITS));
		profile_unknown(a, PROFILE_PREFETCH, FACT(JOB_FEW_WAITS));
	}
	free(period.v);
	free(s.v);
}

/* From the begin of a batch to that of the next, and the gaps before batches and between samples.
 */
struct gaps {
	struct values period, large, small;
};

static struct gaps find_gaps(const struct batches *b, bool evaluation)
{
	double threshold = b->threshold_s[evaluation];
	struct gaps g = {0};
	int64_t begin = JOB_UNKNOWN; /* of the batch, where a gap was before it */

	for (size_t i = 0; i < b->a->visits; i++) {
		const struct visit *x = batches_visit(b, i);
		double gap;

		if (is_eval(b->a, x) != evaluation)
			continue;
		if (!batches_follows(b, i)) {
			begin = JOB_UNKNOWN;
			continue;
		}
		gap = gap_before(b, i);
		values_add(gap > threshold ? &g.large : &g.small, gap);
		if (gap <= threshold)
			continue;
		if (begin != JOB_UNKNOWN)
			values_add(&g.period, (double)(x->begin_ns - begin) / 1e9);
		begin = x->begin_ns;
	}
	return g;
}

static void gaps_release(struct gaps *g)
{
	free(g->period.v);
	free(g->large.v);
	free(g->small.v);
}

static void times_without_workers(struct batches *b, bool evaluation)
{
	struct profile *a = b->a;
	struct gaps g = find_gaps(b, evaluation);

	if (g.period.n > 2) {
		double large = values_median(&g.large);

		if (!evaluation)
			batches_say_step(a, &g.period, FACT(JOB_BATCH_TO_BATCH));
		profile_inferred(a, evaluation ? PROFILE_EVAL_COMPUTE : PROFILE_COMPUTE,
				 large - values_median(&g.small), FACT(JOB_GAPS_LESS_SHORT),
				 values_near(&g.large, large), g.large.n);
	}
	gaps_release(&g);
}

/* Threads share a queue: how long the trainer computes, and how far they are ahead, is not seen. */
static void times_with_threads(struct batches *b)
{
	struct profile *a = b->a;
	struct gaps g = find_gaps(b, false);

	profile_unknown(a, PROFILE_PREFETCH, FACT(JOB_THREADS_SHARE));
	if (g.period.n > 2)
		say_bound(a, batches_say_step(a, &g.period, FACT(JOB_BATCH_TO_BATCH)));
	else
		profile_unknown(a, PROFILE_COMPUTE, FACT(JOB_FEW_WAITS));
	gaps_release(&g);
}

static void times_by_gaps(struct batches *b)
{
	if (b->threads) {
		times_with_threads(b);
	} else if (has_workers(b->a)) {
		times_with_workers(b);
	} else {
		times_without_workers(b, false);
		if (b->threshold_s[1] > 0)
			times_without_workers(b, true);
	}
}

static bool same_folder(const struct profile *a, const struct visit *x, const struct visit *y)
{
	const char *f = a->job->file[a->sample[x->sample].file].name;
	const char *g = a->job->file[a->sample[y->sample].file].name;
	const char *end = strrchr(f, '/');

	return end ? strncmp(f, g, (size_t)(end - f) + 1) == 0 && strrchr(g, '/') == g + (end - f)
		   : !strrchr(g, '/');
}

#define FOLDERS 0.8      /* of the long gaps are between two folders */
#define GAPS_OF_TIME 0.2 /* of the time, of one pass without workers */

/* Whether what lies between the long gaps is explained by anything but batches. Programs that walk
 * through folders stop between them, and one that reads files once may stop for many reasons: what
 * it computes is little of its time. */
static struct fact other_reason(const struct batches *b)
{
	const struct profile *a = b->a;
	size_t gaps = 0, between = 0, inside = 0;
	double waited = 0, all = 0;

	for (size_t i = 0; i < a->visits; i++) {
		const struct visit *v = batches_visit(b, i), *last;
		bool other;

		if (is_eval(a, v) || !batches_follows(b, i))
			continue;
		last = batches_visit(b, i - 1);
		other = !same_folder(a, v, last);
		all += (double)(v->end_ns - last->end_ns) / 1e9;
		if (gap_before(b, i) > b->threshold_s[0]) {
			waited += gap_before(b, i);
			gaps++;
			between += other;
		} else {
			inside += other;
		}
	}
	if (gaps > 0 && inside == 0 && (double)between >= FOLDERS * (double)gaps)
		return FACT(JOB_PAUSES_BETWEEN_FOLDERS);
	if (!has_workers(a) && a->trainer[0].epochs < 2 && waited < GAPS_OF_TIME * all)
		return FACT(JOB_PAUSES_SHORT);
	return (struct fact){0};
}

void batches_by_gaps(struct batches *b)
{
	struct profile *a = b->a;
	uint64_t agree = 0, of = 0, batches = 0, all = 0;
	bool whole = true;
	struct fact other = {0};
	AUTO_FREE size_t *in_epoch = NULL;
	uint32_t epochs = 0, batch;

	b->threshold_s[0] = find_threshold(b, false, &b->batch[0], &agree, &of);
	if (b->threshold_s[0] > 0)
		other = other_reason(b);
	if (!other.reason && (double)agree * b->batch[0] < EXPLAINS * (double)a->visits)
		b->threshold_s[0] = 0;
	if (b->threshold_s[0] == 0 || other.reason) {
		struct fact why = other.reason     ? other
				  : has_workers(a) ? FACT(JOB_WAITED_FOR_DATA)
						   : FACT(JOB_GAPS_OF_ONE_KIND);

		profile_unknown(a, PROFILE_BATCH, why);
		profile_unknown(a, PROFILE_COMPUTE, why);
		if (has_workers(a))
			profile_unknown(a, PROFILE_PREFETCH, why);
		return;
	}
	batch = b->batch[0];
	profile_inferred(a, PROFILE_BATCH, batch, FACT(JOB_BETWEEN_LONG_GAPS), agree, of);
	if (profile_has(a, PROFILE_EVALUATIONS)) {
		b->threshold_s[1] = find_threshold(b, true, &b->batch[1], &agree, &of);
		if (b->threshold_s[1] > 0)
			profile_inferred(a, PROFILE_EVAL_BATCH, b->batch[1],
					 FACT(JOB_BETWEEN_LONG_GAPS), agree, of);
		else
			profile_unknown(a, PROFILE_EVAL_BATCH, FACT(JOB_FEW_GAPS));
	}
	number_batches(b);
	times_by_gaps(b);
	/* steps of rank 0 */
	epochs = a->trainer[0].epochs;
	in_epoch = xcalloc((size_t)epochs + 1, sizeof(*in_epoch));
	for (size_t i = 0; i < a->visits; i++) {
		const struct visit *v = &a->visit[i];

		if (a->reader[v->reader].rank == 0 && !is_eval(a, v) && v->epoch < epochs)
			in_epoch[v->epoch]++;
	}
	for (size_t i = 0; i < epochs; i++) {
		batches += (in_epoch[i] + batch - 1) / batch;
		all += in_epoch[i];
		whole &= in_epoch[i] % batch == 0;
	}
	if (b->threads) /* which share batches beyond an epoch's end, or drop the last */
		profile_inferred(a, PROFILE_STEPS,
				 all % batch == 0 ? (double)(all / batch) : (double)batches,
				 FACT(JOB_SAMPLES_BY_BATCH), 0, 0)
			->at_most = !whole;
	else /* of a trainer that was killed, batches were read that it never took */
		profile_inferred(a, PROFILE_STEPS, (double)batches, FACT(JOB_EPOCH_BY_BATCH), 0, 0)
			->at_most =
			has_workers(a) && !a->job->process[a->trainer[0].process].complete;
}
