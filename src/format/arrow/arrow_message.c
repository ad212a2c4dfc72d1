/* Metadata of Arrow's messages, within bounds. Flatbuffers: a table begins with the distance back
 * to its vtable, which has its own size, the table's, and where in the table each field lies (0:
 * nowhere); strings, vectors and tables are pointed to by a distance forward
 * (flatbuffers.dev/internals). */
#include "format/arrow/arrow_message.h"

#include <assert.h>
#include <inttypes.h>
#include <stdbool.h>
#include <string.h>

#include "base/little_endian.h"

#define VERSION_5 4u
#define DEPTH_MAX 8

/* Numbers of fields. */
enum { MESSAGE_VERSION, MESSAGE_TYPE, MESSAGE_HEADER, MESSAGE_BODY, MESSAGE_FIELDS };
enum { SCHEMA_ENDIANNESS, SCHEMA_FIELDS, SCHEMA_METADATA, SCHEMA_ALL };
enum {
	FIELD_NAME,
	FIELD_NULLABLE,
	FIELD_TYPE_TYPE,
	FIELD_TYPE,
	FIELD_DICTIONARY,
	FIELD_CHILDREN,
	FIELD_ALL
};
enum { BATCH_LENGTH, BATCH_NODES, BATCH_BUFFERS, BATCH_COMPRESSION, BATCH_VIEWED };
enum { DICTIONARY_ID, DICTIONARY_DATA, DICTIONARY_DELTA };
enum { ENCODING_ID, ENCODING_INDEX };
enum { FOOTER_VERSION, FOOTER_SCHEMA, FOOTER_DICTIONARIES, FOOTER_BATCHES };
enum { STRUCT_BYTES = 16, BLOCK_BYTES = 24 }; /* of a node and of a buffer; of a block */
/* Types. */
enum {
	TYPE_NULL = 1,
	TYPE_INT,
	TYPE_FLOAT,
	TYPE_BINARY,
	TYPE_UTF8,
	TYPE_BOOL,
	TYPE_DECIMAL,
	TYPE_DATE,
	TYPE_TIME,
	TYPE_TIMESTAMP,
	TYPE_INTERVAL,
	TYPE_LIST,
	TYPE_STRUCT,
	TYPE_UNION,
	TYPE_FIXED_BINARY,
	TYPE_FIXED_LIST,
	TYPE_MAP,
	TYPE_DURATION,
	TYPE_LARGE_BINARY,
	TYPE_LARGE_UTF8,
	TYPE_LARGE_LIST,
	TYPE_RUN_ENDS,
	TYPE_BINARY_VIEW,
	TYPE_UTF8_VIEW
};

/* ---- reading ---- */

struct view {
	const unsigned char *p; /* NULL: bytes of a mapped file, from `from` on */
	const struct store_map *map;
	uint64_t from;
	size_t n;
	bool bad; /* something points outside */
};

struct table {
	size_t at, bytes, vtable, fields; /* fields: of the vtable; 0: no table */
};

static uint64_t number(struct view *v, size_t at, size_t n)
{
	unsigned char copy[8];

	if (at > v->n || n > v->n - at) {
		v->bad = true;
		return 0;
	}
	if (!v->p && store_map_copy(v->map, v->from + at, copy, n, NULL) < 0)
		v->bad = true;
	return v->bad ? 0 : le_get(v->p ? v->p + at : copy, n);
}

static struct table table_at(struct view *v, size_t at)
{
	uint64_t back = number(v, at, 4);
	int64_t vtable = (int64_t)at - (int32_t)(uint32_t)back;
	struct table t = {.at = at};
	uint64_t size;

	if (v->bad || vtable < 0 || (uint64_t)vtable >= v->n) {
		v->bad = true;
		return t;
	}
	size = number(v, (size_t)vtable, 2);
	t.bytes = (size_t)number(v, (size_t)vtable + 2, 2);
	t.vtable = (size_t)vtable;
	if (v->bad || size < 4 || size > v->n - t.vtable || t.bytes > v->n - at) {
		v->bad = true;
		return t;
	}
	t.fields = (size - 4) / 2;
	return t;
}

