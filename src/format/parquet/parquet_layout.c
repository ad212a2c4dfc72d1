/* Sizes and places in our Parquet files. */
#include "format/parquet/parquet_layout.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "format/parquet/parquet_index.h"

/* Of both writers: a page ends at so many bytes, or rows; pyarrow's dictionary too. */
#define PAGE_BYTES (1u << 20)
#define PAGE_ROWS 20000u
#define GROUP_ROWS 1024u /* DLIO's default */
#define ROW_BYTES_MAX (1u << 30)
#define GZIP_BLOCK 65535u
#define ZSTD_BLOCK 131072u

const char *parquet_codec_name(unsigned codec)
{
	static const char *const names[] = {"none", "snappy", "gzip", NULL,
					    NULL,   NULL,     "zstd", "lz4_raw"};

	return codec < sizeof(names) / sizeof(names[0]) ? names[codec] : NULL;
}

/* Bytes of a page once compressed, by how our writer does it. */
static uint64_t stored_bytes(enum parquet_codec codec, uint64_t raw)
{
	switch (codec) {
	case PARQUET_PLAIN_BYTES:
	case PARQUET_BROTLI: /* nothing is written so */
		break;
	case PARQUET_SNAPPY:
		return thrift_varint_bytes(raw) + (raw ? 5 + raw : 0);
	case PARQUET_GZIP:
		return 18 + raw + 5 * (raw ? (raw + GZIP_BLOCK - 1) / GZIP_BLOCK : 1);
	case PARQUET_ZSTD:
		return 9 + raw + 3 * (raw ? (raw + ZSTD_BLOCK - 1) / ZSTD_BLOCK : 1);
	case PARQUET_LZ4_RAW:
		return 1 + raw + (raw < 15 ? 0 : (raw - 15) / 255 + 1);
	}
	return raw;
}

unsigned parquet_definition_max(const struct parquet_layout *l, const struct parquet_column *c)
{
	bool optional = l->writer == WRITER_PYARROW;

	return c->list ? (optional ? 3 : 1) : optional;
}

unsigned parquet_repetition_max(const struct parquet_column *c)
{
	return c->list;
}

/* ---- levels ---- */

/* A run of the RLE hybrid whose value takes a byte. */
static uint64_t run_bytes(uint64_t n)
{
	return thrift_varint_bytes(n << 1) + 1;
}

/* With their length in front. A row begins with 0 and goes on with 1. */
static uint64_t repetition_bytes(const struct parquet_column *c, uint64_t first, uint64_t n)
{
	uint64_t sum = 4, inside = first % c->size, part;

	if (c->size == 1)
		return sum + run_bytes(n);
	if (inside) {
		part = c->size - inside < n ? c->size - inside : n;
		sum += run_bytes(part);
		n -= part;
	}
	sum += n / c->size * (run_bytes(1) + run_bytes(c->size - 1));
	n %= c->size;
	if (n)
		sum += run_bytes(1) + (n > 1 ? run_bytes(n - 1) : 0);
	return sum;
}

/* ---- pages ---- */

static unsigned bits_for(uint32_t entries)
{
	unsigned bits = 1;

	while (bits < 32 && (uint64_t)1 << bits < entries)
		bits++;
	return bits;
}

static bool is_byte(const struct parquet_column *c)
{
	return c->elem->bytes == 1 && c->type == PARQUET_INT32;
}

void parquet_pages_of(struct parquet_pages *p, const struct parquet_layout *l, uint32_t column,
		      uint64_t rows)
{
	const struct parquet_column *c = &l->column[column];
	uint64_t most;

	*p = (struct parquet_pages){.l = l, .c = c};
	p->values = rows * (c->list ? c->size : 1);
	if (l->writer != WRITER_PYARROW || c->width == 0 || p->values == 0)
		return;
	if (is_byte(c)) {
		p->dictionary = p->values;
		p->entries = 256;
		return;
	}
	most = PAGE_BYTES / c->width;
	p->dictionary = p->values < most ? p->values : most;
	p->entries = (uint32_t)p->dictionary;
}

