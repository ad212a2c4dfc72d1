/* The framework's own code: processor time is spent as the laws say, by the thread that the
 * framework would spend it in, less what was done already. Processor times are compared, never wall
 * times, so that a busy machine changes nothing. */
#include "loader_fake.h"

#include <math.h>

#include "format/format.h"
#include "loader/framework.h"

#define MS 1000000

static struct cost_law fixed_ms(double ms)
{
	return (struct cost_law){.fixed = ms / 1e3, .present = true};
}

/* At least so much, and hardly more: sanitizers and clocks take a little. */
static void expect_spent(int64_t since_ns, double ms)
{
	int64_t took = framework_thread_ns() - since_ns;

	if (took < (int64_t)(ms * MS) || took > (int64_t)((1.2 * ms + 5) * MS))
		fail_msg("%.3f ms of processor time, not %.3f", (double)took / MS, ms);
}

static void test_laws(void **state)
{
	struct framework_costs costs = {0};
	struct framework_spent spent = {0};
	struct framework_code code = {.costs = &costs, .spent = &spent};
	const struct format_facts *csv = &format_find("csv")->is;
	int64_t begin;

	(void)state;
	costs.of[COST_HAND_OVER] = fixed_ms(20);
	costs.of[COST_COLLATE] = (struct cost_law){
		.fixed = 0.002, .per_sample = 0.001, .per_byte = 1e-6, .present = true};
	begin = framework_thread_ns();
	assert_true(framework_spend(&code, COST_HAND_OVER, 4, 1e6, 0) >= 20 * MS);
	expect_spent(begin, 20);
	assert_in_range(spent.cpu_ns, 20 * MS, 25 * MS);
	/* 2 + 4 + 10 ms */
	begin = framework_thread_ns();
	framework_spend(&code, COST_COLLATE, 4, 1e4, 0);
	expect_spent(begin, 16);
	/* a row that the profile does not have, a format neither */
	begin = framework_thread_ns();
	assert_int_equal(framework_spend(&code, COST_STEP, 1, 1, 3 * MS), 0);
	assert_int_equal(framework_spend_load(&code, csv, true, 1e6, NULL, 0), 0);
	expect_spent(begin, 0);
	assert_int_equal(spent.beyond_ns, 0);
	/* what is per file is spent where one is opened */
	for (size_t i = 0; format_facts_table[i]; i++)
		if (format_facts_table[i] == csv)
			costs.load[i] = (struct cost_law){
				.fixed = 0.03, .per_sample = 0.005, .present = true};
	begin = framework_thread_ns();
	framework_spend_load(&code, csv, false, 0, NULL, 0);
	expect_spent(begin, 5);
	begin = framework_thread_ns();
	framework_spend_load(&code, csv, true, 0, NULL, 0);
	expect_spent(begin, 35);
	/* DLIO's own code, in a run that is not DLIO's, and in one */
	costs.of[COST_STEP] = fixed_ms(5);
	begin = framework_thread_ns();
	assert_int_equal(framework_spend(&code, COST_STEP, 1, 1, 0), 0);
	expect_spent(begin, 0);
	code.dlio = true;
	assert_true(framework_spend(&code, COST_STEP, 1, 1, 0) >= 5 * MS);
	/* none */
	code.costs = NULL;
	begin = framework_thread_ns();
	assert_false(framework_on(&code));
	assert_int_equal(framework_spend(&code, COST_HAND_OVER, 4, 1e6, 0), 0);
	expect_spent(begin, 0);
}