/* Where the field lies; 0: it is not there. */
static size_t field_at(struct view *v, const struct table *t, unsigned field, size_t bytes)
{
	uint64_t in;

	if (field >= t->fields)
		return 0;
	in = number(v, t->vtable + 4 + 2 * field, 2);
	if (in == 0)
		return 0;
	if (in > t->bytes || bytes > t->bytes - in) {
		v->bad = true;
		return 0;
	}
	return t->at + in;
}

static uint64_t field_number(struct view *v, const struct table *t, unsigned field, size_t bytes,
			     uint64_t otherwise)
{
	size_t at = field_at(v, t, field, bytes);

	return at ? number(v, at, bytes) : otherwise;
}

static size_t field_target(struct view *v, const struct table *t, unsigned field)
{
	size_t at = field_at(v, t, field, 4);
	uint64_t forward = at ? number(v, at, 4) : 0;

	if (at && (forward == 0 || forward > v->n - at))
		v->bad = true;
	return at && !v->bad ? at + (size_t)forward : 0;
}

static struct table field_table(struct view *v, const struct table *t, unsigned field)
{
	size_t at = field_target(v, t, field);

	return at ? table_at(v, at) : (struct table){0};
}

/* The first element of a vector; *count of them lie within the bytes. 0: there is none. */
static size_t field_vector(struct view *v, const struct table *t, unsigned field, size_t each,
			   size_t *count)
{
	size_t at = field_target(v, t, field);
	uint64_t n = at ? number(v, at, 4) : 0;

	*count = 0;
	if (!at || v->bad)
		return 0;
	if (n > (v->n - at - 4) / each) {
		v->bad = true;
		return 0;
	}
	*count = (size_t)n;
	return at + 4;
}

static int damaged(const char *what, struct err *e)
{
	return err_set(e, ERR_DATA,
		       "the %s is damaged: it points outside of itself, or is no flatbuffer of "
		       "Arrow",
		       what);
}

static int message_of(struct view *v, const char *what, struct table *message, uint64_t *type,
		      struct err *e)
{
	uint64_t root = number(v, 0, 4);

	*message = root < v->n ? table_at(v, (size_t)root) : (struct table){0};
	*type = field_number(v, message, MESSAGE_TYPE, 1, 0);
	return v->bad || message->fields == 0 ? damaged(what, e) : 0;
}

static int message_header(struct view *v, enum arrow_message want, const char *what,
			  struct table *message, struct table *header, struct err *e)
{
	uint64_t type;
	int rc = message_of(v, what, message, &type, e);

	if (rc < 0)
		return rc;
	if (type != (uint64_t)want)
		return err_set(e, ERR_DATA,
			       "a message of type %" PRIu64 " lies where the %s must be", type,
			       what);
	*header = field_table(v, message, MESSAGE_HEADER);
	return v->bad || header->fields == 0 ? damaged(what, e) : 0;
}

int arrow_message_type(const unsigned char *bytes, size_t n, unsigned *type, struct err *e)
{
	struct view v = {.p = bytes, .n = n};
	struct table message;
	uint64_t found = 0;
	int rc = message_of(&v, "message", &message, &found, e);

	*type = (unsigned)found;
	return rc;
}

