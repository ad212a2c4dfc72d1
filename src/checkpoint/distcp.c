/* torch.distributed.checkpoint: each rank's files "__<rank>_<n>.distcp", in which every tensor is a
 * torch.save archive of its own, and ".metadata", a pickle with the place of each tensor, written
 * last. Ranks that hold parts of one tensor hold chunks of it, one after another.
 *
 * checkpoint.torch decides under which names the classes of the pickle go: those of PyTorch 1.13
 * (torch.distributed._shard.checkpoint, held against its FileSystemReader in tests/interop), or of
 * 2.x (torch.distributed.checkpoint, as its sources name them). */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/compare.h"
#include "base/vector.h"
#include "checkpoint/pickle.h"
#include "checkpoint/torch.h"

extern const struct checkpoint_format_ops checkpoint_distcp;

#define SLICE_BUFFER 8192u /* io.DEFAULT_BUFFER_SIZE */

static void distcp_name(const struct checkpoint_plan *p, const struct checkpoint_file *f,
			uint64_t index, char *out, size_t out_size)
{
	int64_t rank = f->rank;

	(void)p;
	snprintf(out, out_size, "__%" PRId64 "_%" PRIu64, rank, index);
}

static void distcp_write(struct file_writer *w, unsigned part)
{
	(void)part;
	for (uint64_t i = 0; i < w->file->tensors; i++)
		torch_archive(w, i, 1, true);
}

struct single_tensor {
	struct file_reader *r;
	uint64_t index;
};

static int read_single(void *arg, const struct pickle_tensor *t, uint64_t place, uint64_t bytes,
		       struct pybuffer *py, struct err *e)
{
	struct single_tensor *x = arg;
	struct checkpoint_tensor want;
	int rc;

	checkpoint_tensor_at(x->r->common->plan, x->r->file, x->index, &want);
	rc = torch_expect(x->r, t, &want, bytes, e);
	return rc < 0 ? rc : read_payload(x->r, py, &want, place, bytes, e);
}

/* FileSystemReader opens a slice of the file for each tensor, with a buffer of its own. */
static int distcp_read(struct file_reader *r, unsigned part, struct err *e)
{
	struct file_writer *m = r->measure;
	int rc = 0;

	(void)part;
	if (r->way == READ_FRAMEWORK && r->buffer_bytes > SLICE_BUFFER)
		r->buffer_bytes = SLICE_BUFFER;
	file_writer_measure(m, r->file);
	for (uint64_t i = 0; i < r->file->tensors && rc == 0; i++) {
		struct single_tensor x = {.r = r, .index = i};
		uint64_t begin = m->stream->offset;

		torch_archive(m, i, 1, true);
		if (m->stream->offset > r->file_bytes)
			return read_wrong(
				r, e, "has %" PRIu64 " bytes, but at least %" PRIu64 " are needed",
				r->file_bytes, m->stream->offset);
		rc = torch_read_archive(r, begin, m->stream->offset, r->buffer_bytes, read_single,
					&x, e);
	}
	if (rc == 0 && r->verify && m->stream->offset != r->file_bytes)
		rc = read_wrong(r, e,
				"has %" PRIu64 " bytes, %" PRIu64 " of them behind its tensors",
				r->file_bytes, r->file_bytes - m->stream->offset);
	return rc;
}

/* ---- .metadata ---- */

struct placed_tensor {
	char name[64];
	char path[48];
	int64_t rank;
	enum checkpoint_datatype type;
	uint64_t elements, offset, length; /* archive in its file */
	uint64_t chunk;                    /* place of its elements in the whole tensor */
};

struct placed_tensors {
	struct placed_tensor *v;
	size_t n, room;
};

static int by_tensor(const void *a, const void *b)
{
	const struct placed_tensor *x = a, *y = b;
	int c = strcmp(x->name, y->name);

	return c ? c : ORDER(x->rank, y->rank);
}

static const char *const part_names[CHECKPOINT_PARTS] = {"model", "model", "optimizer"};

static void tensor_name(const struct checkpoint_file *f, const struct checkpoint_tensor *t,
			char *out, size_t out_size)
{
	if (f->part == CHECKPOINT_LAYERS && !t->outer[0])
		snprintf(out, out_size, "%s.%" PRId64 ".%s", part_names[f->part], f->first_layer,
			 t->key);
	else
		snprintf(out, out_size, "%s.%s%s%s", part_names[f->part], t->outer,
			 t->outer[0] ? "." : "", t->key);
}

