/* The order of an epoch: complete, each sample once, and in compatibility mode DLIO's own. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "dataset/listed.h"
#include "dataset/order_proof.h"
#include "dlio_maps.h"

static struct workload shuffled(int sample_shuffle, int file_shuffle, int64_t per_file)
{
	struct workload w = {0};

	w.reader.order = ORDER_SHUFFLED;
	w.reader.sample_shuffle = sample_shuffle;
	w.reader.file_shuffle = file_shuffle;
	w.dataset.num_samples_per_file = per_file;
	w.train.seed_change_epoch = true;
	return w;
}

static void proof_of_rank(const struct order *o, uint32_t rank, uint64_t steps,
			  struct order_proof *p)
{
	for (uint64_t k = 0; k < steps * o->batch; k++)
		order_proof_add(p, order_at(o, rank, k));
}

/* Every sample at most once, all accounted for, at any point where the ranks may stop. */
static void check_epoch(const struct workload *w, uint64_t samples, uint32_t ranks, uint64_t batch)
{
	struct order_proof delivered = {0}, undelivered = {0}, part;
	unsigned char *seen = calloc(samples + 1, 1);
	struct order o;
	char why[256];

	order_init(&o, w, samples, ranks, batch, 123, 1);
	for (uint32_t r = 0; r < ranks; r++) {
		uint64_t steps = order_steps(&o),
			 stop = steps ? (r * 7 + samples) % (steps + 1) : 0;

		for (uint64_t k = 0; k < steps * batch; k++) {
			uint64_t s = order_at(&o, r, k);

			assert_true(s < samples);
			assert_int_equal(seen[s]++, 0);
		}
		proof_of_rank(&o, r, stop, &delivered);
		memset(&part, 0, sizeof(part));
		order_proof_undelivered(&part, &o, r, stop);
		order_proof_merge(&undelivered, &part);
	}
	if (order_proof_check(&o, &delivered, &undelivered, why, sizeof(why)) != ORDER_KEPT)
		fail_msg("%llu samples, %u ranks, batch %llu: %s", (unsigned long long)samples,
			 ranks, (unsigned long long)batch, why);
	assert_int_equal(delivered.count + undelivered.count, samples);
	free(seen);
}

static void every_sample_at_most_once(void **state)
{
	static const uint64_t files[] = {0, 1, 2, 7, 16, 60, 101};
	static const uint32_t ranks[] = {1, 2, 3, 8, 13};
	static const uint64_t batches[] = {1, 2, 7, 64};
	struct workload w;

	(void)state;
	for (unsigned how = 0; how < 4; how++)
		for (int64_t per = 1; per <= 5; per += 2)
			for (size_t f = 0; f < 7; f++)
				for (size_t r = 0; r < 5; r++)
					for (size_t b = 0; b < 4; b++) {
						w = shuffled(how == 1, how == 2, per);
						if (how == 3)
							w.reader.order = ORDER_DLIO;
						check_epoch(&w, files[f] * (uint64_t)per, ranks[r],
							    batches[b]);
					}
}

static void steps_and_blocks(void **state)
{
	struct workload w = shuffled(SHUFFLE_SEED, SHUFFLE_OFF, 1);
	struct order o;

	(void)state;
	order_init(&o, &w, 168, 4, 7, 123, 1);
	assert_int_equal(order_steps(&o), 6);
	assert_int_equal(o.block, 42);
	assert_int_equal(o.used, 168);
	order_init(&o, &w, 100, 3, 8, 123, 1);
	assert_int_equal(order_steps(&o), 4);
	assert_int_equal(o.used, 96);
	order_init(&o, &w, 5, 3, 2, 123, 1);
	assert_int_equal(order_steps(&o), 0);
	order_init(&o, &w, 0, 3, 2, 123, 1);
	assert_int_equal(order_steps(&o), 0);
	order_init(&o, &w, 100, 4, UINT64_MAX / 2, 123, 1);
	assert_int_equal(order_steps(&o), 0);
	/* 25 files of 4 in blocks of ceil(100 / 3): the last rank has 32 and decides. */
	w = shuffled(SHUFFLE_SEED, SHUFFLE_OFF, 4);
	w.reader.order = ORDER_DLIO;
	order_init(&o, &w, 100, 3, 8, 123, 1);
	assert_int_equal(order_steps(&o), 4);
	assert_int_equal(order_at(&o, 1, 0), 34);
	order_init(&o, &w, 8, 8, 1, 123, 1);
	assert_int_equal(order_steps(&o), 1);
	/* Blocks of 2 leave the last ranks of 8 without any. */
	w.dataset.num_samples_per_file = 5;
	order_init(&o, &w, 10, 8, 1, 123, 1);
	assert_int_equal(order_steps(&o), 0);
}

