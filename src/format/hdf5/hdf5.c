/* hdf5: datasets as h5py writes them, samples along the first axis. Files are written, and
 * compared, as one ascending stream; hdf5_read.c reads. */
#include <assert.h>
#include <string.h>

#include "codec/adler.h"
#include "format/blob_stream.h"
#include "format/hdf5/hdf5_layout.h"
#include "format/hdf5/hdf5_file.h"

#define GATHER 16383u
/* A page of the largest slots; the bits of all pages take less. */
#define PAGE_BYTES ((1u << HDF5_PAGE_BITS) * 20u + 32u)

enum kind { ROOT, GROUP, MORE, HEADER, INDEX, BLOCK, DATA };

/* A part of the file; parts are written in the order of their offsets. */
struct part {
	uint64_t at;
	enum kind kind;
	uint32_t n,
		run; /* of which dataset, which chunk of the root's header; which run of chunks */
};

#define PARTS_MAX (2 + HDF5_MORE_MAX + (HDF5_DATASETS_MAX + 1) * 6)

struct writer {
	struct blob_stream *s;
	const struct hdf5_layout *l;
	const struct content_source *content;
	uint64_t file_index, at;
};

static int put_bytes(struct writer *w, const void *bytes, size_t n, struct err *e)
{
	w->at += n;
	return blob_stream_put(w->s, bytes, n, e);
}

/* Metadata with its checksum behind it; `bytes` has room for that. */
static int put_summed(struct writer *w, unsigned char *bytes, size_t n, struct err *e)
{
	le_put(bytes + n, hdf5_checksum(bytes, n), 4);
	return put_bytes(w, bytes, n + 4, e);
}

/* The rest of a header's space: an empty message, or a gap too small for one. */
static void fill_up(unsigned char *from, unsigned char *end)
{
	size_t left = (size_t)(end - from);

	memset(from, 0, left);
	if (left >= 4)
		hdf5_message(from, 0, left - 4, 0);
}

static int put_header(struct writer *w, uint32_t n, struct err *e)
{
	unsigned char b[12 + HDF5_HEADER_MAX] = "OHDR";
	bool label = n == w->l->datasets;
	const struct hdf5_shape *s = label ? &w->l->labels : &w->l->records;
	uint32_t bytes = w->l->header_bytes[label];
	size_t used = hdf5_header_messages(s, &w->l->place[n], b + 8);

	b[4] = 2;
	b[5] = 1;
	le_put(b + 6, bytes, 2);
	fill_up(b + 8 + used, b + 8 + bytes);
	return put_summed(w, b, 8 + bytes, e);
}

static unsigned char *put_link(unsigned char *p, const struct hdf5_layout *l, uint32_t n)
{
	char name[HDF5_NAME_MAX] = "labels";
	size_t length = n < l->datasets ? hdf5_name(n, name) : 6;

	p = hdf5_message(p, 6, 11 + length, 0);
	*p++ = 1;
	*p++ = 0;
	*p++ = (unsigned char)length;
	memcpy(p, name, length);
	return le_put(p + length, l->place[n].header, 8);
}

static unsigned char *put_link_info(unsigned char *p)
{
	p = hdf5_message(p, 2, 18, 0);
	p = le_put(p, 0, 2);
	p = le_put(p, HDF5_UNDEFINED, 8);
	return le_put(p, HDF5_UNDEFINED, 8);
}

/* "goes on there" */
static unsigned char *put_more(unsigned char *p, const struct hdf5_layout *l, uint32_t n)
{
	p = hdf5_message(p, 0x10, 16, 0);
	p = le_put(p, l->more[n], 8);
	return le_put(p, l->more_bytes[n], 8);
}

static int put_group(struct writer *w, struct err *e)
{
	unsigned char b[HDF5_GROUP_MAX];

	hdf5_group_make(w->l, b);
	return put_bytes(w, b, hdf5_group_bytes(w->l->datasets), e);
}

