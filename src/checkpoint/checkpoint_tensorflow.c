/* tf.train.Checkpoint(**state).save(): a bundle of one shard. "<name>.pb-1.data-00000-of-00001" is
 * the tensors one after another in the order of their keys; "<name>.pb-1.index" is a sorted
 * table (LevelDB's format, blocks not compressed) of protocol buffers that say type, shape, place,
 * size and CRC-32C of each. The keys are those of the object graph that restore() walks, which is a
 * tensor, too. Sources: tensorflow/core/util/tensor_bundle, core/lib/io/table,
 * core/protobuf/{tensor_bundle, trackable_object_graph}.proto. What the library would read of small
 * tensors through one buffer is a request a tensor here. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "checkpoint/formats.h"
#include "codec/crc.h"

extern const struct checkpoint_format_ops checkpoint_tensorflow;

#define FILE_BUFFER (8u << 20) /* of BundleWriter */
#define BLOCK 262144u
#define RESTART 16u
#define MAGIC 0xdb4775248b80fb57u
#define SUFFIX ".ATTRIBUTES/VARIABLE_VALUE"
#define GRAPH_KEY "_CHECKPOINTABLE_OBJECT_GRAPH"
#define COUNTER_KEY "save_counter/"
#define GRAPH UINT64_MAX
#define COUNTER (UINT64_MAX - 1)

enum { DT_STRING = 7, DT_INT64 = 9 };
static const unsigned tf_types[CHECKPOINT_DATATYPES] = {19, 14, 1, 2, 6, 4};

struct keyed {
	char key[56]; /* without SUFFIX */
	uint64_t index;
};

static void put_varint(struct buf *b, uint64_t v)
{
	for (; v >= 128; v >>= 7)
		buf_putc(b, (char)(v | 128));
	buf_putc(b, (char)v);
}

static size_t varint_size(uint64_t v)
{
	size_t n = 1;

	for (; v >= 128; v >>= 7)
		n++;
	return n;
}

static void put_fixed32(struct buf *b, uint32_t v)
{
	for (int i = 0; i < 32; i += 8)
		buf_putc(b, (char)(v >> i));
}

/* A field of a protocol buffer; numbers that are 0 are left out. */
static void put_number(struct buf *b, unsigned field, uint64_t v)
{
	if (v == 0)
		return;
	put_varint(b, field << 3);
	put_varint(b, v);
}

static void put_bytes(struct buf *b, unsigned field, const void *p, size_t n)
{
	put_varint(b, field << 3 | 2);
	put_varint(b, n);
	buf_append(b, p, n);
}

static int by_key(const void *a, const void *b)
{
	return strcmp(((const struct keyed *)a)->key, ((const struct keyed *)b)->key);
}

/* All keys in order, in w->directory; *n gets how many. */
static const struct keyed *tensors_by_key(struct file_writer *w, uint64_t *n)
{
	struct keyed graph = {.key = GRAPH_KEY, .index = GRAPH};
	struct keyed counter = {.key = COUNTER_KEY, .index = COUNTER};

	buf_reset(&w->directory);
	for (uint64_t i = 0; i < w->file->tensors; i++) {
		struct checkpoint_tensor t;
		struct keyed k = {.index = i};

		checkpoint_tensor_at(w->common->plan, w->file, i, &t);
		snprintf(k.key, sizeof(k.key), "%s%s%s/", t.outer, t.outer[0] ? "/" : "", t.key);
		buf_append(&w->directory, &k, sizeof(k));
	}
	buf_append(&w->directory, &graph, sizeof(graph));
	buf_append(&w->directory, &counter, sizeof(counter));
	*n = w->file->tensors + 2;
	qsort(w->directory.data, (size_t)*n, sizeof(struct keyed), by_key);
	return (const struct keyed *)(const void *)w->directory.data;
}

/* ---- the object graph ---- */

