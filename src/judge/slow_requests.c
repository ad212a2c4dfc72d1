/* Tails of single kinds of requests: by the histograms of all requests, and by those of the log
 * that were served while a slow one was under way. */
#include "judge/slow_requests.h"

#include <math.h>
#include <stdlib.h>

#include "predict/costs.h"

static const double SLOW_TIMES = 5; /* times the upper quartile of its kind */
static const double SLOW_LEAST_S = 1e-3;
static const double COUNT_LEAST = 4;
static const double NEARLY_ALL = 0.8; /* of the time in slow requests, of any kind */
static const double NO_TERM = 1e-9;
static const double FEW_OF_ALL = 0.3; /* of the requests of the kind */
static const double CLUSTERED = 3;    /* times the slow ones of the other half of the run, */
static const double AT_RANDOM = 4;    /* and so many more */
static const double UNLIKELY = 0.01;  /* that a storage that stands still meets so many of a kind */
static const double SERVED_SHARE = 0.2; /* of the slow ones: others were served meanwhile */
static const size_t SERVED_LEAST = 3;
static const double FEW = 0.35;       /* of the requests that are alike */
static const double LOGGED = 0.5;     /* of the slow opens and closes: opens that the log has */
static const double OF_ONE_BATCH = 4; /* slow ones, one after another */

/* Requests as histograms tell them apart. HEADERS, which are read first and in many sizes, are only
 * what the others are held against. */
enum { NAMES, LOOKUPS, READS, HEADERS, GROUPS };

struct times {
	double count[IO_CLASS_BUCKETS]; /* requests */
	double n, s;
	double slow_s; /* the shortest slow one */
	double over_n, over_s, over_median_s;
};

static double middle_s(size_t b)
{
	return (double)(io_latency_bucket_low(b) + io_latency_bucket_low(b + 1)) / 2e9;
}

static void fill(const struct result *r, struct times *t)
{
	static const enum io_kind of[] = {IO_OPEN, IO_META, IO_DATA};

	for (uint32_t k = 0; k < r->ranks; k++) {
		const struct io_stat *io = &r->rank[k].train_io;

		for (int g = 0; g < HEADERS; g++)
			for (size_t b = 0; io->kind[of[g]].requests && b < HIST_BUCKETS; b++)
				t[g].count[b / 2] += io->kind[of[g]].latency_ns.count[b];
		for (int c = 0; c < IO_CLASSES; c++) {
			const struct io_latency *l = io_stat_sized(io, IO_META, (enum io_class)c);

			for (size_t b = 0; l->total && b < IO_CLASS_BUCKETS; b++) {
				t[LOOKUPS].count[b] -= l->count[b];
				t[HEADERS].count[b] += l->count[b];
			}
		}
	}
	for (int g = 0; g < GROUPS; g++)
		for (size_t b = 0; b + 1 < IO_CLASS_BUCKETS; b++) {
			t[g].count[b] = fmax(0, t[g].count[b]);
			t[g].n += t[g].count[b];
			t[g].s += t[g].count[b] * middle_s(b);
		}
}

static double quantile_s(const struct times *t, double from, double of)
{
	double n = 0, all = 0;

	for (size_t b = 0; b + 1 < IO_CLASS_BUCKETS; b++)
		all += middle_s(b) >= from ? t->count[b] : 0;
	for (size_t b = 0; b + 1 < IO_CLASS_BUCKETS; b++) {
		n += middle_s(b) >= from ? t->count[b] : 0;
		if (n > 0 && n >= of * all)
			return middle_s(b);
	}
	return 0;
}

static void look_over(struct times *t, double least_s)
{
	t->over_n = t->over_s = 0;
	for (size_t b = 0; b + 1 < IO_CLASS_BUCKETS; b++)
		if (middle_s(b) >= least_s) {
			t->over_n += t->count[b];
			t->over_s += t->count[b] * middle_s(b);
		}
	t->over_median_s = quantile_s(t, least_s, 0.5);
}

