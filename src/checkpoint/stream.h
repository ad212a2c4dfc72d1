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
#include "checkpoint/pool.h"
#include "store/store.h"

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
