/* arrow_stream: streams of Apache Arrow, as Hugging Face's `datasets` keeps them: it converts what
 * it loads once (parquet and the rest), and from then on maps these files. Written, and compared,
 * as one ascending stream; every byte but the samples' follows from the keys. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/little_endian.h"
#include "format/arrow/arrow_layout.h"
#include "format/arrow/arrow_table.h"
#include "format/blob_stream.h"
#include "format/reader_map.h"
#include "workload/key.h"
#include "workload/workload.h"

#define NUMBERS_AT_ONCE 1024u

/* ---- the file ---- */

static int arrow_own(const struct workload *w, struct file_spec *form, void **own, struct err *e)
{
	struct arrow_shape *s = xcalloc(1, sizeof(*s));

	(void)e;
	s->batch_rows = w->dataset.arrow.batch_rows > 0 ? (uint64_t)w->dataset.arrow.batch_rows
							: ARROW_BATCH_ROWS;
	form->own = *own = s;
	return 0;
}

static int arrow_check(const struct file_spec *f, struct err *e)
{
	struct arrow_layout l;

	return arrow_layout_of(f, &l, e);
}

static uint64_t arrow_file_bytes(const struct file_spec *f)
{
	struct arrow_layout l;

	return arrow_layout_of(f, &l, NULL) < 0 ? UINT64_MAX : l.file_bytes;
}

static int put_offsets(struct blob_stream *s, const struct arrow_layout *l,
		       const struct arrow_place *place, struct err *e)
{
	unsigned char piece[NUMBERS_AT_ONCE * ARROW_OFFSET_BYTES], *p = piece;
	int rc = 0;

	for (uint64_t i = 0; rc == 0 && i <= place->rows; i++) {
		p = le_put(p, i * l->sample_bytes, ARROW_OFFSET_BYTES);
		if (p < piece + sizeof(piece) && i < place->rows)
			continue;
		rc = blob_stream_put(s, piece, (size_t)(p - piece), e);
		p = piece;
	}
	return rc;
}

static int put_labels(struct blob_stream *s, const struct file_spec *f,
		      const struct arrow_place *place, struct err *e)
{
	unsigned char piece[NUMBERS_AT_ONCE * ARROW_LABEL_BYTES], *p = piece;
	int rc = 0;

	for (uint64_t i = 0; rc == 0 && i < place->rows; i++) {
		p = le_put(p, file_spec_label(f, place->first + i), ARROW_LABEL_BYTES);
		if (p < piece + sizeof(piece) && i + 1 < place->rows)
			continue;
		rc = blob_stream_put(s, piece, (size_t)(p - piece), e);
		p = piece;
	}
	return rc;
}

/* Zeros from the end of a buffer to the next multiple of 8. */
static int put_padding(struct blob_stream *s, const struct arrow_range *buffer, struct err *e)
{
	return blob_stream_zeros(s, -(buffer->offset + buffer->bytes) & 7, e);
}

static int put_batch(struct blob_stream *s, const struct file_spec *f, const struct arrow_layout *l,
		     uint64_t batch, const struct content_source *content, struct err *e)
{
	unsigned char head[ARROW_OWN_METADATA_MAX];
	struct arrow_place p;
	size_t n;

	arrow_place_of(l, batch, &p);
	n = arrow_batch_write(head, p.rows, p.buffer, p.body_bytes);
	return blob_stream_put(s, head, n, e) ?: put_offsets(s, l, &p, e) ?:
	       put_padding(s, &p.buffer[ARROW_OFFSETS], e) ?:
	       blob_stream_payload(s, content, f->file_index, p.first * l->sample_bytes,
				   p.buffer[ARROW_SAMPLES].bytes, e) ?:
	       put_padding(s, &p.buffer[ARROW_SAMPLES], e) ?: put_labels(s, f, &p, e);
}

static int arrow_put(struct blob_stream *s, const struct file_spec *f,
		     const struct content_source *content, void *scratch, struct err *e)
{
	static const unsigned char end[ARROW_PREFIX_BYTES] = {255, 255, 255, 255};
	unsigned char head[ARROW_OWN_METADATA_MAX];
	struct arrow_layout l = {0};
	int rc = arrow_layout_of(f, &l, e);

	(void)scratch;
	if (rc == 0)
		rc = blob_stream_put(s, head, arrow_schema_write(head), e);
	for (uint64_t i = 0; rc == 0 && i < l.batches; i++)
		rc = put_batch(s, f, &l, i, content, e);
	return rc < 0 ? rc : blob_stream_put(s, end, sizeof(end), e);
}

