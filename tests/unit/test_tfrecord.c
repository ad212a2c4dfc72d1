/* TFRecord: the message, the index, and which requests a stream makes. */
#include <errno.h>
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "../tools/test_content.h"
#include "base/alloc.h"
#include "codec/crc.h"
#include "format/format.h"
#include "format/tfrecord/tfrecord.h"

static struct err e;

/* ---- the message ---- */

static void message_bytes(void **state)
{
	/* as protoc's Python writes {"image": [b"abc"], "size": [3]} */
	static const char want[] = "\x0a\x21"
				   "\x0a\x10\x0a\x05image\x12\x07\x0a\x05\x0a\x03"
				   "abc"
				   "\x0a\x0d\x0a\x04size\x12\x05\x1a\x03\x0a\x01\x03";
	struct example_layout l;
	char got[128];

	(void)state;
	/* the two entries: 2 + 18 and 2 + 13 */
	assert_true(example_layout_of(3, &l));
	memcpy(got, l.head, l.head_bytes);
	memcpy(got + l.head_bytes, "abc", 3);
	memcpy(got + l.head_bytes + 3, l.tail, l.tail_bytes);
	assert_int_equal(l.bytes, l.head_bytes + 3 + l.tail_bytes);
	assert_int_equal(l.bytes, sizeof(want) - 1);
	for (size_t i = 0; i < l.bytes; i++) {
		if (got[i] != want[i])
			fail_msg("byte %zu is 0x%02x, not 0x%02x", i, (unsigned char)got[i],
				 (unsigned char)want[i]);
	}
}

static void sizes_of_messages(void **state)
{
	static const uint64_t sizes[] = {0,     1,      100,     127,     128,     16383,
					 16384, 114660, 2097151, 2828486, 2097152, 268435456};
	struct example_layout l;
	struct example x;

	(void)state;
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		unsigned char *m;

		assert_true(example_layout_of(sizes[i], &l));
		assert_true(l.head_bytes <= EXAMPLE_EDGE_MAX && l.tail_bytes <= EXAMPLE_EDGE_MAX);
		assert_int_equal(l.bytes, l.head_bytes + sizes[i] + l.tail_bytes);
		m = xmalloc(l.bytes);
		memcpy(m, l.head, l.head_bytes);
		memcpy(m + l.bytes - l.tail_bytes, l.tail, l.tail_bytes);
		assert_int_equal(example_parse(m, l.bytes, &x, &e), 0);
		assert_ptr_equal(x.image, m + l.head_bytes);
		assert_int_equal(x.image_bytes, sizes[i]);
		assert_true(x.has_size);
		assert_int_equal(x.size, sizes[i]);
		free(m);
	}
	assert_true(example_layout_of(INT32_MAX - 100, &l));
	assert_false(example_layout_of(INT32_MAX - 10, &l));
	assert_false(example_layout_of(INT32_MAX, &l));
	assert_false(example_layout_of(UINT64_MAX, &l));
}

static int parse(const char *bytes, size_t n, struct example *x)
{
	char *exact = xmalloc(n + 1);
	int rc;

	/* a block without a byte behind it */
	exact = realloc(exact, n ? n : 1);
	memcpy(exact, bytes, n);
	memset(&e, 0, sizeof(e));
	rc = example_parse(exact, n, x, &e);
	/* not to be followed any more */
	if (x->image)
		x->image = (const unsigned char *)bytes + (x->image - (unsigned char *)exact);
	free(exact);
	return rc;
}
#define PARSE(text, x) parse(text, sizeof(text) - 1, x)

