/* npy: one NumPy array per file, samples along the last axis.
 *
 * FRAMEWORK is np.load(path) of NumPy 1.24: the Python file object reads its buffer once at offset
 * 0 (magic and header are served from it); then the descriptor is handed to C stdio, whose two
 * seeks to the data read from the start of the data's block up to the data, and that block again;
 * then fread: what stdio has buffered, one read of all whole blocks, one of the rest. Four to five
 * reads, and the whole array in memory, whichever sample is wanted.
 *
 * NATIVE is one read of header and data together when the file has at most 2 MiB, else one per 8
 * MiB. */
#include <inttypes.h>
#include <string.h>

#include "format/blob_stream.h"
#include "format/numpy/npy_header.h"
#include "format/reader.h"
#include "format/python/pybuffer.h"

/* glibc gives a FILE a buffer of the file's preferred size, but at most BUFSIZ. */
#define STDIO_BUFFER_MAX 8192u

struct reader {
	struct reader_base base;
	unsigned char *python_buffer;
	size_t python_buffer_bytes;
	unsigned char *stdio_buffer;
	unsigned char *header;
	unsigned char *data; /* framework: the array; native: one piece */
	size_t data_bytes;
};

static int npy_check(const struct file_spec *f, struct err *e)
{
	struct npy_array a;

	return npy_array_of(f, &a, e);
}

static uint64_t npy_file_bytes(const struct file_spec *f)
{
	struct npy_array a;

	npy_array_of(f, &a, NULL);
	return a.header_bytes + a.data_bytes;
}

static int npy_put_file(struct blob_stream *s, const struct file_spec *f,
			const struct content_source *content, struct err *e)
{
	unsigned char header[NPY_HEADER_WRITTEN_MAX];
	struct npy_array a;
	int rc = npy_array_of(f, &a, e);

	if (rc == 0)
		rc = blob_stream_put(s, header, npy_header_write(header, a.elem, a.ndims, a.dims),
				     e);
	if (rc == 0)
		rc = blob_stream_payload(s, content, f->file_index, a.data_bytes, e);
	return rc;
}

static int npy_write(const struct io *io, struct blob *b, const char *path,
		     const struct file_spec *f, const struct content_source *content, void *scratch,
		     size_t scratch_bytes, struct err *e)
{
	struct blob_stream s;

	blob_stream_write(&s, io, b, scratch, scratch_bytes);
	return blob_stream_end(&s, path, npy_put_file(&s, f, content, e), e);
}

static int npy_verify(const struct io *io, const char *path, const struct file_spec *f,
		      const struct content_source *content, void *scratch, size_t scratch_bytes,
		      struct err *e)
{
	struct blob_stream s;
	int rc = blob_stream_compare(&s, io, path, npy_file_bytes(f), scratch, scratch_bytes, e);

	return rc < 0 ? rc : blob_stream_end(&s, path, npy_put_file(&s, f, content, e), e);
}

/* The reader's layout; with c->base NULL only its size. */
static void npy_lay_out(struct carver *c, const struct reader_config *config, const struct store *s,
			struct reader *r)
{
	uint64_t whole;

	reader_base_lay_out(c, config, s, &r->base);
	r->header = carve(c, NPY_HEADER_MAX);
	if (__builtin_add_overflow(config->max_file_bytes, 4095u, &whole)) {
		c->overflow = true;
		return;
	}
	whole &= ~(uint64_t)4095;
	if (config->access == ACCESS_FRAMEWORK) {
		r->python_buffer_bytes = reader_buffer_bytes(config);
		r->python_buffer = carve(c, r->python_buffer_bytes);
		r->stdio_buffer = carve(c, STDIO_BUFFER_MAX);
	} else if (whole > NATIVE_PIECE_MAX) {
		whole = NATIVE_PIECE_MAX;
	}
	if (whole < NPY_HEADER_MAX)
		whole = NPY_HEADER_MAX;
	r->data_bytes = (size_t)whole;
	r->data = carve(c, whole);
}

static size_t npy_reader_bytes(const struct reader_config *config, const struct store *s)
{
	struct reader r = {0};

	return reader_measure(&r, sizeof(r), npy_lay_out, config, s);
}

static int npy_reader_init(void *memory, const struct reader_config *config, const struct io *io,
			   struct reader **out, struct err *e)
{
	return reader_begin(memory, sizeof(struct reader), npy_lay_out, config, io, out, e);
}

/* What np.load does with a Python file before the data. */
static int framework_header(struct reader *r, struct pybuffer *py, struct npy_array *a,
			    struct err *e)
{
	size_t total = 0;
	ssize_t got = pybuffer_read(py, r->header, NPY_MAGIC_BYTES, e);
	int before;

