/* DALI's own readers against their rules: what is read in which order, how far ahead, what comes in
 * which batch. A store that watches stands over one in memory. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <pthread.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "count_allocations.h"
#include "dataset/generate.h"
#include "dataset/order_proof.h"
#include "dataset_fixture.h"
#include "loader/loader.h"
#include "store/store.h"

#define OPENS_MAX 4096
#define PATIENCE_S 20
#define NO_FILE UINT64_MAX

/* ---- a store that notes what is opened ---- */

static struct {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	unsigned opens, indexes; /* of samples, of index files */
	uint64_t opened[OPENS_MAX];
	uint64_t broken, hangs; /* files that cannot be opened; that wait for `release` */
	bool release, inside;
	unsigned reading, most; /* at once */
} seen = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

static void forget(void)
{
	pthread_mutex_lock(&seen.lock);
	seen.opens = seen.indexes = seen.most = 0;
	seen.broken = seen.hangs = NO_FILE;
	seen.release = seen.inside = false;
	pthread_mutex_unlock(&seen.lock);
}

static int watch_open(struct store *s, const char *path, unsigned how, struct blob *b,
		      struct err *e)
{
	const char *name = strstr(path, "img_");
	uint64_t file = name ? strtoull(name + 4, NULL, 10) : NO_FILE;
	bool broken;

	pthread_mutex_lock(&seen.lock);
	if (strstr(path, ".idx")) {
		seen.indexes++;
		assert_int_equal(seen.opens, 0);
		broken = false;
	} else {
		assert_true(seen.opens < OPENS_MAX);
		seen.opened[seen.opens++] = file;
		broken = file == seen.broken;
		seen.inside = file == seen.hangs;
		pthread_cond_broadcast(&seen.changed);
		while (file == seen.hangs && !seen.release)
			pthread_cond_wait(&seen.changed, &seen.lock);
	}
	pthread_mutex_unlock(&seen.lock);
	if (broken)
		return err_set(e, ERR_DATA, "the file is broken");
	return store_open(s->lower, path, how, store_blob_below(b), e);
}

static ssize_t watch_pread(struct blob *b, void *p, size_t n, uint64_t offset, struct err *e)
{
	ssize_t got;

	pthread_mutex_lock(&seen.lock);
	if (++seen.reading > seen.most)
		seen.most = seen.reading;
	pthread_mutex_unlock(&seen.lock);
	got = store_pread(store_blob_below(b), p, n, offset, e);
	pthread_mutex_lock(&seen.lock);
	seen.reading--;
	pthread_mutex_unlock(&seen.lock);
	return got;
}

static const struct store_ops watch_ops = {
	.is.name = "watch",
	.is.flags = STORE_IS_SHIM,
	.blob_bytes = sizeof(struct blob),
	.open = watch_open,
	.pread = watch_pread,
};

struct rig {
	struct workload w;
	struct dataset d;
	struct store watch, *below;
	struct stop_flag stop;
	struct loader_config config;
	struct loader *loader;
	const struct loader_ops *ops;
};

static void rig_init(struct rig *r, const char *format, int64_t files, int64_t per_file,
		     uint64_t batch)
{
	struct generate_options g = {.threads = 1};
	struct err e;

	memset(r, 0, sizeof(*r));
	r->w = fixture_workload(format, "/data", files, 0);
	r->w.dataset.num_samples_per_file = per_file;
	r->w.reader.data_loader = (char *)(uintptr_t) "native_dali";
	r->w.reader.order = ORDER_SHARDED;
	r->w.reader.dont_use_mmap = true;
	r->w.reader.read_threads = 2;
	r->w.reader.shuffle_size = 1;
	r->w.reader.decode = DECODE_VERIFY;
	r->w.train.seed = 5;
	r->w.train.seed_change_epoch = true;
	fixture_dataset(&r->d, &r->w);
	r->below = fixture_store("memory", NULL);
	if (dataset_generate(&r->d, r->below, &g, &e) < 0)
		fail_msg("%s", e.text);
	r->watch = (struct store){.ops = &watch_ops, .lower = r->below};
	r->ops = loader_find("native_dali");
	r->config = (struct loader_config){
		.workload = &r->w,
		.dataset = &r->d,
		.kind = DATASET_TRAIN,
		.store = &r->watch,
		.batch_size = batch,
		.stop = &r->stop,
	};
	forget();
}

