/* Opening an HDF5 file (its superblock and the header of its root group) and its datasets (what
 * their object headers say). */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "format/hdf5/hdf5_file.h"

#define SUPER_GUESS 16u

static const char super_name[] = "the superblock";

/* The library looks at the signature, then at the superblock's beginning, then at its rest. */
static int read_super(struct hdf5_file *f, uint64_t file_bytes, unsigned char *b, size_t *bytes,
		      struct err *e)
{
	static const unsigned char sizes[4] = {96, 100, 48, 48};
	int rc;

	f->end = file_bytes;
	if (file_bytes < 8)
		return err_set(e, ERR_DATA,
			       "the file has %" PRIu64
			       " bytes, too few for an hdf5 file: it is truncated",
			       file_bytes);
	rc = hdf5_get_bytes(f, 0, b, 8, super_name, e);
	if (rc < 0)
		return rc;
	if (memcmp(b, "\x89HDF\r\n\x1a\n", 8) != 0)
		return err_set(e, ERR_DATA, "the file does not begin with the hdf5 signature");
	rc = hdf5_get_bytes(f, 0, b, SUPER_GUESS, super_name, e);
	if (rc < 0)
		return rc;
	if (b[8] > 3)
		return err_set(e, ERR_DATA, "the superblock has version %u; 0 to 3 are supported",
			       b[8]);
	*bytes = sizes[b[8]];
	return hdf5_get_bytes(f, SUPER_GUESS, b + SUPER_GUESS, *bytes - SUPER_GUESS, super_name, e);
}

static int bad_sizes(unsigned offset, unsigned length, struct err *e)
{
	return err_set(e, ERR_DATA,
		       "the file has offsets of %u and lengths of %u bytes; only 8 are supported",
		       offset, length);
}

/* *extension gets the address of the superblock's own header. */
static int parse_super(struct hdf5_file *f, const unsigned char *b, size_t bytes,
		       uint64_t *extension, struct err *e)
{
	size_t at = b[8] == 1 ? 28 : 24;
	uint64_t base;

	f->leaf_k = 4;
	f->tree_k = 16;
	f->chunk_k = 32;
	*extension = HDF5_UNDEFINED;
	if (b[8] >= 2) {
		if (b[9] != 8 || b[10] != 8)
			return bad_sizes(b[9], b[10], e);
		if (le_get(b + bytes - 4, 4) != hdf5_checksum(b, bytes - 4))
			return err_set(e, ERR_DATA,
				       "the checksum of the superblock at offset 0 does not match "
				       "its %zu bytes: the file is damaged",
				       bytes);
		base = le_get(b + 12, 8);
		*extension = le_get(b + 20, 8);
		f->end = le_get(b + 28, 8);
		f->root = le_get(b + 36, 8);
	} else {
		if (b[13] != 8 || b[14] != 8)
			return bad_sizes(b[13], b[14], e);
		f->leaf_k = (uint32_t)le_get(b + 16, 2);
		f->tree_k = (uint32_t)le_get(b + 18, 2);
		if (b[8] == 1)
			f->chunk_k = (uint32_t)le_get(b + 24, 2);
		base = le_get(b + at, 8);
		f->end = le_get(b + at + 16, 8);
		f->root = le_get(b + at + 40, 8);
	}
	if (base != 0)
		return err_set(e, ERR_DATA,
			       "the file has %" PRIu64
			       " bytes before its hdf5 data; none are allowed",
			       base);
	return 0;
}

/* Of the superblock's own header only the sizes of tree nodes matter. */
static int extension_message(void *arg, unsigned type, unsigned flags, const unsigned char *p,
			     size_t n, uint64_t at, struct err *e)
{
	struct hdf5_file *f = arg;

	(void)flags;
	if (type != 0x13)
		return 0;
	if (n < 7 || p[0] != 0)
		return err_set(e, ERR_DATA,
			       "the message with the tree sizes at offset %" PRIu64 " is damaged",
			       at);
	f->chunk_k = (uint32_t)le_get(p + 1, 2);
	f->tree_k = (uint32_t)le_get(p + 3, 2);
	f->leaf_k = (uint32_t)le_get(p + 5, 2);
	return 0;
}

