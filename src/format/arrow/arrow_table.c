#include "format/arrow/arrow_table.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <sys/mman.h>

#include "base/little_endian.h"
#include "format/block_codec.h"

#define SIZE_BYTES 8u /* in front of a compressed buffer */
#define NOT_COMPRESSED UINT64_MAX

/* ---- memory for what is compressed ---- */

static void release(unsigned char **at, size_t *bytes)
{
	if (*at)
		munmap(*at, *bytes);
	*at = NULL;
	*bytes = 0;
}

static int make_room(unsigned char **at, size_t *bytes, uint64_t want, struct err *e)
{
	void *p;

	if (want <= *bytes)
		return 0;
	release(at, bytes);
	p = mmap(NULL, want, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
		 -1, 0);
	if (p == MAP_FAILED)
		return err_set(e, -ENOMEM,
			       "there is no memory for the %" PRIu64
			       " bytes of a record batch that is compressed",
			       want);
	*at = p;
	*bytes = (size_t)want;
	return 0;
}

void arrow_scratch_begin(struct arrow_scratch *s)
{
	s->decompress = s->list_only = false;
	s->rows.room = s->values.room = s->packed = NULL;
	s->rows.room_bytes = s->values.room_bytes = s->packed_bytes = 0;
	s->rows.held = s->values.held = 0;
	s->rows.used = s->values.used = 0;
}

void arrow_scratch_release(struct arrow_scratch *s)
{
	release(&s->rows.room, &s->rows.room_bytes);
	release(&s->values.room, &s->values.room_bytes);
	release(&s->packed, &s->packed_bytes);
	s->rows.held = s->values.held = 0;
}

/* Bytes of a buffer before it was compressed; 0 of one that has none. */
static int raw_bytes(const struct arrow_table *t, const struct arrow_range *b, uint64_t body,
		     uint64_t *raw, struct err *e)
{
	unsigned char size[SIZE_BYTES];
	int rc;

	*raw = 0;
	if (b->bytes == 0)
		return 0;
	if (b->bytes < SIZE_BYTES)
		return err_set(e, ERR_DATA, "a compressed buffer of %" PRIu64 " bytes has no size",
			       b->bytes);
	rc = store_map_copy(&t->map, body + b->offset, size, sizeof(size), e);
	*raw = le_get(size, sizeof(size));
	if (*raw == NOT_COMPRESSED)
		*raw = b->bytes - SIZE_BYTES;
	return rc;
}

static int decompress_buffer(const struct arrow_table *t, enum arrow_codec codec,
			     const struct arrow_range *b, uint64_t body, unsigned char *out,
			     uint64_t raw, struct arrow_scratch *s, struct err *e)
{
	struct codec_out o = {.out = out, .raw = (size_t)raw};
	size_t n = (size_t)b->bytes - SIZE_BYTES;
	unsigned char *in;
	int rc = make_room(&s->packed, &s->packed_bytes, b->bytes, e);

	if (rc == 0)
		rc = store_map_copy(&t->map, body + b->offset, s->packed, (size_t)b->bytes, e);
	if (rc < 0)
		return rc;
	in = s->packed + SIZE_BYTES;
	if (le_get(s->packed, SIZE_BYTES) == NOT_COMPRESSED && n == raw) {
		memcpy(out, in, n);
		return 0;
	}
	return codec == ARROW_ZSTD ? codec_zstd(in, n, &o, e) : codec_lz4_frame(in, n, &o, e);
}

/* All buffers of l->batch into its room, behind what is used of it, and their places there. Room
 * that has anything stays where it is. */
static int decompress(const struct arrow_table *t, struct arrow_loaded *l, uint64_t body,
		      struct arrow_scratch *s, struct err *e)
{
	struct arrow_batch *batch = &l->batch;
	uint64_t sum = l->used, raw;
	int rc = 0;

