/* The counted access: what is counted where, and the sentences it adds. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "store/store.h"

static struct store *make(const char *expression, const char *yaml)
{
	struct node *n = yaml_parse(yaml, strlen(yaml), "test", NULL);
	struct store *s = NULL;
	struct err e;

	if (store_create(&s, expression, n, &e) != 0)
		fail_msg("%s", e.text);
	node_free(n);
	return s;
}

static void expect(const struct io_stat *s, enum io_kind kind, uint64_t requests, uint64_t asked,
		   uint64_t returned)
{
	assert_int_equal(s->kind[kind].requests, requests);
	assert_int_equal(s->kind[kind].asked_bytes, asked);
	assert_int_equal(s->kind[kind].returned_bytes, returned);
	assert_int_equal(s->kind[kind].latency_ns.total, requests);
}

static void counts(void **state)
{
	struct store *s = make("memory", "");
	struct blob *b = store_blob_new(s, NULL);
	static struct io_stat stat;
	struct io io = {.store = s, .stat = &stat};
	struct store_stat st;
	char p[100] = "";

	(void)state;
	io_stat_init(&stat);
	assert_int_equal(io_open(&io, "f", STORE_READ | STORE_WRITE | STORE_CREATE, b, NULL), 0);
	assert_int_equal(io_pwrite(&io, b, p, 70, 0, NULL), 70);
	assert_int_equal(io_pread(&io, IO_META, b, p, 10, 0, NULL), 10);
	assert_int_equal(io_pread(&io, IO_DATA, b, p, 100, 50, NULL), 20);
	assert_int_equal(io_pread_full(&io, IO_DATA, b, "f", p, 30, 0, NULL), 0);
	assert_int_equal(io_stat_blob(&io, b, &st, NULL), 0);
	assert_int_equal(io_sync(&io, b, NULL), 0);
	assert_int_equal(io_close(&io, b, NULL), 0);
	assert_int_equal(io_stat_path(&io, "f", &st, NULL), 0);
	expect(&stat, IO_OPEN, 2, 0, 0);
	expect(&stat, IO_META, 3, 10, 10);
	expect(&stat, IO_DATA, 2, 130, 50);
	expect(&stat, IO_WRITE, 1, 70, 70);
	expect(&stat, IO_SYNC, 1, 0, 0);
	/* failures are requests that were asked and returned nothing */
	assert_int_equal(io_open(&io, "absent", STORE_READ, b, NULL), -ENOENT);
	expect(&stat, IO_OPEN, 3, 0, 0);
	free(b);
	store_destroy(s);
}

static void times(void **state)
{
	struct store *s = make("throttle+memory", "throttle: {latency: 0.02, open_latency: 0.01}");
	struct blob *b = store_blob_new(s, NULL);
	static struct io_stat stat;
	struct io io = {.store = s, .stat = &stat};
	struct io_waits waits = {.scale_s = 0.015};
	char p[8];

	(void)state;
	io_stat_init(&stat);
	assert_int_equal(io_open(&io, "f", STORE_WRITE | STORE_CREATE, b, NULL), 0);
	assert_int_equal(io_close(&io, b, NULL), 0);
	assert_true(stat.kind[IO_OPEN].busy_ns < 1000000000);
	io_stat_init(&stat);
	assert_int_equal(io_open(&io, "f", STORE_READ, b, NULL), 0);
	assert_int_equal(io_pread(&io, IO_DATA, b, p, 8, 0, NULL), 0);
	assert_int_equal(io_close(&io, b, NULL), 0);
	assert_true(stat.kind[IO_OPEN].busy_ns >= 10000000);
	assert_true(stat.kind[IO_DATA].busy_ns >= 20000000);
	assert_true(stat.kind[IO_DATA].latency_ns.max >= 20000000);
	assert_int_equal(stat.kind[IO_META].busy_ns, 0);
	/* what found nothing waited as well */
	assert_int_equal(stat.reads.n, 1);
	assert_int_equal(stat.reads.seen[0].bytes, 0);
	assert_int_equal(stat.reads.seen[0].name, read_name("f"));
	/* requests that take long are waits */
	assert_int_equal(io_open(&io, "f", STORE_READ, b, NULL), 0);
	io.waits = &waits;
	assert_int_equal(io_pread(&io, IO_DATA, b, p, 8, 0, NULL), 0);
	assert_int_equal(io_pread(&io, IO_META, b, p, 8, 0, NULL), 0);
	assert_true(waits.ns >= 40000000 && waits.all >= 1.4 && waits.most >= 0.7);
	assert_true(waits.most <= 1 && waits.all <= 2);
	assert_int_equal(io_close(&io, b, NULL), 0);
	free(b);
	store_destroy(s);
}

