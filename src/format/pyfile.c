#include "format/pyfile.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>

#include "codec/crc.h"

/* The requests of a CPython file object open for reading. */

#define PY314_BUFFER_MIN (128u << 10)
#define PY314_BUFFER_MAX (8u << 20)
/* Up to this size of a file, Python 3.14's read() asks for the whole of it wherever it stands. */
#define PY314_SMALL_FILE 65536u

size_t pybuffer_size(uint32_t python, uint32_t block_bytes)
{
	size_t size = block_bytes > 1 ? block_bytes : 8192;

	if (python < 314)
		return size;
	if (size > PY314_BUFFER_MAX)
		size = PY314_BUFFER_MAX;
	return size < PY314_BUFFER_MIN ? PY314_BUFFER_MIN : size;
}

void pybuffer_start(struct pybuffer *p, const struct io *io, struct blob *blob, uint32_t python,
		    uint64_t file_bytes, void *buffer, size_t size)
{
	assert(size > 0);
	*p = (struct pybuffer){.io = io,
			       .blob = blob,
			       .kind = IO_META,
			       .python = python,
			       .file_bytes = file_bytes,
			       .buffer = buffer,
			       .size = size};
}

uint64_t pybuffer_tell(const struct pybuffer *p)
{
	return p->raw - (p->end - p->pos);
}

static void drop_buffered(struct pybuffer *p)
{
	p->pos = 0;
	p->end = 0;
}

void pybuffer_seek(struct pybuffer *p, uint64_t target)
{
	/* a buffer that was read to its end counts as empty, even for a step back into it */
	if (p->pos < p->end && target >= p->raw - p->end && target <= p->raw) {
		p->pos = (size_t)(target - (p->raw - p->end));
		return;
	}
	p->raw = target;
	drop_buffered(p);
}

void pybuffer_seek_end(struct pybuffer *p, uint64_t before)
{
	assert(before <= p->file_bytes);
	p->raw = p->file_bytes - before;
	drop_buffered(p);
}

static ssize_t raw_read(struct pybuffer *p, void *out, size_t n, struct err *e)
{
	ssize_t got = io_pread(p->io, p->kind, p->blob, out, n, p->raw, e);

	if (got > 0)
		p->raw += (uint64_t)got;
	return got;
}

/* Reads on into the buffer's free space. */
static ssize_t fill_buffer(struct pybuffer *p, struct err *e)
{
	ssize_t got;

	if (p->end == p->size)
		return 0;
	got = raw_read(p, p->buffer + p->end, p->size - p->end, e);
	if (got > 0)
		p->end += (size_t)got;
	return got;
}

static size_t take_buffered(struct pybuffer *p, void *out, size_t n)
{
	size_t have = p->end - p->pos;

	if (n > have)
		n = have;
	if (n)
		memcpy(out, p->buffer + p->pos, n);
	p->pos += n;
	return n;
}

ssize_t pybuffer_read(struct pybuffer *p, void *out, size_t n, struct err *e)
{
	unsigned char *to = out;
	size_t done = take_buffered(p, to, n);
	ssize_t got;

	if (done == n)
		return (ssize_t)n;
	drop_buffered(p);
	while (n - done >= p->size) {
		got = raw_read(p, to + done, (n - done) / p->size * p->size, e);
		if (got < 0)
			return got;
		if (got == 0)
			return (ssize_t)done;
		done += (size_t)got;
	}
	while (done < n && p->end < p->size) {
		got = fill_buffer(p, e);
		if (got < 0)
			return got;
		if (got == 0)
			break;
		done += take_buffered(p, to + done, n - done);
	}
	return (ssize_t)done;
}

ssize_t pybuffer_readinto(struct pybuffer *p, void *out, size_t n, struct err *e)
{
	unsigned char *to = out;
	size_t done = take_buffered(p, to, n);
	ssize_t got;

	if (done == n)
		return (ssize_t)n;
	drop_buffered(p);
	while (done < n) {
		if (n - done > p->size) {
			got = raw_read(p, to + done, n - done, e);
			if (got > 0)
				done += (size_t)got;
		} else {
			got = fill_buffer(p, e);
			if (got > 0)
				done += take_buffered(p, to + done, n - done);
		}
		if (got < 0)
			return got;
		if (got == 0)
			break;
	}
	return (ssize_t)done;
}

