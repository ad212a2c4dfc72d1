/* ZIP records: finding and checking the directory, and the headers of Python's zipfile. */
#include "codec/zip.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>

#define LOCAL_SIGNATURE 0x04034b50u
#define CENTRAL_SIGNATURE 0x02014b50u
#define EOCD_SIGNATURE 0x06054b50u
#define ZIP64_EOCD_SIGNATURE 0x06064b50u
#define ZIP64_LOCATOR_SIGNATURE 0x07064b50u
#define ZIP64_EXTRA 1u
#define FLAGS_ENCRYPTED 0x2041u /* plain, strong, masked header */
#define MARK16 0xffffu
#define MARK32 0xffffffffu
/* Python's zipfile goes to 64 bits above 2^31-1 and 65535 entries */
#define PYTHON_LIMIT 0x7fffffffu
#define VERSION_PLAIN 20u
#define VERSION_ZIP64 45u

static uint16_t get16(const unsigned char *p)
{
	return (uint16_t)(p[0] | p[1] << 8);
}

static uint32_t get32(const unsigned char *p)
{
	return get16(p) | (uint32_t)get16(p + 2) << 16;
}

static uint64_t get64(const unsigned char *p)
{
	return get32(p) | (uint64_t)get32(p + 4) << 32;
}

static unsigned char *put16(unsigned char *p, unsigned v)
{
	p[0] = (unsigned char)v;
	p[1] = (unsigned char)(v >> 8);
	return p + 2;
}

static unsigned char *put32(unsigned char *p, uint32_t v)
{
	return put16(put16(p, v & 0xffff), v >> 16);
}

static unsigned char *put64(unsigned char *p, uint64_t v)
{
	return put32(put32(p, (uint32_t)v), (uint32_t)(v >> 32));
}

/* The directory must lie before `limit`, and its size must have room for the entries it claims. */
static int check_directory(const struct zip_end *d, uint64_t at, uint64_t limit, struct err *e)
{
	uint64_t end;

	if (__builtin_add_overflow(d->directory_offset, d->directory_bytes, &end) || end > limit)
		return err_set(e, ERR_DATA,
			       "zip: the end record at offset %" PRIu64
			       " puts the directory at %" PRIu64 " (%" PRIu64
			       " bytes), which is outside of the file",
			       at, d->directory_offset, d->directory_bytes);
	if (d->entries > d->directory_bytes / ZIP_CENTRAL_BYTES)
		return err_set(e, ERR_DATA,
			       "zip: the end record at offset %" PRIu64 " declares %" PRIu64
			       " members, too many for a directory of %" PRIu64 " bytes",
			       at, d->entries, d->directory_bytes);
	if (d->entries == 0 && d->directory_bytes != 0)
		return err_set(e, ERR_DATA,
			       "zip: the end record at offset %" PRIu64
			       " declares no members, but a directory of %" PRIu64 " bytes",
			       at, d->directory_bytes);
	return 0;
}

static int refuse_parts(uint64_t at, struct err *e)
{
	return err_set(e, ERR_DATA,
		       "zip: the record at offset %" PRIu64
		       " is part of an archive split over several files, which is not supported",
		       at);
}

int zip_parse_end(const void *tail, size_t n, uint64_t file_bytes, struct zip_end *out,
		  uint64_t *record_offset, struct err *e)
{
	const unsigned char *p = tail;
	uint64_t base = file_bytes - n;
	size_t i = n < ZIP_EOCD_BYTES ? 0 : n - ZIP_EOCD_BYTES + 1;
	uint16_t disk, dir_disk, here, all;

	if (n > file_bytes)
		return err_set(e, ERR_DATA,
			       "zip: %zu bytes cannot be the end of a file of %" PRIu64, n,
			       file_bytes);
	/* a comment may hold the signature too: the record is where the comment ends with the file
	 */
	do {
		if (i == 0)
			return err_set(e, ERR_DATA,
				       "zip: no end-of-directory record between offset %" PRIu64
				       " and the end of the file at %" PRIu64
				       ": it is truncated or not a zip file",
				       base, file_bytes);
		i--;
	} while (get32(p + i) != EOCD_SIGNATURE || get16(p + i + 20) != n - i - ZIP_EOCD_BYTES);
	p += i;
	disk = get16(p + 4);
	dir_disk = get16(p + 6);
	here = get16(p + 8);
	all = get16(p + 10);
	if ((disk != 0 && disk != MARK16) || (dir_disk != 0 && dir_disk != MARK16) || here != all)
		return refuse_parts(base + i, e);
	out->entries = all;
	out->directory_bytes = get32(p + 12);
	out->directory_offset = get32(p + 16);
	out->needs_zip64 = disk == MARK16 || dir_disk == MARK16 || all == MARK16 ||
			   out->directory_bytes == MARK32 || out->directory_offset == MARK32;
	*record_offset = base + i;
	return out->needs_zip64 ? 0 : check_directory(out, base + i, base + i, e);
}

