/* jpeg: one 8-bit gray image per file, whatever the number of samples.
 *
 * FRAMEWORK is np.asarray(Image.open(path)) of Pillow 9.4: 16 bytes to sniff, back to the start,
 * the markers up to the first scan, back to the start, then pieces of 64 KiB until libjpeg has all
 * of the image. All through a Python file object: with its buffer of 4 KiB that is 4096, 61440,
 * then 65536 each, and a read of nothing where the last piece is short. The whole image is decoded,
 * whichever sample is wanted.
 *
 * NATIVE is one read of the whole file, one per 2 MiB of larger ones.
 *
 * Our files look as Pillow saves noise by default: headers, tables, lengths of blocks. Their size
 * depends on their content. Verifying makes the image again. */
#include <inttypes.h>

#include "format/blob_stream.h"
#include "format/jpeg/jpeg.h"

static int jpeg_check(const struct file_spec *f, struct err *e)
{
	struct image_shape shape;

	return image_shape_of(f, "jpeg", JPEG_SIDE_MAX, &shape, e);
}

static uint64_t jpeg_file_bytes(const struct file_spec *f)
{
	(void)f;
	return UINT64_MAX;
}

/* Noise of quality 75 takes about 0.65 bytes a pixel, of whole blocks of 8 by 8. */
static uint64_t jpeg_file_bytes_estimate(const struct file_spec *f)
{
	struct image_shape s;

	if (image_shape_of(f, "jpeg", JPEG_SIDE_MAX, &s, NULL) < 0)
		return UINT64_MAX;
	return 512 + (uint64_t)((s.width + 7) & ~7u) * ((s.height + 7) & ~7u) * 7 / 10;
}

struct putting {
	struct blob_stream s;
	uint64_t bytes;
};

static int put(void *arg, const unsigned char *bytes, size_t n, struct err *e)
{
	struct putting *p = arg;

	p->bytes += n;
	return blob_stream_put(&p->s, bytes, n, e);
}

static int jpeg_write(const struct io *io, struct blob *b, const char *path,
		      const struct file_spec *f, const struct content_source *content,
		      void *scratch, size_t scratch_bytes, struct err *e)
{
	struct putting p = {.bytes = 0};
	struct image_shape shape;
	int rc = image_shape_of(f, "jpeg", JPEG_SIDE_MAX, &shape, e);

	blob_stream_write(&p.s, io, b, (char *)scratch + JPEG_NOISE_BYTES,
			  scratch_bytes - JPEG_NOISE_BYTES);
	if (rc == 0)
		rc = jpeg_noise(scratch, &shape, f->file_index, content, put, &p, e);
	return blob_stream_end(&p.s, path, rc, e);
}

/* The front of the scratch is for making images of any width, the rest is the stream's. */
#define REMAKE_SHARE ((JPEG_REMAKE_BYTES(JPEG_SIDE_MAX) + 4095) & ~(size_t)4095)

static int compare_file(struct putting *p, const struct file_spec *f,
			const struct content_source *content, void *scratch, struct err *e)
{
	unsigned char head[JPEG_REMAKE_HEAD];
	struct jpeg_remake m;
	struct image_shape shape;
	int rc = image_shape_of(f, "jpeg", JPEG_SIDE_MAX, &shape, e);
	ssize_t got;

	if (rc < 0)
		return rc;
	got = io_pread(p->s.io, IO_DATA, p->s.blob, head, sizeof(head), 0, e);
	if (got < 0)
		return (int)got;
	rc = jpeg_remake_init(&m, scratch, JPEG_SIDE_MAX, e);
	if (rc < 0)
		return rc;
	m.head = head;
	m.n = (size_t)got;
	rc = jpeg_remake(&m, &shape, f->file_index, content, put, p, e);
	jpeg_remake_release(&m);
	return rc;
}

static int jpeg_verify(const struct io *io, const char *path, const struct file_spec *f,
		       const struct content_source *content, void *scratch, size_t scratch_bytes,
		       struct err *e)
{
	struct putting p = {.bytes = 0};
	struct store_stat st;
	int rc = io_stat_path(io, path, &st, e);

	if (rc == 0)
		rc = blob_stream_compare(&p.s, io, path, st.bytes, (char *)scratch + REMAKE_SHARE,
					 scratch_bytes - REMAKE_SHARE, e);
	if (rc < 0)
		return rc;
	rc = compare_file(&p, f, content, scratch, e);
	rc = blob_stream_end(&p.s, path, rc, e);
	if (rc == 0 && p.bytes < st.bytes)
		rc = err_set(e, ERR_DATA,
			     "'%s': the file has %" PRIu64 " bytes and should have %" PRIu64, path,
			     st.bytes, p.bytes);
	return rc;
}

const struct format_ops format_jpeg = {
	.is.name = "jpeg",
	.is.help = "JPEG images, 8-bit gray, quality 75, one per file; libjpeg-turbo decodes.",
	.is.extension = "jpeg",
	.is.flags = FORMAT_IMAGE,
	.check = jpeg_check,
	.file_bytes = jpeg_file_bytes,
	.write = jpeg_write,
	.reader_bytes = jpeg_reader_bytes,
	.reader_init = jpeg_reader_init,
	.read = jpeg_read,
	.reader_close = jpeg_reader_close,
	.verify = jpeg_verify,
	.extent = image_extent,
	.file_bytes_estimate = jpeg_file_bytes_estimate,
};
