/* Spans: what a ring keeps and drops, their order, reading beside a writer; MD5, DFTracer's hash.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/thread.h"
#include "codec/digest.h"
#include "metric/io_stat.h"
#include "metric/span.h"
#include "store/store.h"

static struct trace *trace_of(uint32_t ranks, uint32_t capacity)
{
	struct trace *t;
	struct err e = {0};

	assert_int_equal(trace_create(&t, 0, ranks, capacity, &e), 0);
	return t;
}

static void test_full_ring_drops_and_counts(void **state)
{
	struct trace *t = trace_of(1, 4);
	struct span_ring *r = trace_ring(t, 0, 0, 0, false);
	uint64_t kept, dropped;

	(void)state;
	for (int i = 0; i < 10; i++)
		span_add(r, SPAN_BATCH, 0, i, i + 1, (uint64_t)i);
	trace_count(t, &kept, &dropped);
	assert_true(kept == 4 && dropped == 6);
	assert_int_equal(span_ring_sort(r), 4);
	for (int i = 0; i < 4; i++) {
		assert_true(r->span[i].begin_ns == i && r->span[i].moved == (uint64_t)i);
		assert_true(r->span[i].file == SPAN_NONE && r->span[i].sample == SPAN_NONE);
	}
	trace_destroy(t);
}

static void test_off_is_nothing(void **state)
{
	uint64_t kept, dropped;
	struct err e = {0};

	(void)state;
	assert_null(trace_ring(NULL, 0, 0, 0, false));
	span_add(NULL, SPAN_BATCH, 0, 1, 2, 3);
	trace_count(NULL, &kept, &dropped);
	assert_true(kept == 0 && dropped == 0);
	assert_int_equal(trace_check(NULL, &e), 0);
	trace_destroy(NULL);
}

/* Put by their ends, as they happen: the holder after what it holds. */
static void test_holders_come_first(void **state)
{
	static const struct {
		int64_t begin, end;
		enum span_kind kind;
	} put[] = {{5, 5, SPAN_OPEN}, {5, 7, SPAN_READ}, {7, 9, SPAN_READ},  {5, 9, SPAN_SAMPLE},
		   {5, 9, SPAN_ITEM}, {9, 9, SPAN_OPEN}, {2, 20, SPAN_BATCH}},
	  want[] = {{2, 20, SPAN_BATCH}, {5, 9, SPAN_ITEM}, {5, 9, SPAN_SAMPLE}, {5, 7, SPAN_READ},
		    {5, 5, SPAN_OPEN},   {7, 9, SPAN_READ}, {9, 9, SPAN_OPEN}};
	struct trace *t = trace_of(1, 16);
	struct span_ring *r = trace_ring(t, 0, 0, 0, false);

	(void)state;
	for (size_t i = 0; i < 7; i++)
		span_add(r, put[i].kind, 0, put[i].begin, put[i].end, 0);
	assert_int_equal(span_ring_sort(r), 7);
	for (size_t i = 0; i < 7; i++) {
		assert_true(r->span[i].begin_ns == want[i].begin);
		assert_true(r->span[i].end_ns == want[i].end);
		assert_int_equal(r->span[i].kind, want[i].kind);
	}
	trace_destroy(t);
}

static void test_rings_of_ranks_are_numbered(void **state)
{
	struct trace *t = trace_of(2, 16);

	(void)state;
	for (uint32_t i = 0; i < 3; i++)
		for (uint32_t rank = 0; rank < 2; rank++) {
			struct span_ring *r = trace_ring(t, rank, 1, i, i == 0);

			assert_int_equal(r->slot, i);
			assert_int_equal(r->rank, rank);
			assert_true(r->of_rank == (i == 0) && r->worker == i && r->dataset == 1);
		}
	trace_destroy(t);
}

static void test_refused_memory_is_told(void **state)
{
	struct trace *t = trace_of(1, UINT32_MAX);
	struct err e = {0};

	(void)state;
	t->refused = true;
	assert_int_equal(trace_check(t, &e), -ENOMEM);
	assert_non_null(strstr(e.text, "run.trace_events"));
	trace_destroy(t);
}

#define MANY 200000u

static void *writer(void *arg)
{
	for (uint32_t i = 0; i < MANY; i++)
		span_add(arg, SPAN_READ, 0, i, i + 1, i);
	return NULL;
}