	for (uint32_t i = 0; rc == 0 && i < batch->buffers; i++) {
		rc = raw_bytes(t, &batch->buffer[i], body, &raw, e);
		if (rc == 0 && (raw > ARROW_ROOM_MAX || (sum += raw) > ARROW_ROOM_MAX))
			rc = err_set(e, ERR_DATA,
				     "a record batch, or the dictionaries of a row, have more than "
				     "1 GiB, decompressed, which is not supported");
	}
	if (rc == 0)
		rc = make_room(&l->room, &l->room_bytes,
			       l == &s->values ? ARROW_ROOM_MAX + 1 : sum + 1, e);
	for (uint32_t i = 0; rc == 0 && i < batch->buffers; i++) {
		struct arrow_range *b = &batch->buffer[i];

		rc = raw_bytes(t, b, body, &raw, e);
		if (rc == 0 && raw > l->room_bytes - l->used)
			rc = err_set(e, ERR_DATA, "the file changes while it is read");
		if (rc == 0 && b->bytes)
			rc = decompress_buffer(t, batch->codec, b, body, l->room + l->used, raw, s,
					       e);
		*b = (struct arrow_range){.offset = l->used, .bytes = raw};
		l->used += rc == 0 ? raw : 0;
	}
	return rc;
}

/* ---- messages ---- */

static int add_entry(struct arrow_table *t, struct arrow_entry *next, enum arrow_message type,
		     const struct arrow_batch *batch, struct err *e)
{
	if (t->entries == t->most)
		return err_set(e, ERR_DATA,
			       "it has more than %" PRIu32
			       " record batches: dataset.arrow.batch_rows must be the rows of one, "
			       "and dataset.num_samples_per_file those of a file",
			       t->most);
	if (batch->rows > UINT32_MAX)
		return err_set(e, ERR_DATA,
			       "the record batch at offset %" PRIu64 " is said to have %" PRIu64
			       " rows; at most %" PRIu32 " are supported",
			       next->at, batch->rows, UINT32_MAX);
	next->first = t->rows;
	next->rows = (uint32_t)batch->rows;
	next->dictionary = type == ARROW_DICTIONARY ? (uint16_t)(batch->dictionary + 1) : 0;
	next->delta = type == ARROW_DICTIONARY && batch->delta;
	next->earlier = 0;
	if (t->entries) {
		const struct arrow_entry *last = &t->entry[t->entries - 1];

		next->earlier = last->dictionary ? t->entries : last->earlier;
	}
	if (type == ARROW_BATCH) {
		t->batches++;
		t->rows += batch->rows;
	}
	t->entry[t->entries++] = *next;
	return 0;
}

/* The batch whose metadata were copied; its body is asked for unless it was before. */
static int add_batch(struct arrow_table *t, const struct io *io, struct arrow_entry *next,
		     enum arrow_message type, bool ask, struct arrow_scratch *s, struct err *e)
{
	struct arrow_loaded *l = type == ARROW_BATCH ? &s->rows : &s->values;
	uint64_t body = next->at + next->metadata;
	int rc = arrow_batch_parse(s->metadata, next->metadata, type, &t->schema, &l->batch, e);

	if (rc < 0)
		return rc;
	if (l->batch.body_bytes > t->map.bytes - body)
		return err_set(e, ERR_DATA,
			       "the record batch at offset %" PRIu64 " has a body of %" PRIu64
			       " bytes, and %" PRIu64 " are left: the file is truncated",
			       next->at, l->batch.body_bytes, t->map.bytes - body);
	if (ask && !s->list_only)
		io_map_will_need(io, &t->map, body, l->batch.body_bytes);
	rc = add_entry(t, next, type, &l->batch, e);
	if (rc < 0 || l->batch.codec == ARROW_PLAIN)
		return rc;
	t->compressed = true;
	if (s->list_only)
		return 0;
	rc = io_map_touch(io, IO_DATA, &t->map, body, l->batch.body_bytes, e);
	l->used = 0;
	return rc == 0 && s->decompress ? decompress(t, l, body, s, e) : rc;
}

/* The prefix of the message at `at`: 1; none: 0. */
static int next_message(const struct arrow_table *t, const struct io *io, uint64_t at,
			struct arrow_entry *out, struct err *e)
{
	unsigned char prefix[ARROW_PREFIX_BYTES];
	uint64_t left = t->map.bytes - at;
	int rc;