static int link_message(struct hdf5_file *f, const unsigned char *p, size_t n, uint64_t at,
			struct err *e)
{
	struct hdf5_link link;
	int rc = hdf5_link_parse(p, n, at, &link, e);

	for (uint32_t k = 0; rc == 0 && k < f->datasets; k++) {
		struct hdf5_dataset *d = &f->dataset[k];

		if (strlen(d->name) == link.length && memcmp(link.name, d->name, link.length) == 0)
			d->header = link.header;
	}
	return rc;
}

static int root_message(void *arg, unsigned type, unsigned flags, const unsigned char *p, size_t n,
			uint64_t at, struct err *e)
{
	struct hdf5_file *f = arg;

	(void)flags;
	if (type == 6)
		return link_message(f, p, n, at, e);
	if (type == 0x11) {
		if (n < 16)
			return err_set(e, ERR_DATA,
				       "the symbol table at offset %" PRIu64 " is damaged", at);
		f->group_tree = le_get(p, 8);
		f->group_heap = le_get(p + 8, 8);
	}
	if (type == 2) {
		size_t i = 2 + (n > 1 && (p[1] & 1) ? 8 : 0);

		if (n < i + 16 || p[0] != 0)
			return err_set(e, ERR_DATA,
				       "the link info at offset %" PRIu64 " is damaged", at);
		f->link_heap = le_get(p + i, 8);
		f->link_tree = le_get(p + i + 8, 8);
	}
	return 0;
}

int hdf5_file_open(struct hdf5_file *f, uint64_t file_bytes, struct err *e)
{
	unsigned char b[112];
	uint64_t extension = HDF5_UNDEFINED;
	size_t bytes = 0;
	int rc;

	f->serial = ++f->cache->serial;
	f->group_tree = f->link_heap = f->link_tree = HDF5_UNDEFINED;
	for (uint32_t i = 0; i < f->datasets; i++) {
		memset(&f->dataset[i], 0, sizeof(f->dataset[i]));
		hdf5_name(i, f->dataset[i].name);
		f->dataset[i].header = HDF5_UNDEFINED;
	}
	rc = read_super(f, file_bytes, b, &bytes, e) ?: parse_super(f, b, bytes, &extension, e);
	if (rc < 0)
		return rc;
	if (f->end > file_bytes)
		return err_set(e, ERR_DATA,
			       "the file has %" PRIu64 " bytes and declares %" PRIu64
			       ": it is truncated",
			       file_bytes, f->end);
	if (extension != HDF5_UNDEFINED)
		rc = hdf5_header_walk(f, extension, &(struct hdf5_messages){extension_message, f},
				      e);
	if (rc == 0)
		rc = hdf5_header_walk(f, f->root, &(struct hdf5_messages){root_message, f}, e);
	return rc;
}

/* ---- datasets ---- */

enum { SEEN_DIMS = 1, SEEN_TYPE = 2, SEEN_LAYOUT = 4 };

struct parse {
	struct hdf5_dataset *d;
	uint64_t end; /* of the file */
	unsigned seen;
	/* of the layout, whose chunks are checked once the dimensions are known */
	uint32_t chunk_rank;
	uint64_t chunk[HDF5_RANK_MAX + 1], bytes;
};

static int damaged_message(const char *what, uint64_t at, struct err *e)
{
	return err_set(e, ERR_DATA, "the %s message at offset %" PRIu64 " is damaged", what, at);
}

static int unsupported(const struct hdf5_dataset *d, const char *what, struct err *e)
{
	return err_set(e, ERR_DATA, "the dataset %s %s, which is not supported", d->name, what);
}