/* Values of a page that begins with value `first`. */
static uint64_t page_values(const struct parquet_pages *p, uint64_t first)
{
	const struct parquet_column *c = p->c;
	uint64_t per_row = c->list ? c->size : 1, width = c->width ? c->width : 1;
	uint64_t left = p->values - first, rows, n;

	if (p->l->writer == WRITER_PYARROW) {
		n = PAGE_BYTES / width;
		if (n == 0)
			n = 1;
		if (n > PAGE_ROWS * per_row)
			n = PAGE_ROWS * per_row;
		if (first < p->dictionary && left > p->dictionary - first)
			left = p->dictionary - first;
	} else {
		rows = PAGE_BYTES / (per_row * width);
		rows = rows == 0 ? 1 : rows > PAGE_ROWS ? PAGE_ROWS : rows;
		n = rows * per_row;
	}
	return n < left ? n : left;
}

static void put_head(const struct parquet_pages *p, struct parquet_page *page)
{
	struct thrift_out o;

	page->raw = page->repetition_bytes + page->definition_bytes + page->value_bytes;
	page->stored = (uint32_t)stored_bytes(p->l->codec, page->raw);
	thrift_begin(&o, page->head, sizeof(page->head));
	thrift_put_int(&o, 1, THRIFT_I32,
		       page->dictionary ? PARQUET_DICTIONARY_PAGE : PARQUET_DATA_PAGE);
	thrift_put_int(&o, 2, THRIFT_I32, page->raw);
	thrift_put_int(&o, 3, THRIFT_I32, page->stored);
	thrift_put_struct(&o, page->dictionary ? 7 : 5);
	thrift_put_int(&o, 1, THRIFT_I32, page->values);
	thrift_put_int(&o, 2, THRIFT_I32, page->encoding);
	if (!page->dictionary) {
		thrift_put_int(&o, 3, THRIFT_I32, PARQUET_RLE);
		thrift_put_int(&o, 4, THRIFT_I32, PARQUET_RLE);
	}
	thrift_end(&o);
	thrift_end(&o);
	page->head_bytes = o.used;
}

bool parquet_next_page(struct parquet_pages *p, struct parquet_page *out)
{
	const struct parquet_column *c = p->c;
	uint64_t n;

	if (p->dictionary && !p->begun) {
		p->begun = true;
		out->dictionary = true;
		out->encoding = PARQUET_PLAIN;
		out->first = 0;
		out->values = p->entries;
		out->repetition_bytes = out->definition_bytes = 0;
		out->value_bytes = p->entries * c->width;
		out->bits = 0;
		put_head(p, out);
		return true;
	}
	if (p->next >= p->values)
		return false;
	n = page_values(p, p->next);
	out->dictionary = false;
	out->first = p->next;
	out->values = (uint32_t)n;
	out->repetition_bytes =
		parquet_repetition_max(c) ? (uint32_t)repetition_bytes(c, p->next, n) : 0;
	out->definition_bytes = parquet_definition_max(p->l, c) ? (uint32_t)(4 + run_bytes(n)) : 0;
	out->bits = p->next < p->dictionary ? bits_for(p->entries) : 0;
	if (out->bits) {
		uint64_t eights = (n + 7) / 8;

		out->encoding = PARQUET_RLE_DICTIONARY;
		out->value_bytes =
			(uint32_t)(1 + thrift_varint_bytes(eights << 1 | 1) + eights * out->bits);
	} else {
		out->encoding = PARQUET_PLAIN;
		out->value_bytes = (uint32_t)(c->width ? n * c->width : (n + 7) / 8);
	}
	p->next += n;
	put_head(p, out);
	return true;
}

void parquet_chunk_of(const struct parquet_layout *l, uint32_t column, uint64_t rows,
		      struct parquet_chunk *out)
{
	struct parquet_pages p;
	struct parquet_page page;

	parquet_pages_of(&p, l, column, rows);
	*out = (struct parquet_chunk){.values = p.values};
	while (parquet_next_page(&p, &page)) {
		out->stored += page.head_bytes + page.stored;
		out->raw += page.head_bytes + page.raw;
		if (page.dictionary)
			out->dictionary = page.head_bytes + page.stored;
	}
}

