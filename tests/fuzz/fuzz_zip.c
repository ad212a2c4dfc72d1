/* A zip file as the npz reader walks it: end record, zip64, directory, local headers. What the
 * parser lets through must lie within the file. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "codec/zip.h"

static void need(int ok)
{
	if (!ok)
		abort();
}

/* Every sentence has its code and names a place. */
static int refused(int rc, struct err *e)
{
	need(rc == ERR_DATA && e->code == rc && e->text[0] != '\0');
	return 0;
}

static int find_directory(const uint8_t *data, size_t size, struct zip_end *end)
{
	struct err e = {0};
	uint64_t record, at;
	int rc = zip_parse_end(data, size, size, end, &record, &e);

	if (rc < 0)
		return refused(rc, &e);
	need(record + ZIP_EOCD_BYTES <= size);
	if (end->needs_zip64) {
		const uint8_t *locator = data + record - ZIP64_LOCATOR_BYTES;

		if (record >= ZIP64_LOCATOR_BYTES && zip_parse_locator(locator, &at)) {
			uint64_t n = at < size ? size - at : 0;
			/* as short a read as the file allows, at its exact size */
			uint8_t *copy = malloc(n < ZIP64_EOCD_BYTES ? n + 1 : ZIP64_EOCD_BYTES);

			if (n > ZIP64_EOCD_BYTES)
				n = ZIP64_EOCD_BYTES;
			memcpy(copy, data + (n ? at : 0), n);
			rc = zip_parse_end64(copy, n, size, end, &e);
			free(copy);
		} else {
			rc = zip_end_without_zip64(end, record, &e);
		}
		if (rc < 0)
			return refused(rc, &e);
	}
	need(!end->needs_zip64 && end->directory_offset <= size &&
	     end->directory_bytes <= size - end->directory_offset);
	return 1;
}

static void check_member(const uint8_t *data, size_t size, const struct zip_entry *m)
{
	uint8_t header[ZIP_CENTRAL_BYTES + ZIP_NAME_MAX + 28];
	struct zip_entry again = {0};
	struct err e = {0};
	uint32_t skip;
	size_t n, pos = 0;
	int rc;

	need(strlen(m->name) <= ZIP_NAME_MAX && m->local_offset <= size &&
	     m->compressed_bytes <= size - m->local_offset - ZIP_LOCAL_BYTES);
	rc = zip_parse_local(data + m->local_offset, size - m->local_offset, m->local_offset, &skip,
			     &e);
	if (rc < 0)
		refused(rc, &e);
	/* what was read, written and read again, is the same */
	n = zip_write_central(header, m);
	need(n <= sizeof(header));
	need(zip_next_entry(header, n, &pos, INT64_MAX, &again, &e) == 1 && pos == n);
	need(strcmp(m->name, again.name) == 0 && m->crc == again.crc && m->bytes == again.bytes &&
	     m->compressed_bytes == again.compressed_bytes &&
	     m->local_offset == again.local_offset && m->flags == again.flags &&
	     m->method == again.method);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct zip_end end = {0};
	struct zip_entry m;
	struct err e = {0};
	uint64_t entries = 0;
	size_t pos = 0;
	uint8_t *dir;
	int rc;

	if (!find_directory(data, size, &end))
		return 0;
	dir = malloc(end.directory_bytes ? end.directory_bytes : 1);
	memcpy(dir, data + end.directory_offset, end.directory_bytes);
	while ((rc = zip_next_entry(dir, end.directory_bytes, &pos, end.directory_offset, &m, &e)) >
	       0) {
		entries++;
		check_member(data, size, &m);
	}
	if (rc < 0)
		refused(rc, &e);
	need(entries <= size / ZIP_CENTRAL_BYTES);
	free(dir);
	return 0;
}