/* children { node_id, local_name } */
static void put_child(struct buf *node, uint64_t id, const char *name)
{
	size_t text = strlen(name);

	put_varint(node, 1 << 3 | 2);
	put_varint(node, (id ? 1 + varint_size(id) : 0) + 1 + varint_size(text) + text);
	put_number(node, 1, id);
	put_bytes(node, 2, name, text);
}

/* A node that holds a variable: attributes { name, full_name, checkpoint_key } */
static void put_variable(struct buf *graph, const char *key)
{
	struct buf node = {0}, attribute = {0};
	char full[96];

	snprintf(full, sizeof(full), "%s" SUFFIX, key);
	put_bytes(&attribute, 1, "VARIABLE_VALUE", 14);
	put_bytes(&attribute, 2, "Variable", 8);
	put_bytes(&attribute, 3, full, strlen(full));
	put_bytes(&node, 2, attribute.data, attribute.len);
	put_bytes(graph, 1, node.data, node.len);
	buf_release(&attribute);
	buf_release(&node);
}

/* Nodes: the root, then its children in the order of the map, each inner map before its tensors;
 * the counter is the last. In w->meta. */
static void make_graph(struct file_writer *w)
{
	const struct checkpoint_plan *p = w->common->plan;
	const uint64_t n = w->file->tensors;
	struct buf root = {0}, inner = {0};
	struct checkpoint_tensor t, u;
	uint64_t id = 1;

	buf_reset(&w->meta);
	for (uint64_t i = 0; i < n;) {
		checkpoint_tensor_at(p, w->file, i, &t);
		put_child(&root, id++, t.outer[0] ? t.outer : t.key);
		if (!t.outer[0]) {
			i++;
			continue;
		}
		for (u = t; i < n && strcmp(u.outer, t.outer) == 0; id++)
			if (++i < n)
				checkpoint_tensor_at(p, w->file, i, &u);
	}
	put_child(&root, id, "save_counter");
	put_bytes(&w->meta, 1, root.data, root.len);
	id = 1;
	for (uint64_t i = 0; i < n;) {
		char key[56];
		uint64_t end = i;

		checkpoint_tensor_at(p, w->file, i, &t);
		if (!t.outer[0]) {
			snprintf(key, sizeof(key), "%s/", t.key);
			put_variable(&w->meta, key);
			id++;
			i++;
			continue;
		}
		buf_reset(&inner);
		for (u = t; end < n && strcmp(u.outer, t.outer) == 0;) {
			put_child(&inner, id + 1 + end - i, u.key);
			if (++end < n)
				checkpoint_tensor_at(p, w->file, end, &u);
		}
		put_bytes(&w->meta, 1, inner.data, inner.len);
		for (; i < end; i++, id++) {
			checkpoint_tensor_at(p, w->file, i, &u);
			snprintf(key, sizeof(key), "%s/%s/", u.outer, u.key);
			put_variable(&w->meta, key);
		}
		id++;
	}
	put_variable(&w->meta, COUNTER_KEY);
	buf_release(&root);
	buf_release(&inner);
}

/* A string tensor of one element: its length, the length's checksum, the string. The checksums run
 * over the length as 32 bits. */
static uint32_t graph_head(const struct buf *graph, struct buf *out)
{
	uint32_t length = (uint32_t)graph->len, crc = crc32c_update(0, &length, 4);
	uint32_t masked = crc32c_masked(crc);

	put_varint(out, graph->len);
	put_fixed32(out, masked);
	crc = crc32c_update(crc, &masked, 4);
	return crc32c_update(crc, graph->data, graph->len);
}

/* ---- data and index ---- */

static const unsigned char counter_bytes[8] = {1};

