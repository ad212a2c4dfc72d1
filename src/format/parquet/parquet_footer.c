/* Parsing metadata of Parquet files. */
#include "format/parquet/parquet_footer.h"

#include <inttypes.h>
#include <string.h>

#include "format/parquet/parquet_layout.h"

struct parse {
	struct thrift_in in;
	uint64_t data_end;
	struct parquet_visitor *v;
	uint64_t columns, groups, rows;
	bool has_schema, has_rows, has_groups;
};

/* Fields of a chunk's metadata that there must be: type, codec, values, both sizes, place. */
#define CHUNK_FIELDS (1u << 1 | 1u << 4 | 1u << 5 | 1u << 6 | 1u << 7 | 1u << 9)

int parquet_tail_parse(const unsigned char *tail, uint64_t file_bytes, uint32_t *metadata_bytes,
		       struct err *e)
{
	uint32_t n = 0;

	if (memcmp(tail + 4, "PARE", 4) == 0)
		return err_set(e, ERR_DATA, "its metadata are encrypted");
	if (memcmp(tail + 4, "PAR1", 4) != 0)
		return err_set(e, ERR_DATA, "it does not end as a Parquet file does, with PAR1");
	for (int i = 3; i >= 0; i--)
		n = n << 8 | tail[i];
	if (file_bytes < 12 || n > file_bytes - 12)
		return err_set(e, ERR_DATA,
			       "its metadata would have %" PRIu32 " bytes, more than the file", n);
	*metadata_bytes = n;
	return 0;
}

/* A number that counts or measures something. */
static int count_of(struct parse *p, const struct thrift_field *f, uint64_t *out, struct err *e)
{
	int64_t v = 0;
	int rc = thrift_int(&p->in, f, &v, e);

	if (rc == 0 && v < 0)
		return thrift_damaged(&p->in, "a count is negative", e);
	*out = (uint64_t)v;
	return rc;
}

static int small_of(struct parse *p, const struct thrift_field *f, int *out, struct err *e)
{
	int64_t v = 0;
	int rc = thrift_int(&p->in, f, &v, e);

	if (rc == 0 && (v < INT32_MIN || v > INT32_MAX))
		return thrift_damaged(&p->in, "a number has more than 32 bits", e);
	*out = (int)v;
	return rc;
}

/* ---- the schema ---- */

struct element {
	struct parquet_leaf leaf;
	int repetition;
	uint64_t children;
	bool has_type;
};

static int parse_element(struct parse *p, struct element *x, struct err *e)
{
	struct thrift_field f = {0};
	int rc;

	*x = (struct element){.leaf.name = (const unsigned char *)"", .repetition = -1};
	while ((rc = thrift_field(&p->in, &f, e)) > 0) {
		if (f.id == 1) {
			rc = small_of(p, &f, &x->leaf.type, e);
			x->has_type = true;
		} else if (f.id == 2) {
			rc = small_of(p, &f, &x->leaf.type_length, e);
		} else if (f.id == 3) {
			rc = small_of(p, &f, &x->repetition, e);
		} else if (f.id == 4) {
			rc = thrift_bytes(&p->in, &f, &x->leaf.name, &x->leaf.name_bytes, e);
		} else if (f.id == 5) {
			rc = count_of(p, &f, &x->children, e);
		} else {
			rc = thrift_skip(&p->in, f.type, e);
		}
		if (rc < 0)
			return rc;
	}
	return rc;
}

struct level {
	uint64_t left;
	unsigned definition, repetition;
};

static int leaf_found(struct parse *p, const struct element *x, struct err *e)
{
	if (!x->has_type || x->leaf.type < 0 || x->leaf.type > PARQUET_FIXED)
		return thrift_damaged(&p->in, "a column has an unknown type", e);
	if (x->leaf.type == PARQUET_FIXED && x->leaf.type_length <= 0)
		return thrift_damaged(&p->in, "a column's values have no length", e);
	if (p->columns == PARQUET_COLUMNS_MAX)
		return thrift_damaged(&p->in, "there are too many columns", e);
	if (p->v && p->v->leaf) {
		int rc = p->v->leaf(p->v, p->columns, &x->leaf, e);

		if (rc < 0)
			return rc;
	}
	p->columns++;
	return 0;
}

