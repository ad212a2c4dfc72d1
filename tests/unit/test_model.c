/* The model against formulas. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/rng.h"
#include "predict/model.h"
#include "predict/shared_server.h"

static double model_au(const struct model *m)
{
	return model_run(m).au;
}

static const double one[1] = {1.0};

static struct model base(void)
{
	return (struct model){.ranks = 1,
			      .workers = 1,
			      .window = 2,
			      .in_order = true,
			      .steps = 2000,
			      .parts = 1,
			      .compute = one,
			      .lists = 1,
			      .computes = 1};
}

static void formulas(void **state)
{
	struct model m = base();

	(void)state;
	m.delay_s = 0.5;
	assert_float_equal(model_au(&m), 100, 0.1);
	m.delay_s = 4; /* S > c: c / S */
	assert_float_equal(model_au(&m), 25, 0.1);
	m.workers = 2;
	m.window = 4;
	assert_float_equal(model_au(&m), 50, 0.2);
	m.workers = 0; /* c / (c + S) */
	assert_float_equal(model_au(&m), 20, 0.1);
	m = base();
	m.ranks = 3;
	m.workers = 2;
	m.window = 4;
	m.delay_s = 0;
	m.bytes = 1;
	m.shared = 1; /* R * b * size / B = 3 */
	m.parts = 4;
	assert_float_equal(model_au(&m), 33.3, 0.5);
	m.bytes = 0;
	m.cpu_s = 2; /* 6 s of CPU a step on two */
	m.cpus = 2;
	assert_float_equal(model_au(&m), 33.3, 0.5);
	m = base();
	m.start_s = 2000;
	assert_float_equal(model_au(&m), 50, 0.1);
	m.steps = 0;
	assert_true(isnan(model_au(&m)));
}

/* Exponential service, as simulated elsewhere: W=4 P=2, utilization .8: 77.0 % in order; out of
 * order the closed birth-death chain of 8 tokens. */
static void in_order_stalls(void **state)
{
	static double spread[50000];
	struct model m = base();
	double sum = 0, pi = 1, all = 1;

	(void)state;
	for (uint32_t i = 0; i < 50000; i++) {
		spread[i] = -log(((double)(rng_word(11, i) >> 11) + 0.5) / 9007199254740992.0);
		sum += spread[i] / 50000;
	}
	for (uint32_t i = 0; i < 50000; i++)
		spread[i] /= sum;
	m.workers = 4;
	m.window = 8;
	m.steps = 50000;
	m.delay_s = 3.2;
	m.spread = spread;
	m.spreads = 50000;
	m.spread_by = 1;
	assert_float_equal(model_au(&m), 77.0, 1.5);
	m.in_order = false;
	for (int j = 0; j < 8; j++) { /* up min(4, 8 - j) / 3.2, down 1 (exponential there) */
		pi *= (8 - j < 4 ? 8 - j : 4) / 3.2;
		all += pi;
	}
	/* constant computation does a little better than exponential */
	assert_in_range((int)model_au(&m), (int)(100 - 100 / all) - 2, 100);
}

/* AU of a queue's capacity in batches, over the computing of a step of 1 s. */
static void queues(void **state)
{
	struct model m = base();

	(void)state;
	m.workers = 6;
	m.window = 12;
	m.parts = 2;
	m.read = (struct model_queue){.servers = 1, .serve_s = 3};
	assert_float_equal(model_au(&m), 33.3, 0.3);
	m.read.servers = 2;
	assert_float_equal(model_au(&m), 66.7, 0.5);
	m.read.servers = 4; /* of six */
	assert_float_equal(model_au(&m), 100, 0.5);
	m.ranks = 2;
	assert_float_equal(model_au(&m), 66.7, 0.5);
	m.read = (struct model_queue){.servers = 1, .serve_s = 1, .serve_sized_s = 1};
	assert_float_equal(model_au(&m), 25, 0.3);
	m = base();
	m.workers = 2; /* do not fill the second server with a delay beside it: 2 / (2 + 2) */
	m.window = 4;
	m.delay_s = 2;
	m.read = (struct model_queue){.servers = 2, .serve_s = 2};
	assert_float_equal(model_au(&m), 50, 0.5);
}

