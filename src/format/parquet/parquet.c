/* parquet: tables of columns in row groups, as DLIO's generators write them. Files are written, and
 * compared, as one ascending stream; parquet_read.c reads. */
#include <inttypes.h>
#include <libdeflate.h>
#include <string.h>

#include "base/little_endian.h"
#include "format/blob_stream.h"
#include "format/parquet/parquet_index.h"
#include "format/parquet/parquet_keys.h"
#include "format/parquet/parquet_metadata.h"
#include "format/parquet/parquet_read.h"
#include "format/parquet/parquet_units.h"
#include "workload/key.h"
#include "workload/workload.h"

#define UNIT_BYTES 16384u /* of values that are made at a time */
#define BLOCK_GZIP 65535u
#define BLOCK_ZSTD 131072u

struct writer {
	struct blob_stream *s;
	const struct parquet_layout *l;
	const struct content_source *content;
	uint64_t file_index;
	/* the page's payload: what is left of it and of its compressed block */
	uint32_t raw, left, block_left, crc;
	unsigned char unit[UNIT_BYTES];
};

static int put(struct writer *w, const void *bytes, size_t n, struct err *e)
{
	return blob_stream_put(w->s, bytes, n, e);
}

/* ---- compression: frames around bytes as they are ---- */

static int begin_lz4(struct writer *w, struct err *e)
{
	static const unsigned char full = 255;
	uint32_t more;
	unsigned char b = (unsigned char)((w->raw < 15 ? w->raw : 15) << 4);
	int rc = put(w, &b, 1, e);

	if (w->raw < 15)
		return rc;
	for (more = w->raw - 15; rc == 0 && more >= 255; more -= 255)
		rc = put(w, &full, 1, e);
	b = (unsigned char)more;
	return rc < 0 ? rc : put(w, &b, 1, e);
}

static int begin_payload(struct writer *w, uint32_t raw, struct err *e)
{
	static const unsigned char gzip[10] = {0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 0xff};
	unsigned char b[16], *p = b;

	w->raw = w->left = raw;
	w->block_left = w->crc = 0;
	switch (w->l->codec) {
	case PARQUET_PLAIN_BYTES:
	case PARQUET_BROTLI: /* nothing is written so */
		return 0;
	case PARQUET_SNAPPY:
		p += thrift_put_varint(p, raw);
		if (raw) {
			*p++ = 63 << 2;
			p = le_put(p, raw - 1, 4);
		}
		return put(w, b, (size_t)(p - b), e);
	case PARQUET_GZIP:
		return put(w, gzip, sizeof(gzip), e);
	case PARQUET_ZSTD:
		/* one segment, its size in 4 bytes */
		p = le_put(p, 0xfd2fb528u, 4);
		*p++ = 0xa0;
		p = le_put(p, raw, 4);
		return put(w, b, (size_t)(p - b), e);
	case PARQUET_LZ4_RAW:
		return begin_lz4(w, e);
	}
	return 0;
}

static int begin_block(struct writer *w, struct err *e)
{
	bool gzip = w->l->codec == PARQUET_GZIP;
	uint32_t most = gzip ? BLOCK_GZIP : BLOCK_ZSTD, n = w->left < most ? w->left : most;
	unsigned char b[5];

	w->block_left = n;
	if (gzip) {
		b[0] = n == w->left;
		le_put(b + 1, n, 2);
		le_put(b + 3, ~(uint64_t)n, 2);
		return put(w, b, 5, e);
	}
	le_put(b, n << 3 | (n == w->left), 3);
	return put(w, b, 3, e);
}

static bool in_blocks(const struct writer *w)
{
	return w->l->codec == PARQUET_GZIP || w->l->codec == PARQUET_ZSTD;
}

static int put_payload(struct writer *w, const unsigned char *bytes, size_t n, struct err *e)
{
	int rc = 0;

	if (!in_blocks(w))
		return put(w, bytes, n, e);
	if (w->l->codec == PARQUET_GZIP)
		w->crc = libdeflate_crc32(w->crc, bytes, n);
	while (rc == 0 && n > 0) {
		size_t part;

		if (w->block_left == 0)
			rc = begin_block(w, e);
		part = w->block_left < n ? w->block_left : n;
		if (rc == 0)
			rc = put(w, bytes, part, e);
		w->block_left -= (uint32_t)part;
		w->left -= (uint32_t)part;
		bytes += part;
		n -= part;
	}
	return rc;
}

