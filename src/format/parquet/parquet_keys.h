#pragma once
/* The keys of dataset.parquet. */
#include "base/err.h"
#include "format/parquet/parquet_layout.h"

struct workload;

/* The keys of dataset.parquet, typed; the file's spec gets them and the payload of a row. NULL with
 * a sentence in `e` when one is wrong. Release with free. */
struct parquet_shape *parquet_shape_of(const struct workload *w, struct err *e);
