/* What every loader owes its rank, whatever it emulates: all of loader.h that can be seen from
 * outside, for each row of the table over samples of two kinds of formats. What a single loader
 * adds is in its own test. */
#include "../unit/loader_fake.h"

#include <unistd.h>

#include "../unit/dataset_fixture.h"
#include "dataset/generate.h"

#define RANKS 3
#define STEPS_MAX 1000

/* ---- counting allocations ---- */

static _Atomic uint64_t allocations, allocated_bytes;
/* Of one thread, while it is on: calloc refuses from this call on, and what it gave is kept here.
 */
static int64_t refuse_after = -1;
static void *kept[4096];
static size_t kept_count;

void *__wrap_malloc(size_t n);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *p, size_t n);
void *__real_malloc(size_t n);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *p, size_t n);
void __wrap_free(void *p);
void __real_free(void *p);

void *__wrap_malloc(size_t n)
{
	allocations++;
	allocated_bytes += n;
	return __real_malloc(n);
}

void *__wrap_calloc(size_t n, size_t size)
{
	void *p;

	allocations++;
	allocated_bytes += n * size;
	if (refuse_after == 0)
		return NULL;
	p = __real_calloc(n, size);
	if (refuse_after > 0) {
		refuse_after--;
		assert_true(kept_count < sizeof(kept) / sizeof(kept[0]));
		kept[kept_count++] = p;
	}
	return p;
}

void __wrap_free(void *p)
{
	for (size_t i = 0; p && refuse_after >= 0 && i < kept_count; i++)
		if (kept[i] == p)
			kept[i--] = kept[--kept_count];
	__real_free(p);
}

void *__wrap_realloc(void *p, size_t n)
{
	allocations++;
	return __real_realloc(p, n);
}

/* ---- what is tried ---- */

static const struct {
	const char *format;
	uint64_t files, per_file, batch;
	uint32_t threads;
	int64_t prefetch;
} kinds[] = {
	{"npz", 26, 4, 5, 3, 4},      {"npz", 60, 1, 4, 1, 1},      {"npz", 30, 2, 2, 0, 0},
	{"tfrecord", 26, 4, 5, 3, 4}, {"tfrecord", 2, 30, 4, 1, 1}, {"tfrecord", 30, 2, 2, 0, 0},
};
#define KINDS (sizeof(kinds) / sizeof(kinds[0]))

static const struct loader_ops *ops; /* of the row that is tried */

static void setup(struct rig *r, unsigned kind, uint32_t rank)
{
	static char names[2][16] = {"npz", "tfrecord"};

	rig_init(r, kinds[kind].threads, 0, kinds[kind].files * kinds[kind].per_file,
		 kinds[kind].per_file, kinds[kind].batch);
	r->workload.reader.prefetch_size = kinds[kind].prefetch;
	r->workload.reader.computation_threads = 1;
	r->workload.reader.shuffle_size = 7;
	r->workload.reader.shuffle_initial = 4;
	r->workload.reader.file_shuffle_size = 5;
	r->workload.reader.file_shuffle = SHUFFLE_SEED;
	r->workload.dataset.format = names[kinds[kind].format[0] == 't'];
	r->workload.dataset.num_samples_per_file = (int64_t)kinds[kind].per_file;
	r->workload.reader.data_loader = (char *)(uintptr_t)ops->is.name;
	r->config.rank = rank;
	r->config.grace_ns = 30 * NS_PER_S;
}

static void create(struct rig *r, unsigned kind, uint32_t rank)
{
	setup(r, kind, rank);
	rig_create_loader(r, ops->is.name);
}

static void begin(struct rig *r, struct order *o, uint32_t ranks, uint64_t epoch, uint64_t steps)
{
	struct err e = {0};

	rig_order(r, o, ranks, epoch);
	if (ops->start(r->loader, o, steps, &e) != 0)
		fail_msg("%s: %s", ops->is.name, e.text);
}

