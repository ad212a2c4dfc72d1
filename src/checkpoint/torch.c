/* torch.save of nested maps of tensors, as DLIO calls it: an archive of data.pkl, one record a
 * storage in the order of their names, version. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "checkpoint/pickle.h"
#include "checkpoint/torch_read.h"
#include "checkpoint/torch_zip.h"

extern const struct checkpoint_format_ops checkpoint_torch;

struct map_writer {
	struct pickle_writer p;
	struct file_writer *w;
	struct checkpoint_tensor t; /* the next one */
	uint64_t next, end;
};

static void advance(struct map_writer *m)
{
	if (m->next < m->end)
		checkpoint_tensor_at(m->w->common->plan, m->w->file, m->next, &m->t);
}

static void one_tensor(struct map_writer *m)
{
	char key[24];

	snprintf(key, sizeof(key), "%" PRIu64, m->t.index);
	pickle_tensor(&m->p, m->t.type, key, m->t.elements);
	m->next++;
	advance(m);
}

/* Tensors from m->next on with the same outer key. */
static uint64_t run_length(const struct map_writer *m)
{
	struct checkpoint_tensor t = m->t;
	uint64_t n = 1;

	for (; m->next + n < m->end; n++) {
		checkpoint_tensor_at(m->w->common->plan, m->w->file, m->next + n, &t);
		if (strcmp(t.outer, m->t.outer) != 0)
			break;
	}
	return n;
}

/* Items of the outermost map. */
static uint64_t outer_count(struct map_writer *m)
{
	const struct checkpoint_file *f = m->w->file;
	struct checkpoint_tensor t;
	char last[sizeof(t.outer)] = "";
	uint64_t n = 0;

	if (f->shared)
		return (uint64_t)(f->last_layer - f->first_layer + 1);
	if (!f->by_layer)
		return m->end;
	for (uint64_t i = 0; i < m->end; i++) {
		checkpoint_tensor_at(m->w->common->plan, f, i, &t);
		if (!t.outer[0] || strcmp(t.outer, last) != 0)
			n++;
		memcpy(last, t.outer, sizeof(last));
	}
	return n;
}

static int64_t inner_map(struct map_writer *m)
{
	uint64_t n = run_length(m);
	int64_t place;

	pickle_op(&m->p, '}');
	place = pickle_put(&m->p);
	for (uint64_t i = 0; i < n; i++) {
		pickle_item(&m->p, i, n);
		pickle_key(&m->p, m->t.key);
		one_tensor(m);
	}
	pickle_item(&m->p, n, n);
	return place;
}

static void pickle_file(struct file_writer *w)
{
	const struct checkpoint_file *f = w->file;
	struct map_writer m = {.w = w, .end = f->tensors};
	int64_t shared = -1;
	uint64_t n;

	buf_reset(&w->meta);
	pickle_begin(&m.p, &w->meta);
	n = outer_count(&m);
	advance(&m);
	pickle_op(&m.p, '}');
	pickle_put(&m.p);
	for (uint64_t i = 0; i < n; i++) {
		pickle_item(&m.p, i, n);
		if (f->shared && i > 0) {
			char key[24];

			snprintf(key, sizeof(key), "%" PRId64, f->first_layer + (int64_t)i);
			pickle_key(&m.p, key);
			pickle_get(&m.p, shared);
		} else if (m.t.outer[0]) {
			pickle_key(&m.p, m.t.outer);
			shared = inner_map(&m);
		} else {
			pickle_key(&m.p, m.t.key);
			one_tensor(&m);
		}
	}
	pickle_item(&m.p, n, n);
	pickle_end(&m.p);
}

static void pickle_single(struct file_writer *w, uint64_t index)
{
	struct checkpoint_tensor t;
	struct pickle_writer p;

	checkpoint_tensor_at(w->common->plan, w->file, index, &t);
	buf_reset(&w->meta);
	pickle_begin(&p, &w->meta);
	pickle_tensor(&p, t.type, "0", t.elements);
	pickle_end(&p);
}

static void storage(struct file_writer *w, struct torch_zip *z, uint64_t index, uint64_t name)
{
	const struct content_pool *pool;
	struct checkpoint_tensor t;
	uint64_t phase;
	char record[40];

	checkpoint_tensor_at(w->common->plan, w->file, index, &t);
	pool = pool_of(w->common, t.type);
	snprintf(record, sizeof(record), "data/%" PRIu64, name);
	torch_zip_record(z, record, t.bytes);
	phase = content_phase(pool, w->key, index, w->stream->offset);
	stream_payload(w->stream, pool, phase, t.bytes);
	torch_zip_record_end(z, w->stream->blob ? content_crc(pool, phase, t.bytes) : 0);
}

/* PyTorch 2 derives these digits from the names and CRCs of the records; nothing reads them. */
static void serialization_id(const struct torch_zip *z, char out[41])
{
	uint64_t h = 0xcbf29ce484222325u;

	for (size_t i = 0; i < z->directory->len; i++)
		h = (h ^ (unsigned char)z->directory->data[i]) * 0x100000001b3u;
	snprintf(out, 41, "%020" PRIu64 "%020" PRIu64, h, h * 0x9e3779b97f4a7c15u);
}

void torch_archive(struct file_writer *w, uint64_t first, uint64_t tensors, bool single)
{
	const bool newer = w->common->torch == TORCH_2;
	struct torch_zip z;

	if (single)
		pickle_single(w, first);
	else
		pickle_file(w);
	torch_zip_begin(&z, w->stream, &w->directory);
	torch_zip_put(&z, "data.pkl", w->meta.data, w->meta.len);
	if (newer) {
		torch_zip_put(&z, ".format_version", "1", 1);
		torch_zip_put(&z, ".storage_alignment", "64", 2);
		torch_zip_put(&z, "byteorder", "little", 6);
	}
	for (uint64_t i = 0; i < tensors; i = torch_next_name(i, tensors))
		storage(w, &z, first + i, i);
	torch_zip_put(&z, "version", "3\n", 2);
	if (newer) {
		char id[41];

		serialization_id(&z, id);
		torch_zip_put(&z, ".data/serialization_id", id, 40);
	}
	torch_zip_end(&z);
}

static void torch_write(struct file_writer *w, unsigned part)
{
	(void)part;
	torch_archive(w, 0, w->file->tensors, false);
}

static int torch_read_file(struct file_reader *r, unsigned part, struct err *e)
{
	(void)part;
	return torch_read(r, e);
}

const struct checkpoint_format_ops checkpoint_torch = {
	.is.name = "torch",
	.is.help = "torch.save: a zip archive of a pickle and one record a tensor",
	.part_suffix = {".pt"},
	.law = STREAM_PYTHON,
	.write = torch_write,
	.read = torch_read_file,
};