int zip_end_without_zip64(struct zip_end *end, uint64_t record_offset, struct err *e)
{
	if (end->directory_offset == MARK32 || end->directory_bytes == MARK32)
		return err_set(e, ERR_DATA,
			       "zip: the end record at offset %" PRIu64
			       " refers to a zip64 record, but there is no such record before it",
			       record_offset);
	end->needs_zip64 = 0;
	return check_directory(end, record_offset, record_offset, e);
}

int zip_parse_locator(const void *bytes, uint64_t *zip64_offset)
{
	const unsigned char *p = bytes;

	if (get32(p) != ZIP64_LOCATOR_SIGNATURE || get64(p + 8) > INT64_MAX - ZIP64_EOCD_BYTES)
		return 0;
	*zip64_offset = get64(p + 8);
	return 1;
}

int zip_parse_end64(const void *bytes, size_t n, uint64_t file_bytes, struct zip_end *out,
		    struct err *e)
{
	const unsigned char *p = bytes;
	const uint64_t after = ZIP64_EOCD_BYTES + ZIP64_LOCATOR_BYTES + ZIP_EOCD_BYTES;

	if (n < ZIP64_EOCD_BYTES || get32(p) != ZIP64_EOCD_SIGNATURE || file_bytes < after)
		return err_set(e, ERR_DATA,
			       "zip: no zip64 end record at the offset in its locator: the file of "
			       "%" PRIu64 " bytes is damaged",
			       file_bytes);
	if (get64(p + 4) < ZIP64_EOCD_BYTES - 12)
		return err_set(e, ERR_DATA,
			       "zip: the zip64 end record has %" PRIu64 " bytes; it needs %d",
			       get64(p + 4), ZIP64_EOCD_BYTES - 12);
	if (get32(p + 16) != 0 || get32(p + 20) != 0 || get64(p + 24) != get64(p + 32))
		return refuse_parts(file_bytes - after, e);
	out->entries = get64(p + 32);
	out->directory_bytes = get64(p + 40);
	out->directory_offset = get64(p + 48);
	out->needs_zip64 = 0;
	return check_directory(out, file_bytes - after, file_bytes - after, e);
}

/* The next 64-bit value of a zip64 extra for a field that holds the mark. */
static int widen(uint64_t *field, const unsigned char **p, size_t *left)
{
	if (*field != MARK32)
		return 0;
	if (*left < 8)
		return -1;
	*field = get64(*p);
	*p += 8;
	*left -= 8;
	return 0;
}

/* Replaces the marks in `out` by the values of the zip64 extra field, where there is one. */
static int parse_extra(const unsigned char *p, size_t n, struct zip_entry *out, uint64_t at,
		       struct err *e)
{
	int wide = 0, marked = out->bytes == MARK32 || out->compressed_bytes == MARK32 ||
			       out->local_offset == MARK32;

	/* fewer than four bytes are padding, as Android's zipalign leaves */
	while (n >= 4) {
		size_t len = get16(p + 2);

		if (len > n - 4)
			return err_set(e, ERR_DATA,
				       "zip: the member '%s' at offset %" PRIu64
				       " of the directory has an extra field of %zu bytes where "
				       "%zu are left",
				       out->name, at, len, n - 4);
		if (get16(p) == ZIP64_EXTRA && marked && !wide) {
			const unsigned char *q = p + 4;
			size_t left = len;

			if (widen(&out->bytes, &q, &left) != 0 ||
			    widen(&out->compressed_bytes, &q, &left) != 0 ||
			    widen(&out->local_offset, &q, &left) != 0)
				break;
			wide = 1;
		}
		p += 4 + len;
		n -= 4 + len;
	}
	if (marked && !wide)
		return err_set(e, ERR_DATA,
			       "zip: the 64-bit size or offset of the member '%s' is missing at "
			       "offset %" PRIu64,
			       out->name, at);
	return 0;
}