/* How likely at least k of n are, each with p. */
static double at_least(double k, double n, double p)
{
	double sum = 0, term = 1;

	if (k <= n * p)
		return 1;
	/* beyond the mean each is less than the one before */
	for (double i = k; i <= n && term > NO_TERM; i++) {
		term = exp(lgamma(n + 1) - lgamma(i + 1) - lgamma(n - i + 1) + i * log(p) +
			   (n - i) * log1p(-p));
		sum += term;
	}
	return sum;
}

/* Whether a storage that stands still would have met requests of other kinds, too: those that are
 * frequent, or under way for long. A worker that was idle begins with a file. */
static bool met_by_chance(const struct times *t, int group, double idle)
{
	double n = 0, s = 0, over = 0, p;

	for (int g = 0; g < GROUPS; g++) {
		n += t[g].n;
		s += t[g].s - t[g].over_s;
		over += t[g].over_n;
	}
	p = fmax(t[group].n / n, s > 0 ? (t[group].s - t[group].over_s) / s : 1);
	p = fmin(1, idle + (1 - idle) * p);
	return p >= 1 || at_least(floor(t[group].over_n), floor(over), p) > UNLIKELY;
}

/* Whether a request of the log began and ended in the middle of this one. */
static bool served_meanwhile(const struct read_set *set, const struct read_seen *slow)
{
	int64_t part = (slow->end_ns - slow->begin_ns) / 4;
	int64_t from = slow->begin_ns + part, to = slow->end_ns - part;
	size_t low = 0, high = set->n;

	while (low < high) {
		size_t at = low + (high - low) / 2;

		if (set->seen[at].begin_ns < from)
			low = at + 1;
		else
			high = at;
	}
	for (; low < set->n && set->seen[low].begin_ns < to; low++)
		if (set->seen[low].end_ns <= to)
			return true;
	return false;
}

/* Reads take longer for their bytes, or where they are the first of a file: how many of the reads
 * like the slow ones in that are slow, each weighing as little as it is likely to be in the log. */
static double slow_of_alike(const struct read_set *set, double slow_s)
{
	double bytes = 0, first = 0, n = 0, slow = 0, all = 0;

	for (int pass = 0; pass < 2; pass++)
		for (size_t i = 0; i < set->n; i++) {
			const struct read_seen *s = &set->seen[i];
			double took = (double)(s->end_ns - s->begin_ns);
			double weight = read_log_weight(set->apart, set->wide, s);
			bool is = took / 1e9 >= slow_s;

			if (pass == 0 && is) {
				bytes += (double)s->bytes;
				first += s->place == 0;
				n++;
			} else if (pass == 1 && (double)s->bytes * n >= bytes / 2 &&
				   (first <= n / 2 || s->place == 0)) {
				slow += is ? weight : 0;
				all += weight;
			}
		}
	return all > 0 ? slow / all : 1;
}

static bool is_of(const struct read_seen *s, int group)
{
	return group == READS || s->place == (group == NAMES ? SEEN_OPEN : SEEN_STAT);
}

/* Slow ones that the log has, as many as all of them would be; how many of them others were served
 * beside, and the longest of these. */
struct logged {
	double all;
	size_t kept, beside;
	double longest_s;
	double of_alike;    /* reads: slow ones of those like them */
	double others_s;    /* mean of those that are not slow; 0: the log has none */
	double early, late; /* slow ones of the first and of the second half of the kind */
};

static struct logged look_at_log(const struct read_set set[2], int group, double slow_s)
{
	const struct read_set *own = &set[group != READS];
	struct logged l = {.of_alike = group == READS ? slow_of_alike(own, slow_s) : 0};
	double others = 0;
	size_t of = 0, at = 0;

	for (size_t i = 0; i < own->n; i++)
		of += is_of(&own->seen[i], group);
	for (size_t i = 0; i < own->n; i++) {
		const struct read_seen *s = &own->seen[i];
		double took = (double)(s->end_ns - s->begin_ns);

		if (!is_of(s, group))
			continue;
		at++;
		if (took / 1e9 < slow_s) {
			double weight = read_log_weight(own->apart, own->wide, s);

			others += weight;
			l.others_s += weight * took / 1e9;
			continue;
		}
		l.kept++;
		*(2 * at <= of ? &l.early : &l.late) += 1;
		l.all += own->apart ? fmax(1, (double)own->apart / ((double)own->wide + took)) : 1;
		if (!served_meanwhile(&set[0], s) && !served_meanwhile(&set[1], s))
			continue;
		l.beside++;
		l.longest_s = fmax(l.longest_s, took / 1e9);
	}
	l.others_s = others > 0 ? l.others_s / others : 0;
	return l;
}

