#pragma once
/* What pages are compressed with. */
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "format/reader.h"

/* Exactly `raw` bytes into `out`, or ERR_DATA. ERR_ABSENT, in a sentence, for what this machine
 * cannot decompress. `inflater` is ready; for gzip. */
int parquet_decompress(int codec, const unsigned char *in, size_t n, unsigned char *out, size_t raw,
		       struct inflater *inflater, struct err *e);
