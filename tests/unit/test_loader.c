/* What a loader promises its rank beside the order of batches: errors in their turn, ends at any
 * moment, proofs, counters, memory and words for the watchdog. */
#include "loader_fake.h"

#include <sched.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/str.h"
#include "count_allocations.h"
#include "workload/time_draw.h"

/* ---- helpers ---- */

static int next_batch(struct rig *r, struct batch *out, struct err *e)
{
	struct loader *l = r->loader;
	struct batch *b;
	int rc = l->ops->next(l, &b, e);

	assert_true((rc == 1) == (b != NULL));
	if (rc == 1) {
		*out = *b;
		l->ops->give_back(l, b);
	}
	return rc;
}

static void start(struct rig *r, struct order *o, uint64_t epoch, uint64_t steps)
{
	struct err e = {0};

	rig_order(r, o, 1, epoch);
	if (r->loader->ops->start(r->loader, o, steps, &e) != 0)
		fail_msg("%s", e.text);
}

static void finish(struct rig *r)
{
	struct err e = {0};

	if (r->loader->ops->finish(r->loader, &e) != 0)
		fail_msg("%s", e.text);
}

static void destroy(struct rig *r)
{
	assert_int_equal(r->loader->ops->destroy(r->loader), 0);
	assert_int_equal(fake.readers_open, 0);
}

static void stop_and_wake(struct rig *r)
{
	atomic_store(&r->stop.set, 1);
	r->loader->ops->wake(r->loader);
}

static void describe(const struct rig *r, char *out, size_t n)
{
	r->loader->ops->describe(r->loader, out, n);
}

/* Waits until the loader's sentence has a part. */
static void await_words(const struct rig *r, const char *part)
{
	int64_t deadline = clock_now_ns() + PATIENCE_S * NS_PER_S;
	char text[2048];

	do {
		describe(r, text, sizeof(text));
		if (strstr(text, part))
			return;
		usleep(200);
	} while (clock_now_ns() < deadline);
	fail_msg("'%s' is not in '%s'", part, text);
}

struct waiter {
	struct rig *rig;
	struct batch batch;
	struct err err;
	int rc;
	int64_t done_ns;
	pthread_t thread;
};

static void *wait_main(void *arg)
{
	struct waiter *w = arg;

	w->rc = next_batch(w->rig, &w->batch, &w->err);
	w->done_ns = clock_now_ns();
	return NULL;
}

static void wait_begin(struct waiter *w, struct rig *r)
{
	*w = (struct waiter){.rig = r};
	pthread_create(&w->thread, NULL, wait_main, w);
}

/* ---- tests ---- */

static void test_find(void **state)
{
	(void)state;
	assert_non_null(loader_find("pytorch"));
	assert_null(loader_find("pytorc"));
	assert_int_equal(loader_find("pytorch")->destroy(NULL), 0);
}

/* The workload's and the dataset's words to the format. */
static void test_settings(void **state)
{
	const struct reader_config *told = &fake.told;
	struct rig r;

	(void)state;
	fake_reset(1, true);
	rig_init(&r, 1, 0, 20, 4, 1);
	rig_create(&r);
	assert_true(told->access == ACCESS_FRAMEWORK && told->decode == DECODE_FULL);
	assert_false(told->keep_open);
	assert_int_equal(told->python, 311);
	assert_int_equal(told->buffer_bytes, 0);
	assert_int_equal(told->block_bytes, 12288);
	assert_int_equal(told->max_sample_bytes, PAYLOAD);
	assert_int_equal(told->max_file_bytes, 4 * PAYLOAD);
	assert_int_equal(told->samples_per_file, 4);
	assert_int_equal(told->files, 5);
	assert_ptr_equal(told->content, &r.dataset.content);
	assert_ptr_equal(fake.io->stop, &r.stop);
	destroy(&r);
	r.workload.reader.access = ACCESS_NATIVE;
	r.workload.reader.decode = DECODE_VERIFY;
	r.workload.reader.read_type = READ_MEMORY;
	r.workload.reader.python = 1;
	r.workload.reader.buffer_size = 65536;
	rig_create(&r);
	assert_true(told->access == ACCESS_NATIVE && told->decode == DECODE_VERIFY);
	assert_true(told->keep_open);
	assert_int_equal(told->python, 314);
	assert_int_equal(told->buffer_bytes, 65536);
	destroy(&r);
}