static void rig_create(struct rig *r)
{
	struct err e;

	if (r->ops->create(&r->loader, &r->config, &e) < 0)
		fail_msg("%s", e.text);
}

static void rig_release(struct rig *r)
{
	assert_int_equal(r->ops->destroy(r->loader), 0);
	dataset_release(&r->d);
	store_destroy(r->below);
}

static void rig_start(struct rig *r, struct order *o, uint32_t ranks, uint64_t epoch)
{
	struct err e;

	order_init(o, &r->w, dataset_samples(&r->d, DATASET_TRAIN), ranks, r->config.batch_size,
		   (uint64_t)r->w.train.seed, epoch);
	forget();
	if (r->ops->start(r->loader, o, UINT64_MAX, &e) < 0)
		fail_msg("%s", e.text);
}

static void rig_finish(struct rig *r)
{
	struct err e;

	if (r->ops->finish(r->loader, &e) < 0)
		fail_msg("%s", e.text);
}

/* ---- the rules ---- */

/* A shard through the shuffle buffer; the picks are libstdc++'s, which test_order_frameworks holds
 * against libstdc++. */
static void hand_out(uint64_t first, uint64_t count, uint64_t fill, uint32_t seed, uint64_t *out)
{
	uint64_t buffer[256], have = 0, next = first, end = first + count;
	uint32_t engine = order_stream_seed(seed);

	while (have < fill && next < end)
		buffer[have++] = next++;
	for (uint64_t n = 0; n < count; n++) {
		uint32_t pick = order_stream_draw(&engine, (uint32_t)have);

		out[n] = buffer[pick];
		buffer[pick] = buffer[0];
		memmove(buffer, buffer + 1, (size_t)--have * sizeof(*buffer));
		if (next < end)
			buffer[have++] = next++;
	}
}

static uint64_t least(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* So many files were opened, and no more come. */
static void await_opens(uint64_t want)
{
	struct timespec until;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += PATIENCE_S;
	pthread_mutex_lock(&seen.lock);
	while (seen.opens < want)
		if (pthread_cond_timedwait(&seen.changed, &seen.lock, &until) != 0) {
			pthread_mutex_unlock(&seen.lock);
			fail_msg("%u of %llu samples were read", seen.opens,
				 (unsigned long long)want);
		}
	pthread_mutex_unlock(&seen.lock);
	usleep(2000);
	pthread_mutex_lock(&seen.lock);
	if (seen.opens != want) {
		pthread_mutex_unlock(&seen.lock);
		fail_msg("%u samples were read instead of %llu", seen.opens,
			 (unsigned long long)want);
	}
	pthread_mutex_unlock(&seen.lock);
}

struct rule {
	int64_t threads, prefetch, fill;
	uint32_t ranks, rank;
};

static void check_epoch(struct rig *r, const struct rule *c, uint64_t epoch)
{
	uint64_t n = dataset_samples(&r->d, DATASET_TRAIN), out[256], batch = r->config.batch_size;
	uint64_t shard = (c->rank + epoch - 1) % c->ranks;
	uint64_t first = n * shard / c->ranks, count = n * (shard + 1) / c->ranks - first;
	uint64_t steps = n / c->ranks / batch, ring = c->prefetch > 1 ? (uint64_t)c->prefetch : 1;
	struct order o;
	struct batch *b;
	struct err e;

	hand_out(first, count, (uint64_t)c->fill, (uint32_t)(5 + epoch - 1), out);
	rig_start(r, &o, c->ranks, epoch);
	for (uint64_t k = 0; k <= steps; k++) {
		/* filled: those processed, and the ring; one more sample for each handed out */
		uint64_t groups = least(steps, k + (c->threads ? 2 : 0) + ring);
		struct order_proof want = {0};

		await_opens(least(count, (uint64_t)c->fill + groups * batch));
		if (k == steps)
			break;
		assert_int_equal(r->ops->next(r->loader, &b, &e), 1);
		assert_int_equal(b->index, k);
		assert_int_equal(b->samples, batch);
		assert_int_equal(b->payload_bytes, batch * 4096);
		for (uint64_t i = 0; i < batch; i++)
			order_proof_add(&want, out[k * batch + i]);
		assert_memory_equal(&want, &b->proof, sizeof(want));
		r->ops->give_back(r->loader, b);
	}
	assert_int_equal(r->ops->next(r->loader, &b, &e), 0);
	rig_finish(r);
	for (unsigned i = 0; i < seen.opens; i++)
		assert_int_equal(seen.opened[i], first + i);
	assert_int_equal(seen.most, 1);
}

static void test_policy(void **state)
{
	static const struct rule rules[] = {
		{2, 0, 1, 1, 0}, {2, 1, 1, 2, 1}, {2, 3, 1, 1, 0},  {0, 2, 1, 1, 0},
		{0, 0, 4, 1, 0}, {3, 1, 4, 3, 2}, {1, 2, 10, 2, 0}, {2, 2, 100, 1, 0},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rules) / sizeof(rules[0]); i++) {
		struct rig r;
		uint64_t batches;
		uint32_t workers;

		rig_init(&r, "npy", 31, 1, 3);
		r.w.reader.read_threads = rules[i].threads;
		r.w.reader.prefetch_size = rules[i].prefetch;
		r.w.reader.shuffle_size = rules[i].fill;
		r.w.reader.sample_shuffle = rules[i].fill > 1 ? SHUFFLE_SEED : SHUFFLE_OFF;
		r.config.rank = rules[i].rank;
		rig_create(&r);
		r.ops->window(&r.w, &workers, &batches);
		assert_int_equal(workers, 1 + (rules[i].threads ? rules[i].threads : 1));
		assert_int_equal(batches, (rules[i].prefetch ? rules[i].prefetch : 1) +
						  (rules[i].threads ? 2 : 0));
		for (uint64_t epoch = 1; epoch <= 3; epoch++)
			check_epoch(&r, &rules[i], epoch);
		rig_release(&r);
	}
}

