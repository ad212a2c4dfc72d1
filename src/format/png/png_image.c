/* PNG's image header, and undoing the filters of its rows. */
#include "format/png/png_image.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "codec/adler.h"

/* Pixels from stored blocks: a checksum over the bytes where they lie, and one copy of them. */

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
	uint32_t adler = ADLER32_BEGIN;
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
		adler = adler32_update(adler, in, bytes);
		if (!place(&rows, in, bytes))
			return false;
		in += bytes;
		n -= bytes;
		left -= bytes;
	}
	return left == 0 && n == TAIL_BYTES && png_be32(in) == adler;
}

/* A piece of a row is copied away before its pixels overwrite it; small enough for the first cache.
 */
#define PART 4096u

const unsigned char png_signature[PNG_SIGNATURE_BYTES] = {0x89, 'P',  'N',  'G',
							  '\r', '\n', 0x1a, '\n'};

/* Channels of a colour type, 0 when it does not exist; *depths gets the sum of the allowed depths.
 */
static unsigned channels_of(unsigned colour, unsigned *depths)
{
	static const struct {
		unsigned char channels, depths;
	} types[] = {{1, 1 | 2 | 4 | 8 | 16},
		     {0, 0},
		     {3, 8 | 16},
		     {1, 1 | 2 | 4 | 8},
		     {2, 8 | 16},
		     {0, 0},
		     {4, 8 | 16}};

	if (colour >= sizeof(types) / sizeof(types[0]))
		return 0;
	*depths = types[colour].depths;
	return types[colour].channels;
}

int png_image_parse(const unsigned char ihdr[PNG_IHDR_BYTES], uint64_t offset,
		    struct png_image *out, struct err *e)
{
	unsigned depths = 0, channels = channels_of(ihdr[9], &depths), bits;

	*out = (struct png_image){.width = png_be32(ihdr),
				  .height = png_be32(ihdr + 4),
				  .depth = ihdr[8],
				  .colour = ihdr[9]};
	if (out->width < 1 || out->height < 1 || out->width > PNG_SIDE_MAX ||
	    out->height > PNG_SIDE_MAX)
		return err_set(e, ERR_DATA,
			       "the PNG header at offset %" PRIu64
			       " specifies %u columns and %u rows; each is 1 to %u",
			       offset, out->width, out->height, PNG_SIDE_MAX);
	/* a depth is a power of two, so it is one bit of the sum */
	if (!channels || !out->depth || (out->depth & (out->depth - 1)) || !(out->depth & depths))
		return err_set(e, ERR_DATA,
			       "the PNG header at offset %" PRIu64
			       " specifies colour type %u with %u bits, which do not exist",
			       offset, out->colour, out->depth);
	if (ihdr[10] != 0 || ihdr[11] != 0 || ihdr[12] > 1)
		return err_set(
			e, ERR_DATA,
			"the PNG header at offset %" PRIu64
			" specifies compression %u, filter %u, interlacing %u, which do not exist",
			offset, ihdr[10], ihdr[11], ihdr[12]);
	if (ihdr[12] == 1)
		return err_set(e, ERR_DATA,
			       "the PNG image is interlaced, which is not supported: save it "
			       "without interlacing");
	bits = channels * out->depth;
	out->pixel_bytes = bits < 8 ? 1 : bits / 8;
	out->row_bytes = ((uint64_t)out->width * bits + 7) / 8;
	if (__builtin_mul_overflow(out->row_bytes + 1, out->height, &out->raw_bytes))
		return err_set(e, ERR_DATA,
			       "the PNG header at offset %" PRIu64
			       " specifies an image of more than 2^64 bytes",
			       offset);
	return 0;
}

static void add_above(unsigned char *restrict out, const unsigned char *restrict in,
		      const unsigned char *restrict above, size_t n)
{
	for (size_t i = 0; i < n; i++)
		out[i] = (unsigned char)(in[i] + above[i]);
}

static unsigned char paeth(int a, int b, int c)
{
	int pa = abs(b - c), pb = abs(a - c), pc = abs(a + b - 2 * c);

	if (pa <= pb && pa <= pc)
		return (unsigned char)a;
	return (unsigned char)(pb <= pc ? b : c);
}

/* Pixels [from, from + n) of a row from their filtered bytes `in`. */
static void unfilter_part(unsigned filter, const unsigned char *in, const unsigned char *above,
			  unsigned char *out, uint64_t from, size_t n, size_t d)
{
	unsigned char *to = out + from;

	if (filter == 2 && above) {
		add_above(to, in, above + from, n);
		return;
	}
	for (size_t i = 0; i < n; i++) {
		uint64_t x = from + i;
		int left = x >= d ? out[x - d] : 0;
		int up = above ? above[x] : 0;
		int corner = above && x >= d ? above[x - d] : 0;

		if (filter == 1)
			to[i] = (unsigned char)(in[i] + left);
		else if (filter == 3)
			to[i] = (unsigned char)(in[i] + (left + up) / 2);
		else
			to[i] = (unsigned char)(in[i] + paeth(left, up, corner));
	}
}

int png_unfilter(const struct png_image *image, unsigned filter, const unsigned char *row,
		 const unsigned char *above, unsigned char *out, uint64_t y, struct err *e)
{
	unsigned char part[PART];

	if (filter > 4)
		return err_set(e, ERR_DATA,
			       "row %" PRIu64 " of the image has the unknown filter %u", y, filter);
	if (filter == 0 || (filter == 2 && !above)) {
		memmove(out, row, image->row_bytes);
		return 0;
	}
	for (uint64_t x = 0; x < image->row_bytes; x += PART) {
		size_t n = image->row_bytes - x < PART ? (size_t)(image->row_bytes - x) : PART;

		memcpy(part, row + x, n);
		unfilter_part(filter, part, above, out, x, n, image->pixel_bytes);
	}
	return 0;
}
