/* What would change the result. */
#include "report/outlook.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "report/model.h"

#define RANKS_SIMULATED 32
#define LISTS_MAX 64
#define COMPUTES_MAX 1024
#define ALIKE 0.03 /* a shared part below this share of a batch's time is none */
#define GOAL 90.0
#define WORKERS_MAX 256

/* What a batch takes, and what is known of it. */
struct costs {
	struct model m;
	double *compute, *spread;               /* owned */
	double open, reads, meta, decode, rest; /* s a batch: reads = metadata and data */
	double requests;                        /* reads a batch */
	double batch;                           /* samples */
	double service;
	struct read_law law;
	double shared; /* share of the service that is */
};

/* Of the ranks whose clock is that of the first one. */
struct read_law outlook_law(const struct result *r)
{
	const struct read_log **logs = calloc(r->ranks ? r->ranks : 1, sizeof(*logs));
	struct read_fit fit = {0};
	struct read_seen *seen = NULL;
	uint64_t apart, wide;
	size_t count = 0, n = 0;

	for (uint32_t k = 0; logs && k < r->ranks; k++)
		if (result_rank_host(r, k) == result_rank_host(r, result_present_rank(r)))
			logs[count++] = &r->rank[k].train_io.reads;
	if (logs)
		seen = read_log_join(logs, count, &n, &apart, &wide);
	if (seen)
		read_fit_add_seen(&fit, seen, n, apart, wide);
	free(seen);
	free(logs);
	return read_fit_law(&fit);
}

static bool refuse(struct outlook *out, const char *why)
{
	snprintf(out->why, sizeof(out->why), "%s", why);
	return false;
}

static bool lists(struct costs *c, const struct result *r)
{
	uint32_t n = r->ranks < LISTS_MAX ? r->ranks : LISTS_MAX, steps = COMPUTES_MAX;
	uint32_t times = SERVICE_KEPT;
	double sum = 0;

	for (uint32_t k = 0; k < n; k++) {
		const struct phase *p = &r->rank[k].epoch[0].block[0];

		if (r->rank[k].lost || r->rank[k].epoch[0].blocks == 0)
			return false;
		steps = p->steps < steps ? (uint32_t)p->steps : steps;
		times = r->rank[k].service.n < times ? r->rank[k].service.n : times;
	}
	if (steps == 0)
		return false;
	c->compute = calloc((size_t)n * steps, sizeof(double));
	c->spread = calloc((size_t)n * (times ? times : 1), sizeof(double));
	if (!c->compute || !c->spread)
		return false;
	for (uint32_t k = 0; k < n; k++) {
		const struct step_times *t = r->rank[k].epoch[0].block[0].step;

		for (uint32_t i = 0; i < steps; i++)
			c->compute[(size_t)k * steps + i] =
				(double)(t[i].compute_end_ns - t[i].compute_begin_ns) / 1e9;
		for (uint32_t i = 0; i < times; i++)
			sum += (double)r->rank[k].service.ns[i] / ((double)n * times);
	}
	for (uint32_t k = 0; k < n && sum > 0; k++)
		for (uint32_t i = 0; i < times; i++)
			c->spread[(size_t)k * times + i] = (double)r->rank[k].service.ns[i] / sum;
	c->m.lists = n;
	c->m.compute = c->compute;
	c->m.computes = steps;
	c->m.spread = c->spread;
	c->m.spreads = sum > 0 ? times : 0;
	return true;
}

/* So much of a batch alone that, with all at work as they were, it takes what was measured. */
static void calibrate(struct costs *c, double shared)
{
	double low = 0, high = c->service * shared, took;

	c->shared = shared;
	c->m.fixed_s = c->service * (1 - shared);
	c->m.shared_s = 0;
	if (shared < ALIKE) {
		c->m.fixed_s = c->service;
		return;
	}
	for (int i = 0; i < 12; i++) {
		c->m.shared_s = (low + high) / 2;
		if (isnan(model_run(&c->m, &took)))
			return;
		if (took > c->service)
			high = c->m.shared_s;
		else
			low = c->m.shared_s;
	}
}

/* Requests that asked for bytes. */
static double reads_of(const struct result *r)
{
	double n = 0;

	for (uint32_t k = 0; k < r->ranks; k++)
		for (int size = 0; size < IO_CLASSES; size++)
			n += (double)(r->rank[k].train_io.sized[0][size].total +
				      r->rank[k].train_io.sized[1][size].total);
	return n;
}