static void other_writers(void **state)
{
	struct example x;

	(void)state;
	assert_int_equal(PARSE("", &x), 0);
	assert_null(x.image);
	/* size before image, not packed, unknown feature and fields in between, value before key */
	assert_int_equal(PARSE("\x0a\x3c"
			       "\x0a\x0c\x0a\x04size\x12\x04\x1a\x02\x08\x07"
			       "\x0a\x0a\x0a\x01z\x12\x05\x12\x03\x0a\x01x"
			       "\x10\x05\x19"
			       "12345678\x25"
			       "1234"
			       "\x0a\x10\x12\x07\x0a\x05\x0a\x03xyz\x0a\x05image",
			       &x),
			 0);
	assert_int_equal(x.size, 7);
	assert_int_equal(x.image_bytes, 3);
	assert_memory_equal(x.image, "xyz", 3);
	/* the last one counts */
	assert_int_equal(
		PARSE("\x0a\x14\x0a\x12\x0a\x05image\x12\x09\x0a\x07\x0a\x01x\x0a\x02yz", &x), 0);
	assert_memory_equal(x.image, "yz", 2);
	/* a number of ten bytes */
	assert_int_equal(PARSE("\x0a\x17\x0a\x15\x0a\x04size\x12\x0d\x1a\x0b\x08"
			       "\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01",
			       &x),
			 0);
	assert_int_equal(x.size, -1);
}

static void damaged_messages(void **state)
{
	static const struct {
		const char *bytes;
		size_t n;
		const char *says;
	} bad[] = {
#define BAD(text, says) {text, sizeof(text) - 1, says}
		BAD("\x0a", "byte 1: a number is cut off"),
		BAD("\x0a\x05", "byte 2: a field is longer"),
		BAD("\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", "longer than the message"),
		BAD("\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", "longer than 10 bytes"),
		BAD("\x0b", "does not use"),
		BAD("\x0c", "does not use"),
		BAD("\x0f", "does not use"),
		BAD("\x02\x00", "no number"),
		BAD("\xff\xff\xff\xff\xff\x0f", "no number"),
		BAD("\x0d\x01\x02\x03", "longer"),
		BAD("\x09\x01\x02\x03", "longer"),
		BAD("\x0a\x02\x0a\x05", "byte 4: a field is longer"),
		BAD("\x0a\x03\x0a\x01\x0a", "byte 5: a number is cut off"),
		BAD("\x0a\x11\x0a\x0f\x0a\x05image\x12\x06\x0a\x04\x0a\x03zz", "byte 17"),
	};
	struct example x;

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		if (parse(bad[i].bytes, bad[i].n, &x) != ERR_DATA)
			fail_msg("message %zu was taken", i);
		if (!strstr(e.text, bad[i].says))
			fail_msg("message %zu: %s", i, e.text);
	}
}

/* ---- the index ---- */

static const struct format_ops *tf(void)
{
	return format_find("tfrecord");
}

static struct file_spec spec(uint64_t samples, uint64_t bytes)
{
	return (struct file_spec){.elem = elem_find("uint8"),
				  .ndims = 1,
				  .dims = {bytes},
				  .samples = samples,
				  .compression = "none"};
}

static void index_paths(void **state)
{
	static const char *const paths[][2] = {
		{"d/train/a.tfrecord", "d/index/train/a.tfrecord.idx"},
		{"/valid/a", "/index/valid/a.idx"},
		{"train/a", "index/train/a.idx"},
		{"d/train/07/a", "d/index/train/a.idx"},
		{"valid/train/a", "valid/index/train/a.idx"},
		{"/x/valid/train/3/a", "/x/valid/index/train/a.idx"},
		{"/data/valid.d/train/a", "/data/valid.d/index/train/a.idx"},
		{"/train/1/2/a", "/train/1/2/a.idx"},
		{"/trains/a", "/trains/a.idx"},
		{"a", "a.idx"},
		{"train", "train.idx"},
		{"/a", "/a.idx"},
	};
	char out[64];

	(void)state;
	for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
		size_t n = strlen(paths[i][1]) + 1;

		assert_int_equal(tf()->sidecar_path(paths[i][0], 0, out, sizeof(out)), 0);
		assert_string_equal(out, paths[i][1]);
		assert_int_equal(tf()->sidecar_path(paths[i][0], 0, out, n), 0);
		assert_int_equal(tf()->sidecar_path(paths[i][0], 0, out, n - 1), -ENAMETOOLONG);
	}
}

