/* The buffering of libraries, over lists of pieces. */
#include "checkpoint/stream.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/rng.h"
#include "codec/crc.h"

/* ---- pools of content and the CRCs of their slices ---- */

#define POOL_STREAM 0x636b7074u

/* k / 2^11 for k below 2^11 as IEEE half, exact. */
static uint16_t half_of(unsigned k)
{
	unsigned b;

	if (k == 0)
		return 0;
	b = 31u - (unsigned)__builtin_clz(k);
	return (uint16_t)((b + 4) << 10 | ((k << (10 - b)) & 0x3ff));
}

/* k / 2^8 for k below 2^8 as bfloat16, exact. */
static uint16_t bfloat_of(unsigned k)
{
	unsigned b;

	if (k == 0)
		return 0;
	b = 31u - (unsigned)__builtin_clz(k);
	return (uint16_t)((b + 119) << 7 | ((k << (7 - b)) & 0x7f));
}

static uint64_t elements_of(enum checkpoint_datatype type, uint64_t w)
{
	uint64_t out = 0;

	switch (type) {
	case CHECKPOINT_FP16:
		for (int i = 0; i < 64; i += 16)
			out |= (uint64_t)half_of((w >> i & 0xffff) >> 5) << i;
		return out;
	case CHECKPOINT_BF16:
		for (int i = 0; i < 64; i += 16)
			out |= (uint64_t)bfloat_of((w >> i & 0xffff) >> 8) << i;
		return out;
	case CHECKPOINT_FP32:
		for (int i = 0; i < 64; i += 32) {
			float f = (float)((w >> i & 0xffffffff) >> 8) * 0x1p-24f;
			uint32_t bits;

			memcpy(&bits, &f, sizeof(bits));
			out |= (uint64_t)bits << i;
		}
		return out;
	case CHECKPOINT_FP64: {
		double d = (double)(w >> 11) * 0x1p-53;

		memcpy(&out, &d, sizeof(out));
		return out;
	}
	default:
		return w;
	}
}

static uint64_t ones_of(enum checkpoint_datatype type)
{
	switch (type) {
	case CHECKPOINT_FP16:
		return 0x3c003c003c003c00u;
	case CHECKPOINT_BF16:
		return 0x3f803f803f803f80u;
	case CHECKPOINT_FP32:
		return 0x3f8000003f800000u;
	case CHECKPOINT_FP64:
		return 0x3ff0000000000000u;
	default:
		return 0x0101010101010101u;
	}
}

int content_pool_init(struct content_pool *p, enum checkpoint_datatype type, bool ones,
		      uint64_t seed, size_t size, struct err *e)
{
	uint64_t key = rng_key(seed, POOL_STREAM, (uint64_t)type);
	size_t steps;

	size = (size + POOL_PAGE - 1) / POOL_PAGE * POOL_PAGE;
	steps = size / POOL_CRC_STEP + 1;
	*p = (struct content_pool){.size = size};
	p->bytes = buffer_alloc(size, "the content of checkpoints", e);
	if (!p->bytes)
		return e ? e->code : -1;
	p->crc = xcalloc(steps, sizeof(*p->crc));
	p->crc32c = xcalloc(steps, sizeof(*p->crc32c));
	for (size_t i = 0; i < size / 8; i++) {
		uint64_t v = ones ? ones_of(type) : elements_of(type, rng_word(key, i));

		/* files are little-endian, and so are the machines this runs on */
		memcpy(p->bytes + 8 * i, &v, 8);
	}
	for (size_t i = 1; i < steps; i++) {
		const unsigned char *at = p->bytes + (i - 1) * POOL_CRC_STEP;

		p->crc[i] = crc32_update(p->crc[i - 1], at, POOL_CRC_STEP);
		p->crc32c[i] = crc32c_update(p->crc32c[i - 1], at, POOL_CRC_STEP);
	}
	return 0;
}

void content_pool_release(struct content_pool *p)
{
	if (p->bytes)
		buffer_free(p->bytes, p->size);
	free(p->crc);
	free(p->crc32c);
	*p = (struct content_pool){0};
}

uint64_t content_file_key(uint64_t seed, int64_t epoch, int64_t step, const char *name)
{
	uint64_t h = 0xcbf29ce484222325u; /* FNV-1a */

	for (; *name; name++)
		h = (h ^ (unsigned char)*name) * 0x100000001b3u;
	return rng_key(rng_key(seed, (uint64_t)epoch, (uint64_t)step), h, 0);
}

