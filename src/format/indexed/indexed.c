/* indexed_binary: samples back to back, and beside each file two others with the offset
 * (<file>.off.idx) and the size (<file>.sz.idx) of every sample, 64-bit numbers in the machine's
 * order. All samples of a file have one size, so both are pure functions of the spec and nothing is
 * kept per sample, in memory or anywhere.
 *
 * DLIO counts offsets from the beginning of each chunk that it generates (2 GiB by default) instead
 * of the file's; written here they are the file's. */
#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "format/blob_stream.h"
#include "format/indexed/indexed.h"
#include "format/pyfile.h"

/* ---- the files ---- */

static const char *const suffix[INDEXED_COMPANIONS] = {".off.idx", ".sz.idx"};

#define ENTRIES_AT_ONCE 256

int indexed_check(const struct file_spec *f, struct err *e)
{
	uint64_t bytes = file_spec_sample_bytes_checked(f), index;

	if (__builtin_mul_overflow(bytes, f->samples, &bytes) || bytes > INT64_MAX ||
	    __builtin_mul_overflow(f->samples, INDEXED_ENTRY, &index) || index > INT64_MAX)
		return err_set(e, ERR_USAGE,
			       "a file of these samples is larger than a file can be");
	return 0;
}

uint64_t indexed_file_bytes(const struct file_spec *f)
{
	return file_spec_sample_bytes(f) * f->samples;
}

int indexed_put(struct blob_stream *s, const struct file_spec *f,
		const struct content_source *content, void *scratch, struct err *e)
{
	(void)scratch;
	return blob_stream_payload(s, content, f->file_index, 0, indexed_file_bytes(f), e);
}

int indexed_sidecar_path(const char *path, uint32_t which, char *out, size_t out_size)
{
	int n = snprintf(out, out_size, "%s%s", path, suffix[which]);

	return n < 0 || (size_t)n >= out_size ? -ENAMETOOLONG : 0;
}

int indexed_path(const char *path, uint32_t which, char out[INDEXED_PATH_MAX], struct err *e)
{
	int rc = indexed_sidecar_path(path, which, out, INDEXED_PATH_MAX);

	if (rc == 0)
		return 0;
	return err_named(err_set(e, rc, "the path of the index of '%s' is too long", path), e);
}

uint64_t indexed_sidecar_bytes(const struct file_spec *f, uint32_t which)
{
	(void)which;
	return f->samples * INDEXED_ENTRY;
}

int indexed_sidecar_put(struct blob_stream *s, const struct file_spec *f, uint32_t which,
			struct err *e)
{
	uint64_t sample = file_spec_sample_bytes(f), entry[ENTRIES_AT_ONCE];
	int rc = 0;

	for (uint64_t i = 0; rc == 0 && i < f->samples;) {
		size_t n = 0;

		for (; n < ENTRIES_AT_ONCE && i < f->samples; n++, i++)
			entry[n] = which == INDEXED_OFFSETS ? i * sample : sample;
		rc = blob_stream_put(s, entry, n * INDEXED_ENTRY, e);
	}
	return rc;
}

int indexed_extent(const struct reader_config *c, const struct file_spec *f, uint64_t index,
		   struct extent *out, struct err *e)
{
	uint64_t bytes = file_spec_sample_bytes(f);

	(void)c;
	(void)e;
	*out = (struct extent){.offset = index * bytes, .bytes = bytes};
	return 0;
}

/* ---- reading the companions ---- */

/* Reading the index files of indexed binary, through a bounded piece of memory.
 *
 * The library reads each companion into one array: open, fstat, one read, close. So does this,
 * except that a companion of more than INDEX_PIECE_MAX is read in pieces of that size, because
 * nobody needs the array: every entry is compared with what the spec says and forgotten. */

#define INDEX_PIECE_MAX (8u << 20)

