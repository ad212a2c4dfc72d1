#pragma once
/* Images that did not compress: zlib keeps noise in stored blocks, and their rows have no filter.
 */
#include <stdbool.h>
#include <stddef.h>

#include "format/png/png_image.h"

/* Puts the pixels of a zlib stream of n bytes together at `out`, which has room for the image's
 * raw_bytes, in one pass. False, with anything in `out`, when a block is compressed, a row has a
 * filter, or the stream is not exactly the image with its right checksum: then the general way must
 * tell. */
bool png_stored_pixels(const struct png_image *m, const unsigned char *in, size_t n,
		       unsigned char *out);