static void expect_window(int64_t threads, int64_t prefetch, uint32_t workers, uint64_t batches)
{
	struct workload w = {.reader = {.read_threads = threads, .prefetch_size = prefetch}};
	uint32_t got_workers;
	uint64_t got_batches;

	loader_find("pytorch")->window(&w, &got_workers, &got_batches);
	assert_int_equal(got_workers, workers);
	assert_int_equal(got_batches, batches);
}

static void test_window(void **state)
{
	(void)state;
	expect_window(0, 8, 0, 0);
	expect_window(4, 0, 4, 8);
	expect_window(4, 1, 4, 4);
	expect_window(4, 9, 4, 12);
}

static void epochs_are_complete(uint32_t workers, bool in_order, bool persistent)
{
	enum { RANKS = 3, FILES = 26, PER_FILE = 4, BATCH = 5 };
	struct rig r[RANKS];
	struct order o;
	char why[256];

	fake_reset(workers, true);
	for (uint32_t i = 0; i < RANKS; i++) {
		rig_init(&r[i], workers, 0, FILES * PER_FILE, PER_FILE, BATCH);
		r[i].config.rank = i;
		r[i].workload.reader.in_order = in_order;
		r[i].workload.reader.persistent_workers = persistent;
		rig_create(&r[i]);
	}
	for (uint64_t epoch = 1; epoch <= 2; epoch++) {
		struct order_proof delivered = {0}, undelivered = {0};
		uint64_t asked = epoch == 1 ? 100 : 3, done = 0;

		for (uint32_t i = 0; i < RANKS; i++) {
			struct batch b;
			struct err e;

			rig_order(&r[i], &o, RANKS, epoch);
			assert_int_equal(r[i].loader->ops->start(r[i].loader, &o, asked, &e), 0);
			for (done = 0; next_batch(&r[i], &b, &e) == 1; done++)
				order_proof_merge(&delivered, &b.proof);
			finish(&r[i]);
			assert_int_equal(done, epoch == 1 ? order_steps(&o) : asked);
			order_proof_undelivered(&undelivered, &o, i, done);
		}
		assert_int_equal(order_proof_check(&o, &delivered, &undelivered, why, sizeof(why)),
				 ORDER_KEPT);
	}
	for (uint32_t i = 0; i < RANKS; i++)
		r[i].loader->ops->destroy(r[i].loader);
}

static void test_each_sample_once(void **state)
{
	static const uint32_t workers[] = {0, 1, 3, 8};

	(void)state;
	for (unsigned w = 0; w < 4; w++)
		for (unsigned mode = 0; mode < 4; mode++)
			epochs_are_complete(workers[w], mode & 1, mode & 2);
}

static void test_head_of_line(void **state)
{
	struct rig r;
	struct order o;
	struct waiter w;
	struct batch b;
	struct err e;
	char path[64];

	(void)state;
	fake_reset(2, false);
	rig_init(&r, 2, 4, 12, 1, 1);
	r.config.rank = 3;
	rig_create(&r);
	rig_order(&r, &o, 4, 1);
	assert_int_equal(r.loader->ops->start(r.loader, &o, 3, &e), 0);
	fake_await_inside(0, order_at(&o, 3, 0));
	await_words(&r, "rank 3 does not wait for its loader; worker ");
	wait_begin(&w, &r);
	fake_await_inside(1, order_at(&o, 3, 1));
	fake_pass(1);
	await_words(&r, "1 of 2 workers idle");
	await_words(&r, "rank 3 waits for batch 1 of 3 of epoch 1 for ");
	snprintf(path, sizeof(path),
		 "; worker 0 has been reading sample %llu ('/nowhere/data/train/",
		 (unsigned long long)order_at(&o, 3, 0));
	await_words(&r, path);
	assert_int_equal(fake.done, 1);
	fake_pass(0);
	pthread_join(w.thread, NULL);
	assert_int_equal(w.rc, 1);
	assert_int_equal(w.batch.index, 0);
	/* Batch 1 came early and is there at once, although batch 2 is at the gate. */
	fake_await_inside(0, order_at(&o, 3, 2));
	assert_int_equal(next_batch(&r, &b, &e), 1);
	assert_int_equal(b.index, 1);
	fake_pass(0);
	assert_int_equal(next_batch(&r, &b, &e), 1);
	assert_int_equal(next_batch(&r, &b, &e), 0);
	assert_int_equal(next_batch(&r, &b, &e), 0);
	finish(&r);
	destroy(&r);
}

