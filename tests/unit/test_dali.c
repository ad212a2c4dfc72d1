/* DALI's external source against its rules: how batches are cut and dealt, how many are scheduled,
 * and in which order they come, step by step at the gate of the fake format. No clock is involved.
 */
#include "loader_fake.h"

#include <semaphore.h>

#include "count_allocations.h"

#define STEPS_MAX 16
#define QUEUE_MAX 512

static const struct loader_ops *ops(void)
{
	return loader_find("dali");
}

static void create(struct rig *r)
{
	struct err e;

	if (ops()->create(&r->loader, &r->config, &e) != 0)
		fail_msg("%s", e.text);
}

/* A rank that asks when it is told to. */
struct asker {
	struct rig rig;
	struct order order;
	pthread_t thread;
	sem_t ask, answered;
	bool leave;
	int rc;
	struct batch batch;
};

static void *asker_main(void *arg)
{
	struct asker *a = arg;
	struct batch *b;
	struct err e;

	for (;;) {
		sem_wait(&a->ask);
		if (a->leave)
			return NULL;
		a->rc = ops()->next(a->rig.loader, &b, &e);
		if (a->rc == 1) {
			a->batch = *b;
			ops()->give_back(a->rig.loader, b);
		}
		sem_post(&a->answered);
	}
}

static void await_answer(struct asker *a)
{
	struct timespec until;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += PATIENCE_S;
	if (sem_timedwait(&a->answered, &until) != 0)
		fail_msg("the batch did not come");
}

/* ---- the rules ---- */

struct sim {
	uint32_t workers;
	uint64_t batch, depth, steps;
	uint64_t sent, handed;
	uint64_t left[STEPS_MAX]; /* samples of each batch that were not read */
	struct {
		struct {
			uint64_t batch, position;
		} todo[QUEUE_MAX];
		unsigned from, to;
	} w[LANES];
	uint32_t turn; /* whose run is next: dealt in turn over all batches */
};

static void sim_schedule(struct sim *m)
{
	uint64_t runs = m->batch < m->workers ? m->batch : m->workers, at = 0;

	if (m->sent == m->steps)
		return;
	m->left[m->sent] = m->batch;
	for (uint64_t run = 0; run < runs; run++) {
		uint64_t n = m->batch / runs, w = m->turn++ % m->workers;

		if (run < m->batch - n * runs)
			n++;
		for (uint64_t i = 0; i < n; i++, at++) {
			m->w[w].todo[m->w[w].to].batch = m->sent;
			m->w[w].todo[m->w[w].to++].position = m->sent * m->batch + at;
		}
	}
	m->sent++;
}

/* Each worker must be where the rules say, and nobody anywhere else. */
static void check_workers(const struct sim *m, const struct asker *a)
{
	uint64_t begun = 0;

	for (uint32_t w = 0; w < m->workers; w++) {
		begun += m->w[w].from;
		if (m->w[w].from == m->w[w].to)
			continue;
		begun++;
		fake_await_inside(w, order_at(&a->order, 0, m->w[w].todo[m->w[w].from].position));
	}
	assert_int_equal(fake.begun, begun);
}

static void check_answer(struct sim *m, struct asker *a, uint64_t *payload)
{
	struct order_proof want = {0};

	await_answer(a);
	assert_int_equal(a->rc, 1);
	assert_int_equal(a->batch.index, m->handed);
	assert_int_equal(a->batch.first, m->handed * m->batch);
	assert_int_equal(a->batch.samples, m->batch);
	assert_true(a->batch.sent_ns <= a->batch.begun_ns);
	assert_true(a->batch.begun_ns <= a->batch.done_ns);
	for (uint64_t i = 0; i < m->batch; i++)
		order_proof_add(&want, order_at(&a->order, 0, a->batch.first + i));
	assert_memory_equal(&want, &a->batch.proof, sizeof(want));
	*payload += a->batch.payload_bytes;
	m->handed++;
	sim_schedule(m);
	assert_true(m->sent - m->handed <= m->depth);
}

static uint32_t random_below(uint32_t *state, uint32_t n)
{
	*state = *state * 1664525u + 1013904223u;
	return (*state >> 8) % n;
}

static void live_through(struct asker *a, uint32_t workers, uint64_t depth, uint64_t batch,
			 uint64_t steps, uint64_t epoch, uint32_t seed)
{
	struct sim *m = calloc(1, sizeof(*m));
	uint64_t payload = 0;
	bool asking = false;
	struct err e;

	*m = (struct sim){.workers = workers, .batch = batch, .depth = depth, .steps = steps};
	fake.begun = fake.done = 0;
	rig_order(&a->rig, &a->order, 1, epoch);
	assert_int_equal(ops()->start(a->rig.loader, &a->order, steps, &e), 0);
	for (uint64_t i = 0; i < depth; i++)
		sim_schedule(m);
	while (m->handed < steps) {
		uint32_t w = random_below(&seed, workers + 1);

		check_workers(m, a);
		if (w == workers && !asking) {
			asking = true;
			sem_post(&a->ask);
		} else if (w < workers && m->w[w].from < m->w[w].to) {
			m->left[m->w[w].todo[m->w[w].from++].batch]--;
			fake_pass(w);
		}
		if (asking && m->left[m->handed] == 0) {
			check_answer(m, a, &payload);
			asking = false;
		}
	}
	assert_int_equal(payload, steps * batch * PAYLOAD);
	sem_post(&a->ask);
	await_answer(a);
	assert_int_equal(a->rc, 0);
	assert_int_equal(ops()->finish(a->rig.loader, &e), 0);
	free(m);
}

