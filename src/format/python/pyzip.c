/* The requests of Python's zipfile module reading one member of an archive. */
#include "format/python/pyzip.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>

#include "codec/crc32.h"

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
	int rc = find_end(z, &end, &at, e);

	if (rc == 0)
		rc = find_end64(z, at, &end, &before, e);
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
