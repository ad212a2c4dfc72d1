/* Placing the parts of an HDF5 file. */
#include "format/hdf5/hdf5_layout.h"

#include <assert.h>
#include <stddef.h>
#include <string.h>

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
