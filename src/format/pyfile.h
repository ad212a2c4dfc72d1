#pragma once
/* The requests of a CPython file object open for reading: a BufferedReader over a FileIO. Given the
 * same calls, this issues the same reads (offset and size) that the interpreter issues; seeks cost
 * nothing here because a read names its offset.
 *
 * The law, with B the size of the buffer: read(n) takes what is buffered; then one direct read of
 * whole multiples of B if as much is wanted; then one read of B into the buffer for the rest, and
 * further reads of what the buffer has room for while it is short. A seek inside the buffer keeps
 * it, any other drops it. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <zlib.h>

#include "base/err.h"
#include "codec/zip.h"
#include "format/reader.h"
#include "store/store.h"

struct pybuffer {
	const struct io *io;
	struct blob *blob;
	enum io_kind kind;   /* how the next requests are counted */
	uint32_t python;     /* 311 or 314 */
	uint64_t file_bytes; /* at open */
	unsigned char *buffer;
	size_t size;     /* B */
	size_t pos, end; /* the next byte and the end of what is buffered; both 0 when nothing is */
	uint64_t raw;    /* where the file object below stands */
};

/* B for files of a preferred request size: that size (Python 3.11), or that size but at most 8 MiB
 * and at least 128 KiB (Python 3.14). */
size_t pybuffer_size(uint32_t python, uint32_t block_bytes);
/* Begins at offset 0 of an open blob of file_bytes; `buffer` has `size` bytes. */
void pybuffer_start(struct pybuffer *p, const struct io *io, struct blob *blob, uint32_t python,
		    uint64_t file_bytes, void *buffer, size_t size);
uint64_t pybuffer_tell(const struct pybuffer *p);
/* seek(target) and seek(target, SEEK_CUR): the same here. */
void pybuffer_seek(struct pybuffer *p, uint64_t target);
/* seek(-before, SEEK_END): always drops the buffer. `before` is at most file_bytes. */
void pybuffer_seek_end(struct pybuffer *p, uint64_t before);
/* read(n): fewer than n bytes only at the end of the file. */
ssize_t pybuffer_read(struct pybuffer *p, void *out, size_t n, struct err *e);
/* readinto(n). */
ssize_t pybuffer_readinto(struct pybuffer *p, void *out, size_t n, struct err *e);
/* What read() of an empty file asks for. */
#define PYBUFFER_ALL_MIN 8192u
/* read(): all that is left, found out to be all by a last read of nothing. `out` must have room for
 * PYBUFFER_ALL_MIN bytes and for one byte more than all. ERR_DATA when the file grew meanwhile. */
ssize_t pybuffer_read_all(struct pybuffer *p, void *out, size_t out_bytes, struct err *e);

/* The requests of Python's gzip module reading a file, through a pybuffer: header, pieces of the
 * deflate stream, trailer, then the look for another member. */

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

/* The requests of Python's zipfile module reading one member of an archive: ZipFile's search for
 * the directory, ZipFile.open's local header, ZipExtFile's reads. Call by call the same reads as
 * the interpreter's, through a pybuffer. */

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
