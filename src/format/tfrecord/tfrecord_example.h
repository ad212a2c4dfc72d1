#pragma once
/* The tf.train.Example message (protocol buffers) that a TFRecord record of DLIO's holds: a map
 * with "image" (one byte string) and "size" (one integer). */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

/* A message of protocol buffers must be smaller than 2 GiB. */
#define EXAMPLE_BYTES_MAX ((uint64_t)INT32_MAX)
#define EXAMPLE_EDGE_MAX 96

/* The bytes around the image in the message as we write it: image first. */
struct example_layout {
	uint64_t image_bytes, bytes; /* of the whole message */
	size_t head_bytes, tail_bytes;
	unsigned char head[EXAMPLE_EDGE_MAX], tail[EXAMPLE_EDGE_MAX];
};

/* False when the message would be too large. */
bool example_layout_of(uint64_t image_bytes, struct example_layout *out);

struct example {
	const unsigned char *image; /* NULL: there is none */
	size_t image_bytes;
	bool has_size;
	int64_t size;
};

/* Finds both in any message that a parser of protocol buffers accepts: any order, unknown fields
 * and features, the last of several of one name. Points into `bytes`. ERR_DATA for a message that
 * is not one, with the place in it. */
int example_parse(const void *bytes, size_t n, struct example *out, struct err *e);
