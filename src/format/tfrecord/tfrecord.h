#pragma once
/* How a TFRecord file and its index look, for readers other than the format's own. */
#include "format/format.h"
#include "format/tfrecord/tfrecord_example.h"

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
