/* Reading Parquet files by row groups.
 *
 * FRAMEWORK is DLIO's ParquetReaderFileIterable: the metadata as pyarrow reads them (the last 64
 * KiB, then all of them where they are longer), and each row group by open, seek and read of a
 * Python file object. NATIVE asks for the row group alone, whose place follows from the spec.
 *
 * A row group goes through a small buffer, whatever its size; the rows of the one read last cost
 * nothing while they are asked for in order. */
#include "format/parquet/parquet_read.h"

#include <inttypes.h>
#include <string.h>

#include "format/parquet/parquet_decode.h"
#include "format/parquet/parquet_footer.h"
#include "format/parquet/parquet_metadata.h"
#include "format/pyfile.h"
#include "format/reader.h"

#define PYARROW_TAIL 65536u
#define GROUP_PIECE_MAX (32u << 20)
#define PAGE_ROOM (1u << 21) /* for any page but one of a single larger row */

struct reader {
	struct reader_base base;
	unsigned char *piece, *metadata, *python_buffer;
	size_t step; /* the largest request for a row group */
	size_t piece_bytes, metadata_bytes, python_buffer_bytes;
	struct parquet_decoder decode;
	unsigned char *inflater_memory;
	/* the row group that was read last */
	bool here, known;              /* known: the metadata of its file were read */
	uint64_t file_index, row, end; /* the row asked for last; behind the last of the group */
};

/* A row group is one request of DLIO's; larger ones than this are read in pieces. */
static size_t step_of(const struct parquet_layout *l)
{
	uint64_t most = NATIVE_PIECE_MAX;

	for (int i = 0; i < 3; i++)
		if (l->kind[i].bytes > most)
			most = l->kind[i].bytes;
	return most < GROUP_PIECE_MAX ? (size_t)((most + 4095) & ~(uint64_t)4095) : GROUP_PIECE_MAX;
}

/* Of a file with the largest rows. One with smaller rows may have more of them in a page. */
static int largest_layout(const struct reader_config *config, struct parquet_layout *l)
{
	struct file_spec f = *config->example;
	bool columns = f.own && ((const struct parquet_shape *)f.own)->columns > 0;
	int rc;

	if (!columns && config->max_sample_bytes > 0) {
		f.ndims = 1;
		f.dims[0] = config->max_sample_bytes / f.elem->bytes;
	}
	rc = parquet_layout_of(&f, l, NULL);
	if (!columns && l->page_raw_max < PAGE_ROOM)
		l->page_raw_max = PAGE_ROOM;
	if (!columns && l->page_stored_max < PAGE_ROOM)
		l->page_stored_max = PAGE_ROOM;
	return rc;
}

static void lay_out(struct carver *c, const struct reader_config *config, const struct store *s,
		    struct reader *r)
{
	struct parquet_layout l = {.page_raw_max = PAGE_ROOM, .page_stored_max = PAGE_ROOM};
	bool framework = config->access == ACCESS_FRAMEWORK;
	size_t raw, page;

	reader_base_lay_out(c, config, s, &r->base);
	if (config->example && largest_layout(config, &l) < 0)
		c->overflow = true;
	page = (size_t)l.page_stored_max + PARQUET_PAGE_HEAD_MAX;
	raw = config->decode == DECODE_NONE ? 0 : (size_t)l.page_raw_max + 64;
	r->step = NATIVE_PIECE_MAX;
	if (framework && config->example && !c->overflow)
		r->step = step_of(&l);
	r->piece_bytes = r->step + (raw ? page : 0);
	r->piece = carve(c, r->piece_bytes);
	r->metadata_bytes = 0;
	if (framework) {
		r->metadata_bytes = PYARROW_TAIL;
		if (config->example && !c->overflow) {
			uint64_t n = parquet_metadata_bytes(&l) + PARQUET_TAIL_BYTES;

			r->metadata_bytes = n > PYARROW_TAIL ? (size_t)n : PYARROW_TAIL;
		}
		r->python_buffer_bytes = reader_buffer_bytes(config);
		r->python_buffer = carve(c, r->python_buffer_bytes);
		r->metadata = carve(c, r->metadata_bytes);
	}
	if (!raw)
		return;
	r->decode.raw_room = r->decode.dictionary_room = raw;
	r->decode.raw = carve(c, raw);
	r->decode.dictionary = carve(c, raw);
	r->decode.place = carve(c, (raw / 4 + 2) * sizeof(uint32_t));
	r->decode.scratch = carve(c, PARQUET_SCRATCH_BYTES);
	r->inflater_memory = carve(c, INFLATER_MEMORY);
}

