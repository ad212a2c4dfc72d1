#pragma once
/* The index that DALI wants beside a TFRecord file: a line "<offset> <bytes>" per record, framing
 * included. The companion of every tfrecord blob (format.h, sidecar_*). */
#include "format/format.h"

int tfrecord_index_path(const char *path, uint32_t which, char *out, size_t out_size);
uint64_t tfrecord_index_bytes(const struct file_spec *f, uint32_t which);
int tfrecord_index_write(const struct io *io, struct blob *b, const char *path,
			 const struct file_spec *f, uint32_t which, void *scratch,
			 size_t scratch_bytes, struct err *e);
int tfrecord_index_verify(const struct io *io, const char *path, const struct file_spec *f,
			  uint32_t which, void *scratch, size_t scratch_bytes, struct err *e);
