/* png: headers, filters, files of every shape that other programs write, damaged and hostile ones.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <zlib.h>

#include "dlio_files.h"
#include "format/png/png_image.h"
#include "image_case.h"

static struct image_case t;
static struct err e;

/* ---- a file of chunks ---- */

static struct {
	unsigned char bytes[1 << 20];
	size_t n;
} file;

static void add(const void *bytes, size_t n)
{
	assert_true(file.n + n <= sizeof(file.bytes));
	memcpy(file.bytes + file.n, bytes, n);
	file.n += n;
}

static void add32(uint32_t v)
{
	add((unsigned char[]){(unsigned char)(v >> 24), (unsigned char)(v >> 16),
			      (unsigned char)(v >> 8), (unsigned char)v},
	    4);
}

static void chunk(const char *type, const void *bytes, size_t n)
{
	size_t at = file.n + 4;

	add32((uint32_t)n);
	add(type, 4);
	add(bytes, n);
	add32((uint32_t)crc32(0, file.bytes + at, (uInt)n + 4));
}

static void header(uint32_t width, uint32_t height, int depth, int colour, int interlaced)
{
	unsigned char h[13] = {0,
			       0,
			       (unsigned char)(width >> 8),
			       (unsigned char)width,
			       0,
			       0,
			       (unsigned char)(height >> 8),
			       (unsigned char)height,
			       (unsigned char)depth,
			       (unsigned char)colour,
			       0,
			       0,
			       (unsigned char)interlaced};

	file.n = 0;
	add(png_signature, 8);
	chunk("IHDR", h, 13);
}

/* The rows, deflated at a level, in chunks of at most `part` bytes, `extra` bytes of them left out.
 */
static void pixels(const void *rows, size_t n, int level, size_t part, size_t less)
{
	uLongf bound = compressBound(n), at = 0;
	unsigned char *z = xmalloc(bound);

	assert_int_equal(compress2(z, &bound, rows, n, level), Z_OK);
	bound -= less;
	while (at < bound) {
		size_t k = bound - at < part ? bound - at : part;

		chunk("IDAT", z + at, k);
		at += k;
	}
	free(z);
}

static int read_file(enum read_access access, enum read_decode decode)
{
	image_case_put(&t, file.bytes, file.n);
	return image_case_read(&t, access, decode);
}

static void refused(const char *with)
{
	for (int mode = 0; mode < 6; mode++) {
		int rc = read_file((enum read_access)(mode % 2), (enum read_decode)(mode / 2));

		if (mode / 2 == DECODE_NONE && rc == 0)
			continue;
		assert_int_equal(rc, ERR_DATA);
		if (!strstr(t.e.text, with) || !strstr(t.e.text, "'f'"))
			fail_msg("mode %d: %s", mode, t.e.text);
	}
}

static int set_up(void **state)
{
	(void)state;
	image_case_begin(&t, "png", 6, 5);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	image_case_end(&t);
	return 0;
}

/* ---- parts ---- */

