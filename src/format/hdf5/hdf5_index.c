/* Searching an HDF5 file's indexes: names in a symbol table, chunks in a B-tree or a fixed array.
 */
#include <inttypes.h>
#include <string.h>

#include "format/hdf5/hdf5_file.h"

/* A tree higher than that would have more entries than a file has bytes. */
#define LEVELS_MAX 32u
#define TREE_HEAD 24u
#define HEAP_GUESS 512u
#define SYMBOL_BYTES 40u

static const char heap_name[] = "a local heap", node_name[] = "a node of a B-tree";

static int bad_node(uint64_t at, struct err *e)
{
	return err_set(
		e, ERR_DATA,
		"there is no good node of a B-tree at offset %" PRIu64 ": the file is damaged", at);
}

/* A node of a version 1 B-tree: `kind` 0 groups, 1 chunks; keys of key_bytes around n addresses. */
static int get_node(struct hdf5_file *f, uint64_t at, unsigned kind, size_t key_bytes, uint32_t k,
		    int level, struct hdf5_entry **out, uint32_t *n, struct err *e)
{
	size_t bytes = TREE_HEAD + (2 * (size_t)k + 1) * key_bytes + 16 * (size_t)k;
	int rc = hdf5_entry_get(f, at, bytes, node_name, out, e);
	const unsigned char *p = (*out)->bytes;

	if (rc < 0)
		return rc;
	if ((*out)->have < bytes || memcmp(p, "TREE", 4) != 0 || p[4] != kind)
		return bad_node(at, e);
	*n = (uint32_t)hdf5_get(p + 6, 2);
	/* every level down must be one less, so that no tree goes round */
	if (*n > 2 * k || p[5] > LEVELS_MAX || (level >= 0 && p[5] != level))
		return bad_node(at, e);
	return 0;
}

/* ---- names ---- */

/* The heap's segment of names: its entry and where in that it begins. */
static int get_heap(struct hdf5_file *f, struct hdf5_entry **out, size_t *first, size_t *bytes,
		    struct err *e)
{
	uint64_t size, segment;
	int rc = hdf5_entry_get(f, f->group_heap, HEAP_GUESS, heap_name, out, e);

	if (rc < 0)
		return rc;
	if ((*out)->have < 32 || memcmp((*out)->bytes, "HEAP", 4) != 0)
		return err_set(e, ERR_DATA,
			       "there is no local heap at offset %" PRIu64 ": the file is damaged",
			       f->group_heap);
	size = hdf5_get((*out)->bytes + 8, 8);
	segment = hdf5_get((*out)->bytes + 24, 8);
	if (size > HDF5_ENTRY_BYTES)
		return err_set(e, ERR_DATA,
			       "the names of the root group take %" PRIu64
			       " bytes; more than %u is not in this version",
			       size, HDF5_ENTRY_BYTES);
	*bytes = (size_t)size;
	*first = segment == f->group_heap + 32 ? 32 : 0;
	if (*first)
		return hdf5_entry_extend(f, *out, 32 + size, heap_name, e);
	rc = hdf5_entry_get(f, segment, *bytes, heap_name, out, e);
	return rc < 0 ? rc : hdf5_entry_extend(f, *out, size, heap_name, e);
}

/* *order: how `name` compares with the one at `offset` in the heap, as strcmp. */
static int compare_name(struct hdf5_file *f, const char *name, uint64_t offset, int *order,
			struct err *e)
{
	struct hdf5_entry *heap;
	size_t first, bytes, n = strlen(name) + 1;
	int rc = get_heap(f, &heap, &first, &bytes, e);

	if (rc < 0)
		return rc;
	if (offset >= bytes)
		return err_set(e, ERR_DATA,
			       "a name would be at %" PRIu64
			       " of the %zu bytes of the heap at offset "
			       "%" PRIu64 ": the file is damaged",
			       offset, bytes, f->group_heap);
	if (n > bytes - offset)
		n = (size_t)(bytes - offset);
	*order = strncmp(name, (const char *)heap->bytes + first + offset, n);
	return 0;
}

