/* Reading back: in requests of any size through one small piece of memory. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "checkpoint/parts.h"

#define PIECES 1024

int read_wrong(const struct file_reader *r, struct err *e, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	err_vset(e, ERR_DATA, fmt, ap);
	va_end(ap);
	if (e)
		err_wrap(e, "the checkpoint file '%s'", r->path);
	return ERR_DATA;
}

int read_meta(struct file_reader *r, uint64_t offset, void *out, size_t n, struct err *e)
{
	return io_pread_full(r->io, IO_META, r->blob, r->path, out, n, offset, e);
}

static int compare(const struct file_reader *r, const struct checkpoint_tensor *t,
		   uint64_t data_offset, uint64_t done, const void *bytes, size_t n, struct err *e)
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
			  "byte %" PRIu64 " of the tensor '%s%s%s' at offset %" PRIu64
			  " is not what was written",
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

		return rc < 0 ? rc : compare(r, t, data_offset, done, r->piece, (size_t)n, e);
	}
	for (; left > 0 && pieces < PIECES; pieces++) {
		v[pieces] = (struct iovec){r->piece, left < READ_PIECE ? (size_t)left : READ_PIECE};
		left -= v[pieces].iov_len;
	}
	got = io_preadv(r->io, IO_DATA, r->blob, v, pieces, data_offset + done, e);
	if (got < 0)
		return e ? err_wrap(e, "reading '%s'", r->path) : (int)got;
	if ((uint64_t)got < n)
		return read_wrong(r, e, "ends at %" PRIu64 ", %" PRIu64 " bytes wanted at %" PRIu64,
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
	rc = compare(r, t, offset, 0, py->buffer + py->pos, have, e);
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
		return e ? err_wrap(e, "reading '%s'", r->path) : (int)got;
	if ((uint64_t)got < n - have)
		return read_wrong(r, e, "ends within the tensor '%s'", t->key);
	return compare(r, t, offset, have, r->piece, (size_t)got, e);
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
			rc = compare(r, t, offset, done, r->piece, now, e);
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

static int read_open(struct file_reader *r, unsigned part, const struct checkpoint_format_ops *f,
		     struct err *e)
{
	struct store_stat st;
	int rc = io_stat_blob(r->io, r->blob, &st, e);

	if (rc < 0)
		return rc;
	r->file_bytes = st.bytes;
	if (f->maps && r->way == READ_FRAMEWORK)
		r->way = READ_MAPPED;
	if (r->way == READ_MAPPED)
		rc = io_map(r->io, r->blob, r->file_bytes, &r->map, e);
	if (rc == 0)
		rc = f->read(r, part, e);
	store_unmap(&r->map);
	return rc;
}

static int read_file(struct checkpoint_rank *rank, const struct checkpoint_file *f, int64_t epoch,
		     int64_t step, const struct io *io, struct checkpoint_stat *s, struct err *e)
{
	const struct checkpoint *c = rank->c;
	const struct workload *w = c->w;
	struct file_reader r = {
		.common = &c->common,
		.file = f,
		.key = content_file_key(c->common.seed, epoch, step, f->name),
		.io = io,
		.blob = rank->blob,
		.way = w->checkpoint.mmap          ? READ_MAPPED
		       : w->checkpoint.access == 1 ? READ_NATIVE
						   : READ_FRAMEWORK,
		.verify = w->checkpoint.verify,
		.request = (uint64_t)w->checkpoint.block_bytes,
		.piece = rank->work,
		.buffer = rank->buffer,
		.buffer_bytes = rank->buffer_bytes,
		.meta = rank->read_meta,
		.measure = &rank->writer,
	};
	int rc = 0;

	for (unsigned part = 0; c->format->part_suffix[part] && rc == 0; part++) {
		AUTO_FREE char *path =
			checkpoint_path(c, epoch, step, f->name, c->format->part_suffix[part]);
		int closed;

		r.path = path;
		span_name(io->trace, path);
		rc = io_open(io, path, STORE_READ, rank->blob, e);
		if (rc < 0)
			break;
		rc = read_open(&r, part, c->format, e);
		closed = io_close(io, rank->blob, rc == 0 ? e : NULL);
		rc = rc < 0 ? rc : closed;
		s->files++;
	}
	rank->read_meta = r.meta;
	s->payload_bytes += r.payload;
	return rc;
}

/* A small file, whole; with `want` it must hold that. */
static int read_whole(struct checkpoint_rank *r, const char *path, const struct buf *want,
		      const struct io *io, struct err *e)
{
	struct file_reader reader = {.path = path};
	uint64_t done = 0;
	struct store_stat st;
	int closed, rc;

	span_name(io->trace, path);
	rc = io_open(io, path, STORE_READ, r->blob, e);
	if (rc < 0)
		return e ? err_wrap(e, "the checkpoint was never made whole") : rc;
	rc = io_stat_blob(io, r->blob, &st, e);
	if (rc == 0 && want && st.bytes != want->len)
		rc = read_wrong(&reader, e, "is not that of this checkpoint");
	while (rc == 0 && done < st.bytes) {
		size_t n = st.bytes - done < READ_PIECE ? (size_t)(st.bytes - done) : READ_PIECE;

		rc = io_pread_full(io, IO_META, r->blob, path, r->work, n, done, e);
		if (rc == 0 && want && memcmp(r->work, want->data + done, n) != 0)
			rc = read_wrong(&reader, e, "is not that of this checkpoint");
		done += n;
	}
	closed = io_close(io, r->blob, rc == 0 ? e : NULL);
	return rc < 0 ? rc : closed;
}