static void failure_in_turn(uint32_t workers, bool in_order)
{
	enum { STEPS = 9, BAD = 4, BATCH = 2 };
	struct rig r;
	struct order o;
	struct batch b;
	struct err e;
	char words[128];
	int failures = 0;

	fake_reset(workers, true);
	rig_init(&r, workers, 0, STEPS * BATCH, 1, BATCH);
	r.workload.reader.in_order = in_order;
	r.config.rank = 0;
	rig_order(&r, &o, 1, 1);
	fake.fail_sample = order_at(&o, 0, BAD * BATCH);
	rig_create(&r);
	start(&r, &o, 1, STEPS);
	for (int k = 0; k < STEPS; k++) {
		int rc = next_batch(&r, &b, &e);

		if (rc == 1) {
			assert_true(!in_order || b.index == (uint64_t)k);
			assert_true(b.index != BAD);
			continue;
		}
		failures++;
		assert_true(!in_order || k == BAD);
		assert_int_equal(rc, ERR_DATA);
		assert_int_equal(e.code, ERR_DATA);
		snprintf(words, sizeof(words),
			 "rank 0, worker %u, sample %llu: '/nowhere/data/train/",
			 in_order && workers ? BAD % workers : 0,
			 (unsigned long long)fake.fail_sample);
		if (in_order)
			assert_true(str_starts(e.text, words));
		assert_true(str_ends(e.text, "' is broken"));
	}
	assert_int_equal(failures, 1);
	assert_int_equal(fake.done, STEPS * BATCH - 1); /* the rest of its batch is left out */
	assert_int_equal(next_batch(&r, &b, &e), 0);
	finish(&r);
	destroy(&r);
}

static void test_failure_in_turn(void **state)
{
	(void)state;
	failure_in_turn(0, true);
	failure_in_turn(1, true);
	failure_in_turn(3, true);
	failure_in_turn(3, false);
}

/* A rank that gives up at the failure ends its epoch at once; no batch is lost by that. */
static void test_end_after_failure(void **state)
{
	struct rig r;
	struct order o;
	struct batch b;
	struct err e;

	(void)state;
	for (int persistent = 0; persistent < 2; persistent++) {
		int64_t mapped = mapped_bytes;

		fake_reset(2, true);
		rig_init(&r, 2, 4, 40, 1, 1);
		r.workload.reader.persistent_workers = persistent;
		rig_create(&r);
		for (uint64_t epoch = 1; epoch <= 20; epoch++) {
			rig_order(&r, &o, 1, epoch);
			fake.fail_sample = order_at(&o, 0, 1);
			start(&r, &o, epoch, 40);
			assert_int_equal(next_batch(&r, &b, &e), 1);
			assert_int_equal(next_batch(&r, &b, &e), ERR_DATA);
			finish(&r);
			assert_true(fake.done <= 6 * epoch);
		}
		fake.fail_sample = NO_SAMPLE;
		start(&r, &o, 2, 40);
		for (int k = 0; k < 40; k++)
			assert_int_equal(next_batch(&r, &b, &e), 1);
		destroy(&r); /* without finish */
		assert_int_equal(mapped_bytes, mapped);
	}
}

static void test_early_end(void **state)
{
	struct rig r;
	struct order o;
	struct batch b;
	struct err e;
	const struct worker_stat *s;
	uint32_t n;

	(void)state;
	fake_reset(2, false);
	rig_init(&r, 2, 8, 40, 1, 4);
	rig_create(&r);
	start(&r, &o, 1, 10);
	for (uint32_t w = 0; w < 2; w++)
		fake_await_inside(w, order_at(&o, 0, 4 * w));
	fake_gate(true);
	finish(&r);
	finish(&r);
	assert_int_equal(fake.begun, fake.done);
	assert_int_equal(next_batch(&r, &b, &e), -EINVAL);
	s = r.loader->ops->stats(r.loader, &n);
	assert_int_equal(n, 2);
	assert_int_equal(s[0].samples + s[1].samples, fake.done);
	assert_int_equal(s[0].io->kind[IO_DATA].requests + s[1].io->kind[IO_DATA].requests,
			 fake.done);
	destroy(&r);
}