static int find_symbol(struct hdf5_file *f, struct hdf5_dataset *d, uint64_t at, struct err *e)
{
	size_t bytes = 8 + 2 * (size_t)f->leaf_k * SYMBOL_BYTES;
	struct hdf5_entry *x;
	int rc = hdf5_entry_get(f, at, bytes, "a symbol table node", &x, e);
	uint32_t low = 0, high;

	if (rc < 0)
		return rc;
	high = (uint32_t)hdf5_get(x->bytes + 6, 2);
	if (x->have < bytes || memcmp(x->bytes, "SNOD", 4) != 0 || high > 2 * f->leaf_k)
		return err_set(e, ERR_DATA,
			       "there is no good symbol table node at offset %" PRIu64
			       ": the file is damaged",
			       at);
	while (low < high) {
		uint32_t middle = low + (high - low) / 2;
		const unsigned char *p;
		int order = 0;

		/* comparing may have taken the entry's place */
		rc = hdf5_entry_get(f, at, bytes, "a symbol table node", &x, e);
		p = x->bytes + 8 + middle * SYMBOL_BYTES;
		if (rc == 0)
			rc = compare_name(f, d->name, hdf5_get(p, 8), &order, e);
		if (rc < 0)
			return rc;
		if (order == 0) {
			d->header = hdf5_get(p + 8, 8);
			return 0;
		}
		if (order < 0)
			high = middle;
		else
			low = middle + 1;
	}
	return 0;
}

int hdf5_symbol_find(struct hdf5_file *f, struct hdf5_dataset *d, struct err *e)
{
	uint64_t at = f->group_tree;
	int level = -1, order = 0, rc;
	struct hdf5_entry *x;

	/* the library takes the heap before the tree */
	size_t first, bytes;

	rc = get_heap(f, &x, &first, &bytes, e);
	while (rc == 0) {
		uint32_t n = 0, low = 0, high;

		rc = get_node(f, at, 0, 8, f->tree_k, level, &x, &n, e);
		if (rc < 0 || n == 0)
			return rc;
		/* the child whose right key is the first that is not less than the name */
		for (high = n - 1; low < high;) {
			uint32_t middle = low + (high - low) / 2;

			rc = get_node(f, at, 0, 8, f->tree_k, level, &x, &n, e);
			if (rc == 0)
				rc = compare_name(
					f, d->name,
					hdf5_get(x->bytes + TREE_HEAD + 16 * (middle + 1), 8),
					&order, e);
			if (rc < 0)
				return rc;
			if (order <= 0)
				high = middle;
			else
				low = middle + 1;
		}
		rc = get_node(f, at, 0, 8, f->tree_k, level, &x, &n, e);
		if (rc < 0)
			return rc;
		if (low >= n)
			return bad_node(at, e);
		level = (int)x->bytes[5] - 1;
		at = hdf5_get(x->bytes + TREE_HEAD + 16 * low + 8, 8);
		if (level < 0)
			return find_symbol(f, d, at, e);
	}
	return rc;
}

/* ---- chunks ---- */

/* How a key's place (elements, slowest first) compares with `origin`. */
static int compare_origin(const unsigned char *key, const uint64_t *origin, uint32_t rank)
{
	for (uint32_t i = 0; i < rank; i++) {
		uint64_t v = hdf5_get(key + 8 + 8 * i, 8);

		if (v != origin[i])
			return v < origin[i] ? -1 : 1;
	}
	return 0;
}

static int find_in_tree(struct hdf5_file *f, const struct hdf5_dataset *d, const uint64_t *origin,
			struct hdf5_chunk *out, struct err *e)
{
	uint32_t rank = d->shape.rank;
	size_t key_bytes = 8 + 8 * ((size_t)rank + 1);
	uint64_t at = d->data;

