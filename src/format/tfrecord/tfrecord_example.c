/* Writing and walking tf.train.Example:
 *
 *   Example  { Features features = 1 }
 *   Features { map<string, Feature> feature = 1 }   an entry is a message { key = 1, value = 2 }
 *   Feature  { BytesList bytes_list = 1 | FloatList float_list = 2 | Int64List int64_list = 3 }
 *   BytesList { repeated bytes value = 1 }   Int64List { repeated int64 value = 1 [packed] } */
#include "format/tfrecord/tfrecord_example.h"

#include <assert.h>
#include <string.h>

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
