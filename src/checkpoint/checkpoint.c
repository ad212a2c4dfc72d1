/* Checkpoints of a run: opened, written, removed and read back. */
#include "checkpoint/checkpoint.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/file.h"
#include "checkpoint/formats.h"

#define TEMPORARY ".tmp"

struct checkpoint {
	const struct workload *w;
	struct checkpoint_plan plan;
	const struct checkpoint_format_ops *format;
	struct checkpoint_common common;
};

struct checkpoint_rank {
	const struct checkpoint *c;
	int64_t rank;
	struct file_writer writer;
	struct stream *stream;
	struct blob *blob;
	unsigned char *work; /* copies of a stream, or READ_PIECE bytes read */
	size_t work_bytes;
	unsigned char *buffer; /* of a file object that is read */
	size_t buffer_bytes;   /* as the file system's blocks are */
	struct buf read_meta;
};

static const char *default_format(unsigned framework)
{
	size_t i = 0;

	while (!(checkpoint_table[i]->is.default_of & 1u << framework)) {
		i++;
		assert(checkpoint_table[i]); /* every framework has a format of its own */
	}
	return checkpoint_table[i]->is.name;
}

static const struct checkpoint_format_ops *format_of(const struct workload *w)
{
	const char *name = w->checkpoint.format;

	return checkpoint_format_find(
		strcmp(name, "auto") == 0 ? default_format((unsigned)w->framework) : name);
}

unsigned checkpoint_parts(const struct workload *w)
{
	const struct checkpoint_format_ops *format = format_of(w);
	unsigned n = 0;

	while (format && format->part_suffix[n])
		n++;
	return n;
}

static int find_format(struct checkpoint *c, struct err *e)
{
	char known[256];
	size_t at = 0;

	c->format = format_of(c->w);
	if (c->format)
		return 0;
	known[0] = '\0';
	for (size_t i = 0; checkpoint_table[i] && at < sizeof(known); i++)
		at += (size_t)snprintf(known + at, sizeof(known) - at, "%s%s", i ? ", " : "",
				       checkpoint_table[i]->is.name);
	return err_set(e, ERR_USAGE,
		       "checkpoint.format '%s' is unknown; valid formats are auto, %s",
		       c->w->checkpoint.format, known);
}

/* The element types that occur. */
static int make_pools(struct checkpoint *c, struct err *e)
{
	const struct checkpoint_plan *p = &c->plan;
	const struct workload *w = c->w;
	bool used[CHECKPOINT_DATATYPES] = {false};

	used[CHECKPOINT_INT8] =
		p->grouped || p->predefined || (!p->transformer && p->model_size_bytes > 0);
	if (p->layers > 0 && !p->predefined)
		used[p->model_type] = true;
	if (p->groups > 0 && !p->grouped)
		used[p->optimizer_type] = true;
	for (int i = 0; i < CHECKPOINT_DATATYPES; i++) {
		int rc =
			used[i] ? content_pool_init(&c->common.pool[i], (enum checkpoint_datatype)i,
						    !w->checkpoint.randomize_tensor,
						    (uint64_t)w->checkpoint.seed,
						    (size_t)w->checkpoint.pool_bytes, e)
				: 0;

		if (rc < 0)
			return rc;
	}
	return 0;
}

int checkpoint_open(struct checkpoint **out, const struct workload *w, int64_t ranks, struct err *e)
{
	struct checkpoint *c = xcalloc(1, sizeof(*c));
	int rc;

	c->w = w;
	c->common = (struct checkpoint_common){
		.plan = &c->plan,
		.seed = (uint64_t)w->checkpoint.seed,
		.torch = w->checkpoint.torch,
		.python = w->reader.python == 0 ? 311 : 314,
	};
	rc = find_format(c, e) ?: checkpoint_plan_init(&c->plan, w, ranks, e) ?: make_pools(c, e);
	if (rc < 0) {
		checkpoint_close(c);
		return rc;
	}
	*out = c;
	return 0;
}