static void a_broken_epoch_is_found(void **state)
{
	struct workload w = shuffled(SHUFFLE_SEED, SHUFFLE_OFF, 1);
	struct order_proof good = {0}, bad, rest = {0};
	struct order o;
	char why[256];

	(void)state;
	order_init(&o, &w, 100, 2, 10, 123, 1);
	proof_of_rank(&o, 0, 5, &good);
	proof_of_rank(&o, 1, 5, &good);
	order_proof_undelivered(&rest, &o, 0, 5);
	order_proof_undelivered(&rest, &o, 1, 5);
	assert_int_equal(rest.count, 0);
	assert_int_equal(order_proof_check(&o, &good, &rest, why, sizeof(why)), ORDER_KEPT);
	assert_non_null(strstr(why, "exactly once"));
	bad = good;
	order_proof_add(&bad, 17);
	assert_int_equal(order_proof_check(&o, &bad, &rest, why, sizeof(why)), ORDER_BROKEN);
	assert_non_null(strstr(why, "101"));
	/* 17 twice and 18 never. */
	memset(&bad, 0, sizeof(bad));
	for (uint64_t s = 0; s < 100; s++)
		order_proof_add(&bad, s == 18 ? 17 : s);
	assert_int_equal(order_proof_check(&o, &bad, &rest, why, sizeof(why)), ORDER_BROKEN);
	assert_non_null(strstr(why, "twice"));
	memset(&bad, 0, sizeof(bad));
	order_proof_range(&bad, 0, 99);
	assert_int_equal(order_proof_check(&o, &bad, &rest, why, sizeof(why)), ORDER_BROKEN);
	/* 0 + 3 and 1 + 2 have equal sums of samples; the mixes must not. */
	memset(&bad, 0, sizeof(bad));
	order_proof_range(&bad, 4, 100);
	for (int i = 0; i < 2; i++) {
		order_proof_add(&bad, 0);
		order_proof_add(&bad, 3);
	}
	assert_int_equal(order_proof_check(&o, &bad, &rest, why, sizeof(why)), ORDER_BROKEN);
}

/* Whatever the number of threads and steps, the proof is that of the positions themselves; a sample
 * twice instead of another, and one that a later step was to read, are found. */
static void threads_prove_the_same(void **state)
{
	static const uint64_t batches[] = {1, 64, 1000};
	struct workload w[3] = {shuffled(SHUFFLE_SEED, SHUFFLE_OFF, 1),
				shuffled(SHUFFLE_OFF, SHUFFLE_SEED, 4), shuffled(0, 0, 4)};

	(void)state;
	w[2].reader.order = ORDER_DLIO;
	for (unsigned i = 0; i < 27; i++) {
		uint64_t batch = batches[i / 9], steps, all;
		uint32_t ranks = i % 2 ? 3 : 1;
		struct order_proof good = {0}, bad = {0};
		struct order o;
		char why[256];
		enum order_kept kept;

		order_init(&o, &w[i % 3], 300000, ranks, batch, 5, 2);
		all = order_steps(&o);
		steps = i / 3 % 3 == 0 ? all : i / 3 % 3 == 1 ? all / 4 : all - all / 4;
		for (uint32_t r = 0; r < ranks; r++)
			proof_of_rank(&o, r, steps, &good);
		for (unsigned threads = 1; threads <= 4; threads += 3) {
			assert_int_equal(order_prove(&o, steps, &good, threads, NULL, &kept, why,
						     sizeof(why), NULL),
					 0);
			if (kept != ORDER_KEPT)
				fail_msg("%u: %s", i, why);
			assert_non_null(strstr(why, "exactly once"));
		}
		proof_of_rank(&o, 0, steps - 1, &bad);
		for (uint32_t r = 1; r < ranks; r++)
			proof_of_rank(&o, r, steps, &bad);
		order_prove(&o, steps, &bad, 2, NULL, &kept, why, sizeof(why), NULL);
		assert_int_equal(kept, ORDER_BROKEN);
		for (uint64_t k = 0; k < batch; k++)
			order_proof_add(&bad, order_at(&o, 0, k));
		order_prove(&o, steps, &bad, 2, NULL, &kept, why, sizeof(why), NULL);
		assert_int_equal(kept, ORDER_BROKEN);
		assert_non_null(strstr(why, "twice"));
	}
}