	if (left == 0)
		return 0; /* a stream that ends without its mark */
	if (left < sizeof(prefix))
		return err_set(e, ERR_DATA,
			       "the message at offset %" PRIu64 " is cut short: it has %" PRIu64
			       " bytes",
			       at, left);
	rc = io_map_copy(io, IO_META, &t->map, at, prefix, sizeof(prefix), e);
	if (rc < 0)
		return rc;
	if (le_get(prefix, 4) != ARROW_CONTINUES)
		return err_set(e, ERR_DATA,
			       "at offset %" PRIu64
			       " no message of an Arrow stream begins: it is damaged, or of "
			       "another format",
			       at);
	*out = (struct arrow_entry){.at = at + sizeof(prefix),
				    .metadata = (uint32_t)le_get(prefix + 4, 4)};
	left -= sizeof(prefix);
	if (out->metadata == 0)
		return 0;
	if (out->metadata > left || out->metadata > ARROW_METADATA_MAX)
		return err_set(e, ERR_DATA,
			       "the message at offset %" PRIu64 " is said to have %" PRIu32
			       " bytes of metadata; %" PRIu64
			       " are left in the file, and at most %u are supported",
			       at, out->metadata, left, ARROW_METADATA_MAX);
	return 1;
}

static int copy_metadata(const struct arrow_table *t, const struct io *io,
			 const struct arrow_entry *next, struct arrow_scratch *s, struct err *e)
{
	return io_map_copy(io, IO_META, &t->map, next->at, s->metadata, next->metadata, e);
}

/* In a stream each message is read when the one before was. */
static int list_stream(struct arrow_table *t, const struct io *io, struct arrow_scratch *s,
		       struct err *e)
{
	struct arrow_entry next;
	uint64_t at = 0;
	int rc;

	while ((rc = next_message(t, io, at, &next, e)) > 0) {
		struct arrow_loaded *l = &s->rows;
		unsigned type;

		io_map_will_need(io, &t->map, next.at, next.metadata);
		rc = copy_metadata(t, io, &next, s, e);
		if (rc < 0)
			return rc;
		at = next.at + next.metadata;
		if (t->schema.nodes == 0) {
			rc = arrow_schema_parse(s->metadata, next.metadata, &t->schema, e);
			if (rc < 0)
				return rc;
			continue;
		}
		rc = arrow_message_type(s->metadata, next.metadata, &type, e);
		if (rc < 0)
			return rc;
		if (type == ARROW_DICTIONARY)
			l = &s->values;
		else
			type = ARROW_BATCH;
		rc = add_batch(t, io, &next, type, true, s, e);
		if (rc < 0)
			return rc;
		at += l->batch.body_bytes;
	}
	if (rc == 0 && t->schema.nodes == 0)
		return err_set(e, ERR_DATA, "it has no schema");
	return rc;
}

static int list_blocks(struct arrow_table *t, const struct io *io, uint64_t footer, uint64_t n,
		       enum arrow_message type, struct arrow_scratch *s, struct err *e)
{
	uint64_t first, count;
	int rc = arrow_footer_blocks(&t->map, footer, n, type, &first, &count, e);

	for (uint64_t i = 0; rc == 0 && i < count; i++) {
		struct arrow_block b;
		struct arrow_entry next;

		rc = arrow_footer_block(&t->map, first, i, &b, e);
		if (rc < 0)
			return rc;
		if (!s->list_only)
			io_map_will_need(io, &t->map, b.at, b.metadata + b.body_bytes);
		rc = next_message(t, io, b.at, &next, e);
		if (rc < 0)
			return rc;
		if (rc == 0 || b.metadata != next.metadata + ARROW_PREFIX_BYTES)
			return err_set(e, ERR_DATA,
				       "the footer and the message at offset %" PRIu64
				       " differ: the file is damaged",
				       b.at);
		rc = copy_metadata(t, io, &next, s, e);
		if (rc == 0)
			rc = add_batch(t, io, &next, type, false, s, e);
	}
	return rc;
}

/* In a file the footer comes first, which is at its end. */
static int list_file(struct arrow_table *t, const struct io *io, struct arrow_scratch *s,
		     struct err *e)
{
	unsigned char tail[ARROW_TAIL_BYTES];
	struct arrow_entry schema;
	uint64_t n, footer, end = t->map.bytes - sizeof(tail);
	int rc;

