#pragma once
/* The text of a csv file as a stream: a row of numbers per sample, a pure function of the spec and
 * the content. */
#include "format/csv/csv_number.h"
#include "format/format.h"

#define CSV_ELEMENTS 16384u /* bytes of elements made at a time: whole elements of any type */

struct csv_text {
	const struct file_spec *f;
	const struct content_source *content;
	csv_put_fn put;
	unsigned char *elements; /* CSV_ELEMENTS, the caller's */
	size_t at, end;          /* of those not written yet */
	bool bytes;              /* uint8: the text of each value with its comma */
	unsigned char byte_chars[256];
	char byte_texts[256][4];
	uint64_t columns, column;
	uint64_t rows_left;
	uint64_t offset; /* in the payload, of the elements to make next */
};

void csv_text_start(struct csv_text *t, const struct file_spec *f,
		    const struct content_source *content, unsigned char *elements);
/* As many whole numbers as `room` (at least CSV_NUMBER_MAX) surely has room for. Returns
 * characters; 0 at the end. */
size_t csv_text_next(struct csv_text *t, char *out, size_t room);
