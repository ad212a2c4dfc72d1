#pragma once
/* The text of a csv file as a stream: a row of numbers per sample, a pure function of the spec and
 * the content. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/elem.h"
#include "format/format.h"
#include "format/reader.h"

/* Numbers as text in csv files: what pandas writes for a column of an element type, and what its
 * parser takes for a number. */

/* The longest number with what follows it. */
#define CSV_NUMBER_MAX 32u

/* Writes one element, without a separator. Returns the end. Room for CSV_NUMBER_MAX. Floats are the
 * shortest text that reads back as the same value of the type; a NaN is "nan". */
typedef char *(*csv_put_fn)(char *out, const unsigned char *element);
/* NULL for a type that has no such text (complex numbers). */
csv_put_fn csv_put_of(const struct elem_type *elem);
/* Characters of an element and its separator in the mean over its values, in hundredths, rounded
 * up. */
unsigned csv_mean_chars(const struct elem_type *elem);
/* What these become compressed with gzip as our files are, measured, in hundredths of a byte. */
unsigned csv_mean_gzip_bytes(const struct elem_type *elem);

/* The value of a whole field. An empty one is a NaN; "True" is 1, "False" 0. False when it is none.
 */
bool csv_parse(const char *text, size_t n, double *out);

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

/* Text of a csv file as it is read, piece by piece, cut anywhere: parsed, compared or only counted.
 */

#define CSV_EXPECT_BYTES 65536u
#define CSV_FIELD_MAX 64u

struct csv_scan {
	enum read_decode decode;
	const struct file_spec *f;
	bool compressed; /* places are in the text, not in the file */
	bool stops;      /* after the last row wanted; else the file must end there */
	uint64_t rows_wanted;
	uint64_t offset; /* of the next byte */
	uint64_t columns, row, column;
	double sum;  /* of all numbers: what parsing came to */
	size_t held; /* of a field that the last piece cut */
	char field[CSV_FIELD_MAX];
	struct csv_text text; /* verify: what the file is to hold */
	char *expect;         /* CSV_EXPECT_BYTES */
	size_t at, end;       /* of it */
};

/* The first `rows` rows of the file. `expect` and `elements` (CSV_ELEMENTS) are used by
 * DECODE_VERIFY alone, as is `content`. */
void csv_scan_start(struct csv_scan *s, enum read_decode decode, const struct file_spec *f,
		    uint64_t rows, const struct content_source *content, char *expect,
		    unsigned char *elements);
/* 1 when no more is needed (`stops`), else 0; ERR_DATA where the text is not what it must be. */
int csv_scan_feed(struct csv_scan *s, const char *text, size_t n, struct err *e);
/* The file has ended. */
int csv_scan_end(struct csv_scan *s, struct err *e);