/* How a row of this type is found. */
static int kind_of(struct view *v, const struct table *field, struct arrow_node *node)
{
	uint64_t type = field_number(v, field, FIELD_TYPE_TYPE, 1, 0);
	struct table t = field_table(v, field, FIELD_TYPE);
	static const uint64_t floats[] = {16, 32, 64}, intervals[] = {32, 64, 128};
	uint64_t unit;

	node->buffers = 2;
	node->kind = ARROW_FIXED;
	switch (type) {
	case TYPE_NULL:
		node->kind = ARROW_NOTHING;
		node->buffers = 0;
		return 0;
	case TYPE_INT:
		node->width = field_number(v, &t, 0, 4, 0);
		return node->width > 64 || node->width % 8 || node->width == 0 ? -1 : 0;
	case TYPE_FLOAT:
	case TYPE_INTERVAL:
		unit = field_number(v, &t, 0, 2, 0);
		if (unit > 2)
			return -1;
		node->width = type == TYPE_FLOAT ? floats[unit] : intervals[unit];
		return 0;
	case TYPE_BOOL:
		node->width = 1;
		return 0;
	case TYPE_DECIMAL:
		node->width = field_number(v, &t, 2, 4, 128);
		return node->width > 256 || node->width % 8 || node->width == 0 ? -1 : 0;
	case TYPE_DATE:
		node->width = field_number(v, &t, 0, 2, 1) == 0 ? 32 : 64;
		return 0;
	case TYPE_TIME:
		node->width = field_number(v, &t, 1, 4, 32);
		return node->width == 32 || node->width == 64 ? 0 : -1;
	case TYPE_TIMESTAMP:
	case TYPE_DURATION:
		node->width = 64;
		return 0;
	case TYPE_FIXED_BINARY:
		node->width = 8 * field_number(v, &t, 0, 4, 0);
		return node->width > 8 * (uint64_t)INT32_MAX ? -1 : 0;
	case TYPE_BINARY:
	case TYPE_UTF8:
	case TYPE_LARGE_BINARY:
	case TYPE_LARGE_UTF8:
		node->kind = ARROW_BYTES;
		node->width = type == TYPE_BINARY || type == TYPE_UTF8 ? 32 : 64;
		node->buffers = 3;
		return 0;
	case TYPE_BINARY_VIEW:
	case TYPE_UTF8_VIEW:
		node->kind = ARROW_VIEWS;
		return 0;
	case TYPE_LIST:
	case TYPE_MAP:
	case TYPE_LARGE_LIST:
		node->kind = ARROW_LISTS;
		node->width = type == TYPE_LARGE_LIST ? 64 : 32;
		return 0;
	case TYPE_FIXED_LIST:
		node->kind = ARROW_PIECES;
		node->width = field_number(v, &t, 0, 4, 0);
		node->buffers = 1;
		return node->width > INT32_MAX ? -1 : 0;
	case TYPE_STRUCT:
		node->kind = ARROW_GROUP;
		node->buffers = 1;
		return 0;
	default:
		return -1;
	}
}

static bool has_parts(const struct arrow_node *node)
{
	return node->kind == ARROW_LISTS || node->kind == ARROW_PIECES || node->kind == ARROW_GROUP;
}

static int unsupported(uint32_t node, struct err *e)
{
	return err_set(e, ERR_DATA,
		       "column or part %" PRIu32
		       " of the schema has a type that is not supported: unions, views of lists, "
		       "run-ends, and dictionaries of values that have parts",
		       node);
}

/* An array of numbers that stand for the values of a dictionary, which several may share. */
static int add_dictionary(struct view *v, const struct table *field, const struct table *encoding,
			  struct arrow_node *node, struct arrow_schema *s, struct err *e)
{
	int64_t id = (int64_t)field_number(v, encoding, ENCODING_ID, 8, 0);
	struct table index = field_table(v, encoding, ENCODING_INDEX);
	struct arrow_dictionary *d = &s->dictionary[0];
	size_t parts;

	node->kind = ARROW_INDEX;
	node->buffers = 2;
	node->width = index.fields ? field_number(v, &index, 0, 4, 0) : 32;
	field_vector(v, field, FIELD_CHILDREN, 4, &parts);
	if (v->bad)
		return damaged("schema", e);
	while (d < s->dictionary + s->dictionaries && d->id != id)
		d++;
	node->dictionary = (uint32_t)(d - s->dictionary);
	if (node->dictionary == ARROW_DICTIONARIES_MAX)
		return err_set(e, ERR_DATA,
			       "the schema has more than the %u dictionaries that are supported",
			       ARROW_DICTIONARIES_MAX);
	if (node->width > 64 || node->width % 8 || node->width == 0 || parts > 0)
		return unsupported(s->nodes, e);
	if (node->dictionary < s->dictionaries)
		return 0;
	*d = (struct arrow_dictionary){.id = id, .values.parent = -1};
	if (kind_of(v, field, &d->values) < 0 || has_parts(&d->values))
		return v->bad ? damaged("schema", e) : unsupported(s->nodes, e);
	s->dictionaries++;
	return 0;
}

