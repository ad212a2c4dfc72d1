/* npz: a zip archive with the member x.npy (samples along the last axis) and y.npy (labels), as
 * np.savez makes it, or np.savez_compressed with the compression 'zip'.
 *
 * A compressed member is deflate in stored blocks, which is what zlib makes of noise (for integers,
 * the same size to 1 in 10,000): so a file's size is a pure function and it is written as fast as a
 * plain one. zlib would find 10 % in random floats. */
#include <assert.h>
#include <inttypes.h>
#include <string.h>

#include "base/little_endian.h"
#include "codec/crc.h"
#include "codec/zip.h"
#include "format/blob_stream.h"
#include "format/numpy/npy.h"
#include "format/pyfile.h"
#include "format/reader.h"

/* ---- the file ---- */

#define NPZ_MEMBERS 2
#define LOCAL_MAX (ZIP_LOCAL_BYTES + ZIP_NAME_MAX + 20)
#define CENTRAL_MAX (ZIP_CENTRAL_BYTES + ZIP_NAME_MAX + 32)
/* Where the checksum is in a local header. */
#define LOCAL_CRC 14
/* Symbols that zlib gathers before it writes a block of them, at its usual memory level. */
#define BLOCK_BYTES 16383u
#define BLOCK_HEADER 5u

/* x.npy (the samples) and y.npy (their labels, zeros), as np.savez(path, x=x, y=y) lays them out.
 */
struct npz_layout {
	struct npy_array array[NPZ_MEMBERS];
	struct zip_entry entry[NPZ_MEMBERS]; /* without the checksums */
	uint64_t file_bytes;
};

static const char *const npz_member_name[NPZ_MEMBERS] = {"x.npy", "y.npy"};

static const struct elem_type *label_elem(void)
{
	return elem_find("int64");
}

static int add_bytes(uint64_t *sum, uint64_t n, struct err *e)
{
	if (__builtin_add_overflow(*sum, n, sum) || *sum > INT64_MAX)
		return err_set(e, ERR_USAGE,
			       "a file of these samples is larger than a file can be");
	return 0;
}

static bool is_zip(const struct file_spec *f)
{
	return strcmp(f->compression, "zip") == 0;
}

/* What is left to a block, and what a stream of blocks takes. */
static size_t block_bytes_of(uint64_t left)
{
	return left < BLOCK_BYTES ? (size_t)left : BLOCK_BYTES;
}

static uint64_t deflated_bytes(uint64_t n)
{
	uint64_t blocks = n / BLOCK_BYTES + (n % BLOCK_BYTES != 0), all;

	return __builtin_add_overflow(n, blocks * BLOCK_HEADER, &all) ? UINT64_MAX : all;
}

static int npz_layout_of(const struct file_spec *f, struct npz_layout *out, struct err *e)
{
	struct file_spec labels = {.elem = label_elem(), .samples = f->samples};
	unsigned char bytes[CENTRAL_MAX];
	uint64_t at = 0, directory, directory_bytes = 0;
	int rc;

	memset(out, 0, sizeof(*out));
	rc = npy_array_of(f, &out->array[0], e) ?: npy_array_of(&labels, &out->array[1], e);
	for (int i = 0; rc == 0 && i < NPZ_MEMBERS; i++) {
		struct zip_entry *entry = &out->entry[i];

		memcpy(entry->name, npz_member_name[i], strlen(npz_member_name[i]) + 1);
		entry->method = is_zip(f) ? ZIP_DEFLATED : ZIP_STORED;
		entry->bytes = out->array[i].header_bytes + out->array[i].data_bytes;
		entry->compressed_bytes = is_zip(f) ? deflated_bytes(entry->bytes) : entry->bytes;
		entry->local_offset = at;
		rc = add_bytes(&at, zip_write_local(bytes, entry), e);
		if (rc == 0)
			rc = add_bytes(&at, entry->compressed_bytes, e);
	}
	directory = at;
	for (int i = 0; rc == 0 && i < NPZ_MEMBERS; i++)
		directory_bytes += zip_write_central(bytes, &out->entry[i]);
	if (rc == 0)
		rc = add_bytes(&at,
			       directory_bytes + zip_write_end(bytes, NPZ_MEMBERS, directory,
							       directory_bytes),
			       e);
	out->file_bytes = at;
	return rc;
}

