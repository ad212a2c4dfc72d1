/* jpeg: the files are JFIF as Pillow saves it, damaged and hostile ones end in a sentence, and
 * decoding stays in the reader's own memory. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <inttypes.h>
#include <jpeglib.h>
#include <math.h>

#include "base/rng.h"
#include "count_allocations.h"
#include "dataset/content.h"
#include "dlio_files.h"
#include "format/jpeg/jpeg.h"
#include "image_case.h"

static struct image_case t;
static struct err e;

static int set_up(void **state)
{
	(void)state;
	image_case_begin(&t, "jpeg", 24, 40);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	image_case_end(&t);
	return 0;
}

static int read_bytes(const unsigned char *bytes, size_t n, enum read_access access,
		      enum read_decode decode)
{
	image_case_put(&t, bytes, n);
	return image_case_read(&t, access, decode);
}

/* The header that DLIO's files have: markers and tables, up to the dimensions. */
static void header_as_dlio(void **state)
{
	unsigned char *bytes, theirs[400];
	char path[1024];
	FILE *f;
	size_t n;

	(void)state;
	image_case_end(&t);
	image_case_begin(&t, "jpeg", 32, 32);
	bytes = image_case_write(&t, &n);
	snprintf(path, sizeof(path), "%s/dlio-data/jpeg/train/img_0_of_4.jpeg", TEST_DATA);
	f = fopen(path, "rb");
	assert_non_null(f);
	assert_int_equal(fread(theirs, 1, sizeof(theirs), f), sizeof(theirs));
	fclose(f);
	/* to the end of the scan's header */
	assert_memory_equal(bytes, theirs, 0x148);
	free(bytes);
}

static void dlio_samples(void **state)
{
	(void)state;
	dlio_read("jpeg", "jpeg", (uint64_t[]){32, 32}, 2, "uint8", 1, 4);
}

static void shapes(void **state)
{
	struct file_spec f = t.spec;

	(void)state;
	f.dims[0] = f.dims[1] = 65500;
	assert_int_equal(format_check(t.format, &f, &e), 0);
	assert_int_equal(t.format->file_bytes(&f), UINT64_MAX);
	f.dims[1]++;
	assert_int_equal(format_check(t.format, &f, &e), ERR_USAGE);
	assert_non_null(strstr(e.text, "65500"));
	f.dims[1] = 0;
	assert_int_equal(format_check(t.format, &f, &e), ERR_USAGE);
	f.elem = elem_find("int8");
	f.dims[1] = 5;
	assert_int_equal(format_check(t.format, &f, &e), ERR_USAGE);
}

/* A fixed file of noise: what is on disk is verified against it. */
static void the_bytes_are_fixed(void **state)
{
	uint64_t hash = 0;
	unsigned char *bytes;
	size_t n;

	(void)state;
	image_case_end(&t);
	image_case_begin(&t, "jpeg", 300, 500);
	content_init(&t.content, 42, t.spec.elem);
	bytes = image_case_write(&t, &n);
	for (size_t i = 0; i < n; i++)
		hash = rng_mix64(hash + bytes[i] + 1);
	if (n != 0x14e0d || hash != 0x614db8f2d0bbb9f0)
		fail_msg("%zu bytes, of hash %#" PRIx64, n, hash);
	free(bytes);
}

static void quiet(j_common_ptr c)
{
	(void)c;
}

/* libjpeg finds nothing to warn of, and coefficients as noise has them: as large as pixels of 0 to
 * 255 give, quantised, around 0, and other ones in the next file. */
