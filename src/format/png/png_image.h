#pragma once
/* The header of a PNG image, and undoing the filters of its rows. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

#define PNG_SIGNATURE_BYTES 8
#define PNG_IHDR_BYTES 13
#define PNG_CHUNK_FRAME 12 /* length, type, CRC */
#define PNG_SIDE_MAX 0x7fffffffu

extern const unsigned char png_signature[PNG_SIGNATURE_BYTES];

static inline uint32_t png_be32(const unsigned char *p)
{
	return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

struct png_image {
	uint32_t width, height;
	unsigned depth, colour; /* bits of a channel; PNG's colour type */
	uint32_t pixel_bytes;   /* distance of the left neighbour in filters: at least 1 */
	uint64_t row_bytes;     /* without the filter byte */
	uint64_t raw_bytes;     /* of all rows with their filter bytes */
};

/* Parses IHDR's contents, at `offset` of the file. ERR_DATA when they are not of an image that this
 * program reads (interlaced ones are not). */
int png_image_parse(const unsigned char ihdr[PNG_IHDR_BYTES], uint64_t offset,
		    struct png_image *out, struct err *e);
/* Undoes a row's filter. `row` has the filtered bytes; `out` gets the pixels and may overlap `row`
 * from below (out < row); `above` is the row before, NULL in the first. ERR_DATA on an unknown
 * filter; `y` is for the sentence. */
int png_unfilter(const struct png_image *image, unsigned filter, const unsigned char *row,
		 const unsigned char *above, unsigned char *out, uint64_t y, struct err *e);

/* Images that did not compress: zlib keeps noise in stored blocks, and their rows have no filter.
 */

/* Puts the pixels of a zlib stream of n bytes together at `out`, which has room for the image's
 * raw_bytes, in one pass. False, with anything in `out`, when a block is compressed, a row has a
 * filter, or the stream is not exactly the image with its right checksum: then the general way must
 * tell. */
bool png_stored_pixels(const struct png_image *m, const unsigned char *in, size_t n,
		       unsigned char *out);
