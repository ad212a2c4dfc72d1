#pragma once
/* The two halves of the tfrecord format: how such a file looks, and how one is read. */
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

/* struct format_ops' functions, by their names there. */
size_t tfrecord_reader_bytes(const struct reader_config *c, const struct store *s);
int tfrecord_reader_init(void *memory, const struct reader_config *c, const struct io *io,
			 struct reader **out, struct err *e);
int tfrecord_read(struct reader *r, const char *path, const struct file_spec *f, uint64_t index,
		  struct sample *out, struct err *e);
int tfrecord_reader_close(struct reader *r, struct err *e);