	for (int level = -1;;) {
		const unsigned char *p;
		struct hdf5_entry *x;
		uint32_t n, low = 0, high;
		int rc = get_node(f, at, 1, key_bytes, f->chunk_k, level, &x, &n, e);

		if (rc < 0 || n == 0)
			return rc;
		p = x->bytes + TREE_HEAD;
		/* the last child whose left key is not greater */
		for (high = n - 1; low < high;) {
			uint32_t middle = low + (high - low + 1) / 2;

			if (compare_origin(p + middle * (key_bytes + 8), origin, rank) <= 0)
				low = middle;
			else
				high = middle - 1;
		}
		p += low * (key_bytes + 8);
		level = (int)x->bytes[5] - 1;
		at = hdf5_get(p + key_bytes, 8);
		if (level >= 0)
			continue;
		if (compare_origin(p, origin, rank) == 0) {
			out->at = at;
			out->bytes = hdf5_get(p, 4);
			out->mask = (uint32_t)hdf5_get(p + 4, 4);
		}
		return 0;
	}
}

/* A fixed array: what its header says. */
struct array {
	uint64_t slots, block;
	size_t slot, page; /* bytes of one; slots in a page */
};

static int get_array(struct hdf5_file *f, const struct hdf5_dataset *d, struct array *a,
		     struct err *e)
{
	static const char name[] = "the header of a fixed array";
	struct hdf5_entry *x;
	int rc = hdf5_entry_get(f, d->data, 28, name, &x, e);

	if (rc == 0)
		rc = hdf5_entry_check(x, "FAHD", 28, name, e);
	if (rc < 0)
		return rc;
	a->slot = x->bytes[6];
	a->page = x->bytes[7] < 32 ? (size_t)1 << x->bytes[7] : 0;
	a->slots = hdf5_get(x->bytes + 8, 8);
	a->block = hdf5_get(x->bytes + 16, 8);
	if (x->bytes[4] != 0 || x->bytes[5] != (d->filters > 0) || a->page == 0 ||
	    (d->filters ? a->slot < 13 || a->slot > 20 : a->slot != 8) ||
	    a->slots > UINT64_MAX >> 32)
		return err_set(e, ERR_DATA,
			       "the fixed array at offset %" PRIu64
			       " has wrong sizes: the file is damaged",
			       d->data);
	return 0;
}

/* The slot's bytes in an array of pages; NULL when its page was never written. */
static int get_paged(struct hdf5_file *f, const struct array *a, uint64_t slot,
		     const unsigned char **out, struct err *e)
{
	static const char name[] = "the block of a fixed array",
			  page_name[] = "a page of a fixed array";
	uint64_t pages = (a->slots + a->page - 1) / a->page, page = slot / a->page;
	uint64_t head = 14 + (pages + 7) / 8 + 4, in_page = a->slots - page * a->page;
	struct hdf5_entry *x;
	size_t bytes;
	int rc;

	if (head > HDF5_ENTRY_BYTES || a->page * a->slot + 4 > HDF5_ENTRY_BYTES)
		return err_set(e, ERR_DATA,
			       "the fixed array's block at offset %" PRIu64
			       " has larger parts than this version reads",
			       a->block);
	rc = hdf5_entry_get(f, a->block, (size_t)head, name, &x, e);
	if (rc == 0)
		rc = hdf5_entry_check(x, "FADB", (size_t)head, name, e);
	if (rc < 0)
		return rc;
	*out = NULL;
	if (!(x->bytes[14 + page / 8] & (0x80 >> page % 8)))
		return 0;
	bytes = (size_t)(in_page < a->page ? in_page : a->page) * a->slot + 4;
	rc = hdf5_entry_get(f, a->block + head + page * (a->page * a->slot + 4), bytes, page_name,
			    &x, e);
	if (rc < 0)
		return rc;
	if (x->have < bytes ||
	    hdf5_get(x->bytes + bytes - 4, 4) != hdf5_checksum(x->bytes, bytes - 4))
		return err_set(e, ERR_DATA,
			       "the checksum of the page of chunk addresses at offset %" PRIu64
			       " does not fit: the file is damaged",
			       x->at);
	*out = x->bytes + slot % a->page * a->slot;
	return 0;
}

