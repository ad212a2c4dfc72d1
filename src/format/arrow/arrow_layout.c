#include "format/arrow/arrow_layout.h"

#include <inttypes.h>

static uint64_t padded(uint64_t n)
{
	return (n + 7) & ~(uint64_t)7;
}

static uint64_t body_of(uint64_t rows, uint64_t sample_bytes,
			struct arrow_range buffer[ARROW_OWN_BUFFERS])
{
	uint64_t at = 0;
	const uint64_t bytes[ARROW_OWN_BUFFERS] = {[ARROW_OFFSETS] =
							   (rows + 1) * ARROW_OFFSET_BYTES,
						   [ARROW_SAMPLES] = rows * sample_bytes,
						   [ARROW_LABELS] = rows * ARROW_LABEL_BYTES};

	for (unsigned i = 0; i < ARROW_OWN_BUFFERS; i++) {
		buffer[i] = (struct arrow_range){.offset = at, .bytes = bytes[i]};
		at += padded(bytes[i]);
	}
	return at;
}

int arrow_layout_of(const struct file_spec *f, struct arrow_layout *l, struct err *e)
{
	const struct arrow_shape *shape = f->own;
	unsigned char head[ARROW_OWN_METADATA_MAX];
	struct arrow_range buffer[ARROW_OWN_BUFFERS] = {0};
	uint64_t bytes = file_spec_sample_bytes_checked(f), rest, whole, last = 0;

	if (bytes > INT32_MAX)
		return err_set(e, ERR_USAGE,
			       "a sample of these dimensions is larger than 2 GiB - 1, the most "
			       "that a column of type binary takes: lower "
			       "dataset.record_length_bytes");
	*l = (struct arrow_layout){.sample_bytes = bytes,
				   .samples = f->samples,
				   .batch_rows = shape ? shape->batch_rows : ARROW_BATCH_ROWS};
	/* offsets of 32 bits */
	if (bytes && l->batch_rows > INT32_MAX / bytes)
		l->batch_rows = INT32_MAX / bytes;
	l->schema_bytes = arrow_schema_write(head);
	l->head_bytes = arrow_batch_write(head, 0, buffer, 0);
	whole = f->samples / l->batch_rows;
	rest = f->samples % l->batch_rows;
	l->batches = whole + (rest > 0);
	l->batch_bytes = l->head_bytes + body_of(l->batch_rows, bytes, buffer);
	if (rest)
		last = l->head_bytes + body_of(rest, bytes, buffer);
	if (__builtin_mul_overflow(whole, l->batch_bytes, &l->file_bytes) ||
	    __builtin_add_overflow(l->file_bytes, last + l->schema_bytes + ARROW_PREFIX_BYTES,
				   &l->file_bytes) ||
	    l->file_bytes > INT64_MAX)
		return err_set(e, ERR_USAGE,
			       "a file of %" PRIu64 " such samples is larger than a file can be: "
			       "lower dataset.num_samples_per_file",
			       f->samples);
	return 0;
}

void arrow_place_of(const struct arrow_layout *l, uint64_t batch, struct arrow_place *out)
{
	out->at = l->schema_bytes + batch * l->batch_bytes;
	out->first = batch * l->batch_rows;
	out->rows =
		l->samples - out->first < l->batch_rows ? l->samples - out->first : l->batch_rows;
	out->body_bytes = body_of(out->rows, l->sample_bytes, out->buffer);
}

uint64_t arrow_sample_at(const struct arrow_layout *l, uint64_t index)
{
	struct arrow_place p;

	arrow_place_of(l, index / l->batch_rows, &p);
	return p.at + l->head_bytes + p.buffer[ARROW_SAMPLES].offset +
	       (index - p.first) * l->sample_bytes;
}