static int start(struct reader *r, struct err *e)
{
	(void)e;
	if (r->inflater_memory)
		inflater_init(&r->decode.inflater, r->inflater_memory);
	return 0;
}

/* As FORMAT_READER, but seen by the row. */
FORMAT_READER(row_groups, lay_out, start)

size_t parquet_reader_bytes(const struct reader_config *c, const struct store *s)
{
	return row_groups_reader_bytes(c, s);
}

int parquet_reader_init(void *memory, const struct reader_config *c, const struct io *io,
			struct reader **out, struct err *e)
{
	return row_groups_reader_init(memory, c, io, out, e);
}

int parquet_reader_close(struct reader *r, struct err *e)
{
	return reader_close_nothing(r, e);
}

/* ---- the bytes of a row group as a stream ---- */

struct stream {
	struct reader *r;
	struct pybuffer *py; /* NULL: native */
	uint64_t at, left;   /* next byte of the file to read; of the row group */
	size_t pos, end;     /* in the reader's piece */
	size_t step;
};

static int cut_short(uint64_t at, struct err *e)
{
	return err_set(e, ERR_DATA, "the file ends at offset %" PRIu64 ", inside a row group", at);
}

/* The next piece behind what is in the buffer. */
static int fill(struct stream *s, struct err *e)
{
	unsigned char *to = s->r->piece + s->end;
	size_t n = s->left < s->step ? (size_t)s->left : s->step;
	ssize_t got = s->py ? pybuffer_read(s->py, to, n, e)
			    : io_pread(s->r->base.io, IO_DATA, s->r->base.blob, to, n, s->at, e);

	if (got < 0)
		return (int)got;
	if ((size_t)got < n)
		return cut_short(s->at + (uint64_t)got, e);
	s->at += n;
	s->left -= n;
	s->end += n;
	return 0;
}

/* At least n bytes in one piece, or all that is left of the row group. */
static int have(struct stream *s, size_t n, struct err *e)
{
	int rc = 0;

	while (rc == 0 && s->end - s->pos < n && s->left > 0) {
		memmove(s->r->piece, s->r->piece + s->pos, s->end - s->pos);
		s->end -= s->pos;
		s->pos = 0;
		if (s->r->piece_bytes - s->end < s->step)
			return err_set(e, ERR_DATA,
				       "a page is larger than the reader's room: the file belongs "
				       "to another dataset");
		rc = fill(s, e);
	}
	return rc;
}

/* ---- checking pages ---- */

struct check {
	struct reader *r;
	const struct parquet_layout *l;
	const struct parquet_column *c;
	const struct file_spec *f;
	uint64_t first;  /* value of the file that comes next */
	uint64_t offset; /* in the file, of the page */
	uint64_t seen;
};

/* Of a value that differs: which, and where it lies, where that is known. */
static int differs(const struct check *k, size_t i, size_t width, const unsigned char *values,
		   struct err *e)
{
	size_t value = i / width;

	return err_set(e, ERR_DATA,
		       "value %" PRIu64 " of column '%s' has the byte 0x%02x, not the 0x%02x that "
		       "was generated (page at offset %" PRIu64 ")",
		       k->first + value, k->c->name, values[i], k->r->base.expect.expect[i],
		       k->offset);
}

static int check_values(void *arg, const unsigned char *values, size_t n, size_t bytes,
			struct err *e)
{
	struct check *k = arg;
	size_t width = k->c->width ? k->c->width : 1, done = 0;

