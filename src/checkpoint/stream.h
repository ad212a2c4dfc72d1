#pragma once
/* A file being written: what a library would hand to its file, call by call, gathered into the
 * requests that its buffering makes of them. Payload is never copied when it is large: a request
 * is a list of slices of the pool.
 *
 * The first failure is kept and what follows does nothing, so that formats put one thing after
 * another and look once, at the end. One thread a stream. */
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#include "base/err.h"
#include "checkpoint/checkpoint_plan.h"
#include "store/store.h"

/* The content of tensors: a pool of bytes made once for each element type, of which a tensor is a
 * slice that begins at its phase and wraps around. A byte is a pure function of seed, file, tensor
 * and offset, any range has a CRC without being read, and writing costs no generation.
 *
 * Floating point elements are uniform in [0, 1) as torch.rand makes them, integers any byte; or all
 * are ones. Word i of a pool is rng_word(rng_key(seed, 0x636b7074, type), i). */

struct content_pool {
	unsigned char *bytes;   /* page aligned */
	size_t size;            /* whole pages */
	uint32_t *crc, *crc32c; /* of the first i * POOL_CRC_STEP bytes */
};

#define POOL_PAGE 4096u
#define POOL_CRC_STEP 65536u

/* Read-only after init: any thread may use it. Release after success. */
int content_pool_init(struct content_pool *p, enum checkpoint_datatype type, bool ones,
		      uint64_t seed, size_t size, struct err *e);
void content_pool_release(struct content_pool *p);

/* Where a tensor's slice begins: a page chosen by the words, and within it the place that the data
 * have in a page of their file, down to a multiple of 8, so that blocks of the file lie in memory
 * as O_DIRECT wants them. `file` names checkpoint and file (content_file_key). */
uint64_t content_phase(const struct content_pool *p, uint64_t file, uint64_t tensor,
		       uint64_t data_offset);
uint64_t content_file_key(uint64_t seed, int64_t epoch, int64_t step, const char *name);

/* n bytes from byte `at` of the slice that begins at `phase`. */
void content_copy(const struct content_pool *p, uint64_t phase, uint64_t at, void *out, size_t n);
/* Index of the first byte that differs, n when none does. */
size_t content_differs(const struct content_pool *p, uint64_t phase, uint64_t at, const void *bytes,
		       size_t n);
/* CRC-32 of the first n bytes of the slice; time grows with the logarithm of n. */
uint32_t content_crc(const struct content_pool *p, uint64_t phase, uint64_t n);
/* The same as CRC-32C. */
uint32_t content_crc32c(const struct content_pool *p, uint64_t phase, uint64_t n);

enum stream_law {
	/* CPython's BufferedWriter: what fits is kept, else the buffer is written; what is larger
	 * than the buffer is then written by itself, whole */
	STREAM_PYTHON,
	/* Rust's BufWriter: the same, but what is as large as the buffer is written by itself */
	STREAM_RUST,
	/* TensorFlow's FileOutputBuffer: as CPython's, but what is larger goes out in pieces of the
	 * buffer's size, the rest is kept */
	STREAM_PIECES,
	/* blocks at multiples of their size in the file, whatever they hold */
	STREAM_BLOCKS,
};

#define STREAM_PIECES_MAX 1024
#define STREAM_ARENA_MAX (1u << 20) /* of STREAM_BLOCKS */
#define STREAM_COPY_MAX 65536u

struct stream {
	const struct io *io;
	struct blob *blob; /* NULL: only counts */
	enum stream_law law;
	size_t limit;         /* buffer or block */
	uint64_t offset;      /* of the next byte put */
	uint64_t written;     /* bytes handed to the store */
	unsigned char *arena; /* copies of small puts */
	size_t arena_bytes, arena_used;
	struct iovec v[STREAM_PIECES_MAX];
	int pieces;
	size_t pending;
	int rc;
	struct err *e;
};

/* Bytes of arena that a law and limit need. */
size_t stream_arena_bytes(enum stream_law law, size_t limit);
/* `arena` has stream_arena_bytes; `e` gets the sentence of the first failure. io->stop ends the
 * stream with ERR_CANCELED. */
void stream_start(struct stream *s, enum stream_law law, size_t limit, void *arena,
		  const struct io *io, struct blob *blob, struct err *e);
/* One call of the library with n bytes. */
void stream_put(struct stream *s, const void *bytes, size_t n);
/* One call of the library with n bytes of a tensor. */
void stream_payload(struct stream *s, const struct content_pool *pool, uint64_t phase, uint64_t n);
/* Hands everything to the store. Returns the stream's result. */
int stream_flush(struct stream *s);
