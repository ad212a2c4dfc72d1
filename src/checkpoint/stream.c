/* The buffering of libraries, over lists of pieces. */
#include "checkpoint/stream.h"

#include <assert.h>
#include <string.h>

size_t stream_arena_bytes(enum stream_law law, size_t limit)
{
	return law == STREAM_BLOCKS ? STREAM_ARENA_MAX : limit;
}

void stream_start(struct stream *s, enum stream_law law, size_t limit, void *arena,
		  const struct io *io, struct blob *blob, struct err *e)
{
	assert(limit > 0 && (arena || !blob));
	s->io = io;
	s->blob = blob;
	s->law = law;
	s->limit = limit;
	s->offset = 0;
	s->written = 0;
	s->arena = arena;
	s->arena_bytes = stream_arena_bytes(law, limit);
	s->arena_used = 0;
	s->pieces = 0;
	s->pending = 0;
	s->rc = 0;
	s->e = e;
}

static void submit_pieces(struct stream *s, const struct iovec *v, int pieces, size_t n)
{
	const struct stop_flag *stop = s->io->stop;
	ssize_t r;

	if (s->rc < 0 || n == 0)
		return;
	if (stop && atomic_load_explicit(&stop->set, memory_order_relaxed)) {
		s->rc = err_set(s->e, ERR_CANCELED, "the run was stopped");
		return;
	}
	if (pieces == 1)
		r = io_pwrite(s->io, s->blob, v->iov_base, n, s->written, s->e);
	else
		r = io_pwritev(s->io, s->blob, v, pieces, s->written, s->e);
	if (r < 0)
		s->rc = (int)r;
	else
		s->written += n;
}

int stream_flush(struct stream *s)
{
	if (s->blob)
		submit_pieces(s, s->v, s->pieces, s->pending);
	s->pieces = 0;
	s->pending = 0;
	s->arena_used = 0;
	return s->rc;
}

/* Bytes that may be kept before the next request must go out. */
static size_t room_left(const struct stream *s)
{
	if (s->law == STREAM_BLOCKS)
		return s->limit - (size_t)((s->written + s->pending) % s->limit);
	return s->limit - s->pending;
}

static void keep_piece(struct stream *s, const void *at, size_t n)
{
	struct iovec *last = s->pieces ? &s->v[s->pieces - 1] : NULL;

	if (last && (char *)last->iov_base + last->iov_len == (const char *)at) {
		last->iov_len += n;
	} else {
		if (s->pieces == STREAM_PIECES_MAX)
			stream_flush(s);
		s->v[s->pieces++] = (struct iovec){(void *)(uintptr_t)at, n};
	}
	s->pending += n;
	if (s->law == STREAM_BLOCKS && (s->written + s->pending) % s->limit == 0)
		stream_flush(s);
}

/* Room for n bytes of copies, at most the arena's size. */
static unsigned char *arena_take(struct stream *s, size_t n)
{
	unsigned char *at;

	if (s->arena_used + n > s->arena_bytes || s->pieces == STREAM_PIECES_MAX)
		stream_flush(s);
	assert(s->arena_used + n <= s->arena_bytes);
	at = s->arena + s->arena_used;
	s->arena_used += n;
	return at;
}

static void keep_copy(struct stream *s, const void *bytes, size_t n)
{
	const unsigned char *from = bytes;

	while (n > 0 && s->rc == 0) {
		size_t now = n < s->arena_bytes ? n : s->arena_bytes;
		unsigned char *to;

		if (s->law == STREAM_BLOCKS && now > room_left(s))
			now = room_left(s);
		to = arena_take(s, now);
		memcpy(to, from, now);
		keep_piece(s, to, now);
		from += now;
		n -= now;
	}
}

static void keep_payload(struct stream *s, const struct content_pool *pool, uint64_t phase,
			 uint64_t at, uint64_t n)
{
	while (n > 0 && s->rc == 0) {
		uint64_t got, now = n;
		struct iovec v;

		if (s->law == STREAM_BLOCKS && now > room_left(s))
			now = room_left(s);
		if (n <= STREAM_COPY_MAX && now <= s->arena_bytes) {
			unsigned char *to = arena_take(s, (size_t)now);

			content_copy(pool, phase, at, to, (size_t)now);
			got = now;
			keep_piece(s, to, (size_t)now);
		} else {
			content_pieces(pool, phase, at, now, &v, 1, &got);
			keep_piece(s, v.iov_base, v.iov_len);
		}
		at += got;
		n -= got;
	}
}

/* One request, or as many as lists of pieces are needed. */
static void write_payload(struct stream *s, const struct content_pool *pool, uint64_t phase,
			  uint64_t at, uint64_t n)
{
	while (n > 0 && s->rc == 0) {
		uint64_t got;

		s->pieces = content_pieces(pool, phase, at, n, s->v, STREAM_PIECES_MAX, &got);
		s->pending = (size_t)got;
		stream_flush(s);
		at += got;
		n -= got;
	}
}

/* Whether a call of n bytes is written by itself; makes room for it otherwise. */
static bool written_alone(struct stream *s, uint64_t n)
{
	bool fits = s->law == STREAM_RUST ? n < room_left(s) : n <= room_left(s);

	if (s->law == STREAM_BLOCKS || fits)
		return false;
	if (s->law != STREAM_RUST || n > room_left(s))
		stream_flush(s);
	return s->law == STREAM_RUST ? n >= s->limit : n > s->limit;
}

void stream_put(struct stream *s, const void *bytes, size_t n)
{
	struct iovec v = {(void *)(uintptr_t)bytes, n};
	const unsigned char *from = bytes;

	s->offset += n;
	if (s->rc < 0 || !s->blob || n == 0)
		return;
	if (!written_alone(s, n)) {
		keep_copy(s, bytes, n);
		return;
	}
	stream_flush(s);
	if (s->law != STREAM_PIECES) {
		submit_pieces(s, &v, 1, n);
		return;
	}
	for (; n > s->limit; n -= s->limit, from += s->limit) {
		v = (struct iovec){(void *)(uintptr_t)from, s->limit};
		submit_pieces(s, &v, 1, s->limit);
	}
	keep_copy(s, from, n);
}

void stream_payload(struct stream *s, const struct content_pool *pool, uint64_t phase, uint64_t n)
{
	uint64_t at = 0;

	s->offset += n;
	if (s->rc < 0 || !s->blob || n == 0)
		return;
	if (!written_alone(s, n)) {
		keep_payload(s, pool, phase, 0, n);
		return;
	}
	stream_flush(s);
	if (s->law != STREAM_PIECES) {
		write_payload(s, pool, phase, 0, n);
		return;
	}
	for (; n - at > s->limit; at += s->limit)
		write_payload(s, pool, phase, at, s->limit);
	keep_payload(s, pool, phase, at, n - at);
}
