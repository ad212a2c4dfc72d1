/* png: one 8-bit gray image per file, whatever the number of samples.
 *
 * FRAMEWORK is np.asarray(Image.open(path)) of Pillow 9.4: 16 bytes to sniff, back to the start,
 * then chunk by chunk: 8 bytes of length and type, the contents, 4 bytes of checksum; pixels are
 * asked for in pieces of at most 64 KiB within a chunk. All through a Python file object, so that
 * with its buffer of 4 KiB the requests alternate between 61440 and 4096 bytes. Contents of a chunk
 * before the pixels over 64 KiB are asked for in such pieces too (Pillow: in pieces of 1 MiB). The
 * whole image is decoded, whichever sample is wanted.
 *
 * NATIVE is one read of the whole file, one per 2 MiB of larger ones.
 *
 * Our files: stored deflate blocks, no row filtered (noise does not compress), IDAT chunks as long
 * as Pillow makes them, so that the framework's requests are those for Pillow's files. */
#include <string.h>

#include "codec/adler32.h"
#include "format/blob_stream.h"
#include "format/png/png.h"

#define BLOCK_MAX 65535u /* of a stored deflate block */
#define BLOCK_HEAD 5
#define ZLIB_HEAD 2
#define ZLIB_TAIL 4
#define IDAT_MIN 65536u
#define IDAT_MAX (1u << 30)
/* Part of the scratch in which pixels are made into rows. */
#define ROWS_SCRATCH 131072u

struct png_layout {
	struct image_shape shape;
	uint64_t raw_bytes; /* rows with their filter bytes */
	uint64_t zlib_bytes;
	uint32_t idat_bytes; /* of every IDAT chunk but the last */
	uint64_t file_bytes;
};

static int png_layout_of(const struct file_spec *f, struct png_layout *p, struct err *e)
{
	uint64_t idats;
	int rc = image_shape_of(f, "png", PNG_SIDE_MAX, &p->shape, e);

	if (rc < 0)
		return rc;
	p->raw_bytes = ((uint64_t)p->shape.width + 1) * p->shape.height;
	p->zlib_bytes = ZLIB_HEAD + p->raw_bytes + ZLIB_TAIL +
			(p->raw_bytes + BLOCK_MAX - 1) / BLOCK_MAX * BLOCK_HEAD;
	/* Pillow's encoder has a buffer of four bytes a column */
	p->idat_bytes = p->shape.width > IDAT_MAX / 4   ? IDAT_MAX
			: p->shape.width > IDAT_MIN / 4 ? p->shape.width * 4
							: IDAT_MIN;
	idats = (p->zlib_bytes + p->idat_bytes - 1) / p->idat_bytes;
	p->file_bytes = PNG_SIGNATURE_BYTES + PNG_IHDR_BYTES + p->zlib_bytes +
			(idats + 2) * PNG_CHUNK_FRAME;
	return 0;
}

static int png_check(const struct file_spec *f, struct err *e)
{
	struct png_layout p;

	return png_layout_of(f, &p, e);
}

static uint64_t png_file_bytes(const struct file_spec *f)
{
	struct png_layout p;

	return png_layout_of(f, &p, NULL) < 0 ? UINT64_MAX : p.file_bytes;
}

static void put_be32(unsigned char *p, uint32_t v)
{
	p[0] = (unsigned char)(v >> 24);
	p[1] = (unsigned char)(v >> 16);
	p[2] = (unsigned char)(v >> 8);
	p[3] = (unsigned char)v;
}

static int chunk_begin(struct blob_stream *s, const char *type, uint32_t bytes, struct err *e)
{
	unsigned char length[4];
	int rc;

	put_be32(length, bytes);
	rc = blob_stream_put(s, length, sizeof(length), e);
	if (rc < 0)
		return rc;
	blob_stream_crc_begin(s);
	return blob_stream_put(s, type, 4, e);
}

static int chunk_end(struct blob_stream *s, struct err *e)
{
	unsigned char crc[4];

	put_be32(crc, blob_stream_crc_end(s));
	return blob_stream_put(s, crc, sizeof(crc), e);
}

/* The zlib stream, cut into IDAT chunks. */
struct idat {
	struct blob_stream *s;
	uint64_t left;       /* of the stream */
	uint32_t chunk_left; /* of the open chunk */
	uint32_t chunk_bytes;
};

static int idat_put(struct idat *d, const unsigned char *bytes, size_t n, struct err *e)
{
	int rc = 0;

	while (n > 0 && rc == 0) {
		size_t part;

		if (d->chunk_left == 0) {
			d->chunk_left =
				d->left < d->chunk_bytes ? (uint32_t)d->left : d->chunk_bytes;
			rc = chunk_begin(d->s, "IDAT", d->chunk_left, e);
			if (rc < 0)
				return rc;
		}
		part = n < d->chunk_left ? n : d->chunk_left;
		rc = blob_stream_put(d->s, bytes, part, e);
		bytes += part;
		n -= part;
		d->left -= part;
		d->chunk_left -= (uint32_t)part;
		if (rc == 0 && d->chunk_left == 0)
			rc = chunk_end(d->s, e);
	}
	return rc;
}

