/* The orders of frameworks: PyTorch's samplers against what PyTorch gave out, DALI's shards and
 * shuffle buffer against its rules and against picks that libstdc++ made. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dataset/order_proof.h"

#define LENGTH(a) (sizeof(a) / sizeof((a)[0]))

static struct workload framework(int order)
{
	struct workload w = {0};

	w.reader.order = order;
	w.reader.sample_shuffle = SHUFFLE_SEED;
	w.reader.shuffle_size = 1024;
	w.dataset.num_samples_per_file = 1;
	w.train.seed_change_epoch = true;
	return w;
}

static json_t *vectors(void)
{
	json_t *doc = json_load_file(TEST_DATA "/vectors/rng-vectors.json", JSON_DECODE_INT_AS_REAL,
				     NULL);

	assert_non_null(doc);
	return doc;
}

/* The allocator, which refuses when told to. */
void *__real_calloc(size_t n, size_t size);
void *__wrap_calloc(size_t n, size_t size);
static bool refuse;

void *__wrap_calloc(size_t n, size_t size)
{
	return refuse ? NULL : __real_calloc(n, size);
}

/* All ranks stop after `steps` of their steps, or their last one; the sentence goes to `why`. */
static enum order_kept proof_of(const struct order *o, uint64_t steps, char *why)
{
	struct order_proof delivered = {0}, undelivered = {0};

	for (uint32_t r = 0; r < o->ranks; r++) {
		struct order_held *held = calloc(o->fill + 1, sizeof(*held)), got;
		uint64_t done = steps < order_steps(o) ? steps : order_steps(o), sample;
		struct order_stream s;
		bool again;

		if (o->how == ORDER_SHARDS)
			order_stream_init(&s, o, r, held);
		for (uint64_t k = 0; k < done * o->batch; k++) {
			if (o->how != ORDER_SHARDS) {
				order_proof_add(&delivered, order_at(o, r, k));
				continue;
			}
			while (order_stream_wants(&s, &sample))
				order_stream_add(&s, sample, 0);
			assert_true(order_stream_next(&s, &got, &again));
			order_proof_add(&delivered, got.sample);
		}
		order_proof_undelivered(&undelivered, o, r, done);
		free(held);
	}
	return order_proof_check(o, &delivered, &undelivered, why, 256);
}

static bool proof(const struct order *o, uint64_t steps, char *why)
{
	return proof_of(o, steps, why) == ORDER_KEPT;
}

static void test_distributed(void **state)
{
	json_t *doc = vectors(), *row, *rank, *value;
	unsigned seen = 0;
	const char *key;
	size_t r, k;

	(void)state;
	json_object_foreach(doc, key, row)
	{
		struct workload w = framework(ORDER_DISTRIBUTED);
		unsigned n, world, seed, epoch;
		struct order_list list;
		char drop[8], why[256];
		struct order o;

		if (sscanf(key,
			   "DistributedSampler(n=%u,world=%u,seed=%u,drop_last=%5[a-zA-Z]) epoch "
			   "%u",
			   &n, &world, &seed, drop, &epoch) != 5)
			continue;
		w.reader.drop_last = strcmp(drop, "True") == 0;
		assert_int_equal(order_list_init(&list, n, NULL), 0);
		order_list_fill(&list, &w, false, seed, epoch + 1);
		order_init(&o, &w, n, world, 1, seed, epoch + 1);
		o.list = &list;
		json_array_foreach(json_object_get(row, "values"), r, rank)
		{
			assert_int_equal(order_steps(&o), json_array_size(rank));
			json_array_foreach(rank, k, value) assert_int_equal(
				order_at(&o, (uint32_t)r, k), (uint64_t)json_number_value(value));
		}
		for (uint64_t steps = 0; steps <= order_steps(&o); steps++)
			if (!proof(&o, steps, why))
				fail_msg("%s: %s", key, why);
		order_list_release(&list);
		seen++;
	}
	assert_int_equal(seen, 10);
	json_decref(doc);
}

