/* Links of an HDF5 file's root group: in a symbol table, or in dense storage. (Those in the group's
 * own header hdf5_file.c reads.) */
#include <inttypes.h>
#include <string.h>

#include "format/hdf5/hdf5_file.h"

#define HEAP_GUESS 512u
#define SYMBOL_BYTES 40u

static const char names_name[] = "a local heap";

int hdf5_link_parse(const unsigned char *p, size_t n, uint64_t at, struct hdf5_link *out,
		    struct err *e)
{
	size_t width, i = 2;
	uint64_t length;
	bool hard = true;

	if (n < 4 || p[0] != 1)
		return err_set(e, ERR_DATA, "the link at offset %" PRIu64 " is damaged", at);
	if (p[1] & 8)
		hard = p[i++] == 0;
	i += (p[1] & 4 ? 8 : 0) + (p[1] & 0x10 ? 1 : 0);
	width = (size_t)1 << (p[1] & 3);
	if (n < i + width)
		return err_set(e, ERR_DATA, "the link at offset %" PRIu64 " is damaged", at);
	length = le_get(p + i, width);
	i += width;
	if (length > n - i || (hard && n - i - length < 8))
		return err_set(e, ERR_DATA,
			       "the name of the link at offset %" PRIu64 " is too long", at);
	out->name = (const char *)p + i;
	out->length = (size_t)length;
	out->header = hard ? le_get(p + i + length, 8) : HDF5_UNDEFINED;
	return 0;
}

/* ---- symbol tables ---- */

/* The heap's segment of names: its entry and where in that it begins. */
static int get_name_heap(struct hdf5_file *f, struct hdf5_entry **out, size_t *first, size_t *bytes,
			 struct err *e)
{
	uint64_t size, segment;
	int rc = hdf5_entry_get(f, f->group_heap, HEAP_GUESS, names_name, out, e);

	if (rc < 0)
		return rc;
	if ((*out)->have < 32 || memcmp((*out)->bytes, "HEAP", 4) != 0)
		return err_set(e, ERR_DATA,
			       "there is no local heap at offset %" PRIu64 ": the file is damaged",
			       f->group_heap);
	size = le_get((*out)->bytes + 8, 8);
	segment = le_get((*out)->bytes + 24, 8);
	if (size > HDF5_ENTRY_BYTES)
		return err_set(e, ERR_DATA,
			       "the names of the root group take %" PRIu64
			       " bytes; at most %u are supported",
			       size, HDF5_ENTRY_BYTES);
	*bytes = (size_t)size;
	*first = segment == f->group_heap + 32 ? 32 : 0;
	if (*first)
		return hdf5_entry_extend(f, *out, 32 + size, names_name, e);
	rc = hdf5_entry_get(f, segment, *bytes, names_name, out, e);
	return rc < 0 ? rc : hdf5_entry_extend(f, *out, size, names_name, e);
}

/* *order: how `name` compares with the one at `offset` in the heap, as strcmp. */
static int compare_name(struct hdf5_file *f, const char *name, uint64_t offset, int *order,
			struct err *e)
{
	struct hdf5_entry *heap;
	size_t first, bytes, n = strlen(name) + 1;
	int rc = get_name_heap(f, &heap, &first, &bytes, e);

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
	high = (uint32_t)le_get(x->bytes + 6, 2);
	if (x->have < bytes || memcmp(x->bytes, "SNOD", 4) != 0 || high > 2 * f->leaf_k)
		return err_set(e, ERR_DATA,
			       "there is no valid symbol table node at offset %" PRIu64
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
			rc = compare_name(f, d->name, le_get(p, 8), &order, e);
		if (rc < 0)
			return rc;
		if (order == 0) {
			d->header = le_get(p + 8, 8);
			return 0;
		}
		if (order < 0)
			high = middle;
		else
			low = middle + 1;
	}
	return 0;
}