static void a_proof_can_be_stopped(void **state)
{
	struct workload w = shuffled(SHUFFLE_SEED, SHUFFLE_OFF, 1);
	struct stop_flag stop = {1};
	struct order_proof none = {0};
	struct err e = {0};
	struct order o;
	char why[256] = "";
	enum order_kept kept = ORDER_KEPT;

	(void)state;
	order_init(&o, &w, 1ull << 50, 1, 1, 1, 1);
	assert_int_equal(order_prove(&o, 1ull << 49, &none, 2, &stop, &kept, why, sizeof(why), &e),
			 ERR_CANCELED);
	assert_int_equal(kept, ORDER_BROKEN);
	assert_non_null(strstr(why, "stopped"));
}

static size_t differing(const struct order *a, const struct order *b, uint64_t n)
{
	size_t d = 0;

	for (uint64_t k = 0; k < n; k++)
		d += order_at(a, 0, k) != order_at(b, 0, k);
	return d;
}

static void epochs_and_seeds(void **state)
{
	struct workload w = shuffled(SHUFFLE_SEED, SHUFFLE_OFF, 1);
	struct order a, b, c;

	(void)state;
	order_init(&a, &w, 1000, 1, 10, 123, 1);
	order_init(&b, &w, 1000, 1, 10, 123, 2);
	order_init(&c, &w, 1000, 1, 10, 123, 1);
	assert_true(differing(&a, &b, 1000) > 950);
	assert_int_equal(differing(&a, &c, 1000), 0);
	w.train.seed_change_epoch = false;
	order_init(&a, &w, 1000, 1, 10, 123, 1);
	order_init(&b, &w, 1000, 1, 10, 123, 2);
	assert_int_equal(differing(&a, &b, 1000), 0);
	/* A random shuffle is one whose seed nobody knows: it must follow the seed it is given. */
	w.reader.sample_shuffle = SHUFFLE_RANDOM;
	order_init(&a, &w, 1000, 1, 10, 1, 1);
	order_init(&b, &w, 1000, 1, 10, 2, 1);
	order_init(&c, &w, 1000, 1, 10, 2, 1);
	assert_true(differing(&a, &b, 1000) > 950);
	assert_int_equal(differing(&b, &c, 1000), 0);
	w.reader.sample_shuffle = SHUFFLE_OFF;
	order_init(&a, &w, 1000, 1, 10, 1, 1);
	for (uint64_t k = 0; k < 1000; k++)
		assert_int_equal(order_at(&a, 0, k), k);
}

static void rank_count_keeps_the_sequence(void **state)
{
	struct workload w = shuffled(SHUFFLE_SEED, SHUFFLE_OFF, 1);
	struct order one, many;

	(void)state;
	order_init(&one, &w, 1003, 1, 1, 123, 5);
	for (uint32_t ranks = 2; ranks <= 9; ranks++) {
		order_init(&many, &w, 1003, ranks, 7, 123, 5);
		for (uint32_t r = 0; r < ranks; r++)
			for (uint64_t k = 0; k < many.block; k++)
				assert_int_equal(order_at(&many, r, k),
						 order_at(&one, 0, r * many.block + k));
	}
}

static void files_stay_whole(void **state)
{
	struct workload w = shuffled(SHUFFLE_OFF, SHUFFLE_SEED, 10);
	uint64_t before = 0, moved = 0;
	struct order o;

	(void)state;
	order_init(&o, &w, 400, 4, 20, 123, 1);
	for (uint32_t r = 0; r < 4; r++)
		for (uint64_t k = 0; k < 100; k++) {
			uint64_t s = order_at(&o, r, k);

			assert_int_equal(s % 10, k % 10);
			if (k % 10)
				assert_int_equal(s, before + 1);
			else
				moved += s / 10 != r * 10 + k / 10;
			before = s;
		}
	assert_true(moved > 30);
}

