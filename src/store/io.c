/* The counted and timed way to a store: what formats, datasets and checkpoints call. */
#include <errno.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdint.h>

#include "base/clock.h"
#include "store/mapped.h"
#include "store/store.h"

struct request {
	enum io_kind kind;
	enum span_kind what;
	unsigned flags;
	int64_t start_ns;
	const struct blob *blob; /* NULL: a name */
	uint64_t offset, asked;
	uint32_t place; /* of reads */
};

static void trace_request(const struct io *io, const struct request *q, int64_t end_ns,
			  int64_t returned)
{
	struct span_ring *r = io->trace;

	span_put(r, &(struct span){.begin_ns = q->start_ns,
				   .end_ns = end_ns,
				   .sample = r->sample,
				   .file = q->blob ? q->blob->file : r->file,
				   .step = r->step,
				   .offset = q->offset,
				   .asked = q->asked,
				   .moved = returned > 0 ? (uint64_t)returned : 0,
				   .kind = (uint8_t)q->what,
				   .flags = (uint8_t)(q->flags | (returned < 0 ? SPAN_FAILED : 0) |
						      (q->kind == IO_META ? SPAN_META : 0))});
}

/* Inlined: at each place most of a request is constant. */
static inline __attribute__((always_inline)) void count_request(const struct io *io,
								const struct request *q,
								int64_t returned)
{
	int64_t now;

	if (!io || (!io->stat && !io->trace))
		return;
	now = clock_now_ns();
	if (io->progress_ns)
		atomic_store_explicit(io->progress_ns, now, memory_order_relaxed);
	if (io->stat) {
		io_stat_add(io->stat, q->kind, now - q->start_ns, q->asked, returned);
		if (io->waits)
			io_waits_add(io->waits, now - q->start_ns);
		if (q->kind <= IO_DATA && q->asked && returned >= 0)
			read_log_add(&io->stat->reads, q->start_ns, now, (uint64_t)returned,
				     q->place, q->blob ? q->blob->name : 0);
		else if ((q->what == SPAN_OPEN || q->what == SPAN_STAT) && !q->blob &&
			 returned >= 0)
			read_log_add(&io->stat->opens, q->start_ns, now, 1,
				     q->what == SPAN_STAT ? SEEN_STAT : SEEN_OPEN, 0);
	}
	if (io->trace)
		trace_request(io, q, now, returned);
}

static inline void tell_before(const struct io *io, uint64_t asked)
{
	if (io && io->before)
		io->before->read(io->before, asked);
}

static int64_t start_time(const struct io *io)
{
	return io && (io->stat || io->trace) ? clock_now_ns() : 0;
}

/* The result of a call that moves no bytes. */
#define COUNTED(kind, what, blob, call)                                                            \
	({                                                                                         \
		int64_t start_ = start_time(io);                                                   \
		int rc_ = (call);                                                                  \
                                                                                                   \
		count_request(io, &(struct request){kind, what, 0, start_, blob, 0, 0, 0}, rc_);   \
		rc_;                                                                               \
	})

/* Offsets are signed 64 bits everywhere below. */
static int check_range(const char *verb, size_t n, uint64_t offset, struct err *e)
{
	uint64_t end;

	if (n > SSIZE_MAX || __builtin_add_overflow(offset, (uint64_t)n, &end) || end > INT64_MAX)
		return err_set(
			e, -EINVAL,
			"%s %zu bytes at offset %llu: beyond the largest possible file offset",
			verb, n, (unsigned long long)offset);
	return 0;
}

int io_open(const struct io *io, const char *path, unsigned how, struct blob *b, struct err *e)
{
	int64_t start;
	int rc;

	if (!(how & (STORE_READ | STORE_WRITE)) ||
	    (how & (STORE_CREATE | STORE_WRITE)) == STORE_CREATE)
		return err_set(e, -EINVAL, "cannot open '%s': neither for reading nor for writing",
			       path);
	b->file = io->trace ? io->trace->file : SPAN_NONE;
	atomic_store_explicit(&b->reads, 0, memory_order_relaxed);
	b->name = io->stat ? read_name(path) : 0;
	start = start_time(io);
	rc = store_open(io->store, path, how, b, e);
	count_request(io, &(struct request){IO_OPEN, SPAN_OPEN, 0, start, NULL, 0, 0, 0}, rc);
	return rc;
}

