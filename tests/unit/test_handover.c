/* What PyTorch's hand-over costs, by option: shared memory, the pin thread, the start of workers.
 * The order of batches is not theirs to change, and nothing may be left behind. */
#include "loader_fake.h"

#include <dirent.h>
#include <unistd.h>

#include "count_allocations.h"
#include "loader/workers.h"

static unsigned open_files(void)
{
	DIR *d = opendir("/proc/self/fd");
	unsigned n = 0;

	assert_non_null(d);
	while (readdir(d))
		n++;
	closedir(d);
	return n;
}

struct option {
	bool transport, pin, in_order, persistent;
};

static void set(struct rig *r, const struct option *o)
{
	r->workload.reader.transport = o->transport ? TRANSPORT_SHARED_MEMORY : TRANSPORT_NONE;
	r->workload.reader.pin_thread = o->pin;
	r->workload.reader.in_order = o->in_order;
	r->workload.reader.persistent_workers = o->persistent;
}

/* All steps of an epoch, or the first `asked`; two batches held at times. */
static void live_through(struct rig *r, uint64_t epoch, uint64_t steps, uint64_t asked)
{
	struct order_proof delivered = {0}, undelivered = {0};
	struct batch *b, *before = NULL;
	struct order o;
	struct err e;
	char why[256];

	rig_order(r, &o, 1, epoch);
	assert_int_equal(r->loader->ops->start(r->loader, &o, steps, &e), 0);
	for (uint64_t k = 0; k < asked; k++) {
		if (r->loader->ops->next(r->loader, &b, &e) != 1)
			fail_msg("%s", e.text);
		if (r->workload.reader.in_order)
			assert_int_equal(b->index, k);
		order_proof_merge(&delivered, &b->proof);
		if (before)
			r->loader->ops->give_back(r->loader, before);
		before = b;
	}
	if (before)
		r->loader->ops->give_back(r->loader, before);
	if (asked == steps) {
		assert_int_equal(r->loader->ops->next(r->loader, &b, &e), 0);
		order_proof_undelivered(&undelivered, &o, 0, steps);
		assert_int_equal(order_proof_check(&o, &delivered, &undelivered, why, sizeof(why)),
				 ORDER_KEPT);
	}
	assert_int_equal(r->loader->ops->finish(r->loader, &e), 0);
}

static void test_epochs(void **state)
{
	unsigned before = open_files();

	(void)state;
	for (unsigned i = 0; i < 16; i++) {
		struct option o = {i & 1, i & 2, i & 4, i & 8};
		const struct worker_stat *stat;
		uint64_t stated, taken;
		struct rig r;
		struct err e;
		uint32_t n;

		fake_reset(3, true);
		rig_init(&r, 3, 6, 60, 1, 3);
		set(&r, &o);
		r.workload.dataset.record_length_bytes_resize = 20000;
		assert_int_equal(loader_find("pytorch")->memory_bytes(&r.config, &stated, &e), 0);
		taken = allocated_bytes;
		rig_create(&r);
		for (uint64_t epoch = 1; epoch <= 4; epoch++)
			live_through(&r, epoch, 20, epoch == 2 ? 5 : epoch == 3 ? 0 : 20);
		if (o.persistent)
			assert_true(allocated_bytes - taken <=
				    stated + 60 * 4 * 60000 * o.transport + 8192);
		if (o.transport || o.pin)
			assert_true(stated > (1 + 8 * (o.transport + o.pin)) * 60000ull);
		stat = r.loader->ops->stats(r.loader, &n);
		for (uint32_t w = 0; w < n; w++) {
			assert_int_equal(stat[w].transport_ns > 0, o.transport);
			assert_int_equal(stat[w].unpack_ns > 0, o.transport);
			assert_int_equal(stat[w].pin_ns > 0, o.pin && w == 0);
		}
		assert_int_equal(r.loader->ops->destroy(r.loader), 0);
		assert_int_equal(open_files(), before);
	}
}

static void test_failure_in_its_turn(void **state)
{
	unsigned before = open_files();

	(void)state;
	for (unsigned i = 0; i < 4; i++) {
		struct option o = {i & 1, i & 2, true, true};
		struct batch *b;
		struct order order;
		struct rig r;
		struct err e;

		fake_reset(2, true);
		rig_init(&r, 2, 4, 12, 1, 2);
		set(&r, &o);
		rig_create(&r);
		rig_order(&r, &order, 1, 1);
		fake.fail_sample = order_at(&order, 0, 5);
		assert_int_equal(r.loader->ops->start(r.loader, &order, 6, &e), 0);
		for (int k = 0; k < 6; k++) {
			int rc = r.loader->ops->next(r.loader, &b, &e);

			assert_int_equal(rc, k == 2 ? ERR_DATA : 1);
			if (rc == 1)
				r.loader->ops->give_back(r.loader, b);
		}
		assert_int_equal(r.loader->ops->finish(r.loader, &e), 0);
		assert_int_equal(r.loader->ops->destroy(r.loader), 0);
		assert_int_equal(open_files(), before);
	}
}

