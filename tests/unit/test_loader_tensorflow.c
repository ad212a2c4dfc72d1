/* The tf.data loader, living, against the reference simulation: which records make a batch, which
 * thread reads each, and how many have been read when everybody waits. And what only this loader
 * does: generators' turns, map's waits, AUTOTUNE, ends in the middle of files. */
#include "loader_fake.h"

#include <sched.h>
#include <unistd.h>

#include "os/sysinfo.h"
#include "loader/tensorflow.h"
#include "tf_vectors.h"

#define SAMPLES_MAX 512

static char tfrecord[] = "tfrecord", npz[] = "npz", tensorflow[] = "tensorflow";
static uint32_t lane_of[SAMPLES_MAX];
static uint64_t lane_reads[LANES];

static void note(uint32_t lane, uint64_t sample)
{
	lane_of[sample] = lane;
	lane_reads[lane]++;
}

static void reset_fake(uint32_t lanes, bool open)
{
	fake_reset(lanes, open);
	memset(lane_of, 0xff, sizeof(lane_of));
	memset(lane_reads, 0, sizeof(lane_reads));
	fake.on_read = note;
}

static void rig_tf(struct rig *r, char *format, uint32_t threads, int64_t prefetch, int64_t calls,
		   uint64_t samples, uint64_t per_file, uint64_t batch)
{
	rig_init(r, threads, 0, samples, per_file, batch);
	r->workload.reader.prefetch_size = prefetch;
	r->workload.reader.computation_threads = calls;
	r->workload.reader.sample_shuffle = SHUFFLE_OFF;
	r->workload.dataset.format = format;
	r->workload.dataset.num_samples_per_file = (int64_t)per_file;
	r->workload.reader.data_loader = tensorflow;
}

static void begin(struct rig *r, struct order *o, uint32_t ranks, uint64_t epoch, uint64_t steps)
{
	struct err e = {0};

	rig_order(r, o, ranks, epoch);
	if (r->loader->ops->start(r->loader, o, steps, &e) != 0)
		fail_msg("%s", e.text);
}

static int next(struct rig *r, struct batch *out, struct err *e)
{
	struct batch *b;
	int rc = r->loader->ops->next(r->loader, &b, e);

	if (rc == 1) {
		*out = *b;
		r->loader->ops->give_back(r->loader, b);
	}
	return rc;
}

static void finish(struct rig *r)
{
	struct err e = {0};

	if (r->loader->ops->finish(r->loader, &e) != 0)
		fail_msg("%s", e.text);
}

static void end(struct rig *r)
{
	finish(r);
	assert_int_equal(r->loader->ops->destroy(r->loader), 0);
	assert_int_equal(fake.readers_open, 0);
}

static void await_reads(uint64_t n)
{
	int64_t deadline = clock_now_ns() + PATIENCE_S * NS_PER_S;

	while (fake.begun < n && clock_now_ns() < deadline)
		usleep(200);
	if (fake.begun != n)
		fail_msg("%llu records were read and not %llu", (unsigned long long)fake.begun,
			 (unsigned long long)n);
}

/* ---- against the simulation ---- */

struct stages {
	uint32_t prefetch, calls;
};

static void rig_case(struct rig *r, const json_t *c, struct stages st)
{
	rig_tf(r, tfrecord, (uint32_t)tf_number(c, "threads"), st.prefetch, st.calls,
	       tf_number(c, "files") * tf_number(c, "per_file"), tf_number(c, "per_file"),
	       tf_number(c, "batch"));
	tf_interleave(&r->workload, c);
	r->workload.reader.shuffle_size = (int64_t)tf_number(c, "shuffle");
	r->workload.reader.sample_shuffle = tf_number(c, "shuffle") ? SHUFFLE_SEED : SHUFFLE_OFF;
	r->workload.train.seed = (int64_t)tf_number(c, "seed");
	r->workload.train.seed_change_epoch = tf_number(c, "reshuffle");
	r->config.rank = (uint32_t)tf_number(c, "rank");
	reset_fake(3 * (uint32_t)tf_number(c, "threads"), true);
	rig_create_loader(r, "tensorflow");
}

static void expect_batch(const json_t *c, const struct batch *b, uint64_t k)
{
	uint64_t n = tf_number(c, "batch");
	struct order_proof p = {0};

	assert_int_equal(b->index, k);
	assert_int_equal(b->samples, n);
	for (uint64_t i = k * n; i < (k + 1) * n; i++) {
		order_proof_add(&p, tf_sample(c, i));
		if (tf_worker(c, i) != UINT32_MAX)
			assert_int_equal(lane_of[tf_sample(c, i)], tf_worker(c, i));
	}
	assert_memory_equal(&b->proof, &p, sizeof(p));
	assert_int_equal(b->payload_bytes, n * PAYLOAD);
}

