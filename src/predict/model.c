/* Events: a worker's delay ends; a batch reaches the rank that waits for it; a rank's computation
 * ends; something shared (bytes, processors) may have served one of those at it. */
#include "predict/model.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/rng.h"
#include "predict/shared_server.h"
#include "predict/store_model.h"

#define EVENTS_MAX 150000
#define PARTS_LEAST 2
#define TURNS_MAX 8
/* What bounds the memory, about 300 MB with all of them. */
#define READERS_MAX 1000000u
#define BATCHES_MAX 20000000u /* in windows, of all ranks */
#define SERVERS_MAX 10000000u /* and bursts */
#define LOOKS 0xffffffu       /* 24 bits beside an event's kind */
#define GENERATOR_AHEAD 3     /* batches, as tf.data's loader keeps them */

/* Of a rank against a reader that computes: who has slept goes first. */
static const double RANK_FIRST = 4;

void model_rule(struct model *m, enum loader_rule rule, double prefetch)
{
	prefetch = fmax(1, prefetch);
	m->runs = 1;
	switch (rule) {
	case RULE_NONE:
		break;
	case RULE_PYTORCH:
		m->window = (uint64_t)(prefetch * m->workers);
		break;
	case RULE_GENERATORS:
		m->window = (uint64_t)prefetch + GENERATOR_AHEAD * (uint64_t)m->workers;
		break;
	case RULE_EXTERNAL:
		m->window = (uint64_t)prefetch;
		m->runs = (uint32_t)fmax(1, fmin(m->workers, m->samples));
	}
}

void model_queue_scale(struct model_queue *q, double requests, double bytes)
{
	q->serve_s *= requests;
	q->serve_sized_s *= bytes;
	q->requests *= requests;
}

void model_queue_slow(struct model_queue *q, double by)
{
	q->serve_s *= by;
	q->serve_sized_s *= by;
	q->pace_s *= by;
}

/* ---- one simulation ---- */

enum state { ABSENT, BEGINNING, REST, OPENING, DELAY, QUEUED, TRANSFER, HELD, COMPUTING };
/* What a rank has a processor for. */
enum own { FORKING, TAKING, ENDING };
enum event { AT_DELAY, AT_RANK, AT_SERVER };
/* Servers of a host; the store's own is host 0's where all share it. */
enum server { BYTES, PROCESSORS, OWN, SERVERS };

struct reader {
	enum state state;
	uint64_t run; /* of all batches, numbered through */
	uint32_t part;
	double factor;      /* of this run */
	double size;        /* factor of this part */
	double begun, came; /* this run; at the store */
	double fluid;       /* not before that its bytes are there */
};

struct side {
	uint64_t sent, handed;  /* batches */
	bool coming, computing; /* the one it waited for; it has one */
	bool met;               /* at the barrier */
	enum own own;
	uint32_t forked; /* workers */
	double computed, computing_s;
};

struct sim {
	const struct model *m;
	struct reader *reader; /* ranks * width */
	struct side *side;
	uint32_t *done; /* ranks * window: runs of batch k that are, at k % window */
	uint32_t width, parts, runs;
	uint32_t meeting; /* ranks at the barrier */
	uint64_t window, steps, made;
	uint64_t turn; /* which of the runs */
	double stages; /* of a part */
	struct moments events;
	struct shared_server *server; /* hosts * SERVERS */
	struct store_model store;
	struct model_seen *seen; /* NULL: nobody asks */
	double asked, slowest;
	double first, later; /* as in model_seen; of all ranks */
	double service, square;
	uint64_t served;
	double now;
};

static struct shared_server *server_of(struct sim *s, uint32_t host, enum server what)
{
	return &s->server[host * SERVERS + what];
}

/* Looks at a server when the first of those at it is done: again if that has come nearer; a look
 * that is too early costs no more than itself. */