/* A tree, written depth first. */
static int parse_schema(struct parse *p, const struct thrift_field *f, struct err *e)
{
	struct level stack[PARQUET_SCHEMA_DEPTH_MAX] = {{.left = 1}};
	enum thrift_type type;
	unsigned depth = 1;
	const unsigned char *top = (const unsigned char *)"";
	size_t top_bytes = 0;
	struct element x;
	uint64_t n = 0;
	int rc = thrift_list(&p->in, f, &type, &n, e);

	if (rc == 0 && (type != THRIFT_STRUCT || p->has_schema))
		return thrift_damaged(&p->in, "the schema is not a list of elements", e);
	p->has_schema = true;
	for (uint64_t i = 0; rc == 0 && i < n; i++) {
		struct level *up = &stack[depth - 1];

		rc = parse_element(p, &x, e);
		if (rc < 0)
			return rc;
		if (up->left == 0)
			return thrift_damaged(&p->in, "the schema has more elements than its tree",
					      e);
		up->left--;
		if (i > 0 && (x.repetition < 0 || x.repetition > 2))
			return thrift_damaged(&p->in, "a column has an unknown repetition", e);
		x.leaf.definition_max = up->definition + (i > 0 && x.repetition != 0);
		x.leaf.repetition_max = up->repetition + (i > 0 && x.repetition == 2);
		if (depth == 2) {
			top = x.leaf.name;
			top_bytes = x.leaf.name_bytes;
		}
		x.leaf.top = top;
		x.leaf.top_bytes = top_bytes;
		if (x.children == 0) {
			rc = i == 0 ? 0 : leaf_found(p, &x, e);
		} else if (depth == PARQUET_SCHEMA_DEPTH_MAX) {
			return thrift_damaged(&p->in, "the schema is nested too deeply", e);
		} else {
			stack[depth++] = (struct level){x.children, x.leaf.definition_max,
							x.leaf.repetition_max};
		}
		while (depth > 1 && stack[depth - 1].left == 0)
			depth--;
	}
	if (rc == 0 && depth > 1)
		return thrift_damaged(&p->in, "the schema has fewer elements than its tree", e);
	return rc;
}

/* ---- row groups ---- */

struct offsets {
	uint64_t data, dictionary;
};

static int parse_chunk_metadata(struct parse *p, struct parquet_stored_chunk *c, struct offsets *at,
				struct err *e)
{
	struct thrift_field f = {0};
	unsigned seen = 0;
	int rc;

	while ((rc = thrift_field(&p->in, &f, e)) > 0) {
		if (f.id == 1)
			rc = small_of(p, &f, &c->type, e);
		else if (f.id == 4)
			rc = small_of(p, &f, &c->codec, e);
		else if (f.id == 5)
			rc = count_of(p, &f, &c->values, e);
		else if (f.id == 6)
			rc = count_of(p, &f, &c->raw, e);
		else if (f.id == 7)
			rc = count_of(p, &f, &c->stored, e);
		else if (f.id == 9)
			rc = count_of(p, &f, &at->data, e);
		else if (f.id == 11)
			rc = count_of(p, &f, &at->dictionary, e);
		else
			rc = thrift_skip(&p->in, f.type, e);
		if (rc < 0)
			return rc;
		if (f.id >= 0 && f.id < 32)
			seen |= 1u << f.id;
	}
	if (rc == 0 && (seen & CHUNK_FIELDS) != CHUNK_FIELDS)
		return thrift_damaged(&p->in, "the metadata of a column chunk are not whole", e);
	return rc;
}

static int parse_chunk(struct parse *p, struct parquet_stored_chunk *c, struct err *e)
{
	struct thrift_field f = {0};
	struct offsets at = {0};
	bool found = false;
	int rc;

	while ((rc = thrift_field(&p->in, &f, e)) > 0) {
		if (f.id == 1)
			return thrift_damaged(&p->in, "a column lies in another file", e);
		if (f.id == 3) {
			rc = thrift_struct(&p->in, &f, e) ?: parse_chunk_metadata(p, c, &at, e);
			found = true;
		} else {
			rc = thrift_skip(&p->in, f.type, e);
		}
		if (rc < 0)
			return rc;
	}
	if (rc < 0)
		return rc;
	if (!found)
		return thrift_damaged(&p->in, "a column chunk has no metadata", e);
	c->at = at.dictionary > 0 && (at.dictionary < at.data || at.data == 0) ? at.dictionary
									       : at.data;
	/* pyarrow tells no place of data where a row group has no rows, and others of nothing */
	if (c->stored == 0 && c->values == 0)
		c->at = 4;
	if (c->at < 4 || c->at > p->data_end || c->stored > p->data_end - c->at)
		return thrift_damaged(&p->in, "a column chunk lies outside of the file", e);
	return p->v && p->v->chunk ? p->v->chunk(p->v, c, e) : 0;
}

static int parse_group(struct parse *p, struct err *e)
{
	struct thrift_field f = {0};
	enum thrift_type type;
	uint64_t n = 0, rows = 0;
	int rc;

	while ((rc = thrift_field(&p->in, &f, e)) > 0) {
		if (f.id == 1) {
			rc = thrift_list(&p->in, &f, &type, &n, e);
			if (rc == 0 && (type != THRIFT_STRUCT || n != p->columns))
				return thrift_damaged(&p->in,
						      "a row group has other columns than the "
						      "schema",
						      e);
			for (uint64_t i = 0; rc == 0 && i < n; i++) {
				struct parquet_stored_chunk c = {.group = p->groups, .column = i};

				rc = parse_chunk(p, &c, e);
			}
		} else if (f.id == 3) {
			rc = count_of(p, &f, &rows, e);
		} else {
			rc = thrift_skip(&p->in, f.type, e);
		}
		if (rc < 0)
			return rc;
	}
	if (rc < 0)
		return rc;
	if (n != p->columns)
		return thrift_damaged(&p->in, "a row group has no columns", e);
	if (__builtin_add_overflow(p->rows, rows, &p->rows))
		return thrift_damaged(&p->in, "there are too many rows", e);
	if (p->v && p->v->group)
		rc = p->v->group(p->v, p->groups, rows, e);
	p->groups++;
	return rc;
}