static json_t *golden(void)
{
	json_error_t je;
	json_t *root = json_load_file(TEST_DATA "/vectors/dlio-order.json", 0, &je);

	if (!root)
		fail_msg("dlio-order.json: %s", je.text);
	return root;
}

static uint64_t number(json_t *map, const char *key)
{
	json_t *v = json_object_get(map, key);

	assert_true(json_is_integer(v));
	return (uint64_t)json_integer_value(v);
}

/* "train/img_03_of_16.npz" or "img_03_of_16.npz" -> 3 */
static uint64_t file_number(const char *name)
{
	const char *p = strstr(name, "img_");

	assert_non_null(p);
	return strtoull(p + 4, NULL, 10);
}

static json_t *rank_of(json_t *c, uint32_t rank)
{
	char key[32];

	snprintf(key, sizeof(key), "rank%u", rank);
	return json_object_get(json_object_get(c, "ranks"), key);
}

/* The worker of batch k is k mod W: what worker w opened must be those batches, in order. */
static void check_opened(const struct order *o, uint32_t rank, uint64_t workers, json_t *epoch)
{
	for (uint64_t w = 0; w < workers; w++) {
		uint64_t n = 0;
		char key[32];
		json_t *list;

		snprintf(key, sizeof(key), "worker%llu", (unsigned long long)w);
		list = json_object_get(epoch, key);
		for (uint64_t k = w; k < order_steps(o); k += workers)
			for (uint64_t i = 0; i < o->batch; i++) {
				const char *name = json_string_value(json_array_get(list, n++));

				assert_non_null(name);
				assert_int_equal(order_at(o, rank, k * o->batch + i) /
							 o->samples_per_file,
						 file_number(name));
			}
		assert_int_equal(json_array_size(list), n);
	}
}

static void check_opened_kind(json_t *c, const char *files_key, const char *epochs_key)
{
	json_t *config = json_object_get(c, "config"), *epoch;
	uint64_t per = number(config, "num_samples_per_file"), files = number(config, files_key);
	uint32_t ranks = (uint32_t)number(config, "np");
	struct workload w = shuffled(SHUFFLE_SEED, SHUFFLE_SEED, (int64_t)per);
	struct order o;
	size_t i;

	w.reader.order = ORDER_DLIO;
	for (uint32_t r = 0; r < ranks; r++) {
		json_t *epochs = json_object_get(rank_of(c, r), epochs_key);

		assert_true(files == 0 || json_array_size(epochs) == number(config, "epochs"));
		json_array_foreach(epochs, i, epoch)
		{
			order_init(&o, &w, files * per, ranks, number(config, "batch_size"), 123,
				   i + 1);
			check_opened(&o, r, number(config, "read_threads"), epoch);
		}
	}
}

static void what_dlio_opened(void **state)
{
	json_t *root = golden(), *c;
	size_t i, checked = 0;

	(void)state;
	json_array_foreach(json_object_get(root, "opened"), i, c)
	{
		/* One case only notes that DLIO cut 4 files of 4 samples to none and made no step.
		 */
		if (!json_object_get(c, "config"))
			continue;
		check_opened_kind(c, "num_files_train", "train_epochs");
		check_opened_kind(c, "num_files_eval", "eval_epochs");
		checked++;
	}
	assert_int_equal(checked, 5);
	json_decref(root);
}

static void check_entry(const struct order_dlio_entry *e, json_t *want)
{
	assert_int_equal(e->sample, json_integer_value(json_array_get(want, 0)));
	assert_int_equal(e->file, file_number(json_string_value(json_array_get(want, 1))));
	assert_int_equal(e->in_file, json_integer_value(json_array_get(want, 2)));
}

static struct order_dlio map_config(json_t *config)
{
	struct order_dlio c = {
		.samples_per_file = number(config, "num_samples_per_file"),
		.ranks = (uint32_t)number(config, "np"),
		.threads = (uint32_t)number(config, "read_threads"),
		.seed = (uint32_t)number(config, "seed"),
		.seed_change_epoch = json_is_true(json_object_get(config, "seed_change_epoch")),
		.file_shuffle = 1,
		.sample_shuffle =
			strcmp(json_string_value(json_object_get(config, "sample_shuffle")),
			       "off") != 0,
	};

	/* with several samples a file, the maps were recorded without DLIO's cut */
	c.files = number(config, "num_files_train");
	if (c.samples_per_file == 1)
		c.files = order_dlio_files(c.files, 1, number(config, "batch_size"), c.ranks);
	return c;
}