static int add_fields(struct view *v, const struct table *owner, unsigned field, int parent,
		      int depth, struct arrow_schema *s, struct err *e)
{
	size_t count, at = field_vector(v, owner, field, 4, &count);
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < count; i++) {
		uint64_t forward = number(v, at + 4 * i, 4);
		size_t target = at + 4 * i + (size_t)forward;
		struct table one = target < v->n ? table_at(v, target) : (struct table){0};
		struct table encoding = field_table(v, &one, FIELD_DICTIONARY);
		struct arrow_node *node = &s->node[s->nodes];
		uint32_t me = s->nodes;

		if (v->bad || one.fields == 0)
			return damaged("schema", e);
		if (s->nodes == ARROW_NODES_MAX || depth == DEPTH_MAX)
			return err_set(e, ERR_DATA,
				       "the schema has more columns and parts of columns than "
				       "the %u, or more levels than the %d, that are supported",
				       ARROW_NODES_MAX, DEPTH_MAX);
		*node = (struct arrow_node){.parent = parent};
		if (encoding.at)
			rc = add_dictionary(v, &one, &encoding, node, s, e);
		else if (kind_of(v, &one, node) < 0)
			rc = v->bad ? damaged("schema", e) : unsupported(me, e);
		if (rc < 0)
			return rc;
		s->nodes++;
		if (has_parts(node))
			rc = add_fields(v, &one, FIELD_CHILDREN, (int)me, depth + 1, s, e);
		if (rc == 0 && (node->kind == ARROW_LISTS || node->kind == ARROW_PIECES) &&
		    s->nodes == me + 1)
			rc = damaged("schema", e);
	}
	return rc < 0 ? rc : v->bad ? damaged("schema", e) : 0;
}

int arrow_schema_parse(const unsigned char *bytes, size_t n, struct arrow_schema *out,
		       struct err *e)
{
	struct view v = {.p = bytes, .n = n};
	struct table message, schema;
	int rc = message_header(&v, ARROW_SCHEMA, "schema", &message, &schema, e);

	out->nodes = out->dictionaries = 0;
	if (rc < 0)
		return rc;
	if (field_number(&v, &schema, SCHEMA_ENDIANNESS, 2, 0) != 0)
		return err_set(e, ERR_DATA, "its numbers have the highest byte first");
	rc = add_fields(&v, &schema, SCHEMA_FIELDS, -1, 0, out, e);
	if (rc == 0 && out->nodes == 0)
		return err_set(e, ERR_DATA, "the schema has no columns");
	return rc;
}

/* The first buffer of each array; their number in all. */
static int share_buffers(struct view *v, const struct table *batch, const struct arrow_node *node,
			 uint32_t nodes, struct arrow_batch *out, uint64_t *count)
{
	size_t views, at = field_vector(v, batch, BATCH_VIEWED, 8, &views), seen = 0;

	*count = 0;
	for (uint32_t i = 0; i < nodes; i++) {
		out->first[i] = (uint32_t)*count;
		*count += node[i].buffers;
		if (node[i].kind == ARROW_VIEWS && seen < views) {
			uint64_t more = number(v, at + 8 * seen++, 8);

			if (more > ARROW_BUFFERS_MAX)
				return -1;
			*count += more;
		}
		if (*count > ARROW_BUFFERS_MAX)
			return -1;
	}
	return 0;
}

static int dictionary_of(struct view *v, const struct table *header, const struct arrow_schema *s,
			 struct arrow_batch *out, struct table *batch, struct err *e)
{
	int64_t id = (int64_t)field_number(v, header, DICTIONARY_ID, 8, 0);

	out->delta = field_number(v, header, DICTIONARY_DELTA, 1, 0) != 0;
	*batch = field_table(v, header, DICTIONARY_DATA);
	if (v->bad || batch->fields == 0)
		return damaged("dictionary", e);
	for (out->dictionary = 0; out->dictionary < s->dictionaries; out->dictionary++)
		if (s->dictionary[out->dictionary].id == id)
			return 0;
	return err_set(e, ERR_DATA,
		       "it has values of dictionary %" PRId64 ", which the schema does not name",
		       id);
}