/* Waits within a load, each but the longest. */
static void test_waits_within(void **state)
{
	struct framework_costs costs = {0};
	struct framework_spent spent = {0};
	struct framework_code code = {.costs = &costs, .spent = &spent};
	const struct format_facts *first = format_facts_table[0];
	struct io_waits within = {.scale_s = COST_EACH_WAIT_S};
	int64_t begin;

	(void)state;
	costs.load[0] = (struct cost_law){.after_each_wait = 0.02, .present = true};
	io_waits_add(&within, IO_WAIT_LEAST_NS - 1);
	assert_true(within.all == 0 && within.ns == 0);
	for (int i = 0; i < 3; i++)
		io_waits_add(&within, 12 * MS);
	assert_true(fabs(within.all - 3 * (1 - exp(-1))) < 1e-9 && within.ns == 36 * MS);
	assert_true(fabs(within.most - (1 - exp(-1))) < 1e-9);
	/* long ago it waited longer: all three; then two of them, as nothing was before */
	begin = framework_thread_ns();
	framework_spend_load(&code, first, true, 0, &within, 0);
	expect_spent(begin, 60 * (1 - exp(-1)));
	begin = framework_thread_ns();
	framework_spend_load(&code, first, true, 0, &within, 0);
	expect_spent(begin, 40 * (1 - exp(-1)));
	begin = framework_thread_ns();
	framework_spend_load(&code, first, true, 0, NULL, 0);
	expect_spent(begin, 0);
}

/* Loading is spent before the requests for data, between them by their bytes, and behind them; all
 * of it is the law. How many requests come before the data is known from the sample before. */
static void test_between(void **state)
{
	enum { HEADS = 3, DATA = 100000 };
	/* 8 ms before the data of 2 requests, 6 behind it, 20 by bytes */
	static const double so_far[][HEADS + 2] = {{0, 0, 0, 8, 18}, {2, 4, 6, 8, 18}};
	struct framework_costs costs = {0};
	struct framework_spent spent = {0};
	struct framework_code code = {.costs = &costs, .spent = &spent};
	const struct format_facts *first = format_facts_table[0];
	int64_t begin;

	(void)state;
	costs.load[0] = (struct cost_law){
		.per_sample = 0.034, .before_data = 0.008, .after_data = 0.006, .present = true};
	for (int k = 0; k < 2; k++) {
		begin = framework_thread_ns();
		framework_load_begin(&code, first, 2 * DATA);
		for (int i = 0; i < HEADS + 2; i++) {
			framework_load_between(&code, i < HEADS ? 100 : DATA, 0);
			expect_spent(begin, so_far[k][i]);
		}
		framework_spend_load(&code, first, true, 2 * DATA, NULL, 0);
		expect_spent(begin, 34);
	}
	/* what was done here comes off */
	begin = framework_thread_ns();
	framework_load_begin(&code, first, 2 * DATA);
	framework_load_between(&code, DATA, 5 * MS);
	expect_spent(begin, 3);
	framework_spend_load(&code, first, true, 2 * DATA, NULL, 5 * MS);
	expect_spent(begin, 29);
	assert_int_equal(spent.beyond_ns, 0);
	/* a law that does not say where has it all behind the requests, and so has no law */
	costs.load[0].before_data = costs.load[0].after_data = 0;
	begin = framework_thread_ns();
	framework_load_begin(&code, first, 2 * DATA);
	assert_int_equal(framework_load_between(&code, DATA, 0), 0);
	expect_spent(begin, 0);
	framework_spend_load(&code, first, true, 2 * DATA, NULL, 0);
	expect_spent(begin, 34);
	costs.load[0] = (struct cost_law){0};
	framework_load_begin(&code, first, 2 * DATA);
	assert_int_equal(framework_load_between(&code, DATA, 0), 0);
	assert_int_equal(framework_spend_load(&code, first, true, 2 * DATA, NULL, 0), 0);
}

/* The first time of each row, and again in a new worker; and loading where there are no workers. */
static void test_first(void **state)
{
	struct framework_costs costs = {0};
	struct framework_spent spent = {0};
	struct framework_code code = {.costs = &costs, .spent = &spent};
	const struct format_facts *format = format_facts_table[0];
	int64_t begin;

	(void)state;
	costs.of[COST_PACK] = (struct cost_law){.fixed = 0.002, .first = 0.01, .present = true};
	costs.load[0] = (struct cost_law){.first = 0.02,
					  .points = 2,
					  .point = {{.bytes = 1, .s = 0.004, .alone_s = 0.008},
						    {.bytes = 2, .s = 0.004, .alone_s = 0.008}},
					  .present = true};
	for (int worker = 0; worker < 2; worker++) {
		code.been = 0;
		for (int i = 0; i < 2; i++) {
			begin = framework_thread_ns();
			framework_spend(&code, COST_PACK, 1, 0, 0);
			expect_spent(begin, i ? 2 : 12);
			begin = framework_thread_ns();
			framework_spend_load(&code, format, true, 1, NULL, 0);
			expect_spent(begin, i ? 4 : 24);
		}
	}
	code.alone = true;
	begin = framework_thread_ns();
	framework_spend_load(&code, format, true, 1, NULL, 0);
	expect_spent(begin, 8);
}