static void check_iterative(const struct order_dlio *c, uint64_t epoch, uint32_t rank,
			    uint64_t *files, struct order_dlio_entry *got, json_t *want)
{
	uint64_t first, count, n[8] = {0};
	uint32_t thread[64];
	char key[16];

	assert_int_equal(order_dlio_iterative_map(c, epoch, rank, files, got, thread, NULL), 0);
	order_dlio_block(c->files * c->samples_per_file, c->ranks, rank, &first, &count);
	for (uint64_t i = 0; i < count; i++) {
		assert_true(thread[i] < c->threads);
		snprintf(key, sizeof(key), "%u", thread[i]);
		check_entry(&got[i], json_array_get(json_object_get(want, key), n[thread[i]]++));
	}
	for (uint32_t t = 0; t < c->threads; t++) {
		snprintf(key, sizeof(key), "%u", t);
		assert_int_equal(json_array_size(json_object_get(want, key)), n[t]);
	}
}

static void check_map(json_t *m, uint32_t rank)
{
	struct order_dlio c = map_config(json_object_get(m, "config"));
	const char *sampler =
		json_string_value(json_object_get(json_object_get(m, "config"), "sampler"));
	uint64_t files[64], first, count;
	struct order_dlio_entry got[64];
	json_t *want, *entry;
	size_t e, i;

	for (uint64_t f = 0; f < c.files; f++)
		files[f] = f;
	json_array_foreach(rank_of(m, rank), e, want)
	{
		if (strcmp(sampler, "iterative") == 0) {
			check_iterative(&c, e + 1, rank, files, got, want);
			continue;
		}
		assert_int_equal(order_dlio_index_map(&c, e + 1, rank, got, NULL), 0);
		order_dlio_block(c.files * c.samples_per_file, c.ranks, rank, &first, &count);
		assert_int_equal(json_array_size(want), count);
		json_array_foreach(want, i, entry) check_entry(&got[i], entry);
	}
}

static void the_maps_dlio_makes(void **state)
{
	json_t *root = golden(), *m;
	size_t i;

	(void)state;
	assert_int_equal(json_array_size(json_object_get(root, "maps")), 27);
	json_array_foreach(json_object_get(root, "maps"), i, m)
	{
		for (uint32_t r = 0; rank_of(m, r); r++)
			check_map(m, r);
		assert_non_null(rank_of(m, 0));
	}
	json_decref(root);
}

/* compat.dlio cuts files by DLIO's formula, which takes samples for files; reader.order=dlio alone
 * leaves no sample of such files out but those of the last, incomplete step. */
static void dlio_cuts_several_samples_a_file(void **state)
{
	(void)state;
	for (uint64_t files = 1; files <= 40; files += 3)
		for (int64_t per = 1; per <= 4; per++)
			for (uint32_t ranks = 1; ranks <= 4; ranks++)
				for (uint64_t batch = 1; batch <= 5; batch += 2) {
					struct workload w = {
						.reader.order = ORDER_DLIO,
						.compat.dlio = true,
						.dataset.num_samples_per_file = per,
					};
					uint64_t samples = files * (uint64_t)per;
					uint64_t q = (uint64_t)per * batch * ranks;
					uint64_t kept = files / q * q * (uint64_t)per;
					struct order o;

					order_init(&o, &w, samples, ranks, batch, 1, 1);
					assert_int_equal(order_steps(&o), kept / batch / ranks);
					assert_int_equal(o.used, kept);
					for (uint32_t r = 0; kept && r < ranks; r++)
						assert_int_equal(order_at(&o, r, 0),
								 r * (kept / ranks));
					w.compat.dlio = false;
					order_init(&o, &w, samples, ranks, batch, 1, 1);
					assert_true(per > 1 || o.used == kept);
				}
}