static int place_file(struct file_writer *w, const struct checkpoint_file *f,
		      struct placed_tensors *all, struct err *e)
{
	file_writer_measure(w, f);
	for (uint64_t i = 0; i < f->tensors; i++) {
		struct checkpoint_tensor t;
		struct placed_tensor *x;

		if (VECTOR_TRY(all->v, all->n, all->room, 1, "the metadata of tensors", e) < 0)
			return -ENOMEM;
		x = &all->v[all->n++];
		checkpoint_tensor_at(w->common->plan, f, i, &t);
		*x = (struct placed_tensor){.rank = f->rank,
					    .type = t.type,
					    .elements = t.elements,
					    .offset = w->stream->offset};
		tensor_name(f, &t, x->name, sizeof(x->name));
		snprintf(x->path, sizeof(x->path), "%.40s.distcp", f->name);
		torch_archive(w, i, 1, true);
		x->length = w->stream->offset - x->offset;
	}
	return 0;
}

static int place_all(struct file_writer *w, struct placed_tensors *all, struct err *e)
{
	const struct checkpoint_plan *p = w->common->plan;
	int rc = 0;

	for (int64_t rank = 0; rank < p->ranks && rc == 0; rank++) {
		uint64_t files = checkpoint_file_count(p, rank);

		for (uint64_t i = 0; i < files && rc == 0; i++) {
			struct checkpoint_file f;

			checkpoint_file_at(p, rank, i, &f);
			distcp_name(p, &f, i, f.name, sizeof(f.name));
			rc = place_file(w, &f, all, e);
		}
	}
	if (rc < 0 || all->n == 0)
		return rc;
	qsort(all->v, all->n, sizeof(*all->v), by_tensor);
	for (size_t i = 1; i < all->n; i++)
		if (strcmp(all->v[i].name, all->v[i - 1].name) == 0)
			all->v[i].chunk = all->v[i - 1].chunk + all->v[i - 1].elements;
	return 0;
}

enum class { METADATA, TENSOR_STORAGE, PROPERTIES, CHUNK, INDEX, STORAGE_INFO, MEMORY, CLASSES };

struct metadata_writer {
	struct pickle_writer p;
	int64_t class[CLASSES], size, layout, type[CHECKPOINT_DATATYPES];
	bool newer;
};

/* A new object of a class; its state follows. */
static void put_object(struct metadata_writer *m, enum class class)
{
	static const struct {
		const char *older, *newer, *name;
	} names[CLASSES] = {
		{"metadata", "metadata", "Metadata"},
		{"metadata", "metadata", "TensorStorageMetadata"},
		{NULL, "metadata", "TensorProperties"},
		{"metadata", "metadata", "ChunkStorageMetadata"},
		{"metadata", "metadata", "MetadataIndex"},
		{"filesystem", "filesystem", "_StorageInfo"},
		{NULL, "metadata", NULL},
	};
	char module[80];

	if (m->newer)
		snprintf(module, sizeof(module), "torch.distributed.checkpoint.%s",
			 names[class].newer);
	else if (names[class].older)
		snprintf(module, sizeof(module), "torch.distributed._shard.checkpoint.%s",
			 names[class].older);
	else
		snprintf(module, sizeof(module),
			 "torch.distributed._shard.sharded_tensor.metadata");
	pickle_global(&m->p, &m->class[class], module,
		      names[class].name ? names[class].name
		      : m->newer        ? "_MEM_FORMAT_ENCODING"
					: "MEM_FORMAT_ENCODING");
	if (class == MEMORY) { /* contiguous */
		pickle_int(&m->p, 0);
		pickle_ops(&m->p, PICKLE_OP_TUPLE1, PICKLE_OP_REDUCE);
		return;
	}
	pickle_ops(&m->p, PICKLE_OP_EMPTY_TUPLE, PICKLE_OP_NEWOBJ);
}

static void put_key(struct metadata_writer *m, const char *s)
{
	pickle_op(&m->p, PICKLE_OP_BINUNICODE);
	for (int i = 0; i < 32; i += 8)
		pickle_op(&m->p, (unsigned char)(strlen(s) >> i));
	buf_puts(m->p.out, s);
}

/* torch.Size([n]) */
static void put_size(struct metadata_writer *m, uint64_t n)
{
	pickle_global(&m->p, &m->size, "torch", "Size");
	pickle_int(&m->p, (int64_t)n);
	pickle_ops(&m->p, PICKLE_OP_TUPLE1, PICKLE_OP_TUPLE1, PICKLE_OP_REDUCE);
}

static void put_properties(struct metadata_writer *m, enum checkpoint_datatype type)
{
	static const char *const names[CHECKPOINT_DATATYPES] = {"float16", "bfloat16", "float32",
								"float64", "int8",     "uint8"};

	put_object(m, PROPERTIES);
	pickle_op(&m->p, PICKLE_OP_MARK);
	pickle_global(&m->p, &m->type[type], "torch", names[type]);
	pickle_global(&m->p, &m->layout, "torch.serialization", "_get_layout");
	put_key(m, "torch.strided");
	pickle_ops(&m->p, PICKLE_OP_TUPLE1, PICKLE_OP_REDUCE, PICKLE_OP_NEWFALSE);
	put_object(m, MEMORY);
	pickle_ops(&m->p, PICKLE_OP_NEWFALSE, PICKLE_OP_TUPLE, PICKLE_OP_BUILD);
}

