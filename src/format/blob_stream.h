#pragma once
/* A file's bytes as one ascending stream that is written to a blob, compared with one, or of which
 * some parts are kept: a format says once how its file looks, and these cannot disagree.
 *
 * Memory is the caller's scratch. Requests are whole pieces at multiples of the piece size. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "format/format.h"

#define BLOB_STREAM_SCRATCH_MIN 8192
#define BLOB_STREAM_HOLE_MAX 64
#define BLOB_STREAM_SAME UINT64_MAX
#define BLOB_STREAM_ANY_SIZE UINT64_MAX

/* A part of a file that is kept: `bytes` at `offset`, of which the stream sets `known` in `made`;
 * the others it leaves as they are. */
struct blob_part {
	uint64_t offset;
	size_t bytes, known;
	unsigned char *made;
};

struct blob_stream {
	const struct io *io;
	struct blob *blob;
	bool compare;
	unsigned char *piece, *actual; /* what the file is to hold, and (compare) what it holds */
	size_t piece_bytes, used;
	uint64_t offset;           /* of piece[0] */
	uint64_t hole, hole_bytes; /* bytes known only later; hole_bytes 0: none */
	uint64_t file_bytes;       /* compare */
	uint64_t differs_at;       /* first difference so far, or BLOB_STREAM_SAME */
	uint32_t (*crc_update)(uint32_t crc, const void *bytes, size_t n); /* NULL: off */
	uint32_t crc; /* of what was put since blob_stream_crc_begin */
	/* keeping parts */
	struct blob_part *part;
	unsigned parts;
	uint64_t generated, most; /* bytes made; most: 0 for all of them */
	bool sum_lost;            /* some of what a sum is of was skipped */
};

/* `b` is open, for writing (and empty) or for reading. */
void blob_stream_write(struct blob_stream *s, const struct io *io, struct blob *b, void *scratch,
		       size_t scratch_bytes);
/* Opens `path` in a blob laid into the scratch, and checks its size against `bytes`: another size
 * is ERR_DATA; BLOB_STREAM_ANY_SIZE: the stream says it. blob_stream_end closes it. On failure
 * nothing is open. */
int blob_stream_compare(struct blob_stream *s, const struct io *io, const char *path,
			uint64_t bytes, void *scratch, size_t scratch_bytes, struct err *e);
/* Keeps parts of the file, one or more; of `io` nothing but the stop flag is used, which ends the
 * stream with ERR_CANCELED. With `most` payload and zeros outside of them are skipped, and the
 * stream ends with ERR_CANCELED behind the last part or when it had to make so many bytes: the
 * parts are right as far as they are known. Once something with a checksum was skipped, only
 * payload and zeros are known. */
void blob_stream_keep(struct blob_stream *s, const struct io *io, struct blob_part *part,
		      unsigned parts, uint64_t most, void *scratch, size_t scratch_bytes);

int blob_stream_put(struct blob_stream *s, const void *bytes, size_t n, struct err *e);
int blob_stream_zeros(struct blob_stream *s, uint64_t n, struct err *e);
/* n bytes of the payload stream from its byte `from` on. */
int blob_stream_payload(struct blob_stream *s, const struct content_source *content,
			uint64_t file_index, uint64_t from, uint64_t n, struct err *e);
/* Leaves room for n (at most BLOB_STREAM_HOLE_MAX) bytes that blob_stream_fill_hole gives later,
 * before the next hole. */
int blob_stream_leave_hole(struct blob_stream *s, size_t n, struct err *e);
int blob_stream_fill_hole(struct blob_stream *s, const void *bytes, struct err *e);
/* CRC-32, or CRC-32C. */
void blob_stream_crc_begin(struct blob_stream *s);
void blob_stream_crc32c_begin(struct blob_stream *s);
uint32_t blob_stream_crc_end(struct blob_stream *s);
/* Ends the stream with the result `rc` of what was put: flushes (write), or closes and reports the
 * first difference as ERR_DATA (compare). Error sentences get the path in front. */
int blob_stream_end(struct blob_stream *s, const char *path, int rc, struct err *e);

/* Index of the first byte that differs, n when none does. */
size_t first_difference(const void *a, const void *b, size_t n);
