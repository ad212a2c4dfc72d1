/* Reading samples of HDF5 files.
 *
 * FRAMEWORK is h5py over the HDF5 library 1.10: h5py.File(path), records_k[i] for each k, close.
 * Opening reads the superblock in three requests and the root group's header; the first use of
 * records_k its name (where the header does not hold it: heap, tree and symbol node, or tree, heap,
 * the tree's nodes and the heap's blocks) and its header; see hdf5_file.h. Then the data:
 * contiguous, one request for the sample, which for a sample of at most 64 KiB goes on to 64 KiB or
 * the end of the dataset; chunked, the index where needed and every chunk whole, in order, but of a
 * chunk above 1 MiB without filters only the rows wanted. No dataset's buffers outlive one use of
 * records_k. The library's flock is not made: stores have none. File names that end on links are
 * not followed twice.
 *
 * With read_type memory the file stays open and its metadata known, as h5py keeps it; data are read
 * each time, as h5py does. Files beyond HDF5_KEPT_OPEN are opened anew.
 *
 * NATIVE is one request for all metadata of an ordinary file, together with the data when these lie
 * at the beginning; then one for the data per 2 MiB, chunks that follow each other taken together.
 */

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <libdeflate.h>
#include <stdio.h>
#include <string.h>

#include "codec/adler.h"
#include "format/hdf5/hdf5_file.h"
#include "format/reader.h"

/* ---- undoing the filters of a chunk ---- */

struct hdf5_unpacked {
	const unsigned char *bytes; /* chunk_bytes of the chunk */
	bool shuffled; /* still to be put in order: byte b of element i is at b * n + i */
};

static int bad_chunk(const struct hdf5_chunk *c, const char *what, struct err *e)
{
	return err_set(e, ERR_DATA, "the chunk of %" PRIu64 " bytes at offset %" PRIu64 " %s",
		       c->bytes, c->at, what);
}

/* A zlib stream: two bytes, deflate, Adler's sum. *n becomes the length of what was in it.
 */
static int inflate_chunk(const struct hdf5_chunk *c, const unsigned char *in, size_t in_n,
			 unsigned char *out, size_t room, size_t *n,
			 struct libdeflate_decompressor *z, struct err *e)
{
	enum libdeflate_result result;
	size_t used = 0;

	*n = 0;
	if (!z)
		return bad_chunk(c, "is compressed, but this dataset is not", e);
	if (in_n < 6 || (in[0] & 15) != 8 || (in[0] << 8 | in[1]) % 31 != 0 || (in[1] & 0x20))
		return bad_chunk(c, "does not begin with a zlib header", e);
	result = libdeflate_deflate_decompress_ex(z, in + 2, in_n - 6, out, room, &used, n);
	if (result == LIBDEFLATE_INSUFFICIENT_SPACE)
		return bad_chunk(c, "does not inflate to the size of a chunk", e);
	if (result != LIBDEFLATE_SUCCESS)
		return bad_chunk(c, "holds damaged compressed data", e);
	in += 2 + used;
	if (adler32_update(ADLER32_BEGIN, out, *n) !=
	    ((uint32_t)in[0] << 24 | (uint32_t)in[1] << 16 | (uint32_t)in[2] << 8 | in[3]))
		return bad_chunk(c, "does not match its Adler-32 checksum", e);
	return 0;
}

/* LZF: runs of literals, and copies from at most 8 KiB back. */
static int expand_lzf(const struct hdf5_chunk *c, const unsigned char *in, size_t in_n,
		      unsigned char *out, size_t room, size_t *n, struct err *e)
{
	size_t i = 0, o = 0;

	while (i < in_n) {
		unsigned control = in[i++];
		size_t length = control + 1, back;

		if (control < 32) {
			if (length > in_n - i || length > room - o)
				return bad_chunk(c, "holds damaged lzf data", e);
			memcpy(out + o, in + i, length);
			i += length;
			o += length;
			continue;
		}
		length = (control >> 5) + 2;
		if (length == 9)
			length += i < in_n ? in[i++] : 0;
		if (i == in_n)
			return bad_chunk(c, "holds damaged lzf data", e);
		back = ((control & 31) << 8 | in[i++]) + (size_t)1;
		if (back > o || length > room - o)
			return bad_chunk(c, "holds damaged lzf data", e);
		for (; length > 0; length--, o++)
			out[o] = out[o - back];
	}
	*n = o;
	return 0;
}