static int npz_check(const struct file_spec *f, struct err *e)
{
	struct npz_layout l;

	return npz_layout_of(f, &l, e);
}

static uint64_t npz_file_bytes(const struct file_spec *f)
{
	struct npz_layout l;

	npz_layout_of(f, &l, NULL);
	return l.file_bytes;
}

/* A member's bytes before compression. */
struct member {
	unsigned char header[NPY_HEADER_WRITTEN_MAX];
	uint64_t header_bytes;
	const struct content_source *content; /* NULL: zeros */
	uint64_t file_index;
};

/* Bytes [from, from + n) of it. */
static int put_range(struct blob_stream *s, const struct member *m, uint64_t from, uint64_t n,
		     struct err *e)
{
	int rc;

	if (from < m->header_bytes) {
		uint64_t part = m->header_bytes - from < n ? m->header_bytes - from : n;

		rc = blob_stream_put(s, m->header + from, (size_t)part, e);
		if (rc < 0)
			return rc;
		from += part;
		n -= part;
	}
	if (!m->content)
		return blob_stream_zeros(s, n, e);
	return blob_stream_payload(s, m->content, m->file_index, from - m->header_bytes, n, e);
}

/* The header of a stored block, which the member's checksum does not cover. */
static int put_block_header(struct blob_stream *s, size_t n, bool last, struct err *e)
{
	const unsigned char b[BLOCK_HEADER] = {last, (unsigned char)n, (unsigned char)(n >> 8),
					       (unsigned char)~n, (unsigned char)(~n >> 8)};
	uint32_t (*update)(uint32_t crc, const void *bytes, size_t len) = s->crc_update;
	int rc;

	s->crc_update = NULL;
	rc = blob_stream_put(s, b, sizeof(b), e);
	s->crc_update = update;
	return rc;
}

static int put_blocks(struct blob_stream *s, const struct member *m, uint64_t bytes, struct err *e)
{
	int rc = 0;

	for (uint64_t done = 0; rc == 0 && done < bytes;) {
		size_t n = block_bytes_of(bytes - done);

		rc = put_block_header(s, n, done + n == bytes, e) ?: put_range(s, m, done, n, e);
		done += n;
	}
	return rc;
}

/* One member; its checksum stands before its data and is known after them. `content` NULL: zeros.
 */
static int put_member(struct blob_stream *s, struct zip_entry *entry, const struct npy_array *a,
		      const struct content_source *content, uint64_t file_index, struct err *e)
{
	struct member m = {.content = content, .file_index = file_index};
	unsigned char local[LOCAL_MAX], crc[4];
	size_t n = zip_write_local(local, entry);
	int rc = blob_stream_put(s, local, LOCAL_CRC, e);

	m.header_bytes = npy_header_write(m.header, a->elem, a->ndims, a->dims);
	if (rc == 0)
		rc = blob_stream_leave_hole(s, sizeof(crc), e);
	if (rc == 0)
		rc = blob_stream_put(s, local + LOCAL_CRC + sizeof(crc),
				     n - LOCAL_CRC - sizeof(crc), e);
	blob_stream_crc_begin(s);
	if (rc == 0)
		rc = entry->method == ZIP_DEFLATED ? put_blocks(s, &m, entry->bytes, e)
						   : put_range(s, &m, 0, entry->bytes, e);
	entry->crc = blob_stream_crc_end(s);
	for (size_t i = 0; i < sizeof(crc); i++)
		crc[i] = (unsigned char)(entry->crc >> (8 * i));
	return rc < 0 ? rc : blob_stream_fill_hole(s, crc, e);
}

