/* Reading Parquet files by row groups.
 *
 * FRAMEWORK makes the requests of the library that reader.parquet_requests names
 * (parquet_ranges.h): the metadata as pyarrow reads them (the last 64 KiB, then all of them where
 * they are longer) or s3dlio (up to 4 MiB at once), then those for row groups. NATIVE asks for the
 * row group alone, whose place follows from the spec.
 *
 * A row group goes through a small buffer, whatever its size; the rows of those that were read last
 * cost nothing while they are asked for in order. */
#include "format/parquet/parquet_read.h"

#include <inttypes.h>
#include <string.h>

#include "format/blob_stream.h"
#include "format/parquet/parquet_decode.h"
#include "format/parquet/parquet_footer.h"
#include "format/parquet/parquet_index.h"
#include "format/parquet/parquet_metadata.h"
#include "format/parquet/parquet_units.h"
#include "format/pyfile.h"
#include "format/reader.h"

#define PYARROW_TAIL 65536u
#define FOOTER_CAP (4u << 20) /* of s3dlio */
#define GROUP_PIECE_MAX (32u << 20)
#define PAGE_ROOM (1u << 21) /* for any page but one of a single larger row */

struct reader {
	struct reader_base base;
	unsigned char *piece, *metadata, *python_buffer;
	const struct parquet_pattern *pattern;
	uint64_t footer_cap, row_bytes;
	uint32_t coalesce;
	bool python_file;
	size_t step; /* the largest request for a row group */
	size_t piece_bytes, metadata_bytes, python_buffer_bytes;
	struct parquet_decoder decode;
	unsigned char *inflater_memory;
	/* the row group that was read last */
	bool here;
	uint64_t file_index, row, end; /* the row asked for last; behind the last of the group */
	struct parquet_laid laid;
	struct file_marks indexed; /* files whose metadata the library has */
	uint64_t open_file;        /* that remains open; UINT64_MAX: none */
};

#define NO_FILE UINT64_MAX

/* Row groups that are asked for together are one request; larger ones than this are read in pieces.
 */
static size_t step_of(const struct parquet_layout *l, uint32_t coalesce)
{
	uint64_t most = NATIVE_PIECE_MAX;

	for (int i = 0; i < 3; i++) {
		uint64_t bytes = l->kind[i].bytes;

		if (bytes > GROUP_PIECE_MAX || bytes * coalesce > GROUP_PIECE_MAX)
			return GROUP_PIECE_MAX;
		if (bytes * coalesce > most)
			most = bytes * coalesce;
	}
	return most < GROUP_PIECE_MAX ? (size_t)((most + 4095) & ~(uint64_t)4095) : GROUP_PIECE_MAX;
}

static uint32_t at_most(uint64_t n, uint32_t most)
{
	return n < most ? (uint32_t)n : most;
}

