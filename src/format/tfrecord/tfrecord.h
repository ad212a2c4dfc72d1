#pragma once
/* How a TFRecord file and its index look, for readers other than the format's own. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "format/format.h"

/* The tf.train.Example message (protocol buffers) that a TFRecord record of DLIO's holds: a map
 * with "image" (one byte string) and "size" (one integer). */

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

#define TFRECORD_HEAD_BYTES 12 /* length and its checksum */
#define TFRECORD_TAIL_BYTES 4  /* the checksum of the payload */

struct tfrecord_layout {
	struct example_layout example;
	uint64_t record_bytes; /* all records of a file are alike */
	uint64_t file_bytes;
};

/* ERR_USAGE when the sizes are impossible. */
int tfrecord_layout_of(const struct file_spec *f, struct tfrecord_layout *out, struct err *e);

/* Path of the index that DALI wants of a TFRecord file: a line "<offset> <bytes>" per record,
 * framing included. The companion of every tfrecord blob (format.h, sidecar_*). `which` is 0. */
int tfrecord_index_path(const char *path, uint32_t which, char *out, size_t out_size);