static int check_sum(const struct hdf5_chunk *c, const unsigned char *p, size_t *n, struct err *e)
{
	if (*n < 4)
		return bad_chunk(c, "is too short for its checksum", e);
	*n -= 4;
	if (le_get(p + *n, 4) != hdf5_fletcher32(p, *n))
		return bad_chunk(c, "does not match its Fletcher-32 checksum", e);
	return 0;
}

/* `packed` are the stored bytes; `room` has room_bytes + 4, of which a
 * compressed chunk needs chunk_bytes + 4. `inflater` may be NULL where none is compressed. */
static int hdf5_unpack(const struct hdf5_dataset *d, const struct hdf5_chunk *chunk,
		       const unsigned char *packed, unsigned char *room, size_t room_bytes,
		       struct libdeflate_decompressor *inflater, struct hdf5_unpacked *out,
		       struct err *e)
{
	const unsigned char *p = packed;
	size_t n = (size_t)chunk->bytes, most = (size_t)d->shape.chunk_bytes + 4, made = 0;
	int rc = 0;

	*out = (struct hdf5_unpacked){0};
	for (uint32_t i = d->filters; rc == 0 && i > 0; i--) {
		enum hdf5_filter filter = d->filter[i - 1];

		if (chunk->mask >> (i - 1) & 1)
			continue;
		if (filter == HDF5_SHUFFLE) {
			out->shuffled = d->elem_bytes > 1;
		} else if (filter == HDF5_FLETCHER32) {
			rc = check_sum(chunk, p, &n, e);
		} else if (p == room) {
			rc = bad_chunk(chunk, "was compressed twice, which is not supported", e);
		} else if (room_bytes < d->shape.chunk_bytes) {
			rc = bad_chunk(chunk,
				       "is compressed and larger than the chunks of this dataset",
				       e);
		} else {
			if (filter == HDF5_DEFLATE)
				rc = inflate_chunk(chunk, p, n, room, most, &made, inflater, e);
			else
				rc = expand_lzf(chunk, p, n, room, most, &made, e);
			p = room;
			n = made;
		}
	}
	if (rc == 0 && n != d->shape.chunk_bytes)
		rc = bad_chunk(chunk, "does not have the size of a chunk", e);
	out->bytes = p;
	return rc;
}

/* n bytes of the chunk from `offset` on; whole elements. */
static void hdf5_unshuffle(const struct hdf5_dataset *d, const unsigned char *chunk,
			   uint64_t offset, unsigned char *out, size_t n)
{
	size_t width = d->elem_bytes, count = (size_t)d->shape.chunk_bytes / width;
	size_t first = (size_t)offset / width;

	assert(offset % width == 0 && n % width == 0 && first + n / width <= count);
	for (size_t i = 0; i < n / width; i++)
		for (size_t b = 0; b < width; b++)
			out[i * width + b] = chunk[b * count + first + i];
}

/* What one read system call moves at most for the library. */
#define LIBRARY_READ_MAX 0x7fffffffu

struct reader {
	struct reader_base base;
	struct libdeflate_decompressor *inflater; /* NULL: nothing will be inflated */
	struct hdf5_cache cache;
	struct hdf5_file *file; /* of `files` */
	uint32_t files;
	uint32_t datasets; /* of a file: room */
	uint64_t clock;
	unsigned char
		*data; /* a sample's part in one dataset; native and contiguous: a piece of it */
	size_t data_bytes;
	unsigned char *window; /* native: the beginning of the file */
	size_t window_bytes;
	unsigned char *packed, *chunk;
	size_t packed_bytes, chunk_bytes;
	const struct file_spec *spec; /* of the file being read */
};