/* Reads the companions of files as the library does, and checks them without keeping them. */
struct indexed_index {
	const struct io *io;
	struct blob *blob;
	const struct reader_config *config;
	unsigned char *buffer; /* Python's */
	size_t buffer_bytes;
	unsigned char *piece;
	size_t piece_bytes; /* a multiple of INDEXED_ENTRY */
	/* DLIO's chunk of generation in samples, once an index has shown one; 0: none has. */
	uint64_t chunk;
	/* of the companion being read */
	uint64_t next, place; /* entry, and its number in its chunk */
};

bool indexed_offset_fits(uint64_t offset, uint64_t index, uint64_t sample_bytes)
{
	uint64_t right = index * sample_bytes;

	return offset == right || (offset < right && offset % sample_bytes == 0);
}

int indexed_bad_entry(uint32_t which, uint64_t index, uint64_t has, uint64_t wanted, struct err *e)
{
	return err_set(e, ERR_DATA,
		       "entry %" PRIu64 " of the index has the %s %" PRIu64 " instead of %" PRIu64
		       ": it is damaged, or the file was generated with samples of another size",
		       index, which == INDEXED_OFFSETS ? "offset" : "size", has, wanted);
}

int indexed_cut_short(uint64_t index, uint64_t offset, uint64_t sample_bytes, uint64_t file_bytes,
		      struct err *e)
{
	return err_set(e, ERR_DATA,
		       "the file ends at %" PRIu64 " and sample %" PRIu64 " is stored from %" PRIu64
		       " to %" PRIu64 ": it is truncated or belongs to another dataset",
		       file_bytes, index, offset, offset + sample_bytes);
}

/* Bytes that indexed_index's `piece` should have. */
static uint64_t indexed_piece_bytes(const struct reader_config *c)
{
	/* never less than Python's buffer: what that holds is not asked for again */
	uint64_t most = reader_buffer_bytes(c) > INDEX_PIECE_MAX
				? (reader_buffer_bytes(c) + 4095) & ~(uint64_t)4095
				: INDEX_PIECE_MAX;
	uint64_t whole;

	if (__builtin_mul_overflow(c->samples_per_file, INDEXED_ENTRY, &whole) || whole > most)
		return most;
	return whole < 4096 ? 4096 : whole;
}

/* DLIO's offsets begin at 0 again with every chunk of generation, which is of the same number of
 * samples in all files of a dataset. */
static bool begins_chunk(struct indexed_index *x, uint64_t offset, uint64_t sample_bytes)
{
	if (x->chunk || offset != 0 || x->next == 0 || sample_bytes == 0)
		return false;
	x->chunk = x->next;
	x->place = 0;
	return true;
}

static int check_offset(struct indexed_index *x, uint64_t offset, uint64_t sample_bytes,
			struct err *e)
{
	uint64_t want;

	if (x->chunk && x->place == x->chunk)
		x->place = 0;
	want = x->place * sample_bytes;
	if (offset != want && !begins_chunk(x, offset, sample_bytes))
		return indexed_bad_entry(INDEXED_OFFSETS, x->next, offset, want, e);
	x->place++;
	return 0;
}

static int check_piece(struct indexed_index *x, uint32_t which, uint64_t sample_bytes, size_t n,
		       struct err *e)
{
	int rc = 0;

	assert(n % INDEXED_ENTRY == 0 && n <= x->piece_bytes);
	for (size_t i = 0; rc == 0 && i < n; i += INDEXED_ENTRY, x->next++) {
		uint64_t entry;

		memcpy(&entry, x->piece + i, sizeof(entry));
		if (which == INDEXED_OFFSETS)
			rc = check_offset(x, entry, sample_bytes, e);
		else if (entry != sample_bytes)
			rc = indexed_bad_entry(which, x->next, entry, sample_bytes, e);
	}
	return rc;
}

/* readinto of all entries: one read of them, or of the buffer where that is larger. */
static int read_entries(struct indexed_index *x, uint32_t which, const struct file_spec *f,
			struct err *e)
{
	uint64_t bytes = indexed_sidecar_bytes(f, which), done = 0;
	uint64_t sample = file_spec_sample_bytes(f);
	struct store_stat st;
	struct pybuffer py;
	size_t buffer = 0;
	int rc = io_stat_blob(x->io, x->blob, &st, e);

