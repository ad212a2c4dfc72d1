/* The contract of store/async.h: the same for every store, with a queue of its own or with helper
 * threads, and for every shim. */
#include <errno.h>
#include <ftw.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/rng.h"
#include "store/async.h"

#define DEPTH 16u
#define BLOCK 4096u
#define FILE_BYTES ((uint64_t)300 * BLOCK + 777)

static struct {
	const char *expression, *options;
} group;

static struct {
	struct store *store;
	struct io io;
	struct io_stat stat;
	struct stop_flag stop;
	struct blob *blob;
	struct store_queue *queue;
	struct store_request *request; /* DEPTH + 1 */
	unsigned char *memory;         /* a block each */
	char root[64];
	bool files;
} t;

static unsigned char pattern(uint64_t i)
{
	return (unsigned char)(i * 2654435761u >> 13);
}

static int remove_one(const char *path, const struct stat *st, int flag, struct FTW *ftw)
{
	(void)st;
	(void)flag;
	(void)ftw;
	return remove(path);
}

static void ok(int rc, const struct err *e)
{
	if (rc < 0)
		fail_msg("%s: %s", group.expression, e->text);
}

static const char *at(const char *name)
{
	static char path[512];

	snprintf(path, sizeof(path), "%s/%s", t.root, name);
	return path;
}

static struct store *make(const char *expression, const char *options)
{
	struct node *n = options ? yaml_parse(options, strlen(options), "test", NULL) : NULL;
	struct store *s = NULL;
	struct err e;

	ok(store_create(&s, expression, n, &e), &e);
	node_free(n);
	return s;
}

static void queue_of(unsigned depth)
{
	struct store_queue_config c = {
		.depth = depth, .memory = t.memory, .memory_bytes = (DEPTH + 1) * BLOCK};
	struct err e;

	store_queue_destroy(t.queue);
	t.queue = NULL;
	ok(store_queue_create(&t.queue, &t.io, &c, &e), &e);
}

static void write_file(void)
{
	unsigned char *p = xmalloc(FILE_BYTES);
	struct err e;

	for (uint64_t i = 0; i < FILE_BYTES; i++)
		p[i] = pattern(i);
	ok(io_open(&t.io, at("a"), STORE_WRITE | STORE_CREATE, t.blob, &e), &e);
	assert_int_equal(io_pwrite(&t.io, t.blob, p, FILE_BYTES, 0, &e), FILE_BYTES);
	ok(io_close(&t.io, t.blob, &e), &e);
	free(p);
}

static int set_up(void **state)
{
	(void)state;
	memset(&t, 0, sizeof(t));
	t.store = make(group.expression, group.options);
	t.io = (struct io){.store = t.store, .stop = &t.stop};
	t.blob = store_blob_new(t.store, NULL);
	t.memory = buffer_alloc((DEPTH + 1) * BLOCK, "test", NULL);
	t.request = xcalloc(DEPTH + 1, sizeof(*t.request));
	t.files = store_base_flags(t.store) & STORE_HAS_FILES;
	strcpy(t.root, "/tmp/stoker-async-XXXXXX");
	if (t.files)
		assert_non_null(mkdtemp(t.root));
	else
		assert_int_equal(store_mkdirs(t.store, t.root, NULL), 0);
	write_file();
	io_stat_init(&t.stat);
	t.io.stat = &t.stat;
	ok(io_open(&t.io, at("a"), STORE_READ, t.blob, NULL), NULL);
	queue_of(DEPTH);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	store_queue_destroy(t.queue);
	assert_int_equal(io_close(&t.io, t.blob, NULL), 0);
	if (t.files)
		nftw(t.root, remove_one, 16, FTW_DEPTH | FTW_PHYS);
	free(t.request);
	buffer_free(t.memory, (DEPTH + 1) * BLOCK);
	free(t.blob);
	store_destroy(t.store);
	return 0;
}