/* Room for chunks of the dataset's files, or of ordinary ones. */
static void chunk_room(const struct reader_config *c, bool *chunked, uint64_t *packed,
		       uint64_t *chunk, uint64_t *part)
{
	struct hdf5_shape s;
	uint64_t many;

	*part = c->max_sample_bytes;
	*packed = *chunk = 0;
	*chunked = true;
	if (!c->example || hdf5_shape_of(c->example, &s, NULL) < 0) {
		*packed = *chunk = HDF5_CHUNK_CACHE;
	} else {
		uint32_t datasets = c->example->datasets ? c->example->datasets : 1;

		*part = c->max_sample_bytes / datasets;
		*chunked = s.chunked;
		/* guessed chunks differ with the dimensions of files */
		if (s.chunked)
			*packed = c->example->chunk_ndims ? s.chunk_bytes : HDF5_CHUNK_CACHE;
		if (s.chunked && !s.filter && *packed > HDF5_CHUNK_CACHE)
			*packed = HDF5_CHUNK_CACHE;
		*chunk = s.filter ? *packed : 0;
	}
	/* deflated noise is larger, and checksums are added */
	if (*packed)
		*packed += *packed / 64 + 64;
	/* several chunks in one request */
	many = c->max_file_bytes < NATIVE_PIECE_MAX ? c->max_file_bytes : NATIVE_PIECE_MAX;
	if (*packed && c->example && c->access == ACCESS_NATIVE && *packed < many)
		*packed = many;
}

static void hdf5_lay_out(struct carver *c, const struct reader_config *config,
			 const struct store *s, struct reader *r)
{
	bool native = config->access == ACCESS_NATIVE, chunked;
	uint64_t packed, chunk, part;

	r->datasets = HDF5_DATASETS_MAX;
	if (config->example && config->example->datasets <= HDF5_DATASETS_MAX)
		r->datasets = config->example->datasets ? config->example->datasets : 1;
	r->files = !config->keep_open ? 1 : config->dlio ? HDF5_KEPT_OPEN_DLIO : HDF5_KEPT_OPEN;
	if (r->files > 1 && r->files > config->files)
		r->files = config->files ? (uint32_t)config->files : 1;
	r->file = carve(c, r->files * sizeof(*r->file));
	for (uint32_t i = 0; i < r->files; i++) {
		void *blob = carve(c, store_blob_bytes(s));
		void *dataset = carve(c, r->datasets * sizeof(struct hdf5_dataset));

		if (r->file) {
			memset(&r->file[i], 0, sizeof(r->file[i]));
			r->file[i].blob = blob;
			r->file[i].dataset = dataset;
		}
	}
	r->cache.entries = r->datasets > HDF5_COMPACT_MAX ? HDF5_ENTRIES_MANY : HDF5_ENTRIES;
	for (uint32_t i = 0; i < r->cache.entries; i++)
		r->cache.entry[i].bytes = carve(c, HDF5_ENTRY_BYTES);
	if (config->decode == DECODE_VERIFY)
		r->base.expect.expect = carve(c, EXPECT_BYTES);
	chunk_room(config, &chunked, &packed, &chunk, &part);
	if (part < HDF5_SIEVE)
		part = HDF5_SIEVE;
	if (native && !chunked && part > NATIVE_PIECE_MAX)
		part = NATIVE_PIECE_MAX;
	/* a contiguous sample at the beginning is read together with the metadata */
	if (native && !chunked && part < NATIVE_PIECE_MAX)
		part = part + NATIVE_WINDOW < NATIVE_PIECE_MAX ? part + NATIVE_WINDOW
							       : NATIVE_PIECE_MAX;
	r->data_bytes = (size_t)part;
	r->data = carve(c, part);
	r->window = r->data;
	r->window_bytes = r->data_bytes;
	if (native && chunked) {
		r->window_bytes = NATIVE_WINDOW;
		r->window = carve(c, NATIVE_WINDOW);
	}
	r->packed_bytes = (size_t)packed;
	r->packed = carve(c, packed);
	r->chunk_bytes = (size_t)chunk;
	if (chunk)
		r->chunk = carve(c, chunk + 4);
}

size_t hdf5_reader_bytes(const struct reader_config *config, const struct store *s)
{
	struct reader r = {0};

	return reader_measure(&r, sizeof(r), hdf5_lay_out, config, s);
}

int hdf5_reader_init(void *memory, const struct reader_config *config, const struct io *io,
		     struct reader **out, struct err *e)
{
	int rc = reader_begin(memory, sizeof(struct reader), hdf5_lay_out, config, io, out, e);
	struct reader *r = memory;