static void check_random(json_t *doc, const char *key, int64_t workers, bool persistent)
{
	json_t *epochs = json_array_get(json_object_get(json_object_get(doc, key), "values"), 0);
	struct workload w = framework(ORDER_RANDOM);
	struct order_list list;
	struct order o;

	assert_int_equal(json_array_size(epochs), 2);
	w.reader.read_threads = workers;
	w.reader.persistent_workers = persistent;
	assert_int_equal(order_list_init(&list, 20, NULL), 0);
	for (size_t i = 0; i < 2; i++) {
		order_list_fill(&list, &w, false, 7, i + 1);
		order_init(&o, &w, 20, 1, 4, 7, i + 1);
		o.list = &list;
		for (size_t k = 0; k < 20; k++) {
			json_t *batch = json_array_get(json_array_get(epochs, i), k / 4);

			assert_int_equal(order_at(&o, 0, k),
					 (uint64_t)json_number_value(json_array_get(batch, k % 4)));
		}
	}
	order_list_release(&list);
}

static void test_random(void **state)
{
	static const char loader[] =
		"torch.manual_seed(7); DataLoader(range(20),4,shuffle=True,num_workers=%d) two "
		"epochs";
	json_t *doc = vectors();
	char key[128];

	(void)state;
	snprintf(key, sizeof(key), loader, 0);
	check_random(doc, key, 0, true);
	snprintf(key, sizeof(key), loader, 2);
	check_random(doc, key, 2, false);
	check_random(doc, "torch.manual_seed(7); same, persistent_workers=True", 2, true);
	json_decref(doc);
}

static void test_repeats_are_said(void **state)
{
	struct workload w = framework(ORDER_DISTRIBUTED);
	char why[256];
	struct order o;

	(void)state;
	w.reader.sample_shuffle = SHUFFLE_OFF; /* ascending, without a list */
	order_init(&o, &w, 10, 4, 3, 1, 1);
	assert_int_equal(order_repeats(&o), 2);
	assert_true(proof(&o, 1, why));
	assert_non_null(
		strstr(why, "12 samples were delivered: 10 of 10 exactly once, and 2 again"));
	/* the repeats are in a batch that is dropped */
	order_init(&o, &w, 10, 4, 2, 1, 1);
	assert_int_equal(order_repeats(&o), 0);
	assert_true(proof(&o, 1, why));
	assert_non_null(strstr(why, "8 of 10 samples were delivered, each exactly once"));
	w.reader.drop_last = true;
	order_init(&o, &w, 10, 4, 2, 1, 1);
	assert_true(proof(&o, 1, why));
	order_init(&o, &w, 3, 8, 1, 1, 1);
	assert_int_equal(order_steps(&o), 0);
	assert_true(proof(&o, 0, why));
}

static void test_repeats_are_checked(void **state)
{
	struct workload w = framework(ORDER_DISTRIBUTED);
	struct order_proof delivered = {0}, none = {0};
	char why[256];
	struct order o;

	(void)state;
	w.reader.sample_shuffle = SHUFFLE_OFF;
	order_init(&o, &w, 10, 4, 3, 1, 1);
	/* 12 samples, but another one twice */
	order_proof_range(&delivered, 0, 10);
	order_proof_add(&delivered, 0);
	order_proof_add(&delivered, 5);
	assert_int_equal(order_proof_check(&o, &delivered, &none, why, sizeof(why)), ORDER_BROKEN);
	assert_non_null(strstr(why, "some samples came twice and others never"));
	order_proof_add(&delivered, 1);
	assert_int_equal(order_proof_check(&o, &delivered, &none, why, sizeof(why)), ORDER_BROKEN);
	assert_non_null(strstr(why, "the order has 12"));
}

