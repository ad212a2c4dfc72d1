/* Events: a worker's part ends, a rank's computation ends. The next one is looked for among all. */
#include "report/model.h"

#include <math.h>
#include <stdlib.h>

enum state { REST, FIXED, SHARED };

struct reader {
	enum state state;
	uint64_t batch;
	uint32_t part;
	double at;     /* FIXED: when it ends */
	double left;   /* SHARED: seconds alone */
	double factor; /* of this batch */
	double begun;
};

struct side {
	uint64_t sent, handed; /* batches */
	bool computing, met;   /* met: at the barrier */
	double until;          /* computing */
	double computed;
};

struct sim {
	const struct model *m;
	struct reader *reader; /* ranks * width */
	struct side *side;
	uint64_t *done; /* ranks * window: batch k + 1 at k % window */
	uint32_t width;
	uint64_t window, steps, made;
	uint32_t sharing;
	double service; /* s, of the batches read: `served` */
	uint64_t served;
	double now;
};

static double factor_of(const struct model *m, uint32_t rank, uint64_t batch)
{
	if (m->spreads == 0)
		return 1;
	return m->spread[(uint64_t)(rank % m->lists) * m->spreads +
			 (batch + (uint64_t)(rank / m->lists) * 37) % m->spreads];
}

static void begin_shared(struct sim *s, struct reader *r)
{
	r->state = SHARED;
	r->left = s->m->shared_s / s->m->parts * r->factor;
	s->sharing++;
}

static void begin_part(struct sim *s, struct reader *r)
{
	r->state = FIXED;
	r->at = s->now + s->m->fixed_s / s->m->parts * r->factor;
}

static bool may_take(const struct sim *s, uint32_t k, uint32_t w, uint64_t *batch)
{
	const struct side *side = &s->side[k];
	const struct reader *mine = &s->reader[(uint64_t)k * s->width];
	uint64_t limit = side->handed + s->window, b = side->sent;

	if (s->m->workers == 0)
		limit = side->handed + !side->computing;
	limit = limit < s->steps ? limit : s->steps;
	if (s->m->in_order && s->m->workers) {
		/* its own next one: what it read last, and W further */
		b = mine[w].batch == UINT64_MAX ? w : mine[w].batch + s->width;
	}
	*batch = b;
	return b < limit;
}

static void feed(struct sim *s, uint32_t k)
{
	for (uint32_t w = 0; w < s->width; w++) {
		struct reader *r = &s->reader[(uint64_t)k * s->width + w];
		uint64_t b;

		if (r->state != REST || !may_take(s, k, w, &b))
			continue;
		r->batch = b;
		r->part = 0;
		r->begun = s->now;
		r->factor = factor_of(s->m, k, b);
		s->side[k].sent++;
		begin_part(s, r);
	}
}

/* Takes a batch if one is ready, and computes. */
static void take(struct sim *s, uint32_t k)
{
	struct side *side = &s->side[k];
	uint64_t *done = &s->done[(uint64_t)k * s->window];
	uint64_t at = side->handed % s->window;
	double c;

	if (side->computing || side->met || side->handed == s->steps)
		return;
	if (!s->m->in_order)
		for (at = 0; at < s->window && !done[at];)
			at++;
	if (at == s->window || !done[at])
		return;
	done[at] = 0;
	c = s->m->compute[(uint64_t)(k % s->m->lists) * s->m->computes +
			  side->handed % s->m->computes];
	side->handed++;
	side->computing = true;
	side->computed += c;
	side->until = s->now + c + s->m->overhead_s;
	feed(s, k);
}

static void finished(struct sim *s, uint32_t k, struct reader *r)
{
	uint64_t *done = &s->done[(uint64_t)k * s->window];
	uint64_t at = r->batch % s->window;

	r->state = REST;
	s->service += s->now - r->begun;
	s->served++;
	if (!s->m->in_order)
		for (at = 0; done[at];)
			at++;
	done[at] = 1;
	take(s, k);
	feed(s, k);
}