static struct store_request *ask(unsigned i, uint64_t offset, size_t n)
{
	struct store_request *r = &t.request[i];

	r->blob = t.blob;
	r->buffer = t.memory + (size_t)i * BLOCK;
	r->n = n;
	r->offset = offset;
	r->write = false;
	r->tag = i;
	memset(r->buffer, 0xa5, BLOCK);
	return r;
}

static void submit(struct store_request *r)
{
	struct err e;

	ok(store_queue_submit(t.queue, r, &e), &e);
}

static void check(const struct store_request *r, size_t want)
{
	const unsigned char *p = r->buffer;

	if (r->result != (ssize_t)want)
		fail_msg("%s: %zd bytes at %llu, %zu wanted (%s)", group.expression, r->result,
			 (unsigned long long)r->offset, want, r->result < 0 ? r->err.text : "");
	for (size_t i = 0; i < want; i++)
		assert_int_equal(p[i], pattern(r->offset + i));
	assert_true(r->done_ns >= r->submitted_ns);
}

/* Every request once, each with its own bytes, whatever the order they come back in. */
static void many_requests(void **state)
{
	enum { ALL = 500 };
	unsigned char seen[ALL] = {0};
	unsigned sent = 0, back = 0;
	struct err e;

	(void)state;
	while (back < ALL) {
		struct store_request *out[DEPTH];
		int n;

		while (sent < ALL && t.queue->in_flight < DEPTH) {
			unsigned slot = 0;

			/* a request that is not in flight has no buffer */
			while (t.request[slot].buffer)
				slot++;
			ask(slot, rng_word(7, sent) % 299 * BLOCK, BLOCK)->tag = sent;
			submit(&t.request[slot]);
			sent++;
		}
		n = store_queue_reap(t.queue, out, 1 + back % DEPTH, &e);
		ok(n, &e);
		assert_in_range(n, 1, 1 + back % DEPTH);
		for (int i = 0; i < n; i++) {
			check(out[i], BLOCK);
			assert_int_equal(seen[out[i]->tag]++, 0);
			out[i]->buffer = NULL;
		}
		back += (unsigned)n;
	}
	assert_int_equal(t.queue->in_flight, 0);
	assert_int_equal(t.stat.kind[IO_DATA].requests, ALL);
	assert_int_equal(t.stat.kind[IO_DATA].asked_bytes, (uint64_t)ALL * BLOCK);
	assert_int_equal(t.stat.kind[IO_DATA].returned_bytes, (uint64_t)ALL * BLOCK);
	assert_int_equal(t.stat.kind[IO_DATA].latency_ns.total, ALL);
}

static void depth_is_a_limit(void **state)
{
	struct store_request *out[DEPTH];
	struct err e;
	unsigned back = 0;

	(void)state;
	for (unsigned i = 0; i < DEPTH; i++)
		submit(ask(i, (uint64_t)i * BLOCK, BLOCK));
	assert_int_equal(store_queue_submit(t.queue, ask(DEPTH, 0, BLOCK), &e), -EAGAIN);
	assert_non_null(strstr(e.text, "16 requests are already in flight"));
	while (t.queue->in_flight) {
		int n = store_queue_reap(t.queue, out, DEPTH, &e);

		ok(n, &e);
		back += (unsigned)n;
	}
	assert_int_equal(back, DEPTH);
	assert_int_equal(store_queue_reap(t.queue, out, DEPTH, &e), 0);
	ok(store_queue_flush(t.queue, &e), &e);
}

static void depth_one(void **state)
{
	struct store_request *out[2];
	struct err e;

	(void)state;
	queue_of(1);
	for (unsigned i = 0; i < 20; i++) {
		submit(ask(0, (uint64_t)i * BLOCK, BLOCK));
		assert_int_equal(store_queue_submit(t.queue, ask(1, 0, BLOCK), NULL), -EAGAIN);
		assert_int_equal(store_queue_reap(t.queue, out, 2, &e), 1);
		check(out[0], BLOCK);
	}
}