static void live_through(const json_t *c, struct stages st)
{
	uint64_t all, steps;
	struct order o;
	struct rig r;
	struct batch b;
	struct err e;

	rig_case(&r, c, st);
	/* twice, from the same seeds: an epoch leaves nothing behind */
	for (int again = 0; again < 2; again++) {
		begin(&r, &o, (uint32_t)tf_number(c, "ranks"), tf_number(c, "epoch"), UINT64_MAX);
		all = tf_records(c) / tf_number(c, "batch");
		steps = order_steps(&o);
		assert_true(steps <= all);
		for (uint64_t k = 0; k < steps; k++) {
			assert_int_equal(next(&r, &b, &e), 1);
			expect_batch(c, &b, k);
		}
		assert_int_equal(next(&r, &b, &e), 0);
		finish(&r);
		assert_int_equal(fake.begun, fake.done);
	}
	end(&r);
}

static void test_order_and_workers(void **state)
{
	static const struct stages stages[] = {{0, 0}, {0, 3}, {2, 0}, {1, 1}, {4, 2}};
	json_t *root, *cases = tf_cases(&root), *c;
	size_t i;

	(void)state;
	json_array_foreach(cases, i, c) for (unsigned s = 0; s < 5; s++) live_through(c, stages[s]);
	json_decref(root);
}

/* Takes batches until `b` have left the batch stage, and expects what the simulation has read. */
static void stand_still(const json_t *c, const json_t *ahead, struct stages st)
{
	uint64_t batches = tf_number(ahead, "batches"), beyond = st.prefetch + st.calls;
	json_t *of = json_object_get(ahead, "of_workers");
	struct order o;
	struct rig r;
	struct batch b;
	struct err e;

	rig_case(&r, c, st);
	begin(&r, &o, (uint32_t)tf_number(c, "ranks"), tf_number(c, "epoch"), UINT64_MAX);
	if (batches < beyond || batches > order_steps(&o)) {
		end(&r);
		return;
	}
	for (uint64_t k = 0; k + beyond < batches; k++)
		assert_int_equal(next(&r, &b, &e), 1);
	await_reads(tf_number(ahead, "read"));
	usleep(2000);
	await_reads(tf_number(ahead, "read"));
	pthread_mutex_lock(&fake.lock);
	for (size_t w = 0; w < json_array_size(of); w++)
		if (lane_reads[w] != (uint64_t)json_integer_value(json_array_get(of, w)))
			fake_fail("thread %zu read %llu records", w,
				  (unsigned long long)lane_reads[w]);
	pthread_mutex_unlock(&fake.lock);
	end(&r);
}

static void test_read_ahead(void **state)
{
	static const struct stages stages[] = {{1, 0}, {1, 2}, {3, 0}};
	json_t *root, *cases = tf_cases(&root), *c, *ahead;
	size_t i, j;

	(void)state;
	json_array_foreach(cases, i, c) json_array_foreach(json_object_get(c, "ahead"), j,
							   ahead) for (unsigned s = 0; s < 3; s++)
		stand_still(c, ahead, stages[s]);
	json_decref(root);
}

/* ---- generators ---- */

/* Each has consecutive batches; they take turns; the last round is of the first ones. */
static void test_generators(void **state)
{
	enum { SAMPLES = 46, BATCH = 2, STEPS = 23, T = 4 };
	static const uint64_t begins[T] = {0, 6, 12, 18};
	struct order_proof got = {0}, rest = {0};
	struct order o;
	struct rig r;
	struct batch b;
	struct err e;
	char why[256];

	(void)state;
	rig_tf(&r, npz, T, 2, 1, SAMPLES, 1, BATCH);
	r.workload.reader.sample_shuffle = SHUFFLE_SEED;
	reset_fake(T, true);
	rig_create_loader(&r, "tensorflow");
	begin(&r, &o, 1, 1, UINT64_MAX);
	for (uint64_t k = 0; k < STEPS; k++) {
		assert_int_equal(next(&r, &b, &e), 1);
		assert_int_equal(b.index, k);
		assert_int_equal(b.worker, k % T);
		assert_int_equal(b.first, (begins[k % T] + k / T) * BATCH);
		for (uint64_t i = 0; i < BATCH; i++)
			assert_int_equal(lane_of[order_at(&o, 0, b.first + i)], k % T);
	}
	assert_int_equal(next(&r, &b, &e), 0);
	finish(&r);
	/* cut short, what is left is of all generators */
	begin(&r, &o, 1, 2, 10);
	for (uint64_t k = 0; k < 10; k++) {
		assert_int_equal(next(&r, &b, &e), 1);
		order_proof_merge(&got, &b.proof);
	}
	assert_int_equal(next(&r, &b, &e), 0);
	r.loader->ops->undelivered(r.loader, 10, &rest);
	assert_int_equal(order_proof_check(&o, &got, &rest, why, sizeof(why)), ORDER_KEPT);
	end(&r);
}

