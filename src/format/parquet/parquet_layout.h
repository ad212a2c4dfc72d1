#pragma once
/* How our Parquet files look: columns, row groups, pages and the sizes of all of them, as pure
 * functions of a file's spec. Writer and reader share them.
 *
 * A file is "PAR1", the column chunks of each row group in turn, the metadata (Thrift), their
 * length and "PAR1". Two layouts: that of s3dlio's generator (required fields, PLAIN, no
 * dictionary, no statistics), and that of pyarrow's writer (optional fields, a dictionary of up to
 * 1 MiB before PLAIN takes over, statistics). The dictionaries of the second hold a chunk's first
 * values in their order, or all values of an 8-bit type, so that sizes do not depend on content;
 * those of pyarrow leave out repetitions. Compressed pages hold their bytes stored, not made
 * smaller: the content is incompressible. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "format/format.h"
#include "format/parquet/thrift.h"

/* Numbers of the file format. */
enum parquet_type {
	PARQUET_BOOLEAN,
	PARQUET_INT32,
	PARQUET_INT64,
	PARQUET_INT96,
	PARQUET_FLOAT,
	PARQUET_DOUBLE,
	PARQUET_BYTE_ARRAY,
	PARQUET_FIXED
};
enum parquet_codec {
	PARQUET_PLAIN_BYTES,
	PARQUET_SNAPPY,
	PARQUET_GZIP,
	PARQUET_BROTLI = 4, /* only read */
	PARQUET_ZSTD = 6,
	PARQUET_LZ4_RAW = 7
};
enum parquet_page_type { PARQUET_DATA_PAGE, PARQUET_DICTIONARY_PAGE = 2, PARQUET_DATA_PAGE_V2 };
enum {
	PARQUET_PLAIN,
	PARQUET_PLAIN_DICTIONARY = 2,
	PARQUET_RLE,
	PARQUET_RLE_DICTIONARY = 8,
	PARQUET_BYTE_STREAM_SPLIT = 9
};

#define PARQUET_TAIL_BYTES 8 /* length of the metadata, "PAR1" */
#define PARQUET_NAME_MAX 128
#define PARQUET_COLUMNS_MAX 20000u
#define PARQUET_SCHEMA_DEPTH_MAX 32

/* Names by their number, NULL where we write no such files. */
const char *parquet_codec_name(unsigned codec);

enum parquet_text { TEXT_NONE, TEXT_BINARY, TEXT_STRING };

struct parquet_column {
	char name[PARQUET_NAME_MAX];
	const struct elem_type *elem;
	enum parquet_text text; /* a value is `size` bytes of a string */
	bool list;              /* `size` values a row */
	bool marked;            /* dataset.parquet.columns[].read */
	bool skipped;           /* no reader wants it */
	enum parquet_type type;
	uint64_t size;
	uint32_t width;     /* bytes of a value in PLAIN; 0: a bit */
	uint64_t row_bytes; /* of payload */
};

enum parquet_writer { WRITER_S3DLIO, WRITER_PYARROW };

struct node;
struct parquet_index;
struct parquet_pattern;

/* What the keys of dataset.parquet say, and those of reading. One block. */
struct parquet_shape {
	const struct parquet_pattern *pattern; /* parquet_ranges.h */
	uint64_t footer_cap;
	/* Of files that others wrote: names of columns that are wanted, of the workload; NULL: all
	 */
	const struct node *choice;
	uint32_t coalesce;        /* row groups that are asked for together */
	uint32_t workers, window; /* as in the pattern; 0: the pattern's */
	uint64_t row_bytes;       /* payload of a row that readers want; 0: all of it */
	enum parquet_writer writer;
	uint64_t group_rows, batch_rows;  /* batch_rows 0: group_rows */
	uint64_t samples, metadata_bytes; /* of a file of so many samples, once known */
	uint32_t columns;
	struct parquet_column column[];
};

/* A file that others wrote has an index, and of the rest only columns, samples and groups. */
struct parquet_layout {
	const struct parquet_index *index;
	const struct parquet_column *column;
	uint32_t columns;
	struct parquet_column one; /* without keys: all of a sample */
	enum parquet_writer writer;
	enum parquet_codec codec;
	uint64_t samples;
	uint64_t group_rows, batch_rows, groups, groups_of_batch;
	uint64_t batch_bytes;
	struct {
		uint64_t rows, bytes;
	} kind[3]; /* of row groups: full, last of a batch, last of the file */
	uint64_t metadata_at;
	uint32_t page_raw_max, page_stored_max;
	uint64_t known_metadata_bytes; /* 0: not known yet */
};

/* Whether the files of a dataset are such, by what they have in common (reader_config.example). */
bool parquet_is_listed(const struct file_spec *form);
/* Whether no reader wants column `i`. */
bool parquet_skips(const struct parquet_layout *l, uint32_t i);
/* Fills in what follows from type and size of a column. */
int parquet_complete_column(struct parquet_column *c, struct err *e);
/* ERR_USAGE when there cannot be such a file. `f` must live as long as the layout. */
int parquet_layout_of(const struct file_spec *f, struct parquet_layout *out, struct err *e);
struct parquet_group {
	uint64_t index, first, rows; /* first row */
	uint64_t at, bytes;
};
void parquet_group_at(const struct parquet_layout *l, uint64_t index, struct parquet_group *out);
uint64_t parquet_group_of_row(const struct parquet_layout *l, uint64_t row);

struct parquet_page {
	bool dictionary;
	int encoding;
	uint64_t first; /* value of the chunk */
	uint32_t values;
	uint32_t repetition_bytes, definition_bytes, value_bytes;
	uint32_t raw, stored; /* payload of the page, before and after compression */
	unsigned bits;        /* of a dictionary's index */
	size_t head_bytes;
	unsigned char head[96];
};

/* The pages of a chunk, one after another. */
struct parquet_pages {
	const struct parquet_layout *l;
	const struct parquet_column *c;
	uint64_t values, dictionary, next; /* dictionary: values that are coded by it */
	uint32_t entries;
	bool begun;
};
void parquet_pages_of(struct parquet_pages *p, const struct parquet_layout *l, uint32_t column,
		      uint64_t rows);
bool parquet_next_page(struct parquet_pages *p, struct parquet_page *out);

struct parquet_chunk {
	uint64_t values;
	uint64_t stored, raw; /* with the heads of pages */
	uint64_t dictionary;  /* bytes of its page; 0: none */
};
void parquet_chunk_of(const struct parquet_layout *l, uint32_t column, uint64_t rows,
		      struct parquet_chunk *out);

/* Levels of a column: whether it has them, and how far they go. */
unsigned parquet_definition_max(const struct parquet_layout *l, const struct parquet_column *c);
unsigned parquet_repetition_max(const struct parquet_column *c);

/* PLAIN values of a column from its value `first` (of the file) on, n of them, into `out`; of
 * booleans a byte each. */
void parquet_fill(const struct parquet_column *c, const struct parquet_layout *l,
		  const struct content_source *content, uint64_t file_index, uint64_t first,
		  size_t n, unsigned char *out);
/* Whether PLAIN values are the payload itself; `content` becomes the column's. *offset: of its
 * value `first` in the payload's stream. */
bool parquet_direct(const struct parquet_column *c, const struct parquet_layout *l,
		    const struct content_source *of, uint64_t first, struct content_source *content,
		    uint64_t *offset);