static void impossible_depths(void **state)
{
	struct store_queue_config c = {.depth = 0};
	struct store_queue *q = NULL;
	struct err e;

	(void)state;
	assert_int_equal(store_queue_create(&q, &t.io, &c, &e), ERR_USAGE);
	c.depth = STORE_DEPTH_MAX + 1;
	assert_int_equal(store_queue_create(&q, &t.io, &c, &e), ERR_USAGE);
	assert_null(q);
	store_queue_destroy(NULL);
}

static void ends_of_the_blob(void **state)
{
	struct store_request *out[1];
	struct err e;

	(void)state;
	submit(ask(0, 300 * BLOCK, BLOCK));
	assert_int_equal(store_queue_reap(t.queue, out, 1, &e), 1);
	check(out[0], 777);
	submit(ask(0, 301 * BLOCK, BLOCK));
	assert_int_equal(store_queue_reap(t.queue, out, 1, &e), 1);
	check(out[0], 0);
	submit(ask(0, 0, 0));
	assert_int_equal(store_queue_reap(t.queue, out, 1, &e), 1);
	check(out[0], 0);
}

static void any_range(void **state)
{
	struct store_request *out[1];
	struct err e;

	(void)state;
	if (store_queue_align(t.store) == 1) {
		submit(ask(0, 4095, 1000));
		assert_int_equal(store_queue_reap(t.queue, out, 1, &e), 1);
		check(out[0], 1000);
	} else {
		assert_int_equal(store_queue_submit(t.queue, ask(0, 4095, 1000), &e), -EINVAL);
		assert_non_null(strstr(e.text, "multiples of 4096"));
	}
	assert_int_equal(store_queue_submit(t.queue, ask(0, INT64_MAX - 4095, 8192), &e), -EINVAL);
	assert_int_equal(t.queue->in_flight, 0);
}

/* An error belongs to its request; the others are not harmed. */
static void errors_are_the_requests_own(void **state)
{
	struct blob *other = store_blob_new(t.store, NULL);
	unsigned back = 0, failed = 0;
	struct err e;

	(void)state;
	ok(io_open(&t.io, at("b"), STORE_WRITE | STORE_CREATE, other, &e), &e);
	for (unsigned i = 0; i < DEPTH; i++) {
		struct store_request *r = ask(i, (uint64_t)i * BLOCK, BLOCK);

		if (i % 4 == 1)
			r->blob = other; /* which cannot be read */
		submit(r);
	}
	while (back < DEPTH) {
		struct store_request *out[4];
		int n = store_queue_reap(t.queue, out, 4, &e);

		ok(n, &e);
		for (int i = 0; i < n; i++) {
			if (out[i]->blob != other) {
				check(out[i], BLOCK);
				continue;
			}
			failed++;
			assert_int_equal(out[i]->result, -EBADF);
			assert_int_equal(out[i]->err.code, -EBADF);
			assert_non_null(strstr(out[i]->err.text, "reading"));
		}
		back += (unsigned)n;
	}
	assert_int_equal(failed, 4);
	assert_int_equal(t.stat.kind[IO_DATA].requests, DEPTH);
	ok(io_close(&t.io, other, &e), &e);
	free(other);
}

static void stop_ends_submitting(void **state)
{
	struct store_request *out[2];
	struct err e;

	(void)state;
	submit(ask(0, 0, BLOCK));
	submit(ask(1, BLOCK, BLOCK));
	atomic_store(&t.stop.set, 1);
	assert_int_equal(store_queue_submit(t.queue, ask(2, 0, BLOCK), &e), ERR_CANCELED);
	for (unsigned back = 0; back < 2;) {
		int n = store_queue_reap(t.queue, out, 2, &e);

		ok(n, &e);
		back += (unsigned)n;
	}
	assert_int_equal(t.queue->in_flight, 0);
	assert_int_equal(t.stat.kind[IO_DATA].requests, 2);
}