void checkpoint_close(struct checkpoint *c)
{
	if (!c)
		return;
	for (int i = 0; i < CHECKPOINT_DATATYPES; i++)
		content_pool_release(&c->common.pool[i]);
	checkpoint_plan_release(&c->plan);
	free(c);
}

const struct checkpoint_plan *checkpoint_plan_of(const struct checkpoint *c)
{
	return &c->plan;
}

size_t checkpoint_memory_bytes(const struct checkpoint *c)
{
	size_t n = sizeof(*c);

	for (int i = 0; i < CHECKPOINT_DATATYPES; i++)
		n += c->common.pool[i].size + c->common.pool[i].size / POOL_CRC_STEP * 4;
	return n;
}

/* ---- ranks ---- */

/* The plan's file under the name that the format gives it. */
static void named_file_at(const struct checkpoint *c, int64_t rank, uint64_t index,
			  struct checkpoint_file *out)
{
	checkpoint_file_at(&c->plan, rank, index, out);
	if (c->format->name_of)
		c->format->name_of(&c->plan, out, index, out->name, sizeof(out->name));
}

/* "<folder>/global_epoch<E>_step<S>/<name><suffix>"; heap. */
static char *part_path(const struct checkpoint *c, int64_t epoch, int64_t step, const char *name,
		       const char *suffix)
{
	char *folder = checkpoint_folder_path(c->w, epoch, step);
	char *path = xasprintf("%s/%s%s", folder, name, suffix);

	free(folder);
	return path;
}

static enum stream_law stream_law_of(const struct checkpoint *c)
{
	return c->w->checkpoint.access == 1 ? STREAM_BLOCKS : c->format->law;
}

static size_t stream_limit(const struct checkpoint_rank *r)
{
	if (r->c->w->checkpoint.access == 1)
		return (size_t)r->c->w->checkpoint.block_bytes;
	return r->c->format->limit ? r->c->format->limit : r->buffer_bytes;
}

static size_t work_bytes(const struct checkpoint *c, size_t buffer)
{
	size_t limit = c->format->limit ? c->format->limit : buffer;
	size_t arena = stream_arena_bytes(stream_law_of(c), limit);

	return arena > READ_PIECE ? arena : READ_PIECE;
}

/* CPython's buffers are as large as the blocks of the file system, which is that of the nearest
 * folder that is there. */
static size_t buffer_bytes(const struct checkpoint *c, const struct store *s)
{
	AUTO_FREE char *at = path_absolute(c->w->checkpoint.checkpoint_folder);
	struct store_stat st = {.block_bytes = 4096};

	while (store_stat_path((struct store *)(uintptr_t)s, at, &st, NULL) != 0 &&
	       strcmp(at, "/") != 0) {
		char *up = path_dirname(at);

		free(at);
		at = up;
	}
	return pybuffer_size(c->common.python, st.block_bytes ? st.block_bytes : 4096);
}

/* Bytes of a file's part; what it keeps in memory stays in the writer's buffers. */
static uint64_t measure_part(struct checkpoint_rank *r, const struct checkpoint_file *f,
			     unsigned part)
{
	file_writer_measure(&r->writer, f);
	r->c->format->write(&r->writer, part);
	return r->stream->offset;
}

void checkpoint_rank_file_bytes(struct checkpoint_rank *r, uint64_t *bytes, uint64_t *files)
{
	const struct checkpoint_plan *p = &r->c->plan;
	uint64_t count = checkpoint_file_count(p, r->rank);

	*bytes = 0;
	*files = 0;
	for (uint64_t i = 0; i < count; i++) {
		struct checkpoint_file f;

		named_file_at(r->c, r->rank, i, &f);
		for (unsigned part = 0; r->c->format->part_suffix[part]; part++) {
			*bytes += measure_part(r, &f, part);
			*files += 1;
		}
	}
}

