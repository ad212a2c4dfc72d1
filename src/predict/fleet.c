/* Hands a fleet to the model (predict/model.h), which implements the loaders' rules and queues. */
#include "predict/fleet.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/rng.h"
#include "os/at_once.h"
#include "predict/model.h"

#define PARTS_QUEUED 16      /* of a batch, where its requests wait */
#define PARTS_SHARED 4       /* where only its bytes do */
#define REPLICATE_EVENTS 3e6 /* of a simulation that only the interval needs */
#define REPEATS 8            /* of the best explanation */
#define BEST_EVENTS 1e7      /* of that */
#define OTHERS_EVENTS 1e7    /* of all that only the interval needs: fewer of a large fleet */
#define OTHERS_LEAST 4
#define MEMORY_MOST 0x1p30 /* of simulations beside each other, bytes */

static const double IDLE = 0.01;         /* of the time: such waits limit nothing */
static const double BUSY = 0.85;         /* of a ceiling: it limits */
static const double STRAGGLING = 2;      /* times the mean wait */
static const double NEVER_LESS = 1;      /* points of AU, that two runs differ by */
static const double MODEL_OFF = 0.03;    /* of what is lost: what the model is off elsewhere */
static const double DOUBLING_OFF = 0.25; /* points for each doubling of the ranks, as validated */
static const double SIGMAS = 2;
static const double ROOT = 0.5;   /* the shape of a tail that grows as the square root */
static const double MATTERS = 10; /* points of AU: a figure would promise too much */

/* Over the epochs that were simulated; s, AU in percent. */
struct fleet_sums {
	struct hist wait_ns;
	double wall, computed, au; /* computed: mean over ranks; au: by DLIO's definition */
	double steps;              /* of a rank */
	double wait, slowest;      /* of all ranks; of the slowest one of each step */
	double at_store, cpu;
};

const char *const fleet_limit_names[FLEET_LIMITS] = {
	"computation",
	"the latency of requests",
	"the slowest rank of each step",
	"the bandwidth of the storage",
	"the requests/s of the storage",
	"the opens/s of the storage",
	"the bandwidth of a host",
	"the requests/s of a host",
	"the opens/s of a host",
	"processors",
};

/* ---- one simulation ---- */

static bool limits_requests(const struct fleet *f)
{
	return f->servers || f->store.requests_per_s > 0 || f->host.requests_per_s > 0;
}

static bool limits_opens(const struct fleet *f)
{
	return f->open_servers || f->store.opens_per_s > 0 || f->host.opens_per_s > 0;
}

static bool limits_bytes(const struct fleet *f)
{
	return f->bytes > 0 && (f->store.bytes_per_s > 0 || f->host.bytes_per_s > 0);
}

static double inverse(double rate)
{
	return rate > 0 ? 1 / rate : 0;
}

static struct model_queue queue_of(uint32_t servers, double rate)
{
	return (struct model_queue){.servers = servers, .burst = rate > 0, .pace_s = inverse(rate)};
}

static uint32_t parts_of(const struct fleet *f)
{
	double runs = f->runs ? f->runs : 1, each = fmax(f->requests, f->opens) / runs;
	double most = limits_requests(f) || limits_opens(f) ? PARTS_QUEUED
		      : limits_bytes(f)                     ? PARTS_SHARED
							    : 1;

	return (uint32_t)fmax(1, fmin(most, ceil(each)));
}

static struct model fleet_model(const struct fleet *f, uint64_t seed)
{
	return (struct model){
		.ranks = f->ranks,
		.hosts = f->hosts,
		.workers = f->workers,
		.window = f->window,
		.in_order = f->in_order || f->runs > 1,
		.runs = f->runs,
		.steps = f->steps,
		.parts = parts_of(f),
		.open = queue_of(f->open_servers, f->store.opens_per_s),
		.read = queue_of(f->servers, f->store.requests_per_s),
		.drawn_open = {&f->open, f->opens, inverse(f->host.opens_per_s)},
		.drawn_read = {&f->request, f->requests, inverse(f->host.requests_per_s)},
		.delay_s = f->delay_s,
		.bytes = f->bytes,
		.stream = f->stream,
		.shared = f->store.bytes_per_s,
		.host_shared = f->host.bytes_per_s,
		.cpu_s = f->cpu_s,
		.cpus = f->cpus,
		.start_s = f->start_s,
		.hand_s = f->hand_s,
		.step_s = f->step_s,
		.fork_s = f->fork_s,
		.begin_s = f->begin_s,
		.take_s = f->take_s,
		.end_s = f->end_s,
		.lists = 1,
		.compute_drawn = &f->compute,
		.samples = f->samples,
		.seed = seed,
	};
}