/* Both the index files and each file of the shard once; records of a file through one descriptor.
 */
static void test_tfrecord(void **state)
{
	struct order o;
	struct batch *b;
	struct err e;
	struct rig r;

	(void)state;
	rig_init(&r, "tfrecord", 6, 4, 5);
	r.config.rank = 1;
	rig_create(&r);
	for (uint64_t epoch = 1; epoch <= 2; epoch++) {
		/* samples 12..23, of files 3, 4, 5; then 0..11, of 0, 1, 2 */
		uint64_t file = epoch == 1 ? 3 : 0;

		rig_start(&r, &o, 2, epoch);
		for (int k = 0; k < 2; k++) {
			assert_int_equal(r.ops->next(r.loader, &b, &e), 1);
			r.ops->give_back(r.loader, b);
		}
		assert_int_equal(r.ops->next(r.loader, &b, &e), 0);
		rig_finish(&r);
		assert_int_equal(seen.indexes, epoch == 1 ? 6 : 0);
		assert_int_equal(seen.opens, 3);
		for (uint64_t i = 0; i < 3; i++)
			assert_int_equal(seen.opened[i], file + i);
	}
	rig_release(&r);
}

static void test_index_must_agree(void **state)
{
	static const char *const wrong[] = {"0 1\n", "0 4200\nx\n", "", "0 99999999999999999999 1"};
	struct order o;
	struct batch *b;
	struct err e;
	struct rig r;

	(void)state;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		rig_init(&r, "tfrecord", 2, 2, 1);
		fixture_put(r.below, "/data/index/train/img_0_of_2.tfrecord.idx", wrong[i],
			    strlen(wrong[i]));
		rig_create(&r);
		rig_start(&r, &o, 1, 1);
		for (int k = 0; k < 4; k++) {
			assert_int_equal(r.ops->next(r.loader, &b, &e), ERR_DATA);
			assert_non_null(strstr(e.text, "the index '/data/index/train/"));
		}
		rig_finish(&r);
		rig_release(&r);
	}
}

static void test_failure_in_its_turn(void **state)
{
	struct order o;
	struct batch *b;
	struct err e;
	struct rig r;

	(void)state;
	rig_init(&r, "npy", 12, 1, 2);
	rig_create(&r);
	rig_start(&r, &o, 1, 1);
	rig_finish(&r);
	for (int64_t threads = 0; threads < 2; threads++) {
		rig_start(&r, &o, 1, 1);
		rig_finish(&r);
		forget();
		seen.broken = 7;
		assert_int_equal(r.ops->start(r.loader, &o, 6, &e), 0);
		for (uint64_t k = 0; k < 6; k++) {
			int rc = r.ops->next(r.loader, &b, &e);

			assert_int_equal(rc, k == 3 ? ERR_DATA : 1);
			if (rc == 1)
				r.ops->give_back(r.loader, b);
			else
				assert_non_null(strstr(e.text, "sample 7, '/data/train/img_07"));
		}
		rig_finish(&r);
	}
	rig_release(&r);
}