static int symbol_find(struct hdf5_file *f, struct hdf5_dataset *d, struct err *e)
{
	uint64_t at = f->group_tree;
	int level = -1, order = 0, rc;
	struct hdf5_entry *x;

	/* the library takes the heap before the tree */
	size_t first, bytes;

	rc = get_name_heap(f, &x, &first, &bytes, e);
	while (rc == 0) {
		uint32_t n = 0, low = 0, high;

		rc = hdf5_tree_node(f, at, 0, 8, f->tree_k, level, &x, &n, e);
		if (rc < 0 || n == 0)
			return rc;
		/* the child whose right key is the first that is not less than the name */
		for (high = n - 1; low < high;) {
			uint32_t middle = low + (high - low) / 2;

			rc = hdf5_tree_node(f, at, 0, 8, f->tree_k, level, &x, &n, e);
			if (rc == 0)
				rc = compare_name(
					f, d->name,
					le_get(x->bytes + HDF5_TREE_HEAD + 16 * (middle + 1), 8),
					&order, e);
			if (rc < 0)
				return rc;
			if (order <= 0)
				high = middle;
			else
				low = middle + 1;
		}
		rc = hdf5_tree_node(f, at, 0, 8, f->tree_k, level, &x, &n, e);
		if (rc < 0)
			return rc;
		if (low >= n)
			return hdf5_tree_bad_node(at, e);
		level = (int)x->bytes[5] - 1;
		at = le_get(x->bytes + HDF5_TREE_HEAD + 16 * low + 8, 8);
		if (level < 0)
			return find_symbol(f, d, at, e);
	}
	return rc;
}

/* ---- dense storage ---- */

/* Links in a group's dense storage: messages in a fractal heap, found by a version 2 B-tree of the
 * checksums of their names (HDF5 File Format Specification, III.A.2, III.G, IV.A.2.c). The library
 * takes both headers at the first name that is looked up, then of the tree and the heap what each
 * name needs. */
#define TREE_BYTES 38u
#define HEAP_BYTES 146u
/* A node's mark, version and type before its records, and the checksum behind them. */
#define NODE_HEAD 6u
#define NODE_ENDS 10u
#define HASH_BYTES 4u
/* A tree of more levels has more records than 64 bits count. */
#define LEVELS_MAX 64u
#define ID_MAX 17u
#define BLOCK_HEAD 13u

static const char tree_name[] = "the header of a B-tree (version 2)",
		  node_name[] = "a node of a B-tree (version 2)",
		  heap_name[] = "the header of a fractal heap",
		  direct_name[] = "a direct block of a fractal heap",
		  indirect_name[] = "an indirect block of a fractal heap";

static int wrong_sizes(const char *what, uint64_t at, struct err *e)
{
	return err_set(e, ERR_DATA,
		       "%s at offset %" PRIu64 " has invalid sizes: the file is damaged", what, at);
}

static int get_checked(struct hdf5_file *f, uint64_t at, size_t bytes, const char *mark,
		       const char *what, struct hdf5_entry **out, struct err *e)
{
	int rc = hdf5_entry_get(f, at, bytes, what, out, e);

	return rc < 0 ? rc : hdf5_entry_check(*out, mark, bytes, what, e);
}

/* ---- the heap ---- */

struct heap {
	uint64_t at, root;
	uint32_t rows;       /* of blocks in the root; 0: the root is a direct block */
	uint32_t width_bits; /* powers of two: blocks in a row, */
	uint32_t first_bits; /* bytes of a block in the first two rows, */
	uint32_t most_bits;  /* and of the largest direct one */
	uint32_t space_bits; /* of an offset in the heap */
	uint32_t offset_bytes, length_bytes, id_bytes;
	bool summed; /* direct blocks have a checksum */
};

/* The logarithm of a power of two; false: it is none. */
static bool log2_exact(uint64_t v, uint32_t *bits)
{
	*bits = v ? 63 - (uint32_t)__builtin_clzll(v) : 0;
	return v && (v & (v - 1)) == 0;
}