uint64_t fleet_memory(const struct fleet *f)
{
	struct model m = fleet_model(f, 0);

	return model_memory(&m);
}

static double part_used(double rate, double ceiling)
{
	return ceiling > 0 ? rate / ceiling : 0;
}

static void find_limit(const struct fleet *f, double waiting, struct fleet_result *out)
{
	double hosts = f->hosts ? f->hosts : 1, *used = out->used;
	double request = drawn_mean(&f->request), open = drawn_mean(&f->open);
	enum fleet_limit most = FLEET_STORE_BYTES;

	used[FLEET_STORE_BYTES] = part_used(out->bytes_per_s, f->store.bytes_per_s);
	used[FLEET_STORE_REQUESTS] = fmax(part_used(out->requests_per_s, f->store.requests_per_s),
					  part_used(out->requests_per_s * request, f->servers));
	used[FLEET_STORE_OPENS] = fmax(part_used(out->opens_per_s, f->store.opens_per_s),
				       part_used(out->opens_per_s * open, f->open_servers));
	used[FLEET_HOST_BYTES] = part_used(out->bytes_per_s, f->host.bytes_per_s * hosts);
	used[FLEET_HOST_REQUESTS] = part_used(out->requests_per_s, f->host.requests_per_s * hosts);
	used[FLEET_HOST_OPENS] = part_used(out->opens_per_s, f->host.opens_per_s * hosts);
	for (int i = FLEET_STORE_BYTES; i < FLEET_LIMITS; i++)
		most = used[i] > used[most] ? (enum fleet_limit)i : most;
	if (waiting < IDLE)
		out->limit = FLEET_COMPUTE;
	else if (used[most] >= BUSY)
		out->limit = most;
	else if (out->wait_of_slowest_s > STRAGGLING * out->wait_mean_s)
		out->limit = FLEET_STRAGGLE;
	else
		out->limit = FLEET_LATENCY;
}

static void sum_epoch(const struct modeled *got, const struct model_seen *seen,
		      struct fleet_sums *s)
{
	double later = got->wall_s - seen->first_s;

	hist_merge(&s->wait_ns, &seen->wait_ns);
	s->wall += got->wall_s;
	s->computed += got->au / 100 * got->wall_s;
	s->au += later > 0 && seen->steps > 1 ? 100 * seen->computed_later_s / later : got->au;
	s->steps += (double)seen->steps;
	s->wait += seen->wait_s;
	s->slowest += seen->slowest_s;
	s->at_store += seen->at_store_s;
	s->cpu += seen->cpu_s;
}

static void fleet_fill(const struct fleet *f, const struct fleet_sums *s, double epochs,
		       struct fleet_result *out)
{
	double part = 0.1, made = s->steps * f->ranks / s->wall; /* batches/s */

	out->known = true;
	out->au = fmin(100, s->au / epochs);
	out->au_rate = 100 * s->computed / s->wall;
	/* steps that were left out go on at the same rate */
	out->wall_s = s->wall * (double)f->steps * epochs / s->steps;
	out->samples_per_s = made * f->samples;
	out->bytes_per_s = made * f->bytes;
	out->requests_per_s = made * f->requests;
	out->opens_per_s = made * f->opens;
	out->in_flight = s->at_store / s->wall;
	out->steps = (uint64_t)s->steps;
	out->wait_mean_s = s->wait / s->steps / f->ranks;
	out->wait_of_slowest_s = s->slowest / s->steps;
	out->wait_quantile_s[0] = (double)hist_quantile(&s->wait_ns, 0.5) / 1e9;
	for (int i = 1; i < FLEET_WAITS; i++, part /= 10)
		out->wait_quantile_s[i] = (double)hist_quantile(&s->wait_ns, 1 - part) / 1e9;
	if (f->cpus > 0)
		out->used[FLEET_CPU] = s->cpu / s->wall / f->cpus / (f->hosts ? f->hosts : 1);
	find_limit(f, 1 - s->computed / s->wall, out);
}