static bool gather(struct costs *c, const struct result *r, uint32_t epochs,
		   const struct decomposition *d, struct outlook *out)
{
	const struct workload *w = r->workload;
	double batches = (double)d->batches, ranks = r->ranks, cpu = 0;
	double steps = (double)d->steps / ranks;

	if (strcmp(w->reader.data_loader, "pytorch") != 0)
		return refuse(out, "the model knows PyTorch's loader alone");
	/* the simulation of many readers would take longer than many a run */
	if (r->ranks > RANKS_SIMULATED)
		return refuse(out, "more ranks than the model simulates");
	if (r->ranks == 0 || epochs == 0 || steps / epochs < 4 || batches < 4)
		return refuse(out, "too few steps");
	if (!(d->mean_s[TIME_COMPUTE] > 0))
		return refuse(out, "nothing is computed: AU is 0 whatever is changed");
	if (!lists(c, r))
		return refuse(out, "too few steps");
	c->law = outlook_law(r);
	c->open = d->work_s[WORK_OPEN] / batches;
	c->meta = d->work_s[WORK_META] / batches;
	c->reads = c->meta + d->work_s[WORK_DATA] / batches;
	c->decode = d->work_s[WORK_DECODE] / batches;
	c->requests = reads_of(r) / batches;
	c->batch = (double)w->reader.batch_size;
	c->service = d->service_mean_s + d->work_s[WORK_TRANSPORT] / batches;
	c->rest = c->service - c->open - c->reads - c->decode;
	c->m.ranks = r->ranks;
	c->m.workers = r->rank[0].workers;
	c->m.window = r->rank[0].prefetch_batches;
	c->m.in_order = w->reader.in_order;
	c->m.steps = (uint64_t)(steps / epochs + 0.5);
	c->m.parts = c->batch < 4 ? (uint32_t)c->batch : 4;
	c->m.start_s = d->mean_s[TIME_WAIT + WAIT_START] / epochs;
	c->m.overhead_s = (d->mean_s[TIME_OTHER] + d->mean_s[TIME_COLLECTIVE]) / steps;
	if (c->m.overhead_s < 0)
		c->m.overhead_s = 0;
	for (uint32_t i = 0; i < epochs; i++)
		cpu += (double)r->usage[i].cpu_ns / 1e9;
	c->m.cpu_s = cpu / batches;
	c->m.cpus = r->host.usable_cpus > 0 ? r->host.usable_cpus : r->host.cpu_count;
	return c->service > 0 ? true : refuse(out, "no batch was read");
}

/* Towards what was measured, as far as there is still something to wait for. */
static double corrected(const struct outlook *out, double au)
{
	double left = out->modeled_au < 100 ? (100 - au) / (100 - out->modeled_au) : 0;

	left = left > 1 ? 1 : left;
	au += (out->measured_au - out->modeled_au) * left;
	return au > 100 ? 100 : au < 0 ? 0 : au;
}

__attribute__((format(printf, 4, 5))) static void add(struct outlook *out, const struct costs *c,
						      const struct model *m, const char *fmt, ...)
{
	struct model other = *m;
	double au = model_au(m), apart = 0;
	struct what_if *w;
	va_list ap;

	if (out->changes == WHAT_IF_MAX || isnan(au))
		return;
	if (!out->sharing_known && m->workers != c->m.workers) {
		/* the readers may share all of it, or nothing */
		double part = c->service > 0 ? c->reads / c->service : 0;
		double k = (m->fixed_s + m->shared_s) / c->service;
		double readers = (double)c->m.ranks * (c->m.workers ? c->m.workers : 1);

		other.fixed_s = c->service * (1 - part) * k;
		other.shared_s = c->service * part * k / readers;
		apart = fabs(model_au(&other) - au);
	}
	w = &out->change[out->changes++];
	va_start(ap, fmt);
	vsnprintf(w->change, sizeof(w->change), fmt, ap);
	va_end(ap);
	w->au = corrected(out, au);
	w->error = 2 + fabs(out->measured_au - out->modeled_au);
	w->error += 0.05 * fabs(w->au - out->measured_au) + (isnan(apart) ? 0 : apart);
}

static struct model with_workers(const struct costs *c, uint32_t workers)
{
	struct model m = c->m;
	uint64_t ahead = m.workers ? m.window / m.workers : 2;

	m.workers = workers;
	m.window = (ahead ? ahead : 1) * workers;
	return m;
}

static struct model with_batch(const struct costs *c, double by, double *spread)
{
	struct model m = c->m;

	m.fixed_s *= by;
	m.shared_s *= by;
	m.cpu_s *= by;
	m.steps = (uint64_t)((double)m.steps / by);
	for (uint64_t i = 0; i < (uint64_t)m.lists * m.spreads; i++)
		spread[i] = 1 + (m.spread[i] - 1) / sqrt(by);
	m.spread = spread;
	return m;
}

