/* The datasets of an HDF5 file, as a workload describes them and h5py would make them. */
#include "format/hdf5/hdf5_shape.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

/* Checksums in HDF5 files. */

static inline uint32_t rotate(uint32_t v, int k)
{
	return v << k | v >> (32 - k);
}

static uint32_t word(const unsigned char *p)
{
	return (uint32_t)le_get(p, 4);
}

/* lookup3's hash of bytes, beginning with 0. */
uint32_t hdf5_checksum(const void *bytes, size_t n)
{
	static const int mix_by[6] = {4, 6, 8, 16, 19, 4};
	static const int end_by[7] = {14, 11, 25, 16, 4, 14, 24};
	const unsigned char *p = bytes;
	unsigned char tail[12] = {0};
	uint32_t s[3]; /* a, b, c */

	s[0] = s[1] = s[2] = 0xdeadbeefu + (uint32_t)n;
	if (n == 0)
		return s[2];
	for (; n > 12; n -= 12, p += 12) {
		for (int i = 0; i < 3; i++)
			s[i] += word(p + 4 * i);
		for (int i = 0; i < 6; i++) {
			uint32_t *x = &s[i % 3], *y = &s[(i + 1) % 3], *z = &s[(i + 2) % 3];

			*x -= *z;
			*x ^= rotate(*z, mix_by[i]);
			*z += *y;
		}
	}
	memcpy(tail, p, n);
	for (int i = 0; i < 3; i++)
		s[i] += word(tail + 4 * i);
	for (int i = 0; i < 7; i++) {
		uint32_t *x = &s[(i + 2) % 3], *y = &s[(i + 1) % 3];

		*x ^= *y;
		*x -= rotate(*y, end_by[i]);
	}
	return s[2];
}

uint32_t hdf5_fletcher32(const void *bytes, size_t n)
{
	const unsigned char *p = bytes;
	size_t words = n / 2;
	uint32_t a = 0, b = 0;

	while (words > 0) {
		/* as many as cannot overflow the sums */
		size_t part = words < 360 ? words : 360;

		words -= part;
		for (; part > 0; part--, p += 2) {
			a += (uint32_t)p[0] << 8 | p[1];
			b += a;
		}
		a = (a & 0xffff) + (a >> 16);
		b = (b & 0xffff) + (b >> 16);
	}
	if (n % 2) {
		a += (uint32_t)*p << 8;
		b += a;
		a = (a & 0xffff) + (a >> 16);
		b = (b & 0xffff) + (b >> 16);
	}
	a = (a & 0xffff) + (a >> 16);
	b = (b & 0xffff) + (b >> 16);
	return b << 16 | a;
}

/* h5py's limits of a chunk it chooses itself. */
#define GUESS_BASE 16384.0
#define GUESS_MIN 8192.0
#define GUESS_MAX 1048576.0
/* What a chunk of a dataset may have at all, and a compressed one of more than one sample. */
#define CHUNK_MAX UINT32_MAX
#define PACKED_CHUNK_MAX (16u << 20)
/* 2^17 pages of an index, whose bits make a page themselves. */
#define CHUNKS_MAX (UINT64_C(1) << 27)
/* zlib gives up on noise after as many bytes and stores them. */
#define STORED_BLOCK 16383u

static const struct {
	const char *name;
	enum hdf5_filter filter;
} filters[] = {{"none", 0}, {"gzip", HDF5_DEFLATE}, {"lzf", HDF5_LZF}};

static int find_filter(const struct file_spec *f, struct hdf5_shape *s, struct err *e)
{
	for (size_t i = 0; i < sizeof(filters) / sizeof(filters[0]); i++) {
		if (strcmp(f->compression, filters[i].name) == 0) {
			s->filter = filters[i].filter;
			s->level = f->compression_level;
			return 0;
		}
	}
	return err_set(e, ERR_USAGE,
		       "hdf5 files cannot be compressed by %s: dataset.compression is '%s', only "
		       "'none', 'gzip' and 'lzf' are allowed",
		       f->compression, f->compression);
}

/* (samples, dims...): the first of dims shared among the datasets, and left out when it is 1. */
static int set_dims(const struct file_spec *f, uint32_t datasets, struct hdf5_shape *s,
		    struct err *e)
{
	uint64_t share = f->ndims ? f->dims[0] / datasets : 1;
	uint32_t from = f->ndims > 0 && share == 1;

