/* jpeg: one 8-bit gray image per file, whatever the number of samples.
 *
 * FRAMEWORK is np.asarray(Image.open(path)) of Pillow 9.4: 16 bytes to sniff, back to the start,
 * the markers up to the first scan, back to the start, then pieces of 64 KiB until libjpeg has all
 * of the image. All through a Python file object: with its buffer of 4 KiB that is 4096, 61440,
 * then 65536 each, and a read of nothing where the last piece is short. The whole image is decoded,
 * whichever sample is wanted.
 *
 * NATIVE is one read of the whole file, one per 2 MiB of larger ones.
 *
 * Our files look as Pillow saves noise by default: headers, tables, lengths of blocks. Their size
 * depends on their content. Verifying makes the image again. */
#include "format/jpeg/jpeg.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <setjmp.h>
#include <stdio.h> /* jpeglib.h needs it */
#include <jpeglib.h>
#include <jerror.h>
#include <string.h>

#include "format/blob_stream.h"

/* ---- libjpeg behind errors that return and memory that is lent ---- */

/* What libjpeg needs for a gray image of a width, made or decoded, and a row of its pixels. What
 * does not fit (rows in colour, all the coefficients of a progressive image) libjpeg allocates. */
#define JPEG_ARENA_BYTES(width) ((size_t)32768 + (size_t)(width)*16)

/* libjpeg's errors jump out to `escape`, with rc and *e set. Nothing is ever printed. */
struct jpeg_guard {
	struct jpeg_error_mgr manager;
	jmp_buf escape;
	struct err *e;
	int rc;
};

/* Lends an object's further allocations from `memory`. */
struct jpeg_arena {
	unsigned char *memory;
	size_t bytes, used;
	size_t beyond; /* bytes that did not fit, since the object was made */
	void *(*alloc_small)(j_common_ptr c, int pool, size_t n);
	void *(*alloc_large)(j_common_ptr c, int pool, size_t n);
	JSAMPARRAY (*alloc_sarray)(j_common_ptr c, int pool, JDIMENSION samples, JDIMENSION rows);
};

/* SIMD code reads and writes whole vectors of a row. */
#define ALIGN 64u

static void error_exit(j_common_ptr c)
{
	struct jpeg_guard *g = (struct jpeg_guard *)c->err;
	char text[JMSG_LENGTH_MAX];

	c->err->format_message(c, text);
	if (c->err->msg_code == JERR_OUT_OF_MEMORY)
		g->rc = err_set(g->e, -ENOMEM, "not enough memory for a JPEG image");
	else
		g->rc = err_set(g->e, ERR_DATA, "the JPEG image cannot be decoded (libjpeg: '%s')",
				text);
	longjmp(g->escape, 1);
}

static void print_nothing(j_common_ptr c)
{
	(void)c;
}

/* Warnings: Pillow goes on after them, too. */
static void count_warning(j_common_ptr c, int level)
{
	if (level < 0)
		c->err->num_warnings++;
}

static void jpeg_guard_init(struct jpeg_guard *g)
{
	jpeg_std_error(&g->manager);
	g->manager.error_exit = error_exit;
	g->manager.output_message = print_nothing;
	g->manager.emit_message = count_warning;
}

/* Ends the library's work with a failure that *g->e already describes. */
__attribute__((noreturn)) static void jpeg_guard_fail(j_common_ptr c, int rc)
{
	struct jpeg_guard *g = (struct jpeg_guard *)c->err;

	g->rc = rc;
	longjmp(g->escape, 1);
}

static void *arena_take(struct jpeg_arena *a, size_t n)
{
	size_t whole = (n + ALIGN - 1) & ~(size_t)(ALIGN - 1);
	void *p = a->memory + a->used;

	assert(a->used <= a->bytes);
	if (whole < n || whole > a->bytes - a->used) {
		a->beyond += n;
		return NULL;
	}
	a->used += whole;
	return p;
}

