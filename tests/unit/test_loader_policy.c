/* The PyTorch loader against a simulation of PyTorch's rules: scripted service and compute times
 * give an exact sequence of who reads what and what is handed out when, and the loader is made to
 * live through the same times step by step at the gate of the fake format. No clock is involved. */
#include "loader_fake.h"

#include <sched.h>

#define STEPS_MAX 64
#define MOVES_MAX 512
#define NOBODY (-1)

struct script {
	uint32_t workers;
	uint64_t factor;
	bool in_order;
	uint64_t steps; /* of the epoch */
	uint64_t asked; /* batches asked for before the epoch is ended */
	uint32_t service[STEPS_MAX], compute[STEPS_MAX];
};

/* One move of the script and the state that must follow. */
struct move {
	enum { ASK, LET_END } what;
	uint32_t worker; /* LET_END: whose batch is done */
	int64_t got;     /* batch handed out, NOBODY, or steps: end of the epoch */
	uint32_t got_by;
	int64_t reading[LANES];
};

/* ---- the rules, as a discrete-event simulation ---- */

struct sim {
	const struct script *s;
	uint64_t now, next_index, taken, rank_ready;
	bool waiting;
	struct {
		int64_t todo[STEPS_MAX];
		unsigned from, to;
		uint64_t until, share;
	} w[LANES];
	int64_t arrived[STEPS_MAX]; /* in order of arrival; NOBODY once handed out */
	unsigned arrivals;
	uint32_t owner[STEPS_MAX], turn;
	uint64_t most; /* the largest number beyond the one handed out */
};

static int64_t sim_reading(const struct sim *m, uint32_t w)
{
	return m->w[w].from < m->w[w].to ? m->w[w].todo[m->w[w].from] : NOBODY;
}

static void sim_dispatch(struct sim *m)
{
	uint32_t n = m->s->workers;

	if (m->next_index == m->s->steps)
		return;
	for (uint32_t tried = 0; tried < n; tried++) {
		uint32_t w = m->turn;

		m->turn = (m->turn + 1) % n;
		if (!m->s->in_order && m->w[w].share >= m->s->factor * n / n)
			continue;
		if (m->w[w].from == m->w[w].to)
			m->w[w].until = m->now + m->s->service[m->next_index];
		m->owner[m->next_index] = w;
		m->w[w].todo[m->w[w].to++] = (int64_t)m->next_index++;
		m->w[w].share++;
		break;
	}
	if (m->next_index - m->taken > m->most)
		m->most = m->next_index - m->taken;
}

/* Hands out what can be handed out now, if anything. */
static int64_t sim_deliver(struct sim *m)
{
	for (unsigned i = 0; i < m->arrivals; i++) {
		int64_t k = m->arrived[i];

		if (k == NOBODY || (m->s->in_order && k != (int64_t)m->taken))
			continue;
		m->arrived[i] = NOBODY;
		m->taken++;
		m->w[m->owner[k]].share--;
		sim_dispatch(m);
		m->waiting = false;
		m->rank_ready = m->now + m->s->compute[k];
		return k;
	}
	return NOBODY;
}

static void sim_snapshot(const struct sim *m, struct move *v, int64_t got)
{
	v->got = got;
	v->got_by = got >= 0 && got < (int64_t)m->s->steps ? m->owner[got] : 0;
	for (uint32_t w = 0; w < LANES; w++)
		v->reading[w] = w < m->s->workers ? sim_reading(m, w) : NOBODY;
}

/* The worker that ends next, or NOBODY. */
static int sim_earliest(const struct sim *m)
{
	int first = NOBODY;

	for (uint32_t w = 0; w < m->s->workers; w++)
		if (sim_reading(m, w) != NOBODY &&
		    (first == NOBODY || m->w[w].until < m->w[first].until))
			first = (int)w;
	return first;
}

