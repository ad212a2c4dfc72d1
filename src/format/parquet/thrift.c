/* Thrift's compact protocol. */
#include "format/parquet/thrift.h"

#include <assert.h>
#include <string.h>

#define ZIGZAG(v) ((uint64_t)(v) << 1 ^ (uint64_t)((v) >> 63))

size_t thrift_varint_bytes(uint64_t v)
{
	size_t n = 1;

	for (; v >= 0x80; v >>= 7)
		n++;
	return n;
}

size_t thrift_put_varint(unsigned char *out, uint64_t v)
{
	size_t n = 0;

	for (; v >= 0x80; v >>= 7)
		out[n++] = (unsigned char)(v | 0x80);
	out[n++] = (unsigned char)v;
	return n;
}

/* ---- writing ---- */

void thrift_begin(struct thrift_out *o, void *bytes, size_t room)
{
	*o = (struct thrift_out){.bytes = bytes, .room = room};
}

static void put_byte(struct thrift_out *o, unsigned byte)
{
	assert(o->used < o->room);
	o->bytes[o->used++] = (unsigned char)byte;
}

static void put_varint(struct thrift_out *o, uint64_t v)
{
	assert(o->room - o->used >= THRIFT_VARINT_MAX);
	o->used += thrift_put_varint(o->bytes + o->used, v);
}

static void put_head(struct thrift_out *o, int id, unsigned type)
{
	int delta = id - o->last[o->depth];

	assert(delta > 0 && delta < 16);
	put_byte(o, (unsigned)delta << 4 | type);
	o->last[o->depth] = (int16_t)id;
}

void thrift_put_int(struct thrift_out *o, int id, enum thrift_type type, int64_t v)
{
	put_head(o, id, type);
	put_varint(o, ZIGZAG(v));
}

void thrift_put_bool(struct thrift_out *o, int id, bool v)
{
	put_head(o, id, v ? THRIFT_TRUE : THRIFT_FALSE);
}

void thrift_item_bytes(struct thrift_out *o, const void *bytes, size_t n)
{
	put_varint(o, n);
	assert(o->room - o->used >= n);
	memcpy(o->bytes + o->used, bytes, n);
	o->used += n;
}

void thrift_put_bytes(struct thrift_out *o, int id, const void *bytes, size_t n)
{
	put_head(o, id, THRIFT_BINARY);
	thrift_item_bytes(o, bytes, n);
}

void thrift_put_list(struct thrift_out *o, int id, enum thrift_type type, uint64_t n)
{
	put_head(o, id, THRIFT_LIST);
	put_byte(o, (n < 15 ? (unsigned)n : 15) << 4 | type);
	if (n >= 15)
		put_varint(o, n);
}

void thrift_item_int(struct thrift_out *o, int64_t v)
{
	put_varint(o, ZIGZAG(v));
}

void thrift_item_struct(struct thrift_out *o)
{
	o->depth++;
	assert(o->depth < THRIFT_DEPTH_MAX);
	o->last[o->depth] = 0;
}

void thrift_put_struct(struct thrift_out *o, int id)
{
	put_head(o, id, THRIFT_STRUCT);
	thrift_item_struct(o);
}

void thrift_end(struct thrift_out *o)
{
	put_byte(o, 0);
	if (o->depth > 0)
		o->depth--;
}

/* ---- reading ---- */

int thrift_damaged(const struct thrift_in *in, const char *what, struct err *e)
{
	return err_set(e, ERR_DATA, "the Parquet metadata are damaged at their byte %zu: %s",
		       (size_t)(in->at - in->start), what);
}

int thrift_varint(struct thrift_in *in, uint64_t *out, struct err *e)
{
	uint64_t v = 0;

	for (unsigned i = 0; i < THRIFT_VARINT_MAX; i++) {
		unsigned char byte;

		if (in->at == in->end)
			return thrift_damaged(in, "a number is cut off", e);
		byte = *in->at++;
		v |= (uint64_t)(byte & 0x7f) << (7 * i);
		if (!(byte & 0x80)) {
			*out = v;
			return 0;
		}
	}
	return thrift_damaged(in, "a number is longer than 10 bytes", e);
}

static int get_zigzag(struct thrift_in *in, int64_t *out, struct err *e)
{
	uint64_t v = 0;
	int rc = thrift_varint(in, &v, e);

	*out = (int64_t)(v >> 1 ^ -(v & 1));
	return rc;
}

int thrift_field(struct thrift_in *in, struct thrift_field *f, struct err *e)
{
	unsigned char head;
	int64_t id = 0;
	int rc;

	if (in->at == in->end)
		return thrift_damaged(in, "a struct is cut off", e);
	head = *in->at++;
	if (head == 0)
		return 0;
	f->type = head & 15;
	if (head >> 4) {
		f->id += head >> 4;
	} else {
		rc = get_zigzag(in, &id, e);
		if (rc < 0)
			return rc;
		f->id = id < 0 || id > INT16_MAX ? INT16_MAX : (int)id;
	}
	if (f->type < THRIFT_TRUE || f->type > THRIFT_STRUCT)
		return thrift_damaged(in, "a field has an unknown type", e);
	if (f->id > INT16_MAX)
		return thrift_damaged(in, "a field has a number that is too large", e);
	return 1;
}

