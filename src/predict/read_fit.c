/* The law of reads, tried on each of them. */
#include "predict/read_fit.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/compare.h"
#include "base/stats.h"
#include "predict/alone_fit.h"
#include "predict/queue_fit.h"

#define TARGETS_MAX 480
#define TARGETS_OF_RUN 200 /* of those, beside sweeps */
#define LEVELS 64          /* of reads under way */
#define GRID 12
#define GOLDEN 14
#define SHARED_TRIED (2 * GRID + 2)
#define SERVERS_TRIED 16
#define BURSTS_TRIED 18
#define TRIED (SHARED_TRIED + 2 * SERVERS_TRIED + BURSTS_TRIED)

/* Nats between two explanations, and of those that the best has itself: what disturbs one read
 * disturbs those beside it as well. */
static const double CLEAR = 20, CLEAR_PART = 0.15;
static const double CLEAR_ALONE = 0.1; /* nats of each read, the same beside CLEAR */
static const double RISE = 0.3;        /* of a read's time, from few to many under way: it waits */
static const double NEIGHBOURS = 0.2;  /* a correlation that is notable, */
static const double NEIGHBOURS_SURE = 4; /* and its standard errors */
static const double ONE_READ = 5;        /* nats at most by one read: some are special */
static const double SIMPLER = 3;         /* nats that a simpler explanation may be worse */
static const double TOLERATED = 5e-3;    /* of a mean read: nothing is more exact than that */
static const double UNSEEN = 1.05;       /* times what streams take: shared parts hide below */
static const double DIFFERENT = 0.01;    /* variance of sizes, of the square of the mean */
static const double ALIKE = 0.03;        /* of a read: explanations that foretell the same */
static const double FAR_ABOVE = 2; /* times the rate of the run: a ceiling that nothing reached */

static const double shares[GRID] = {0, 0.04, 0.08, 0.15, 0.25, 0.35, 0.5, 0.65, 0.8, 0.9, 0.96, 1};
#define REFINED 5 /* bursts from there on are between those of the list, too */
static const uint32_t bursts[] = {1, 2, 3, 4, 5, 8, 10, 15, 20, 30, 50, 80, 120};

/* When the number of reads in transfer changes, and what it is from then on. */
struct moment {
	int64_t at;
	int32_t now;
};

struct fit {
	const struct read_set *set;
	size_t sets;
	struct read_seen *seen; /* of all sets */
	size_t n, targets, moments;
	struct target {
		size_t at;
		uint32_t level; /* under way when it begins, itself included */
		double weight;  /* reads of the run that it stands for; 0: of a sweep */
	} * target;
	double times;
	uint32_t most; /* reads under way at once, of these */
	struct moment *moment;
	struct ending {
		int64_t at, took;
	} * end;               /* of all, sorted */
	int64_t latency;       /* that the moments are of; -1: none */
	double *error;         /* of the targets, ns beyond what is foretold: TRIED lists */
	double *took, *bytes;  /* of the targets, ns */
	double *ahead, *spare; /* for queue_fit.h */
	uint32_t *history;     /* the same */
	uint32_t *level;       /* of the targets */
	/* Of them: reads before it in its file, and how often it doubles the smallest. */
	uint8_t place[TARGETS_MAX], size[TARGETS_MAX];
	double mean_ns, mean_bytes, mean_shared; /* bytes * concurrency */
	double most_beside; /* under way with a byte, in the set that had most of them */
	double longest_ns;
	double unit; /* ns, of errors */
	struct tried {
		struct read_rates rates;
		double *error, nats;
		double alone; /* nats that compare with those of reads by themselves */
		bool absurd;
	} tried[TRIED + 1];
	int tries;
};

static int by_time(const void *x, const void *y)
{
	const struct ending *a = x, *b = y;

	return ORDER(a->at, b->at);
}

static bool moves(const struct read_seen *s, int64_t latency)
{
	return s->end_ns - s->begin_ns > latency;
}

/* Counts the reads that move bytes at each moment, each from its begin + latency to its end. */
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
		const struct read_seen *s = &f->seen[f->target[k].at];

		t->error[k] = (double)(s->end_ns - s->begin_ns) - would_take(f, s, &t->rates);
		sum += fabs(t->error[k]);
	}
	t->rates.error_ns = sum / (double)f->targets;
	return t->rates.error_ns;
}

/* What a search over a rate is given. */
struct search {
	struct fit *f;
	struct tried *t;
};

static double sum_of_search(void *arg)
{
	const struct search *s = arg;

	return sum_errors(s->f, s->t);
}