static void sim_end_batch(struct sim *m, uint32_t w)
{
	m->now = m->w[w].until;
	m->arrived[m->arrivals++] = m->w[w].todo[m->w[w].from++];
	if (sim_reading(m, w) != NOBODY)
		m->w[w].until = m->now + m->s->service[sim_reading(m, w)];
}

static unsigned simulate_inline(const struct script *s, struct move *v)
{
	unsigned n = 0;

	for (uint64_t k = 0; k < s->asked; k++) {
		bool end = k == s->steps;

		v[n] = (struct move){.what = ASK, .got = end ? (int64_t)k : NOBODY};
		for (int w = 0; w < LANES; w++)
			v[n].reading[w] = w == 0 && !end ? (int64_t)k : NOBODY;
		n++;
		if (end)
			break;
		v[n] = (struct move){.what = LET_END, .got = (int64_t)k};
		for (int w = 0; w < LANES; w++)
			v[n].reading[w] = NOBODY;
		n++;
	}
	return n;
}

/* The moves of one epoch; `first` is the state after start. */
static unsigned simulate(const struct script *s, struct move *first, struct move *v)
{
	struct sim m = {.s = s};
	uint64_t asks = 0;
	unsigned n = 0;

	for (uint64_t i = 0; i < s->factor * s->workers; i++)
		sim_dispatch(&m);
	sim_snapshot(&m, first, NOBODY);
	if (s->workers == 0)
		return simulate_inline(s, v);
	for (;;) {
		int w = sim_earliest(&m);
		int64_t got = NOBODY;

		assert_true(n < MOVES_MAX);
		if (!m.waiting && (w == NOBODY || m.rank_ready < m.w[w].until)) {
			if (asks++ == s->asked)
				break;
			m.now = m.rank_ready;
			m.waiting = true;
			got = m.taken == s->steps ? (int64_t)s->steps : sim_deliver(&m);
			v[n].what = ASK;
		} else {
			sim_end_batch(&m, (uint32_t)w);
			got = m.waiting ? sim_deliver(&m) : NOBODY;
			v[n].what = LET_END;
			v[n].worker = (uint32_t)w;
		}
		sim_snapshot(&m, &v[n++], got);
		if (got == (int64_t)s->steps)
			break;
	}
	assert_true(m.most <= s->factor * s->workers);
	return n;
}

/* ---- the loader under test, driven by the moves ---- */

struct rank {
	struct rig rig;
	struct order order;
	uint64_t steps;
	pthread_t thread;
	/* under fake.lock */
	enum { REST, DO_START, DO_NEXT, DO_FINISH, DO_LEAVE } todo;
	uint64_t replies;
	int rc;
	struct batch batch;
	struct err err;
};

static int rank_act(struct rank *r, int todo, struct batch *out)
{
	struct loader *l = r->rig.loader;
	struct batch *b;
	int rc;

	if (todo == DO_START)
		return l->ops->start(l, &r->order, r->steps, &r->err);
	if (todo == DO_FINISH)
		return l->ops->finish(l, &r->err);
	rc = l->ops->next(l, &b, &r->err);
	if (rc == 1) {
		*out = *b;
		l->ops->give_back(l, b);
	}
	return rc;
}

static void *rank_main(void *arg)
{
	struct rank *r = arg;
	int todo;

	for (;;) {
		struct batch b = {0};
		int rc;

		pthread_mutex_lock(&fake.lock);
		while (r->todo == REST)
			pthread_cond_wait(&fake.changed, &fake.lock);
		todo = r->todo;
		pthread_mutex_unlock(&fake.lock);
		if (todo == DO_LEAVE)
			return NULL;
		rc = rank_act(r, todo, &b);
		pthread_mutex_lock(&fake.lock);
		r->rc = rc;
		r->batch = b;
		r->todo = REST;
		r->replies++;
		pthread_cond_broadcast(&fake.changed);
		pthread_mutex_unlock(&fake.lock);
	}
}