static int get_heap(struct hdf5_file *f, struct heap *h, struct err *e)
{
	struct hdf5_entry *x;
	const unsigned char *p;
	uint32_t longest;
	int rc = hdf5_entry_get(f, f->link_heap, HEAP_BYTES, heap_name, &x, e);

	if (rc < 0)
		return rc;
	p = x->bytes;
	if (x->have >= HEAP_BYTES && memcmp(p, "FRHP", 4) == 0 && le_get(p + 7, 2) != 0)
		return err_set(e, ERR_DATA,
			       "the links of the root group are filtered, which is not supported");
	rc = hdf5_entry_check(x, "FRHP", HEAP_BYTES, heap_name, e);
	if (rc < 0)
		return rc;
	*h = (struct heap){.at = f->link_heap,
			   .root = le_get(p + 132, 8),
			   .rows = (uint32_t)le_get(p + 140, 2),
			   .space_bits = (uint32_t)le_get(p + 128, 2),
			   .id_bytes = (uint32_t)le_get(p + 5, 2),
			   .summed = p[9] & 2};
	h->offset_bytes = (h->space_bits + 7) / 8;
	if (p[4] != 0 || h->id_bytes > ID_MAX || h->space_bits > 63 ||
	    !log2_exact(le_get(p + 110, 2), &h->width_bits) ||
	    !log2_exact(le_get(p + 112, 8), &h->first_bits) ||
	    !log2_exact(le_get(p + 120, 8), &h->most_bits) || h->most_bits < h->first_bits ||
	    h->most_bits > h->space_bits || h->width_bits + h->first_bits > h->space_bits ||
	    h->rows > h->space_bits - h->width_bits - h->first_bits + 1)
		return wrong_sizes(heap_name, h->at, e);
	longest = hdf5_bytes_for(le_get(p + 10, 4));
	h->length_bytes = (h->most_bits + 7) / 8;
	if (h->length_bytes > longest)
		h->length_bytes = longest;
	if (1 + h->offset_bytes + h->length_bytes > h->id_bytes)
		return wrong_sizes(heap_name, h->at, e);
	return 0;
}

/* A block's place in the heap: its row and column in the block above it, and where it begins. */
struct place {
	uint32_t row, bits; /* bits: its size */
	uint64_t column, begin;
};

static struct place heap_place_of(const struct heap *h, uint64_t offset)
{
	struct place p = {.bits = h->first_bits};
	uint32_t high;

	if (offset >> (h->first_bits + h->width_bits)) {
		high = 63 - (uint32_t)__builtin_clzll(offset);
		p.row = high - h->first_bits - h->width_bits + 1;
		p.bits += p.row - 1;
		p.begin = UINT64_C(1) << high;
	}
	p.column = (offset - p.begin) >> p.bits;
	p.begin += p.column << p.bits;
	return p;
}

/* A block of `bytes` at `at` that says that it lies at `offset` in the heap. */
static int get_block(struct hdf5_file *f, const struct heap *h, uint64_t at, uint64_t bytes,
		     uint64_t offset, bool direct, struct hdf5_entry **out, struct err *e)
{
	const char *what = direct ? direct_name : indirect_name;
	const unsigned char *p;
	int rc = hdf5_entry_get(f, at, bytes, what, out, e);

	if (rc < 0)
		return rc;
	p = (*out)->bytes;
	if (direct && (*out)->have >= bytes && h->summed)
		rc = hdf5_entry_check_at(*out, "FHDB", bytes, BLOCK_HEAD + h->offset_bytes, what,
					 e);
	else if (!direct)
		rc = hdf5_entry_check(*out, "FHIB", bytes, what, e);
	if (rc < 0)
		return rc;
	if ((*out)->have < bytes || memcmp(p, direct ? "FHDB" : "FHIB", 4) != 0 || p[4] != 0 ||
	    le_get(p + 5, 8) != h->at || le_get(p + BLOCK_HEAD, h->offset_bytes) != offset)
		return err_set(e, ERR_DATA,
			       "the data at offset %" PRIu64 " are not %s: the file is damaged", at,
			       what);
	return 0;
}

/* The direct block in which `offset` of the heap lies. *within gets the offset in the block,
 * *bytes the block's size. Every step down goes to a smaller block, so that no heap goes round. */
static int find_direct(struct hdf5_file *f, const struct heap *h, uint64_t offset, uint64_t *within,
		       uint64_t *bytes, struct hdf5_entry **out, struct err *e)
{
	uint32_t rows = h->rows, direct_rows = h->most_bits - h->first_bits + 2;
	uint64_t at = h->root, begin = 0;

	*bytes = UINT64_C(1) << h->first_bits;
	while (rows > 0) {
		uint64_t table = (uint64_t)rows << h->width_bits;
		struct place p = heap_place_of(h, offset - begin);
		struct hdf5_entry *x;
		int rc;

		if (p.row >= rows)
			break;
		rc = get_block(f, h, at, BLOCK_HEAD + h->offset_bytes + 8 * table + 4, begin, false,
			       &x, e);
		if (rc < 0)
			return rc;
		at = le_get(x->bytes + BLOCK_HEAD + h->offset_bytes +
				    8 * (((uint64_t)p.row << h->width_bits) + p.column),
			    8);
		begin += p.begin;
		*bytes = UINT64_C(1) << p.bits;
		if (p.row < direct_rows)
			rows = 0;
		else if (p.row > h->width_bits)
			rows = p.row - h->width_bits;
		else
			return wrong_sizes(heap_name, h->at, e);
	}
	*within = offset - begin;
	if (rows > 0 || *within >= *bytes)
		return err_set(e, ERR_DATA,
			       "a link would be at %" PRIu64
			       " of the fractal heap at offset %" PRIu64
			       ", which is smaller: the file is damaged",
			       offset, h->at);
	return get_block(f, h, at, *bytes, begin, true, out, e);
}