	if (got >= 0) {
		pybuffer_seek(py, 0);
		got = pybuffer_read(py, r->header, 8, e);
	}
	if (got < 0)
		return (int)got;
	before = npy_prefix_bytes(r->header, (size_t)got, 0, e);
	if (before < 0)
		return before;
	got = pybuffer_read(py, r->header + 8, (size_t)before - 8, e);
	if (got < 0)
		return (int)got;
	if (got == before - 8) {
		int rc = npy_header_length(r->header, 0, &total, e);

		if (rc < 0)
			return rc;
		got = pybuffer_read(py, r->header + before, total - (size_t)before, e);
		if (got < 0)
			return (int)got;
	}
	if (total == 0 || (size_t)got < total - (size_t)before)
		return err_set(e, ERR_DATA, "the file ends within its npy header");
	return npy_header_parse(r->header, total, 0, a, e);
}

/* C stdio's view of the file after np.fromfile's seeks. */
struct stdio {
	size_t size;     /* of its buffer */
	size_t pos, end; /* what it holds */
	uint64_t raw;
};

/* fseeko(data, SEEK_SET), then fseeko(0, SEEK_CUR): glibc goes to the start of the block and reads
 * up to the wanted place; the second seek finds that nothing is buffered after it and reads the
 * block. */
static int stdio_seek(struct reader *r, struct stdio *f, uint64_t data, struct err *e)
{
	uint64_t block = data & ~(uint64_t)(f->size - 1);
	size_t delta = (size_t)(data - block);
	ssize_t got;

	*f = (struct stdio){.size = f->size, .raw = data};
	if (delta == 0)
		return 0;
	got = io_pread(r->base.io, IO_META, r->base.blob, r->stdio_buffer, delta, block, e);
	if (got < 0)
		return (int)got;
	got = io_pread(r->base.io, IO_META, r->base.blob, r->stdio_buffer, f->size, block, e);
	if (got < 0)
		return (int)got;
	if ((size_t)got < delta)
		return err_set(e, ERR_DATA, "the file shrank while it was read");
	f->pos = delta;
	f->end = (size_t)got;
	f->raw = block + (uint64_t)got;
	return 0;
}

/* fread of n bytes: what is buffered; then whole blocks directly, or a refill for less than one. */
static int stdio_read(struct reader *r, struct stdio *f, unsigned char *out, uint64_t n,
		      uint64_t *done, struct err *e)
{
	*done = 0;
	while (*done < n) {
		uint64_t want = n - *done;
		size_t have = f->end - f->pos;
		ssize_t got;

		if (have > want)
			have = (size_t)want;
		memcpy(out + *done, r->stdio_buffer + f->pos, have);
		f->pos += have;
		*done += have;
		want -= have;
		if (want == 0)
			break;
		if (want < f->size) {
			got = io_pread(r->base.io, IO_DATA, r->base.blob, r->stdio_buffer, f->size,
				       f->raw, e);
			f->pos = 0;
			f->end = got > 0 ? (size_t)got : 0;
		} else {
			f->pos = f->end = 0;
			got = io_pread(r->base.io, IO_DATA, r->base.blob, out + *done,
				       (size_t)(want - want % f->size), f->raw, e);
			if (got > 0)
				*done += (uint64_t)got;
		}
		if (got < 0)
			return (int)got;
		if (got == 0)
			break;
		f->raw += (uint64_t)got;
	}
	return 0;
}

static int array_cut_short(uint64_t have, const struct npy_array *a, struct err *e)
{
	return err_set(e, ERR_DATA,
		       "the file ends %" PRIu64 " bytes into its array, which has %" PRIu64
		       ": it is truncated",
		       have, a->data_bytes);
}

static int read_framework(struct reader *r, const struct file_spec *f, struct sample *out,
			  struct err *e)
{
	struct stdio stdio = {0};
	struct store_stat st;
	struct pybuffer py;
	struct npy_array a;
	uint64_t done = 0;
	size_t buffer = 0;
	int rc = io_stat_blob(r->base.io, r->base.blob, &st, e);

	if (rc == 0)
		rc = reader_buffer_of(&r->base.config, st.block_bytes, r->python_buffer_bytes,
				      &buffer, e);
	if (rc < 0)
		return rc;
	pybuffer_start(&py, r->base.io, r->base.blob, r->base.config.python, st.bytes,
		       r->python_buffer, buffer);
	rc = framework_header(r, &py, &a, e);
	if (rc == 0)
		rc = npy_array_check(&a, f, e);
	if (rc == 0 && a.data_bytes > r->data_bytes)
		rc = err_set(e, ERR_USAGE, "the array is larger than the reader's buffer");
	stdio.size = st.block_bytes < STDIO_BUFFER_MAX ? st.block_bytes : STDIO_BUFFER_MAX;
	if (rc == 0)
		rc = stdio_seek(r, &stdio, a.header_bytes, e);
	if (rc == 0)
		rc = stdio_read(r, &stdio, r->data, a.data_bytes, &done, e);
	if (rc < 0)
		return rc;
	if (done < a.data_bytes)
		return array_cut_short(done, &a, e);
	out->data = r->data;
	return expectation_check(&r->base.expect, f->file_index, 0, a.header_bytes, r->data,
				 (size_t)a.data_bytes, e);
}

