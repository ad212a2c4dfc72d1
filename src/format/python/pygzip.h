#pragma once
/* The requests of Python's gzip module reading a file, through a pybuffer: header, pieces of the
 * deflate stream, trailer, then the look for another member. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <zlib.h>

#include "format/inflater.h"
#include "format/python/pybuffer.h"

/* What the module asks its file for at a time: io.DEFAULT_BUFFER_SIZE, 128 KiB since 3.12. */
#define PYGZIP_PIECE_311 8192u
#define PYGZIP_PIECE_MAX 131072u

struct pygzip {
	struct pybuffer *py;
	struct inflater *inflater;
	unsigned char *in; /* PYGZIP_PIECE_MAX */
	size_t piece;      /* asked for at a time */
	size_t at, end;    /* read from the file and not used yet */
	bool check;        /* compare checksums */
	bool knows_end;    /* ask nothing where the file's size says that nothing is left */
	bool in_member;
	uint32_t crc, length; /* of the member so far */
};

/* Begins at the file's start. `inflater` was initialised, here or by an earlier start. */
void pygzip_start(struct pygzip *g, struct pybuffer *py, struct inflater *inflater,
		  unsigned char *in, size_t piece);
/* One call of the decompressing reader's read(n): some bytes, 0 at the end (each further call looks
 * for another member again). ERR_DATA when the file is damaged or cut. */
ssize_t pygzip_read(struct pygzip *g, void *out, size_t n, struct err *e);