static void headers(void **state)
{
	unsigned char h[13] = {0, 0, 0, 7, 0, 0, 0, 9, 8, 0, 0, 0, 0};
	static const struct {
		unsigned char depth, colour;
		uint32_t pixel, row; /* 0: does not exist */
	} kinds[] = {{1, 0, 1, 1},  {2, 0, 1, 2},   {4, 0, 1, 4},  {8, 0, 1, 7},   {16, 0, 2, 14},
		     {8, 2, 3, 21}, {16, 2, 6, 42}, {1, 3, 1, 1},  {8, 3, 1, 7},   {16, 3, 0, 0},
		     {8, 4, 2, 14}, {16, 4, 4, 28}, {8, 6, 4, 28}, {16, 6, 8, 56}, {4, 2, 0, 0},
		     {8, 1, 0, 0},  {8, 5, 0, 0},   {8, 7, 0, 0},  {0, 0, 0, 0},   {3, 0, 0, 0},
		     {32, 0, 0, 0}, {24, 0, 0, 0},  {1, 6, 0, 0},  {8, 255, 0, 0}};
	struct png_image m;

	(void)state;
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		h[8] = kinds[i].depth;
		h[9] = kinds[i].colour;
		assert_int_equal(png_image_parse(h, 16, &m, &e), kinds[i].row ? 0 : ERR_DATA);
		if (!kinds[i].row)
			continue;
		assert_int_equal(m.pixel_bytes, kinds[i].pixel);
		assert_int_equal(m.row_bytes, kinds[i].row);
		assert_int_equal(m.raw_bytes, (kinds[i].row + 1) * 9);
	}
	h[8] = 16;
	h[9] = 6;
	memset(h, 0xff, 8);
	h[0] = h[4] = 0x7f;
	/* 2^31 rows of 2^34 bytes do not fit 64 bits */
	assert_int_equal(png_image_parse(h, 16, &m, &e), ERR_DATA);
	h[0] = 0x80;
	assert_int_equal(png_image_parse(h, 16, &m, &e), ERR_DATA);
	memset(h, 0, 8);
	assert_int_equal(png_image_parse(h, 16, &m, &e), ERR_DATA);
	memcpy(h, (unsigned char[]){0, 0, 0, 7, 0, 0, 0, 9, 8, 0, 0, 0, 1}, 13);
	assert_int_equal(png_image_parse(h, 16, &m, &e), ERR_DATA);
	assert_non_null(strstr(e.text, "interlaced"));
	for (int i = 10; i < 13; i++) {
		memcpy(h + 10, (unsigned char[]){0, 0, 0}, 3);
		h[i] = 2;
		assert_int_equal(png_image_parse(h, 16, &m, &e), ERR_DATA);
	}
}

static int predict(int filter, int a, int b, int c)
{
	int p = a + b - c, pa = abs(p - a), pb = abs(p - b), pc = abs(p - c);

	switch (filter) {
	case 1:
		return a;
	case 2:
		return b;
	case 3:
		return (a + b) / 2;
	case 4:
		return pa <= pb && pa <= pc ? a : pb <= pc ? b : c;
	default:
		return 0;
	}
}

/* Filters rows of random pixels by the definition. */
static void filter_rows(const unsigned char *in, unsigned char *out, size_t rows, size_t row,
			size_t pixel, int filter)
{
	for (size_t y = 0; y < rows; y++) {
		int how = filter < 0 ? (int)(y % 5) : filter;

		*out++ = (unsigned char)how;
		for (size_t x = 0; x < row; x++) {
			int a = x >= pixel ? in[y * row + x - pixel] : 0;
			int b = y ? in[(y - 1) * row + x] : 0;
			int c = y && x >= pixel ? in[(y - 1) * row + x - pixel] : 0;

			*out++ = (unsigned char)(in[y * row + x] - predict(how, a, b, c));
		}
	}
}

static void noise(unsigned char *p, size_t n)
{
	uint32_t x = 12345;

	for (size_t i = 0; i < n; i++) {
		x = x * 1664525u + 1013904223u;
		p[i] = (unsigned char)(x >> 24);
	}
}

