/* Times of requests are taken from the logs of reads: what an explanation says of waiting and
 * moving bytes is taken off, and what is left is drawn from. */
#include "predict/basis_of.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/rng.h"
#include "base/stats.h"
#include "predict/fleet.h"
#include "predict/queue_fit.h"

#define READS_MAX 8192
#define READS_LEAST 10
#define BLOCKS 20    /* of reads that follow one another, which are resampled */
#define SHAPES 60    /* resamples that the interval of the tail's shape is of */
#define RESAMPLES 16 /* of these, that are kept */
#define SERVERS_MOST 4096
#define TURNS 4
#define EVENTS 60000.0 /* of a simulation of the run itself */

static const double ALIKE = 0.02;   /* of the median: computing that varies less is a constant */
static const double NOTABLE = 0.03; /* of a batch's time: opens that take less just take it */
static const double ABOVE = 1.3;    /* times a rate that a probe did not get beyond: wrong */
static const double SLOWED = 1.25; /* times the time of a request in the run: it waits for others */
static const double PACED = 0.3;   /* of a request: its latency, beside the time at a server */
static const double STARVED = 0.05; /* of the time without a processor, and processors of others */
static const double FEW =
	8; /* of the readers of a probe, as a part of the most: hardly any waits */
static const double CEILING_OFF = 0.03; /* of a ceiling, from run to run: one standard deviation */

/* Requests of one kind with their times. */
struct times {
	const struct read_seen *seen;
	struct read_seen *owned; /* the same, of the run */
	size_t n;
	double *own; /* s, of those that are looked at, in the order in which they began */
	size_t kept;
};

static bool whole(const struct read_set *set, const struct read_seen *s)
{
	int64_t window = read_log_window(set->apart, set->wide, s->begin_ns);

	return window >= 0 && window == read_log_window(set->apart, set->wide, s->end_ns);
}

/* How many requests move bytes: the sum over time until each moment. */
struct movers {
	struct mover {
		double at, sum; /* sum until then */
		int change, now;
	} * m;
	size_t n;
};

static int by_at(const void *x, const void *y)
{
	const struct mover *a = x, *b = y;

	return (a->at > b->at) - (a->at < b->at);
}

static double begin_of(const struct times *t, size_t i)
{
	return (double)(t->seen[i].begin_ns - t->seen[0].begin_ns) / 1e9;
}

static double end_of(const struct times *t, size_t i)
{
	return (double)(t->seen[i].end_ns - t->seen[0].begin_ns) / 1e9;
}

static void movers_find(struct movers *v, const struct times *t, double latency_s)
{
	double sum = 0, at = 0;
	int now = 0;

	v->m = xcalloc(2 * t->n, sizeof(*v->m));
	v->n = 0;
	for (size_t i = 0; i < t->n; i++) {
		double end = end_of(t, i);

		v->m[v->n++] =
			(struct mover){.at = fmin(end, begin_of(t, i) + latency_s), .change = 1};
		v->m[v->n++] = (struct mover){.at = end, .change = -1};
	}
	qsort(v->m, v->n, sizeof(*v->m), by_at);
	for (size_t i = 0; i < v->n; i++) {
		sum += (v->m[i].at - at) * now;
		at = v->m[i].at;
		now += v->m[i].change;
		v->m[i].sum = sum;
		v->m[i].now = now;
	}
}

static double movers_until(const struct movers *v, double at)
{
	size_t low = 0, high = v->n;

	while (low < high) {
		size_t mid = (low + high) / 2;

		if (v->m[mid].at <= at)
			low = mid + 1;
		else
			high = mid;
	}
	return low ? v->m[low - 1].sum + (at - v->m[low - 1].at) * v->m[low - 1].now : 0;
}

/* When requests are served that come in their order, by an explanation of their waits. */
struct turn {
	const struct read_rates *rates;
	uint32_t most, n;
	double *last; /* ends, the latest first */
	double *released;
	uint64_t releases;
};