/* Three batches of each generator beside those that prefetch holds. */
static void test_generators_ahead(void **state)
{
	enum { T = 3, BATCH = 2, PREFETCH = 2 };
	struct order o;
	struct rig r;
	struct batch b;
	struct err e;

	(void)state;
	rig_tf(&r, npz, T, PREFETCH, 1, 90, 1, BATCH);
	reset_fake(T, true);
	rig_create_loader(&r, "tensorflow");
	begin(&r, &o, 1, 1, UINT64_MAX);
	await_reads((3 * T + PREFETCH) * BATCH);
	usleep(2000);
	await_reads((3 * T + PREFETCH) * BATCH);
	assert_int_equal(next(&r, &b, &e), 1);
	await_reads((3 * T + PREFETCH + 1) * BATCH);
	end(&r);
}

/* ---- stages ---- */

/* Map runs its calls at once: with two, two waits end together. */
static void test_map_waits(void **state)
{
	enum { BATCH = 3 };
	struct order o;
	struct rig r;
	struct batch b;
	struct err e;
	uint32_t stats;
	const struct worker_stat *s;
	int64_t waited = 0;

	(void)state;
	rig_tf(&r, tfrecord, 1, 1, 2, 24, 4, BATCH);
	r.workload.reader.preprocess_time = (struct time_dist){TIME_CONSTANT, 0.002, 0};
	reset_fake(3, true);
	rig_create_loader(&r, "tensorflow");
	begin(&r, &o, 1, 1, UINT64_MAX);
	for (uint64_t k = 0; k < 8; k++) {
		assert_int_equal(next(&r, &b, &e), 1);
		assert_true(b.done_ns - b.begun_ns >= BATCH * 2000000);
	}
	finish(&r);
	s = r.loader->ops->stats(r.loader, &stats);
	assert_int_equal(stats, 3 + 2);
	for (uint32_t i = 0; i < stats; i++) {
		waited += s[i].preprocess_ns;
		assert_true(i >= 3 || s[i].preprocess_ns == 0);
	}
	assert_true(waited >= 24 * 2000000);
	end(&r);
	/* DLIO's pipeline of records has no such wait */
	r.workload.compat.dlio = true;
	r.workload.reader.preprocess_time = (struct time_dist){TIME_CONSTANT, 3600, 0};
	reset_fake(3, true);
	rig_create_loader(&r, "tensorflow");
	begin(&r, &o, 1, 1, UINT64_MAX);
	assert_int_equal(next(&r, &b, &e), 1);
	end(&r);
}

static void await_value(const _Atomic uint32_t *value, uint32_t n)
{
	int64_t deadline = clock_now_ns() + PATIENCE_S * NS_PER_S;

	while (atomic_load(value) != n && clock_now_ns() < deadline)
		usleep(200);
	assert_int_equal(atomic_load(value), n);
}

static void await_ring(const struct rig *r, uint32_t n)
{
	await_value(&tensorflow_of_const(r->loader)->in_ring, n);
}

/* Two calls at once, which an early end does not wait for. */
static void test_map_calls(void **state)
{
	struct tensorflow *l;
	struct order o;
	struct rig r;
	int64_t deadline = clock_now_ns() + PATIENCE_S * NS_PER_S;

	(void)state;
	rig_tf(&r, tfrecord, 1, 1, 2, 24, 4, 3);
	r.workload.reader.preprocess_time = (struct time_dist){TIME_CONSTANT, 3600, 0};
	reset_fake(3, true);
	rig_create_loader(&r, "tensorflow");
	l = tensorflow_of(r.loader);
	begin(&r, &o, 1, 1, UINT64_MAX);
	while ((sample_reader_busy_since(l->mapper[0].reader) == 0 ||
		sample_reader_busy_since(l->mapper[1].reader) == 0) &&
	       clock_now_ns() < deadline)
		usleep(200);
	assert_true(sample_reader_busy_since(l->mapper[0].reader) > 0);
	assert_true(sample_reader_busy_since(l->mapper[1].reader) > 0);
	end(&r);
}