	io_map_will_need(io, &t->map, end, sizeof(tail));
	rc = io_map_copy(io, IO_META, &t->map, end, tail, sizeof(tail), e);
	if (rc < 0)
		return rc;
	n = le_get(tail, 4);
	if (memcmp(tail + 4, ARROW_MAGIC, 6) != 0 || n > end - ARROW_BEGIN_BYTES)
		return err_set(e, ERR_DATA,
			       "it begins as a file of Arrow and does not end as one: it is "
			       "truncated");
	footer = end - n;
	io_map_will_need(io, &t->map, footer, n);
	rc = n ? io_map_touch(io, IO_META, &t->map, footer, n, e) : 0;
	if (rc == 0)
		rc = next_message(t, io, ARROW_BEGIN_BYTES, &schema, e);
	if (rc == 0)
		return err_set(e, ERR_DATA, "it has no schema");
	if (rc > 0)
		rc = copy_metadata(t, io, &schema, s, e);
	if (rc == 0)
		rc = arrow_schema_parse(s->metadata, schema.metadata, &t->schema, e);
	if (rc == 0)
		rc = list_blocks(t, io, footer, n, ARROW_DICTIONARY, s, e);
	return rc < 0 ? rc : list_blocks(t, io, footer, n, ARROW_BATCH, s, e);
}

int arrow_table_list(struct arrow_table *t, const struct io *io, struct arrow_scratch *s,
		     struct err *e)
{
	unsigned char begin[ARROW_BEGIN_BYTES] = {0};
	int rc = 0;

	t->rows = 0;
	t->batches = t->entries = 0;
	t->compressed = false;
	t->schema.nodes = 0;
	s->rows.held = s->values.held = 0;
	if (t->map.bytes >= ARROW_BEGIN_BYTES + ARROW_TAIL_BYTES)
		rc = store_map_copy(&t->map, 0, begin, sizeof(begin), e);
	if (rc < 0)
		return rc;
	return memcmp(begin, ARROW_MAGIC, 6) == 0 ? list_file(t, io, s, e)
						  : list_stream(t, io, s, e);
}

/* ---- a row ---- */

static uint32_t entry_of(const struct arrow_table *t, uint64_t row)
{
	uint32_t low = 0, high = t->entries;

	/* the last that begins at or before the row */
	while (high - low > 1) {
		uint32_t middle = low + (high - low) / 2;

		if (t->entry[middle].first <= row)
			low = middle;
		else
			high = middle;
	}
	return low;
}

struct rows {
	uint64_t begin, end; /* elements of an array */
};

/* A batch in which rows are looked for. */
struct look {
	const struct io *io; /* NULL: nothing of it is counted, because it lies in memory */
	struct store_map map;
	uint64_t body;
	const struct arrow_batch *batch;
	struct arrow_part *part;
	uint32_t *parts;
};

static int outside(const char *what, struct err *e)
{
	return err_set(e, ERR_DATA,
		       "%s of a record batch lie outside of their buffer: the file is damaged",
		       what);
}

static int look_at(const struct look *l, const struct arrow_range *buffer, uint64_t offset,
		   void *out, size_t n, struct err *e)
{
	uint64_t at = l->body + buffer->offset + offset;

	return l->io ? io_map_copy(l->io, IO_META, &l->map, at, out, n, e)
		     : store_map_copy(&l->map, at, out, n, e);
}

/* Two neighbouring offsets of an array with offsets. */
static int cut(const struct look *l, const struct arrow_node *node,
	       const struct arrow_range *buffer, const struct rows *r, struct rows *out,
	       struct err *e)
{
	size_t width = (size_t)node->width / 8;
	unsigned char offset[8];
	const uint64_t at[2] = {r->begin, r->end};
	uint64_t found[2];
	int rc;

	for (int i = 0; i < 2; i++) {
		if (at[i] >= buffer->bytes / width)
			return outside("offsets", e);
		rc = look_at(l, buffer, at[i] * width, offset, width, e);
		if (rc < 0)
			return rc;
		found[i] = le_get(offset, width);
	}
	if (found[0] > found[1] || found[1] > INT64_MAX)
		return outside("samples", e);
	*out = (struct rows){.begin = found[0], .end = found[1]};
	return 0;
}