static int npz_put(struct blob_stream *s, const struct file_spec *f,
		   const struct content_source *content, void *scratch, struct err *e)
{
	unsigned char bytes[CENTRAL_MAX];
	struct npz_layout l;
	uint64_t directory, directory_bytes = 0;
	int rc = npz_layout_of(f, &l, e);

	(void)scratch;
	for (int i = 0; rc == 0 && i < NPZ_MEMBERS; i++)
		rc = put_member(s, &l.entry[i], &l.array[i], i == 0 ? content : NULL, f->file_index,
				e);
	directory = s->offset + s->used;
	for (int i = 0; rc == 0 && i < NPZ_MEMBERS; i++) {
		size_t n = zip_write_central(bytes, &l.entry[i]);

		directory_bytes += n;
		rc = blob_stream_put(s, bytes, n, e);
	}
	if (rc == 0)
		rc = blob_stream_put(
			s, bytes, zip_write_end(bytes, NPZ_MEMBERS, directory, directory_bytes), e);
	assert(rc < 0 || s->offset + s->used == l.file_bytes);
	return rc;
}

/* The first member, x, over whose array every sample is spread. */
static int npz_extent(const struct reader_config *c, const struct file_spec *f, uint64_t index,
		      struct extent *out, struct err *e)
{
	struct npz_layout l;
	int rc = npz_layout_of(f, &l, e);

	(void)c;
	(void)index;
	if (rc < 0)
		return rc;
	*out = (struct extent){.bytes = EXTENT_TO_END, .whole = true};
	if (npz_file_bytes(f) != UINT64_MAX)
		out->bytes = l.entry[1].local_offset;
	return 0;
}

/* ---- reading ---- */

/* Reading x.npy out of an npz archive.
 *
 * FRAMEWORK is np.load(path)['x'] of NumPy 1.24 over Python's zipfile: the buffer once at offset 0
 * for the magic; the end record, the place of a zip64 locator, the directory; the member's local
 * header and first bytes twice (once for its magic, once for the array), with NumPy 2.3 once; then
 * the data in pieces of 256 KiB, each of which the file object splits by its own buffer. y is not
 * read. The CRC-32 runs over every byte. The framework holds the array; this reader needs one piece
 * at a time.
 *
 * NATIVE is one read of local header, npy header and data together when these have at most 2 MiB,
 * else one per 2 MiB. Only when the archive does not begin with an x.npy whose local header has its
 * sizes is the directory read: a stat and four small requests more. */

/* Room for the directory, and for the end record with the longest comment. */
#define NATIVE_PIECE_MIN 131072u
#define NUMPY_PIECE 262144u
#define FLAG_SIZES_LATER 8u

struct reader {
	struct reader_base base;
	struct inflater inflater;
	unsigned char *header;
	unsigned char *python_buffer;
	size_t python_buffer_bytes;
	unsigned char *in; /* framework: compressed bytes; native: one piece of the file */
	size_t in_bytes;
	unsigned char *out; /* uncompressed bytes */
	struct pybuffer py;
	struct pyzip zip;
	/* native: the member being read */
	struct zip_entry entry;
	uint64_t pos, compressed_left; /* what is not in `in` yet */
	uint64_t given;
	size_t in_pos, in_end;
	size_t out_pos, out_end;
	uint32_t crc;
};

static void npz_lay_out(struct carver *c, const struct reader_config *config, const struct store *s,
			struct reader *r)
{
	uint64_t whole;

	reader_base_lay_out(c, config, s, &r->base);
	r->header = carve(c, NPY_HEADER_MAX);
	r->inflater.memory.base = carve(c, INFLATER_MEMORY);
	if (config->access == ACCESS_FRAMEWORK) {
		r->python_buffer_bytes = reader_buffer_bytes(config);
		r->python_buffer = carve(c, r->python_buffer_bytes);
		whole = PYZIP_IN;
	} else {
		whole = config->max_file_bytes < NATIVE_PIECE_MAX ? config->max_file_bytes
								  : NATIVE_PIECE_MAX;
		whole = (whole + 4095) & ~(uint64_t)4095;
		if (whole < NATIVE_PIECE_MIN)
			whole = NATIVE_PIECE_MIN;
	}
	r->in_bytes = (size_t)whole;
	r->in = carve(c, whole);
	r->out = carve(c, PYZIP_OUT);
}

