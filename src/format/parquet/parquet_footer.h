#pragma once
/* A bounded parser of any Parquet file's metadata: it keeps nothing but what it is at, and each
 * number is checked before it is used. */
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

struct parquet_leaf {
	const unsigned char *name;
	size_t name_bytes;
	const unsigned char *top; /* the name of the column of the table that it is a part of */
	size_t top_bytes;
	int type, type_length;
	unsigned definition_max, repetition_max;
};

struct parquet_stored_chunk {
	uint64_t group, column;
	int type, codec;
	uint64_t values, at, stored, raw;
};

/* What is told of a file, in its order. A negative result ends the walk. */
struct parquet_visitor {
	int (*leaf)(struct parquet_visitor *v, uint64_t column, const struct parquet_leaf *leaf,
		    struct err *e);
	int (*chunk)(struct parquet_visitor *v, const struct parquet_stored_chunk *c,
		     struct err *e);
	/* After its chunks. */
	int (*group)(struct parquet_visitor *v, uint64_t group, uint64_t rows, struct err *e);
};

struct parquet_totals {
	uint64_t rows, groups, columns;
};

/* Length of the metadata of a file of so many bytes, from its last 8. */
int parquet_tail_parse(const unsigned char *tail, uint64_t file_bytes, uint32_t *metadata_bytes,
		       struct err *e);
/* Walks the metadata; data lie before `data_end`. Functions of `v` may be NULL. */
int parquet_metadata_parse(const void *bytes, size_t n, uint64_t data_end,
			   struct parquet_visitor *v, struct parquet_totals *out, struct err *e);

struct parquet_page_head {
	int type, encoding;
	uint32_t raw, stored, values;
	uint32_t repetition_bytes, definition_bytes; /* of a data page V2 */
	int plain;                                   /* V2: not compressed */
};
#define PARQUET_PAGE_HEAD_MAX 65536u
/* The head of a page; *used: its bytes. */
int parquet_page_head_parse(const void *bytes, size_t n, struct parquet_page_head *out,
			    size_t *used, struct err *e);