static int parse_dims(struct parse *x, const unsigned char *p, size_t n, uint64_t at, struct err *e)
{
	struct hdf5_shape *s = &x->d->shape;
	size_t head = n > 0 && p[0] == 1 ? 8 : 4;
	uint32_t rank = n > 1 ? p[1] : 0;
	bool has_max = n > 2 && (p[2] & 1);

	if (n < head || (p[0] != 1 && p[0] != 2) || n < head + rank * (has_max ? 16u : 8u))
		return damaged_message("dataspace", at, e);
	if (rank < 1 || rank > HDF5_RANK_MAX)
		return err_set(e, ERR_DATA,
			       "the dataset %s has %u dimensions; 1 to %d are supported",
			       x->d->name, rank, HDF5_RANK_MAX);
	s->rank = rank;
	for (uint32_t i = 0; i < rank; i++) {
		s->dims[i] = le_get(p + head + 8 * i, 8);
		s->max_dims[i] = has_max ? le_get(p + head + 8 * (rank + i), 8) : s->dims[i];
		if (s->max_dims[i] < s->dims[i])
			return damaged_message("dataspace", at, e);
	}
	x->seen |= SEEN_DIMS;
	return 0;
}

/* The NumPy name of a datatype. */
static void name_type(struct hdf5_dataset *d, const unsigned char *p)
{
	unsigned class = p[0] & 15;
	const char *order = (p[1] & 1) && d->elem_bytes > 1 ? "big-endian " : "";

	if (class == 0)
		snprintf(d->type, sizeof(d->type), "%s%sint%u", order, p[1] & 8 ? "" : "u",
			 d->elem_bytes * 8);
	else if (class == 1)
		snprintf(d->type, sizeof(d->type), "%sfloat%u", order, d->elem_bytes * 8);
	else if (class == 8 && d->elem_bytes == 1)
		snprintf(d->type, sizeof(d->type), "bool");
	else if (class == 6 && (d->elem_bytes == 8 || d->elem_bytes == 16))
		snprintf(d->type, sizeof(d->type), "complex%u", d->elem_bytes * 8);
	else
		snprintf(d->type, sizeof(d->type), "type of class %u", class);
}

static int parse_type(struct parse *x, unsigned flags, const unsigned char *p, size_t n,
		      uint64_t at, struct err *e)
{
	struct hdf5_dataset *d = x->d;

	if (flags & 2)
		return unsupported(d, "has a named datatype", e);
	if (n < 8 || p[0] >> 4 < 1 || p[0] >> 4 > 5)
		return damaged_message("datatype", at, e);
	d->elem_bytes = (uint32_t)le_get(p + 4, 4);
	if (d->elem_bytes == 0 || d->elem_bytes > 1u << 20)
		return damaged_message("datatype", at, e);
	name_type(d, p);
	for (const struct elem_type *t = elem_table; t->name; t++)
		if (strcmp(t->name, d->type) == 0)
			d->shape.elem = t;
	x->seen |= SEEN_TYPE;
	return 0;
}

static int parse_chunk_dims(struct parse *x, const unsigned char *p, uint32_t count, size_t width,
			    uint64_t at, struct err *e)
{
	if (count < 2 || count > HDF5_RANK_MAX + 1)
		return damaged_message("layout", at, e);
	x->chunk_rank = count - 1;
	for (uint32_t i = 0; i < count; i++) {
		x->chunk[i] = le_get(p + width * i, width);
		if (x->chunk[i] == 0 || x->chunk[i] > UINT32_MAX)
			return damaged_message("layout", at, e);
	}
	x->d->shape.chunked = true;
	return 0;
}

/* Chunks behind an index of the newer kinds. */
static int parse_indexed_layout(struct parse *x, const unsigned char *p, size_t n, uint64_t at,
				struct err *e)
{
	static const char *const kinds[] = {"fixed array", "extensible array",
					    "B-tree (version 2)"};
	struct hdf5_dataset *d = x->d;
	unsigned flags, count, width, kind;
	size_t i;
	int rc;

	if (n < 5)
		return damaged_message("layout", at, e);
	flags = p[2];
	count = p[3];
	width = p[4];
	i = 5 + (size_t)count * width;
	if (width < 1 || width > 8 || n < i + 1)
		return damaged_message("layout", at, e);
	rc = parse_chunk_dims(x, p + 5, count, width, at, e);
	if (rc < 0)
		return rc;
	kind = p[i++];
	if (flags & 1)
		return unsupported(d, "has filters on whole chunks only", e);
	if (kind == 1) {
		d->index = HDF5_SINGLE;
		if ((flags & 2) && n >= i + 12) {
			d->single_bytes = le_get(p + i, 8);
			d->single_mask = (uint32_t)le_get(p + i + 8, 4);
		}
		i += flags & 2 ? 12 : 0;
	} else if (kind == 2) {
		d->index = HDF5_IMPLICIT;
	} else if (kind == 3) {
		d->index = HDF5_FIXED_ARRAY;
		i += 1;
	} else {
		return err_set(e, ERR_DATA,
			       "the chunks of the dataset %s are indexed by %s; only %s, version 1 "
			       "B-tree, implicit and single are supported",
			       d->name,
			       kind == 4 || kind == 5 ? kinds[kind - 3] : "an unknown kind",
			       kinds[0]);
	}
	if (n < i + 8)
		return damaged_message("layout", at, e);
	d->data = le_get(p + i, 8);
	return 0;
}

