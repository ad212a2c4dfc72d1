/* Which files DALI's readers take, and what its copying threads do with their bytes. */
#include "loader/native_dali_source.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "format/numpy/npy.h"
#include "format/tfrecord/tfrecord.h"
#include "store/store.h"

/* A store of one file whose bytes are in memory already, so that a format's reader can decode what
 * another way of reading brought. */

struct held_store {
	struct store base;
	const unsigned char *data; /* of the file's bytes [begin, begin + n) */
	uint64_t begin, n;
	uint64_t file_bytes;
};

static const struct held_store *held_of(const struct blob *b)
{
	return (const struct held_store *)(const void *)b->store;
}

static int held_open(struct store *s, const char *path, unsigned how, struct blob *b, struct err *e)
{
	(void)s, (void)path, (void)how, (void)b, (void)e;
	return 0;
}

static int held_close(struct blob *b, struct err *e)
{
	(void)b, (void)e;
	return 0;
}

static ssize_t held_pread(struct blob *b, void *p, size_t n, uint64_t offset, struct err *e)
{
	const struct held_store *s = held_of(b);
	uint64_t at = offset - s->begin;

	(void)e;
	if (offset < s->begin || at >= s->n)
		return 0;
	if (n > s->n - at)
		n = (size_t)(s->n - at);
	memcpy(p, s->data + at, n);
	return (ssize_t)n;
}

static int held_stat(struct blob *b, struct store_stat *out, struct err *e)
{
	(void)e;
	*out = (struct store_stat){.bytes = held_of(b)->file_bytes, .block_bytes = 4096};
	return 0;
}

static const struct store_ops held_ops = {
	.is.name = "held",
	.blob_bytes = sizeof(struct blob),
	.open = held_open,
	.close = held_close,
	.pread = held_pread,
	.stat_blob = held_stat,
};

static void held_store_init(struct held_store *s)
{
	*s = (struct held_store){.base = {.ops = &held_ops}};
}

#define HEADER_BLOCK 4096u /* of the C library's files, on local file systems */
#define INDEX_PIECE 65536u /* of an index file */
#define INDEX_LINE_MAX 64u /* two numbers of 20 digits */

#define AROUND_BYTES 65536u /* of a sample in its file: headers, other features */

int dali_source_init(struct dali_source *s, const struct loader_config *c, struct err *e)
{
	const struct workload *w = c->workload;
	struct err why;
	int rc;

	*s = (struct dali_source){.config = c};
	rc = format_check_dali(&c->dataset->format->is, (int64_t)c->dataset->samples_per_file, e);
	if (rc < 0)
		return rc;
	s->kind = c->dataset->format->is.dali;
	sample_reader_settings(&s->settings, c);
	s->whole = s->settings.access == ACCESS_NATIVE;
	s->maps = !w->reader.dont_use_mmap && !s->whole;
	s->touches = s->maps && w->reader.read_ahead;
	if (s->maps && store_map_check(c->store, &why) < 0)
		return err_set(
			e, ERR_USAGE,
			"reader.data_loader native_dali maps files, which storage.store '%s' does "
			"not support: set reader.dont_use_mmap to true to read them instead",
			w->storage.store ? w->storage.store : c->store->ops->is.name);
	s->settings.access = ACCESS_NATIVE;
	s->settings.keep_open = false;
	/* arrays and records are handed on as they are */
	s->decodes = s->settings.decode == DECODE_VERIFY ||
		     (s->settings.decode == DECODE_FULL && s->kind == DALI_IMAGE);
	s->keeps = !s->maps && s->decodes;
	s->room = c->dataset->max_sample_bytes;
	if (__builtin_add_overflow(s->room, AROUND_BYTES, &s->room) ||
	    (s->kind == DALI_IMAGE && __builtin_add_overflow(s->room, s->room / 2, &s->room)) ||
	    s->room > INT64_MAX / 2)
		return err_set(e, -ENOMEM,
			       "reading samples of %llu bytes exceeds the memory of any machine",
			       (unsigned long long)c->dataset->max_sample_bytes);
	return 0;
}

uint64_t dali_item_bytes(const struct dali_source *s)
{
	return s->keeps ? s->room : 0;
}

