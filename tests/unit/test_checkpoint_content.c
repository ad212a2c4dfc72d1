/* Content pools and the buffering of streams: CRCs by combination, requests as libraries make them,
 * and the same bytes whatever the requests. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "base/rng.h"
#include "checkpoint/stream.h"
#include "codec/crc.h"

#define POOL_BYTES (4096u * 49) /* no multiple of the step of CRCs */

static struct content_pool pool;

static int set_up(void **state)
{
	struct err e;

	(void)state;
	return content_pool_init(&pool, CHECKPOINT_UINT8, false, 7, POOL_BYTES, &e);
}

static int tear_down(void **state)
{
	(void)state;
	content_pool_release(&pool);
	return 0;
}

static void test_crc(void **state)
{
	static const uint64_t lengths[] = {0,
					   1,
					   7,
					   4096,
					   65535,
					   65536,
					   POOL_BYTES,
					   POOL_BYTES + 1,
					   1000000,
					   3000001,
					   7 * POOL_BYTES};
	static const uint64_t phases[] = {0, 8, 4096 * 3 + 1888, POOL_BYTES - 8, 65536};
	unsigned char *copy = xmalloc(3000001);

	(void)state;
	for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++)
		for (size_t k = 0; k < sizeof(phases) / sizeof(phases[0]); k++) {
			content_copy(&pool, phases[k], 0, copy, (size_t)lengths[i]);
			assert_int_equal(content_crc(&pool, phases[k], lengths[i]),
					 crc32_update(0, copy, (size_t)lengths[i]));
			assert_int_equal(
				content_differs(&pool, phases[k], 0, copy, (size_t)lengths[i]),
				lengths[i]);
		}
	content_copy(&pool, 8, 100, copy, 1000000);
	copy[777777] ^= 1;
	assert_int_equal(content_differs(&pool, 8, 100, copy, 1000000), 777777);
	free(copy);
}

static void test_types(void **state)
{
	static const uint64_t ones[CHECKPOINT_DATATYPES] = {
		0x3c00, 0x3f80, 0x3f800000, 0x3ff0000000000000, 1, 1};
	struct content_pool p;
	struct err e;

	(void)state;
	for (int type = 0; type < CHECKPOINT_DATATYPES; type++) {
		uint32_t size = checkpoint_datatype_bytes[type];
		uint64_t v = 0;

		assert_int_equal(
			content_pool_init(&p, (enum checkpoint_datatype)type, true, 0, 8192, &e),
			0);
		memcpy(&v, p.bytes + 8192 - size, size);
		assert_true(v == ones[type]);
		content_pool_release(&p);
	}
	/* 0 <= x < 1, and not always the same */
	assert_int_equal(content_pool_init(&p, CHECKPOINT_FP32, false, 0, 1 << 20, &e), 0);
	double sum = 0;

	for (size_t i = 0; i < p.size / 4; i++) {
		float f;

		memcpy(&f, p.bytes + 4 * i, 4);
		assert_true(f >= 0 && f < 1);
		sum += f;
	}
	sum /= (double)(p.size / 4);
	assert_true(sum > 0.49 && sum < 0.51);
	content_pool_release(&p);
}

/* A store that notes requests and keeps the bytes. */
static struct {
	size_t request[4096];
	int requests;
	int fail_at; /* request that fails, or -1 */
	unsigned char *bytes;
	size_t size;
} sink;

static ssize_t sink_pwritev(struct blob *b, const struct iovec *v, int count, uint64_t offset,
			    struct err *e)
{
	size_t n = 0;

	(void)b;
	if (sink.requests == sink.fail_at)
		return err_set(e, -28, "full");
	for (int i = 0; i < count; i++) {
		assert_true(offset + n + v[i].iov_len <= sink.size);
		memcpy(sink.bytes + offset + n, v[i].iov_base, v[i].iov_len);
		n += v[i].iov_len;
	}
	sink.request[sink.requests++] = n;
	return (ssize_t)n;
}

static ssize_t sink_pwrite(struct blob *b, const void *p, size_t n, uint64_t offset, struct err *e)
{
	struct iovec v = {(void *)(uintptr_t)p, n};

	return sink_pwritev(b, &v, 1, offset, e);
}

static const struct store_ops sink_ops = {
	.is.name = "sink", .pwrite = sink_pwrite, .pwritev = sink_pwritev};
static struct store sink_store = {.ops = &sink_ops};

/* Calls of a library: positive sizes are bytes at hand, negative ones a tensor's. */
static uint64_t play(struct stream *s, const long *calls, int n)
{
	unsigned char *small = xmalloc(100000);

	memset(small, 's', 100000);
	for (int i = 0; i < n; i++) {
		if (calls[i] > 0)
			stream_put(s, small, (size_t)calls[i]);
		else
			stream_payload(s, &pool, 4096, (uint64_t)-calls[i]);
	}
	stream_flush(s);
	free(small);
	return s->offset;
}