static void meet(struct sim *s, uint32_t k)
{
	uint32_t ranks = s->m->ranks;

	s->side[k].computing = false;
	s->side[k].met = true;
	for (uint32_t i = 0; i < ranks; i++)
		if (!s->side[i].met)
			return;
	s->made++;
	for (uint32_t i = 0; i < ranks; i++)
		s->side[i].met = false;
	for (uint32_t i = 0; i < ranks; i++) {
		feed(s, i);
		take(s, i);
	}
}

static void part_ends(struct sim *s, uint64_t i)
{
	struct reader *r = &s->reader[i];

	if (r->state == FIXED && s->m->shared_s > 0) {
		begin_shared(s, r);
		return;
	}
	if (r->state == SHARED)
		s->sharing--;
	r->part++;
	if (r->part < s->m->parts)
		begin_part(s, r);
	else
		finished(s, (uint32_t)(i / s->width), r);
}

/* False when nothing is under way. */
static bool next_event(struct sim *s)
{
	uint64_t readers = (uint64_t)s->m->ranks * s->width, who = 0;
	double soonest = INFINITY, past;
	bool rank = false;

	for (uint64_t i = 0; i < readers; i++) {
		const struct reader *r = &s->reader[i];
		double at = r->state == FIXED    ? r->at
			    : r->state == SHARED ? s->now + r->left * s->sharing
						 : INFINITY;

		if (at < soonest) {
			soonest = at;
			who = i;
		}
	}
	for (uint32_t k = 0; k < s->m->ranks; k++)
		if (s->side[k].computing && s->side[k].until < soonest) {
			soonest = s->side[k].until;
			who = k;
			rank = true;
		}
	if (!isfinite(soonest))
		return false;
	past = soonest - s->now;
	for (uint64_t i = 0; s->sharing && i < readers; i++)
		if (s->reader[i].state == SHARED)
			s->reader[i].left -= past / s->sharing;
	s->now = soonest;
	if (rank)
		meet(s, (uint32_t)who);
	else
		part_ends(s, who);
	return true;
}

static uint64_t affordable(const struct model *m, uint32_t width)
{
	double each = (double)m->ranks * (2.0 * m->parts + 1) * ((double)m->ranks * (width + 1.0));
	double most = 3e6 / each;
	uint64_t least = 4 * (m->window + 4);

	if ((double)m->steps <= most)
		return m->steps;
	if (most < (double)least)
		most = (double)least;
	return most < (double)m->steps ? (uint64_t)most : m->steps;
}

static double run(struct sim *s)
{
	double computed = 0, cpu;

	s->now = s->m->start_s;
	for (uint32_t k = 0; k < s->m->ranks; k++)
		feed(s, k);
	while (s->made < s->steps && next_event(s))
		;
	for (uint32_t k = 0; k < s->m->ranks; k++)
		computed += s->side[k].computed / s->m->ranks;
	cpu = s->m->cpus > 0 ? s->m->cpu_s * (double)s->steps * s->m->ranks / s->m->cpus : 0;
	if (cpu > s->now)
		s->now = cpu;
	return s->now > 0 ? 100 * computed / s->now : NAN;
}

double model_au(const struct model *m)
{
	double service;

	return model_run(m, &service);
}

double model_run(const struct model *m, double *service_s)
{
	struct sim s = {.m = m, .width = m->workers ? m->workers : 1};
	uint64_t readers = (uint64_t)m->ranks * s.width;
	double au = NAN;

	if (m->ranks == 0 || m->steps == 0 || m->computes == 0 || m->parts == 0 || m->lists == 0)
		return NAN;
	s.window = m->workers == 0 ? 1 : m->window > s.width ? m->window : s.width;
	s.steps = affordable(m, s.width);
	if (s.window > 100000 || readers > 1000000)
		return NAN;
	s.reader = calloc(readers, sizeof(*s.reader));
	s.side = calloc(m->ranks, sizeof(*s.side));
	s.done = calloc(m->ranks, s.window * sizeof(*s.done));
	for (uint64_t i = 0; s.reader && i < readers; i++)
		s.reader[i].batch = UINT64_MAX;
	if (s.reader && s.side && s.done)
		au = run(&s);
	*service_s = s.served ? s.service / (double)s.served : 0;
	free(s.reader);
	free(s.side);
	free(s.done);
	return au;
}