static void edges_of_dlio(void **state)
{
	struct order_dlio c = {.files = 2, .samples_per_file = 1, .ranks = 2, .threads = 3};
	uint64_t files[2] = {0, 1}, first, count;
	struct order_dlio_entry got[2];
	uint32_t thread[2];
	struct err e;

	(void)state;
	assert_int_equal(order_dlio_files(18, 1, 2, 2), 16);
	assert_int_equal(order_dlio_files(18, 4, 2, 2), 16);
	assert_int_equal(order_dlio_files(26, 3, 4, 1), 24);
	assert_int_equal(order_dlio_files(34, 4, 2, 2), 32);
	assert_int_equal(order_dlio_files(4, 4, 2, 2), 0);
	assert_int_equal(order_dlio_files(1, 277203535, 16, 8), 0);
	assert_int_equal(order_dlio_files(18, UINT64_MAX, 2, 2), 0);
	assert_int_equal(order_dlio_files(3, 1, 2, 2), 0);
	assert_int_equal(order_dlio_files(18, 1, UINT64_MAX, 2), 0);
	order_dlio_block(10, 8, 7, &first, &count);
	assert_int_equal(first, 10);
	assert_int_equal(count, 0);
	order_dlio_block(UINT64_MAX, 2, 1, &first, &count);
	assert_true(first + count == UINT64_MAX);
	assert_int_equal(order_dlio_iterative_map(&c, 1, 0, files, got, thread, &e), ERR_USAGE);
	assert_non_null(strstr(e.text, "threads"));
}

/* DLIO's lists as an order at any position: the same files and samples as the map, with the proof
 * that says what is wrong with them. */
static void test_iterative_order(void **state)
{
	enum { FILES = 9, PER_FILE = 4, RANKS = 3, COUNT = FILES * PER_FILE / RANKS };
	struct order_dlio c = {
		.files = FILES, .samples_per_file = PER_FILE, .ranks = RANKS, .threads = 1};
	struct order_dlio_entry want[COUNT];
	struct order_proof got = {0}, rest = {0};
	char loader[] = "tensorflow", why[256];
	uint64_t files[FILES];
	uint32_t thread[COUNT];
	struct workload w = {.reader = {.order = ORDER_DLIO, .data_loader = loader},
			     .dataset = {.num_samples_per_file = PER_FILE}};
	struct order o;

	(void)state;
	for (uint64_t i = 0; i < FILES; i++)
		files[i] = i;
	order_init(&o, &w, FILES * PER_FILE, RANKS, 5, 1, 1);
	assert_int_equal(order_steps(&o), 2);
	for (uint32_t rank = 0; rank < RANKS; rank++) {
		assert_int_equal(order_dlio_iterative_map(&c, 1, rank, files, want, thread, NULL),
				 0);
		for (uint64_t k = 0; k < 10; k++) {
			assert_int_equal(order_at(&o, rank, k),
					 want[k].file * PER_FILE + want[k].in_file);
			order_proof_add(&got, order_at(&o, rank, k));
		}
		order_proof_undelivered(&rest, &o, rank, 2);
	}
	assert_int_equal(order_proof_check(&o, &got, &rest, why, sizeof(why)), ORDER_BROKEN);
	assert_non_null(strstr(why, "some samples came twice and others never"));
	/* one rank alone reads everything */
	got = rest = (struct order_proof){0};
	w.reader.file_shuffle = SHUFFLE_SEED;
	order_init(&o, &w, FILES * PER_FILE, 1, 5, 1, 1);
	for (uint64_t k = 0; k < 20; k++)
		order_proof_add(&got, order_at(&o, 0, k));
	order_proof_undelivered(&rest, &o, 0, 4);
	assert_int_equal(order_proof_check(&o, &got, &rest, why, sizeof(why)), ORDER_KEPT);
}

/* Each sample that there is at most once, and no number of a place that a file lacks. */
static void check_unequal(const struct dataset *d, uint32_t ranks, uint64_t batch)
{
	const struct sample_counts *c = dataset_counts(d, DATASET_TRAIN);
	struct order_proof delivered = {0}, undelivered = {0};
	unsigned char seen[64] = {0};
	struct order_list list = {0};
	enum order_kept kept;
	struct order o;
	char why[256];

	order_of_dataset(&o, d->workload, d, DATASET_TRAIN, ranks, batch, 123, 1);
	assert_ptr_equal(o.counts, c);
	if (order_file_sums(d->workload, c)) {
		assert_int_equal(order_list_init_files(&list, c, NULL), 0);
		order_list_fill(&list, d->workload, false, 123, 1);
		o.list = &list;
	}
	for (uint32_t r = 0; r < ranks; r++) {
		for (uint64_t k = 0; k < order_steps(&o) * batch; k++) {
			uint64_t s = order_at(&o, r, k), file = s / c->stride;

			assert_true(file < c->files);
			assert_true(s % c->stride < samples_in_file(c, file, 0));
			assert_int_equal(seen[s]++, 0);
			order_proof_add(&delivered, s);
		}
		order_proof_undelivered(&undelivered, &o, r, order_steps(&o));
	}
	assert_int_equal(order_proof_check(&o, &delivered, &undelivered, why, sizeof(why)),
			 ORDER_KEPT);
	assert_int_equal(order_prove(&o, order_steps(&o), &delivered, 2, NULL, &kept, why,
				     sizeof(why), NULL),
			 0);
	assert_int_equal(kept, ORDER_KEPT);
	order_list_release(&list);
}