/* What was done already is not spent again, and what took longer than the law is counted. */
static void test_rest(void **state)
{
	struct framework_costs costs = {0};
	struct framework_spent spent = {0};
	struct framework_code code = {.costs = &costs, .spent = &spent};
	int64_t begin;

	(void)state;
	costs.of[COST_PACK] = fixed_ms(20);
	begin = framework_thread_ns();
	assert_in_range(framework_spend(&code, COST_PACK, 1, 0, 15 * MS), 5 * MS, 8 * MS);
	expect_spent(begin, 5);
	assert_int_equal(spent.beyond_ns, 0);
	begin = framework_thread_ns();
	assert_int_equal(framework_spend(&code, COST_PACK, 1, 0, 31 * MS), 0);
	expect_spent(begin, 0);
	assert_int_equal(spent.beyond_ns, 11 * MS);
}

/* Single times lie about the law; their mean is the law. */
static void test_spread(void **state)
{
	enum { TIMES = 400 };
	struct framework_costs costs = {0};
	struct framework_spent spent = {0};
	struct framework_code code = {.costs = &costs, .spent = &spent, .key = 7, .dlio = true};
	int64_t least = INT64_MAX, most = 0;

	(void)state;
	costs.of[COST_STEP] = (struct cost_law){.fixed = 0.0002, .spread = 0.2, .present = true};
	for (int i = 0; i < TIMES; i++) {
		int64_t one = framework_spend(&code, COST_STEP, 1, 0, 0);

		least = one < least ? one : least;
		most = one > most ? one : most;
	}
	assert_in_range(spent.cpu_ns, TIMES * 200000 * 0.95, TIMES * 200000 * 1.1);
	assert_true(least < 150000 && most > 250000);
}

struct ender {
	_Atomic uint32_t halt;
	struct stop_flag stop;
	bool by_flag;
};

static void *end_soon(void *arg)
{
	struct ender *e = arg;
	struct timespec t = {.tv_nsec = 30 * MS};

	nanosleep(&t, NULL);
	if (e->by_flag)
		atomic_store(&e->stop.set, STOP_SOON);
	else
		atomic_store(&e->halt, 4);
	return NULL;
}

/* An hour ends when the run does, not at a bit that is another's. */
static void test_ended(void **state)
{
	(void)state;
	for (int flag = 0; flag < 2; flag++) {
		struct framework_costs costs = {0};
		struct framework_spent spent = {0};
		struct ender e = {.halt = 1, .by_flag = flag};
		struct framework_code code = {.costs = &costs,
					      .spent = &spent,
					      .halt = &e.halt,
					      .halts = 4,
					      .stop = &e.stop,
					      .dlio = true};
		pthread_t thread;
		int64_t begin = clock_now_ns();

		costs.of[COST_STEP] = fixed_ms(3.6e6);
		pthread_create(&thread, NULL, end_soon, &e);
		framework_spend(&code, COST_STEP, 1, 0, 0);
		pthread_join(thread, NULL);
		assert_true(spent.cpu_ns > 0);
		assert_true(clock_now_ns() - begin < PATIENCE_S * NS_PER_S);
	}
}

/* ---- in a loader ---- */

static struct framework_costs loader_costs(void)
{
	struct framework_costs c = {0};

	c.of[COST_SAMPLE] = (struct cost_law){.per_sample = 0.001, .present = true};
	c.of[COST_COLLATE] = c.of[COST_INLINE] = fixed_ms(2);
	c.of[COST_COLLATE].first = 0.001;
	c.of[COST_PACK] = fixed_ms(3);
	c.of[COST_HAND_OVER] = fixed_ms(8);
	c.of[COST_START_WORKER] = fixed_ms(10);
	c.of[COST_BEGIN_WORKER] = fixed_ms(4);
	c.of[COST_RESUME_WORKER] = fixed_ms(6);
	c.of[COST_END_WORKER] = fixed_ms(5);
	c.of[COST_PIN] = fixed_ms(7);
	return c;
}

