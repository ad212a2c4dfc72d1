/* WebDataset's order against the library's own filters (tests/data/vectors/webdataset-order.json,
 * made with webdataset 1.0.2), and its proof. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <jansson.h>

#include "dataset/order_proof.h"

static uint64_t number(const json_t *c, const char *key)
{
	return (uint64_t)json_integer_value(json_object_get(c, key));
}

static void follows(const json_t *c, size_t which)
{
	const struct shard_rules r = {.files = number(c, "files"),
				      .samples_per_file = number(c, "per"),
				      .batch = 1,
				      .ranks = (uint32_t)number(c, "ranks"),
				      .workers = (uint32_t)number(c, "workers"),
				      .file_buffer = number(c, "file_buffer"),
				      .buffer = number(c, "buffer"),
				      .initial = number(c, "initial"),
				      .seed = number(c, "seed")};
	void *memory = malloc(shard_stream_bytes(&r));

	for (uint32_t i = 0; i < r.ranks * r.workers; i++) {
		const json_t *want = json_array_get(json_object_get(c, "order"), i);
		struct shard_stream s;
		uint64_t sample;
		size_t n = 0;

		shard_stream_begin(&s, &r, i / r.workers, i % r.workers, memory);
		for (;; n++) {
			while (shard_stream_wants(&s, &sample))
				shard_stream_add(&s, sample);
			if (!shard_stream_take(&s, &sample))
				break;
			if (n == json_array_size(want) ||
			    sample != (uint64_t)json_integer_value(json_array_get(want, n)))
				fail_msg("case %zu, worker %u, sample %zu: %llu", which, i, n,
					 (unsigned long long)sample);
		}
		assert_int_equal(n, json_array_size(want));
		assert_int_equal(n, shard_batches(&r, i / r.workers, i % r.workers));
	}
	free(memory);
}

static void order_of_the_library(void **state)
{
	json_error_t e;
	json_t *root = json_load_file(TEST_DATA "/vectors/webdataset-order.json", 0, &e), *c;
	size_t i;

	(void)state;
	assert_true(json_array_size(root) >= 8);
	json_array_foreach(root, i, c) follows(c, i);
	json_decref(root);
}

/* Python: [random.Random(7).randrange(n) for n in ...], one generator. */
static void random_of_python(void **state)
{
	static const uint32_t below[] = {1, 2, 3, 100, 1u << 31, 1000, UINT32_MAX};
	static const uint32_t want[2][7] = {{0u, 0u, 1u, 83u, 207388624u, 74u, 3527346212u},
					    {0u, 0u, 2u, 12u, 1306272805u, 924u, 2995421218u}};
	struct rng_np r;

	(void)state;
	for (int k = 0; k < 2; k++) {
		rng_py_seed(&r, k ? (1ull << 40) + 3 : 7);
		for (int i = 0; i < 7; i++)
			assert_int_equal(rng_py_below(&r, below[i]), want[k][i]);
	}
}

/* Delivered and left over by all workers is everything, and steps are those of the last rank. */
static void proof(void **state)
{
	/* files, samples of each, files that ranks have: DLIO's have as many each */
	static const uint64_t size[][3] = {{23, 11, 23}, {7, 1, 7}, {5, 4, 5},
					   {2, 30, 2},   {8, 4, 6}, {2, 30, 0}};

	(void)state;
	for (unsigned k = 0; k < 6; k++) {
		struct order_proof got = {0}, rest = {0};
		struct order o = {.how = ORDER_STREAMS,
				  .samples = size[k][0] * size[k][1],
				  .samples_per_file = size[k][1],
				  .ranks = 3,
				  .batch = 2,
				  .shards = {.files = size[k][2],
					     .samples_per_file = size[k][1],
					     .batch = 2,
					     .ranks = 3,
					     .workers = 2,
					     .file_buffer = 4,
					     .buffer = 9,
					     .initial = 3,
					     .seed = 5}};
		void *memory = malloc(shard_stream_bytes(&o.shards));
		char why[256];

		for (uint32_t i = 0; i < 6; i++) {
			struct order_proof all = {0}, left = {0};
			uint64_t half = shard_batches(&o.shards, i / 2, i % 2) / 2;

			order_stream_undelivered(&all, &o, i / 2, i % 2, 0, memory);
			order_stream_undelivered(&left, &o, i / 2, i % 2, half, memory);
			assert_int_equal(all.count - left.count, half * 2);
			got.count += all.count - left.count;
			got.sum_a += all.sum_a - left.sum_a;
			got.sum_b += all.sum_b - left.sum_b;
			order_proof_merge(&rest, &left);
		}
		assert_int_equal(order_proof_check(&o, &got, &rest, why, sizeof(why)), ORDER_KEPT);
		order_proof_add(&got, 1);
		assert_int_equal(order_proof_check(&o, &got, &rest, why, sizeof(why)),
				 ORDER_BROKEN);
		assert_true(shard_steps_least(&o.shards) <= shard_steps(&o.shards, 0) &&
			    shard_steps_least(&o.shards) <= shard_steps(&o.shards, 1));
		free(memory);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(order_of_the_library),
		cmocka_unit_test(random_of_python),
		cmocka_unit_test(proof),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
