/* mds and litdata: files of items with an offset for each, beside an index. A pure function of the
 * keys: sample i begins at the first item's place and i strides behind it. */
#include <assert.h>
#include <inttypes.h>
#include <string.h>

#include "base/little_endian.h"
#include "format/blob_stream.h"
#include "format/chunks/chunks_index.h"
#include "format/reader.h"
#include "workload/key.h"

#define OFFSETS_AT_ONCE 1024

/* ---- the file ---- */

static int chunks_check(const struct chunks_kind *k, const struct file_spec *f, struct err *e)
{
	struct chunks_layout l;

	return chunks_layout_of(k, f, &l, e);
}

static uint64_t chunks_file_bytes(const struct chunks_kind *k, const struct file_spec *f)
{
	struct chunks_layout l;

	return chunks_layout_of(k, f, &l, NULL) < 0 ? UINT64_MAX : l.file_bytes;
}

static int put_offsets(struct blob_stream *s, const struct file_spec *f,
		       const struct chunks_layout *l, struct err *e)
{
	unsigned char piece[4 * OFFSETS_AT_ONCE], *p = le_put(piece, f->samples, 4);
	int rc = 0;

	for (uint64_t i = 0; rc == 0 && i <= f->samples; i++) {
		p = le_put(p, l->items_at + i * l->stride, 4);
		if (p < piece + sizeof(piece) && i < f->samples)
			continue;
		rc = blob_stream_put(s, piece, (size_t)(p - piece), e);
		p = piece;
	}
	return rc;
}

static void label_of(const struct file_spec *f, uint64_t index,
		     unsigned char out[CHUNKS_LABEL_BYTES])
{
	le_put(out, file_spec_label(f, index), CHUNKS_LABEL_BYTES);
}

/* The sizes in front of an item: how many bytes. */
static size_t sizes_of(const struct chunks_kind *k, uint64_t sample_bytes, unsigned char out[8])
{
	le_put(le_put(out, sample_bytes, 4), CHUNKS_LABEL_BYTES, 4);
	return 4 * k->sizes;
}

static int chunks_put(const struct chunks_kind *k, struct blob_stream *s, const struct file_spec *f,
		      const struct content_source *content, struct err *e)
{
	unsigned char sizes[8], label[CHUNKS_LABEL_BYTES];
	struct chunks_layout l = {0};
	int rc = chunks_layout_of(k, f, &l, e);
	size_t n;

	if (rc == 0)
		rc = put_offsets(s, f, &l, e) ?: blob_stream_put(s, l.config, l.config_bytes, e);
	n = sizes_of(k, l.sample_bytes, sizes);
	for (uint64_t i = 0; i < f->samples && rc == 0; i++) {
		label_of(f, i, label);
		rc = blob_stream_put(s, sizes, n, e) ?:
		     blob_stream_payload(s, content, f->file_index, i * l.sample_bytes,
					 l.sample_bytes, e) ?:
		     blob_stream_put(s, label, sizeof(label), e);
	}
	return rc == 0 && l.filled_bytes ? blob_stream_zeros(s, l.filled_bytes, e) : rc;
}

static int chunks_extent(const struct chunks_kind *k, const struct reader_config *c,
			 const struct file_spec *f, uint64_t index, struct extent *out,
			 struct err *e)
{
	struct chunks_layout l;
	int rc = chunks_layout_of(k, f, &l, e);

	if (rc < 0)
		return rc;
	*out = (struct extent){.offset = l.items_at + index * l.stride, .bytes = l.stride};
	if (c->keep_open)
		*out = (struct extent){
			.offset = l.items_at, .bytes = f->samples * l.stride, .whole = true};
	return 0;
}

/* ---- reading ---- */

/* FRAMEWORK is what the libraries do with a file that lies here, for each sample: 8 bytes of the
 * offsets, then the item, both by read(2) without a buffer. MDS opens the file for it and closes it
 * again (streaming 0.13.0, base/format/mds/reader.py: get_sample_data), LitData keeps the chunk
 * open until another one is read (0.2.64, streaming/item_loader.py: load_item_from_chunk). The
 * offsets are those of the file, so files of others are read too, if they have a part as large as a
 * sample of the workload: in LitData's each part says its size, in MDS's the shard's own text tells
 * the columns, which is looked at once for a file and only where an item is not like ours.
 *
 * NATIVE is one read of an item, whose place is known from its number; without decoding one per
 * 2 MiB of it. */

