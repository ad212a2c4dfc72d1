/* The fault store: which call is disturbed, how, and that nothing below is left behind. */
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/thread.h"
#include "store/store.h"

static struct store *store;
static struct io io;
static struct blob *blob;

static void make(const char *yaml)
{
	struct node *n = yaml_parse(yaml, strlen(yaml), "test", NULL);
	struct err e;

	assert_non_null(n);
	if (store_create(&store, "fault+memory", n, &e) != 0)
		fail_msg("%s", e.text);
	node_free(n);
	io = (struct io){.store = store};
	blob = store_blob_new(store, NULL);
}

static void done(void)
{
	free(blob);
	store_destroy(store);
}

/* Writes past the fault, straight below. */
static void put_below(const char *path, const char *text)
{
	struct io below = {.store = store->lower};
	struct blob *b = store_blob_new(store->lower, NULL);

	assert_int_equal(io_open(&below, path, STORE_WRITE | STORE_CREATE, b, NULL), 0);
	assert_int_equal(io_pwrite(&below, b, text, strlen(text), 0, NULL), strlen(text));
	assert_int_equal(io_close(&below, b, NULL), 0);
	free(b);
}

static uint64_t bytes_below(const char *path)
{
	struct store_stat st;

	assert_int_equal(store_stat_path(store->lower, path, &st, NULL), 0);
	return st.bytes;
}

static int read_code(void)
{
	char p[8];
	struct err e = {0};
	ssize_t r = io_pread(&io, IO_DATA, blob, p, 8, 0, &e);

	if (r < 0) {
		assert_int_equal(e.code, r);
		assert_non_null(strstr(e.text, "fault store"));
	}
	return (int)r;
}

static void nth_and_count(void **state)
{
	(void)state;
	make("fault: {op: read, nth: 3, count: 2, errno: ENOSPC}");
	put_below("f", "12345678");
	assert_int_equal(io_open(&io, "f", STORE_READ, blob, NULL), 0);
	assert_int_equal(read_code(), 8);
	assert_int_equal(read_code(), 8);
	assert_int_equal(read_code(), -ENOSPC);
	assert_int_equal(read_code(), -ENOSPC);
	assert_int_equal(read_code(), 8);
	assert_int_equal(io_close(&io, blob, NULL), 0);
	done();
}

static void for_good(void **state)
{
	(void)state;
	make("fault: {op: read, nth: 2, count: 0}");
	put_below("f", "12345678");
	assert_int_equal(io_open(&io, "f", STORE_READ, blob, NULL), 0);
	assert_int_equal(read_code(), 8);
	for (int i = 0; i < 20; i++)
		assert_int_equal(read_code(), -EIO);
	assert_int_equal(io_close(&io, blob, NULL), 0);
	done();
}

static void none_by_default(void **state)
{
	(void)state;
	make("fault: {op: read, count: 0}");
	put_below("f", "12345678");
	assert_int_equal(io_open(&io, "f", STORE_READ, blob, NULL), 0);
	for (int i = 0; i < 20; i++)
		assert_int_equal(read_code(), 8);
	assert_int_equal(io_close(&io, blob, NULL), 0);
	done();
}

static int ignore(void *arg, const char *name, bool is_dir)
{
	(void)arg;
	(void)name;
	(void)is_dir;
	return 0;
}

/* The codes of one call of each kind, in the order of the option's choices without "any". */
static void each_op(int *code)
{
	struct store_stat st;
	char p[4] = "abc";

	code[0] = io_open(&io, "f", STORE_READ | STORE_WRITE, blob, NULL);
	if (code[0] < 0)
		assert_int_equal(io_open(&io, "f", STORE_READ | STORE_WRITE, blob, NULL), 0);
	code[1] = (int)io_pread(&io, IO_DATA, blob, p, 4, 0, NULL);
	code[2] = (int)io_pwrite(&io, blob, p, 3, 0, NULL);
	code[3] = io_sync(&io, blob, NULL);
	code[4] = io_close(&io, blob, NULL);
	code[5] = io_stat_path(&io, "f", &st, NULL);
	code[6] = store_rename(store, "f", "g", NULL);
	code[7] = store_remove(store, code[6] < 0 ? "f" : "g", NULL);
	code[8] = store_mkdirs(store, "d", NULL);
	code[9] = store_list(store, "/", ignore, NULL, NULL);
}

static void every_op_fails_alone(void **state)
{
	static const char *const op[] = {"open", "read",   "write",  "sync",  "close",
					 "stat", "rename", "remove", "mkdir", "list"};

	(void)state;
	for (int k = 0; k < 10; k++) {
		char yaml[100];
		int code[10];

		snprintf(yaml, sizeof(yaml), "fault: {op: %s, nth: 1, errno: ESTALE}", op[k]);
		make(yaml);
		put_below("f", "12345678");
		each_op(code);
		for (int i = 0; i < 10; i++) {
			if (i == k ? code[i] != -ESTALE : code[i] < 0)
				fail_msg("op %s: call %s gave %d", op[k], op[i], code[i]);
		}
		done();
	}
}

static void any_counts_all(void **state)
{
	(void)state;
	for (int nth = 1; nth <= 10; nth++) {
		char yaml[100];
		int code[10], failed = 0;

		snprintf(yaml, sizeof(yaml), "fault: {nth: %d}", nth);
		make(yaml);
		put_below("f", "12345678");
		each_op(code);
		for (int i = 0; i < 10; i++)
			failed += code[i] < 0;
		assert_int_equal(failed, 1);
		assert_int_equal(code[nth - 1], -EIO);
		done();
	}
}