static void test_stats(void **state)
{
	struct rig r;
	struct order o;
	struct batch b;
	struct err e;
	uint32_t n;

	(void)state;
	for (uint32_t workers = 0; workers < 3; workers += 2) {
		uint64_t samples = 0, bytes = 0, batches = 0;
		int64_t read_ns = 0, preprocess_ns = 0;

		fake_reset(workers, true);
		rig_init(&r, workers, 0, 12, 1, 2);
		r.workload.reader.persistent_workers = false;
		r.workload.reader.preprocess_time = (struct time_dist){TIME_CONSTANT, -0.002, 0};
		rig_create(&r);
		for (uint64_t epoch = 1; epoch <= 2; epoch++) {
			start(&r, &o, epoch, 6);
			while (next_batch(&r, &b, &e) == 1)
				assert_true(b.done_ns - b.begun_ns >= 2 * 2000000);
			finish(&r);
		}
		const struct worker_stat *s = r.loader->ops->stats(r.loader, &n);

		assert_int_equal(n, workers ? workers : 1);
		for (uint32_t i = 0; i < n; i++) {
			samples += s[i].samples;
			bytes += s[i].payload_bytes;
			batches += s[i].batches;
			read_ns += s[i].read_ns;
			preprocess_ns += s[i].preprocess_ns;
		}
		assert_int_equal(samples, 24);
		assert_int_equal(bytes, 24 * PAYLOAD);
		assert_int_equal(batches, 12);
		assert_true(read_ns > 0 && preprocess_ns >= 24 * 2000000);
		assert_true(r.progress_ns > 0 && r.progress_ns <= clock_now_ns());
		destroy(&r);
	}
}

/* Preprocess delays are draws of the worker's own stream, so they are the same in each run. */
static void test_preprocess_stream(void **state)
{
	struct time_dist delay = {TIME_UNIFORM, 0.005, 0.02};
	struct rig r;
	struct order o;
	struct batch b;
	struct err e;
	uint32_t n;

	(void)state;
	for (uint32_t rank = 0; rank < 3; rank++) {
		int64_t want = 0, got;
		struct rng_np rng;

		fake_reset(1, true);
		rig_init(&r, 1, 0, 12, 1, 1);
		r.workload.reader.preprocess_time = delay;
		r.config.rank = rank;
		rig_create(&r);
		rig_order(&r, &o, 3, 1);
		assert_int_equal(r.loader->ops->start(r.loader, &o, 4, &e), 0);
		while (next_batch(&r, &b, &e) == 1)
			;
		finish(&r);
		got = r.loader->ops->stats(r.loader, &n)->preprocess_ns;
		rng_np_seed(&rng, (uint32_t)rng_word(rng_key(123, DATASET_TRAIN, rank), 0));
		for (int i = 0; i < 4; i++)
			want += time_draw_ns(&delay, &rng);
		assert_true(got >= want);
		destroy(&r);
	}
}

static void test_steps(void **state)
{
	struct rig r;
	struct order o;
	struct batch b;
	struct err e;

	(void)state;
	for (uint32_t workers = 0; workers < 4; workers += 3) {
		fake_reset(workers, true);
		rig_init(&r, workers, 0, 30, 1, 1);
		rig_create(&r);
		start(&r, &o, 1, 0);
		assert_int_equal(next_batch(&r, &b, &e), 0);
		finish(&r);
		assert_int_equal(fake.begun, 0);
		start(&r, &o, 2, 5);
		for (int k = 0; k < 5; k++)
			assert_int_equal(next_batch(&r, &b, &e), 1);
		assert_int_equal(next_batch(&r, &b, &e), 0);
		finish(&r);
		assert_int_equal(fake.done, 5); /* nothing beyond the steps is read */
		destroy(&r);
	}
}