static int parse_groups(struct parse *p, const struct thrift_field *f, struct err *e)
{
	enum thrift_type type;
	uint64_t n = 0;
	int rc = thrift_list(&p->in, f, &type, &n, e);

	if (rc == 0 && ((type != THRIFT_STRUCT && n > 0) || p->has_groups))
		return thrift_damaged(&p->in, "the row groups are not a list", e);
	p->has_groups = true;
	if (rc == 0 && !p->has_schema)
		return thrift_damaged(&p->in, "the row groups come before the schema", e);
	for (uint64_t i = 0; rc == 0 && i < n; i++)
		rc = parse_group(p, e);
	return rc;
}

static int rows_of(struct parse *p, const struct thrift_field *f, uint64_t *rows, struct err *e)
{
	p->has_rows = true;
	return count_of(p, f, rows, e);
}

int parquet_metadata_parse(const void *bytes, size_t n, uint64_t data_end,
			   struct parquet_visitor *v, struct parquet_totals *out, struct err *e)
{
	struct parse p = {.in = {bytes, bytes, (const unsigned char *)bytes + n},
			  .data_end = data_end,
			  .v = v};
	struct thrift_field f = {0};
	uint64_t rows = 0;
	int rc;

	while ((rc = thrift_field(&p.in, &f, e)) > 0) {
		if (f.id == 2)
			rc = parse_schema(&p, &f, e);
		else if (f.id == 3)
			rc = rows_of(&p, &f, &rows, e);
		else if (f.id == 4)
			rc = parse_groups(&p, &f, e);
		else
			rc = thrift_skip(&p.in, f.type, e);
		if (rc < 0)
			return rc;
	}
	if (rc == 0 && (!p.has_schema || !p.has_rows || !p.has_groups))
		return thrift_damaged(&p.in, "they say no schema, no rows or no row groups", e);
	if (rc == 0 && rows != p.rows)
		return thrift_damaged(&p.in, "the row groups have other rows than the file", e);
	*out = (struct parquet_totals){rows, p.groups, p.columns};
	return rc;
}

/* ---- pages ---- */

static int parse_data_head(struct parse *p, struct parquet_page_head *h, bool v2, struct err *e)
{
	struct thrift_field f = {0};
	uint64_t v = 0;
	int rc;

	while ((rc = thrift_field(&p->in, &f, e)) > 0) {
		bool length = v2 && (f.id == 5 || f.id == 6);

		if (f.id == 1 || length || f.id == (v2 ? 4 : 2)) {
			rc = count_of(p, &f, &v, e);
			if (rc == 0 && v > INT32_MAX)
				return thrift_damaged(&p->in, "a page is too large", e);
			if (f.id == 1)
				h->values = (uint32_t)v;
			else if (!length)
				h->encoding = (int)v;
			else if (f.id == 5)
				h->definition_bytes = (uint32_t)v;
			else
				h->repetition_bytes = (uint32_t)v;
		} else if (v2 && f.id == 7) {
			h->plain = f.type == THRIFT_FALSE;
		} else {
			rc = thrift_skip(&p->in, f.type, e);
		}
		if (rc < 0)
			return rc;
	}
	return rc;
}

int parquet_page_head_parse(const void *bytes, size_t n, struct parquet_page_head *h, size_t *used,
			    struct err *e)
{
	struct parse p = {.in = {bytes, bytes, (const unsigned char *)bytes + n}};
	struct thrift_field f = {0};
	uint64_t v = 0;
	int rc;

	*h = (struct parquet_page_head){.type = -1};
	while ((rc = thrift_field(&p.in, &f, e)) > 0) {
		if (f.id >= 1 && f.id <= 3) {
			rc = count_of(&p, &f, &v, e);
			if (rc == 0 && v > INT32_MAX)
				return thrift_damaged(&p.in, "a page is too large", e);
			if (f.id == 1)
				h->type = (int)v;
			else if (f.id == 2)
				h->raw = (uint32_t)v;
			else
				h->stored = (uint32_t)v;
		} else if (f.id == 5 || f.id == 7 || f.id == 8) {
			rc = thrift_struct(&p.in, &f, e) ?: parse_data_head(&p, h, f.id == 8, e);
		} else {
			rc = thrift_skip(&p.in, f.type, e);
		}
		if (rc < 0)
			return rc;
	}
	if (rc == 0 && h->type < 0)
		return thrift_damaged(&p.in, "a page has no type", e);
	*used = (size_t)(p.in.at - p.in.start);
	return rc;
}