static double search_stream(void *arg)
{
	const struct search *s = arg;

	return golden_section(&s->t->rates.stream_ns_per_byte, 0,
			      2 * s->f->mean_ns / s->f->mean_bytes, GOLDEN, sum_of_search, arg);
}

static double search_latency(void *arg)
{
	const struct search *s = arg;

	return golden_section(&s->t->rates.latency_ns, 0, s->f->longest_ns, GOLDEN, sum_of_search,
			      arg);
}

/* Errors beyond this are large: three quarters of the least errors are smaller. */
static void set_error_unit(struct fit *f, const double *error, double *spare)
{
	double least = TOLERATED * f->mean_ns;
	size_t n = 0;

	for (size_t k = 0; k < f->targets; k++)
		if (!isnan(error[k]))
			spare[n++] = fabs(error[k]);
	f->unit = fmax(least, n ? nth_number(spare, n, n * 3 / 4) : 0);
}

/* Against an explanation, as if errors were distributed by Cauchy: most reads are exact, and those
 * of a thread that the processor was taken from tell nothing. */
static double nats(const struct fit *f, const double *error)
{
	double sum = 0, n = 0;

	for (size_t k = 0; k < f->targets; k++) {
		if (isnan(error[k]))
			continue;
		sum += fmin(ONE_READ, log1p(error[k] / f->unit * (error[k] / f->unit)));
		n++;
	}
	return n > 0 ? sum * (double)f->targets / n : INFINITY;
}