static void index_sizes(void **state)
{
	static const uint64_t samples[] = {0, 1, 2, 3, 10, 11, 101, 999, 1251, 10001};
	static const uint64_t bytes[] = {0, 1, 35, 60, 100, 948, 9953, 114660};

	(void)state;
	for (size_t i = 0; i < sizeof(samples) / sizeof(samples[0]); i++) {
		for (size_t k = 0; k < sizeof(bytes) / sizeof(bytes[0]); k++) {
			struct file_spec f = spec(samples[i], bytes[k]);
			struct tfrecord_layout l;
			uint64_t sum = 0;

			assert_int_equal(tfrecord_layout_of(&f, &l, &e), 0);
			for (uint64_t s = 0; s < samples[i]; s++)
				sum += (uint64_t)snprintf(NULL, 0, "%" PRIu64 " %" PRIu64 "\n",
							  s * l.record_bytes, l.record_bytes);
			assert_int_equal(tf()->sidecar_bytes(&f, 0), sum);
		}
	}
	/* the largest file there can be, at once */
	struct file_spec f = spec(UINT64_C(1) << 57, 1);

	assert_true(tf()->sidecar_bytes(&f, 0) > (UINT64_C(1) << 57) * 20);
}

static void impossible_sizes(void **state)
{
	struct file_spec f = spec(1, (UINT64_C(1) << 31) - 200);

	(void)state;
	assert_int_equal(format_check(tf(), &f, &e), 0);
	f.dims[0] = (UINT64_C(1) << 31) - 1;
	assert_int_equal(format_check(tf(), &f, &e), ERR_USAGE);
	assert_non_null(strstr(e.text, "2 GiB"));
	/* many of them are no trouble: more than 4 GiB and more than 2^32 records */
	f = spec(100, 1u << 30);
	assert_int_equal(format_check(tf(), &f, &e), 0);
	assert_true(tf()->file_bytes(&f) > UINT64_C(100) << 30);
	f = spec(UINT64_C(1) << 33, 100);
	assert_int_equal(format_check(tf(), &f, &e), 0);
	f = spec(UINT64_C(1) << 60, 100);
	assert_int_equal(format_check(tf(), &f, &e), ERR_USAGE);
}

/* ---- requests ---- */

static struct {
	struct store *store;
	struct io io;
	struct io_stat stat;
	struct blob *blob;
	void *scratch, *memory;
	size_t bytes;
	struct reader *r;
	struct content_source content;
} t;

static void put(const char *path, const struct file_spec *f)
{
	if (io_open(&t.io, path, STORE_WRITE | STORE_CREATE, t.blob, &e) < 0 ||
	    format_write(tf(), &t.io, t.blob, path, f, &t.content, t.scratch, FORMAT_WRITE_SCRATCH,
			 &e) < 0 ||
	    io_close(&t.io, t.blob, &e) < 0)
		fail_msg("%s", e.text);
}

static int set_up(void **state)
{
	(void)state;
	memset(&t, 0, sizeof(t));
	assert_int_equal(store_create(&t.store, "memory", NULL, &e), 0);
	t.io = (struct io){.store = t.store, .stat = &t.stat};
	t.blob = store_blob_new(t.store, &e);
	t.content = test_content(elem_find("uint8"));
	t.scratch = buffer_alloc(FORMAT_WRITE_SCRATCH, "scratch", &e);
	return 0;
}

static void end_reader(void)
{
	if (!t.memory)
		return;
	assert_int_equal(tf()->reader_close(t.r, &e), 0);
	buffer_free(t.memory, t.bytes);
	t.memory = NULL;
}

static int tear_down(void **state)
{
	(void)state;
	end_reader();
	buffer_free(t.scratch, FORMAT_WRITE_SCRATCH);
	free(t.blob);
	store_destroy(t.store);
	return 0;
}

static void begin_reader(struct reader_config c)
{
	end_reader();
	c.python = 311;
	c.files = 9;
	c.content = &t.content;
	t.bytes = tf()->reader_bytes(&c, t.store);
	t.memory = buffer_alloc(t.bytes, "a reader", &e);
	memset(t.memory, 0, t.bytes);
	assert_int_equal(tf()->reader_init(t.memory, &c, &t.io, &t.r, &e), 0);
}

