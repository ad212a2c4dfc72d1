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
#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <libdeflate.h>
#include <string.h>

#include "codec/adler.h"
#include "codec/crc.h"
#include "format/blob_stream.h"
#include "format/image.h"
#include "format/png/png_image.h"
#include "format/reader.h"

/* ---- the file ---- */

#define BLOCK_MAX 65535u /* of a stored deflate block */
#define BLOCK_HEAD 5
#define ZLIB_HEAD 2
#define ZLIB_TAIL 4
#define IDAT_MIN 65536u
#define IDAT_MAX (1u << 30)
/* Part of the scratch in which pixels are made into rows. */
#define ROWS_SCRATCH 131072u

/* A fixed block of zeros: three bits of head, a zero, matches of the zero before it, its end. */
#define ZEROS_FRAME_BITS 18u
#define MATCH 258u
#define MATCH_BITS 13u

struct png_layout {
	struct image_shape shape;
	uint64_t raw_bytes;   /* rows with their filter bytes */
	uint64_t matches;     /* of the zeros at the end of the rows; 0: there are none */
	uint64_t noise_bytes; /* of the rows, before the zeros */
	uint64_t zlib_bytes;
	uint32_t idat_bytes; /* of every IDAT chunk but the last */
	uint64_t file_bytes;
};

/* Sizes with so many matches of zeros. */
static void lay_out(struct png_layout *p, uint64_t matches)
{
	uint64_t idats;

	p->matches = matches;
	p->noise_bytes = p->raw_bytes - (matches ? 1 + matches * MATCH : 0);
	p->zlib_bytes = ZLIB_HEAD + p->noise_bytes + ZLIB_TAIL +
			(p->noise_bytes + BLOCK_MAX - 1) / BLOCK_MAX * BLOCK_HEAD;
	if (matches)
		p->zlib_bytes += (ZEROS_FRAME_BITS + matches * MATCH_BITS + 7) / 8;
	idats = (p->zlib_bytes + p->idat_bytes - 1) / p->idat_bytes;
	p->file_bytes = PNG_SIGNATURE_BYTES + PNG_IHDR_BYTES + p->zlib_bytes +
			(idats + 2) * PNG_CHUNK_FRAME;
}

/* Some of each image is noise: files differ. */
static uint64_t most_matches(const struct png_layout *p)
{
	uint64_t noise = 64 + p->raw_bytes / 100;

	return p->raw_bytes > noise ? (p->raw_bytes - noise) / MATCH : 0;
}

/* As few zeros as it takes for the file to be no larger than want_bytes, or to be nearest to it. */
static void choose_zeros(struct png_layout *p, uint64_t most)
{
	uint64_t low = 0, high = most, above;

	while (low < high) {
		uint64_t middle = low + (high - low) / 2;

		lay_out(p, middle);
		if (p->file_bytes > p->shape.want_bytes)
			low = middle + 1;
		else
			high = middle;
	}
	if (low > 0) {
		lay_out(p, low - 1);
		above = p->file_bytes - p->shape.want_bytes;
		lay_out(p, low);
		if (p->file_bytes > p->shape.want_bytes ||
		    above >= p->shape.want_bytes - p->file_bytes)
			return;
		low--;
	}
	lay_out(p, low);
}

static int png_layout_of(const struct file_spec *f, struct png_layout *p, struct err *e)
{
	int rc = image_shape_of(f, "png", PNG_SIDE_MAX, &p->shape, e);

	if (rc < 0)
		return rc;
	p->raw_bytes = ((uint64_t)p->shape.width + 1) * p->shape.height;
	/* Pillow's encoder has a buffer of four bytes a column */
	p->idat_bytes = p->shape.width > IDAT_MAX / 4   ? IDAT_MAX
			: p->shape.width > IDAT_MIN / 4 ? p->shape.width * 4
							: IDAT_MIN;
	lay_out(p, 0);
	if (p->shape.want_bytes && p->shape.want_bytes < p->file_bytes)
		choose_zeros(p, most_matches(p));
	return 0;
}