/* The links of a small group, or where they are. */
static unsigned char *put_links(unsigned char *p, const struct hdf5_layout *l)
{
	unsigned char group[HDF5_GROUP_MAX];

	if (l->group) {
		p = hdf5_message(p, 0x11, 16, 0);
		p = le_put(p, hdf5_group_make(l, group), 8);
		return le_put(p, l->group, 8);
	}
	p = l->more_bytes[1] ? put_more(p, l, 1) : put_link_info(p);
	p = hdf5_message(p, 0x0a, 2, 1);
	p = le_put(p, 0, 2);
	for (uint32_t i = 0; i <= l->datasets && i < 3; i++)
		p = put_link(p, l, i);
	return l->more_bytes[0] ? put_more(p, l, 0) : p;
}

static int put_root(struct writer *w, struct err *e)
{
	const struct hdf5_layout *l = w->l;
	unsigned char b[HDF5_ROOT_BYTES] = "OHDR";
	unsigned char *p = b + 6 + 16, *end = b + HDF5_ROOT_BYTES - 4;

	b[4] = 2;
	b[5] = 0x20; /* with four times, all zero: a file is a pure function of the workload */
	*p++ = (unsigned char)(HDF5_ROOT_BYTES - 4 - 23);
	fill_up(put_links(p, l), end);
	return put_summed(w, b, HDF5_ROOT_BYTES - 4, e);
}

static int put_root_more(struct writer *w, uint32_t n, struct err *e)
{
	const struct hdf5_layout *l = w->l;
	unsigned char b[160] = "OCHK";
	unsigned char *p = b + 4, *end = b + l->more_bytes[n] - 4;
	uint32_t links = l->datasets + 1;

	if (n == 0) {
		p = put_link(p, l, 3);
	} else if (n == 1 && l->more_bytes[2]) {
		p = put_more(p, l, 2);
		p = put_link(p, l, 4);
	} else {
		p = put_link_info(p);
		for (uint32_t i = n == 1 ? 4 : 5; i < links; i++)
			p = put_link(p, l, i);
	}
	fill_up(p, end);
	return put_summed(w, b, l->more_bytes[n] - 4, e);
}

static int put_array_header(struct writer *w, uint32_t n, struct err *e)
{
	const struct hdf5_shape *s = &w->l->records;
	unsigned char b[HDF5_INDEX_BYTES] = "FAHD";

	b[5] = s->filter != 0;
	b[6] = (unsigned char)hdf5_slot_bytes(s);
	b[7] = HDF5_PAGE_BITS;
	le_put(b + 8, s->slots, 8);
	le_put(b + 16, w->l->place[n].block, 8);
	return put_summed(w, b, HDF5_INDEX_BYTES - 4, e);
}

/* The chunk whose data a slot of the index points to, or UINT64_MAX: the slots count through
 * max_dims, the chunks through dims. */
static uint64_t chunk_of_slot(const struct hdf5_shape *s, uint64_t slot)
{
	uint64_t chunk = 0, each = 1;

	for (uint32_t i = s->rank; i > 0; i--) {
		uint64_t slots = (s->max_dims[i - 1] + s->chunk[i - 1] - 1) / s->chunk[i - 1];
		uint64_t chunks = (s->dims[i - 1] + s->chunk[i - 1] - 1) / s->chunk[i - 1];
		uint64_t place = slot % slots;

		if (place >= chunks)
			return UINT64_MAX;
		chunk += place * each;
		each *= chunks;
		slot /= slots;
	}
	return chunk;
}

static unsigned char *put_slot(unsigned char *p, const struct hdf5_layout *l,
			       const struct hdf5_place *place, uint64_t slot)
{
	const struct hdf5_shape *s = &l->records;
	uint64_t chunk = chunk_of_slot(s, slot);
	bool there = chunk != UINT64_MAX;

	p = le_put(p, there ? hdf5_chunk_at(l, place, chunk) : HDF5_UNDEFINED, 8);
	if (!s->filter)
		return p;
	p = le_put(p, there ? s->stored_bytes : 0, hdf5_size_bytes(s->chunk_bytes));
	return le_put(p, there && s->filter == HDF5_LZF, 4);
}