int checkpoint_rank_open(struct checkpoint_rank **out, const struct checkpoint *c,
			 const struct store *s, int64_t rank, struct err *e)
{
	struct checkpoint_rank *r = try_calloc(1, sizeof(*r), "a rank's checkpoints", e);
	uint64_t bytes, files;

	if (!r)
		return e ? e->code : -1;
	r->c = c;
	r->rank = rank;
	r->writer.common = &c->common;
	r->stream = try_calloc(1, sizeof(*r->stream), "a rank's checkpoints", e);
	r->blob = store_blob_new(s, e);
	r->buffer_bytes = buffer_bytes(c, s);
	r->work_bytes = work_bytes(c, r->buffer_bytes);
	if (r->stream && r->blob)
		r->work = buffer_alloc(r->work_bytes, "the requests of checkpoints", e);
	if (r->work)
		r->buffer = buffer_alloc(r->buffer_bytes, "reading back checkpoints", e);
	if (!r->buffer) {
		int rc = e ? e->code : -1;

		checkpoint_rank_close(r);
		return rc;
	}
	r->writer.stream = r->stream;
	/* all that a write will keep in memory is made once here */
	checkpoint_rank_file_bytes(r, &bytes, &files);
	*out = r;
	return 0;
}

size_t checkpoint_rank_memory_bytes(const struct checkpoint *c, const struct store *s, int64_t rank)
{
	size_t meta = 0, buffer = buffer_bytes(c, s);

	/* pickle or header, and the directory: both doubled by the growth of a buffer */
	for (uint64_t i = 0; i < checkpoint_file_count(&c->plan, rank); i++) {
		struct checkpoint_file f;

		named_file_at(c, rank, i, &f);
		if (f.tensors * 400 + 8192 > meta)
			meta = (size_t)f.tensors * 400 + 8192;
	}
	return sizeof(struct checkpoint_rank) + sizeof(struct stream) + store_blob_bytes(s) +
	       work_bytes(c, buffer) + buffer + 2 * meta;
}

void checkpoint_rank_close(struct checkpoint_rank *r)
{
	if (!r)
		return;
	if (r->work)
		buffer_free(r->work, r->work_bytes);
	if (r->buffer)
		buffer_free(r->buffer, r->buffer_bytes);
	buf_release(&r->writer.meta);
	buf_release(&r->writer.directory);
	buf_release(&r->writer.index);
	buf_release(&r->read_meta);
	free(r->stream);
	free(r->blob);
	free(r);
}

/* ---- writing: temporary names, syncs, renames ---- */

/* What a file is called until it is whole: an object appears whole in any case. */
static char *name_until_whole(const struct io *io, const char *path)
{
	bool objects = store_base_flags(io->store) & STORE_HAS_OBJECTS;

	return objects ? xstrdup(path) : xasprintf("%s" TEMPORARY, path);
}

static int name_whole(const struct io *io, const char *temporary, const char *path, struct err *e)
{
	return strcmp(temporary, path) == 0 ? 0 : io_rename(io, temporary, path, e);
}

/* The open file: filled, synced, closed. */
static int fill_file(struct checkpoint_rank *r, const struct checkpoint_file *f, unsigned part,
		     const struct io *io, struct err *e)
{
	const struct checkpoint *c = r->c;
	int rc, closed;

	stream_start(r->stream, stream_law_of(c), stream_limit(r), r->work, io, r->blob, e);
	r->writer.file = f;
	c->format->write(&r->writer, part);
	rc = stream_flush(r->stream);
	if (rc == 0 && c->w->checkpoint.fsync)
		rc = io_sync(io, r->blob, e);
	closed = io_close(io, r->blob, rc == 0 ? e : NULL);
	return rc < 0 ? rc : closed;
}