/* As when results are written while a thread still hangs, and then goes on. */
static void test_what_is_there_can_be_sorted_beside_a_writer(void **state)
{
	struct trace *t = trace_of(1, MANY / 2);
	struct span_ring *r = trace_ring(t, 0, 0, 0, false);
	uint64_t kept = 0, dropped;
	struct err e = {0};
	pthread_t thread;

	(void)state;
	assert_int_equal(thread_start(&thread, writer, r, 0, "writer", &e), 0);
	while (kept < MANY / 2) {
		uint32_t n = span_ring_sort(r);

		for (uint32_t i = 0; i < n; i++)
			assert_true(r->span[i].begin_ns == i && r->span[i].moved == i);
		trace_count(t, &kept, &dropped);
	}
	pthread_join(thread, NULL);
	trace_count(t, &kept, &dropped);
	assert_true(kept == MANY / 2 && dropped == MANY - MANY / 2);
	trace_destroy(t);
}

/* Every io_ call leaves one span with what it was told, and of the file that was open. */
static void test_requests_leave_spans(void **state)
{
	static const struct {
		enum span_kind kind;
		uint64_t file, offset, asked, moved;
		unsigned flags;
	} want[] = {{SPAN_OPEN, 7, 0, 0, 0, 0},  {SPAN_WRITE, 7, 0, 5, 5, 0},
		    {SPAN_SYNC, 7, 0, 0, 0, 0},  {SPAN_CLOSE, 7, 0, 0, 0, 0},
		    {SPAN_OPEN, 8, 0, 0, 0, 0},  {SPAN_STAT, 8, 0, 0, 0, SPAN_META},
		    {SPAN_READ, 8, 1, 9, 4, 0},  {SPAN_READ, 8, 0, 2, 2, SPAN_META},
		    {SPAN_CLOSE, 8, 0, 0, 0, 0}, {SPAN_OPEN, 9, 0, 0, 0, SPAN_FAILED}};
	struct trace *t = trace_of(1, 64);
	struct span_ring *r = trace_ring(t, 0, 0, 0, false);
	struct store *s;
	struct err e = {0};
	struct io io;
	struct blob *b;
	struct store_stat st;
	char got[9];

	(void)state;
	assert_int_equal(store_create(&s, "memory", NULL, &e), 0);
	io = (struct io){.store = s, .trace = r};
	b = store_blob_new(s, &e);
	r->file = 7;
	assert_int_equal(io_open(&io, "/a", STORE_WRITE | STORE_CREATE, b, &e), 0);
	r->file = 3; /* the thread is at another one by now */
	assert_int_equal(io_pwrite(&io, b, "hello", 5, 0, &e), 5);
	assert_int_equal(io_sync(&io, b, &e), 0);
	assert_int_equal(io_close(&io, b, &e), 0);
	r->file = 8;
	assert_int_equal(io_open(&io, "/a", STORE_READ, b, &e), 0);
	assert_int_equal(io_stat_blob(&io, b, &st, &e), 0);
	assert_int_equal(io_pread(&io, IO_DATA, b, got, 9, 1, &e), 4);
	assert_int_equal(io_pread(&io, IO_META, b, got, 2, 0, &e), 2);
	assert_int_equal(io_close(&io, b, &e), 0);
	r->file = 9;
	assert_true(io_open(&io, "/absent", STORE_READ, b, NULL) < 0);
	assert_int_equal(atomic_load(&r->count), 10);
	for (int i = 0; i < 10; i++) {
		const struct span *p = &r->span[i];

		assert_int_equal(p->kind, want[i].kind);
		assert_int_equal(p->flags, want[i].flags);
		assert_true(p->file == want[i].file && p->offset == want[i].offset);
		assert_true(p->asked == want[i].asked && p->moved == want[i].moved);
		assert_true(p->begin_ns > 0 && p->end_ns >= p->begin_ns);
		assert_true(i == 0 || p->begin_ns >= p[-1].end_ns);
	}
	free(b);
	store_destroy(s);
	trace_destroy(t);
}

