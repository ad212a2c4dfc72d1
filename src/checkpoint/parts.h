#pragma once
/* What the files of this folder share of open checkpoints. */
#include "checkpoint/checkpoint.h"
#include "checkpoint/formats.h"

struct checkpoint {
	const struct workload *w;
	struct checkpoint_plan plan;
	const struct checkpoint_format_ops *format;
	struct checkpoint_common common;
};

struct checkpoint_rank {
	const struct checkpoint *c;
	int64_t rank;
	struct file_writer writer;
	struct stream *stream;
	struct blob *blob;
	unsigned char *work; /* copies of a stream, or READ_PIECE bytes read */
	size_t work_bytes;
	unsigned char *buffer; /* of a file object that is read */
	size_t buffer_bytes;   /* as the file system's blocks are */
	struct buf read_meta;
};

enum stream_law checkpoint_law(const struct checkpoint *c);
/* Buffer of the library, or block. */
size_t checkpoint_limit(const struct checkpoint_rank *r);
void checkpoint_file_of(const struct checkpoint *c, int64_t rank, uint64_t index,
			struct checkpoint_file *out);
uint64_t checkpoint_measure(struct checkpoint_rank *r, const struct checkpoint_file *f,
			    unsigned part);
/* "<folder>/global_epoch<E>_step<S>/<name><suffix>"; heap. */
char *checkpoint_path(const struct checkpoint *c, int64_t epoch, int64_t step, const char *name,
		      const char *suffix);