static double turn_from(struct turn *q, double begin, double end)
{
	double from = begin;

	/* a latency on top keeps no server busy */
	if (q->most && q->n == q->most)
		from = fmax(from, q->last[q->most - 1] - q->rates->latency_ns / 1e9);
	if (q->most)
		queue_note_end(q->last, q->most, &q->n, end);
	if (q->rates->burst) {
		double *slot = &q->released[q->releases % q->rates->burst];

		if (q->releases++ >= q->rates->burst)
			from = fmax(from, *slot + q->rates->burst * q->rates->pace_ns / 1e9);
		/* it was released before its end */
		from = fmin(from, end);
		*slot = from;
	}
	return from;
}

/* The times that requests took by themselves, by an explanation of their waits. */
static void take_off_waits(struct times *t, const struct read_set *set, const struct read_rates *r)
{
	struct turn turn = {.rates = r, .most = r->servers <= SERVERS_MOST ? r->servers : 0};
	struct movers movers;
	double latency = r->latency_ns / 1e9;

	turn.last = xcalloc(turn.most ? turn.most : 1, sizeof(double));
	turn.released = xcalloc(r->burst ? r->burst : 1, sizeof(double));
	movers_find(&movers, t, latency);
	for (size_t i = 0; i < t->n; i++) {
		double begin = begin_of(t, i), end = end_of(t, i);
		double from = turn_from(&turn, begin, end), moving = fmin(end, begin + latency);
		double beside = 1, bytes = (double)t->seen[i].bytes / 1e9;

		if (end > moving)
			beside = (movers_until(&movers, end) - movers_until(&movers, moving)) /
				 (end - moving);
		if (whole(set, &t->seen[i]))
			t->own[t->kept++] = fmax(
				0, end - from -
					   bytes * fmax(r->stream_ns_per_byte,
							r->shared_ns_per_byte * fmax(1, beside)));
	}
	free(movers.m);
	free(turn.released);
	free(turn.last);
}

/* Of the run; and of its probe, where that was slowed down by nothing: there are more of them. */
static void own_times(const struct result *r, const struct costs *c, bool slowed, struct times *t,
		      const struct read_set *set, const struct read_rates *rates)
{
	size_t room = t->n;

	t->kept = 0;
	take_off_waits(t, set, rates);
	if (!c->law.probed || slowed || c->law.plateau > 0)
		return;
	for (uint32_t i = 0; i < r->probe.count; i++)
		room += r->probe.point[i].reads.n;
	t->own = xrealloc(t->own, (room ? room : 1) * sizeof(*t->own));
	for (uint32_t i = 0; i < r->probe.count; i++) {
		const struct probe_log *l = &r->probe.point[i].reads;
		const struct read_set of = {l->seen, l->n, l->apart, l->wide};
		struct times point = {.seen = l->seen, .n = l->n, .own = t->own + t->kept};

		if (l->n > 0)
			take_off_waits(&point, &of, rates);
		t->kept += point.kept;
	}
}

/* Blocks of those that followed one another, drawn with replacement. */
static struct drawn resampled(const struct times *t, uint64_t seed)
{
	size_t block = (t->kept + BLOCKS - 1) / BLOCKS, n = 0;
	double *v = xcalloc(t->kept + block, sizeof(*v));
	struct drawn d;

	for (uint64_t i = 0; n < t->kept; i++) {
		size_t at = rng_word(seed, i) % t->kept;

		for (size_t k = 0; k < block && n < t->kept; k++)
			v[n++] = t->own[(at + k) % t->kept];
	}
	d = drawn_of(v, n);
	free(v);
	return d;
}

static struct drawn all_of(const struct times *t)
{
	double *v = xcalloc(t->kept, sizeof(*v));
	struct drawn d;

	memcpy(v, t->own, t->kept * sizeof(*v));
	d = drawn_of(v, t->kept);
	free(v);
	return d;
}

static bool load_times(const struct result *r, bool opens, const struct store_law *law,
		       struct times *t, struct read_set *set)
{
	double times;