static void *next_main(void *arg)
{
	struct batch b;
	struct err e;

	assert_int_equal(next(arg, &b, &e), 1);
	return NULL;
}

/* The ring begins with one batch and doubles when it was full and is found empty. */
static void test_autotune(void **state)
{
	struct order o;
	struct rig r;
	struct batch b;
	struct err e;
	uint32_t workers;
	uint64_t batches;
	pthread_t thread;
	double cpus = host_usable_cpus();
	uint64_t taken = 0;

	(void)state;
	rig_tf(&r, npz, 1, -1, 1, 300, 1, 1);
	reset_fake(1, true);
	rig_create_loader(&r, "tensorflow");
	begin(&r, &o, 1, 1, UINT64_MAX);
	for (uint32_t ring = 1; ring <= 2; ring *= 2) {
		await_reads(taken + ring + 3);
		await_ring(&r, ring);
		fake_gate(false);
		/* full at first, and in the end nothing is left behind the one that is read */
		for (uint32_t left = ring + 3; left > 0; left--, taken++) {
			await_ring(&r, left < ring ? left : ring);
			assert_int_equal(next(&r, &b, &e), 1);
		}
		await_ring(&r, 0);
		await_reads(taken + 1);
		pthread_create(&thread, NULL, next_main, &r);
		await_value(&tensorflow_of(r.loader)->ring, 2 * ring);
		fake_gate(true);
		pthread_join(thread, NULL);
		taken++;
		await_ring(&r, 2 * ring);
		await_reads(taken + 2 * ring + 3);
	}
	end(&r);
	/* behind batch alone tf.data puts one of its own */
	rig_tf(&r, tfrecord, 0, 0, 0, 40, 4, 2);
	reset_fake(1, true);
	rig_create_loader(&r, "tensorflow");
	begin(&r, &o, 1, 1, UINT64_MAX);
	await_ring(&r, 1);
	await_reads(2);
	assert_int_equal(next(&r, &(struct batch){0}, NULL), 1);
	await_reads(4);
	end(&r);
	r.workload.reader.prefetch_size = -1;
	r.workload.reader.read_threads = 1;
	r.workload.reader.computation_threads = -1;
	r.workload.dataset.format = tfrecord;
	loader_find("tensorflow")->window(&r.workload, &workers, &batches);
	assert_int_equal(workers, 3);
	assert_int_equal(batches - AUTOTUNE_PREFETCH, cpus < 1    ? 1
						      : cpus > 16 ? 16
								  : (uint64_t)cpus);
}

static void expect_window(struct rig *r, uint32_t workers, uint64_t batches)
{
	uint32_t got_workers;
	uint64_t got;

	loader_find("tensorflow")->window(&r->workload, &got_workers, &got);
	assert_int_equal(got_workers, workers);
	assert_int_equal(got, batches);
}

/* What a rank can get without a read: also what waits in the interleave and the shuffle buffer. */
static void test_window(void **state)
{
	struct rig r;

	(void)state;
	rig_tf(&r, npz, 4, 5, 7, 100, 1, 10);
	expect_window(&r, 4, 5 + 3 * 4);
	rig_tf(&r, npz, 0, 0, 0, 100, 1, 10);
	expect_window(&r, 1, 3);
	rig_tf(&r, tfrecord, 0, 1, 0, 100, 1, 10);
	expect_window(&r, 0, 1);
	rig_tf(&r, tfrecord, 4, 5, 7, 1000, 1, 10);
	r.workload.dataset.num_files_train = 1000;
	expect_window(&r, 12, 5 + 7 + 4);
	r.workload.reader.sample_shuffle = SHUFFLE_RANDOM;
	r.workload.reader.shuffle_size = 200;
	expect_window(&r, 12, 5 + 7 + 24);
	r.workload.reader.shuffle_size = 100000;
	expect_window(&r, 12, 5 + 7 + 100);
}

