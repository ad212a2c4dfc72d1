#pragma once
/* Messages of Apache Arrow's IPC: 0xffffffff, the size of the metadata, the metadata (a
 * flatbuffer), then the bodies of columns. The first describes the columns, each further one is a
 * batch of rows or of the values of a dictionary. A stream is these, the form of the files that
 * Hugging Face's `datasets` keeps in its cache; a file is a stream between marks, with the places
 * of its batches behind it.
 *
 * Source: arrow.apache.org/docs/format/Columnar.html, "Encapsulated message format" and
 * "Flattening"; format/Message.fbs, File.fbs and Schema.fbs of Arrow 26, with whose numbers fields
 * are named here. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "store/mapped.h"

#define ARROW_PREFIX_BYTES 8u
#define ARROW_CONTINUES 0xffffffffu
/* Of the metadata that is looked at; files of others may describe many columns. */
#define ARROW_METADATA_MAX 65536u
#define ARROW_NODES_MAX 64u /* arrays: columns and what they consist of */
#define ARROW_DICTIONARIES_MAX 32u
/* At most three of an array, and those that views point into. */
#define ARROW_BUFFERS_MAX 4096u

enum arrow_message { ARROW_SCHEMA = 1, ARROW_DICTIONARY = 2, ARROW_BATCH = 3 };

/* What is looked for in an array, when a row of it is. */
enum arrow_kind {
	ARROW_FIXED,  /* values of `width` bits */
	ARROW_INDEX,  /* the same: numbers of the values of a dictionary */
	ARROW_BYTES,  /* offsets of `width` bits, and the bytes that they cut */
	ARROW_VIEWS,  /* bytes, or where they lie in further buffers */
	ARROW_LISTS,  /* offsets of `width` bits; the next array has the elements */
	ARROW_PIECES, /* `width` elements of the next array */
	ARROW_GROUP,  /* the next arrays have as many rows (structs) */
	ARROW_NOTHING
};

struct arrow_node {
	enum arrow_kind kind;
	int parent; /* -1: a column */
	uint64_t width;
	unsigned buffers; /* but those that views point into; the first: whether values are there */
	uint32_t dictionary; /* of an ARROW_INDEX */
};

/* A dictionary's values are one array without parts. */
struct arrow_dictionary {
	int64_t id;
	struct arrow_node values;
};

struct arrow_schema {
	uint32_t nodes, dictionaries;
	struct arrow_node node[ARROW_NODES_MAX];
	struct arrow_dictionary dictionary[ARROW_DICTIONARIES_MAX];
};

struct arrow_range {
	uint64_t offset, bytes; /* in the body */
};

enum arrow_codec { ARROW_LZ4_FRAME, ARROW_ZSTD, ARROW_PLAIN };

struct arrow_batch {
	uint64_t rows, body_bytes;
	enum arrow_codec codec; /* of each buffer, behind 8 bytes that say its size without */
	uint32_t dictionary;    /* whose values it has */
	bool delta;             /* they follow those that are there */
	uint32_t buffers;
	uint32_t first[ARROW_NODES_MAX]; /* buffer of each array */
	struct arrow_range buffer[ARROW_BUFFERS_MAX];
};

/* Reads metadata of n bytes. ERR_DATA with a sentence for what is damaged, or has what is not
 * supported; nothing outside of the bytes is read, and whatever they say, the sizes above hold.
 * Every buffer of a batch lies within its body. Pure. */
int arrow_schema_parse(const unsigned char *bytes, size_t n, struct arrow_schema *out,
		       struct err *e);
/* Which of `enum arrow_message` it is, or another number. */
int arrow_message_type(const unsigned char *bytes, size_t n, unsigned *type, struct err *e);
/* A batch of rows (ARROW_BATCH), or of a dictionary. */
int arrow_batch_parse(const unsigned char *bytes, size_t n, enum arrow_message type,
		      const struct arrow_schema *s, struct arrow_batch *out, struct err *e);

/* Where a file has the messages of one kind. */
struct arrow_block {
	uint64_t at, metadata, body_bytes; /* metadata with its prefix */
};

#define ARROW_MAGIC "ARROW1"
#define ARROW_BEGIN_BYTES 8u /* the magic, filled up */
#define ARROW_TAIL_BYTES 10u /* the size of the footer, the magic */

/* In the footer, n bytes of the file at `at`: where the list of blocks of that kind begins, and how
 * many there are; all of them lie within the footer. */
int arrow_footer_blocks(const struct store_map *map, uint64_t at, uint64_t n,
			enum arrow_message type, uint64_t *first, uint64_t *count, struct err *e);
/* One of them; every byte of it lies within the file. */
int arrow_footer_block(const struct store_map *map, uint64_t first, uint64_t i,
		       struct arrow_block *out, struct err *e);

/* ---- of files with two columns, `data` (binary) and `label` (int64) ---- */

#define ARROW_OWN_BUFFERS 5u /* validity, offsets and bytes; validity and values */
#define ARROW_OWN_METADATA_MAX 512u

/* Writes the metadata, with its prefix; returns its bytes, a multiple of 8. That of a batch is as
 * long for any sizes. No array has a value missing. */
size_t arrow_schema_write(unsigned char out[ARROW_OWN_METADATA_MAX]);
size_t arrow_batch_write(unsigned char out[ARROW_OWN_METADATA_MAX], uint64_t rows,
			 const struct arrow_range buffer[ARROW_OWN_BUFFERS], uint64_t body_bytes);