/* After destroy nothing touches the buffers any more. */
static void destroyed_in_flight(void **state)
{
	(void)state;
	for (int round = 0; round < 20; round++) {
		for (unsigned i = 0; i < DEPTH; i++)
			submit(ask(i, rng_word(3, i) % 300 * BLOCK, BLOCK));
		if (round % 2)
			ok(store_queue_flush(t.queue, NULL), NULL);
		store_queue_destroy(t.queue);
		t.queue = NULL;
		memset(t.memory, 0x5a, (DEPTH + 1) * BLOCK);
		usleep(round == 0 ? 20000 : 0);
		for (size_t i = 0; i < (DEPTH + 1) * BLOCK; i++)
			assert_int_equal(t.memory[i], 0x5a);
		queue_of(DEPTH);
	}
}

static void writes(void **state)
{
	struct blob *other = store_blob_new(t.store, NULL);
	unsigned char *got = xmalloc((size_t)DEPTH * BLOCK);
	struct err e;

	(void)state;
	ok(io_open(&t.io, at("w"), STORE_READ | STORE_WRITE | STORE_CREATE, other, &e), &e);
	for (unsigned i = 0; i < DEPTH; i++) {
		struct store_request *r = ask(i, (uint64_t)(DEPTH - 1 - i) * BLOCK, BLOCK);
		unsigned char *p = r->buffer;

		for (unsigned k = 0; k < BLOCK; k++)
			p[k] = pattern(r->offset + k);
		r->blob = other;
		r->write = true;
		submit(r);
	}
	while (t.queue->in_flight) {
		struct store_request *out[DEPTH];
		int n = store_queue_reap(t.queue, out, DEPTH, &e);

		ok(n, &e);
		for (int i = 0; i < n; i++)
			check(out[i], BLOCK);
	}
	assert_int_equal(t.stat.kind[IO_WRITE].requests, DEPTH);
	assert_int_equal(t.stat.kind[IO_WRITE].returned_bytes, (uint64_t)DEPTH * BLOCK);
	assert_int_equal(io_pread(&t.io, IO_DATA, other, got, (size_t)DEPTH * BLOCK, 0, &e),
			 DEPTH * BLOCK);
	for (size_t i = 0; i < (size_t)DEPTH * BLOCK; i++)
		assert_int_equal(got[i], pattern(i));
	ok(io_close(&t.io, other, &e), &e);
	free(other);
	free(got);
}

struct side {
	unsigned failures;
	uint64_t key;
};

/* A queue for each thread on a store of all. */
static void *use_own_queue(void *arg)
{
	struct side *s = arg;
	struct io io = {.store = t.store};
	struct blob *b = store_blob_new(t.store, NULL);
	unsigned char *p = buffer_alloc(4 * BLOCK, "test", NULL);
	struct store_request *r = xcalloc(4, sizeof(*r));
	struct store_queue_config c = {.depth = 4, .memory = p, .memory_bytes = 4 * BLOCK};
	struct store_queue *q = NULL;
	char path[128];

	snprintf(path, sizeof(path), "%s/a", t.root);
	s->failures += io_open(&io, path, STORE_READ, b, NULL) < 0;
	s->failures += store_queue_create(&q, &io, &c, NULL) < 0;
	for (int round = 0; q && round < 50; round++) {
		struct store_request *out[4];

		for (unsigned i = 0; i < 4; i++) {
			r[i].blob = b;
			r[i].buffer = p + i * BLOCK;
			r[i].n = BLOCK;
			r[i].offset = rng_word(s->key, (uint64_t)round * 4 + i) % 300 * BLOCK;
			s->failures += store_queue_submit(q, &r[i], NULL) < 0;
		}
		while (q->in_flight) {
			int n = store_queue_reap(q, out, 4, NULL);

			for (int i = 0; i < n; i++) {
				const unsigned char *got = out[i]->buffer;

				s->failures += out[i]->result != BLOCK;
				s->failures += got[0] != pattern(out[i]->offset);
				s->failures += got[4095] != pattern(out[i]->offset + 4095);
			}
		}
		/* and a plain read between */
		s->failures += io_pread(&io, IO_DATA, b, p, 100, 5, NULL) != 100;
		s->failures += p[99] != pattern(104);
	}
	store_queue_destroy(q);
	s->failures += io_close(&io, b, NULL) < 0;
	free(b);
	free(r);
	buffer_free(p, 4 * BLOCK);
	return NULL;
}