static uint64_t decoder_bytes(const struct dali_source *s, struct err *e)
{
	struct held_store held;
	uint64_t bytes;

	held_store_init(&held);
	bytes = s->config->dataset->format->reader_bytes(&s->settings, &held.base);
	if (bytes == 0)
		err_set(e, -ENOMEM, "decoding samples exceeds the memory of any machine");
	return bytes;
}

uint64_t dali_copier_bytes(const struct dali_source *s, struct err *e)
{
	uint64_t decoder = 0;

	if (s->decodes) {
		decoder = decoder_bytes(s, e);
		if (decoder == 0)
			return 0;
	}
	return s->room + decoder + sizeof(struct dali_copier) + sizeof(struct held_store);
}

int dali_copier_init(struct dali_copier *c, const struct dali_source *s, uint32_t number,
		     struct worker_stat *stat, struct err *e)
{
	const struct format_ops *format = s->config->dataset->format;

	c->source = s;
	c->stat = stat;
	c->number = number;
	io_stat_init(stat->io);
	c->ring = trace_ring(s->config->trace, s->config->rank, s->config->kind, number, false);
	c->io = (struct io){.store = s->config->store,
			    .stat = s->config->workload->run.measure == MEASURE_ALL ? stat->io
										    : NULL,
			    .trace = c->ring,
			    .stop = s->config->stop};
	c->buffer = buffer_alloc(s->room, "the output of a sample", e);
	if (!c->buffer)
		return -ENOMEM;
	if (!s->decodes)
		return 0;
	c->held = try_calloc(1, sizeof(*c->held), "a decoder", e);
	if (!c->held)
		return -ENOMEM;
	held_store_init(c->held);
	c->memory_bytes = decoder_bytes(s, e);
	c->memory = c->memory_bytes ? buffer_alloc(c->memory_bytes, "a decoder", e) : NULL;
	if (!c->memory)
		return -ENOMEM;
	c->held_io = (struct io){.store = &c->held->base};
	return format->reader_init(c->memory, &s->settings, &c->held_io, &c->decoder, e);
}

void dali_copier_release(struct dali_copier *c)
{
	if (c->decoder)
		c->source->config->dataset->format->reader_close(c->decoder, NULL);
	if (c->memory)
		buffer_free(c->memory, c->memory_bytes);
	if (c->buffer)
		buffer_free(c->buffer, c->source->room);
	free(c->held);
}

/* The format's own reader over the bytes in memory. */
static int decode_item(struct dali_copier *c, const struct dali_item *item,
		       const unsigned char *bytes, const struct file_spec *f, struct err *e)
{
	const struct dataset *d = c->source->config->dataset;
	char path[DATASET_PATH_MAX];
	struct sample got = {0};
	int rc = dataset_path(d, c->source->config->kind, item->file, path, sizeof(path), e);

	if (rc < 0)
		return rc;
	c->held->data = bytes;
	c->held->begin = item->begin;
	c->held->n = item->bytes;
	c->held->file_bytes = item->file_bytes;
	return d->format->read(c->decoder, path, f, item->sample % d->samples_per_file, &got, e);
}

static int copy_item(struct dali_copier *c, const struct dali_item *item, const struct file_spec *f,
		     struct err *e)
{
	const struct store_map *map = item->shared ? &item->shared->map : &item->map;
	const unsigned char *bytes = item->kept;
	int rc = 0;

	if (map->at) {
		rc = io_map_copy(&c->io, IO_DATA, map, item->begin, c->buffer, (size_t)item->bytes,
				 e);
		bytes = c->buffer;
	}
	if (rc < 0 || !c->source->decodes || !bytes)
		return rc;
	return decode_item(c, item, bytes, f, e);
}