	k->seen += n;
	if (!k->r->base.expect.content)
		return 0;
	if (bytes != n * width)
		return err_set(e, ERR_DATA,
			       "values of column '%s' have other lengths than the "
			       "workload's",
			       k->c->name);
	while (done < n) {
		size_t part = EXPECT_BYTES / width, i;

		part = part < n - done ? part : n - done;
		parquet_fill(k->c, k->l, k->r->base.expect.content, k->f->file_index, k->first,
			     part, k->r->base.expect.expect);
		i = first_difference(values + done * width, k->r->base.expect.expect, part * width);
		if (i < part * width)
			return differs(k, i, width, values + done * width, e);
		k->first += part;
		done += part;
	}
	return 0;
}

/* A page as the spec has it; `head` is its head in the file. */
static int check_page(struct stream *s, struct check *k, const struct parquet_page *want,
		      struct err *e)
{
	struct parquet_page_head head;
	size_t used = 0;
	int rc = have(s, want->head_bytes + want->stored, e);
	const unsigned char *at = s->r->piece + s->pos;

	if (rc < 0)
		return rc;
	k->offset = s->at - (s->end - s->pos);
	rc = parquet_page_head_parse(at, s->end - s->pos, &head, &used, e);
	if (rc < 0)
		return rc;
	if (used != want->head_bytes || memcmp(at, want->head, used) != 0)
		return err_set(e, ERR_DATA,
			       "the page at offset %" PRIu64 " has %" PRIu32 " values in %" PRIu32
			       " bytes and not %" PRIu32 " in %" PRIu32
			       ": it is damaged, or belongs to another dataset",
			       k->offset, head.values, head.stored, want->values, want->stored);
	k->seen = 0;
	rc = parquet_decode_page(&s->r->decode, &head, at + used, check_values, k, e);
	if (rc == 0 && !want->dictionary && k->seen != want->values)
		rc = err_set(e, ERR_DATA,
			     "a page has %" PRIu64 " values that are not null, and "
			     "not %" PRIu32,
			     k->seen, want->values);
	s->pos += want->head_bytes + want->stored;
	if (rc < 0 && e)
		err_wrap(e, "column '%s', page at offset %" PRIu64, k->c->name, k->offset);
	return rc;
}

static int check_chunk(struct stream *s, const struct parquet_layout *l,
		       const struct parquet_group *g, uint32_t column, const struct file_spec *f,
		       struct err *e)
{
	const struct parquet_column *c = &l->column[column];
	struct check k = {.r = s->r, .l = l, .c = c, .f = f};
	struct parquet_pages p;
	struct parquet_page page;
	int rc = 0;

	k.first = g->first * (c->list ? c->size : 1);
	parquet_decoder_begin(&s->r->decode, c->type, (int)c->width, l->codec,
			      parquet_definition_max(l, c), parquet_repetition_max(c));
	parquet_pages_of(&p, l, column, g->rows);
	while (rc == 0 && parquet_next_page(&p, &page))
		rc = check_page(s, &k, &page, e);
	return rc;
}

static int read_bytes(struct stream *s, const struct parquet_layout *l,
		      const struct parquet_group *g, const struct file_spec *f, struct err *e)
{
	int rc = 0;

	if (s->r->base.config.decode != DECODE_NONE) {
		for (uint32_t i = 0; rc == 0 && i < l->columns; i++)
			rc = check_chunk(s, l, g, i, f, e);
		return rc;
	}
	while (rc == 0 && s->left > 0) {
		s->end = 0;
		rc = fill(s, e);
	}
	return rc;
}

/* ---- requests ---- */