/* Reads and says how: opens and closes, reads, bytes asked and got. */
static void expect_read(const char *path, const struct file_spec *f, uint64_t index, uint64_t opens,
			uint64_t reads, uint64_t got)
{
	struct sample s;

	memset(&t.stat, 0, sizeof(t.stat));
	if (tf()->read(t.r, path, f, index, &s, &e) < 0)
		fail_msg("%s", e.text);
	/* what was loaded before is not read again */
	if (opens != 0 || s.payload_bytes != 0)
		assert_int_equal(s.payload_bytes, file_spec_sample_bytes(f));
	assert_int_equal(t.stat.kind[IO_OPEN].requests, opens);
	assert_int_equal(t.stat.kind[IO_META].requests, 0);
	assert_int_equal(t.stat.kind[IO_DATA].requests, reads);
	assert_int_equal(t.stat.kind[IO_DATA].returned_bytes, got);
}

/* Three records of 1000 + 54 bytes. */
#define RECORD 1054

static void buffered_stream(void **state)
{
	struct file_spec f = spec(3, 1000);
	struct tfrecord_layout l;

	(void)state;
	tfrecord_layout_of(&f, &l, &e);
	assert_int_equal(l.record_bytes, RECORD);
	put("f", &f);
	for (int decode = 0; decode < 3; decode++) {
		begin_reader((struct reader_config){.decode = (enum read_decode)decode,
						    .transfer_bytes = 512,
						    .max_sample_bytes = 1000});
		/* 1054 of 1536, 2108 of 2560, 3162 of 3584: the last piece is short, and the
		 * request for its rest finds the end, so no further one is made for it */
		expect_read("f", &f, 0, 1, 3, 1536);
		expect_read("f", &f, 1, 0, 2, 1024);
		expect_read("f", &f, 2, 1, 3, 3 * RECORD - 2560);
		/* and again from the start */
		expect_read("f", &f, 1, 1, 5, 2560);
		/* the record that the stream has passed */
		expect_read("f", &f, 1, 2, 5, 2560);
		/* what lies before the wanted one is read, too */
		expect_read("f", &f, 0, 2, 3, 1536);
		expect_read("f", &f, 2, 1, 5, 3 * RECORD - 1536);
	}
}

/* The file ends where a piece does: one read of nothing. */
static void whole_pieces(void **state)
{
	struct file_spec f = spec(3, 1000);

	(void)state;
	put("f", &f);
	begin_reader((struct reader_config){.transfer_bytes = RECORD, .max_sample_bytes = 1000});
	expect_read("f", &f, 0, 1, 1, RECORD);
	expect_read("f", &f, 1, 0, 1, RECORD);
	expect_read("f", &f, 2, 1, 2, RECORD);
	/* one piece for all; its rest is asked for at once */
	begin_reader((struct reader_config){.max_sample_bytes = 1000});
	expect_read("f", &f, 0, 1, 2, 3 * RECORD);
	assert_int_equal(t.stat.kind[IO_DATA].asked_bytes, 262144 + 262144 - 3 * RECORD);
	expect_read("f", &f, 1, 0, 0, 0);
	expect_read("f", &f, 2, 1, 0, 0);
}

static void unbuffered_stream(void **state)
{
	struct file_spec f = spec(3, 1000);

	(void)state;
	put("f", &f);
	for (int decode = 0; decode < 3; decode++) {
		begin_reader((struct reader_config){.decode = (enum read_decode)decode,
						    .transfer_bytes = TRANSFER_UNBUFFERED,
						    .max_sample_bytes = 1000});
		expect_read("f", &f, 0, 1, 2, RECORD);
		assert_int_equal(t.stat.kind[IO_DATA].asked_bytes, RECORD);
		expect_read("f", &f, 2, 1, 5, 2 * RECORD);
	}
}

static void files_in_turn(void **state)
{
	struct file_spec f = spec(3, 1000), g = spec(3, 1000);

	(void)state;
	g.file_index = 1;
	put("f", &f);
	put("g", &g);
	begin_reader((struct reader_config){
		.decode = DECODE_VERIFY, .transfer_bytes = RECORD, .max_sample_bytes = 1000});
	expect_read("f", &f, 0, 1, 1, RECORD);
	expect_read("g", &g, 1, 2, 2, 2 * RECORD);
	expect_read("f", &f, 1, 2, 2, 2 * RECORD);
	/* the same file under another name is another one */
	put("h", &f);
	expect_read("h", &f, 2, 3, 4, 3 * RECORD);
}

