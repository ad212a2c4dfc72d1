#pragma once
/* Archives of torch.save: written for tensors of the plan, and read back, anyone's. */
#include <stdint.h>

#include "base/buf.h"
#include "checkpoint/formats.h"
#include "checkpoint/pickle.h"
#include "checkpoint/stream.h"

/* A whole archive with these tensors: the first `tensors` of w's file beginning at `first`, or one
 * tensor by itself when `single`. What pickles, torch.load gives back. */
void torch_archive(struct file_writer *w, uint64_t first, uint64_t tensors, bool single);
/* 0..n-1 in the order of their decimal names: the number after x, n after the last. */
uint64_t torch_next_name(uint64_t x, uint64_t n);

/* Larger directories and pickles are refused. */
#define TORCH_META_MAX (256u << 20)

/* Calls fn for each tensor with the place of its storage's bytes in the file. `place` and `bytes`
 * are those of the whole storage. */
typedef int (*torch_tensor_fn)(void *arg, const struct pickle_tensor *t, uint64_t place,
			       uint64_t bytes, struct pybuffer *py, struct err *e);

/* The archive in [begin, end) of the open file, with the requests that torch.load makes over a file
 * object, whose buffer has `buffer` bytes (READ_FRAMEWORK), or with few larger ones. */
int torch_read_archive(struct file_reader *r, uint64_t begin, uint64_t end, size_t buffer,
		       torch_tensor_fn fn, void *arg, struct err *e);
/* Checks what the pickle says of a tensor against the plan's. */
int torch_expect(struct file_reader *r, const struct pickle_tensor *t,
		 const struct checkpoint_tensor *want, uint64_t bytes, struct err *e);

/* The zip archives of torch.save (PyTorchStreamWriter over miniz): records one after another; their
 * data begin at multiples of 64 bytes of the archive, and a descriptor with sizes and CRC follows
 * them. */

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
