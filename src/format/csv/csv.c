/* csv: a line of comma-separated numbers per sample, as pandas writes one without header and index;
 * plain or gzip. */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "format/blob_stream.h"
#include "format/csv/csv_text.h"
#include "format/pyfile.h"
#include "format/reader.h"

/* ---- the file ---- */

#define TEXT_BYTES 65536u
#define GZIP_OUT_BYTES 65536u

static bool is_gzip(const struct file_spec *f)
{
	return strcmp(f->compression, "gzip") == 0;
}

/* Characters of the text as they are to be expected, `mean` hundredths for a number; false when
 * they cannot be counted. */
static bool likely_chars(const struct file_spec *f, unsigned mean, uint64_t *out)
{
	uint64_t n = f->samples, rest;

	for (uint32_t i = 0; i < f->ndims; i++)
		if (__builtin_mul_overflow(n, f->dims[i], &n))
			return false;
	rest = n % 100 * mean / 100 + 1;
	return !__builtin_mul_overflow(n / 100, (uint64_t)mean, &n) &&
	       !__builtin_add_overflow(n, rest, &n) &&
	       !__builtin_add_overflow(n, f->samples, out) && *out <= INT64_MAX;
}

static int csv_check(const struct file_spec *f, struct err *e)
{
	uint64_t chars;

	if (!csv_put_of(f->elem))
		return err_set(e, ERR_USAGE,
			       "csv files hold no numbers of type %s: dataset.record_element_type "
			       "must be an integer, a float or bool",
			       f->elem->name);
	if (!likely_chars(f, csv_mean_chars(f->elem), &chars))
		return err_set(e, ERR_USAGE,
			       "a csv file of these dimensions is larger than a file can be "
			       "(2^63 - 1 bytes)");
	return 0;
}

static uint64_t csv_file_bytes(const struct file_spec *f)
{
	(void)f;
	return UINT64_MAX;
}

static uint64_t csv_file_bytes_estimate(const struct file_spec *f)
{
	uint64_t chars;

	unsigned mean = is_gzip(f) ? csv_mean_gzip_bytes(f->elem) : csv_mean_chars(f->elem);

	if (!likely_chars(f, mean, &chars))
		return INT64_MAX;
	/* before there is text to refer to, it compresses less */
	return is_gzip(f) ? chars + chars * 550 / (chars + 1300) : chars;
}

static const char *csv_compressed_extension(const char *compression)
{
	return strcmp(compression, "gzip") == 0 ? "csv.gz" : "csv";
}

/* ---- gzip as a stream ---- */

/* A little more than the size of DLIO's files matters: the highest level makes them 2 % smaller in
 * twice the time. */
#define WRITE_LEVEL 6

/* Memory that zlib takes for compressing, lent by the caller. */
#define GZIP_MEMORY 294912u

struct gzip_writer {
	z_stream z;
	struct zlib_memory memory; /* GZIP_MEMORY */
	struct blob_stream *to;
	unsigned char *out; /* out_bytes */
	size_t out_bytes;
};

/* Fills z; the other members are set. `w` must stay where it is. */
static int gzip_begin(struct gzip_writer *w, struct err *e)
{
	int rc;

	zlib_memory_lend(&w->memory, &w->z);
	rc = deflateInit2(&w->z, WRITE_LEVEL, Z_DEFLATED, MAX_WBITS + 16, 8, Z_DEFAULT_STRATEGY);
	return rc == Z_OK ? 0
			  : err_set(e, -ENOMEM,
				    "zlib needs more memory to compress than is provided (code %d)",
				    rc);
}

static int compress_input(struct gzip_writer *w, int flush, struct err *e)
{
	int rc, z;

	do {
		w->z.next_out = w->out;
		w->z.avail_out = (uInt)w->out_bytes;
		z = deflate(&w->z, flush);
		if (z == Z_STREAM_ERROR)
			return err_set(e, -EINVAL, "zlib cannot continue compressing");
		rc = blob_stream_put(w->to, w->out, w->out_bytes - w->z.avail_out, e);
	} while (rc == 0 && w->z.avail_out == 0);
	return rc;
}

