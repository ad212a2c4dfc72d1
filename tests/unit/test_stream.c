/* The plan of tf.data's order against the reference simulation, and Philox against Random123's
 * known answers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/rng.h"
#include "dataset/order_proof.h"
#include "tf_vectors.h"

static size_t memory_of(const struct stream_rules *r, uint32_t rank)
{
	return stream_cycle_bytes(r) + (size_t)stream_shuffle_places(r, rank) * sizeof(uint64_t);
}

static uint32_t philox_word(const uint32_t counter[4], const uint32_t key[2], int which)
{
	uint32_t out[4];

	philox_block(counter, key, out);
	return out[which];
}

/* kat_vectors of Random123, philox4x32 with ten rounds */
static void test_philox(void **state)
{
	static const struct {
		uint32_t counter[4], key[2], out[4];
	} known[] = {
		{{0}, {0}, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
		{{~0u, ~0u, ~0u, ~0u},
		 {~0u, ~0u},
		 {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
		{{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
		 {0xa4093822, 0x299f31d0},
		 {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
	};
	struct philox p;

	(void)state;
	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		uint32_t out[4];

		philox_block(known[i].counter, known[i].key, out);
		assert_memory_equal(out, known[i].out, sizeof(out));
	}
	philox_init(&p, 0, 0);
	for (uint64_t i = 0; i < 11; i++)
		assert_int_equal(philox_next(&p), philox_at(0, 0, i));
	assert_int_equal(philox_at(0, 0, 3), 0x9b00dbd8);
	/* the first seed is the key, the second the counter's upper half, the lower one the block
	 */
	assert_int_equal(philox_at(0x299f31d0a4093822u, 0x0370734413198a2eu, 1),
			 philox_word((const uint32_t[]){0, 0, 0x13198a2e, 0x03707344},
				     (const uint32_t[]){0xa4093822, 0x299f31d0}, 1));
}

static void rules_of(const json_t *c, struct order *o)
{
	struct workload w = {.reader = {.sample_shuffle = SHUFFLE_SEED}};
	char format[] = "tfrecord", loader[] = "tensorflow";

	w.dataset.format = format;
	w.reader.data_loader = loader;
	w.dataset.num_samples_per_file = (int64_t)tf_number(c, "per_file");
	w.reader.read_threads = (int64_t)tf_number(c, "threads");
	tf_interleave(&w, c);
	w.reader.shuffle_size = (int64_t)tf_number(c, "shuffle");
	w.train.seed_change_epoch = tf_number(c, "reshuffle");
	assert_true(order_tf_records(&w));
	order_init(o, &w, tf_number(c, "files") * tf_number(c, "per_file"),
		   (uint32_t)tf_number(c, "ranks"), tf_number(c, "batch"), tf_number(c, "seed"),
		   tf_number(c, "epoch"));
	assert_int_equal(o->how, ORDER_TF_RECORDS);
}

static void test_vectors(void **state)
{
	json_t *root, *cases = tf_cases(&root), *c;
	size_t i;

	(void)state;
	assert_true(json_array_size(cases) > 20);
	json_array_foreach(cases, i, c)
	{
		uint32_t rank = (uint32_t)tf_number(c, "rank");
		uint64_t sample, n = 0;
		struct order o;
		struct stream s;
		void *memory;

		rules_of(c, &o);
		assert_int_equal(stream_records(&o.stream, rank), tf_records(c));
		memory = malloc(memory_of(&o.stream, rank));
		stream_begin(&s, &o.stream, rank, memory);
		for (; stream_next(&s, &sample); n++)
			if (n >= tf_records(c) || sample != tf_sample(c, n))
				fail_msg("case %zu, record %llu: sample %llu, not %llu", i,
					 (unsigned long long)n, (unsigned long long)sample,
					 (unsigned long long)tf_sample(c, n));
		assert_int_equal(n, tf_records(c));
		assert_false(stream_next(&s, &sample));
		free(memory);
	}
	json_decref(root);
}

/* Who gives each record: without a shuffle buffer the order of the interleave itself. */
static void test_workers(void **state)
{
	json_t *root, *cases = tf_cases(&root), *c;
	size_t i, looked = 0;

	(void)state;
	json_array_foreach(cases, i, c)
	{
		struct stream_cycle cycle;
		uint32_t worker;
		uint64_t sample;
		struct order o;
		void *memory;

		if (tf_number(c, "shuffle") || tf_number(c, "threads") == 0 ||
		    tf_worker(c, 0) == UINT32_MAX)
			continue;
		rules_of(c, &o);
		memory = malloc(stream_cycle_bytes(&o.stream));
		stream_cycle_begin(&cycle, &o.stream, (uint32_t)tf_number(c, "rank"), memory, NULL,
				   NULL);
		for (uint64_t n = 0; stream_cycle_next(&cycle, &worker, &sample); n++)
			assert_int_equal(worker, tf_worker(c, n));
		free(memory);
		looked++;
	}
	assert_true(looked >= 6);
	json_decref(root);
}

/* Delivered by all ranks and left over by all ranks are everything, however far the epoch went. */
static void test_proof(void **state)
{
	static const uint64_t files[] = {12, 10, 3, 1};
	char why[256];

	(void)state;
	for (unsigned f = 0; f < 4; f++) {
		for (uint64_t done = 0; done < 9; done += 2) {
			struct order_proof got = {0}, rest = {0};
			char format[] = "tfrecord", loader[] = "tensorflow";
			struct workload w = {.reader = {.sample_shuffle = SHUFFLE_SEED,
							.file_shuffle = SHUFFLE_SEED,
							.read_threads = 2,
							.shuffle_size = 5}};
			struct order o;

			w.dataset.format = format;
			w.reader.data_loader = loader;
			w.dataset.num_samples_per_file = 7;
			w.reader.order = f == 0 ? ORDER_DLIO : ORDER_SHUFFLED;
			order_init(&o, &w, files[f] * 7, 4, 2, 123, 3);
			for (uint32_t rank = 0; rank < 4; rank++) {
				uint64_t sample, steps = order_steps(&o);
				void *memory = malloc(memory_of(&o.stream, rank));
				struct stream s;

				stream_begin(&s, &o.stream, rank, memory);
				for (uint64_t i = 0; i < (done < steps ? done : steps) * 2; i++) {
					assert_true(stream_next(&s, &sample));
					order_proof_add(&got, sample);
				}
				order_tf_undelivered(&rest, &o, rank, done, memory);
				free(memory);
			}
			if (order_proof_check(&o, &got, &rest, why, sizeof(why)) != ORDER_KEPT)
				fail_msg("%llu files: %s", (unsigned long long)files[f], why);
		}
	}
}

/* Every rank makes the steps of the one with fewest records. */
static void test_steps(void **state)
{
	char format[] = "tfrecord", loader[] = "tensorflow";
	struct workload w = {0};
	struct order o;

	(void)state;
	w.dataset.format = format;
	w.reader.data_loader = loader;
	w.dataset.num_samples_per_file = 10;
	order_init(&o, &w, 110, 4, 3, 1, 1); /* 11 files: 2 for the last rank */
	assert_int_equal(order_steps(&o), 6);
	order_init(&o, &w, 20, 3, 3, 1, 1); /* 2 files for 3 ranks: 6 records at least */
	assert_int_equal(order_steps(&o), 2);
	w.reader.order = ORDER_DLIO;
	w.dataset.num_samples_per_file = 1;
	order_init(&o, &w, 29, 2, 3, 1, 1); /* DLIO leaves 24 files */
	assert_int_equal(o.stream.files, 24);
	assert_int_equal(order_steps(&o), 4);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_philox),  cmocka_unit_test(test_vectors),
		cmocka_unit_test(test_workers), cmocka_unit_test(test_proof),
		cmocka_unit_test(test_steps),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
