#pragma once
/* The parts of the ZIP container (PKWARE APPNOTE 6.3) that npz and torch.save files use: parsing
 * the directory from bytes that the caller has read, and the exact headers that NumPy writes. No
 * I/O here, so that every request stays visible to the caller's counters. */
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

#define ZIP_EOCD_BYTES 22
#define ZIP64_LOCATOR_BYTES 20
#define ZIP64_EOCD_BYTES 56
#define ZIP_LOCAL_BYTES 30
#define ZIP_CENTRAL_BYTES 46
#define ZIP_NAME_MAX 255

enum zip_method { ZIP_STORED = 0, ZIP_DEFLATED = 8 };

/* Where the central directory is, from the end-of-central-directory record. */
struct zip_end {
	uint64_t entries;
	uint64_t directory_offset;
	uint64_t directory_bytes;
	int needs_zip64; /* some field holds the 0xFFFF.. marker: read the zip64 record */
};

struct zip_entry {
	char name[ZIP_NAME_MAX + 1];
	uint16_t flags, method;
	uint32_t crc;
	uint64_t compressed_bytes, bytes;
	uint64_t local_offset;
};

/* `tail` is the last `n` bytes of a file of `file_bytes`; finds the record (a comment may follow
 * it: the record is within the last 65557 bytes). *record_offset gets its absolute offset. Unless
 * needs_zip64 is set, the directory lies before the record and has room for its entries. Errors are
 * ERR_DATA sentences with the offset. */
int zip_parse_end(const void *tail, size_t n, uint64_t file_bytes, struct zip_end *out,
		  uint64_t *record_offset, struct err *e);
/* For an end with needs_zip64 before which there is no locator: exactly 65535 members may be meant,
 * otherwise ERR_DATA. Clears needs_zip64. */
int zip_end_without_zip64(struct zip_end *end, uint64_t record_offset, struct err *e);
/* The 20-byte zip64 locator: 1 and the absolute offset of the zip64 record (maybe outside of the
 * file), or 0 when `bytes` is not a locator. */
int zip_parse_locator(const void *bytes, uint64_t *zip64_offset);
/* The 56-byte zip64 end record; `out` is as after zip_parse_end without needs_zip64. */
int zip_parse_end64(const void *bytes, size_t n, uint64_t file_bytes, struct zip_end *out,
		    struct err *e);
/* One central-directory entry at dir[*pos]; advances *pos. 1 entry, 0 at the end of the directory,
 * ERR_DATA for a damaged one and for encrypted or split members. `dir_offset` is the directory's
 * place in the file, which every member must end before. Any method is let through. The caller
 * compares the number of entries with that of the end record. */
int zip_next_entry(const void *dir, size_t n, size_t *pos, uint64_t dir_offset,
		   struct zip_entry *out, struct err *e);
/* The 30-byte local header at `offset`: the number of name and extra bytes that follow it before
 * the data. */
int zip_parse_local(const void *bytes, size_t n, uint64_t offset, uint32_t *skip_bytes,
		    struct err *e);

/* The local header of np.savez (savez_compressed with ZIP_DEFLATED) under Python before 3.11.4: 30
 * + name + 20 bytes of zip64 extra; version 20, date 1980-01-01, real sizes in the 32-bit fields
 * unless one is over 2^31-1, where Python goes to 64 bits (version 45, both fields 0xFFFFFFFF).
 * Returns its length (at most 30 + ZIP_NAME_MAX + 20). */
size_t zip_write_local(void *out, const struct zip_entry *entry);
/* NumPy's central-directory entry: 46 + name (+ at most 28 bytes of zip64 extra when a size or the
 * offset is over 2^31-1). Returns its length. */
size_t zip_write_central(void *out, const struct zip_entry *entry);
/* End of central directory (preceded by the zip64 record and locator when the offset or size is
 * over 2^31-1 or there are more than 65535 members). Returns its length, at most 98 bytes. */
size_t zip_write_end(void *out, uint64_t entries, uint64_t dir_offset, uint64_t dir_bytes);