	t->seen = t->owned = costs_reads(r, opens, &law->places, set, &times);
	t->n = t->seen ? set->n : 0;
	if (t->n > READS_MAX)
		t->n = READS_MAX;
	t->own = xcalloc(t->n ? t->n : 1, sizeof(*t->own));
	return t->n >= READS_LEAST;
}

static void times_release(struct times *t)
{
	free(t->owned);
	free(t->own);
}

/* ---- computing ---- */

static bool compute_of(const struct result *r, uint32_t epochs, struct drawn *out)
{
	size_t n = 0, room = 0;
	double *v, sum = 0;

	for (uint32_t k = 0; k < r->ranks; k++)
		for (uint32_t e = 0; e < epochs && !r->rank[k].lost; e++)
			for (uint32_t b = 0; b < r->rank[k].epoch[e].blocks; b++)
				room += r->rank[k].epoch[e].block[b].steps;
	if (room == 0)
		return false;
	v = xcalloc(room, sizeof(*v));
	for (uint32_t k = 0; k < r->ranks; k++)
		for (uint32_t e = 0; e < epochs && !r->rank[k].lost; e++)
			for (uint32_t b = 0; b < r->rank[k].epoch[e].blocks; b++) {
				const struct phase *p = &r->rank[k].epoch[e].block[b];

				for (uint64_t i = 0; i < p->steps; i++)
					sum += v[n++] = step_computed_s(&p->step[i]);
			}
	*out = drawn_of(v, n);
	/* v is sorted now */
	if (v[n - 1 - n / 10] - v[n / 10] < ALIKE * v[n / 2])
		*out = drawn_constant(sum / (double)n);
	free(v);
	return drawn_mean(out) > 0;
}

/* ---- processors ---- */

/* Of this program for a batch, whatever thread: what ran while it was ready to. */
static double processor_s(const struct result *r, uint32_t epochs, const struct costs *c)
{
	double ran = 0;

	for (uint32_t i = 0; i < epochs; i++) {
		if (r->usage[i].cpu_train.ran_ns <= 0 || r->processes > 1)
			return c->cpu;
		ran += (double)r->usage[i].cpu_train.ran_ns / 1e9;
	}
	return fmin(c->cpu, ran / (double)r->judged.time.batches);
}

/* ---- the fleet ---- */

static void base_fleet(const struct result *r, uint32_t epochs, const struct variants *v,
		       struct fleet *f)
{
	const struct costs *c = &v->costs;
	const struct model *m = &v->one[0].m;
	double work = processor_s(r, epochs, c), decode = fmin(c->decode, work), beyond;

	beyond = fmax(0, work - decode);
	*f = (struct fleet){
		.ranks = r->ranks,
		.hosts = r->nodes ? r->nodes : 1,
		.steps = m->steps,
		.epochs = epochs,
		.workers = m->workers,
		.window = m->window,
		.runs = m->runs,
		.in_order = m->in_order,
		.samples = c->samples,
		.bytes = c->bytes,
		.delay_s = fmax(0, c->service - c->open - c->reads - c->decode) +
			   fmax(0, c->decode - decode),
		.cpu_s = decode + beyond / 2,
		.cpus = m->cpus,
		.step_s = m->step_s,
		.hand_s = m->hand_s,
		.start_s = m->start_s,
		.fork_s = m->fork_s,
		.begin_s = m->begin_s,
		/* what a rank does when a batch comes and when it has computed */
		.take_s = m->take_s + beyond / 4,
		.end_s = m->end_s + beyond / 4,
	};
}

static bool same_ceiling(const struct read_rates *r, double most)
{
	return r->servers && r->servers >= most;
}

/* Whether requests took longer with the most readers of a probe than in the run. */
static bool probe_slows(const struct result *r, const struct costs *c)
{
	const struct probe_point *q;

	if (r->probe.count == 0)
		return false;
	q = &r->probe.point[r->probe.count - 1];
	return c->law.probed && q->requests > 0 &&
	       q->read_s / (double)q->requests > SLOWED * c->law.reads.mean_ns / 1e9;
}