/* ---- columns ---- */

static uint64_t whole_words(uint64_t n)
{
	return (n + 7) & ~(uint64_t)7;
}

/* The bytes of row 0 of a column in the payload's stream: each column is one stretch of it. */
static uint64_t stretch(const struct parquet_layout *l, const struct parquet_column *c)
{
	uint64_t at = 0;

	/* a column of its own begins where the payload does */
	for (const struct parquet_column *k = l->column; k < c; k++)
		at += whole_words(l->samples * k->row_bytes);
	return at;
}

bool parquet_direct(const struct parquet_column *c, const struct parquet_layout *l,
		    const struct content_source *of, uint64_t first, struct content_source *content,
		    uint64_t *offset)
{
	if (of->of_elem)
		of->of_elem(of, c->elem, content);
	else
		*content = *of;
	*offset = stretch(l, c) + first * (c->text ? c->size : c->elem->bytes);
	return c->text == TEXT_NONE && c->width == c->elem->bytes;
}

static void widen(const struct parquet_column *c, size_t n, unsigned char *out)
{
	uint32_t from = c->elem->bytes;
	const unsigned char *in = out + n * (c->width - from);
	bool has_sign = c->elem->name[0] == 'i';

	/* in place: what is read lies at or behind what is written */
	for (size_t i = 0; i < n; i++) {
		unsigned char v[4] = {0};

		memcpy(v, in + i * from, from);
		if (has_sign && v[from - 1] & 0x80)
			memset(v + from, 0xff, 4 - from);
		memcpy(out + 4 * i, v, 4);
	}
}

static void fill_texts(const struct parquet_column *c, const struct content_source *content,
		       uint64_t file_index, uint64_t offset, size_t n, unsigned char *out)
{
	for (size_t i = 0; i < n; i++, out += c->width) {
		uint32_t length = (uint32_t)c->size;

		for (int k = 0; k < 4; k++)
			out[k] = (unsigned char)(length >> (8 * k));
		content->fill(content, file_index, offset + i * length, out + 4, length);
		for (uint32_t k = 0; c->text == TEXT_STRING && k < length; k++)
			out[4 + k] = (unsigned char)(k == 0   ? 's'
						     : k == 1 ? '_'
							      : 'a' + out[4 + k] % 16);
	}
}

void parquet_fill(const struct parquet_column *c, const struct parquet_layout *l,
		  const struct content_source *content, uint64_t file_index, uint64_t first,
		  size_t n, unsigned char *out)
{
	struct content_source own;
	uint64_t offset;
	bool direct = parquet_direct(c, l, content, first, &own, &offset);
	uint32_t bytes = c->elem->bytes;

	if (c->text) {
		fill_texts(c, &own, file_index, offset, n, out);
	} else if (direct || c->width == 0) {
		own.fill(&own, file_index, offset, out, n * bytes);
		for (size_t i = 0; c->width == 0 && i < n; i++)
			out[i] &= 1;
	} else {
		own.fill(&own, file_index, offset, out + n * (c->width - bytes), n * bytes);
		widen(c, n, out);
	}
}

static void whole_sample(const struct file_spec *f, struct parquet_column *c)
{
	*c = (struct parquet_column){.name = "data", .elem = f->elem, .list = true};
	c->size = file_spec_elements(f);
}

/* Physical type and width; what else follows from them. */
int parquet_complete_column(struct parquet_column *c, struct err *e)
{
	const struct elem_type *t = c->elem;
	uint64_t bytes = t->bytes;

	if (c->text) {
		c->type = PARQUET_BYTE_ARRAY;
		c->width = (uint32_t)(4 + c->size);
		c->row_bytes = c->size;
		return 0;
	}
	c->width = t->bytes;
	if (t->class == ELEM_BOOL) {
		c->type = PARQUET_BOOLEAN;
		c->width = 0;
	} else if (t->class == ELEM_INT && bytes <= 8) {
		c->type = bytes == 8 ? PARQUET_INT64 : PARQUET_INT32;
		c->width = bytes == 8 ? 8 : 4;
	} else if (t->class == ELEM_FLOAT && bytes >= 4) {
		c->type = bytes == 8 ? PARQUET_DOUBLE : PARQUET_FLOAT;
	} else {
		c->type = PARQUET_FIXED;
	}
	if (__builtin_mul_overflow(c->size, bytes, &c->row_bytes) ||
	    c->size > ROW_BYTES_MAX / (c->width ? c->width : 1))
		return err_set(e, ERR_USAGE,
			       "a row of column '%.60s' has %" PRIu64
			       " values, more than a page of a Parquet file should hold "
			       "(2^30 bytes)",
			       c->name, c->size);
	return 0;
}