static void finish(struct rig *r)
{
	struct err e = {0};

	if (ops->finish(r->loader, &e) != 0)
		fail_msg("%s: %s", ops->is.name, e.text);
	/* no request is in flight */
	assert_int_equal(fake.begun, fake.done);
}

static void end(struct rig *r)
{
	finish(r);
	assert_int_equal(ops->destroy(r->loader), 0);
	assert_int_equal(fake.readers_open, 0);
}

/* Takes up to `steps` batches; the number of good ones. */
static uint64_t take(struct rig *r, uint64_t steps, struct order_proof *p)
{
	uint64_t done = 0;
	struct batch *b;
	struct err e;

	for (; done < steps && ops->next(r->loader, &b, &e) == 1; done++) {
		assert_int_equal(b->samples, r->config.batch_size);
		assert_true(b->done_ns >= b->begun_ns);
		if (p)
			order_proof_merge(p, &b->proof);
		ops->give_back(r->loader, b);
	}
	return done;
}

/* ---- tests ---- */

/* A loader that reads the requests of formats it knows by itself refuses this one, with a sentence.
 */
static bool refused(unsigned kind)
{
	struct err e = {0};
	uint64_t said;
	struct rig r;

	setup(&r, kind, 0);
	if (ops->memory_bytes(&r.config, &said, &e) == 0)
		return false;
	assert_true(e.code == ERR_USAGE || e.code == ERR_ABSENT);
	assert_non_null(strstr(e.text, "dataset.format"));
	return true;
}

static void each_kind(void (*test)(unsigned kind))
{
	unsigned tried = 0;

	for (size_t i = 0; loader_table[i]; i++) {
		ops = loader_table[i];
		for (unsigned k = 0; k < KINDS; k++) {
			fake_reset(LANES, true);
			if (refused(k))
				continue;
			test(k);
			tried++;
		}
	}
	assert_true(tried >= 2 * KINDS);
}

static void undelivered(struct rig *r, const struct order *o, uint64_t done, struct order_proof *p)
{
	if (!ops->undelivered || !ops->undelivered(r->loader, done, p))
		order_proof_undelivered(p, o, r->config.rank, done);
}

/* Over all ranks, whole epochs and one that ends early, before anything was taken, in between. */
static void once_each(unsigned kind)
{
	static const uint64_t asked[] = {UINT64_MAX, 3, 0, UINT64_MAX};
	struct rig r[RANKS];
	struct order o;
	char why[256];

	for (uint32_t i = 0; i < RANKS; i++)
		create(&r[i], kind, i);
	for (uint64_t epoch = 1; epoch <= 4; epoch++) {
		struct order_proof got = {0}, rest = {0};

		for (uint32_t i = 0; i < RANKS; i++) {
			uint64_t want = asked[epoch - 1], done;
			struct batch *b;
			struct err e;

			begin(&r[i], &o, RANKS, epoch, want);
			want = want < order_steps(&o) ? want : order_steps(&o);
			done = take(&r[i], STEPS_MAX, &got);
			assert_int_equal(done, want);
			assert_int_equal(ops->next(r[i].loader, &b, &e), 0);
			assert_null(b);
			undelivered(&r[i], &o, done, &rest);
			finish(&r[i]);
		}
		if (order_proof_check(&o, &got, &rest, why, sizeof(why)) != ORDER_KEPT)
			fail_msg("%s, kind %u: %s", ops->is.name, kind, why);
	}
	for (uint32_t i = 0; i < RANKS; i++)
		assert_int_equal(ops->destroy(r[i].loader), 0);
	assert_int_equal(fake.readers_open, 0);
}

/* Left in the middle, by a rank that took fewer than it asked for. */
static void left_early(unsigned kind)
{
	struct order_proof got = {0}, rest = {0};
	char why[256];
	struct order o;
	struct rig r;

	create(&r, kind, 0);
	for (uint64_t taken = 0; taken < 4; taken++) {
		begin(&r, &o, 1, taken + 1, UINT64_MAX);
		assert_int_equal(take(&r, taken, NULL), taken);
		finish(&r);
		finish(&r);
	}
	begin(&r, &o, 1, 9, UINT64_MAX);
	assert_int_equal(take(&r, 2, &got), 2);
	undelivered(&r, &o, 2, &rest);
	assert_int_equal(order_proof_check(&o, &got, &rest, why, sizeof(why)), ORDER_KEPT);
	end(&r);
}