/* A ceiling just above what was seen explains the reads as well as none does, and one that slowed
 * down no probe is an accident of a few requests. */
static bool never_seen(const struct read_rates *r, const struct costs *c, bool slowed)
{
	return same_ceiling(r, c->law.reads.most) ||
	       (c->law.probed && !slowed && !(c->law.plateau > 0));
}

static struct read_rates without_ceiling(struct read_rates r)
{
	r.latency_ns += r.serve_ns;
	r.stream_ns_per_byte = fmax(r.stream_ns_per_byte, r.serve_ns_per_byte);
	r.servers = r.burst = 0;
	r.shared_ns_per_byte = 0;
	return r;
}

/* Of a probe whose readers got no more in the end: whether that is of bytes, as requests of another
 * size tell, or else of requests. */
static bool plateau_of_bytes(const struct result *r, double rate, double bytes)
{
	const struct probe *p = &r->probe;
	const struct probe_point *q;
	double other;

	if (p->sized_count == 0)
		return false;
	q = &p->sized[p->sized_count - 1];
	if (!(q->seconds > 0) || q->requests == 0)
		return false;
	other = (double)q->requests / q->seconds;
	return fabs(log((double)q->bytes / q->seconds / (rate * bytes))) < fabs(log(other / rate));
}

/* A probe found a ceiling that an explanation does not have. */
static void keep_plateau(const struct result *r, const struct costs *c,
			 const struct read_rates *rates, struct fleet *f)
{
	double each = c->samples > 0 ? c->requests / c->samples : 0;
	double rate = c->law.plateau * each, bytes = c->bytes / fmax(1e-9, c->requests);

	if (!(rate > 0) || read_rates_ceiling(rates, bytes) < ABOVE * rate)
		return;
	if (plateau_of_bytes(r, rate, bytes))
		f->store.bytes_per_s = rate * bytes;
	else
		f->store.requests_per_s = rate;
	f->servers = 0;
}

/* Requests/s of n readers of which each takes `think_s` by itself, and `serve_s` at what all share:
 * mean value analysis, exact for any distribution of both where sharing is equal. */
static double rate_of_readers(uint32_t n, double think_s, double serve_s)
{
	double queue = 0, rate = 0;

	for (uint32_t k = 1; k <= n; k++) {
		double there = serve_s * (1 + queue);

		rate = k / (think_s + there);
		queue = rate * there;
	}
	return rate;
}

/* s of a request at a point of a probe. */
static double probe_each(const struct probe_point *q)
{
	return q->requests > 0 ? q->read_s / (double)q->requests : 0;
}

/* Whether requests of another size were slowed down less: it is bytes that are shared. */
static bool slowed_by_bytes(const struct probe *p, double slowed)
{
	double alone, other;

	if (p->sized_count < 2)
		return false;
	alone = probe_each(&p->sized[0]);
	other = probe_each(&p->sized[p->sized_count - 1]);
	return alone > 0 && other > 0 && log(other / alone) < log(slowed) / 2;
}

/* The ceiling that slowed down the most readers of a probe, where no explanation of single requests
 * has one: their times vary too much by themselves. */
static void keep_slowdown(const struct result *r, const struct costs *c,
			  const struct read_rates *rates, struct fleet *f)
{
	const struct probe *p = &r->probe;
	const struct probe_point *most = &p->point[p->count - 1];
	double bytes = c->bytes / fmax(1e-9, c->requests), s = 0, n = 0, low = 0, high, rate;

	if (!isinf(read_rates_ceiling(rates, bytes)) || c->law.plateau > 0)
		return;
	for (uint32_t i = 0; i < p->count && p->point[i].readers * FEW <= most->readers; i++) {
		s += p->point[i].read_s;
		n += (double)p->point[i].requests;
	}
	if (!(n > 0) || !(most->seconds > 0))
		return;
	rate = (double)most->requests / most->seconds;
	high = s / n;
	for (int i = 0; i < 40; i++) {
		double serve = (low + high) / 2;

		if (rate_of_readers(most->readers, s / n - serve, serve) > rate)
			low = serve;
		else
			high = serve;
	}
	if (slowed_by_bytes(p, probe_each(most) * n / s))
		f->store.bytes_per_s = bytes / high;
	else
		f->store.requests_per_s = 1 / high;
}

