/* Opening an HDF5 file: its superblock and the header of its root group. */
#include <inttypes.h>
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
			       " bytes, too few for an hdf5 file: it was cut short",
			       file_bytes);
	rc = hdf5_get_bytes(f, 0, b, 8, super_name, e);
	if (rc < 0)
		return rc;
	if (memcmp(b, "\x89HDF\r\n\x1a\n", 8) != 0)
		return err_set(e, ERR_DATA, "the file does not begin with the signature of hdf5");
	rc = hdf5_get_bytes(f, 0, b, SUPER_GUESS, super_name, e);
	if (rc < 0)
		return rc;
	if (b[8] > 3)
		return err_set(e, ERR_DATA,
			       "the superblock has version %u; 0 to 3 are in this version", b[8]);
	*bytes = sizes[b[8]];
	return hdf5_get_bytes(f, SUPER_GUESS, b + SUPER_GUESS, *bytes - SUPER_GUESS, super_name, e);
}

static int bad_sizes(unsigned offset, unsigned length, struct err *e)
{
	return err_set(
		e, ERR_DATA,
		"the file has offsets of %u and lengths of %u bytes; only 8 are in this version",
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
		if (hdf5_get(b + bytes - 4, 4) != hdf5_checksum(b, bytes - 4))
			return err_set(
				e, ERR_DATA,
				"the checksum of the superblock at offset 0 does not fit its %zu "
				"bytes: the file is damaged",
				bytes);
		base = hdf5_get(b + 12, 8);
		*extension = hdf5_get(b + 20, 8);
		f->end = hdf5_get(b + 28, 8);
		f->root = hdf5_get(b + 36, 8);
	} else {
		if (b[13] != 8 || b[14] != 8)
			return bad_sizes(b[13], b[14], e);
		f->leaf_k = (uint32_t)hdf5_get(b + 16, 2);
		f->tree_k = (uint32_t)hdf5_get(b + 18, 2);
		if (b[8] == 1)
			f->chunk_k = (uint32_t)hdf5_get(b + 24, 2);
		base = hdf5_get(b + at, 8);
		f->end = hdf5_get(b + at + 16, 8);
		f->root = hdf5_get(b + at + 40, 8);
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
			       "the message of tree sizes at offset %" PRIu64 " is damaged", at);
	f->chunk_k = (uint32_t)hdf5_get(p + 1, 2);
	f->tree_k = (uint32_t)hdf5_get(p + 3, 2);
	f->leaf_k = (uint32_t)hdf5_get(p + 5, 2);
	return 0;
}

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
	length = hdf5_get(p + i, width);
	i += width;
	if (length > n - i || (hard && n - i - length < 8))
		return err_set(e, ERR_DATA,
			       "the name of the link at offset %" PRIu64 " is too long", at);
	out->name = (const char *)p + i;
	out->length = (size_t)length;
	out->header = hard ? hdf5_get(p + i + length, 8) : HDF5_UNDEFINED;
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
		f->group_tree = hdf5_get(p, 8);
		f->group_heap = hdf5_get(p + 8, 8);
	}
	if (type == 2) {
		size_t i = 2 + (n > 1 && (p[1] & 1) ? 8 : 0);

		if (n < i + 16 || p[0] != 0)
			return err_set(e, ERR_DATA,
				       "the link info at offset %" PRIu64 " is damaged", at);
		f->link_heap = hdf5_get(p + i, 8);
		f->link_tree = hdf5_get(p + i + 8, 8);
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
	rc = read_super(f, file_bytes, b, &bytes, e);
	if (rc == 0)
		rc = parse_super(f, b, bytes, &extension, e);
	if (rc < 0)
		return rc;
	if (f->end > file_bytes)
		return err_set(e, ERR_DATA,
			       "the file has %" PRIu64 " bytes and says that it has %" PRIu64
			       ": it was cut short",
			       file_bytes, f->end);
	if (extension != HDF5_UNDEFINED)
		rc = hdf5_header_walk(f, extension, &(struct hdf5_messages){extension_message, f},
				      e);
	if (rc == 0)
		rc = hdf5_header_walk(f, f->root, &(struct hdf5_messages){root_message, f}, e);
	return rc;
}