void dali_copier_take(struct dali_copier *c, struct dali_item *item, uint64_t *payload)
{
	const struct loader_config *config = c->source->config;
	int64_t begin = clock_now_ns(), end;
	struct file_spec f;

	*payload = 0;
	if (item->err.code < 0)
		return;
	atomic_store_explicit(&c->since_ns, begin, memory_order_relaxed);
	atomic_store_explicit(&c->doing, item->sample + 1, memory_order_release);
	if (c->ring) {
		c->ring->sample = item->sample;
		c->ring->file = item->file;
	}
	dataset_file_spec(config->dataset, config->kind, item->file, &f);
	item->err.code = copy_item(c, item, &f, &item->err);
	if (item->err.code < 0)
		err_wrap(&item->err, "rank %u, sample %llu", config->rank,
			 (unsigned long long)item->sample);
	else
		*payload = file_spec_sample_bytes(&f);
	worker_has_read(c->stat, item->err.code == 0, *payload);
	end = clock_now_ns();
	c->stat->read_ns += end - begin;
	span_add(c->ring, SPAN_DECODE, item->err.code < 0 ? SPAN_FAILED : 0, begin, end, *payload);
	atomic_store_explicit(&c->doing, 0, memory_order_release);
}

/* One user less; NULL is fine. */
static void dali_file_drop(struct dali_file *f)
{
	if (!f || atomic_fetch_sub_explicit(&f->users, 1, memory_order_acq_rel) != DALI_FILE_LAST)
		return;
	store_unmap(&f->map);
	atomic_store_explicit(&f->users, 0, memory_order_release);
}

/* ---- the reader thread ---- */

/* The least and the most that the thread's own buffer is used for. */
static uint64_t buffer_bytes(const struct dali_source *s)
{
	uint64_t least = INDEX_PIECE > NPY_HEADER_MAX ? INDEX_PIECE : NPY_HEADER_MAX;

	return !s->maps && !s->keeps && s->room > least ? s->room : least;
}

uint64_t dali_reader_bytes(const struct dali_source *s, uint64_t items)
{
	uint64_t files = s->kind == DALI_TFRECORD && s->maps ? items + 1 : 0;

	return sizeof(struct dali_reader) + buffer_bytes(s) + store_blob_bytes(s->config->store) +
	       files * sizeof(struct dali_file);
}

int dali_reader_init(struct dali_reader *r, const struct dali_source *s, struct worker_stat *stat,
		     uint64_t items, struct err *e)
{
	r->source = s;
	r->stat = stat;
	io_stat_init(stat->io);
	r->ring = trace_ring(s->config->trace, s->config->rank, s->config->kind, 0, false);
	r->io = (struct io){.store = s->config->store,
			    .stat = s->config->workload->run.measure == MEASURE_ALL ? stat->io
										    : NULL,
			    .trace = r->ring,
			    .stop = s->config->stop};
	r->blob = store_blob_new(s->config->store, e);
	r->buffer_bytes = buffer_bytes(s);
	r->buffer = r->blob ? buffer_alloc(r->buffer_bytes, "the buffer of a reader", e) : NULL;
	if (!r->buffer)
		return -ENOMEM;
	if (s->kind != DALI_TFRECORD || !s->maps)
		return 0;
	r->files = items + 1;
	r->file = try_calloc(r->files, sizeof(*r->file), "mapped files", e);
	return r->file ? 0 : -ENOMEM;
}

void dali_reader_release(struct dali_reader *r)
{
	free(r->file);
	if (r->buffer)
		buffer_free(r->buffer, r->buffer_bytes);
	free(r->blob);
}

static int open_stat(struct dali_reader *r, struct store_stat *st, struct err *e)
{
	int rc = io_open(&r->io, r->path, STORE_READ, r->blob, e);

	if (rc < 0)
		return rc;
	rc = io_stat_blob(&r->io, r->blob, st, e);
	if (rc < 0)
		io_close(&r->io, r->blob, NULL);
	return rc;
}

static int too_large(uint64_t bytes, const struct dali_source *s, struct err *e)
{
	return err_set(e, ERR_DATA,
		       "it has %" PRIu64
		       " bytes, but samples of this workload have at most %" PRIu64
		       ": it belongs to another dataset",
		       bytes, s->room);
}

/* ---- index files ---- */

