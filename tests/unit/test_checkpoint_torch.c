/* Archives and pickles of torch.save: bytes that PyTorch 1.13 wrote for what is too large to be
 * written in a test, and pickles that nobody should have written. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "checkpoint/pickle.h"
#include "checkpoint/torch.h"

/* What torch.save({"a": zeros(4300000000, uint8), "b": ones(5, uint8)}) hands to its file, without
 * the bytes of "a". */
static const char *const large_archive[] = {
	"504b03040000080800000000000000000000000000000000000010001200",
	"617263686976652f646174612e706b6c",
	"46420e005a5a5a5a5a5a5a5a5a5a5a5a5a5a",
	"80027d710028580100000061710163746f7263682e5f7574696c730a5f72656275696c645f74656e736f725f"
	"76320a71022828580700000073746f72616765710363746f7263680a4279746553746f726167650a71045801"
	"000000307105580300000063707571068a0500cb4c0001747107514b008a0500cb4c00018571084b01857109"
	"8963636f6c6c656374696f6e730a4f726465726564446963740a710a2952710b74710c52710d580100000062"
	"710e6802282868036804580100000031710f68064b05747110514b004b058571114b0185711289680a295271"
	"13747114527115752e",
	"504b0708dcbdc1c2e5000000e5000000",
	"504b0304000008080000000000000000000000000000000000000e001f00",
	"617263686976652f646174612f30",
	"0100100000cb4c00010000000000000000000000",
	"464207005a5a5a5a5a5a5a",
	"504b0708b39dd4e400cb4c000100000000cb4c0001000000",
	"504b0304000008080000000000000000000000000000000000000e003c00",
	"617263686976652f646174612f31",
	"0100080098cc4c0001000000",
	"46422c005a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a"
	"5a5a5a5a",
	"0101010101",
	"504b070828d2202c05000000000000000500000000000000",
	"504b0304000008080000000000000000000000000000000000000f003600",
	"617263686976652f76657273696f6e",
	"010008001dcd4c0001000000",
	"464226005a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a",
	"330a",
	"504b0708d19e675502000000000000000200000000000000",
	"504b0102000000000808000000000000dcbdc1c2e5000000e500000010000000000000000000000000000000"
	"0000617263686976652f646174612e706b6c504b0102000000000808000000000000b39dd4e4ffffffffffff"
	"ffff0e0014000000000000000000000035010000617263686976652f646174612f300100100000cb4c000100"
	"000000cb4c0001000000504b010200000000080800000000000028d2202c05000000050000000e000c000000"
	"0000000000000000ffffffff617263686976652f646174612f310100080098cc4c0001000000504b01020000"
	"00000808000000000000d19e675502000000020000000f000c0000000000000000000000ffffffff61726368"
	"6976652f76657273696f6e010008001dcd4c0001000000",
	"504b06062c000000000000001e032d000000000000000000040000000000000004000000000000001f010000"
	"000000009acd4c0001000000",
	"504b060700000000b9ce4c000100000001000000",
	"504b050600000000040004001f010000ffffffff0000",
};

#define LARGE 4300000000ull

static struct buf written; /* all but the large tensor */
static uint64_t skipped;

static ssize_t keep_pwrite(struct blob *b, const void *p, size_t n, uint64_t offset, struct err *e)
{
	(void)b;
	(void)e;
	assert_int_equal(offset, written.len + skipped);
	buf_append(&written, p, n);
	return (ssize_t)n;
}

static ssize_t keep_pwritev(struct blob *b, const struct iovec *v, int count, uint64_t offset,
			    struct err *e)
{
	uint64_t n = 0;

	for (int i = 0; i < count; i++)
		n += v[i].iov_len;
	if (n > 1000000) {
		skipped += n;
		return (ssize_t)n;
	}
	for (int i = 0; i < count; i++)
		offset += (uint64_t)keep_pwrite(b, v[i].iov_base, v[i].iov_len, offset, e);
	return (ssize_t)n;
}

static const struct store_ops keep_ops = {
	.is.name = "keep", .pwrite = keep_pwrite, .pwritev = keep_pwritev};

static void unhex(const char *hex, struct buf *out)
{
	for (; hex[0]; hex += 2) {
		unsigned v = 0;

		sscanf(hex, "%2x", &v);
		buf_putc(out, (char)v);
	}
}

