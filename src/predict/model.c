/* Events: a worker's delay, transfer or computing ends; a batch reaches the rank that waits for
 * it; a rank's computation ends; a rank has had the processor for what it does itself. Those at a
 * shared thing end in the order of what each of them had to get, so one heap by that is enough
 * (virtual time). */
#include "predict/model.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/rng.h"

#define EVENTS_MAX 150000
#define PARTS_LEAST 2
#define TURNS_MAX 8

/* Of a rank against a reader that computes: who has slept goes first. */
static const double RANK_FIRST = 4;

enum state { ABSENT, BEGINNING, REST, OPENING, DELAY, QUEUED, TRANSFER, COMPUTING };
/* What a rank has a processor for. */
enum own { FORKING, TAKING, ENDING };

struct reader {
	enum state state;
	uint64_t run; /* of all batches, numbered through */
	uint32_t part;
	double factor; /* of this run */
	double size;   /* factor of this part */
	double begun;
};

struct side {
	uint64_t sent, handed;  /* batches */
	bool coming, computing; /* the one it waited for; it has one */
	bool met;               /* at the barrier */
	enum own own;
	uint32_t forked; /* workers */
	double computed, computing_s;
};

struct heap {
	struct entry {
		double key;
		uint64_t seq;
		uint32_t who;
	} * entry;
	uint32_t n;
};

/* What readers share: each gets `station_rate(n)` of it a second. */
struct station {
	struct heap heap; /* by the v at which it is done */
	double each, all; /* at most for one; of all; INFINITY: no limit */
	double v;         /* what one that was there all the time has got */
};

/* What waits in turn: the ends are known when one comes. */
struct line {
	const struct model_queue *q;
	double *free;     /* `servers`: when each of them is */
	double *released; /* ring of `burst` */
	uint64_t releases;
	double carry; /* requests that a part leaves over */
};

struct sim {
	const struct model *m;
	struct reader *reader; /* ranks * width */
	struct side *side;
	uint32_t *done; /* ranks * window: runs of batch k that are, at k % window */
	uint32_t width, parts, runs;
	uint32_t meeting; /* ranks at the barrier */
	uint64_t window, steps, made, seq;
	uint64_t turn;                  /* which of the runs */
	double stages;                  /* of a part */
	struct heap delay, rank;        /* by their times */
	struct station store, cpu, own; /* own: the ranks' CPU time */
	struct line opens, reads;
	double service, square;
	uint64_t served;
	double now;
};

static bool entry_before(const struct entry *a, const struct entry *b)
{
	return a->key < b->key || (!(b->key < a->key) && a->seq < b->seq);
}

static void heap_push(struct sim *s, struct heap *h, double key, uint32_t who)
{
	const struct entry e = {key, s->seq++, who};
	uint32_t i = h->n++;

	for (; i > 0 && entry_before(&e, &h->entry[(i - 1) / 2]); i = (i - 1) / 2)
		h->entry[i] = h->entry[(i - 1) / 2];
	h->entry[i] = e;
}

static uint32_t heap_pop(struct heap *h)
{
	uint32_t who = h->entry[0].who, i = 0, child;
	const struct entry last = h->entry[--h->n];

	for (; (child = 2 * i + 1) < h->n; i = child) {
		if (child + 1 < h->n && entry_before(&h->entry[child + 1], &h->entry[child]))
			child++;
		if (!entry_before(&h->entry[child], &last))
			break;
		h->entry[i] = h->entry[child];
	}
	h->entry[i] = last;
	return who;
}

static double station_rate(const struct station *t)
{
	return t->heap.n ? fmin(t->each, t->all / t->heap.n) : 0;
}

/* When the first of them is done. */
static double station_next(const struct sim *s, const struct station *t)
{
	double left;

	if (t->heap.n == 0)
		return INFINITY;
	left = t->heap.entry[0].key - t->v;
	return left > 0 ? s->now + left / station_rate(t) : s->now;
}

static void station_enter(struct sim *s, struct station *t, double amount, uint32_t who)
{
	if (t->heap.n == 0)
		t->v = 0;
	heap_push(s, &t->heap, t->v + amount, who);
}

static double factor_of(const struct sim *s, uint32_t rank, uint64_t run_number)
{
	const struct model *m = s->m;
	uint64_t batch = run_number / s->runs;
	double f;

	if (m->spreads == 0)
		return 1;
	f = m->spread[(uint64_t)(rank % m->lists) * m->spreads +
		      (batch + (rank / m->lists + s->turn) * 37) % m->spreads];
	f = 1 + (f - 1) * m->spread_by;
	return f > 0 ? f : 0;
}