static int ranges_of(struct view *v, size_t at, uint64_t count, const char *what,
		     struct arrow_batch *out, struct err *e)
{
	out->buffers = (uint32_t)count;
	for (size_t i = 0; i < count; i++) {
		struct arrow_range *b = &out->buffer[i];

		b->offset = number(v, at + STRUCT_BYTES * i, 8);
		b->bytes = number(v, at + STRUCT_BYTES * i + 8, 8);
		if (b->offset > out->body_bytes || b->bytes > out->body_bytes - b->offset)
			return err_set(e, ERR_DATA,
				       "buffer %zu of the %s, %" PRIu64 " bytes at offset %" PRIu64
				       ", lies outside of its body of %" PRIu64 " bytes",
				       i, what, b->bytes, b->offset, out->body_bytes);
	}
	return 0;
}

static int codec_of(struct view *v, const struct table *batch, const char *what,
		    struct arrow_batch *out, struct err *e)
{
	struct table compression = field_table(v, batch, BATCH_COMPRESSION);
	uint64_t codec = field_number(v, &compression, 0, 1, 0),
		 method = field_number(v, &compression, 1, 1, 0);

	out->codec = ARROW_PLAIN;
	if (v->bad)
		return damaged(what, e);
	if (!compression.at)
		return 0;
	if (codec > ARROW_ZSTD || method != 0)
		return err_set(e, ERR_DATA,
			       "the %s is compressed with codec %" PRIu64
			       "; LZ4 frames and Zstandard of single buffers are supported",
			       what, codec);
	out->codec = (enum arrow_codec)codec;
	return 0;
}

int arrow_batch_parse(const unsigned char *bytes, size_t n, enum arrow_message type,
		      const struct arrow_schema *s, struct arrow_batch *out, struct err *e)
{
	const char *what = type == ARROW_BATCH ? "record batch" : "dictionary";
	const struct arrow_node *node = s->node;
	struct view v = {.p = bytes, .n = n};
	struct table message, batch;
	uint32_t nodes = s->nodes;
	uint64_t want;
	size_t count, at;
	int rc = message_header(&v, type, what, &message, &batch, e);

	if (rc == 0 && type == ARROW_DICTIONARY) {
		struct table header = batch;

		rc = dictionary_of(&v, &header, s, out, &batch, e);
		if (rc == 0)
			node = &s->dictionary[out->dictionary].values;
		nodes = 1;
	}
	if (rc < 0)
		return rc;
	out->rows = field_number(&v, &batch, BATCH_LENGTH, 8, 0);
	out->body_bytes = field_number(&v, &message, MESSAGE_BODY, 8, 0);
	field_vector(&v, &batch, BATCH_NODES, STRUCT_BYTES, &count);
	if (v.bad || out->rows > INT64_MAX || out->body_bytes > INT64_MAX)
		return damaged(what, e);
	if (count != nodes)
		return err_set(e, ERR_DATA, "the %s has %zu arrays and the schema %" PRIu32, what,
			       count, nodes);
	rc = codec_of(&v, &batch, what, out, e);
	if (rc < 0)
		return rc;
	at = field_vector(&v, &batch, BATCH_BUFFERS, STRUCT_BYTES, &count);
	if (share_buffers(&v, &batch, node, nodes, out, &want) < 0 || v.bad)
		return damaged(what, e);
	if (count != want)
		return err_set(e, ERR_DATA,
			       "the %s has %zu buffers and the schema asks for %" PRIu64, what,
			       count, want);
	return ranges_of(&v, at, count, what, out, e);
}

/* ---- the footer ---- */

int arrow_footer_blocks(const struct store_map *map, uint64_t at, uint64_t n,
			enum arrow_message type, uint64_t *first, uint64_t *count, struct err *e)
{
	struct view v = {.map = map, .from = at, .n = (size_t)n};
	uint64_t root = number(&v, 0, 4);
	struct table footer = root < v.n ? table_at(&v, (size_t)root) : (struct table){0};
	size_t blocks = 0, place;