static int find_in_array(struct hdf5_file *f, const struct hdf5_dataset *d, uint64_t slot,
			 struct hdf5_chunk *out, struct err *e)
{
	static const char name[] = "the block of a fixed array";
	const unsigned char *p = NULL;
	struct array a;
	int rc = get_array(f, d, &a, e);

	if (rc < 0 || a.block == HDF5_UNDEFINED)
		return rc;
	if (slot >= a.slots)
		return err_set(e, ERR_DATA,
			       "the fixed array at offset %" PRIu64 " has %" PRIu64
			       " chunks and number %" PRIu64 " is needed: the file is damaged",
			       d->data, a.slots, slot);
	if (a.slots <= a.page) {
		uint64_t bytes = 18 + a.slots * a.slot;
		struct hdf5_entry *x;

		if (bytes > HDF5_ENTRY_BYTES)
			return err_set(e, ERR_DATA,
				       "the fixed array's block at offset %" PRIu64
				       " is larger than this version reads",
				       a.block);
		rc = hdf5_entry_get(f, a.block, (size_t)bytes, name, &x, e);
		if (rc == 0)
			rc = hdf5_entry_check(x, "FADB", (size_t)bytes, name, e);
		p = x->bytes + 14 + slot * a.slot;
	} else {
		rc = get_paged(f, &a, slot, &p, e);
	}
	if (rc < 0 || !p)
		return rc;
	out->at = hdf5_get(p, 8);
	if (d->filters) {
		out->bytes = hdf5_get(p + 8, a.slot - 12);
		out->mask = (uint32_t)hdf5_get(p + a.slot - 4, 4);
	}
	return 0;
}

/* Indexes other than the B-tree count chunks through the largest dimensions. */
static uint64_t slot_of(const struct hdf5_shape *s, const uint64_t *origin)
{
	uint64_t slot = 0;

	for (uint32_t i = 0; i < s->rank; i++)
		slot = slot * ((s->max_dims[i] + s->chunk[i] - 1) / s->chunk[i]) +
		       origin[i] / s->chunk[i];
	return slot;
}

int hdf5_chunk_find(struct hdf5_file *f, const struct hdf5_dataset *d, const uint64_t *origin,
		    struct hdf5_chunk *out, struct err *e)
{
	uint64_t slot = d->index == HDF5_BTREE ? 0 : slot_of(&d->shape, origin);
	int rc = 0;

	*out = (struct hdf5_chunk){.at = HDF5_UNDEFINED, .bytes = d->shape.chunk_bytes};
	if (d->data == HDF5_UNDEFINED)
		return 0;
	switch (d->index) {
	case HDF5_SINGLE:
		out->at = d->data;
		out->bytes = d->single_bytes ? d->single_bytes : out->bytes;
		out->mask = d->single_mask;
		break;
	case HDF5_IMPLICIT:
		if (!__builtin_mul_overflow(slot, d->shape.chunk_bytes, &slot) &&
		    !__builtin_add_overflow(slot, d->data, &slot))
			out->at = slot;
		break;
	case HDF5_FIXED_ARRAY:
		rc = find_in_array(f, d, slot, out, e);
		break;
	case HDF5_BTREE:
	case HDF5_CONTIGUOUS:
		rc = find_in_tree(f, d, origin, out, e);
		break;
	}
	if (rc < 0 || out->at == HDF5_UNDEFINED)
		return rc;
	if (!d->filters)
		out->bytes = d->shape.chunk_bytes;
	if (out->bytes > f->end || out->at > f->end - out->bytes)
		return err_set(e, ERR_DATA,
			       "a chunk of %s would be %" PRIu64 " bytes at offset %" PRIu64
			       ", where the file, which ends at %" PRIu64
			       ", does not have them: it is damaged",
			       d->name, out->bytes, out->at, f->end);
	return 0;
}