static void asker_init(struct asker *a, uint32_t workers, uint64_t prefetch, uint64_t batch,
		       uint64_t steps)
{
	memset(a, 0, sizeof(*a));
	rig_init(&a->rig, workers, prefetch, batch * steps, 1, batch);
	fake_reset(workers, false);
	sem_init(&a->ask, 0, 0);
	sem_init(&a->answered, 0, 0);
}

static void asker_leave(struct asker *a)
{
	a->leave = true;
	sem_post(&a->ask);
	pthread_join(a->thread, NULL);
	assert_int_equal(ops()->destroy(a->rig.loader), 0);
	sem_destroy(&a->ask);
	sem_destroy(&a->answered);
}

static void test_policy(void **state)
{
	/* workers, prefetch_size (0: DALI's 2), samples of a batch, steps */
	static const struct {
		uint32_t workers;
		uint64_t prefetch, batch, steps;
	} cases[] = {{1, 1, 1, 3}, {1, 0, 4, 5}, {3, 2, 7, 6}, {4, 3, 4, 8},
		     {4, 2, 1, 9}, {5, 4, 3, 7}, {2, 8, 5, 4}, {7, 2, 10, 5}};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		for (uint32_t seed = 1; seed <= 3; seed++) {
			struct asker a;

			asker_init(&a, cases[i].workers, cases[i].prefetch, cases[i].batch,
				   cases[i].steps);
			a.rig.workload.reader.persistent_workers = seed != 2;
			create(&a.rig);
			pthread_create(&a.thread, NULL, asker_main, &a);
			for (uint64_t epoch = 1; epoch <= 2; epoch++)
				live_through(&a, cases[i].workers,
					     cases[i].prefetch ? cases[i].prefetch : 2,
					     cases[i].batch, cases[i].steps, epoch, seed * 7);
			asker_leave(&a);
			assert_int_equal(fake.readers_open, 0);
		}
}

/* Without workers the queue is filled when the first batch is asked for. */
static void test_inline(void **state)
{
	(void)state;
	for (uint64_t prefetch = 0; prefetch < 4; prefetch++) {
		uint64_t depth = prefetch ? prefetch : 2, steps = 5, batches;
		uint32_t workers;
		struct order o;
		struct batch *b;
		struct err e;
		struct rig r;

		rig_init(&r, 0, prefetch, 15, 1, 3);
		fake_reset(0, true);
		create(&r);
		ops()->window(&r.workload, &workers, &batches);
		assert_int_equal(workers, 0);
		assert_int_equal(batches, depth - 1);
		rig_order(&r, &o, 1, 1);
		assert_int_equal(ops()->start(r.loader, &o, steps, &e), 0);
		assert_int_equal(fake.done, 0);
		for (uint64_t k = 0; k < steps; k++) {
			uint64_t read = k + depth < steps ? k + depth : steps;

			assert_int_equal(ops()->next(r.loader, &b, &e), 1);
			assert_int_equal(fake.done, read * 3);
			assert_int_equal(b->index, k);
			ops()->give_back(r.loader, b);
		}
		assert_int_equal(ops()->next(r.loader, &b, &e), 0);
		assert_int_equal(ops()->finish(r.loader, &e), 0);
		assert_int_equal(ops()->destroy(r.loader), 0);
	}
}

static void test_failure_in_its_turn(void **state)
{
	struct order o;
	struct batch *b;
	struct err e;
	struct rig r;

	(void)state;
	for (uint32_t workers = 0; workers < 4; workers += 3) {
		rig_init(&r, workers, 2, 40, 1, 5);
		fake_reset(workers, true);
		create(&r);
		rig_order(&r, &o, 1, 1);
		fake.fail_sample = order_at(&o, 0, 13); /* of batch 2 */
		assert_int_equal(ops()->start(r.loader, &o, 8, &e), 0);
		for (uint64_t k = 0; k < 8; k++) {
			int rc = ops()->next(r.loader, &b, &e);

			assert_int_equal(rc, k == 2 ? ERR_DATA : 1);
			if (k == 2)
				assert_non_null(strstr(e.text, "is broken"));
			else
				ops()->give_back(r.loader, b);
		}
		assert_int_equal(ops()->next(r.loader, &b, &e), 0);
		assert_int_equal(ops()->finish(r.loader, &e), 0);
		assert_int_equal(ops()->destroy(r.loader), 0);
	}
}

