/* Reading indexed binary.
 *
 * FRAMEWORK is DLIO's reader: both companions of a file whole, before its first sample (DLIO reads
 * those of all files when a worker starts, in the order of its shuffled map; here a file's are read
 * when the worker first needs it). Then for each sample open, fstat, seek, and readinto of the
 * sample: one read of it, or of Python's buffer where that is larger. With read_type memory the
 * file stays open, and its buffer with it, so that small neighbours may cost no read.
 *
 * NATIVE computes where a sample lies and needs no index: one read of the sample, at most 2 MiB at
 * a time. */
#include "format/indexed/indexed.h"

#include <inttypes.h>
#include <string.h>

#include "format/python/pybuffer.h"

/* Files kept open by a reader; further ones are opened anew, the longest unused giving way. */
#define KEPT_OPEN 16u
/* What the buffers of kept files may take together. */
#define KEPT_BUFFERS (16u << 20)

struct data_file {
	struct blob *blob;
	struct pybuffer py;
	unsigned char *buffer;
	uint64_t index;  /* number of the file */
	uint64_t serial; /* of its last use; 0: closed */
};

struct reader {
	struct reader_config config;
	const struct io *io;
	struct expectation expect;
	struct file_marks indexed; /* files whose companions were read */
	struct indexed_index index;
	struct data_file *file;
	uint32_t files;
	uint64_t serial;
	size_t buffer_bytes;
	unsigned char *data; /* framework: a sample; native: one piece */
	size_t data_bytes;
};

static uint32_t kept_files(const struct reader_config *c, size_t buffer)
{
	uint64_t n = buffer > KEPT_BUFFERS / KEPT_OPEN ? KEPT_BUFFERS / buffer : KEPT_OPEN;

	if (n > c->files)
		n = c->files;
	return c->keep_open && n > 1 ? (uint32_t)n : 1;
}

static void lay_out(struct carver *c, const struct reader_config *config, const struct store *s,
		    struct reader *r)
{
	bool framework = config->access == ACCESS_FRAMEWORK;
	uint64_t data = config->max_sample_bytes;

	carve(c, sizeof(*r));
	r->buffer_bytes = framework ? reader_buffer_bytes(config) : 0;
	r->files = kept_files(config, r->buffer_bytes);
	r->file = carve(c, r->files * sizeof(*r->file));
	for (uint32_t i = 0; i < r->files; i++) {
		struct blob *blob = carve(c, store_blob_bytes(s));
		unsigned char *buffer = carve(c, r->buffer_bytes);

		if (r->file) {
			memset(&r->file[i], 0, sizeof(r->file[i]));
			r->file[i].blob = blob;
			r->file[i].buffer = buffer;
		}
	}
	if (framework) {
		r->indexed.files = config->files;
		r->indexed.bits = carve(c, config->files / 8 + 1);
		r->index.blob = carve(c, store_blob_bytes(s));
		r->index.buffer_bytes = r->buffer_bytes;
		r->index.buffer = carve(c, r->buffer_bytes);
		r->index.piece_bytes = (size_t)indexed_piece_bytes(config);
		r->index.piece = carve(c, r->index.piece_bytes);
	} else if (data > NATIVE_PIECE_MAX) {
		data = NATIVE_PIECE_MAX;
	}
	if (config->decode == DECODE_VERIFY)
		r->expect.expect = carve(c, EXPECT_BYTES);
	r->data_bytes = (size_t)data;
	r->data = carve(c, data);
}

size_t indexed_reader_bytes(const struct reader_config *config, const struct store *s)
{
	struct carver c = {0};
	struct reader r = {0};

	lay_out(&c, config, s, &r);
	return carved(&c);
}

int indexed_reader_init(void *memory, const struct reader_config *config, const struct io *io,
			struct reader **out, struct err *e)
{
	struct carver c = {.base = memory};
	struct reader *r = memory;
	int rc = reader_config_check(config, e);

	if (rc < 0)
		return rc;
	memset(r, 0, sizeof(*r));
	r->config = *config;
	r->io = io;
	lay_out(&c, config, io->store, r);
	file_marks_clear(&r->indexed);
	r->index.io = io;
	r->index.config = &r->config;
	if (config->decode == DECODE_VERIFY)
		r->expect.content = config->content;
	*out = r;
	return 0;
}

static int close_file(struct reader *r, struct data_file *d, struct err *e)
{
	d->serial = 0;
	return io_close(r->io, d->blob, e);
}

/* The file's place, or a free one, or the longest unused. */
static struct data_file *find_place(struct reader *r, uint64_t file_index)
{
	struct data_file *oldest = &r->file[0];

	for (uint32_t i = 0; i < r->files; i++) {
		struct data_file *d = &r->file[i];

		if (d->serial && d->index == file_index)
			return d;
		if (d->serial < oldest->serial)
			oldest = d;
	}
	return oldest;
}

