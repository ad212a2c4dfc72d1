/* Writing a file as a stream, comparing one with that stream, or keeping parts of it. */
#include "format/blob_stream.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>

#include "base/thread.h"
#include "codec/crc.h"

#define SKIP_COST 64u /* bytes that could be made in the time of skipping some */

static size_t whole_pages(size_t n)
{
	return n >= 4096 ? n & ~(size_t)4095 : n;
}

void blob_stream_write(struct blob_stream *s, const struct io *io, struct blob *b, void *scratch,
		       size_t scratch_bytes)
{
	assert(scratch && scratch_bytes >= BLOB_STREAM_SCRATCH_MIN);
	*s = (struct blob_stream){.io = io,
				  .blob = b,
				  .piece = scratch,
				  .piece_bytes = whole_pages(scratch_bytes),
				  .differs_at = BLOB_STREAM_SAME};
}

int blob_stream_compare(struct blob_stream *s, const struct io *io, const char *path,
			uint64_t bytes, void *scratch, size_t scratch_bytes, struct err *e)
{
	size_t blob_bytes = (store_blob_bytes(io->store) + 63) & ~(size_t)63;
	struct store_stat st;
	int rc;

	if (scratch_bytes < blob_bytes + BLOB_STREAM_SCRATCH_MIN)
		return err_set(e, ERR_USAGE, "comparing '%s' needs more than %zu bytes of memory",
			       path, scratch_bytes);
	*s = (struct blob_stream){.io = io, .blob = scratch, .compare = true};
	s->differs_at = BLOB_STREAM_SAME;
	s->piece_bytes = whole_pages((scratch_bytes - blob_bytes) / 2);
	s->piece = (unsigned char *)scratch + blob_bytes;
	s->actual = s->piece + s->piece_bytes;
	rc = io_open(io, path, STORE_READ, s->blob, e);
	if (rc < 0)
		return rc;
	rc = io_stat_blob(io, s->blob, &st, e);
	if (rc == 0 && bytes != BLOB_STREAM_ANY_SIZE && st.bytes != bytes)
		rc = err_set(e, ERR_DATA,
			     "the file has %" PRIu64 " bytes and should have %" PRIu64 "%s",
			     st.bytes, bytes,
			     st.bytes < bytes ? " (it is truncated or belongs to another dataset)"
					      : " (it belongs to another dataset)");
	if (rc < 0) {
		io_close(io, s->blob, NULL);
		return err_in_path(rc, path, e);
	}
	s->file_bytes = st.bytes;
	return 0;
}

void blob_stream_keep(struct blob_stream *s, const struct io *io, struct blob_part *part,
		      unsigned parts, uint64_t most, void *scratch, size_t scratch_bytes)
{
	assert(parts > 0); /* else it would be written */
	blob_stream_write(s, io, NULL, scratch, scratch_bytes);
	s->part = part;
	s->parts = parts;
	s->most = most;
}

static void keep(struct blob_stream *s, const unsigned char *bytes, size_t n, uint64_t offset)
{
	for (unsigned i = 0; i < s->parts; i++) {
		struct blob_part *p = &s->part[i];
		uint64_t from = offset > p->offset ? offset : p->offset;
		uint64_t to = offset + n < p->offset + p->bytes ? offset + n : p->offset + p->bytes;

		if (from >= to)
			continue;
		memcpy(p->made + (from - p->offset), bytes + (from - offset), (size_t)(to - from));
		p->known += (size_t)(to - from);
	}
}

/* How far it is from `at` to the next place where a part begins (`begins`) or ends. */
static uint64_t until_part(const struct blob_stream *s, uint64_t at, bool begins)
{
	uint64_t near = UINT64_MAX;

	for (unsigned i = 0; i < s->parts; i++) {
		uint64_t end = s->part[i].offset + s->part[i].bytes;
		uint64_t place = begins && s->part[i].offset > at ? s->part[i].offset : at;

		if (end <= at)
			continue;
		place = begins ? place : end;
		near = place - at < near ? place - at : near;
	}
	return near;
}

