#pragma once
/* The zip archives of torch.save (PyTorchStreamWriter over miniz): records one after another; their
 * data begin at multiples of 64 bytes of the archive, and a descriptor with sizes and CRC follows
 * them. */
#include <stdint.h>

#include "base/buf.h"
#include "checkpoint/formats.h"
#include "checkpoint/stream.h"

struct torch_zip {
	struct stream *stream;
	struct buf *directory; /* central directory so far */
	uint64_t begin;        /* of the archive in the stream */
	uint64_t entries;
	/* the record being written */
	uint64_t local, bytes;
	bool wide;
	char name[64];
};

void torch_zip_begin(struct torch_zip *z, struct stream *s, struct buf *directory);
/* Headers of a record of `bytes` bytes named "archive/<name>"; its data follow in the stream. */
void torch_zip_record(struct torch_zip *z, const char *name, uint64_t bytes);
void torch_zip_record_end(struct torch_zip *z, uint32_t crc);
/* A record of bytes at hand. */
void torch_zip_put(struct torch_zip *z, const char *name, const void *bytes, size_t n);
/* Directory and end records. */
void torch_zip_end(struct torch_zip *z);