static void begin_epoch(struct rig *r, uint64_t epoch, uint64_t steps)
{
	struct order o;
	struct err e = {0};

	rig_order(r, &o, 1, epoch);
	if (r->loader->ops->start(r->loader, &o, steps, &e) != 0)
		fail_msg("%s", e.text);
}

static void take(struct rig *r, struct batch *out)
{
	struct batch *b;
	struct err e = {0};

	if (r->loader->ops->next(r->loader, &b, &e) != 1)
		fail_msg("%s", e.text);
	*out = *b;
	r->loader->ops->give_back(r->loader, b);
}

/* The rank asks once more; then the epoch ends. */
static void end_epoch(struct rig *r)
{
	struct batch *b;
	struct err e = {0};

	assert_int_equal(r->loader->ops->next(r->loader, &b, &e), 0);
	assert_int_equal(r->loader->ops->finish(r->loader, &e), 0);
}

/* What workers spent and were at it, all of them. */
static int64_t by_workers(const struct rig *r)
{
	uint32_t n;
	const struct worker_stat *s = r->loader->ops->stats(r->loader, &n);
	int64_t sum = 0;

	for (uint32_t i = 0; i < n; i++)
		sum += s[i].framework.cpu_ns;
	return sum;
}

/* Starting workers, taking batches over and ending workers is the rank's; the rest is not. */
static void with_workers(bool persistent)
{
	const struct framework_costs costs = loader_costs();
	struct batch b;
	struct rig r;
	int64_t begin, at;

	fake_reset(2, true);
	rig_init(&r, 2, 0, 12, 1, 2);
	r.workload.reader.persistent_workers = persistent;
	r.config.costs = &costs;
	r.workload.compat.dlio = true;
	rig_create(&r);
	for (uint64_t epoch = 1; epoch <= 2; epoch++) {
		bool resumed = persistent && epoch == 2;

		begin = framework_thread_ns();
		at = clock_now_ns();
		begin_epoch(&r, epoch, 4);
		expect_spent(begin, resumed ? 12 : 20);
		for (int i = 0; i < 4; i++) {
			begin = framework_thread_ns();
			take(&r, &b);
			/* no index is sent before all workers are started */
			assert_true(b.sent_ns - at >= (resumed ? 12 : 20) * MS);
			assert_int_equal(b.costs.start_ns > 0, i == 0);
			assert_int_equal(b.costs.begin_ns >= 4 * MS, i < 2 && !resumed);
			assert_true(b.costs.pack_ns >= 3 * MS);
			assert_true(b.work.ns[WORK_FRAMEWORK] >= (2 + 2 + 3) * MS);
			assert_true(framework_thread_ns() - begin >= b.costs.hand_ns);
		}
		begin = framework_thread_ns();
		end_epoch(&r);
		assert_int_equal(framework_thread_ns() - begin >= 10 * MS, !persistent);
	}
	{
		uint32_t n;
		const struct worker_stat *s = r.loader->ops->stats(r.loader, &n);
		/* of 8 batches each was taken over once, and nothing else by the rank */
		int64_t rank = (8 * 8 + (persistent ? 20 + 12 : 40 + 20)) * MS;

		assert_int_equal(n, 2);
		assert_in_range(s[0].framework_rank.cpu_ns, rank, rank + rank / 8);
		assert_int_equal(s[1].framework_rank.cpu_ns, 0);
		assert_int_equal(s[0].framework_pin.cpu_ns, 0);
	}
	/* 16 samples, 8 batches, workers begun twice or four times, with a first batch each */
	at = (16 + 8 * 5 + (persistent ? 8 + 2 : 16 + 4)) * MS;
	assert_in_range(by_workers(&r), at, at + at / 8);
	assert_int_equal(r.loader->ops->destroy(r.loader), 0);
}

static void test_workers(void **state)
{
	(void)state;
	with_workers(true);
	with_workers(false);
}