	if (rc < 0)
		return rc;
	/* the example is needed while memory is laid out, and is not ours to keep */
	r->base.config.example = NULL;
	if (r->chunk && config->decode != DECODE_NONE) {
		r->inflater = libdeflate_alloc_decompressor();
		if (!r->inflater)
			return err_set(e, -ENOMEM, "not enough memory to inflate chunks");
	}
	return 0;
}

/* ---- open files ---- */

static int close_file(struct reader *r, struct hdf5_file *f, struct err *e)
{
	f->serial = 0;
	return io_close(r->base.io, f->blob, e);
}

static struct hdf5_file *find_file(struct reader *r, uint64_t file_index)
{
	for (uint32_t i = 0; i < r->files; i++)
		if (r->file[i].serial && r->file[i].index == file_index)
			return &r->file[i];
	return NULL;
}

/* The place of the file not used for longest, closed. */
static int free_place(struct reader *r, struct hdf5_file **out, struct err *e)
{
	struct hdf5_file *f = &r->file[0];

	for (uint32_t i = 1; i < r->files && f->serial; i++)
		if (!r->file[i].serial || r->file[i].used < f->used)
			f = &r->file[i];
	*out = f;
	return f->serial ? close_file(r, f, e) : 0;
}

/* One request for what is likely at the beginning: the metadata, and the first sample's data. */
static int fill_window(struct reader *r, struct hdf5_file *f, uint64_t index, uint64_t *file_bytes,
		       struct err *e)
{
	uint64_t want = NATIVE_WINDOW, data;
	struct hdf5_shape s;
	ssize_t got;

	if (r->window == r->data && hdf5_shape_of(r->spec, &s, NULL) == 0 && !s.chunked) {
		data = 2048 + (index + 1) * hdf5_part_bytes(&s);
		want = index == 0 || data < NATIVE_WINDOW ? data : 4096;
	}
	if (want > r->window_bytes)
		want = r->window_bytes;
	f->window = r->window;
	f->window_bytes = 0;
	got = io_pread(r->base.io, IO_DATA, f->blob, r->window, (size_t)want, 0, e);
	if (got < 0)
		return (int)got;
	f->window_bytes = (size_t)got;
	if ((size_t)got < want)
		*file_bytes = (uint64_t)got;
	return 0;
}

/* "uint8 (4, 32, 32)" in `out`, which it returns. */
static char *shape_text(const char *elem, uint32_t rank, const uint64_t *dims, char *out,
			size_t out_size)
{
	int at = snprintf(out, out_size, "%s (", elem);

	for (uint32_t i = 0; i < rank && at > 0 && (size_t)at < out_size; i++)
		at += snprintf(out + at, out_size - (size_t)at, "%s%" PRIu64, i ? ", " : "",
			       dims[i]);
	if (at > 0 && (size_t)at < out_size)
		snprintf(out + at, out_size - (size_t)at, ")");
	return out;
}

static int check_shape(const struct hdf5_dataset *d, const struct hdf5_shape *want, struct err *e)
{
	const struct hdf5_shape *have = &d->shape;
	uint64_t dims[HDF5_RANK_MAX] = {0};
	uint32_t rank = 1;
	char a[240], b[240];

	/* h5py's user may have left a first dimension of 1 or not */
	dims[0] = have->dims[0];
	for (uint32_t i = 1; i < have->rank; i++)
		if (i > 1 || have->dims[i] != 1 || have->rank == want->rank)
			dims[rank++] = have->dims[i];
	if (have->elem == want->elem && rank == want->rank &&
	    memcmp(dims, want->dims, rank * sizeof(dims[0])) == 0)
		return 0;
	return err_set(e, ERR_DATA,
		       "the dataset %s is %s and should be %s: it belongs to another dataset",
		       d->name, shape_text(d->type, have->rank, have->dims, a, sizeof(a)),
		       shape_text(want->elem->name, want->rank, want->dims, b, sizeof(b)));
}

static int opened_dataset(struct hdf5_file *f, uint32_t n, const struct hdf5_shape *want,
			  struct err *e)
{
	bool known = f->dataset[n].known;
	int rc = hdf5_dataset_open(f, n, e);