static int npz_start(struct reader *r, struct err *e)
{
	(void)e;
	inflater_init(&r->inflater, r->inflater.memory.base);
	return 0;
}

FORMAT_READER(npz, npz_lay_out, npz_start)

/* Up to `want` bytes of the member: as Python's zipfile or as directly as possible. */
typedef ssize_t next_fn(struct reader *r, size_t want, const unsigned char **run, struct err *e);

static ssize_t framework_next(struct reader *r, size_t want, const unsigned char **run,
			      struct err *e)
{
	return pyzip_next(&r->zip, want, run, e);
}

/* Refills `in` with the member's next compressed bytes. */
static int native_refill(struct reader *r, struct err *e)
{
	size_t n = r->compressed_left < r->in_bytes ? (size_t)r->compressed_left : r->in_bytes;
	ssize_t got = io_pread(r->base.io, IO_DATA, r->base.blob, r->in, n, r->pos, e);

	if (got < 0)
		return (int)got;
	if (got == 0)
		return err_set(e, ERR_DATA,
			       "the file ends at offset %" PRIu64 " and %" PRIu64
			       " bytes of the member '%s' are missing: it is truncated",
			       r->pos, r->compressed_left, r->entry.name);
	r->pos += (uint64_t)got;
	r->compressed_left -= (uint64_t)got;
	r->in_pos = 0;
	r->in_end = (size_t)got;
	return 0;
}

/* Makes out[out_pos..out_end) not empty, unless the stream has ended. */
static int native_inflate(struct reader *r, struct err *e)
{
	while (r->out_pos == r->out_end && !r->inflater.ended) {
		size_t used;
		ssize_t made;

		if (r->in_pos == r->in_end && r->compressed_left > 0) {
			int rc = native_refill(r, e);

			if (rc < 0)
				return rc;
		}
		used = r->in_end - r->in_pos;
		made = inflater_run(&r->inflater, r->in + r->in_pos, &used, r->out, PYZIP_OUT, e);
		if (made < 0)
			return (int)made;
		r->in_pos += used;
		r->out_pos = 0;
		r->out_end = (size_t)made;
		if (made == 0 && used == 0 && r->compressed_left == 0 && !r->inflater.ended)
			return err_set(e, ERR_DATA, "the compressed data of '%s' are incomplete",
				       r->entry.name);
	}
	return 0;
}

static ssize_t native_next(struct reader *r, size_t want, const unsigned char **run, struct err *e)
{
	size_t n;
	int rc = 0;

	if (r->entry.method == ZIP_DEFLATED) {
		rc = native_inflate(r, e);
		n = r->out_end - r->out_pos;
		*run = r->out + r->out_pos;
	} else {
		if (r->in_pos == r->in_end && r->compressed_left > 0)
			rc = native_refill(r, e);
		n = r->in_end - r->in_pos;
		*run = r->in + r->in_pos;
	}
	if (rc < 0)
		return rc;
	if (n > want)
		n = want;
	if (r->entry.method == ZIP_DEFLATED)
		r->out_pos += n;
	else
		r->in_pos += n;
	r->given += n;
	if (r->base.config.decode != DECODE_FULL)
		return (ssize_t)n;
	r->crc = crc32_update(r->crc, *run, n);
	if (r->given == r->entry.bytes && r->crc != r->entry.crc)
		return err_set(e, ERR_DATA,
			       "the member '%s' has the CRC-32 %08x but its header has %08x: its "
			       "data are damaged",
			       r->entry.name, r->crc, r->entry.crc);
	return (ssize_t)n;
}

static int member_ends(const struct zip_entry *m, struct err *e)
{
	return err_set(e, ERR_DATA, "the member '%s' ends within its array: it is damaged",
		       m->name);
}

