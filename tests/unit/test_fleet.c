/* Fleets against formulas: what is not put in must come out. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/rng.h"
#include "predict/fleet.h"
#include "predict/model.h"

#define VALUES 200000
#define SEEDS 8

/* Points of AU, and seconds, that the model is off at most. */
static const double IN_ORDER = 0.8, OUT_OF_ORDER = 1.5, WAIT = 0.006;

/* Of a quantile function: as good as measured. */
static struct drawn measured(double (*value)(double))
{
	static double v[VALUES];

	for (int i = 0; i < VALUES; i++)
		v[i] = value((i + 0.5) / VALUES);
	return drawn_of(v, VALUES);
}

static double exponential(double p)
{
	return -0.1 * log(1 - p);
}

/* Of index 2: the mean is 0.1. */
static double pareto(double p)
{
	return 0.05 * pow(1 - p, -0.5);
}

/* Nothing is read ahead: ranks wait for each batch. */
static struct fleet base(uint32_t ranks)
{
	return (struct fleet){.ranks = ranks,
			      .hosts = 1,
			      .steps = 400,
			      .epochs = 1,
			      .in_order = true,
			      .samples = 1,
			      .requests = 1,
			      .bytes = 1,
			      .compute = drawn_constant(1)};
}

static double slowest(struct fleet *f, uint32_t ranks)
{
	struct fleet_result r;

	f->ranks = ranks;
	r = fleet_run(f, 7, 0);
	assert_true(r.known);
	return r.wait_of_slowest_s;
}

/* The mean of the greatest of N is H_N for exponential times, and N B(N, 1/2) / 2 of the least one
 * for a Pareto distribution of index 2, which goes with the square root of N. */
static void tails(void **state)
{
	struct fleet f = base(1);
	double w[3];

	(void)state;
	f.request = measured(exponential);
	assert_float_equal(f.request.shape, 0, 0.03);
	w[0] = slowest(&f, 16);
	w[1] = slowest(&f, 256);
	w[2] = slowest(&f, 4096);
	assert_float_equal(w[0], 0.338, 0.02);
	assert_float_equal(w[1], 0.612, 0.03);
	assert_float_equal(w[2], 0.890, 0.04);
	f.request = measured(pareto);
	assert_float_equal(f.request.shape, 0.5, 0.03);
	f.steps = 4000;
	w[0] = slowest(&f, 16);
	w[1] = slowest(&f, 256);
	assert_float_equal((float)(w[1] / w[0]), 4, 0.6);
	assert_float_equal(w[0], 0.354, 0.04);
}

static void ceilings(void **state)
{
	struct fleet f = base(64);
	struct fleet_result r;

	(void)state;
	f.workers = 2;
	f.window = 4;
	f.cpus = 4;
	f.request = drawn_constant(0.01);
	r = fleet_run(&f, 1, 0);
	assert_true(r.known && r.limit == FLEET_COMPUTE);
	assert_float_equal(r.au, 100, 0.1);
	assert_float_equal(r.au_rate, 100, 0.1);
	/* 64 batches/s are needed */
	f.servers = 1; /* 100/s, then 50/s */
	assert_float_equal(fleet_run(&f, 1, 0).au_rate, 100, 0.5);
	drawn_scale(&f.request, 4);
	r = fleet_run(&f, 1, 0);
	assert_float_equal(r.au_rate, 100 / (64 * 0.04), 0.5);
	assert_true(r.limit == FLEET_STORE_REQUESTS && r.used[FLEET_STORE_REQUESTS] > 0.98);
	f.servers = 0;
	f.host.requests_per_s = 8;
	f.hosts = 4;
	r = fleet_run(&f, 1, 0);
	assert_float_equal(r.au_rate, 50, 0.5);
	assert_int_equal(r.limit, FLEET_HOST_REQUESTS);
	f.host.requests_per_s = 0;
	f.bytes = 100;
	f.host.bytes_per_s = 800;
	r = fleet_run(&f, 1, 0);
	assert_float_equal(r.au_rate, 50, 1);
	assert_int_equal(r.limit, FLEET_HOST_BYTES);
	f.store.bytes_per_s = 1600;
	r = fleet_run(&f, 1, 0);
	assert_float_equal(r.au_rate, 25, 0.5);
	assert_int_equal(r.limit, FLEET_STORE_BYTES);
	/* both pass as many */
	f.store.bytes_per_s = 3200;
	assert_float_equal(fleet_run(&f, 1, 0).au_rate, 50, 1);
	f.store.bytes_per_s = f.host.bytes_per_s = 0;
	f.opens = 1;
	f.store.opens_per_s = 16;
	r = fleet_run(&f, 1, 0);
	assert_float_equal(r.au_rate, 25, 0.5);
	assert_int_equal(r.limit, FLEET_STORE_OPENS);
	f.opens = 0;
	f.cpu_s = 0.5; /* 16 ranks a host: 8 s of 4 processors */
	r = fleet_run(&f, 1, 0);
	assert_float_equal(r.au_rate, 50, 1);
	assert_int_equal(r.limit, FLEET_CPU);
}

