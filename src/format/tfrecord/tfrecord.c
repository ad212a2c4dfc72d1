/* tfrecord: TensorFlow's records, each a tf.train.Example with the sample's bytes and their number.
 *
 * A record is its length (8 bytes), the masked CRC-32C of those, the message, and the masked
 * CRC-32C of that. All of a file's records have one size, so record i begins at i times it. */
#include "format/tfrecord/tfrecord.h"

#include <assert.h>
#include <endian.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "codec/crc.h"
#include "format/blob_stream.h"
#include "format/reader.h"

/* Writing and walking tf.train.Example:
 *
 *   Example  { Features features = 1 }
 *   Features { map<string, Feature> feature = 1 }   an entry is a message { key = 1, value = 2 }
 *   Feature  { BytesList bytes_list = 1 | FloatList float_list = 2 | Int64List int64_list = 3 }
 *   BytesList { repeated bytes value = 1 }   Int64List { repeated int64 value = 1 [packed] } */

enum { WIRE_VARINT, WIRE_64, WIRE_LENGTH, WIRE_GROUP, WIRE_GROUP_END, WIRE_32 };
#define TAG(field, wire) ((field) << 3 | (wire))
#define VARINT_MAX 10

static size_t put_varint(unsigned char *out, uint64_t v)
{
	size_t n = 0;

	for (; v >= 0x80; v >>= 7)
		out[n++] = (unsigned char)(v | 0x80);
	out[n++] = (unsigned char)v;
	return n;
}

static size_t varint_bytes(uint64_t v)
{
	unsigned char scrap[VARINT_MAX];

	return put_varint(scrap, v);
}

/* Bytes of a field that holds a message or string of n bytes. */
static uint64_t field_bytes(uint64_t n)
{
	return 1 + varint_bytes(n) + n;
}

static size_t put_field(unsigned char *out, unsigned field, uint64_t n)
{
	out[0] = (unsigned char)TAG(field, WIRE_LENGTH);
	return 1 + put_varint(out + 1, n);
}

static size_t put_key(unsigned char *out, const char *key)
{
	size_t len = strlen(key), n = put_field(out, 1, len);

	memcpy(out + n, key, len);
	return n + len;
}

bool example_layout_of(uint64_t image_bytes, struct example_layout *l)
{
	uint64_t list, feature, entry, size_list, size_feature, size_entry, features;
	unsigned char *h = l->head, *t = l->tail;

	if (image_bytes > EXAMPLE_BYTES_MAX)
		return false;
	list = field_bytes(image_bytes);
	feature = field_bytes(list);
	entry = field_bytes(strlen("image")) + field_bytes(feature);
	size_list = field_bytes(varint_bytes(image_bytes));
	size_feature = field_bytes(size_list);
	size_entry = field_bytes(strlen("size")) + field_bytes(size_feature);
	features = field_bytes(entry) + field_bytes(size_entry);
	l->image_bytes = image_bytes;
	l->bytes = field_bytes(features);

	h += put_field(h, 1, features);
	h += put_field(h, 1, entry);
	h += put_key(h, "image");
	h += put_field(h, 2, feature);
	h += put_field(h, 1, list);
	h += put_field(h, 1, image_bytes);
	l->head_bytes = (size_t)(h - l->head);

	t += put_field(t, 1, size_entry);
	t += put_key(t, "size");
	t += put_field(t, 2, size_feature);
	t += put_field(t, 3, size_list);
	t += put_field(t, 1, varint_bytes(image_bytes));
	t += put_varint(t, image_bytes);
	l->tail_bytes = (size_t)(t - l->tail);
	assert(l->head_bytes <= EXAMPLE_EDGE_MAX && l->tail_bytes <= EXAMPLE_EDGE_MAX);
	assert(l->head_bytes + image_bytes + l->tail_bytes == l->bytes);
	return l->bytes <= EXAMPLE_BYTES_MAX;
}

/* A part of the message that is walked. */
struct walk {
	const unsigned char *start, *at, *end; /* start: of the whole message */
};

