#include "predict/store_model.h"

#include <math.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/rng.h"

#define DRAWS_MOST 256 /* of a sum */

uint32_t store_hosts(const struct model *m)
{
	return m->hosts == 0 ? 1 : m->hosts < m->ranks ? m->hosts : m->ranks;
}

bool store_waits(const struct model_queue *q, const struct model_drawn *d)
{
	return q->servers || q->burst || d->pace_s > 0;
}

/* The times of requests, summed; a part of a request is that part of its time. */
/* Of very many, some are drawn, and stand for all with the mean and the variance of the sum. */
static double drawn_sum(const struct store_model *s, const struct way *w, const struct store_ask *a)
{
	double n = w->drawn->requests * a->part, sum = 0, most = fmin(n, DRAWS_MOST), mean;
	uint64_t key;

	if (!(n > 0))
		return 0;
	key = rng_key(s->m->seed + (w == &s->open), a->rank, a->key);
	for (uint64_t k = 0; (double)k < most; k++)
		sum += drawn_value(w->drawn->of, rng_word(key, k)) * fmin(1, most - (double)k);
	if (n <= DRAWS_MOST)
		return sum;
	mean = drawn_mean(w->drawn->of);
	return fmax(0, n * mean + (sum - DRAWS_MOST * mean) * sqrt(n / DRAWS_MOST));
}

double store_pass(struct store_model *s, struct way *w, double now, const struct store_ask *a)
{
	const struct model_queue *q = w->q;
	double requests = (w->drawn->requests > 0 ? w->drawn->requests : q->requests) * a->part;
	double demand = a->part * (q->serve_s + a->size * q->serve_sized_s);

	if (w->host)
		now = line_pace(&w->host[store_host(s, a->rank)], now, requests);
	now = line_pace(&w->store, now, requests);
	return line_serve(&w->store, now, demand + drawn_sum(s, w, a));
}

double store_delay(const struct store_model *s, const struct store_ask *a)
{
	return (s->open.waits ? 0 : drawn_sum(s, &s->open, a)) +
	       (s->read.waits ? 0 : drawn_sum(s, &s->read, a));
}

bool store_moves(const struct store_model *s)
{
	return s->m->stream > 0 || s->m->shared > 0 || s->m->host_shared > 0;
}

void store_bytes_init(const struct store_model *s, struct shared_server *t)
{
	const struct model *m = s->m;
	double stream = m->stream > 0 ? m->stream : INFINITY;
	double shared = m->shared > 0 ? m->shared : INFINITY;
	double host = m->host_shared > 0 ? m->host_shared : INFINITY;

	t->each = fmin(stream, fmin(host, shared));
	t->all = s->of_hosts ? host : shared;
}

uint32_t store_bytes_of(const struct store_model *s, uint32_t rank)
{
	return s->of_hosts ? store_host(s, rank) : 0;
}

double store_fluid(struct store_model *s, double now, uint32_t rank, double bytes)
{
	struct line *l;

	if (!s->fluid)
		return now;
	l = &s->fluid[s->of_hosts ? 0 : store_host(s, rank)];
	return line_serve(l, now, bytes * l->pace_s);
}

static void way_init(struct way *w, uint32_t hosts, const struct model_queue *q,
		     const struct model_drawn *d)
{
	*w = (struct way){.q = q, .drawn = d, .waits = store_waits(q, d)};
	line_reserve(&w->store, q->servers, q->burst, q->pace_s);
	if (!(d->pace_s > 0))
		return;
	w->host = xcalloc(hosts, sizeof(*w->host));
	for (uint32_t h = 0; h < hosts; h++)
		line_reserve(&w->host[h], 0, 1, d->pace_s);
}

static void lines_release(struct line *l, uint32_t n)
{
	for (uint32_t i = 0; l && i < n; i++)
		line_release(&l[i]);
	free(l);
}

void store_model_init(struct store_model *s, const struct model *m)
{
	double shared = m->shared > 0 ? m->shared : INFINITY;
	double host = m->host_shared > 0 ? m->host_shared : INFINITY;
	uint32_t lines;

	*s = (struct store_model){.m = m, .hosts = store_hosts(m)};
	way_init(&s->open, s->hosts, &m->open, &m->drawn_open);
	way_init(&s->read, s->hosts, &m->read, &m->drawn_read);
	s->of_hosts = host * s->hosts < shared;
	if (isinf(s->of_hosts ? shared : host))
		return;
	lines = s->of_hosts ? 1 : s->hosts;
	s->fluid = xcalloc(lines, sizeof(*s->fluid));
	for (uint32_t i = 0; i < lines; i++)
		line_reserve(&s->fluid[i], 1, 0, 1 / (s->of_hosts ? shared : host));
}

void store_model_release(struct store_model *s)
{
	lines_release(s->open.host, s->hosts);
	lines_release(s->read.host, s->hosts);
	line_release(&s->open.store);
	line_release(&s->read.store);
	lines_release(s->fluid, s->of_hosts ? 1 : s->hosts);
}
