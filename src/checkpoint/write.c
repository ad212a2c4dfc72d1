/* Writing and removing: temporary names, syncs, renames. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "checkpoint/parts.h"

#define TEMPORARY ".tmp"

/* The open file: filled, synced, closed. */
static int fill(struct checkpoint_rank *r, const struct checkpoint_file *f, unsigned part,
		const struct io *io, struct err *e)
{
	const struct checkpoint *c = r->c;
	int rc, closed;

	stream_start(r->stream, checkpoint_law(c), checkpoint_limit(r), r->work, io, r->blob, e);
	r->writer.file = f;
	c->format->write(&r->writer, part);
	rc = stream_flush(r->stream);
	if (rc == 0 && c->w->checkpoint.fsync)
		rc = io_sync(io, r->blob, e);
	closed = io_close(io, r->blob, rc == 0 ? e : NULL);
	return rc < 0 ? rc : closed;
}

static int explain(int rc, const char *path, struct err *e)
{
	if (rc == ERR_CANCELED || !e)
		return rc;
	if (rc == -ENOSPC || rc == -EDQUOT)
		return err_wrap(
			e,
			"cannot write the checkpoint file '%s' (it was removed again; earlier "
			"checkpoints are as they were; free space, or keep fewer with "
			"checkpoint.keep_last)",
			path);
	return err_wrap(e, "cannot write the checkpoint file '%s'", path);
}

/* One file, whole under its name or not there. */
static int write_part(struct checkpoint_rank *r, const struct checkpoint_file *f, unsigned part,
		      int64_t epoch, int64_t step, const struct io *io, struct err *e)
{
	const char *suffix = r->c->format->part_suffix[part];
	AUTO_FREE char *path = checkpoint_path(r->c, epoch, step, f->name, suffix);
	AUTO_FREE char *temporary = xasprintf("%s" TEMPORARY, path);
	int rc;

	r->writer.key = content_file_key(r->c->common.seed, epoch, step, f->name);
	span_name(io->trace, temporary);
	rc = io_open(io, temporary, STORE_WRITE | STORE_CREATE, r->blob, e);
	if (rc < 0)
		return explain(rc, path, e);
	rc = fill(r, f, part, io, e);
	if (rc == 0)
		rc = io_rename(io, temporary, path, e);
	if (rc < 0)
		io->store->ops->remove(io->store, temporary, NULL);
	return rc < 0 ? explain(rc, path, e) : 0;
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
		rc = io->store->ops->mkdirs(io->store, folder, e);
	for (uint64_t i = 0; i < count && rc == 0; i++) {
		struct checkpoint_file f;
		int64_t begin = clock_now_ns();

		checkpoint_file_of(r->c, r->rank, i, &f);
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
	AUTO_FREE char *temporary = xasprintf("%s" TEMPORARY, path);
	int rc, closed;
	ssize_t w;

	span_name(io->trace, temporary);
	rc = io_open(io, temporary, STORE_WRITE | STORE_CREATE, r->blob, e);
	if (rc < 0)
		return explain(rc, path, e);
	w = io_pwrite(io, r->blob, b->data, b->len, 0, e);
	rc = w < 0 ? (int)w : 0;
	if (rc == 0 && r->c->w->checkpoint.fsync)
		rc = io_sync(io, r->blob, e);
	closed = io_close(io, r->blob, rc == 0 ? e : NULL);
	if (rc == 0)
		rc = closed;
	if (rc == 0)
		rc = io_rename(io, temporary, path, e);
	if (rc < 0)
		io->store->ops->remove(io->store, temporary, NULL);
	return rc < 0 ? explain(rc, path, e) : 0;
}

/* File `index` that no rank writes: *path gets its place, or NULL behind the last. */
static int commit_file(struct checkpoint_rank *r, int64_t epoch, int64_t step, unsigned index,
		       char **path, struct buf *b, struct err *e)
{
	const char *name = NULL;
	int rc = 0;

	*path = NULL;
	if (r->c->format->commit)
		rc = r->c->format->commit(&r->writer, index, &name, b, e);
	if (rc == 0 && name)
		*path = checkpoint_path(r->c, epoch, step, name, "");
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

/* Removes what may be there. */
static int remove_quietly(const struct io *io, const char *path, struct err *e)
{
	int rc = io->store->ops->remove(io->store, path, e);

	return rc == -ENOENT ? 0 : rc;
}

int checkpoint_remove(struct checkpoint_rank *r, int64_t epoch, int64_t step, const struct io *io,
		      struct err *e)
{
	uint64_t count = checkpoint_file_count(&r->c->plan, r->rank);
	int rc = 0;

	for (uint64_t i = 0; i < count && rc == 0; i++) {
		struct checkpoint_file f;

		checkpoint_file_of(r->c, r->rank, i, &f);
		for (unsigned part = 0; r->c->format->part_suffix[part] && rc == 0; part++) {
			AUTO_FREE char *path = checkpoint_path(r->c, epoch, step, f.name,
							       r->c->format->part_suffix[part]);
			AUTO_FREE char *temporary = xasprintf("%s" TEMPORARY, path);

			rc = remove_quietly(io, path, e);
			if (rc == 0)
				rc = remove_quietly(io, temporary, e);
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
		rc = io->store->ops->remove(io->store, folder, e);
	if (rc == -ENOENT || rc == -ENOTEMPTY || rc == -EEXIST)
		return 0;
	return rc < 0 && e ? err_wrap(e, "cannot remove an old checkpoint") : rc;
}
