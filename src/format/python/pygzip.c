/* gzip (RFC 1952), read as Python's gzip module does. */
#include "format/python/pygzip.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "codec/crc32.h"

enum { FLAG_CHECKSUM = 2, FLAG_EXTRA = 4, FLAG_NAME = 8, FLAG_COMMENT = 16 };
#define TRAILER_BYTES 8

void pygzip_start(struct pygzip *g, struct pybuffer *py, struct inflater *inflater,
		  unsigned char *in, size_t piece)
{
	*g = (struct pygzip){
		.py = py, .inflater = inflater, .in = in, .piece = piece, .check = true};
}

static ssize_t from_file(struct pygzip *g, void *out, size_t n, struct err *e)
{
	uint64_t at = pybuffer_tell(g->py), left = g->py->file_bytes - at;

	if (g->knows_end && at >= g->py->file_bytes)
		return 0;
	if (g->knows_end && n > left)
		n = (size_t)left;
	return pybuffer_read(g->py, out, n, e);
}

/* Up to n bytes: what was read and given back, then the file. */
static ssize_t read_bytes(struct pygzip *g, void *out, size_t n, struct err *e)
{
	size_t have = g->end - g->at < n ? g->end - g->at : n;
	ssize_t got = 0;

	memcpy(out, g->in + g->at, have);
	g->at += have;
	if (have < n)
		got = from_file(g, (unsigned char *)out + have, n - have, e);
	return got < 0 ? got : (ssize_t)have + got;
}

static uint64_t file_offset(const struct pygzip *g)
{
	return pybuffer_tell(g->py) - (g->end - g->at);
}

static int cut_off(const struct pygzip *g, const char *within, struct err *e)
{
	return err_set(e, ERR_DATA, "the gzip file ends at offset %" PRIu64 ", within %s",
		       file_offset(g), within);
}

static int read_exactly(struct pygzip *g, void *out, size_t n, const char *within, struct err *e)
{
	ssize_t got = read_bytes(g, out, n, e);

	if (got < 0)
		return (int)got;
	return (size_t)got < n ? cut_off(g, within, e) : 0;
}

static int skip_text(struct pygzip *g, struct err *e)
{
	char c;
	int rc;

	do
		rc = read_exactly(g, &c, 1, "a header", e);
	while (rc == 0 && c != '\0');
	return rc;
}

static int skip_extra(struct pygzip *g, struct err *e)
{
	unsigned char n[2], scrap[256];
	int rc = read_exactly(g, n, 2, "a header", e);

	for (size_t left = n[0] | (size_t)n[1] << 8; rc == 0 && left > 0;) {
		size_t part = left < sizeof(scrap) ? left : sizeof(scrap);

		rc = read_exactly(g, scrap, part, "a header", e);
		left -= part;
	}
	return rc;
}

/* 1 when a member begins, 0 at the end of the file. */
static int begin_member(struct pygzip *g, struct err *e)
{
	uint64_t start = file_offset(g);
	unsigned char head[10];
	ssize_t got = read_bytes(g, head, 2, e);
	int rc;

	if (got <= 0)
		return (int)got;
	if (got < 2 || head[0] != 0x1f || head[1] != 0x8b)
		return err_set(e, ERR_DATA, "there is no gzip header at offset %" PRIu64, start);
	rc = read_exactly(g, head + 2, 8, "a header", e);
	if (rc == 0 && head[2] != 8)
		rc = err_set(e, ERR_DATA,
			     "the gzip data at offset %" PRIu64
			     " are compressed by method %u; only 8 (deflate) is supported",
			     start, head[2]);
	if (rc == 0 && head[3] & FLAG_EXTRA)
		rc = skip_extra(g, e);
	if (rc == 0 && head[3] & FLAG_NAME)
		rc = skip_text(g, e);
	if (rc == 0 && head[3] & FLAG_COMMENT)
		rc = skip_text(g, e);
	if (rc == 0 && head[3] & FLAG_CHECKSUM)
		rc = read_exactly(g, head, 2, "a header", e);
	if (rc == 0)
		rc = inflater_start(g->inflater, e);
	g->in_member = rc == 0;
	g->crc = g->length = 0;
	return rc < 0 ? rc : 1;
}

static uint32_t load32(const unsigned char *p)
{
	return p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

/* The trailer, and the zeros that may follow it. */
static int end_member(struct pygzip *g, struct err *e)
{
	unsigned char trailer[TRAILER_BYTES], c = 0;
	int rc = read_exactly(g, trailer, sizeof(trailer), "the trailer", e);
	ssize_t got = 1;

	if (rc < 0)
		return rc;
	if (g->check && (load32(trailer) != g->crc || load32(trailer + 4) != g->length))
		return err_set(
			e, ERR_DATA,
			"the checksum of the compressed data before offset %" PRIu64
			" does not match: it is 0x%08x of %u bytes and should be 0x%08x of %u",
			file_offset(g), g->crc, g->length, load32(trailer), load32(trailer + 4));
	while (got > 0 && c == 0)
		got = read_bytes(g, &c, 1, e);
	if (got < 0)
		return (int)got;
	if (got > 0) {
		/* it was in the buffer or is the first of a piece: it goes back to the front */
		if (g->at == 0) {
			memmove(g->in + 1, g->in, g->end);
			g->end++;
			g->at = 1;
		}
		g->in[--g->at] = c;
	}
	g->in_member = false;
	return 0;
}

/* Reads the next piece behind what zlib has not taken. Returns what there is. */
static ssize_t refill_input(struct pygzip *g, struct err *e)
{
	size_t have = g->end - g->at;
	ssize_t got = 0;

	memmove(g->in, g->in + g->at, have);
	g->at = 0;
	g->end = have;
	if (have < g->piece)
		got = from_file(g, g->in + have, g->piece - have, e);
	if (got > 0)
		g->end += (size_t)got;
	return got < 0 ? got : (ssize_t)g->end;
}

ssize_t pygzip_read(struct pygzip *g, void *out, size_t n, struct err *e)
{
	for (;;) {
		ssize_t had, made;
		size_t used;
		int rc = 1;

		if (g->in_member && g->inflater->ended) {
			rc = end_member(g, e);
			if (rc < 0)
				return rc;
		}
		if (!g->in_member)
			rc = begin_member(g, e);
		if (rc <= 0)
			return rc;
		had = refill_input(g, e);
		if (had < 0)
			return had;
		used = (size_t)had;
		made = inflater_run(g->inflater, g->in, &used, out, n, e);
		if (made < 0)
			return made;
		g->at += used;
		g->crc = crc32_update(g->crc, out, (size_t)made);
		g->length += (uint32_t)made;
		if (made > 0)
			return made;
		if (had == 0 && !g->inflater->ended)
			return cut_off(g, "compressed data", e);
	}
}