static void look_later(struct sim *s, uint32_t number)
{
	struct shared_server *t = &s->server[number];
	double due = server_due(t);

	if (!(due < t->due))
		return;
	t->due = due;
	t->looks = (t->looks + 1) & LOOKS;
	moments_push(&s->events, due, number, AT_SERVER | t->looks << 8);
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

static struct store_ask ask_of(const struct sim *s, uint32_t i)
{
	const struct reader *r = &s->reader[i];

	return (struct store_ask){.rank = i / s->width,
				  .key = (r->run * s->parts + r->part) | s->turn << 48,
				  .part = part_of(s, r),
				  .size = r->size};
}

static void begin_delay(struct sim *s, uint32_t i)
{
	struct reader *r = &s->reader[i];
	const struct store_ask ask = ask_of(s, i);
	double delay = s->m->delay_s * ask.part * r->factor;

	r->state = DELAY;
	moments_push(&s->events, s->now + delay + store_delay(&s->store, &ask), i, AT_DELAY);
}

static void begin_way(struct sim *s, uint32_t i, struct way *w, enum state state)
{
	const struct store_ask ask = ask_of(s, i);

	s->reader[i].state = state;
	moments_push(&s->events, store_pass(&s->store, w, s->now, &ask), i, AT_DELAY);
}

static void begin_part(struct sim *s, uint32_t i)
{
	struct reader *r = &s->reader[i];

	r->size = size_of(s, i / s->width, r->run, r->part);
	r->came = s->now;
	if (s->store.open.waits)
		begin_way(s, i, &s->store.open, OPENING);
	else
		begin_delay(s, i);
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

static double computing_of(const struct sim *s, uint32_t k, uint64_t step)
{
	const struct model *m = s->m;

	if (m->compute_drawn)
		return drawn_value(m->compute_drawn,
				   rng_word(rng_key(m->seed + 2, k | s->turn << 32, step), 0));
	return m->compute[(uint64_t)(k % m->lists) * m->computes + step % m->computes];
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
	side->computing_s = computing_of(s, k, side->handed);
	moments_push(&s->events, s->now + (waited ? s->m->hand_s : 0), k, AT_RANK);
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

static void note_wait(struct sim *s)
{
	double wait = s->now - s->asked;

	s->slowest = fmax(s->slowest, wait);
	if (!s->seen)
		return;
	s->seen->wait_s += wait;
	hist_add(&s->seen->wait_ns, (uint64_t)(wait * 1e9 + 0.5));
}

static void note_step(struct sim *s)
{
	if (s->seen)
		s->seen->slowest_s += s->slowest;
	s->slowest = 0;
	s->asked = s->now;
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
	note_step(s);
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
	if (side->handed > 1)
		s->later += side->computing_s;
	else
		s->first += s->now - s->asked + side->computing_s;
	note_wait(s);
	moments_push(&s->events, s->now + side->computing_s + s->m->step_s + stall_after(s, side),
		     k, AT_RANK);
	readers_feed(s, k);
}

/* What follows when the rank's own work, for which it needs a processor, is done. */
static void end_own(struct sim *s, uint32_t k);

/* Ranks get RANK_FIRST times the part of a reader, but no more than one each. */
static void share_processors(struct sim *s, uint32_t host)
{
	struct shared_server *own = server_of(s, host, OWN), *cpu = server_of(s, host, PROCESSORS);
	double cpus = s->m->cpus > 0 ? s->m->cpus : INFINITY;
	double ranks = own->heap.n, readers = cpu->heap.n;
	double part = RANK_FIRST * ranks / fmax(1, RANK_FIRST * ranks + readers);

	own->all = cpu->all = cpus;
	if (ranks > 0 && ranks + readers > cpus) {
		own->all = fmax(cpus - readers, fmin(ranks, cpus * part));
		cpu->all = cpus - fmin(ranks, own->all);
	}
	look_later(s, host * SERVERS + OWN);
	look_later(s, host * SERVERS + PROCESSORS);
}

/* Both, as what one of them gets depends on who is at the other. */
static void touch_processors(struct sim *s, uint32_t host)
{
	server_touch(server_of(s, host, OWN), s->now);
	server_touch(server_of(s, host, PROCESSORS), s->now);
}

static void use_processor(struct sim *s, uint32_t host, enum server what, double cpu_s,
			  uint32_t who)
{
	touch_processors(s, host);
	server_enter(server_of(s, host, what), s->now, cpu_s, who);
	if (s->seen)
		s->seen->cpu_s += cpu_s;
	share_processors(s, host);
}

static void begin_own(struct sim *s, uint32_t k, enum own own, double cpu_s)
{
	s->side[k].own = own;
	if (cpu_s > 0)
		use_processor(s, store_host(&s->store, k), OWN, cpu_s, k);
	else
		end_own(s, k);
}

/* A batch has reached its rank, or the computation with it is over. */
static void rank_event(struct sim *s, uint32_t k)
{
	if (s->side[k].coming)
		begin_own(s, k, TAKING, s->m->take_s);
	else
		begin_own(s, k, ENDING, s->m->end_s);
}

/* A worker has begun, and waits for the store. */
static void be_ready(struct sim *s, uint32_t i)
{
	bool waits = s->m->workers && s->m->ready_s > 0;

	s->reader[i].state = waits ? BEGINNING : REST;
	if (waits)
		moments_push(&s->events, s->now + s->m->ready_s, i, AT_DELAY);
}

/* The next worker of a rank is there. */
static void hire(struct sim *s, uint32_t k)
{
	uint32_t i = k * s->width + s->side[k].forked++;

	if (s->m->workers && s->m->begin_s > 0) {
		s->reader[i].state = BEGINNING;
		use_processor(s, store_host(&s->store, k), PROCESSORS, s->m->begin_s, i);
	} else {
		be_ready(s, i);
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
		be_ready(s, i);
		readers_feed(s, i / s->width);
	} else {
		end_part(s, i);
	}
}

static void begin_computing(struct sim *s, uint32_t i)
{
	struct reader *r = &s->reader[i];

	if (s->seen)
		s->seen->at_store_s += s->now - r->came;
	if (!(s->m->cpu_s > 0)) {
		end_part(s, i);
		return;
	}
	assert(r->state > REST && r->state != COMPUTING);
	r->state = COMPUTING;
	use_processor(s, store_host(&s->store, i / s->width), PROCESSORS,
		      s->m->cpu_s * part_of(s, r) * r->size, i);
}

static void begin_transfer(struct sim *s, uint32_t i)
{
	struct reader *r = &s->reader[i];
	uint32_t rank = i / s->width, host = store_bytes_of(&s->store, rank);
	double bytes = s->m->bytes * part_of(s, r) * r->size;

	if (!(bytes > 0) || !store_moves(&s->store)) {
		begin_computing(s, i);
		return;
	}
	r->state = TRANSFER;
	r->fluid = store_fluid(&s->store, s->now, rank, bytes);
	server_enter(server_of(s, host, BYTES), s->now, bytes, i);
	look_later(s, host * SERVERS + BYTES);
}

static void end_transfer(struct sim *s, uint32_t i)
{
	struct reader *r = &s->reader[i];

	if (r->fluid > s->now) {
		r->state = HELD;
		moments_push(&s->events, r->fluid, i, AT_DELAY);
	} else {
		begin_computing(s, i);
	}
}

/* A delay has passed, or the wait of a queue. */
static void end_delay(struct sim *s, uint32_t i)
{
	struct reader *r = &s->reader[i];

	if (r->state == BEGINNING) {
		r->state = REST;
		readers_feed(s, i / s->width);
	} else if (r->state == OPENING) {
		begin_delay(s, i);
	} else if (r->state == HELD) {
		begin_computing(s, i);
	} else if (r->state == DELAY && s->store.read.waits) {
		begin_way(s, i, &s->store.read, QUEUED);
	} else {
		begin_transfer(s, i);
	}
}

/* One of those at a server may be done: somebody came since this moment was foreseen if not. */
static void server_event(struct sim *s, const struct moment *e)
{
	struct shared_server *t = &s->server[e->who];
	uint32_t host = e->who / SERVERS, who;
	enum server what = e->who % SERVERS;

	if (t->looks != e->what >> 8)
		return;
	t->due = INFINITY;
	if (what == BYTES)
		server_touch(t, s->now);
	else
		touch_processors(s, host);
	if (server_due(t) > s->now) {
		look_later(s, e->who);
		return;
	}
	who = server_leave(t, s->now);
	if (what == BYTES)
		look_later(s, e->who);
	else
		share_processors(s, host);
	if (what == BYTES)
		end_transfer(s, who);
	else if (what == PROCESSORS)
		end_computing(s, who);
	else
		end_own(s, who);
}

/* False when nothing is under way. */
static bool next_event(struct sim *s)
{
	struct moment e;

	if (s->events.n == 0)
		return false;
	e = moments_pop(&s->events);
	s->now = fmax(s->now, e.key);
	switch ((enum event)(e.what & 0xff)) {
	case AT_DELAY:
		end_delay(s, e.who);
		break;
	case AT_RANK:
		rank_event(s, e.who);
		break;
	case AT_SERVER:
		server_event(s, &e);
	}
	return true;
}

static uint64_t window_of(const struct model *m)
{
	/* workers have a batch each, unless they share its runs */
	uint64_t least = m->runs > 1 || m->workers == 0 ? 1 : m->workers;

	return m->workers && m->window > least ? m->window : least;
}

/* Events of a part. */
static double stages_of(const struct model *m)
{
	return 3 + store_waits(&m->open, &m->drawn_open) + store_waits(&m->read, &m->drawn_read);
}

static uint64_t least_steps(uint64_t window)
{
	return 4 * (window + 4);
}

double model_events_least(const struct model *m)
{
	uint64_t steps = least_steps(window_of(m));
	double of_part = stages_of(m);

	return (double)(steps < m->steps ? steps : m->steps) * m->ranks * (m->runs ? m->runs : 1) *
	       (of_part * fmin(m->parts, PARTS_LEAST) + 2);
}

/* Fewer parts first. */
static void limit_events(struct sim *s, double events_max)
{
	const struct model *m = s->m;
	uint64_t least = least_steps(s->window);
	double most;

	s->parts = m->parts;
	s->steps = m->steps;
	while (s->parts > PARTS_LEAST &&
	       (double)s->steps * m->ranks * s->runs * (s->stages * s->parts + 2) > events_max)
		s->parts--;
	most = fmax((double)least, events_max / ((s->stages * s->parts + 2) * m->ranks * s->runs));
	if (most < (double)s->steps)
		s->steps = (uint64_t)most;
}

static void simulate(struct sim *s, struct modeled *out)
{
	double computed = 0, mean, later;

	s->now = s->m->start_s;
	for (uint32_t k = 0; k < s->m->ranks; k++)
		fork_workers(s, k);
	while (s->made < s->steps && next_event(s))
		;
	for (uint32_t k = 0; k < s->m->ranks; k++)
		computed += s->side[k].computed / s->m->ranks;
	out->wall_s = s->now + stalls_left(s) + s->m->after_s;
	out->au = out->wall_s > 0 ? 100 * computed / out->wall_s : NAN;
	later = out->wall_s - s->first / s->m->ranks;
	out->later_au = later > 0 ? 100 * s->later / s->m->ranks / later : NAN;
	if (s->seen) {
		s->seen->first_s = s->first / s->m->ranks;
		s->seen->computed_later_s = s->later / s->m->ranks;
	}
	if (s->served == 0)
		return;
	mean = s->service / (double)s->served;
	out->service_s = mean;
	out->service_dev_s = sqrt(fmax(0, s->square / (double)s->served - mean * mean));
}

static void sim_reserve(struct sim *s, uint64_t readers)
{
	store_model_init(&s->store, s->m);
	s->server = xcalloc((uint64_t)s->store.hosts * SERVERS, sizeof(*s->server));
	for (uint32_t i = 0; i < s->store.hosts * SERVERS; i++) {
		s->server[i] = (struct shared_server){.each = 1, .all = INFINITY, .due = INFINITY};
		if (i % SERVERS == BYTES)
			store_bytes_init(&s->store, &s->server[i]);
	}
	moments_reserve(&s->events, (uint32_t)readers + s->m->ranks);
	s->reader = xcalloc(readers, sizeof(*s->reader));
	s->side = xcalloc(s->m->ranks, sizeof(*s->side));
	s->done = xcalloc(s->m->ranks, s->window * sizeof(*s->done));
	for (uint64_t i = 0; i < readers; i++)
		s->reader[i].run = UINT64_MAX;
}

static void sim_release(struct sim *s)
{
	for (uint32_t i = 0; i < s->store.hosts * SERVERS; i++)
		moments_release(&s->server[i].heap);
	free(s->server);
	moments_release(&s->events);
	store_model_release(&s->store);
	free(s->reader);
	free(s->side);
	free(s->done);
}

static bool possible(const struct model *m)
{
	return m->ranks && m->steps && (m->computes || m->compute_drawn) && m->parts && m->lists &&
	       window_of(m) <= 100000 && m->ranks * window_of(m) <= BATCHES_MAX &&
	       (uint64_t)m->ranks * (m->workers ? m->workers : 1) <= READERS_MAX &&
	       (uint64_t)m->open.servers + m->open.burst + m->read.servers + m->read.burst <=
		       SERVERS_MAX;
}

uint64_t model_memory(const struct model *m)
{
	uint64_t readers = (uint64_t)m->ranks * (m->workers ? m->workers : 1);

	/* each reader is in the heap of events and in that of one server, which grow by doubling */
	return readers * (sizeof(struct reader) + 4 * MOMENT_BYTES) +
	       m->ranks *
		       (sizeof(struct side) + 4 * MOMENT_BYTES + window_of(m) * sizeof(uint32_t)) +
	       store_hosts(m) * (SERVERS * sizeof(struct shared_server) + 3 * sizeof(struct line)) +
	       sizeof(double) * ((uint64_t)m->open.servers + m->open.burst + m->read.servers +
				 m->read.burst);
}

struct modeled model_once(const struct model *m, uint64_t turn, double events_max,
			  struct model_seen *seen)
{
	struct sim s = {.m = m,
			.width = m->workers ? m->workers : 1,
			.runs = m->runs ? m->runs : 1,
			.stages = stages_of(m),
			.seen = seen,
			.turn = turn};
	struct modeled out = {.au = NAN, .later_au = NAN};

	if (!possible(m))
		return out;
	s.window = window_of(m);
	limit_events(&s, events_max);
	if (seen) {
		*seen = (struct model_seen){.steps = s.steps};
		hist_init(&seen->wait_ns);
	}
	sim_reserve(&s, (uint64_t)m->ranks * s.width);
	simulate(&s, &out);
	sim_release(&s);
	return out;
}

struct modeled model_run(const struct model *m)
{
	struct modeled sum = {.au = NAN, .later_au = NAN};
	uint64_t turns;

	if (!possible(m))
		return sum;
	assert((m->compute || m->compute_drawn) && (m->spread || m->spreads == 0) &&
	       (m->size || m->sizes == 0));
	turns = (uint64_t)(EVENTS_MAX / ((double)m->steps * m->ranks * (m->runs ? m->runs : 1) *
					 (stages_of(m) * m->parts + 2)));
	turns = turns < 1 ? 1 : turns > TURNS_MAX ? TURNS_MAX : turns;
	if (m->sizes == 0 && m->spreads == 0)
		turns = 1;
	sum.au = sum.later_au = 0;
	for (uint64_t i = 0; i < turns; i++) {
		struct modeled one = model_once(m, i, EVENTS_MAX, NULL);

		sum.au += one.au / (double)turns;
		sum.later_au += one.later_au / (double)turns;
		sum.wall_s += one.wall_s / (double)turns;
		sum.service_s += one.service_s / (double)turns;
		sum.service_dev_s += one.service_dev_s / (double)turns;
	}
	return sum;
}