static struct fleet_result refused(const char *why)
{
	struct fleet_result out = {.known = false};

	snprintf(out.why, sizeof(out.why), "%s", why);
	return out;
}

struct fleet_result fleet_run(const struct fleet *f, uint64_t seed, double events_max)
{
	struct model m = fleet_model(f, seed);
	struct fleet_result out = {.known = false};
	struct fleet_sums sums = {.wall = 0};
	uint32_t epochs = f->epochs ? f->epochs : 1;

	if (f->ranks == 0 || f->steps == 0)
		return refused("there are no ranks or no steps");
	if (!(drawn_mean(&f->compute) > 0))
		return refused("there is no computation: AU is 0 whatever changes");
	/* epochs are alike */
	if (events_max > 0 && model_events_least(&m) * epochs > events_max)
		epochs = 1;
	hist_init(&sums.wait_ns);
	for (uint32_t i = 0; i < epochs; i++) {
		struct model_seen seen;
		struct modeled got =
			model_once(&m, i, events_max > 0 ? events_max / epochs : INFINITY, &seen);

		if (isnan(got.au))
			return refused("the fleet is too large to simulate");
		sum_epoch(&got, &seen, &sums);
	}
	fleet_fill(f, &sums, epochs, &out);
	return out;
}

/* ---- from what a run told ---- */

static struct fleet fleet_scaled(const struct fleet *from, uint32_t ranks, uint32_t hosts,
				 uint64_t steps, bool of_hosts)
{
	struct fleet f = *from;
	double by = from->hosts ? from->hosts : 1;

	f.ranks = ranks;
	f.hosts = hosts ? hosts : 1;
	f.steps = steps ? steps : f.steps;
	if (!of_hosts)
		return f;
	f.host = (struct fleet_ceiling){from->store.bytes_per_s / by,
					from->store.requests_per_s / by,
					from->store.opens_per_s / by};
	f.store = (struct fleet_ceiling){0, 0, 0};
	/* of so many hosts together: a server on each would wait for work that another has */
	f.servers = (uint32_t)fmin(UINT32_MAX, from->servers / by * f.hosts + 0.5);
	f.open_servers = (uint32_t)fmin(UINT32_MAX, from->open_servers / by * f.hosts + 0.5);
	return f;
}

static double cap_of(const struct basis *b, uint32_t ranks)
{
	const struct fleet *f = &b->one[0];
	double need = ranks * f->bytes / drawn_mean(&f->compute);

	return f->store.bytes_per_s > 0 ? fmin(b->au_rate, 100 * f->store.bytes_per_s / need)
					: b->au_rate;
}

/* Widens by what the lost part may be off. */
static double off_by(const struct basis *b, uint32_t ranks, double au)
{
	double further = fmax(0, log2((double)ranks / b->one[0].ranks));

	return NEVER_LESS + DOUBLING_OFF * further + b->taken + fabs(b->modeled[0] - b->au_rate) +
	       MODEL_OFF * (100 - au);
}

struct spread {
	double sum, square, n;
};

static void spread_add(struct spread *s, double v)
{
	s->sum += v;
	s->square += v * v;
	s->n++;
}

static double spread_dev(const struct spread *s)
{
	double mean = s->n > 0 ? s->sum / s->n : 0;

	return s->n > 1 ? sqrt(fmax(0, s->square - s->n * mean * mean) / (s->n - 1)) : 0;
}

/* One of the two measures of AU. */
struct measure {
	struct spread repeats, resamples;
	double low, high; /* explanations */
};

static void measure_widen(struct measure *m, double au)
{
	m->low = fmin(m->low, au);
	m->high = fmax(m->high, au);
}

