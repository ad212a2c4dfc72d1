/* Finding a chunk of a dataset in an HDF5 file: by a version 1 B-tree or a fixed array, or where no
 * index is needed. */
#include <assert.h>
#include <inttypes.h>
#include <string.h>

#include "format/hdf5/hdf5_file.h"

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
		int rc = hdf5_tree_node(f, at, 1, key_bytes, f->chunk_k, level, &x, &n, e);

		if (rc < 0 || n == 0)
			return rc;
		p = x->bytes + HDF5_TREE_HEAD;
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
			       " has invalid sizes: the file is damaged",
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
			       " has larger parts than are supported",
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
			       " does not match: the file is damaged",
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
				       " is larger than is supported",
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

	assert(d->known && d->shape.chunked);
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
			       ", but the file ends at %" PRIu64 ": it is damaged",
			       d->name, out->bytes, out->at, f->end);
	return 0;
}
