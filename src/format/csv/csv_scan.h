#pragma once
/* Text of a csv file as it is read, piece by piece, cut anywhere: parsed, compared or only counted.
 */
#include "format/csv/csv_text.h"
#include "format/reader.h"

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