/* Bytes [at, at + n) of the rows with their filter bytes, which are 0; n is at most BLOCK_MAX. */
static void make_rows(const struct file_spec *f, const struct content_source *content, uint64_t row,
		      uint64_t at, unsigned char *out, unsigned char *pixels, size_t n)
{
	uint64_t begin = at - (at + row - 1) / row, end = at + n - (at + n + row - 1) / row;
	uint64_t column = at % row;

	content->fill(content, f->file_index, begin, pixels, (size_t)(end - begin));
	while (n > 0) {
		uint64_t part = row - column < n ? row - column : n;

		if (column == 0) {
			*out++ = 0;
			part--;
			n--;
		}
		memcpy(out, pixels, (size_t)part);
		out += part;
		pixels += part;
		n -= (size_t)part;
		column = 0;
	}
}

static int put_pixels(struct blob_stream *s, const struct png_layout *p, const struct file_spec *f,
		      const struct content_source *content, unsigned char *scratch, struct err *e)
{
	struct idat d = {.s = s, .left = p->zlib_bytes, .chunk_bytes = p->idat_bytes};
	unsigned char *rows = scratch, *pixels = scratch + ROWS_SCRATCH / 2;
	uint32_t adler = ADLER32_BEGIN;
	unsigned char tail[ZLIB_TAIL];
	/* deflate with a window of 32 KiB, made by the fastest way */
	int rc = idat_put(&d, (const unsigned char *)"\x78\x01", ZLIB_HEAD, e);

	for (uint64_t at = 0; rc == 0 && at < p->raw_bytes; at += BLOCK_MAX) {
		bool last = p->raw_bytes - at <= BLOCK_MAX;
		size_t n = last ? (size_t)(p->raw_bytes - at) : BLOCK_MAX;
		unsigned char head[BLOCK_HEAD] = {last, (unsigned char)n, (unsigned char)(n >> 8),
						  (unsigned char)~n, (unsigned char)(~n >> 8)};

		make_rows(f, content, (uint64_t)p->shape.width + 1, at, rows, pixels, n);
		adler = adler32_update(adler, rows, n);
		rc = idat_put(&d, head, sizeof(head), e);
		if (rc == 0)
			rc = idat_put(&d, rows, n, e);
	}
	put_be32(tail, adler);
	return rc < 0 ? rc : idat_put(&d, tail, sizeof(tail), e);
}

static int put_file(struct blob_stream *s, const struct file_spec *f,
		    const struct content_source *content, unsigned char *scratch, struct err *e)
{
	unsigned char ihdr[PNG_IHDR_BYTES] = {[8] = 8};
	struct png_layout p;
	int rc = png_layout_of(f, &p, e);

	if (rc < 0)
		return rc;
	put_be32(ihdr, p.shape.width);
	put_be32(ihdr + 4, p.shape.height);
	rc = blob_stream_put(s, png_signature, sizeof(png_signature), e);
	if (rc == 0)
		rc = chunk_begin(s, "IHDR", sizeof(ihdr), e);
	if (rc == 0)
		rc = blob_stream_put(s, ihdr, sizeof(ihdr), e);
	if (rc == 0)
		rc = chunk_end(s, e);
	if (rc == 0)
		rc = put_pixels(s, &p, f, content, scratch, e);
	if (rc == 0)
		rc = chunk_begin(s, "IEND", 0, e);
	return rc < 0 ? rc : chunk_end(s, e);
}

static int png_write(const struct io *io, struct blob *b, const char *path,
		     const struct file_spec *f, const struct content_source *content, void *scratch,
		     size_t scratch_bytes, struct err *e)
{
	struct blob_stream s;

	blob_stream_write(&s, io, b, (char *)scratch + ROWS_SCRATCH, scratch_bytes - ROWS_SCRATCH);
	return blob_stream_end(&s, path, put_file(&s, f, content, scratch, e), e);
}

static int png_verify(const struct io *io, const char *path, const struct file_spec *f,
		      const struct content_source *content, void *scratch, size_t scratch_bytes,
		      struct err *e)
{
	struct blob_stream s;
	int rc =
		blob_stream_compare(&s, io, path, png_file_bytes(f), (char *)scratch + ROWS_SCRATCH,
				    scratch_bytes - ROWS_SCRATCH, e);

	return rc < 0 ? rc : blob_stream_end(&s, path, put_file(&s, f, content, scratch, e), e);
}

const struct format_ops format_png = {
	.is.name = "png",
	.is.help = "PNG images, 8-bit gray, one per file.",
	.is.extension = "png",
	.is.flags = FORMAT_IMAGE,
	.check = png_check,
	.file_bytes = png_file_bytes,
	.write = png_write,
	.reader_bytes = png_reader_bytes,
	.reader_init = png_reader_init,
	.read = png_read,
	.reader_close = png_reader_close,
	.verify = png_verify,
	.extent = image_extent,
};