static void rank_tell(struct rank *r, int todo)
{
	pthread_mutex_lock(&fake.lock);
	if (r->todo != REST)
		fake_fail("the rank is still waiting");
	r->todo = todo;
	pthread_cond_broadcast(&fake.changed);
	pthread_mutex_unlock(&fake.lock);
}

static void rank_await(struct rank *r, uint64_t replies)
{
	pthread_mutex_lock(&fake.lock);
	fake_await(r->replies >= replies);
	if (r->replies != replies)
		fake_fail("the rank got a batch too early");
	pthread_mutex_unlock(&fake.lock);
}

static unsigned idle_count(struct rank *r)
{
	struct loader *l = r->rig.loader;
	char text[2048];
	const char *at;

	l->ops->describe(l, text, sizeof(text));
	at = strrchr(text, ';');
	if (at && strstr(at, "workers idle"))
		return (unsigned)strtoul(at + 1, NULL, 10);
	return strstr(text, "no worker is busy") || strstr(text, "is idle");
}

static uint64_t sample_at(const struct rank *r, int64_t batch, uint64_t i)
{
	return order_at(&r->order, 0, (uint64_t)batch * r->rig.config.batch_size + i);
}

/* Every worker must be where the simulation has it, and the others idle. */
static void settle(struct rank *r, const struct script *s, const struct move *v)
{
	int64_t deadline = clock_now_ns() + PATIENCE_S * NS_PER_S;
	unsigned idle = 0;

	for (uint32_t w = 0; w < (s->workers ? s->workers : 1); w++) {
		if (v->reading[w] == NOBODY)
			idle++;
		else
			fake_await_inside(w, sample_at(r, v->reading[w], 0));
	}
	while (s->workers && idle_count(r) != idle) {
		if (clock_now_ns() > deadline)
			fail_msg("%u workers are idle instead of %u", idle_count(r), idle);
		sched_yield();
	}
}

static void check_batch(const struct rank *r, const struct move *v)
{
	uint64_t size = r->rig.config.batch_size;
	const struct batch *b = &r->batch;
	struct order_proof want = {0};

	assert_int_equal(r->rc, 1);
	assert_int_equal(b->index, v->got);
	assert_int_equal(b->worker, v->got_by);
	assert_int_equal(b->first, (uint64_t)v->got * size);
	assert_int_equal(b->samples, size);
	assert_int_equal(b->payload_bytes, size * PAYLOAD);
	for (uint64_t i = 0; i < size; i++)
		order_proof_add(&want, sample_at(r, v->got, i));
	assert_memory_equal(&b->proof, &want, sizeof(want));
	assert_true(b->sent_ns <= b->begun_ns && b->begun_ns <= b->done_ns);
}

static void let_end(struct rank *r, uint32_t worker, int64_t batch)
{
	for (uint64_t i = 0; i < r->rig.config.batch_size; i++) {
		fake_await_inside(worker, sample_at(r, batch, i));
		fake_pass(worker);
	}
}

static void play_epoch(struct rank *r, const struct script *s)
{
	static struct move move[MOVES_MAX];
	struct move before;
	unsigned n = simulate(s, &before, move);
	uint64_t replies = r->replies;

	r->steps = s->steps;
	rank_tell(r, DO_START);
	rank_await(r, ++replies);
	assert_int_equal(r->rc, 0);
	settle(r, s, &before);
	for (unsigned i = 0; i < n; i++) {
		const struct move *v = &move[i];

		if (v->what == ASK)
			rank_tell(r, DO_NEXT);
		else
			let_end(r, v->worker, s->workers ? before.reading[v->worker] : v->got);
		if (v->got != NOBODY) {
			rank_await(r, ++replies);
			if (v->got == (int64_t)s->steps)
				assert_int_equal(r->rc, 0);
			else
				check_batch(r, v);
		}
		settle(r, s, v);
		before = *v;
	}
	fake_gate(true);
	rank_tell(r, DO_FINISH);
	rank_await(r, ++replies);
	assert_int_equal(r->rc, 0);
	assert_int_equal(fake.begun, fake.done);
	fake_gate(false);
}