static void *alloc_small(j_common_ptr c, int pool, size_t n)
{
	struct jpeg_arena *a = c->client_data;
	void *p = arena_take(a, n);

	return p ? p : a->alloc_small(c, pool, n);
}

static void *alloc_large(j_common_ptr c, int pool, size_t n)
{
	struct jpeg_arena *a = c->client_data;
	void *p = arena_take(a, n);

	return p ? p : a->alloc_large(c, pool, n);
}

static JSAMPARRAY alloc_sarray(j_common_ptr c, int pool, JDIMENSION samples, JDIMENSION rows)
{
	struct jpeg_arena *a = c->client_data;
	size_t row = (samples * sizeof(JSAMPLE) + ALIGN - 1) & ~(size_t)(ALIGN - 1), all,
	       before = a->used;
	JSAMPARRAY table = arena_take(a, rows * sizeof(JSAMPROW));
	JSAMPROW p;

	if (!table || __builtin_mul_overflow(row, (size_t)rows, &all)) {
		a->used = before;
		return a->alloc_sarray(c, pool, samples, rows);
	}
	p = arena_take(a, all);
	if (!p) {
		a->used = before;
		return a->alloc_sarray(c, pool, samples, rows);
	}
	for (JDIMENSION i = 0; i < rows; i++)
		table[i] = p + i * row;
	return table;
}

/* `a` becomes the object's client_data. */
static void jpeg_arena_arm(struct jpeg_arena *a, j_common_ptr c, void *memory, size_t bytes)
{
	*a = (struct jpeg_arena){.memory = memory,
				 .bytes = bytes,
				 .alloc_small = c->mem->alloc_small,
				 .alloc_large = c->mem->alloc_large,
				 .alloc_sarray = c->mem->alloc_sarray};
	c->client_data = a;
	c->mem->alloc_small = alloc_small;
	c->mem->alloc_large = alloc_large;
	c->mem->alloc_sarray = alloc_sarray;
}

/* ---- the file ---- */

static int jpeg_check(const struct file_spec *f, struct err *e)
{
	struct image_shape shape;
	int rc = image_shape_of(f, "jpeg", JPEG_SIDE_MAX, &shape, e);

	return rc < 0 ? rc
		      : image_check_want(&shape, "jpeg", jpeg_least_bytes(&shape),
					 jpeg_most_bytes(&shape), e);
}

static uint64_t jpeg_file_bytes(const struct file_spec *f)
{
	(void)f;
	return UINT64_MAX;
}

static uint64_t jpeg_file_bytes_estimate(const struct file_spec *f)
{
	struct image_shape s;

	if (image_shape_of(f, "jpeg", JPEG_SIDE_MAX, &s, NULL) < 0)
		return UINT64_MAX;
	return jpeg_noise_bytes(&s);
}

static int put_to_stream(void *arg, const unsigned char *bytes, size_t n, struct err *e)
{
	return blob_stream_put(arg, bytes, n, e);
}

static int jpeg_put(struct blob_stream *s, const struct file_spec *f,
		    const struct content_source *content, void *scratch, struct err *e)
{
	struct image_shape shape;
	int rc = image_shape_of(f, "jpeg", JPEG_SIDE_MAX, &shape, e);

	return rc < 0 ? rc
		      : jpeg_noise(scratch, &shape, f->file_index, content, put_to_stream, s, e);
}

static size_t jpeg_put_scratch(const struct file_spec *f)
{
	(void)f;
	return JPEG_NOISE_BYTES;
}

/* ---- reading ---- */

/* Headers of photographs have profiles and small pictures; none has this much. */
#define HEADER_MAX (64u << 20)
/* Each scan goes over the whole image, and a hostile file has room for many. */
#define SCANS_MAX 500