static void test_damaged_file(void **state)
{
	static const char junk[] = "\x93NUMPY\x01\x00\x76\x00{'descr'";
	struct order o;
	struct batch *b;
	struct err e;
	struct rig r;

	(void)state;
	for (size_t n = 0; n < sizeof(junk); n++) {
		rig_init(&r, "npy", 2, 1, 1);
		fixture_put(r.below, "/data/train/img_0_of_2.npy", junk, n);
		rig_create(&r);
		rig_start(&r, &o, 1, 1);
		assert_int_equal(r.ops->next(r.loader, &b, &e), ERR_DATA);
		assert_int_equal(r.ops->next(r.loader, &b, &e), 1);
		r.ops->give_back(r.loader, b);
		rig_finish(&r);
		rig_release(&r);
	}
}

/* A wrong byte of a sample is found, whichever way the sample came. */
static void test_verify(void **state)
{
	static const char *const formats[] = {"npy", "tfrecord", "png"};

	(void)state;
	for (int i = 0; i < 6; i++) {
		const char *format = formats[i / 2];
		char path[64];
		unsigned char *bytes;
		struct order o;
		struct batch *b;
		struct err e;
		struct rig r;
		size_t n = 0;

		rig_init(&r, format, 3, 1, 1);
		snprintf(path, sizeof(path), "/data/train/img_1_of_3.%s", format);
		bytes = (unsigned char *)fixture_get(r.below, path, &n);
		bytes[n / 2] ^= 1;
		fixture_put(r.below, path, bytes, n);
		free(bytes);
		r.w.reader.access = i % 2 ? ACCESS_NATIVE : ACCESS_FRAMEWORK;
		rig_create(&r);
		rig_start(&r, &o, 1, 1);
		for (int k = 0; k < 3; k++) {
			int rc = r.ops->next(r.loader, &b, &e);

			assert_int_equal(rc, k == 1 ? ERR_DATA : 1);
			if (rc == 1)
				r.ops->give_back(r.loader, b);
			else
				assert_non_null(strstr(e.text, path));
		}
		rig_finish(&r);
		rig_release(&r);
	}
}

/* Epochs that are not read to their end, whatever is under way. */
static void test_early_end(void **state)
{
	struct order o;
	struct batch *b;
	struct err e;
	struct rig r;

	(void)state;
	rig_init(&r, "npy", 40, 1, 2);
	r.w.reader.sample_shuffle = SHUFFLE_SEED;
	r.w.reader.shuffle_size = 7;
	rig_create(&r);
	for (uint64_t epoch = 1; epoch <= 30; epoch++) {
		rig_start(&r, &o, 1, epoch);
		for (uint64_t k = 0; k < epoch % 5; k++) {
			assert_int_equal(r.ops->next(r.loader, &b, &e), 1);
			r.ops->give_back(r.loader, b);
		}
		rig_finish(&r);
	}
	rig_start(&r, &o, 1, 1); /* destroyed within an epoch */
	rig_release(&r);
}

static void *wake_main(void *arg)
{
	struct rig *r = arg;
	char text[512];

	pthread_mutex_lock(&seen.lock);
	while (!seen.inside)
		pthread_cond_wait(&seen.changed, &seen.lock);
	pthread_mutex_unlock(&seen.lock);
	r->ops->describe(r->loader, text, sizeof(text));
	r->stop.set = 1;
	r->ops->wake(r->loader);
	return strstr(text, "the reader thread has been at sample 3 ('/data/train/img_3") ? NULL
											  : r;
}

