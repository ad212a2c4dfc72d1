#include "predict/fleet.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/rng.h"
#include "predict/model.h"

#define DRAWS 1024

const char *const fleet_limit_names[FLEET_LIMITS] = {
	"computation",       "latency of requests", "the slowest rank of each step",
	"storage bandwidth", "storage requests",    "storage opens",
	"host bandwidth",    "requests of a host",  "opens of a host",
	"processors"};

void fleet_rule(struct fleet *f, enum loader_rule rule, uint32_t workers, double prefetch)
{
	prefetch = fmax(1, prefetch);
	f->workers = workers;
	f->runs = 1;
	switch (rule) {
	case RULE_NONE:
		break;
	case RULE_PYTORCH:
		f->window = (uint64_t)(prefetch * workers);
		break;
	case RULE_GENERATORS:
		f->window = (uint64_t)prefetch + 3 * (uint64_t)workers;
		break;
	case RULE_EXTERNAL:
		f->window = (uint64_t)prefetch;
		f->runs = (uint32_t)fmax(1, fmin(workers, f->samples));
	}
}

uint64_t fleet_memory(const struct fleet *f)
{
	return (uint64_t)f->ranks * (200 + 200 * (uint64_t)(f->workers ? f->workers : 1));
}

struct fleet_result fleet_run(const struct fleet *f, uint64_t seed, uint64_t events_max)
{
	struct fleet_result out = {.known = true};
	double *compute = xcalloc(2 * DRAWS, sizeof(*compute)), *spread = compute + DRAWS;
	double each = f->requests * drawn_mean(&f->request) + f->opens * drawn_mean(&f->open);
	double per_s, hosts = f->hosts ? f->hosts : 1;
	struct model m = {.ranks = f->ranks,
			  .workers = f->workers,
			  .window = f->window,
			  .in_order = f->in_order,
			  .runs = f->runs,
			  .steps = f->steps,
			  .parts = 1,
			  .delay_s = f->delay_s + each,
			  .bytes = f->bytes,
			  .stream = f->stream,
			  .cpu_s = f->cpu_s,
			  .cpus = f->cpus * hosts,
			  .start_s = f->start_s,
			  .hand_s = f->hand_s,
			  .step_s = f->step_s,
			  .fork_s = f->fork_s,
			  .begin_s = f->begin_s,
			  .take_s = f->take_s,
			  .end_s = f->end_s,
			  .lists = 1,
			  .compute = compute,
			  .computes = DRAWS,
			  .spread = spread,
			  .spreads = each > 0 ? DRAWS : 0,
			  .spread_by = 1,
			  .samples = f->samples};
	struct modeled got;

	(void)events_max;
	for (uint32_t i = 0; i < DRAWS; i++) {
		double sum = f->delay_s;

		for (uint32_t k = 0; k < f->requests; k++)
			sum += drawn_value(&f->request, rng_word(rng_key(seed, i, 0), k));
		for (uint32_t k = 0; k < f->opens; k++)
			sum += drawn_value(&f->open, rng_word(rng_key(seed, i, 1), k));
		spread[i] = sum / m.delay_s;
		compute[i] = drawn_value(&f->compute, rng_word(rng_key(seed, i, 2), 0));
	}
	m.shared = f->store.bytes_per_s;
	if (f->host.bytes_per_s > 0 && (m.shared <= 0 || f->host.bytes_per_s * hosts < m.shared))
		m.shared = f->host.bytes_per_s * hosts;
	got = model_run(&m);
	out.au = out.au_rate = got.au;
	out.wall_s = got.wall_s;
	out.known = !isnan(got.au);
	per_s = f->ranks * (got.au / 100) / fmax(1e-9, drawn_mean(&f->compute));
	out.samples_per_s = per_s * f->samples;
	out.bytes_per_s = per_s * f->bytes;
	out.requests_per_s = per_s * f->requests;
	out.opens_per_s = per_s * f->opens;
	free(compute);
	return out;
}

struct fleet fleet_scaled(const struct fleet *from, uint32_t ranks, uint32_t hosts, uint64_t steps,
			  bool of_hosts)
{
	struct fleet f = *from;

	f.ranks = ranks;
	f.hosts = hosts ? hosts : 1;
	f.steps = steps ? steps : f.steps;
	if (of_hosts) {
		double by = from->hosts ? from->hosts : 1;

		f.host = (struct fleet_ceiling){from->store.bytes_per_s / by,
						from->store.requests_per_s / by,
						from->store.opens_per_s / by};
		f.store = (struct fleet_ceiling){0, 0, 0};
		f.servers = (uint32_t)(from->servers / by * f.hosts + 0.5);
		f.open_servers = (uint32_t)(from->open_servers / by * f.hosts + 0.5);
	}
	return f;
}

struct fleet_prediction fleet_predict(const struct basis *b, uint32_t ranks, uint32_t hosts,
				      uint64_t steps, uint64_t seed)
{
	struct fleet_prediction out = {.known = b->known};

	if (!b->known) {
		snprintf(out.why, sizeof(out.why), "%s", b->why);
		return out;
	}
	out.au_low = out.au_rate_low = 100;
	for (uint32_t i = 0; i < b->count; i++)
		for (int of_hosts = 0; of_hosts <= (hosts > 1); of_hosts++) {
			struct fleet f = fleet_scaled(&b->one[i], ranks, hosts, steps, of_hosts);
			struct fleet_result r = fleet_run(&f, rng_key(seed, i, 0), 0);

			if (i == 0 && !of_hosts)
				out.best = r;
			out.au_low = fmin(out.au_low, r.au);
			out.au_high = fmax(out.au_high, r.au);
			out.au_rate_low = fmin(out.au_rate_low, r.au_rate);
			out.au_rate_high = fmax(out.au_rate_high, r.au_rate);
		}
	out.linear_au = b->au_rate;
	out.cap_au = b->au_rate;
	return out;
}