static void write_data(struct file_writer *w)
{
	uint64_t n;
	const struct keyed *order = tensors_by_key(w, &n);

	make_graph(w);
	for (uint64_t i = 0; i < n; i++) {
		struct checkpoint_tensor t;
		struct buf head = {0};

		if (order[i].index == COUNTER) {
			stream_put(w->stream, counter_bytes, sizeof(counter_bytes));
		} else if (order[i].index == GRAPH) {
			graph_head(&w->meta, &head);
			stream_put(w->stream, head.data, head.len);
			stream_put(w->stream, w->meta.data, w->meta.len);
			buf_release(&head);
		} else {
			const struct content_pool *pool;

			checkpoint_tensor_at(w->common->plan, w->file, order[i].index, &t);
			pool = pool_of(w->common, t.type);
			stream_payload(w->stream, pool,
				       content_phase(pool, w->key, t.index, w->stream->offset),
				       t.bytes);
		}
	}
}

struct table {
	struct buf *out;
	struct buf block, index, restarts;
	uint32_t restart_count;
	unsigned since; /* entries since the last restart */
	char last[128];
};

static void block_end(struct buf *out, struct buf *block, struct buf *restarts, uint32_t count,
		      uint64_t handle[2])
{
	uint32_t crc;

	buf_append(block, restarts->data, restarts->len);
	put_fixed32(block, count);
	handle[0] = out->len;
	handle[1] = block->len;
	buf_putc(block, 0); /* not compressed */
	crc = crc32c_update(0, block->data, block->len);
	buf_append(out, block->data, block->len);
	put_fixed32(out, crc32c_masked(crc));
	buf_reset(block);
	buf_reset(restarts);
}

static void table_flush(struct table *t)
{
	uint64_t handle[2];
	struct buf value = {0};

	if (t->block.len == 0)
		return;
	block_end(t->out, &t->block, &t->restarts, t->restart_count, handle);
	put_varint(&value, handle[0]);
	put_varint(&value, handle[1]);
	/* every entry of the index is a restart */
	put_varint(&t->index, 0);
	put_varint(&t->index, strlen(t->last));
	put_varint(&t->index, value.len);
	buf_puts(&t->index, t->last);
	buf_append(&t->index, value.data, value.len);
	buf_release(&value);
	t->restart_count = 0;
}

static void table_add(struct table *t, const char *key, const struct buf *value)
{
	size_t shared = 0, n = strlen(key);

	if (t->restart_count == 0 || t->since == RESTART) {
		put_fixed32(&t->restarts, (uint32_t)t->block.len);
		t->restart_count++;
		t->since = 0;
	} else {
		while (shared < n && key[shared] == t->last[shared])
			shared++;
	}
	put_varint(&t->block, shared);
	put_varint(&t->block, n - shared);
	put_varint(&t->block, value->len);
	buf_append(&t->block, key + shared, n - shared);
	buf_append(&t->block, value->data, value->len);
	t->since++;
	snprintf(t->last, sizeof(t->last), "%s", key);
	if (t->block.len >= BLOCK)
		table_flush(t);
}

/* Restart points of the index block, whose entries share no key prefix. */
static void index_restarts(const struct buf *index, struct buf *restarts, uint32_t *count)
{
	const unsigned char *p = (const unsigned char *)index->data;

	for (size_t at = 0; at < index->len;) {
		uint64_t part[3] = {0};

		put_fixed32(restarts, (uint32_t)at);
		++*count;
		for (int i = 0; i < 3; i++)
			for (int shift = 0;; shift += 7) {
				part[i] |= (uint64_t)(p[at] & 127) << shift;
				if (p[at++] < 128)
					break;
			}
		at += (size_t)(part[1] + part[2]);
	}
}

static void table_end(struct table *t)
{
	uint64_t meta[2], index[2];
	struct buf footer = {0}, empty = {0};
	uint32_t count = 0;

	table_flush(t);
	put_fixed32(&t->restarts, 0);
	block_end(t->out, &empty, &t->restarts, 1, meta);
	index_restarts(&t->index, &t->restarts, &count);
	block_end(t->out, &t->index, &t->restarts, count, index);
	put_varint(&footer, meta[0]);
	put_varint(&footer, meta[1]);
	put_varint(&footer, index[0]);
	put_varint(&footer, index[1]);
	while (footer.len < 40)
		buf_putc(&footer, 0);
	put_fixed32(&footer, (uint32_t)MAGIC);
	put_fixed32(&footer, (uint32_t)(MAGIC >> 32));
	buf_append(t->out, footer.data, footer.len);
	buf_release(&footer);
	buf_release(&empty);
	buf_release(&t->block);
	buf_release(&t->index);
	buf_release(&t->restarts);
}