/* Every filter, pixel size, and rows shorter and longer than the parts they are undone in. */
static void filters(void **state)
{
	static const struct {
		int depth, colour;
		size_t pixel;
	} kinds[] = {{8, 0, 1}, {8, 4, 2}, {8, 2, 3}, {8, 6, 4}, {16, 2, 6}, {16, 6, 8}};
	static unsigned char want[5 * 9000 * 8], rows[sizeof(want) + 5];

	(void)state;
	noise(want, sizeof(want));
	for (size_t k = 0; k < sizeof(kinds) / sizeof(kinds[0]); k++) {
		for (int filter = -1; filter < 5; filter++) {
			for (size_t width = 1; width < 3000; width = width * 5 + 1) {
				size_t row = width * kinds[k].pixel;

				image_case_end(&t);
				image_case_begin(&t, "png", 5, width);
				filter_rows(want, rows, 5, row, kinds[k].pixel, filter);
				header((uint32_t)width, 5, kinds[k].depth, kinds[k].colour, 0);
				pixels(rows, 5 * (row + 1), 6, 1000, 0);
				chunk("IEND", "", 0);
				/* whole, then by rows */
				for (int small = 0; small < 2; small++) {
					t.max_file_bytes = small ? 2 * (row + 1) : 5 * (row + 1);
					for (int access = 0; access < 2; access++)
						if (read_file((enum read_access)access,
							      DECODE_FULL) < 0)
							fail_msg("%s", t.e.text);
					assert_int_equal(t.payload_bytes, 5 * row);
					if (!small && 5 * row <= sizeof(t.pixels))
						assert_memory_equal(t.pixels, want, 5 * row);
				}
			}
		}
	}
}

/* ---- files ---- */

/* Rows of what is generated, filters 0 to 4 in turn. */
static void generated(unsigned char *rows)
{
	unsigned char want[30];

	test_fill(NULL, 0, 0, want, 30);
	filter_rows(want, rows, 6, 5, 1, -1);
}

/* Other writers' levels and chunks: the content is found right, in one piece and by rows. */
static void other_writers(void **state)
{
	static const size_t parts[] = {1, 2, 3, 7, 1000};
	unsigned char rows[36];

	(void)state;
	generated(rows);
	for (int level = 0; level < 10; level++) {
		for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
			header(5, 6, 8, 0, 0);
			chunk("tEXt", "Comment\0some words", 18);
			chunk("IDAT", "", 0);
			pixels(rows, sizeof(rows), level, parts[i], 0);
			chunk("IDAT", "", 0);
			chunk("tIME", "1234567", 7);
			chunk("IEND", "", 0);
			for (t.max_file_bytes = 12; t.max_file_bytes < 50; t.max_file_bytes += 24)
				for (int mode = 0; mode < 6; mode++)
					if (read_file((enum read_access)(mode % 2),
						      (enum read_decode)(mode / 2)) < 0)
						fail_msg("%s", t.e.text);
		}
	}
	rows[4] ^= 1;
	header(5, 6, 8, 0, 0);
	pixels(rows, sizeof(rows), 0, 1000, 0);
	chunk("IEND", "", 0);
	for (t.max_file_bytes = 12; t.max_file_bytes < 50; t.max_file_bytes += 24) {
		assert_int_equal(read_file(ACCESS_FRAMEWORK, DECODE_FULL), 0);
		assert_int_equal(read_file(ACCESS_FRAMEWORK, DECODE_VERIFY), ERR_DATA);
		assert_non_null(strstr(t.e.text, "byte 3 of the array"));
	}
}