/* Of files that others wrote: no page is larger than the largest column chunk. */
static void listed_layout(const struct reader_config *config, struct parquet_layout *l)
{
	const uint64_t *room = config->example->room;

	*l = (struct parquet_layout){
		.known_metadata_bytes = room[PARQUET_ROOM_METADATA],
		.page_raw_max = at_most(room[PARQUET_ROOM_RAW], PARQUET_FOREIGN_PAGE_MAX),
		.page_stored_max = at_most(room[PARQUET_ROOM_STORED], PARQUET_FOREIGN_PAGE_MAX),
		.kind[0].bytes = room[PARQUET_ROOM_GROUP],
	};
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

static const struct parquet_shape *shape_of(const struct reader_config *config)
{
	return config->example ? config->example->own : NULL;
}

static void set_pattern(struct reader *r, const struct reader_config *config, const struct store *s)
{
	const struct parquet_shape *shape = shape_of(config);

	r->pattern = parquet_pattern_of(config, &r->coalesce);
	r->footer_cap = 0;
	r->row_bytes = shape ? shape->row_bytes : 0;
	if (r->pattern->capped_tail)
		r->footer_cap = shape && shape->footer_cap ? shape->footer_cap : FOOTER_CAP;
	r->python_file = r->pattern->python_file && !(store_base_flags(s) & STORE_HAS_OBJECTS);
}

/* Room for the metadata, as they are asked for. */
static size_t metadata_room(const struct reader *r, const struct reader_config *config,
			    const struct parquet_layout *l)
{
	uint64_t n;

	if (r->footer_cap)
		return (size_t)(r->footer_cap < config->max_file_bytes || !config->max_file_bytes
					? r->footer_cap
					: config->max_file_bytes);
	if (parquet_is_listed(config->example))
		n = l->known_metadata_bytes;
	else
		n = config->example ? parquet_metadata_bytes(l) + PARQUET_TAIL_BYTES : 0;
	return n > PYARROW_TAIL ? (size_t)n : PYARROW_TAIL;
}

static void lay_out(struct carver *c, const struct reader_config *config, const struct store *s,
		    struct reader *r)
{
	struct parquet_layout l = {.page_raw_max = PAGE_ROOM, .page_stored_max = PAGE_ROOM};
	bool framework = config->access == ACCESS_FRAMEWORK;
	size_t raw, page;

	reader_base_lay_out(c, config, s, &r->base);
	set_pattern(r, config, s);
	if (parquet_is_listed(config->example))
		listed_layout(config, &l);
	else if (config->example && largest_layout(config, &l) < 0)
		c->overflow = true;
	page = (size_t)l.page_stored_max + PARQUET_PAGE_HEAD_MAX;
	raw = config->decode == DECODE_NONE ? 0 : (size_t)l.page_raw_max + 64;
	r->step = NATIVE_PIECE_MAX;
	if (framework && config->example && !c->overflow)
		r->step = step_of(&l, r->coalesce);
	r->piece_bytes = r->step + (raw ? page : 0);
	r->piece = carve(c, r->piece_bytes);
	r->metadata_bytes = 0;
	if (framework) {
		r->metadata_bytes = PYARROW_TAIL;
		if (!c->overflow)
			r->metadata_bytes = metadata_room(r, config, &l);
		r->python_buffer_bytes = r->python_file ? reader_buffer_bytes(config) : 0;
		r->python_buffer = carve(c, r->python_buffer_bytes);
		r->metadata = carve(c, r->metadata_bytes);
		r->indexed.bits = carve(c, config->files / 8 + 1);
		r->indexed.files = config->files;
	}
	if (!raw)
		return;
	r->decode.raw_room = r->decode.dictionary_room = raw;
	if (parquet_is_listed(config->example) && raw > PARQUET_FOREIGN_DICTIONARY_MAX)
		r->decode.dictionary_room = PARQUET_FOREIGN_DICTIONARY_MAX;
	r->decode.raw = carve(c, raw);
	r->decode.dictionary = carve(c, r->decode.dictionary_room);
	r->decode.place = carve(c, (r->decode.dictionary_room / 4 + 2) * sizeof(uint32_t));
	r->decode.scratch = carve(c, PARQUET_SCRATCH_BYTES);
	r->inflater_memory = carve(c, INFLATER_MEMORY);
}

static int start(struct reader *r, struct err *e)
{
	(void)e;
	r->open_file = NO_FILE;
	file_marks_clear(&r->indexed);
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

static int close_kept(struct reader *r, struct err *e)
{
	bool open = r->open_file != NO_FILE;

	r->open_file = NO_FILE;
	return open ? io_close(r->base.io, r->base.blob, e) : 0;
}

int parquet_reader_close(struct reader *r, struct err *e)
{
	int kept = close_kept(r, e), rc = reader_close_nothing(r, kept < 0 ? NULL : e);

	return kept < 0 ? kept : rc;
}

/* ---- the bytes that are wanted of row groups as a stream ---- */

struct stream {
	struct reader *r;
	struct pybuffer *py; /* NULL: plain requests */
	struct parquet_ranges ranges;
	uint64_t at, left; /* next byte of the file to read; of the range */
	size_t pos, end;   /* in the reader's piece */
	size_t step;
};

static int cut_short(uint64_t at, struct err *e)
{
	return err_set(e, ERR_DATA, "the file ends at offset %" PRIu64 ", inside a row group", at);
}

/* Whether there is more to read; turns to the next range. */
static bool more(struct stream *s)
{
	struct extent x;

	if (s->left > 0)
		return true;
	if (!parquet_next_range(&s->ranges, &x))
		return false;
	if (s->py && x.offset != s->at)
		pybuffer_seek(s->py, x.offset);
	s->at = x.offset;
	s->left = x.bytes;
	return true;
}

/* The next piece of the range behind what is in the buffer. */
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

/* At least n bytes in one piece, or all that is left of the range. */
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

/* Passes over what was asked for and is not wanted. */
static int pass_to(struct stream *s, uint64_t at, struct err *e)
{
	int rc = 0;

	while (rc == 0) {
		uint64_t begin = s->at - (s->end - s->pos);

		if (at >= begin && (at < s->at || (at == s->at && s->left > 0))) {
			s->pos += (size_t)(at - begin);
			return 0;
		}
		s->pos = s->end = 0;
		if (s->left == 0) {
			if (!more(s))
				return cut_short(s->at, e);
			continue;
		}
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
		       const struct parquet_place *at, const struct file_spec *f, struct err *e)
{
	const struct parquet_column *c = &l->column[at->column];
	struct check k = {.r = s->r, .l = l, .c = c, .f = f};
	struct parquet_pages p;
	struct parquet_page page;
	int rc = pass_to(s, at->at, e);

	k.first = at->group.first * (c->list ? c->size : 1);
	parquet_decoder_begin(&s->r->decode, c->type, (int)c->width, l->codec,
			      parquet_definition_max(l, c), parquet_repetition_max(c));
	parquet_pages_of(&p, l, at->column, at->group.rows);
	while (rc == 0 && parquet_next_page(&p, &page))
		rc = check_page(s, &k, &page, e);
	if (rc < 0 && e)
		err_wrap(e, "row group %" PRIu64, at->group.index);
	return rc;
}

static int count_values(void *arg, const unsigned char *values, size_t n, size_t bytes,
			struct err *e)
{
	(void)values;
	(void)bytes;
	(void)e;
	*(uint64_t *)arg += n;
	return 0;
}

/* A page of a file that others wrote, which ends at `end` at the latest, and has at most so many
 * values. */
static int decode_page(struct stream *s, uint64_t end, uint64_t values, struct err *e)
{
	struct parquet_page_head head;
	size_t used = 0;
	uint64_t at = s->at - (s->end - s->pos), most = end - at, seen = 0;
	int rc;

	if (stop_is_set(s->r->base.io->stop))
		return err_set(e, ERR_CANCELED, "stopped on request");
	rc = have(s, most < PARQUET_PAGE_HEAD_MAX ? (size_t)most : PARQUET_PAGE_HEAD_MAX, e);

	if (rc == 0)
		rc = parquet_page_head_parse(s->r->piece + s->pos, s->end - s->pos, &head, &used,
					     e);
	if (rc == 0 && (used > most || head.stored > most - used))
		rc = err_set(e, ERR_DATA, "it reaches behind its column chunk");
	if (rc == 0 && head.type != PARQUET_DICTIONARY_PAGE && head.values > values)
		rc = err_set(e, ERR_DATA,
			     "it has %" PRIu32 " values, but its column chunk only %" PRIu64
			     " more",
			     head.values, values);
	if (rc == 0)
		rc = have(s, used + head.stored, e);
	if (rc == 0 && s->end - s->pos < used + head.stored)
		rc = cut_short(s->at, e);
	if (rc == 0)
		rc = parquet_decode_page(&s->r->decode, &head, s->r->piece + s->pos + used,
					 count_values, &seen, e);
	if (rc < 0)
		return e ? err_wrap(e, "page at offset %" PRIu64, at) : rc;
	s->pos += used + head.stored;
	return 0;
}

/* All of a column chunk of a file that others wrote. */
static int decode_chunk(struct stream *s, const struct parquet_layout *l,
			const struct parquet_place *at, struct err *e)
{
	const struct parquet_stored_leaf *leaf = &l->index->leaf[at->column];
	const struct parquet_stored_place *place =
		parquet_place_in(l->index, at->group.index, at->column);
	int rc = pass_to(s, at->at, e);

	parquet_decoder_begin(&s->r->decode, leaf->type, leaf->type_length, place->codec,
			      leaf->definition_max, leaf->repetition_max);
	while (rc == 0 && s->at - (s->end - s->pos) < at->at + at->bytes)
		rc = decode_page(s, at->at + at->bytes, place->values - s->r->decode.levels, e);
	if (rc == 0 && s->r->decode.levels != place->values)
		rc = err_set(e, ERR_DATA,
			     "its pages have %" PRIu64 " values, and its metadata say %" PRIu64,
			     s->r->decode.levels, place->values);
	if (rc < 0 && e)
		err_wrap(e, "row group %" PRIu64 ", column %" PRIu32, at->group.index, at->column);
	return rc;
}

static int read_bytes(struct stream *s, const struct parquet_layout *l, uint64_t first,
		      uint64_t end, const struct file_spec *f, struct err *e)
{
	struct parquet_places places;
	struct parquet_place at;
	int rc = 0;

	if (s->r->base.config.decode != DECODE_NONE) {
		parquet_places_of(&places, l, first, end);
		while (rc == 0 && parquet_next_place(&places, &at))
			rc = l->index ? decode_chunk(s, l, &at, e) : check_chunk(s, l, &at, f, e);
		return rc;
	}
	while (rc == 0 && more(s)) {
		s->end = 0;
		rc = fill(s, e);
	}
	if (rc < 0 && e)
		err_wrap(e, "row group %" PRIu64, first);
	return rc;
}

/* ---- requests ---- */

/* open, seek, read, close of a Python file object. */
static int begin_python(struct reader *r, struct stream *s, struct pybuffer *py, struct err *e)
{
	struct store_stat st;
	size_t buffer = 0;
	int rc = io_stat_blob(r->base.io, r->base.blob, &st, e);

	if (rc == 0)
		rc = reader_buffer_of(&r->base.config, st.block_bytes, r->python_buffer_bytes,
				      &buffer, e);
	if (rc < 0)
		return rc;
	pybuffer_start(py, r->base.io, r->base.blob, r->base.config.python, st.bytes,
		       r->python_buffer, buffer);
	py->kind = IO_DATA;
	s->py = py;
	/* whole buffers, so that the last piece ends as one request of all would */
	if (s->step > buffer)
		s->step -= s->step % buffer;
	return 0;
}

static int open_kept(struct reader *r, const char *path, const struct file_spec *f, struct err *e)
{
	int rc;

	if (r->open_file == f->file_index)
		return 0;
	rc = close_kept(r, e);
	if (rc == 0)
		rc = io_open(r->base.io, path, STORE_READ, r->base.blob, e);
	if (rc == 0)
		r->open_file = f->file_index;
	return rc;
}

/* Row groups [first, end). */
static int read_groups(struct reader *r, const char *path, const struct parquet_layout *l,
		       uint64_t first, uint64_t end, const struct file_spec *f, struct err *e)
{
	struct stream s = {.r = r, .step = r->step};
	struct pybuffer py;
	int rc = r->pattern->keeps_open ? open_kept(r, path, f, e)
					: io_open(r->base.io, path, STORE_READ, r->base.blob, e);

	if (rc < 0)
		return rc;
	parquet_ranges_of(&s.ranges, r->pattern, l, first, end);
	if (r->python_file)
		rc = begin_python(r, &s, &py, e);
	if (rc == 0)
		rc = read_bytes(&s, l, first, end, f, e);
	if (!r->pattern->keeps_open)
		return reader_blob_close(r->base.io, r->base.blob, path, rc, e);
	if (rc < 0)
		close_kept(r, NULL);
	return err_in_path(rc, path, e);
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

	if (l->index)
		return 0; /* its chunks are compared */
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
	if (x->l->index) {
		const struct parquet_stored_place *at =
			parquet_place_in(x->l->index, c->group, (uint32_t)c->column);

		return c->at == at->at && c->stored == at->bytes
			       ? 0
			       : err_set(e, ERR_DATA, "it has changed since the run began");
	}
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
	tail = r->footer_cap ? r->metadata_bytes : PYARROW_TAIL;
	if (st.bytes < tail)
		tail = (size_t)st.bytes;
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
		if (r->footer_cap)
			return err_set(e, ERR_DATA,
				       "it has %" PRIu32 " bytes of metadata, more than the "
				       "%" PRIu64 " that s3dlio asks for: raise "
				       "storage.storage_options.footer_cap",
				       n, r->footer_cap);
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

static int load_metadata(struct reader *r, const char *path, const struct file_spec *f,
			 const struct parquet_layout *l, struct err *e)
{
	int rc = 0;

	if (r->pattern->keeps_metadata && file_marks_get(&r->indexed, f->file_index))
		return 0;
	rc = r->pattern->keeps_open ? open_kept(r, path, f, e)
				    : io_open(r->base.io, path, STORE_READ, r->base.blob, e);
	if (rc < 0)
		return rc;
	rc = read_metadata(r, l, e);
	if (!r->pattern->keeps_open)
		rc = reader_blob_close(r->base.io, r->base.blob, path, rc, e);
	else if (rc < 0)
		close_kept(r, NULL);
	if (rc == 0)
		file_marks_set(&r->indexed, f->file_index);
	return err_in_path(rc, path, e);
}

int parquet_load_index(struct reader *r, const char *path, const struct file_spec *f, struct err *e)
{
	int rc = parquet_lay_out(&r->laid, f, e);

	return rc < 0 ? rc : load_metadata(r, path, f, &r->laid.l, e);
}

static int read_rows(struct reader *r, const char *path, const struct file_spec *f, uint64_t index,
		     struct err *e)
{
	bool all = r->base.config.keep_open, framework = r->base.config.access == ACCESS_FRAMEWORK;
	const struct parquet_layout *l = &r->laid.l;
	struct parquet_group g;
	uint64_t first, end, at, until;
	int rc = parquet_lay_out(&r->laid, f, e);

	if (rc < 0)
		return rc;
	parquet_unit_of(l, r->coalesce, index, &first, &end);
	if (framework && !file_marks_get(&r->indexed, f->file_index))
		rc = load_metadata(r, path, f, l, e);
	for (at = all ? 0 : first; rc == 0 && at < (all ? l->groups : end); at = until) {
		until = l->groups - at < r->coalesce ? l->groups : at + r->coalesce;
		rc = read_groups(r, path, l, at, until, f, e);
	}
	if (rc == 0) {
		parquet_group_at(l, end - 1, &g);
		r->end = g.first + g.rows;
	}
	r->here = rc == 0;
	r->file_index = f->file_index;
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
	if (r->row_bytes && !f->index)
		out->payload_bytes = r->row_bytes;
	/* of a file that was loaded whole, the first sample has the payload of all */
	if (!r->base.config.keep_open)
		out->along = r->end - index - 1;
	file_marks_set(&r->base.loaded, f->file_index);
	return 0;
}
