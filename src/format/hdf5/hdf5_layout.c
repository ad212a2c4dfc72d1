/* Placing the parts of an HDF5 file. */
#include "format/hdf5/hdf5_layout.h"

#include <assert.h>
#include <stddef.h>
#include <string.h>

/* The bytes of an HDF5 file's metadata: the messages of a dataset's header, and a root group whose
 * links do not fit its own header. */

/* A datatype message at most. */
#define TYPE_MAX 64

/* An IEEE number: version and class, sign's place, size, precision, exponent, mantissa, bias. */
static unsigned char *put_float_type(unsigned char *p, uint32_t bytes)
{
	uint32_t exponent = bytes == 2   ? 5
			    : bytes == 4 ? 8
					 : 11,
		 mantissa = bytes * 8 - 1 - exponent;

	*p++ = 0x11;
	*p++ = 0x20;
	*p++ = (unsigned char)(bytes * 8 - 1);
	*p++ = 0;
	p = le_put(p, bytes, 4);
	p = le_put(p, 0, 2);
	p = le_put(p, bytes * 8, 2);
	*p++ = (unsigned char)mantissa;
	*p++ = (unsigned char)exponent;
	*p++ = 0;
	*p++ = (unsigned char)mantissa;
	return le_put(p, (1u << (exponent - 1)) - 1, 4);
}

static unsigned char *put_int_type(unsigned char *p, uint32_t bytes, bool is_signed)
{
	*p++ = 0x10;
	p = le_put(p, is_signed ? 8 : 0, 3);
	p = le_put(p, bytes, 4);
	p = le_put(p, 0, 2);
	return le_put(p, bytes * 8, 2);
}

/* h5py's bool is an enumeration of int8, its complex a compound of the two parts. */
static size_t hdf5_type(const struct elem_type *elem, unsigned char *out)
{
	unsigned char *p = out;

	switch (elem->class) {
	case ELEM_INT:
		p = put_int_type(p, elem->bytes, elem->descr[1] == 'i');
		break;
	case ELEM_FLOAT:
		p = put_float_type(p, elem->bytes);
		break;
	case ELEM_BOOL:
		*p++ = 0x38;
		p = le_put(p, 2, 3);
		p = le_put(p, 1, 4);
		p = put_int_type(p, 1, true);
		memcpy(p, "FALSE\0TRUE\0\0\1", 13);
		p += 13;
		break;
	case ELEM_COMPLEX:
		*p++ = 0x36;
		p = le_put(p, 2, 3);
		p = le_put(p, elem->bytes, 4);
		memcpy(p, "r\0\0", 3);
		p = put_float_type(p + 3, elem->bytes / 2);
		memcpy(p, "i\0", 2);
		*(p + 2) = (unsigned char)(elem->bytes / 2);
		p = put_float_type(p + 3, elem->bytes / 2);
		break;
	}
	return (size_t)(p - out);
}

unsigned char *hdf5_message(unsigned char *p, unsigned type, size_t bytes, unsigned flags)
{
	*p++ = (unsigned char)type;
	p = le_put(p, bytes, 2);
	*p++ = (unsigned char)flags;
	return p;
}

static unsigned char *put_filter(unsigned char *p, const struct hdf5_shape *s)
{
	bool lzf = s->filter == HDF5_LZF;

	if (!s->filter)
		return p;
	p = hdf5_message(p, 0x0b, lzf ? 26 : 12, 1);
	*p++ = 2;
	*p++ = 1;
	p = le_put(p, s->filter, 2);
	if (lzf)
		p = le_put(p, 4, 2);
	p = le_put(p, 1, 2); /* optional: a chunk may lie there without it */
	p = le_put(p, lzf ? 3 : 1, 2);
	if (!lzf)
		return le_put(p, s->level, 4);
	memcpy(p, "lzf", 4);
	p = le_put(p + 4, 4, 4);
	p = le_put(p, 0x105, 4);
	return le_put(p, s->chunk_bytes, 4);
}

static unsigned char *put_data_layout(unsigned char *p, const struct hdf5_shape *s,
				      const struct hdf5_place *place)
{
	unsigned char *start = p, *length = p + 1;
	uint32_t each = hdf5_bytes_for(s->elem->bytes);

	p = hdf5_message(p, 8, 0, 0);
	*p++ = 4;
	*p++ = s->chunked ? 2 : 1;
	if (!s->chunked) {
		p = le_put(p, place->data, 8);
		p = le_put(p, s->bytes, 8);
		le_put(length, (uint64_t)(p - start) - 4, 2);
		return p;
	}
	for (uint32_t i = 0; i < s->rank; i++)
		if (hdf5_bytes_for(s->chunk[i]) > each)
			each = hdf5_bytes_for(s->chunk[i]);
	*p++ = s->single && s->filter ? 2 : 0;
	*p++ = (unsigned char)(s->rank + 1);
	*p++ = (unsigned char)each;
	for (uint32_t i = 0; i < s->rank; i++)
		p = le_put(p, s->chunk[i], each);
	p = le_put(p, s->elem->bytes, each);
	*p++ = s->single ? 1 : 3;
	if (s->single && s->filter) {
		p = le_put(p, s->stored_bytes, 8);
		p = le_put(p, s->filter == HDF5_LZF, 4);
	} else if (!s->single) {
		*p++ = HDF5_PAGE_BITS;
	}
	p = le_put(p, s->single ? place->data : place->index, 8);
	le_put(length, (uint64_t)(p - start) - 4, 2);
	return p;
}