static struct stream *run(enum stream_law law, size_t limit, const long *calls, int n,
			  struct stop_flag *stop, struct err *e)
{
	static struct stream s;
	static unsigned char *arena;
	struct blob blob = {.store = &sink_store};
	struct io io = {.store = &sink_store, .stop = stop};

	free(arena);
	arena = xmalloc(stream_arena_bytes(law, limit));
	sink.requests = 0;
	stream_start(&s, law, limit, arena, &io, &blob, e);
	play(&s, calls, n);
	return &s;
}

static void expect_requests(const size_t *want, int n)
{
	assert_int_equal(sink.requests, n);
	for (int i = 0; i < n; i++)
		assert_int_equal(sink.request[i], want[i]);
}

static void test_laws(void **state)
{
	/* as observed of torch.save with a buffer of 4096 bytes */
	static const long calls[] = {30, 16, 18, 320, 16, -2000, 16, 52, -600000, 16, 600, 22};
	static const size_t python[] = {2468, 600000, 638};
	static const long edges[] = {4096, -4096, 4095, 1, 1, -4097, 4097};
	static const size_t python_edges[] = {4096, 4096, 4096, 1, 4097, 4097};
	/* a tensor as large as the buffer does not wait in it for the next one */
	static const long whole[] = {4096, 10};
	static const long large[] = {100, -10000, 100};
	static const size_t pieces[] = {100, 4096, 4096, 1908};
	struct err e = {0};

	(void)state;
	sink.size = 4 << 20;
	sink.bytes = xcalloc(1, sink.size);
	sink.fail_at = -1;
	assert_int_equal(run(STREAM_PYTHON, 4096, calls, 12, NULL, &e)->rc, 0);
	expect_requests(python, 3);
	run(STREAM_PYTHON, 4096, edges, 7, NULL, &e);
	expect_requests(python_edges, 6);
	run(STREAM_RUST, 4096, edges, 7, NULL, &e);
	expect_requests(python_edges, 6);
	run(STREAM_RUST, 4096, whole, 1, NULL, &e);
	expect_requests(python_edges, 1);
	run(STREAM_PIECES, 4096, large, 3, NULL, &e);
	expect_requests(pieces, 4);
	free(sink.bytes);
}

/* Whatever the law, the bytes are those of the calls; blocks are whole ones. */
static void test_bytes(void **state)
{
	static const size_t limits[] = {4096, 8192, 100000, 1 << 20};
	unsigned char *want = NULL;
	long calls[300];
	struct err e = {0};
	size_t total = 0;

	(void)state;
	for (int i = 0; i < 300; i++) {
		uint64_t r = rng_word(99, (uint64_t)i);
		long n = 1 + (long)(r % (r & 64 ? 50 : r & 128 ? 5000 : 80000));

		calls[i] = r & 256 ? n : -n;
		total += (size_t)n;
	}
	sink.size = total;
	sink.fail_at = -1;
	for (int law = STREAM_PYTHON; law <= STREAM_BLOCKS; law++) {
		for (size_t i = 0; i < sizeof(limits) / sizeof(limits[0]); i++) {
			struct stream *s;

			sink.bytes = xcalloc(1, total);
			s = run((enum stream_law)law, limits[i], calls, 300, NULL, &e);
			assert_int_equal(s->rc, 0);
			assert_int_equal(s->offset, total);
			assert_int_equal(s->written, total);
			if (!want)
				want = sink.bytes;
			else
				assert_memory_equal(want, sink.bytes, total);
			if (law == STREAM_BLOCKS && limits[i] <= 100000)
				for (int k = 0; k < sink.requests - 1; k++)
					assert_int_equal(sink.request[k], limits[i]);
			if (want != sink.bytes)
				free(sink.bytes);
		}
	}
	free(want);
}

static void test_failures(void **state)
{
	static const long calls[] = {30, -60000, 30, -60000, 30};
	struct stop_flag stop = {.set = 0};
	struct err e = {0};

	(void)state;
	sink.size = 1 << 20;
	sink.bytes = xcalloc(1, sink.size);
	sink.fail_at = 1;
	assert_int_equal(run(STREAM_PYTHON, 4096, calls, 5, NULL, &e)->rc, -28);
	assert_int_equal(sink.requests, 1);
	assert_string_equal(e.text, "full");
	sink.fail_at = -1;
	stop.set = 1;
	assert_int_equal(run(STREAM_BLOCKS, 4096, calls, 5, &stop, &e)->rc, ERR_CANCELED);
	assert_int_equal(sink.requests, 0);
	free(sink.bytes);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_crc),      cmocka_unit_test(test_types),
		cmocka_unit_test(test_laws),     cmocka_unit_test(test_bytes),
		cmocka_unit_test(test_failures),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
