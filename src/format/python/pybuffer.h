#pragma once
/* The requests of a CPython file object open for reading: a BufferedReader over a FileIO. Given the
 * same calls, this issues the same reads (offset and size) that the interpreter issues; seeks cost
 * nothing here because a read names its offset.
 *
 * The law, with B the size of the buffer: read(n) takes what is buffered; then one direct read of
 * whole multiples of B if as much is wanted; then one read of B into the buffer for the rest, and
 * further reads of what the buffer has room for while it is short. A seek inside the buffer keeps
 * it, any other drops it. */
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"
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
