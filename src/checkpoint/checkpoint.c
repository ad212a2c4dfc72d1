/* Opening: the plan, the format and the pools; the memory of ranks; names. */
#include "checkpoint/checkpoint.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/file.h"
#include "checkpoint/parts.h"

static int find_format(struct checkpoint *c, struct err *e)
{
	const char *name = c->w->checkpoint.format;
	char known[256];
	size_t at = 0;

	if (strcmp(name, "auto") == 0)
		name = c->w->framework == FRAMEWORK_TENSORFLOW ? "tensorflow" : "torch";
	c->format = checkpoint_format_find(name);
	if (c->format)
		return 0;
	known[0] = '\0';
	for (size_t i = 0; checkpoint_table[i] && at < sizeof(known); i++)
		at += (size_t)snprintf(known + at, sizeof(known) - at, "%s%s", i ? ", " : "",
				       checkpoint_table[i]->is.name);
	return err_set(e, ERR_USAGE, "checkpoint.format '%s' is unknown; there are auto, %s", name,
		       known);
}

const struct checkpoint_format_ops *checkpoint_format_find(const char *name)
{
	for (size_t i = 0; checkpoint_table[i]; i++)
		if (strcmp(checkpoint_table[i]->is.name, name) == 0)
			return checkpoint_table[i];
	return NULL;
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
	rc = find_format(c, e);
	if (rc == 0)
		rc = checkpoint_plan_init(&c->plan, w, ranks, e);
	if (rc == 0)
		rc = make_pools(c, e);
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

enum stream_law checkpoint_law(const struct checkpoint *c)
{
	return c->w->checkpoint.access == 1 ? STREAM_BLOCKS : c->format->law;
}

size_t checkpoint_limit(const struct checkpoint_rank *r)
{
	if (r->c->w->checkpoint.access == 1)
		return (size_t)r->c->w->checkpoint.block_bytes;
	return r->c->format->limit ? r->c->format->limit : r->buffer_bytes;
}

static size_t work_bytes(const struct checkpoint *c, size_t buffer)
{
	size_t limit = c->format->limit ? c->format->limit : buffer;
	size_t arena = stream_arena_bytes(checkpoint_law(c), limit);

	return arena > READ_PIECE ? arena : READ_PIECE;
}

/* CPython's buffers are as large as the blocks of the file system, which is that of the nearest
 * folder that is there. */
static size_t buffer_bytes(const struct checkpoint *c, const struct store *s)
{
	AUTO_FREE char *at = path_absolute(c->w->checkpoint.checkpoint_folder);
	struct store_stat st = {.block_bytes = 4096};

	while (s->ops->stat((struct store *)(uintptr_t)s, at, &st, NULL) != 0 &&
	       strcmp(at, "/") != 0) {
		char *up = path_dirname(at);

		free(at);
		at = up;
	}
	return pybuffer_size(c->common.python, st.block_bytes ? st.block_bytes : 4096);
}

void file_writer_measure(struct file_writer *w, const struct checkpoint_file *f)
{
	static const struct io no_io;

	w->file = f;
	w->key = 0;
	stream_start(w->stream, STREAM_BLOCKS, 4096, NULL, &no_io, NULL, NULL);
}

/* Bytes of a file's part; what it keeps in memory stays in the writer's buffers. */
uint64_t checkpoint_measure(struct checkpoint_rank *r, const struct checkpoint_file *f,
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

		checkpoint_file_of(r->c, r->rank, i, &f);
		for (unsigned part = 0; r->c->format->part_suffix[part]; part++) {
			*bytes += checkpoint_measure(r, &f, part);
			*files += 1;
		}
	}
}

/* The plan's file under the name that the format gives it. */
void checkpoint_file_of(const struct checkpoint *c, int64_t rank, uint64_t index,
			struct checkpoint_file *out)
{
	checkpoint_file_at(&c->plan, rank, index, out);
	if (c->format->name_of)
		c->format->name_of(&c->plan, out, index, out->name, sizeof(out->name));
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

		checkpoint_file_of(c, rank, i, &f);
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

char *checkpoint_path(const struct checkpoint *c, int64_t epoch, int64_t step, const char *name,
		      const char *suffix)
{
	char *folder = checkpoint_folder_path(c->w, epoch, step);
	char *path = xasprintf("%s/%s%s", folder, name, suffix);

	free(folder);
	return path;
}