static uint32_t lcg(uint64_t *state)
{
	*state = *state * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(*state >> 33);
}

static void write_script(struct script *s, uint64_t *seed, uint64_t steps_max)
{
	static const uint32_t paces[] = {0, 2, 8, 30};
	uint32_t pace = paces[lcg(seed) % 4];

	s->steps = steps_max - lcg(seed) % 3;
	s->asked = lcg(seed) % 4 == 0 ? s->steps / 2 : s->steps + 1;
	for (uint64_t k = 0; k < s->steps; k++) {
		s->service[k] = 1 + lcg(seed) % 16 + (lcg(seed) % 8 == 0 ? 100 : 0);
		s->compute[k] = pace ? lcg(seed) % pace : 0;
	}
}

static void play(uint32_t workers, uint64_t prefetch, uint64_t factor, bool in_order,
		 bool persistent, uint64_t batch, uint64_t steps, uint64_t *seed)
{
	static struct rank r;
	struct script s = {.workers = workers, .factor = factor, .in_order = in_order};

	memset(&r, 0, sizeof(r));
	fake_reset(workers, false);
	rig_init(&r.rig, workers, prefetch, steps * batch, batch > 1 ? 2 : 1, batch);
	r.rig.workload.reader.in_order = in_order;
	r.rig.workload.reader.persistent_workers = persistent;
	rig_create(&r.rig);
	pthread_create(&r.thread, NULL, rank_main, &r);
	for (uint64_t epoch = 1; epoch <= 3; epoch++) {
		rig_order(&r.rig, &r.order, 1, epoch);
		write_script(&s, seed, steps);
		play_epoch(&r, &s);
		assert_int_equal(fake.readers_open, workers && !persistent ? 0 : fake.lanes);
	}
	rank_tell(&r, DO_LEAVE);
	pthread_join(r.thread, NULL);
	assert_int_equal(r.rig.loader->ops->destroy(r.rig.loader), 0);
	assert_int_equal(fake.readers_open, 0);
}

static void test_rules(void **state)
{
	static const uint32_t workers[] = {0, 1, 2, 3, 4, 8};
	static const uint64_t factors[] = {1, 2, 4};
	uint64_t seed = 1;

	(void)state;
	for (unsigned w = 0; w < 6; w++)
		for (unsigned p = 0; p < 3; p++)
			for (unsigned mode = 0; mode < 4; mode++)
				play(workers[w], factors[p] * workers[w], factors[p], mode & 1,
				     mode & 2, 1 + (p + mode) % 2, 18, &seed);
}

static void test_few_steps(void **state)
{
	uint64_t seed = 5;

	(void)state;
	for (unsigned mode = 0; mode < 4; mode++) {
		play(8, 16, 2, mode & 1, mode & 2, 1, 3, &seed); /* 1 to 3 batches, 8 workers */
		play(3, 6, 2, mode & 1, mode & 2, 2, 4, &seed);  /* fewer than are read ahead */
	}
}

/* prefetch_factor is the ceiling of prefetch_size over the workers, and 2 when nothing is said. */
static void test_prefetch_factor(void **state)
{
	uint64_t seed = 7;

	(void)state;
	play(2, 5, 3, true, true, 1, 18, &seed);
	play(4, 1, 1, true, true, 1, 18, &seed);
	play(3, 7, 3, false, true, 1, 18, &seed);
	play(2, 0, 2, true, true, 1, 18, &seed);
	play(3, 0, 2, false, false, 1, 18, &seed);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rules),
		cmocka_unit_test(test_few_steps),
		cmocka_unit_test(test_prefetch_factor),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