static int not_computed(struct err *e)
{
	return err_set(e, ERR_USAGE,
		       "the place of a sample in files that others wrote does not follow from the "
		       "workload: they need reader.access=framework, and no reader.queue_depth");
}

static int arrow_extent(const struct reader_config *c, const struct file_spec *f, uint64_t index,
			struct extent *out, struct err *e)
{
	struct arrow_layout l;
	int rc = f->bytes ? not_computed(e) : arrow_layout_of(f, &l, e);

	if (rc < 0)
		return rc;
	*out = (struct extent){.offset = arrow_sample_at(&l, index), .bytes = l.sample_bytes};
	if (c->keep_open)
		*out = (struct extent){.offset = l.schema_bytes,
				       .bytes = l.file_bytes - l.schema_bytes - ARROW_PREFIX_BYTES,
				       .whole = true};
	return 0;
}

/* ---- reading ---- */

/* FRAMEWORK is Dataset.__getitem__ of a dataset that was loaded (datasets 5.2.0, table.py and
 * arrow_reader.py: pa.memory_map, pa.ipc.open_stream, read_all): the file is opened, asked for its
 * size and mapped whole; the metadata of every batch is looked at. pyarrow tells the system that it
 * will need each body, so that the system reads the whole file, as far as there is memory. Then for
 * each sample two offsets of its column, its bytes, and the same of every other column: pages,
 * which the system reads in the sizes of its read-ahead where they are not cached. Files of others
 * are read as their own metadata says, if one of their columns has as many bytes in a row as a
 * sample of the workload; those with a footer as pa.ipc.open_file(..).read_all() does. Batches that
 * are compressed are read and decompressed whole when the file is mapped, and kept in memory, so
 * that a sample is no request; here their bytes are read then, decoding full decompresses them (in
 * this thread alone), and verifying decompresses the batch that a sample lies in.
 *
 * There the program maps all files before its loaders begin, and they stay mapped; here a worker
 * does when it first needs one, and keeps at most KEPT_MAPPED, fewer where their lists of batches
 * would take more than KEPT_LISTS.
 *
 * NATIVE is one read of a sample, at most 2 MiB at a time; its place is known from its number. */

#define KEPT_MAPPED 512u
#define KEPT_LISTS (24u << 20)

struct mapped_file {
	struct arrow_table table;
	uint64_t index;  /* number of the file */
	uint64_t serial; /* of its last use; 0: not mapped */
	uint64_t touched;
};

struct reader {
	struct reader_base base;
	unsigned char *piece; /* native: of a sample; framework: EXPECT_BYTES, to compare */
	size_t piece_bytes;
	struct mapped_file *file;
	uint32_t files;
	uint64_t serial;
	struct arrow_scratch *scratch;
};

/* Of a file of the workload; never 0. */
static uint64_t batches_of(const struct reader_config *c)
{
	const struct arrow_shape *shape = c->example ? c->example->own : NULL;
	uint64_t rows = shape ? shape->batch_rows : ARROW_BATCH_ROWS;

	if (c->max_sample_bytes > INT32_MAX / rows)
		rows = c->max_sample_bytes > INT32_MAX ? 1 : INT32_MAX / c->max_sample_bytes;
	/* `datasets` splits a table that it got whole where it likes: twice as many, and a few for
	 * dictionaries */
	return 2 * (c->samples_per_file / rows) + 24;
}

static void lay_out_maps(struct carver *c, const struct reader_config *config, struct reader *r)
{
	uint64_t most = batches_of(config),
		 files = config->files < KEPT_MAPPED ? config->files : KEPT_MAPPED;

	if (most > UINT32_MAX) {
		c->overflow = true;
		return;
	}
	if (files > KEPT_LISTS / sizeof(struct arrow_entry) / most)
		files = KEPT_LISTS / sizeof(struct arrow_entry) / most;
	if (files == 0)
		files = 1;
	r->files = (uint32_t)files;
	r->file = carve(c, files * sizeof(*r->file));
	r->scratch = carve(c, sizeof(*r->scratch));
	for (uint32_t i = 0; i < files; i++) {
		struct arrow_entry *entry = carve(c, most * sizeof(*entry));

		if (r->file)
			r->file[i] = (struct mapped_file){
				.table = {.entry = entry, .most = (uint32_t)most}};
	}
	if (config->decode == DECODE_VERIFY)
		r->piece = carve(c, EXPECT_BYTES);
}

