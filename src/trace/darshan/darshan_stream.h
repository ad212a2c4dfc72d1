#pragma once
/* A compressed region of a Darshan log as a stream of bytes: complete zlib or bzip2 streams one
 * behind another, or plain bytes. Memory: DARSHAN_WINDOW twice, and the library's state. */
#include <bzlib.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <zlib.h>

#define DARSHAN_WINDOW 32768

enum darshan_compression { DARSHAN_ZLIB, DARSHAN_BZIP2, DARSHAN_PLAIN };

struct darshan_stream {
	int fd;
	enum darshan_compression kind;
	uint64_t at, end;   /* of the compressed bytes that were not read yet */
	uint64_t given;     /* bytes that came out */
	uint64_t ceiling;   /* of `given` */
	bool open;          /* in the middle of a compressed stream */
	const char *broken; /* why nothing more comes: a clause; NULL at the end of the region */
	union {
		z_stream z;
		bz_stream bz;
	};
	size_t in_n, in_at, out_n, out_at;
	unsigned char in[DARSHAN_WINDOW], out[DARSHAN_WINDOW];
};

/* Bytes [at, at + len) of the file, which must exist. At most `ceiling` bytes come out. */
void darshan_stream_open(struct darshan_stream *s, int fd, enum darshan_compression kind,
			 uint64_t at, uint64_t len, uint64_t ceiling);
/* Takes up to n bytes to `to` (NULL: nowhere). Fewer than n: the end, or s->broken says why. */
size_t darshan_stream_take(struct darshan_stream *s, void *to, size_t n);
/* Bytes up to and with the first NUL, at most max of them to `to`, which is then NUL-terminated;
 * longer text is cut. The bytes taken, 0 at the end; *whole tells whether a NUL ended them. `to`
 * has room for max + 1. */
size_t darshan_stream_text(struct darshan_stream *s, char *to, size_t max, bool *whole);
void darshan_stream_close(struct darshan_stream *s);