/* What FileIO.readall asks for first: all that is left and one byte, to see the end. */
static uint64_t first_ask(const struct pybuffer *p)
{
	uint64_t size = p->file_bytes;

	if (size == 0)
		return PYBUFFER_ALL_MIN;
	if (p->python >= 314)
		return size < PY314_SMALL_FILE || p->raw > size ? size + 1 : size - p->raw + 1;
	return p->raw > size ? PYBUFFER_ALL_MIN : size - p->raw + 1;
}

ssize_t pybuffer_read_all(struct pybuffer *p, void *out, size_t out_bytes, struct err *e)
{
	unsigned char *to = out;
	size_t done = take_buffered(p, to, out_bytes);
	uint64_t ask = first_ask(p);
	size_t whole = 0;

	drop_buffered(p);
	for (;;) {
		size_t n =
			ask - whole > out_bytes - done ? out_bytes - done : (size_t)(ask - whole);
		ssize_t got;

		if (n == 0)
			return err_set(e, ERR_DATA,
				       "the file grew while it was read: it had %" PRIu64
				       " bytes when it was opened",
				       p->file_bytes);
		got = raw_read(p, to + done, n, e);
		if (got < 0)
			return got;
		if (got == 0)
			return (ssize_t)done;
		done += (size_t)got;
		whole += (size_t)got;
	}
}

/* gzip (RFC 1952), read as Python's gzip module does. */

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

/* The requests of Python's zipfile module reading one member of an archive. */

#define COMMENT_MAX 65535u
/* Reads from an archive are never smaller. */
#define MIN_READ 4096u

static int zip_cut_short(uint64_t offset, const char *what, struct err *e)
{
	return err_set(e, ERR_DATA,
		       "the file ends within %s at offset %" PRIu64 ": it is truncated or damaged",
		       what, offset);
}

/* The end record: at the very end, or before a comment. *at gets its offset. */
static int find_end(struct pyzip *z, struct zip_end *end, uint64_t *at, struct err *e)
{
	struct pybuffer *py = z->py;
	uint64_t size = py->file_bytes, back = COMMENT_MAX + (py->python < 314) + ZIP_EOCD_BYTES;
	ssize_t got;

	if (size < ZIP_EOCD_BYTES)
		return err_set(
			e, ERR_DATA,
			"the file has %" PRIu64
			" bytes, too few for a zip archive: it is truncated or not an npz file",
			size);
	pybuffer_seek_end(py, ZIP_EOCD_BYTES);
	if (py->python >= 314)
		got = pybuffer_read(py, z->in, ZIP_EOCD_BYTES, e);
	else
		got = pybuffer_read_all(py, z->in, PYZIP_PIECE, e);
	if (got < 0)
		return (int)got;
	if (got == ZIP_EOCD_BYTES && memcmp(z->in, "PK\5\6", 4) == 0 && z->in[20] == 0 &&
	    z->in[21] == 0)
		return zip_parse_end(z->in, (size_t)got, size, end, at, e);
	if (back > size)
		back = size;
	pybuffer_seek(py, size - back);
	if (py->python >= 314)
		got = pybuffer_read(py, z->in, (size_t)back, e);
	else
		got = pybuffer_read_all(py, z->in, PYZIP_PIECE, e);
	if (got < 0)
		return (int)got;
	return zip_parse_end(z->in, (size_t)got, size, end, at, e);
}

/* The zip64 record, looked for in front of the end record whether or not that asks for it. *before
 * gets the bytes it takes there. */
static int find_end64(struct pyzip *z, uint64_t at, struct zip_end *end, uint64_t *before,
		      struct err *e)
{
	struct pybuffer *py = z->py;
	uint64_t from_end = py->file_bytes - at + ZIP64_LOCATOR_BYTES, unused;
	ssize_t got;

