#pragma once
/* The delta encodings of Parquet's pages. */
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "format/parquet/parquet_decode.h"

enum {
	PARQUET_DELTA_BINARY_PACKED = 5,
	PARQUET_DELTA_LENGTH_BYTE_ARRAY = 6,
	PARQUET_DELTA_BYTE_ARRAY = 7
};

/* The values of a page, n of them, which end with the input or before. */
int parquet_delta(struct parquet_decoder *d, int encoding, const unsigned char *in, size_t bytes,
		  uint64_t n, parquet_values_fn *values, void *arg, struct err *e);