	if (rc == 0 && !known)
		rc = check_shape(&f->dataset[n], want, e);
	if (rc < 0)
		f->dataset[n].known = false;
	return rc;
}

/* What h5py.File does. */
static int open_framework(struct reader *r, struct hdf5_file *f, const char *path, struct err *e)
{
	struct store_stat st, unused;
	int rc = io_stat_blob(r->base.io, f->blob, &st, e) ?: hdf5_file_open(f, st.bytes, e);

	return rc < 0 ? rc : io_stat_path(r->base.io, path, &unused, e);
}

/* Everything that is needed before the data. The file's size is known only when it is small. */
static int open_native(struct reader *r, struct hdf5_file *f, uint64_t index,
		       const struct hdf5_shape *want, struct err *e)
{
	uint64_t file_bytes = INT64_MAX;
	int rc = fill_window(r, f, index, &file_bytes, e) ?: hdf5_file_open(f, file_bytes, e);

	for (uint32_t i = 0; rc == 0 && i < f->datasets; i++)
		rc = opened_dataset(f, i, want, e);
	return rc;
}

static int read_metadata(struct reader *r, struct hdf5_file *f, const char *path, uint64_t index,
			 const struct hdf5_shape *want, struct err *e)
{
	f->io = r->base.io;
	f->cache = &r->cache;
	f->framework = r->base.config.access == ACCESS_FRAMEWORK;
	f->window_bytes = 0;
	f->datasets = r->spec->datasets ? r->spec->datasets : 1;
	return f->framework ? open_framework(r, f, path, e) : open_native(r, f, index, want, e);
}

static int opened_file(struct reader *r, const char *path, uint64_t index,
		       const struct hdf5_shape *want, struct hdf5_file **out, struct err *e)
{
	struct hdf5_file *f = find_file(r, r->spec->file_index);
	int rc;

	*out = f;
	if (!f) {
		rc = free_place(r, &f, e);
		if (rc == 0)
			rc = io_open(r->base.io, path, STORE_READ, f->blob, e);
		if (rc < 0)
			return rc;
		*out = f;
		f->index = r->spec->file_index;
		rc = read_metadata(r, f, path, index, want, e);
		if (rc < 0)
			return rc;
	}
	f->used = ++r->clock;
	return 0;
}

/* ---- contiguous data ---- */

static int data_cut_short(uint64_t at, struct err *e)
{
	return err_set(e, ERR_DATA,
		       "the file ends at offset %" PRIu64 " within its data: it is truncated", at);
}

/* n bytes of data at `at`. */
static int read_data(struct reader *r, struct hdf5_file *f, unsigned char *out, uint64_t n,
		     uint64_t at, struct err *e)
{
	while (n > 0) {
		size_t part = n < LIBRARY_READ_MAX ? (size_t)n : LIBRARY_READ_MAX;
		ssize_t got = io_pread(r->base.io, IO_DATA, f->blob, out, part, at, e);

		if (got < 0)
			return (int)got;
		if (got == 0)
			return data_cut_short(at, e);
		out += got;
		at += (uint64_t)got;
		n -= (uint64_t)got;
	}
	return 0;
}

static int chunk_too_large(const struct hdf5_dataset *d, uint64_t bytes, size_t room, struct err *e)
{
	return err_set(
		e, ERR_DATA,
		"a %s of %s has %" PRIu64
		" bytes, but the reader's buffer has %zu: the file belongs to another dataset, or "
		"dataset.hdf5.chunk_dims and dataset.compression do not describe it",
		d->shape.chunked ? "chunk" : "sample", d->name, bytes, room);
}

/* Bytes [from, from + n) of the dataset, from the window or the file, piece by piece. */
static int read_pieces(struct reader *r, struct hdf5_file *f, const struct hdf5_dataset *d,
		       uint64_t stream, uint64_t from, uint64_t n, const void **last, struct err *e)
{
	while (n > 0) {
		uint64_t at = d->data + from;
		const unsigned char *piece = r->data;
		size_t part;
		int rc;

		if (at < f->window_bytes) {
			part = f->window_bytes - at < n ? (size_t)(f->window_bytes - at)
							: (size_t)n;
			piece = f->window + at;
		} else {
			part = n < r->data_bytes ? (size_t)n : r->data_bytes;
			if (r->window == r->data)
				f->window_bytes = 0;
			rc = read_data(r, f, r->data, part, at, e);
			if (rc < 0)
				return rc;
		}
		rc = expectation_check(&r->base.expect, r->spec->file_index, stream + from,
				       d->data - stream, piece, part, e);
		if (rc < 0)
			return rc;
		*last = piece;
		from += part;
		n -= part;
	}
	return 0;
}