static int end_payload(struct writer *w, struct err *e)
{
	unsigned char b[8];
	int rc = 0;

	if (in_blocks(w) && w->raw == 0)
		rc = begin_block(w, e);
	if (rc < 0 || w->l->codec != PARQUET_GZIP)
		return rc;
	le_put(b, w->crc, 4);
	le_put(b + 4, w->raw, 4);
	return put(w, b, 8, e);
}

/* ---- pages ---- */

/* A run of the RLE hybrid. */
static unsigned char *put_run(unsigned char *p, uint64_t n, unsigned value)
{
	p += thrift_put_varint(p, n << 1);
	*p++ = (unsigned char)value;
	return p;
}

static int put_repetition(struct writer *w, const struct parquet_column *c,
			  const struct parquet_page *page, struct err *e)
{
	uint64_t left = page->values, inside = page->first % c->size;
	unsigned char *p = le_put(w->unit, page->repetition_bytes - 4, 4);
	int rc = 0;

	if (c->size == 1) {
		p = put_run(p, left, 0);
		return put_payload(w, w->unit, (size_t)(p - w->unit), e);
	}
	if (inside) {
		uint64_t part = c->size - inside < left ? c->size - inside : left;

		p = put_run(p, part, 1);
		left -= part;
	}
	while (rc == 0 && left > 0) {
		uint64_t part = c->size < left ? c->size : left;

		p = put_run(p, 1, 0);
		if (part > 1)
			p = put_run(p, part - 1, 1);
		left -= part;
		if (UNIT_BYTES - (size_t)(p - w->unit) < 64) {
			rc = put_payload(w, w->unit, (size_t)(p - w->unit), e);
			p = w->unit;
		}
	}
	return rc < 0 ? rc : put_payload(w, w->unit, (size_t)(p - w->unit), e);
}

static int put_definition(struct writer *w, const struct parquet_column *c,
			  const struct parquet_page *page, struct err *e)
{
	unsigned char *p = le_put(w->unit, page->definition_bytes - 4, 4);

	p = put_run(p, page->values, parquet_definition_max(w->l, c));
	return put_payload(w, w->unit, (size_t)(p - w->unit), e);
}

static int put_bits(struct writer *w, const struct parquet_column *c, uint64_t first, uint64_t n,
		    struct err *e)
{
	int rc = 0;

	for (uint64_t done = 0; rc == 0 && done < n;) {
		size_t part = n - done < UNIT_BYTES / 2 ? (size_t)(n - done) : UNIT_BYTES / 2;
		unsigned char *bools = w->unit + UNIT_BYTES / 2;

		parquet_fill(c, w->l, w->content, w->file_index, first + done, part, bools);
		memset(w->unit, 0, (part + 7) / 8);
		for (size_t i = 0; i < part; i++)
			w->unit[i / 8] |= (unsigned char)(bools[i] << i % 8);
		rc = put_payload(w, w->unit, (part + 7) / 8, e);
		done += part;
	}
	return rc;
}

/* n values of the file from `first` on. */
static int put_values(struct writer *w, const struct parquet_column *c, uint64_t first, uint64_t n,
		      struct err *e)
{
	struct content_source own;
	uint64_t offset, at_once;
	int rc = 0;

	if (c->width == 0)
		return put_bits(w, c, first, n, e);
	if (parquet_direct(c, w->l, w->content, first, &own, &offset) && !in_blocks(w))
		return blob_stream_payload(w->s, &own, w->file_index, offset, n * c->width, e);
	at_once = UNIT_BYTES / c->width;
	for (uint64_t done = 0; rc == 0 && done < n;) {
		uint64_t part = n - done < at_once ? n - done : at_once;

		parquet_fill(c, w->l, w->content, w->file_index, first + done, (size_t)part,
			     w->unit);
		rc = put_payload(w, w->unit, (size_t)part * c->width, e);
		done += part;
	}
	return rc;
}

/* Every value of 8 bits. */
static int put_byte_values(struct writer *w, const struct parquet_column *c, struct err *e)
{
	bool has_sign = c->elem->name[0] == 'i';

	for (unsigned i = 0; i < 256; i++)
		le_put(w->unit + 4 * i, has_sign ? (uint64_t)(int64_t)(int8_t)i : i, 4);
	return put_payload(w, w->unit, 1024, e);
}