/* What is read ahead hides the first steps; DLIO leaves the first one out. */
static void definitions(void **state)
{
	struct fleet f = base(4);
	struct fleet_result r;

	(void)state;
	f.steps = 10;
	f.epochs = 3;
	f.request = drawn_constant(1);
	r = fleet_run(&f, 1, 0); /* reads, computes: 2 s a step */
	assert_float_equal(r.au_rate, 50, 0.01);
	assert_float_equal(r.au, 50, 0.01);
	assert_float_equal(r.wall_s, 60, 0.01);
	f.start_s = 10;
	r = fleet_run(&f, 1, 0); /* waits for 10 s more, of which DLIO sees nothing */
	assert_float_equal(r.au_rate, 100.0 / 3, 0.01);
	assert_float_equal(r.au, 50, 0.01);
	assert_float_equal(r.samples_per_s, 40.0 / 30, 0.01);
	f.ranks = 0;
	assert_false(fleet_run(&f, 1, 0).known);
}

/* The window of each loader, whose prefetch_size is of all workers of PyTorch together. */
static enum loader_rule rule_of(const char *loader)
{
	for (size_t i = 0; loader_facts_table[i]; i++)
		if (strcmp(loader_facts_table[i]->name, loader) == 0)
			return loader_facts_table[i]->rule;
	fail_msg("no loader '%s'", loader);
	return RULE_NONE;
}

/* The model's rules of loaders against what their own code did. */
static void same_as_loaders(void **state)
{
	FILE *in = fopen(TEST_DATA "/vectors/loaders.txt", "r");
	char line[256], loader[32], order[8];
	unsigned workers, prefetch, queue, cases = 0;
	struct fleet base_of = base(16);
	double au, dlio, slowest_s, most = 0, sum = 0;

	(void)state;
	assert_non_null(in);
	base_of.samples = 4;
	base_of.requests = 4;
	base_of.cpus = 8;
	base_of.cpu_s = 0.02;
	base_of.request = measured(exponential);
	while (fgets(line, sizeof(line), in)) {
		struct fleet f = base_of;
		enum loader_rule rule;
		struct model m;
		double rate = 0, wait = 0;

		if (line[0] == '#')
			continue;
		assert_int_equal(sscanf(line, "%31s %u %u %7s %u %lf %lf %lf", loader, &workers,
					&prefetch, order, &queue, &au, &dlio, &slowest_s),
				 8);
		rule = rule_of(loader);
		m = (struct model){.workers = workers, .samples = f.samples, .window = f.window};
		model_rule(&m, rule,
			   rule == RULE_PYTORCH && workers ? (double)prefetch / workers : prefetch);
		f.workers = workers;
		f.window = m.window;
		f.runs = m.runs;
		f.in_order = strcmp(order, "true") == 0;
		f.compute = drawn_constant(workers > 1 ? 0.2 : 0.45);
		f.servers = queue ? 16 : 0;
		f.store.bytes_per_s = queue ? 60 : 0;
		for (uint64_t seed = 1; seed <= SEEDS; seed++) {
			struct fleet_result r = fleet_run(&f, seed, 0);

			rate += r.au_rate / SEEDS;
			wait += r.wait_of_slowest_s / SEEDS;
		}
		if (getenv("FLEET_SHOW"))
			printf("%s %u %u %s %u: %.2f, by rules %.2f; slowest %.4f, %.4f\n", loader,
			       workers, prefetch, order, queue, au, rate, slowest_s, wait);
		/* a worker of PyTorch has tasks of its own, which here any worker takes */
		if (fabs(au - rate) > (f.in_order ? IN_ORDER : OUT_OF_ORDER) ||
		    fabs(slowest_s - wait) > WAIT)
			fail_msg("%s", line);
		most = fmax(most, fabs(au - rate));
		sum += fabs(au - rate);
		cases++;
	}
	fclose(in);
	assert_int_equal(cases, 104);
	assert_true(sum / cases < 0.15 && most > 0);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(tails),
		cmocka_unit_test(ceilings),
		cmocka_unit_test(definitions),
		cmocka_unit_test(same_as_loaders),
	};

	/* test_fleet RANKS STEPS: how long such a simulation takes */
	if (argc >= 3) {
		struct fleet f = base((uint32_t)atoi(argv[1]));
		int64_t begin = clock_now_ns();
		struct fleet_result r;

		f.steps = (uint64_t)atoi(argv[2]);
		f.workers = 4;
		f.window = 8;
		f.requests = 8;
		f.cpus = 64;
		f.hosts = (f.ranks + 7) / 8;
		f.cpu_s = 0.01;
		f.request = measured(exponential);
		r = fleet_run(&f, 1, 0);
		printf("AU %.2f %%, slowest %.3f s; %.1f s, at most %.0f MiB\n", r.au_rate,
		       r.wait_of_slowest_s, (double)(clock_now_ns() - begin) / 1e9,
		       (double)fleet_memory(&f) / 0x1p20);
		return 0;
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
