/* Formats by name; sizes of samples, and samples of a size. */
#include "format/format.h"

#include <math.h>
#include <string.h>

#include "base/thread.h"
#include "format/blob_stream.h"

/* From the size of a file to the shape of its samples. */

/* Shapes looked at, for one that is nearer than the square. */
#define SHAPES_TRIED 64u

/* The files that shapes are tried on. */
struct tried {
	const struct format_ops *format;
	const struct file_spec *form;
};

static double size_of(const struct tried *d, uint64_t rows, uint64_t columns)
{
	struct file_spec f = *d->form;
	uint64_t bytes;

	f.ndims = 2;
	f.dims[0] = rows;
	f.dims[1] = columns;
	bytes = d->format->file_bytes(&f);
	if (bytes == UINT64_MAX && d->format->file_bytes_estimate)
		bytes = d->format->file_bytes_estimate(&f);
	return (double)bytes;
}

static double square_of(const struct tried *d, uint64_t side)
{
	return size_of(d, side, side);
}

/* The largest square whose file is no larger than `want`; 0: none is. */
static uint64_t largest_square(const struct tried *d, double want)
{
	uint64_t low = 0, high = 1;

	while (high < UINT32_MAX / 2 && square_of(d, high) <= want) {
		low = high;
		high *= 2;
	}
	while (high - low > 1) {
		uint64_t middle = low + (high - low) / 2;

		if (square_of(d, middle) <= want)
			low = middle;
		else
			high = middle;
	}
	return low;
}

/* The most columns with which a file of so many rows is no larger than `want`; at least 1. */
static uint64_t most_columns(const struct tried *d, uint64_t rows, uint64_t from, double want)
{
	uint64_t low = from, high = from + 1;

	while (high < UINT32_MAX / 2 && size_of(d, rows, high) <= want) {
		low = high;
		high += high - from;
	}
	while (high - low > 1) {
		uint64_t middle = low + (high - low) / 2;

		if (size_of(d, rows, middle) <= want)
			low = middle;
		else
			high = middle;
	}
	return low;
}

int file_size_shape(const struct format_ops *format, const struct file_spec *form, double want,
		    uint64_t dims[2], struct err *e)
{
	struct tried files = {format, form};
	bool image = format->is.flags & FORMAT_IMAGE;
	uint64_t side = largest_square(&files, want), rows, columns;
	double best = INFINITY;

	if (side == 0)
		return err_set(e, ERR_USAGE,
			       "dataset.file_bytes %.0f is less than the %.0f bytes of a %s file "
			       "with samples of a single element",
			       want, square_of(&files, 1), format->is.name);
	dims[0] = dims[1] = side;
	for (uint64_t i = 0; i < SHAPES_TRIED && i <= side / 2 && best > 0; i++) {
		rows = side - i;
		columns = most_columns(&files, rows, side, want);
		for (uint64_t k = 0; k < 2; k++) {
			double off = size_of(&files, rows, columns + k) - want;

			/* what an image has too much is taken from its noise */
			if (image && off < 0)
				continue;
			if (fabs(off) < best) {
				best = fabs(off);
				dims[0] = rows;
				dims[1] = columns + k;
			}
		}
	}
	return 0;
}

const struct format_ops *format_find(const char *name)
{
	for (size_t i = 0; format_table[i]; i++) {
		if (strcmp(format_table[i]->is.name, name) == 0)
			return format_table[i];
	}
	return NULL;
}

const struct format_ops *format_reader(const struct format_ops *format,
				       const struct reader_config *c)
{
	return c->access == ACCESS_RECORDED ? &recorded_requests_ops : format;
}

int format_check(const struct format_ops *format, const struct file_spec *f, struct err *e)
{
	int rc = format_check_compression(&format->is, f->compression, e);

	return rc < 0 ? rc : format->check(f, e);
}

/* ---- writing and verifying ---- */

/* The stream's part of the scratch lies behind the format's own. */
static void *stream_part(const struct format_ops *format, const struct file_spec *f, void *scratch,
			 size_t *bytes)
{
	size_t own = format->put_scratch ? format->put_scratch(f) : 0;

	*bytes -= own;
	return (char *)scratch + own;
}

