/* Parquet files that others wrote: the delta encodings, their metadata as an index, and metadata of
 * which any byte is another one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/little_endian.h"
#include "format/parquet/parquet_decode.h"
#include "format/parquet/parquet_delta.h"
#include "format/parquet/parquet_index.h"
#include "format/parquet/parquet_layout.h"

#define ROOM (1u << 20)

static struct parquet_decoder *decoder(void)
{
	static struct parquet_decoder d;

	if (d.raw)
		return &d;
	d.raw_room = d.dictionary_room = ROOM;
	d.raw = xmalloc(ROOM);
	d.dictionary = xmalloc(ROOM);
	d.place = xmalloc((ROOM / 4 + 2) * sizeof(uint32_t));
	d.scratch = xmalloc(PARQUET_SCRATCH_BYTES);
	inflater_init(&d.inflater, xmalloc(INFLATER_MEMORY));
	return &d;
}

struct values {
	struct buf bytes;
	uint64_t n;
};

static int keep(void *arg, const unsigned char *bytes, size_t n, size_t size, struct err *e)
{
	struct values *v = arg;

	(void)e;
	v->n += n;
	buf_append(&v->bytes, bytes, size);
	return 0;
}

static void forget(struct values *v)
{
	buf_release(&v->bytes);
	*v = (struct values){0};
}

/* ---- delta encodings ---- */

/* Input that ends where its memory does. */
static int decode(int type, int width, int encoding, const void *in, size_t n, uint64_t count,
		  struct values *out, struct err *e)
{
	struct parquet_decoder *d = decoder();
	unsigned char *exact = xmalloc(n ? n : 1);
	int rc;

	memcpy(exact, in, n);
	*out = (struct values){0};
	parquet_decoder_begin(d, type, width, PARQUET_PLAIN_BYTES, 0, 0);
	rc = parquet_delta(d, encoding, exact, n, count, keep, out, e);
	free(exact);
	return rc;
}

struct delta_case {
	int type, width, encoding;
	uint64_t count;
	size_t n, bytes;
	unsigned char in[80], out[64];
};

/* The first two are the specification's, the others made by hand from it. */
static const struct delta_case delta_cases[] = {
	/* 1, 2, 3, 4, 5 */
	{PARQUET_INT32,
	 0,
	 5,
	 5,
	 10,
	 20,
	 {0x80, 1, 4, 5, 2, 2, 0, 0, 0, 0},
	 {1, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0, 4, 0, 0, 0, 5}},
	/* 7, 5, 3, 1, 2, 3, 4, 5: differences in 2 bits */
	{PARQUET_INT64,
	 0,
	 5,
	 8,
	 18,
	 64,
	 {0x80, 1, 4, 8, 14, 3, 2, 0, 0, 0, 0xc0, 0x3f},
	 {7, 0, 0, 0, 0, 0, 0, 0, 5, 0, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0,
	  0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0, 4, 0, 0, 0, 0, 0, 0, 0, 5}},
	/* the largest number and the smallest one: the difference wraps to 1 */
	{PARQUET_INT32,
	 0,
	 5,
	 2,
	 14,
	 8,
	 {0x80, 1, 4, 2, 0xfe, 0xff, 0xff, 0xff, 0x0f, 2, 0, 0, 0, 0},
	 {0xff, 0xff, 0xff, 0x7f, 0, 0, 0, 0x80}},
	/* "Hello", "World", "Foobar" */
	{PARQUET_BYTE_ARRAY,
	 0,
	 6,
	 3,
	 30,
	 28,
	 {0x80, 1,   4,   3,   10,  0,   1,   0,   0,   0,   2,   0,   0,   0,   'H',
	  'e',  'l', 'l', 'o', 'W', 'o', 'r', 'l', 'd', 'F', 'o', 'o', 'b', 'a', 'r'},
	 {5,   0,   0,   0,   'H', 'e', 'l', 'l', 'o', 5,   0,   0,   0,   'W',
	  'o', 'r', 'l', 'd', 6,   0,   0,   0,   'F', 'o', 'o', 'b', 'a', 'r'}},
	/* "axis", "axle", "babble", "babyhood" */
	{PARQUET_BYTE_ARRAY,
	 0,
	 7,
	 4,
	 61,
	 38,
	 {0x80, 1,   4,   4,   0,   3,   3,    0,   0,   0,   0x44, 1,   0,   0,   0,   0,
	  0,    0,   0,   0,   0,   0,   0x80, 1,   4,   4,   8,    3,   3,   0,   0,   0,
	  0x70, 0,   0,   0,   0,   0,   0,    0,   0,   0,   0,    0,   'a', 'x', 'i', 's',
	  'l',  'e', 'b', 'a', 'b', 'b', 'l',  'e', 'y', 'h', 'o',  'o', 'd'},
	 {4, 0,   0,   0,   'a', 'x', 'i', 's', 4, 0, 0, 0,   'a', 'x', 'l', 'e', 6,   0,   0,
	  0, 'b', 'a', 'b', 'b', 'l', 'e', 8,   0, 0, 0, 'b', 'a', 'b', 'y', 'h', 'o', 'o', 'd'}},
	/* "ab", "ac" of 2 bytes each */
	{PARQUET_FIXED,
	 2,
	 7,
	 2,
	 27,
	 4,
	 {0x80, 1, 4, 2, 0, 2, 0, 0, 0, 0, 0x80, 1, 4, 2, 4, 1, 0, 0, 0, 0, 'a', 'b', 'c'},
	 {'a', 'b', 'a', 'c'}},
};