static int put_array_block(struct writer *w, uint32_t n, struct err *e)
{
	const struct hdf5_layout *l = w->l;
	const struct hdf5_shape *s = &l->records;
	const struct hdf5_place *place = &l->place[n];
	unsigned char b[PAGE_BYTES] = "FADB";
	unsigned char *p = b + 14;
	uint64_t page = 1u << HDF5_PAGE_BITS, pages;
	int rc;

	b[5] = s->filter != 0;
	le_put(b + 6, place->index, 8);
	if (s->slots <= page) {
		for (uint64_t i = 0; i < s->slots; i++)
			p = put_slot(p, l, place, i);
		return put_summed(w, b, (size_t)(p - b), e);
	}
	pages = (s->slots + page - 1) / page;
	memset(p, 0xff, pages / 8);
	p += pages / 8;
	/* every page is in use; the first is the highest bit */
	if (pages % 8)
		*p++ = (unsigned char)(0xff00 >> pages % 8);
	rc = put_summed(w, b, (size_t)(p - b), e);
	for (uint64_t i = 0; rc == 0 && i < s->slots; i += page) {
		p = b;
		for (uint64_t k = i; k < i + page && k < s->slots; k++)
			p = put_slot(p, l, place, k);
		rc = put_summed(w, b, (size_t)(p - b), e);
	}
	return rc;
}

/* Bytes of a chunk from `offset` on; what lies outside the dataset is zero. */
static void gather_chunk(const struct writer *w, const struct hdf5_rows *r, uint64_t base,
			 uint64_t offset, unsigned char *out, size_t n)
{
	while (n > 0) {
		uint64_t at = offset % r->row_bytes, from, inside;
		size_t part = r->row_bytes - at < n ? (size_t)(r->row_bytes - at) : n;
		size_t real = 0;

		inside = hdf5_row_inside(r, offset / r->row_bytes, &from);
		if (at < inside)
			real = inside - at < part ? (size_t)(inside - at) : part;
		if (real > 0)
			w->content->fill(w->content, w->file_index, base + from + at, out, real);
		memset(out + real, 0, part - real);
		out += part;
		offset += part;
		n -= part;
	}
}

/* A chunk; deflated, it is a zlib stream of stored blocks. */
static int put_chunk(struct writer *w, uint32_t n, uint64_t chunk, struct err *e)
{
	static const unsigned char level_bits[10] = {0x01, 0x01, 0x5e, 0x5e, 0x5e,
						     0x5e, 0x9c, 0xda, 0xda, 0xda};
	const struct hdf5_shape *s = &w->l->records;
	bool deflate = s->filter == HDF5_DEFLATE;
	unsigned char b[5 + GATHER], head[4] = {0x78, level_bits[s->level < 10 ? s->level : 9]};
	uint32_t sum = ADLER32_BEGIN;
	struct hdf5_rows rows;
	int rc = deflate ? put_bytes(w, head, 2, e) : 0;

	hdf5_rows_of(&rows, s, chunk);
	for (uint64_t done = 0; rc == 0 && done < s->chunk_bytes;) {
		size_t part =
			s->chunk_bytes - done < GATHER ? (size_t)(s->chunk_bytes - done) : GATHER;

		gather_chunk(w, &rows, n * s->bytes, done, b + 5, part);
		done += part;
		b[0] = done == s->chunk_bytes;
		le_put(b + 1, part, 2);
		le_put(b + 3, ~part, 2);
		if (deflate)
			sum = adler32_update(sum, b + 5, part);
		rc = put_bytes(w, deflate ? b : b + 5, deflate ? 5 + part : part, e);
	}
	if (rc < 0 || !deflate)
		return rc;
	for (int i = 0; i < 4; i++)
		head[i] = (unsigned char)(sum >> (24 - 8 * i));
	return put_bytes(w, head, 4, e);
}

