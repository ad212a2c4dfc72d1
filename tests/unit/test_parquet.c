/* Metadata of Parquet files: hostile ones end in a sentence, and large ones are fast. */
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
#include "base/clock.h"
#include "format/parquet/parquet_layout.h"
#include "format/parquet/parquet_metadata.h"
#include "format/parquet/parquet_footer.h"

static int put(void *arg, const void *bytes, size_t n, struct err *e)
{
	(void)e;
	buf_append(arg, bytes, n);
	return 0;
}

static void ten_thousand_groups(void **state)
{
	struct file_spec f = {.elem = elem_find("float32"),
			      .ndims = 1,
			      .dims = {1},
			      .samples = 10000 * 1024,
			      .compression = "none"};
	struct parquet_layout l;
	struct parquet_totals totals;
	struct buf b = {0};
	struct err e = {0};
	int64_t least = INT64_MAX;

	(void)state;
	assert_int_equal(parquet_layout_of(&f, &l, &e), 0);
	assert_int_equal(l.groups, 10000);
	assert_int_equal(parquet_put_metadata(&l, put, &b, &e), 0);
	assert_int_equal(b.len, parquet_metadata_bytes(&l) + PARQUET_TAIL_BYTES);
	for (int i = 0; i < 20; i++) {
		int64_t begin = clock_now_ns();

		assert_int_equal(parquet_metadata_parse(b.data, b.len - PARQUET_TAIL_BYTES,
							l.metadata_at, NULL, &totals, &e),
				 0);
		begin = clock_now_ns() - begin;
		least = begin < least ? begin : least;
	}
	assert_int_equal(totals.groups, 10000);
	assert_int_equal(totals.rows, f.samples);
	assert_true(least < 50000000);
	buf_release(&b);
}

/* The places of row groups, counted one after another. */
static void groups_follow_each_other(void **state)
{
	struct parquet_shape *s = xcalloc(1, sizeof(*s) + 3 * sizeof(struct parquet_column));
	struct file_spec f = {.elem = elem_find("uint8"),
			      .ndims = 1,
			      .dims = {31},
			      .own = s,
			      .compression = "none"};
	static const char *const names[] = {"int8", "float64", "float16"};
	static const uint64_t sizes[] = {1, 2, 3};

	(void)state;
	s->columns = 3;
	for (int i = 0; i < 3; i++) {
		struct parquet_column *c = &s->column[i];

		snprintf(c->name, sizeof(c->name), "c%d", i);
		c->elem = elem_find(names[i]);
		c->size = sizes[i];
		c->list = sizes[i] > 1;
		assert_int_equal(parquet_complete_column(c, NULL), 0);
	}
	for (uint64_t i = 0; i < 400; i++) {
		struct parquet_layout l;
		uint64_t at = 4, row = 0;

		s->writer = i % 2 ? WRITER_PYARROW : WRITER_S3DLIO;
		s->group_rows = 1 + i % 7;
		s->batch_rows = i % 5 ? i % 11 : 0;
		f.samples = i % 83;
		assert_int_equal(parquet_layout_of(&f, &l, NULL), 0);
		for (uint64_t g = 0; g < l.groups; g++) {
			struct parquet_group group;
			uint64_t bytes = 0;

			parquet_group_at(&l, g, &group);
			assert_int_equal(group.at, at);
			assert_int_equal(group.first, row);
			for (uint32_t c = 0; c < 3; c++) {
				struct parquet_chunk k;

				parquet_chunk_of(&l, c, group.rows, &k);
				bytes += k.stored;
			}
			assert_int_equal(group.bytes, bytes);
			for (uint64_t r = 0; r < group.rows; r++)
				assert_int_equal(parquet_group_of_row(&l, row + r), g);
			at += bytes;
			row += group.rows;
		}
		assert_int_equal(row, f.samples);
		assert_int_equal(at, l.metadata_at);
	}
	free(s);
}

static unsigned char bytes[4096];

static int refused(const struct thrift_out *o, const char *words)
{
	struct parquet_totals totals;
	struct err e = {0};
	int rc = parquet_metadata_parse(o->bytes, o->used, 1000, NULL, &totals, &e);

	if (!strstr(e.text, words))
		fail_msg("%s", e.text);
	return rc;
}