/* open(path, "rb") */
static int begin_python(struct reader *r, struct data_file *d, struct err *e)
{
	struct store_stat st;
	size_t buffer = 0;
	int rc = io_stat_blob(r->io, d->blob, &st, e);

	if (rc == 0)
		rc = reader_buffer_of(&r->config, st.block_bytes, r->buffer_bytes, &buffer, e);
	if (rc < 0)
		return rc;
	pybuffer_start(&d->py, r->io, d->blob, r->config.python, st.bytes, d->buffer, buffer);
	d->py.kind = IO_DATA;
	return 0;
}

/* Opens the file unless it is. On failure it is closed. */
static int get_file(struct reader *r, const char *path, const struct file_spec *f,
		    struct data_file **out, struct err *e)
{
	struct data_file *d = find_place(r, f->file_index);
	int rc = 0;

	if (!d->serial || d->index != f->file_index) {
		if (d->serial)
			rc = close_file(r, d, e);
		if (rc == 0)
			rc = io_open(r->io, path, STORE_READ, d->blob, e);
		if (rc < 0)
			return rc;
		d->index = f->file_index;
		if (r->config.access == ACCESS_FRAMEWORK)
			rc = begin_python(r, d, e);
		if (rc < 0)
			return reader_blob_close(r->io, d->blob, path, rc, e);
	}
	d->serial = ++r->serial;
	*out = d;
	return 0;
}

static int read_framework(struct reader *r, struct data_file *d, const struct file_spec *f,
			  uint64_t index, uint64_t offset, struct sample *out, struct err *e)
{
	size_t n = (size_t)file_spec_sample_bytes(f);
	ssize_t got;

	if (n > r->data_bytes)
		return err_set(e, ERR_USAGE, "the sample is larger than the reader has room for");
	pybuffer_seek(&d->py, offset);
	got = pybuffer_readinto(&d->py, r->data, n, e);
	if (got < 0)
		return (int)got;
	if ((size_t)got < n)
		return indexed_cut_short(index, offset, n, offset + (uint64_t)got, e);
	if (n)
		out->data = r->data;
	return expectation_check(&r->expect, f->file_index, offset, 0, r->data, n, e);
}

static int read_native(struct reader *r, struct data_file *d, const struct file_spec *f,
		       uint64_t index, uint64_t offset, struct sample *out, struct err *e)
{
	uint64_t done = 0;
	int rc = 0;

	while (rc == 0 && done < file_spec_sample_bytes(f)) {
		uint64_t left = file_spec_sample_bytes(f) - done;
		size_t n = left < r->data_bytes ? (size_t)left : r->data_bytes;
		ssize_t got = io_pread(r->io, IO_DATA, d->blob, r->data, n, offset + done, e);

		if (got < 0)
			return (int)got;
		if ((size_t)got < n)
			return indexed_cut_short(index, offset, file_spec_sample_bytes(f),
						 offset + done + (uint64_t)got, e);
		rc = expectation_check(&r->expect, f->file_index, offset + done, 0, r->data, n, e);
		out->data = r->data;
		done += n;
	}
	return rc;
}

/* Where the sample is read: under compat.dlio where DLIO's index says, which counts from the
 * beginning of a chunk of generation. */
static uint64_t place_of(const struct reader *r, uint64_t index, uint64_t sample_bytes)
{
	if (r->config.dlio && r->index.chunk)
		index %= r->index.chunk;
	return index * sample_bytes;
}

int indexed_read(struct reader *r, const char *path, const struct file_spec *f, uint64_t index,
		 struct sample *out, struct err *e)
{
	bool framework = r->config.access == ACCESS_FRAMEWORK;
	struct data_file *d = NULL;
	uint64_t offset;
	int closed, rc = reader_sample_begin(f, index, path, out, e);

	if (rc == 0 && framework && !file_marks_get(&r->indexed, f->file_index)) {
		rc = indexed_index_read(&r->index, path, f, e);
		if (rc == 0)
			file_marks_set(&r->indexed, f->file_index);
	}
	if (rc == 0)
		rc = get_file(r, path, f, &d, e);
	if (rc < 0)
		return rc;
	offset = place_of(r, index, file_spec_sample_bytes(f));
	rc = framework ? read_framework(r, d, f, index, offset, out, e)
		       : read_native(r, d, f, index, offset, out, e);
	if (rc < 0 || !r->config.keep_open) {
		closed = close_file(r, d, rc == 0 ? e : NULL);
		rc = rc == 0 ? closed : rc;
	}
	if (rc < 0)
		return err_in_path(rc, path, e);
	reader_sample_done(f, out);
	return 0;
}

int indexed_reader_close(struct reader *r, struct err *e)
{
	int rc = 0;

	for (uint32_t i = 0; i < r->files; i++) {
		int closed = r->file[i].serial ? close_file(r, &r->file[i], rc == 0 ? e : NULL) : 0;

		rc = rc == 0 ? closed : rc;
	}
	return rc;
}