static void deltas(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(delta_cases) / sizeof(delta_cases[0]); i++) {
		const struct delta_case *c = &delta_cases[i];
		struct values v;
		struct err e = {0};
		size_t n = c->n;

		/* what the tables hold behind the last text is not there */
		if (c->type == PARQUET_FIXED)
			n = 23;
		assert_int_equal(decode(c->type, c->width, c->encoding, c->in, n, c->count, &v, &e),
				 0);
		assert_int_equal(v.n, c->count);
		assert_int_equal(v.bytes.len, c->bytes);
		assert_memory_equal(v.bytes.data, c->out, c->bytes);
		forget(&v);
		/* cut off anywhere */
		for (size_t cut = 0; cut < n; cut++) {
			assert_int_equal(decode(c->type, c->width, c->encoding, c->in, cut,
						c->count, &v, &e),
					 ERR_DATA);
			assert_non_null(strstr(e.text, "a page is damaged"));
			forget(&v);
		}
		/* of another type, and with another number of values than it says */
		assert_int_equal(decode(PARQUET_DOUBLE, 0, c->encoding, c->in, n, c->count, &v, &e),
				 ERR_DATA);
		assert_int_equal(
			decode(c->type, c->width, c->encoding, c->in, n, c->count - 1, &v, &e),
			ERR_DATA);
		forget(&v);
	}
}

static void hostile_deltas(void **state)
{
	static const struct {
		size_t n;
		unsigned char in[24];
		const char *words;
	} cases[] = {
		{5, {0x80, 1, 0, 2, 2}, "no allowed size"},
		{5, {0x80, 1, 3, 2, 2}, "no allowed size"},
		{5, {4, 1, 2, 2, 0}, "no allowed size"},
		{11, {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f, 1, 2, 2}, "no allowed size"},
		{10, {0x80, 1, 4, 2, 2, 2, 65, 0, 0, 0}, "more than 64 bits"},
		{10, {0x80, 1, 4, 2, 2, 2, 64, 0, 0, 0}, "cut off"},
		{8, {0x80, 1, 0xff, 0x7f, 2, 2, 2, 0}, "no allowed size"},
	};
	struct values v;
	struct err e = {0};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		assert_int_equal(decode(PARQUET_INT32, 0, 5, cases[i].in, cases[i].n, 2, &v, &e),
				 ERR_DATA);
		if (!strstr(e.text, cases[i].words))
			fail_msg("case %zu: %s", i, e.text);
		forget(&v);
	}
}

/* ---- files ---- */

static unsigned char *load(const char *name, size_t *n)
{
	char path[512];
	unsigned char *bytes = xmalloc(1 << 20);
	FILE *f;

	snprintf(path, sizeof(path), "%s/parquet/%s", TEST_DATA, name);
	f = fopen(path, "rb");
	assert_non_null(f);
	*n = fread(bytes, 1, 1 << 20, f);
	fclose(f);
	return bytes;
}

static const struct file_spec form = {.compression = "none"};