#define PATH_ROOM 4096u
#define TEXT_MAX 65536u   /* of a shard's columns */
#define OTHERS_MAX 65536u /* parts of an item beside the payload */

struct reader {
	struct reader_base base;
	const struct chunks_kind *kind;
	bool open; /* litdata: the file at `path` */
	char *path;
	uint64_t file_bytes; /* of the open file */
	unsigned char *item;
	size_t item_bytes;
	char *text;
	uint64_t columns_of; /* file_index + 1; 0: nobody's */
	struct chunks_columns columns;
};

static void chunks_lay_out(struct carver *c, const struct reader_config *config,
			   const struct store *s, struct reader *r)
{
	bool framework = config->access == ACCESS_FRAMEWORK;
	uint64_t room;

	reader_base_lay_out(c, config, s, &r->base);
	if (__builtin_add_overflow(config->max_sample_bytes, (uint64_t)OTHERS_MAX, &room)) {
		c->overflow = true;
		return;
	}
	if (!framework)
		room = config->max_sample_bytes + 8 + CHUNKS_LABEL_BYTES;
	if (!framework && config->decode == DECODE_NONE && room > NATIVE_PIECE_MAX)
		room = NATIVE_PIECE_MAX;
	r->path = carve(c, framework ? PATH_ROOM : 0);
	r->text = carve(c, framework ? TEXT_MAX : 0);
	r->item_bytes = (size_t)room;
	r->item = carve(c, room);
}

static int start_mds(struct reader *r, struct err *e)
{
	(void)e;
	r->kind = &chunks_mds;
	return 0;
}

static int start_litdata(struct reader *r, struct err *e)
{
	(void)e;
	r->kind = &chunks_litdata;
	return 0;
}

FORMAT_READER(mds, chunks_lay_out, start_mds)
FORMAT_READER(litdata, chunks_lay_out, start_litdata)

static int close_file(struct reader *r, int rc, struct err *e)
{
	int closed;

	if (!r->open)
		return rc;
	r->open = false;
	closed = io_close(r->base.io, r->base.blob, rc == 0 ? e : NULL);
	return rc == 0 ? closed : rc;
}

/* Python's open: it asks for the size, too. */
static int open_file(struct reader *r, const char *path, struct err *e)
{
	size_t n = strlen(path) + 1;
	struct store_stat st;
	int rc;

	if (r->open && strcmp(path, r->path) == 0)
		return 0;
	rc = close_file(r, 0, e) ?: io_open(r->base.io, path, STORE_READ, r->base.blob, e);
	if (rc < 0)
		return rc;
	r->open = true;
	/* a path that cannot be kept is never known again */
	memcpy(r->path, n <= PATH_ROOM ? path : "", n <= PATH_ROOM ? n : 1);
	rc = io_stat_blob(r->base.io, r->base.blob, &st, e);
	r->file_bytes = rc < 0 ? 0 : st.bytes;
	return rc;
}

static int read_exactly(struct reader *r, enum io_kind kind, void *out, size_t n, uint64_t at,
			const char *what, uint64_t index, struct err *e)
{
	ssize_t got = n ? io_pread(r->base.io, kind, r->base.blob, out, n, at, e) : 0;

	if (got < 0)
		return (int)got;
	if ((size_t)got < n)
		return err_set(e, ERR_DATA,
			       "%s of sample %" PRIu64 ", at offset %" PRIu64
			       ", is cut short: %zd of %zu bytes are present",
			       what, index, at, got, n);
	return 0;
}

/* The text of an MDS shard, between its offsets and its first item. */
static int look_at_columns(struct reader *r, const struct file_spec *f, struct err *e)
{
	unsigned char head[8];
	uint64_t samples, first, at;
	int rc;

	if (r->columns_of == f->file_index + 1)
		return 0;
	r->columns_of = 0;
	rc = read_exactly(r, IO_META, head, sizeof(head), 0, "the header", 0, e);
	if (rc < 0)
		return rc;
	samples = le_get(head, 4);
	first = le_get(head + 4, 4);
	at = 8 + 4 * samples;
	if (first < at || first > r->file_bytes || first - at > TEXT_MAX)
		return err_set(e, ERR_DATA,
			       "its header has %" PRIu64 " samples, the first at offset %" PRIu64
			       ", which leaves no place for the text that describes them",
			       samples, first);
	rc = read_exactly(r, IO_META, r->text, (size_t)(first - at), at, "the header", 0, e);
	if (rc == 0)
		rc = chunks_columns_parse(r->text, (size_t)(first - at), &r->columns, e);
	if (rc < 0)
		return rc;
	r->columns_of = f->file_index + 1;
	return 0;
}