static void misuse(unsigned kind)
{
	struct batch *b[LOADER_HELD_MAX + 1];
	struct order o, other;
	struct rig r;
	struct err e;

	create(&r, kind, 0);
	assert_int_equal(ops->next(r.loader, &b[0], &e), -EINVAL);
	begin(&r, &o, 1, 1, UINT64_MAX);
	assert_int_equal(ops->start(r.loader, &o, 1, &e), -EINVAL);
	for (int i = 0; i < LOADER_HELD_MAX; i++)
		assert_int_equal(ops->next(r.loader, &b[i], &e), 1);
	assert_int_equal(ops->next(r.loader, &b[LOADER_HELD_MAX], &e), -EINVAL);
	assert_ptr_not_equal(b[0], b[1]);
	finish(&r);
	/* what is held may be given back after the end, and must be before the next beginning */
	assert_int_equal(ops->start(r.loader, &o, 1, &e), -EINVAL);
	for (int i = 0; i < LOADER_HELD_MAX; i++)
		ops->give_back(r.loader, b[i]);
	other = o;
	other.batch++;
	assert_int_equal(ops->start(r.loader, &other, 1, &e), -EINVAL);
	begin(&r, &o, 1, 2, UINT64_MAX);
	assert_int_equal(take(&r, 1, NULL), 1);
	end(&r);
	assert_int_equal(ops->destroy(NULL), 0);
}

/* One bad sample fails one batch, and the others come. */
static void bad_sample(unsigned kind)
{
	uint64_t steps, good = 0, bad = 0;
	struct order o;
	struct rig r;

	create(&r, kind, 0);
	fake.fail_sample = kinds[kind].files * kinds[kind].per_file / 2;
	begin(&r, &o, 1, 1, UINT64_MAX);
	steps = order_steps(&o);
	for (uint64_t i = 0; i < steps; i++) {
		struct batch *b;
		struct err e = {0};
		int rc = ops->next(r.loader, &b, &e);

		if (rc == 1) {
			ops->give_back(r.loader, b);
			good++;
		} else {
			assert_int_equal(rc, ERR_DATA);
			assert_int_equal(e.code, ERR_DATA);
			assert_null(b);
			assert_non_null(strstr(e.text, "is broken"));
			bad++;
		}
	}
	/* loaders that read nothing of a kind have nothing to fail; a tail may hold it */
	assert_int_equal(good + bad, steps);
	assert_true(bad <= 1);
	assert_true(bad == 1 || fake.begun == 0 ||
		    o.used < kinds[kind].files * kinds[kind].per_file);
	/* and the next epoch is a good one */
	finish(&r);
	fake.fail_sample = NO_SAMPLE;
	begin(&r, &o, 1, 2, UINT64_MAX);
	assert_int_equal(take(&r, STEPS_MAX, NULL), steps);
	end(&r);
}

struct waiter {
	struct rig *rig;
	struct err err;
	int rc;
	pthread_t thread;
};

static void *wait_main(void *arg)
{
	struct waiter *w = arg;
	struct batch *b;

	while ((w->rc = ops->next(w->rig->loader, &b, &w->err)) == 1)
		ops->give_back(w->rig->loader, b);
	return NULL;
}