static void kept_files(void **state)
{
	struct file_spec f = spec(3, 1000);

	(void)state;
	put("f", &f);
	for (int access = 0; access < 2; access++) {
		begin_reader((struct reader_config){.access = (enum read_access)access,
						    .decode = DECODE_VERIFY,
						    .keep_open = true,
						    .transfer_bytes = RECORD,
						    .max_sample_bytes = 1000});
		expect_read("f", &f, 1, 2, access ? 3 : 4, 3 * RECORD);
		expect_read("f", &f, 2, 0, 0, 0);
		expect_read("f", &f, 0, 0, 0, 0);
	}
}

static void native(void **state)
{
	struct file_spec f = spec(3, 1000);

	(void)state;
	put("f", &f);
	begin_reader((struct reader_config){
		.access = ACCESS_NATIVE, .decode = DECODE_VERIFY, .max_sample_bytes = 1000});
	for (uint64_t i = 3; i-- > 0;)
		expect_read("f", &f, i, 2, 1, RECORD);
}

static void refuse(const struct file_spec *f, uint64_t index, const char *says)
{
	struct sample s;

	memset(&e, 0, sizeof(e));
	assert_int_equal(tf()->read(t.r, "f", f, index, &s, &e), ERR_DATA);
	if (!strstr(e.text, says))
		fail_msg("%s", e.text);
}

/* Overwrites bytes of the file. */
static void poke(uint64_t offset, const void *bytes, size_t n)
{
	assert_int_equal(io_open(&t.io, "f", STORE_WRITE, t.blob, &e), 0);
	assert_int_equal(io_pwrite(&t.io, t.blob, bytes, n, offset, &e), n);
	io_close(&t.io, t.blob, NULL);
}

static void damage(void **state)
{
	struct file_spec f = spec(3, 1000), more = spec(4, 1000), less = spec(2, 1000);
	struct reader_config c = {.max_sample_bytes = 1000};
	unsigned char huge[12] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f};
	uint32_t crc;

	(void)state;
	put("f", &f);
	begin_reader(c);
	refuse(&more, 3, "'f': the file ends after 3 records and should have 4");
	refuse(&less, 1, "'f': the file continues after its 2 records, at offset 2108");
	poke(RECORD + 500, "x", 1);
	refuse(&f, 2, "'f': record 1, at offset 1054: the checksum of its 1038 bytes");
	poke(RECORD, huge, 8);
	refuse(&f, 2, "record 1, at offset 1054: the checksum of its length");
	crc = crc32c_masked(crc32c_update(0, huge, 8));
	memcpy(huge + 8, &crc, 4);
	poke(RECORD, huge, 12);
	refuse(&f, 1, "record 1, at offset 1054: it has 9223372036854775807 bytes, too many");
	memset(huge, 0, 8);
	crc = crc32c_masked(crc32c_update(0, huge, 8));
	memcpy(huge + 8, &crc, 4);
	poke(RECORD, huge, 12);
	refuse(&f, 1, "too few for a sample of 1000");
	/* the reader that did not fail is where it was */
	put("f", &f);
	expect_read("f", &f, 0, 1, 2, 3 * RECORD);
	c.access = ACCESS_NATIVE;
	begin_reader(c);
	refuse(&more, 3, "'f': record 3, at offset 3162: the file ends inside it: 0 of 1054");
}

#define R(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(message_bytes),
		cmocka_unit_test(sizes_of_messages),
		cmocka_unit_test(other_writers),
		cmocka_unit_test(damaged_messages),
		cmocka_unit_test(index_paths),
		cmocka_unit_test(index_sizes),
		cmocka_unit_test(impossible_sizes),
		R(buffered_stream),
		R(whole_pieces),
		R(unbuffered_stream),
		R(files_in_turn),
		R(kept_files),
		R(native),
		R(damage),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