static void try_batches(struct outlook *out, const struct costs *c)
{
	uint64_t n = (uint64_t)c->m.lists * (c->m.spreads ? c->m.spreads : 1);
	double *spread = calloc(n, sizeof(*spread));
	struct model m;

	if (!spread)
		return;
	m = with_batch(c, 2, spread);
	if (m.steps >= 4)
		add(out, c, &m, "reader.batch_size=%.0f", 2 * c->batch);
	if (fmod(c->batch, 2) == 0) {
		m = with_batch(c, 0.5, spread);
		add(out, c, &m, "reader.batch_size=%.0f", c->batch / 2);
	}
	free(spread);
}

static void try_reading(struct outlook *out, const struct costs *c, const struct workload *w)
{
	double fixed = c->reads * (1 - c->law.shared_share);
	double latency = c->reads * c->law.latency_share;
	struct model m = c->m;

	/* one request for a sample, where there were more */
	if (w->reader.access == 0 && c->law.sizes_differ && c->requests > c->batch) {
		double less = latency * (1 - c->batch / c->requests);

		less = less < fixed ? less : fixed;
		m.fixed_s = m.fixed_s > less ? m.fixed_s - less : 0;
		add(out, c, &m, "reader.access=native");
	}
	m = c->m;
	if (w->reader.decode != 2 && c->decode > 0) {
		double cpu = m.cpu_s < c->decode ? m.cpu_s : c->decode;

		m.fixed_s = m.fixed_s > c->decode ? m.fixed_s - c->decode : 0;
		m.cpu_s -= cpu;
		add(out, c, &m, "reader.decode=none");
	}
}

static void try_workers(struct outlook *out, const struct costs *c)
{
	uint32_t now = c->m.workers;
	uint64_t ahead = now ? c->m.window / now : 2;

	for (uint32_t n = 1; n <= WORKERS_MAX; n += n < 8 ? 1 : n / 4) {
		struct model m = with_workers(c, n);
		double au;

		if (n < now)
			continue;
		/* of the steady state: a short run can be all start */
		m.start_s = 0;
		m.steps = m.steps > 200 + 20 * n ? m.steps : 200 + 20 * n;
		au = corrected(out, model_au(&m));
		if (!(au >= GOAL))
			continue;
		out->workers_needed = n;
		out->needed_au = au;
		break;
	}
	for (uint32_t n = now ? now * 2 : 1; n <= (now ? now * 4 : 4) && n <= 65536; n *= 2) {
		struct model m = with_workers(c, n);

		add(out, c, &m, "reader.read_threads=%u reader.prefetch_size=%llu", n,
		    (unsigned long long)(ahead * n));
	}
	if (now >= 2) {
		struct model m = with_workers(c, now / 2);

		add(out, c, &m, "reader.read_threads=%u reader.prefetch_size=%llu", now / 2,
		    (unsigned long long)(ahead * (now / 2)));
	}
}

static void try_window(struct outlook *out, const struct costs *c)
{
	struct model m = c->m;

	out->unordered_au = out->window_au = NAN;
	if (m.workers == 0)
		return;
	for (uint32_t by = 2; by <= 4; by *= 2) {
		m.window = c->m.window * by;
		add(out, c, &m, "reader.prefetch_size=%llu", (unsigned long long)m.window);
	}
	out->window_au = corrected(out, model_au(&m));
	m = c->m;
	if (m.workers < 2 || !m.in_order)
		return;
	m.in_order = false;
	out->unordered_au = corrected(out, model_au(&m));
	add(out, c, &m, "reader.in_order=false");
}

void outlook_compute(const struct result *r, uint32_t epochs, const struct decomposition *d,
		     struct outlook *out)
{
	struct costs c = {0};

	*out = (struct outlook){.unordered_au = NAN, .window_au = NAN};
	out->known = gather(&c, r, epochs, d, out);
	if (out->known) {
		calibrate(&c, c.law.shared_share * c.reads / c.service);
		out->sharing_known = c.law.beside_differ;
		out->latency_share = c.law.latency_share;
		out->stream_share = c.law.stream_share;
		out->shared_share = c.law.shared_share;
		out->measured_au = 100 * d->mean_s[TIME_COMPUTE] / d->wall_s;
		out->modeled_au = model_au(&c.m);
		out->fixed_s = c.m.fixed_s;
		out->shared_s = c.m.shared_s;
		out->known = !isnan(out->modeled_au);
	}
	if (out->known) {
		try_workers(out, &c);
		try_window(out, &c);
		try_batches(out, &c);
		try_reading(out, &c, r->workload);
	} else if (!out->why[0]) {
		refuse(out, "the model is too large");
	}
	free(c.compute);
	free(c.spread);
}
