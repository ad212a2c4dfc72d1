#include "format/tar/tar_source.h"

#include <string.h>

#include "base/little_endian.h"

#define GZIP_HEAD 10u

void tar_source_begin(struct tar_source *s, tar_piece_fn *next, void *arg, unsigned char *plain,
		      unsigned char *memory)
{
	*s = (struct tar_source){.next = next, .arg = arg, .plain = plain};
	inflater_init(&s->inflater, memory);
}

static bool is_gzip(const unsigned char *p, size_t n)
{
	return n >= GZIP_HEAD && p[0] == 0x1f && p[1] == 0x8b && p[2] == 8;
}

/* Bytes of gzip's head; 0 when it does not end within the piece. */
static size_t head_bytes(const unsigned char *p, size_t n)
{
	unsigned flags = p[3];
	size_t at = GZIP_HEAD;

	if (flags & 4)
		at += n - at >= 2 ? 2 + (size_t)le_get(p + at, 2) : n;
	for (unsigned bit = 8; bit <= 16; bit += 8)
		if (flags & bit) {
			const unsigned char *end = at < n ? memchr(p + at, 0, n - at) : NULL;

			at = end ? (size_t)(end - p) + 1 : n;
		}
	at += flags & 2 ? 2 : 0;
	return at < n ? at : 0;
}

static int look(struct tar_source *s, struct err *e)
{
	size_t n = s->end - s->pos;

	s->looked = true;
	if (n >= 6 && (memcmp(s->piece, "BZh", 3) == 0 ||
		       memcmp(s->piece,
			      "\xfd"
			      "7zXZ",
			      5) == 0 ||
		       le_get(s->piece, 4) == 0xfd2fb528u))
		return err_set(
			e, ERR_DATA,
			"it is compressed with bzip2, xz or Zstandard, and only archives that "
			"are not compressed, or with gzip, are read");
	s->gzip = is_gzip(s->piece, n);
	if (!s->gzip)
		return 0;
	s->pos = head_bytes(s->piece, n);
	if (s->pos == 0)
		return err_set(e, ERR_DATA, "the head of its gzip stream is damaged");
	return inflater_start(&s->inflater, e);
}

static ssize_t next_piece(struct tar_source *s, struct err *e)
{
	ssize_t got = s->next(s->arg, &s->piece, e);

	s->pos = 0;
	s->end = got > 0 ? (size_t)got : 0;
	if (got > 0 && !s->looked) {
		int rc = look(s, e);

		if (rc < 0)
			return rc;
	}
	return got;
}

/* More of what was compressed into `plain`: 1; 0 at the end. */
static ssize_t inflate_more(struct tar_source *s, struct err *e)
{
	s->plain_pos = s->plain_end = 0;
	while (!s->inflater.ended) {
		size_t in = s->end - s->pos;
		ssize_t got;

		got = inflater_run(&s->inflater, s->piece + s->pos, &in, s->plain, TAR_PLAIN_BYTES,
				   e);
		if (got < 0)
			return got;
		s->pos += in;
		if (got > 0) {
			s->plain_end = (size_t)got;
			return 1;
		}
		if (s->inflater.ended || s->pos < s->end)
			break;
		got = next_piece(s, e);
		if (got <= 0)
			return got;
	}
	return 0;
}

static ssize_t more(struct tar_source *s, struct err *e)
{
	ssize_t got;

	if (s->gzip)
		return inflate_more(s, e);
	got = next_piece(s, e);
	return got > 0 && s->gzip ? inflate_more(s, e) : got;
}

ssize_t tar_source_take(void *source, unsigned char *out, uint64_t n, struct err *e)
{
	struct tar_source *s = source;
	uint64_t done = 0;

	while (done < n) {
		size_t part = s->gzip ? s->plain_end - s->plain_pos : s->end - s->pos;

		if (part == 0) {
			ssize_t got = more(s, e);

			if (got < 0)
				return got;
			if (got == 0)
				break;
			continue;
		}
		if (part > n - done)
			part = (size_t)(n - done);
		if (out)
			memcpy(out + done, s->gzip ? s->plain + s->plain_pos : s->piece + s->pos,
			       part);
		*(s->gzip ? &s->plain_pos : &s->pos) += part;
		done += part;
	}
	return (ssize_t)done;
}
