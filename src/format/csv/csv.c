/* csv: a line of comma-separated numbers per sample, as pandas writes one without header and index;
 * plain or gzip. */
#include "format/csv/csv.h"

#include <inttypes.h>
#include <string.h>

#include "format/blob_stream.h"
#include "format/csv/csv_text.h"
#include "format/parts.h"
#include "format/python/pygzip.h"

#define TEXT_BYTES 65536u
#define GZIP_OUT_BYTES 65536u

static bool is_gzip(const struct file_spec *f)
{
	return strcmp(f->compression, "gzip") == 0;
}

/* Characters of the text as they are to be expected; false when they cannot be counted. */
static bool likely_chars(const struct file_spec *f, uint64_t *out)
{
	uint64_t n = f->samples, rest;

	for (uint32_t i = 0; i < f->ndims; i++)
		if (__builtin_mul_overflow(n, f->dims[i], &n))
			return false;
	rest = n % 100 * csv_mean_chars(f->elem) / 100 + 1;
	return !__builtin_mul_overflow(n / 100, (uint64_t)csv_mean_chars(f->elem), &n) &&
	       !__builtin_add_overflow(n, rest, &n) &&
	       !__builtin_add_overflow(n, f->samples, out) && *out <= INT64_MAX;
}

static int csv_check(const struct file_spec *f, struct err *e)
{
	uint64_t chars;

	if (strcmp(f->compression, "none") != 0 && !is_gzip(f))
		return err_set(e, ERR_USAGE,
			       "csv files are compressed with gzip or not at all: "
			       "dataset.compression is '%s', only 'none' and 'gzip' are allowed",
			       f->compression);
	if (!csv_put_of(f->elem))
		return err_set(e, ERR_USAGE,
			       "csv files hold no numbers of type %s: dataset.record_element_type "
			       "must be an integer, a float or bool",
			       f->elem->name);
	if (!likely_chars(f, &chars))
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

	if (!likely_chars(f, &chars))
		return INT64_MAX;
	/* digits hold 3.3 bits each; what zlib needs for them and their separators */
	return is_gzip(f) ? chars / 2 + 64 : chars;
}

static const char *csv_compressed_extension(const char *compression)
{
	return strcmp(compression, "gzip") == 0 ? "csv.gz" : "csv";
}

/* The parts of the scratch. */
struct work {
	struct blob_stream stream;
	struct gzip_writer gzip;
	unsigned char *elements;
	char *text;
	void *rest;
	size_t rest_bytes;
};

static void lay_out(struct work *w, const struct file_spec *f, void *scratch, size_t scratch_bytes)
{
	struct carver c = {.base = scratch};

	w->elements = carve(&c, CSV_ELEMENTS);
	w->text = carve(&c, TEXT_BYTES);
	if (is_gzip(f)) {
		w->gzip.memory = carve(&c, GZIP_MEMORY);
		w->gzip.out = carve(&c, GZIP_OUT_BYTES);
		w->gzip.out_bytes = GZIP_OUT_BYTES;
	}
	w->rest = carve(&c, 4096);
	w->rest_bytes = scratch_bytes - (size_t)((char *)w->rest - (char *)scratch);
}

static int put_compressed(void *arg, const void *bytes, size_t n, struct err *e)
{
	return blob_stream_put(arg, bytes, n, e);
}

static int put_file(struct work *w, const struct file_spec *f, const struct content_source *content,
		    struct err *e)
{
	struct csv_text t;
	size_t n;
	int rc = 0;

	csv_text_start(&t, f, content, w->elements);
	if (is_gzip(f)) {
		w->gzip.put = put_compressed;
		w->gzip.arg = &w->stream;
		rc = gzip_begin(&w->gzip, e);
	}
	while (rc == 0 && (n = csv_text_next(&t, w->text, TEXT_BYTES)) > 0)
		rc = is_gzip(f) ? gzip_put(&w->gzip, w->text, n, e)
				: blob_stream_put(&w->stream, w->text, n, e);
	if (rc == 0 && is_gzip(f))
		rc = gzip_end(&w->gzip, e);
	return rc;
}

static int csv_write(const struct io *io, struct blob *b, const char *path,
		     const struct file_spec *f, const struct content_source *content, void *scratch,
		     size_t scratch_bytes, struct err *e)
{
	struct work w;

	lay_out(&w, f, scratch, scratch_bytes);
	blob_stream_write(&w.stream, io, b, w.rest, w.rest_bytes);
	return blob_stream_end(&w.stream, path, put_file(&w, f, content, e), e);
}

static int csv_verify(const struct io *io, const char *path, const struct file_spec *f,
		      const struct content_source *content, void *scratch, size_t scratch_bytes,
		      struct err *e)
{
	struct work w;
	int rc;

	if (is_gzip(f))
		return csv_verify_gzip(io, path, f, content, scratch, scratch_bytes, e);
	lay_out(&w, f, scratch, scratch_bytes);
	rc = blob_stream_compare(&w.stream, io, path, BLOB_STREAM_ANY_SIZE, w.rest, w.rest_bytes,
				 e);
	return rc < 0 ? rc : blob_stream_end(&w.stream, path, put_file(&w, f, content, e), e);
}

static int csv_extent(const struct reader_config *c, const struct file_spec *f, uint64_t index,
		      struct extent *out, struct err *e)
{
	(void)c;
	(void)f;
	(void)index;
	(void)e;
	*out = (struct extent){.bytes = EXTENT_TO_END, .whole = true};
	return 0;
}

const struct format_ops format_csv = {
	.is.name = "csv",
	.is.help = "Text: a line of comma-separated numbers per sample; plain or gzip.",
	.is.extension = "csv",
	.check = csv_check,
	.file_bytes = csv_file_bytes,
	.write = csv_write,
	.reader_bytes = csv_reader_bytes,
	.reader_init = csv_reader_init,
	.read = csv_read,
	.reader_close = csv_reader_close,
	.verify = csv_verify,
	.extent = csv_extent,
	.file_bytes_estimate = csv_file_bytes_estimate,
	.compressed_extension = csv_compressed_extension,
};