struct field {
	uint32_t number;
	unsigned wire;
	uint64_t value;   /* of a number */
	struct walk part; /* of a string or message */
};

static int damaged_message(const struct walk *w, const char *what, struct err *e)
{
	return err_set(e, ERR_DATA, "the Example message is damaged at its byte %zu: %s",
		       (size_t)(w->at - w->start), what);
}

static int get_varint(struct walk *w, uint64_t *out, struct err *e)
{
	uint64_t v = 0;

	for (unsigned i = 0; i < VARINT_MAX; i++) {
		unsigned char byte;

		if (w->at == w->end)
			return damaged_message(w, "a number is cut off", e);
		byte = *w->at++;
		v |= (uint64_t)(byte & 0x7f) << (7 * i);
		if (!(byte & 0x80)) {
			*out = v;
			return 0;
		}
	}
	return damaged_message(w, "a number is longer than 10 bytes", e);
}

/* The next field of `w`: 1, or 0 at the end. */
static int next_field(struct walk *w, struct field *f, struct err *e)
{
	uint64_t tag = 0, n = 0;
	int rc;

	if (w->at == w->end)
		return 0;
	rc = get_varint(w, &tag, e);
	if (rc < 0)
		return rc;
	f->number = (uint32_t)(tag >> 3);
	f->wire = tag & 7;
	if (tag > UINT32_MAX || f->number == 0)
		return damaged_message(w, "a field has no number", e);
	switch (f->wire) {
	case WIRE_VARINT:
		rc = get_varint(w, &f->value, e);
		return rc < 0 ? rc : 1;
	case WIRE_LENGTH:
		rc = get_varint(w, &n, e);
		break;
	case WIRE_64:
		n = 8;
		break;
	case WIRE_32:
		n = 4;
		break;
	default:
		return damaged_message(w, "a field has a type that Example does not use", e);
	}
	if (rc < 0)
		return rc;
	if (n > (uint64_t)(w->end - w->at))
		return damaged_message(w, "a field is longer than the message that contains it", e);
	f->part = (struct walk){w->start, w->at, w->at + n};
	w->at += n;
	return 1;
}

static bool is_message(const struct field *f, uint32_t number)
{
	return f->number == number && f->wire == WIRE_LENGTH;
}

/* The last string of a BytesList. */
static int walk_bytes(struct walk w, struct example *out, struct err *e)
{
	struct field f;
	int rc;

	while ((rc = next_field(&w, &f, e)) > 0) {
		if (!is_message(&f, 1))
			continue;
		out->image = f.part.at;
		out->image_bytes = (size_t)(f.part.end - f.part.at);
	}
	return rc;
}

static int walk_int64(struct walk w, struct example *out, struct err *e)
{
	struct field f;
	int rc;

	while ((rc = next_field(&w, &f, e)) > 0) {
		if (f.number != 1)
			continue;
		while (f.wire == WIRE_LENGTH && f.part.at < f.part.end) {
			rc = get_varint(&f.part, &f.value, e);
			if (rc < 0)
				return rc;
			out->has_size = true;
			out->size = (int64_t)f.value;
		}
		if (f.wire == WIRE_VARINT) {
			out->has_size = true;
			out->size = (int64_t)f.value;
		}
	}
	return rc;
}

static bool key_is(const struct walk *key, const char *name)
{
	size_t n = strlen(name);

	return (size_t)(key->end - key->at) == n && (n == 0 || memcmp(key->at, name, n) == 0);
}

/* A map entry: the key may come behind the value. */
static int walk_entry(struct walk w, struct example *out, struct err *e)
{
	struct walk key = {w.start, w.at, w.at}, value = key;
	struct field f;
	int rc;

	while ((rc = next_field(&w, &f, e)) > 0) {
		if (is_message(&f, 1))
			key = f.part;
		else if (is_message(&f, 2))
			value = f.part;
	}
	while (rc >= 0 && (rc = next_field(&value, &f, e)) > 0) {
		if (key_is(&key, "image") && is_message(&f, 1))
			rc = walk_bytes(f.part, out, e);
		else if (key_is(&key, "size") && is_message(&f, 3))
			rc = walk_int64(f.part, out, e);
	}
	return rc;
}

