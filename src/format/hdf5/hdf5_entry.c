/* Entries of HDF5 metadata, and what is made of them: object headers, nodes of B-trees. */
#include <assert.h>
#include <inttypes.h>
#include <string.h>

#include "format/hdf5/hdf5_file.h"

/* Finding a chunk of a dataset in an HDF5 file: by a version 1 B-tree or a fixed array, or where no
 * index is needed. */

/* How a key's place (elements, slowest first) compares with `origin`. */
static int compare_origin(const unsigned char *key, const uint64_t *origin, uint32_t rank)
{
	for (uint32_t i = 0; i < rank; i++) {
		uint64_t v = le_get(key + 8 + 8 * i, 8);

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
		at = le_get(p + key_bytes, 8);
		if (level >= 0)
			continue;
		if (compare_origin(p, origin, rank) == 0) {
			out->at = at;
			out->bytes = le_get(p, 4);
			out->mask = (uint32_t)le_get(p + 4, 4);
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
	a->slots = le_get(x->bytes + 8, 8);
	a->block = le_get(x->bytes + 16, 8);
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
	    le_get(x->bytes + bytes - 4, 4) != hdf5_checksum(x->bytes, bytes - 4))
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
	out->at = le_get(p, 8);
	if (d->filters) {
		out->bytes = le_get(p + 8, a.slot - 12);
		out->mask = (uint32_t)le_get(p + a.slot - 4, 4);
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

#define HEADER_GUESS 512u
#define BLOCKS_MAX 64u
/* A request for metadata that the library would not make alike is at least as long. */
#define NATIVE_GUESS 4096u

int hdf5_get_bytes(struct hdf5_file *f, uint64_t at, unsigned char *out, size_t n, const char *what,
		   struct err *e)
{
	ssize_t got;

	assert(n <= HDF5_ENTRY_BYTES);
	if (at < f->window_bytes && n <= f->window_bytes - at) {
		memcpy(out, f->window + at, n);
		return 0;
	}
	got = io_pread(f->io, IO_META, f->blob, out, n, at, e);
	if (got < 0)
		return (int)got;
	if ((size_t)got < n)
		return err_set(e, ERR_DATA,
			       "the file ends at offset %" PRIu64 " within %s: it is truncated",
			       at + (uint64_t)got, what);
	return 0;
}

static struct hdf5_entry *find_entry(struct hdf5_file *f, uint64_t at, bool *hit)
{
	struct hdf5_entry *oldest = &f->cache->entry[0];

	for (uint32_t i = 0; i < f->cache->entries; i++) {
		struct hdf5_entry *x = &f->cache->entry[i];

		if (x->serial == f->serial && x->at == at) {
			*hit = true;
			return x;
		}
		if (x->used < oldest->used)
			oldest = x;
	}
	*hit = false;
	return oldest;
}

int hdf5_entry_get(struct hdf5_file *f, uint64_t at, size_t guess, const char *what,
		   struct hdf5_entry **out, struct err *e)
{
	bool hit;
	struct hdf5_entry *x = find_entry(f, at, &hit);
	int rc;

	*out = x;
	x->used = ++f->cache->clock;
	if (hit && x->have >= guess)
		return 0;
	if (at >= f->end)
		return err_set(e, ERR_DATA,
			       "%s would be at offset %" PRIu64 ", but the file ends at %" PRIu64,
			       what, at, f->end);
	if (!f->framework && guess < NATIVE_GUESS && at + guess > f->window_bytes)
		guess = NATIVE_GUESS;
	if (guess > HDF5_ENTRY_BYTES)
		return err_set(e, ERR_DATA,
			       "%s at offset %" PRIu64 " has %zu bytes; at most %u are supported",
			       what, at, guess, HDF5_ENTRY_BYTES);
	if (guess > f->end - at)
		guess = (size_t)(f->end - at);
	if (hit && x->have >= guess)
		return 0;
	x->serial = 0;
	x->checked = 0;
	rc = hdf5_get_bytes(f, at, x->bytes, guess, what, e);
	if (rc < 0)
		return rc;
	x->serial = f->serial;
	x->at = at;
	x->have = guess;
	return 0;
}

int hdf5_entry_extend(struct hdf5_file *f, struct hdf5_entry *x, uint64_t bytes, const char *what,
		      struct err *e)
{
	int rc;

	assert(x->serial == f->serial && x->have <= HDF5_ENTRY_BYTES);
	if (bytes <= x->have)
		return 0;
	if (bytes > f->end - x->at)
		return err_set(e, ERR_DATA,
			       "%s at offset %" PRIu64 " declares %" PRIu64
			       " bytes; the file ends at offset %" PRIu64,
			       what, x->at, bytes, f->end);
	if (bytes > HDF5_ENTRY_BYTES)
		return err_set(e, ERR_DATA,
			       "%s at offset %" PRIu64 " has %" PRIu64
			       " bytes; at most %u are supported",
			       what, x->at, bytes, HDF5_ENTRY_BYTES);
	rc = hdf5_get_bytes(f, x->at + x->have, x->bytes + x->have, (size_t)bytes - x->have, what,
			    e);
	if (rc < 0)
		x->serial = 0;
	else
		x->have = (size_t)bytes;
	return rc;
}

int hdf5_entry_check_at(struct hdf5_entry *x, const char *mark, size_t bytes, size_t sum_at,
			const char *what, struct err *e)
{
	static const unsigned char none[4];
	uint64_t sum;
	bool fits;

	if (bytes < 8 || sum_at > bytes - 4 || x->have < bytes || memcmp(x->bytes, mark, 4) != 0)
		return err_set(e, ERR_DATA,
			       "the data at offset %" PRIu64 " are not %s: the file is damaged",
			       x->at, what);
	/* kept entries are used again and again */
	if (x->checked == bytes)
		return 0;
	sum = le_get(x->bytes + sum_at, 4);
	if (sum_at == bytes - 4) {
		fits = sum == hdf5_checksum(x->bytes, bytes - 4);
	} else {
		memcpy(x->bytes + sum_at, none, 4);
		fits = sum == hdf5_checksum(x->bytes, bytes);
		le_put(x->bytes + sum_at, sum, 4);
	}
	if (!fits)
		return err_set(e, ERR_DATA,
			       "the checksum of %s at offset %" PRIu64
			       " does not match its %zu bytes: the file is damaged",
			       what, x->at, bytes);
	x->checked = bytes;
	return 0;
}

int hdf5_entry_check(struct hdf5_entry *x, const char *mark, size_t bytes, const char *what,
		     struct err *e)
{
	return hdf5_entry_check_at(x, mark, bytes, bytes - 4, what, e);
}

/* ---- version 1 B-trees ---- */

/* A tree higher than that would have more entries than a file has bytes. */
#define TREE_LEVELS_MAX 32u

int hdf5_tree_bad_node(uint64_t at, struct err *e)
{
	return err_set(e, ERR_DATA,
		       "there is no valid B-tree node at offset %" PRIu64 ": the file is damaged",
		       at);
}

int hdf5_tree_node(struct hdf5_file *f, uint64_t at, unsigned kind, size_t key_bytes, uint32_t k,
		   int level, struct hdf5_entry **out, uint32_t *n, struct err *e)
{
	size_t bytes = HDF5_TREE_HEAD + (2 * (size_t)k + 1) * key_bytes + 16 * (size_t)k;
	int rc = hdf5_entry_get(f, at, bytes, "a node of a B-tree", out, e);
	const unsigned char *p = (*out)->bytes;

	if (rc < 0)
		return rc;
	if ((*out)->have < bytes || memcmp(p, "TREE", 4) != 0 || p[4] != kind)
		return hdf5_tree_bad_node(at, e);
	*n = (uint32_t)le_get(p + 6, 2);
	/* every level down must be one less, so that no tree goes round */
	if (*n > 2 * k || p[5] > TREE_LEVELS_MAX || (level >= 0 && p[5] != level))
		return hdf5_tree_bad_node(at, e);
	return 0;
}

/* ---- object headers ---- */

static const char header_name[] = "an object header";

/* Parts of a header that are still to be read. */
struct blocks {
	struct {
		uint64_t at, bytes;
	} block[BLOCKS_MAX];
	uint32_t n;
	bool old;     /* version 1 */
	bool ordered; /* messages have their creation order */
};

static int add_continuation(struct blocks *b, const unsigned char *p, size_t n, uint64_t at,
			    struct err *e)
{
	if (n < 16)
		return err_set(e, ERR_DATA, "the header message at offset %" PRIu64 " is too short",
			       at);
	if (b->n == BLOCKS_MAX)
		return err_set(e, ERR_DATA,
			       "the object header continued at offset %" PRIu64
			       " has more than %u parts: the file is damaged",
			       at, BLOCKS_MAX);
	b->block[b->n].at = le_get(p, 8);
	b->block[b->n++].bytes = le_get(p + 8, 8);
	return 0;
}

static int walk_messages(struct blocks *b, const unsigned char *p, size_t n, uint64_t at,
			 const struct hdf5_messages *m, struct err *e)
{
	size_t head = b->old ? 8 : b->ordered ? 6 : 4;

	while (n >= head) {
		unsigned type = b->old ? (unsigned)le_get(p, 2) : p[0];
		size_t bytes = (size_t)le_get(p + (b->old ? 2 : 1), 2);
		unsigned flags = p[b->old ? 4 : 3];
		int rc;

		if (bytes > n - head)
			return err_set(e, ERR_DATA,
				       "the header message at offset %" PRIu64
				       " is longer than its header: the file is damaged",
				       at);
		if (type == 0x10)
			rc = add_continuation(b, p + head, bytes, at, e);
		else
			rc = m->each(m->arg, type, flags, p + head, bytes, at, e);
		if (rc < 0)
			return rc;
		p += head + bytes;
		n -= head + bytes;
		at += head + bytes;
	}
	return 0;
}

/* Parses the prefix. *first and *bytes get where the messages begin and how many bytes they have.
 */
static int header_prefix(const struct hdf5_entry *x, struct blocks *b, size_t *first,
			 uint64_t *bytes, struct err *e)
{
	const unsigned char *p = x->bytes;
	size_t width;

	b->old = x->have >= 16 && p[0] == 1;
	if (b->old) {
		*first = 16;
		*bytes = le_get(p + 8, 4);
		return 0;
	}
	if (x->have < 16 || memcmp(p, "OHDR", 4) != 0 || p[4] != 2)
		return err_set(e, ERR_DATA,
			       "there is no object header at offset %" PRIu64
			       ": the file is damaged",
			       x->at);
	b->ordered = p[5] & 4;
	width = (size_t)1 << (p[5] & 3);
	*first = 6 + (p[5] & 0x20 ? 16 : 0) + (p[5] & 0x10 ? 4 : 0) + width;
	if (x->have < *first)
		return err_set(e, ERR_DATA,
			       "the file ends within the object header at offset %" PRIu64, x->at);
	*bytes = le_get(p + *first - width, width);
	return 0;
}

static int walk_continuation(struct hdf5_file *f, struct blocks *b, uint32_t i,
			     const struct hdf5_messages *m, struct err *e)
{
	uint64_t bytes = b->block[i].bytes;
	struct hdf5_entry *x;
	int rc;

	if (bytes > HDF5_ENTRY_BYTES || bytes < 8)
		return err_set(e, ERR_DATA,
			       "a part of an object header at offset %" PRIu64 " has %" PRIu64
			       " bytes; 8 to %u are allowed",
			       b->block[i].at, bytes, HDF5_ENTRY_BYTES);
	rc = hdf5_entry_get(f, b->block[i].at, (size_t)bytes, header_name, &x, e);
	if (rc == 0)
		rc = hdf5_entry_extend(f, x, bytes, header_name, e);
	if (rc == 0 && !b->old)
		rc = hdf5_entry_check(x, "OCHK", (size_t)bytes, "part of an object header", e);
	if (rc < 0)
		return rc;
	x->used = 0;
	if (b->old)
		return walk_messages(b, x->bytes, (size_t)bytes, x->at, m, e);
	return walk_messages(b, x->bytes + 4, (size_t)bytes - 8, x->at + 4, m, e);
}

/* What a header says is taken from it at once: its entries are the first to make way. */
int hdf5_header_walk(struct hdf5_file *f, uint64_t at, const struct hdf5_messages *m, struct err *e)
{
	struct blocks b = {.n = 0};
	struct hdf5_entry *x;
	uint64_t bytes = 0;
	size_t first = 0;
	int rc = hdf5_entry_get(f, at, HEADER_GUESS, header_name, &x, e);

	if (rc == 0)
		rc = header_prefix(x, &b, &first, &bytes, e);
	if (rc == 0 && bytes > HDF5_ENTRY_BYTES)
		rc = err_set(e, ERR_DATA,
			     "the object header at offset %" PRIu64 " has %" PRIu64
			     " bytes; at most %u are supported",
			     at, bytes, HDF5_ENTRY_BYTES);
	if (rc == 0)
		rc = hdf5_entry_extend(f, x, first + bytes + (b.old ? 0 : 4), header_name, e);
	if (rc == 0 && !b.old)
		rc = hdf5_entry_check(x, "OHDR", first + (size_t)bytes + 4, header_name, e);
	if (rc == 0)
		rc = walk_messages(&b, x->bytes + first, (size_t)bytes, at + first, m, e);
	if (rc == 0)
		x->used = 0;
	for (uint32_t i = 0; rc == 0 && i < b.n; i++)
		rc = walk_continuation(f, &b, i, m, e);
	return rc;
}