static int read_contiguous(struct reader *r, struct hdf5_file *f, const struct hdf5_dataset *d,
			   uint64_t stream, uint64_t index, const void **last, struct err *e)
{
	uint64_t part = hdf5_part_bytes(&d->shape), from = index * part, n = part;
	uint64_t sieve = d->shape.bytes < HDF5_SIEVE ? d->shape.bytes : HDF5_SIEVE;
	int rc = 0;

	if (part == 0)
		return 0;
	if (!f->framework && d->data != HDF5_UNDEFINED)
		return read_pieces(r, f, d, stream, from, part, last, e);
	if (part > r->data_bytes)
		return chunk_too_large(d, part, r->data_bytes, e);
	if (part <= sieve)
		n = d->shape.bytes - from < sieve ? d->shape.bytes - from : sieve;
	if (d->data == HDF5_UNDEFINED)
		memset(r->data, 0, part);
	else
		rc = read_data(r, f, r->data, n, d->data + from, e);
	*last = r->data;
	if (rc < 0)
		return rc;
	return expectation_check(&r->base.expect, r->spec->file_index, stream + from,
				 d->data - stream, r->data, (size_t)part, e);
}

/* ---- chunked data ---- */

/* Chunks taken together at most. */
#define BATCH 64u

struct found_chunk {
	uint64_t number;
	struct hdf5_chunk chunk;
};

/* Where in the chunk the rows of a sample are. */
struct rows_wanted {
	struct hdf5_rows rows;
	uint64_t first, n, skip, bytes; /* rows; bytes of a row left out, taken at most */
};

static void rows_wanted(struct rows_wanted *w, const struct hdf5_shape *s, uint64_t number,
			uint64_t index)
{
	uint64_t step = index - index / s->chunk[0] * s->chunk[0];

	hdf5_rows_of(&w->rows, s, number);
	w->n = 1;
	w->skip = w->rows.axis == 0 ? step * w->rows.tail : 0;
	w->bytes = w->rows.axis == 0 ? w->rows.tail : w->rows.row_bytes;
	for (uint32_t i = 1; i < w->rows.axis; i++)
		w->n *= s->chunk[i];
	w->first = w->rows.axis == 0 ? 0 : step * w->n;
}

/* Takes the sample's rows out of a chunk in memory, or straight from the file when `chunk` is NULL,
 * or as zeros when there is no chunk. */
static int copy_rows(struct reader *r, struct hdf5_file *f, const struct hdf5_dataset *d,
		     const struct found_chunk *x, const struct hdf5_unpacked *chunk, uint64_t index,
		     struct err *e)
{
	uint64_t base = index * hdf5_part_bytes(&d->shape), from;
	struct rows_wanted w;
	int rc = 0;

	rows_wanted(&w, &d->shape, x->number, index);
	for (uint64_t k = w.first; rc == 0 && k < w.first + w.n; k++) {
		uint64_t inside = hdf5_row_inside(&w.rows, k, &from);
		uint64_t at = k * w.rows.row_bytes + w.skip;
		unsigned char *to;

		if (inside == 0)
			continue;
		if (inside > w.bytes)
			inside = w.bytes;
		to = r->data + (from + w.skip - base);
		if (x->chunk.at == HDF5_UNDEFINED)
			memset(to, 0, inside);
		else if (!chunk)
			rc = read_data(r, f, to, inside, x->chunk.at + at, e);
		else if (chunk->shuffled)
			hdf5_unshuffle(d, chunk->bytes, at, to, inside);
		else
			memcpy(to, chunk->bytes + at, inside);
	}
	return rc;
}

/* The same straight from the file, where the sample's rows follow each other in the chunk: as many
 * of them in one request as fit. */