int example_parse(const void *bytes, size_t n, struct example *out, struct err *e)
{
	struct walk w = {bytes, bytes, (const unsigned char *)bytes + n};
	struct field f, entry;
	int rc;

	*out = (struct example){0};
	while ((rc = next_field(&w, &f, e)) > 0) {
		if (!is_message(&f, 1))
			continue;
		while ((rc = next_field(&f.part, &entry, e)) > 0) {
			if (is_message(&entry, 1))
				rc = walk_entry(entry.part, out, e);
			if (rc < 0)
				return rc;
		}
		if (rc < 0)
			return rc;
	}
	return rc;
}

/* ---- the file ---- */

int tfrecord_layout_of(const struct file_spec *f, struct tfrecord_layout *out, struct err *e)
{
	uint64_t sample = f->elem->bytes;
	bool fits = true;

	for (uint32_t i = 0; i < f->ndims; i++)
		fits = !__builtin_mul_overflow(sample, f->dims[i], &sample) && fits;
	if (!fits || !example_layout_of(sample, &out->example))
		return err_set(e, ERR_USAGE,
			       "a sample of these dimensions does not fit into a TFRecord record: "
			       "its Example message must be smaller than 2 GiB. Make "
			       "dataset.record_length_bytes or record_dims smaller, or choose "
			       "another dataset.format");
	out->record_bytes = TFRECORD_HEAD_BYTES + out->example.bytes + TFRECORD_TAIL_BYTES;
	if (__builtin_mul_overflow(out->record_bytes, f->samples, &out->file_bytes) ||
	    out->file_bytes > INT64_MAX)
		return err_set(e, ERR_USAGE,
			       "%" PRIu64 " records of %" PRIu64 " bytes are more than a file can "
			       "have (2^63 - 1 bytes)",
			       f->samples, out->record_bytes);
	return 0;
}

static int tfrecord_check(const struct file_spec *f, struct err *e)
{
	struct tfrecord_layout l;

	return tfrecord_layout_of(f, &l, e);
}

static uint64_t tfrecord_file_bytes(const struct file_spec *f)
{
	struct tfrecord_layout l = {0};

	return tfrecord_layout_of(f, &l, NULL) < 0 ? UINT64_MAX : l.file_bytes;
}

static int put_checksum(struct blob_stream *s, uint32_t crc, struct err *e)
{
	uint32_t le = htole32(crc32c_masked(crc));

	return blob_stream_put(s, &le, sizeof(le), e);
}

static int put_record(struct blob_stream *s, const struct file_spec *f,
		      const struct tfrecord_layout *l, const struct content_source *content,
		      uint64_t index, struct err *e)
{
	const struct example_layout *x = &l->example;
	uint64_t length = htole64(x->bytes);
	int rc = blob_stream_put(s, &length, sizeof(length), e);

	if (rc == 0)
		rc = put_checksum(s, crc32c_update(0, &length, sizeof(length)), e);
	blob_stream_crc32c_begin(s);
	if (rc == 0)
		rc = blob_stream_put(s, x->head, x->head_bytes, e) ?:
		     blob_stream_payload(s, content, f->file_index, index * x->image_bytes,
					 x->image_bytes, e) ?:
		     blob_stream_put(s, x->tail, x->tail_bytes, e) ?:
		     put_checksum(s, blob_stream_crc_end(s), e);
	return rc;
}

static int tfrecord_put(struct blob_stream *s, const struct file_spec *f,
			const struct content_source *content, void *scratch, struct err *e)
{
	struct tfrecord_layout l;
	int rc = tfrecord_layout_of(f, &l, e);

	(void)scratch;
	for (uint64_t i = 0; i < f->samples && rc == 0; i++)
		rc = put_record(s, f, &l, content, i, e);
	assert(rc < 0 || s->offset + s->used == l.file_bytes);
	return rc;
}

/* read_type memory loads all records at once. */
static int tfrecord_extent(const struct reader_config *c, const struct file_spec *f, uint64_t index,
			   struct extent *out, struct err *e)
{
	struct tfrecord_layout l;
	int rc = tfrecord_layout_of(f, &l, e);