static void test_latencies_by_size(void **state)
{
	static const struct {
		uint64_t asked;
		enum io_class size;
	} edge[] = {{1, IO_TO_4_KIB},         {4096, IO_TO_4_KIB},  {4097, IO_TO_64_KIB},
		    {65536, IO_TO_64_KIB},    {65537, IO_TO_1_MIB}, {1048576, IO_TO_1_MIB},
		    {1048577, IO_ABOVE_1_MIB}};
	static struct io_stat one, all;
	const struct io_latency *l;

	(void)state;
	io_stat_init(&one);
	io_stat_init(&all);
	for (size_t i = 0; i < 7; i++)
		io_stat_add(&one, IO_DATA, 1000 * (int64_t)(i + 1), edge[i].asked, 1);
	io_stat_add(&one, IO_META, 5, 0, 0); /* a stat has no size */
	io_stat_add(&one, IO_OPEN, 5, 0, 0);
	for (int size = 0; size < IO_CLASSES; size++) {
		uint64_t n = 0;

		for (size_t i = 0; i < 7; i++)
			n += (int)edge[i].size == size;
		assert_true(io_stat_sized(&one, IO_DATA, (enum io_class)size)->total == n);
		assert_true(io_stat_sized(&one, IO_META, (enum io_class)size)->total == 0);
	}
	assert_null(io_stat_sized(&one, IO_OPEN, IO_TO_4_KIB));
	assert_null(io_stat_sized(&one, IO_SYNC, IO_TO_4_KIB));
	/* 10,000 of 1 us and one of 1 ms: only the last percentiles see it */
	io_stat_init(&one);
	for (int i = 0; i < 9999; i++)
		io_stat_add(&one, IO_WRITE, 1000, 100, 100);
	io_stat_add(&one, IO_WRITE, 1000000, 100, 100);
	io_stat_merge(&all, &one);
	io_stat_merge(&all, &one);
	l = io_stat_sized(&all, IO_WRITE, IO_TO_4_KIB);
	assert_true(l->total == 20000 && l->max_ns == 1000000);
	assert_in_range(io_latency_quantile(l, 0.5), 1000, 1000 + 1000 / 16);
	assert_in_range(io_latency_quantile(l, 0.9999), 1000, 1000 + 1000 / 16);
	assert_true(io_latency_quantile(l, 0.99995) > 900000);
	assert_true(io_latency_quantile(l, 1) == 1000000);
	assert_true(io_latency_quantile(io_stat_sized(&all, IO_DATA, IO_TO_4_KIB), 0.5) == 0);
}

/* RFC 1321, A.5, and lengths around the block. */
static void test_md5(void **state)
{
	static const struct {
		const char *text, *digest;
	} vector[] = {
		{"", "d41d8cd98f00b204e9800998ecf8427e"},
		{"abc", "900150983cd24fb0d6963f7d28e17f72"},
		{"abcdefghijklmnopqrstuvwxyz", "c3fcd3d76192e4007dfb496cca67e13b"},
		{"1234567890123456789012345678901234567890123456789012345678901234567890123456789"
		 "0",
		 "57edf4a22be3c955ac49da2e2107b67a"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(vector) / sizeof(vector[0]); i++) {
		unsigned char sum[16];
		char text[33];

		md5(vector[i].text, strlen(vector[i].text), sum);
		for (int k = 0; k < 16; k++)
			snprintf(text + 2 * k, 3, "%02x", sum[k]);
		assert_string_equal(text, vector[i].digest);
	}
}

/* Names fill their room and no more; what comes later is of no file. */
static void names_are_bounded(void **state)
{
	struct trace *t;
	struct span_ring *r;
	uint64_t before = 0;
	char name[1000];
	uint32_t kept = 0;

	(void)state;
	span_name(NULL, "nothing");
	assert_int_equal(trace_create(&t, 0, 1, 100, NULL), 0);
	r = trace_ring_named(t, 0, true);
	assert_non_null(r);
	assert_true(trace_ring_named_bytes(100) > trace_ring_bytes(100));
	memset(name, 'x', sizeof(name));
	for (uint32_t i = 0; i < 1000; i++) {
		snprintf(name + 990, 10, "%u", i);
		span_name(r, name);
		if (r->file == SPAN_NONE)
			continue;
		assert_true(i == 0 || r->file > before);
		assert_string_equal(r->names + r->file, name);
		before = r->file;
		kept++;
	}
	assert_true(kept > 50 && kept < 100);
	assert_true(r->names_used <= r->names_bytes);
	span_name(r, name);
	assert_true(r->file == SPAN_NONE);
	trace_destroy(t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_full_ring_drops_and_counts),
		cmocka_unit_test(test_off_is_nothing),
		cmocka_unit_test(test_holders_come_first),
		cmocka_unit_test(test_rings_of_ranks_are_numbered),
		cmocka_unit_test(test_refused_memory_is_told),
		cmocka_unit_test(test_what_is_there_can_be_sorted_beside_a_writer),
		cmocka_unit_test(test_requests_leave_spans),
		cmocka_unit_test(test_latencies_by_size),
		cmocka_unit_test(test_md5),
		cmocka_unit_test(names_are_bounded),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
