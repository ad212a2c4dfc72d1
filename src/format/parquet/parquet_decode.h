#pragma once
/* Pages to values: decompressed, levels counted, dictionaries looked up. Memory is the caller's. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "format/parquet/parquet_footer.h"
#include "format/reader.h"

#define PARQUET_SCRATCH_BYTES 65536u

/* PLAIN values, of booleans a byte each; `n` of them. A long value may come in parts, of which the
 * last one counts and the others have n 0. */
typedef int parquet_values_fn(void *arg, const unsigned char *values, size_t n, size_t bytes,
			      struct err *e);

struct parquet_decoder {
	unsigned char *raw;        /* room for the largest page */
	unsigned char *dictionary; /* room for the largest dictionary */
	uint32_t *place;           /* of its values: dictionary_room / 4 + 1 */
	unsigned char *scratch;    /* PARQUET_SCRATCH_BYTES */
	size_t raw_room, dictionary_room;
	struct inflater inflater; /* initialised */
	/* of the chunk */
	int type, codec;
	uint32_t width; /* of PARQUET_FIXED */
	unsigned definition_max, repetition_max;
	uint32_t entries;
	uint64_t levels; /* values seen, nulls included */
};

/* Begins a chunk of a column. */
void parquet_decoder_begin(struct parquet_decoder *d, int type, int type_length, int codec,
			   unsigned definition_max, unsigned repetition_max);
/* One page; `payload` has h->stored bytes. */
int parquet_decode_page(struct parquet_decoder *d, const struct parquet_page_head *h,
			const unsigned char *payload, parquet_values_fn *values, void *arg,
			struct err *e);