	if (rc < 0)
		return rc;
	*out = (struct extent){.offset = index * l.record_bytes, .bytes = l.record_bytes};
	if (c->keep_open)
		*out = (struct extent){.bytes = l.file_bytes, .whole = true};
	return 0;
}

/* ---- DALI's index ---- */

/* The component that ends at `end`: its length, 0 when there is none. */
static size_t component(const char *path, size_t end)
{
	size_t at = end;

	while (at > 0 && path[at - 1] != '/')
		at--;
	return end - at;
}

static bool is_kind(const char *name, size_t n)
{
	return n == 5 && (memcmp(name, "train", 5) == 0 || memcmp(name, "valid", 5) == 0);
}

/* <data>/train/x and <data>/train/<subfolder>/x have <data>/index/train/x.idx. A file that lies in
 * neither has its index beside it. */
int tfrecord_index_path(const char *path, uint32_t which, char *out, size_t out_size)
{
	const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
	size_t end = slash ? (size_t)(slash - path) : 0;
	int n = -1;

	(void)which;
	for (int level = 0; level < 2 && end > 0; level++) {
		size_t len = component(path, end), at = end - len;

		if (is_kind(path + at, len)) {
			n = snprintf(out, out_size, "%.*sindex/%.*s/%s.idx", (int)at, path,
				     (int)len, path + at, name);
			break;
		}
		end = at > 0 ? at - 1 : 0;
	}
	if (n < 0)
		n = snprintf(out, out_size, "%s.idx", path);
	return n < 0 || (size_t)n >= out_size ? -ENAMETOOLONG : 0;
}

static uint64_t digits(uint64_t v)
{
	uint64_t n = 1;

	for (; v >= 10; v /= 10)
		n++;
	return n;
}

static uint64_t tfrecord_index_bytes(const struct file_spec *f, uint32_t which)
{
	struct tfrecord_layout l;
	uint64_t sum, at = 0, ten = 10;

	(void)which;
	if (tfrecord_layout_of(f, &l, NULL) < 0)
		return UINT64_MAX;
	sum = f->samples * (digits(l.record_bytes) + 2);
	/* offsets below 10, below 100, ...: record_bytes is at least 16, so the quotient fits */
	for (uint64_t n = 1; at < f->samples; n++) {
		uint64_t end = (ten - 1) / l.record_bytes + 1;

		if (n == 20 || end > f->samples)
			end = f->samples;
		sum += (end - at) * n;
		at = end;
		ten = n < 19 ? ten * 10 : UINT64_MAX;
	}
	return sum;
}

static int tfrecord_index_put(struct blob_stream *s, const struct file_spec *f, uint32_t which,
			      struct err *e)
{
	struct tfrecord_layout l;
	char line[48];
	int rc = tfrecord_layout_of(f, &l, e);

	(void)which;
	for (uint64_t i = 0; i < f->samples && rc == 0; i++) {
		int n = snprintf(line, sizeof(line), "%" PRIu64 " %" PRIu64 "\n",
				 i * l.record_bytes, l.record_bytes);

		rc = blob_stream_put(s, line, (size_t)n, e);
	}
	return rc;
}

/* ---- reading ---- */

/* Reading TFRecord files.
 *
 * FRAMEWORK is tf.data's TFRecordDataset: preads of exactly the buffer's size, from the file's
 * start in order, whatever the records' sizes; a short one is followed by one for the rest, which
 * finds the end. Unbuffered, each record is a pread of 12 bytes and one of its payload with the
 * checksum. There is no way to sample i but through the records before it. So a stream that stands
 * at or before the wanted record is continued, as the iterator of such a dataset would be, and only
 * a record behind it makes a file be opened and streamed anew. After the last record the end is
 * probed and the file closed.
 *
 * NATIVE is one pread of the sample's record, whose place is known from its number; without
 * decoding one per 2 MiB of it. */

#define TRANSFER_DEFAULT 262144u
#define PATH_ROOM 4096u
/* Room in a record for other features and longer numbers than ours. */
#define RECORD_SLACK 4096u