static void noise(void **state)
{
	static const unsigned place[4] = {0, 2, 4 * 8 + 3, 63}, quant[4] = {8, 5, 28, 50};
	double sum[4] = {0}, squares[4] = {0};
	struct jpeg_decompress_struct d;
	unsigned zeros = 0, blocks = 0;
	struct jpeg_error_mgr manager;
	jvirt_barray_ptr *planes;
	unsigned char *bytes, *next;
	size_t n, next_n, same = 0;

	(void)state;
	image_case_end(&t);
	image_case_begin(&t, "jpeg", 1001, 999);
	content_init(&t.content, 1, t.spec.elem);
	bytes = image_case_write(&t, &n);
	d.err = jpeg_std_error(&manager);
	manager.output_message = quiet;
	jpeg_create_decompress(&d);
	jpeg_mem_src(&d, bytes, n);
	jpeg_read_header(&d, TRUE);
	assert_int_equal(d.image_height, 1001);
	assert_int_equal(d.image_width, 999);
	planes = jpeg_read_coefficients(&d);
	for (unsigned y = 0; y < 126; y++) {
		JBLOCKROW row =
			d.mem->access_virt_barray((j_common_ptr)&d, planes[0], y, 1, FALSE)[0];

		for (unsigned x = 0; x < 125; x++, blocks++) {
			for (unsigned i = 0; i < 4; i++) {
				double v = row[x][place[i]] * (double)quant[i];

				sum[i] += v;
				squares[i] += v * v;
			}
			zeros += row[x][63] == 0;
		}
	}
	jpeg_finish_decompress(&d);
	assert_int_equal(manager.num_warnings, 0);
	jpeg_destroy_decompress(&d);
	for (unsigned i = 0; i < 4; i++) {
		double deviation = sqrt(squares[i] / blocks);

		if (fabs(sum[i] / blocks) > 3 || deviation < 66 || deviation > 90)
			fail_msg("coefficient %u: mean %f, deviation %f", place[i], sum[i] / blocks,
				 deviation);
	}
	assert_in_range(zeros * 100 / blocks, 22, 31);
	/* what Pillow needs for noise of these dimensions, within 1 % */
	assert_in_range(n, blocks * 3525 / 100, blocks * 3600 / 100);
	t.spec.file_index = 1;
	next = image_case_write(&t, &next_n);
	for (size_t i = JPEG_HEADER_BYTES; i < n && i < next_n; i++)
		same += bytes[i] == next[i];
	/* bytes agree by chance: one of 256, a little more in Huffman codes */
	assert_in_range(same * 1000 / n, 1, 8);
	free(next);
	free(bytes);
}

/* Allocations of reading "f" once more, when it has been verified before. */
static uint64_t verify_allocates(void)
{
	struct reader_config c = {.decode = DECODE_VERIFY,
				  .python = 311,
				  .block_bytes = 4096,
				  .max_sample_bytes = 300ul * 500,
				  .max_file_bytes = UINT64_MAX,
				  .samples_per_file = 1,
				  .files = 1,
				  .content = &t.content};
	size_t room = t.format->reader_bytes(&c, t.io.store);
	void *memory = buffer_alloc(room, "a reader", &e);
	uint64_t before = 0;
	struct reader *r;
	struct sample s;

	memset(memory, 0, room);
	assert_int_equal(t.format->reader_init(memory, &c, &t.io, &r, &e), 0);
	for (int k = 0; k < 2; k++) {
		before = allocations;
		if (t.format->read(r, "f", &t.spec, 0, &s, &e) < 0)
			fail_msg("%s", e.text);
		before = allocations - before;
	}
	t.format->reader_close(r, NULL);
	buffer_free(memory, room);
	return before;
}

/* Images are made again in the reader's memory. */
static void verifying_allocates_nothing(void **state)
{
	size_t n;

	(void)state;
	image_case_end(&t);
	image_case_begin(&t, "jpeg", 300, 500);
	content_init(&t.content, 7, t.spec.elem);
	free(image_case_write(&t, &n));
	assert_int_equal(verify_allocates(), 0);
}

static uint64_t jpeg_least(const struct file_spec *f)
{
	struct image_shape shape;

	image_shape_of(f, "jpeg", JPEG_SIDE_MAX, &shape, &e);
	return jpeg_least_bytes(&shape);
}

/* For any shape the file is within 2 % of the estimate, or, where it has few blocks, some bytes. It
 * has any size that was asked for. */
static void estimate(void **state)
{
	static const uint64_t dims[][2] = {{1, 1},     {8, 8},     {9, 9},
					   {100, 100}, {333, 777}, {1, 3000}};

	(void)state;
	for (size_t i = 0; i < sizeof(dims) / sizeof(dims[0]); i++) {
		size_t n;
		uint64_t said;

		image_case_end(&t);
		image_case_begin(&t, "jpeg", dims[i][0], dims[i][1]);
		free(image_case_write(&t, &n));
		said = t.format->file_bytes_estimate(&t.spec);
		assert_in_range(n, said - said / 50 - 40, said + said / 50 + 40);
		for (uint64_t want = jpeg_least(&t.spec); want < said; want += 1 + want / 3) {
			t.spec.want_bytes = want;
			assert_int_equal(format_check(t.format, &t.spec, &e), 0);
			free(image_case_write(&t, &n));
			/* few blocks, or none of noise, may be more than that */
			assert_in_range(n, want, want + (want < 2 * jpeg_least(&t.spec) ? 64 : 0));
			assert_in_range(t.format->file_bytes_estimate(&t.spec), want - 20,
					want + 20);
		}
		t.spec.want_bytes = said + said / 20;
		assert_int_equal(format_check(t.format, &t.spec, &e), ERR_USAGE);
		t.spec.want_bytes = 0;
	}
}