static void queues_of_many_threads(void **state)
{
	struct side side[4];
	pthread_t thread[4];

	(void)state;
	for (uint64_t i = 0; i < 4; i++) {
		side[i] = (struct side){0, i};
		assert_int_equal(thread_start(&thread[i], use_own_queue, &side[i], 0, "q", NULL),
				 0);
	}
	for (int i = 0; i < 4; i++) {
		pthread_join(thread[i], NULL);
		assert_int_equal(side[i].failures, 0);
	}
}

/* Reads of any range of one open blob by several threads at once. */
static void *read_shared_blob(void *arg)
{
	struct side *s = arg;
	struct io io = {.store = t.store};
	unsigned char *p = xmalloc(9000);

	for (uint64_t i = 0; i < 300; i++) {
		uint64_t from = rng_word(s->key, i) % (FILE_BYTES - 9000);
		size_t n = 1 + rng_word(s->key + 99, i) % 9000;

		s->failures += io_pread(&io, IO_DATA, t.blob, p, n, from, NULL) != (ssize_t)n;
		for (size_t k = 0; k < n; k++)
			s->failures += p[k] != pattern(from + k);
	}
	free(p);
	return NULL;
}

static void one_blob_of_many_threads(void **state)
{
	struct side side[4];
	pthread_t thread[4];

	(void)state;
	for (uint64_t i = 0; i < 4; i++) {
		side[i] = (struct side){0, i};
		assert_int_equal(thread_start(&thread[i], read_shared_blob, &side[i], 0, "b", NULL),
				 0);
	}
	for (int i = 0; i < 4; i++) {
		pthread_join(thread[i], NULL);
		assert_int_equal(side[i].failures, 0);
	}
}

/* ---- of single stores ---- */

/* A store whose reads return only when as many as the depth are inside: with fewer helpers the test
 * would never end. */
static struct {
	struct store_ops ops;
	struct store base;
	pthread_barrier_t inside;
} meeting;

static ssize_t meet(struct blob *b, void *p, size_t n, uint64_t offset, struct err *e)
{
	(void)b;
	(void)p;
	(void)offset;
	(void)e;
	pthread_barrier_wait(&meeting.inside);
	return (ssize_t)n;
}

static void all_are_with_the_store_at_once(void **state)
{
	struct store_queue_config c = {.depth = DEPTH};
	struct blob b = {.store = &meeting.base};
	struct io io = {.store = &meeting.base};
	struct store_request *r = xcalloc(DEPTH, sizeof(*r)), *out[DEPTH];
	struct store_queue *q = NULL;
	struct err e;

	(void)state;
	meeting.ops.pread = meet;
	meeting.base.ops = &meeting.ops;
	pthread_barrier_init(&meeting.inside, NULL, DEPTH);
	ok(store_queue_create(&q, &io, &c, &e), &e);
	for (int round = 0; round < 10; round++) {
		for (unsigned i = 0; i < DEPTH; i++) {
			r[i].blob = &b;
			r[i].n = 1;
			ok(store_queue_submit(q, &r[i], &e), &e);
		}
		while (q->in_flight) {
			int n = store_queue_reap(q, out, DEPTH, &e);

			ok(n, &e);
			for (int i = 0; i < n; i++)
				assert_int_equal(out[i]->result, 1);
		}
	}
	store_queue_destroy(q);
	pthread_barrier_destroy(&meeting.inside);
	free(r);
}