static int read_runs(struct reader *r, struct hdf5_file *f, const struct hdf5_dataset *d,
		     const struct found_chunk *x, uint64_t index, const void **last, struct err *e)
{
	uint64_t base = index * hdf5_part_bytes(&d->shape), from, inside, fit;
	struct rows_wanted w;
	int rc = 0;

	rows_wanted(&w, &d->shape, x->number, index);
	fit = r->packed_bytes / w.rows.row_bytes;
	if (w.bytes < w.rows.row_bytes || fit == 0)
		return copy_rows(r, f, d, x, NULL, index, e);
	for (uint64_t k = 0; rc == 0 && k < w.n; k += fit) {
		if (fit > w.n - k)
			fit = w.n - k;
		rc = read_data(r, f, r->packed, fit * w.rows.row_bytes,
			       x->chunk.at + (w.first + k) * w.rows.row_bytes, e);
		*last = r->packed;
		for (uint64_t i = 0; rc == 0 && r->base.expect.content && i < fit; i++) {
			inside = hdf5_row_inside(&w.rows, w.first + k + i, &from);
			if (inside > 0)
				memcpy(r->data + (from - base), r->packed + i * w.rows.row_bytes,
				       inside);
		}
	}
	return rc;
}

static bool read_by_rows(const struct reader *r, const struct hdf5_dataset *d)
{
	if (d->filters)
		return false;
	return d->shape.chunk_bytes >
	       (r->base.config.access == ACCESS_FRAMEWORK ? HDF5_CHUNK_CACHE : r->packed_bytes);
}

/* Chunks found that lie one behind the other: one request, then each is unpacked. */
static int read_batch(struct reader *r, struct hdf5_file *f, const struct hdf5_dataset *d,
		      const struct found_chunk *found, uint32_t n, uint64_t index,
		      const void **last, struct err *e)
{
	uint64_t bytes = 0, at = found[0].chunk.at;
	const unsigned char *packed = r->packed;
	int rc = 0;

	assert(n >= 1 && n <= BATCH);
	for (uint32_t i = 0; i < n; i++)
		bytes += found[i].chunk.bytes;
	if (at == HDF5_UNDEFINED || (f->framework && read_by_rows(r, d)))
		return copy_rows(r, f, d, &found[0], NULL, index, e);
	if (read_by_rows(r, d))
		return read_runs(r, f, d, &found[0], index, last, e);
	if (bytes > r->packed_bytes)
		return chunk_too_large(d, bytes, r->packed_bytes, e);
	if (f->window != r->data && at < f->window_bytes && bytes <= f->window_bytes - at)
		packed = f->window + at;
	else
		rc = read_data(r, f, r->packed, bytes, at, e);
	if (r->base.config.decode == DECODE_NONE)
		return rc;
	bytes = 0;
	for (uint32_t i = 0; rc == 0 && i < n; i++) {
		struct hdf5_unpacked chunk = {.bytes = packed + bytes};

		if (d->filters)
			rc = hdf5_unpack(d, &found[i].chunk, packed + bytes, r->chunk,
					 r->chunk_bytes, r->inflater, &chunk, e);
		/* nobody wants the sample in one piece unless it is to be compared */
		if (rc == 0 && (r->base.expect.content || chunk.shuffled))
			rc = copy_rows(r, f, d, &found[i], &chunk, index, e);
		else if (rc == 0)
			*last = chunk.bytes;
		bytes += found[i].chunk.bytes;
	}
	return rc;
}

/* Whether a chunk can join the batch before it in one request. */
static bool joins(const struct reader *r, const struct hdf5_dataset *d,
		  const struct found_chunk *found, uint32_t n, uint64_t batch_bytes,
		  const struct hdf5_chunk *next)
{
	const struct hdf5_chunk *last = &found[n - 1].chunk;

	return n < BATCH && next->at != HDF5_UNDEFINED && last->at != HDF5_UNDEFINED &&
	       last->at + last->bytes == next->at && !read_by_rows(r, d) &&
	       batch_bytes + next->bytes <= r->packed_bytes;
}