static void test_draws(void **state)
{
	/* std::default_random_engine(std::seed_seq{seed}), then six draws of
	 * std::uniform_int_distribution, in turn of 0..1023 and 0..9 (g++ 12) */
	static const struct {
		uint32_t seed, value[6];
	} known[] = {
		{0u, {961, 8, 212, 1, 324, 4}},           {1u, {626, 7, 61, 2, 419, 2}},
		{42u, {929, 6, 666, 1, 844, 1}},          {123u, {651, 1, 212, 8, 1000, 6}},
		{4294967295u, {1017, 2, 549, 8, 330, 0}},
	};

	(void)state;
	for (size_t i = 0; i < LENGTH(known); i++) {
		uint32_t engine = order_stream_seed(known[i].seed);

		for (int k = 0; k < 6; k++)
			assert_int_equal(order_stream_draw(&engine, k % 2 ? 10 : 1024),
					 known[i].value[k]);
	}
}

/* Hands out a whole shard; reads must run ahead by the buffer and no more. */
static uint64_t hand_out(const struct order *o, uint32_t rank, uint64_t *out)
{
	struct order_held *held = calloc(o->fill, sizeof(*held)), got;
	uint64_t sample, first, count, total, n = 0;
	struct order_stream s;
	bool again;

	order_shard(o, rank, &first, &count, &total);
	order_stream_init(&s, o, rank, held);
	for (;;) {
		while (order_stream_wants(&s, &sample)) {
			assert_int_equal(sample, order_at(o, rank, s.read));
			order_stream_add(&s, sample, sample + 1000);
		}
		assert_int_equal(s.read, n + o->fill < count ? n + o->fill : count);
		if (!order_stream_next(&s, &got, &again))
			break;
		assert_int_equal(got.item, got.sample + 1000);
		assert_int_equal(again, n >= count);
		out[n++] = got.sample;
	}
	assert_int_equal(n, total);
	free(held);
	return n;
}

static void test_shuffle_buffer(void **state)
{
	/* picks of libstdc++'s engine in a program of its own, by DALI's rule: the picked one
	 * changes places with the oldest, which leaves; one more is read */
	static const struct {
		uint64_t n, fill, seed, out[20];
	} known[] = {
		{12, 4, 123, {2, 1, 0, 6, 7, 4, 5, 3, 10, 9, 8, 11}},
		{20, 8, 7, {6, 1, 4, 10, 5, 7, 3, 12, 9, 15, 8, 11, 16, 14, 17, 19, 0, 2, 18, 13}},
		{5, 16, 1, {3, 4, 2, 0, 1}},
		{6, 1, 1, {0, 1, 2, 3, 4, 5}},
	};

	(void)state;
	for (size_t i = 0; i < LENGTH(known); i++) {
		struct workload w = framework(ORDER_SHARDED);
		struct order o;
		uint64_t out[20];

		w.reader.shuffle_size = (int64_t)known[i].fill;
		order_init(&o, &w, known[i].n, 1, 1, known[i].seed, 1);
		assert_int_equal(hand_out(&o, 0, out), known[i].n);
		for (size_t k = 0; k < known[i].n; k++)
			assert_int_equal(out[k], known[i].out[k]);
	}
}

static void test_shards(void **state)
{
	struct workload w = framework(ORDER_SHARDED);
	uint64_t first, count, total, out[8];
	char why[256];
	struct order o;

	(void)state;
	/* floor(10 s / 4): 0, 2, 5, 7, 10 */
	for (uint64_t epoch = 1; epoch <= 5; epoch++)
		for (uint32_t r = 0; r < 4; r++) {
			static const uint64_t begin[] = {0, 2, 5, 7, 10};
			uint64_t s = (r + epoch - 1) % 4;

			order_init(&o, &w, 10, 4, 1, 1, epoch);
			order_shard(&o, r, &first, &count, &total);
			assert_int_equal(first, begin[s]);
			assert_int_equal(count, begin[s + 1] - begin[s]);
			assert_int_equal(total, count);
		}
	assert_int_equal(order_steps(&o), 2);
	assert_true(proof(&o, 2, why));
	assert_non_null(strstr(why, "8 of 10 samples were delivered, each exactly once"));
	assert_true(proof(&o, 1, why));
	w.reader.stick_to_shard = true;
	order_init(&o, &w, 10, 4, 1, 1, 3);
	order_shard(&o, 1, &first, &count, &total);
	assert_int_equal(first, 2);
	/* padding repeats the sample handed out last */
	w.reader.pad_last_batch = true;
	order_init(&o, &w, 10, 4, 3, 1, 1);
	assert_int_equal(order_steps(&o), 1);
	assert_int_equal(hand_out(&o, 0, out), 3);
	assert_int_equal(out[2], out[1]);
	assert_int_equal(hand_out(&o, 1, out), 3);
	assert_int_equal(order_repeats(&o), 2);
	assert_true(proof(&o, 1, why));
	assert_non_null(
		strstr(why, "and 2 again so that all ranks have the same number (reader.pad_last_batch"));
}