static void begin(struct thrift_out *o, unsigned children)
{
	thrift_begin(o, bytes, sizeof(bytes));
	thrift_put_int(o, 1, THRIFT_I32, 1);
	thrift_put_list(o, 2, THRIFT_STRUCT, 2);
	thrift_item_struct(o);
	thrift_put_bytes(o, 4, "root", 4);
	thrift_put_int(o, 5, THRIFT_I32, children);
	thrift_end(o);
	thrift_item_struct(o);
	thrift_put_int(o, 1, THRIFT_I32, PARQUET_INT32);
	thrift_put_int(o, 3, THRIFT_I32, 0);
	thrift_put_bytes(o, 4, "a", 1);
	thrift_end(o);
}

static void one_group(struct thrift_out *o, int64_t stored, int64_t at, int64_t rows)
{
	thrift_put_list(o, 4, THRIFT_STRUCT, 1);
	thrift_item_struct(o);
	thrift_put_list(o, 1, THRIFT_STRUCT, 1);
	thrift_item_struct(o);
	thrift_put_int(o, 2, THRIFT_I64, at);
	thrift_put_struct(o, 3);
	thrift_put_int(o, 1, THRIFT_I32, PARQUET_INT32);
	for (int id = 4; id <= 6; id++)
		thrift_put_int(o, id, id == 4 ? THRIFT_I32 : THRIFT_I64, 0);
	thrift_put_int(o, 7, THRIFT_I64, stored);
	thrift_put_int(o, 9, THRIFT_I64, at);
	thrift_end(o);
	thrift_end(o);
	thrift_put_int(o, 3, THRIFT_I64, rows);
	thrift_end(o);
	thrift_end(o);
}

static void hostile_metadata(void **state)
{
	struct parquet_totals totals;
	struct thrift_out o;
	struct err e = {0};
	uint32_t n;

	(void)state;
	begin(&o, 1);
	thrift_put_int(&o, 3, THRIFT_I64, 5);
	one_group(&o, 100, 4, 5);
	assert_int_equal(parquet_metadata_parse(o.bytes, o.used, 1000, NULL, &totals, &e), 0);
	assert_int_equal(totals.rows, 5);
	/* 10^9 row groups in a few bytes */
	begin(&o, 1);
	thrift_put_list(&o, 4, THRIFT_STRUCT, 1000000000);
	assert_int_equal(refused(&o, "longer than what is left"), ERR_DATA);
	/* outside of the file */
	for (int i = 0; i < 3; i++) {
		static const int64_t place[][2] = {{997, 4}, {1, 1000}, {4, 2}};

		begin(&o, 1);
		thrift_put_int(&o, 3, THRIFT_I64, 5);
		one_group(&o, place[i][0], place[i][1], 5);
		assert_int_equal(refused(&o, "outside of the file"), ERR_DATA);
	}
	begin(&o, 1);
	thrift_put_int(&o, 3, THRIFT_I64, 5);
	one_group(&o, -1, 4, 5);
	assert_int_equal(refused(&o, "negative"), ERR_DATA);
	begin(&o, 1);
	thrift_put_int(&o, 3, THRIFT_I64, 5);
	one_group(&o, 100, 4, 6);
	assert_int_equal(refused(&o, "other rows"), ERR_DATA);
	begin(&o, 2);
	assert_int_equal(refused(&o, "fewer elements"), ERR_DATA);
	begin(&o, 0);
	assert_int_equal(refused(&o, "more elements"), ERR_DATA);
	/* a schema of one folder in another */
	thrift_begin(&o, bytes, sizeof(bytes));
	thrift_put_list(&o, 2, THRIFT_STRUCT, 200);
	for (int i = 0; i < 200; i++) {
		thrift_item_struct(&o);
		thrift_put_int(&o, 3, THRIFT_I32, 0);
		thrift_put_int(&o, 5, THRIFT_I32, 1);
		thrift_end(&o);
	}
	thrift_end(&o);
	assert_int_equal(refused(&o, "nested too deeply"), ERR_DATA);
	/* unknown fields, as deep as there is room */
	memset(bytes, 0x9c, sizeof(bytes));
	o.bytes = bytes;
	o.used = sizeof(bytes);
	assert_int_equal(refused(&o, "nested too deeply"), ERR_DATA);
	assert_int_equal(
		parquet_tail_parse((const unsigned char *)"\xff\xff\xff\x7fPAR1", 1000, &n, &e),
		ERR_DATA);
	assert_non_null(strstr(e.text, "more than the file"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ten_thousand_groups),
		cmocka_unit_test(groups_follow_each_other),
		cmocka_unit_test(hostile_metadata),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