/* Indices in a dictionary: of 8 bits the value itself, else the value's place in the chunk. */
static int put_indices(struct writer *w, const struct parquet_column *c,
		       const struct parquet_page *page, uint64_t chunk_first, struct err *e)
{
	uint64_t eights = ((uint64_t)page->values + 7) / 8, have = 0;
	unsigned char *p = w->unit;
	unsigned bits = 0;
	int rc;

	*p++ = (unsigned char)page->bits;
	p += thrift_put_varint(p, eights << 1 | 1);
	rc = put_payload(w, w->unit, (size_t)(p - w->unit), e);
	p = w->unit;
	if (page->encoding && c->elem->bytes == 1 && c->type == PARQUET_INT32) {
		struct content_source own;
		uint64_t offset, from = chunk_first + page->first;

		parquet_direct(c, w->l, w->content, from, &own, &offset);
		for (uint64_t done = 0; rc == 0 && done < eights * 8;) {
			uint64_t part = eights * 8 - done;

			part = part < UNIT_BYTES ? part : UNIT_BYTES;
			own.fill(&own, w->file_index, offset + done, w->unit, (size_t)part);
			rc = put_payload(w, w->unit, (size_t)part, e);
			done += part;
		}
		return rc;
	}
	for (uint64_t i = 0; rc == 0 && i < eights * 8; i++) {
		uint64_t v = i < page->values ? page->first + i : 0;

		have |= v << bits;
		for (bits += page->bits; bits >= 8; bits -= 8, have >>= 8)
			*p++ = (unsigned char)have;
		if (UNIT_BYTES - (size_t)(p - w->unit) < 16) {
			rc = put_payload(w, w->unit, (size_t)(p - w->unit), e);
			p = w->unit;
		}
	}
	return rc < 0 ? rc : put_payload(w, w->unit, (size_t)(p - w->unit), e);
}

static int put_page(struct writer *w, const struct parquet_column *c,
		    const struct parquet_page *page, uint64_t chunk_first, struct err *e)
{
	bool bytes = c->elem->bytes == 1 && c->type == PARQUET_INT32;
	int rc = put(w, page->head, page->head_bytes, e);

	if (rc == 0)
		rc = begin_payload(w, page->raw, e);
	if (rc == 0 && page->repetition_bytes)
		rc = put_repetition(w, c, page, e);
	if (rc == 0 && page->definition_bytes)
		rc = put_definition(w, c, page, e);
	if (rc < 0)
		return rc;
	if (page->dictionary && bytes)
		rc = put_byte_values(w, c, e);
	else if (page->bits)
		rc = put_indices(w, c, page, chunk_first, e);
	else
		rc = put_values(w, c, chunk_first + page->first, page->values, e);
	return rc < 0 ? rc : end_payload(w, e);
}

static int put_group(struct writer *w, const struct parquet_group *g, struct err *e)
{
	int rc = 0;

	for (uint32_t i = 0; i < w->l->columns; i++) {
		const struct parquet_column *c = &w->l->column[i];
		struct parquet_pages p;
		struct parquet_page page;

		parquet_pages_of(&p, w->l, i, g->rows);
		while (rc == 0 && parquet_next_page(&p, &page))
			rc = put_page(w, c, &page, g->first * (c->list ? c->size : 1), e);
	}
	return rc;
}

static int put_some(void *arg, const void *bytes, size_t n, struct err *e)
{
	return blob_stream_put(arg, bytes, n, e);
}

static int parquet_put_file(struct blob_stream *s, const struct file_spec *f,
			    const struct content_source *content, void *scratch, struct err *e)
{
	struct parquet_layout l;
	struct writer w = {.s = s, .l = &l, .content = content, .file_index = f->file_index};
	struct parquet_group g;
	int rc = parquet_layout_of(f, &l, e);

	(void)scratch;
	if (rc == 0)
		rc = blob_stream_put(s, "PAR1", 4, e);
	for (uint64_t i = 0; rc == 0 && i < l.groups; i++) {
		parquet_group_at(&l, i, &g);
		rc = put_group(&w, &g, e);
	}
	return rc < 0 ? rc : parquet_put_metadata(&l, put_some, s, e);
}