static void arrow_lay_out(struct carver *c, const struct reader_config *config,
			  const struct store *s, struct reader *r)
{
	uint64_t room = config->max_sample_bytes;

	reader_base_lay_out(c, config, s, &r->base);
	if (config->access == ACCESS_FRAMEWORK) {
		lay_out_maps(c, config, r);
		return;
	}
	if (room > NATIVE_PIECE_MAX)
		room = NATIVE_PIECE_MAX;
	r->piece_bytes = (size_t)room;
	r->piece = carve(c, room);
}

static int start(struct reader *r, struct err *e)
{
	if (r->scratch) {
		arrow_scratch_begin(r->scratch);
		r->scratch->decompress = r->base.config.decode == DECODE_FULL;
	}
	return r->base.config.access == ACCESS_FRAMEWORK ? store_map_check(r->base.io->store, e)
							 : 0;
}

FORMAT_READER(arrow, arrow_lay_out, start)

static void unmap_file(struct mapped_file *m)
{
	store_unmap(&m->table.map);
	m->serial = 0;
}

static int mapped_file_of(struct reader *r, const char *path, const struct file_spec *f,
			  struct mapped_file **out, struct err *e)
{
	struct mapped_file *m = &r->file[0];
	int rc = 0;

	for (uint32_t i = 0; i < r->files; i++) {
		struct mapped_file *one = &r->file[i];

		if (one->serial && one->index == f->file_index) {
			m = one;
			break;
		}
		if (one->serial < m->serial)
			m = one;
	}
	if (!m->serial || m->index != f->file_index) {
		unmap_file(m);
		m->index = f->file_index;
		m->touched = 0;
		rc = reader_map(&r->base, path, &m->table.map, e);
		if (rc == 0)
			rc = arrow_table_list(&m->table, r->base.io, r->scratch, e);
		if (rc < 0)
			unmap_file(m);
	}
	if (rc == 0)
		m->serial = ++r->serial;
	*out = m;
	return rc;
}

static int mapped_sample(struct reader *r, struct mapped_file *m, const struct file_spec *f,
			 uint64_t index, struct sample *out, struct err *e)
{
	const struct store_map *map = &m->table.map;
	struct arrow_part part[ARROW_PARTS_MAX], *payload = NULL;
	uint64_t want = file_spec_sample_bytes(f);
	uint32_t parts;
	int rc;

	if (index >= m->table.rows)
		return err_set(e, ERR_DATA,
			       "it has %" PRIu64 " rows, and sample %" PRIu64
			       " is needed: it is truncated or belongs to another dataset",
			       m->table.rows, index);
	out->data = map->at;
	/* pyarrow has what was compressed in memory */
	if (m->table.compressed && !r->base.expect.content)
		return 0;
	rc = arrow_table_row(&m->table, r->base.io, index, r->scratch, part, &parts, e);
	for (uint32_t i = 0; rc == 0 && i < parts; i++) {
		if (part[i].bytes == want && !payload)
			payload = &part[i];
		if (part[i].bytes == 0 || part[i].at)
			continue;
		m->touched += store_map_pages(part[i].offset, part[i].bytes);
		rc = io_map_touch(r->base.io, IO_DATA, map, part[i].offset, part[i].bytes, e);
	}
	if (rc < 0)
		return rc;
	if (f->bytes)
		return 0; /* others wrote it: a sample is what its row has */
	if (!payload)
		return err_set(e, ERR_DATA,
			       "no column of row %" PRIu64 " has the %" PRIu64
			       " bytes of a sample of the workload: it is damaged, or belongs to "
			       "another dataset",
			       index, want);
	if (payload->at) {
		out->data = payload->at;
		return expectation_check(&r->base.expect, f->file_index, index * want, UINT64_MAX,
					 payload->at, want, e);
	}
	out->data = map->at + payload->offset;
	return r->base.expect.content
		       ? reader_compare_map(&r->base, map, f->file_index, payload->offset,
					    index * want, want, r->piece, e)
		       : 0;
}

static int read_framework(struct reader *r, const char *path, const struct file_spec *f,
			  uint64_t index, struct sample *out, struct err *e)
{
	struct mapped_file *m = NULL;
	int rc = mapped_file_of(r, path, f, &m, e);

	if (rc == 0 && m->touched >= READER_RENEW_PAGES) {
		store_map_renew(&m->table.map);
		m->touched = 0;
	}
	if (rc == 0)
		rc = mapped_sample(r, m, f, index, out, e);
	return rc < 0 ? err_in_path(rc, path, e) : 0;
}