/* Copies n bytes of the member. */
static int next_bytes(struct reader *r, next_fn *next, const struct zip_entry *m,
		      unsigned char *out, size_t n, struct err *e)
{
	while (n > 0) {
		const unsigned char *run = NULL;
		ssize_t got = next(r, n, &run, e);

		if (got < 0)
			return (int)got;
		if (got == 0)
			return member_ends(m, e);
		memcpy(out, run, (size_t)got);
		out += got;
		n -= (size_t)got;
	}
	return 0;
}

/* The npy header at the member's beginning, in the steps in which NumPy reads it: `have` bytes of
 * it are there. `offset` is the place of the member's data. */
static int member_header(struct reader *r, next_fn *next, const struct zip_entry *m, size_t have,
			 const struct file_spec *f, uint64_t offset, struct npy_array *a,
			 struct err *e)
{
	unsigned char *h = r->header;
	size_t total;
	int before, rc = next_bytes(r, next, m, h + have, 8 - have, e);

	if (rc < 0)
		return rc;
	before = npy_prefix_bytes(h, 8, offset, e);
	if (before < 0)
		return before;
	rc = next_bytes(r, next, m, h + 8, (size_t)before - 8, e) ?:
	     npy_header_length(h, offset, &total, e) ?:
	     next_bytes(r, next, m, h + before, total - (size_t)before, e) ?:
	     npy_header_parse(h, total, offset, a, e) ?:
	     npy_array_check(a, f, e);
	if (rc == 0 && (m->bytes < total || m->bytes - total != a->data_bytes))
		rc = err_set(e, ERR_DATA,
			     "the member '%s' has %" PRIu64
			     " bytes; its array and header need %" PRIu64,
			     m->name, m->bytes, total + a->data_bytes);
	return rc;
}

/* The array's data in pieces of at most `piece`. */
static int member_data(struct reader *r, next_fn *next, const struct zip_entry *m,
		       const struct file_spec *f, const struct npy_array *a, uint64_t data_offset,
		       size_t piece, struct sample *out, struct err *e)
{
	uint64_t done = 0;

	while (done < a->data_bytes) {
		uint64_t left = a->data_bytes - done;
		size_t want = left < piece ? (size_t)left : piece;

		while (want > 0) {
			const unsigned char *run = NULL;
			ssize_t got = next(r, want, &run, e);
			int rc;

			if (got < 0)
				return (int)got;
			if (got == 0)
				return member_ends(m, e);
			rc = expectation_check(&r->base.expect, f->file_index, done, data_offset,
					       run, (size_t)got, e);
			if (rc < 0)
				return rc;
			out->data = run;
			done += (uint64_t)got;
			want -= (size_t)got;
		}
	}
	return 0;
}

static uint64_t data_place(const struct zip_entry *m, uint64_t member, const struct npy_array *a)
{
	return m->method == ZIP_STORED ? member + a->header_bytes : UINT64_MAX;
}

static int framework_open(struct reader *r, struct zip_entry *m, struct err *e)
{
	struct store_stat st;
	size_t buffer = 0;
	ssize_t got;
	int rc = io_stat_blob(r->base.io, r->base.blob, &st, e);

	if (rc == 0)
		rc = reader_buffer_of(&r->base.config, st.block_bytes, r->python_buffer_bytes,
				      &buffer, e);
	if (rc < 0)
		return rc;
	pybuffer_start(&r->py, r->base.io, r->base.blob, r->base.config.python, st.bytes,
		       r->python_buffer, buffer);
	got = pybuffer_read(&r->py, r->header, NPY_MAGIC_BYTES, e);
	if (got < 0)
		return (int)got;
	if (got < 4 || (memcmp(r->header, "PK\3\4", 4) != 0 && memcmp(r->header, "PK\5\6", 4) != 0))
		return err_set(e, ERR_DATA,
			       "not an npz file: it does not begin with a zip signature");
	pybuffer_seek(&r->py, 0);
	r->zip = (struct pyzip){.py = &r->py,
				.inflater = &r->inflater,
				.in = r->in,
				.out = r->out,
				.check_crc = r->base.config.decode == DECODE_FULL};
	return pyzip_find(&r->zip, npz_member_name[0], m, e);
}