/* *there: of the first of the rows. */
static int look_if_there(const struct look *l, const struct arrow_range *buffer,
			 const struct rows *r, bool *there, struct err *e)
{
	unsigned char bits;
	int rc;

	*there = true;
	if (buffer->bytes == 0 || r->begin == r->end)
		return 0;
	if (r->begin / 8 >= buffer->bytes)
		return outside("marks of missing values", e);
	rc = look_at(l, buffer, r->begin / 8, &bits, 1, e);
	*there = rc == 0 && bits >> r->begin % 8 & 1;
	return rc;
}

static int add_part(const struct look *l, const struct arrow_range *buffer, uint64_t begin,
		    uint64_t bytes, struct err *e)
{
	struct arrow_part *p = &l->part[*l->parts];

	if (begin > buffer->bytes || bytes > buffer->bytes - begin)
		return outside("values", e);
	*p = (struct arrow_part){.offset = l->body + buffer->offset + begin, .bytes = bytes};
	if (!l->io)
		p->at = l->map.at + p->offset;
	++*l->parts;
	return 0;
}

static int add_bits(const struct look *l, const struct arrow_range *buffer, uint64_t begin,
		    uint64_t end, struct err *e)
{
	return add_part(l, buffer, begin / 8, end / 8 + (end % 8 > 0) - begin / 8, e);
}

#define VIEW_BYTES 16u
#define VIEW_INSIDE 12u

/* Bytes of one row: in the view, or where it points to. */
static int add_view(const struct look *l, const struct arrow_range *buffer, uint32_t buffers,
		    uint64_t row, struct err *e)
{
	unsigned char view[VIEW_BYTES];
	uint64_t n, which;
	int rc;

	if (row >= buffer->bytes / VIEW_BYTES)
		return outside("views", e);
	rc = look_at(l, buffer, row * VIEW_BYTES, view, sizeof(view), e);
	if (rc < 0)
		return rc;
	n = le_get(view, 4);
	which = le_get(view + 8, 4);
	if (n <= VIEW_INSIDE)
		return add_part(l, buffer, row * VIEW_BYTES + 4, n, e);
	if (n > INT32_MAX || which >= buffers)
		return outside("samples", e);
	return add_part(l, buffer + 1 + which, le_get(view + 12, 4), n, e);
}

/* Elements `r` of an array that holds bytes; *in gets those of the next array. *stands_for: the
 * value that the only one has of a dictionary; UINT64_MAX: none. */
static int array_rows(const struct look *l, const struct arrow_node *node, uint32_t i,
		      const struct rows *r, struct rows *in, uint64_t *stands_for, struct err *e)
{
	bool there = true;

	const struct arrow_batch *batch = l->batch;
	const struct arrow_range *buffer = &batch->buffer[batch->first[i]];
	uint64_t begin, end;
	int rc = 0;

	*stands_for = UINT64_MAX;
	if (node->kind == ARROW_NOTHING)
		return 0;
	rc = look_if_there(l, buffer, r, &there, e);
	if (rc < 0 || node->kind == ARROW_GROUP)
		return rc;
	switch (node->kind) {
	case ARROW_LISTS:
		return cut(l, node, buffer + 1, r, in, e);
	case ARROW_BYTES:
		rc = cut(l, node, buffer + 1, r, in, e);
		return rc < 0 ? rc : add_part(l, buffer + 2, in->begin, in->end - in->begin, e);
	case ARROW_VIEWS:
		/* of several rows the views alone */
		if (r->end - r->begin == 1)
			return add_view(l, buffer + 1,
					batch->buffers - batch->first[i] - node->buffers, r->begin,
					e);
		break;
	default:
		break;
	}
	if (__builtin_mul_overflow(r->begin, node->width, &begin) ||
	    __builtin_mul_overflow(r->end, node->width, &end))
		return outside("values", e);
	if (node->kind == ARROW_PIECES) {
		*in = (struct rows){.begin = begin, .end = end};
		return 0;
	}
	rc = add_bits(l, buffer + 1, begin, end, e);
	if (rc == 0 && node->kind == ARROW_INDEX && r->end - r->begin == 1 && there) {
		unsigned char number[8];

		rc = look_at(l, buffer + 1, begin / 8, number, (size_t)node->width / 8, e);
		*stands_for = le_get(number, (size_t)node->width / 8);
	}
	return rc;
}