/* One line "<offset> <bytes>" must be where the dataset has record i. */
static int check_line(const char *line, uint64_t i, uint64_t record_bytes, struct err *e)
{
	uint64_t offset, bytes;

	if (sscanf(line, "%" SCNu64 " %" SCNu64, &offset, &bytes) != 2)
		return err_set(e, ERR_DATA, "line %" PRIu64 " is not an offset and a size", i + 1);
	if (offset == i * record_bytes && bytes == record_bytes)
		return 0;
	return err_set(e, ERR_DATA,
		       "line %" PRIu64 " describes a record of %" PRIu64 " bytes at %" PRIu64
		       ", but this dataset has one of %" PRIu64 " bytes at %" PRIu64
		       ": generate the index again",
		       i + 1, bytes, offset, record_bytes, i * record_bytes);
}

/* All lines of an open index. */
static int check_index(struct dali_reader *r, const struct file_spec *f, uint64_t record_bytes,
		       uint64_t size, struct err *e)
{
	char *text = (char *)r->buffer, *line = text, *end;
	uint64_t at = 0, i = 0;
	size_t have = 0;
	int rc = 0;

	while (rc == 0 && at < size) {
		uint64_t n =
			size - at < INDEX_PIECE - 1 - have ? size - at : INDEX_PIECE - 1 - have;

		rc = io_pread_full(&r->io, IO_META, r->blob, NULL, text + have, (size_t)n, at, e);
		if (rc < 0)
			return rc;
		at += n;
		have += (size_t)n;
		text[have] = '\0';
		for (line = text; rc == 0 && (end = strchr(line, '\n')); line = end + 1) {
			*end = '\0';
			rc = i < f->samples ? check_line(line, i, record_bytes, e) : 0;
			i++;
		}
		have -= (size_t)(line - text);
		memmove(text, line, have);
		if (have > INDEX_LINE_MAX)
			return err_set(e, ERR_DATA, "line %" PRIu64 " is too long", i + 1);
	}
	if (rc == 0 && i != f->samples)
		return err_set(e, ERR_DATA,
			       "it has %" PRIu64 " lines, but the file has %" PRIu64 " records", i,
			       f->samples);
	return rc;
}

static int read_index(struct dali_reader *r, uint64_t file, struct err *e)
{
	const struct loader_config *c = r->source->config;
	const struct dataset *d = c->dataset;
	char path[DATASET_PATH_MAX];
	struct tfrecord_layout l;
	struct store_stat st;
	struct file_spec f;
	int rc, closed;

	rc = dataset_path(d, c->kind, file, path, sizeof(path), e);
	if (rc < 0)
		return rc;
	dataset_file_spec(d, c->kind, file, &f);
	rc = tfrecord_index_path(path, 0, r->path, sizeof(r->path));
	if (rc < 0)
		return err_set(e, rc, "the path of the index of '%s' is too long", path);
	rc = tfrecord_layout_of(&f, &l, e);
	if (rc == 0)
		rc = open_stat(r, &st, e);
	if (rc < 0)
		return err_wrap(e, "DALI needs the index of a tfrecord file"), rc;
	rc = check_index(r, &f, l.record_bytes, st.bytes, e);
	closed = io_close(&r->io, r->blob, rc == 0 ? e : NULL);
	if (rc == 0)
		rc = closed;
	if (rc < 0)
		err_wrap(e, "the index '%s'", r->path);
	return rc;
}

int dali_reader_index(struct dali_reader *r, struct err *e)
{
	const struct loader_config *c = r->source->config;
	int rc = 0;

	if (r->source->kind != DALI_TFRECORD || r->indexed)
		return 0;
	for (uint64_t i = 0; rc == 0 && i < c->dataset->files[c->kind]; i++)
		rc = read_index(r, i, e);
	r->indexed = rc == 0;
	return rc;
}

/* ---- tfrecord ---- */

static void leave_file(struct dali_reader *r)
{
	dali_file_drop(r->current);
	r->current = NULL;
	if (r->open)
		io_close(&r->io, r->blob, NULL);
	r->open = false;
}

void dali_reader_end(struct dali_reader *r)
{
	leave_file(r);
	atomic_store_explicit(&r->doing, 0, memory_order_release);
}

/* There is a free one: each sample on its way holds one at most. */
static struct dali_file *free_file(struct dali_reader *r)
{
	uint64_t i = 0;