struct stream {
	bool open;
	uint64_t file_index;
	uint64_t next;   /* record it stands at */
	uint64_t offset; /* of that record, and within it of the next byte */
	uint64_t raw;    /* where the buffer ends in the file */
	size_t pos, end; /* what is buffered and not taken */
	bool ended;      /* the end of the file was found */
};

struct reader {
	struct reader_base base;
	struct stream stream;
	char *path;            /* of the open stream */
	unsigned char *buffer; /* NULL: unbuffered */
	size_t buffer_bytes;
	unsigned char *record; /* a whole one, with its length in front */
	size_t record_bytes;
};

static void tfrecord_lay_out(struct carver *c, const struct reader_config *config,
			     const struct store *s, struct reader *r)
{
	uint64_t record;

	reader_base_lay_out(c, config, s, &r->base);
	if (config->access == ACCESS_FRAMEWORK) {
		r->path = carve(c, PATH_ROOM);
		if (config->transfer_bytes != TRANSFER_UNBUFFERED) {
			r->buffer_bytes =
				config->transfer_bytes ? config->transfer_bytes : TRANSFER_DEFAULT;
			r->buffer = carve(c, r->buffer_bytes);
		}
	}
	if (__builtin_add_overflow(config->max_sample_bytes, RECORD_SLACK, &record)) {
		c->overflow = true;
		return;
	}
	r->record_bytes = (size_t)record;
	r->record = carve(c, record);
}

FORMAT_READER(tfrecord, tfrecord_lay_out, reader_start_nothing)

/* TensorFlow's file: asks again for what is missing until it gets nothing. Returns what there was.
 */
static ssize_t read_to_end(struct reader *r, unsigned char *out, size_t n, struct err *e)
{
	struct stream *s = &r->stream;
	size_t done = 0;

	while (done < n && !s->ended) {
		ssize_t got = io_pread(r->base.io, IO_DATA, r->base.blob, out + done, n - done,
				       s->raw, e);

		if (got < 0)
			return got;
		s->ended = got == 0;
		s->raw += (uint64_t)got;
		done += (size_t)got;
	}
	return (ssize_t)done;
}

/* The stream's next n bytes to `out`, or (NULL) nowhere. Fewer at the end of the file. Unbuffered,
 * they always go to memory: they are read there. Buffers of which every byte is wanted are read in
 * place. `crc`, if any, goes over the bytes while the processor still has them. */
static ssize_t stream_read(struct reader *r, unsigned char *out, size_t n, uint32_t *crc,
			   struct err *e)
{
	struct stream *s = &r->stream;
	size_t done = 0;

	while (done < n) {
		size_t part = s->end - s->pos;
		const unsigned char *from = out;
		ssize_t got = 0;

		assert(s->pos <= s->end);
		if (part > n - done)
			part = n - done;
		if (part > 0) {
			from = r->buffer + s->pos;
			if (out)
				memcpy(out + done, from, part);
			s->pos += part;
		} else if (!r->buffer || (out && n - done >= r->buffer_bytes)) {
			from = out + done;
			got = read_to_end(r, out + done, r->buffer ? r->buffer_bytes : n - done, e);
			part = (size_t)got;
		} else {
			got = read_to_end(r, r->buffer, r->buffer_bytes, e);
			s->pos = 0;
			s->end = got > 0 ? (size_t)got : 0;
		}
		if (got < 0)
			return got;
		if (part == 0 && got == 0)
			break;
		if (crc)
			*crc = crc32c_update(*crc, from, part);
		done += part;
	}
	s->offset += done;
	return (ssize_t)done;
}

/* What is known of a record while it is looked at. */
struct record {
	const struct file_spec *f;
	uint64_t index, offset; /* of its first byte */
	uint64_t length;        /* of the payload */
};

static int in_record(const struct record *rec, int rc, struct err *e)
{
	if (e)
		err_wrap(e, "record %" PRIu64 ", at offset %" PRIu64, rec->index, rec->offset);
	return rc;
}

