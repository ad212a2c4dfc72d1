/* What the readers of formats are made of. */
#include "format/reader.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdint.h>
#include <string.h>

#include "format/blob_stream.h"
#include "format/pyfile.h"

/* What one process can address on the machines this runs on. */
#define ADDRESSABLE ((size_t)1 << 47)

void *carve(struct carver *c, uint64_t n)
{
	size_t align = n >= 4096 ? 4096 : 64;
	size_t at = (c->used + align - 1) & ~(align - 1);

	if (at < c->used || __builtin_add_overflow(at, n, &c->used) || c->used > ADDRESSABLE) {
		c->overflow = true;
		c->used = 0;
		return NULL;
	}
	return c->base && n ? c->base + at : NULL;
}

size_t carved(const struct carver *c)
{
	return c->overflow ? 0 : (c->used + 63) & ~(size_t)63;
}

void file_marks_lay_out(struct carver *c, const struct reader_config *config, struct file_marks *m)
{
	m->bits = carve(c, config->keep_open ? config->files / 8 + 1 : 0);
	m->files = config->files;
}

bool file_marks_get(const struct file_marks *m, uint64_t file)
{
	return m->bits && file < m->files && (m->bits[file / 8] >> (file % 8) & 1);
}

void file_marks_set(struct file_marks *m, uint64_t file)
{
	if (m->bits && file < m->files)
		m->bits[file / 8] |= (unsigned char)(1u << (file % 8));
}

void file_marks_clear(struct file_marks *m)
{
	if (m->bits)
		memset(m->bits, 0, m->files / 8 + 1);
}

int expectation_check(const struct expectation *x, uint64_t file_index, uint64_t offset,
		      uint64_t data_offset, const void *piece, size_t n, struct err *e)
{
	const unsigned char *p = piece;

	if (!x->content)
		return 0;
	assert(x->expect);
	for (size_t done = 0; done < n;) {
		size_t part = n - done < EXPECT_BYTES ? n - done : EXPECT_BYTES;
		size_t i;

		x->content->fill(x->content, file_index, offset + done, x->expect, part);
		i = first_difference(p + done, x->expect, part);
		if (i < part && data_offset != UINT64_MAX)
			return err_set(
				e, ERR_DATA,
				"the byte at offset %" PRIu64 " (byte %" PRIu64
				" of the array) is 0x%02x, not the 0x%02x that was generated",
				data_offset + offset + done + i, offset + done + i, p[done + i],
				x->expect[i]);
		if (i < part)
			return err_set(e, ERR_DATA,
				       "byte %" PRIu64
				       " of the array (compressed in the file) is 0x%02x, "
				       "not the 0x%02x that was generated",
				       offset + done + i, p[done + i], x->expect[i]);
		done += part;
	}
	return 0;
}

static int check_config(const struct reader_config *c, struct err *e)
{
	if (c->python != 311 && c->python != 314)
		return err_set(e, ERR_USAGE,
			       "the file buffering of Python %u is not supported; 311 and 314 are",
			       c->python);
	if (c->decode == DECODE_VERIFY && !c->content)
		return err_set(
			e, ERR_USAGE,
			"verifying samples requires the content that they were generated from");
	return 0;
}

size_t reader_buffer_bytes(const struct reader_config *c)
{
	if (c->buffer_bytes)
		return c->buffer_bytes;
	return pybuffer_size(c->python, c->block_bytes ? c->block_bytes : FORMAT_BLOCK_MAX);
}

int reader_buffer_of(const struct reader_config *c, uint32_t block_bytes, size_t room, size_t *out,
		     struct err *e)
{
	*out = c->buffer_bytes ? c->buffer_bytes : pybuffer_size(c->python, block_bytes);
	if (*out > room)
		return err_set(e, ERR_USAGE,
			       "the file system prefers requests of %zu bytes, but the reader's "
			       "buffer has %zu; set reader.buffer_size to %zu to emulate it",
			       *out, room, *out);
	return 0;
}

int reader_sample_begin(const struct file_spec *f, uint64_t index, const char *path,
			struct sample *out, struct err *e)
{
	*out = (struct sample){0};
	if (index >= f->samples)
		return err_set(e, ERR_USAGE,
			       "'%s' has %" PRIu64 " samples: there is no sample %" PRIu64, path,
			       f->samples, index);
	return 0;
}

void reader_sample_done(const struct file_spec *f, struct sample *out)
{
	out->payload_bytes = file_spec_sample_bytes(f);
}

int reader_blob_close(const struct io *io, struct blob *b, const char *path, int rc, struct err *e)
{
	int closed = io_close(io, b, rc == 0 ? e : NULL);

	if (rc == 0)
		rc = closed;
	return rc < 0 ? err_in_path(rc, path, e) : 0;
}