	while (atomic_load_explicit(&r->file[i].users, memory_order_acquire) != 0) {
		i++;
		assert(i < r->files);
	}
	return &r->file[i];
}

static int map_file(struct dali_reader *r, uint64_t number, struct err *e)
{
	struct dali_file *f = free_file(r);
	struct store_stat st;
	int rc = open_stat(r, &st, e), closed;

	if (rc < 0)
		return rc;
	rc = io_map(&r->io, r->blob, st.bytes, &f->map, e);
	closed = io_close(&r->io, r->blob, rc == 0 ? e : NULL);
	if (rc < 0 || closed < 0) {
		store_unmap(&f->map);
		return rc < 0 ? rc : closed;
	}
	f->number = number;
	atomic_store_explicit(&f->users, DALI_FILE_LAST, memory_order_release);
	r->current = f;
	return 0;
}

static int enter_file(struct dali_reader *r, uint64_t number, struct err *e)
{
	struct store_stat st;
	int rc;

	if (r->source->maps) {
		if (r->current && r->current->number == number)
			return 0;
		leave_file(r);
		return map_file(r, number, e);
	}
	if (r->open && r->open_file == number)
		return 0;
	leave_file(r);
	rc = open_stat(r, &st, e);
	r->open = rc == 0;
	r->open_file = number;
	return rc;
}

static int get_record(struct dali_reader *r, const struct file_spec *f, struct dali_item *item,
		      struct err *e)
{
	struct tfrecord_layout l;
	int rc = tfrecord_layout_of(f, &l, e);

	if (rc == 0)
		rc = enter_file(r, item->file, e);
	if (rc < 0)
		return rc;
	item->begin = item->sample % f->samples * l.record_bytes;
	item->bytes = l.record_bytes;
	item->file_bytes = l.file_bytes;
	if (item->bytes > r->source->room)
		return too_large(item->bytes, r->source, e);
	if (!r->source->maps)
		return io_pread_full(&r->io, IO_DATA, r->blob, NULL,
				     item->kept ? item->kept : r->buffer, (size_t)item->bytes,
				     item->begin, e);
	if (item->begin + item->bytes > r->current->map.bytes)
		return err_set(e, ERR_DATA,
			       "it has %" PRIu64 " bytes, and its index puts a record of %" PRIu64
			       " at %" PRIu64,
			       r->current->map.bytes, item->bytes, item->begin);
	item->shared = r->current;
	atomic_fetch_add_explicit(&item->shared->users, 1, memory_order_relaxed);
	return r->source->touches ? io_map_touch(&r->io, IO_DATA, &item->shared->map, item->begin,
						 item->bytes, e)
				  : 0;
}

/* ---- a file a sample ---- */

/* The header in r->buffer, of which `have` bytes are there, and what of the file is the sample. */
static int parse_npy(struct dali_reader *r, const struct file_spec *f, size_t have,
		     struct dali_item *item, struct err *e)
{
	struct npy_array a;
	size_t total = 0;
	int rc = have < 8 ? 0 : npy_prefix_bytes(r->buffer, have, 0, e);

	if (rc > 0 && (size_t)rc <= have)
		rc = npy_header_length(r->buffer, 0, &total, e);
	if (rc < 0)
		return rc;
	if (total == 0 || have < total)
		return err_set(e, ERR_DATA, "the file ends inside its npy header");
	rc = npy_header_parse(r->buffer, total, 0, &a, e);
	if (rc == 0)
		rc = npy_array_check(&a, f, e);
	if (rc < 0)
		return rc;
	if (a.header_bytes + a.data_bytes > item->file_bytes)
		return err_set(e, ERR_DATA,
			       "the file has %" PRIu64 " bytes, but its array needs %" PRIu64
			       ": it is truncated",
			       item->file_bytes, a.header_bytes + a.data_bytes);
	/* what is compared is the file */
	if (r->source->settings.decode != DECODE_VERIFY) {
		item->begin = a.header_bytes;
		item->bytes = a.data_bytes;
	}
	return 0;
}