static int check_entry(const struct zip_entry *m, unsigned disk, uint64_t at, uint64_t dir_offset,
		       struct err *e)
{
	uint64_t end;

	if (disk != 0 && disk != MARK16)
		return refuse_parts(at, e);
	if (m->flags & FLAGS_ENCRYPTED)
		return err_set(e, ERR_DATA,
			       "zip: the member '%s' (directory entry at offset %" PRIu64
			       ") is encrypted, which is not supported",
			       m->name, at);
	if (m->method == ZIP_STORED && m->compressed_bytes != m->bytes)
		return err_set(e, ERR_DATA,
			       "zip: the member '%s' (directory entry at offset %" PRIu64
			       ") is stored but has %" PRIu64 " bytes in the file for %" PRIu64,
			       m->name, at, m->compressed_bytes, m->bytes);
	if (__builtin_add_overflow(m->local_offset, m->compressed_bytes, &end) ||
	    __builtin_add_overflow(end, ZIP_LOCAL_BYTES + strlen(m->name), &end) ||
	    end > dir_offset)
		return err_set(e, ERR_DATA,
			       "zip: the member '%s' (directory entry at offset %" PRIu64
			       ") of %" PRIu64 " bytes at %" PRIu64
			       " does not end before the directory at %" PRIu64,
			       m->name, at, m->compressed_bytes, m->local_offset, dir_offset);
	return 0;
}

int zip_next_entry(const void *dir, size_t n, size_t *pos, uint64_t dir_offset,
		   struct zip_entry *out, struct err *e)
{
	const unsigned char *p = (const unsigned char *)dir + *pos;
	uint64_t at = dir_offset + *pos;
	size_t left = n - *pos, name, extra, comment;
	int rc;

	assert(*pos <= n);
	if (left == 0)
		return 0;
	if (left < ZIP_CENTRAL_BYTES || get32(p) != CENTRAL_SIGNATURE)
		return err_set(e, ERR_DATA,
			       "zip: no directory entry at offset %" PRIu64
			       " (%zu bytes before the end of the directory)",
			       at, left);
	name = get16(p + 28);
	extra = get16(p + 30);
	comment = get16(p + 32);
	if (name > ZIP_NAME_MAX)
		return err_set(
			e, ERR_DATA,
			"zip: the member at offset %" PRIu64
			" of the directory has a name of %zu bytes; at most %d are supported",
			at, name, ZIP_NAME_MAX);
	if (name + extra + comment > left - ZIP_CENTRAL_BYTES)
		return err_set(e, ERR_DATA,
			       "zip: the directory entry at offset %" PRIu64 " is cut off", at);
	if (memchr(p + ZIP_CENTRAL_BYTES, '\0', name))
		return err_set(e, ERR_DATA,
			       "zip: the member at offset %" PRIu64
			       " of the directory has a NUL in its name",
			       at);
	memcpy(out->name, p + ZIP_CENTRAL_BYTES, name);
	out->name[name] = '\0';
	out->flags = get16(p + 8);
	out->method = get16(p + 10);
	out->crc = get32(p + 16);
	out->compressed_bytes = get32(p + 20);
	out->bytes = get32(p + 24);
	out->local_offset = get32(p + 42);
	rc = parse_extra(p + ZIP_CENTRAL_BYTES + name, extra, out, at, e);
	if (rc == 0)
		rc = check_entry(out, get16(p + 34), at, dir_offset, e);
	if (rc < 0)
		return rc;
	*pos += ZIP_CENTRAL_BYTES + name + extra + comment;
	return 1;
}

int zip_parse_local(const void *bytes, size_t n, uint64_t offset, uint32_t *skip_bytes,
		    struct err *e)
{
	const unsigned char *p = bytes;

	if (n < ZIP_LOCAL_BYTES || get32(p) != LOCAL_SIGNATURE)
		return err_set(e, ERR_DATA,
			       "zip: no member begins at offset %" PRIu64
			       ", where the directory lists one",
			       offset);
	if (get16(p + 6) & FLAGS_ENCRYPTED)
		return err_set(e, ERR_DATA,
			       "zip: the member at offset %" PRIu64
			       " is encrypted, which is not supported",
			       offset);
	*skip_bytes = (uint32_t)get16(p + 26) + get16(p + 28);
	return 0;
}

