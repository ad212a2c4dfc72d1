/* Unpacking the regions of Darshan logs. */
#include "trace/darshan/darshan_log.h"

#include <string.h>
#include <unistd.h>

#include "base/transfer.h"

void darshan_stream_open(struct darshan_stream *s, int fd, enum darshan_compression kind,
			 uint64_t at, uint64_t len, uint64_t ceiling)
{
	s->fd = fd;
	s->kind = kind;
	s->at = at;
	s->end = at + len;
	s->given = 0;
	s->ceiling = ceiling;
	s->open = false;
	s->broken = NULL;
	s->in_n = s->in_at = s->out_n = s->out_at = 0;
}

static void end_one(struct darshan_stream *s)
{
	if (s->open && s->kind == DARSHAN_ZLIB)
		inflateEnd(&s->z);
	if (s->open && s->kind == DARSHAN_BZIP2)
		BZ2_bzDecompressEnd(&s->bz);
	s->open = false;
}

void darshan_stream_close(struct darshan_stream *s)
{
	end_one(s);
}

/* More compressed bytes; false at the end of the region. */
static bool fill(struct darshan_stream *s)
{
	uint64_t left = s->end - s->at;
	size_t want = left < sizeof(s->in) ? (size_t)left : sizeof(s->in);
	ssize_t got;

	if (s->in_at < s->in_n)
		return true;
	if (want == 0)
		return false;
	got = pread_fully(s->fd, s->in, want, (off_t)s->at);
	if (got <= 0) {
		s->broken = "the file cannot be read there";
		return false;
	}
	s->at += (uint64_t)got;
	s->in_n = (size_t)got;
	s->in_at = 0;
	return true;
}

static bool begin_one(struct darshan_stream *s)
{
	int rc;

	if (s->kind == DARSHAN_ZLIB) {
		memset(&s->z, 0, sizeof(s->z));
		rc = inflateInit(&s->z);
	} else {
		memset(&s->bz, 0, sizeof(s->bz));
		rc = BZ2_bzDecompressInit(&s->bz, 0, 0);
	}
	s->open = rc == 0; /* Z_OK and BZ_OK */
	if (!s->open)
		s->broken = "there is no memory to unpack it";
	return s->open;
}

/* One call of the library: true while its stream goes on. */
static bool unpack(struct darshan_stream *s)
{
	size_t n = s->in_n - s->in_at;
	int rc, end, ok;
	size_t left;

	if (s->kind == DARSHAN_ZLIB) {
		s->z.next_in = s->in + s->in_at;
		s->z.avail_in = (uInt)n;
		s->z.next_out = s->out;
		s->z.avail_out = sizeof(s->out);
		rc = inflate(&s->z, Z_NO_FLUSH);
		left = s->z.avail_in;
		s->out_n = sizeof(s->out) - s->z.avail_out;
		end = Z_STREAM_END;
		ok = rc == Z_OK || rc == Z_STREAM_END;
	} else {
		s->bz.next_in = (char *)s->in + s->in_at;
		s->bz.avail_in = (unsigned)n;
		s->bz.next_out = (char *)s->out;
		s->bz.avail_out = sizeof(s->out);
		rc = BZ2_bzDecompress(&s->bz);
		left = s->bz.avail_in;
		s->out_n = sizeof(s->out) - s->bz.avail_out;
		end = BZ_STREAM_END;
		ok = rc == BZ_OK || rc == BZ_STREAM_END;
	}
	s->in_at = s->in_n - left;
	if (!ok || (rc != end && left == n && s->out_n == 0)) {
		s->broken = "its compressed bytes are damaged";
		return false;
	}
	if (rc == end)
		end_one(s);
	return true;
}

/* Fills s->out; false when nothing more comes. */
static bool more(struct darshan_stream *s)
{
	s->out_at = s->out_n = 0;
	while (s->out_n == 0) {
		if (s->broken)
			return false;
		if (!fill(s)) {
			if (!s->broken && s->open)
				s->broken = "it is cut";
			return false;
		}
		if (s->kind == DARSHAN_PLAIN) {
			s->out_n = s->in_n - s->in_at;
			memcpy(s->out, s->in + s->in_at, s->out_n);
			s->in_at = s->in_n;
		} else if ((!s->open && !begin_one(s)) || !unpack(s)) {
			/* what came out before the damage counts */
			if (s->out_n == 0)
				return false;
		}
	}
	s->given += s->out_n;
	if (s->given > s->ceiling) {
		s->broken = "it unpacks to more than a log can have";
		s->out_n = 0;
		return false;
	}
	return true;
}

size_t darshan_stream_take(struct darshan_stream *s, void *to, size_t n)
{
	size_t done = 0;

	while (done < n) {
		size_t left = s->out_n - s->out_at, part = left < n - done ? left : n - done;

		if (left == 0 && !more(s))
			break;
		if (left == 0)
			continue;
		if (to)
			memcpy((unsigned char *)to + done, s->out + s->out_at, part);
		s->out_at += part;
		done += part;
	}
	return done;
}

size_t darshan_stream_text(struct darshan_stream *s, char *to, size_t max, bool *whole)
{
	size_t taken = 0, kept = 0;

	*whole = false;
	while (!*whole) {
		size_t left = s->out_n - s->out_at, part, room = max - kept;
		const unsigned char *from = s->out + s->out_at, *nul;

		if (left == 0) {
			if (!more(s))
				break;
			continue;
		}
		nul = memchr(from, 0, left);
		part = nul ? (size_t)(nul - from) : left;
		memcpy(to + kept, from, part < room ? part : room);
		kept += part < room ? part : room;
		*whole = nul != NULL;
		part += *whole;
		s->out_at += part;
		taken += part;
	}
	to[kept] = '\0';
	return taken;
}
