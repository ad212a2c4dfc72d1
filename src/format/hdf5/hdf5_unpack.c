/* Undoing the filters of a chunk. */
#include "format/hdf5/hdf5_unpack.h"

#include <assert.h>
#include <inttypes.h>
#include <libdeflate.h>
#include <string.h>

static int bad_chunk(const struct hdf5_chunk *c, const char *what, struct err *e)
{
	return err_set(e, ERR_DATA, "the chunk of %" PRIu64 " bytes at offset %" PRIu64 " %s",
		       c->bytes, c->at, what);
}

/* A zlib stream: two bytes, deflate, Adler's sum. *n becomes the length of what was in it. */
static int inflate_chunk(const struct hdf5_chunk *c, const unsigned char *in, size_t in_n,
			 unsigned char *out, size_t room, size_t *n,
			 struct libdeflate_decompressor *z, struct err *e)
{
	enum libdeflate_result result;
	size_t used = 0;

	*n = 0;
	if (!z)
		return bad_chunk(c, "is compressed, but this dataset is not", e);
	if (in_n < 6 || (in[0] & 15) != 8 || (in[0] << 8 | in[1]) % 31 != 0 || (in[1] & 0x20))
		return bad_chunk(c, "does not begin with a zlib header", e);
	result = libdeflate_deflate_decompress_ex(z, in + 2, in_n - 6, out, room, &used, n);
	if (result == LIBDEFLATE_INSUFFICIENT_SPACE)
		return bad_chunk(c, "does not inflate to the size of a chunk", e);
	if (result != LIBDEFLATE_SUCCESS)
		return bad_chunk(c, "holds damaged compressed data", e);
	in += 2 + used;
	if (libdeflate_adler32(1, out, *n) !=
	    ((uint32_t)in[0] << 24 | (uint32_t)in[1] << 16 | (uint32_t)in[2] << 8 | in[3]))
		return bad_chunk(c, "does not match its Adler-32 checksum", e);
	return 0;
}

/* LZF: runs of literals, and copies from at most 8 KiB back. */
static int expand_lzf(const struct hdf5_chunk *c, const unsigned char *in, size_t in_n,
		      unsigned char *out, size_t room, size_t *n, struct err *e)
{
	size_t i = 0, o = 0;

	while (i < in_n) {
		unsigned control = in[i++];
		size_t length = control + 1, back;

		if (control < 32) {
			if (length > in_n - i || length > room - o)
				return bad_chunk(c, "holds damaged lzf data", e);
			memcpy(out + o, in + i, length);
			i += length;
			o += length;
			continue;
		}
		length = (control >> 5) + 2;
		if (length == 9)
			length += i < in_n ? in[i++] : 0;
		if (i == in_n)
			return bad_chunk(c, "holds damaged lzf data", e);
		back = ((control & 31) << 8 | in[i++]) + (size_t)1;
		if (back > o || length > room - o)
			return bad_chunk(c, "holds damaged lzf data", e);
		for (; length > 0; length--, o++)
			out[o] = out[o - back];
	}
	*n = o;
	return 0;
}

static int check_sum(const struct hdf5_chunk *c, const unsigned char *p, size_t *n, struct err *e)
{
	if (*n < 4)
		return bad_chunk(c, "is too short for its checksum", e);
	*n -= 4;
	if (hdf5_get(p + *n, 4) != hdf5_fletcher32(p, *n))
		return bad_chunk(c, "does not match its Fletcher-32 checksum", e);
	return 0;
}

int hdf5_unpack(const struct hdf5_dataset *d, const struct hdf5_chunk *chunk,
		const unsigned char *packed, unsigned char *room, size_t room_bytes,
		struct libdeflate_decompressor *inflater, struct hdf5_unpacked *out, struct err *e)
{
	const unsigned char *p = packed;
	size_t n = (size_t)chunk->bytes, most = (size_t)d->shape.chunk_bytes + 4, made = 0;
	int rc = 0;

	*out = (struct hdf5_unpacked){0};
	for (uint32_t i = d->filters; rc == 0 && i > 0; i--) {
		enum hdf5_filter filter = d->filter[i - 1];

		if (chunk->mask >> (i - 1) & 1)
			continue;
		if (filter == HDF5_SHUFFLE) {
			out->shuffled = d->elem_bytes > 1;
		} else if (filter == HDF5_FLETCHER32) {
			rc = check_sum(chunk, p, &n, e);
		} else if (p == room) {
			rc = bad_chunk(chunk, "was compressed twice, which is not supported", e);
		} else if (room_bytes < d->shape.chunk_bytes) {
			rc = bad_chunk(chunk,
				       "is compressed and larger than the chunks of this dataset",
				       e);
		} else {
			if (filter == HDF5_DEFLATE)
				rc = inflate_chunk(chunk, p, n, room, most, &made, inflater, e);
			else
				rc = expand_lzf(chunk, p, n, room, most, &made, e);
			p = room;
			n = made;
		}
	}
	if (rc == 0 && n != d->shape.chunk_bytes)
		rc = bad_chunk(chunk, "does not have the size of a chunk", e);
	out->bytes = p;
	return rc;
}

void hdf5_unshuffle(const struct hdf5_dataset *d, const unsigned char *chunk, uint64_t offset,
		    unsigned char *out, size_t n)
{
	size_t width = d->elem_bytes, count = (size_t)d->shape.chunk_bytes / width;
	size_t first = (size_t)offset / width;

	assert(offset % width == 0 && n % width == 0 && first + n / width <= count);
	for (size_t i = 0; i < n / width; i++)
		for (size_t b = 0; b < width; b++)
			out[i * width + b] = chunk[b * count + first + i];
}