	if (rc == 0)
		rc = reader_buffer_of(x->config, st.block_bytes, x->buffer_bytes, &buffer, e);
	if (rc < 0)
		return rc;
	pybuffer_start(&py, x->io, x->blob, x->config->python, st.bytes, x->buffer, buffer);
	x->next = x->place = 0;
	while (done < bytes) {
		size_t n = bytes - done < x->piece_bytes ? (size_t)(bytes - done) : x->piece_bytes;
		ssize_t got;

		/* later pieces must not be filled up to the buffer's size */
		if (done == 0)
			got = pybuffer_readinto(&py, x->piece, n, e);
		else
			got = io_pread(x->io, IO_META, x->blob, x->piece, n, done, e);
		if (got < 0)
			return (int)got;
		if ((size_t)got < n)
			return err_set(e, ERR_DATA,
				       "the index ends at %" PRIu64 " and %" PRIu64
				       " samples need %" PRIu64
				       " bytes: it is truncated or belongs to another dataset",
				       done + (uint64_t)got, f->samples, bytes);
		rc = check_piece(x, which, sample, n, e);
		if (rc < 0)
			return rc;
		done += n;
	}
	return 0;
}

/* Reads both companions of the blob at `path`. */
static int indexed_index_read(struct indexed_index *x, const char *path, const struct file_spec *f,
			      struct err *e)
{
	char companion[INDEXED_PATH_MAX];
	int rc = 0;

	for (uint32_t which = 0; rc == 0 && which < INDEXED_COMPANIONS; which++) {
		rc = indexed_path(path, which, companion, e);
		if (rc == 0)
			rc = io_open(x->io, companion, STORE_READ, x->blob, e);
		if (rc < 0)
			return rc;
		rc = reader_blob_close(x->io, x->blob, companion, read_entries(x, which, f, e), e);
	}
	return rc;
}

/* ---- reading samples ---- */

/* Reading indexed binary.
 *
 * FRAMEWORK is DLIO's reader: both companions of a file whole, before its first sample (DLIO reads
 * those of all files when a worker starts, in the order of its shuffled map; here that is
 * load_index, of compat.dlio, and otherwise a file's are read when the worker first needs it). Then
 * for each sample open, fstat, seek, and readinto of the sample: one read of it, or of Python's
 * buffer where that is larger. With read_type memory the file stays open, and its buffer with it,
 * so that small neighbours may cost no read.
 *
 * NATIVE computes where a sample lies and needs no index: one read of the sample, at most 2 MiB at
 * a time. */

/* Files kept open by a reader; further ones are opened anew, the longest unused giving way. DLIO
 * keeps all that a worker, which is a process there, may have open. */
#define KEPT_OPEN 16u
#define KEPT_OPEN_DLIO 64u
/* What the buffers of kept files may take together. */
#define KEPT_BUFFERS (16u << 20)

struct data_file {
	struct blob *blob;
	struct pybuffer py;
	unsigned char *buffer;
	uint64_t index;  /* number of the file */
	uint64_t serial; /* of its last use; 0: closed */
};

struct reader {
	struct reader_base base;
	struct indexed_index index;
	struct data_file *file;
	uint32_t files;
	uint64_t serial;
	size_t buffer_bytes;
	unsigned char *data; /* framework: a sample; native: one piece */
	size_t data_bytes;
};

static uint32_t kept_files(const struct reader_config *c, size_t buffer)
{
	uint64_t n = c->dlio ? KEPT_OPEN_DLIO : KEPT_OPEN;

	if (buffer > KEPT_BUFFERS / n)
		n = KEPT_BUFFERS / buffer;
	if (n > c->files)
		n = c->files;
	return c->keep_open && n > 1 ? (uint32_t)n : 1;
}

