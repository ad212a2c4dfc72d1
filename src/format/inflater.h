#pragma once
/* Raw deflate as a stream (zlib), in memory lent by the caller: nothing is allocated while reading.
 */
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>
#include <zlib.h>

#include "base/err.h"

/* Lends zlib its memory, which it takes when a stream begins and keeps. */
struct zlib_memory {
	unsigned char *base;
	size_t bytes, used;
};

/* `z` allocates from `m` from now on. */
void zlib_memory_lend(struct zlib_memory *m, z_stream *z);

#define INFLATER_MEMORY 98304u

struct inflater {
	z_stream z;
	struct zlib_memory memory; /* INFLATER_MEMORY */
	bool ready, ended;
};

/* `f` must stay where it is. */
void inflater_init(struct inflater *f, unsigned char *memory);
/* Begins a new stream. */
int inflater_start(struct inflater *f, struct err *e);
/* Inflates from in[0..*in_n) into out[0..out_n). *in_n becomes what was consumed; returns what was
 * made. `ended` is set once the stream has ended. ERR_DATA when it is damaged. */
ssize_t inflater_run(struct inflater *f, const unsigned char *in, size_t *in_n, unsigned char *out,
		     size_t out_n, struct err *e);