/* What an explanation says of waiting. */
static void explain(struct fleet *f, const struct read_rates *r, const struct drawn *d)
{
	f->request = *d;
	f->stream = r->stream_ns_per_byte > 0 ? 1e9 / r->stream_ns_per_byte : 0;
	f->store.bytes_per_s = r->shared_ns_per_byte > 0 ? 1e9 / r->shared_ns_per_byte : 0;
	f->servers = r->servers;
	f->store.requests_per_s = r->burst && r->pace_ns > 0 ? 1e9 / r->pace_ns : 0;
	/* servers that are busy for a small part of a request's time are a pace */
	if (r->servers && r->latency_ns > PACED * (r->latency_ns + r->serve_ns)) {
		f->store.requests_per_s = read_rates_ceiling(r, f->bytes / fmax(1e-9, f->requests));
		f->servers = 0;
	}
}

static void explain_opens(struct fleet *f, const struct read_rates *r, const struct drawn *d,
			  double opens, double most)
{
	f->opens = opens;
	f->open = *d;
	f->open_servers = same_ceiling(r, most) ? 0 : r->servers;
	f->store.opens_per_s = r->burst && r->pace_ns > 0 ? 1e9 / r->pace_ns : 0;
}

/* A normal number near 1, by the sum of twelve uniform ones. */
static double jitter(uint64_t seed)
{
	double sum = -6;

	for (uint64_t i = 0; i < 12; i++)
		sum += (double)(rng_word(seed, i) >> 11) * 0x1p-53;
	return fmax(0.5, 1 + CEILING_OFF * sum);
}

static void add_resamples(struct basis *b, const struct times *t, const struct times *opens)
{
	double shape[SHAPES];
	size_t n = 0;

	b->shape_low = 1; /* no tail */
	for (uint32_t i = 0; i < SHAPES && t->kept >= READS_LEAST; i++) {
		struct drawn d = resampled(t, rng_key(i, 1, 0));

		if (d.tail > 0)
			shape[n++] = d.shape;
		if (i < RESAMPLES && b->count < BASIS_MAX) {
			struct fleet *f = &b->one[b->count++];
			double by = jitter(rng_key(i, 2, 0));

			*f = b->one[0];
			f->request = d;
			f->store.bytes_per_s *= by;
			f->store.requests_per_s *= by;
			f->store.opens_per_s *= by;
			if (f->servers)
				drawn_scale(&f->request, 1 / by);
			if (opens->kept >= READS_LEAST && f->opens > 0)
				f->open = resampled(opens, rng_key(i, 3, 0));
		}
	}
	if (n < SHAPES / 2 || !(b->one[0].request.tail > 0))
		return;
	sort_numbers(shape, n);
	b->shape = b->one[0].request.shape;
	b->shape_low = shape[n / 20];
	b->shape_high = shape[n - 1 - n / 20];
}

/* What the run would have been by each explanation. */
static void try_on_run(struct basis *b)
{
	for (uint32_t i = 0; i < b->count; i++) {
		double sum = 0;
		int turns = i ? 1 : TURNS;

		for (int k = 0; k < turns && i < b->explanations; k++) {
			struct fleet_result got =
				fleet_run(&b->one[i], rng_key(i, 4, (uint64_t)k), EVENTS);

			sum += got.known ? got.au_rate / turns : NAN;
		}
		b->modeled[i] = i < b->explanations ? sum : NAN;
	}
}

static bool fill_explanations(const struct result *r, const struct variants *v, struct times *reads,
			      const struct read_set *set, const struct fleet *base, struct basis *b,
			      struct read_rates *best)
{
	double requests = v->costs.requests;
	bool slowed = probe_slows(r, &v->costs);