	place = field_vector(&v, &footer,
			     type == ARROW_BATCH ? FOOTER_BATCHES : FOOTER_DICTIONARIES,
			     BLOCK_BYTES, &blocks);
	if (v.bad || footer.fields == 0)
		return damaged("footer", e);
	*first = at + place;
	*count = blocks;
	return 0;
}

int arrow_footer_block(const struct store_map *map, uint64_t first, uint64_t i,
		       struct arrow_block *out, struct err *e)
{
	unsigned char b[BLOCK_BYTES];
	int rc = store_map_copy(map, first + BLOCK_BYTES * i, b, sizeof(b), e);

	if (rc < 0)
		return rc;
	*out = (struct arrow_block){
		.at = le_get(b, 8), .metadata = le_get(b + 8, 4), .body_bytes = le_get(b + 16, 8)};
	if (out->at > map->bytes || out->metadata > map->bytes - out->at ||
	    out->body_bytes > map->bytes - out->at - out->metadata)
		return err_set(e, ERR_DATA,
			       "the footer has a message of %" PRIu64 " and %" PRIu64
			       " bytes at offset %" PRIu64 ", and the file has %" PRIu64,
			       out->metadata, out->body_bytes, out->at, map->bytes);
	return 0;
}

/* ---- writing ---- */

struct maker {
	unsigned char *p;
	size_t n;
};

/* Zeros until `ahead` bytes further would be a multiple of `unit`. */
static void align(struct maker *m, size_t unit, size_t ahead)
{
	while ((m->n + ahead) % unit)
		m->p[m->n++] = 0;
}

static void add(struct maker *m, uint64_t v, size_t n)
{
	assert(m->n + n <= ARROW_OWN_METADATA_MAX);
	le_put(m->p + m->n, v, n);
	m->n += n;
}

/* What lies at `field` points to what comes next. */
static void point_here(struct maker *m, size_t field)
{
	le_put(m->p + field, m->n - field, 4);
}

/* A vtable and a table of fields of so many bytes (0: absent); `at` gets their places. */
static void add_table(struct maker *m, size_t pointer, unsigned fields, const unsigned char *bytes,
		      const uint64_t *value, size_t *at)
{
	size_t vtable, table, place[8], used = 4;

	assert(fields <= 8);
	for (size_t size = 8; size > 0; size /= 2)
		for (unsigned i = 0; i < fields; i++)
			if (bytes[i] == size) {
				place[i] = used;
				used += size;
			}
	/* the first field lies 4 bytes behind the table's beginning */
	align(m, 8, 4 + 2 * fields + 4);
	vtable = m->n;
	add(m, 4 + 2 * fields, 2);
	add(m, used, 2);
	for (unsigned i = 0; i < fields; i++)
		add(m, bytes[i] ? place[i] : 0, 2);
	table = m->n;
	point_here(m, pointer);
	add(m, table - vtable, 4);
	assert(m->n + used - 4 <= ARROW_OWN_METADATA_MAX);
	for (unsigned i = 0; i < fields; i++) {
		if (bytes[i])
			le_put(m->p + table + place[i], value[i], bytes[i]);
		at[i] = bytes[i] ? table + place[i] : 0;
	}
	m->n = table + used;
	align(m, 4, 0);
}

static void add_text(struct maker *m, size_t pointer, const char *text)
{
	size_t n = strlen(text);

	align(m, 4, 0);
	point_here(m, pointer);
	add(m, n, 4);
	assert(m->n + n < ARROW_OWN_METADATA_MAX);
	memcpy(m->p + m->n, text, n);
	m->n += n;
	add(m, 0, 1);
}

/* A vector of `count` pointers, the first of which lies where is returned. */
static size_t add_pointers(struct maker *m, size_t pointer, size_t count)
{
	size_t first;

	align(m, 4, 0);
	point_here(m, pointer);
	add(m, count, 4);
	first = m->n;
	for (size_t i = 0; i < count; i++)
		add(m, 0, 4);
	return first;
}