static void faults_hit_one_request(void **state)
{
	struct store_request *out[DEPTH];
	unsigned failed = 0, cut = 0;
	struct err e;

	(void)state;
	group.expression = "fault+memory";
	group.options = "fault: {op: read, nth: 5, errno: EIO}";
	set_up(NULL);
	for (unsigned i = 0; i < DEPTH; i++)
		submit(ask(i, 0, BLOCK));
	while (t.queue->in_flight) {
		int n = store_queue_reap(t.queue, out, DEPTH, &e);

		ok(n, &e);
		for (int i = 0; i < n; i++)
			if (out[i]->result < 0) {
				failed++;
				assert_int_equal(out[i]->result, -EIO);
				assert_non_null(strstr(out[i]->err.text, "fails call 5"));
			}
	}
	assert_int_equal(failed, 1);
	tear_down(NULL);
	group.options = "fault: {op: read, nth: 3, action: short}";
	set_up(NULL);
	for (unsigned i = 0; i < DEPTH; i++)
		submit(ask(i, 0, BLOCK));
	while (t.queue->in_flight) {
		int n = store_queue_reap(t.queue, out, DEPTH, &e);

		for (int i = 0; i < n; i++)
			cut += out[i]->result == BLOCK / 2;
	}
	assert_int_equal(cut, 1);
	tear_down(NULL);
}

#define CHECK(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

static const struct CMUnitTest contract[] = {
	CHECK(many_requests),
	CHECK(depth_is_a_limit),
	CHECK(depth_one),
	CHECK(impossible_depths),
	CHECK(ends_of_the_blob),
	CHECK(any_range),
	CHECK(errors_are_the_requests_own),
	CHECK(stop_ends_submitting),
	CHECK(destroyed_in_flight),
	CHECK(writes),
	CHECK(queues_of_many_threads),
	CHECK(one_blob_of_many_threads),
};

static const struct CMUnitTest once[] = {
	cmocka_unit_test(all_are_with_the_store_at_once),
	cmocka_unit_test(faults_hit_one_request),
};

static int run(const char *expression, const char *options)
{
	char name[256];

	group.expression = expression;
	group.options = options;
	snprintf(name, sizeof(name), "%s %s", expression, options ? options : "");
	return _cmocka_run_group_tests(name, contract, sizeof(contract) / sizeof(contract[0]), NULL,
				       NULL);
}

/* Whether a store works on this machine; the sentence says why not. */
static bool works(const char *expression)
{
	struct store *s = NULL;
	struct err e;

	if (store_create(&s, expression, NULL, &e) < 0) {
		printf("skipped: %s: %s\n", expression, e.text);
		return false;
	}
	store_destroy(s);
	return true;
}

int main(void)
{
	int failed = cmocka_run_group_tests(once, NULL, NULL);

	for (size_t i = 0; store_table[i]; i++) {
		char expr[128];
		bool shim = store_table[i]->is.flags & STORE_IS_SHIM;

		snprintf(expr, sizeof(expr), "%s%s", store_table[i]->is.name,
			 shim ? "+memory" : "");
		/* what is written must be there to be read */
		if (!(store_table[i]->is.flags & STORE_KEEPS_NOTHING) && works(expr))
			failed += run(expr, NULL);
	}
	if (store_find("io_uring") && works("io_uring")) {
		failed += run("io_uring", "io_uring: {registered_buffers: true}");
		failed += run("io_uring", "io_uring: {sqpoll: true, sqpoll_idle_ms: 1}");
		failed += run("io_uring", "io_uring: {direct: true}");
		failed += run("io_uring", "io_uring: {direct: true, registered_buffers: true}");
		failed += run("fault+io_uring", NULL);
	}
	if (store_find("drop_behind")) {
		failed += run("drop_behind+posix", "drop_behind: {window: 8192}");
		failed += run("drop_behind+mmap", "drop_behind: {window: 8192}");
	}
	return failed ? 1 : 0;
}