/* The batch of entry `i`, which is to be looked into. */
static int load(const struct arrow_table *t, const struct io *io, uint32_t i,
		struct arrow_loaded *l, struct arrow_scratch *s, struct look *out, struct err *e)
{
	const struct arrow_entry *entry = &t->entry[i];
	uint64_t body = entry->at + entry->metadata;
	int rc = 0;

	out->batch = &l->batch;
	if (l->held != i + 1) {
		l->held = 0;
		/* the real one keeps this in memory; the offsets follow it in the file */
		rc = store_map_copy(&t->map, entry->at, s->metadata, entry->metadata, e);
		if (rc == 0)
			rc = arrow_batch_parse(s->metadata, entry->metadata,
					       entry->dictionary ? ARROW_DICTIONARY : ARROW_BATCH,
					       &t->schema, &l->batch, e);
		if (rc == 0 &&
		    (l->batch.rows != entry->rows || l->batch.body_bytes > t->map.bytes - body))
			rc = outside("rows", e); /* changed since */
		if (rc == 0 && l->batch.codec != ARROW_PLAIN) {
			if (l == &s->rows)
				l->used = 0;
			rc = decompress(t, l, body, s, e);
			l->held = rc == 0 ? i + 1 : 0;
		}
	}
	out->io = l->held ? NULL : io;
	out->body = l->held ? 0 : body;
	out->map = l->held ? (struct store_map){.at = l->room, .bytes = l->room_bytes} : t->map;
	return rc;
}

/* Value `v` of dictionary `which`, as it is for the rows of entry `i`. */
static int look_up(const struct arrow_table *t, const struct io *io, uint32_t i, uint32_t which,
		   uint64_t v, struct arrow_scratch *s, struct look *l, struct err *e)
{
	uint64_t before = 0, values = 0;
	struct rows r, in;
	uint32_t at;
	int rc;

	/* back to the batch that the deltas follow */
	for (at = t->entry[i].earlier; at; at = t->entry[at - 1].earlier)
		if (t->entry[at - 1].dictionary == which + 1) {
			values += t->entry[at - 1].rows;
			if (!t->entry[at - 1].delta)
				break;
		}
	if (v >= values)
		return outside("values of a dictionary", e);
	for (at = t->entry[i].earlier; at; at = t->entry[at - 1].earlier) {
		if (t->entry[at - 1].dictionary != which + 1)
			continue;
		before = values -= t->entry[at - 1].rows;
		if (v >= before)
			break;
	}
	rc = load(t, io, at - 1, &s->values, s, l, e);
	r = (struct rows){.begin = v - before, .end = v - before + 1};
	return rc < 0 ? rc : array_rows(l, &t->schema.dictionary[which].values, 0, &r, &in, &v, e);
}

int arrow_table_row(const struct arrow_table *t, const struct io *io, uint64_t row,
		    struct arrow_scratch *s, struct arrow_part part[ARROW_PARTS_MAX],
		    uint32_t *parts, struct err *e)
{
	struct {
		uint32_t dictionary;
		uint64_t value;
	} stands[ARROW_NODES_MAX + 1];
	uint32_t at = entry_of(t, row), standing = 0;
	uint64_t in_batch = row - t->entry[at].first;
	struct rows of[ARROW_NODES_MAX];
	struct look l = {.part = part, .parts = parts};
	int rc = load(t, io, at, &s->rows, s, &l, e);

	/* values of several dictionaries are given out together */
	s->values.used = 0;
	s->values.held = 0;
	*parts = 0;
	if (rc == 0 && in_batch >= t->entry[at].rows)
		rc = outside("rows", e);
	for (uint32_t i = 0; rc == 0 && i < t->schema.nodes; i++) {
		const struct arrow_node *node = &t->schema.node[i];
		struct rows r = {.begin = in_batch, .end = in_batch + 1};

		if (node->parent >= 0)
			r = of[node->parent];
		of[i] = r;
		rc = array_rows(&l, node, i, &r, &of[i], &stands[standing].value, e);
		stands[standing].dictionary = node->dictionary;
		if (rc == 0 && stands[standing].value != UINT64_MAX)
			standing++;
	}
	for (uint32_t i = 0; rc == 0 && i < standing; i++)
		rc = look_up(t, io, at, stands[i].dictionary, stands[i].value, s, &l, e);
	return rc;
}