static int put_data(struct writer *w, const struct part *part, struct err *e)
{
	const struct hdf5_layout *l = w->l;
	const struct hdf5_place *p = &l->place[part->n];
	const struct hdf5_shape *s = &l->records;
	uint64_t chunk = 0, end = 1;
	int rc = 0;

	if (part->n == l->datasets) {
		w->at += l->labels.bytes;
		return blob_stream_zeros(w->s, l->labels.bytes, e);
	}
	if (!s->chunked) {
		w->at += s->bytes;
		return blob_stream_payload(w->s, w->content, w->file_index, part->n * s->bytes,
					   s->bytes, e);
	}
	if (p->runs) {
		chunk = p->run[part->run].first;
		end = part->run + 1 < p->runs ? p->run[part->run + 1].first : s->chunks;
	}
	for (; rc == 0 && chunk < end; chunk++)
		rc = put_chunk(w, part->n, chunk, e);
	return rc;
}

static void add_part(struct part *parts, uint32_t *count, struct part part)
{
	uint32_t i = (*count)++;

	assert(i < PARTS_MAX);
	for (; i > 0 && parts[i - 1].at > part.at; i--)
		parts[i] = parts[i - 1];
	parts[i] = part;
}

static uint32_t list_parts(const struct hdf5_layout *l, struct part *parts)
{
	uint32_t count = 0;

	add_part(parts, &count, (struct part){.at = HDF5_SUPER_BYTES, .kind = ROOT});
	if (l->group)
		add_part(parts, &count, (struct part){.at = l->group, .kind = GROUP});
	for (uint32_t i = 0; i < HDF5_MORE_MAX; i++)
		if (l->more_bytes[i])
			add_part(parts, &count,
				 (struct part){.at = l->more[i], .kind = MORE, .n = i});
	for (uint32_t i = 0; i <= l->datasets; i++) {
		const struct hdf5_place *p = &l->place[i];

		add_part(parts, &count, (struct part){.at = p->header, .kind = HEADER, .n = i});
		if (p->data != HDF5_UNDEFINED)
			add_part(parts, &count, (struct part){.at = p->data, .kind = DATA, .n = i});
		for (uint32_t k = 0; k < p->runs; k++)
			add_part(parts, &count,
				 (struct part){.at = p->run[k].at, .kind = DATA, .n = i, .run = k});
		if (!p->runs)
			continue;
		add_part(parts, &count, (struct part){.at = p->index, .kind = INDEX, .n = i});
		add_part(parts, &count, (struct part){.at = p->block, .kind = BLOCK, .n = i});
	}
	return count;
}

static int put_super(struct writer *w, struct err *e)
{
	unsigned char b[HDF5_SUPER_BYTES] = "\x89HDF\r\n\x1a\n\x03\x08\x08";

	le_put(b + 20, HDF5_UNDEFINED, 8);
	le_put(b + 28, w->l->file_bytes, 8);
	le_put(b + 36, HDF5_SUPER_BYTES, 8);
	return put_summed(w, b, HDF5_SUPER_BYTES - 4, e);
}

static int put_part(struct writer *w, const struct part *part, struct err *e)
{
	uint64_t gap = part->at - w->at;
	int rc;

	/* parts are sorted, and none overlaps the one before it */
	assert(part->at >= w->at);
	rc = blob_stream_zeros(w->s, gap, e);
	w->at += gap;
	if (rc < 0)
		return rc;
	switch (part->kind) {
	case ROOT:
		return put_root(w, e);
	case GROUP:
		return put_group(w, e);
	case MORE:
		return put_root_more(w, part->n, e);
	case HEADER:
		return put_header(w, part->n, e);
	case INDEX:
		return put_array_header(w, part->n, e);
	case BLOCK:
		return put_array_block(w, part->n, e);
	case DATA:
		break;
	}
	return put_data(w, part, e);
}

