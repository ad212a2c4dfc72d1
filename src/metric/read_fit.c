/* The law of reads, tried on each of them. */
#include "metric/read_fit.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define TARGETS_MAX 400
#define GRID 12
#define GOLDEN 14
#define TRIED (2 * GRID + 3) /* and room for one list of errors */

static const double CLEAR = 20;       /* nats between two explanations */
static const double TOLERATED = 2e-3; /* of a mean read: nothing is more exact than that */
static const double UNSEEN = 1.05;    /* times what streams take: shared parts hide below */
static const double DIFFERENT = 0.01; /* variance of sizes, of the square of the mean */

static const double shares[GRID] = {0, 0.04, 0.08, 0.15, 0.25, 0.35, 0.5, 0.65, 0.8, 0.9, 0.96, 1};

/* When the number of reads in transfer changes, and what it is from then on. */
struct moment {
	int64_t at;
	int32_t now;
};

struct fit {
	const struct read_seen *seen;
	size_t n, targets, moments, *target;
	double times;
	struct moment *moment;
	struct ending {
		int64_t at, took;
	} * end;                                 /* of all, sorted */
	int64_t latency;                         /* that the moments are of; -1: none */
	double *error;                           /* of the targets, ns: TRIED lists */
	double mean_ns, mean_bytes, mean_shared; /* bytes * concurrency */
	double longest_ns;
	double unit; /* ns, of errors */
};

/* Parameters and how good they are. */
struct tried {
	struct read_rates rates;
	double *error;
};

static int by_time(const void *x, const void *y)
{
	const struct ending *a = x, *b = y;

	return (a->at > b->at) - (a->at < b->at);
}

static bool moves(const struct read_seen *s, int64_t latency)
{
	return s->end_ns - s->begin_ns > latency;
}

/* Of reads that move bytes from begin + latency to end. */
static void set_latency(struct fit *f, int64_t latency)
{
	size_t i = 0, k = 0, m = 0;
	int32_t now = 0;

	if (f->latency == latency)
		return;
	f->latency = latency;
	for (;;) {
		while (k < f->n && f->end[k].took <= latency)
			k++;
		if (k == f->n)
			break;
		while (i < f->n && !moves(&f->seen[i], latency))
			i++;
		if (i < f->n && f->seen[i].begin_ns + latency < f->end[k].at)
			f->moment[m++] = (struct moment){f->seen[i++].begin_ns + latency, ++now};
		else
			f->moment[m++] = (struct moment){f->end[k++].at, --now};
	}
	assert(m <= 2 * f->n && now == 0);
	f->moments = m;
}

/* The last moment not after `at`; -1: all are. */
static ptrdiff_t moment_at(const struct fit *f, int64_t at)
{
	ptrdiff_t low = -1, high = (ptrdiff_t)f->moments;

	while (high - low > 1) {
		ptrdiff_t mid = (low + high) / 2;

		if (f->moment[mid].at <= at)
			low = mid;
		else
			high = mid;
	}
	return low;
}

/* How long a read would have taken beside the reads that were under way with it, ns. */
static double would_take(const struct fit *f, const struct read_seen *s, const struct read_rates *r)
{
	int64_t start = s->begin_ns + f->latency;
	bool itself = moves(s, f->latency);
	double at = (double)f->latency, left = (double)s->bytes;
	ptrdiff_t i = moment_at(f, start);

	for (;;) {
		int64_t now = s->begin_ns + (int64_t)at;
		double others = i >= 0 ? f->moment[i].now : 0, each, took;

		others -= itself && now >= start && now < s->end_ns;
		each = r->shared_ns_per_byte * (others > 0 ? others + 1 : 1) * f->times;
		each = each > r->stream_ns_per_byte ? each : r->stream_ns_per_byte;
		took = left * each;
		if (i + 1 >= (ptrdiff_t)f->moments)
			return at + took;
		double until = (double)(f->moment[i + 1].at - s->begin_ns);

		if (at + took <= until)
			return at + took;
		if (until > at) {
			left -= (until - at) / each;
			at = until;
		}
		i++;
	}
}

static double sum_errors(struct fit *f, struct tried *t)
{
	double sum = 0;

	set_latency(f, (int64_t)t->rates.latency_ns);
	for (size_t k = 0; k < f->targets; k++) {
		const struct read_seen *s = &f->seen[f->target[k]];

		t->error[k] = fabs(would_take(f, s, &t->rates) - (double)(s->end_ns - s->begin_ns));
		sum += t->error[k];
	}
	t->rates.error_ns = sum / (double)f->targets;
	return t->rates.error_ns;
}