static int native_sample(struct reader *r, const void *layout, const struct file_spec *f,
			 uint64_t index, struct sample *out, struct err *e)
{
	const struct arrow_layout *l = layout;
	uint64_t done = 0, at = arrow_sample_at(l, index), from = index * l->sample_bytes;
	int rc = 0;

	while (rc == 0 && done < l->sample_bytes) {
		uint64_t left = l->sample_bytes - done;
		size_t part = left < r->piece_bytes ? (size_t)left : r->piece_bytes;
		ssize_t got =
			io_pread(r->base.io, IO_DATA, r->base.blob, r->piece, part, at + done, e);

		if (got < 0)
			return (int)got;
		if ((size_t)got < part)
			return err_set(e, ERR_DATA,
				       "sample %" PRIu64 ", at offset %" PRIu64
				       ", is cut short: the file is truncated, or belongs to "
				       "another dataset",
				       index, at);
		if (r->base.config.decode != DECODE_NONE)
			rc = expectation_check(&r->base.expect, f->file_index, from + done,
					       at - from, r->piece, part, e);
		done += part;
	}
	out->data = r->piece;
	return rc;
}

static int read_native(struct reader *r, const char *path, const struct file_spec *f,
		       uint64_t index, struct sample *out, struct err *e)
{
	struct arrow_layout l = {0};
	int rc = f->bytes ? not_computed(e) : arrow_layout_of(f, &l, e);

	return rc < 0 ? rc : reader_items(r, path, f, index, native_sample, &l, out, e);
}

FORMAT_READ_STREAM(arrow, read_framework, read_native)

static int arrow_reader_close(struct reader *r, struct err *e)
{
	(void)e;
	for (uint32_t i = 0; i < r->files; i++)
		unmap_file(&r->file[i]);
	if (r->scratch)
		arrow_scratch_release(r->scratch);
	return 0;
}

/* ---- files of others ---- */

/* Batches of one file, at most. */
#define LOOK_BATCHES (1u << 20)

/* Rows follow from the batches. A sample is all that a row has, in the mean. */
static int arrow_look(const struct io *io, const char *path, uint64_t bytes,
		      const struct file_spec *form, struct file_look *out, struct err *e)
{
	struct arrow_scratch *scratch = try_calloc(1, sizeof(*scratch), "an Arrow file's lists", e);
	struct arrow_table t = {.most = LOOK_BATCHES};
	struct io uncounted = {.store = io->store};
	struct blob *blob = NULL;
	struct err why = {0};
	int rc = scratch ? store_map_check(io->store, &why) : -ENOMEM;

	(void)form;
	*out = (struct file_look){0};
	/* what that advises is for files whose places follow from the workload */
	if (scratch && rc < 0)
		err_set(e, rc,
			"Arrow files that others wrote are mapped into memory, which this store "
			"does not allow: set storage.store to posix");
	if (rc == 0) {
		arrow_scratch_begin(scratch);
		scratch->list_only = true;
		t.entry = try_calloc(LOOK_BATCHES, sizeof(*t.entry), "an Arrow file's batches", e);
		blob = t.entry ? store_blob_new(io->store, e) : NULL;
		rc = blob ? io_open(io, path, STORE_READ, blob, e) : -ENOMEM;
	}
	if (rc == 0) {
		int closed;

		rc = io_map(io, blob, bytes, &t.map, e);
		closed = io_close(io, blob, rc == 0 ? e : NULL);
		rc = rc == 0 ? closed : rc;
	}
	if (rc == 0)
		rc = arrow_table_list(&t, &uncounted, scratch, e);
	if (rc == 0)
		*out = (struct file_look){.samples = t.rows,
					  .sample_bytes = t.rows ? bytes / t.rows : 0,
					  .most_bytes = t.rows ? bytes / t.rows : 0};
	store_unmap(&t.map);
	if (scratch)
		arrow_scratch_release(scratch);
	free(blob);
	free(t.entry);
	free(scratch);
	return rc;
}

static const char *const keys[] = {"dataset.arrow.batch_rows", NULL};

const struct format_ops format_arrow_stream = {
	.is.name = "arrow_stream",
	.is.help = "Streams and files of Apache Arrow, the cache of Hugging Face's datasets, which "
		   "maps them "
		   "(framework access needs a store with files).",
	.is.extension = "arrow",
	.is.flags = FORMAT_MAPS | FORMAT_LISTED,
	.is.keys = keys,
	.own = arrow_own,
	.check = arrow_check,
	.file_bytes = arrow_file_bytes,
	.put = arrow_put,
	.reader_bytes = arrow_reader_bytes,
	.reader_init = arrow_reader_init,
	.read = arrow_read,
	.reader_close = arrow_reader_close,
	.extent = arrow_extent,
	.look = arrow_look,
};