static int parse_layout(struct parse *x, const unsigned char *p, size_t n, uint64_t at,
			struct err *e)
{
	struct hdf5_dataset *d = x->d;

	if (n < 2)
		return damaged_message("layout", at, e);
	if (p[0] != 3 && p[0] != 4)
		return unsupported(d,
				   p[0] < 3 ? "was written by HDF5 before 1.6.3"
					    : "has a layout of a later HDF5",
				   e);
	x->seen |= SEEN_LAYOUT;
	if (p[1] == 1) {
		if (n < 18)
			return damaged_message("layout", at, e);
		d->index = HDF5_CONTIGUOUS;
		d->data = le_get(p + 2, 8);
		x->bytes = le_get(p + 10, 8);
		return 0;
	}
	if (p[1] != 2)
		return unsupported(d, p[1] == 0 ? "is stored in its header" : "is virtual", e);
	if (p[0] == 4)
		return parse_indexed_layout(x, p, n, at, e);
	if (n < 11 || n < 11 + 4 * (size_t)p[2])
		return damaged_message("layout", at, e);
	d->index = HDF5_BTREE;
	d->data = le_get(p + 3, 8);
	return parse_chunk_dims(x, p + 11, p[2], 4, at, e);
}

static int parse_filters(struct parse *x, const unsigned char *p, size_t n, uint64_t at,
			 struct err *e)
{
	struct hdf5_dataset *d = x->d;
	bool old = n > 0 && p[0] == 1;
	size_t i = old ? 8 : 2;

	if (n < i || (p[0] != 1 && p[0] != 2))
		return damaged_message("filter", at, e);
	if (p[1] > HDF5_FILTERS_MAX)
		return unsupported(d, "has more than four filters", e);
	d->filters = p[1];
	for (uint32_t k = 0; k < d->filters; k++) {
		size_t name = 0, values;
		unsigned id;

		if (n < i + (old ? 8 : 6))
			return damaged_message("filter", at, e);
		id = (unsigned)le_get(p + i, 2);
		i += 2;
		if (old || id >= 256) {
			if (n < i + 6)
				return damaged_message("filter", at, e);
			name = (size_t)le_get(p + i, 2);
			name = old ? (name + 7) & ~(size_t)7 : name;
			i += 2;
		}
		values = (size_t)le_get(p + i + 2, 2);
		i += 4 + name + 4 * (old ? (values + 1) & ~(size_t)1 : values);
		if (i > n)
			return damaged_message("filter", at, e);
		if (id != HDF5_DEFLATE && id != HDF5_SHUFFLE && id != HDF5_FLETCHER32 &&
		    id != HDF5_LZF)
			return err_set(e, ERR_DATA,
				       "the dataset %s uses filter %u; only deflate, shuffle, "
				       "fletcher32 and lzf are supported",
				       d->name, id);
		if (id == HDF5_SHUFFLE && k != 0)
			return unsupported(d, "was shuffled after another filter", e);
		d->filter[k] = (enum hdf5_filter)id;
	}
	return 0;
}