static void test_large(void **state)
{
	struct store store = {.ops = &keep_ops};
	struct blob blob = {.store = &store};
	struct io io = {.store = &store};
	struct stream *s = xcalloc(1, sizeof(*s));
	unsigned char *arena = xmalloc(4096);
	struct content_pool pool;
	struct buf want = {0}, directory = {0}, pickle = {0};
	struct torch_zip z;
	struct pickle_writer w;
	struct err e = {0};

	(void)state;
	assert_int_equal(content_pool_init(&pool, CHECKPOINT_UINT8, true, 0, 4 << 20, &e), 0);
	pickle_begin(&w, &pickle);
	pickle_op(&w, '}');
	pickle_put(&w);
	pickle_item(&w, 0, 2);
	pickle_key(&w, "a");
	pickle_tensor(&w, CHECKPOINT_UINT8, "0", LARGE);
	pickle_item(&w, 1, 2);
	pickle_key(&w, "b");
	pickle_tensor(&w, CHECKPOINT_UINT8, "1", 5);
	pickle_item(&w, 2, 2);
	pickle_end(&w);
	stream_start(s, STREAM_PYTHON, 4096, arena, &io, &blob, &e);
	torch_zip_begin(&z, s, &directory);
	torch_zip_put(&z, "data.pkl", pickle.data, pickle.len);
	torch_zip_record(&z, "data/0", LARGE);
	stream_payload(s, &pool, 0, LARGE);
	torch_zip_record_end(&z, 0xe4d49db3); /* of zeros */
	torch_zip_record(&z, "data/1", 5);
	stream_payload(s, &pool, 0, 5);
	torch_zip_record_end(&z, content_crc(&pool, 0, 5));
	torch_zip_put(&z, "version", "3\n", 2);
	torch_zip_end(&z);
	assert_int_equal(stream_flush(s), 0);
	assert_true(skipped == LARGE);
	for (size_t i = 0; i < sizeof(large_archive) / sizeof(large_archive[0]); i++)
		unhex(large_archive[i], &want);
	assert_int_equal(written.len, want.len);
	assert_memory_equal(written.data, want.data, want.len);
	/* and the CRC of so much content in a moment: all ones are a pool repeated */
	assert_int_not_equal(content_crc(&pool, 0, LARGE), 0);
	buf_release(&written);
	buf_release(&want);
	buf_release(&directory);
	buf_release(&pickle);
	content_pool_release(&pool);
	free(arena);
	free(s);
}

static void test_names(void **state)
{
	static const uint64_t counts[] = {0, 1, 2, 10, 11, 101, 1234};

	(void)state;
	for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
		char last[24] = "", name[24];
		uint64_t n = 0;

		for (uint64_t x = 0; x < counts[i]; x = torch_next_name(x, counts[i]), n++) {
			snprintf(name, sizeof(name), "%llu", (unsigned long long)x);
			assert_true(strcmp(last, name) < 0);
			memcpy(last, name, sizeof(last));
		}
		assert_int_equal(n, counts[i]);
	}
}

static int count_tensor(void *arg, const struct pickle_tensor *t, struct err *e)
{
	(void)e;
	(void)t;
	++*(uint64_t *)arg;
	return 0;
}

static int parse(const char *bytes, size_t n, size_t memory, uint64_t *count, struct err *e)
{
	*count = 0;
	return pickle_read_tensors(bytes, n, memory, count_tensor, count, e);
}

static void expect_bad(const char *bytes, size_t n, const char *part)
{
	struct err e = {0};
	uint64_t count;

	assert_int_equal(parse(bytes, n, 1 << 20, &count, &e), ERR_DATA);
	if (!strstr(e.text, part))
		print_error("%s\n", e.text);
	assert_non_null(strstr(e.text, part));
}

#define BAD(bytes, part) expect_bad(bytes, sizeof(bytes) - 1, part)

static void test_bad_pickles(void **state)
{
	struct buf b = {0};
	struct err e = {0};
	uint64_t count;

	(void)state;
	BAD("", "the STOP opcode is missing");
	BAD(".", "it is empty");
	BAD("\x80\x02}", "the STOP opcode is missing");
	BAD("\x80\x02X\xff\xff\xff\x7fzz.", "inside a string");
	BAD("}r\xff\xff\xff\xff.", "an invalid memo index");
	BAD("h\x01.", "an empty memo entry");
	BAD("t.", "a mark is missing");
	BAD("R.", "stack underflow");
	BAD("cos\nsystem", "name of a global");
	BAD("Q.", "stack underflow");
	BAD("}Q.", "does not name a storage");
	BAD("\x80\x04\x94.", "protocol 4");
	BAD("\x82.", "does not write");
	BAD("}(K\x01u.", "has no value");
	BAD("ctorch._utils\n_rebuild_tensor_v2\n)R.", "a tensor lacks its storage");
	/* what is called is never called */
	assert_int_equal(parse("cos\nsystem\n(X\x02\0\0\0lstR.", 26, 1 << 20, &count, &e), 0);
	assert_int_equal(count, 0);
	/* a list within itself, and maps that double themselves */
	BAD("]q\0h\0a.", "nested too deeply");
	buf_puts(&b, "]q");
	buf_putc(&b, 0);
	for (int i = 1; i < 60; i++) {
		buf_puts(&b, "](");
		for (int k = 0; k < 9; k++) {
			buf_putc(&b, 'h');
			buf_putc(&b, (char)(i - 1));
		}
		buf_puts(&b, "eq");
		buf_putc(&b, (char)i);
	}
	buf_putc(&b, '.');
	expect_bad(b.data, b.len, "too many tensors");
	/* memory */
	buf_reset(&b);
	for (int i = 0; i < 100000; i++)
		buf_putc(&b, '}');
	buf_putc(&b, '.');
	expect_bad(b.data, b.len, "needs more than");
	buf_release(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_large),
		cmocka_unit_test(test_names),
		cmocka_unit_test(test_bad_pickles),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