static void test_wake_of_a_hung_read(void **state)
{
	static struct rig r; /* the thread left behind uses it */
	char text[512] = "";
	pthread_t thread;
	struct order o;
	struct batch *b;
	struct err e;
	void *wrong;
	int rc = 1;

	(void)state;
	rig_init(&r, "npy", 8, 1, 2);
	r.config.grace_ns = NS_PER_S / 20;
	rig_create(&r);
	order_init(&o, &r.w, 8, 1, 2, 5, 1);
	seen.hangs = 3;
	assert_int_equal(r.ops->start(r.loader, &o, 4, &e), 0);
	pthread_create(&thread, NULL, wake_main, &r);
	while (rc == 1) {
		rc = r.ops->next(r.loader, &b, &e);
		if (rc == 1)
			r.ops->give_back(r.loader, b);
	}
	assert_int_equal(rc, ERR_CANCELED);
	pthread_join(thread, &wrong);
	assert_null(wrong);
	assert_int_equal(r.ops->finish(r.loader, &e), -ETIMEDOUT);
	assert_non_null(strstr(e.text, "gave up on 1 hung thread; the reader thread"));
	assert_int_equal(r.ops->destroy(r.loader), 1);
	pthread_mutex_lock(&seen.lock);
	seen.release = true;
	pthread_cond_broadcast(&seen.changed);
	pthread_mutex_unlock(&seen.lock);
	for (int i = 0; i < PATIENCE_S * 1000 && !strstr(text, "all its threads"); i++) {
		r.ops->describe(r.loader, text, sizeof(text));
		usleep(1000);
	}
	assert_non_null(strstr(text, "all its threads are idle"));
}

/* Memory is stated; once all threads of an epoch run nothing more is taken. */
static void test_no_allocation(void **state)
{
	(void)state;
	for (int i = 0; i < 4; i++) {
		uint64_t stated, before, count;
		struct order o;
		struct batch *b;
		struct err e;
		struct rig r;

		rig_init(&r, i & 1 ? "tfrecord" : "npy", 64, 1, 4);
		r.w.reader.decode = i & 2 ? DECODE_VERIFY : DECODE_FULL;
		r.w.reader.sample_shuffle = SHUFFLE_SEED;
		r.w.reader.shuffle_size = 10;
		assert_int_equal(r.ops->memory_bytes(&r.config, &stated, &e), 0);
		before = allocated_bytes;
		rig_create(&r);
		rig_start(&r, &o, 1, 1);
		assert_int_equal(r.ops->next(r.loader, &b, &e), 1);
		r.ops->give_back(r.loader, b);
		assert_true(allocated_bytes - before <= stated + 4096);
		/* the last thread may still be starting when the first batch is there */
		for (int k = 0; k < 7; k++) {
			assert_int_equal(r.ops->next(r.loader, &b, &e), 1);
			r.ops->give_back(r.loader, b);
		}
		count = allocations;
		while (r.ops->next(r.loader, &b, &e) == 1)
			r.ops->give_back(r.loader, b);
		assert_int_equal(allocations - count, 0);
		rig_finish(&r);
		rig_release(&r);
	}
}

static void refused(struct rig *r, const char *part)
{
	struct loader *l;
	struct err e;

	assert_int_equal(r->ops->create(&l, &r->config, &e), ERR_USAGE);
	if (!strstr(e.text, part))
		fail_msg("'%s' lacks '%s'", e.text, part);
}

static void test_refusals(void **state)
{
	uint64_t bytes, more;
	struct rig r;
	struct err e;

	(void)state;
	rig_init(&r, "npy", 2, 1, 1);
	assert_int_equal(r.ops->memory_bytes(&r.config, &bytes, &e), 0);
	r.w.reader.sample_shuffle = SHUFFLE_SEED;
	r.w.reader.shuffle_size = 100; /* but there are two samples */
	assert_int_equal(r.ops->memory_bytes(&r.config, &more, &e), 0);
	assert_true(more > bytes && more < 2 * bytes);
	r.w.reader.dont_use_mmap = false;
	refused(&r, "set reader.dont_use_mmap to true");
	r.w.reader.dont_use_mmap = true;
	r.config.batch_size = 0;
	refused(&r, "reader.batch_size is 0");
	dataset_release(&r.d);
	store_destroy(r.below);
	rig_init(&r, "npz", 2, 1, 1);
	refused(&r, "npy, png, jpeg and tfrecord");
	dataset_release(&r.d);
	store_destroy(r.below);
	rig_init(&r, "npy", 2, 3, 1);
	refused(&r, "for one sample");
	dataset_release(&r.d);
	store_destroy(r.below);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_policy),           cmocka_unit_test(test_tfrecord),
		cmocka_unit_test(test_index_must_agree), cmocka_unit_test(test_failure_in_its_turn),
		cmocka_unit_test(test_damaged_file),     cmocka_unit_test(test_verify),
		cmocka_unit_test(test_early_end),        cmocka_unit_test(test_wake_of_a_hung_read),
		cmocka_unit_test(test_no_allocation),    cmocka_unit_test(test_refusals),
	};

	count_allocations();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