static void test_held_batches(void **state)
{
	struct rig r;
	struct order o;
	struct batch *b[LOADER_HELD_MAX + 1];
	struct err e;

	(void)state;
	for (uint32_t workers = 0; workers < 2; workers++) {
		fake_reset(workers, true);
		rig_init(&r, workers, 0, 20, 1, 1);
		rig_create(&r);
		assert_int_equal(r.loader->ops->next(r.loader, &b[0], &e), -EINVAL);
		start(&r, &o, 1, 20);
		assert_int_equal(r.loader->ops->start(r.loader, &o, 20, &e), -EINVAL);
		for (int round = 0; round < 4; round++) {
			for (int i = 0; i < LOADER_HELD_MAX; i++) {
				assert_int_equal(r.loader->ops->next(r.loader, &b[i], &e), 1);
				assert_int_equal(b[i]->index, round * LOADER_HELD_MAX + i);
			}
			assert_int_equal(r.loader->ops->next(r.loader, &b[LOADER_HELD_MAX], &e),
					 -EINVAL);
			for (int i = 0; i < LOADER_HELD_MAX; i++)
				r.loader->ops->give_back(r.loader, b[i]);
		}
		finish(&r);
		o.batch = 7;
		assert_int_equal(r.loader->ops->start(r.loader, &o, 20, &e), -EINVAL);
		destroy(&r);
	}
}

static void test_create_refuses(void **state)
{
	struct rig r;
	struct err e;
	uint64_t bytes;

	(void)state;
	fake_reset(3, true);
	rig_init(&r, 3, 0, 20, 1, 1);
	fake.fail_reader = 2;
	assert_int_equal(loader_find("pytorch")->create(&r.loader, &r.config, &e), -ENOMEM);
	assert_string_equal(e.text, "rank 0, worker 1: fake: no reader");
	assert_int_equal(fake.readers_open, 0);
	fake.fail_reader = 0;
	r.config.batch_size = 0;
	assert_int_equal(loader_find("pytorch")->create(&r.loader, &r.config, &e), ERR_USAGE);
	r.config.batch_size = 1ull << 32;
	assert_int_equal(loader_find("pytorch")->create(&r.loader, &r.config, &e), ERR_USAGE);
	r.config.batch_size = 1;
	r.workload.reader.read_threads = -1;
	assert_int_equal(loader_find("pytorch")->create(&r.loader, &r.config, &e), ERR_USAGE);
	r.workload.reader.read_threads = 3;
	r.workload.reader.prefetch_size = INT64_MAX;
	assert_int_equal(loader_find("pytorch")->create(&r.loader, &r.config, &e), ERR_USAGE);
	assert_int_equal(loader_find("pytorch")->memory_bytes(&r.config, &bytes, &e), ERR_USAGE);
	r.workload.reader.prefetch_size = 0;
	fake.reader_bytes = 0;
	assert_int_equal(loader_find("pytorch")->memory_bytes(&r.config, &bytes, &e), -ENOMEM);
	assert_int_equal(loader_find("pytorch")->create(&r.loader, &r.config, &e), -ENOMEM);
	fake.reader_bytes = SIZE_MAX / 2;
	assert_int_equal(loader_find("pytorch")->memory_bytes(&r.config, &bytes, &e), -ENOMEM);
	assert_int_equal(loader_find("pytorch")->create(&r.loader, &r.config, &e), -ENOMEM);
}

/* Stop while the rank waits and reads are blocked: the rank is free at once, the workers when their
 * read returns. */
static void test_stop_while_blocked(void **state)
{
	int64_t quickest = INT64_MAX;
	struct rig r;
	struct order o;
	struct waiter w;
	struct batch b;
	struct err e;

	(void)state;
	for (int way = 0; way < 4; way++) {
		int64_t begin;

		fake_reset(2, false);
		rig_init(&r, 2, 0, 20, 1, 1);
		r.workload.reader.persistent_workers = way != 2;
		rig_create(&r);
		start(&r, &o, 1, 20);
		fake_await_inside(0, order_at(&o, 0, 0));
		fake_await_inside(1, order_at(&o, 0, 1));
		wait_begin(&w, &r);
		await_words(&r, "waits for batch 1 ");
		begin = clock_now_ns();
		if (way == 1)
			atomic_store(&r.stop.set, 1); /* without wake: noticed by itself */
		else
			stop_and_wake(&r);
		pthread_join(w.thread, NULL);
		assert_int_equal(w.rc, ERR_CANCELED);
		if (way != 1 && w.done_ns - begin < quickest)
			quickest = w.done_ns - begin;
		assert_int_equal(next_batch(&r, &b, &e), ERR_CANCELED);
		fake_gate(true);
		finish(&r);
		assert_int_equal(fake.done, 2);
		assert_int_equal(r.loader->ops->start(r.loader, &o, 20, &e), ERR_CANCELED);
		destroy(&r);
	}
	assert_true(quickest < NS_PER_S / 2); /* by wake, not by looking up each second */
}