int io_close(const struct io *io, struct blob *b, struct err *e)
{
	return COUNTED(IO_OPEN, SPAN_CLOSE, b, store_close(b, e));
}

ssize_t io_pread(const struct io *io, enum io_kind kind, struct blob *b, void *p, size_t n,
		 uint64_t offset, struct err *e)
{
	ssize_t r = check_range("cannot read", n, offset, e);
	int64_t start;

	if (r < 0)
		return r;
	tell_before(io, n);
	if (io && io->stop && atomic_load_explicit(&io->stop->set, memory_order_relaxed))
		return err_set(e, ERR_CANCELED, "the run was stopped");
	start = start_time(io);
	r = store_pread(b, p, n, offset, e);
	count_request(io, &(struct request){kind, SPAN_READ, 0, start, b, offset, n, read_place(b)},
		      r);
	return r;
}

int io_report_short(struct blob *b, const char *path, size_t got, size_t n, uint64_t offset,
		    struct err *e)
{
	struct store_stat st;
	const char *name = path ? path : "the file";
	const char *quote = path ? "'" : "";

	if (store_stat_blob(b, &st, NULL) == 0 && st.bytes >= offset + n)
		err_set(e, ERR_DATA,
			"%s%s%s has %llu bytes, but the store returned only %zu of the %zu bytes "
			"requested at %llu",
			quote, name, quote, (unsigned long long)st.bytes, got, n,
			(unsigned long long)offset);
	else
		err_set(e, ERR_DATA, "%s%s%s ends at %llu, %zu bytes requested at %llu", quote,
			name, quote,
			(unsigned long long)(got == 0 && store_stat_blob(b, &st, NULL) == 0
						     ? st.bytes
						     : offset + got),
			n, (unsigned long long)offset);
	return path ? err_named(ERR_DATA, e) : ERR_DATA;
}

int io_pread_full(const struct io *io, enum io_kind kind, struct blob *b, const char *path, void *p,
		  size_t n, uint64_t offset, struct err *e)
{
	ssize_t r = io_pread(io, kind, b, p, n, offset, e);

	if (r < 0)
		return path ? err_name((int)r, e, "reading '%s'", path) : (int)r;
	if ((size_t)r < n)
		return io_report_short(b, path, (size_t)r, n, offset, e);
	return 0;
}

ssize_t io_pwrite(const struct io *io, struct blob *b, const void *p, size_t n, uint64_t offset,
		  struct err *e)
{
	int64_t start = start_time(io);
	ssize_t r = check_range("cannot write", n, offset, e);

	if (r < 0)
		return r;
	r = store_pwrite(b, p, n, offset, e);
	count_request(io, &(struct request){IO_WRITE, SPAN_WRITE, 0, start, b, offset, n, 0}, r);
	return r;
}

size_t io_pieces_bytes(const struct iovec *v, int count)
{
	size_t n = 0;

	for (int i = 0; i < count; i++)
		if (__builtin_add_overflow(n, v[i].iov_len, &n))
			return SIZE_MAX;
	return n;
}

ssize_t io_preadv(const struct io *io, enum io_kind kind, struct blob *b, const struct iovec *v,
		  int count_v, uint64_t offset, struct err *e)
{
	size_t n = io_pieces_bytes(v, count_v), done = 0;
	int64_t start;
	ssize_t r = check_range("cannot read", n, offset, e);

	if (r < 0)
		return r;
	if (!b->store->ops->preadv) {
		for (int i = 0; i < count_v; i++) {
			r = io_pread(io, kind, b, v[i].iov_base, v[i].iov_len, offset + done, e);
			if (r < 0)
				return r;
			done += (size_t)r;
			if ((size_t)r < v[i].iov_len)
				break;
		}
		return (ssize_t)done;
	}
	tell_before(io, n);
	if (io && io->stop && atomic_load_explicit(&io->stop->set, memory_order_relaxed))
		return err_set(e, ERR_CANCELED, "the run was stopped");
	start = start_time(io);
	r = b->store->ops->preadv(b, v, count_v, offset, e);
	count_request(
		io,
		&(struct request){kind, SPAN_READ, SPAN_VECTOR, start, b, offset, n, read_place(b)},
		r);
	return r;
}

