/* tfrecord: TensorFlow's records, each a tf.train.Example with the sample's bytes and their number.
 *
 * A record is its length (8 bytes), the masked CRC-32C of those, the message, and the masked
 * CRC-32C of that. All of a file's records have one size, so record i begins at i times it. */
#include "format/tfrecord/tfrecord.h"

#include <endian.h>
#include <inttypes.h>
#include <string.h>

#include "codec/crc32c.h"
#include "format/blob_stream.h"
#include "format/tfrecord/tfrecord_index.h"

int tfrecord_layout_of(const struct file_spec *f, struct tfrecord_layout *out, struct err *e)
{
	uint64_t sample = f->elem->bytes;
	bool fits = true;

	for (uint32_t i = 0; i < f->ndims; i++)
		fits = !__builtin_mul_overflow(sample, f->dims[i], &sample) && fits;
	if (!fits || !example_layout_of(sample, &out->example))
		return err_set(e, ERR_USAGE,
			       "a sample of these dimensions does not fit into a TFRecord record: "
			       "its Example message must be smaller than 2 GiB. Make "
			       "dataset.record_length_bytes or record_dims smaller, or choose "
			       "another dataset.format");
	out->record_bytes = TFRECORD_HEAD_BYTES + out->example.bytes + TFRECORD_TAIL_BYTES;
	if (__builtin_mul_overflow(out->record_bytes, f->samples, &out->file_bytes) ||
	    out->file_bytes > INT64_MAX)
		return err_set(e, ERR_USAGE,
			       "%" PRIu64 " records of %" PRIu64 " bytes are more than a file can "
			       "have (2^63 - 1 bytes)",
			       f->samples, out->record_bytes);
	return 0;
}

static int tfrecord_check(const struct file_spec *f, struct err *e)
{
	struct tfrecord_layout l;

	if (strcmp(f->compression, "none") != 0)
		return err_set(e, ERR_USAGE,
			       "tfrecord files are not compressed: dataset.compression is '%s', "
			       "only 'none' is allowed",
			       f->compression);
	return tfrecord_layout_of(f, &l, e);
}

static uint64_t tfrecord_file_bytes(const struct file_spec *f)
{
	struct tfrecord_layout l = {0};

	return tfrecord_layout_of(f, &l, NULL) < 0 ? UINT64_MAX : l.file_bytes;
}

static int put_checksum(struct blob_stream *s, uint32_t crc, struct err *e)
{
	uint32_t le = htole32(crc32c_masked(crc));

	return blob_stream_put(s, &le, sizeof(le), e);
}

static int put_record(struct blob_stream *s, const struct file_spec *f,
		      const struct tfrecord_layout *l, const struct content_source *content,
		      uint64_t index, struct err *e)
{
	const struct example_layout *x = &l->example;
	uint64_t length = htole64(x->bytes);
	int rc = blob_stream_put(s, &length, sizeof(length), e);

	if (rc == 0)
		rc = put_checksum(s, crc32c_update(0, &length, sizeof(length)), e);
	blob_stream_crc32c_begin(s);
	if (rc == 0)
		rc = blob_stream_put(s, x->head, x->head_bytes, e);
	if (rc == 0)
		rc = blob_stream_payload_from(s, content, f->file_index, index * x->image_bytes,
					      x->image_bytes, e);
	if (rc == 0)
		rc = blob_stream_put(s, x->tail, x->tail_bytes, e);
	if (rc == 0)
		rc = put_checksum(s, blob_stream_crc_end(s), e);
	return rc;
}

static int put_file(struct blob_stream *s, const struct file_spec *f,
		    const struct content_source *content, struct err *e)
{
	struct tfrecord_layout l;
	int rc = tfrecord_layout_of(f, &l, e);

	for (uint64_t i = 0; i < f->samples && rc == 0; i++)
		rc = put_record(s, f, &l, content, i, e);
	return rc;
}

static int tfrecord_write(const struct io *io, struct blob *b, const char *path,
			  const struct file_spec *f, const struct content_source *content,
			  void *scratch, size_t scratch_bytes, struct err *e)
{
	struct blob_stream s;

	blob_stream_write(&s, io, b, scratch, scratch_bytes);
	return blob_stream_end(&s, path, put_file(&s, f, content, e), e);
}

static int tfrecord_verify(const struct io *io, const char *path, const struct file_spec *f,
			   const struct content_source *content, void *scratch,
			   size_t scratch_bytes, struct err *e)
{
	struct blob_stream s;
	int rc = blob_stream_compare(&s, io, path, tfrecord_file_bytes(f), scratch, scratch_bytes,
				     e);

	return rc < 0 ? rc : blob_stream_end(&s, path, put_file(&s, f, content, e), e);
}

/* read_type memory loads all records at once. */
static int tfrecord_extent(const struct reader_config *c, const struct file_spec *f, uint64_t index,
			   struct extent *out, struct err *e)
{
	struct tfrecord_layout l;
	int rc = tfrecord_layout_of(f, &l, e);

	if (rc < 0)
		return rc;
	*out = (struct extent){.offset = index * l.record_bytes, .bytes = l.record_bytes};
	if (c->keep_open)
		*out = (struct extent){.bytes = l.file_bytes, .whole = true};
	return 0;
}

const struct format_ops format_tfrecord = {
	.is.name = "tfrecord",
	.is.help =
		"TensorFlow's records, an Example message each, with DALI's index beside the file.",
	.is.extension = "tfrecord",
	.is.flags = FORMAT_STREAM,
	.check = tfrecord_check,
	.file_bytes = tfrecord_file_bytes,
	.write = tfrecord_write,
	.reader_bytes = tfrecord_reader_bytes,
	.reader_init = tfrecord_reader_init,
	.read = tfrecord_read,
	.reader_close = tfrecord_reader_close,
	.verify = tfrecord_verify,
	.extent = tfrecord_extent,
	.sidecars = 1,
	.sidecar_path = tfrecord_index_path,
	.sidecar_bytes = tfrecord_index_bytes,
	.sidecar_write = tfrecord_index_write,
	.sidecar_verify = tfrecord_index_verify,
};