static int gzip_put(struct gzip_writer *w, const void *bytes, size_t n, struct err *e)
{
	w->z.next_in = (z_const Bytef *)(uintptr_t)bytes;
	w->z.avail_in = (uInt)n;
	return compress_input(w, Z_NO_FLUSH, e);
}

static int gzip_end(struct gzip_writer *w, struct err *e)
{
	w->z.avail_in = 0;
	return compress_input(w, Z_FINISH, e);
}

/* ---- writing ---- */

/* The parts of the scratch. */
struct work {
	struct gzip_writer gzip;
	unsigned char *elements;
	char *text;
};

/* How much it is. `scratch` NULL: only that. */
static size_t divide_scratch(struct work *w, const struct file_spec *f, void *scratch)
{
	struct carver c = {.base = scratch};

	w->elements = carve(&c, CSV_ELEMENTS);
	w->text = carve(&c, TEXT_BYTES);
	if (is_gzip(f)) {
		w->gzip.memory =
			(struct zlib_memory){.base = carve(&c, GZIP_MEMORY), .bytes = GZIP_MEMORY};
		w->gzip.out = carve(&c, GZIP_OUT_BYTES);
		w->gzip.out_bytes = GZIP_OUT_BYTES;
	}
	return (carved(&c) + 4095) & ~(size_t)4095;
}

static size_t csv_put_scratch(const struct file_spec *f)
{
	struct work w;

	return divide_scratch(&w, f, NULL);
}

static int csv_put(struct blob_stream *s, const struct file_spec *f,
		   const struct content_source *content, void *scratch, struct err *e)
{
	struct csv_text t;
	struct work w;
	size_t n;
	int rc = 0;

	divide_scratch(&w, f, scratch);
	csv_text_start(&t, f, content, w.elements);
	if (is_gzip(f)) {
		w.gzip.to = s;
		rc = gzip_begin(&w.gzip, e);
	}
	while (rc == 0 && (n = csv_text_next(&t, w.text, TEXT_BYTES)) > 0)
		rc = is_gzip(f) ? gzip_put(&w.gzip, w.text, n, e)
				: blob_stream_put(s, w.text, n, e);
	if (rc == 0 && is_gzip(f))
		rc = gzip_end(&w.gzip, e);
	return rc;
}

/* ---- reading ---- */

/* Reading csv files.
 *
 * FRAMEWORK is pandas.read_csv(path, header=None) of pandas 1.5, which parses the whole file
 * whichever row is wanted. Its parser asks a Python text file for 262,144 characters at a time.
 * The text file bypasses its buffer and requests them at once; after a short read it requests the
 * rest (at least 8 KiB), until the end of the file. Then the parser asks once more. Compressed
 * files are read through Python's gzip: see pygzip.
 *
 * NATIVE reads pieces of 2 MiB up to the end of the wanted row: rows have no index. */

#define PARSER_PIECE 262144u
#define TEXT_PIECE_MIN 8192u
/* Characters for each byte of a sample, with the separator, in the worst case (bool). */
#define CHARS_PER_BYTE 6u

struct reader {
	struct reader_base base;
	struct csv_scan scan;
	struct pybuffer py;
	struct pygzip gzip;
	struct inflater inflater;
	unsigned char *gzip_in, *inflater_memory;
	unsigned char *file_buffer; /* framework: Python's; native: a piece */
	size_t file_buffer_bytes;
	char *text; /* PARSER_PIECE */
	char *expect;
	unsigned char *elements;
};

/* Room for the text of a whole file, but at most a piece. */
static size_t native_piece(const struct reader_config *c)
{
	uint64_t bytes;

	if (__builtin_mul_overflow(c->max_sample_bytes, c->samples_per_file, &bytes) ||
	    bytes > NATIVE_PIECE_MAX / CHARS_PER_BYTE)
		return NATIVE_PIECE_MAX;
	return ((size_t)bytes * CHARS_PER_BYTE + 8191) & ~(size_t)4095;
}