static void test_stop_between(void **state)
{
	struct rig r;
	struct order o;
	struct batch b;
	struct err e;

	(void)state;
	for (uint32_t workers = 0; workers < 3; workers++) {
		fake_reset(workers, true);
		rig_init(&r, workers, 0, 20, 1, 1);
		rig_create(&r);
		stop_and_wake(&r); /* before anything was started */
		rig_order(&r, &o, 1, 1);
		assert_int_equal(r.loader->ops->start(r.loader, &o, 20, &e), ERR_CANCELED);
		finish(&r);
		destroy(&r);

		fake_reset(workers, true);
		rig_init(&r, workers, 0, 20, 1, 1);
		rig_create(&r);
		start(&r, &o, 1, 20);
		assert_int_equal(next_batch(&r, &b, &e), 1);
		stop_and_wake(&r);
		assert_int_equal(next_batch(&r, &b, &e), ERR_CANCELED);
		destroy(&r);
	}
}

/* A preprocess wait of an hour ends with the run, in a worker and in the rank itself. */
static void test_stop_in_preprocess(void **state)
{
	struct rig r;
	struct order o;
	struct waiter w;

	(void)state;
	for (uint32_t workers = 0; workers < 2; workers++) {
		fake_reset(workers, true);
		rig_init(&r, workers, 0, 20, 1, 2);
		r.workload.reader.preprocess_time = (struct time_dist){TIME_CONSTANT, 3600, 0};
		rig_create(&r);
		start(&r, &o, 1, 10);
		wait_begin(&w, &r);
		await_words(&r, "has been in the preprocess wait of sample ");
		stop_and_wake(&r);
		pthread_join(w.thread, NULL);
		assert_int_equal(w.rc, ERR_CANCELED);
		finish(&r);
		assert_int_equal(fake.done, 1);
		destroy(&r);
	}
}

/* An early end of an epoch calls preprocess waits off as well. */
static void test_early_end_in_preprocess(void **state)
{
	struct rig r;
	struct order o;

	(void)state;
	fake_reset(2, true);
	rig_init(&r, 2, 0, 20, 1, 2);
	r.workload.reader.preprocess_time = (struct time_dist){TIME_CONSTANT, 3600, 0};
	rig_create(&r);
	start(&r, &o, 1, 10);
	await_words(&r, "in the preprocess wait");
	finish(&r);
	assert_true(fake.done <= 2);
	destroy(&r);
}

/* DLIO does not call the reader of a format without I/O. */
static void test_preprocess_without_io(void **state)
{
	struct format_ops synthetic = fake_format;
	struct rig r;
	struct order o;
	struct batch b;
	struct err e;

	(void)state;
	synthetic.is.flags = FORMAT_NO_IO;
	fake_reset(0, true);
	rig_init(&r, 0, 0, 1, 1, 1);
	r.dataset.format = &synthetic;
	r.workload.compat.dlio = true;
	r.workload.reader.preprocess_time = (struct time_dist){TIME_CONSTANT, 3600, 0};
	rig_create(&r);
	start(&r, &o, 1, 1);
	assert_int_equal(next_batch(&r, &b, &e), 1);
	finish(&r);
	destroy(&r);
}

static struct rig hung; /* outlives the test: its thread does */

static void test_hung_read(void **state)
{
	struct order o;
	struct err e;
	char text[2048];

	(void)state;
	fake_reset(2, false);
	rig_init(&hung, 2, 0, 20, 1, 1);
	hung.config.grace_ns = 30000000;
	hung.config.rank = 7;
	rig_create(&hung);
	rig_order(&hung, &o, 8, 1);
	assert_int_equal(hung.loader->ops->start(hung.loader, &o, 20, &e), 0);
	fake_await_inside(0, order_at(&o, 7, 0));
	fake_await_inside(1, order_at(&o, 7, 1));
	fake_pass(0);
	stop_and_wake(&hung);
	assert_int_equal(hung.loader->ops->finish(hung.loader, &e), -ETIMEDOUT);
	assert_true(
		str_starts(e.text, "rank 7 gave up on 1 hung thread; worker 1 has been reading "));
	assert_int_equal(hung.loader->ops->destroy(hung.loader), 1);
	describe(&hung, text, sizeof(text));
	assert_non_null(strstr(text, "worker 1 has been reading sample "));
	/* The thread that was left behind can still end. */
	fake_gate(true);
	await_words(&hung, "2 of 2 workers idle");
}