static void files_of_unequal_length(void **state)
{
	static uint64_t first[] = {0, 5, 5, 8, 17, 18};
	struct listed_files l = {.stride = 9};
	struct listed_kind *kind = &l.kind[DATASET_TRAIN];

	(void)state;
	kind->files = 5;
	kind->samples = 18;
	kind->differ = true;
	kind->counts = (struct sample_counts){5, 9, first};
	for (int shuffle = 0; shuffle < 4; shuffle++) {
		struct workload w = shuffled(shuffle & 1 ? SHUFFLE_SEED : SHUFFLE_OFF,
					     shuffle & 2 ? SHUFFLE_SEED : SHUFFLE_OFF, 9);
		struct dataset d = {.workload = &w, .listed = &l, .samples_per_file = 9};

		check_unequal(&d, 1, 1);
		check_unequal(&d, 2, 4);
		check_unequal(&d, 3, 3);
		w.reader.order = ORDER_SHARDED;
		check_unequal(&d, 2, 3);
		w.reader.order = ORDER_DISTRIBUTED;
		w.reader.sample_shuffle = SHUFFLE_OFF;
		check_unequal(&d, 3, 2);
	}
}

/* A worker's files from their beginning to their end, whatever they have. */
static void streams_of_unequal_length(void **state)
{
	static uint64_t first[] = {0, 5, 5, 8, 17, 18};
	const struct sample_counts counts = {5, 9, first};
	const struct shard_rules r = {.files = 5,
				      .samples_per_file = 9,
				      .batch = 2,
				      .counts = &counts,
				      .ranks = 2,
				      .workers = 2,
				      .file_buffer = 3,
				      .buffer = 4,
				      .seed = 1};
	unsigned char seen[64] = {0};
	uint64_t memory[64], sample, n = 0, batches = 0;
	struct shard_stream s;

	(void)state;
	assert_true(shard_stream_bytes(&r) <= sizeof(memory));
	for (uint32_t rank = 0; rank < 2; rank++)
		for (uint32_t worker = 0; worker < 2; worker++) {
			uint64_t own = 0;

			shard_stream_begin(&s, &r, rank, worker, memory);
			for (;;) {
				while (shard_stream_wants(&s, &sample))
					shard_stream_add(&s, sample);
				if (!shard_stream_take(&s, &sample))
					break;
				assert_true(sample % 9 < samples_in_file(&counts, sample / 9, 0));
				assert_int_equal(seen[sample]++, 0);
				own++;
			}
			n += own;
			batches += own / 2;
		}
	assert_int_equal(n, 18);
	assert_int_equal(shard_steps(&r, 0) + shard_steps(&r, 1), batches);
	/* files 0, 2, 4 of 9 samples; 1 and 3 of 9 */
	assert_int_equal(shard_steps_least(&r), 4);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(files_of_unequal_length),
		cmocka_unit_test(streams_of_unequal_length),
		cmocka_unit_test(test_iterative_order),
		cmocka_unit_test(every_sample_at_most_once),
		cmocka_unit_test(steps_and_blocks),
		cmocka_unit_test(a_broken_epoch_is_found),
		cmocka_unit_test(threads_prove_the_same),
		cmocka_unit_test(a_proof_can_be_stopped),
		cmocka_unit_test(epochs_and_seeds),
		cmocka_unit_test(rank_count_keeps_the_sequence),
		cmocka_unit_test(files_stay_whole),
		cmocka_unit_test(what_dlio_opened),
		cmocka_unit_test(the_maps_dlio_makes),
		cmocka_unit_test(dlio_cuts_several_samples_a_file),
		cmocka_unit_test(edges_of_dlio),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