struct reader {
	struct image_reader image;
	struct jpeg_guard guard; /* libjpeg's err is its first member */
	struct jpeg_decompress_struct d;
	struct jpeg_source_mgr source;
	struct jpeg_progress_mgr progress;
	struct jpeg_arena arena;
	bool made;
	unsigned char *arena_memory;
	size_t arena_bytes;
	uint64_t payload;
	void *noise_memory; /* to verify: the image is made again */
	/* the file's bytes beside those made again */
	const unsigned char *run;
	size_t run_bytes;
	uint64_t compared;
};

/* Images are not much wider than high: for one that is more than 64 times, libjpeg allocates. */
#define WIDE 64u

/* No image of the dataset is wider, but for those. */
static uint32_t width_max(const struct reader_config *c)
{
	uint64_t width = 1;

	while (width < JPEG_SIDE_MAX && (uint64_t)width * width / WIDE < c->max_sample_bytes)
		width += width / 8 + 1;
	return width < JPEG_SIDE_MAX ? (uint32_t)width : JPEG_SIDE_MAX;
}

static void jpeg_lay_out(struct carver *c, const struct reader_config *config,
			 const struct store *s, struct reader *r)
{
	uint64_t file = config->max_sample_bytes;

	/* far more than noise takes; a larger file is another program's */
	if (__builtin_add_overflow(file, IMAGE_PIECE, &file))
		c->overflow = true;
	image_reader_lay_out(c, config, s, file, &r->image);
	if (config->decode == DECODE_FULL) {
		r->arena_bytes = JPEG_ARENA_BYTES(width_max(config));
		r->arena_memory = carve(c, r->arena_bytes);
	} else if (config->decode == DECODE_VERIFY) {
		r->noise_memory = carve(c, JPEG_NOISE_BYTES);
	}
}

/* The reader that libjpeg's object belongs to. */
static struct reader *reader_of(const struct jpeg_error_mgr *err)
{
	_Static_assert(offsetof(struct jpeg_guard, manager) == 0, "err leads to the guard");
	return (struct reader *)(void *)((char *)(uintptr_t)err - offsetof(struct reader, guard));
}

/* ---- what libjpeg asks for ---- */

static void source_begin(j_decompress_ptr d)
{
	(void)d;
}

static boolean source_fill(j_decompress_ptr d)
{
	struct reader *r = reader_of(d->err);
	ssize_t got =
		image_source_run(&r->image.source, r->image.source.native ? SIZE_MAX : IMAGE_PIECE,
				 &r->run, r->guard.e);

	if (got < 0)
		jpeg_guard_fail((j_common_ptr)d, (int)got);
	if (got == 0)
		jpeg_guard_fail((j_common_ptr)d, image_cut_short(&r->image.source, r->guard.e));
	r->source.next_input_byte = r->run;
	r->source.bytes_in_buffer = (size_t)got;
	return TRUE;
}

static void source_skip(j_decompress_ptr d, long n)
{
	struct reader *r = reader_of(d->err);

	while (n > 0 && (size_t)n > r->source.bytes_in_buffer) {
		n -= (long)r->source.bytes_in_buffer;
		source_fill(d);
	}
	if (n > 0) {
		r->source.next_input_byte += n;
		r->source.bytes_in_buffer -= (size_t)n;
	}
}

static void count_scans(j_common_ptr c)
{
	struct reader *r = reader_of(c->err);

	if (r->d.input_scan_number > SCANS_MAX)
		jpeg_guard_fail(c, err_set(r->guard.e, ERR_DATA,
					   "the JPEG image has more than %d scans", SCANS_MAX));
}

static int decoder_init(struct reader *r, struct err *e)
{
	jpeg_guard_init(&r->guard);
	r->guard.e = e;
	r->d.err = &r->guard.manager;
	r->source = (struct jpeg_source_mgr){.init_source = source_begin,
					     .fill_input_buffer = source_fill,
					     .skip_input_data = source_skip,
					     .resync_to_restart = jpeg_resync_to_restart,
					     .term_source = source_begin};
	r->progress.progress_monitor = count_scans;
	if (setjmp(r->guard.escape)) {
		if (r->made)
			jpeg_destroy_decompress(&r->d);
		r->made = false;
		return r->guard.rc;
	}
	r->made = true;
	jpeg_create_decompress(&r->d);
	r->d.src = &r->source;
	r->d.progress = &r->progress;
	jpeg_arena_arm(&r->arena, (j_common_ptr)&r->d, r->arena_memory, r->arena_bytes);
	return 0;
}