static int get_mapped(struct dali_reader *r, const struct file_spec *f, struct dali_item *item,
		      struct err *e)
{
	uint64_t head = item->file_bytes < NPY_HEADER_MAX ? item->file_bytes : NPY_HEADER_MAX;
	int rc = io_map(&r->io, r->blob, item->file_bytes, &item->map, e);

	/* a page of the header, and more only when it is longer */
	if (head > HEADER_BLOCK)
		head = HEADER_BLOCK;
	if (rc == 0 && r->source->kind == DALI_NPY) {
		rc = io_map_copy(&r->io, IO_META, &item->map, 0, r->buffer, (size_t)head, e);
		if (rc == 0)
			rc = parse_npy(r, f, (size_t)head, item, e);
	}
	if (rc == 0 && r->source->touches)
		rc = io_map_touch(&r->io, IO_DATA, &item->map, 0, item->file_bytes, e);
	return rc;
}

static int get_read(struct dali_reader *r, const struct file_spec *f, struct dali_item *item,
		    struct err *e)
{
	unsigned char *out = item->kept ? item->kept : r->buffer;
	uint64_t head = item->file_bytes < HEADER_BLOCK ? item->file_bytes : HEADER_BLOCK;
	int rc = 0;

	if (r->source->kind == DALI_NPY && !r->source->whole) {
		rc = io_pread_full(&r->io, IO_META, r->blob, NULL, r->buffer, (size_t)head, 0, e);
		if (rc == 0)
			rc = parse_npy(r, f, (size_t)head, item, e);
	}
	if (rc == 0)
		rc = io_pread_full(&r->io, IO_DATA, r->blob, NULL, out, (size_t)item->bytes,
				   item->begin, e);
	if (rc == 0 && r->source->kind == DALI_NPY && r->source->whole && !item->kept)
		rc = parse_npy(r, f, (size_t)item->bytes, item, e);
	return rc;
}

static int get_file(struct dali_reader *r, const struct file_spec *f, struct dali_item *item,
		    struct err *e)
{
	struct store_stat st;
	int rc = open_stat(r, &st, e), closed;

	if (rc < 0)
		return rc;
	item->begin = 0;
	item->bytes = item->file_bytes = st.bytes;
	if (st.bytes == 0)
		rc = err_set(e, ERR_DATA, "the file is empty");
	else if (st.bytes > r->source->room)
		rc = too_large(st.bytes, r->source, e);
	else
		rc = r->source->maps ? get_mapped(r, f, item, e) : get_read(r, f, item, e);
	closed = io_close(&r->io, r->blob, rc == 0 ? e : NULL);
	return rc < 0 ? rc : closed;
}

void dali_reader_get(struct dali_reader *r, uint64_t sample, struct dali_item *item)
{
	const struct loader_config *c = r->source->config;
	int64_t begin = clock_now_ns(), end;
	struct file_spec f;
	int rc;

	atomic_store_explicit(&r->since_ns, begin, memory_order_relaxed);
	atomic_store_explicit(&r->doing, sample + 1, memory_order_release);
	item->sample = sample;
	item->file = sample / c->dataset->samples_per_file;
	if (r->ring) {
		r->ring->sample = sample;
		r->ring->file = item->file;
	}
	dataset_file_spec(c->dataset, c->kind, item->file, &f);
	rc = dataset_path(c->dataset, c->kind, item->file, r->path, sizeof(r->path), &item->err);
	if (rc == 0) {
		rc = r->source->kind == DALI_TFRECORD ? get_record(r, &f, item, &item->err)
						      : get_file(r, &f, item, &item->err);
		if (rc < 0)
			err_wrap(&item->err, "rank %u, sample %" PRIu64 ", '%s'", c->rank, sample,
				 r->path);
	}
	item->err.code = rc < 0 ? rc : 0;
	end = clock_now_ns();
	r->stat->read_ns += end - begin;
	span_add(r->ring, SPAN_SAMPLE, rc < 0 ? SPAN_FAILED : 0, begin, end, 0);
	atomic_store_explicit(&r->doing, 0, memory_order_release);
}

void dali_item_drop(struct dali_item *item)
{
	store_unmap(&item->map);
	dali_file_drop(item->shared);
	item->shared = NULL;
	item->err.code = 0;
}