/* ---- the tree ---- */

struct tree {
	uint64_t at, root;
	uint32_t node_bytes, record_bytes, depth, records;  /* records: in the root */
	uint32_t count_bytes;                               /* of a child's number of records */
	uint32_t child_bytes[LEVELS_MAX], most[LEVELS_MAX]; /* records in a node of a level */
};

/* What a pointer to a child takes, and how many records fit, level by level. */
static int size_levels(struct tree *t, struct err *e)
{
	uint64_t all;

	t->most[0] = (t->node_bytes - NODE_ENDS) / t->record_bytes;
	t->count_bytes = hdf5_bytes_for(t->most[0]);
	all = t->most[0];
	for (uint32_t i = 1; i <= t->depth; i++) {
		uint32_t child = 8 + t->count_bytes + (i > 1 ? hdf5_bytes_for(all) : 0);

		t->child_bytes[i] = child;
		if (t->node_bytes < NODE_ENDS + child)
			return wrong_sizes(tree_name, t->at, e);
		t->most[i] = (t->node_bytes - NODE_ENDS - child) / (t->record_bytes + child);
		if (t->most[i] == 0 ||
		    __builtin_mul_overflow(all, (uint64_t)t->most[i] + 1, &all) ||
		    __builtin_add_overflow(all, (uint64_t)t->most[i], &all))
			return wrong_sizes(tree_name, t->at, e);
	}
	return 0;
}

static int get_tree(struct hdf5_file *f, struct tree *t, struct err *e)
{
	struct hdf5_entry *x;
	const unsigned char *p;
	int rc = get_checked(f, f->link_tree, TREE_BYTES, "BTHD", tree_name, &x, e);

	if (rc < 0)
		return rc;
	p = x->bytes;
	t->at = f->link_tree;
	t->node_bytes = (uint32_t)le_get(p + 6, 4);
	t->record_bytes = (uint32_t)le_get(p + 10, 2);
	t->depth = (uint32_t)le_get(p + 12, 2);
	t->root = le_get(p + 16, 8);
	t->records = (uint32_t)le_get(p + 24, 2);
	if (p[4] != 0 || p[5] != 5)
		return err_set(e, ERR_DATA,
			       "the B-tree at offset %" PRIu64
			       " is not one of names: the file is damaged",
			       t->at);
	if (t->record_bytes <= HASH_BYTES || t->record_bytes > HASH_BYTES + ID_MAX ||
	    t->node_bytes < NODE_ENDS + t->record_bytes || t->node_bytes > HDF5_ENTRY_BYTES ||
	    t->depth >= LEVELS_MAX)
		return wrong_sizes(tree_name, t->at, e);
	return size_levels(t, e);
}

/* The node at `at`, with n records, of a level: 0 is a leaf. */
static int get_node(struct hdf5_file *f, const struct tree *t, uint64_t at, uint64_t n,
		    uint32_t level, struct hdf5_entry **out, struct err *e)
{
	size_t bytes;
	int rc;

	if (n > t->most[level])
		return wrong_sizes(node_name, at, e);
	bytes = NODE_ENDS + (size_t)n * t->record_bytes +
		(level ? ((size_t)n + 1) * t->child_bytes[level] : 0);
	rc = hdf5_entry_get(f, at, t->node_bytes, node_name, out, e);
	if (rc == 0)
		rc = hdf5_entry_check(*out, level ? "BTIN" : "BTLF", bytes, node_name, e);
	if (rc == 0 && ((*out)->bytes[4] != 0 || (*out)->bytes[5] != 5))
		rc = wrong_sizes(node_name, at, e);
	return rc;
}

/* ---- names ---- */

struct search {
	struct hdf5_file *f;
	struct hdf5_dataset *d;
	struct tree tree;
	struct heap heap;
	uint32_t hash; /* of the dataset's name */
};

/* *order: how the dataset's name compares with that of the link with this heap ID; when they are
 * the same the dataset's header is set. */
