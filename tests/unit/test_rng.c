/* The generators against vectors made by NumPy 1.24 and PyTorch 1.13. */
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <jansson.h>

#include "base/alloc.h"
#include "base/rng.h"
#include "codec/crc.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

static json_t *load(const char *name)
{
	AUTO_FREE char *path = xasprintf("%s/vectors/%s", TEST_DATA, name);
	json_error_t why;
	json_t *doc = json_load_file(path, JSON_DECODE_INT_AS_REAL, &why);

	if (!doc)
		fail_msg("%s:%d: %s", path, why.line, why.text);
	return doc;
}

static double number(const json_t *list, size_t i)
{
	json_t *v = json_array_get(list, i);

	if (!v)
		fail_msg("element %zu is missing", i);
	return json_number_value(v);
}

static void same_bits(const char *key, size_t i, double got, double want)
{
	if (memcmp(&got, &want, sizeof(got)) != 0)
		fail_msg("%s: element %zu is %a, not %a", key, i, got, want);
}

/* A permutation against a list, or against its first and last ten and the CRC of int64. */
static void same_order(const char *key, const json_t *want, const uint64_t *x, size_t n)
{
	const json_t *first = json_is_object(want) ? json_object_get(want, "first10") : want;

	assert_true(json_is_array(first));
	for (size_t i = 0; i < json_array_size(first); i++)
		if ((double)x[i] != number(first, i))
			fail_msg("%s: element %zu is %" PRIu64, key, i, x[i]);
	if (first == want) {
		assert_int_equal(json_array_size(want), n);
		return;
	}
	for (size_t i = 0; i < 10; i++)
		assert_true((double)x[n - 10 + i] == number(json_object_get(want, "last10"), i));
	assert_true(crc32_update(0, x, n * sizeof(*x)) ==
		    (uint32_t)json_number_value(json_object_get(want, "crc32_of_le_int64")));
}

static uint64_t *iota(size_t n)
{
	uint64_t *x = xcalloc(n + 1, sizeof(*x));

	for (size_t i = 0; i < n; i++)
		x[i] = i;
	return x;
}

static double draw_double(struct rng_np *r, const double *arg)
{
	(void)arg;
	return rng_np_double(r);
}

static double draw_normal(struct rng_np *r, const double *arg)
{
	return rng_np_normal(r, arg[0], arg[1]);
}

static double draw_uniform(struct rng_np *r, const double *arg)
{
	return rng_np_uniform(r, arg[0], arg[1]);
}

static double draw_exponential(struct rng_np *r, const double *arg)
{
	return rng_np_exponential(r, arg[0]);
}

static double draw_gamma(struct rng_np *r, const double *arg)
{
	return rng_np_gamma(r, arg[0], arg[1]);
}

static double draw_poisson(struct rng_np *r, const double *arg)
{
	return (double)rng_np_poisson(r, arg[0]);
}

static double draw_u32(struct rng_np *r, const double *arg)
{
	(void)arg;
	return rng_np_u32(r);
}

static double draw_interval(struct rng_np *r, const double *arg)
{
	return (double)rng_np_interval(r, (uint64_t)arg[0]);
}

/* Ten calls: the key's tail, how to draw. Each has a key for each of 7 seeds. */
static const struct {
	const char *tail;
	double (*draw)(struct rng_np *r, const double *arg);
	double arg[2];
} scalars[] = {
	{".u32[10]", draw_u32, {0}},
	{".random_sample(10)", draw_double, {0}},
	{".normal(0.323,0.05)x10", draw_normal, {0.323, 0.05}},
	{".uniform(0.1,0.9)x10", draw_uniform, {0.1, 0.9}},
	{".exponential(0.5)x10", draw_exponential, {0.5}},
	{".gamma(0.5,0.3)x10", draw_gamma, {0.5, 0.3}},
	{".gamma(1.0,0.3)x10", draw_gamma, {1.0, 0.3}},
	{".gamma(2.5,0.3)x10", draw_gamma, {2.5, 0.3}},
	{".gamma(9.0,0.3)x10", draw_gamma, {9.0, 0.3}},
	{".poisson(0.5)x10", draw_poisson, {0.5}},
	{".poisson(3.0)x10", draw_poisson, {3.0}},
	{".poisson(9.99)x10", draw_poisson, {9.99}},
	{".poisson(10.0)x10", draw_poisson, {10.0}},
	{".poisson(57.3)x10", draw_poisson, {57.3}},
	{".randint(0,1000,size=12) int64", draw_interval, {999}},
	{".randint(0,2**40,size=12) int64", draw_interval, {1099511627775}},
};

/* The seed of a key that begins as NumPy's seeding, and what follows it. */
static const char *numpy_key(const char *key, uint32_t *seed)
{
	static const char *const starts[] = {"np.mt19937.seed(", "np.random.seed("};
	char *end;

	for (size_t i = 0; i < COUNT(starts); i++) {
		size_t n = strlen(starts[i]);

		if (strncmp(key, starts[i], n) != 0)
			continue;
		*seed = (uint32_t)strtoul(key + n, &end, 10);
		return *end == ')' && end != key + n ? end + 1 : NULL;
	}
	return NULL;
}