	for (uint32_t i = 0; i < v->count && b->count < BASIS_MAX - RESAMPLES; i++) {
		struct read_rates rates = v->one[i].rates;
		struct drawn d;

		if (v->one[i].split_only)
			continue;
		if (never_seen(&rates, &v->costs, slowed)) {
			b->untold = !slowed && !(v->costs.law.plateau > 0);
			if (i > 0)
				continue;
			rates = without_ceiling(rates);
		}
		b->one[b->count] = *base;
		if (requests > 0 && reads->n >= READS_LEAST) {
			own_times(r, &v->costs, slowed, reads, set, &rates);
			if (reads->kept < READS_LEAST)
				continue;
			d = all_of(reads);
			b->one[b->count].requests = requests;
			explain(&b->one[b->count], &rates, &d);
			keep_plateau(r, &v->costs, &rates, &b->one[b->count]);
			if (slowed)
				keep_slowdown(r, &v->costs, &rates, &b->one[b->count]);
			if (b->count == 0)
				*best = rates;
		} else {
			b->one[b->count].delay_s += v->costs.reads;
		}
		b->count++;
	}
	b->explanations = b->count;
	return b->count > 0;
}

static void add_opens(const struct variants *v, struct times *opens, const struct read_set *set,
		      struct basis *b)
{
	const struct costs *c = &v->costs;
	struct read_rates best = v->one[0].opens;
	struct drawn d;

	if (c->opens > 0 && c->open > NOTABLE * c->service && opens->n >= READS_LEAST) {
		opens->kept = 0;
		take_off_waits(opens, set, &best);
		if (opens->kept >= READS_LEAST) {
			d = all_of(opens);
			for (uint32_t i = 0; i < b->count; i++)
				explain_opens(&b->one[i], &best, &d, c->opens, c->law.opens.most);
			return;
		}
	}
	opens->kept = 0;
	for (uint32_t i = 0; i < b->count; i++)
		b->one[i].delay_s += c->open;
}

/* Other programs made requests late, which says nothing of the storage. */
static bool starved(const struct result *r, const struct costs *c, struct basis *out)
{
	const struct decomposition *d = &r->judged.time;
	double share = d->wall_s > 0 ? d->mean_s[TIME_NO_CPU] / d->wall_s : 0;

	if (share < STARVED || c->others < STARVED)
		return false;
	*out = (struct basis){.known = false};
	snprintf(
		out->why, sizeof(out->why),
		"threads of the run had no processor for %.0f %% of the training time, while other "
		"programs used %.1f processors",
		100 * share, c->others);
	return true;
}

void basis_of(const struct result *r, uint32_t epochs, const struct variants *v, struct basis *out)
{
	const struct decomposition *d = &r->judged.time;
	struct times reads = {0}, opens = {0};
	struct read_set read_set = {0}, open_set = {0};
	struct read_rates best = {0};
	struct fleet base;

	*out = (struct basis){.known = true};
	if (starved(r, &v->costs, out))
		return;
	base_fleet(r, epochs, v, &base);
	if (!compute_of(r, epochs, &base.compute)) {
		*out = (struct basis){.why = "there is no computation"};
		return;
	}
	load_times(r, false, &v->costs.law, &reads, &read_set);
	load_times(r, true, &v->costs.law, &opens, &open_set);
	if (fill_explanations(r, v, &reads, &read_set, &base, out, &best)) {
		add_opens(v, &opens, &open_set, out);
		if (reads.n >= READS_LEAST)
			own_times(r, &v->costs, probe_slows(r, &v->costs), &reads, &read_set,
				  &best);
		add_resamples(out, &reads, &opens);
		out->au_rate = d->wall_s > 0 ? 100 * d->mean_s[TIME_COMPUTE] / d->wall_s : 0;
		out->most_in_flight = v->costs.law.reads.most;
		out->taken = fmin(100, v->costs.taken);
		out->probed = v->costs.law.probed;
		try_on_run(out);
	} else {
		*out = (struct basis){.why = "too few requests were kept"};
	}
	times_release(&reads);
	times_release(&opens);
}