static void paths(void **state)
{
	struct store_stat st;
	struct err e;

	(void)state;
	make("fault: {op: any, nth: 1, count: 0, path: bad}");
	put_below("good", "12345678");
	put_below("a-bad-one", "12345678");
	assert_int_equal(io_open(&io, "good", STORE_READ, blob, NULL), 0);
	assert_int_equal(read_code(), 8);
	assert_int_equal(io_close(&io, blob, NULL), 0);
	assert_int_equal(io_stat_path(&io, "a-bad-one", &st, &e), -EIO);
	assert_non_null(strstr(e.text, "'a-bad-one'"));
	assert_int_equal(store_rename(store, "good", "bad", NULL), -EIO);
	assert_int_equal(store_rename(store, "good", "fine", NULL), 0);
	done();
	/* reads of a blob count by the path it was opened with */
	make("fault: {op: read, nth: 1, path: bad}");
	put_below("good", "12345678");
	put_below("bad", "12345678");
	assert_int_equal(io_open(&io, "good", STORE_READ, blob, NULL), 0);
	assert_int_equal(read_code(), 8);
	assert_int_equal(io_close(&io, blob, NULL), 0);
	assert_int_equal(io_open(&io, "bad", STORE_READ, blob, NULL), 0);
	assert_int_equal(read_code(), -EIO);
	assert_int_equal(io_close(&io, blob, NULL), 0);
	done();
}

static void short_reads(void **state)
{
	char p[8];
	struct err e;

	(void)state;
	make("fault: {op: read, nth: 1, count: 3, action: short}");
	put_below("f", "12345678");
	assert_int_equal(io_open(&io, "f", STORE_READ, blob, NULL), 0);
	assert_int_equal(read_code(), 4);
	/* told apart from a file that is too short */
	assert_int_equal(io_pread_full(&io, IO_DATA, blob, "f", p, 8, 0, &e), ERR_DATA);
	assert_non_null(strstr(e.text, "'f' has 8 bytes, but the store returned only 4 of the 8"));
	assert_int_equal(io_pread(&io, IO_DATA, blob, p, 1, 0, NULL), 0);
	assert_int_equal(read_code(), 8);
	assert_int_equal(io_close(&io, blob, NULL), 0);
	done();
}

static void short_writes(void **state)
{
	struct err e;

	(void)state;
	make("fault: {op: write, nth: 1, action: short, errno: ENOSPC}");
	assert_int_equal(io_open(&io, "f", STORE_WRITE | STORE_CREATE, blob, NULL), 0);
	assert_int_equal(io_pwrite(&io, blob, "12345678", 8, 0, &e), -ENOSPC);
	assert_int_equal(io_close(&io, blob, NULL), 0);
	assert_int_equal(bytes_below("f"), 4);
	done();
	make("fault: {op: write, nth: 1, action: fail}");
	assert_int_equal(io_open(&io, "f", STORE_WRITE | STORE_CREATE, blob, NULL), 0);
	assert_int_equal(io_pwrite(&io, blob, "12345678", 8, 0, &e), -EIO);
	assert_int_equal(io_close(&io, blob, NULL), 0);
	assert_int_equal(bytes_below("f"), 0);
	done();
}

static void failed_opens_create_nothing(void **state)
{
	struct store_stat st;

	(void)state;
	make("fault: {op: open, nth: 1}");
	assert_int_equal(io_open(&io, "f", STORE_WRITE | STORE_CREATE, blob, NULL), -EIO);
	assert_int_equal(store_stat_path(store->lower, "f", &st, NULL), -ENOENT);
	done();
}

static void delays(void **state)
{
	int64_t start;

	(void)state;
	make("fault: {op: any, nth: 2, action: delay, delay: 0.05}");
	put_below("f", "12345678");
	assert_int_equal(io_open(&io, "f", STORE_READ, blob, NULL), 0);
	start = clock_now_ns();
	assert_int_equal(read_code(), 8);
	assert_true(clock_now_ns() - start >= 50000000);
	assert_int_equal(io_close(&io, blob, NULL), 0);
	done();
}

static void *count_failures(void *arg)
{
	struct blob *b = store_blob_new(store, NULL);
	char p[8];

	io_open(&io, "f", STORE_READ, b, NULL);
	for (int i = 0; i < 500; i++)
		*(int *)arg += io_pread(&io, IO_DATA, b, p, 8, 0, NULL) < 0;
	io_close(&io, b, NULL);
	free(b);
	return NULL;
}

static void counts_over_threads(void **state)
{
	pthread_t t[4];
	int failed[4] = {0};

	(void)state;
	make("fault: {op: read, nth: 700, count: 250}");
	put_below("f", "12345678");
	for (int i = 0; i < 4; i++)
		assert_int_equal(thread_start(&t[i], count_failures, &failed[i], 0, "reader", NULL),
				 0);
	for (int i = 0; i < 4; i++)
		pthread_join(t[i], NULL);
	assert_int_equal(failed[0] + failed[1] + failed[2] + failed[3], 250);
	done();
}

static void useless_options(void **state)
{
	static const char *const yaml = "fault: {op: open, nth: 1, action: short}";
	struct node *n = yaml_parse(yaml, strlen(yaml), "test", NULL);
	struct err e;

	(void)state;
	assert_int_equal(store_create(&store, "fault+memory", n, &e), ERR_USAGE);
	assert_non_null(strstr(e.text, "would do nothing"));
	node_free(n);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nth_and_count),
		cmocka_unit_test(for_good),
		cmocka_unit_test(none_by_default),
		cmocka_unit_test(every_op_fails_alone),
		cmocka_unit_test(any_counts_all),
		cmocka_unit_test(paths),
		cmocka_unit_test(short_reads),
		cmocka_unit_test(short_writes),
		cmocka_unit_test(failed_opens_create_nothing),
		cmocka_unit_test(delays),
		cmocka_unit_test(counts_over_threads),
		cmocka_unit_test(useless_options),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