static void test_numpy_scalars(void **state)
{
	json_t *doc = load("rng-vectors.json"), *row;
	unsigned seen[COUNT(scalars)] = {0};
	const char *key;

	(void)state;
	json_object_foreach(doc, key, row)
	{
		json_t *values = json_object_get(row, "values"), *hex = json_object_get(row, "hex");
		uint32_t seed;
		const char *tail = numpy_key(key, &seed);

		for (size_t k = 0; tail && k < COUNT(scalars); k++) {
			struct rng_np r;

			if (strcmp(tail, scalars[k].tail) != 0)
				continue;
			seen[k]++;
			rng_np_seed(&r, seed);
			assert_true(json_array_size(values) >= 10);
			for (size_t i = 0; i < json_array_size(values); i++) {
				double got = scalars[k].draw(&r, scalars[k].arg);
				json_t *h = json_array_get(hex, i);

				same_bits(key, i, got,
					  h ? strtod(json_string_value(h), NULL)
					    : number(values, i));
			}
		}
	}
	for (size_t k = 0; k < COUNT(scalars); k++)
		if (seen[k] != 7)
			fail_msg("%u keys end in %s", seen[k], scalars[k].tail);
	json_decref(doc);
}

static void test_numpy_long_streams(void **state)
{
	json_t *doc = load("rng-long.json"), *row;
	const char *key;
	unsigned seen = 0;

	(void)state;
	json_object_foreach(doc, key, row)
	{
		uint32_t seed, crc = 0;
		const char *tail = numpy_key(key, &seed);
		struct rng_np r;
		double lam = 0;

		assert_non_null(tail);
		rng_np_seed(&r, seed);
		if (strcmp(tail, ".normal(0.323,0.05,1000)") == 0) {
			for (int i = 0; i < 1000; i++) {
				double v = rng_np_normal(&r, 0.323, 0.05);

				crc = crc32_update(crc, &v, sizeof(v));
			}
		} else {
			assert_int_equal(sscanf(tail, ".poisson(%lf,5000)", &lam), 1);
			for (int i = 0; i < 5000; i++) {
				int64_t v = rng_np_poisson(&r, lam);

				crc = crc32_update(crc, &v, sizeof(v));
			}
		}
		if (crc != (uint32_t)json_number_value(row))
			fail_msg("%s has the CRC %u", key, crc);
		seen++;
	}
	assert_int_equal(seen, 7 * 6);
	json_decref(doc);
}

static void test_numpy_orders(void **state)
{
	json_t *doc = load("rng-vectors.json"), *row;
	unsigned shuffles = 0, permutations = 0, lists = 0;
	const char *key;

	(void)state;
	json_object_foreach(doc, key, row)
	{
		json_t *values = json_object_get(row, "values");
		uint32_t seed;
		const char *tail = numpy_key(key, &seed);
		struct rng_np r;
		size_t n;

		if (!tail)
			continue;
		rng_np_seed(&r, seed);
		if (sscanf(tail, ".shuffle(arange(%zu))", &n) == 1 ||
		    sscanf(tail, ".permutation(%zu)", &n) == 1) {
			AUTO_FREE uint64_t *x = iota(n);

			rng_np_shuffle_u64(&r, x, n);
			same_order(key, values, x, n);
			*(tail[1] == 's' ? &shuffles : &permutations) += 1;
		} else if (strcmp(tail, ".shuffle(list of 50)") == 0) {
			AUTO_FREE uint64_t *x = iota(50);

			rng_np_shuffle_u64(&r, x, 50);
			for (size_t i = 0; i < 50; i++) {
				char want[16];

				snprintf(want, sizeof(want), "f%u", (unsigned)x[i]);
				assert_string_equal(json_string_value(json_array_get(values, i)),
						    want);
			}
			lists++;
		}
	}
	assert_int_equal(shuffles, 7 * 7 + 1); /* and 1.2 million */
	assert_int_equal(permutations, 7);
	assert_int_equal(lists, 7);
	json_decref(doc);
}

/* The cached gaussian outlives a shuffle. */
static void test_numpy_interplay(void **state)
{
	json_t *doc = load("rng-vectors.json"), *row;
	unsigned seen = 0;
	const char *key;

	(void)state;
	json_object_foreach(doc, key, row)
	{
		json_t *hex = json_object_get(row, "hex");
		uint32_t seed;
		const char *tail = numpy_key(key, &seed);
		AUTO_FREE uint64_t *x = iota(10);
		struct rng_np r;
		double got[13];

		if (!tail ||
		    strcmp(tail, ": normal(1,1), shuffle(arange(10)), normal, normal") != 0)
			continue;
		rng_np_seed(&r, seed);
		got[0] = rng_np_normal(&r, 1, 1);
		rng_np_shuffle_u64(&r, x, 10);
		for (size_t i = 0; i < 10; i++)
			got[1 + i] = (double)x[i];
		got[11] = rng_np_normal(&r, 1, 1);
		got[12] = rng_np_normal(&r, 1, 1);
		for (size_t i = 0; i < 13; i++)
			same_bits(key, i, got[i],
				  strtod(json_string_value(json_array_get(hex, i)), NULL));
		seen++;
	}
	assert_int_equal(seen, 7);
	json_decref(doc);
}