/* ---- the file ---- */

static uint64_t group_kind(struct parquet_layout *l, unsigned which, uint64_t rows)
{
	struct parquet_chunk c;
	uint64_t sum = 0;

	l->kind[which].rows = rows;
	for (uint32_t i = 0; rows && i < l->columns; i++) {
		parquet_chunk_of(l, i, rows, &c);
		if (__builtin_add_overflow(sum, c.stored, &sum))
			sum = UINT64_MAX / 4;
	}
	l->kind[which].bytes = sum;
	return sum;
}

static int codec_of(const char *compression, enum parquet_codec *out, struct err *e)
{
	for (unsigned i = 0; i <= PARQUET_LZ4_RAW; i++) {
		const char *name = parquet_codec_name(i);

		if (!name || !compression || strcmp(name, compression) != 0)
			continue;
		*out = (enum parquet_codec)i;
		return 0;
	}
	return err_set(e, ERR_USAGE, "pages of Parquet files cannot be compressed with %.20s",
		       compression ? compression : "nothing");
}

/* The largest page of any chunk: pages are alike but for the last of each. */
static void find_page_max(struct parquet_layout *l)
{
	uint64_t rows = l->kind[0].rows ? l->kind[0].rows : l->samples;

	for (uint32_t i = 0; i < l->columns; i++) {
		struct parquet_pages p;
		struct parquet_page page;

		parquet_pages_of(&p, l, i, rows);
		for (unsigned k = 0; k < 4 && parquet_next_page(&p, &page); k++) {
			if (page.raw > l->page_raw_max)
				l->page_raw_max = page.raw;
			if (page.stored + page.head_bytes > l->page_stored_max)
				l->page_stored_max = page.stored + (uint32_t)page.head_bytes;
			if (!page.dictionary && page.bits)
				p.next = p.dictionary;
		}
	}
}

static int too_large(const struct file_spec *f, struct err *e)
{
	return err_set(e, ERR_USAGE,
		       "%" PRIu64 " rows of these columns are more than a file can have (2^63 - 1 "
		       "bytes)",
		       f->samples);
}

static int measure(const struct file_spec *f, struct parquet_layout *l, struct err *e)
{
	uint64_t full, short_rows, last, batches = l->samples / l->batch_rows, total, more;

	full = l->batch_rows / l->group_rows;
	short_rows = l->batch_rows % l->group_rows;
	last = l->samples % l->batch_rows;
	l->groups_of_batch = full + (short_rows > 0);
	l->groups = batches * l->groups_of_batch + (last + l->group_rows - 1) / l->group_rows;
	group_kind(l, 0, full || last >= l->group_rows ? l->group_rows : 0);
	group_kind(l, 1, batches ? short_rows : 0);
	group_kind(l, 2, last % l->group_rows);
	if (__builtin_mul_overflow(full, l->kind[0].bytes, &l->batch_bytes) ||
	    __builtin_add_overflow(l->batch_bytes, l->kind[1].bytes, &l->batch_bytes) ||
	    __builtin_mul_overflow(batches, l->batch_bytes, &total) ||
	    __builtin_mul_overflow(last / l->group_rows, l->kind[0].bytes, &more) ||
	    __builtin_add_overflow(total, more + l->kind[2].bytes, &total) || total > INT64_MAX / 2)
		return too_large(f, e);
	l->metadata_at = 4 + total;
	find_page_max(l);
	return 0;
}