/* Out of order a rank that leaves early has not had the first batches, but some. */
static void test_left_early_out_of_order(void **state)
{
	struct order_proof delivered = {0}, undelivered = {0};
	char why[256];
	struct order o;
	struct batch b;
	struct err e;
	struct rig r;

	(void)state;
	fake_reset(2, false);
	rig_init(&r, 2, 4, 20, 1, 1);
	r.workload.reader.in_order = false;
	rig_create(&r);
	rig_order(&r, &o, 1, 1);
	assert_int_equal(r.loader->ops->start(r.loader, &o, 20, &e), 0);
	fake_await_inside(0, order_at(&o, 0, 0));
	fake_pass(1);
	fake_pass(1);
	for (int k = 0; k < 2; k++) {
		assert_int_equal(next_batch(&r, &b, &e), 1);
		assert_int_equal(b.index, 1 + 2 * k);
		order_proof_merge(&delivered, &b.proof);
	}
	r.loader->ops->undelivered(r.loader, 2, &undelivered);
	fake_gate(true);
	finish(&r);
	if (order_proof_check(&o, &delivered, &undelivered, why, sizeof(why)) != ORDER_KEPT)
		fail_msg("%s", why);
	destroy(&r);
}

static void test_memory(void **state)
{
	struct rig r;
	struct order o;
	struct err e;
	struct batch b;
	uint64_t stated, before, count;

	(void)state;
	fake_reset(4, true);
	rig_init(&r, 4, 0, 400, 1, 1);
	fake.reader_bytes = 8192;
	assert_int_equal(loader_find("pytorch")->memory_bytes(&r.config, &stated, &e), 0);
#ifndef SANITIZED
	assert_true(stated - 4 * fake.reader_bytes < 1 << 20);
#endif
	before = allocated_bytes;
	rig_create(&r);
	start(&r, &o, 1, 400);
	assert_true(allocated_bytes - before <= stated + 4096);
	assert_true(allocated_bytes - before >= 4 * fake.reader_bytes);
	for (int k = 0; k < 8; k++)
		assert_int_equal(next_batch(&r, &b, &e), 1);
	count = allocations;
	while (next_batch(&r, &b, &e) == 1)
		;
	finish(&r);
	start(&r, &o, 2, 400);
	while (next_batch(&r, &b, &e) == 1)
		;
	finish(&r);
	assert_int_equal(allocations - count, 0);
	assert_true(count > 0);
	destroy(&r);
}

static void expect_resident(void *memory, size_t bytes)
{
	unsigned char pages[64];

	assert_int_equal(mincore(memory, bytes, pages), 0);
	for (size_t i = 0; i < bytes / 4096; i++)
		assert_true(pages[i] & 1);
}

/* Buffers are taken and touched in create, and no epoch takes or touches them anew, whether its
 * workers live on or not. */
static void test_buffers_stay(void **state)
{
	enum { WORKERS = 3, BYTES = 64 * 4096 };
	struct rig r;
	struct order o;
	struct batch b;
	struct err e;
	void *memory[WORKERS];
	uint64_t count;

	(void)state;
	for (int persistent = 0; persistent < 2; persistent++) {
		int64_t mapped = mapped_bytes;

		fake_reset(WORKERS, true);
		rig_init(&r, WORKERS, 0, 12, 1, 1);
		r.workload.reader.persistent_workers = persistent;
		fake.reader_bytes = BYTES;
		rig_create(&r);
		memcpy(memory, fake.memory, sizeof(memory));
		for (int i = 0; i < WORKERS; i++)
			expect_resident(memory[i], BYTES);
		count = mappings;
		for (uint64_t epoch = 1; epoch <= 3; epoch++) {
			start(&r, &o, epoch, 12);
			while (next_batch(&r, &b, &e) == 1)
				;
			finish(&r);
			assert_int_equal(fake.readers_open, persistent ? WORKERS : 0);
		}
		/* a restarted worker has a new reader all the same */
		assert_int_equal(fake.readers, persistent ? WORKERS : 3 * WORKERS);
		assert_int_equal(mappings, count);
		assert_memory_equal(memory, fake.memory, sizeof(memory));
		destroy(&r);
		assert_int_equal(mapped_bytes, mapped);
	}
}