static int explain_write_error(int rc, const char *path, struct err *e)
{
	if (rc == ERR_CANCELED || !e)
		return rc;
	if (rc == -ENOSPC || rc == -EDQUOT)
		return err_wrap(e,
				"cannot write the checkpoint file '%s' (the partial file was "
				"removed and earlier checkpoints are unchanged; free some space, "
				"or keep fewer checkpoints with checkpoint.keep_last)",
				path);
	return err_wrap(e, "cannot write the checkpoint file '%s'", path);
}

/* One file, whole under its name or not there. */
static int write_part(struct checkpoint_rank *r, const struct checkpoint_file *f, unsigned part,
		      int64_t epoch, int64_t step, const struct io *io, struct err *e)
{
	const char *suffix = r->c->format->part_suffix[part];
	AUTO_FREE char *path = part_path(r->c, epoch, step, f->name, suffix);
	AUTO_FREE char *temporary = name_until_whole(io, path);
	int rc;

	r->writer.key = content_file_key(r->c->common.seed, epoch, step, f->name);
	span_name(io->trace, temporary);
	rc = io_open(io, temporary, STORE_WRITE | STORE_CREATE, r->blob, e);
	if (rc < 0)
		return explain_write_error(rc, path, e);
	rc = fill_file(r, f, part, io, e) ?: name_whole(io, temporary, path, e);
	if (rc < 0)
		store_remove(io->store, temporary, NULL);
	return rc < 0 ? explain_write_error(rc, path, e) : 0;
}

static int sync_folder(struct checkpoint_rank *r, const char *folder, const struct io *io,
		       struct err *e)
{
	AUTO_FREE char *above = NULL;
	const char *slash = strrchr(folder, '/');
	int rc;

	if (!r->c->w->checkpoint.fsync)
		return 0;
	span_name(io->trace, folder);
	rc = io_sync_dir(io, folder, e);
	above = slash ? xstrndup(folder, (size_t)(slash - folder)) : xstrdup(".");
	/* the folder's own name, which is new as well */
	span_name(io->trace, above);
	return rc < 0 ? rc : io_sync_dir(io, *above ? above : "/", e);
}

int checkpoint_write(struct checkpoint_rank *r, int64_t epoch, int64_t step, const struct io *io,
		     struct checkpoint_stat *out, struct err *e)
{
	AUTO_FREE char *folder = checkpoint_folder_path(r->c->w, epoch, step);
	uint64_t count = checkpoint_file_count(&r->c->plan, r->rank);
	struct checkpoint_stat s = {0};
	int64_t start = clock_now_ns();
	int rc = 0;

	if (count > 0)
		rc = store_mkdirs(io->store, folder, e);
	for (uint64_t i = 0; i < count && rc == 0; i++) {
		struct checkpoint_file f;
		int64_t begin = clock_now_ns();

		named_file_at(r->c, r->rank, i, &f);
		for (unsigned part = 0; r->c->format->part_suffix[part] && rc == 0; part++) {
			rc = write_part(r, &f, part, epoch, step, io, e);
			s.files++;
			s.file_bytes += r->stream->written;
		}
		s.payload_bytes += f.bytes;
		s.part_ns[f.part] += clock_now_ns() - begin;
	}
	if (rc == 0 && count > 0)
		rc = sync_folder(r, folder, io, e);
	s.total_ns = clock_now_ns() - start;
	if (out && rc == 0)
		*out = s;
	return rc;
}