int parquet_layout_of(const struct file_spec *f, struct parquet_layout *l, struct err *e)
{
	const struct parquet_shape *s = f->own;
	uint64_t payload = 0, all;
	int rc;

	*l = (struct parquet_layout){.samples = f->samples, .group_rows = GROUP_ROWS};
	if (f->index) {
		l->index = f->index;
		l->groups = l->index->groups;
		l->columns = l->index->columns;
		return 0;
	}
	rc = codec_of(f->compression, &l->codec, e);
	if (rc < 0)
		return rc;
	if (s) {
		l->column = s->column;
		l->columns = s->columns;
		l->writer = s->writer;
		l->group_rows = s->group_rows ? s->group_rows : GROUP_ROWS;
		l->batch_rows = s->batch_rows;
		if (s->samples == f->samples)
			l->known_metadata_bytes = s->metadata_bytes;
	}
	if (l->columns == 0) {
		uint64_t elements = 1;

		for (uint32_t i = 0; i < f->ndims; i++)
			if (__builtin_mul_overflow(elements, f->dims[i], &elements))
				elements = UINT64_MAX;
		whole_sample(f, &l->one);
		l->one.size = elements;
		if (elements == 0)
			return err_set(e, ERR_USAGE, "a row of a Parquet file needs a value");
		rc = parquet_complete_column(&l->one, e);
		if (rc < 0)
			return rc;
		l->column = &l->one;
		l->columns = 1;
	}
	for (uint32_t i = 0; i < l->columns; i++)
		payload += l->column[i].row_bytes + 8;
	/* which keeps all sums of rows, values and bytes in 64 bits */
	if (__builtin_mul_overflow(payload, f->samples, &all) || all > INT64_MAX / 64)
		return too_large(f, e);
	if (l->batch_rows == 0)
		l->batch_rows = l->group_rows;
	/* the same file, and sizes of nothing larger are looked for */
	if (l->batch_rows > f->samples && f->samples > 0)
		l->batch_rows = f->samples;
	if (l->group_rows > l->batch_rows)
		l->group_rows = l->batch_rows;
	return measure(f, l, e);
}

void parquet_group_at(const struct parquet_layout *l, uint64_t index, struct parquet_group *g)
{
	uint64_t batch, within, end;
	int kind = 0;

	assert(index < l->groups);
	g->index = index;
	if (l->index) {
		const struct parquet_stored_group *at = &l->index->group[index];

		*g = (struct parquet_group){.index = index,
					    .first = at->first,
					    .rows = at[1].first - at->first,
					    .at = at->at,
					    .bytes = at->end - at->at};
		return;
	}
	batch = index / l->groups_of_batch;
	within = index % l->groups_of_batch;
	g->first = batch * l->batch_rows + within * l->group_rows;
	g->at = 4 + batch * l->batch_bytes + within * l->kind[0].bytes;
	end = (batch + 1) * l->batch_rows;
	if (end > l->samples)
		end = l->samples;
	g->rows = end - g->first < l->group_rows ? end - g->first : l->group_rows;
	if (g->rows != l->kind[0].rows)
		kind = g->rows == l->kind[1].rows ? 1 : 2;
	g->bytes = l->kind[kind].bytes;
}

bool parquet_is_listed(const struct file_spec *form)
{
	return form && form->bytes > 0;
}

bool parquet_skips(const struct parquet_layout *l, uint32_t i)
{
	return l->index ? l->index->leaf[i].skipped : l->column[i].skipped;
}

/* The last that begins at the row or before it; those without rows are passed over. */
static uint64_t indexed_group(const struct parquet_index *x, uint64_t row)
{
	uint64_t low = 0, high = x->groups;

	while (high - low > 1) {
		uint64_t middle = low + (high - low) / 2;

		if (x->group[middle].first <= row)
			low = middle;
		else
			high = middle;
	}
	return low;
}

uint64_t parquet_group_of_row(const struct parquet_layout *l, uint64_t row)
{
	if (l->index)
		return indexed_group(l->index, row);
	return row / l->batch_rows * l->groups_of_batch + row % l->batch_rows / l->group_rows;
}