/* open, seek, read, close of a Python file object. */
static int python_group(struct reader *r, struct stream *s, const struct parquet_layout *l,
			const struct parquet_group *g, const struct file_spec *f, struct err *e)
{
	struct store_stat st;
	struct pybuffer py;
	size_t buffer = 0;
	int rc = io_stat_blob(r->base.io, r->base.blob, &st, e);

	if (rc == 0)
		rc = reader_buffer_of(&r->base.config, st.block_bytes, r->python_buffer_bytes,
				      &buffer, e);
	if (rc < 0)
		return rc;
	pybuffer_start(&py, r->base.io, r->base.blob, r->base.config.python, st.bytes,
		       r->python_buffer, buffer);
	py.kind = IO_DATA;
	pybuffer_seek(&py, g->at);
	s->py = &py;
	/* whole buffers, so that the last piece ends as one request of all would */
	if (s->step > buffer)
		s->step -= s->step % buffer;
	return read_bytes(s, l, g, f, e);
}

static int read_group(struct reader *r, const char *path, const struct parquet_layout *l,
		      uint64_t index, const struct file_spec *f, struct err *e)
{
	struct stream s = {.r = r, .step = r->step};
	struct parquet_group g;
	int rc;

	parquet_group_at(l, index, &g);
	rc = io_open(r->base.io, path, STORE_READ, r->base.blob, e);
	if (rc < 0)
		return rc;
	s.at = g.at;
	s.left = g.bytes;
	rc = r->base.config.access == ACCESS_FRAMEWORK ? python_group(r, &s, l, &g, f, e)
						       : read_bytes(&s, l, &g, f, e);
	if (rc < 0 && e)
		err_wrap(e, "row group %" PRIu64, index);
	return reader_blob_close(r->base.io, r->base.blob, path, rc, e);
}

/* ---- the metadata ---- */

struct expected {
	struct parquet_visitor v;
	const struct parquet_layout *l;
	uint64_t at;
};

static int other_dataset(struct err *e, const char *what, uint64_t where)
{
	return err_set(e, ERR_DATA,
		       "its %s %" PRIu64 " is not the workload's: the file belongs to another "
		       "dataset",
		       what, where);
}

static int expect_leaf(struct parquet_visitor *v, uint64_t column, const struct parquet_leaf *leaf,
		       struct err *e)
{
	const struct parquet_layout *l = ((struct expected *)v)->l;

	if (column >= l->columns || leaf->type != (int)l->column[column].type)
		return other_dataset(e, "column", column);
	return 0;
}

static int expect_chunk(struct parquet_visitor *v, const struct parquet_stored_chunk *c,
			struct err *e)
{
	struct expected *x = (struct expected *)v;
	struct parquet_group g;
	struct parquet_chunk k;

	if (c->group >= x->l->groups || c->column >= x->l->columns)
		return other_dataset(e, "row group", c->group);
	parquet_group_at(x->l, c->group, &g);
	if (c->column == 0)
		x->at = g.at;
	parquet_chunk_of(x->l, (uint32_t)c->column, g.rows, &k);
	if (c->at != x->at || c->stored != k.stored || c->values != k.values ||
	    c->codec != (int)x->l->codec)
		return other_dataset(e, "row group", c->group);
	x->at += k.stored;
	return 0;
}