/* Compressed data that come to more than their pixels, through the memory for them many times. */
static void packed_beyond_the_room(void **state)
{
	static unsigned char rows[300 * 401], z[300 * 401 * 2 + 100];
	z_stream s = {
		.next_in = rows, .next_out = z, .avail_in = sizeof(rows), .avail_out = sizeof(z)};

	(void)state;
	image_case_end(&t);
	image_case_begin(&t, "png", 300, 400);
	for (size_t y = 0; y < 300; y++)
		test_fill(NULL, 0, y * 400, rows + y * 401 + 1, 400);
	assert_int_equal(deflateInit(&s, 0), Z_OK);
	/* a stored block of 5 bytes more for every 10 */
	while (s.avail_in > 0) {
		uInt all = s.avail_in;

		s.avail_in = all < 10 ? all : 10;
		all -= s.avail_in;
		assert_int_equal(deflate(&s, Z_FULL_FLUSH), Z_OK);
		s.avail_in = all;
	}
	assert_int_equal(deflate(&s, Z_FINISH), Z_STREAM_END);
	header(400, 300, 8, 0, 0);
	chunk("IDAT", z, sizeof(z) - s.avail_out);
	chunk("IEND", "", 0);
	t.max_file_bytes = sizeof(rows) + 100;
	for (int mode = 0; mode < 6; mode++)
		if (read_file((enum read_access)(mode % 2), (enum read_decode)(mode / 2)) < 0)
			fail_msg("%s", t.e.text);
	/* damage within, with right checksums of chunks */
	z[100000] ^= 1;
	header(400, 300, 8, 0, 0);
	chunk("IDAT", z, sizeof(z) - s.avail_out);
	chunk("IEND", "", 0);
	assert_int_equal(read_file(ACCESS_NATIVE, DECODE_FULL), ERR_DATA);
	assert_int_equal(read_file(ACCESS_FRAMEWORK, DECODE_VERIFY), ERR_DATA);
	z[100000] ^= 1;
	z[sizeof(z) - s.avail_out - 1] ^= 1;
	header(400, 300, 8, 0, 0);
	chunk("IDAT", z, sizeof(z) - s.avail_out);
	chunk("IEND", "", 0);
	refused("checksum");
	deflateEnd(&s);
}

static void damaged(void **state)
{
	unsigned char rows[36 + 6];

	(void)state;
	memset(rows, 0, sizeof(rows));
	generated(rows);
	for (t.max_file_bytes = 12; t.max_file_bytes < 50; t.max_file_bytes += 24) {
		for (size_t less = 1; less < 5; less++) {
			header(5, 6, 8, 0, 0);
			pixels(rows, 36, 6, 1000, less);
			chunk("IEND", "", 0);
			refused("the compressed pixels");
		}
		header(5, 6, 8, 0, 0);
		pixels(rows, 30, 6, 1000, 0);
		chunk("IEND", "", 0);
		refused("less than the 36 bytes of 6 rows");
		header(5, 6, 8, 0, 0);
		pixels(rows, 42, 6, 1000, 0);
		chunk("IEND", "", 0);
		refused("more than the 36 bytes of 6 rows");
		rows[6] = 5;
		header(5, 6, 8, 0, 0);
		pixels(rows, 36, 6, 1000, 0);
		chunk("IEND", "", 0);
		refused("row 1 of the image has the unknown filter 5");
		rows[6] = 1;
		header(5, 6, 8, 0, 0);
		chunk("IDAT", "\x78\x9c\xff\xff\xff\xff\xff\xff", 8);
		chunk("IEND", "", 0);
		refused("the compressed ");
		header(5, 6, 8, 0, 0);
		chunk("IDAT", "\x79\x9cxxxxxxxxxxx", 13);
		chunk("IEND", "", 0);
		refused("the compressed pixels");
	}
}