	*before = 0;
	if (from_end > py->file_bytes)
		return end->needs_zip64 ? zip_end_without_zip64(end, at, e) : 0;
	pybuffer_seek_end(py, from_end);
	got = pybuffer_read(py, z->in, ZIP64_LOCATOR_BYTES, e);
	if (got < 0)
		return (int)got;
	from_end += ZIP64_EOCD_BYTES;
	if (got < ZIP64_LOCATOR_BYTES || !zip_parse_locator(z->in, &unused) ||
	    from_end > py->file_bytes)
		return end->needs_zip64 ? zip_end_without_zip64(end, at, e) : 0;
	pybuffer_seek_end(py, from_end);
	got = pybuffer_read(py, z->in, ZIP64_EOCD_BYTES, e);
	if (got < 0)
		return (int)got;
	*before = ZIP64_LOCATOR_BYTES + ZIP64_EOCD_BYTES;
	return zip_parse_end64(z->in, (size_t)got, py->file_bytes, end, e);
}

int pyzip_find(struct pyzip *z, const char *name, struct zip_entry *out, struct err *e)
{
	struct zip_end end;
	struct zip_entry entry;
	uint64_t at = 0, before = 0, shift;
	size_t pos = 0;
	bool found = false;
	ssize_t got;
	int rc = find_end(z, &end, &at, e) ?: find_end64(z, at, &end, &before, e);

	if (rc < 0)
		return rc;
	if (end.directory_bytes > at || before > at - end.directory_bytes ||
	    end.directory_offset > at - end.directory_bytes - before)
		return err_set(e, ERR_DATA,
			       "the zip directory (%" PRIu64 " bytes at offset %" PRIu64
			       ") does not fit before its end record at offset %" PRIu64,
			       end.directory_bytes, end.directory_offset, at);
	if (end.directory_bytes > PYZIP_PIECE)
		return err_set(e, ERR_DATA,
			       "the zip directory has %" PRIu64
			       " bytes; a file of samples needs only about 102",
			       end.directory_bytes);
	z->directory = at - end.directory_bytes - before;
	/* bytes in front of the archive move every offset in it */
	shift = z->directory - end.directory_offset;
	pybuffer_seek(z->py, z->directory);
	got = pybuffer_read(z->py, z->in, (size_t)end.directory_bytes, e);
	if (got < 0)
		return (int)got;
	while ((rc = zip_next_entry(z->in, (size_t)got, &pos, z->directory, &entry, e)) > 0) {
		if (strcmp(entry.name, name) != 0)
			continue;
		if (__builtin_add_overflow(entry.local_offset, shift, &entry.local_offset))
			entry.local_offset = UINT64_MAX;
		*out = entry;
		found = true;
	}
	if (rc == 0 && !found)
		rc = err_set(e, ERR_DATA, "the archive has no member '%s'", name);
	return rc;
}

int pyzip_open(struct pyzip *z, const struct zip_entry *entry, struct err *e)
{
	struct pybuffer *py = z->py;
	uint64_t at = entry->local_offset;
	size_t name_bytes, extra_bytes;
	uint32_t skip = 0;
	ssize_t got;
	int rc;

	if (at > z->directory || z->directory - at < ZIP_LOCAL_BYTES)
		return err_set(e, ERR_DATA,
			       "the member '%s' has the offset %" PRIu64
			       ", which is not before the zip directory at %" PRIu64,
			       entry->name, at, z->directory);
	pybuffer_seek(py, at);
	got = pybuffer_read(py, z->in, ZIP_LOCAL_BYTES, e);
	if (got < 0)
		return (int)got;
	rc = zip_parse_local(z->in, (size_t)got, at, &skip, e);
	if (rc < 0)
		return rc;
	name_bytes = (size_t)(z->in[26] | z->in[27] << 8);
	extra_bytes = skip - name_bytes;
	got = pybuffer_read(py, z->in, name_bytes, e);
	if (got >= 0 &&
	    ((size_t)got != strlen(entry->name) || memcmp(z->in, entry->name, (size_t)got) != 0))
		return err_set(e, ERR_DATA,
			       "the local header at offset %" PRIu64
			       " does not have the name of its directory entry, '%s'",
			       at, entry->name);
	if (got >= 0 && extra_bytes)
		got = pybuffer_read(py, z->in, extra_bytes, e);
	if (got < 0)
		return (int)got;
	if (entry->method != ZIP_STORED && entry->method != ZIP_DEFLATED)
		return err_set(e, ERR_DATA,
			       "the member '%s' is compressed by method %d; stored (0) and "
			       "deflated (8) are supported",
			       entry->name, entry->method);
	z->pos = at + ZIP_LOCAL_BYTES + skip;
	if (z->pos > z->directory || entry->compressed_bytes > z->directory - z->pos)
		return err_set(e, ERR_DATA,
			       "the member '%s' of %" PRIu64 " bytes at offset %" PRIu64
			       " overlaps the zip directory at %" PRIu64,
			       entry->name, entry->compressed_bytes, z->pos, z->directory);
	z->entry = *entry;
	z->compressed_left = entry->compressed_bytes;
	z->left = entry->bytes;
	z->eof = false;
	z->crc = 0;
	z->tail = 0;
	z->run_bytes = 0;
	return entry->method == ZIP_DEFLATED ? inflater_start(z->inflater, e) : 0;
}

