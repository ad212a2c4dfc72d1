#pragma once
/* The metadata of our Parquet files (FileMetaData of parquet.thrift), and the sizes that depend on
 * them. */
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "format/parquet/parquet_layout.h"

/* The metadata, piece by piece into `put`, with their length and magic behind them. */
typedef int parquet_put_fn(void *arg, const void *bytes, size_t n, struct err *e);
int parquet_put_metadata(const struct parquet_layout *l, parquet_put_fn *put, void *arg,
			 struct err *e);

/* Bytes of the metadata, found by writing them: some time where there are many chunks, unless the
 * shape knows. */
uint64_t parquet_metadata_bytes(const struct parquet_layout *l);
uint64_t parquet_file_size(const struct parquet_layout *l);
