#pragma once
/* Where everything lies in a file of format arrow_stream: a schema, batches of rows, and a mark of
 * the end. A row is a sample (binary) and a label (int64). In a batch's body the offsets of the
 * samples come first, then the samples, then the labels, each padded to 8 bytes; so a sample's
 * place follows from its number. */
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "format/arrow/arrow_message.h"
#include "format/format.h"

/* `datasets` 5.2.0, config.py: ARROW_RECORD_BATCH_SIZE_FOR_BINARY_DATASETS. */
#define ARROW_BATCH_ROWS 100
#define ARROW_LABEL_BYTES 8u
#define ARROW_OFFSET_BYTES 4u

/* What dataset.arrow says (format_ops.own). */
struct arrow_shape {
	uint64_t batch_rows;
};

struct arrow_layout {
	uint64_t sample_bytes, samples;
	uint64_t batch_rows; /* of all but the last */
	uint64_t batches;
	uint64_t batch_bytes;            /* of all but the last, with its metadata */
	size_t schema_bytes, head_bytes; /* metadata, with prefixes */
	uint64_t file_bytes;
};

/* Batch `i`: its place, rows, first sample and the ranges of its buffers. */
struct arrow_place {
	uint64_t at, rows, first, body_bytes;
	struct arrow_range buffer[ARROW_OWN_BUFFERS];
};
/* Of arrow_place.buffer. */
enum { ARROW_OFFSETS = 1, ARROW_SAMPLES = 2, ARROW_LABELS = 4 };

/* ERR_USAGE when such a file cannot exist. */
int arrow_layout_of(const struct file_spec *f, struct arrow_layout *l, struct err *e);
void arrow_place_of(const struct arrow_layout *l, uint64_t batch, struct arrow_place *out);
/* Where sample `index` begins in the file. */
uint64_t arrow_sample_at(const struct arrow_layout *l, uint64_t index);