/* Where the payload lies in the item just read; what one of ours has is not looked for. */
static int find_payload(struct reader *r, const struct file_spec *f, uint64_t index, uint64_t n,
			uint64_t want, uint64_t *at, struct err *e)
{
	const struct chunks_kind *k = r->kind;
	unsigned char sizes[8];
	size_t head = sizes_of(k, want, sizes);
	int64_t found;
	int rc;

	*at = head;
	if (n == head + want + CHUNKS_LABEL_BYTES && memcmp(r->item, sizes, head) == 0)
		return 0;
	rc = k->config ? look_at_columns(r, f, e) : 0;
	if (rc < 0)
		return rc;
	found = chunks_payload_at(k->config ? &r->columns : NULL, r->item, n, want);
	if (found < 0)
		return err_set(e, ERR_DATA,
			       "no part of sample %" PRIu64 " (%" PRIu64 " bytes) has the %" PRIu64
			       " bytes of a sample of the workload: it is damaged, or belongs to "
			       "another dataset",
			       index, n, want);
	*at = (uint64_t)found;
	return 0;
}

static int framework_sample(struct reader *r, const struct file_spec *f, uint64_t index,
			    struct sample *out, struct err *e)
{
	uint64_t want = file_spec_sample_bytes(f), from = index * want, begin, end, at = 0;
	unsigned char pair[8];
	int rc =
		read_exactly(r, IO_META, pair, sizeof(pair), 4 + 4 * index, "the offset", index, e);

	if (rc < 0)
		return rc;
	begin = le_get(pair, 4);
	end = le_get(pair + 4, 4);
	if (begin > end || end > r->file_bytes)
		return err_set(e, ERR_DATA,
			       "sample %" PRIu64 " is said to lie from offset %" PRIu64
			       " to %" PRIu64 " of %" PRIu64
			       ": the file is truncated, or its offsets are damaged",
			       index, begin, end, r->file_bytes);
	if (end - begin > r->item_bytes || end - begin < want)
		return err_set(e, ERR_DATA,
			       "sample %" PRIu64 " has %" PRIu64
			       " bytes, and one of the workload has %" PRIu64
			       ": its offsets are damaged, or it belongs to another dataset",
			       index, end - begin, want);
	rc = read_exactly(r, IO_DATA, r->item, (size_t)(end - begin), begin, "the item", index, e);
	if (rc == 0)
		rc = find_payload(r, f, index, end - begin, want, &at, e);
	if (rc < 0)
		return rc;
	out->data = r->item + at;
	if (r->base.config.decode == DECODE_NONE)
		return 0;
	return expectation_check(&r->base.expect, f->file_index, from, begin + at - from, out->data,
				 (size_t)want, e);
}

static int read_framework(struct reader *r, const char *path, const struct file_spec *f,
			  uint64_t index, struct sample *out, struct err *e)
{
	bool all = r->base.config.keep_open;
	uint64_t begin = all ? 0 : index, end = all ? f->samples : index + 1;
	int rc = 0;

	for (uint64_t i = begin; i < end && rc == 0; i++) {
		rc = open_file(r, path, e);
		if (rc == 0)
			rc = framework_sample(r, f, i, out, e);
		if (rc < 0 || !(all || r->kind->keeps_open))
			rc = close_file(r, rc, e);
	}
	if (all)
		rc = close_file(r, rc, e);
	return rc < 0 ? err_in_path(rc, path, e) : 0;
}

/* In one piece, or, when nothing but its sizes matter, in pieces at the same place. */
static int native_sample(struct reader *r, const void *layout, const struct file_spec *f,
			 uint64_t index, struct sample *out, struct err *e)
{
	const struct chunks_layout *l = layout;
	uint64_t done = 0, at = l->items_at + index * l->stride, from = index * l->sample_bytes;
	unsigned char sizes[8];
	size_t head = sizes_of(r->kind, l->sample_bytes, sizes);
	int rc;

	while (done < l->stride) {
		uint64_t left = l->stride - done;
		size_t part = left < r->item_bytes ? (size_t)left : r->item_bytes;

		rc = read_exactly(r, IO_DATA, r->item, part, at + done, "the item", index, e);
		if (rc < 0)
			return rc;
		if (done == 0 && memcmp(r->item, sizes, head) != 0)
			return err_set(e, ERR_DATA,
				       "the item at offset %" PRIu64
				       " does not begin with the sizes of sample %" PRIu64
				       ": it is damaged, belongs to another dataset, or was "
				       "written by another program, whose files reader.access "
				       "framework reads",
				       at, index);
		done += part;
	}
	out->data = r->item;
	if (r->base.config.decode == DECODE_NONE)
		return 0;
	out->data = r->item + head;
	return expectation_check(&r->base.expect, f->file_index, from, at + head - from, out->data,
				 (size_t)l->sample_bytes, e);
}