static void test_dlio_file_lists(void **state)
{
	json_t *doc = load("rng-vectors.json"), *row;
	unsigned seen = 0;
	const char *key;

	(void)state;
	json_object_foreach(doc, key, row)
	{
		json_t *values = json_object_get(row, "values");
		AUTO_FREE uint64_t *x = iota(16);
		char change[8];

		if (sscanf(key,
			   "dlio.reconfigure file list (cumulative in-place) n=16 seed=123 "
			   "seed_change_epoch=%7[a-zA-Z] epochs=3",
			   change) != 1)
			continue;
		for (uint32_t epoch = 1; epoch <= 3; epoch++) {
			struct rng_np r;

			rng_np_seed(&r, 123 + (strcmp(change, "True") == 0 ? epoch : 0));
			rng_np_shuffle_u64(&r, x, 16);
			same_order(key, json_array_get(values, epoch - 1), x, 16);
		}
		seen++;
	}
	assert_int_equal(seen, 2);
	json_decref(doc);
}

static void test_unet3d_dimensions(void **state)
{
	json_t *doc = load("rng-vectors.json");
	json_t *row =
		json_object_get(doc, "dlio unet3d file dims: seed(10); normal(12107,ds,2*168)");
	json_t *values = json_object_get(row, "values");
	double stdev = json_number_value(json_object_get(row, "dimension_stdev"));
	uint64_t total = 0;
	struct rng_np r;

	(void)state;
	assert_int_equal(json_array_size(values), 336);
	rng_np_seed(&r, 10);
	for (size_t i = 0; i < 336; i += 2) {
		int64_t d1 = (int64_t)rng_np_normal(&r, 12107, stdev);
		int64_t d2 = (int64_t)rng_np_normal(&r, 12107, stdev);

		assert_true((double)d1 == number(values, i));
		assert_true((double)d2 == number(values, i + 1));
		total += (uint64_t)(d1 * d2);
	}
	assert_true(total == 25285981919ull);
	assert_true((double)total ==
		    json_number_value(json_object_get(row, "sum_of_products_bytes")));
	json_decref(doc);
}

/* DLIO's own combination: what follows a shuffle. */
static void test_dlio_streams(void **state)
{
	static const uint64_t train[8] = {3, 7, 0, 5, 2, 1, 4, 6}, eval[4] = {1, 2, 3, 0};
	AUTO_FREE uint64_t *a = iota(8), *b = iota(4);
	struct rng_np r;

	(void)state;
	rng_np_seed(&r, 124);
	rng_np_shuffle_u64(&r, a, 8);
	rng_np_shuffle_u64(&r, b, 4);
	assert_memory_equal(a, train, sizeof(train));
	assert_memory_equal(b, eval, sizeof(eval));
}

static void test_torch_randperm(void **state)
{
	json_t *doc = load("rng-vectors.json"), *row;
	unsigned seen = 0, words = 0;
	const char *key;

	(void)state;
	json_object_foreach(doc, key, row)
	{
		json_t *values = json_object_get(row, "values");
		unsigned long long seed, n;
		struct rng_np r;

		if (sscanf(key, "torch manual_seed(%llu) randperm(%llu)", &seed, &n) == 2) {
			AUTO_FREE uint64_t *x = xcalloc(n, sizeof(*x));

			rng_np_seed(&r, (uint32_t)seed);
			rng_torch_randperm(&r, x, n);
			same_order(key, values, x, n);
			seen++;
		} else if (sscanf(key, "torch manual_seed(%llu) empty((),int64).random_() x%llu",
				  &seed, &n) == 2) {
			rng_np_seed(&r, (uint32_t)seed);
			for (size_t i = 0; i < n; i++)
				assert_true((double)(rng_np_u64(&r) & INT64_MAX) ==
					    number(values, i));
			words++;
		}
	}
	assert_int_equal(seen, 6 * 7);
	assert_int_equal(words, 6);
	json_decref(doc);
}

static void test_torch_edges(void **state)
{
	uint64_t x[1] = {7};
	struct rng_np r, fresh;

	(void)state;
	rng_np_seed(&r, 1);
	rng_np_seed(&fresh, 1);
	rng_torch_randperm(&r, x, 0);
	assert_true(x[0] == 7);
	rng_torch_randperm(&r, x, 1);
	assert_true(x[0] == 0);
	assert_int_equal(rng_np_u32(&r), rng_np_u32(&fresh));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_numpy_scalars),   cmocka_unit_test(test_numpy_long_streams),
		cmocka_unit_test(test_numpy_orders),    cmocka_unit_test(test_numpy_interplay),
		cmocka_unit_test(test_dlio_file_lists), cmocka_unit_test(test_unet3d_dimensions),
		cmocka_unit_test(test_dlio_streams),    cmocka_unit_test(test_torch_randperm),
		cmocka_unit_test(test_torch_edges),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