static void begin_message(struct maker *m, enum arrow_message type, uint64_t body, size_t *header)
{
	static const unsigned char bytes[MESSAGE_FIELDS] = {2, 1, 4, 8};
	uint64_t value[MESSAGE_FIELDS] = {VERSION_5, type, 0, body};
	size_t at[MESSAGE_FIELDS];

	add(m, ARROW_CONTINUES, 4);
	add(m, 0, 4); /* the size */
	add(m, 0, 4); /* the root */
	add_table(m, ARROW_PREFIX_BYTES, MESSAGE_FIELDS, bytes, value, at);
	*header = at[MESSAGE_HEADER];
}

static size_t end_message(struct maker *m)
{
	align(m, 8, 0);
	le_put(m->p + 4, m->n - ARROW_PREFIX_BYTES, 4);
	return m->n;
}

static void add_field(struct maker *m, size_t pointer, const char *name, unsigned type,
		      uint64_t bits)
{
	static const unsigned char bytes[FIELD_ALL] = {4, 1, 1, 4, 0, 4};
	static const unsigned char int_bytes[2] = {4, 1};
	uint64_t value[FIELD_ALL] = {[FIELD_NULLABLE] = 1, [FIELD_TYPE_TYPE] = type};
	uint64_t int_value[2] = {bits, 1};
	size_t at[FIELD_ALL], inner[2];

	add_table(m, pointer, FIELD_ALL, bytes, value, at);
	add_text(m, at[FIELD_NAME], name);
	add_table(m, at[FIELD_TYPE], bits ? 2 : 0, int_bytes, int_value, inner);
	add_pointers(m, at[FIELD_CHILDREN], 0);
}

size_t arrow_schema_write(unsigned char out[ARROW_OWN_METADATA_MAX])
{
	static const unsigned char bytes[SCHEMA_ALL] = {0, 4, 4}, pair_bytes[2] = {4, 4};
	static const uint64_t none[SCHEMA_ALL];
	struct maker m = {.p = out};
	size_t header, at[SCHEMA_ALL], fields, pair, pair_at[2];

	begin_message(&m, ARROW_SCHEMA, 0, &header);
	add_table(&m, header, SCHEMA_ALL, bytes, none, at);
	fields = add_pointers(&m, at[SCHEMA_FIELDS], 2);
	add_field(&m, fields, "data", TYPE_BINARY, 0);
	add_field(&m, fields + 4, "label", TYPE_INT, 64);
	pair = add_pointers(&m, at[SCHEMA_METADATA], 1);
	add_table(&m, pair, 2, pair_bytes, none, pair_at);
	add_text(&m, pair_at[0], "huggingface");
	/* what `datasets` calls the columns' types */
	add_text(&m, pair_at[1],
		 "{\"info\": {\"features\": {\"data\": {\"dtype\": \"binary\", \"_type\": "
		 "\"Value\"}, \"label\": {\"dtype\": \"int64\", \"_type\": \"Value\"}}}}");
	return end_message(&m);
}

size_t arrow_batch_write(unsigned char out[ARROW_OWN_METADATA_MAX], uint64_t rows,
			 const struct arrow_range buffer[ARROW_OWN_BUFFERS], uint64_t body_bytes)
{
	static const unsigned char bytes[3] = {8, 4, 4};
	uint64_t value[3] = {rows};
	struct maker m = {.p = out};
	size_t header, at[3];

	begin_message(&m, ARROW_BATCH, body_bytes, &header);
	add_table(&m, header, 3, bytes, value, at);
	align(&m, 8, 4);
	point_here(&m, at[BATCH_NODES]);
	add(&m, 2, 4);
	for (int i = 0; i < 2; i++) {
		add(&m, rows, 8);
		add(&m, 0, 8); /* values that are missing */
	}
	align(&m, 8, 4);
	point_here(&m, at[BATCH_BUFFERS]);
	add(&m, ARROW_OWN_BUFFERS, 4);
	for (unsigned i = 0; i < ARROW_OWN_BUFFERS; i++) {
		add(&m, buffer[i].offset, 8);
		add(&m, buffer[i].bytes, 8);
	}
	return end_message(&m);
}
