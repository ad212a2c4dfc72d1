/* Fleets against formulas: what is not put in must come out. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/rng.h"
#include "predict/fleet.h"
#include "predict/fleet_virtual.h"

#define VALUES 200000

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

struct loader_case {
	const char *framework, *loader;
	enum loader_rule rule;
	int workers, prefetch;
	bool in_order;
};

static void load_settings(struct workload *w, const struct loader_case *c, uint32_t ranks)
{
	char framework[64], loader[64], workers[64], prefetch[64], order[64];
	const char *keys[] = {framework, loader, workers, prefetch, order, "reader.batch_size=4"};
	struct workload_request req = {.workload = "default",
				       .inspect = true,
				       .ranks = ranks,
				       .overrides = keys,
				       .override_count = 6};
	struct err e;

	snprintf(framework, sizeof(framework), "framework=%s", c->framework);
	snprintf(loader, sizeof(loader), "reader.data_loader=%s", c->loader);
	snprintf(workers, sizeof(workers), "reader.read_threads=%d", c->workers);
	snprintf(prefetch, sizeof(prefetch), "reader.prefetch_size=%d", c->prefetch);
	snprintf(order, sizeof(order), "reader.in_order=%s", c->in_order ? "true" : "false");
	if (workload_load(w, &req, &e) < 0)
		fail_msg("%s", e.text);
}

/* The model's rules of loaders against their own code. */
static void same_as_loaders(void **state)
{
	static const struct loader_case cases[] = {
		{"pytorch", "pytorch", RULE_PYTORCH, 1, 2, true},
		{"pytorch", "pytorch", RULE_PYTORCH, 4, 8, true},
		{"pytorch", "pytorch", RULE_PYTORCH, 4, 8, false},
		{"pytorch", "pytorch", RULE_PYTORCH, 0, 0, true},
		{"tensorflow", "tensorflow", RULE_GENERATORS, 2, 2, true},
		{"pytorch", "dali", RULE_EXTERNAL, 2, 2, true},
	};
	struct fleet base_of = base(16);
	double most = 0;

	(void)state;
	base_of.samples = 4;
	base_of.requests = 4;
	base_of.cpus = 8;
	base_of.cpu_s = 0.02;
	base_of.request = measured(exponential);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		for (int queue = 0; queue < 2; queue++) {
			const struct loader_case *c = &cases[i];
			struct fleet f = base_of;
			struct fleet_result own, rules;
			struct workload w;
			struct err e;

			load_settings(&w, c, f.ranks);
			fleet_rule(&f, c->rule, (uint32_t)c->workers,
				   c->rule == RULE_PYTORCH && c->workers ? c->prefetch / c->workers
									 : c->prefetch);
			f.in_order = c->in_order;
			f.compute = drawn_constant(c->workers > 1 ? 0.2 : 0.45);
			f.servers = queue ? 16 : 0;
			f.store.bytes_per_s = queue ? 60 : 0;
			if (fleet_run_virtual(&f, &w, 3, &own, &e) < 0)
				fail_msg("%s", e.text);
			rules = fleet_run(&f, 3, 0);
			if (getenv("FLEET_SHOW"))
				printf("%s, %d workers, queue %d: %.2f, by rules %.2f; DLIO %.2f, "
				       "%.2f; slowest %.4f, %.4f\n",
				       c->loader, c->workers, queue, own.au_rate, rules.au_rate,
				       own.au, rules.au, own.wait_of_slowest_s,
				       rules.wait_of_slowest_s);
			most = fmax(most, fabs(own.au_rate - rules.au_rate));
			workload_release(&w);
		}
	assert_true(most < 1);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(tails),
		cmocka_unit_test(ceilings),
		cmocka_unit_test(definitions),
		cmocka_unit_test(same_as_loaders),
	};

	/* test_fleet RANKS STEPS [loader]: how long such a simulation takes, by the rules or with
	 * the loader's own code */
	if (argc >= 3) {
		static const struct loader_case c = {"pytorch", "pytorch", RULE_PYTORCH,
						     4,         8,         true};
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
		if (argc == 3) {
			r = fleet_run(&f, 1, 0);
		} else {
			struct workload w;
			struct err e;

			f.samples = 4;
			load_settings(&w, &c, 1);
			if (fleet_run_virtual(&f, &w, 1, &r, &e) < 0)
				printf("%s\n", e.text);
			workload_release(&w);
		}
		printf("AU %.2f %%, slowest %.3f s; %.1f s, at most %.0f MiB\n", r.au_rate,
		       r.wait_of_slowest_s, (double)(clock_now_ns() - begin) / 1e9,
		       (double)fleet_memory(&f) / 0x1p20);
		return 0;
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