size_t hdf5_header_messages(const struct hdf5_shape *s, const struct hdf5_place *place,
			    unsigned char *out)
{
	unsigned char type[TYPE_MAX];
	size_t type_bytes = hdf5_type(s->elem, type);
	unsigned char *p = hdf5_message(out, 1, 4 + 16 * s->rank, 0);

	*p++ = 2;
	*p++ = (unsigned char)s->rank;
	*p++ = 1;
	*p++ = 1;
	for (uint32_t i = 0; i < s->rank; i++)
		p = le_put(p, s->dims[i], 8);
	for (uint32_t i = 0; i < s->rank; i++)
		p = le_put(p, s->max_dims[i], 8);
	p = hdf5_message(p, 3, type_bytes, 1);
	memcpy(p, type, type_bytes);
	p = hdf5_message(p + type_bytes, 5, 2, 1);
	*p++ = 3;
	*p++ = s->chunked ? 3 : 10;
	p = put_filter(p, s);
	p = put_data_layout(p, s, place);
	assert(p - out <= (ptrdiff_t)HDF5_HEADER_MAX);
	return (size_t)(p - out);
}

/* ---- the root group ---- */

/* Links that do not fit the header of the root group are in the symbol table of HDF5's first group
 * format (HDF5 File Format Specification, III.A.1, III.B, III.D). The library itself would write a
 * fractal heap there; it reads both. */
/* The library's numbers where the superblock has no others. */
#define LEAF_LINKS 8u
#define TREE_CHILDREN 32u

#define HEAP_HEAD 32u
#define TREE_BYTES (24u + 8 * TREE_CHILDREN + 8 * (TREE_CHILDREN + 1))
#define NODE_BYTES (8u + 40 * LEAF_LINKS)

/* "labels" has 8 bytes behind the empty name, each "records_k" 16. */
static uint64_t name_at(uint32_t link)
{
	return link ? HDF5_NAME_MAX * (uint64_t)link : 8;
}

static size_t names_bytes(uint32_t datasets)
{
	return (size_t)name_at(datasets + 1);
}

static uint32_t nodes_of(uint32_t datasets)
{
	return (datasets + LEAF_LINKS) / LEAF_LINKS;
}

size_t hdf5_group_bytes(uint32_t datasets)
{
	return HEAP_HEAD + names_bytes(datasets) + TREE_BYTES + nodes_of(datasets) * NODE_BYTES;
}

/* The links in the order of their names: labels, then records_0, records_1, records_10, ... */
static void sort_links(uint32_t datasets, uint32_t order[HDF5_DATASETS_MAX + 1])
{
	uint32_t n = 0;

	order[n++] = datasets; /* the place of labels */
	for (uint32_t k = 0; k < 10 && k < datasets; k++) {
		order[n++] = k;
		for (uint32_t more = 10 * k; k > 0 && more < 10 * k + 10 && more < datasets; more++)
			order[n++] = more;
	}
}

static unsigned char *put_names(unsigned char *p, const struct hdf5_layout *l,
				const uint32_t *order)
{
	memcpy(p, "HEAP", 4);
	le_put(p + 8, names_bytes(l->datasets), 8);
	le_put(p + 16, 1, 8); /* no free space */
	le_put(p + 24, l->group + HEAP_HEAD, 8);
	p += HEAP_HEAD;
	memcpy(p + name_at(0), "labels", 6);
	for (uint32_t i = 1; i <= l->datasets; i++)
		hdf5_name(order[i], (char *)p + name_at(i));
	return p + names_bytes(l->datasets);
}