static int read_framework(struct reader *r, const struct file_spec *f, struct sample *out,
			  struct err *e)
{
	struct zip_entry m;
	struct npy_array a;
	uint64_t member = 0;
	bool once = r->base.config.npz_once;
	int rc = framework_open(r, &m, e) ?: pyzip_open(&r->zip, &m, e);

	if (rc < 0)
		return rc;
	member = r->zip.pos;
	rc = next_bytes(r, framework_next, &m, r->header, NPY_MAGIC_BYTES, e);
	if (rc == 0 && memcmp(r->header, npy_magic, NPY_MAGIC_BYTES) != 0)
		rc = err_set(e, ERR_DATA, "the member '%s' is not an npy array", m.name);
	if (rc == 0 && !once)
		rc = pyzip_open(&r->zip, &m, e);
	if (rc < 0)
		return rc;
	rc = member_header(r, framework_next, &m, once ? NPY_MAGIC_BYTES : 0, f, member, &a, e);
	if (rc < 0)
		return rc;
	r->py.kind = IO_DATA;
	return member_data(r, framework_next, &m, f, &a, data_place(&m, member, &a),
			   NUMPY_PIECE / a.elem->bytes * a.elem->bytes, out, e);
}

/* Takes the sizes from the zip64 extra field where the header defers to it. */
static bool local_sizes(const unsigned char *extra, size_t n, struct zip_entry *m)
{
	if (m->bytes != UINT32_MAX && m->compressed_bytes != UINT32_MAX)
		return true;
	while (n >= 4) {
		size_t id = (size_t)le_get(extra, 2), size = (size_t)le_get(extra + 2, 2);

		if (size > n - 4)
			return false;
		if (id == 1 && size >= 16) {
			m->bytes = le_get(extra + 4, 8);
			m->compressed_bytes = le_get(extra + 12, 8);
			return true;
		}
		extra += 4 + size;
		n -= 4 + size;
	}
	return false;
}

/* Whether in[0..n) begins with a local header of x.npy that says all there is to know; then *m gets
 * it and *data the offset of its data. */
static bool local_is_x(const unsigned char *in, size_t n, struct zip_entry *m, uint64_t *data)
{
	size_t name_bytes, extra_bytes;

	if (n < ZIP_LOCAL_BYTES || memcmp(in, "PK\3\4", 4) != 0)
		return false;
	name_bytes = (size_t)le_get(in + 26, 2);
	extra_bytes = (size_t)le_get(in + 28, 2);
	if (name_bytes + extra_bytes > n - ZIP_LOCAL_BYTES ||
	    name_bytes != strlen(npz_member_name[0]) ||
	    memcmp(in + ZIP_LOCAL_BYTES, npz_member_name[0], name_bytes) != 0)
		return false;
	*m = (struct zip_entry){.flags = (uint16_t)le_get(in + 6, 2),
				.method = (uint16_t)le_get(in + 8, 2),
				.crc = (uint32_t)le_get(in + 14, 4),
				.compressed_bytes = le_get(in + 18, 4),
				.bytes = le_get(in + 22, 4)};
	memcpy(m->name, npz_member_name[0], name_bytes + 1);
	*data = ZIP_LOCAL_BYTES + name_bytes + extra_bytes;
	return !(m->flags & (FLAG_SIZES_LATER | 1u)) &&
	       (m->method == ZIP_STORED || m->method == ZIP_DEFLATED) &&
	       local_sizes(in + ZIP_LOCAL_BYTES + name_bytes, extra_bytes, m);
}

/* The long way: Python's, through a buffer as large as can be, then one read of the member. */
static int native_directory(struct reader *r, uint64_t *data, size_t *have, struct err *e)
{
	struct store_stat st;
	struct pyzip z = {.in = r->out, .inflater = &r->inflater, .py = &r->py};
	int rc = io_stat_blob(r->base.io, r->base.blob, &st, e);

	if (rc < 0)
		return rc;
	pybuffer_start(&r->py, r->base.io, r->base.blob, 314, st.bytes, r->in, NATIVE_PIECE_MIN);
	rc = pyzip_find(&z, npz_member_name[0], &r->entry, e) ?: pyzip_open(&z, &r->entry, e);
	if (rc < 0)
		return rc;
	*data = z.pos;
	*have = 0;
	return 0;
}