static void without_counting(void **state)
{
	struct store *s = make("memory", "");
	struct blob *b = store_blob_new(s, NULL);
	struct io io = {.store = s};
	struct store_stat st;
	char p[8] = "1234567";

	(void)state;
	assert_int_equal(io_open(&io, "f", STORE_READ | STORE_WRITE | STORE_CREATE, b, NULL), 0);
	assert_int_equal(io_pwrite(NULL, b, p, 8, 0, NULL), 8);
	assert_int_equal(io_pread(NULL, IO_DATA, b, p, 8, 0, NULL), 8);
	assert_int_equal(io_pread_full(NULL, IO_DATA, b, "f", p, 8, 0, NULL), 0);
	assert_int_equal(io_stat_blob(NULL, b, &st, NULL), 0);
	assert_int_equal(io_sync(NULL, b, NULL), 0);
	assert_int_equal(io_close(NULL, b, NULL), 0);
	free(b);
	store_destroy(s);
}

static void stop_comes_before_the_next_request(void **state)
{
	struct store *s = make("memory", "");
	struct blob *b = store_blob_new(s, NULL);
	static struct io_stat stat;
	struct stop_flag stop = {0};
	struct io io = {.store = s, .stat = &stat, .stop = &stop};
	struct err e;
	char p[8];

	(void)state;
	io_stat_init(&stat);
	assert_int_equal(io_open(&io, "f", STORE_READ | STORE_WRITE | STORE_CREATE, b, NULL), 0);
	assert_int_equal(io_pwrite(&io, b, "12345678", 8, 0, NULL), 8);
	assert_int_equal(io_pread(&io, IO_DATA, b, p, 8, 0, NULL), 8);
	atomic_store(&stop.set, 1);
	assert_int_equal(io_pread(&io, IO_DATA, b, p, 8, 0, &e), ERR_CANCELED);
	assert_string_equal(e.text, "the run was stopped");
	assert_int_equal(io_pread_full(&io, IO_DATA, b, "f", p, 8, 0, NULL), ERR_CANCELED);
	expect(&stat, IO_DATA, 1, 8, 8);
	/* what is open can still be closed */
	assert_int_equal(io_close(&io, b, NULL), 0);
	free(b);
	store_destroy(s);
}

static void context(void **state)
{
	struct store *s = make("fault+memory", "fault: {op: read, nth: 1, count: 2}");
	struct blob *b = store_blob_new(s, NULL);
	struct io io = {.store = s};
	char p[8];
	struct err e;

	(void)state;
	assert_int_equal(io_open(&io, "f", STORE_READ | STORE_WRITE | STORE_CREATE, b, NULL), 0);
	assert_int_equal(io_pwrite(&io, b, "12345678", 8, 0, NULL), 8);
	assert_int_equal(io_pread_full(&io, IO_DATA, b, "some/f", p, 8, 0, &e), -EIO);
	assert_int_equal(strncmp(e.text, "reading 'some/f': ", 18), 0);
	assert_int_equal(io_pread_full(&io, IO_DATA, b, "some/f", p, 8, 0, NULL), -EIO);
	assert_int_equal(io_pread_full(&io, IO_DATA, b, "some/f", p, 8, 1, NULL), ERR_DATA);
	assert_int_equal(io_pread_full(&io, IO_DATA, b, NULL, p, 8, 1, &e), ERR_DATA);
	assert_string_equal(e.text, "the file ends at 8, 8 bytes requested at 1");
	assert_int_equal(io_pread_full(&io, IO_DATA, b, "f", p, 8, UINT64_MAX, &e), -EINVAL);
	assert_non_null(strstr(e.text, "reading 'f': "));
	assert_int_equal(io_close(&io, b, NULL), 0);
	free(b);
	store_destroy(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(counts),
		cmocka_unit_test(times),
		cmocka_unit_test(without_counting),
		cmocka_unit_test(stop_comes_before_the_next_request),
		cmocka_unit_test(context),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