/* The best for a share of the time that is shared, with a stream's rate or without. */
static void best_for(struct fit *f, double share, bool stream, struct tried *t)
{
	struct search s = {f, t};

	t->rates = (struct read_rates){.shared_ns_per_byte = share * f->mean_ns / f->mean_shared};
	golden_section(&t->rates.latency_ns, 0, f->longest_ns, GOLDEN,
		       stream ? search_stream : sum_of_search, &s);
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

/* Whether a read lies in one window of its set as a whole, so that all concurrent reads are
 * known. */
static bool whole(const struct read_set *set, const struct read_seen *s)
{
	int64_t window = read_log_window(set->apart, set->wide, s->begin_ns);

	return window >= 0 && window == read_log_window(set->apart, set->wide, s->end_ns) &&
	       s->end_ns > s->begin_ns && s->bytes;
}

/* How many reads are under way when each of them begins, itself included. */
static void count_levels(const struct fit *f, uint8_t *level)
{
	for (size_t j = 0, k = 0; j < f->n; j++) {
		size_t now;

		while (k < f->n && f->end[k].at <= f->seen[j].begin_ns)
			k++;
		/* of those that began, k have ended */
		now = j + 1 > k ? j + 1 - k : 1;
		level[j] = (uint8_t)(now < LEVELS ? now : LEVELS - 1);
	}
}

static void choose_of_level(struct fit *f, const size_t *candidate, size_t n, size_t want,
			    bool sweep)
{
	want = want < n ? want : n;
	for (size_t k = 0; k < want; k++) {
		f->target[f->targets++] = (struct target){
			.at = candidate[k * n / want],
			.weight = sweep ? 0 : (double)n / (double)want,
		};
	}
}

static int by_index(const void *x, const void *y)
{
	const struct target *a = x, *b = y;

	return ORDER(a->at, b->at);
}

/* Which reads are looked at, of one set: as many of each number under way as there are, so that
 * those which found few ahead of them are not lost among the others. */
static void choose_targets(struct fit *f, const struct read_set *set, size_t from,
			   const uint8_t *level, size_t *candidate, size_t most)
{
	size_t left = most, levels = 0, count[LEVELS] = {0};

	for (size_t j = 0; j < set->n; j++)
		count[level[from + j]] += whole(set, &f->seen[from + j]);
	for (int l = 0; l < LEVELS; l++)
		levels += count[l] > 0;
	for (; levels > 0; levels--) {
		int rarest = -1;
		size_t n = 0;

		for (int l = 0; l < LEVELS; l++)
			if (count[l] > 0 && (rarest < 0 || count[l] < count[rarest]))
				rarest = l;
		for (size_t j = from; j < from + set->n; j++)
			if (level[j] == rarest && whole(set, &f->seen[j]))
				candidate[n++] = j;
		choose_of_level(f, candidate, n, left / levels, set > f->set);
		left -= left / levels < n ? left / levels : n;
		count[rarest] = 0;
	}
}

static void find_groups(struct fit *f)
{
	uint64_t least = UINT64_MAX;

	for (size_t k = 0; k < f->targets; k++)
		if (f->seen[f->target[k].at].bytes < least)
			least = f->seen[f->target[k].at].bytes;
	for (size_t k = 0; k < f->targets; k++) {
		const struct read_seen *s = &f->seen[f->target[k].at];
		double doubled = log2((double)s->bytes / (double)least);

		f->place[k] =
			(uint8_t)(s->place < MISFIT_LEVELS - 1 ? s->place : MISFIT_LEVELS - 1);
		f->size[k] = (uint8_t)fmin(doubled, MISFIT_LEVELS - 1);
	}
}

static void find_most_beside(struct fit *f)
{
	size_t k = 0, end = 0;

	for (size_t i = 0; i < f->sets; i++) {
		double bytes = 0, beside = 0;

		for (end += f->set[i].n; k < f->targets && f->target[k].at < end; k++) {
			const struct read_seen *s = &f->seen[f->target[k].at];
			double weight = i ? 1 : f->target[k].weight;

			bytes += weight * (double)s->bytes;
			beside += weight * (double)s->bytes * concurrency_of(f, s);
		}
		f->most_beside = bytes > 0 ? fmax(f->most_beside, beside / bytes) : f->most_beside;
	}
}

static void measure_targets(struct fit *f, struct read_law *law)
{
	double square = 0, n = 0, mean = 0, plain = (double)f->targets, *took = f->spare, least;

	set_latency(f, 0);
	for (size_t k = 0; k < f->targets; k++)
		n += f->target[k].weight;
	for (size_t k = 0; k < f->targets; k++) {
		const struct read_seen *s = &f->seen[f->target[k].at];
		double bytes = (double)s->bytes, concurrency = concurrency_of(f, s);
		double part = f->target[k].weight / n;

		took[k] = f->took[k] = (double)(s->end_ns - s->begin_ns);
		f->bytes[k] = bytes;
		f->mean_ns += took[k] * part;
		f->mean_bytes += bytes * part;
		f->mean_shared += bytes * concurrency * part;
		mean += bytes / plain;
		square += bytes * bytes / plain;
		law->concurrency += concurrency * part;
	}
	find_most_beside(f);
	f->longest_ns = nth_number(took, f->targets, f->targets - 1 - f->targets / 50);
	least = DIFFERENT * mean * mean;
	law->sizes_differ = square - mean * mean > least;
	law->reads = f->targets;
	law->mean_ns = f->mean_ns;
	law->mean_bytes = f->mean_bytes;
}

/* The ends of those that began before each target, the latest first. */
static void find_ahead(struct fit *f)
{
	double last[QUEUE_AHEAD];
	uint32_t n = 0;
	size_t j = 0;

	for (int i = 0; i < QUEUE_AHEAD; i++)
		last[i] = -INFINITY;
	for (size_t k = 0; k < f->targets; k++) {
		size_t at = f->target[k].at;

		for (; j < at; j++)
			queue_note_end(last, QUEUE_AHEAD, &n,
				       (double)(f->seen[j].end_ns - f->seen[0].begin_ns));
		for (size_t i = 0; i < QUEUE_AHEAD; i++)
			f->ahead[k * QUEUE_AHEAD + i] =
				last[i] - (double)(f->seen[at].begin_ns - f->seen[0].begin_ns);
	}
}

/* A bandwidth above what the streams took together, of the run or of a sweep, was not seen. */
static void drop_unseen(const struct fit *f, struct read_rates *r)
{
	if (r->shared_ns_per_byte * f->most_beside < UNSEEN * r->stream_ns_per_byte)
		r->shared_ns_per_byte = 0;
}

/* Between the neighbours of a share on the grid. */
static void refine_share(struct fit *f, struct tried *t, int at)
{
	double unit = f->mean_ns / f->mean_shared;
	struct search s = {f, t};

	golden_section(&t->rates.shared_ns_per_byte, unit * shares[at > 0 ? at - 1 : 0],
		       unit * shares[at + 1 < GRID ? at + 1 : at], GOLDEN, search_latency, &s);
}

static struct tried *next_try(struct fit *f)
{
	assert(f->tries < TRIED);
	return &f->tried[f->tries++];
}

/* Tries shared bandwidths that take from none to all of the time of a read. */
static void try_shared(struct fit *f, bool sizes_differ)
{
	struct tried *t;
	int best = 0;

	for (int i = 0; i < GRID; i++)
		best_for(f, shares[i], false, next_try(f));
	for (int i = 0; i < GRID && sizes_differ; i++)
		best_for(f, shares[i], true, next_try(f));
	/* a grid is coarse where what is shared is exact */
	t = next_try(f);
	golden_section(&t->rates.shared_ns_per_byte, 0, f->mean_ns / f->mean_bytes, GOLDEN,
		       search_latency, &(struct search){f, t});
	for (int i = 1; i < f->tries; i++)
		best = f->tried[i].rates.error_ns < f->tried[best].rates.error_ns ? i : best;
	if (best < f->tries - 1) {
		t = next_try(f);
		t->rates = f->tried[best].rates;
		refine_share(f, t, best % GRID);
	}
	for (int i = 0; i < f->tries; i++)
		drop_unseen(f, &f->tried[i].rates);
}

static struct queue_reads queue_reads_of(const struct fit *f, const struct read_law *law)
{
	return (struct queue_reads){.n = f->targets,
				    .took = f->took,
				    .bytes = f->bytes,
				    .ahead = f->ahead,
				    .history = f->history,
				    .sizes_differ = law->sizes_differ,
				    .most = f->most,
				    .spare = f->spare};
}

/* 1, 2, ... and then in larger steps, below `most`. */
static int list_servers(uint32_t most, uint32_t list[SERVERS_TRIED])
{
	int n = 0;

	for (uint32_t c = 1; c < most && n < SERVERS_TRIED - 1; c += 1 + c / 4)
		list[n++] = c;
	if (n > 0 && list[n - 1] < most - 1)
		list[n++] = most - 1;
	return n;
}

/* Queues of as many servers as reads were under way, and fewer; bursts. */
static void try_queues(struct fit *f, const struct read_law *law)
{
	const struct queue_reads q = queue_reads_of(f, law);
	uint32_t list[SERVERS_TRIED];
	struct tried *t;
	int n;

	n = list_servers(f->most, list);
	for (int i = 0; i < n; i++) {
		t = next_try(f);
		t->absurd = !queue_fit_servers(&q, list[i], true, &t->rates, t->error);
		t = next_try(f);
		t->absurd = !queue_fit_servers(&q, list[i], false, &t->rates, t->error);
	}
	for (size_t i = 0; i < sizeof(bursts) / sizeof(bursts[0]) && f->most > 1; i++) {
		t = next_try(f);
		t->absurd = !queue_fit_burst(&q, bursts[i], &t->rates, t->error);
	}
}

/* The whole numbers between the best of the bursts and its neighbours. */
static void refine_bursts(struct fit *f, const struct read_law *law)
{
	const struct queue_reads q = queue_reads_of(f, law);
	uint32_t best = 0;
	double error = INFINITY;
	struct tried *t;

	for (int i = 0; i < f->tries; i++)
		if (!f->tried[i].absurd && f->tried[i].rates.burst >= REFINED &&
		    f->tried[i].rates.error_ns < error) {
			error = f->tried[i].rates.error_ns;
			best = f->tried[i].rates.burst;
		}
	if (best == 0)
		return;
	t = next_try(f);
	*t = (struct tried){.error = t->error, .rates.error_ns = INFINITY, .absurd = true};
	for (uint32_t n = best - best / 4; n <= best + best / 3 && n <= QUEUE_AHEAD;
	     n += best > 20 ? best / 10 : 1) {
		struct tried one = {.error = f->tried[TRIED].error};

		if (queue_fit_burst(&q, n, &one.rates, one.error) &&
		    one.rates.error_ns < t->rates.error_ns) {
			t->rates = one.rates;
			t->absurd = false;
			memcpy(t->error, one.error, f->targets * sizeof(*one.error));
		}
	}
}

double read_rates_ceiling(const struct read_rates *r, double bytes)
{
	double ns = 0;

	if (r->shared_ns_per_byte > 0)
		ns = r->shared_ns_per_byte * bytes;
	if (r->servers)
		ns = fmax(ns, (r->serve_ns + r->serve_ns_per_byte * bytes) / r->servers);
	if (r->burst)
		ns = fmax(ns, r->pace_ns);
	return ns > 0 ? 1e9 / ns : INFINITY;
}

void read_law_ceilings(const struct read_law *law, double *low, double *high)
{
	*low = INFINITY;
	*high = 0;
	for (uint32_t i = 0; i < law->count; i++) {
		double c = read_rates_ceiling(&law->one[i], law->mean_bytes);

		LOWER(*low, c);
		RAISE(*high, c);
	}
}

uint32_t read_law_servers(const struct read_law *law)
{
	for (uint32_t i = 0; i < law->count; i++)
		if (law->one[i].servers && law->one[i].servers != law->best.servers)
			return 0;
	return law->best.servers;
}

double read_rates_alone(const struct read_rates *r, double bytes)
{
	return r->latency_ns + fmax(r->stream_ns_per_byte, r->shared_ns_per_byte) * bytes +
	       r->serve_ns + r->serve_ns_per_byte * bytes;
}

static bool alike(const struct fit *f, const struct read_rates *a, const struct read_rates *b)
{
	double x = read_rates_ceiling(a, f->mean_bytes), y = read_rates_ceiling(b, f->mean_bytes);
	double within = ALIKE * f->mean_ns;

	if (isinf(x) != isinf(y) || (!isinf(x) && fabs(1 / x - 1 / y) * 1e9 > within))
		return false;
	return (a->servers > 0) == (b->servers > 0) && (a->burst > 0) == (b->burst > 0) &&
	       fabs(read_rates_alone(a, f->mean_bytes) - read_rates_alone(b, f->mean_bytes)) <
		       within &&
	       fabs(a->latency_ns - b->latency_ns) < within;
}

/* Orders the models of reads: 0, nothing shared, is the simplest. */
static int complexity(const struct read_rates *r)
{
	return (r->shared_ns_per_byte > 0) + 2 * (r->servers > 0) + 3 * (r->burst > 0);
}

/* With how far it is off, which `error` says. */
static void keep(const struct fit *f, struct read_law *law, const struct read_rates *r,
		 const double *error)
{
	struct read_rates *one = &law->one[law->count];

	for (uint32_t i = 0; i < law->count; i++)
		if (alike(f, &law->one[i], r))
			return;
	if (law->count == READ_LAWS_MAX)
		return;
	*one = *r;
	misfit_of(&one->misfit, f->targets, f->took, error, f->level, f->times);
	one->misplaced = fmax(misfit_misplaced(f->targets, f->took, error, f->place),
			      misfit_misplaced(f->targets, f->took, error, f->size));
	law->count++;
}

/* By what explanations differ. */
static double trait(const struct fit *f, const struct read_rates *r, bool alone)
{
	return alone ? read_rates_alone(r, f->mean_bytes) : read_rates_ceiling(r, f->mean_bytes);
}

/* Of those of a kind (of all: `kind` < 0) that are not clearly worse, the one with the highest or
 * lowest ceiling, or time alone; NULL. */
static const struct tried *at_end(const struct fit *f, int kind, bool alone, bool high,
				  double limit)
{
	const struct tried *best = NULL;

	for (int i = 0; i < f->tries; i++) {
		const struct tried *t = &f->tried[i];
		double c = trait(f, &t->rates, alone), b;

		if (t->nats > limit || (kind >= 0 && complexity(&t->rates) != kind))
			continue;
		b = best ? trait(f, &best->rates, alone) : 0;
		if (!best || (high ? c > b : c < b) ||
		    (!(c < b) && !(c > b) && t->nats < best->nats))
			best = t;
	}
	return best;
}

static void keep_ends(const struct fit *f, struct read_law *law, int kind, double limit)
{
	const struct tried *t;

	for (int end = 0; end < 4; end++)
		if ((t = at_end(f, kind, end & 2, end & 1, limit)))
			keep(f, law, &t->rates, t->error);
}

/* Where reads do not wait for each other, or for a ceiling far above what was seen, a store that
 * has nothing left beyond that looks the same. */
static void keep_exhausted(const struct fit *f, struct read_law *law)
{
	double seen = law->concurrency / law->mean_ns * 1e9;

	for (uint32_t i = 0; i < law->count; i++) {
		const struct read_rates *r = &law->one[i];

		if (read_rates_ceiling(r, f->mean_bytes) < FAR_ABOVE * seen)
			continue;
		for (size_t k = 0; k < f->targets; k++)
			f->spare[k] = f->took[k] - read_rates_alone(r, f->bytes[k]);
		keep(f, law,
		     &(struct read_rates){.servers = f->most,
					  .serve_ns = r->latency_ns + r->serve_ns,
					  .serve_ns_per_byte = fmax(r->stream_ns_per_byte,
								    r->shared_ns_per_byte) +
							       r->serve_ns_per_byte,
					  .error_ns = r->error_ns},
		     f->spare);
		return;
	}
}

/* The best that has reads wait for nothing, with a stream's rate or without; NULL. */
static const struct tried *best_alone(const struct fit *f, bool stream)
{
	const struct tried *best = NULL;

	for (int i = 0; i < f->tries; i++) {
		const struct tried *t = &f->tried[i];

		if (!t->absurd && complexity(&t->rates) == 0 &&
		    stream == (t->rates.stream_ns_per_byte > 0) &&
		    (!best || t->rates.error_ns < best->rates.error_ns))
			best = t;
	}
	return best;
}

/* Each read by itself, of a time that is drawn from those of all; with their bytes or without. */
static double try_alone(const struct fit *f, struct read_rates *r)
{
	double best = INFINITY;

	for (int stream = 0; stream < 2; stream++) {
		const struct tried *t = best_alone(f, stream);
		double mean = 0, nats;

		for (size_t k = 0; t && k < f->targets; k++) {
			f->spare[k] = f->took[k] - t->rates.stream_ns_per_byte * f->bytes[k];
			mean += f->spare[k] / (double)f->targets;
		}
		if (!t || mean < 0)
			continue;
		nats = alone_fit_times(f->spare, f->targets, TOLERATED * f->mean_ns, f->longest_ns);
		if (nats >= best)
			continue;
		best = nats;
		*r = (struct read_rates){.latency_ns = mean,
					 .stream_ns_per_byte = t->rates.stream_ns_per_byte,
					 .error_ns = t->rates.error_ns};
	}
	return best;
}

enum dependence { DEPEND_NOT, DEPEND_UNKNOWN, DEPEND_YES };

/* Whether reads that begin beside more others take longer: the slope of their times over the
 * logarithm of how many are under way. */
static enum dependence dependence_of(const struct fit *f, const struct read_rates *r)
{
	double n = (double)f->targets, mx = 0, my = 0, xx = 0, xy = 0, rest = 0, slope, sure;
	double low = INFINITY, high = 0, rise = RISE * r->latency_ns;

	for (size_t k = 0; k < f->targets; k++) {
		double x = log(f->target[k].level);

		f->spare[k] = f->took[k] - r->stream_ns_per_byte * f->bytes[k];
		low = fmin(low, x);
		high = fmax(high, x);
		mx += x / n;
		my += f->spare[k] / n;
	}
	for (size_t k = 0; k < f->targets; k++) {
		double x = log(f->target[k].level) - mx;

		xx += x * x;
		xy += x * (f->spare[k] - my);
	}
	if (!(xx > 0) || n < 3)
		return DEPEND_UNKNOWN;
	slope = xy / xx;
	for (size_t k = 0; k < f->targets; k++) {
		double e = f->spare[k] - my - slope * (log(f->target[k].level) - mx);

		rest += e * e;
	}
	sure = 2 * sqrt(rest / (n - 2) / xx);
	if ((slope + sure) * (high - low) < rise)
		return DEPEND_NOT;
	return (slope - sure) * (high - low) > rise ? DEPEND_YES : DEPEND_UNKNOWN;
}

/* The correlation of each read's time with that of the read that began before it, of one set: under
 * a limit that is granted in slices of time the reads that wait are neighbours. 0 where it may be
 * chance. */
static double neighbours(const struct read_seen *s, size_t n)
{
	double mean = 0, square = 0, product = 0;

	if (n < 3)
		return 0;
	for (size_t i = 0; i < n; i++)
		mean += log1p((double)(s[i].end_ns - s[i].begin_ns)) / (double)n;
	for (size_t i = 0; i < n; i++) {
		double x = log1p((double)(s[i].end_ns - s[i].begin_ns)) - mean;

		square += x * x;
		if (i > 0)
			product +=
				x * (log1p((double)(s[i - 1].end_ns - s[i - 1].begin_ns)) - mean);
	}
	return square > 0 && product > NEIGHBOURS_SURE / sqrt((double)n) * square ? product / square
										  : 0;
}

static bool neighbours_alike(const struct fit *f)
{
	for (size_t i = 0; i < f->sets; i++)
		if (neighbours(f->set[i].seen, f->set[i].n) > NEIGHBOURS)
			return true;
	return false;
}

static void drop_worse(struct fit *f, double limit)
{
	for (int i = 0; i < f->tries; i++)
		if (f->tried[i].alone > limit)
			f->tried[i].nats = INFINITY;
}

/* Times that differ by themselves, as of a store whose files lie on two kinds of devices, have
 * waits that a queue or ceiling may seem to explain. Where it explains them no better, it is not
 * the only explanation; where it does clearly worse, it is not the best, and none if reads beside
 * many take no longer. */
static void weigh_alone(struct fit *f, struct read_law *law, const struct tried *best)
{
	double other = INFINITY, margin = CLEAR + CLEAR_ALONE * (double)f->targets, alone;
	double least = TOLERATED * f->mean_ns;
	struct read_rates r = {0};
	enum dependence depend;

	alone = try_alone(f, &r);
	depend = isinf(alone) || neighbours_alike(f) ? DEPEND_YES : dependence_of(f, &r);
	if (depend == DEPEND_YES)
		return;
	for (int i = 0; i < f->tries; i++) {
		struct tried *t = &f->tried[i];

		t->alone = t->absurd ? INFINITY
				     : alone_fit_errors(t->error, f->targets, least, f->longest_ns);
		other = fmin(other, t->alone);
	}
	if (other <= alone - margin)
		return;
	for (size_t k = 0; k < f->targets; k++)
		f->spare[k] = f->took[k] - read_rates_alone(&r, f->bytes[k]);
	if (other > alone + margin) {
		keep(f, law, &r, f->spare);
		if (depend == DEPEND_NOT)
			drop_worse(f, alone + margin);
	} else if (complexity(&best->rates) > 0) {
		keep(f, law, &best->rates, best->error);
		keep(f, law, &r, f->spare);
	}
}

/* Those of a sweep of another size than the run's tell nothing here. */
static void set_table(const struct fit *f, struct read_law *law)
{
	double least = INFINITY, most = 0;

	law->table = (struct read_rates){.latency_ns = f->mean_ns};
	for (size_t k = 0; k < f->targets; k++)
		if (f->target[k].weight > 0) {
			least = fmin(least, f->bytes[k]);
			most = fmax(most, f->bytes[k]);
		}
	for (size_t k = 0; k < f->targets; k++) {
		bool other =
			most < 2 * least && (f->bytes[k] < least / 2 || f->bytes[k] > 2 * most);

		f->spare[k] = other ? NAN : f->took[k] - f->mean_ns;
	}
	misfit_of(&law->table.misfit, f->targets, f->took, f->spare, f->level, f->times);
	law->falls = misfit_falls(&law->table.misfit);
}

static void choose_laws(struct fit *f, struct read_law *law)
{
	const struct tried *best = &f->tried[0], *t;
	double least, limit;

	for (int i = 1; i < f->tries; i++)
		if (!f->tried[i].absurd && f->tried[i].rates.error_ns < best->rates.error_ns)
			best = &f->tried[i];
	set_error_unit(f, best->error, f->spare);
	for (int i = 0; i < f->tries; i++)
		f->tried[i].nats = f->tried[i].absurd ? INFINITY : nats(f, f->tried[i].error);
	least = INFINITY;
	for (int i = 0; i < f->tries; i++)
		least = fmin(least, f->tried[i].nats);
	for (int i = 0; i < f->tries; i++)
		best = f->tried[i].nats < best->nats ? &f->tried[i] : best;
	for (int i = 0; i < f->tries; i++) {
		t = &f->tried[i];
		if (t->nats <= least + SIMPLER &&
		    (complexity(&t->rates) < complexity(&best->rates) ||
		     (complexity(&t->rates) == complexity(&best->rates) && t->nats < best->nats)))
			best = t;
	}
	limit = least * (1 + CLEAR_PART) + CLEAR;
	weigh_alone(f, law, best);
	if (best->nats <= limit)
		keep(f, law, &best->rates, best->error);
	/* the ends of all first, as there is no room for everything */
	keep_ends(f, law, -1, limit);
	keep_exhausted(f, law);
	for (int kind = 0; kind < 4; kind++)
		keep_ends(f, law, kind, limit);
}

void read_law_prefer(struct read_law *law, uint32_t i)
{
	const struct read_rates *r = &law->one[i];
	double left;

	assert(i < law->count);
	law->best = *r;
	law->latency_share = fmin(1, r->latency_ns / law->mean_ns);
	law->stream_share = law->shared_share = law->queue_share = 0;
	left = 1 - law->latency_share;
	if (r->servers || r->burst)
		law->queue_share = left;
	else if (!(r->shared_ns_per_byte > 0) && !(r->stream_ns_per_byte > 0))
		law->latency_share = 1;
	else if (r->shared_ns_per_byte * law->concurrency >= r->stream_ns_per_byte)
		law->shared_share = left;
	else
		law->stream_share = left;
}

/* What others on other hosts do is not seen: each of them takes its part of a queue. */
static void for_all_hosts(struct fit *f, struct read_law *law)
{
	for (uint32_t i = 0; i < law->count; i++) {
		struct read_rates *r = &law->one[i];

		if (r->servers && r->servers * f->times >= law->most)
			r->servers = (uint32_t)(r->servers * f->times);
		else if (r->servers) {
			r->serve_ns /= f->times;
			r->serve_ns_per_byte /= f->times;
		}
		r->pace_ns /= f->times;
	}
}

static bool fit_reserve(struct fit *f)
{
	static const char what[] = "the fit of reads";
	struct err e = {0};

	f->seen = try_calloc(f->n, sizeof(*f->seen), what, &e);
	f->moment = try_calloc(2 * f->n, sizeof(*f->moment), what, &e);
	f->end = try_calloc(f->n, sizeof(*f->end), what, &e);
	f->target = try_calloc(TARGETS_MAX, sizeof(*f->target), what, &e);
	f->error = try_calloc((TRIED + 4) * (size_t)TARGETS_MAX, sizeof(*f->error), what, &e);
	f->history = try_calloc(TARGETS_MAX, sizeof(*f->history), what, &e);
	f->level = try_calloc(TARGETS_MAX, sizeof(*f->level), what, &e);
	f->ahead = try_calloc(QUEUE_AHEAD * (size_t)TARGETS_MAX, sizeof(*f->ahead), what, &e);
	if (!f->seen || !f->moment || !f->end || !f->target || !f->error || !f->ahead ||
	    !f->history || !f->level)
		return false;
	for (int i = 0; i <= TRIED; i++)
		f->tried[i].error = f->error + (size_t)i * TARGETS_MAX;
	f->took = f->error + (TRIED + 1) * (size_t)TARGETS_MAX;
	f->bytes = f->took + TARGETS_MAX;
	f->spare = f->bytes + TARGETS_MAX;
	return true;
}

static void fill_reads(struct fit *f)
{
	size_t n = 0;

	for (size_t i = 0; i < f->sets; n += f->set[i++].n)
		if (f->set[i].n)
			memcpy(f->seen + n, f->set[i].seen, f->set[i].n * sizeof(*f->seen));
	assert(n == f->n);
	for (size_t j = 0; j < n; j++)
		f->end[j] =
			(struct ending){f->seen[j].end_ns, f->seen[j].end_ns - f->seen[j].begin_ns};
	qsort(f->end, n, sizeof(*f->end), by_time);
}

/* How many of those before each target are known, whatever came before its window. */
static void find_history(struct fit *f)
{
	size_t set = 0, first = 0;

	for (size_t k = 0; k < f->targets; k++) {
		size_t at = f->target[k].at, j;
		const struct read_set *s;
		int64_t begin;

		while (at >= first + f->set[set].n)
			first += f->set[set++].n;
		s = &f->set[set];
		f->history[k] = UINT32_MAX;
		if (s->apart == 0)
			continue;
		begin = read_log_window(s->apart, s->wide, f->seen[at].begin_ns) *
			(int64_t)s->apart;
		for (j = at; j > first && f->seen[j - 1].end_ns >= begin; j--)
			;
		f->history[k] = (uint32_t)(at - j);
	}
}

static void find_targets(struct fit *f, struct read_law *law)
{
	uint8_t *level = xcalloc(f->n, sizeof(*level));
	size_t *candidate = xcalloc(f->n, sizeof(*candidate)), from = 0;

	count_levels(f, level);
	for (size_t i = 0; i < f->sets; from += f->set[i++].n) {
		size_t most = f->sets == 1 ? TARGETS_MAX : TARGETS_OF_RUN;

		choose_targets(f, &f->set[i], from, level, candidate,
			       i ? (TARGETS_MAX - TARGETS_OF_RUN) / (f->sets - 1) : most);
		if (i == 0 && f->targets < 4)
			break;
	}
	qsort(f->target, f->targets, sizeof(*f->target), by_index);
	for (size_t k = 0; k < f->targets; k++)
		f->target[k].level = f->level[k] = level[f->target[k].at];
	f->most = 1;
	for (size_t j = 0; j < f->n; j++)
		law->beside_share += (level[j] > 1) / (double)f->n;
	for (size_t j = 0; j < f->n; j++)
		f->most = level[j] > f->most ? level[j] : f->most;
	law->most = (uint32_t)(f->most * f->times);
	free(candidate);
	free(level);
}

struct read_law read_fit(const struct read_set *sets, size_t count, double times)
{
	struct fit f = {.set = sets, .sets = count, .times = times, .latency = -1};
	struct read_law law = {0};

	for (size_t i = 0; i < count; i++)
		f.n += sets[i].n;
	if (f.n >= 4 && fit_reserve(&f)) {
		fill_reads(&f);
		find_targets(&f, &law);
		if (f.targets >= 4) {
			measure_targets(&f, &law);
			find_ahead(&f);
			find_history(&f);
			find_groups(&f);
			try_shared(&f, law.sizes_differ);
			try_queues(&f, &law);
			refine_bursts(&f, &law);
			choose_laws(&f, &law);
			set_table(&f, &law);
			for_all_hosts(&f, &law);
			read_law_prefer(&law, 0);
		} else {
			law = (struct read_law){0};
		}
	}
	free(f.seen);
	free(f.moment);
	free(f.end);
	free(f.target);
	free(f.error);
	free(f.ahead);
	free(f.history);
	free(f.level);
	return law;
}