/* Golden section over one of the rates, between low and high. */
static void golden_search(struct fit *f, struct tried *t, double *rate, double low, double high,
			  void (*inner)(struct fit *, struct tried *))
{
	const double g = 0.6180339887498949;
	double x[2] = {high - g * (high - low), low + g * (high - low)}, e[2];

	for (int i = 0; i < 2; i++) {
		*rate = x[i];
		if (inner)
			inner(f, t);
		e[i] = sum_errors(f, t);
	}
	for (int n = 0; n < GOLDEN; n++) {
		int worse = e[0] < e[1];

		if (worse) {
			high = x[1];
			x[1] = x[0];
			e[1] = e[0];
			x[0] = high - g * (high - low);
		} else {
			low = x[0];
			x[0] = x[1];
			e[0] = e[1];
			x[1] = low + g * (high - low);
		}
		*rate = x[!worse];
		if (inner)
			inner(f, t);
		e[!worse] = sum_errors(f, t);
	}
	*rate = e[0] < e[1] ? x[0] : x[1];
	if (inner)
		inner(f, t);
	sum_errors(f, t);
}

static void search_stream(struct fit *f, struct tried *t)
{
	golden_search(f, t, &t->rates.stream_ns_per_byte, 0, 2 * f->mean_ns / f->mean_bytes, NULL);
}

static void search_latency(struct fit *f, struct tried *t)
{
	golden_search(f, t, &t->rates.latency_ns, 0, f->longest_ns, NULL);
}

static int by_double(const void *x, const void *y)
{
	const double *a = x, *b = y;

	return (*a > *b) - (*a < *b);
}

/* Errors beyond this are large: the middle one of the least errors. */
static void set_error_unit(struct fit *f, const double *error, double *spare)
{
	double least = TOLERATED * f->mean_ns;

	memcpy(spare, error, f->targets * sizeof(*spare));
	qsort(spare, f->targets, sizeof(*spare), by_double);
	f->unit = fmax(least, spare[f->targets / 2]);
}

/* Against an explanation, as if errors were distributed by Cauchy: most reads are exact, and those
 * of a thread that the processor was taken from tell nothing. */
static double nats(const struct fit *f, const double *error)
{
	double sum = 0;

	for (size_t k = 0; k < f->targets; k++)
		sum += log1p(error[k] / f->unit * (error[k] / f->unit));
	return sum;
}

static bool clearly_worse(const struct fit *f, const struct tried *a, const struct tried *b)
{
	return nats(f, a->error) - nats(f, b->error) > CLEAR;
}

/* The best for a share of the time that is shared, with a stream's rate or without. */
static void best_for(struct fit *f, double share, bool stream, struct tried *t)
{
	t->rates = (struct read_rates){.shared_ns_per_byte = share * f->mean_ns / f->mean_shared};
	golden_search(f, t, &t->rates.latency_ns, 0, f->longest_ns, stream ? search_stream : NULL);
}

/* Reads under way with one, itself included, averaged over its time. */
static double concurrency_of(const struct fit *f, const struct read_seen *s)
{
	double sum = 0;
	int64_t at = s->begin_ns;

	for (ptrdiff_t i = moment_at(f, at); at < s->end_ns; i++) {
		int64_t until = i + 1 < (ptrdiff_t)f->moments ? f->moment[i + 1].at : s->end_ns;

		until = until < s->end_ns ? until : s->end_ns;
		sum += (double)(until - at) * (i >= 0 ? f->moment[i].now : 1);
		at = until;
	}
	return sum / (double)(s->end_ns - s->begin_ns) * f->times;
}

/* Which reads are looked at: they lie in one window as a whole, so that all concurrent reads are
 * known. */
static void choose_targets(struct fit *f, uint64_t apart, uint64_t wide)
{
	size_t whole = 0, each;

	for (size_t j = 0; j < f->n; j++) {
		const struct read_seen *s = &f->seen[j];
		int64_t window = read_log_window(apart, wide, s->begin_ns);

		if (window >= 0 && window == read_log_window(apart, wide, s->end_ns) &&
		    s->end_ns > s->begin_ns && s->bytes)
			f->target[whole++] = j;
	}
	each = whole / TARGETS_MAX + 1;
	for (size_t j = 0; j < whole; j += each)
		f->target[f->targets++] = f->target[j];
	assert(f->targets <= TARGETS_MAX);
}

static void measure_targets(struct fit *f, struct read_law *law)
{
	double square = 0, n = (double)f->targets, *took = f->error, least;

	set_latency(f, 0);
	for (size_t k = 0; k < f->targets; k++) {
		const struct read_seen *s = &f->seen[f->target[k]];
		double bytes = (double)s->bytes, concurrency = concurrency_of(f, s);

		took[k] = (double)(s->end_ns - s->begin_ns);
		f->mean_ns += took[k] / n;
		f->mean_bytes += bytes / n;
		f->mean_shared += bytes * concurrency / n;
		square += bytes * bytes / n;
		law->concurrency += concurrency / n;
	}
	qsort(took, f->targets, sizeof(*took), by_double);
	f->longest_ns = took[f->targets - 1 - f->targets / 50];
	least = DIFFERENT * f->mean_bytes * f->mean_bytes;
	law->sizes_differ = square - f->mean_bytes * f->mean_bytes > least;
	law->reads = f->targets;
}