uint64_t hdf5_group_make(const struct hdf5_layout *l, unsigned char *out)
{
	uint32_t order[HDF5_DATASETS_MAX + 1], links = l->datasets + 1;
	uint32_t nodes = nodes_of(l->datasets);
	unsigned char *p, *tree, *node;
	uint64_t first;

	assert(l->group && hdf5_group_bytes(l->datasets) <= HDF5_GROUP_MAX);
	sort_links(l->datasets, order);
	memset(out, 0, hdf5_group_bytes(l->datasets));
	tree = put_names(out, l, order);
	node = tree + TREE_BYTES;
	first = l->group + (uint64_t)(node - out);
	memcpy(tree, "TREE", 4);
	le_put(tree + 6, nodes, 2);
	le_put(tree + 8, HDF5_UNDEFINED, 8);
	le_put(tree + 16, HDF5_UNDEFINED, 8);
	p = tree + 24 + 8; /* the first key is the empty name */
	for (uint32_t i = 0; i < nodes; i++, node += NODE_BYTES) {
		uint32_t begin = i * LEAF_LINKS;
		uint32_t end = begin + LEAF_LINKS < links ? begin + LEAF_LINKS : links;

		memcpy(node, "SNOD", 4);
		node[4] = 1;
		le_put(node + 6, end - begin, 2);
		for (uint32_t k = begin; k < end; k++) {
			unsigned char *entry = node + 8 + 40 * (k - begin);

			le_put(entry, name_at(k), 8);
			le_put(entry + 8, l->place[order[k]].header, 8);
		}
		p = le_put(p, first + i * NODE_BYTES, 8);
		p = le_put(p, name_at(end - 1), 8);
	}
	return l->group + (uint64_t)(tree - out);
}

/* The library takes space for metadata, and for small raw data, from blocks of this size. */
#define BLOCK 2048u

struct area {
	uint64_t at, left, total;
};

struct space {
	struct area meta, raw;
	uint64_t end;
};

static void release_tail(struct area *a, struct space *s)
{
	if (a->left == 0 || a->at + a->left != s->end)
		return;
	s->end = a->at;
	*a = (struct area){0};
}

/* Another area's unused end is given back when that area was worth its block. */
static void release_other_tail(struct area *other, struct space *s)
{
	if (other->total > other->left && other->total - other->left >= BLOCK)
		release_tail(other, s);
}

static uint64_t allocate(struct space *s, struct area *a, uint64_t n)
{
	struct area *other = a == &s->meta ? &s->raw : &s->meta;
	bool at_end = a->at > 0 && a->at + a->left == s->end;
	uint64_t at;

	if (n > a->left && n >= BLOCK) {
		if (at_end) {
			at = a->at;
			a->at += n;
			a->total += n;
		} else {
			release_other_tail(other, s);
			at = s->end;
		}
		s->end += n;
		return at;
	}
	if (n > a->left && at_end) {
		a->left += BLOCK;
		a->total += BLOCK;
		s->end += BLOCK;
	} else if (n > a->left) {
		release_other_tail(other, s);
		*a = (struct area){.at = s->end, .left = BLOCK, .total = BLOCK};
		s->end += BLOCK;
	}
	at = a->at;
	a->at += n;
	a->left -= n;
	return at;
}

uint32_t hdf5_size_bytes(uint64_t chunk_bytes)
{
	uint32_t n = 1 + hdf5_bytes_for(chunk_bytes);

	return n > 8 ? 8 : n;
}

uint32_t hdf5_slot_bytes(const struct hdf5_shape *s)
{
	return s->filter ? 8 + hdf5_size_bytes(s->chunk_bytes) + 4 : 8;
}

static uint64_t block_bytes(const struct hdf5_shape *s)
{
	uint64_t page = 1u << HDF5_PAGE_BITS, pages = (s->slots + page - 1) / page;
	uint64_t bytes = 18 + s->slots * hdf5_slot_bytes(s);

	return s->slots <= page ? bytes : bytes + (pages + 7) / 8 + 4 * pages;
}

/* Chunks are placed in order: the first, the index's block, then all others without a gap, but for
 * small ones that fill up the first's block before. */
static void place_chunks(struct space *s, const struct hdf5_shape *shape, struct hdf5_place *p)
{
	uint64_t n = shape->stored_bytes, left = shape->chunks - 1, fit;

	p->run[p->runs++] = (struct hdf5_run){0, allocate(s, &s->raw, n)};
	p->block = allocate(s, &s->meta, block_bytes(shape));
	if (left == 0)
		return;
	fit = s->raw.left / n < left ? s->raw.left / n : left;
	if (fit > 0) {
		p->run[p->runs++] = (struct hdf5_run){1, allocate(s, &s->raw, fit * n)};
		left -= fit;
	}
	if (left == 0)
		return;
	p->run[p->runs++] = (struct hdf5_run){shape->chunks - left, allocate(s, &s->raw, n)};
	left--;
	/* the area is now at the end of the file, or not used by chunks of a block or more */
	fit = s->raw.left / n < left ? s->raw.left / n : left;
	if (n < BLOCK && fit > 0) {
		allocate(s, &s->raw, fit * n);
		left -= fit;
	}
	if (left > 0 && n < BLOCK) {
		uint64_t need = left * n - s->raw.left, more = (need + BLOCK - 1) / BLOCK * BLOCK;

		s->raw.left += more;
		s->raw.total += more;
		s->end += more;
		allocate(s, &s->raw, left * n);
	} else if (left > 0) {
		allocate(s, &s->raw, left * n);
	}
}