/* The first of n bytes that differ, not looking at the hole; n when none does. */
static size_t piece_difference(const struct blob_stream *s, size_t n)
{
	size_t i = 0;

	while (i < n) {
		i += first_difference(s->piece + i, s->actual + i, n - i);
		if (i == n || !s->hole_bytes || s->offset + i < s->hole ||
		    s->offset + i >= s->hole + s->hole_bytes)
			break;
		i++;
	}
	return i;
}

static int may_go_on(const struct blob_stream *s, struct err *e)
{
	if (s->parts && stop_is_set(s->io->stop))
		return err_set(e, ERR_CANCELED, "stopped on request");
	if (s->parts == 0 || s->most == 0 ||
	    (s->generated < s->most && until_part(s, s->offset, true) < UINT64_MAX))
		return 0;
	return err_set(e, ERR_CANCELED, "all that is wanted of the file was made");
}

static int flush_piece(struct blob_stream *s, struct err *e)
{
	ssize_t got;
	size_t i;

	assert(s->used <= s->piece_bytes);
	if (s->used == 0)
		return 0;
	if (s->parts) {
		keep(s, s->piece, s->used, s->offset);
		s->generated += s->used;
	} else if (!s->compare) {
		got = io_pwrite(s->io, s->blob, s->piece, s->used, s->offset, e);
		if (got < 0)
			return (int)got;
	} else if (s->differs_at == BLOB_STREAM_SAME) {
		got = io_pread(s->io, IO_DATA, s->blob, s->actual, s->used, s->offset, e);
		if (got < 0)
			return (int)got;
		i = piece_difference(s, (size_t)got);
		/* past the end of a file that shrank after its size was checked */
		if (i < s->used)
			s->differs_at = s->offset + i;
	}
	s->offset += s->used;
	s->used = 0;
	return may_go_on(s, e);
}

static int skip(struct blob_stream *s, uint64_t n, struct err *e)
{
	int rc = flush_piece(s, e);

	s->offset += n;
	s->generated += SKIP_COST;
	return rc < 0 ? rc : may_go_on(s, e);
}

/* Of n bytes that could be made at any time: how many come before those that are wanted, which are
 * skipped, and how many are made next. */
static int skip_unwanted(struct blob_stream *s, uint64_t n, uint64_t *skipped, uint64_t *next,
			 struct err *e)
{
	uint64_t at = s->offset + s->used, ends;

	*skipped = 0;
	*next = n;
	if (!s->parts || !s->most)
		return 0;
	*skipped = until_part(s, at, true);
	if (*skipped > n)
		*skipped = n;
	ends = until_part(s, at + *skipped, false);
	*next = ends < n - *skipped ? ends : n - *skipped;
	if (*skipped == 0)
		return 0;
	s->sum_lost = s->sum_lost || s->crc_update;
	return skip(s, *skipped, e);
}

/* Room for up to n more bytes in the piece; *room gets how many. */
static int make_room(struct blob_stream *s, uint64_t n, size_t *room, struct err *e)
{
	int rc = s->used == s->piece_bytes ? flush_piece(s, e) : 0;
	size_t left = s->piece_bytes - s->used;

	*room = n < left ? (size_t)n : left;
	return rc;
}

static void piece_placed(struct blob_stream *s, size_t n)
{
	if (s->crc_update)
		s->crc = s->crc_update(s->crc, s->piece + s->used, n);
	s->used += n;
}

int blob_stream_put(struct blob_stream *s, const void *bytes, size_t n, struct err *e)
{
	const unsigned char *from = bytes;
	size_t room;

	if (s->sum_lost)
		return skip(s, n, e);
	while (n > 0) {
		int rc = make_room(s, n, &room, e);

		if (rc < 0)
			return rc;
		memcpy(s->piece + s->used, from, room);
		piece_placed(s, room);
		from += room;
		n -= room;
	}
	return 0;
}

int blob_stream_zeros(struct blob_stream *s, uint64_t n, struct err *e)
{
	uint64_t skipped, next;
	size_t room = 0;

	while (n > 0) {
		int rc = skip_unwanted(s, n, &skipped, &next, e) ?: make_room(s, next, &room, e);

		if (rc < 0)
			return rc;
		n -= skipped;
		memset(s->piece + s->used, 0, room);
		piece_placed(s, room);
		n -= room;
	}
	return 0;
}