static void measure_end(const struct measure *m, const struct basis *b, uint32_t ranks, double au,
			double *low, double *high)
{
	/* a resample is one run, too: what runs differ by is in its spread */
	double dev = fmax(spread_dev(&m->repeats), spread_dev(&m->resamples));
	double wide = hypot(SIGMAS * dev, off_by(b, ranks, au));

	*low = fmax(0, fmin(m->low, au) - wide);
	*high = fmin(100, fmax(m->high, au) + wide);
}

static bool refuse(struct fleet_prediction *out, const char *why)
{
	out->known = false;
	snprintf(out->why, sizeof(out->why), "%s", why);
	return false;
}

static bool bears(const struct basis *b, struct fleet_prediction *out)
{
	if (!b->known)
		return refuse(out, b->why);
	return true;
}

/* Far from the run, where either is possible: tails as of exponential times, or that go with the
 * square root of the ranks; and it matters. */
static bool tail_bears(const struct basis *b, const struct fleet *best, uint64_t seed,
		       struct measure *au, struct measure *rate, struct fleet_prediction *out)
{
	struct fleet f = *best;
	struct fleet_result r[2];

	if (best->ranks <= FLEET_FAR * b->one[0].ranks || b->shape_low > b->shape_high ||
	    b->shape_low > 0 || b->shape_high < ROOT)
		return true;
	for (int i = 0; i < 2; i++) {
		f.request.shape = i ? ROOT : 0;
		r[i] = fleet_run(&f, seed, REPLICATE_EVENTS);
		measure_widen(au, r[i].au);
		measure_widen(rate, r[i].au_rate);
	}
	if (!(fabs(r[1].au_rate - r[0].au_rate) >= MATTERS))
		return true;
	refuse(out, "");
	snprintf(out->why, sizeof(out->why),
		 "the longest waits may grow as ln N or as the square root of N (shape %.2f, %.2f "
		 "to %.2f): AU would be %.0f %% or %.0f %%; a longer run shows which",
		 b->shape, b->shape_low, b->shape_high, r[0].au_rate, r[1].au_rate);
	return false;
}

static void say_assumption(const struct basis *b, struct fleet_prediction *out)
{
	out->at_most = b->untold && out->best.in_flight > b->most_in_flight;
	if (out->at_most)
		snprintf(out->assumption, sizeof(out->assumption),
			 "that the storage serves %.0f requests at once as well as it serves %.0f, "
			 "the most that were measured",
			 out->best.in_flight, b->most_in_flight);
	else if (out->best.limit == FLEET_STRAGGLE && b->shape_low <= b->shape_high)
		snprintf(out->assumption, sizeof(out->assumption),
			 "the tail of the requests' times: shape %.2f (%.2f to %.2f)", b->shape,
			 b->shape_low, b->shape_high);
	else if (out->best.limit >= FLEET_STORE_BYTES)
		snprintf(out->assumption, sizeof(out->assumption), "the ceiling that was seen: %s",
			 fleet_limit_names[out->best.limit]);
}

/* ---- simulations beside each other ---- */

struct trial {
	struct fleet f;
	uint64_t seed;
	double events;
	bool resample; /* of the run's steps; otherwise an explanation */
	struct fleet_result r;
};

static void trial_run(void *arg, uint32_t i)
{
	struct trial *t = (struct trial *)arg + i;

	t->r = fleet_run(&t->f, t->seed, t->events);
}

static void trials_run(struct trial *t, uint32_t n)
{
	double fit = MEMORY_MOST / (double)(1 + fleet_memory(&t->f));

	at_once(n, (uint32_t)fmin(fmax(fit, 1), n), trial_run, t);
}

/* Of all that differ from the best one every so manieth is simulated. */
static uint32_t others_every(const struct basis *b, const struct fleet *best)
{
	struct model m = fleet_model(best, 0);
	double all = b->count * model_events_least(&m) / OTHERS_EVENTS;

	return (uint32_t)fmax(1, ceil(fmin(all, b->count / OTHERS_LEAST)));
}

/* What is simulated once: the best one with all its steps and with fewer, and all that differ from
 * it. *n: trials. */