/* BundleEntryProto; `elements` UINT64_MAX: a scalar. */
static void put_entry(struct buf *b, unsigned type, uint64_t elements, uint64_t offset,
		      uint64_t size, uint32_t crc)
{
	struct buf dim = {0}, shape = {0};

	if (elements != UINT64_MAX) {
		put_number(&dim, 1, elements);
		put_bytes(&shape, 2, dim.data, dim.len);
	}
	buf_reset(b);
	put_number(b, 1, type);
	put_bytes(b, 2, shape.data, shape.len);
	put_number(b, 4, offset);
	put_number(b, 5, size);
	put_varint(b, 6 << 3 | 5);
	put_fixed32(b, crc32c_masked(crc));
	buf_release(&dim);
	buf_release(&shape);
}

/* The index in w->index; without `sums` only its size is right. */
static void make_index(struct file_writer *w, bool sums)
{
	static const char header[] = {8, 1, 26, 2, 8, 1}; /* one shard, little-endian, version 1 */
	struct table t = {.out = &w->index};
	struct buf value = {0};
	uint64_t n, offset = 0;
	const struct keyed *order = tensors_by_key(w, &n);

	make_graph(w);
	buf_reset(&w->index);
	buf_append(&value, header, sizeof(header));
	table_add(&t, "", &value);
	for (uint64_t i = 0; i < n; i++) {
		struct checkpoint_tensor x;
		struct buf head = {0};
		char key[128];

		snprintf(key, sizeof(key), "%s%s", order[i].key,
			 order[i].index == GRAPH ? "" : SUFFIX);
		if (order[i].index == GRAPH) {
			uint32_t crc = graph_head(&w->meta, &head);

			put_entry(&value, DT_STRING, UINT64_MAX, offset, head.len + w->meta.len,
				  crc);
			offset += head.len + w->meta.len;
			buf_release(&head);
		} else if (order[i].index == COUNTER) {
			put_entry(&value, DT_INT64, UINT64_MAX, offset, 8,
				  crc32c_update(0, counter_bytes, 8));
			offset += 8;
		} else {
			const struct content_pool *pool;
			uint64_t phase;

			checkpoint_tensor_at(w->common->plan, w->file, order[i].index, &x);
			pool = pool_of(w->common, x.type);
			phase = sums ? content_phase(pool, w->key, x.index, offset) : 0;
			put_entry(&value, tf_types[x.type], x.elements, offset, x.bytes,
				  sums ? content_crc32c(pool, phase, x.bytes) : 0);
			offset += x.bytes;
		}
		table_add(&t, key, &value);
	}
	table_end(&t);
	buf_release(&value);
}

static void tensorflow_write(struct file_writer *w, unsigned part)
{
	if (part == 0) {
		write_data(w);
		return;
	}
	make_index(w, w->stream->blob != NULL);
	stream_put(w->stream, w->index.data, w->index.len);
}

/* The index is known to the last byte: footer, index block and what precedes them are read and
 * compared. */