/* A small file at once, as the formats' own files that no rank writes. */
static int write_small(struct checkpoint_rank *r, const char *path, const struct buf *b,
		       const struct io *io, struct err *e)
{
	AUTO_FREE char *temporary = name_until_whole(io, path);
	int rc, closed;
	ssize_t w;

	span_name(io->trace, temporary);
	rc = io_open(io, temporary, STORE_WRITE | STORE_CREATE, r->blob, e);
	if (rc < 0)
		return explain_write_error(rc, path, e);
	w = io_pwrite(io, r->blob, b->data, b->len, 0, e);
	rc = w < 0 ? (int)w : 0;
	if (rc == 0 && r->c->w->checkpoint.fsync)
		rc = io_sync(io, r->blob, e);
	closed = io_close(io, r->blob, rc == 0 ? e : NULL);
	if (rc == 0)
		rc = closed ?: name_whole(io, temporary, path, e);
	if (rc < 0)
		store_remove(io->store, temporary, NULL);
	return rc < 0 ? explain_write_error(rc, path, e) : 0;
}

/* File `index` that no rank writes: *path gets its path, or NULL after the last. */
static int commit_file(struct checkpoint_rank *r, int64_t epoch, int64_t step, unsigned index,
		       char **path, struct buf *b, struct err *e)
{
	const char *name = NULL;
	int rc = 0;

	*path = NULL;
	if (r->c->format->commit)
		rc = r->c->format->commit(&r->writer, index, &name, b, e);
	if (rc == 0 && name)
		*path = part_path(r->c, epoch, step, name, "");
	return rc;
}

bool checkpoint_has_commit(const struct checkpoint *c)
{
	return c->format->commit != NULL;
}

int checkpoint_commit(struct checkpoint_rank *r, int64_t epoch, int64_t step, const struct io *io,
		      struct err *e)
{
	AUTO_FREE char *folder = checkpoint_folder_path(r->c->w, epoch, step);
	bool more = true;
	int rc = 0;
	unsigned i;

	for (i = 0; rc == 0 && more; i++) {
		AUTO_FREE char *path = NULL;
		struct buf b = {0};

		rc = commit_file(r, epoch, step, i, &path, &b, e);
		more = path != NULL;
		if (rc == 0 && path)
			rc = write_small(r, path, &b, io, e);
		buf_release(&b);
	}
	return rc < 0 || i == 1 ? rc : sync_folder(r, folder, io, e);
}

/* ---- removing ---- */

/* Removes what may be there. */
static int remove_quietly(const struct io *io, const char *path, struct err *e)
{
	int rc = store_remove(io->store, path, e);

	return rc == -ENOENT ? 0 : rc;
}

int checkpoint_remove(struct checkpoint_rank *r, int64_t epoch, int64_t step, const struct io *io,
		      struct err *e)
{
	uint64_t count = checkpoint_file_count(&r->c->plan, r->rank);
	int rc = 0;

	for (uint64_t i = 0; i < count && rc == 0; i++) {
		struct checkpoint_file f;

		named_file_at(r->c, r->rank, i, &f);
		for (unsigned part = 0; r->c->format->part_suffix[part] && rc == 0; part++) {
			AUTO_FREE char *path = part_path(r->c, epoch, step, f.name,
							 r->c->format->part_suffix[part]);
			AUTO_FREE char *temporary = xasprintf("%s" TEMPORARY, path);

			rc = remove_quietly(io, path, e) ?: remove_quietly(io, temporary, e);
		}
	}
	return rc < 0 && e ? err_wrap(e, "cannot remove an old checkpoint") : rc;
}

int checkpoint_remove_end(struct checkpoint_rank *r, int64_t epoch, int64_t step,
			  const struct io *io, struct err *e)
{
	AUTO_FREE char *folder = checkpoint_folder_path(r->c->w, epoch, step);
	bool more = true;
	int rc = 0;

	for (unsigned i = 0; rc == 0 && more; i++) {
		AUTO_FREE char *path = NULL;

		rc = commit_file(r, epoch, step, i, &path, NULL, e);
		more = path != NULL;
		if (rc == 0 && path)
			rc = remove_quietly(io, path, e);
	}
	if (rc == 0)
		rc = store_remove(io->store, folder, e);
	if (rc == -ENOENT || rc == -ENOTEMPTY || rc == -EEXIST)
		return 0;
	return rc < 0 && e ? err_wrap(e, "cannot remove an old checkpoint") : rc;
}

