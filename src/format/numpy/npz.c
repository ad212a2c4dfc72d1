/* npz: a zip archive with the member x.npy (samples along the last axis) and y.npy (labels), as
 * np.savez makes it, or np.savez_compressed with the compression 'zip'. Layout, writing and
 * verifying; npz_read.c reads.
 *
 * A compressed member is deflate in stored blocks, which is what zlib makes of noise (for integers,
 * the same size to 1 in 10,000): so a file's size is a pure function and it is written as fast as a
 * plain one. zlib would find 10 % in random floats. */
#include "format/numpy/npz.h"

#include <string.h>

#include "format/blob_stream.h"

#define LOCAL_MAX (ZIP_LOCAL_BYTES + ZIP_NAME_MAX + 20)
#define CENTRAL_MAX (ZIP_CENTRAL_BYTES + ZIP_NAME_MAX + 32)
#define END_MAX 98
/* Where the checksum is in a local header. */
#define LOCAL_CRC 14
/* Symbols that zlib gathers before it writes a block of them, at its usual memory level. */
#define BLOCK_BYTES 16383u
#define BLOCK_HEADER 5u

const char *const npz_member_name[NPZ_MEMBERS] = {"x.npy", "y.npy"};

static const struct elem_type *label_elem(void)
{
	return elem_find("int64");
}

static int add(uint64_t *sum, uint64_t n, struct err *e)
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
static size_t block_of(uint64_t left)
{
	return left < BLOCK_BYTES ? (size_t)left : BLOCK_BYTES;
}

static uint64_t deflated_bytes(uint64_t n)
{
	uint64_t blocks = n / BLOCK_BYTES + (n % BLOCK_BYTES != 0), all;

	return __builtin_add_overflow(n, blocks * BLOCK_HEADER, &all) ? UINT64_MAX : all;
}

int npz_layout_of(const struct file_spec *f, struct npz_layout *out, struct err *e)
{
	struct file_spec labels = {.elem = label_elem(), .samples = f->samples};
	unsigned char bytes[CENTRAL_MAX];
	uint64_t at = 0, directory, directory_bytes = 0;
	int rc;

	memset(out, 0, sizeof(*out));
	rc = npy_array_of(f, &out->array[0], e);
	if (rc == 0)
		rc = npy_array_of(&labels, &out->array[1], e);
	for (int i = 0; rc == 0 && i < NPZ_MEMBERS; i++) {
		struct zip_entry *entry = &out->entry[i];

		memcpy(entry->name, npz_member_name[i], strlen(npz_member_name[i]) + 1);
		entry->method = is_zip(f) ? ZIP_DEFLATED : ZIP_STORED;
		entry->bytes = out->array[i].header_bytes + out->array[i].data_bytes;
		entry->compressed_bytes = is_zip(f) ? deflated_bytes(entry->bytes) : entry->bytes;
		entry->local_offset = at;
		rc = add(&at, zip_write_local(bytes, entry), e);
		if (rc == 0)
			rc = add(&at, entry->compressed_bytes, e);
	}
	directory = at;
	for (int i = 0; rc == 0 && i < NPZ_MEMBERS; i++)
		directory_bytes += zip_write_central(bytes, &out->entry[i]);
	if (rc == 0)
		rc = add(&at,
			 directory_bytes +
				 zip_write_end(bytes, NPZ_MEMBERS, directory, directory_bytes),
			 e);
	out->file_bytes = at;
	return rc;
}

int npz_check(const struct file_spec *f, struct err *e)
{
	struct npz_layout l;

	if (strcmp(f->compression, "none") != 0 && !is_zip(f))
		return err_set(e, ERR_USAGE,
			       "npz files are zip archives: dataset.compression is '%s', only "
			       "'none' and 'zip' are allowed",
			       f->compression);
	return npz_layout_of(f, &l, e);
}

uint64_t npz_file_bytes(const struct file_spec *f)
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
	return blob_stream_payload_from(s, m->content, m->file_index, from - m->header_bytes, n, e);
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
		size_t n = block_of(bytes - done);

		rc = put_block_header(s, n, done + n == bytes, e);
		if (rc == 0)
			rc = put_range(s, m, done, n, e);
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

static int put_file(struct blob_stream *s, const struct file_spec *f,
		    const struct content_source *content, struct err *e)
{
	unsigned char bytes[CENTRAL_MAX];
	struct npz_layout l;
	uint64_t directory, directory_bytes = 0;
	int rc = npz_layout_of(f, &l, e);

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
	return rc;
}

int npz_write(const struct io *io, struct blob *b, const char *path, const struct file_spec *f,
	      const struct content_source *content, void *scratch, size_t scratch_bytes,
	      struct err *e)
{
	struct blob_stream s;

	blob_stream_write(&s, io, b, scratch, scratch_bytes);
	return blob_stream_end(&s, path, put_file(&s, f, content, e), e);
}

int npz_verify(const struct io *io, const char *path, const struct file_spec *f,
	       const struct content_source *content, void *scratch, size_t scratch_bytes,
	       struct err *e)
{
	struct blob_stream s;
	int rc = blob_stream_compare(&s, io, path, npz_file_bytes(f), scratch, scratch_bytes, e);

	return rc < 0 ? rc : blob_stream_end(&s, path, put_file(&s, f, content, e), e);
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

const struct format_ops format_npz = {
	.is.name = "npz",
	.is.help =
		"Zip archives of NumPy arrays (np.savez): x, samples along the last axis, and y, "
		"labels.",
	.is.extension = "npz",
	.check = npz_check,
	.file_bytes = npz_file_bytes,
	.write = npz_write,
	.reader_bytes = npz_reader_bytes,
	.reader_init = npz_reader_init,
	.read = npz_read,
	.reader_close = npz_reader_close,
	.verify = npz_verify,
	.extent = npz_extent,
};