static int read_index(struct file_reader *r, struct err *e)
{
	struct file_writer *m = r->measure;
	size_t before, at = 0;
	int rc = 0;

	m->file = r->file;
	m->key = r->key;
	make_index(m, true);
	if (m->index.len != r->file_bytes)
		return read_wrong(r, e, "has %" PRIu64 " bytes instead of the expected %zu",
				  r->file_bytes, m->index.len);
	buf_reset(&r->meta);
	if (!buf_room(&r->meta, m->index.len))
		return read_wrong(r, e, "no memory for %zu bytes", m->index.len);
	before = m->index.len - 48;
	rc = read_meta(r, before, r->meta.data + before, 48, e);
	for (; at < before && rc == 0;) {
		size_t n = before - at < BLOCK ? before - at : BLOCK;

		rc = read_meta(r, at, r->meta.data + at, n, e);
		at += n;
	}
	if (rc == 0 && memcmp(r->meta.data, m->index.data, m->index.len) != 0)
		rc = read_wrong(r, e, "is not the index of this checkpoint");
	return rc;
}

static int tensorflow_read(struct file_reader *r, unsigned part, struct err *e)
{
	struct file_writer *m = r->measure;
	const struct keyed *order;
	uint64_t n, offset = 0;
	int rc = 0;

	if (part == 1)
		return read_index(r, e);
	m->file = r->file;
	order = tensors_by_key(m, &n);
	make_graph(m);
	for (uint64_t i = 0; i < n && rc == 0; i++) {
		struct checkpoint_tensor t;
		struct buf head = {0};
		unsigned char small[8];

		if (order[i].index == GRAPH) {
			/* the library compares its checksum, which the index has */
			graph_head(&m->meta, &head);
			buf_append(&head, m->meta.data, m->meta.len);
			buf_reset(&r->meta);
			if (!buf_room(&r->meta, head.len))
				rc = read_wrong(r, e, "no memory for its object graph");
			if (rc == 0)
				rc = read_meta(r, offset, r->meta.data, head.len, e);
			if (rc == 0 && memcmp(r->meta.data, head.data, head.len) != 0)
				rc = read_wrong(r, e,
						"the object graph at offset %" PRIu64
						" is not the one of this checkpoint",
						offset);
			offset += head.len;
			buf_release(&head);
		} else if (order[i].index == COUNTER) {
			rc = read_meta(r, offset, small, 8, e);
			if (rc == 0 && memcmp(small, counter_bytes, 8) != 0)
				rc = read_wrong(r, e,
						"the save counter at offset %" PRIu64
						" is not the one of this checkpoint",
						offset);
			offset += 8;
		} else {
			checkpoint_tensor_at(r->common->plan, r->file, order[i].index, &t);
			rc = read_payload(r, NULL, &t, offset, t.bytes, e);
			offset += t.bytes;
		}
	}
	if (rc == 0 && r->verify && offset != r->file_bytes)
		rc = read_wrong(r, e, "has %" PRIu64 " bytes, not the %" PRIu64 " of its tensors",
				r->file_bytes, offset);
	return rc;
}

/* The file that tf.train.latest_checkpoint reads. */
static int tensorflow_commit(struct file_writer *w, unsigned index, const char **name,
			     struct buf *out, struct err *e)
{
	const struct checkpoint_plan *p = w->common->plan;
	uint64_t files = checkpoint_file_count(p, 0);
	struct checkpoint_file f;

	(void)e;
	*name = index == 0 && files > 0 ? "checkpoint" : NULL;
	if (!*name || !out)
		return 0;
	checkpoint_file_at(p, 0, files - 1, &f);
	buf_printf(out,
		   "model_checkpoint_path: \"%s.pb-1\"\nall_model_checkpoint_paths: \"%s.pb-1\"\n",
		   f.name, f.name);
	return 0;
}

const struct checkpoint_format_ops checkpoint_tensorflow = {
	.is.name = "tensorflow",
	.is.help = "tf.train.Checkpoint: data and index files, and the file \"checkpoint\"",
	.is.default_of = 1u << FRAMEWORK_TENSORFLOW,
	.part_suffix = {".pb-1.data-00000-of-00001", ".pb-1.index"},
	.law = STREAM_PIECES,
	.limit = FILE_BUFFER,
	.write = tensorflow_write,
	.read = tensorflow_read,
	.commit = tensorflow_commit,
};