static uint32_t load32(const unsigned char *p)
{
	uint32_t v;

	memcpy(&v, p, sizeof(v));
	return le32toh(v);
}

/* The first 12 bytes of a record. */
static int check_head(const struct reader *r, const unsigned char *head, struct record *rec,
		      struct err *e)
{
	uint64_t sample = file_spec_sample_bytes(rec->f), length;

	memcpy(&length, head, sizeof(length));
	rec->length = length = le64toh(length);
	if (r->base.config.decode == DECODE_FULL &&
	    crc32c_masked(crc32c_update(0, head, 8)) != load32(head + 8))
		return err_set(e, ERR_DATA, "the checksum of its length does not match");
	if (length > r->record_bytes - TFRECORD_HEAD_BYTES - TFRECORD_TAIL_BYTES)
		return err_set(e, ERR_DATA,
			       "it has %" PRIu64 " bytes, too many for a sample of %" PRIu64
			       ": it is damaged, or belongs to another dataset",
			       length, sample);
	if (length < sample)
		return err_set(e, ERR_DATA,
			       "it has %" PRIu64 " bytes, too few for a sample of %" PRIu64
			       ": it is damaged, or belongs to another dataset",
			       length, sample);
	return 0;
}

/* A record's payload with its checksum, whose own is `crc`. `wanted`: its sample is delivered. */
static int check_payload(struct reader *r, const unsigned char *payload, const struct record *rec,
			 uint32_t crc, bool wanted, struct sample *out, struct err *e)
{
	uint64_t sample = file_spec_sample_bytes(rec->f), at;
	struct example x;
	int rc;

	if (r->base.config.decode == DECODE_FULL &&
	    crc32c_masked(crc) != load32(payload + rec->length))
		return err_set(e, ERR_DATA, "the checksum of its %" PRIu64 " bytes does not match",
			       rec->length);
	if (!wanted)
		return 0;
	out->data = payload;
	if (r->base.config.decode == DECODE_NONE)
		return 0;
	rc = example_parse(payload, (size_t)rec->length, &x, e);
	if (rc < 0)
		return rc;
	if (!x.image || x.image_bytes != sample)
		return err_set(e, ERR_DATA,
			       "its feature 'image' has %zu bytes, and a sample of the workload "
			       "has %" PRIu64 "%s",
			       x.image_bytes, sample, x.image ? "" : " (the feature is missing)");
	out->data = x.image;
	at = rec->offset + TFRECORD_HEAD_BYTES + (uint64_t)(x.image - payload);
	return expectation_check(&r->base.expect, rec->f->file_index, rec->index * sample,
				 at - rec->index * sample, x.image, x.image_bytes, e);
}

static int record_cut_short(uint64_t wanted, ssize_t got, struct err *e)
{
	return err_set(e, ERR_DATA, "the file ends inside it: %zd of %" PRIu64 " bytes are present",
		       got, wanted);
}

/* The payload and the checksum behind it, `rest` bytes. They stay in the buffer when they are there
 * whole. */
static ssize_t stream_payload(struct reader *r, size_t rest, const unsigned char **payload,
			      uint32_t *crc, struct err *e)
{
	struct stream *s = &r->stream;
	bool full = r->base.config.decode == DECODE_FULL;
	unsigned char *room = r->record + TFRECORD_HEAD_BYTES;
	size_t length = rest - TFRECORD_TAIL_BYTES;
	ssize_t got, tail;

	*payload = room;
	*crc = 0;
	if (r->buffer && r->base.config.decode == DECODE_NONE) {
		*payload = r->buffer;
		return stream_read(r, NULL, rest, NULL, e);
	}
	if (rest <= s->end - s->pos) {
		*payload = r->buffer + s->pos;
		if (full)
			*crc = crc32c_update(0, *payload, length);
		s->pos += rest;
		s->offset += rest;
		return (ssize_t)rest;
	}
	/* unbuffered, both are one request */
	got = stream_read(r, room, r->buffer ? length : rest, full && r->buffer ? crc : NULL, e);
	if (got < 0 || (size_t)got < length)
		return got;
	if (full && !r->buffer)
		*crc = crc32c_update(0, room, length);
	if (!r->buffer)
		return got;
	tail = stream_read(r, room + length, TFRECORD_TAIL_BYTES, NULL, e);
	return tail < 0 ? tail : got + tail;
}