int blob_stream_payload(struct blob_stream *s, const struct content_source *content,
			uint64_t file_index, uint64_t from, uint64_t n, struct err *e)
{
	uint64_t done = 0, skipped, next;
	size_t room = 0;

	while (done < n) {
		int rc = skip_unwanted(s, n - done, &skipped, &next, e)
				 ?: make_room(s, next, &room, e);

		if (rc < 0)
			return rc;
		done += skipped;
		content->fill(content, file_index, from + done, s->piece + s->used, room);
		piece_placed(s, room);
		done += room;
	}
	return 0;
}

int blob_stream_leave_hole(struct blob_stream *s, size_t n, struct err *e)
{
	assert(n <= BLOB_STREAM_HOLE_MAX && s->hole_bytes == 0);
	s->hole = s->offset + s->used;
	s->hole_bytes = n;
	return s->parts ? skip(s, n, e) : blob_stream_zeros(s, n, e);
}

int blob_stream_fill_hole(struct blob_stream *s, const void *bytes, struct err *e)
{
	uint64_t at = s->hole;
	size_t n = (size_t)s->hole_bytes, in_file = 0;
	unsigned char actual[BLOB_STREAM_HOLE_MAX];
	ssize_t got;

	assert(s->hole_bytes > 0);
	if (s->parts) {
		if (!s->sum_lost)
			keep(s, bytes, n, at);
		s->hole_bytes = 0;
		return 0;
	}
	/* the part that has left memory */
	if (at < s->offset)
		in_file = s->offset - at < n ? (size_t)(s->offset - at) : n;
	if (in_file < n)
		memcpy(s->piece + (at + in_file - s->offset), (const char *)bytes + in_file,
		       n - in_file);
	s->hole_bytes = 0;
	if (in_file == 0)
		return 0;
	if (!s->compare) {
		got = io_pwrite(s->io, s->blob, bytes, in_file, at, e);
		return got < 0 ? (int)got : 0;
	}
	if (at > s->differs_at)
		return 0;
	got = io_pread(s->io, IO_META, s->blob, actual, in_file, at, e);
	if (got < 0)
		return (int)got;
	n = first_difference(bytes, actual, (size_t)got);
	if (n < in_file)
		s->differs_at = at + n;
	return 0;
}

void blob_stream_crc_begin(struct blob_stream *s)
{
	s->crc = 0;
	s->crc_update = crc32_update;
}

void blob_stream_crc32c_begin(struct blob_stream *s)
{
	s->crc = 0;
	s->crc_update = crc32c_update;
}

uint32_t blob_stream_crc_end(struct blob_stream *s)
{
	assert(s->crc_update);
	s->crc_update = NULL;
	return s->crc;
}

int blob_stream_end(struct blob_stream *s, const char *path, int rc, struct err *e)
{
	int closed;

	if (rc == 0)
		rc = flush_piece(s, e);
	if (rc == 0 && s->differs_at != BLOB_STREAM_SAME)
		rc = err_set(e, ERR_DATA,
			     "the byte at offset %" PRIu64 " differs from the generated data",
			     s->differs_at);
	if (rc == 0 && s->compare && s->offset < s->file_bytes)
		rc = err_set(e, ERR_DATA,
			     "the byte at offset %" PRIu64 " is past the end of the generated data",
			     s->offset);
	if (s->compare) {
		closed = io_close(s->io, s->blob, rc == 0 ? e : NULL);
		if (rc == 0)
			rc = closed;
	}
	return rc < 0 ? err_in_path(rc, path, e) : 0;
}

size_t first_difference(const void *a, const void *b, size_t n)
{
	const unsigned char *p = a, *q = b;
	size_t i = 0;

	/* memcmp is the fast way to learn that nothing differs; only then look where */
	while (n - i > 4096 && memcmp(p + i, q + i, 4096) == 0)
		i += 4096;
	while (i < n && p[i] == q[i])
		i++;
	return i;
}