static void csv_lay_out(struct carver *c, const struct reader_config *config, const struct store *s,
			struct reader *r)
{
	r->base.blob = carve(c, store_blob_bytes(s));
	file_marks_lay_out(c, config, &r->base.loaded);
	r->text = carve(c, PARSER_PIECE);
	r->gzip_in = carve(c, PYGZIP_PIECE_MAX);
	r->inflater_memory = carve(c, INFLATER_MEMORY);
	r->file_buffer_bytes = config->access == ACCESS_FRAMEWORK ? reader_buffer_bytes(config)
								  : native_piece(config);
	r->file_buffer = carve(c, r->file_buffer_bytes);
	if (config->decode == DECODE_VERIFY) {
		r->expect = carve(c, CSV_EXPECT_BYTES);
		r->elements = carve(c, CSV_ELEMENTS);
	}
}

static int csv_start(struct reader *r, struct err *e)
{
	(void)e;
	inflater_init(&r->inflater, r->inflater_memory);
	return 0;
}

FORMAT_READER(csv, csv_lay_out, csv_start)

/* Python's text file read(PARSER_PIECE), called until it returns nothing; `read1` gives up to n
 * bytes below it. The text goes into the scan as it comes. */
static int read_as_text(struct reader *r, ssize_t (*read1)(struct reader *, size_t, struct err *),
			struct err *e)
{
	size_t over = 0; /* characters of the last call beyond what was asked for */

	for (;;) {
		size_t have = over < PARSER_PIECE ? over : PARSER_PIECE;
		int rc;

		over -= have;
		while (have < PARSER_PIECE) {
			size_t n = PARSER_PIECE - have;
			ssize_t got = read1(r, n < TEXT_PIECE_MIN ? TEXT_PIECE_MIN : n, e);

			if (got < 0)
				return (int)got;
			if (got == 0)
				break;
			rc = csv_scan_feed(&r->scan, r->text, (size_t)got, e);
			if (rc != 0)
				return rc;
			over = (size_t)got > n ? (size_t)got - n : 0;
			have += (size_t)got - over;
		}
		if (have == 0)
			return csv_scan_end(&r->scan, e);
	}
}

/* The file itself: nothing of it is ever in Python's buffer, so each is one request. */
static ssize_t read1_plain(struct reader *r, size_t n, struct err *e)
{
	ssize_t got = io_pread(r->base.io, IO_DATA, r->base.blob, r->text, n, r->py.raw, e);

	if (got > 0)
		r->py.raw += (uint64_t)got;
	return got;
}

static ssize_t read1_gzip(struct reader *r, size_t n, struct err *e)
{
	return pygzip_read(&r->gzip, r->text, n, e);
}

static int start_gzip(struct reader *r, size_t buffer, size_t piece, struct err *e)
{
	struct store_stat st;
	int rc = io_stat_blob(r->base.io, r->base.blob, &st, e);

	if (rc == 0 && buffer == 0)
		rc = reader_buffer_of(&r->base.config, st.block_bytes, r->file_buffer_bytes,
				      &buffer, e);
	if (rc < 0)
		return rc;
	pybuffer_start(&r->py, r->base.io, r->base.blob, r->base.config.python, st.bytes,
		       r->file_buffer, buffer);
	r->py.kind = IO_DATA;
	pygzip_start(&r->gzip, &r->py, &r->inflater, r->gzip_in, piece);
	r->gzip.check = r->base.config.decode == DECODE_FULL;
	return 0;
}

static int read_framework(struct reader *r, const struct file_spec *f, struct err *e)
{
	bool gzip = strcmp(f->compression, "none") != 0;
	int rc = 0;

	r->py.raw = 0;
	if (gzip)
		rc = start_gzip(r, 0,
				r->base.config.python >= 314 ? PYGZIP_PIECE_MAX : PYGZIP_PIECE_311,
				e);
	return rc < 0 ? rc : read_as_text(r, gzip ? read1_gzip : read1_plain, e);
}

static int native_plain(struct reader *r, struct err *e)
{
	uint64_t offset = 0;

	for (;;) {
		ssize_t got = io_pread(r->base.io, IO_DATA, r->base.blob, r->file_buffer,
				       r->file_buffer_bytes, offset, e);
		int rc;

		if (got < 0)
			return (int)got;
		rc = csv_scan_feed(&r->scan, (const char *)r->file_buffer, (size_t)got, e);
		if (rc != 0)
			return rc < 0 ? rc : 0;
		if ((size_t)got < r->file_buffer_bytes)
			return csv_scan_end(&r->scan, e);
		offset += (uint64_t)got;
	}
}