/* Workers that live on and had no batch have begun, too, before an epoch is over: none of them
 * counts while the rank looks. Which of them takes longest depends on the seed. */
static void test_idle_workers(void **state)
{
	const struct timespec longer = {.tv_nsec = 60 * MS};

	(void)state;
	for (int64_t seed = 1; seed <= 5; seed++) {
		struct framework_costs costs = {0};
		struct batch b;
		struct rig r;
		int64_t counted;

		costs.of[COST_BEGIN_WORKER] =
			(struct cost_law){.fixed = 0.02, .spread = 0.5, .present = true};
		fake_reset(4, true);
		rig_init(&r, 4, 0, 12, 1, 2);
		r.workload.reader.persistent_workers = true;
		r.workload.train.seed = seed;
		r.config.costs = &costs;
		rig_create(&r);
		begin_epoch(&r, 1, 1);
		take(&r, &b);
		end_epoch(&r);
		counted = by_workers(&r);
		nanosleep(&longer, NULL);
		assert_int_equal(by_workers(&r), counted);
		assert_int_equal(r.loader->ops->destroy(r.loader), 0);
	}
}

/* Workers that are not forked have rows of their own, and import what a forked one has; a profile
 * without them gives what it has of fork. */
static void test_start_methods(void **state)
{
	static const struct {
		int method;
		bool rows;
		double start_ms, begin_ms;
	} cases[] = {{START_FORK, true, 5, 4},
		     {START_SPAWN, true, 20, 8 + 6},
		     {START_FORKSERVER, true, 12 + 10, 9 + 6},
		     {START_SPAWN, false, 5, 4}};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct framework_costs costs = {0};
		struct batch b;
		struct rig r;

		costs.of[COST_START_WORKER] = fixed_ms(5);
		costs.of[COST_BEGIN_WORKER] = fixed_ms(4);
		if (cases[i].rows) {
			costs.of[COST_START_SPAWN] = fixed_ms(20);
			costs.of[COST_BEGIN_SPAWN] = fixed_ms(8);
			costs.of[COST_START_FORKSERVER] = fixed_ms(12);
			costs.of[COST_START_FORKSERVER].first = 0.010;
			costs.of[COST_BEGIN_FORKSERVER] = fixed_ms(9);
			costs.of[COST_IMPORT_DLIO] = fixed_ms(6);
		}
		fake_reset(1, true);
		rig_init(&r, 1, 0, 8, 1, 2);
		r.workload.reader.multiprocessing_context = cases[i].method;
		r.workload.compat.dlio = true;
		r.config.costs = &costs;
		rig_create(&r);
		begin_epoch(&r, 1, 2);
		take(&r, &b);
		assert_in_range(b.costs.start_ns, cases[i].start_ms * MS * 0.9,
				cases[i].start_ms * MS * 1.2);
		assert_in_range(b.costs.begin_ns, cases[i].begin_ms * MS * 0.9,
				cases[i].begin_ms * MS * 1.2);
		take(&r, &b);
		end_epoch(&r);
		assert_int_equal(r.loader->ops->destroy(r.loader), 0);
	}
}

/* A worker of DLIO imports its format's library; in a loop of its own it has it already. */
static void test_import(void **state)
{
	const struct format_facts *first = format_facts_table[0];
	struct framework_costs costs = {0};
	struct framework_spent spent = {0};

	(void)state;
	costs.load[0] = (struct cost_law){.import_s = 0.012, .present = true};
	for (int dlio = 0; dlio < 2; dlio++) {
		struct framework_code code = {.costs = &costs, .spent = &spent, .dlio = dlio};
		int64_t begin = framework_thread_ns();

		assert_in_range(framework_spend_import(&code, first), dlio ? 12 * MS : 0,
				dlio ? 14 * MS : 0);
		expect_spent(begin, dlio ? 12 : 0);
	}
}