static struct trial *trials_of(const struct basis *b, const struct fleet *best, uint64_t steps,
			       uint64_t seed, uint32_t *n)
{
	struct trial *t = xcalloc(2 + 2 * (size_t)b->count, sizeof(*t));

	t[0] = (struct trial){*best, rng_key(seed, 0, 0), BEST_EVENTS, false, {.known = false}};
	t[1] = (struct trial){
		*best, rng_key(seed, 0, 0), REPLICATE_EVENTS, false, {.known = false}};
	*n = 2;
	for (uint32_t i = 0; i < b->count; i += others_every(b, best)) {
		bool resample = i >= b->explanations;

		for (int of_hosts = 0; of_hosts <= (best->hosts > b->one[i].hosts); of_hosts++)
			t[(*n)++] = (struct trial){
				fleet_scaled(&b->one[i], best->ranks, best->hosts, steps, of_hosts),
				rng_key(seed, resample, resample ? i : 0),
				REPLICATE_EVENTS,
				resample,
				{.known = false}};
	}
	return t;
}

/* Runs of the best one that draw other times: their mean, which one run would scatter around. */
static void repeat_best(const struct fleet *f, uint64_t seed, struct measure *au,
			struct measure *rate, struct fleet_result *best)
{
	struct trial t[REPEATS - 1];

	spread_add(&au->repeats, best->au);
	spread_add(&rate->repeats, best->au_rate);
	/* a large one gives the same result again */
	if ((double)best->steps * f->ranks * 4 > REPLICATE_EVENTS)
		return;
	for (uint32_t i = 1; i < REPEATS; i++)
		t[i - 1] = (struct trial){
			*f, rng_key(seed, 0, i), BEST_EVENTS, false, {.known = false}};
	trials_run(t, REPEATS - 1);
	for (uint32_t i = 1; i < REPEATS; i++) {
		if (!t[i - 1].r.known)
			continue;
		spread_add(&au->repeats, t[i - 1].r.au);
		spread_add(&rate->repeats, t[i - 1].r.au_rate);
	}
	best->au = au->repeats.sum / au->repeats.n;
	best->au_rate = rate->repeats.sum / rate->repeats.n;
}

/* All that differ from the best one, against the best one of as many steps. */
static void take_others(const struct trial *t, uint32_t n, const struct fleet_result *best,
			struct measure *au, struct measure *rate)
{
	const struct fleet_result *same = &t[1].r;
	double by = best->au - same->au, rate_by = best->au_rate - same->au_rate;

	if ((double)best->steps <= (double)same->steps)
		by = rate_by = 0;
	for (uint32_t k = 2; k < n; k++) {
		const struct fleet_result *r = &t[k].r;

		if (!r->known)
			continue;
		if (t[k].resample) {
			spread_add(&au->resamples, r->au + by);
			spread_add(&rate->resamples, r->au_rate + rate_by);
		} else {
			measure_widen(au, r->au + by);
			measure_widen(rate, r->au_rate + rate_by);
		}
	}
}

struct fleet_prediction fleet_predict(const struct basis *b, uint32_t ranks, uint32_t hosts,
				      uint64_t steps, uint64_t seed)
{
	struct fleet_prediction out = {.known = true};
	struct measure au = {.low = 100}, rate = {.low = 100};
	struct fleet best;
	struct trial *t;
	uint32_t n;

	if (!bears(b, &out))
		return out;
	best = fleet_scaled(&b->one[0], ranks, hosts, steps, false);
	if (!tail_bears(b, &best, seed, &au, &rate, &out))
		return out;
	t = trials_of(b, &best, steps, seed, &n);
	trials_run(t, n);
	out.best = t[0].r;
	if (!out.best.known) {
		refuse(&out, t[0].r.why);
		free(t);
		return out;
	}
	repeat_best(&best, seed, &au, &rate, &out.best);
	take_others(t, n, &out.best, &au, &rate);
	free(t);
	measure_end(&au, b, ranks, out.best.au, &out.au_low, &out.au_high);
	measure_end(&rate, b, ranks, out.best.au_rate, &out.au_rate_low, &out.au_rate_high);
	out.dev = spread_dev(&au.repeats);
	out.dev_rate = spread_dev(&rate.repeats);
	out.linear_au = b->au_rate;
	out.cap_au = cap_of(b, ranks);
	say_assumption(b, &out);
	return out;
}