/* The run stops while the rank waits: with wake at once, without it within a second. */
static void stopped(unsigned kind, bool wake)
{
	struct waiter w = {0};
	struct order o;
	struct batch *b;
	struct err e;
	struct rig r;
	char text[2048];

	create(&r, kind, 0);
	fake_gate(false);
	begin(&r, &o, 1, 1, UINT64_MAX);
	w.rig = &r;
	pthread_create(&w.thread, NULL, wait_main, &w);
	for (int i = 0; fake.begun == 0 && i < 100; i++)
		usleep(1000);
	ops->describe(r.loader, text, sizeof(text));
	assert_int_equal(strncmp(text, "rank 0 ", 7), 0);
	atomic_store(&r.stop.set, 1);
	if (wake)
		ops->wake(r.loader);
	/* without workers the rank itself stands at the gate */
	if (kinds[kind].threads == 0)
		fake_gate(true);
	pthread_join(w.thread, NULL);
	fake_gate(true);
	assert_true(w.rc == ERR_CANCELED || (fake.begun == 0 && w.rc == 0));
	assert_int_equal(ops->next(r.loader, &b, &e), ERR_CANCELED);
	finish(&r);
	assert_int_equal(ops->start(r.loader, &o, 1, &e), ERR_CANCELED);
	ops->describe(r.loader, text, sizeof(text));
	end(&r);
}

static void stopped_and_woken(unsigned kind)
{
	stopped(kind, true);
}

static void stopped_silently(unsigned kind)
{
	if (kinds[kind].threads != 1)
		stopped(kind, false);
}

/* Nothing is allocated between the first batch and the last, nor is more than was said before. */
static void memory(unsigned kind)
{
	uint64_t said, before, steps;
	uint32_t workers, n;
	struct order o;
	struct rig r;
	struct err e;

	setup(&r, kind, 0);
	assert_int_equal(ops->memory_bytes(&r.config, &said, &e), 0);
	assert_true(said > 0);
	before = allocated_bytes;
	rig_create_loader(&r, ops->is.name);
	assert_true(allocated_bytes - before + fake.readers_open * fake.reader_bytes <= said);
	for (uint64_t epoch = 1; epoch <= 2; epoch++) {
		begin(&r, &o, 1, epoch, UINT64_MAX);
		steps = order_steps(&o);
		assert_int_equal(take(&r, 1, NULL), 1);
		before = allocations;
		assert_int_equal(take(&r, steps - 1, NULL), steps - 1);
		assert_int_equal(allocations, before);
		finish(&r);
	}
	ops->window(&r.workload, &workers, &before);
	assert_non_null(ops->stats(r.loader, &n));
	assert_true(n >= 1 && n >= workers);
	end(&r);
}

/* A reader that cannot be built is told, and everything taken by then is given back. */
static void no_reader(unsigned kind)
{
	struct rig r;
	struct err e = {0};

	setup(&r, kind, 0);
	for (uint32_t n = 1; n < 12; n++) {
		int rc;

		fake_reset(LANES, true);
		fake.fail_reader = n;
		rc = ops->create(&r.loader, &r.config, &e);
		if (rc == 0) {
			assert_int_equal(ops->destroy(r.loader), 0);
		} else {
			assert_int_equal(rc, -ENOMEM);
			assert_non_null(strstr(e.text, "fake: no reader"));
		}
		assert_int_equal(fake.readers_open, 0);
	}
}

/* Real files, in memory, each byte compared: whole epochs and ends in the middle, over ranks, with
 * and without workers. */
