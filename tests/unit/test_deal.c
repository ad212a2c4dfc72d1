/* The orders of MosaicML Streaming and LitData against the libraries' own functions
 * (tests/data/vectors/deal-order.json, made with streaming 0.13.0 and litdata 0.2.64). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <jansson.h>

#include "dataset/deal.h"
#include "dataset/order_proof.h"

static uint64_t number(const json_t *c, const char *key)
{
	return (uint64_t)json_integer_value(json_object_get(c, key));
}

static struct deal rules_of(const json_t *c)
{
	const json_t *algorithm = json_object_get(c, "algorithm");
	const char *name = json_string_value(algorithm);
	bool mds = strcmp(json_string_value(json_object_get(c, "of")), "mds") == 0;

	return (struct deal){
		.of = mds ? DEAL_MDS : DEAL_LITDATA,
		.samples = number(c, "files") * number(c, "per"),
		.samples_per_file = number(c, "per"),
		.batch = number(c, "batch"),
		.ranks = (uint32_t)number(c, "ranks"),
		.workers = (uint32_t)number(c, "workers"),
		.nodes = mds ? number(c, "nodes") : 1,
		.canonical = mds ? number(c, "canonical") : 1,
		.block = number(c, "block"),
		.algorithm = !name                        ? 0
			     : strcmp(name, "py1e") == 0  ? SHUFFLE_PY1E
			     : strcmp(name, "py1s") == 0  ? SHUFFLE_PY1S
			     : strcmp(name, "py1br") == 0 ? SHUFFLE_PY1BR
			     : strcmp(name, "py2s") == 0  ? SHUFFLE_PY2S
							  : SHUFFLE_NAIVE,
		.shuffle = mds ? name != NULL : json_is_true(json_object_get(c, "shuffle")),
		.seed = number(c, "seed"),
		.epoch = number(c, "epoch") - mds,
	};
}

static void fill(const struct deal *d, struct order_list *l)
{
	void *memory = calloc(1, deal_memory(d) + 1);

	assert_int_equal(order_list_init(l, deal_entries(d), NULL), 0);
	deal_fill(d, l, memory);
	free(memory);
}

/* Worker w of rank r has batch k of its own as batch k * workers + w of the rank. */
static void follows(const json_t *c, size_t which)
{
	struct deal d = rules_of(c);
	struct order_list l;
	uint64_t looked = 0;

	fill(&d, &l);
	for (uint32_t r = 0; r < d.ranks; r++)
		for (uint32_t w = 0; w < d.workers; w++) {
			const json_t *want =
				json_array_get(json_array_get(json_object_get(c, "order"), r), w);

			for (size_t i = 0; i < json_array_size(want); i++) {
				uint64_t batch = i / d.batch * d.workers + w;
				uint64_t k = batch * d.batch + i % d.batch;
				json_int_t sample = json_integer_value(json_array_get(want, i));

				/* short batches are no steps */
				if (batch >= deal_steps(&d))
					continue;
				looked++;
				if (order_list_at(&l, k * d.ranks + r) != (uint64_t)sample)
					fail_msg("case %zu, rank %u, worker %u, sample %zu: %llu, "
						 "and the library %lld",
						 which, r, w, i,
						 (unsigned long long)order_list_at(&l,
										   k * d.ranks + r),
						 sample);
			}
		}
	assert_int_equal(looked, deal_steps(&d) * d.batch * d.ranks);
	order_list_release(&l);
}

static void orders_of_the_libraries(void **state)
{
	json_error_t e;
	json_t *root = json_load_file(TEST_DATA "/vectors/deal-order.json", 0, &e), *c;
	size_t i;

	(void)state;
	assert_true(json_array_size(root) >= 23);
	json_array_foreach(root, i, c) follows(c, i);
	json_decref(root);
}