/* The sum over several samples varies less than one; the same in each simulation. */
static double size_of(const struct sim *s, uint32_t rank, uint64_t number, uint32_t part)
{
	const struct model *m = s->m;
	uint64_t key = rng_key(number, rank, part + (s->turn << 32));
	double f;

	if (m->sizes == 0)
		return 1;
	f = 1 + (m->size[rng_word(key, 0) % m->sizes] - 1) /
			sqrt(fmax(1, m->samples / s->runs / s->parts));
	return f > 0 ? f : 0;
}

/* The part of a batch that a part of a reader's run is: the first runs have a sample more where the
 * samples cannot be divided equally. */
static double part_of(const struct sim *s, const struct reader *r)
{
	uint64_t samples = (uint64_t)llround(s->m->samples), n;

	if (s->runs == 1 || samples < s->runs)
		return 1.0 / s->runs / s->parts;
	n = samples / s->runs + (r->run % s->runs < samples % s->runs);
	return (double)n / (double)samples / s->parts;
}

static double line_release(struct line *l, double now, double requests)
{
	const struct model_queue *q = l->q;
	double at = now;

	for (l->carry += requests; l->carry >= 1; l->carry--) {
		double *slot = &l->released[l->releases % q->burst];

		if (l->releases++ >= q->burst)
			at = fmax(at, *slot + q->burst * q->pace_s);
		*slot = at;
	}
	return at;
}

static double line_serve(struct line *l, double now, double demand)
{
	uint32_t first = 0;

	for (uint32_t i = 1; i < l->q->servers; i++)
		first = l->free[i] < l->free[first] ? i : first;
	l->free[first] = fmax(now, l->free[first]) + demand;
	return l->free[first];
}

/* When a part of a batch, `part` of it, is through, that comes now. */
static double line_pass(struct sim *s, struct line *l, double part, double size)
{
	const struct model_queue *q = l->q;
	double at = s->now;

	if (q->burst)
		at = line_release(l, at, q->requests * part);
	if (q->servers)
		at = line_serve(l, at, part * (q->serve_s + size * q->serve_sized_s));
	return at;
}

static void begin_delay(struct sim *s, uint32_t i)
{
	struct reader *r = &s->reader[i];

	r->state = DELAY;
	heap_push(s, &s->delay, s->now + s->m->delay_s * part_of(s, r) * r->factor, i);
}

static void begin_part(struct sim *s, uint32_t i)
{
	struct reader *r = &s->reader[i];

	r->size = size_of(s, i / s->width, r->run, r->part);
	if (!s->m->open.servers && !s->m->open.burst) {
		begin_delay(s, i);
		return;
	}
	r->state = OPENING;
	heap_push(s, &s->delay, line_pass(s, &s->opens, part_of(s, r), 1), i);
}

static bool may_take_run(const struct sim *s, uint32_t k, uint32_t w, uint64_t *run)
{
	const struct side *side = &s->side[k];
	const struct reader *mine = &s->reader[(uint64_t)k * s->width];
	uint64_t limit = side->handed + s->window, b = side->sent;

	if (s->m->workers == 0)
		limit = side->handed + (!side->computing && !side->coming && !side->met);
	limit = limit < s->steps ? limit : s->steps;
	if (s->m->in_order && s->m->workers) {
		/* its own next one: what it read last, and W further */
		b = mine[w].run == UINT64_MAX ? w : mine[w].run + s->width;
	}
	*run = b;
	return b < limit * s->runs;
}

static void readers_feed(struct sim *s, uint32_t k)
{
	for (uint32_t w = 0; w < s->width && s->side[k].forked == s->width; w++) {
		uint32_t i = k * s->width + w;
		struct reader *r = &s->reader[i];
		uint64_t b;

		if (r->state != REST || !may_take_run(s, k, w, &b))
			continue;
		r->run = b;
		r->part = 0;
		r->begun = s->now;
		r->factor = factor_of(s, k, b);
		s->side[k].sent++;
		begin_part(s, i);
	}
}