/* ---- reading back ---- */

static int read_open(struct file_reader *r, unsigned part, const struct checkpoint_format_ops *f,
		     struct err *e)
{
	struct store_stat st;
	int rc = io_stat_blob(r->io, r->blob, &st, e);

	if (rc < 0)
		return rc;
	r->file_bytes = st.bytes;
	/* objects are fetched: there is no file to map */
	if (f->maps && r->way == READ_FRAMEWORK)
		r->way = store_base_flags(r->io->store) & STORE_HAS_OBJECTS ? READ_NATIVE
									    : READ_MAPPED;
	if (r->way == READ_MAPPED)
		rc = io_map(r->io, r->blob, r->file_bytes, &r->map, e);
	if (rc == 0)
		rc = f->read(r, part, e);
	store_unmap(&r->map);
	return rc;
}

static int read_file(struct checkpoint_rank *rank, const struct checkpoint_file *f, int64_t epoch,
		     int64_t step, const struct io *io, struct checkpoint_stat *s, struct err *e)
{
	const struct checkpoint *c = rank->c;
	const struct workload *w = c->w;
	struct file_reader r = {
		.common = &c->common,
		.file = f,
		.key = content_file_key(c->common.seed, epoch, step, f->name),
		.io = io,
		.blob = rank->blob,
		.way = w->checkpoint.mmap          ? READ_MAPPED
		       : w->checkpoint.access == 1 ? READ_NATIVE
						   : READ_FRAMEWORK,
		.verify = w->checkpoint.verify,
		.request = (uint64_t)w->checkpoint.block_bytes,
		.piece = rank->work,
		.buffer = rank->buffer,
		.buffer_bytes = rank->buffer_bytes,
		.meta = rank->read_meta,
		.measure = &rank->writer,
	};
	int rc = 0;

	for (unsigned part = 0; c->format->part_suffix[part] && rc == 0; part++) {
		AUTO_FREE char *path =
			part_path(c, epoch, step, f->name, c->format->part_suffix[part]);
		int closed;

		r.path = path;
		span_name(io->trace, path);
		rc = io_open(io, path, STORE_READ, rank->blob, e);
		if (rc < 0)
			break;
		rc = read_open(&r, part, c->format, e);
		closed = io_close(io, rank->blob, rc == 0 ? e : NULL);
		rc = rc < 0 ? rc : closed;
		s->files++;
	}
	rank->read_meta = r.meta;
	s->payload_bytes += r.payload;
	return rc;
}

/* A small file, whole; with `want` it must hold that. */
static int read_whole(struct checkpoint_rank *r, const char *path, const struct buf *want,
		      const struct io *io, struct err *e)
{
	struct file_reader reader = {.path = path};
	uint64_t done = 0;
	struct store_stat st;
	int closed, rc;

	span_name(io->trace, path);
	rc = io_open(io, path, STORE_READ, r->blob, e);
	if (rc < 0)
		return e ? err_wrap(e, "the checkpoint is incomplete: it was never committed") : rc;
	rc = io_stat_blob(io, r->blob, &st, e);
	if (rc == 0 && want && st.bytes != want->len)
		rc = read_wrong(&reader, e, "does not belong to this checkpoint");
	while (rc == 0 && done < st.bytes) {
		size_t n = st.bytes - done < READ_PIECE ? (size_t)(st.bytes - done) : READ_PIECE;

		rc = io_pread_full(io, IO_META, r->blob, path, r->work, n, done, e);
		if (rc == 0 && want && memcmp(r->work, want->data + done, n) != 0)
			rc = read_wrong(&reader, e, "does not belong to this checkpoint");
		done += n;
	}
	closed = io_close(io, r->blob, rc == 0 ? e : NULL);
	return rc < 0 ? rc : closed;
}