/* A reader that has seen every kind of damage still reads a good file, from its own memory. */
static void damage(void **state)
{
	unsigned char *bytes, *bad;
	size_t n, refused = 0;

	(void)state;
	bytes = image_case_write(&t, &n);
	bad = xmalloc(n);
	for (size_t i = 0; i < n; i++) {
		for (int bit = 0; bit < 8; bit += 3) {
			memcpy(bad, bytes, n);
			bad[i] ^= (unsigned char)(1 << bit);
			for (int access = 0; access < 2; access++) {
				int rc = read_bytes(bad, n, (enum read_access)access, DECODE_FULL);

				assert_true(rc == 0 || rc == ERR_DATA);
				refused += rc != 0;
				assert_int_equal(
					read_bytes(bad, n, (enum read_access)access, DECODE_VERIFY),
					ERR_DATA);
			}
		}
	}
	assert_in_range(refused, 20, 6 * n);
	free(bad);
	free(bytes);
}

static void cut_and_longer(void **state)
{
	unsigned char *bytes;
	size_t n;

	(void)state;
	bytes = image_case_write(&t, &n);
	for (size_t k = 0; k < n; k++)
		for (int mode = 0; mode < 6; mode++)
			assert_int_equal(read_bytes(bytes, k, (enum read_access)(mode % 2),
						    (enum read_decode)(mode / 2)),
					 ERR_DATA);
	/* what follows the image is looked at only where it is compared */
	memset(bytes + n, 'x', 20);
	for (int mode = 0; mode < 6; mode++)
		assert_int_equal(read_bytes(bytes, n + 20, (enum read_access)(mode % 2),
					    (enum read_decode)(mode / 2)),
				 mode / 2 == DECODE_VERIFY ? ERR_DATA : 0);
	free(bytes);
}

static void refused(const unsigned char *bytes, size_t n, const char *with)
{
	for (int mode = 0; mode < 2; mode++) {
		assert_int_equal(read_bytes(bytes, n, (enum read_access)mode, DECODE_FULL),
				 ERR_DATA);
		if (!strstr(t.e.text, with) || !strstr(t.e.text, "'f'"))
			fail_msg("%s, not %s", t.e.text, with);
	}
}

/* Inserts `add` behind the first two bytes. */
static unsigned char *insert(const unsigned char *bytes, size_t n, const void *add, size_t k)
{
	unsigned char *p = xmalloc(n + k);

	memcpy(p, bytes, 2);
	memcpy(p + 2, add, k);
	memcpy(p + 2 + k, bytes + 2, n - 2);
	return p;
}

static void headers(void **state)
{
	unsigned char *bytes, *p, *big = xcalloc(1, 70000);
	size_t n, sof;

	(void)state;
	bytes = image_case_write(&t, &n);
	for (sof = 2; bytes[sof + 1] != 0xc0; sof++)
		;
	assert_int_equal(bytes[sof + 6], 24);
	assert_int_equal(bytes[sof + 8], 40);
	bytes[sof + 5] = 0xff;
	refused(bytes, n, "65304 rows of 40 columns");
	bytes[sof + 5] = 0;
	bytes[sof + 4] = 12;
	refused(bytes, n, "(libjpeg: ");
	bytes[sof + 4] = 8;
	bytes[sof + 1] = 0xfe;
	refused(bytes, n, "without a frame");
	bytes[sof + 1] = 0xc0;
	refused((const unsigned char *)"\xff\xd8\x00", 3, "not a JPEG file");
	refused((const unsigned char *)"\xff\xd8\xff\x01", 4, "no JPEG marker");
	refused((const unsigned char *)"", 0, "truncated");
	/* fill bytes, junk, bare markers, a comment of nothing, one of two pieces */
	p = insert(bytes, n, "\xff\xff\xff\xfe\0\2\xff\xfe\0\0\xff\xfe\0\3x", 15);
	assert_int_equal(read_bytes(p, n + 15, ACCESS_FRAMEWORK, DECODE_NONE), 0);
	free(p);
	memcpy(big, "\xff\xe5\xff\xff", 4);
	p = insert(bytes, n, big, 65537);
	/* once, and twice, which is more than a native piece */
	for (size_t more = 65537; more <= 2 * 65537; more += 65537) {
		unsigned char *next = insert(p, n + more, big, 65537);

		for (int mode = 0; mode < 6; mode++) {
			int rc = read_bytes(p, n + more, (enum read_access)(mode % 2),
					    (enum read_decode)(mode / 2));

			assert_int_equal(rc, mode / 2 == DECODE_VERIFY ? ERR_DATA : 0);
		}
		free(p);
		p = next;
	}
	free(p);
	free(big);
	free(bytes);
}