	if (datasets > 1 && (f->ndims == 0 || f->dims[0] % datasets != 0))
		return err_set(
			e, ERR_USAGE,
			"dataset.hdf5.num_dset_per_record %u does not divide the first dimension "
			"of a sample, %" PRIu64,
			datasets, f->ndims ? f->dims[0] : 1);
	s->rank = 1 + f->ndims - from;
	s->dims[0] = f->samples;
	for (uint32_t i = from; i < f->ndims; i++)
		s->dims[1 + i - from] = i == 0 ? share : f->dims[i];
	memcpy(s->max_dims, s->dims, sizeof(s->dims));
	s->bytes = s->elem->bytes;
	/* a zero must not hide the overflow of the others: their product bounds a sample */
	for (uint32_t i = 0; i < s->rank; i++)
		if (__builtin_mul_overflow(s->bytes, s->dims[i] ? s->dims[i] : 1, &s->bytes) ||
		    s->bytes > INT64_MAX / HDF5_DATASETS_MAX)
			return err_set(
				e, ERR_USAGE,
				"a dataset of these dimensions has more bytes than an hdf5 file "
				"can hold");
	for (uint32_t i = 0; i < s->rank; i++)
		if (s->dims[i] == 0)
			s->bytes = 0;
	return 0;
}

static int set_max_dims(const struct file_spec *f, struct hdf5_shape *s, struct err *e)
{
	if (f->max_ndims == 0)
		return 0;
	if (f->max_ndims != s->rank - 1)
		return err_set(e, ERR_USAGE,
			       "dataset.hdf5.max_shape has %u dimensions; a sample has %u",
			       f->max_ndims, s->rank - 1);
	for (uint32_t i = 1; i < s->rank; i++) {
		s->max_dims[i] = f->max_dims[i - 1];
		if (s->max_dims[i] < s->dims[i] || s->max_dims[i] > INT64_MAX)
			return err_set(e, ERR_USAGE,
				       "dataset.hdf5.max_shape has the dimension %" PRIu64
				       "; at least the sample's, %" PRIu64 ", is needed",
				       s->max_dims[i], s->dims[i]);
	}
	return 0;
}

/* h5py's choice: halves one axis after the other until a chunk is small enough. */
static void guess_chunk(struct hdf5_shape *s)
{
	double target, size = (double)s->elem->bytes, product = 1;
	double chunk[HDF5_RANK_MAX];

	for (uint32_t i = 0; i < s->rank; i++) {
		chunk[i] = s->dims[i] ? (double)s->dims[i] : 1024;
		product *= chunk[i];
	}
	target = GUESS_BASE * pow(2, log10(product * size / 1048576));
	target = target > GUESS_MAX ? GUESS_MAX : target < GUESS_MIN ? GUESS_MIN : target;
	for (uint32_t i = 0; product > 1; i = (i + 1) % s->rank) {
		double bytes = product * size;

		if ((bytes < target || fabs(bytes - target) / target < 0.5) && bytes < GUESS_MAX)
			break;
		chunk[i] = ceil(chunk[i] / 2);
		product = 1;
		for (uint32_t k = 0; k < s->rank; k++)
			product *= chunk[k];
	}
	for (uint32_t i = 0; i < s->rank; i++)
		s->chunk[i] = (uint64_t)chunk[i];
}

static int check_chunk(const struct hdf5_shape *s, struct err *e)
{
	uint64_t part = hdf5_part_bytes(s);

	if (s->chunk_bytes > CHUNK_MAX)
		return err_set(e, ERR_USAGE,
			       "dataset.hdf5.chunk_dims makes chunks of %" PRIu64
			       " bytes; an hdf5 chunk has less than 4 GiB",
			       s->chunk_bytes);
	if (s->filter && s->chunk_bytes > PACKED_CHUNK_MAX && s->chunk_bytes > part)
		return err_set(e, ERR_USAGE,
			       "dataset.hdf5.chunk_dims makes compressed chunks of %" PRIu64
			       " bytes; more than a sample (%" PRIu64
			       " bytes) and more than %u is not supported",
			       s->chunk_bytes, part, PACKED_CHUNK_MAX);
	return 0;
}