static int compare_link(struct search *s, const unsigned char *id, int *order, struct err *e)
{
	const struct heap *h = &s->heap;
	struct hdf5_dataset *d = s->d;
	uint64_t offset = le_get(id + 1, h->offset_bytes), within = 0, bytes = 0;
	uint64_t length = le_get(id + 1 + h->offset_bytes, h->length_bytes);
	size_t head = BLOCK_HEAD + h->offset_bytes + (h->summed ? 4 : 0), n = strlen(d->name);
	struct hdf5_link link;
	struct hdf5_entry *x;
	int rc;

	/* version 0, in a block: so long a link that it has a place of its own has another name */
	if (id[0] != 0)
		return err_set(e, ERR_DATA,
			       "the link to %s is not in a block of the fractal heap at offset "
			       "%" PRIu64 ", which is not supported",
			       d->name, h->at);
	rc = find_direct(s->f, h, offset, &within, &bytes, &x, e);
	if (rc < 0)
		return rc;
	if (within < head || length > bytes - within)
		return err_set(e, ERR_DATA,
			       "a link of %" PRIu64 " bytes would be at %" PRIu64 " of the %" PRIu64
			       " bytes of the heap's block at offset %" PRIu64
			       ": the file is damaged",
			       length, within, bytes, x->at);
	rc = hdf5_link_parse(x->bytes + within, (size_t)length, x->at + within, &link, e);
	if (rc < 0)
		return rc;
	*order = memcmp(d->name, link.name, link.length < n ? link.length : n);
	if (*order == 0)
		*order = (n > link.length) - (n < link.length);
	if (*order == 0)
		d->header = link.header;
	return 0;
}

/* Looks into a node with n records. *order 0 says that the name was found there; else *place gets
 * the child to go on with. */
static int search_node(struct search *s, uint64_t at, uint32_t n, uint32_t level, uint32_t *place,
		       int *order, struct err *e)
{
	uint32_t low = 0, high = n;

	*order = 1;
	while (low < high && *order != 0) {
		uint32_t middle = low + (high - low) / 2, other;
		unsigned char record[HASH_BYTES + ID_MAX];
		struct hdf5_entry *x;
		/* comparing may have taken the entry's place */
		int rc = get_node(s->f, &s->tree, at, n, level, &x, e);

		if (rc < 0)
			return rc;
		memcpy(record, x->bytes + NODE_HEAD + (size_t)middle * s->tree.record_bytes,
		       s->tree.record_bytes);
		other = (uint32_t)le_get(record, HASH_BYTES);
		*order = (s->hash > other) - (s->hash < other);
		if (*order == 0)
			rc = compare_link(s, record + HASH_BYTES, order, e);
		if (rc < 0)
			return rc;
		if (*order < 0)
			high = middle;
		else
			low = middle + 1;
	}
	*place = low;
	return 0;
}

static int dense_find(struct hdf5_file *f, struct hdf5_dataset *d, struct err *e)
{
	struct search s = {.f = f, .d = d, .hash = hdf5_checksum(d->name, strlen(d->name))};
	const struct tree *t = &s.tree;
	uint64_t at;
	uint32_t n, place = 0;
	int order = 1, rc = get_tree(f, &s.tree, e);

	if (rc == 0)
		rc = get_heap(f, &s.heap, e);
	if (rc == 0 && t->record_bytes != HASH_BYTES + s.heap.id_bytes)
		rc = wrong_sizes(tree_name, t->at, e);
	at = t->root;
	n = t->records;
	for (uint32_t level = t->depth; rc == 0 && n > 0; level--) {
		const unsigned char *child;
		struct hdf5_entry *x;

		rc = search_node(&s, at, n, level, &place, &order, e);
		if (rc < 0 || order == 0 || level == 0)
			return rc;
		rc = get_node(f, t, at, n, level, &x, e);
		if (rc < 0)
			return rc;
		child = x->bytes + NODE_HEAD + (size_t)n * t->record_bytes +
			(size_t)place * t->child_bytes[level];
		at = le_get(child, 8);
		n = (uint32_t)le_get(child + 8, t->count_bytes);
	}
	return rc;
}

int hdf5_link_find(struct hdf5_file *f, struct hdf5_dataset *d, struct err *e)
{
	int rc = 0;

	if (d->header == HDF5_UNDEFINED && f->group_tree != HDF5_UNDEFINED)
		rc = symbol_find(f, d, e);
	if (rc == 0 && d->header == HDF5_UNDEFINED && f->link_heap != HDF5_UNDEFINED)
		rc = dense_find(f, d, e);
	return rc;
}