static int read_native(struct reader *r, const char *path, const struct file_spec *f,
		       uint64_t index, struct sample *out, struct err *e)
{
	struct chunks_layout l = {0};
	int rc = chunks_layout_of(r->kind, f, &l, e);

	if (rc == 0 && r->base.config.decode != DECODE_NONE && l.stride > r->item_bytes)
		rc = err_set(e, ERR_USAGE, "a sample is larger than the reader's buffer");
	return rc < 0 ? rc : reader_items(r, path, f, index, native_sample, &l, out, e);
}

FORMAT_READ_STREAM(chunks, read_framework, read_native)

static int chunks_reader_close(struct reader *r, struct err *e)
{
	return close_file(r, 0, e);
}

/* ---- the rows ---- */

/* An index names files of its own folder. */
static int check_keys(const struct workload *w, struct err *e)
{
	const char *key = w->dataset.num_files_train > 0 && w->dataset.num_subfolders_train > 1
				  ? "dataset.num_subfolders_train"
			  : w->dataset.num_files_eval > 0 && w->dataset.num_subfolders_eval > 1
				  ? "dataset.num_subfolders_eval"
				  : NULL;

	if (!key)
		return 0;
	return workload_key_error(w, ERR_USAGE, e, key,
				  "%s is above 1, but files of format %s lie in one folder, beside "
				  "their index: set it to 0",
				  key, w->dataset.format);
}

/* The functions of a kind, and the members of its row that have the same names. */
#define CHUNKS_FUNCTIONS(name)                                                                     \
	static int name##_check(const struct file_spec *f, struct err *e)                          \
	{                                                                                          \
		return chunks_check(&chunks_##name, f, e);                                         \
	}                                                                                          \
                                                                                                   \
	static uint64_t name##_file_bytes(const struct file_spec *f)                               \
	{                                                                                          \
		return chunks_file_bytes(&chunks_##name, f);                                       \
	}                                                                                          \
                                                                                                   \
	static int name##_put(struct blob_stream *s, const struct file_spec *f,                    \
			      const struct content_source *content, void *scratch, struct err *e)  \
	{                                                                                          \
		(void)scratch;                                                                     \
		return chunks_put(&chunks_##name, s, f, content, e);                               \
	}                                                                                          \
                                                                                                   \
	static int name##_extent(const struct reader_config *c, const struct file_spec *f,         \
				 uint64_t index, struct extent *out, struct err *e)                \
	{                                                                                          \
		return chunks_extent(&chunks_##name, c, f, index, out, e);                         \
	}
#define CHUNKS_OPS(name)                                                                           \
	.check = name##_check, .file_bytes = name##_file_bytes, .put = name##_put,                 \
	.reader_bytes = name##_reader_bytes, .reader_init = name##_reader_init,                    \
	.read = chunks_read, .reader_close = chunks_reader_close, .extent = name##_extent

CHUNKS_FUNCTIONS(mds)
CHUNKS_FUNCTIONS(litdata)

const struct format_ops format_mds = {
	.is.name = "mds",
	.is.help = "MosaicML Streaming's shards (MDS) and their index.json.",
	.is.extension = "mds",
	.is.flags = FORMAT_FILLED,
	.is.numbered = "shard.",
	.is.digits = 5,
	.is.folder_file = "index.json",
	.is.check_keys = check_keys,
	.folder_put = mds_folder_put,
	.folder_check = mds_folder_check,
	CHUNKS_OPS(mds),
};

const struct format_ops format_litdata = {
	.is.name = "litdata",
	.is.help = "LitData's chunks and their index.json.",
	.is.extension = "bin",
	.is.flags = FORMAT_FILLED,
	.is.numbered = "chunk-0-",
	.is.digits = 1,
	.is.folder_file = "index.json",
	.is.check_keys = check_keys,
	.folder_put = litdata_folder_put,
	.folder_check = litdata_folder_check,
	CHUNKS_OPS(litdata),
};