static int read_chunks(struct reader *r, struct hdf5_file *f, const struct hdf5_dataset *d,
		       uint64_t index, const void **last, struct err *e)
{
	const struct hdf5_shape *s = &d->shape;
	struct found_chunk found[BATCH];
	uint64_t each = 1, bytes = 0;
	uint32_t n = 0;
	int rc = 0;

	for (uint32_t i = 1; i < s->rank; i++)
		each *= (s->dims[i] + s->chunk[i] - 1) / s->chunk[i];
	for (uint64_t k = 0; rc == 0 && k < each; k++) {
		struct found_chunk next = {.number = index / s->chunk[0] * each + k};
		struct hdf5_rows rows;

		hdf5_rows_of(&rows, s, next.number);
		rc = hdf5_chunk_find(f, d, rows.origin, &next.chunk, e);
		if (rc == 0 && n > 0 &&
		    (f->framework || !joins(r, d, found, n, bytes, &next.chunk))) {
			rc = read_batch(r, f, d, found, n, index, last, e);
			n = 0;
			bytes = 0;
		}
		bytes += next.chunk.bytes;
		found[n++] = next;
		if (rc == 0 && f->framework) {
			rc = read_batch(r, f, d, found, n, index, last, e);
			n = 0;
			bytes = 0;
		}
	}
	return rc < 0 || n == 0 ? rc : read_batch(r, f, d, found, n, index, last, e);
}

/* The sample's part in a chunked dataset, whose payload begins at `stream`, into r->data. */
static int read_chunked(struct reader *r, struct hdf5_file *f, const struct hdf5_dataset *d,
			uint64_t stream, uint64_t index, const void **last, struct err *e)
{
	uint64_t part = hdf5_part_bytes(&d->shape);
	int rc;

	if (part == 0)
		return 0;
	if (part > r->data_bytes)
		return chunk_too_large(d, part, r->data_bytes, e);
	*last = r->data;
	rc = read_chunks(r, f, d, index, last, e);
	if (rc < 0)
		return rc;
	return expectation_check(&r->base.expect, r->spec->file_index, stream + index * part,
				 UINT64_MAX, r->data, (size_t)part, e);
}

/* ---- samples ---- */

static int read_parts(struct reader *r, struct hdf5_file *f, const struct hdf5_shape *want,
		      uint64_t index, struct sample *out, struct err *e)
{
	int rc = 0;

	for (uint32_t i = 0; rc == 0 && i < f->datasets; i++) {
		const struct hdf5_dataset *d = &f->dataset[i];
		uint64_t stream = i * want->bytes;

		rc = opened_dataset(f, i, want, e);
		if (rc == 0 && d->shape.chunked)
			rc = read_chunked(r, f, d, stream, index, &out->data, e);
		else if (rc == 0)
			rc = read_contiguous(r, f, d, stream, index, &out->data, e);
	}
	return rc;
}

int hdf5_read(struct reader *r, const char *path, const struct file_spec *f, uint64_t index,
	      struct sample *out, struct err *e)
{
	struct hdf5_file *file = NULL;
	struct hdf5_shape want;
	int rc = reader_sample_begin(f, index, path, out, e), closed;

	if (rc < 0)
		return rc;
	rc = hdf5_shape_of(f, &want, e);
	if (rc == 0 && f->datasets > r->datasets)
		rc = err_set(e, ERR_USAGE, "%u datasets per sample; this reader supports %u",
			     f->datasets, r->datasets);
	r->spec = f;
	if (rc == 0)
		rc = opened_file(r, path, index, &want, &file, e);
	if (rc == 0)
		rc = read_parts(r, file, &want, index, out, e);
	if (file && (rc < 0 || !r->base.config.keep_open)) {
		closed = close_file(r, file, rc == 0 ? e : NULL);
		rc = rc == 0 ? closed : rc;
	}
	/* the window may have been the data's memory */
	if (file)
		file->window_bytes = 0;
	if (rc < 0)
		return err_in_path(rc, path, e);
	reader_sample_done(f, out);
	return 0;
}

int hdf5_reader_close(struct reader *r, struct err *e)
{
	int rc = 0;

	for (uint32_t i = 0; i < r->files; i++) {
		int closed = r->file[i].serial ? close_file(r, &r->file[i], rc == 0 ? e : NULL) : 0;

		rc = rc == 0 ? closed : rc;
	}
	if (r->inflater)
		libdeflate_free_decompressor(r->inflater);
	r->inflater = NULL;
	return rc;
}