static void indexed_lay_out(struct carver *c, const struct reader_config *config,
			    const struct store *s, struct reader *r)
{
	bool framework = config->access == ACCESS_FRAMEWORK;
	uint64_t data = config->max_sample_bytes;

	r->buffer_bytes = framework ? reader_buffer_bytes(config) : 0;
	r->files = kept_files(config, r->buffer_bytes);
	r->file = carve(c, r->files * sizeof(*r->file));
	for (uint32_t i = 0; i < r->files; i++) {
		struct blob *blob = carve(c, store_blob_bytes(s));
		unsigned char *buffer = carve(c, r->buffer_bytes);

		if (r->file) {
			memset(&r->file[i], 0, sizeof(r->file[i]));
			r->file[i].blob = blob;
			r->file[i].buffer = buffer;
		}
	}
	if (framework) {
		r->base.loaded.files = config->files;
		r->base.loaded.bits = carve(c, config->files / 8 + 1);
		r->index.blob = carve(c, store_blob_bytes(s));
		r->index.buffer_bytes = r->buffer_bytes;
		r->index.buffer = carve(c, r->buffer_bytes);
		r->index.piece_bytes = (size_t)indexed_piece_bytes(config);
		r->index.piece = carve(c, r->index.piece_bytes);
	} else if (data > NATIVE_PIECE_MAX) {
		data = NATIVE_PIECE_MAX;
	}
	if (config->decode == DECODE_VERIFY)
		r->base.expect.expect = carve(c, EXPECT_BYTES);
	r->data_bytes = (size_t)data;
	r->data = carve(c, data);
}

static int indexed_start(struct reader *r, struct err *e)
{
	(void)e;
	r->index.io = r->base.io;
	r->index.config = &r->base.config;
	return 0;
}

FORMAT_READER(indexed, indexed_lay_out, indexed_start)

static int close_file(struct reader *r, struct data_file *d, struct err *e)
{
	d->serial = 0;
	return io_close(r->base.io, d->blob, e);
}

/* The file's place, or a free one, or the longest unused. */
static struct data_file *find_place(struct reader *r, uint64_t file_index)
{
	struct data_file *oldest = &r->file[0];

	for (uint32_t i = 0; i < r->files; i++) {
		struct data_file *d = &r->file[i];

		if (d->serial && d->index == file_index)
			return d;
		if (d->serial < oldest->serial)
			oldest = d;
	}
	return oldest;
}

/* open(path, "rb") */
static int begin_python(struct reader *r, struct data_file *d, struct err *e)
{
	struct store_stat st;
	size_t buffer = 0;
	int rc = io_stat_blob(r->base.io, d->blob, &st, e);

	if (rc == 0)
		rc = reader_buffer_of(&r->base.config, st.block_bytes, r->buffer_bytes, &buffer, e);
	if (rc < 0)
		return rc;
	pybuffer_start(&d->py, r->base.io, d->blob, r->base.config.python, st.bytes, d->buffer,
		       buffer);
	d->py.kind = IO_DATA;
	return 0;
}

/* Opens the file unless it is. On failure it is closed. */
static int opened_file(struct reader *r, const char *path, const struct file_spec *f,
		       struct data_file **out, struct err *e)
{
	struct data_file *d = find_place(r, f->file_index);
	int rc = 0;

	if (!d->serial || d->index != f->file_index) {
		if (d->serial)
			rc = close_file(r, d, e);
		if (rc == 0)
			rc = io_open(r->base.io, path, STORE_READ, d->blob, e);
		if (rc < 0)
			return rc;
		d->index = f->file_index;
		if (r->base.config.access == ACCESS_FRAMEWORK)
			rc = begin_python(r, d, e);
		if (rc < 0)
			return reader_blob_close(r->base.io, d->blob, path, rc, e);
	}
	d->serial = ++r->serial;
	*out = d;
	return 0;
}

static int read_framework(struct reader *r, struct data_file *d, const struct file_spec *f,
			  uint64_t index, uint64_t offset, struct sample *out, struct err *e)
{
	size_t n = (size_t)file_spec_sample_bytes(f);
	ssize_t got;

	if (n > r->data_bytes)
		return err_set(e, ERR_USAGE, "the sample is larger than the reader's buffer");
	pybuffer_seek(&d->py, offset);
	got = pybuffer_readinto(&d->py, r->data, n, e);
	if (got < 0)
		return (int)got;
	if ((size_t)got < n)
		return indexed_cut_short(index, offset, n, offset + (uint64_t)got, e);
	if (n)
		out->data = r->data;
	return expectation_check(&r->base.expect, f->file_index, offset, 0, r->data, n, e);
}

