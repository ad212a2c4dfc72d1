/* indexed_binary: samples back to back, and beside each file two others with the offset
 * (<file>.off.idx) and the size (<file>.sz.idx) of every sample, 64-bit numbers in the machine's
 * order. All samples of a file have one size, so both are pure functions of the spec and nothing is
 * kept per sample, in memory or anywhere.
 *
 * DLIO counts offsets from the beginning of each chunk that it generates (2 GiB by default) instead
 * of the file's; written here they are the file's. */
#include "format/indexed/indexed.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "format/blob_stream.h"

static const char *const suffix[INDEXED_COMPANIONS] = {".off.idx", ".sz.idx"};

#define ENTRIES_AT_ONCE 256

int indexed_check(const struct file_spec *f, struct err *e)
{
	uint64_t bytes = f->elem->bytes, index;

	if (strcmp(f->compression, "none") != 0)
		return err_set(e, ERR_USAGE,
			       "indexed binary files cannot be compressed: dataset.compression is "
			       "'%s', only 'none' is allowed",
			       f->compression);
	for (uint32_t i = 0; i < f->ndims; i++)
		if (__builtin_mul_overflow(bytes, f->dims[i], &bytes))
			bytes = UINT64_MAX;
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

int indexed_write(const struct io *io, struct blob *b, const char *path, const struct file_spec *f,
		  const struct content_source *content, void *scratch, size_t scratch_bytes,
		  struct err *e)
{
	struct blob_stream s;

	blob_stream_write(&s, io, b, scratch, scratch_bytes);
	return blob_stream_end(
		&s, path, blob_stream_payload(&s, content, f->file_index, indexed_file_bytes(f), e),
		e);
}

int indexed_verify(const struct io *io, const char *path, const struct file_spec *f,
		   const struct content_source *content, void *scratch, size_t scratch_bytes,
		   struct err *e)
{
	uint64_t bytes = indexed_file_bytes(f);
	struct blob_stream s;
	int rc = blob_stream_compare(&s, io, path, bytes, scratch, scratch_bytes, e);

	if (rc < 0)
		return rc;
	return blob_stream_end(&s, path, blob_stream_payload(&s, content, f->file_index, bytes, e),
			       e);
}

int indexed_sidecar_path(const char *path, uint32_t which, char *out, size_t out_size)
{
	int n = snprintf(out, out_size, "%s%s", path, suffix[which]);

	return n < 0 || (size_t)n >= out_size ? -ENAMETOOLONG : 0;
}

int indexed_path(const char *path, uint32_t which, char out[INDEXED_PATH_MAX], struct err *e)
{
	int rc = indexed_sidecar_path(path, which, out, INDEXED_PATH_MAX);

	return rc < 0 ? err_set(e, rc, "the path of the index of '%s' is too long", path) : 0;
}

uint64_t indexed_sidecar_bytes(const struct file_spec *f, uint32_t which)
{
	(void)which;
	return f->samples * INDEXED_ENTRY;
}

static int put_index(struct blob_stream *s, const struct file_spec *f, uint32_t which,
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

int indexed_sidecar_write(const struct io *io, struct blob *b, const char *path,
			  const struct file_spec *f, uint32_t which, void *scratch,
			  size_t scratch_bytes, struct err *e)
{
	struct blob_stream s;

	blob_stream_write(&s, io, b, scratch, scratch_bytes);
	return blob_stream_end(&s, path, put_index(&s, f, which, e), e);
}

int indexed_sidecar_verify(const struct io *io, const char *path, const struct file_spec *f,
			   uint32_t which, void *scratch, size_t scratch_bytes, struct err *e)
{
	struct blob_stream s;
	int rc = blob_stream_compare(&s, io, path, indexed_sidecar_bytes(f, which), scratch,
				     scratch_bytes, e);

	return rc < 0 ? rc : blob_stream_end(&s, path, put_index(&s, f, which, e), e);
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

const struct format_ops format_indexed_binary = {
	.is.name = "indexed_binary",
	.is.help = "Samples back to back, with two index files of offsets and sizes (Megatron's "
		   "datasets in DLIO).",
	.is.extension = "indexed_binary",
	.check = indexed_check,
	.file_bytes = indexed_file_bytes,
	.write = indexed_write,
	.reader_bytes = indexed_reader_bytes,
	.reader_init = indexed_reader_init,
	.read = indexed_read,
	.reader_close = indexed_reader_close,
	.verify = indexed_verify,
	.extent = indexed_extent,
	.sidecars = INDEXED_COMPANIONS,
	.sidecar_path = indexed_sidecar_path,
	.sidecar_bytes = indexed_sidecar_bytes,
	.sidecar_write = indexed_sidecar_write,
	.sidecar_verify = indexed_sidecar_verify,
};