/* The files of rank `of`; of a copy's first rank only those that the copies share. */
static int read_rank(struct checkpoint_rank *r, int64_t of, bool shared_only, int64_t epoch,
		     int64_t step, const struct io *io, struct checkpoint_stat *s, struct err *e)
{
	uint64_t count = checkpoint_file_count(&r->c->plan, of);
	int rc = 0;

	for (uint64_t i = 0; i < count && rc == 0; i++) {
		struct checkpoint_file f;
		int64_t begin = clock_now_ns();

		named_file_at(r->c, of, i, &f);
		if (shared_only && f.part != CHECKPOINT_LAYERS && r->c->plan.zero > 0)
			continue;
		rc = read_file(r, &f, epoch, step, io, s, e);
		if (rc < 0 && rc != ERR_CANCELED && e && !e->named) {
			AUTO_FREE char *path =
				part_path(r->c, epoch, step, f.name, r->c->format->part_suffix[0]);

			err_name(rc, e, "reading back '%s'", path);
		}
		s->part_ns[f.part] += clock_now_ns() - begin;
	}
	return rc;
}

/* Reads the files that make a checkpoint whole, as every rank does before its own. */
static int read_committed(struct checkpoint_rank *r, int64_t epoch, int64_t step,
			  const struct io *io, struct err *e)
{
	bool more = r->c->format->commit != NULL, verify = r->c->w->checkpoint.verify;
	int rc = 0;

	for (unsigned i = 0; rc == 0 && more; i++) {
		const char *name = NULL;
		struct buf b = {0};

		rc = r->c->format->commit(&r->writer, i, &name, verify ? &b : NULL, e);
		more = name != NULL;
		if (rc == 0 && name) {
			AUTO_FREE char *path = part_path(r->c, epoch, step, name, "");

			rc = read_whole(r, path, verify ? &b : NULL, io, e);
		}
		buf_release(&b);
	}
	return rc;
}

int checkpoint_check_reading(const struct checkpoint *c, const struct store *s, struct err *e)
{
	const struct workload *w = c->w;

	if (!w->checkpoint.mmap && (!c->format->maps || w->checkpoint.access != 0 ||
				    store_base_flags(s) & STORE_HAS_OBJECTS))
		return 0;
	if (store_maps(s))
		return store_map_works(e);
	if (w->checkpoint.mmap)
		return err_set(
			e, ERR_USAGE,
			"checkpoint.mmap: storage.store '%s' has no files that can be mapped "
			"into memory: leave checkpoint.mmap out, or use the store posix",
			w->storage.store);
	return err_set(e, ERR_USAGE,
		       "checkpoint.format %s is read through a mapping, and storage.store '%s' has "
		       "no files that can be mapped into memory: set checkpoint.access to native, "
		       "which reads, or use the store posix",
		       c->format->is.name, w->storage.store);
}

int checkpoint_read(struct checkpoint_rank *r, int64_t from, int64_t epoch, int64_t step,
		    const struct io *io, struct checkpoint_stat *out, struct err *e)
{
	const struct checkpoint_plan *p = &r->c->plan;
	struct checkpoint_place at = checkpoint_place_of(p, from);
	bool also = r->c->w->checkpoint.restore == 1 && at.dp > 0 && p->zero != 3 &&
		    !(p->zero == 0 && p->all_ranks);
	struct checkpoint_stat s = {0};
	int64_t start = clock_now_ns();
	int rc = 0;

	rc = checkpoint_check_reading(r->c, io->store, e);
	if (rc == 0)
		rc = read_committed(r, epoch, step, io, e);
	if (rc == 0 && also)
		rc = read_rank(r, at.mp, true, epoch, step, io, &s, e);
	if (rc == 0)
		rc = read_rank(r, from, false, epoch, step, io, &s, e);
	s.total_ns = clock_now_ns() - start;
	if (out && rc == 0)
		*out = s;
	return rc;
}