int thrift_int(struct thrift_in *in, const struct thrift_field *f, int64_t *v, struct err *e)
{
	switch (f->type) {
	case THRIFT_TRUE:
	case THRIFT_FALSE:
		*v = f->type == THRIFT_TRUE;
		return 0;
	case THRIFT_I16:
	case THRIFT_I32:
	case THRIFT_I64:
		return get_zigzag(in, v, e);
	default:
		return thrift_damaged(in, "a number has another type", e);
	}
}

int thrift_bytes(struct thrift_in *in, const struct thrift_field *f, const unsigned char **bytes,
		 size_t *n, struct err *e)
{
	uint64_t length = 0;
	int rc;

	if (f->type != THRIFT_BINARY)
		return thrift_damaged(in, "a text has another type", e);
	rc = thrift_varint(in, &length, e);
	if (rc < 0)
		return rc;
	if (length > (uint64_t)(in->end - in->at))
		return thrift_damaged(in, "a text is longer than what is left", e);
	*bytes = in->at;
	*n = (size_t)length;
	in->at += length;
	return 0;
}

static int list_head(struct thrift_in *in, enum thrift_type *type, uint64_t *n, struct err *e)
{
	int rc = 0;

	if (in->at == in->end)
		return thrift_damaged(in, "a list is cut off", e);
	*type = *in->at & 15;
	*n = *in->at++ >> 4;
	if (*n == 15)
		rc = thrift_varint(in, n, e);
	if (rc < 0)
		return rc;
	if (*type < THRIFT_TRUE || *type > THRIFT_STRUCT)
		return thrift_damaged(in, "a list has an unknown type", e);
	/* each member has a byte at least */
	if (*n > (uint64_t)(in->end - in->at))
		return thrift_damaged(in, "a list is longer than what is left", e);
	return 0;
}

int thrift_list(struct thrift_in *in, const struct thrift_field *f, enum thrift_type *type,
		uint64_t *n, struct err *e)
{
	if (f->type != THRIFT_LIST)
		return thrift_damaged(in, "a list has another type", e);
	return list_head(in, type, n, e);
}

int thrift_struct(struct thrift_in *in, const struct thrift_field *f, struct err *e)
{
	return f->type == THRIFT_STRUCT ? 0 : thrift_damaged(in, "a struct has another type", e);
}

static int step_over(struct thrift_in *in, uint64_t n, struct err *e)
{
	if (n > (uint64_t)(in->end - in->at))
		return thrift_damaged(in, "a value is cut off", e);
	in->at += n;
	return 0;
}

static int skip(struct thrift_in *in, enum thrift_type type, unsigned depth, struct err *e);

static int skip_list(struct thrift_in *in, unsigned depth, struct err *e)
{
	enum thrift_type type;
	uint64_t n = 0;
	int rc = list_head(in, &type, &n, e);

	/* booleans in a list have a byte each */
	if (rc == 0 && type <= THRIFT_I8)
		return step_over(in, n, e);
	for (uint64_t i = 0; i < n && rc == 0; i++)
		rc = skip(in, type, depth, e);
	return rc;
}

static int skip_map(struct thrift_in *in, unsigned depth, struct err *e)
{
	uint64_t n = 0;
	int rc = thrift_varint(in, &n, e);
	unsigned types;

	if (rc < 0 || n == 0)
		return rc;
	if (in->at == in->end || n > (uint64_t)(in->end - in->at))
		return thrift_damaged(in, "a map is longer than what is left", e);
	types = *in->at++;
	for (uint64_t i = 0; i < n && rc == 0; i++)
		rc = skip(in, types >> 4, depth, e) ?: skip(in, types & 15, depth, e);
	return rc;
}

static int skip(struct thrift_in *in, enum thrift_type type, unsigned depth, struct err *e)
{
	struct thrift_field f = {0};
	uint64_t n = 0;
	int rc;

	if (depth == 0)
		return thrift_damaged(in, "structs are nested too deeply", e);
	switch (type) {
	case THRIFT_TRUE:
	case THRIFT_FALSE:
		return 0;
	case THRIFT_I8:
		return step_over(in, 1, e);
	case THRIFT_I16:
	case THRIFT_I32:
	case THRIFT_I64:
		return thrift_varint(in, &n, e);
	case THRIFT_DOUBLE:
		return step_over(in, 8, e);
	case THRIFT_BINARY:
		rc = thrift_varint(in, &n, e);
		return rc < 0 ? rc : step_over(in, n, e);
	case THRIFT_LIST:
	case THRIFT_SET:
		return skip_list(in, depth - 1, e);
	case THRIFT_MAP:
		return skip_map(in, depth - 1, e);
	case THRIFT_STRUCT:
		while ((rc = thrift_field(in, &f, e)) > 0)
			if ((rc = skip(in, f.type, depth - 1, e)) < 0)
				return rc;
		return rc;
	}
	return thrift_damaged(in, "a value has an unknown type", e);
}

int thrift_skip(struct thrift_in *in, enum thrift_type type, struct err *e)
{
	return skip(in, type, THRIFT_DEPTH_MAX, e);
}