/* Reads the first piece of the file and finds the member; leaves what it has of the data in `in`.
 */
static int native_open(struct reader *r, const struct file_spec *f, uint64_t *data, struct err *e)
{
	struct npz_layout want;
	size_t n, have;
	ssize_t got;
	int rc = npz_layout_of(f, &want, e);

	if (rc < 0)
		return rc;
	n = want.entry[1].local_offset < r->in_bytes ? (size_t)want.entry[1].local_offset
						     : r->in_bytes;
	got = io_pread(r->base.io, IO_DATA, r->base.blob, r->in, n, 0, e);
	if (got < 0)
		return (int)got;
	have = (size_t)got;
	if (have < 4 || memcmp(r->in, "PK", 2) != 0)
		return err_set(e, ERR_DATA,
			       "not an npz file: it does not begin with a zip signature");
	if (!local_is_x(r->in, have, &r->entry, data))
		rc = native_directory(r, data, &have, e);
	if (rc == 0 && r->entry.method == ZIP_DEFLATED)
		rc = inflater_start(&r->inflater, e);
	if (rc < 0)
		return rc;
	assert(have == 0 || *data <= have);
	r->in_pos = have ? (size_t)*data : 0;
	r->in_end = have;
	if (have && r->entry.compressed_bytes < have - *data)
		r->in_end = (size_t)(*data + r->entry.compressed_bytes);
	r->pos = *data + (r->in_end - r->in_pos);
	r->compressed_left = r->entry.compressed_bytes - (r->in_end - r->in_pos);
	r->out_pos = r->out_end = 0;
	r->given = 0;
	r->crc = 0;
	return 0;
}

/* Reads what is left without looking at it. */
static int native_skip(struct reader *r, struct sample *out, struct err *e)
{
	int rc = 0;

	if (r->entry.method == ZIP_STORED && r->entry.compressed_bytes != r->entry.bytes)
		return member_ends(&r->entry, e);
	out->data = r->in + r->in_pos;
	while (rc == 0 && r->compressed_left > 0) {
		rc = native_refill(r, e);
		out->data = r->in;
	}
	return rc;
}

static int read_native(struct reader *r, const struct file_spec *f, struct sample *out,
		       struct err *e)
{
	struct npy_array a;
	uint64_t data = 0;
	int rc = native_open(r, f, &data, e);

	if (rc == 0)
		rc = member_header(r, native_next, &r->entry, 0, f, data, &a, e);
	if (rc < 0)
		return rc;
	if (r->base.config.decode == DECODE_NONE)
		return native_skip(r, out, e);
	return member_data(r, native_next, &r->entry, f, &a, data_place(&r->entry, data, &a),
			   SIZE_MAX, out, e);
}

static int read_member(struct reader *r, const struct file_spec *f, uint64_t index,
		       struct sample *out, struct err *e)
{
	(void)index;
	return r->base.config.access == ACCESS_FRAMEWORK ? read_framework(r, f, out, e)
							 : read_native(r, f, out, e);
}

FORMAT_READ(npz, read_member)

const struct format_ops format_npz = {
	.is.name = "npz",
	.is.help =
		"Zip archives of NumPy arrays (np.savez): x, samples along the last axis, and y, "
		"labels.",
	.is.extension = "npz",
	.is.flags = FORMAT_DLIO_PLAIN | FORMAT_IN_OBJECTS | FORMAT_WHOLE_OBJECTS,
	.is.compressions = (const char *const[]){"zip", NULL},
	.is.dlio_reader = "NPZReader",
	.check = npz_check,
	.file_bytes = npz_file_bytes,
	.put = npz_put,
	.reader_bytes = npz_reader_bytes,
	.reader_init = npz_reader_init,
	.read = npz_read,
	.reader_close = reader_close_nothing,
	.extent = npz_extent,
};
