/* Pixels from stored blocks: a checksum over the bytes where they lie, and one copy of them. */
#include "format/png/png_stored.h"

#include <libdeflate.h>
#include <string.h>

#define HEAD_BYTES 2u
#define BLOCK_BYTES 5u
#define TAIL_BYTES 4u
#define DICTIONARY 32u /* bit of the second byte of the head */

struct rows {
	uint64_t row_bytes;
	uint64_t x; /* bytes of the row placed, its filter included */
	unsigned char *out;
};

/* False at a row with a filter. */
static bool place(struct rows *r, const unsigned char *in, size_t n)
{
	while (n > 0) {
		uint64_t left;
		size_t part;

		if (r->x == 0) {
			if (*in != 0)
				return false;
			in++;
			n--;
			r->x = 1;
		}
		left = r->row_bytes + 1 - r->x;
		part = n < left ? n : (size_t)left;
		memcpy(r->out, in, part);
		r->out += part;
		in += part;
		n -= part;
		r->x = part == left ? 0 : r->x + part;
	}
	return true;
}

bool png_stored_pixels(const struct png_image *m, const unsigned char *in, size_t n,
		       unsigned char *out)
{
	struct rows rows = {.row_bytes = m->row_bytes, .out = out};
	uint64_t left = m->raw_bytes;
	uint32_t adler = 1;
	bool last = false;

	if (n < HEAD_BYTES || (in[0] & 15) != 8 || in[0] >> 4 > 7 || in[1] & DICTIONARY ||
	    ((unsigned)in[0] << 8 | in[1]) % 31 != 0)
		return false;
	in += HEAD_BYTES;
	n -= HEAD_BYTES;
	while (!last) {
		unsigned bytes, inverse;

		/* 1 bit: the last block; 2 bits: its type, 0 for stored; the rest of the byte is
		 * not used */
		if (n < BLOCK_BYTES || in[0] & 6)
			return false;
		last = in[0] & 1;
		bytes = in[1] | (unsigned)in[2] << 8;
		inverse = in[3] | (unsigned)in[4] << 8;
		in += BLOCK_BYTES;
		n -= BLOCK_BYTES;
		if ((bytes ^ inverse) != 0xffff || bytes > n || bytes > left)
			return false;
		adler = libdeflate_adler32(adler, in, bytes);
		if (!place(&rows, in, bytes))
			return false;
		in += bytes;
		n -= bytes;
		left -= bytes;
	}
	return left == 0 && n == TAIL_BYTES && png_be32(in) == adler;
}
