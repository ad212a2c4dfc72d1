#include "format/arrow/arrow_table.h"

#include <inttypes.h>
#include <string.h>

#include "base/little_endian.h"

/* The next message: 1; none: 0. */
static int next_message(const struct arrow_table *t, const struct io *io, uint64_t *at,
			struct arrow_entry *out, struct arrow_scratch *s, struct err *e)
{
	unsigned char prefix[ARROW_PREFIX_BYTES];
	uint64_t left = t->map.bytes - *at;
	int rc;

	if (left == 0)
		return 0; /* a stream that ends without its mark */
	if (left < sizeof(prefix))
		return err_set(e, ERR_DATA,
			       "the message at offset %" PRIu64 " is cut short: it has %" PRIu64
			       " bytes",
			       *at, left);
	rc = io_map_copy(io, IO_META, &t->map, *at, prefix, sizeof(prefix), e);
	if (rc < 0)
		return rc;
	if (le_get(prefix, 4) != ARROW_CONTINUES)
		return err_set(e, ERR_DATA,
			       "at offset %" PRIu64
			       " no message of an Arrow stream begins%s: it is damaged, or of "
			       "another format",
			       *at,
			       memcmp(prefix, "ARROW1", 6) == 0
				       ? " (this is Arrow's file format; `datasets` keeps streams)"
				       : "");
	out->at = *at + sizeof(prefix);
	out->metadata = le_get(prefix + 4, 4);
	left -= sizeof(prefix);
	if (out->metadata == 0)
		return 0;
	if (out->metadata > left || out->metadata > ARROW_METADATA_MAX)
		return err_set(e, ERR_DATA,
			       "the message at offset %" PRIu64 " is said to have %" PRIu64
			       " bytes of metadata; %" PRIu64
			       " are left in the file, and at most %u are supported",
			       *at, out->metadata, left, ARROW_METADATA_MAX);
	io_map_will_need(io, &t->map, out->at, out->metadata);
	rc = io_map_copy(io, IO_META, &t->map, out->at, s->metadata, (size_t)out->metadata, e);
	*at = out->at + out->metadata;
	return rc < 0 ? rc : 1;
}

static int add_batch(struct arrow_table *t, const struct io *io, struct arrow_entry *next,
		     uint64_t *at, struct arrow_scratch *s, struct err *e)
{
	int rc = arrow_batch_parse(s->metadata, (size_t)next->metadata, &t->schema, &s->batch, e);

	if (rc < 0)
		return rc;
	if (s->batch.body_bytes > t->map.bytes - *at)
		return err_set(e, ERR_DATA,
			       "the record batch at offset %" PRIu64 " has a body of %" PRIu64
			       " bytes, and %" PRIu64 " are left: the file is truncated",
			       next->at, s->batch.body_bytes, t->map.bytes - *at);
	if (t->batches == t->most)
		return err_set(e, ERR_DATA,
			       "it has more than %" PRIu32
			       " record batches: dataset.arrow.batch_rows must be the rows of one, "
			       "and dataset.num_samples_per_file those of a file",
			       t->most);
	if (__builtin_add_overflow(t->rows, s->batch.rows, &t->rows))
		return err_set(e, ERR_DATA, "its record batches have more rows than a file can");
	io_map_will_need(io, &t->map, *at, s->batch.body_bytes);
	next->first = t->rows - s->batch.rows;
	t->entry[t->batches++] = *next;
	*at += s->batch.body_bytes;
	return 0;
}

int arrow_table_list(struct arrow_table *t, const struct io *io, struct arrow_scratch *s,
		     struct err *e)
{
	struct arrow_entry next;
	uint64_t at = 0;
	int rc;

	t->rows = 0;
	t->batches = 0;
	rc = next_message(t, io, &at, &next, s, e);
	if (rc == 0)
		return err_set(e, ERR_DATA, "it has no schema");
	if (rc > 0)
		rc = arrow_schema_parse(s->metadata, (size_t)next.metadata, &t->schema, e);
	while (rc >= 0 && (rc = next_message(t, io, &at, &next, s, e)) > 0)
		rc = add_batch(t, io, &next, &at, s, e);
	return rc;
}

/* ---- a row ---- */

static const struct arrow_entry *entry_of(const struct arrow_table *t, uint64_t row)
{
	uint32_t low = 0, high = t->batches;

	/* the last that begins at or before the row */
	while (high - low > 1) {
		uint32_t middle = low + (high - low) / 2;

		if (t->entry[middle].first <= row)
			low = middle;
		else
			high = middle;
	}
	return &t->entry[low];
}