static int jpeg_start(struct reader *r, struct err *e)
{
	enum read_decode decode = r->image.base.config.decode;

	if (decode == DECODE_VERIFY)
		jpeg_noise_prepare();
	return decode == DECODE_FULL ? decoder_init(r, e) : 0;
}

FORMAT_READER(jpeg, jpeg_lay_out, jpeg_start)

static int jpeg_reader_close(struct reader *r, struct err *e)
{
	(void)e;
	if (r->made)
		jpeg_destroy_decompress(&r->d);
	r->made = false;
	return 0;
}

size_t jpeg_reader_beyond(const struct reader *r)
{
	return r->arena.beyond;
}

/* ---- markers ---- */

struct header {
	uint32_t width, height;
	bool frame, done;
	uint64_t scan; /* where the first scan's data begin */
};

static bool is_frame(unsigned marker)
{
	return marker >= 0xc0 && marker <= 0xcf && marker != 0xc4 && marker != 0xc8 &&
	       marker != 0xcc;
}

/* Markers that Pillow takes without contents. */
static bool is_bare(unsigned marker)
{
	return marker == 0xc8 || (marker >= 0xd0 && marker <= 0xd9) ||
	       (marker >= 0xf0 && marker <= 0xfd);
}

/* The size of the image, from the beginning of a frame's contents. Returns how much that was. */
static int read_frame(struct image_source *s, uint32_t bytes, struct header *h, struct err *e)
{
	unsigned char body[5];
	int rc;

	if (h->frame || bytes < sizeof(body))
		return 0;
	rc = image_source_read_all(s, body, sizeof(body), e);
	if (rc < 0)
		return rc;
	h->height = (uint32_t)body[1] << 8 | body[2];
	h->width = (uint32_t)body[3] << 8 | body[4];
	h->frame = true;
	return sizeof(body);
}

/* A marker's contents: two bytes of length, and the rest, which Pillow asks for at once. */
static int read_segment(struct image_source *s, unsigned marker, struct header *h, struct err *e)
{
	unsigned char head[2];
	uint32_t left;
	int rc = image_source_read_all(s, head, sizeof(head), e);

	if (rc < 0)
		return rc;
	left = (uint32_t)head[0] << 8 | head[1];
	left = left > 2 ? left - 2 : 0;
	rc = is_frame(marker) ? read_frame(s, left, h, e) : 0;
	if (rc < 0)
		return rc;
	for (left -= (uint32_t)rc; left > 0;) {
		const unsigned char *run;
		ssize_t got = image_source_run(s, left, &run, e);

		if (got < 0)
			return (int)got;
		if (got == 0)
			return image_cut_short(s, e);
		left -= (uint32_t)got;
	}
	h->done = marker == 0xda;
	h->scan = s->offset;
	return 0;
}

/* Takes the next marker, as Pillow walks to it. `byte` is the one at hand. */
static int next_marker(struct image_source *s, unsigned char *byte, struct header *h, struct err *e)
{
	unsigned marker;
	int rc;

	if (*byte != 0xff)
		return image_source_read_all(s, byte, 1, e);
	rc = image_source_read_all(s, byte, 1, e);
	marker = *byte;
	if (rc < 0 || marker == 0xff)
		return rc;
	if (marker != 0 && !is_bare(marker) && marker < 0xc0)
		return err_set(e, ERR_DATA,
			       "there is no JPEG marker at offset %" PRIu64 ", found 0xff%02x",
			       s->offset - 2, marker);
	if (marker != 0 && !is_bare(marker))
		rc = read_segment(s, marker, h, e);
	return rc < 0 || h->done ? rc : image_source_read_all(s, byte, 1, e);
}