static void place_dataset(struct space *s, const struct hdf5_shape *shape, uint32_t header_bytes,
			  struct hdf5_place *p)
{
	memset(p, 0, sizeof(*p));
	p->header = allocate(s, &s->meta, header_bytes + 12);
	p->data = HDF5_UNDEFINED;
	if (shape->chunked && !shape->single) {
		p->index = allocate(s, &s->meta, HDF5_INDEX_BYTES);
		place_chunks(s, shape, p);
	} else if (shape->bytes > 0) {
		p->data = allocate(s, &s->raw, shape->stored_bytes);
	}
}

/* A root group with more links than fit its header: what the library's moving of messages comes to,
 * when the link with this number is added. */
static void place_more(struct space *s, struct hdf5_layout *l, uint32_t link)
{
	uint32_t links = l->datasets + 1;
	uint32_t which = link - 3;

	if (link < 3 || link > 5)
		return;
	if (link == 3)
		l->more_bytes[0] = links == 4 ? 30 : 32;
	else if (link == 4)
		l->more_bytes[1] = links == 5 ? 51 : 54;
	else
		l->more_bytes[2] = 51 + 24 * (links - 6);
	l->more[which] = allocate(s, &s->meta, l->more_bytes[which]);
}

static void describe_labels(const struct file_spec *f, struct hdf5_shape *s)
{
	*s = (struct hdf5_shape){.elem = elem_find("int64"), .rank = 1};
	s->dims[0] = s->max_dims[0] = f->samples;
	s->bytes = s->chunk_bytes = s->stored_bytes = f->samples * 8;
}

int hdf5_layout_of(const struct file_spec *f, struct hdf5_layout *out, struct err *e)
{
	struct space s = {.meta = {HDF5_SUPER_BYTES, BLOCK - HDF5_SUPER_BYTES, BLOCK},
			  .end = BLOCK};
	const struct hdf5_place nowhere = {0};
	unsigned char messages[HDF5_HEADER_MAX];
	int rc;

	memset(out, 0, offsetof(struct hdf5_layout, place));
	out->datasets = f->datasets ? f->datasets : 1;
	if (out->datasets > HDF5_DATASETS_MAX)
		return err_set(e, ERR_USAGE,
			       "dataset.hdf5.num_dset_per_record is %u; at most %d datasets in a "
			       "file are supported",
			       out->datasets, HDF5_DATASETS_MAX);
	if (f->samples > INT64_MAX / 64)
		return err_set(e, ERR_USAGE, "an hdf5 file cannot hold that number of samples");
	rc = hdf5_shape_of(f, &out->records, e);
	if (rc < 0)
		return rc;
	describe_labels(f, &out->labels);
	for (uint32_t i = 0; i < 2; i++) {
		const struct hdf5_shape *shape = i ? &out->labels : &out->records;
		size_t n = hdf5_header_messages(shape, &nowhere, messages);

		/* a gap of one to three bytes cannot be a message, and needs none */
		out->header_bytes[i] = n > HDF5_HEADER_MIN ? (uint32_t)n : HDF5_HEADER_MIN;
	}
	allocate(&s, &s.meta, HDF5_ROOT_BYTES);
	if (out->datasets > HDF5_COMPACT_MAX)
		out->group = allocate(&s, &s.meta, hdf5_group_bytes(out->datasets));
	for (uint32_t i = 0; i <= out->datasets; i++) {
		bool label = i == out->datasets;

		place_dataset(&s, label ? &out->labels : &out->records, out->header_bytes[label],
			      &out->place[i]);
		if (!out->group)
			place_more(&s, out, i);
	}
	release_tail(s.meta.at > s.raw.at ? &s.meta : &s.raw, &s);
	release_tail(&s.meta, &s);
	release_tail(&s.raw, &s);
	out->file_bytes = s.end;
	if (s.end > INT64_MAX)
		return err_set(e, ERR_USAGE,
			       "an hdf5 file of these dimensions is larger than 2^63 bytes");
	return 0;
}

uint64_t hdf5_chunk_at(const struct hdf5_layout *l, const struct hdf5_place *p, uint64_t chunk)
{
	uint32_t i = p->runs - 1;

	assert(p->runs > 0 && chunk < l->records.chunks);
	while (i > 0 && p->run[i].first > chunk)
		i--;
	return p->run[i].at + (chunk - p->run[i].first) * l->records.stored_bytes;
}