/* The files of rank `of`; of a copy's first rank only those that the copies share. */
static int read_rank(struct checkpoint_rank *r, int64_t of, bool shared_only, int64_t epoch,
		     int64_t step, const struct io *io, struct checkpoint_stat *s, struct err *e)
{
	uint64_t count = checkpoint_file_count(&r->c->plan, of);
	int rc = 0;

	for (uint64_t i = 0; i < count && rc == 0; i++) {
		struct checkpoint_file f;
		int64_t begin = clock_now_ns();

		checkpoint_file_of(r->c, of, i, &f);
		if (shared_only && f.part != CHECKPOINT_LAYERS && r->c->plan.zero > 0)
			continue;
		rc = read_file(r, &f, epoch, step, io, s, e);
		if (rc < 0 && rc != ERR_CANCELED && e && !strstr(e->text, f.name)) {
			AUTO_FREE char *path = checkpoint_path(r->c, epoch, step, f.name,
							       r->c->format->part_suffix[0]);

			err_wrap(e, "reading back '%s'", path);
		}
		s->part_ns[f.part] += clock_now_ns() - begin;
	}
	return rc;
}

/* Reads the files that make a checkpoint whole, as every rank does before its own. */
static int read_committed(struct checkpoint_rank *r, int64_t epoch, int64_t step,
			  const struct io *io, struct err *e)
{
	bool more = r->c->format->commit != NULL, verify = r->c->w->checkpoint.verify;
	int rc = 0;

	for (unsigned i = 0; rc == 0 && more; i++) {
		const char *name = NULL;
		struct buf b = {0};

		rc = r->c->format->commit(&r->writer, i, &name, verify ? &b : NULL, e);
		more = name != NULL;
		if (rc == 0 && name) {
			AUTO_FREE char *path = checkpoint_path(r->c, epoch, step, name, "");

			rc = read_whole(r, path, verify ? &b : NULL, io, e);
		}
		buf_release(&b);
	}
	return rc;
}

int checkpoint_read(struct checkpoint_rank *r, int64_t from, int64_t epoch, int64_t step,
		    const struct io *io, struct checkpoint_stat *out, struct err *e)
{
	const struct checkpoint_plan *p = &r->c->plan;
	struct checkpoint_place at = checkpoint_place_of(p, from);
	bool also = r->c->w->checkpoint.restore == 1 && at.dp > 0 && p->zero != 3 &&
		    !(p->zero == 0 && p->all_ranks);
	struct checkpoint_stat s = {0};
	int64_t start = clock_now_ns();
	int rc = 0;

	if (r->c->w->checkpoint.mmap || (r->c->format->maps && r->c->w->checkpoint.access == 0))
		rc = store_map_check(io->store, e);
	if (rc == 0)
		rc = read_committed(r, epoch, step, io, e);
	if (rc == 0 && also)
		rc = read_rank(r, at.mp, true, epoch, step, io, &s, e);
	if (rc == 0)
		rc = read_rank(r, from, false, epoch, step, io, &s, e);
	s.total_ns = clock_now_ns() - start;
	if (out && rc == 0)
		*out = s;
	return rc;
}