/* Without workers all of a batch's is the rank's, and nothing is handed over. */
static void test_inline(void **state)
{
	const struct framework_costs costs = loader_costs();
	struct batch b;
	struct rig r;
	int64_t begin;

	(void)state;
	fake_reset(0, true);
	rig_init(&r, 0, 0, 8, 1, 4);
	r.config.costs = &costs;
	r.workload.compat.dlio = true;
	rig_create(&r);
	begin = framework_thread_ns();
	begin_epoch(&r, 1, 2);
	take(&r, &b);
	expect_spent(begin, 4 + 2);
	assert_true(b.work.ns[WORK_FRAMEWORK] >= 6 * MS && b.done_ns - b.begun_ns >= 6 * MS);
	assert_int_equal(b.costs.hand_ns + b.costs.pack_ns + b.costs.start_ns, 0);
	take(&r, &b);
	end_epoch(&r);
	assert_int_equal(r.loader->ops->destroy(r.loader), 0);
}

/* The pin thread takes batches over; the rank does not. */
static void test_pin(void **state)
{
	const struct framework_costs costs = loader_costs();
	const struct worker_stat *s;
	struct batch b;
	struct rig r;
	uint32_t n;

	(void)state;
	fake_reset(1, true);
	rig_init(&r, 1, 0, 8, 1, 2);
	r.workload.reader.pin_thread = true;
	r.config.costs = &costs;
	r.workload.compat.dlio = true;
	rig_create(&r);
	begin_epoch(&r, 1, 3);
	for (int i = 0; i < 3; i++) {
		take(&r, &b);
		assert_in_range(b.costs.pin_ns, (8 + 7) * MS * 0.9, (8 + 7) * MS * 1.2);
		assert_int_equal(b.costs.hand_ns, 0);
	}
	end_epoch(&r);
	s = r.loader->ops->stats(r.loader, &n);
	assert_true((double)s[0].framework_pin.cpu_ns >= 3 * (8 + 7) * MS * 0.9);
	assert_in_range(s[0].framework_rank.cpu_ns, 10 * MS, 13 * MS);
	assert_int_equal(r.loader->ops->destroy(r.loader), 0);
}

/* A law of an hour, in a worker and in the rank that starts it, ends with the run. */
static void *stop_soon(void *arg)
{
	struct rig *r = arg;
	struct timespec t = {.tv_nsec = 30 * MS};

	nanosleep(&t, NULL);
	atomic_store(&r->stop.set, STOP_SOON);
	r->loader->ops->wake(r->loader);
	return NULL;
}

static void test_stop(void **state)
{
	static const enum cost_row rows[] = {COST_SAMPLE, COST_COLLATE, COST_START_WORKER,
					     COST_BEGIN_WORKER};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct framework_costs costs = {0};
		struct err e = {0};
		struct batch *b;
		struct order o;
		pthread_t thread;
		struct rig r;
		int64_t begin = clock_now_ns();
		int rc;

		costs.of[rows[i]] = (struct cost_law){.fixed = 3600, .present = true};
		fake_reset(1, true);
		rig_init(&r, 1, 0, 8, 1, 2);
		r.config.costs = &costs;
		r.workload.compat.dlio = true;
		rig_create(&r);
		pthread_create(&thread, NULL, stop_soon, &r);
		rig_order(&r, &o, 1, 1);
		rc = r.loader->ops->start(r.loader, &o, 3, &e);
		if (rc == 0)
			rc = r.loader->ops->next(r.loader, &b, &e);
		assert_int_equal(rc, ERR_CANCELED);
		pthread_join(thread, NULL);
		r.loader->ops->finish(r.loader, &e);
		assert_int_equal(r.loader->ops->destroy(r.loader), 0);
		/* far less than the grace of a hung worker */
		assert_true(clock_now_ns() - begin < 4 * NS_PER_S);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_laws),         cmocka_unit_test(test_rest),
		cmocka_unit_test(test_waits_within), cmocka_unit_test(test_spread),
		cmocka_unit_test(test_between),      cmocka_unit_test(test_first),
		cmocka_unit_test(test_ended),        cmocka_unit_test(test_workers),
		cmocka_unit_test(test_idle_workers), cmocka_unit_test(test_start_methods),
		cmocka_unit_test(test_inline),       cmocka_unit_test(test_pin),
		cmocka_unit_test(test_import),       cmocka_unit_test(test_stop),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