/* Takes a batch if one is ready, after the way to it if it was waited for, and computes. */
static void rank_take_batch(struct sim *s, uint32_t k, bool waited)
{
	struct side *side = &s->side[k];
	uint32_t *done = &s->done[(uint64_t)k * s->window];
	uint64_t at = side->handed % s->window;

	if (side->computing || side->coming || side->met || side->handed == s->steps)
		return;
	if (!s->m->in_order)
		for (at = 0; at < s->window && done[at] < s->runs;)
			at++;
	if (at == s->window || done[at] < s->runs)
		return;
	done[at] = 0;
	side->coming = true;
	side->computing_s = s->m->compute[(uint64_t)(k % s->m->lists) * s->m->computes +
					  side->handed % s->m->computes];
	heap_push(s, &s->rank, s->now + (waited ? s->m->hand_s : 0), k);
}

static void run_finished(struct sim *s, uint32_t i)
{
	struct reader *r = &s->reader[i];
	uint32_t k = i / s->width;
	uint32_t *done = &s->done[(uint64_t)k * s->window];
	uint64_t at = r->run / s->runs % s->window;
	double took = s->now - r->begun;

	assert(r->state > REST);
	r->state = REST;
	s->service += took;
	s->square += took * took;
	s->served++;
	if (!s->m->in_order)
		for (at = 0; done[at] > 0;)
			at++;
	assert(at < s->window && done[at] < s->runs);
	done[at]++;
	rank_take_batch(s, k, true);
	readers_feed(s, k);
}

static void ranks_meet(struct sim *s, uint32_t k)
{
	uint32_t ranks = s->m->ranks;

	s->side[k].computing = false;
	s->side[k].met = true;
	if (++s->meeting < ranks)
		return;
	s->meeting = 0;
	s->made++;
	for (uint32_t i = 0; i < ranks; i++)
		s->side[i].met = false;
	for (uint32_t i = 0; i < ranks; i++) {
		rank_take_batch(s, i, false);
		readers_feed(s, i);
	}
}

static double stall_after(const struct sim *s, const struct side *side)
{
	return s->m->stall_every && side->handed % s->m->stall_every == 0 ? s->m->stall_s : 0;
}

/* Stalls of steps that are not simulated. */
static double stalls_left(const struct sim *s)
{
	const struct model *m = s->m;
	double all, made;

	if (m->stall_every == 0 || s->steps >= m->steps)
		return 0;
	all = (double)(m->steps / m->stall_every) * (double)s->steps / (double)m->steps;
	made = (double)(s->steps / m->stall_every);
	return (all - made) * m->stall_s;
}

static void rank_has_batch(struct sim *s, uint32_t k)
{
	struct side *side = &s->side[k];

	side->coming = false;
	side->computing = true;
	side->handed++;
	side->computed += side->computing_s;
	heap_push(s, &s->rank, s->now + side->computing_s + s->m->step_s + stall_after(s, side), k);
	readers_feed(s, k);
}

/* What follows when the rank's own work, for which it needs a processor, is done. */
static void end_own(struct sim *s, uint32_t k);

static void begin_own(struct sim *s, uint32_t k, enum own own, double cpu_s)
{
	s->side[k].own = own;
	if (cpu_s > 0)
		station_enter(s, &s->own, cpu_s, k);
	else
		end_own(s, k);
}

/* A batch has reached its rank, or the computation with it is over. */
static void rank_event(struct sim *s)
{
	uint32_t k = heap_pop(&s->rank);

	if (s->side[k].coming)
		begin_own(s, k, TAKING, s->m->take_s);
	else
		begin_own(s, k, ENDING, s->m->end_s);
}

/* The next worker of a rank is there. */
static void hire(struct sim *s, uint32_t k)
{
	uint32_t i = k * s->width + s->side[k].forked++;

	if (s->m->workers && s->m->begin_s > 0) {
		s->reader[i].state = BEGINNING;
		station_enter(s, &s->cpu, s->m->begin_s, i);
	} else {
		s->reader[i].state = REST;
	}
}

static void fork_workers(struct sim *s, uint32_t k)
{
	while (s->side[k].forked < s->width) {
		if (s->m->workers && s->m->fork_s > 0) {
			begin_own(s, k, FORKING, s->m->fork_s);
			return;
		}
		hire(s, k);
	}
	readers_feed(s, k);
}

static void end_own(struct sim *s, uint32_t k)
{
	switch (s->side[k].own) {
	case FORKING:
		hire(s, k);
		fork_workers(s, k);
		break;
	case TAKING:
		rank_has_batch(s, k);
		break;
	case ENDING:
		ranks_meet(s, k);
	}
}

static void end_part(struct sim *s, uint32_t i)
{
	struct reader *r = &s->reader[i];

	if (++r->part < s->parts)
		begin_part(s, i);
	else
		run_finished(s, i);
}