static void misplaced(void **state)
{
	unsigned char rows[36];

	(void)state;
	generated(rows);
	header(5, 6, 8, 0, 0);
	chunk("IEND", "", 0);
	refused("no IDAT");
	assert_int_equal(read_file(ACCESS_NATIVE, DECODE_NONE), ERR_DATA);
	header(5, 6, 8, 0, 0);
	pixels(rows, 36, 6, 10, 0);
	chunk("tEXt", "", 0);
	pixels(rows, 36, 6, 10, 0);
	refused("does not follow");
	header(5, 6, 8, 0, 1);
	refused("interlaced");
	header(5, 7, 8, 0, 0);
	refused("7 rows of 5 columns");
	header(5, 6, 8, 0, 0);
	file.bytes[8 + 7] = 'S';
	refused("not IHDR");
	file.n = 0;
	add("\x89PNG\n\n\x1a\n", 8);
	refused("signature");
	header(5, 6, 8, 0, 0);
	add("\xff\xff\xff\xffIDAT", 8);
	refused("at most");
	header(5, 6, 8, 0, 0);
	add("\x7f\xff\xff\xffIDAT", 8);
	refused("truncated");
	header(5, 6, 8, 0, 0);
	add("\x7f\xff\xff\xffzTXt", 8);
	refused("truncated");
	header(5, 6, 8, 0, 0);
	add("\0\0\0\0I AT", 8);
	refused("no PNG chunk");
	/* another kind than is generated */
	header(5, 6, 8, 3, 0);
	pixels(rows, 36, 6, 10, 0);
	chunk("IEND", "", 0);
	assert_int_equal(read_file(ACCESS_NATIVE, DECODE_FULL), 0);
	assert_int_equal(read_file(ACCESS_NATIVE, DECODE_VERIFY), ERR_DATA);
	assert_non_null(strstr(t.e.text, "colour type 3"));
	/* longer rows than there is room for */
	header(5, 6, 16, 6, 0);
	t.max_file_bytes = 40;
	assert_int_equal(read_file(ACCESS_NATIVE, DECODE_FULL), ERR_DATA);
	assert_non_null(strstr(t.e.text, "40 bytes"));
}

/* Checksums leave no flipped bit unseen, but for IEND's own, which nobody asks for. */
static void every_flip_is_found(void **state)
{
	unsigned char *bytes;
	size_t n;

	(void)state;
	bytes = image_case_write(&t, &n);
	assert_int_equal(n, t.format->file_bytes(&t.spec));
	for (size_t i = 0; i < n - 4; i++) {
		bytes[i] ^= 0x04;
		image_case_put(&t, bytes, n);
		for (int mode = 0; mode < 4; mode++)
			assert_int_equal(image_case_read(&t, (enum read_access)(mode % 2),
							 (enum read_decode)(mode / 2)),
					 ERR_DATA);
		bytes[i] ^= 0x04;
	}
	free(bytes);
}

/* Shapes around the limits of blocks and chunks: the size is as said, and zlib finds the content.
 */
static void layout(void **state)
{
	static const struct {
		uint64_t rows, columns, idat;
	} shapes[] = {{1, 1, 65536},       {1, 65534, 4 * 65534}, {1, 65535, 4 * 65535},
		      {4, 16384, 65536},   {4, 16385, 65540},     {255, 256, 65536},
		      {65535, 1, 65536},   {65519, 1, 65536},     {32768, 3, 65536},
		      {1, 200000, 800000}, {200000, 1, 65536}};

	(void)state;
	for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++) {
		unsigned char *bytes, *z, *raw, *want;
		uint64_t row = shapes[i].columns + 1, at = 8 + 25, zn = 0;
		uLongf raw_n = row * shapes[i].rows;
		size_t n;

		image_case_end(&t);
		image_case_begin(&t, "png", shapes[i].rows, shapes[i].columns);
		bytes = image_case_write(&t, &n);
		assert_int_equal(n, t.format->file_bytes(&t.spec));
		z = xmalloc(n);
		raw = xmalloc(raw_n + 1);
		want = xmalloc(row);
		while (memcmp(bytes + at + 4, "IDAT", 4) == 0) {
			uint64_t len = (uint64_t)bytes[at] << 24 | (uint64_t)bytes[at + 1] << 16 |
				       (uint64_t)bytes[at + 2] << 8 | bytes[at + 3];

			memcpy(z + zn, bytes + at + 8, len);
			zn += len;
			at += len + 12;
			/* all of one size but the last */
			assert_true(len <= shapes[i].idat);
			if (memcmp(bytes + at + 4, "IDAT", 4) == 0)
				assert_int_equal(len, shapes[i].idat);
		}
		assert_int_equal(at + 12, n);
		assert_int_equal(uncompress(raw, &raw_n, z, zn), Z_OK);
		assert_int_equal(raw_n, row * shapes[i].rows);
		for (uint64_t y = 0; y < shapes[i].rows; y++) {
			test_fill(NULL, 0, y * (row - 1), want + 1, row - 1);
			want[0] = 0;
			assert_memory_equal(raw + y * row, want, row);
		}
		free(bytes);
		free(z);
		free(raw);
		free(want);
	}
}

