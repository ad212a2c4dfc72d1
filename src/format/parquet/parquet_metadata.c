#include "format/parquet/parquet_metadata.h"

#include <inttypes.h>
#include <string.h>

#include "base/little_endian.h"

#define CHUNK_ROOM 1024u

struct metadata {
	const struct parquet_layout *l;
	parquet_put_fn *put;
	void *arg;
	uint64_t bytes;
	unsigned char room[CHUNK_ROOM];
	struct thrift_out o;
};

static int flush(struct metadata *m, struct err *e)
{
	size_t n = m->o.used;

	m->o.used = 0;
	m->bytes += n;
	return m->put(m->arg, m->room, n, e);
}

struct kind_of_elem {
	const char *name;
	int converted;
};

/* Numbers of ConvertedType; -1: the physical type says all. */
static int converted_of(const struct parquet_column *c)
{
	static const struct kind_of_elem kinds[] = {
		{"uint8", 11}, {"uint16", 12}, {"uint32", 13}, {"uint64", 14},
		{"int8", 15},  {"int16", 16},  {"int32", -1},  {"int64", -1},
	};

	if (c->text)
		return c->text == TEXT_STRING ? 0 : -1;
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		if (strcmp(kinds[i].name, c->elem->name) == 0)
			return kinds[i].converted;
	return -1;
}

static void put_value_type(struct thrift_out *o, const struct parquet_column *c)
{
	int converted = converted_of(c);
	bool half = c->elem->class == ELEM_FLOAT && c->elem->bytes == 2 && !c->text;

	if (converted >= 0)
		thrift_put_int(o, 6, THRIFT_I32, converted);
	if (half) {
		/* the member Float16 of the union LogicalType */
		thrift_put_struct(o, 10);
		thrift_put_struct(o, 15);
		thrift_end(o);
		thrift_end(o);
	}
}

static void put_schema_element(struct metadata *m, const struct parquet_column *c, const char *name,
			       int repetition)
{
	struct thrift_out *o = &m->o;

	thrift_item_struct(o);
	thrift_put_int(o, 1, THRIFT_I32, c->type);
	if (c->type == PARQUET_FIXED)
		thrift_put_int(o, 2, THRIFT_I32, c->width);
	thrift_put_int(o, 3, THRIFT_I32, repetition);
	thrift_put_bytes(o, 4, name, strlen(name));
	put_value_type(o, c);
	thrift_end(o);
}

static void put_folder(struct metadata *m, const char *name, int repetition, int children,
		       int converted)
{
	struct thrift_out *o = &m->o;

	thrift_item_struct(o);
	if (repetition >= 0)
		thrift_put_int(o, 3, THRIFT_I32, repetition);
	thrift_put_bytes(o, 4, name, strlen(name));
	thrift_put_int(o, 5, THRIFT_I32, children);
	if (converted >= 0)
		thrift_put_int(o, 6, THRIFT_I32, converted);
	thrift_end(o);
}

enum { REQUIRED, OPTIONAL, REPEATED };

static int put_schema(struct metadata *m, struct err *e)
{
	const struct parquet_layout *l = m->l;
	int repetition = l->writer == WRITER_PYARROW ? OPTIONAL : REQUIRED, rc;
	uint64_t elements = 1;

	for (uint32_t i = 0; i < l->columns; i++)
		elements += l->column[i].list ? 3 : 1;
	thrift_put_list(&m->o, 2, THRIFT_STRUCT, elements);
	put_folder(m, "schema", -1, (int)l->columns, -1);
	rc = flush(m, e);
	for (uint32_t i = 0; rc == 0 && i < l->columns; i++) {
		const struct parquet_column *c = &l->column[i];

		if (c->list) {
			put_folder(m, c->name, repetition, 1, 3);
			put_folder(m, "list", REPEATED, 1, -1);
		}
		put_schema_element(m, c, c->list ? "element" : c->name, repetition);
		rc = flush(m, e);
	}
	return rc;
}

/* Bounds of the content: floats lie in [0, 1). */
static void put_statistics(struct metadata *m, const struct parquet_column *c)
{
	static const float one = 1;
	static const double one_double = 1;
	static const unsigned char zero[8];
	struct thrift_out *o = &m->o;

	thrift_put_struct(o, 12);
	thrift_put_int(o, 3, THRIFT_I64, 0);
	if (c->type == PARQUET_FLOAT || c->type == PARQUET_DOUBLE) {
		bool wide = c->type == PARQUET_DOUBLE;

		thrift_put_bytes(o, 5, wide ? (const void *)&one_double : &one, c->width);
		thrift_put_bytes(o, 6, zero, c->width);
		thrift_put_bool(o, 7, false);
		thrift_put_bool(o, 8, false);
	}
	thrift_end(o);
}