int format_write(const struct format_ops *format, const struct io *io, struct blob *b,
		 const char *path, const struct file_spec *f, const struct content_source *content,
		 void *scratch, size_t scratch_bytes, struct err *e)
{
	void *part = stream_part(format, f, scratch, &scratch_bytes);
	struct blob_stream s;

	blob_stream_write(&s, io, b, part, scratch_bytes);
	return blob_stream_end(&s, path, format->put(&s, f, content, scratch, e), e);
}

int format_verify_put(const struct format_ops *format, const struct io *io, const char *path,
		      const struct file_spec *f, const struct content_source *content,
		      void *scratch, size_t scratch_bytes, struct err *e)
{
	void *part = stream_part(format, f, scratch, &scratch_bytes);
	struct blob_stream s;
	int rc;

	_Static_assert(BLOB_STREAM_ANY_SIZE == UINT64_MAX, "a size that depends on content");
	rc = blob_stream_compare(&s, io, path, format->file_bytes(f), part, scratch_bytes, e);
	return rc < 0 ? rc : blob_stream_end(&s, path, format->put(&s, f, content, scratch, e), e);
}

int format_make_parts(const struct format_ops *format, const struct io *io, const char *path,
		      const struct file_spec *f, const struct content_source *content,
		      struct blob_part *part, unsigned parts, uint64_t most, void *scratch,
		      size_t scratch_bytes, struct err *e)
{
	void *stream = stream_part(format, f, scratch, &scratch_bytes);
	struct blob_stream s;
	int rc;

	if (parts == 0)
		return 0;
	blob_stream_keep(&s, io, part, parts, most, stream, scratch_bytes);
	rc = blob_stream_end(&s, path, format->put(&s, f, content, scratch, e), e);
	return most && rc == ERR_CANCELED && !stop_is_set(io->stop) ? 0 : rc;
}

int format_verify(const struct format_ops *format, const struct io *io, const char *path,
		  const struct file_spec *f, const struct content_source *content, void *scratch,
		  size_t scratch_bytes, struct err *e)
{
	if (format->verify)
		return format->verify(io, path, f, content, scratch, scratch_bytes, e);
	return format_verify_put(format, io, path, f, content, scratch, scratch_bytes, e);
}

int format_sidecar_write(const struct format_ops *format, const struct io *io, struct blob *b,
			 const char *path, const struct file_spec *f, uint32_t which, void *scratch,
			 size_t scratch_bytes, struct err *e)
{
	struct blob_stream s;

	blob_stream_write(&s, io, b, scratch, scratch_bytes);
	return blob_stream_end(&s, path, format->sidecar_put(&s, f, which, e), e);
}

int format_sidecar_verify(const struct format_ops *format, const struct io *io, const char *path,
			  const struct file_spec *f, uint32_t which, void *scratch,
			  size_t scratch_bytes, struct err *e)
{
	struct blob_stream s;
	int rc = blob_stream_compare(&s, io, path, format->sidecar_bytes(f, which), scratch,
				     scratch_bytes, e);

	return rc < 0 ? rc : blob_stream_end(&s, path, format->sidecar_put(&s, f, which, e), e);
}

int format_folder_write(const struct format_ops *format, const struct io *io, struct blob *b,
			const char *path, const struct folder_files *files, void *scratch,
			size_t scratch_bytes, struct err *e)
{
	struct blob_stream s;

	blob_stream_write(&s, io, b, scratch, scratch_bytes);
	return blob_stream_end(&s, path, format->folder_put(&s, files, e), e);
}

int format_folder_verify(const struct format_ops *format, const struct io *io, const char *path,
			 const struct folder_files *files, void *scratch, size_t scratch_bytes,
			 struct err *e)
{
	struct blob_stream s;
	int rc = blob_stream_compare(&s, io, path, BLOB_STREAM_ANY_SIZE, scratch, scratch_bytes, e);

	return rc < 0 ? rc : blob_stream_end(&s, path, format->folder_put(&s, files, e), e);
}