static int read_markers(struct image_source *s, struct header *h, struct err *e)
{
	unsigned char start[16], byte = 0xff;
	int rc;

	if (!s->native) {
		ssize_t got = image_source_read(s, start, 16, e);

		if (got < 0)
			return (int)got;
		image_source_rewind(s);
	}
	rc = image_source_read_all(s, start, 3, e);
	if (rc < 0)
		return rc;
	if (start[0] != 0xff || start[1] != 0xd8 || start[2] != 0xff)
		return err_set(e, ERR_DATA,
			       "not a JPEG file: it does not begin with the start-of-image marker");
	while (!h->done) {
		rc = next_marker(s, &byte, h, e);
		if (rc < 0)
			return rc;
		if (s->offset > HEADER_MAX)
			return err_set(e, ERR_DATA,
				       "there is no JPEG scan within the first %u bytes",
				       HEADER_MAX);
	}
	if (!h->frame)
		return err_set(e, ERR_DATA, "the JPEG file has a scan without a frame before it");
	image_source_rewind(s);
	image_source_data(s);
	return 0;
}

/* ---- pixels ---- */

static int decode_image(struct reader *r, const struct image_shape *shape, struct err *e)
{
	JSAMPARRAY row;

	r->guard.e = e;
	r->arena.used = 0;
	r->source.bytes_in_buffer = 0;
	/* an image's tables are its own */
	memset(r->d.quant_tbl_ptrs, 0, sizeof(r->d.quant_tbl_ptrs));
	memset(r->d.dc_huff_tbl_ptrs, 0, sizeof(r->d.dc_huff_tbl_ptrs));
	memset(r->d.ac_huff_tbl_ptrs, 0, sizeof(r->d.ac_huff_tbl_ptrs));
	if (setjmp(r->guard.escape)) {
		jpeg_abort_decompress(&r->d);
		return r->guard.rc;
	}
	jpeg_read_header(&r->d, TRUE);
	r->guard.rc = image_shape_check(r->d.image_width, r->d.image_height, shape, e);
	if (r->guard.rc < 0)
		jpeg_guard_fail((j_common_ptr)&r->d, r->guard.rc);
	jpeg_start_decompress(&r->d);
	row = r->d.mem->alloc_sarray((j_common_ptr)&r->d, JPOOL_IMAGE,
				     r->d.output_width * (JDIMENSION)r->d.output_components, 1);
	while (r->d.output_scanline < r->d.output_height)
		jpeg_read_scanlines(&r->d, row, 1);
	r->payload =
		(uint64_t)r->d.output_width * r->d.output_height * (uint64_t)r->d.output_components;
	jpeg_finish_decompress(&r->d);
	return 0;
}

/* The next bytes made again against the file's. */
static int compare_made(void *arg, const unsigned char *bytes, size_t n, struct err *e)
{
	struct reader *r = arg;

	while (n > 0) {
		size_t part, same;

		if (r->run_bytes == 0) {
			ssize_t got = image_source_run(&r->image.source, IMAGE_PIECE, &r->run, e);

			if (got < 0)
				return (int)got;
			if (got == 0)
				return image_cut_short(&r->image.source, e);
			r->run_bytes = (size_t)got;
		}
		part = n < r->run_bytes ? n : r->run_bytes;
		same = first_difference(bytes, r->run, part);
		if (same < part)
			return err_set(e, ERR_DATA,
				       "the byte at offset %" PRIu64
				       " is 0x%02x, not the 0x%02x that "
				       "was generated",
				       r->compared + same, r->run[same], bytes[same]);
		r->run += part;
		r->run_bytes -= part;
		r->compared += part;
		bytes += part;
		n -= part;
	}
	return 0;
}