/* Parses the header in the first `have` bytes. Returns 1 when it is longer; *total gets its length.
 */
static int native_header(struct reader *r, size_t have, struct npy_array *a, size_t *total,
			 struct err *e)
{
	int rc = npy_prefix_bytes(r->data, have, 0, e);

	*total = (size_t)(rc > 0 ? rc : 0);
	if (rc < 0 || have < *total)
		return rc < 0 ? rc : 1;
	rc = npy_header_length(r->data, 0, total, e);
	if (rc < 0 || have < *total)
		return rc < 0 ? rc : 1;
	return npy_header_parse(r->data, *total, 0, a, e);
}

/* Reads the first piece; *got gets its size. One request unless another program wrote a longer
 * header. */
static int native_begin(struct reader *r, const struct file_spec *f, struct npy_array *a,
			size_t *got, struct err *e)
{
	uint64_t want = npy_file_bytes(f);
	size_t total;
	int rc;

	for (;;) {
		size_t n = want < r->data_bytes ? (size_t)want : r->data_bytes;
		ssize_t back = io_pread(r->base.io, IO_DATA, r->base.blob, r->data, n, 0, e);

		if (back < 0)
			return (int)back;
		*got = (size_t)back;
		rc = native_header(r, *got, a, &total, e);
		if (rc <= 0)
			break;
		if (*got < n)
			return err_set(e, ERR_DATA, "the file ends within its npy header");
		want = NPY_HEADER_MAX;
	}
	return rc < 0 ? rc : npy_array_check(a, f, e);
}

static int read_native(struct reader *r, const struct file_spec *f, struct sample *out,
		       struct err *e)
{
	struct npy_array a;
	uint64_t done = 0; /* of the array */
	size_t have = 0, skip;
	int rc = native_begin(r, f, &a, &have, e);

	if (rc < 0)
		return rc;
	skip = (size_t)a.header_bytes;
	for (;;) {
		uint64_t left = a.data_bytes - done;
		size_t n = left < have - skip ? (size_t)left : have - skip;
		ssize_t got;

		rc = expectation_check(&r->base.expect, f->file_index, done, a.header_bytes,
				       r->data + skip, n, e);
		if (rc < 0)
			return rc;
		out->data = r->data + skip;
		done += n;
		left -= n;
		if (left == 0)
			return 0;
		n = left < r->data_bytes ? (size_t)left : r->data_bytes;
		got = io_pread(r->base.io, IO_DATA, r->base.blob, r->data, n, a.header_bytes + done,
			       e);
		if (got < 0)
			return (int)got;
		if (got == 0)
			return array_cut_short(done, &a, e);
		have = (size_t)got;
		skip = 0;
	}
}

static int read_array(struct reader *r, const struct file_spec *f, uint64_t index,
		      struct sample *out, struct err *e)
{
	(void)index;
	return r->base.config.access == ACCESS_FRAMEWORK ? read_framework(r, f, out, e)
							 : read_native(r, f, out, e);
}

static int npy_read(struct reader *r, const char *path, const struct file_spec *f, uint64_t index,
		    struct sample *out, struct err *e)
{
	return reader_read_file(r, path, f, index, out, read_array, e);
}

/* Every sample is spread over the whole array. */
static int npy_extent(const struct reader_config *c, const struct file_spec *f, uint64_t index,
		      struct extent *out, struct err *e)
{
	(void)c;
	(void)index;
	(void)e;
	*out = (struct extent){.bytes = npy_file_bytes(f), .whole = true};
	return 0;
}

const struct format_ops format_npy = {
	.is.name = "npy",
	.is.help = "NumPy arrays (np.save), samples along the last axis.",
	.is.extension = "npy",
	.is.magic = "\x93NUMPY",
	.is.flags = FORMAT_RAW_ARRAY | FORMAT_IN_OBJECTS,
	.is.dlio_reader = "NPYReader",
	.is.dali = DALI_NPY,
	.check = npy_check,
	.file_bytes = npy_file_bytes,
	.write = npy_write,
	.reader_bytes = npy_reader_bytes,
	.reader_init = npy_reader_init,
	.read = npy_read,
	.reader_close = reader_close_nothing,
	.verify = npy_verify,
	.extent = npy_extent,
};
