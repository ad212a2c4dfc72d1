/* png_stored: every size of row and block, against the pixels that were put in; streams that are
 * cut, changed, or not of this kind. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <zlib.h>

#include "base/rng.h"
#include "format/png/png_image.h"

/* Memory of exact sizes, so that the sanitizers see a byte too far. */
struct image {
	struct png_image shape;
	unsigned char *pixels, *raw, *stream, *out;
	size_t n; /* of the stream */
};

static void begin(struct image *m, uint64_t row_bytes, uint32_t height, uint64_t seed)
{
	uint64_t raw = (row_bytes + 1) * height;

	*m = (struct image){.shape = {.width = (uint32_t)row_bytes,
				      .height = height,
				      .depth = 8,
				      .pixel_bytes = 1,
				      .row_bytes = row_bytes,
				      .raw_bytes = raw}};
	m->pixels = malloc(row_bytes * height);
	m->raw = malloc(raw);
	m->out = malloc(raw);
	assert_true(m->pixels && m->raw && m->out);
	for (uint64_t i = 0; i < row_bytes * height; i++)
		m->pixels[i] = (unsigned char)rng_word(seed, i);
	for (uint32_t y = 0; y < height; y++) {
		m->raw[y * (row_bytes + 1)] = 0;
		memcpy(m->raw + y * (row_bytes + 1) + 1, m->pixels + y * row_bytes, row_bytes);
	}
}

static void end(struct image *m)
{
	free(m->pixels);
	free(m->raw);
	free(m->stream);
	free(m->out);
}

/* Blocks of so many bytes; `empty`: one of none before each, too. */
static void store(struct image *m, size_t block, bool empty)
{
	size_t raw = (size_t)m->shape.raw_bytes, blocks = (raw + block - 1) / block;
	uint32_t adler = (uint32_t)adler32(1, m->raw, (uInt)raw);
	unsigned char *to;

	free(m->stream);
	m->n = 2 + raw + blocks * (empty ? 10 : 5) + 4;
	to = m->stream = malloc(m->n);
	assert_non_null(to);
	*to++ = 0x78;
	*to++ = 0x01;
	for (size_t at = 0; at < raw; at += block) {
		unsigned n = (unsigned)(raw - at < block ? raw - at : block);

		if (empty) {
			memcpy(to, (unsigned char[]){0xf8, 0, 0, 0xff, 0xff}, 5);
			to += 5;
		}
		*to++ = at + n == raw;
		*to++ = (unsigned char)n;
		*to++ = (unsigned char)(n >> 8);
		*to++ = (unsigned char)~n;
		*to++ = (unsigned char)(~n >> 8);
		memcpy(to, m->raw + at, n);
		to += n;
	}
	for (int i = 3; i >= 0; i--)
		*to++ = (unsigned char)(adler >> (8 * i));
	assert_ptr_equal(to, m->stream + m->n);
}

static bool made(struct image *m, size_t n)
{
	/* of exactly n bytes */
	unsigned char *copy = malloc(n ? n : 1);
	bool yes;

	assert_non_null(copy);
	memcpy(copy, m->stream, n);
	yes = png_stored_pixels(&m->shape, copy, n, m->out);
	free(copy);
	return yes;
}

static void every_row_and_block(void **state)
{
	(void)state;
	for (uint64_t row = 1; row <= 37; row++)
		for (size_t block = 1; block <= 80; block++) {
			struct image m;

			begin(&m, row, 1 + (uint32_t)(row * block) % 5, row);
			store(&m, block, block % 3 == 0);
			assert_true(made(&m, m.n));
			assert_memory_equal(m.out, m.pixels, row * m.shape.height);
			end(&m);
		}
}

static void large(void **state)
{
	static const size_t blocks[] = {16383, 32768, 65535};

	(void)state;
	for (size_t i = 0; i < 3; i++) {
		struct image m;

		begin(&m, 387, 389, i);
		store(&m, blocks[i], false);
		assert_true(made(&m, m.n));
		assert_memory_equal(m.out, m.pixels, 387 * 389);
		end(&m);
	}
}

/* What is taken is the image; zlib must agree with whatever a changed byte left whole. */
static void cut_or_changed(void **state)
{
	struct image m;
	unsigned char other[13 * 8];

	(void)state;
	begin(&m, 12, 8, 1);
	store(&m, 31, true);
	for (size_t n = 0; n < m.n; n++)
		assert_false(made(&m, n));
	for (size_t i = 0; i < m.n; i++)
		for (int bit = 0; bit < 8; bit++) {
			uLongf bytes = sizeof(other);

			m.stream[i] ^= (unsigned char)(1u << bit);
			if (made(&m, m.n)) {
				assert_int_equal(uncompress(other, &bytes, m.stream, m.n), Z_OK);
				assert_int_equal(bytes, sizeof(other));
				assert_memory_equal(m.out, m.pixels, 96);
			}
			m.stream[i] ^= (unsigned char)(1u << bit);
		}
	assert_true(made(&m, m.n));
	end(&m);
}

static void another_kind(void **state)
{
	struct image m;
	unsigned char *stored;
	uLongf n;

	(void)state;
	begin(&m, 64, 16, 2);
	/* compressed blocks */
	n = compressBound((uLong)m.shape.raw_bytes);
	m.stream = malloc(n);
	memset(m.raw, 0, (size_t)m.shape.raw_bytes);
	assert_int_equal(compress(m.stream, &n, m.raw, (uLong)m.shape.raw_bytes), Z_OK);
	assert_false(made(&m, n));
	/* a row with a filter */
	m.raw[65 * 7] = 2;
	store(&m, 100, false);
	assert_false(made(&m, m.n));
	m.raw[65 * 7] = 0;
	store(&m, 100, false);
	assert_true(made(&m, m.n));
	/* a row more, a row less, a byte behind the end */
	m.shape.raw_bytes += 65;
	assert_false(made(&m, m.n));
	m.shape.raw_bytes -= 130;
	assert_false(made(&m, m.n));
	m.shape.raw_bytes += 65;
	stored = m.stream;
	m.stream = malloc(m.n + 1);
	assert_non_null(m.stream);
	memcpy(m.stream, stored, m.n);
	m.stream[m.n] = 0;
	assert_false(made(&m, m.n + 1));
	free(stored);
	end(&m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_row_and_block),
		cmocka_unit_test(large),
		cmocka_unit_test(cut_or_changed),
		cmocka_unit_test(another_kind),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
