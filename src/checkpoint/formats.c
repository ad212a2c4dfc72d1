/* What the formats share: their table, a writer that only counts, and reading in requests of any
 * size through one small piece of memory. */
#include "checkpoint/formats.h"

#include <inttypes.h>
#include <stdarg.h>
#include <string.h>

#define PIECES 1024

const struct checkpoint_format_ops *checkpoint_format_find(const char *name)
{
	for (size_t i = 0; checkpoint_table[i]; i++)
		if (strcmp(checkpoint_table[i]->is.name, name) == 0)
			return checkpoint_table[i];
	return NULL;
}

void file_writer_measure(struct file_writer *w, const struct checkpoint_file *f)
{
	static const struct io no_io;

	w->file = f;
	w->key = 0;
	stream_start(w->stream, STREAM_BLOCKS, 4096, NULL, &no_io, NULL, NULL);
}

int read_wrong(const struct file_reader *r, struct err *e, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	err_vset(e, ERR_DATA, fmt, ap);
	va_end(ap);
	return err_name(ERR_DATA, e, "the checkpoint file '%s'", r->path);
}

int read_meta(struct file_reader *r, uint64_t offset, void *out, size_t n, struct err *e)
{
	return io_pread_full(r->io, IO_META, r->blob, r->path, out, n, offset, e);
}

static int compare_payload(const struct file_reader *r, const struct checkpoint_tensor *t,
			   uint64_t data_offset, uint64_t done, const void *bytes, size_t n,
			   struct err *e)
{
	const struct content_pool *pool = pool_of(r->common, t->type);
	uint64_t phase;
	size_t differs;

	if (!r->verify)
		return 0;
	phase = content_phase(pool, r->key, t->index, data_offset);
	differs = content_differs(pool, phase, done, bytes, n);
	if (differs == n)
		return 0;
	return read_wrong(r, e,
			  "byte %" PRIu64 " of the tensor '%s%s%s' at file offset %" PRIu64
			  " differs from what was written",
			  done + differs, t->outer, t->outer[0] ? "." : "", t->key,
			  data_offset + done + differs);
}

/* n bytes at `at` in one request; without verification into the same piece again and again. */
static int read_large(struct file_reader *r, const struct checkpoint_tensor *t,
		      uint64_t data_offset, uint64_t done, uint64_t n, struct err *e)
{
	struct iovec v[PIECES];
	uint64_t left = n;
	int pieces = 0;
	ssize_t got;

	if (n <= READ_PIECE) {
		int rc = io_pread_full(r->io, IO_DATA, r->blob, r->path, r->piece, (size_t)n,
				       data_offset + done, e);

		return rc < 0 ? rc
			      : compare_payload(r, t, data_offset, done, r->piece, (size_t)n, e);
	}
	for (; left > 0 && pieces < PIECES; pieces++) {
		v[pieces] = (struct iovec){r->piece, left < READ_PIECE ? (size_t)left : READ_PIECE};
		left -= v[pieces].iov_len;
	}
	got = io_preadv(r->io, IO_DATA, r->blob, v, pieces, data_offset + done, e);
	if (got < 0)
		return err_name((int)got, e, "reading '%s'", r->path);
	if ((uint64_t)got < n)
		return read_wrong(r, e,
				  "ends at offset %" PRIu64 ", before the %" PRIu64
				  " bytes expected at offset %" PRIu64,
				  data_offset + done + (uint64_t)got, n, data_offset + done);
	return 0;
}

static int read_requests(struct file_reader *r, const struct checkpoint_tensor *t,
			 uint64_t data_offset, uint64_t done, uint64_t n, uint64_t request,
			 struct err *e)
{
	int rc = 0;

	if (r->verify && request > READ_PIECE)
		request = READ_PIECE;
	if (request > (uint64_t)PIECES * READ_PIECE)
		request = (uint64_t)PIECES * READ_PIECE;
	while (done < n && rc == 0) {
		uint64_t now = n - done < request ? n - done : request;

		rc = read_large(r, t, data_offset, done, now, e);
		done += now;
	}
	return rc;
}

/* What readinto(n) of the library's file object does, n being any size. */
static int read_buffered(struct file_reader *r, struct pybuffer *py,
			 const struct checkpoint_tensor *t, uint64_t offset, uint64_t n,
			 struct err *e)
{
	size_t have;
	ssize_t got;
	int rc;

	pybuffer_seek(py, offset);
	have = py->end - py->pos;
	if (have > n)
		have = (size_t)n;
	rc = compare_payload(r, t, offset, 0, py->buffer + py->pos, have, e);
	if (rc < 0)
		return rc;
	py->pos += have;
	if (n - have > py->size) {
		py->pos = py->end = 0;
		rc = read_requests(r, t, offset, have, n, UINT64_MAX, e);
		py->raw = offset + n;
		return rc;
	}
	py->kind = IO_DATA;
	got = pybuffer_readinto(py, r->piece, (size_t)(n - have), e);
	py->kind = IO_META;
	if (got < 0)
		return err_name((int)got, e, "reading '%s'", r->path);
	if ((uint64_t)got < n - have)
		return read_wrong(r, e, "ends inside the tensor '%s'", t->key);
	return compare_payload(r, t, offset, have, r->piece, (size_t)got, e);
}

static int read_mapped(struct file_reader *r, const struct checkpoint_tensor *t, uint64_t offset,
		       uint64_t n, struct err *e)
{
	int rc = 0;

	if (!r->verify)
		return io_map_touch(r->io, IO_DATA, &r->map, offset, n, e);
	for (uint64_t done = 0; done < n && rc == 0;) {
		size_t now = n - done < READ_PIECE ? (size_t)(n - done) : READ_PIECE;

		rc = io_map_copy(r->io, IO_DATA, &r->map, offset + done, r->piece, now, e);
		if (rc == 0)
			rc = compare_payload(r, t, offset, done, r->piece, now, e);
		done += now;
	}
	return rc;
}

int read_payload(struct file_reader *r, struct pybuffer *py, const struct checkpoint_tensor *t,
		 uint64_t offset, uint64_t n, struct err *e)
{
	int rc;

	if (offset > r->file_bytes || n > r->file_bytes - offset)
		return read_wrong(r, e,
				  "has %" PRIu64 " bytes; the tensor '%s' would end at %" PRIu64,
				  r->file_bytes, t->key, offset + n);
	if (n == 0)
		return 0;
	if (r->way == READ_MAPPED)
		rc = read_mapped(r, t, offset, n, e);
	else if (py)
		rc = read_buffered(r, py, t, offset, n, e);
	else
		rc = read_requests(r, t, offset, 0, n,
				   r->way == READ_NATIVE ? r->request : UINT64_MAX, e);
	if (rc == 0)
		r->payload += n;
	return rc;
}