static void sizes_without_files(void **state)
{
	struct file_spec f = t.spec;

	(void)state;
	f.dims[0] = f.dims[1] = 0x7fffffff;
	assert_int_equal(format_check(t.format, &f, &e), 0);
	assert_true(t.format->file_bytes(&f) > (uint64_t)0x7fffffff * 0x80000000u);
	f.dims[0]++;
	assert_int_equal(format_check(t.format, &f, &e), ERR_USAGE);
	assert_non_null(strstr(e.text, "2147483648 rows"));
	f.dims[0] = 0;
	assert_int_equal(format_check(t.format, &f, &e), ERR_USAGE);
	/* unet3d's records */
	f.dims[0] = f.dims[1] = 12107;
	assert_int_equal(t.format->file_bytes(&f),
			 8 + 25 + 12 + 146591556 + 2 + 2237 * 5 + 4 + 2237 * 12);
	/* one dimension is a column */
	f.ndims = 1;
	f.dims[0] = 100;
	assert_int_equal(t.format->file_bytes(&f), 8 + 25 + 12 + 12 + 200 + 11);
}

/* A file has about the size that was asked for, and exactly the one that is said; its pixels are
 * noise and then zeros, and every one of them is compared. */
static void wanted_sizes(void **state)
{
	static const uint64_t dims[][2] = {{100, 100}, {37, 211}, {1, 3000}, {3000, 1}, {700, 900}};

	(void)state;
	for (size_t i = 0; i < sizeof(dims) / sizeof(dims[0]); i++) {
		uint64_t most;

		image_case_end(&t);
		image_case_begin(&t, "png", dims[i][0], dims[i][1]);
		most = t.format->file_bytes(&t.spec);
		for (uint64_t want = 500 + most / 50; want < most; want += 1 + want / 2) {
			size_t n;
			unsigned char *bytes;

			t.spec.want_bytes = want;
			assert_int_equal(format_check(t.format, &t.spec, &e), 0);
			bytes = image_case_write(&t, &n);
			assert_int_equal(n, t.format->file_bytes(&t.spec));
			/* the zeros are at least one match */
			assert_in_range(n, want - 140, want + 260);
			for (int access = 0; access < 2; access++)
				if (image_case_read(&t, (enum read_access)access, DECODE_VERIFY) <
				    0)
					fail_msg("%s", t.e.text);
			assert_int_equal(format_verify(t.format, &t.io, "f", &t.spec, &t.content,
						       t.scratch, FORMAT_WRITE_SCRATCH, &e),
					 0);
			/* of other noise: one match less */
			t.spec.want_bytes = want + 600;
			if (want + 600 < most)
				assert_int_equal(image_case_read(&t, ACCESS_NATIVE, DECODE_VERIFY),
						 ERR_DATA);
			free(bytes);
		}
		t.spec.want_bytes = most + most / 10;
		assert_int_equal(format_check(t.format, &t.spec, &e), ERR_USAGE);
		t.spec.want_bytes = 1;
		assert_int_equal(format_check(t.format, &t.spec, &e), ERR_USAGE);
		assert_non_null(strstr(e.text, "dataset.file_bytes"));
		t.spec.want_bytes = 0;
	}
}

static void dlio_samples(void **state)
{
	(void)state;
	dlio_read("png", "png", (uint64_t[]){32, 32}, 2, "uint8", 1, 4);
}

#define T(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(headers),
		T(filters),
		T(other_writers),
		T(packed_beyond_the_room),
		T(damaged),
		T(misplaced),
		T(every_flip_is_found),
		T(layout),
		T(sizes_without_files),
		T(wanted_sizes),
		T(dlio_samples),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