static int parquet_check(const struct file_spec *f, struct err *e)
{
	struct parquet_layout l;
	int rc = parquet_layout_of(f, &l, e);

	/* a chunk takes at least 40 bytes of the metadata, whose length has 32 bits */
	if (rc == 0 && l.groups > UINT32_MAX / 40 / l.columns)
		return err_set(e, ERR_USAGE,
			       "%" PRIu64 " row groups of %u columns need more metadata than a "
			       "Parquet file can have (2^32 bytes): make "
			       "dataset.parquet.row_group_size larger",
			       l.groups, l.columns);
	return rc;
}

static uint64_t parquet_file_bytes(const struct file_spec *f)
{
	struct parquet_layout l;

	return parquet_check(f, NULL) < 0 || parquet_layout_of(f, &l, NULL) < 0
		       ? UINT64_MAX
		       : parquet_file_size(&l);
}

static int parquet_own(const struct workload *w, struct file_spec *form, void **own, struct err *e)
{
	struct parquet_shape *s = parquet_shape_of(w, e);
	struct parquet_layout l;
	int rc;

	*own = s;
	if (!s)
		return ERR_USAGE;
	form->own = s;
	if (s->columns == 0)
		return 0;
	form->elem = elem_find("uint8");
	form->ndims = 1;
	form->dims[0] = 0;
	for (uint32_t i = 0; i < s->columns; i++)
		form->dims[0] += s->column[i].row_bytes;
	rc = parquet_check(form, e);
	if (rc == 0)
		rc = parquet_layout_of(form, &l, e);
	if (rc < 0)
		return rc;
	s->metadata_bytes = parquet_metadata_bytes(&l);
	s->samples = form->samples;
	return 0;
}

/* What gives a row two shapes. */
static int check_keys(const struct workload *w, struct err *e)
{
	const struct node *columns = w->dataset.parquet.columns;

	if (w->dataset.parquet.partition_by)
		return workload_key_error(w, ERR_ABSENT, e, "dataset.parquet.partition_by",
					  "dataset.parquet.partition_by is not supported: DLIO's "
					  "readers do not find the files it makes");
	/* files that others wrote have columns of their own */
	if (!columns || columns->n == 0 || w->dataset.names == NAMES_LISTED)
		return 0;
	if (w->dataset.record_dims.n || w->dataset.file_bytes > 0 ||
	    w->dataset.record_length_bytes_stdev > 0 || w->dataset.sizes == SIZES_RECORDED)
		return workload_key_error(
			w, ERR_USAGE, e, "dataset.parquet.columns",
			"dataset.parquet.columns and %s both give the size of a row: remove one of "
			"the two",
			w->dataset.record_dims.n    ? "dataset.record_dims"
			: w->dataset.file_bytes > 0 ? "dataset.file_bytes"
			: w->dataset.record_length_bytes_stdev > 0
				? "dataset.record_length_bytes_stdev"
				: "dataset.sizes");
	return 0;
}

static const char *const keys[] = {"dataset.parquet.columns", "dataset.parquet.row_group_size",
				   "dataset.parquet.generation_batch_size",
				   "dataset.parquet.writer", NULL};
static const char *const reader_keys[] = {"reader.parquet_requests", "reader.parquet_columns",
					  NULL};

const struct format_ops format_parquet = {
	.is.name = "parquet",
	.is.help = "Apache Parquet files: tables of columns in row groups.",
	.is.extension = "parquet",
	.is.magic = "PAR1",
	.is.compressions = (const char *const[]){"snappy", "gzip", "zstd", "lz4_raw", NULL},
	.is.flags = FORMAT_STREAM | FORMAT_IN_OBJECTS | FORMAT_GROUPS | FORMAT_LISTED,
	.is.keys = keys,
	.is.reader_keys = reader_keys,
	.is.check_keys = check_keys,
	.is.dlio_reader = "ParquetReaderFileIterable",
	.own = parquet_own,
	.check = parquet_check,
	.file_bytes = parquet_file_bytes,
	.put = parquet_put_file,
	.reader_bytes = parquet_reader_bytes,
	.reader_init = parquet_reader_init,
	.read = parquet_read,
	.load_index = parquet_load_index,
	.reader_close = parquet_reader_close,
	.look = parquet_look,
	.wanted_bytes = parquet_wanted_bytes,
	.unit_bytes = sizeof(struct parquet_unit),
	.unit_begin = parquet_unit_begin,
	.unit_next = parquet_unit_next,
	.unit_pace = parquet_unit_pace,
};