int reader_items(struct reader *r, const char *path, const struct file_spec *f, uint64_t index,
		 reader_item_fn *item, const void *layout, struct sample *out, struct err *e)
{
	struct reader_base *b = (struct reader_base *)r;
	bool all = b->config.keep_open;
	uint64_t begin = all ? 0 : index, end = all ? f->samples : index + 1;
	int rc = io_open(b->io, path, STORE_READ, b->blob, e);

	if (rc < 0)
		return rc;
	for (uint64_t i = begin; i < end && rc == 0; i++)
		rc = item(r, layout, f, i, out, e);
	return reader_blob_close(b->io, b->blob, path, rc, e);
}

void reader_base_lay_out(struct carver *c, const struct reader_config *config,
			 const struct store *s, struct reader_base *b)
{
	b->blob = carve(c, store_blob_bytes(s));
	file_marks_lay_out(c, config, &b->loaded);
	if (config->decode == DECODE_VERIFY)
		b->expect.expect = carve(c, EXPECT_BYTES);
}

size_t reader_measure(struct reader *r, size_t bytes, reader_lay_out_fn *lay_out,
		      const struct reader_config *config, const struct store *s)
{
	struct carver c = {0};

	carve(&c, bytes);
	lay_out(&c, config, s, r);
	return carved(&c);
}

int reader_begin(void *memory, size_t bytes, reader_lay_out_fn *lay_out,
		 const struct reader_config *config, const struct io *io, struct reader **out,
		 struct err *e)
{
	struct carver c = {.base = memory};
	struct reader_base *b = memory;
	int rc = check_config(config, e);

	if (rc < 0)
		return rc;
	assert(bytes >= sizeof(*b));
	memset(memory, 0, bytes);
	b->config = *config;
	b->io = io;
	carve(&c, bytes);
	lay_out(&c, config, io->store, memory);
	/* reader_bytes has said that this fits */
	assert(!c.overflow);
	file_marks_clear(&b->loaded);
	if (config->decode == DECODE_VERIFY)
		b->expect.content = config->content;
	*out = memory;
	return 0;
}

int reader_read_file(struct reader *r, const char *path, const struct file_spec *f, uint64_t index,
		     struct sample *out,
		     int (*contents)(struct reader *r, const struct file_spec *f, uint64_t index,
				     struct sample *out, struct err *e),
		     struct err *e)
{
	struct reader_base *b = (struct reader_base *)r;
	int rc = reader_sample_begin(f, index, path, out, e);

	if (rc < 0)
		return rc;
	if (file_marks_get(&b->loaded, f->file_index)) {
		out->data = b->last;
		return 0;
	}
	rc = io_open(b->io, path, STORE_READ, b->blob, e);
	if (rc < 0)
		return rc;
	rc = reader_blob_close(b->io, b->blob, path, contents(r, f, index, out, e), e);
	b->last = out->data;
	if (rc < 0) {
		out->payload_bytes = 0;
		return rc;
	}
	/* an image of another depth says itself how many bytes it had */
	if (out->payload_bytes == 0)
		reader_sample_done(f, out);
	file_marks_set(&b->loaded, f->file_index);
	return 0;
}

int reader_read_stream(struct reader *r, const char *path, const struct file_spec *f,
		       uint64_t index, struct sample *out, reader_path_fn *framework,
		       reader_path_fn *native, struct err *e)
{
	struct reader_base *b = (struct reader_base *)r;
	int rc = reader_sample_begin(f, index, path, out, e);

	if (rc < 0)
		return rc;
	if (file_marks_get(&b->loaded, f->file_index)) {
		out->data = b->last;
		return 0;
	}
	rc = (b->config.access == ACCESS_FRAMEWORK ? framework : native)(r, path, f, index, out, e);
	b->last = out->data;
	if (rc < 0)
		return rc;
	reader_sample_done(f, out);
	file_marks_set(&b->loaded, f->file_index);
	return 0;
}

int reader_start_nothing(struct reader *r, struct err *e)
{
	(void)r;
	(void)e;
	return 0;
}

int reader_close_nothing(struct reader *r, struct err *e)
{
	(void)r;
	(void)e;
	return 0;
}

int extent_whole_file(const struct reader_config *c, const struct file_spec *f, uint64_t index,
		      struct extent *out, struct err *e)
{
	(void)c;
	(void)f;
	(void)index;
	(void)e;
	*out = (struct extent){.bytes = EXTENT_TO_END, .whole = true};
	return 0;
}