static int wide_sizes(const struct zip_entry *m)
{
	return m->bytes > PYTHON_LIMIT || m->compressed_bytes > PYTHON_LIMIT;
}

/* Flags to sizes: the fields that local and central headers share. Time 00:00, date 1980-01-01. */
static unsigned char *put_common(unsigned char *p, const struct zip_entry *m)
{
	int wide = wide_sizes(m);

	p = put16(p, m->flags);
	p = put16(p, m->method);
	p = put32(p, 0x21u << 16);
	p = put32(p, m->crc);
	p = put32(p, wide ? MARK32 : (uint32_t)m->compressed_bytes);
	return put32(p, wide ? MARK32 : (uint32_t)m->bytes);
}

size_t zip_write_local(void *out, const struct zip_entry *entry)
{
	size_t name = strlen(entry->name);
	unsigned char *p = out;

	assert(name <= ZIP_NAME_MAX);
	p = put32(p, LOCAL_SIGNATURE);
	p = put16(p, wide_sizes(entry) ? VERSION_ZIP64 : VERSION_PLAIN);
	p = put_common(p, entry);
	p = put16(p, (unsigned)name);
	p = put16(p, 20);
	memcpy(p, entry->name, name);
	p = put16(p + name, ZIP64_EXTRA);
	p = put16(p, 16);
	p = put64(p, entry->bytes);
	p = put64(p, entry->compressed_bytes);
	return (size_t)(p - (unsigned char *)out);
}

size_t zip_write_central(void *out, const struct zip_entry *entry)
{
	size_t name = strlen(entry->name);
	int sizes = wide_sizes(entry), offset = entry->local_offset > PYTHON_LIMIT;
	unsigned version = sizes || offset ? VERSION_ZIP64 : VERSION_PLAIN;
	unsigned extra = (sizes ? 16u : 0u) + (offset ? 8u : 0u);
	unsigned char *p = out;

	p = put32(p, CENTRAL_SIGNATURE);
	p = put16(p, version | 3u << 8); /* made on Unix */
	p = put16(p, version);
	p = put_common(p, entry);
	p = put16(p, (unsigned)name);
	p = put16(p, extra ? extra + 4 : 0);
	p = put16(p, 0);
	p = put16(p, 0);
	p = put16(p, 0);
	p = put32(p, 0600u << 16);
	p = put32(p, offset ? MARK32 : (uint32_t)entry->local_offset);
	memcpy(p, entry->name, name);
	p += name;
	if (extra) {
		p = put16(p, ZIP64_EXTRA);
		p = put16(p, extra);
	}
	if (sizes) {
		p = put64(p, entry->bytes);
		p = put64(p, entry->compressed_bytes);
	}
	if (offset)
		p = put64(p, entry->local_offset);
	return (size_t)(p - (unsigned char *)out);
}

static unsigned char *put_end64(unsigned char *p, uint64_t entries, uint64_t dir_offset,
				uint64_t dir_bytes)
{
	p = put32(p, ZIP64_EOCD_SIGNATURE);
	p = put64(p, ZIP64_EOCD_BYTES - 12);
	p = put16(p, VERSION_ZIP64);
	p = put16(p, VERSION_ZIP64);
	p = put64(p, 0);
	p = put64(p, entries);
	p = put64(p, entries);
	p = put64(p, dir_bytes);
	p = put64(p, dir_offset);
	p = put32(p, ZIP64_LOCATOR_SIGNATURE);
	p = put32(p, 0);
	p = put64(p, dir_offset + dir_bytes);
	return put32(p, 1);
}

size_t zip_write_end(void *out, uint64_t entries, uint64_t dir_offset, uint64_t dir_bytes)
{
	unsigned char *p = out;
	unsigned count = entries < MARK16 ? (unsigned)entries : MARK16;

	if (entries > MARK16 || dir_offset > PYTHON_LIMIT || dir_bytes > PYTHON_LIMIT)
		p = put_end64(p, entries, dir_offset, dir_bytes);
	p = put32(p, EOCD_SIGNATURE);
	p = put32(p, 0);
	p = put16(p, count);
	p = put16(p, count);
	/* Python keeps what fits 32 bits here, even beside a zip64 record */
	p = put32(p, dir_bytes < MARK32 ? (uint32_t)dir_bytes : MARK32);
	p = put32(p, dir_offset < MARK32 ? (uint32_t)dir_offset : MARK32);
	p = put16(p, 0);
	return (size_t)(p - (unsigned char *)out);
}