/* The stream's next record. */
static int stream_record(struct reader *r, const struct file_spec *f, bool wanted,
			 struct sample *out, struct err *e)
{
	struct stream *s = &r->stream;
	struct record rec = {.f = f, .index = s->next, .offset = s->offset};
	const unsigned char *payload;
	uint32_t crc;
	uint64_t rest;
	ssize_t got;
	int rc;

	got = stream_read(r, r->record, TFRECORD_HEAD_BYTES, NULL, e);
	if (got < 0)
		return (int)got;
	if (got == 0)
		return err_set(e, ERR_DATA,
			       "the file ends after %" PRIu64 " records and should have %" PRIu64,
			       rec.index, f->samples);
	rc = got < TFRECORD_HEAD_BYTES ? record_cut_short(TFRECORD_HEAD_BYTES, got, e)
				       : check_head(r, r->record, &rec, e);
	if (rc < 0)
		return in_record(&rec, rc, e);
	rest = rec.length + TFRECORD_TAIL_BYTES;
	got = stream_payload(r, (size_t)rest, &payload, &crc, e);
	if (got < 0)
		return (int)got;
	rc = (uint64_t)got < rest
		     ? record_cut_short(TFRECORD_HEAD_BYTES + rest, got + TFRECORD_HEAD_BYTES, e)
		     : check_payload(r, payload, &rec, crc, wanted, out, e);
	if (rc < 0)
		return in_record(&rec, rc, e);
	s->next++;
	return 0;
}

static int stream_open(struct reader *r, const char *path, const struct file_spec *f, struct err *e)
{
	size_t n = strlen(path) + 1;
	int rc = io_open(r->base.io, path, STORE_READ, r->base.blob, e);

	if (rc < 0)
		return rc;
	r->stream = (struct stream){.open = true, .file_index = f->file_index};
	/* a path that cannot be kept is never known again */
	if (n > PATH_ROOM)
		n = 0;
	memcpy(r->path, path, n);
	if (n == 0)
		r->path[0] = '\0';
	return 0;
}

static int stream_close(struct reader *r, int rc, struct err *e)
{
	int closed;

	if (!r->stream.open)
		return rc;
	r->stream.open = false;
	closed = io_close(r->base.io, r->base.blob, rc == 0 ? e : NULL);
	return rc == 0 ? closed : rc;
}

/* The iterator asks for one more record before it knows that there is none. */
static int stream_end(struct reader *r, const struct file_spec *f, struct err *e)
{
	unsigned char scrap[TFRECORD_HEAD_BYTES];
	ssize_t got = stream_read(r, scrap, sizeof(scrap), NULL, e);

	if (got < 0)
		return (int)got;
	if (got > 0)
		return err_set(e, ERR_DATA,
			       "the file continues after its %" PRIu64
			       " records, at offset %" PRIu64 ": it belongs to another dataset",
			       f->samples, r->stream.offset - (uint64_t)got);
	return 0;
}

static int read_framework(struct reader *r, const char *path, const struct file_spec *f,
			  uint64_t index, struct sample *out, struct err *e)
{
	struct stream *s = &r->stream;
	bool here = s->open && s->file_index == f->file_index && s->next <= index &&
		    strcmp(r->path, path) == 0;
	uint64_t end = r->base.config.keep_open ? f->samples : index + 1;
	int rc = 0;

	if (!here) {
		rc = stream_close(r, 0, e);
		if (rc == 0)
			rc = stream_open(r, path, f, e);
	}
	while (rc == 0 && s->next < end)
		rc = stream_record(r, f, r->base.config.keep_open || s->next == index, out, e);
	if (rc == 0 && end == f->samples) {
		rc = stream_end(r, f, e);
		if (rc == 0)
			rc = stream_close(r, rc, e);
	}
	return rc < 0 ? err_in_path(stream_close(r, rc, e), path, e) : 0;
}