struct storm {
	struct rig rig;
	_Atomic int over;
	pthread_t rank, watcher;
};

static void *storm_rank(void *arg)
{
	struct storm *s = arg;
	struct loader *l = s->rig.loader;
	struct order o;
	struct batch b;
	struct err e;
	int rc = 0;

	for (uint64_t epoch = 1; rc >= 0; epoch++) {
		rig_order(&s->rig, &o, 1, epoch);
		rc = l->ops->start(l, &o, 6, &e);
		while (rc >= 0 && (rc = next_batch(&s->rig, &b, &e)) == 1)
			;
		if (l->ops->finish(l, &e) < 0)
			rc = -1;
	}
	s->over = rc;
	return NULL;
}

static void *storm_watcher(void *arg)
{
	struct storm *s = arg;
	char text[1024];

	while (!s->over) {
		describe(&s->rig, text, sizeof(text));
		sched_yield();
	}
	return NULL;
}

/* Stop at any moment, while a watchdog looks on: never a hang, never a leak. */
static void test_storm(void **state)
{
	struct storm s;

	(void)state;
	for (uint32_t round = 0; round < 60; round++) {
		fake_reset(round % 4, true);
		memset(&s, 0, sizeof(s));
		rig_init(&s.rig, round % 4, 0, 16, 1, 2);
		s.rig.workload.reader.persistent_workers = round & 4;
		s.rig.workload.reader.in_order = round & 8;
		rig_create(&s.rig);
		pthread_create(&s.rank, NULL, storm_rank, &s);
		pthread_create(&s.watcher, NULL, storm_watcher, &s);
		usleep(round * 37 % 1500);
		stop_and_wake(&s.rig);
		pthread_join(s.rank, NULL);
		pthread_join(s.watcher, NULL);
		assert_int_equal(s.over, ERR_CANCELED);
		destroy(&s.rig);
	}
}

static void test_many_ranks(void **state)
{
	enum { RANKS = 48, WORKERS = 4 };
	static struct rig r[RANKS];
	struct order o;
	struct batch b;
	struct err e;

	(void)state;
	fake_reset(WORKERS, true);
	for (uint32_t i = 0; i < RANKS; i++) {
		rig_init(&r[i], WORKERS, 0, RANKS * 6, 1, 1);
		r[i].config.rank = i;
		rig_create(&r[i]);
	}
	for (uint32_t i = 0; i < RANKS; i++) {
		rig_order(&r[i], &o, RANKS, 1);
		assert_int_equal(r[i].loader->ops->start(r[i].loader, &o, 6, &e), 0);
	}
	for (int k = 0; k < 6; k++)
		for (uint32_t i = 0; i < RANKS; i++)
			assert_int_equal(next_batch(&r[i], &b, &e), 1);
	for (uint32_t i = 0; i < RANKS; i++) {
		finish(&r[i]);
		r[i].loader->ops->destroy(r[i].loader);
	}
	assert_int_equal(fake.done, RANKS * 6);
	assert_int_equal(fake.readers_open, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_find),
		cmocka_unit_test(test_settings),
		cmocka_unit_test(test_window),
		cmocka_unit_test(test_each_sample_once),
		cmocka_unit_test(test_head_of_line),
		cmocka_unit_test(test_failure_in_turn),
		cmocka_unit_test(test_end_after_failure),
		cmocka_unit_test(test_early_end),
		cmocka_unit_test(test_stats),
		cmocka_unit_test(test_preprocess_stream),
		cmocka_unit_test(test_steps),
		cmocka_unit_test(test_held_batches),
		cmocka_unit_test(test_create_refuses),
		cmocka_unit_test(test_stop_while_blocked),
		cmocka_unit_test(test_stop_between),
		cmocka_unit_test(test_stop_in_preprocess),
		cmocka_unit_test(test_early_end_in_preprocess),
		cmocka_unit_test(test_preprocess_without_io),
		cmocka_unit_test(test_hung_read),
		cmocka_unit_test(test_left_early_out_of_order),
		cmocka_unit_test(test_memory),
		cmocka_unit_test(test_buffers_stay),
		cmocka_unit_test(test_storm),
		cmocka_unit_test(test_many_ranks),
	};

	count_allocations();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