static int hdf5_put_file(struct blob_stream *s, const struct file_spec *f,
			 const struct content_source *content, void *scratch, struct err *e)
{
	struct part parts[PARTS_MAX];
	struct hdf5_layout l;
	struct writer w = {.s = s, .l = &l, .content = content, .file_index = f->file_index};
	uint32_t count;
	int rc = hdf5_layout_of(f, &l, e);

	(void)scratch;
	if (rc < 0)
		return rc;
	count = list_parts(&l, parts);
	rc = put_super(&w, e);
	for (uint32_t i = 0; rc == 0 && i < count; i++)
		rc = put_part(&w, &parts[i], e);
	assert(rc < 0 || w.at <= l.file_bytes);
	return rc < 0 ? rc : blob_stream_zeros(s, l.file_bytes - w.at, e);
}

static int hdf5_check(const struct file_spec *f, struct err *e)
{
	struct hdf5_layout l;

	return hdf5_layout_of(f, &l, e);
}

static uint64_t hdf5_file_bytes(const struct file_spec *f)
{
	struct hdf5_layout l;

	return hdf5_layout_of(f, &l, NULL) < 0 ? UINT64_MAX : l.file_bytes;
}

static int hdf5_extent(const struct reader_config *c, const struct file_spec *f, uint64_t index,
		       struct extent *out, struct err *e)
{
	struct hdf5_layout l;
	uint64_t bytes;
	int rc = hdf5_layout_of(f, &l, e);

	(void)c;
	if (rc < 0)
		return rc;
	if (l.datasets > 1)
		return err_set(e, ERR_USAGE,
			       "a sample is spread over %u datasets of the file, so its bytes are "
			       "not contiguous",
			       l.datasets);
	if (l.records.chunked)
		return err_set(e, ERR_USAGE,
			       "the hdf5 files are chunked or compressed, so that only their index "
			       "gives the location of a sample");
	bytes = hdf5_part_bytes(&l.records);
	*out = (struct extent){.bytes = bytes};
	if (l.place[0].data != HDF5_UNDEFINED)
		out->offset = l.place[0].data + index * bytes;
	return 0;
}

#include <inttypes.h>

#include "workload/key.h"
#include "workload/workload.h"

static const char *const keys[] = {"dataset.hdf5.num_dset_per_record", "dataset.hdf5.chunk_dims",
				   "dataset.hdf5.max_shape", NULL};

static int check_keys(const struct workload *w, struct err *e)
{
	const struct i64_list *dims = &w->dataset.record_dims;
	int64_t parts = w->dataset.hdf5.num_dset_per_record;

	if (parts == 1)
		return 0;
	if (!dims->n)
		return workload_key_error(
			w, ERR_USAGE, e, "dataset.hdf5.num_dset_per_record",
			"dataset.hdf5.num_dset_per_record %" PRId64
			" needs dataset.record_dims, whose first dimension it divides",
			parts);
	if (dims->v[0] % parts != 0)
		return workload_key_error(w, ERR_USAGE, e, "dataset.hdf5.num_dset_per_record",
					  "dataset.hdf5.num_dset_per_record %" PRId64
					  " does not divide dataset.record_dims[0], %" PRId64,
					  parts, dims->v[0]);
	return 0;
}

const struct format_ops format_hdf5 = {
	.is.name = "hdf5",
	.is.help = "HDF5 files (h5py), samples along the first axis of one or more datasets.",
	.is.extension = "hdf5",
	.is.other_extensions = (const char *const[]){"h5", "hdf", NULL},
	.is.magic = "\x89HDF\r\n\x1a\n",
	.is.compressions = (const char *const[]){"gzip", "lzf", NULL},
	.is.flags = FORMAT_HEADED | FORMAT_WHOLE_OBJECTS,
	.is.dlio_reader = "HDF5Reader",
	.is.keys = keys,
	.is.kept_open = HDF5_KEPT_OPEN,
	.is.check_keys = check_keys,
	.check = hdf5_check,
	.file_bytes = hdf5_file_bytes,
	.put = hdf5_put_file,
	.reader_bytes = hdf5_reader_bytes,
	.reader_init = hdf5_reader_init,
	.read = hdf5_read,
	.reader_close = hdf5_reader_close,
	.extent = hdf5_extent,
};