ssize_t io_pwritev(const struct io *io, struct blob *b, const struct iovec *v, int count_v,
		   uint64_t offset, struct err *e)
{
	size_t n = io_pieces_bytes(v, count_v), done = 0;
	int64_t start;
	ssize_t r = check_range("cannot write", n, offset, e);

	if (r < 0)
		return r;
	if (!b->store->ops->pwritev) {
		for (int i = 0; i < count_v; i++) {
			r = io_pwrite(io, b, v[i].iov_base, v[i].iov_len, offset + done, e);
			if (r < 0)
				return r;
			done += (size_t)r;
		}
		return (ssize_t)done;
	}
	start = start_time(io);
	r = b->store->ops->pwritev(b, v, count_v, offset, e);
	count_request(io,
		      &(struct request){IO_WRITE, SPAN_WRITE, SPAN_VECTOR, start, b, offset, n, 0},
		      r);
	return r;
}

int io_rename(const struct io *io, const char *from, const char *to, struct err *e)
{
	return COUNTED(IO_WRITE, SPAN_RENAME, NULL, store_rename(io->store, from, to, e));
}

int io_sync_dir(const struct io *io, const char *path, struct err *e)
{
	return COUNTED(IO_SYNC, SPAN_SYNC, NULL, store_sync_dir(io->store, path, e));
}

int io_sync(const struct io *io, struct blob *b, struct err *e)
{
	return COUNTED(IO_SYNC, SPAN_SYNC, b, store_sync(b, e));
}

int io_stat_blob(const struct io *io, struct blob *b, struct store_stat *out, struct err *e)
{
	return COUNTED(IO_META, SPAN_STAT, b, store_stat_blob(b, out, e));
}

int io_stat_path(const struct io *io, const char *path, struct store_stat *out, struct err *e)
{
	return COUNTED(IO_META, SPAN_STAT, NULL, store_stat_path(io->store, path, out, e));
}

int io_map(const struct io *io, struct blob *b, uint64_t bytes, struct store_map *out,
	   struct err *e)
{
	return COUNTED(IO_META, SPAN_MAP, b, store_map(b, bytes, out, e));
}

static int will_need(const struct store_map *m, uint64_t offset, uint64_t n)
{
	store_map_will_need(m, offset, n);
	return 0;
}

void io_map_will_need(const struct io *io, const struct store_map *m, uint64_t offset, uint64_t n)
{
	(void)COUNTED(IO_META, SPAN_MAP, NULL, will_need(m, offset, n));
}

int io_map_touch(const struct io *io, enum io_kind kind, const struct store_map *m, uint64_t offset,
		 uint64_t n, struct err *e)
{
	int64_t start = start_time(io);
	int rc = store_map_touch(m, offset, n, e);

	count_request(
		io,
		&(struct request){kind, SPAN_TOUCH, 0, start, NULL, offset, n, READ_PLACE_UNKNOWN},
		rc == 0 ? (int64_t)n : rc);
	return rc;
}

int io_map_copy(const struct io *io, enum io_kind kind, const struct store_map *m, uint64_t offset,
		void *out, size_t n, struct err *e)
{
	int64_t start = start_time(io);
	int rc = store_map_copy(m, offset, out, n, e);

	count_request(
		io,
		&(struct request){kind, SPAN_TOUCH, 0, start, NULL, offset, n, READ_PLACE_UNKNOWN},
		rc == 0 ? (int64_t)n : rc);
	return rc;
}