/* All pages of a chunk, as a reader goes through them. */
static int decode_chunk(const unsigned char *file, const struct parquet_index *x, uint64_t group,
			uint32_t column, struct values *v, struct err *e)
{
	const struct parquet_stored_place *p = parquet_place_in(x, group, column);
	const struct parquet_stored_leaf *leaf = &x->leaf[column];
	struct parquet_decoder *d = decoder();
	uint64_t at = p->at, end = p->at + p->bytes;
	int rc = 0;

	parquet_decoder_begin(d, leaf->type, leaf->type_length, p->codec, leaf->definition_max,
			      leaf->repetition_max);
	while (rc == 0 && at < end) {
		struct parquet_page_head h;
		size_t used = 0;

		rc = parquet_page_head_parse(file + at, end - at, &h, &used, e);
		if (rc == 0 && h.stored > end - at - used)
			rc = err_set(e, ERR_DATA, "a page reaches behind its chunk");
		if (rc == 0)
			rc = parquet_decode_page(d, &h, file + at + used, keep, v, e);
		at += used + h.stored;
	}
	if (rc == 0 && d->levels != p->values)
		rc = err_set(e, ERR_DATA, "other values");
	return rc;
}

/* What the file holds, when all of it is read: rows, and a buffer of its values. */
static int read_all(const unsigned char *file, size_t n, struct values *v, uint64_t *rows,
		    struct err *e)
{
	struct file_look look;
	const struct parquet_index *x;
	uint32_t metadata = 0;
	int rc = parquet_tail_parse(file + n - 8, n, &metadata, e);

	*v = (struct values){0};
	if (rc == 0)
		rc = parquet_index_of(file + n - 8 - metadata, metadata, n, &form, &look, e);
	if (rc < 0)
		return rc;
	assert_true(look.index_bytes < 1 << 20);
	x = look.index;
	assert_int_equal(look.samples, x->group[x->groups].first);
	for (uint64_t g = 0; g < x->groups; g++) {
		assert_true(x->group[g].end <= n && x->group[g].at <= x->group[g].end);
		for (uint32_t c = 0; rc == 0 && c < x->columns; c++)
			rc = decode_chunk(file, x, g, c, v, e);
	}
	*rows = look.samples;
	free(look.index);
	return rc;
}

/* Each byte of the metadata is another one, in three ways. */
static void flips_of(const char *name, uint64_t want_rows)
{
	static const unsigned char masks[] = {0x01, 0x80, 0xff};
	size_t n, refused = 0, equal = 0, other = 0;
	unsigned char *file = load(name, &n);
	uint32_t metadata = (uint32_t)le_get(file + n - 8, 4);
	struct values want, got;
	uint64_t rows = 0;
	struct err e = {0};

	assert_int_equal(read_all(file, n, &want, &rows, &e), 0);
	assert_int_equal(rows, want_rows);
	for (size_t at = n - 8 - metadata; at < n; at++)
		for (size_t m = 0; m < sizeof(masks); m++) {
			int rc;

			file[at] ^= masks[m];
			e.text[0] = '\0';
			rc = read_all(file, n, &got, &rows, &e);
			file[at] ^= masks[m];
			if (rc < 0) {
				assert_true(rc == ERR_DATA || rc == ERR_ABSENT);
				assert_true(e.text[0] && !strchr(e.text, '\n'));
				refused++;
			} else if (rows == want_rows && got.n == want.n &&
				   got.bytes.len == want.bytes.len &&
				   memcmp(got.bytes.data, want.bytes.data, want.bytes.len) == 0) {
				equal++;
			} else {
				print_message("%s: byte %zu ^ %02x reads as others\n", name,
					      at - (n - 8 - metadata), masks[m]);
				other++;
			}
			forget(&got);
		}
	print_message("%s: %zu refused, %zu read equal, %zu otherwise\n", name, refused, equal,
		      other);
	forget(&want);
	free(file);
	assert_true(refused > 100 && equal > 100);
	assert_int_equal(other, 0);
}

static void flips_of_pyarrow(void **state)
{
	(void)state;
	flips_of("pyarrow.parquet", 90);
}

static void flips_of_duckdb(void **state)
{
	(void)state;
	flips_of("duckdb.parquet", 150);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(deltas),
		cmocka_unit_test(hostile_deltas),
		cmocka_unit_test(flips_of_pyarrow),
		cmocka_unit_test(flips_of_duckdb),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