static void put_tensor_entry(struct metadata_writer *m, const struct placed_tensor *x,
			     size_t chunks)
{
	put_key(m, x->name);
	put_object(m, TENSOR_STORAGE);
	pickle_ops(&m->p, PICKLE_OP_EMPTY_DICT, PICKLE_OP_MARK);
	put_key(m, "properties");
	put_properties(m, x->type);
	put_key(m, "size");
	put_size(m, x[chunks - 1].chunk + x[chunks - 1].elements);
	put_key(m, "chunks");
	pickle_ops(&m->p, PICKLE_OP_EMPTY_LIST, PICKLE_OP_MARK);
	for (size_t i = 0; i < chunks; i++) {
		put_object(m, CHUNK);
		pickle_ops(&m->p, PICKLE_OP_EMPTY_DICT, PICKLE_OP_MARK);
		put_key(m, "offsets");
		put_size(m, x[i].chunk);
		put_key(m, "sizes");
		put_size(m, x[i].elements);
		pickle_ops(&m->p, PICKLE_OP_SETITEMS, PICKLE_OP_BUILD);
	}
	pickle_ops(&m->p, PICKLE_OP_APPENDS, PICKLE_OP_SETITEMS, PICKLE_OP_BUILD);
}

static void put_place_entry(struct metadata_writer *m, const struct placed_tensor *x)
{
	put_object(m, INDEX);
	pickle_ops(&m->p, PICKLE_OP_EMPTY_DICT, PICKLE_OP_MARK);
	put_key(m, "fqn");
	put_key(m, x->name);
	put_key(m, "index");
	pickle_op(&m->p, PICKLE_OP_NONE);
	put_key(m, "offset");
	put_size(m, x->chunk);
	pickle_ops(&m->p, PICKLE_OP_SETITEMS, PICKLE_OP_BUILD);
	put_object(m, STORAGE_INFO);
	pickle_ops(&m->p, PICKLE_OP_EMPTY_DICT, PICKLE_OP_MARK);
	put_key(m, "relative_path");
	put_key(m, x->path);
	put_key(m, "offset");
	pickle_int(&m->p, (int64_t)x->offset);
	put_key(m, "length");
	pickle_int(&m->p, (int64_t)x->length);
	pickle_ops(&m->p, PICKLE_OP_SETITEMS, PICKLE_OP_BUILD);
}

static void write_metadata(struct file_writer *w, const struct placed_tensors *all, struct buf *out)
{
	struct metadata_writer m = {.newer = w->common->torch == TORCH_2};

	memset(m.class, -1, sizeof(m.class));
	memset(m.type, -1, sizeof(m.type));
	m.size = m.layout = -1;
	pickle_begin(&m.p, out);
	put_object(&m, METADATA);
	pickle_ops(&m.p, PICKLE_OP_EMPTY_DICT, PICKLE_OP_MARK);
	put_key(&m, "state_dict_metadata");
	pickle_ops(&m.p, PICKLE_OP_EMPTY_DICT, PICKLE_OP_MARK);
	for (size_t i = 0, n; i < all->n; i += n) {
		for (n = 1; i + n < all->n && strcmp(all->v[i].name, all->v[i + n].name) == 0;)
			n++;
		put_tensor_entry(&m, &all->v[i], n);
	}
	pickle_op(&m.p, PICKLE_OP_SETITEMS);
	put_key(&m, "planner_data");
	pickle_op(&m.p, PICKLE_OP_NONE);
	put_key(&m, "storage_data");
	pickle_ops(&m.p, PICKLE_OP_EMPTY_DICT, PICKLE_OP_MARK);
	for (size_t i = 0; i < all->n; i++)
		put_place_entry(&m, &all->v[i]);
	pickle_op(&m.p, PICKLE_OP_SETITEMS);
	if (m.newer) {
		put_key(&m, "storage_meta");
		pickle_op(&m.p, PICKLE_OP_NONE);
	}
	pickle_ops(&m.p, PICKLE_OP_SETITEMS, PICKLE_OP_BUILD);
	pickle_end(&m.p);
}

static int distcp_commit(struct file_writer *w, unsigned index, const char **name, struct buf *out,
			 struct err *e)
{
	struct placed_tensors all = {0};
	int rc;

	*name = index == 0 ? ".metadata" : NULL;
	if (index > 0 || !out)
		return 0;
	rc = place_all(w, &all, e);
	if (rc == 0)
		write_metadata(w, &all, out);
	free(all.v);
	return rc;
}

const struct checkpoint_format_ops checkpoint_distcp = {
	.is.name = "distcp",
	.is.help = "torch.distributed.checkpoint: tensor files for each rank, and .metadata "
		   "written last",
	.part_suffix = {".distcp"},
	.law = STREAM_PYTHON,
	.write = distcp_write,
	.read = distcp_read,
	.commit = distcp_commit,
	.name_of = distcp_name,
};
