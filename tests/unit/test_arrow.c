/* Files of Arrow: what is written is found again, and whatever byte is damaged, everything that is
 * given out lies within the file. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "base/little_endian.h"
#include "format/arrow/arrow_layout.h"
#include "format/arrow/arrow_table.h"

#define SAMPLES 25
#define BYTES 37
#define ROWS 10
#define BATCHES 8

static struct arrow_scratch scratch;
static struct arrow_entry entry[BATCHES];
static const struct io io;

/* A file of zeros but for its metadata and offsets. */
static unsigned char *make(struct arrow_layout *l)
{
	const struct arrow_shape shape = {.batch_rows = ROWS};
	const struct file_spec f = {.elem = elem_find("uint8"),
				    .ndims = 1,
				    .dims = {BYTES},
				    .samples = SAMPLES,
				    .own = &shape};
	unsigned char *file;

	assert_int_equal(arrow_layout_of(&f, l, NULL), 0);
	assert_int_equal(l->batches, 3);
	file = xcalloc(1, l->file_bytes);
	assert_int_equal(arrow_schema_write(file), l->schema_bytes);
	for (uint64_t i = 0; i < l->batches; i++) {
		struct arrow_place p;
		unsigned char *at;

		arrow_place_of(l, i, &p);
		at = file + p.at;
		at += arrow_batch_write(at, p.rows, p.buffer, p.body_bytes);
		assert_int_equal((uint64_t)(at - file), p.at + l->head_bytes);
		for (uint64_t k = 0; k <= p.rows; k++)
			le_put(at + 4 * k, k * BYTES, 4);
	}
	le_put(file + l->file_bytes - 8, ARROW_CONTINUES, 4);
	return file;
}

static int list(struct arrow_table *t, const unsigned char *file, uint64_t bytes, struct err *e)
{
	*t = (struct arrow_table){
		.map = {.at = file, .bytes = bytes}, .entry = entry, .most = BATCHES};
	return arrow_table_list(t, &io, &scratch, e);
}

static void found_again(void **state)
{
	struct arrow_layout l;
	unsigned char *file = make(&l);
	struct arrow_part part[ARROW_PARTS_MAX];
	struct arrow_table t;
	uint32_t parts;

	(void)state;
	assert_int_equal(list(&t, file, l.file_bytes, NULL), 0);
	assert_int_equal(t.rows, SAMPLES);
	assert_int_equal(t.batches, 3);
	assert_int_equal(t.schema.nodes, 2);
	for (uint64_t i = 0; i < SAMPLES; i++) {
		assert_int_equal(arrow_table_row(&t, &io, i, &scratch, part, &parts, NULL), 0);
		assert_int_equal(parts, 2);
		assert_int_equal(part[0].offset, arrow_sample_at(&l, i));
		assert_int_equal(part[0].bytes, BYTES);
		assert_int_equal(part[1].bytes, ARROW_LABEL_BYTES);
	}
	/* a stream may end without its mark, but not within a message */
	assert_int_equal(list(&t, file, l.file_bytes - 8, NULL), 0);
	assert_int_equal(t.rows, SAMPLES);
	free(file);
}

/* Looks at all rows; whatever is given out lies within the file. */
static void look(const unsigned char *file, uint64_t bytes)
{
	struct arrow_part part[ARROW_PARTS_MAX];
	struct arrow_table t;
	uint32_t parts;
	struct err e;
	int rc = list(&t, file, bytes, &e);

	if (rc < 0) {
		assert_int_equal(rc, ERR_DATA);
		assert_true(e.text[0] && !strchr(e.text, '\n'));
		return;
	}
	assert_true(t.batches <= BATCHES);
	for (uint64_t i = 0; i < t.rows && i < SAMPLES; i++) {
		rc = arrow_table_row(&t, &io, i, &scratch, part, &parts, &e);
		assert_true(rc == 0 || (rc == ERR_DATA && e.text[0]));
		for (uint32_t k = 0; rc == 0 && k < parts; k++) {
			assert_true(part[k].offset <= bytes);
			assert_true(part[k].bytes <= bytes - part[k].offset);
		}
	}
}

static void damaged(void **state)
{
	static const unsigned char values[] = {0, 1, 0x7f, 0x80, 0xff};
	struct arrow_layout l;
	unsigned char *file = make(&l), *cut;
	/* to the end of the first batch's offsets */
	uint64_t end = l.schema_bytes + l.head_bytes + 4 * (ROWS + 1);

	(void)state;
	for (uint64_t at = 0; at < end; at++) {
		unsigned char was = file[at];

		for (size_t i = 0; i < sizeof(values); i++) {
			file[at] = values[i];
			look(file, l.file_bytes);
		}
		file[at] = was;
	}
	for (uint64_t n = 1; n < l.file_bytes; n++) {
		/* no byte behind it may be looked at */
		cut = xmalloc(n);
		memcpy(cut, file, n);
		look(cut, n);
		free(cut);
	}
	free(file);
}

static void huge(void **state)
{
	struct arrow_layout l;
	const struct file_spec f = {
		.elem = elem_find("float64"), .ndims = 1, .dims = {UINT64_MAX / 4}, .samples = 2};
	struct file_spec many = {
		.elem = elem_find("uint8"), .ndims = 1, .dims = {INT32_MAX}, .samples = 3};

	(void)state;
	assert_int_equal(arrow_layout_of(&f, &l, NULL), ERR_USAGE);
	/* offsets have 32 bits: a batch for each */
	assert_int_equal(arrow_layout_of(&many, &l, NULL), 0);
	assert_int_equal(l.batches, 3);
	assert_true(arrow_sample_at(&l, 2) + INT32_MAX < l.file_bytes);
	many.samples = UINT64_MAX / 8;
	assert_int_equal(arrow_layout_of(&many, &l, NULL), ERR_USAGE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(found_again),
		cmocka_unit_test(damaged),
		cmocka_unit_test(huge),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