/* compat.dlio: the records are repeated, and one batch more is fetched and thrown away. */
static void test_one_batch_more(void **state)
{
	struct order o;
	struct rig r;
	struct batch b;
	struct err e;

	(void)state;
	rig_tf(&r, tfrecord, 0, 0, 0, 20, 4, 3);
	r.workload.compat.dlio = true;
	reset_fake(1, true);
	rig_create_loader(&r, "tensorflow");
	for (unsigned epoch = 1; epoch <= 2; epoch++) {
		fake.begun = 0;
		begin(&r, &o, 1, epoch, UINT64_MAX);
		for (int k = 0; k < 6; k++)
			assert_int_equal(next(&r, &b, &e), 1);
		assert_int_equal(fake.begun, 18);
		assert_int_equal(next(&r, &b, &e), 0);
		assert_int_equal(fake.begun, 20 + 3);
		assert_int_equal(next(&r, &b, &e), 0);
		assert_int_equal(fake.begun, 20 + 3);
		finish(&r);
	}
	end(&r);
	/* map and prefetch go on as well: two batches beyond that one, and three records a thread
	 */
	rig_tf(&r, tfrecord, 1, 1, 1, 12, 4, 3);
	r.workload.compat.dlio = true;
	reset_fake(3, true);
	rig_create_loader(&r, "tensorflow");
	begin(&r, &o, 1, 1, UINT64_MAX);
	for (int k = 0; k < 4; k++)
		assert_int_equal(next(&r, &b, &e), 1);
	assert_int_equal(next(&r, &b, &e), 0);
	await_reads(12 + 12);
	usleep(2000);
	await_reads(12 + 12);
	end(&r);
}

/* Failed records wait in the shuffle buffer like others, and fail the batch they come to. */
static void test_failure_in_turn(void **state)
{
	enum { BAD = 11, BATCH = 3, STEPS = 8 };
	json_t *root, *cases = tf_cases(&root), *c = json_array_get(cases, 9);
	struct order o;
	struct rig r;
	struct batch b;
	struct err e;

	(void)state;
	assert_int_equal(tf_number(c, "shuffle"), 6);
	rig_case(&r, c, (struct stages){2, 1});
	fake.fail_sample = BAD;
	begin(&r, &o, 1, 1, STEPS);
	for (uint64_t k = 0; k < STEPS; k++) {
		uint64_t n = tf_number(c, "batch");
		bool bad = false;

		for (uint64_t i = k * n; i < (k + 1) * n; i++)
			bad |= tf_sample(c, i) == BAD;
		assert_int_equal(next(&r, &b, &e), bad ? ERR_DATA : 1);
		if (bad)
			assert_non_null(strstr(e.text, "sample 11"));
		else
			expect_batch(c, &b, k);
	}
	assert_int_equal(next(&r, &b, &e), 0);
	end(&r);
	json_decref(root);
}

static struct rig hung; /* outlives the test: its threads do */

static void test_hung_read(void **state)
{
	struct order o;
	struct err e;
	char text[2048];

	(void)state;
	rig_tf(&hung, tfrecord, 1, 2, 1, 20, 2, 1);
	hung.config.grace_ns = 30000000;
	hung.config.rank = 2;
	reset_fake(3, false);
	rig_create_loader(&hung, "tensorflow");
	begin(&hung, &o, 5, 1, 20);
	fake_await_inside(0, 4); /* files 2 and 7 are the rank's */
	fake_await_inside(1, 14);
	hung.loader->ops->describe(hung.loader, text, sizeof(text));
	assert_non_null(strstr(text, "rank 2 does not wait for its loader; worker "));
	assert_non_null(strstr(text, "1 of 3 workers idle"));
	fake_pass(1);
	fake_await_inside(1, 15);
	atomic_store(&hung.stop.set, 1);
	hung.loader->ops->wake(hung.loader);
	fake_pass(1);
	assert_int_equal(hung.loader->ops->finish(hung.loader, &e), -ETIMEDOUT);
	assert_non_null(strstr(e.text, "gave up on 1 hung thread"));
	assert_non_null(strstr(e.text, "worker 0 has been reading sample 4"));
	assert_int_equal(hung.loader->ops->destroy(hung.loader), 1);
	hung.loader->ops->describe(hung.loader, text, sizeof(text));
	assert_non_null(strstr(text, "gave up on 1 hung thread"));
	fake_gate(true);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_order_and_workers), cmocka_unit_test(test_read_ahead),
		cmocka_unit_test(test_generators),        cmocka_unit_test(test_generators_ahead),
		cmocka_unit_test(test_map_waits),         cmocka_unit_test(test_map_calls),
		cmocka_unit_test(test_autotune),          cmocka_unit_test(test_window),
		cmocka_unit_test(test_one_batch_more),    cmocka_unit_test(test_failure_in_turn),
		cmocka_unit_test(test_hung_read),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