/* 600 empty scans of a progressive image. */
static void many_scans(void **state)
{
	unsigned char bytes[65536];
	FILE *f = fopen(TEST_DATA "/../fuzz/corpus/jpeg/many_scans", "rb");
	size_t n;

	(void)state;
	assert_non_null(f);
	n = fread(bytes, 1, sizeof(bytes), f);
	fclose(f);
	image_case_end(&t);
	image_case_begin(&t, "jpeg", 4, 5);
	refused(bytes, n, "more than 500 scans");
}

/* An image without tables of its own does not get the tables of the one before. */
static void tables_are_an_images_own(void **state)
{
	struct reader_config c = {.decode = DECODE_FULL,
				  .python = 311,
				  .block_bytes = 4096,
				  .max_sample_bytes = 960,
				  .max_file_bytes = UINT64_MAX,
				  .samples_per_file = 1,
				  .files = 1};
	unsigned char *bytes, *bare;
	size_t n, room, dqt;
	struct reader *r;
	struct sample s;
	void *memory;

	(void)state;
	bytes = image_case_write(&t, &n);
	for (dqt = 2; bytes[dqt + 1] != 0xdb; dqt++)
		;
	bare = xmalloc(n);
	memcpy(bare, bytes, dqt);
	memcpy(bare + dqt, bytes + dqt + 69, n - dqt - 69);
	room = t.format->reader_bytes(&c, t.io.store);
	memory = buffer_alloc(room, "a reader", &e);
	memset(memory, 0, room);
	assert_int_equal(t.format->reader_init(memory, &c, &t.io, &r, &e), 0);
	for (int i = 0; i < 3; i++) {
		image_case_put(&t, bytes, n);
		if (t.format->read(r, "f", &t.spec, 0, &s, &e) < 0)
			fail_msg("%s", e.text);
		assert_int_equal(s.payload_bytes, 960);
		image_case_put(&t, bare, n - 69);
		assert_int_equal(t.format->read(r, "f", &t.spec, 0, &s, &e), ERR_DATA);
		assert_non_null(strstr(e.text, "Quantization table"));
	}
	t.format->reader_close(r, NULL);
	buffer_free(memory, room);
	free(bare);
	free(bytes);
}

/* Gray images of ordinary shapes are decoded and verified in the memory that reader_bytes says;
 * much wider ones are, too, in other memory. */
static void own_memory(void **state)
{
	static const uint64_t dims[][2] = {{1, 1},     {24, 40},   {1000, 1000},
					   {40, 2560}, {20000, 3}, {8, 65500}};

	(void)state;
	for (size_t i = 0; i < sizeof(dims) / sizeof(dims[0]); i++) {
		size_t n;

		image_case_end(&t);
		image_case_begin(&t, "jpeg", dims[i][0], dims[i][1]);
		free(image_case_write(&t, &n));
		for (int decode = 0; decode < 2; decode++) {
			struct reader_config c = {.decode = (enum read_decode)decode,
						  .python = 311,
						  .block_bytes = 4096,
						  .max_sample_bytes = dims[i][0] * dims[i][1],
						  .max_file_bytes = UINT64_MAX,
						  .samples_per_file = 1,
						  .files = 1,
						  .content = &t.content};
			size_t room = t.format->reader_bytes(&c, t.io.store);
			void *memory = buffer_alloc(room, "a reader", &e);
			struct reader *r;
			struct sample s;

			memset(memory, 0, room);
			assert_int_equal(t.format->reader_init(memory, &c, &t.io, &r, &e), 0);
			for (int k = 0; k < 2; k++)
				if (t.format->read(r, "f", &t.spec, 0, &s, &e) < 0)
					fail_msg("%s", e.text);
			assert_int_equal(jpeg_reader_beyond(r) > 0,
					 i == 5 && decode == DECODE_FULL);
			t.format->reader_close(r, NULL);
			buffer_free(memory, room);
		}
	}
}

#define T(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(header_as_dlio),
		T(dlio_samples),
		T(shapes),
		T(estimate),
		T(damage),
		T(cut_and_longer),
		T(headers),
		T(tables_are_an_images_own),
		T(own_memory),
		T(many_scans),
		T(noise),
		T(verifying_allocates_nothing),
		T(the_bytes_are_fixed),
	};

	count_allocations();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