static void put_chunk(struct metadata *m, const struct parquet_column *c,
		      const struct parquet_chunk *k, uint64_t at)
{
	struct thrift_out *o = &m->o;

	thrift_item_struct(o);
	thrift_put_int(o, 2, THRIFT_I64, (int64_t)at);
	thrift_put_struct(o, 3);
	thrift_put_int(o, 1, THRIFT_I32, c->type);
	thrift_put_list(o, 2, THRIFT_I32, k->dictionary ? 3 : 2);
	thrift_item_int(o, PARQUET_PLAIN);
	thrift_item_int(o, PARQUET_RLE);
	if (k->dictionary)
		thrift_item_int(o, PARQUET_RLE_DICTIONARY);
	thrift_put_list(o, 3, THRIFT_BINARY, c->list ? 3 : 1);
	thrift_item_bytes(o, c->name, strlen(c->name));
	if (c->list) {
		thrift_item_bytes(o, "list", 4);
		thrift_item_bytes(o, "element", 7);
	}
	thrift_put_int(o, 4, THRIFT_I32, m->l->codec);
	thrift_put_int(o, 5, THRIFT_I64, (int64_t)k->values);
	thrift_put_int(o, 6, THRIFT_I64, (int64_t)k->raw);
	thrift_put_int(o, 7, THRIFT_I64, (int64_t)k->stored);
	thrift_put_int(o, 9, THRIFT_I64, (int64_t)(at + k->dictionary));
	if (k->dictionary)
		thrift_put_int(o, 11, THRIFT_I64, (int64_t)at);
	if (m->l->writer == WRITER_PYARROW)
		put_statistics(m, c);
	thrift_end(o);
	thrift_end(o);
}

static int put_row_group(struct metadata *m, const struct parquet_group *g, struct err *e)
{
	const struct parquet_layout *l = m->l;
	uint64_t at = g->at, raw = 0;
	int rc = 0;

	thrift_item_struct(&m->o);
	thrift_put_list(&m->o, 1, THRIFT_STRUCT, l->columns);
	for (uint32_t i = 0; rc == 0 && i < l->columns; i++) {
		struct parquet_chunk k;

		parquet_chunk_of(l, i, g->rows, &k);
		put_chunk(m, &l->column[i], &k, at);
		at += k.stored;
		raw += k.raw;
		rc = flush(m, e);
	}
	thrift_put_int(&m->o, 2, THRIFT_I64, (int64_t)raw);
	thrift_put_int(&m->o, 3, THRIFT_I64, (int64_t)g->rows);
	thrift_put_int(&m->o, 5, THRIFT_I64, (int64_t)g->at);
	thrift_put_int(&m->o, 6, THRIFT_I64, (int64_t)g->bytes);
	if (g->index <= INT16_MAX)
		thrift_put_int(&m->o, 7, THRIFT_I16, (int64_t)g->index);
	thrift_end(&m->o);
	return rc < 0 ? rc : flush(m, e);
}

int parquet_put_metadata(const struct parquet_layout *l, parquet_put_fn *put_bytes, void *arg,
			 struct err *e)
{
	static const char by[] = "stoker";
	struct metadata m = {.l = l, .put = put_bytes, .arg = arg};
	unsigned char tail[PARQUET_TAIL_BYTES];
	struct parquet_group g;
	int rc;

	thrift_begin(&m.o, m.room, sizeof(m.room));
	thrift_put_int(&m.o, 1, THRIFT_I32, l->writer == WRITER_PYARROW ? 2 : 1);
	rc = put_schema(&m, e);
	thrift_put_int(&m.o, 3, THRIFT_I64, (int64_t)l->samples);
	thrift_put_list(&m.o, 4, THRIFT_STRUCT, l->groups);
	for (uint64_t i = 0; rc == 0 && i < l->groups; i++) {
		parquet_group_at(l, i, &g);
		rc = put_row_group(&m, &g, e);
	}
	thrift_put_bytes(&m.o, 6, by, sizeof(by) - 1);
	thrift_end(&m.o);
	if (rc == 0)
		rc = flush(&m, e);
	if (rc == 0 && m.bytes > UINT32_MAX)
		rc = err_set(e, ERR_USAGE,
			     "the metadata of %" PRIu64 " row groups have %" PRIu64
			     " bytes, more than a Parquet file can have (2^32): make "
			     "dataset.parquet.row_group_size larger",
			     l->groups, m.bytes);
	le_put(tail, m.bytes, 4);
	memcpy(tail + 4, "PAR1", 4);
	return rc < 0 ? rc : put_bytes(arg, tail, sizeof(tail), e);
}

static int count_bytes(void *arg, const void *bytes, size_t n, struct err *e)
{
	(void)bytes;
	(void)e;
	*(uint64_t *)arg += n;
	return 0;
}

uint64_t parquet_metadata_bytes(const struct parquet_layout *l)
{
	uint64_t n = 0;

	if (l->known_metadata_bytes)
		return l->known_metadata_bytes;
	parquet_put_metadata(l, count_bytes, &n, NULL);
	return n - PARQUET_TAIL_BYTES;
}

uint64_t parquet_file_size(const struct parquet_layout *l)
{
	return l->metadata_at + parquet_metadata_bytes(l) + PARQUET_TAIL_BYTES;
}