static void real_files(const char *format, int64_t per_file, int64_t threads)
{
	struct workload w = fixture_workload(format, "/data", 14, 0);
	struct store *s = fixture_store("memory", NULL);
	struct generate_options once = {.threads = 1};
	struct rig r[RANKS] = {0};
	struct dataset d;
	struct err e = {0};

	w.dataset.num_samples_per_file = per_file;
	w.reader.data_loader = (char *)(uintptr_t)ops->is.name;
	w.reader.read_threads = threads;
	w.reader.prefetch_size = 2;
	w.reader.computation_threads = 1;
	w.reader.shuffle_size = 5;
	w.reader.in_order = true; /* else the first batch taken need not be the first */
	w.reader.sample_shuffle = SHUFFLE_SEED;
	w.reader.decode = DECODE_VERIFY;
	w.train.seed = 7;
	w.train.seed_change_epoch = true;
	fixture_dataset(&d, &w);
	assert_int_equal(dataset_generate(&d, s, &once, &e), 0);
	for (uint32_t i = 0; i < RANKS; i++) {
		uint64_t said;

		r[i].workload = w;
		r[i].config = (struct loader_config){.workload = &r[i].workload,
						     .dataset = &d,
						     .kind = DATASET_TRAIN,
						     .store = s,
						     .rank = i,
						     .batch_size = 3,
						     .stop = &r[i].stop};
		if (ops->memory_bytes(&r[i].config, &said, &e) == ERR_USAGE)
			goto out;
		if (ops->create(&r[i].loader, &r[i].config, &e) != 0)
			fail_msg("%s, %s: %s", ops->is.name, format, e.text);
	}
	for (uint64_t epoch = 1; epoch <= 3; epoch++) {
		struct order_proof got = {0}, rest = {0};
		struct order o;
		char why[256];

		for (uint32_t i = 0; i < RANKS; i++) {
			uint64_t done;

			order_init(&o, &w, dataset_samples(&d, DATASET_TRAIN), RANKS, 3, 7, epoch);
			if (ops->start(r[i].loader, &o, UINT64_MAX, &e) != 0)
				fail_msg("%s, %s: %s", ops->is.name, format, e.text);
			done = take(&r[i], epoch == 2 ? 1 : STEPS_MAX, &got);
			/* where each worker has files of its own, some have none */
			assert_int_equal(done,
					 epoch == 2 && order_steps(&o) > 0 ? 1 : order_steps(&o));
			undelivered(&r[i], &o, done, &rest);
			if (ops->finish(r[i].loader, &e) != 0)
				fail_msg("%s, %s: %s", ops->is.name, format, e.text);
		}
		if (order_proof_check(&o, &got, &rest, why, sizeof(why)) != ORDER_KEPT)
			fail_msg("%s, %s: %s", ops->is.name, format, why);
	}
	for (uint32_t i = 0; i < RANKS; i++)
		assert_int_equal(ops->destroy(r[i].loader), 0);
out:
	dataset_release(&d);
	store_destroy(s);
}

static void test_real_files(void **state)
{
	(void)state;
	for (size_t i = 0; loader_table[i]; i++) {
		ops = loader_table[i];
		for (int64_t threads = 0; threads <= 2; threads++) {
			real_files("npy", 1, threads);
			real_files("npz", 2, threads);
			real_files("tfrecord", 1, threads);
			real_files("tfrecord", 6, threads);
		}
	}
}

/* Every allocation of create is refused once: a sentence, and nothing is left behind. */
static void no_memory(unsigned kind)
{
	struct rig r;
	int64_t n = 0;

	setup(&r, kind, 0);
	for (int rc = -1; rc < 0; n++) {
		struct err e = {0};

		kept_count = 0;
		refuse_after = n;
		rc = ops->create(&r.loader, &r.config, &e);
		if (rc == 0) {
			assert_int_equal(ops->destroy(r.loader), 0);
		} else {
			assert_int_equal(rc, -ENOMEM);
			assert_non_null(strstr(e.text, "memory"));
		}
		refuse_after = -1;
		if (kept_count)
			fail_msg("%s: %zu of %lld allocations are left", ops->is.name, kept_count,
				 (long long)n);
		assert_int_equal(fake.readers_open, 0);
	}
	assert_true(n > 1);
}

#define EACH(name)                                                                                 \
	static void test_##name(void **state)                                                      \
	{                                                                                          \
		(void)state;                                                                       \
		each_kind(name);                                                                   \
	}

EACH(once_each)
EACH(left_early)
EACH(misuse)
EACH(bad_sample)
EACH(stopped_and_woken)
EACH(stopped_silently)
EACH(memory)
EACH(no_reader)
EACH(no_memory)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_once_each),
		cmocka_unit_test(test_left_early),
		cmocka_unit_test(test_misuse),
		cmocka_unit_test(test_bad_sample),
		cmocka_unit_test(test_stopped_and_woken),
		cmocka_unit_test(test_stopped_silently),
		cmocka_unit_test(test_memory),
		cmocka_unit_test(test_no_reader),
		cmocka_unit_test(test_no_memory),
		cmocka_unit_test(test_real_files),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