static int read_native(struct reader *r, struct data_file *d, const struct file_spec *f,
		       uint64_t index, uint64_t offset, struct sample *out, struct err *e)
{
	uint64_t done = 0;
	int rc = 0;

	while (rc == 0 && done < file_spec_sample_bytes(f)) {
		uint64_t left = file_spec_sample_bytes(f) - done;
		size_t n = left < r->data_bytes ? (size_t)left : r->data_bytes;
		ssize_t got = io_pread(r->base.io, IO_DATA, d->blob, r->data, n, offset + done, e);

		if (got < 0)
			return (int)got;
		if ((size_t)got < n)
			return indexed_cut_short(index, offset, file_spec_sample_bytes(f),
						 offset + done + (uint64_t)got, e);
		rc = expectation_check(&r->base.expect, f->file_index, offset + done, 0, r->data, n,
				       e);
		out->data = r->data;
		done += n;
	}
	return rc;
}

/* Where the sample is read: under compat.dlio where DLIO's index says, which counts from the
 * beginning of a chunk of generation. */
static uint64_t sample_place(const struct reader *r, uint64_t index, uint64_t sample_bytes)
{
	if (r->base.config.dlio && r->index.chunk)
		index %= r->index.chunk;
	return index * sample_bytes;
}

static int indexed_load_index(struct reader *r, const char *path, const struct file_spec *f,
			      struct err *e)
{
	int rc = 0;

	if (!file_marks_get(&r->base.loaded, f->file_index)) {
		rc = indexed_index_read(&r->index, path, f, e);
		if (rc == 0)
			file_marks_set(&r->base.loaded, f->file_index);
	}
	return rc;
}

static int indexed_read(struct reader *r, const char *path, const struct file_spec *f,
			uint64_t index, struct sample *out, struct err *e)
{
	bool framework = r->base.config.access == ACCESS_FRAMEWORK;
	struct data_file *d = NULL;
	uint64_t offset;
	int closed, rc = reader_sample_begin(f, index, path, out, e);

	if (rc == 0 && framework)
		rc = indexed_load_index(r, path, f, e);
	if (rc == 0)
		rc = opened_file(r, path, f, &d, e);
	if (rc < 0)
		return rc;
	offset = sample_place(r, index, file_spec_sample_bytes(f));
	rc = framework ? read_framework(r, d, f, index, offset, out, e)
		       : read_native(r, d, f, index, offset, out, e);
	if (rc < 0 || !r->base.config.keep_open) {
		closed = close_file(r, d, rc == 0 ? e : NULL);
		rc = rc == 0 ? closed : rc;
	}
	if (rc < 0)
		return err_in_path(rc, path, e);
	reader_sample_done(f, out);
	return 0;
}

static int indexed_reader_close(struct reader *r, struct err *e)
{
	int rc = 0;

	for (uint32_t i = 0; i < r->files; i++) {
		int closed = r->file[i].serial ? close_file(r, &r->file[i], rc == 0 ? e : NULL) : 0;

		rc = rc == 0 ? closed : rc;
	}
	return rc;
}

const struct format_ops format_indexed_binary = {
	.is.name = "indexed_binary",
	.is.help = "Samples back to back, with two index files of offsets and sizes (Megatron's "
		   "datasets in DLIO).",
	.is.extension = "indexed_binary",
	.is.dlio_reader = "IndexedBinaryReader",
	.is.kept_open = KEPT_OPEN,
	INDEXED_FILE_OPS,
	.reader_bytes = indexed_reader_bytes,
	.reader_init = indexed_reader_init,
	.read = indexed_read,
	.load_index = indexed_load_index,
	.reader_close = indexed_reader_close,
};