/* A bandwidth above what the streams took together was not seen. */
static void drop_unseen(const struct fit *f, struct read_rates *r)
{
	if (r->shared_ns_per_byte * f->mean_shared < UNSEEN * r->stream_ns_per_byte * f->mean_bytes)
		r->shared_ns_per_byte = 0;
}

/* Between the neighbours of a share on the grid. */
static void refine_share(struct fit *f, struct tried *t, int at)
{
	double unit = f->mean_ns / f->mean_shared;

	golden_search(f, t, &t->rates.shared_ns_per_byte, unit * shares[at > 0 ? at - 1 : 0],
		      unit * shares[at + 1 < GRID ? at + 1 : at], search_latency);
}

static int best_of(const struct fit *f, const struct tried *t, int n)
{
	int best = 0;

	for (int i = 1; i < n; i++)
		if (nats(f, t[i].error) < nats(f, t[best].error))
			best = i;
	return best;
}

static void find_rates(struct fit *f, struct read_law *law)
{
	struct tried t[TRIED];
	int n = 0, best = 0, at;

	for (int i = 0; i < TRIED; i++)
		t[i] = (struct tried){.error = f->error + (size_t)i * f->targets};
	for (int i = 0; i < GRID; i++)
		best_for(f, shares[i], false, &t[n++]);
	for (int i = 0; i < GRID && law->sizes_differ; i++)
		best_for(f, shares[i], true, &t[n++]);
	/* a grid is coarse where what is shared is exact */
	golden_search(f, &t[n], &t[n].rates.shared_ns_per_byte, 0, f->mean_ns / f->mean_bytes,
		      search_latency);
	n++;
	for (int i = 1; i < n; i++)
		best = t[i].rates.error_ns < t[best].rates.error_ns ? i : best;
	set_error_unit(f, t[best].error, t[n].error);
	assert(n < TRIED);
	at = best_of(f, t, n);
	if (at < n - 1) {
		t[n].rates = t[at].rates;
		refine_share(f, &t[n++], at % GRID);
	}
	best = best_of(f, t, n);
	for (int i = 0; i < n; i++)
		drop_unseen(f, &t[i].rates);
	law->best = law->least = law->most = t[best].rates;
	for (int i = 0; i < n; i++) {
		if (clearly_worse(f, &t[i], &t[best]))
			continue;
		if (t[i].rates.shared_ns_per_byte < law->least.shared_ns_per_byte)
			law->least = t[i].rates;
		if (t[i].rates.shared_ns_per_byte > law->most.shared_ns_per_byte)
			law->most = t[i].rates;
	}
	/* nothing shared is the simplest */
	if (!(law->least.shared_ns_per_byte > 0))
		law->best = law->least;
}

static void set_shares(const struct fit *f, struct read_law *law)
{
	const struct read_rates *r = &law->best;
	double left;

	law->latency_share = fmin(1, r->latency_ns / f->mean_ns);
	left = 1 - law->latency_share;
	if (r->shared_ns_per_byte * f->mean_shared >= r->stream_ns_per_byte * f->mean_bytes)
		law->shared_share = left;
	else
		law->stream_share = left;
	if (!(r->shared_ns_per_byte > 0) && !(r->stream_ns_per_byte > 0)) {
		law->latency_share = 1;
		law->shared_share = law->stream_share = 0;
	}
}

static bool fit_reserve(struct fit *f, size_t n)
{
	f->moment = calloc(2 * n, sizeof(*f->moment));
	f->end = calloc(n, sizeof(*f->end));
	f->target = calloc(n, sizeof(*f->target));
	f->error = calloc(TRIED * (size_t)TARGETS_MAX, sizeof(*f->error));
	return f->moment && f->end && f->target && f->error;
}

struct read_law read_fit(const struct read_seen *seen, size_t n, uint64_t apart, uint64_t wide,
			 double times)
{
	struct fit f = {.seen = seen, .n = n, .times = times, .latency = -1};
	struct read_law law = {0};

	if (n >= 4 && fit_reserve(&f, n)) {
		for (size_t j = 0; j < n; j++)
			f.end[j] =
				(struct ending){seen[j].end_ns, seen[j].end_ns - seen[j].begin_ns};
		qsort(f.end, n, sizeof(*f.end), by_time);
		choose_targets(&f, apart, wide);
		if (f.targets >= 4) {
			measure_targets(&f, &law);
			find_rates(&f, &law);
			set_shares(&f, &law);
		}
	}
	free(f.moment);
	free(f.end);
	free(f.target);
	free(f.error);
	return law;
}
