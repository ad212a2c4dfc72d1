#pragma once
/* Raw deflate as a stream (zlib), in memory lent by the caller: nothing is allocated while reading.
 */
#include <stdbool.h>
#include <stddef.h>
#include <zlib.h>

#include "base/err.h"

#define INFLATER_MEMORY 98304u

struct inflater {
	z_stream z;
	unsigned char *memory; /* INFLATER_MEMORY */
	size_t used;
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
