#pragma once
/* Messages of Apache Arrow's IPC stream, the form of the files that Hugging Face's `datasets` keeps
 * in its cache: 0xffffffff, the size of the metadata, the metadata (a flatbuffer), then the bodies
 * of columns. The first describes the columns, each further one is a batch of rows.
 *
 * Source: arrow.apache.org/docs/format/Columnar.html, "Encapsulated message format" and
 * "Flattening"; format/Message.fbs and Schema.fbs of Arrow 26, with whose numbers fields are named
 * here. */
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

#define ARROW_PREFIX_BYTES 8u
#define ARROW_CONTINUES 0xffffffffu
/* Of the metadata that is looked at; files of others may describe many columns. */
#define ARROW_METADATA_MAX 65536u
#define ARROW_NODES_MAX 64u    /* arrays: columns and what they consist of */
#define ARROW_BUFFERS_MAX 192u /* at most three of an array */

enum arrow_message { ARROW_SCHEMA = 1, ARROW_BATCH = 3 };

/* What is looked for in an array, when a row of it is. */
enum arrow_kind {
	ARROW_FIXED,  /* values of `width` bits */
	ARROW_BYTES,  /* offsets of `width` bits, and the bytes that they cut */
	ARROW_LISTS,  /* offsets of `width` bits; the next array has the elements */
	ARROW_PIECES, /* `width` elements of the next array */
	ARROW_GROUP,  /* the next arrays have as many rows (structs) */
	ARROW_NOTHING
};

struct arrow_node {
	enum arrow_kind kind;
	int parent; /* -1: a column */
	uint64_t width;
	uint32_t buffer; /* the first of its buffers, whether values are there (1 bit each) */
};

struct arrow_schema {
	uint32_t nodes, buffers;
	struct arrow_node node[ARROW_NODES_MAX];
};

struct arrow_range {
	uint64_t offset, bytes; /* in the body */
};

struct arrow_batch {
	uint64_t rows, body_bytes;
	struct arrow_range buffer[ARROW_BUFFERS_MAX];
};

/* Reads metadata of n bytes. ERR_DATA with a sentence for what is damaged, or has what no file of
 * such a cache has; nothing outside of the bytes is read, and whatever they say, the sizes above
 * hold. Every buffer of a batch lies within its body. Pure. */
int arrow_schema_parse(const unsigned char *bytes, size_t n, struct arrow_schema *out,
		       struct err *e);
int arrow_batch_parse(const unsigned char *bytes, size_t n, const struct arrow_schema *s,
		      struct arrow_batch *out, struct err *e);

/* ---- of files with two columns, `data` (binary) and `label` (int64) ---- */

#define ARROW_OWN_BUFFERS 5u /* validity, offsets and bytes; validity and values */
#define ARROW_OWN_METADATA_MAX 512u

/* Writes the metadata, with its prefix; returns its bytes, a multiple of 8. That of a batch is as
 * long for any sizes. No array has a value missing. */
size_t arrow_schema_write(unsigned char out[ARROW_OWN_METADATA_MAX]);
size_t arrow_batch_write(unsigned char out[ARROW_OWN_METADATA_MAX], uint64_t rows,
			 const struct arrow_range buffer[ARROW_OWN_BUFFERS], uint64_t body_bytes);