static int png_check(const struct file_spec *f, struct err *e)
{
	struct png_layout p;
	uint64_t least, most;
	int rc = png_layout_of(f, &p, e);

	if (rc < 0 || p.shape.want_bytes == 0)
		return rc;
	lay_out(&p, most_matches(&p));
	least = p.file_bytes;
	lay_out(&p, 0);
	most = p.file_bytes;
	return image_check_want(&p.shape, "png", least, most + most / 50, e);
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

/* The zeros as the last deflate block; `room` has ROWS_SCRATCH / 2 bytes. Codes go in from the
 * lowest bit on, each with its highest bit first. */
static int put_zeros(struct idat *d, uint64_t matches, uint32_t *adler, unsigned char *room,
		     struct err *e)
{
	/* last block, fixed codes; the literal 0: 00110000 */
	uint64_t bits = 3 | 0x0c << 3, left = 1 + matches * MATCH;
	unsigned n = 11;
	size_t used = 0;
	int rc = 0;

	memset(room, 0, BLOCK_MAX);
	while (left > 0) {
		size_t part = left < BLOCK_MAX ? (size_t)left : BLOCK_MAX;

		*adler = adler32_update(*adler, room, part);
		left -= part;
	}
	for (uint64_t i = 0; rc == 0 && i <= matches; i++) {
		/* length 258: 11000101; distance 1: 00000; the end of the block: 0000000 */
		bits |= (uint64_t)(i < matches ? 0xa3 : 0) << n;
		n += i < matches ? MATCH_BITS : 7;
		for (; n >= 8 || (i == matches && n > 0); n -= n < 8 ? n : 8, bits >>= 8)
			room[used++] = (unsigned char)bits;
		if (used > BLOCK_MAX - 16 || i == matches) {
			rc = idat_put(d, room, used, e);
			used = 0;
		}
	}
	return rc;
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

	for (uint64_t at = 0; rc == 0 && at < p->noise_bytes; at += BLOCK_MAX) {
		bool last = p->noise_bytes - at <= BLOCK_MAX;
		size_t n = last ? (size_t)(p->noise_bytes - at) : BLOCK_MAX;
		unsigned char head[BLOCK_HEAD] = {last && !p->matches, (unsigned char)n,
						  (unsigned char)(n >> 8), (unsigned char)~n,
						  (unsigned char)(~n >> 8)};

		make_rows(f, content, (uint64_t)p->shape.width + 1, at, rows, pixels, n);
		adler = adler32_update(adler, rows, n);
		rc = idat_put(&d, head, sizeof(head), e) ?: idat_put(&d, rows, n, e);
	}
	if (rc == 0 && p->matches)
		rc = put_zeros(&d, p->matches, &adler, rows, e);
	put_be32(tail, adler);
	return rc < 0 ? rc : idat_put(&d, tail, sizeof(tail), e);
}

static int png_put(struct blob_stream *s, const struct file_spec *f,
		   const struct content_source *content, void *scratch, struct err *e)
{
	unsigned char ihdr[PNG_IHDR_BYTES] = {[8] = 8};
	struct png_layout p;
	int rc = png_layout_of(f, &p, e);

	if (rc < 0)
		return rc;
	put_be32(ihdr, p.shape.width);
	put_be32(ihdr + 4, p.shape.height);
	rc = blob_stream_put(s, png_signature, sizeof(png_signature), e) ?:
	     chunk_begin(s, "IHDR", sizeof(ihdr), e) ?:
	     blob_stream_put(s, ihdr, sizeof(ihdr), e) ?:
	     chunk_end(s, e) ?:
	     put_pixels(s, &p, f, content, scratch, e) ?:
	     chunk_begin(s, "IEND", 0, e) ?:
	     chunk_end(s, e);
	assert(rc < 0 || s->offset + s->used == p.file_bytes);
	return rc;
}

static size_t png_put_scratch(const struct file_spec *f)
{
	(void)f;
	return ROWS_SCRATCH;
}

/* ---- reading ---- */

struct reader {
	struct image_reader image;
	struct libdeflate_decompressor *inflate;
	struct inflater inflater; /* for what does not fit into memory at once */
	unsigned char *inflater_memory;
	unsigned char *packed, *pixels;
	size_t packed_room, pixels_room;
};

/* One image on its way. */
struct decoding {
	struct reader *r;
	const struct file_spec *f;
	struct png_image image;
	uint64_t noise_pixels; /* to verify: those behind them are 0 */
	bool look;             /* checksums are checked and pixels made */
	size_t packed;         /* compressed bytes gathered */
	/* when the whole does not fit: rows are inflated as they come, two are kept */
	bool by_rows, ended;
	size_t head, tail; /* bytes of the zlib stream's head and tail seen */
	unsigned char frame[ZLIB_HEAD + ZLIB_TAIL];
	uint32_t adler;
	uint64_t y; /* of the row that is filled */
	size_t filled;
	int odd; /* which of the two it is */
};

static void png_lay_out(struct carver *c, const struct reader_config *config, const struct store *s,
			struct reader *r)
{
	/* a file of noise is larger than its rows, so that there is room for those too; other
	 * writers cut the stream into smaller blocks or chunks */
	uint64_t file = config->max_file_bytes, rows = file, room;

	image_reader_lay_out(c, config, s, file, &r->image);
	if (config->decode == DECODE_NONE)
		return;
	r->inflater_memory = carve(c, INFLATER_MEMORY);
	if (__builtin_add_overflow(file, file / 64 + IMAGE_PIECE, &room))
		c->overflow = true;
	r->packed_room = (size_t)room;
	r->packed = carve(c, room);
	/* one with zeros is smaller; what is still too large is made row by row */
	if (rows < config->max_sample_bytes &&
	    __builtin_add_overflow(config->max_sample_bytes,
				   config->max_sample_bytes / 16 + IMAGE_PIECE, &rows))
		c->overflow = true;
	r->pixels_room = (size_t)rows;
	r->pixels = carve(c, rows);
}

static int png_start(struct reader *r, struct err *e)
{
	if (r->image.base.config.decode == DECODE_NONE)
		return 0;
	inflater_init(&r->inflater, r->inflater_memory);
	r->inflate = libdeflate_alloc_decompressor();
	return r->inflate ? 0 : err_set(e, -ENOMEM, "not enough memory to inflate PNG images");
}

FORMAT_READER(png, png_lay_out, png_start)

static int png_reader_close(struct reader *r, struct err *e)
{
	(void)e;
	if (r->inflate)
		libdeflate_free_decompressor(r->inflate);
	r->inflate = NULL;
	return 0;
}

/* ---- pixels ---- */

/* Of an image with zeros at its end, those before them. */
static uint64_t noise_pixels_of(const struct file_spec *f)
{
	struct png_layout p;
	uint64_t row;

	if (png_layout_of(f, &p, NULL) < 0)
		return UINT64_MAX;
	row = (uint64_t)p.shape.width + 1;
	return p.noise_bytes - (p.noise_bytes + row - 1) / row;
}

/* Compares pixels [offset, offset + n) of the image. */
static int compare_pixels(const struct decoding *d, uint64_t offset, const unsigned char *p,
			  uint64_t n, struct err *e)
{
	const struct expectation *x = &d->r->image.base.expect;
	uint64_t noise = n;
	int rc;

	if (x->content && d->f->want_bytes && d->noise_pixels < offset + n)
		noise = d->noise_pixels > offset ? d->noise_pixels - offset : 0;
	rc = expectation_check(x, d->f->file_index, offset, UINT64_MAX, p, (size_t)noise, e);
	for (uint64_t i = noise; rc == 0 && i < n; i++)
		if (p[i] != 0)
			return err_set(e, ERR_DATA,
				       "pixel %" PRIu64 " is %u, but was generated as 0",
				       offset + i, p[i]);
	return rc;
}

static int wrong_amount(const struct decoding *d, const char *what, struct err *e)
{
	return err_set(e, ERR_DATA,
		       "the compressed pixels hold %s than the %" PRIu64 " bytes of %u rows", what,
		       d->image.raw_bytes, d->image.height);
}

static int finish_whole(struct decoding *d, struct err *e)
{
	struct reader *r = d->r;
	const struct png_image *m = &d->image;
	const unsigned char *above = NULL;
	unsigned char *to = r->pixels;
	enum libdeflate_result result;

	if (png_stored_pixels(m, r->packed, d->packed, r->pixels))
		return compare_pixels(d, 0, r->pixels, m->row_bytes * m->height, e);
	result = libdeflate_zlib_decompress(r->inflate, r->packed, d->packed, r->pixels,
					    (size_t)m->raw_bytes, NULL);
	if (result == LIBDEFLATE_SHORT_OUTPUT || result == LIBDEFLATE_INSUFFICIENT_SPACE)
		return wrong_amount(d, result == LIBDEFLATE_SHORT_OUTPUT ? "less" : "more", e);
	if (result != LIBDEFLATE_SUCCESS)
		return err_set(e, ERR_DATA,
			       "the compressed pixels are damaged: they do not inflate, or do not "
			       "match their checksum");
	for (uint64_t y = 0; y < m->height; y++) {
		const unsigned char *row = r->pixels + y * (m->row_bytes + 1);
		int rc = png_unfilter(m, row[0], row + 1, above, to, y, e);

		if (rc < 0)
			return rc;
		above = to;
		to += m->row_bytes;
	}
	return compare_pixels(d, 0, r->pixels, m->row_bytes * m->height, e);
}

/* The two rows: [filter][pixels] each. */
static unsigned char *row_at(const struct decoding *d, int odd)
{
	return d->r->pixels + (odd ? d->image.row_bytes + 1 : 0);
}

static int row_done(struct decoding *d, struct err *e)
{
	unsigned char *row = row_at(d, d->odd);
	const unsigned char *above = d->y ? row_at(d, !d->odd) + 1 : NULL;
	unsigned char filter = row[0];
	int rc;

	d->adler = adler32_update(d->adler, row, d->filled);
	rc = png_unfilter(&d->image, filter, row + 1, above, row + 1, d->y, e);
	if (rc == 0)
		rc = compare_pixels(d, d->y * d->image.row_bytes, row + 1, d->image.row_bytes, e);
	d->y++;
	d->filled = 0;
	d->odd = !d->odd;
	return rc;
}

static size_t take_frame(struct decoding *d, size_t *have, size_t want, size_t at,
			 const unsigned char *in, size_t n)
{
	size_t part = want - *have < n ? want - *have : n;

	memcpy(d->frame + at + *have, in, part);
	*have += part;
	return part;
}

static int check_zlib_head(const struct decoding *d, struct err *e)
{
	unsigned head = (unsigned)d->frame[0] << 8 | d->frame[1];

	if ((d->frame[0] & 15) != 8 || head % 31 != 0 || (d->frame[1] & 32))
		return err_set(
			e, ERR_DATA,
			"the compressed pixels begin with 0x%04x, which is not a zlib header",
			head);
	return 0;
}

/* Inflates more of the stream into rows. */
static int inflate_rows(struct decoding *d, const unsigned char *in, size_t n, struct err *e)
{
	uint64_t row_bytes = d->image.row_bytes + 1;

	while (n > 0 && !d->ended && d->y < d->image.height) {
		size_t used = n;
		ssize_t made =
			inflater_run(&d->r->inflater, in, &used, row_at(d, d->odd) + d->filled,
				     (size_t)(row_bytes - d->filled), e);
		int rc = 0;

		if (made < 0)
			return (int)made;
		in += used;
		n -= used;
		d->ended = d->r->inflater.ended;
		d->filled += (size_t)made;
		if (d->filled == row_bytes)
			rc = row_done(d, e);
		if (rc < 0)
			return rc;
		if (made == 0 && used == 0 && !d->ended)
			return err_set(e, ERR_DATA, "the compressed pixels are incomplete");
	}
	while (n > 0 && !d->ended) {
		unsigned char more;
		size_t used = n;
		ssize_t made = inflater_run(&d->r->inflater, in, &used, &more, 1, e);

		if (made != 0)
			return made < 0 ? (int)made : wrong_amount(d, "more", e);
		in += used;
		n -= used;
		d->ended = d->r->inflater.ended;
		if (used == 0 && !d->ended)
			return err_set(e, ERR_DATA, "the compressed pixels have no end");
	}
	take_frame(d, &d->tail, ZLIB_TAIL, ZLIB_HEAD, in, n);
	return 0;
}

/* What was gathered goes through the streaming inflater. */
static int inflate_gathered(struct decoding *d, struct err *e)
{
	const unsigned char *in = d->r->packed;
	size_t n = d->packed, before = d->head;
	size_t skip = take_frame(d, &d->head, ZLIB_HEAD, 0, in, n);
	int rc = 0;

	d->packed = 0;
	if (before < ZLIB_HEAD && d->head == ZLIB_HEAD) {
		rc = check_zlib_head(d, e);
		if (rc == 0)
			rc = inflater_start(&d->r->inflater, e);
	}
	return rc < 0 ? rc : inflate_rows(d, in + skip, n - skip, e);
}

static int finish_rows(struct decoding *d, struct err *e)
{
	int rc = inflate_gathered(d, e);

	if (rc < 0)
		return rc;
	if (d->y < d->image.height)
		return wrong_amount(d, "less", e);
	if (!d->ended || d->tail < ZLIB_TAIL)
		return err_set(e, ERR_DATA, "the compressed pixels have no end");
	if (png_be32(d->frame + ZLIB_HEAD) != d->adler)
		return err_set(e, ERR_DATA, "the pixels do not match the checksum of the file");
	return 0;
}

/* ---- chunks ---- */

struct chunk {
	uint64_t offset;
	uint32_t bytes;
	char type[5];
	uint32_t crc;
};

static int chunk_open(struct image_source *s, struct chunk *k, struct err *e)
{
	unsigned char head[8];
	int rc;

	k->offset = s->offset;
	rc = image_source_read_all(s, head, sizeof(head), e);
	if (rc < 0)
		return rc;
	k->bytes = png_be32(head);
	memcpy(k->type, head + 4, 4);
	k->type[4] = '\0';
	for (int i = 0; i < 4; i++) {
		char c = k->type[i];

		if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z')))
			return err_set(e, ERR_DATA, "there is no PNG chunk at offset %" PRIu64,
				       k->offset);
	}
	if (k->bytes > PNG_SIDE_MAX)
		return err_set(e, ERR_DATA,
			       "the PNG chunk %s at offset %" PRIu64
			       " declares %u bytes; at most %u are possible",
			       k->type, k->offset, k->bytes, PNG_SIDE_MAX);
	k->crc = crc32_update(0, head + 4, 4);
	return 0;
}

static int chunk_close(const struct decoding *d, struct image_source *s, const struct chunk *k,
		       struct err *e)
{
	unsigned char crc[4];
	int rc = image_source_read_all(s, crc, sizeof(crc), e);

	if (rc < 0 || !d->look || png_be32(crc) == k->crc)
		return rc;
	return err_set(e, ERR_DATA,
		       "the PNG chunk %s at offset %" PRIu64
		       " is damaged: its checksum is %08x, but that of its bytes is %08x",
		       k->type, k->offset, png_be32(crc), k->crc);
}

static int chunk_skip(const struct decoding *d, struct image_source *s, struct chunk *k,
		      struct err *e)
{
	for (uint32_t left = k->bytes; left > 0;) {
		const unsigned char *run;
		ssize_t got = image_source_run(s, left, &run, e);

		if (got < 0)
			return (int)got;
		if (got == 0)
			return image_cut_short(s, e);
		if (d->look)
			k->crc = crc32_update(k->crc, run, (size_t)got);
		left -= (uint32_t)got;
	}
	return 0;
}

/* Reads IDAT's contents in the pieces that Pillow asks for. */
static int chunk_pixels(struct decoding *d, struct image_source *s, struct chunk *k, struct err *e)
{
	struct reader *r = d->r;

	for (uint32_t left = k->bytes; left > 0;) {
		size_t n = left < IMAGE_PIECE ? left : IMAGE_PIECE;
		int rc = 0;

		assert(d->packed <= r->packed_room);
		if (n > r->packed_room - d->packed) {
			d->by_rows = true;
			rc = inflate_gathered(d, e);
		}
		if (rc == 0)
			rc = image_source_read_all(s, r->packed + d->packed, n, e);
		if (rc < 0)
			return rc;
		k->crc = crc32_update(k->crc, r->packed + d->packed, n);
		d->packed += n;
		left -= (uint32_t)n;
	}
	return 0;
}

static int read_ihdr(struct decoding *d, struct image_source *s, struct chunk *k, struct err *e)
{
	unsigned char ihdr[PNG_IHDR_BYTES];
	struct image_shape shape;
	uint64_t offset = s->offset;
	int rc;

	if (strcmp(k->type, "IHDR") != 0 || k->bytes != PNG_IHDR_BYTES)
		return err_set(e, ERR_DATA,
			       "the first PNG chunk, at offset %" PRIu64
			       ", is %s of %u bytes, not IHDR "
			       "of %d",
			       k->offset, k->type, k->bytes, PNG_IHDR_BYTES);
	rc = image_source_read_all(s, ihdr, sizeof(ihdr), e);
	if (rc < 0)
		return rc;
	k->crc = crc32_update(k->crc, ihdr, sizeof(ihdr));
	return chunk_close(d, s, k, e) ?:
	       png_image_parse(ihdr, offset, &d->image, e) ?:
	       image_shape_of(d->f, "png", PNG_SIDE_MAX, &shape, e) ?:
	       image_shape_check(d->image.width, d->image.height, &shape, e);
}

/* Whether, and how, the image of this header can be decoded. */
static int plan_decoding(struct decoding *d, struct err *e)
{
	const struct png_image *m = &d->image;

	if (d->r->image.base.expect.content && (m->colour != 0 || m->depth != 8))
		return err_set(
			e, ERR_DATA,
			"the image has colour type %u with %u bits; generated ones are 8-bit gray",
			m->colour, m->depth);
	if (!d->look)
		return 0;
	d->by_rows = m->raw_bytes > d->r->pixels_room;
	if (d->by_rows && m->row_bytes + 1 > d->r->pixels_room / 2)
		return err_set(e, ERR_DATA,
			       "a row of the image has %" PRIu64
			       " bytes, more than a gray one can have",
			       m->row_bytes);
	return 0;
}

static int open_image(struct decoding *d, struct image_source *s, struct chunk *k, struct err *e)
{
	unsigned char signature[16];
	int rc = 0;

	if (!s->native) {
		ssize_t got = image_source_read(s, signature, 16, e);

		if (got < 0)
			return (int)got;
		image_source_rewind(s);
	}
	rc = image_source_read_all(s, signature, sizeof(png_signature), e);
	if (rc == 0 && memcmp(signature, png_signature, sizeof(png_signature)) != 0)
		rc = err_set(e, ERR_DATA,
			     "not a PNG file: it does not begin with the PNG signature");
	if (rc == 0)
		rc = chunk_open(s, k, e) ?: read_ihdr(d, s, k, e);
	return rc < 0 ? rc : plan_decoding(d, e);
}

/* All chunks from the second to the last. */
static int read_chunks(struct decoding *d, struct image_source *s, struct err *e)
{
	enum { BEFORE, WITHIN, AFTER } where = BEFORE;
	struct chunk k;

	for (;;) {
		int rc = chunk_open(s, &k, e);
		bool pixels;

		if (rc < 0)
			return rc;
		pixels = strcmp(k.type, "IDAT") == 0;
		if (!pixels && where == WITHIN)
			where = AFTER;
		if (pixels && where == AFTER)
			return err_set(e, ERR_DATA,
				       "the PNG chunk IDAT at offset %" PRIu64
				       " does not follow the others of its type",
				       k.offset);
		if (pixels)
			where = WITHIN;
		if (strcmp(k.type, "IEND") == 0)
			break;
		if (pixels)
			image_source_data(s);
		rc = pixels && d->look ? chunk_pixels(d, s, &k, e) : chunk_skip(d, s, &k, e);
		if (rc == 0)
			rc = chunk_close(d, s, &k, e);
		if (rc < 0)
			return rc;
	}
	if (k.bytes != 0)
		return err_set(e, ERR_DATA,
			       "the PNG chunk IEND at offset %" PRIu64
			       " declares %u bytes; it must have 0",
			       k.offset, k.bytes);
	if (where == BEFORE)
		return err_set(e, ERR_DATA, "the PNG file has no pixels: there is no IDAT chunk");
	/* Pillow does not ask for the checksum of IEND, but it has to be there */
	return s->offset + 4 > s->file_bytes ? image_cut_short(s, e) : 0;
}

static int png_read_image(struct reader *r, const struct file_spec *f, uint64_t index,
			  struct sample *out, struct err *e)
{
	struct image_source *source = &r->image.source;
	struct decoding d = {.r = r,
			     .f = f,
			     .look = r->image.base.config.decode != DECODE_NONE,
			     .noise_pixels = f->want_bytes ? noise_pixels_of(f) : 0,
			     .adler = ADLER32_BEGIN};
	struct chunk k;
	int rc = image_source_start(&r->image, e);

	(void)index;
	if (rc == 0)
		rc = open_image(&d, source, &k, e) ?: read_chunks(&d, source, e);
	if (rc == 0 && d.look)
		rc = d.by_rows ? finish_rows(&d, e) : finish_whole(&d, e);
	if (rc < 0)
		return rc;
	out->data = !d.look ? source->piece : d.by_rows ? row_at(&d, !d.odd) + 1 : r->pixels;
	out->payload_bytes = d.image.row_bytes * d.image.height;
	return 0;
}

FORMAT_READ(png, png_read_image)

const struct format_ops format_png = {
	.is.name = "png",
	.is.help = "PNG images, 8-bit gray, one per file.",
	.is.extension = "png",
	.is.magic = "\x89PNG\r\n\x1a\n",
	.is.flags = FORMAT_IMAGE | FORMAT_WHOLE_OBJECTS,
	.is.dlio_reader = "ImageReader",
	.is.dali = DALI_IMAGE,
	.check = png_check,
	.file_bytes = png_file_bytes,
	.put = png_put,
	.put_scratch = png_put_scratch,
	.reader_bytes = png_reader_bytes,
	.reader_init = png_reader_init,
	.read = png_read,
	.reader_close = png_reader_close,
	.extent = extent_whole_file,
};