static int set_chunk(const struct file_spec *f, struct hdf5_shape *s, struct err *e)
{
	if (f->chunk_ndims && f->chunk_ndims != s->rank)
		return err_set(e, ERR_USAGE,
			       "dataset.hdf5.chunk_dims has %u dimensions; it needs %u: the "
			       "samples of a file, then the dimensions of a sample",
			       f->chunk_ndims, s->rank);
	if (f->chunk_ndims)
		memcpy(s->chunk, f->chunk, s->rank * sizeof(s->chunk[0]));
	else
		guess_chunk(s);
	s->chunk_bytes = s->elem->bytes;
	for (uint32_t i = 0; i < s->rank; i++) {
		uint64_t most = s->max_dims[i];

		if (s->chunk[i] < 1 || (f->chunk_ndims && s->chunk[i] > most))
			return err_set(e, ERR_USAGE,
				       "dataset.hdf5.chunk_dims has the dimension %" PRIu64
				       " where the dataset has %" PRIu64
				       "; at least 1 and at most that is allowed",
				       s->chunk[i], most);
		if (__builtin_mul_overflow(s->chunk_bytes, s->chunk[i], &s->chunk_bytes))
			s->chunk_bytes = UINT64_MAX;
	}
	return check_chunk(s, e);
}

/* A zlib stream of stored blocks: what compressing noise comes to, and a size that content cannot
 * change. */
static uint64_t stored_bytes(const struct hdf5_shape *s)
{
	uint64_t blocks = (s->chunk_bytes + STORED_BLOCK - 1) / STORED_BLOCK;

	return s->filter == HDF5_DEFLATE ? 2 + 5 * blocks + s->chunk_bytes + 4 : s->chunk_bytes;
}

static int count_chunks(struct hdf5_shape *s, struct err *e)
{
	s->chunks = s->slots = 1;
	s->single = true;
	for (uint32_t i = 0; i < s->rank; i++) {
		uint64_t more = (s->max_dims[i] + s->chunk[i] - 1) / s->chunk[i];

		if (s->dims[i] != s->chunk[i] || s->max_dims[i] != s->chunk[i])
			s->single = false;
		/* never more chunks than slots */
		s->chunks *= (s->dims[i] + s->chunk[i] - 1) / s->chunk[i];
		if (__builtin_mul_overflow(s->slots, more, &s->slots) || s->slots > CHUNKS_MAX)
			return err_set(
				e, ERR_USAGE,
				"dataset.hdf5.chunk_dims and max_shape make more than %" PRIu64
				" chunks in a dataset; use larger chunks",
				CHUNKS_MAX);
	}
	s->stored_bytes = stored_bytes(s);
	return 0;
}

int hdf5_shape_of(const struct file_spec *f, struct hdf5_shape *out, struct err *e)
{
	uint32_t datasets = f->datasets ? f->datasets : 1;
	int rc;

	*out = (struct hdf5_shape){.elem = f->elem};
	rc = find_filter(f, out, e) ?: set_dims(f, datasets, out, e) ?: set_max_dims(f, out, e);
	if (rc < 0)
		return rc;
	out->chunked = f->chunk_ndims || f->max_ndims || out->filter;
	out->chunk_bytes = out->stored_bytes = out->bytes;
	if (!out->chunked)
		return 0;
	if (out->bytes == 0)
		return err_set(e, ERR_USAGE, "an hdf5 dataset without elements cannot have chunks");
	rc = set_chunk(f, out, e);
	return rc < 0 ? rc : count_chunks(out, e);
}

uint64_t hdf5_part_bytes(const struct hdf5_shape *s)
{
	return s->dims[0] ? s->bytes / s->dims[0] : 0;
}

void hdf5_rows_of(struct hdf5_rows *r, const struct hdf5_shape *s, uint64_t chunk)
{
	assert(s->chunked && s->rank >= 1);
	r->s = s;
	for (uint32_t i = s->rank; i > 0; i--) {
		uint64_t chunks = (s->dims[i - 1] + s->chunk[i - 1] - 1) / s->chunk[i - 1];

		r->origin[i - 1] = chunk % chunks * s->chunk[i - 1];
		chunk /= chunks;
	}
	r->axis = s->rank - 1;
	r->tail = s->elem->bytes;
	while (r->axis > 0 && s->chunk[r->axis] == s->dims[r->axis])
		r->tail *= s->dims[r->axis--];
	r->row_bytes = r->tail * s->chunk[r->axis];
}

uint64_t hdf5_row_inside(const struct hdf5_rows *r, uint64_t n, uint64_t *from)
{
	const struct hdf5_shape *s = r->s;
	uint64_t each = r->tail * s->dims[r->axis], left = s->dims[r->axis] - r->origin[r->axis];

	*from = r->origin[r->axis] * r->tail;
	for (uint32_t i = r->axis; i > 0; i--) {
		uint64_t place = r->origin[i - 1] + n % s->chunk[i - 1];

		if (place >= s->dims[i - 1])
			return 0;
		*from += place * each;
		each *= s->dims[i - 1];
		n /= s->chunk[i - 1];
	}
	return left < s->chunk[r->axis] ? left * r->tail : r->row_bytes;
}

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