/* An epoch that is not read to its end, again and again: nothing is lost. */
static void test_early_end(void **state)
{
	uint64_t read = 0;
	struct order o;
	struct batch *b;
	struct err e;
	struct rig r;
	uint32_t n;

	(void)state;
	rig_init(&r, 3, 2, 40, 1, 4);
	fake_reset(3, true);
	create(&r);
	for (uint64_t epoch = 1; epoch <= 20; epoch++) {
		rig_order(&r, &o, 1, epoch);
		assert_int_equal(ops()->start(r.loader, &o, 10, &e), 0);
		for (uint64_t k = 0; k < epoch % 4; k++) {
			assert_int_equal(ops()->next(r.loader, &b, &e), 1);
			ops()->give_back(r.loader, b);
		}
		assert_int_equal(ops()->finish(r.loader, &e), 0);
	}
	for (uint32_t i = 0; i < 3; i++)
		read += ops()->stats(r.loader, &n)[i].samples;
	assert_int_equal(n, 3);
	assert_int_equal(read, fake.done);
	assert_int_equal(ops()->destroy(r.loader), 0);
}

static void *wake_main(void *arg)
{
	struct rig *r = arg;
	char text[512];

	fake_await_inside(0, 0);
	ops()->describe(r->loader, text, sizeof(text));
	r->stop.set = 1;
	ops()->wake(r->loader);
	fake_gate(true);
	return strstr(text, "has been reading sample") ? NULL : r;
}

static void test_wake(void **state)
{
	struct order o;
	struct batch *b;
	pthread_t thread;
	struct err e;
	struct rig r;
	void *wrong;

	(void)state;
	rig_init(&r, 2, 2, 8, 1, 2);
	r.workload.reader.sample_shuffle = SHUFFLE_OFF;
	fake_reset(2, false);
	create(&r);
	rig_order(&r, &o, 1, 1);
	assert_int_equal(ops()->start(r.loader, &o, 4, &e), 0);
	pthread_create(&thread, NULL, wake_main, &r);
	assert_int_equal(ops()->next(r.loader, &b, &e), ERR_CANCELED);
	pthread_join(thread, &wrong);
	assert_null(wrong);
	assert_int_equal(ops()->finish(r.loader, &e), 0);
	assert_int_equal(ops()->start(r.loader, &o, 4, &e), ERR_CANCELED);
	assert_int_equal(ops()->destroy(r.loader), 0);
}

static void test_memory_is_stated(void **state)
{
	uint64_t small, large;
	struct rig r;
	struct err e;

	(void)state;
	rig_init(&r, 4, 2, 64, 1, 4);
	assert_int_equal(ops()->memory_bytes(&r.config, &small, &e), 0);
	r.workload.reader.prefetch_size = 2000;
	assert_int_equal(ops()->memory_bytes(&r.config, &large, &e), 0);
	assert_true(large - small >= 1998 * 4 * sizeof(struct batch));
	r.config.batch_size = 0;
	assert_int_equal(ops()->create(&r.loader, &r.config, &e), ERR_USAGE);
}

/* All memory is taken by create, and is no more than was stated. */
static void test_no_allocation(void **state)
{
	uint64_t stated, before, count;
	struct order o;
	struct batch *b;
	struct err e;
	struct rig r;

	(void)state;
	fake_reset(3, true);
	rig_init(&r, 3, 4, 400, 1, 5);
	assert_int_equal(ops()->memory_bytes(&r.config, &stated, &e), 0);
	before = allocated_bytes;
	create(&r);
	rig_order(&r, &o, 1, 1);
	assert_int_equal(ops()->start(r.loader, &o, 80, &e), 0);
	assert_true(allocated_bytes - before <= stated + 4096);
	count = allocations;
	for (int epoch = 0; epoch < 2; epoch++) {
		while (ops()->next(r.loader, &b, &e) == 1)
			ops()->give_back(r.loader, b);
		assert_int_equal(ops()->finish(r.loader, &e), 0);
		assert_int_equal(ops()->start(r.loader, &o, 80, &e), 0);
	}
	assert_int_equal(allocations - count, 0);
	assert_int_equal(ops()->destroy(r.loader), 0);
}

static void test_bad_batch(void **state)
{
	struct rig r;
	struct err e;

	(void)state;
	rig_init(&r, 4, 2, 64, 1, 4);
	r.config.batch_size = 0;
	assert_int_equal(ops()->create(&r.loader, &r.config, &e), ERR_USAGE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_policy),
		cmocka_unit_test(test_inline),
		cmocka_unit_test(test_failure_in_its_turn),
		cmocka_unit_test(test_early_end),
		cmocka_unit_test(test_wake),
		cmocka_unit_test(test_memory_is_stated),
		cmocka_unit_test(test_no_allocation),
		cmocka_unit_test(test_bad_batch),
	};

	count_allocations();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