/* The requests of pyarrow's open. */
static int read_metadata(struct reader *r, const struct parquet_layout *l, struct err *e)
{
	struct expected x = {
		.v = {.leaf = expect_leaf, .chunk = expect_chunk},
		.l = l,
	};
	const unsigned char *metadata;
	struct parquet_totals totals;
	struct store_stat st;
	uint32_t n = 0;
	size_t tail;
	ssize_t got;
	int rc = io_stat_blob(r->base.io, r->base.blob, &st, e);

	if (rc < 0)
		return rc;
	tail = st.bytes < PYARROW_TAIL ? (size_t)st.bytes : PYARROW_TAIL;
	if (tail < 12)
		return err_set(e, ERR_DATA, "it has %zu bytes and is not a Parquet file", tail);
	got = io_pread(r->base.io, IO_META, r->base.blob, r->metadata, tail, st.bytes - tail, e);
	if (got < 0)
		return (int)got;
	if ((size_t)got < tail)
		return cut_short(st.bytes - tail + (uint64_t)got, e);
	rc = parquet_tail_parse(r->metadata + tail - PARQUET_TAIL_BYTES, st.bytes, &n, e);
	if (rc < 0)
		return rc;
	metadata = r->metadata + tail - PARQUET_TAIL_BYTES - n;
	if (n + (uint64_t)PARQUET_TAIL_BYTES > tail) {
		if (n > r->metadata_bytes)
			return err_set(e, ERR_DATA,
				       "it has %" PRIu32 " bytes of metadata, more than the "
				       "workload's %zu: the file belongs to another dataset",
				       n, r->metadata_bytes);
		got = io_pread(r->base.io, IO_META, r->base.blob, r->metadata, n,
			       st.bytes - PARQUET_TAIL_BYTES - n, e);
		if (got < 0)
			return (int)got;
		if ((size_t)got < n)
			return cut_short(st.bytes, e);
		metadata = r->metadata;
	}
	if (r->base.config.decode == DECODE_NONE)
		return 0;
	rc = parquet_metadata_parse(metadata, n, st.bytes - PARQUET_TAIL_BYTES - n, &x.v, &totals,
				    e);
	if (rc == 0 && (totals.rows != l->samples || totals.groups != l->groups ||
			totals.columns != l->columns))
		rc = err_set(e, ERR_DATA,
			     "it has %" PRIu64 " rows of %" PRIu64 " columns in %" PRIu64
			     " row groups, and the workload %" PRIu64 " of %" PRIu32 " in %" PRIu64,
			     totals.rows, totals.columns, totals.groups, l->samples, l->columns,
			     l->groups);
	return rc;
}

static int load_metadata(struct reader *r, const char *path, const struct parquet_layout *l,
			 struct err *e)
{
	int rc = io_open(r->base.io, path, STORE_READ, r->base.blob, e);

	if (rc < 0)
		return rc;
	return reader_blob_close(r->base.io, r->base.blob, path, read_metadata(r, l, e), e);
}

int parquet_load_index(struct reader *r, const char *path, const struct file_spec *f, struct err *e)
{
	struct parquet_layout l;
	int rc = parquet_layout_of(f, &l, e);

	return rc < 0 ? rc : load_metadata(r, path, &l, e);
}

static int read_rows(struct reader *r, const char *path, const struct file_spec *f, uint64_t index,
		     struct err *e)
{
	bool all = r->base.config.keep_open, framework = r->base.config.access == ACCESS_FRAMEWORK;
	struct parquet_layout l;
	struct parquet_group g;
	uint64_t group, end;
	int rc = parquet_layout_of(f, &l, e);

	if (rc < 0)
		return rc;
	group = parquet_group_of_row(&l, index);
	end = all ? l.groups : group + 1;
	if (framework && !(r->known && r->file_index == f->file_index && r->row < index))
		rc = load_metadata(r, path, &l, e);
	r->known = rc == 0;
	for (uint64_t i = all ? 0 : group; rc == 0 && i < end; i++)
		rc = read_group(r, path, &l, i, f, e);
	if (rc == 0) {
		parquet_group_at(&l, group, &g);
		r->end = g.first + g.rows;
	}
	r->here = rc == 0;
	r->file_index = f->file_index;
	if (rc < 0)
		r->known = false;
	return rc;
}

static bool is_here(const struct reader *r, const struct file_spec *f, uint64_t index)
{
	return r->here && r->file_index == f->file_index && index > r->row && index < r->end;
}

int parquet_read(struct reader *r, const char *path, const struct file_spec *f, uint64_t index,
		 struct sample *out, struct err *e)
{
	int rc = reader_sample_begin(f, index, path, out, e);

	if (rc < 0)
		return rc;
	out->data = r->piece;
	if (file_marks_get(&r->base.loaded, f->file_index))
		return 0;
	if (!is_here(r, f, index)) {
		rc = read_rows(r, path, f, index, e);
		if (rc < 0) {
			*out = (struct sample){0};
			return rc;
		}
	}
	r->row = index;
	reader_sample_done(f, out);
	file_marks_set(&r->base.loaded, f->file_index);
	return 0;
}