static int dataset_message(void *arg, unsigned type, unsigned flags, const unsigned char *p,
			   size_t n, uint64_t at, struct err *e)
{
	struct parse *x = arg;
	unsigned once = type == 1 ? SEEN_DIMS : type == 3 ? SEEN_TYPE : type == 8 ? SEEN_LAYOUT : 0;

	if (x->seen & once)
		return err_set(e, ERR_DATA,
			       "the header of %s has a second message of type %u at offset %" PRIu64
			       ": the file is damaged",
			       x->d->name, type, at);
	switch (type) {
	case 1:
		return parse_dims(x, p, n, at, e);
	case 3:
		return parse_type(x, flags, p, n, at, e);
	case 7:
		return unsupported(x->d, "is stored in other files", e);
	case 8:
		return parse_layout(x, p, n, at, e);
	case 11:
		return parse_filters(x, p, n, at, e);
	default:
		return 0;
	}
}

static int finish_chunks(struct parse *x, struct err *e)
{
	struct hdf5_dataset *d = x->d;
	struct hdf5_shape *s = &d->shape;

	if (x->chunk_rank != s->rank || x->chunk[s->rank] != d->elem_bytes)
		return err_set(
			e, ERR_DATA,
			"the chunks of the dataset %s do not have its dimensions or element size: "
			"the file is damaged",
			d->name);
	s->chunk_bytes = d->elem_bytes;
	s->slots = 1;
	for (uint32_t i = 0; i < s->rank; i++) {
		uint64_t most = s->max_dims[i] / x->chunk[i] + 1;

		s->chunk[i] = x->chunk[i];
		if (__builtin_mul_overflow(s->chunk_bytes, x->chunk[i], &s->chunk_bytes) ||
		    s->chunk_bytes > UINT32_MAX)
			return err_set(
				e, ERR_DATA,
				"the chunks of the dataset %s have more than 4 GiB: the file is "
				"damaged",
				d->name);
		/* with room to spare: numbers of chunks are computed without further checks */
		if (d->index != HDF5_BTREE && (s->max_dims[i] > INT64_MAX ||
					       __builtin_mul_overflow(s->slots, most, &s->slots) ||
					       s->slots > UINT64_MAX >> 32))
			return err_set(e, ERR_DATA,
				       "the dataset %s has more chunks than a file can have",
				       d->name);
	}
	return 0;
}

static int finish_dataset(struct parse *x, struct err *e)
{
	struct hdf5_dataset *d = x->d;
	struct hdf5_shape *s = &d->shape;
	bool empty = false;

	if (x->seen != (SEEN_DIMS | SEEN_TYPE | SEEN_LAYOUT))
		return err_set(e, ERR_DATA,
			       "the header of %s at offset %" PRIu64 " is not that of a dataset",
			       d->name, d->header);
	s->bytes = d->elem_bytes;
	for (uint32_t i = 0; i < s->rank; i++) {
		empty = empty || s->dims[i] == 0;
		if (__builtin_mul_overflow(s->bytes, s->dims[i] ? s->dims[i] : 1, &s->bytes) ||
		    s->bytes > INT64_MAX)
			return err_set(
				e, ERR_DATA,
				"the dataset %s has more than 2^63 bytes: the file is damaged",
				d->name);
	}
	if (empty)
		s->bytes = 0;
	if (s->chunked)
		return finish_chunks(x, e);
	if (d->filters)
		return unsupported(d, "has filters and no chunks", e);
	if (s->bytes == 0 || d->data == HDF5_UNDEFINED)
		return 0;
	if (x->bytes < s->bytes || d->data > x->end || s->bytes > x->end - d->data)
		return err_set(e, ERR_DATA,
			       "the data of %s would be %" PRIu64 " bytes at offset %" PRIu64
			       ", but the file ends at %" PRIu64 ": it is damaged",
			       d->name, s->bytes, d->data, x->end);
	return 0;
}

int hdf5_dataset_open(struct hdf5_file *f, uint32_t n, struct err *e)
{
	struct hdf5_dataset *d = &f->dataset[n];
	struct parse x = {.d = d, .end = f->end};
	int rc;

	if (d->known)
		return 0;
	rc = hdf5_link_find(f, d, e);
	if (rc < 0)
		return rc;
	if (d->header == HDF5_UNDEFINED)
		return err_set(e, ERR_DATA, "the file has no dataset %s", d->name);
	rc = hdf5_header_walk(f, d->header, &(struct hdf5_messages){dataset_message, &x}, e);
	if (rc == 0)
		rc = finish_dataset(&x, e);
	d->known = rc == 0;
	return rc;
}