/* A reader had a processor for as long as it needed. */
static void end_computing(struct sim *s, uint32_t i)
{
	if (s->reader[i].state == BEGINNING) {
		s->reader[i].state = REST;
		readers_feed(s, i / s->width);
	} else {
		end_part(s, i);
	}
}

static void begin_computing(struct sim *s, uint32_t i)
{
	struct reader *r = &s->reader[i];

	if (!(s->m->cpu_s > 0)) {
		end_part(s, i);
		return;
	}
	assert(r->state > REST && r->state != COMPUTING);
	r->state = COMPUTING;
	station_enter(s, &s->cpu, s->m->cpu_s * part_of(s, r) * r->size, i);
}

static void begin_transfer(struct sim *s, uint32_t i)
{
	struct reader *r = &s->reader[i];

	if (!(s->m->bytes > 0) || (!(s->m->stream > 0) && !(s->m->shared > 0))) {
		begin_computing(s, i);
		return;
	}
	r->state = TRANSFER;
	station_enter(s, &s->store, s->m->bytes * part_of(s, r) * r->size, i);
}

/* A delay has passed, or the wait of a queue. */
static void end_delay(struct sim *s, uint32_t i)
{
	struct reader *r = &s->reader[i];

	if (r->state == OPENING) {
		begin_delay(s, i);
	} else if (r->state == DELAY && (s->m->read.servers || s->m->read.burst)) {
		r->state = QUEUED;
		heap_push(s, &s->delay, line_pass(s, &s->reads, part_of(s, r), r->size), i);
	} else {
		begin_transfer(s, i);
	}
}

static void station_advance(struct station *t, double time)
{
	if (t->heap.n)
		t->v += time * station_rate(t);
}

/* Ranks get RANK_FIRST times the part of a reader, but no more than one each. */
static void share_processors(struct sim *s)
{
	double cpus = s->m->cpus > 0 ? s->m->cpus : INFINITY;
	double ranks = s->own.heap.n, readers = s->cpu.heap.n;
	double part = RANK_FIRST * ranks / fmax(1, RANK_FIRST * ranks + readers);

	s->own.all = s->cpu.all = cpus;
	if (ranks > 0 && ranks + readers > cpus) {
		s->own.all = fmax(cpus - readers, fmin(ranks, cpus * part));
		s->cpu.all = cpus - fmin(ranks, s->own.all);
	}
}

/* False when nothing is under way. */
static bool next_event(struct sim *s)
{
	double at[5];
	int who = 0;

	share_processors(s);
	at[0] = s->delay.n ? s->delay.entry[0].key : INFINITY;
	at[1] = station_next(s, &s->store);
	at[2] = station_next(s, &s->cpu);
	at[3] = s->rank.n ? s->rank.entry[0].key : INFINITY;
	at[4] = station_next(s, &s->own);
	for (int i = 1; i < 5; i++)
		who = at[i] < at[who] ? i : who;
	if (!isfinite(at[who]))
		return false;
	if (at[who] > s->now) {
		station_advance(&s->store, at[who] - s->now);
		station_advance(&s->cpu, at[who] - s->now);
		station_advance(&s->own, at[who] - s->now);
		s->now = at[who];
	}
	switch (who) {
	case 0:
		end_delay(s, heap_pop(&s->delay));
		break;
	case 1:
		begin_computing(s, heap_pop(&s->store.heap));
		break;
	case 2:
		end_computing(s, heap_pop(&s->cpu.heap));
		break;
	case 3:
		rank_event(s);
		break;
	default:
		end_own(s, heap_pop(&s->own.heap));
	}
	return true;
}

static uint64_t window_of(const struct model *m)
{
	if (m->workers == 0)
		return 1;
	return m->window > m->workers ? m->window : m->workers;
}

/* Events of a part. */
static double stages_of(const struct model *m)
{
	return 3 + (m->open.servers || m->open.burst) + (m->read.servers || m->read.burst);
}

/* Fewer parts first. */
static void limit_events(struct sim *s)
{
	const struct model *m = s->m;
	uint64_t least = 4 * (s->window + 4), most;

	s->parts = m->parts;
	s->steps = m->steps;
	while (s->parts > PARTS_LEAST &&
	       (double)s->steps * m->ranks * s->runs * (s->stages * s->parts + 2) > EVENTS_MAX)
		s->parts--;
	most = (uint64_t)(EVENTS_MAX / ((s->stages * s->parts + 2) * m->ranks * s->runs));
	most = most > least ? most : least;
	s->steps = s->steps < most ? s->steps : most;
}