/* The record in one piece, or, when nothing but its head matters, in pieces at the same place.
 * Returns how much there was, and leaves the first piece's beginning in `head`. */
static ssize_t read_record(struct reader *r, uint64_t offset, size_t n, unsigned char *head,
			   struct err *e)
{
	size_t piece = r->base.config.decode == DECODE_NONE ? NATIVE_PIECE_MAX : n, done = 0;

	while (done < n) {
		size_t part = n - done < piece ? n - done : piece;
		ssize_t got = io_pread(r->base.io, IO_DATA, r->base.blob, r->record, part,
				       offset + done, e);

		if (got < 0)
			return got;
		if (done == 0)
			memcpy(head, r->record, TFRECORD_HEAD_BYTES);
		done += (size_t)got;
		if ((size_t)got < part)
			break;
	}
	return (ssize_t)done;
}

static int native_record(struct reader *r, const void *layout, const struct file_spec *f,
			 uint64_t index, struct sample *out, struct err *e)
{
	const struct tfrecord_layout *l = layout;
	unsigned char head[TFRECORD_HEAD_BYTES];
	struct record rec = {.f = f, .index = index, .offset = index * l->record_bytes};
	const unsigned char *payload = r->record + TFRECORD_HEAD_BYTES;
	uint32_t crc = 0;
	ssize_t got = read_record(r, rec.offset, (size_t)l->record_bytes, head, e);
	int rc;

	if (got < 0)
		return (int)got;
	rc = got < TFRECORD_HEAD_BYTES ? record_cut_short(l->record_bytes, got, e)
				       : check_head(r, head, &rec, e);
	if (rc == 0 && rec.length != l->example.bytes)
		rc = err_set(e, ERR_DATA,
			     "it has %" PRIu64 " bytes instead of %" PRIu64
			     ", so that the offsets of records cannot be computed; set "
			     "reader.access to framework",
			     rec.length, l->example.bytes);
	if (rc == 0 && (uint64_t)got < l->record_bytes)
		rc = record_cut_short(l->record_bytes, got, e);
	if (rc == 0 && r->base.config.decode == DECODE_FULL)
		crc = crc32c_update(0, payload, (size_t)rec.length);
	if (rc == 0)
		rc = check_payload(r, payload, &rec, crc, true, out, e);
	return rc < 0 ? in_record(&rec, rc, e) : 0;
}

static int read_native(struct reader *r, const char *path, const struct file_spec *f,
		       uint64_t index, struct sample *out, struct err *e)
{
	struct tfrecord_layout l;
	int rc = tfrecord_layout_of(f, &l, e);

	if (rc == 0 && l.record_bytes > r->record_bytes)
		rc = err_set(e, ERR_USAGE, "a record is larger than the reader's buffer");
	return rc < 0 ? rc : reader_items(r, path, f, index, native_record, &l, out, e);
}

FORMAT_READ_STREAM(tfrecord, read_framework, read_native)

static int tfrecord_reader_close(struct reader *r, struct err *e)
{
	return stream_close(r, 0, e);
}

const struct format_ops format_tfrecord = {
	.is.name = "tfrecord",
	.is.help =
		"TensorFlow's records, an Example message each, with DALI's index beside the file.",
	.is.extension = "tfrecord",
	.is.other_extensions = (const char *const[]){"tfrecords", "tfrec", NULL},
	.is.flags = FORMAT_STREAM | FORMAT_WHOLE_OBJECTS,
	.is.dlio_reader = "TFReader",
	.is.dali = DALI_TFRECORD,
	.check = tfrecord_check,
	.file_bytes = tfrecord_file_bytes,
	.put = tfrecord_put,
	.reader_bytes = tfrecord_reader_bytes,
	.reader_init = tfrecord_reader_init,
	.read = tfrecord_read,
	.reader_close = tfrecord_reader_close,
	.extent = tfrecord_extent,
	.sidecars = 1,
	.sidecar_path = tfrecord_index_path,
	.sidecar_bytes = tfrecord_index_bytes,
	.sidecar_put = tfrecord_index_put,
};