struct rows {
	uint64_t begin, end; /* elements of an array */
};

static int outside(const char *what, struct err *e)
{
	return err_set(e, ERR_DATA,
		       "%s of a record batch lie outside of their buffer: the file is damaged",
		       what);
}

/* Two neighbouring offsets of an array with offsets. */
static int cut(const struct arrow_table *t, const struct io *io, const struct arrow_node *node,
	       const struct arrow_range *buffer, uint64_t body, const struct rows *r,
	       struct rows *out, struct err *e)
{
	size_t width = (size_t)node->width / 8;
	unsigned char offset[8];
	const uint64_t at[2] = {r->begin, r->end};
	uint64_t found[2];
	int rc;

	for (int i = 0; i < 2; i++) {
		if (at[i] >= buffer->bytes / width)
			return outside("offsets", e);
		rc = io_map_copy(io, IO_META, &t->map, body + buffer->offset + at[i] * width,
				 offset, width, e);
		if (rc < 0)
			return rc;
		found[i] = le_get(offset, width);
	}
	if (found[0] > found[1] || found[1] > INT64_MAX)
		return outside("samples", e);
	*out = (struct rows){.begin = found[0], .end = found[1]};
	return 0;
}

static int look_if_there(const struct arrow_table *t, const struct io *io,
			 const struct arrow_range *buffer, uint64_t body, const struct rows *r,
			 struct err *e)
{
	unsigned char bits;

	if (buffer->bytes == 0 || r->begin == r->end)
		return 0;
	if (r->begin / 8 >= buffer->bytes)
		return outside("marks of missing values", e);
	return io_map_copy(io, IO_META, &t->map, body + buffer->offset + r->begin / 8, &bits, 1, e);
}

static int part_of(const struct arrow_range *buffer, uint64_t body, uint64_t begin_bits,
		   uint64_t end_bits, struct arrow_part *out, struct err *e)
{
	uint64_t begin = begin_bits / 8, end = end_bits / 8 + (end_bits % 8 > 0);

	if (end > buffer->bytes)
		return outside("values", e);
	*out = (struct arrow_part){.offset = body + buffer->offset + begin, .bytes = end - begin};
	return 0;
}

int arrow_table_row(const struct arrow_table *t, const struct io *io, uint64_t row,
		    struct arrow_scratch *s, struct arrow_part part[ARROW_NODES_MAX],
		    uint32_t *parts, struct err *e)
{
	const struct arrow_entry *entry = entry_of(t, row);
	uint64_t body = entry->at + entry->metadata;
	struct rows of[ARROW_NODES_MAX];
	/* the real one keeps this in memory; the offsets follow it in the file */
	int rc = store_map_copy(&t->map, entry->at, s->metadata, (size_t)entry->metadata, e);

	*parts = 0;
	if (rc == 0)
		rc = arrow_batch_parse(s->metadata, (size_t)entry->metadata, &t->schema, &s->batch,
				       e);
	if (rc == 0 && row - entry->first >= s->batch.rows)
		rc = outside("rows", e); /* changed since */
	for (uint32_t i = 0; rc == 0 && i < t->schema.nodes; i++) {
		const struct arrow_node *node = &t->schema.node[i];
		const struct arrow_range *buffer = &s->batch.buffer[node->buffer];
		struct rows r = {.begin = row - entry->first, .end = row - entry->first + 1}, in;
		uint64_t begin, end;

		if (node->parent >= 0)
			r = of[node->parent];
		of[i] = r;
		if (node->kind == ARROW_NOTHING)
			continue;
		rc = look_if_there(t, io, buffer, body, &r, e);
		if (rc < 0 || node->kind == ARROW_GROUP)
			continue;
		if (node->kind == ARROW_LISTS || node->kind == ARROW_BYTES) {
			rc = cut(t, io, node, buffer + 1, body, &r, &in, e);
			if (rc == 0 && node->kind == ARROW_LISTS)
				of[i] = in;
			else if (rc == 0 && in.end > UINT64_MAX / 8)
				rc = outside("samples", e);
			else if (rc == 0)
				rc = part_of(buffer + 2, body, 8 * in.begin, 8 * in.end,
					     &part[(*parts)++], e);
			continue;
		}
		if (__builtin_mul_overflow(r.begin, node->width, &begin) ||
		    __builtin_mul_overflow(r.end, node->width, &end))
			rc = outside("values", e);
		else if (node->kind == ARROW_PIECES)
			of[i] = (struct rows){.begin = begin, .end = end};
		else
			rc = part_of(buffer + 1, body, begin, end, &part[(*parts)++], e);
	}
	return rc;
}