static void simulate(struct sim *s, struct modeled *out)
{
	double computed = 0, mean;

	s->now = s->m->start_s;
	for (uint32_t k = 0; k < s->m->ranks; k++)
		fork_workers(s, k);
	while (s->made < s->steps && next_event(s))
		;
	for (uint32_t k = 0; k < s->m->ranks; k++)
		computed += s->side[k].computed / s->m->ranks;
	out->wall_s = s->now + stalls_left(s);
	out->au = out->wall_s > 0 ? 100 * computed / out->wall_s : NAN;
	if (s->served == 0)
		return;
	mean = s->service / (double)s->served;
	out->service_s = mean;
	out->service_dev_s = sqrt(fmax(0, s->square / (double)s->served - mean * mean));
}

static void line_reserve(struct line *l, const struct model_queue *q)
{
	l->q = q;
	l->free = xcalloc(q->servers ? q->servers : 1, sizeof(double));
	l->released = xcalloc(q->burst ? q->burst : 1, sizeof(double));
}

static void line_release_memory(struct line *l)
{
	free(l->free);
	free(l->released);
}

static void sim_reserve(struct sim *s, uint64_t readers)
{
	s->delay.entry = xcalloc(readers, sizeof(struct entry));
	s->store.heap.entry = xcalloc(readers, sizeof(struct entry));
	s->cpu.heap.entry = xcalloc(readers, sizeof(struct entry));
	s->rank.entry = xcalloc(s->m->ranks, sizeof(struct entry));
	s->own.heap.entry = xcalloc(s->m->ranks, sizeof(struct entry));
	line_reserve(&s->opens, &s->m->open);
	line_reserve(&s->reads, &s->m->read);
	s->reader = xcalloc(readers, sizeof(*s->reader));
	s->side = xcalloc(s->m->ranks, sizeof(*s->side));
	s->done = xcalloc(s->m->ranks, s->window * sizeof(*s->done));
	for (uint64_t i = 0; i < readers; i++)
		s->reader[i].run = UINT64_MAX;
}

static struct modeled simulate_turn(const struct model *m, uint64_t turn)
{
	struct sim s = {.m = m,
			.width = m->workers ? m->workers : 1,
			.runs = m->runs ? m->runs : 1,
			.stages = stages_of(m),
			.turn = turn};
	uint64_t readers = (uint64_t)m->ranks * s.width;
	struct modeled out = {.au = NAN};

	s.window = window_of(m);
	limit_events(&s);
	s.store.each = m->stream > 0 ? m->stream : INFINITY;
	s.store.all = m->shared > 0 ? m->shared : INFINITY;
	s.cpu.each = s.own.each = 1;
	sim_reserve(&s, readers);
	simulate(&s, &out);
	free(s.delay.entry);
	free(s.store.heap.entry);
	free(s.cpu.heap.entry);
	free(s.rank.entry);
	free(s.own.heap.entry);
	line_release_memory(&s.opens);
	line_release_memory(&s.reads);
	free(s.reader);
	free(s.side);
	free(s.done);
	return out;
}

struct modeled model_run(const struct model *m)
{
	struct modeled sum = {.au = NAN};
	uint64_t turns;

	if (m->ranks == 0 || m->steps == 0 || m->computes == 0 || m->parts == 0 || m->lists == 0 ||
	    window_of(m) > 100000 || (uint64_t)m->ranks * m->workers > 1000000)
		return sum;
	assert(m->compute && (m->spread || m->spreads == 0) && (m->size || m->sizes == 0));
	turns = (uint64_t)(EVENTS_MAX / ((double)m->steps * m->ranks * (m->runs ? m->runs : 1) *
					 (stages_of(m) * m->parts + 2)));
	turns = turns < 1 ? 1 : turns > TURNS_MAX ? TURNS_MAX : turns;
	if (m->sizes == 0 && m->spreads == 0)
		turns = 1;
	sum.au = 0;
	for (uint64_t i = 0; i < turns; i++) {
		struct modeled one = simulate_turn(m, i);

		sum.au += one.au / (double)turns;
		sum.wall_s += one.wall_s / (double)turns;
		sum.service_s += one.service_s / (double)turns;
		sum.service_dev_s += one.service_dev_s / (double)turns;
	}
	return sum;
}