/* Every sample is in the list, and as often as there are repeats; the proof says so. */
static void every_sample(void **state)
{
	(void)state;
	for (unsigned k = 0; k < 400; k++) {
		struct deal d = {.of = k % 2 ? DEAL_MDS : DEAL_LITDATA,
				 .samples_per_file = 1 + k % 7,
				 .batch = 1 + k % 4,
				 .workers = 1 + k % 3,
				 .nodes = 1,
				 .canonical = 1 + k % 5,
				 .block = 1 + k,
				 .algorithm = (int)(k % 5),
				 .shuffle = k % 5 != 0,
				 .seed = k,
				 .epoch = k % 4};
		struct order_proof got = {0}, rest = {0};
		struct order o = {.how = ORDER_DEALT};
		struct order_list l;
		unsigned char *seen;
		char why[256];

		d.samples = d.samples_per_file * (7 + k % 11);
		d.ranks = 1 + k % 6;
		fill(&d, &l);
		seen = calloc(1, d.samples);
		for (uint64_t i = 0; i < l.n; i++) {
			assert_true(order_list_at(&l, i) < d.samples);
			seen[order_list_at(&l, i)] = 1;
		}
		for (uint64_t i = 0; i < d.samples; i++)
			assert_int_equal(seen[i], 1);
		free(seen);
		assert_true(l.n >= d.samples && l.n < d.samples + d.ranks + d.canonical);
		if (d.of == DEAL_LITDATA)
			assert_int_equal(l.n, d.samples);
		o.samples = d.samples;
		o.ranks = d.ranks;
		o.batch = d.batch;
		o.list = &l;
		o.total = l.n;
		o.used = deal_steps(&d) * d.batch * d.ranks;
		for (uint32_t r = 0; r < d.ranks; r++) {
			for (uint64_t i = 0; i < deal_steps(&d) / 2 * d.batch; i++)
				order_proof_add(&got, order_at(&o, r, i));
			order_proof_undelivered(&rest, &o, r, deal_steps(&d) / 2);
		}
		assert_int_equal(order_proof_check(&o, &got, &rest, why, sizeof(why)), ORDER_KEPT);
		order_proof_add(&got, 1);
		assert_int_equal(order_proof_check(&o, &got, &rest, why, sizeof(why)),
				 ORDER_BROKEN);
		order_list_release(&l);
	}
}

/* np.random.default_rng: shuffle of 0..9, integers(0, 1000), integers(0, 2**40), random(). */
static void random_of_numpy(void **state)
{
	static const struct {
		uint64_t seed, shuffled[10], small, large;
		double uniform;
	} want[] = {
		{0ull, {4, 6, 2, 7, 3, 5, 9, 0, 8, 1}, 503, 802089951224ull, 0x1.165603cf43b8fp-1},
		{7ull, {8, 0, 7, 1, 3, 6, 2, 4, 5, 9}, 873, 5789263593ull, 0x1.a4780d1effe40p-1},
		{9176ull,
		 {8, 1, 2, 7, 5, 6, 9, 3, 0, 4},
		 836,
		 183614530705ull,
		 0x1.db862be9af363p-1},
		{1099511627779ull,
		 {2, 4, 6, 5, 7, 9, 0, 3, 8, 1},
		 758,
		 170209652447ull,
		 0x1.454e6fccbbeeap-1},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(want) / sizeof(want[0]); i++) {
		uint64_t x[10] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9};
		struct rng_pcg64 r;

		rng_pcg64_seed(&r, want[i].seed);
		rng_pcg64_shuffle_u64(&r, x, 10);
		assert_memory_equal(x, want[i].shuffled, sizeof(x));
		assert_int_equal(rng_pcg64_interval(&r, 999), want[i].small);
		assert_int_equal(rng_pcg64_interval(&r, (1ull << 40) - 1), want[i].large);
		assert_true(rng_pcg64_double(&r) == want[i].uniform);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(orders_of_the_libraries),
		cmocka_unit_test(every_sample),
		cmocka_unit_test(random_of_numpy),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