static int verify_image(struct reader *r, const struct image_shape *shape,
			const struct file_spec *f, struct err *e)
{
	int rc;

	r->run_bytes = 0;
	r->compared = 0;
	rc = jpeg_noise(r->noise_memory, shape, f->file_index, r->image.base.config.content,
			compare_made, r, e);
	if (rc == 0 && r->compared < r->image.source.file_bytes)
		rc = err_set(e, ERR_DATA, "the file has %" PRIu64 " bytes and should have %" PRIu64,
			     r->image.source.file_bytes, r->compared);
	return rc;
}

/* Whether the marker of the end is among n bytes: most likely the last two. */
static bool has_end(const unsigned char *p, size_t n)
{
	return n >= 2 && (memcmp(p + n - 2, "\xff\xd9", 2) == 0 || memmem(p, n, "\xff\xd9", 2));
}

/* Reads the file to its end. Its last piece must have the marker of the end, which no scan's data
 * can have. */
static int pass_image(struct reader *r, const struct header *h, struct err *e)
{
	struct image_source *s = &r->image.source;
	unsigned char before = 0;
	bool ended = false;

	while (s->offset < s->file_bytes) {
		uint64_t at = s->offset;
		const unsigned char *run;
		ssize_t got = image_source_run(s, s->native ? SIZE_MAX : IMAGE_PIECE, &run, e);
		size_t n = (size_t)got, skip;

		if (got < 0)
			return (int)got;
		if (got == 0)
			return image_cut_short(s, e);
		skip = at >= h->scan ? 0 : h->scan - at < n ? (size_t)(h->scan - at) : n;
		if (s->offset >= s->file_bytes)
			ended = (skip == 0 && before == 0xff && run[0] == 0xd9) ||
				has_end(run + skip, n - skip);
		before = run[n - 1];
	}
	return ended ? 0 : image_cut_short(s, e);
}

static int jpeg_read_image(struct reader *r, const struct file_spec *f, uint64_t index,
			   struct sample *out, struct err *e)
{
	const struct reader_config *config = &r->image.base.config;
	struct image_source *source = &r->image.source;
	struct header h = {0};
	struct image_shape shape;
	int rc = image_source_start(&r->image, e);

	(void)index;
	if (rc == 0)
		rc = read_markers(source, &h, e) ?:
		     image_shape_of(f, "jpeg", JPEG_SIDE_MAX, &shape, e) ?:
		     image_shape_check(h.width, h.height, &shape, e);
	if (rc < 0)
		return rc;
	if (config->decode == DECODE_FULL) {
		rc = decode_image(r, &shape, e);
		if (rc == 0)
			out->payload_bytes = r->payload;
	} else if (config->decode == DECODE_VERIFY) {
		rc = verify_image(r, &shape, f, e);
	} else {
		rc = pass_image(r, &h, e);
	}
	/* decoded rows are gone with libjpeg's memory; this is the last of the file */
	if (rc == 0)
		out->data = source->piece;
	return rc;
}

FORMAT_READ(jpeg, jpeg_read_image)

const struct format_ops format_jpeg = {
	.is.name = "jpeg",
	.is.help = "JPEG images, 8-bit gray, quality 75, one per file; libjpeg-turbo decodes.",
	.is.extension = "jpeg",
	.is.other_extensions = (const char *const[]){"jpg", "jpe", NULL},
	.is.magic = "\xff\xd8\xff",
	.is.flags = FORMAT_IMAGE | FORMAT_WHOLE_OBJECTS,
	.is.dlio_reader = "ImageReader",
	.is.dali = DALI_IMAGE,
	.check = jpeg_check,
	.file_bytes = jpeg_file_bytes,
	.put = jpeg_put,
	.put_scratch = jpeg_put_scratch,
	.reader_bytes = jpeg_reader_bytes,
	.reader_init = jpeg_reader_init,
	.read = jpeg_read,
	.reader_close = jpeg_reader_close,
	.extent = extent_whole_file,
	.file_bytes_estimate = jpeg_file_bytes_estimate,
};