static void test_wake(void **state)
{
	unsigned before = open_files();
	struct option o = {true, true, true, true};
	struct batch *b;
	struct order order;
	struct rig r;
	struct err e;

	(void)state;
	fake_reset(2, true);
	rig_init(&r, 2, 4, 40, 1, 2);
	set(&r, &o);
	rig_create(&r);
	rig_order(&r, &order, 1, 1);
	assert_int_equal(r.loader->ops->start(r.loader, &order, 20, &e), 0);
	assert_int_equal(r.loader->ops->next(r.loader, &b, &e), 1);
	r.stop.set = 1;
	r.loader->ops->wake(r.loader);
	r.loader->ops->give_back(r.loader, b);
	assert_int_equal(r.loader->ops->next(r.loader, &b, &e), ERR_CANCELED);
	assert_int_equal(r.loader->ops->finish(r.loader, &e), 0);
	assert_int_equal(r.loader->ops->destroy(r.loader), 0);
	assert_int_equal(open_files(), before);
}

/* An emulated wait never ends early: the only thing that can be said of it without a clock's luck.
 */
static void test_start_of_workers(void **state)
{
	const int64_t ms = 1000000;

	(void)state;
	for (int persistent = 0; persistent < 2; persistent++) {
		struct option o = {.in_order = true, .persistent = persistent};
		struct batch *b;
		struct order order;
		struct rig r;
		struct err e;

		fake_reset(3, true);
		rig_init(&r, 3, 3, 12, 1, 2);
		set(&r, &o);
		r.workload.reader.worker_start_time = 0.004;
		r.workload.reader.worker_init_time = 0.015;
		r.workload.reader.worker_resume_time = 0.009;
		rig_create(&r);
		for (uint64_t epoch = 1; epoch <= 2; epoch++) {
			bool fresh = epoch == 1 || !persistent;
			int64_t begin = clock_now_ns(), started;

			rig_order(&r, &order, 1, epoch);
			assert_int_equal(r.loader->ops->start(r.loader, &order, 6, &e), 0);
			started = clock_now_ns() - begin;
			/* one worker after another; those that live on answer together */
			assert_true(started >= (fresh ? 3 * 4 * ms : 9 * ms));
			assert_int_equal(r.loader->ops->next(r.loader, &b, &e), 1);
			if (fresh)
				assert_true(b->begun_ns - begin >= (4 + 15) * ms);
			r.loader->ops->give_back(r.loader, b);
			assert_int_equal(r.loader->ops->finish(r.loader, &e), 0);
		}
		assert_int_equal(r.loader->ops->destroy(r.loader), 0);
	}
}

/* A stop ends it at once. */
static void test_start_is_called_off(void **state)
{
	struct option o = {.in_order = true, .persistent = true};
	struct order order;
	struct rig r;
	struct err e;

	(void)state;
	fake_reset(2, true);
	rig_init(&r, 2, 3, 12, 1, 2);
	set(&r, &o);
	r.workload.reader.worker_init_time = 1e5;
	rig_create(&r);
	rig_order(&r, &order, 1, 1);
	assert_int_equal(r.loader->ops->start(r.loader, &order, 6, &e), 0);
	r.stop.set = 1;
	r.loader->ops->wake(r.loader);
	assert_int_equal(r.loader->ops->finish(r.loader, &e), 0);
	assert_int_equal(r.loader->ops->destroy(r.loader), 0);
}

static void test_bytes_of_a_batch(void **state)
{
	int64_t dims[] = {3, 50};
	char f32[] = "float32";
	struct rig r;
	struct err e;

	(void)state;
	rig_init(&r, 2, 3, 12, 1, 4);
	r.workload.reader.transformed_record_element_type = f32;
	assert_int_equal(handover_bytes(&r.config, &e), 4 * PAYLOAD);
	r.workload.dataset.record_length_bytes_resize = 777;
	assert_int_equal(handover_bytes(&r.config, &e), 4 * 777);
	r.workload.reader.transformed_record_dims.v = dims;
	r.workload.reader.transformed_record_dims.n = 2;
	assert_int_equal(handover_bytes(&r.config, &e), 4 * 3 * 50 * 4);
	dims[0] = INT64_MAX / 2;
	assert_int_equal(handover_bytes(&r.config, &e), 0);
	assert_non_null(strstr(e.text, "reader.transport"));
	/* more than any shared memory file system has */
	dims[0] = 1ll << 40;
	r.workload.reader.transport = TRANSPORT_SHARED_MEMORY;
	fake_reset(2, true);
	assert_int_equal(loader_find("pytorch")->create(&r.loader, &r.config, &e), -ENOSPC);
	assert_non_null(strstr(e.text, "in '/dev/shm' for "));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_epochs),
		cmocka_unit_test(test_failure_in_its_turn),
		cmocka_unit_test(test_wake),
		cmocka_unit_test(test_start_of_workers),
		cmocka_unit_test(test_start_is_called_off),
		cmocka_unit_test(test_bytes_of_a_batch),
	};

	count_allocations();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
