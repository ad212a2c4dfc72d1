/* A root group whose links do not fit its header: the symbol table of HDF5's first group format
 * (HDF5 File Format Specification, III.A.1, III.B, III.D). The library itself would write a fractal
 * heap there; it reads both. */
#include <string.h>

#include "format/hdf5/hdf5_layout.h"

/* The library's numbers where the superblock has no others. */
#define LEAF_LINKS 8u
#define TREE_CHILDREN 32u

#define HEAP_HEAD 32u
#define TREE_BYTES (24u + 8 * TREE_CHILDREN + 8 * (TREE_CHILDREN + 1))
#define NODE_BYTES (8u + 40 * LEAF_LINKS)

size_t hdf5_name(uint32_t n, char out[HDF5_NAME_MAX])
{
	size_t length = 8;

	memset(out, 0, HDF5_NAME_MAX);
	memcpy(out, "records_", 8);
	if (n >= 10)
		out[length++] = (char)('0' + n / 10);
	out[length++] = (char)('0' + n % 10);
	return length;
}

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
	hdf5_put(p + 8, names_bytes(l->datasets), 8);
	hdf5_put(p + 16, 1, 8); /* no free space */
	hdf5_put(p + 24, l->group + HEAP_HEAD, 8);
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

	sort_links(l->datasets, order);
	memset(out, 0, hdf5_group_bytes(l->datasets));
	tree = put_names(out, l, order);
	node = tree + TREE_BYTES;
	first = l->group + (uint64_t)(node - out);
	memcpy(tree, "TREE", 4);
	hdf5_put(tree + 6, nodes, 2);
	hdf5_put(tree + 8, HDF5_UNDEFINED, 8);
	hdf5_put(tree + 16, HDF5_UNDEFINED, 8);
	p = tree + 24 + 8; /* the first key is the empty name */
	for (uint32_t i = 0; i < nodes; i++, node += NODE_BYTES) {
		uint32_t begin = i * LEAF_LINKS;
		uint32_t end = begin + LEAF_LINKS < links ? begin + LEAF_LINKS : links;

		memcpy(node, "SNOD", 4);
		node[4] = 1;
		hdf5_put(node + 6, end - begin, 2);
		for (uint32_t k = begin; k < end; k++) {
			unsigned char *entry = node + 8 + 40 * (k - begin);

			hdf5_put(entry, name_at(k), 8);
			hdf5_put(entry + 8, l->place[order[k]].header, 8);
		}
		p = hdf5_put(p, first + i * NODE_BYTES, 8);
		p = hdf5_put(p, name_at(end - 1), 8);
	}
	return l->group + (uint64_t)(tree - out);
}
