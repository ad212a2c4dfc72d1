/* Distributions as measured, their tails, and a basis as older results have it. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/rng.h"
#include "metric/drawn.h"
#include "result/json_basis.h"

#define N 1000

static double uniform(uint64_t seed, uint64_t i)
{
	return ((double)(rng_word(rng_key(9, seed, 0), i) >> 12) + 0.5) * 0x1p-52;
}

/* Random times: P(> x) = (1 + shape x)^(-1 / shape), after a constant. */
static struct drawn random_times(double shape, uint64_t seed, size_t n)
{
	static double v[N];

	for (size_t i = 0; i < n; i++) {
		double p = uniform(seed, i);

		v[i] = 1 + (shape > 0 ? (pow(p, -shape) - 1) / shape : -log(p));
	}
	return drawn_of(v, n);
}

/* The mean over samples is near, and one is not far off. */
static void shapes(void **state)
{
	static const double shape[] = {0, 0.25, 0.5};

	(void)state;
	for (int i = 0; i < 3; i++) {
		double mean = 0, mean_of = 0;

		for (uint64_t s = 0; s < 50; s++) {
			struct drawn d = random_times(shape[i], s, N);

			assert_true(d.tail > 0.09 && d.tail < 0.11);
			assert_true(fabs(d.shape - shape[i]) < 0.45);
			mean += d.shape / 50;
			mean_of += drawn_mean(&d) / 50;
		}
		assert_true(fabs(mean - shape[i]) < 0.07);
		assert_true(fabs(mean_of - 1 - 1 / (1 - shape[i])) < 0.06);
	}
}

static void quantiles(void **state)
{
	struct drawn d = random_times(0, 1, N);
	double two[] = {1, 3}, same[] = {2, 2, 2};

	(void)state;
	for (double p = 0.05; p < 0.999; p += 0.05) {
		assert_true(fabs(drawn_quantile(&d, p) - 1 + log(1 - p)) < 0.15 - 0.1 * log(1 - p));
		assert_true(drawn_quantile(&d, p) > drawn_quantile(&d, p - 0.04));
	}
	drawn_scale(&d, 2);
	assert_true(fabs(drawn_mean(&d) - 4) < 0.3);
	d = drawn_of(two, 2);
	assert_true(d.tail <= 0 && fabs(drawn_mean(&d) - 2) < 1e-9);
	assert_true(fabs(drawn_quantile(&d, 0.5) - 2) < 1e-9);
	d = drawn_of(same, 3);
	assert_true(fabs(drawn_mean(&d) - 2) < 1e-12);
	d = drawn_constant(5);
	assert_true(fabs(drawn_value(&d, UINT64_MAX) - 5) < 1e-12 &&
		    fabs(drawn_value(&d, 0) - 5) < 1e-12);
}

/* As results of schema 1 have it. */
static const char schema_1[] =
	"{\"fleet\": {\"known\": true, \"au_percent\": 91.5, \"whole_au_percent\": 90.25, \"explanations\": 1,"
	" \"most_in_flight\": 8.0, \"processors_taken_points\": 0.5, \"probed\": false, \"ceiling_untold\": false,"
	" \"tail_shape\": 0.25, \"tail_shape_low\": -0.125, \"tail_shape_high\": 0.5, \"models\": ["
	"{\"modeled_whole_au_percent\": 90.5, \"ranks\": 4, \"hosts\": 1, \"steps_per_epoch\": 100, \"epochs\": 2,"
	" \"workers\": 2, \"window_batches\": 4, \"runs_per_batch\": 1, \"in_order\": true, \"samples_per_batch\": 4.0,"
	" \"bytes_per_batch\": 4000000.0, \"requests_per_batch\": 4.0,"
	" \"request_s\": {\"quantiles\": [0.5], \"tail_part\": 0.1, \"tail_scale\": 0.2, \"tail_shape\": 0.25},"
	" \"bytes_per_s\": 1e9, \"processors_per_host\": 2.0, \"compute_s\": {\"quantiles\": [0.25]}},"
	"{\"modeled_whole_au_percent\": 90.5, \"requests_per_batch\": 4.0, \"servers\": 7,"
	" \"request_s\": {\"quantiles\": [0.5]}}]}}";

static void read_of_schema_1(void **state)
{
	json_t *result = json_loads(schema_1, 0, NULL), *model;
	struct basis got;

	(void)state;
	assert_non_null(result);
	json_basis_of_schema_1(result, &got);
	assert_true(got.known && got.count == 2 && got.explanations == 1);
	assert_true(got.one[0].steps == 100 && got.one[0].window == 4 && got.one[0].in_order);
	assert_true(got.one[0].servers == 0 && got.one[1].servers == 7);
	assert_true(got.one[1].store.bytes_per_s <= 0 && got.one[1].workers == 2);
	assert_true(fabs(got.one[0].request.shape - 0.25) < 1e-9 &&
		    fabs(got.one[0].request.tail - 0.1) < 1e-9);
	assert_true(fabs(drawn_mean(&got.one[0].compute) - 0.25) < 1e-9);
	assert_true(fabs(got.au_rate - 90.25) < 1e-9 && got.shape_low < got.shape_high);
	/* what no run has */
	model = json_array_get(json_object_get(json_object_get(result, "fleet"), "models"), 0);
	json_object_set_new(model, "workers", json_integer(-1));
	json_basis_of_schema_1(result, &got);
	assert_true(!got.known && strstr(got.why, "'workers'"));
	json_object_set_new(model, "workers", json_integer(2));
	json_object_set_new(model, "request_s", json_pack("{s:[f,f]}", "quantiles", 1.0, 0.5));
	json_basis_of_schema_1(result, &got);
	assert_true(!got.known && strstr(got.why, "'request_s'"));
	json_decref(result);
	/* of an older version */
	result = json_object();
	json_basis_of_schema_1(result, &got);
	assert_true(!got.known && strstr(got.why, "older version"));
	json_decref(result);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(shapes),
		cmocka_unit_test(quantiles),
		cmocka_unit_test(read_of_schema_1),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