uint64_t content_phase(const struct content_pool *p, uint64_t file, uint64_t tensor,
		       uint64_t data_offset)
{
	return rng_word(file, tensor) % (p->size / POOL_PAGE) * POOL_PAGE +
	       (data_offset % POOL_PAGE & ~7ull);
}

/* The same bytes as pieces of the pool, at most `max`; *n gets how many of the bytes they cover. */
static int content_pieces(const struct content_pool *p, uint64_t phase, uint64_t at, uint64_t want,
			  struct iovec *out, int max, uint64_t *n)
{
	size_t pos = (size_t)((phase + at) % p->size);
	int made = 0;

	assert(p->size > 0 && max > 0);
	*n = 0;
	while (*n < want && made < max) {
		uint64_t left = want - *n;
		size_t here = left < p->size - pos ? (size_t)left : p->size - pos;

		out[made++] = (struct iovec){p->bytes + pos, here};
		*n += here;
		pos = 0;
	}
	return made;
}

void content_copy(const struct content_pool *p, uint64_t phase, uint64_t at, void *out, size_t n)
{
	unsigned char *to = out;

	while (n > 0) {
		struct iovec v;
		uint64_t got;

		content_pieces(p, phase, at, n, &v, 1, &got);
		memcpy(to, v.iov_base, v.iov_len);
		to += got;
		at += got;
		n -= (size_t)got;
	}
}

size_t content_differs(const struct content_pool *p, uint64_t phase, uint64_t at, const void *bytes,
		       size_t n)
{
	const unsigned char *b = bytes;
	size_t done = 0;

	while (done < n) {
		struct iovec v;
		uint64_t got;

		content_pieces(p, phase, at + done, n - done, &v, 1, &got);
		if (memcmp(b + done, v.iov_base, v.iov_len) != 0) {
			const unsigned char *want = v.iov_base;

			for (size_t i = 0; i < v.iov_len; i++)
				if (b[done + i] != want[i])
					return done + i;
		}
		done += (size_t)got;
	}
	return n;
}

/* One kind of CRC over the pool. */
struct crc_law {
	uint32_t (*update)(uint32_t crc, const void *bytes, size_t n);
	uint32_t (*join)(uint32_t a, uint32_t b, uint64_t len_b);
	const uint32_t *prefix;
};

/* Of the pool's first n bytes. */
static uint32_t prefix_crc(const struct content_pool *p, const struct crc_law *law, size_t n)
{
	size_t step = n / POOL_CRC_STEP;

	return law->update(law->prefix[step], p->bytes + step * POOL_CRC_STEP, n % POOL_CRC_STEP);
}

/* Of the pool's bytes from..to: the prefix's share is taken out again. */
static uint32_t range_crc(const struct content_pool *p, const struct crc_law *law, size_t from,
			  size_t to)
{
	return prefix_crc(p, law, to) ^ law->join(prefix_crc(p, law, from), 0, to - from);
}

static uint32_t slice_crc(const struct content_pool *p, const struct crc_law *law, uint64_t phase,
			  uint64_t n)
{
	size_t from = (size_t)(phase % p->size);
	uint64_t first = p->size - from, rounds, bytes;
	uint32_t crc, round;

	if (n <= first)
		return range_crc(p, law, from, from + (size_t)n);
	crc = range_crc(p, law, from, p->size);
	n -= first;
	round = prefix_crc(p, law, p->size);
	bytes = p->size;
	/* round is the CRC of 2^i pools, of which the bits of `rounds` say how many are wanted; all
	 * are the same bytes, so their order does not matter */
	for (rounds = n / p->size; rounds; rounds >>= 1) {
		if (rounds & 1)
			crc = law->join(crc, round, bytes);
		round = law->join(round, round, bytes);
		bytes *= 2;
	}
	return law->join(crc, prefix_crc(p, law, (size_t)(n % p->size)), n % p->size);
}

uint32_t content_crc(const struct content_pool *p, uint64_t phase, uint64_t n)
{
	const struct crc_law law = {crc32_update, crc32_join, p->crc};

	return slice_crc(p, &law, phase, n);
}

uint32_t content_crc32c(const struct content_pool *p, uint64_t phase, uint64_t n)
{
	const struct crc_law law = {crc32c_update, crc32c_join, p->crc32c};

	return slice_crc(p, &law, phase, n);
}

/* ---- the stream ---- */

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
		struct iovec v = {0};

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