static void test_dlio_reads_one_shard(void **state)
{
	struct workload w = framework(ORDER_SHARDED);
	char why[256];
	struct order o;

	(void)state;
	w.compat.dlio = true;
	for (uint64_t epoch = 1; epoch < 4; epoch++) {
		order_init(&o, &w, 16, 4, 2, 1, epoch);
		for (uint32_t r = 0; r < 4; r++)
			assert_int_equal(order_at(&o, r, 1), 1);
		assert_true(proof(&o, 2, why));
		assert_non_null(strstr(why, "each of the 4 ranks read the same 4 of 16"));
	}
}

static void test_every_size(void **state)
{
	(void)state;
	for (uint64_t n = 1; n < 60; n += 7)
		for (uint32_t ranks = 1; ranks < 6; ranks++)
			for (uint64_t batch = 1; batch < 5; batch++)
				for (int how = 0; how < 8; how++) {
					struct workload w = framework(how & 1 ? ORDER_SHARDED
									      : ORDER_DISTRIBUTED);
					struct order_list list;
					char why[256];
					struct order o;

					w.reader.drop_last = w.reader.pad_last_batch = how & 2;
					w.reader.shuffle_size = how & 4 ? 5 : 1024;
					order_init(&o, &w, n, ranks, batch, 9, 2);
					assert_int_equal(order_list_init(&list, n, NULL), 0);
					order_list_fill(&list, &w, false, 9, 2);
					o.list = &list;
					for (uint64_t s = 0; s <= order_steps(&o); s++)
						if (!proof(&o, s, why))
							fail_msg("%llu %u %llu %d: %s",
								 (unsigned long long)n, ranks,
								 (unsigned long long)batch, how,
								 why);
					order_list_release(&list);
				}
}

/* Without memory for the shuffle buffer it is not known what was left out; nothing came twice. */
static void test_no_memory_is_unknown(void **state)
{
	struct order_proof none = {0}, rest = {0};
	enum order_kept kept = ORDER_BROKEN;
	struct workload w = framework(ORDER_SHARDED);
	char why[256] = "";
	struct order o;

	(void)state;
	w.reader.sample_shuffle = SHUFFLE_SEED;
	w.reader.shuffle_size = 16;
	order_init(&o, &w, 100, 2, 5, 1, 1);
	refuse = true;
	assert_int_equal(order_prove(&o, 3, &none, 1, NULL, &kept, why, sizeof(why), NULL), 0);
	order_proof_undelivered(&rest, &o, 0, 3);
	refuse = false;
	assert_int_equal(kept, ORDER_UNKNOWN);
	assert_non_null(strstr(why, "is unknown, because there was not enough memory"));
	assert_null(strstr(why, "twice"));
	/* also where a rank had none and the proof itself has */
	order_proof_undelivered(&rest, &o, 1, 3);
	assert_int_equal(order_proof_check(&o, &none, &rest, why, sizeof(why)), ORDER_UNKNOWN);
	assert_int_equal(proof_of(&o, 3, why), ORDER_KEPT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_distributed),
		cmocka_unit_test(test_random),
		cmocka_unit_test(test_repeats_are_said),
		cmocka_unit_test(test_repeats_are_checked),
		cmocka_unit_test(test_draws),
		cmocka_unit_test(test_shuffle_buffer),
		cmocka_unit_test(test_shards),
		cmocka_unit_test(test_dlio_reads_one_shard),
		cmocka_unit_test(test_every_size),
		cmocka_unit_test(test_no_memory_is_unknown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