/* Opens and reads that are let through at a pace, evenly or many at once. */
static void ceilings(void **state)
{
	struct model m = base();

	(void)state;
	m.workers = 4;
	m.window = 8;
	m.parts = 4;
	m.read = (struct model_queue){.burst = 1, .requests = 8, .pace_s = 0.25};
	assert_float_equal(model_au(&m), 50, 0.5);
	m.read.burst = 40;
	assert_float_equal(model_au(&m), 50, 1.5);
	m.read.pace_s = 0.1; /* not reached */
	assert_float_equal(model_au(&m), 100, 1);
	m.read = (struct model_queue){0};
	m.open = (struct model_queue){.servers = 1, .serve_s = 4};
	assert_float_equal(model_au(&m), 25, 0.3);
	m.open = (struct model_queue){.burst = 2, .requests = 2, .pace_s = 1};
	assert_float_equal(model_au(&m), 50, 0.5);
}

/* What ranks and workers need a processor for beside reading. */
static void own_work(void **state)
{
	struct model m = base();

	(void)state;
	m.delay_s = 0.5;
	m.take_s = 0.25; /* c / (c + take + end), however far ahead the workers are */
	m.end_s = 0.25;
	assert_float_equal(model_au(&m), 66.7, 0.2);
	m.delay_s = 4; /* hidden: the batches come every 4 s */
	m.window = 3;
	assert_float_equal(model_au(&m), 25, 0.2);
	m = base();
	m.workers = 4;
	m.window = 8;
	m.fork_s = 100; /* one after another: none reads before 400 s, the last one from 450 s on */
	m.begin_s = 50;
	m.delay_s = 1;
	m.steps = 451;
	assert_float_equal(model_run(&m).wall_s, 450 + 1 + 451 - 3, 0.1);
	m.begin_s = 0;
	assert_float_equal(model_run(&m).wall_s, 400 + 1 + 451, 0.1);
	m.workers = 0; /* nobody to start */
	assert_float_equal(model_run(&m).wall_s, 2 * 451, 1);
	m = base();
	m.ranks = 4; /* four seconds of two processors a step */
	m.take_s = 1;
	m.cpus = 2;
	assert_float_equal(model_au(&m), 33.3, 0.5);
	m = base();
	m.workers = 4; /* ranks take what they need from those who compute: 3 s of 2 */
	m.window = 8;
	m.cpu_s = 3;
	m.take_s = 1;
	m.cpus = 2;
	assert_float_equal(model_au(&m), 50, 1);
}

/* A batch of four samples of 1 s each: three runs take as long as two, as one has two samples. */
static void runs_of_whole_samples(void **state)
{
	static const double au[] = {25, 50, 50, 100};
	struct model m = base();

	(void)state;
	m.delay_s = 4;
	m.samples = 4;
	for (uint32_t n = 1; n <= 4; n++) {
		m.workers = m.runs = n;
		m.window = 8;
		assert_float_equal(model_au(&m), au[n - 1], 1);
	}
}

/* c = 1: ten steps and 5 s; what is read in a stall is not waited for after it. */
static void stalls(void **state)
{
	struct model m = base();

	(void)state;
	m.stall_every = 10;
	m.stall_s = 5;
	assert_float_equal(model_au(&m), 66.667, 0.1);
	m.stall_every = 20;
	assert_float_equal(model_au(&m), 80, 0.1);
	/* reading takes twice as long, and the window of 4 holds the 2 batches of a stall of 4 s */
	m.delay_s = 2;
	m.window = 4;
	m.stall_s = 4;
	assert_float_equal(model_au(&m), 50, 0.5);
	/* beyond the steps that can be simulated */
	m = base();
	m.steps = 4000000;
	m.stall_every = m.steps / 2;
	m.stall_s = (double)m.steps / 2;
	assert_float_equal(model_au(&m), 50, 0.1);
}

/* Very many requests at once are paced as one after another are, and in no time. */
static void paces(void **state)
{
	struct line many, each;

	(void)state;
	for (uint32_t burst = 1; burst < 9; burst += 3) {
		line_reserve(&many, 0, burst, 0.01);
		line_reserve(&each, 0, burst, 0.01);
		for (int turn = 0; turn < 4; turn++) {
			double now = 1 + 37.123 * turn, last = 0, requests = turn % 2 ? 7 : 10007;

			for (int i = 0; i < (int)requests; i++)
				last = line_pace(&each, now, 1);
			assert_true(fabs(line_pace(&many, now, requests) - last) < 1e-6);
		}
		assert_true(line_pace(&many, 1000, 1e9) > 1e7 - 1);
		line_release(&many);
		line_release(&each);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(formulas), cmocka_unit_test(in_order_stalls),
		cmocka_unit_test(queues),   cmocka_unit_test(ceilings),
		cmocka_unit_test(own_work), cmocka_unit_test(runs_of_whole_samples),
		cmocka_unit_test(stalls),   cmocka_unit_test(paces)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