static int native_gzip(struct reader *r, struct err *e)
{
	int rc = start_gzip(r, r->file_buffer_bytes, PYGZIP_PIECE_MAX, e);

	r->gzip.knows_end = true;
	while (rc == 0) {
		ssize_t got = pygzip_read(&r->gzip, r->text, PARSER_PIECE, e);

		if (got < 0)
			return (int)got;
		if (got == 0)
			return csv_scan_end(&r->scan, e);
		rc = csv_scan_feed(&r->scan, r->text, (size_t)got, e);
	}
	return rc < 0 ? rc : 0;
}

static int read_native(struct reader *r, const struct file_spec *f, struct err *e)
{
	return strcmp(f->compression, "none") == 0 ? native_plain(r, e) : native_gzip(r, e);
}

static int read_rows(struct reader *r, const struct file_spec *f, uint64_t index,
		     struct sample *out, struct err *e)
{
	bool framework = r->base.config.access == ACCESS_FRAMEWORK;
	bool all = framework || r->base.config.keep_open;

	out->data = r->text;
	csv_scan_start(&r->scan, r->base.config.decode, f, all ? f->samples : index + 1,
		       r->base.config.content, r->expect, r->elements);
	r->scan.stops = !all;
	return framework ? read_framework(r, f, e) : read_native(r, f, e);
}

FORMAT_READ(csv, read_rows)

/* Of a gzip file what was compressed is compared, since programs compress differently. */
extern const struct format_ops format_csv;

/* Other versions of zlib compress otherwise: the text is compared. */
static int csv_verify(const struct io *io, const char *path, const struct file_spec *f,
		      const struct content_source *content, void *scratch, size_t scratch_bytes,
		      struct err *e)
{
	struct carver c = {.base = scratch};
	struct reader *r = carve(&c, sizeof(*r));
	int rc;

	if (!is_gzip(f))
		return format_verify_put(&format_csv, io, path, f, content, scratch, scratch_bytes,
					 e);
	*r = (struct reader){.base = {.io = io, .config = {.decode = DECODE_FULL, .python = 311}}};
	r->base.blob = carve(&c, store_blob_bytes(io->store));
	r->text = carve(&c, PARSER_PIECE);
	r->gzip_in = carve(&c, PYGZIP_PIECE_MAX);
	r->inflater_memory = carve(&c, INFLATER_MEMORY);
	r->expect = carve(&c, CSV_EXPECT_BYTES);
	r->elements = carve(&c, CSV_ELEMENTS);
	r->file_buffer = carve(&c, 4096);
	r->file_buffer_bytes = scratch_bytes - (size_t)((char *)r->file_buffer - (char *)scratch);
	inflater_init(&r->inflater, r->inflater_memory);
	csv_scan_start(&r->scan, DECODE_VERIFY, f, f->samples, content, r->expect, r->elements);
	rc = io_open(io, path, STORE_READ, r->base.blob, e);
	if (rc < 0)
		return rc;
	return reader_blob_close(io, r->base.blob, path, native_gzip(r, e), e);
}

const struct format_ops format_csv = {
	.is.name = "csv",
	.is.help = "Text: a line of comma-separated numbers per sample; plain or gzip.",
	.is.extension = "csv",
	.is.flags = FORMAT_WHOLE_OBJECTS,
	.is.compressions = (const char *const[]){"gzip", NULL},
	.is.dlio_reader = "CSVReader",
	.check = csv_check,
	.file_bytes = csv_file_bytes,
	.put = csv_put,
	.put_scratch = csv_put_scratch,
	.reader_bytes = csv_reader_bytes,
	.reader_init = csv_reader_init,
	.read = csv_read,
	.reader_close = reader_close_nothing,
	.verify = csv_verify,
	.extent = extent_whole_file,
	.file_bytes_estimate = csv_file_bytes_estimate,
	.compressed_extension = csv_compressed_extension,
};