static double idle_share(const struct result *r)
{
	const struct decomposition *d = &r->judged.time;
	double room = 0, work = 0;

	for (uint32_t k = 0; k < r->ranks; k++)
		room += d->wall_s * fmax(1, r->rank[k].workers) * !r->rank[k].lost;
	for (int k = 0; k < WORK_KINDS; k++)
		work += d->work_s[k];
	return room > 0 ? fmax(0, 1 - work / room) : 1;
}

/* The group whose slow requests take most; GROUPS: none's. */
static int slowest(struct times *t)
{
	int most = GROUPS;

	for (int g = 0; g < GROUPS; g++) {
		t[g].slow_s = fmax(SLOW_LEAST_S, SLOW_TIMES * quantile_s(&t[g], 0, 0.75));
		look_over(&t[g], t[g].slow_s);
		if (t[g].over_n >= COUNT_LEAST && (most == GROUPS || t[g].over_s > t[most].over_s))
			most = g;
	}
	/* of the others, those that a stall of that length would have met */
	for (int g = 0; most < GROUPS && g < GROUPS; g++)
		if (g != most)
			look_over(&t[g], fmax(t[g].slow_s, t[most].over_median_s / 2));
	return most;
}

struct slow_requests slow_requests_find(const struct result *r)
{
	struct times t[GROUPS] = {0};
	struct slow_requests found = {.kind = SLOW_NONE};
	struct read_set set[2];
	struct read_seen *seen[2];
	struct logged l;
	double over_s = 0, times = 1;
	bool beside;
	int g;

	fill(r, t);
	g = slowest(t);
	for (int i = 0; g < GROUPS && i < GROUPS; i++)
		over_s += t[i].over_s;
	if (g == GROUPS || g == HEADERS || t[g].over_s < NEARLY_ALL * over_s)
		return found;
	for (int i = 0; i < 2; i++)
		seen[i] = costs_reads(r, i == 1, NULL, &set[i], &times);
	l = look_at_log(set, g, t[g].slow_s);
	free(seen[0]);
	free(seen[1]);
	/* a storage that becomes slower, or faster, has no tail */
	if (fmax(l.early, l.late) > CLUSTERED * fmin(l.early, l.late) + AT_RANDOM)
		return found;
	beside = l.beside >= SERVED_LEAST && (double)l.beside >= SERVED_SHARE * (double)l.kept;
	/* reads are most of what a storage that stands still holds back */
	if (l.of_alike > FEW || (!beside && (g == READS || met_by_chance(t, g, idle_share(r)))))
		return found;
	found.kind = g == READS                              ? SLOW_READS
		     : g == LOOKUPS                          ? SLOW_STATS
		     : l.all * times >= LOGGED * t[g].over_n ? SLOW_OPENS
							     : SLOW_CLOSES;
	found.count = t[g].over_n;
	found.all = g == NAMES ? t[g].n / 2 : t[g].n;
	/* half of the opens may be a quarter of opens and closes */
	if (found.count > FEW_OF_ALL * found.all)
		return (struct slow_requests){.kind = SLOW_NONE};
	found.slow_s = t[g].over_s;
	found.each_s = t[g].over_s / t[g].over_n;
	found.others_s = (t[g].s - t[g].over_s) / (t[g].n - t[g].over_n);
	/* opens and closes are counted together; the log has opens */
	if (found.kind == SLOW_OPENS && l.others_s > 0)
		found.others_s = l.others_s;
	else if (found.kind == SLOW_CLOSES && l.others_s > 0 && found.all > found.count)
		found.others_s = fmax(0, t[g].s - t[g].over_s - l.others_s * found.all) /
				 (found.all - found.count);
	found.longest_s = fmax(OF_ONE_BATCH * t[g].over_median_s, OF_ONE_BATCH / 2 * l.longest_s);
	return found;
}