/* ZipExtFile._read2: at least MIN_READ compressed bytes into `to`, while there are any. */
static ssize_t read_compressed(struct pyzip *z, unsigned char *to, size_t n, struct err *e)
{
	ssize_t got;

	if (z->compressed_left == 0)
		return 0;
	if (n < MIN_READ)
		n = MIN_READ;
	if (n > z->compressed_left)
		n = (size_t)z->compressed_left;
	pybuffer_seek(z->py, z->pos);
	got = pybuffer_read(z->py, to, n, e);
	if (got < 0)
		return got;
	if (got == 0)
		return zip_cut_short(z->pos, "a member", e);
	z->pos += (uint64_t)got;
	z->compressed_left -= (uint64_t)got;
	return got;
}

/* ZipExtFile._read1 of a deflated member: inflates into n (at least MIN_READ) bytes of z->out, and
 * at the end of the input also what zlib still holds. */
static ssize_t read_deflated(struct pyzip *z, size_t n, struct err *e)
{
	size_t have = z->tail, room = n < MIN_READ ? MIN_READ : n, used;
	ssize_t got, made;

	if (n > have) {
		got = read_compressed(z, z->in + have, n - have, e);
		if (got < 0)
			return got;
		have += (size_t)got;
	}
	used = have;
	made = inflater_run(z->inflater, z->in, &used, z->out, room, e);
	if (made < 0)
		return made;
	memmove(z->in, z->in + used, have - used);
	z->tail = have - used;
	z->eof = z->inflater->ended || (z->compressed_left == 0 && z->tail == 0);
	if (z->eof && !z->inflater->ended) {
		used = 0;
		got = inflater_run(z->inflater, z->in, &used, z->out + made, PYZIP_SLACK, e);
		if (got < 0)
			return got;
		made += got;
	}
	return made;
}

/* ZipExtFile._read1. */
static int read_run(struct pyzip *z, size_t n, struct err *e)
{
	ssize_t got;

	if (z->entry.method == ZIP_DEFLATED) {
		got = read_deflated(z, n, e);
	} else {
		got = read_compressed(z, z->out, n, e);
		z->eof = z->compressed_left == 0;
	}
	if (got < 0)
		return (int)got;
	if ((uint64_t)got > z->left)
		got = (ssize_t)z->left;
	z->left -= (uint64_t)got;
	if (z->left == 0)
		z->eof = true;
	z->run = z->out;
	z->run_bytes = (size_t)got;
	if (!z->check_crc)
		return 0;
	z->crc = crc32_update(z->crc, z->run, z->run_bytes);
	if (z->eof && z->crc != z->entry.crc)
		return err_set(e, ERR_DATA,
			       "the member '%s' has the CRC-32 %08x but its directory entry has "
			       "%08x: its data are damaged",
			       z->entry.name, z->crc, z->entry.crc);
	return 0;
}

ssize_t pyzip_next(struct pyzip *z, size_t want, const unsigned char **run, struct err *e)
{
	size_t n;

	assert(want > 0);
	if (want > PYZIP_PIECE)
		want = PYZIP_PIECE;
	while (z->run_bytes == 0) {
		int rc;

		if (z->eof)
			return 0;
		rc = read_run(z, want, e);
		if (rc < 0)
			return rc;
	}
	n = want < z->run_bytes ? want : z->run_bytes;
	*run = z->run;
	z->run += n;
	z->run_bytes -= n;
	return (ssize_t)n;
}
