#pragma once
/* The requests of Python's zipfile module reading one member of an archive: ZipFile's search for
 * the directory, ZipFile.open's local header, ZipExtFile's reads. Call by call the same reads as
 * the interpreter's, through a pybuffer. */
#include <stdbool.h>
#include <stdint.h>

#include "codec/zip.h"
#include "format/inflater.h"
#include "format/python/pybuffer.h"

/* NumPy asks for this much at a time; nothing here is ever asked for more. */
#define PYZIP_PIECE 262144u
/* Compressed bytes that zlib has not taken yet, and the smallest read on top. */
#define PYZIP_IN (PYZIP_PIECE + 4096u)
/* What flushing a deflate stream can give on top. */
#define PYZIP_SLACK 65536u
#define PYZIP_OUT (PYZIP_PIECE + PYZIP_SLACK)

struct pyzip {
	struct pybuffer *py;
	struct inflater *inflater;
	unsigned char *in;  /* PYZIP_IN */
	unsigned char *out; /* PYZIP_OUT */
	bool check_crc;

	uint64_t directory;     /* where it begins: members lie before it */
	struct zip_entry entry; /* the open member */
	uint64_t pos;           /* of the member's next compressed byte in the file */
	uint64_t compressed_left, left;
	bool eof;
	uint32_t crc;
	size_t tail;              /* compressed bytes at in[0] that zlib has not taken */
	const unsigned char *run; /* bytes read and not yet given out */
	size_t run_bytes;
};

/* ZipFile(f): finds the directory and in it `name`. ERR_DATA when either is not there. */
int pyzip_find(struct pyzip *z, const char *name, struct zip_entry *out, struct err *e);
/* ZipFile.open(name). */
int pyzip_open(struct pyzip *z, const struct zip_entry *entry, struct err *e);
/* ZipExtFile.read(want), a run at a time: *run gets up to `want` (1..PYZIP_PIECE) bytes, valid
 * until the next call. 0 only at the end of the member. A read of n is repeated calls with what is
 * left of n. */
ssize_t pyzip_next(struct pyzip *z, size_t want, const unsigned char **run, struct err *e);
