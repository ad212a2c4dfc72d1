/* What the image formats share: shapes, the requests for a file, and the frame of a reader. */
#include "format/image.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>

int image_shape_of(const struct file_spec *f, const char *format, uint32_t side_max,
		   struct image_shape *out, struct err *e)
{
	uint64_t height = f->ndims > 0 ? f->dims[0] : 1, width = f->ndims > 1 ? f->dims[1] : 1;

	if (f->ndims > 2)
		return err_set(e, ERR_USAGE,
			       "%s format does not support more than 2 dimensions, but got %u "
			       "dimensions: an image is rows and columns of gray bytes",
			       format, f->ndims);
	if (strcmp(f->elem->name, "uint8") != 0)
		return err_set(
			e, ERR_USAGE,
			"%s files hold gray bytes: dataset.record_element_type is %s, only uint8 "
			"is allowed",
			format, f->elem->name);
	if (height < 1 || width < 1 || height > side_max || width > side_max)
		return err_set(
			e, ERR_USAGE,
			"a %s image cannot have %" PRIu64 " rows of %" PRIu64
			" columns: each is 1 to %u; choose other dataset.record_dims, a smaller "
			"dataset.record_length_bytes, or another format",
			format, height, width, side_max);
	*out = (struct image_shape){
		.width = (uint32_t)width, .height = (uint32_t)height, .want_bytes = f->want_bytes};
	return 0;
}

int image_check_want(const struct image_shape *s, const char *format, uint64_t least, uint64_t most,
		     struct err *e)
{
	if (s->want_bytes == 0 || (s->want_bytes >= least && s->want_bytes <= most))
		return 0;
	return err_set(e, ERR_USAGE,
		       "dataset.file_bytes: a %s image of %u rows of %u columns takes %" PRIu64
		       " to %" PRIu64 " bytes, not %" PRIu64
		       "; choose another size of the decoded image (dataset.record_length_bytes "
		       "or dataset.record_dims), or leave it out, and it follows from "
		       "dataset.file_bytes",
		       format, s->height, s->width, least, most, s->want_bytes);
}

int image_shape_check(uint64_t width, uint64_t height, const struct image_shape *want,
		      struct err *e)
{
	if (width == want->width && height == want->height)
		return 0;
	return err_set(e, ERR_DATA,
		       "the image has %" PRIu64 " rows of %" PRIu64
		       " columns, but the workload specifies %u rows of %u: the file belongs to "
		       "another dataset",
		       height, width, want->height, want->width);
}

int image_source_start(struct image_reader *r, struct err *e)
{
	struct image_source *s = &r->source;
	struct store_stat st;
	size_t buffer = 0;
	int rc = io_stat_blob(r->base.io, r->base.blob, &st, e);

	s->io = r->base.io;
	s->blob = r->base.blob;
	s->native = r->base.config.access == ACCESS_NATIVE;
	s->offset = s->next = 0;
	s->pos = s->end = 0;
	if (rc < 0)
		return rc;
	s->file_bytes = st.bytes;
	if (s->native)
		return 0;
	rc = reader_buffer_of(&r->base.config, st.block_bytes, r->python_buffer_bytes, &buffer, e);
	if (rc == 0)
		pybuffer_start(&s->py, r->base.io, r->base.blob, r->base.config.python, st.bytes,
			       r->python_buffer, buffer);
	return rc;
}

/* What native has at hand, read if there is nothing. */
static ssize_t source_refill(struct image_source *s, struct err *e)
{
	uint64_t left = s->file_bytes - s->next;
	ssize_t got;

	assert(s->pos <= s->end && s->end <= s->piece_bytes && s->next <= s->file_bytes);
	if (s->pos < s->end)
		return (ssize_t)(s->end - s->pos);
	if (left == 0)
		return 0;
	got = io_pread(s->io, IO_DATA, s->blob, s->piece,
		       left < s->piece_bytes ? (size_t)left : s->piece_bytes, s->next, e);
	if (got < 0)
		return got;
	s->pos = 0;
	s->end = (size_t)got;
	s->next += (uint64_t)got;
	return got;
}

ssize_t image_source_run(struct image_source *s, size_t n, const unsigned char **run, struct err *e)
{
	ssize_t got;

	if (s->native) {
		got = source_refill(s, e);
		*run = s->piece + s->pos;
		if (got > 0 && (size_t)got > n)
			got = (ssize_t)n;
		if (got > 0)
			s->pos += (size_t)got;
	} else {
		got = pybuffer_read(&s->py, s->piece, n < IMAGE_PIECE ? n : IMAGE_PIECE, e);
		*run = s->piece;
	}
	if (got > 0)
		s->offset += (uint64_t)got;
	return got;
}

ssize_t image_source_read(struct image_source *s, void *out, size_t n, struct err *e)
{
	unsigned char *to = out;
	size_t done = 0;

	if (!s->native) {
		ssize_t got = pybuffer_read(&s->py, out, n, e);

		if (got > 0)
			s->offset += (uint64_t)got;
		return got;
	}
	while (done < n) {
		const unsigned char *run;
		ssize_t got = image_source_run(s, n - done, &run, e);

		if (got < 0)
			return got;
		if (got == 0)
			break;
		memcpy(to + done, run, (size_t)got);
		done += (size_t)got;
	}
	return (ssize_t)done;
}

int image_cut_short(const struct image_source *s, struct err *e)
{
	return err_set(e, ERR_DATA,
		       "the file ends at offset %" PRIu64
		       ", before the end of its image: it is truncated",
		       s->offset);
}

int image_source_read_all(struct image_source *s, void *out, size_t n, struct err *e)
{
	ssize_t got = image_source_read(s, out, n, e);

	if (got < 0)
		return (int)got;
	return (size_t)got < n ? image_cut_short(s, e) : 0;
}

void image_source_rewind(struct image_source *s)
{
	s->offset = 0;
	if (!s->native) {
		pybuffer_seek(&s->py, 0);
		return;
	}
	s->pos = 0;
	/* unless the first piece is still there, it is read again */
	if (s->next != s->end)
		s->next = s->end = 0;
}

void image_source_data(struct image_source *s)
{
	s->py.kind = IO_DATA;
}

void image_reader_lay_out(struct carver *c, const struct reader_config *config,
			  const struct store *s, uint64_t file_bytes, struct image_reader *r)
{
	uint64_t piece = IMAGE_PIECE;

	reader_base_lay_out(c, config, s, &r->base);
	if (config->access == ACCESS_FRAMEWORK) {
		r->python_buffer_bytes = reader_buffer_bytes(config);
		r->python_buffer = carve(c, r->python_buffer_bytes);
	} else if (file_bytes > IMAGE_PIECE) {
		piece = file_bytes < NATIVE_PIECE_MAX ? (file_bytes + 4095) & ~(uint64_t)4095
						      : NATIVE_PIECE_MAX;
	}
	r->source.piece_bytes = (size_t)piece;
	r->source.piece = carve(c, piece);
}
