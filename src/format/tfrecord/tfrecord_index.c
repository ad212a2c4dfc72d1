/* DALI's index of a TFRecord file. */
#include "format/tfrecord/tfrecord_index.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "format/blob_stream.h"
#include "format/tfrecord/tfrecord.h"

/* The component that ends at `end`: its length, 0 when there is none. */
static size_t component(const char *path, size_t end)
{
	size_t at = end;

	while (at > 0 && path[at - 1] != '/')
		at--;
	return end - at;
}

static bool is_kind(const char *name, size_t n)
{
	return n == 5 && (memcmp(name, "train", 5) == 0 || memcmp(name, "valid", 5) == 0);
}

/* <data>/train/x and <data>/train/<subfolder>/x have <data>/index/train/x.idx. A file that lies in
 * neither has its index beside it. */
int tfrecord_index_path(const char *path, uint32_t which, char *out, size_t out_size)
{
	const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
	size_t end = slash ? (size_t)(slash - path) : 0;
	int n = -1;

	(void)which;
	for (int level = 0; level < 2 && end > 0; level++) {
		size_t len = component(path, end), at = end - len;

		if (is_kind(path + at, len)) {
			n = snprintf(out, out_size, "%.*sindex/%.*s/%s.idx", (int)at, path,
				     (int)len, path + at, name);
			break;
		}
		end = at > 0 ? at - 1 : 0;
	}
	if (n < 0)
		n = snprintf(out, out_size, "%s.idx", path);
	return n < 0 || (size_t)n >= out_size ? -ENAMETOOLONG : 0;
}

static uint64_t digits(uint64_t v)
{
	uint64_t n = 1;

	for (; v >= 10; v /= 10)
		n++;
	return n;
}

uint64_t tfrecord_index_bytes(const struct file_spec *f, uint32_t which)
{
	struct tfrecord_layout l;
	uint64_t sum, at = 0, ten = 10;

	(void)which;
	if (tfrecord_layout_of(f, &l, NULL) < 0)
		return UINT64_MAX;
	sum = f->samples * (digits(l.record_bytes) + 2);
	/* offsets below 10, below 100, ...: record_bytes is at least 16, so the quotient fits */
	for (uint64_t n = 1; at < f->samples; n++) {
		uint64_t end = (ten - 1) / l.record_bytes + 1;

		if (n == 20 || end > f->samples)
			end = f->samples;
		sum += (end - at) * n;
		at = end;
		ten = n < 19 ? ten * 10 : UINT64_MAX;
	}
	return sum;
}

static int put_lines(struct blob_stream *s, const struct file_spec *f, struct err *e)
{
	struct tfrecord_layout l;
	char line[48];
	int rc = tfrecord_layout_of(f, &l, e);

	for (uint64_t i = 0; i < f->samples && rc == 0; i++) {
		int n = snprintf(line, sizeof(line), "%" PRIu64 " %" PRIu64 "\n",
				 i * l.record_bytes, l.record_bytes);

		rc = blob_stream_put(s, line, (size_t)n, e);
	}
	return rc;
}

int tfrecord_index_write(const struct io *io, struct blob *b, const char *path,
			 const struct file_spec *f, uint32_t which, void *scratch,
			 size_t scratch_bytes, struct err *e)
{
	struct blob_stream s;

	(void)which;
	blob_stream_write(&s, io, b, scratch, scratch_bytes);
	return blob_stream_end(&s, path, put_lines(&s, f, e), e);
}

int tfrecord_index_verify(const struct io *io, const char *path, const struct file_spec *f,
			  uint32_t which, void *scratch, size_t scratch_bytes, struct err *e)
{
	struct blob_stream s;
	int rc = blob_stream_compare(&s, io, path, tfrecord_index_bytes(f, which), scratch,
				     scratch_bytes, e);

	return rc < 0 ? rc : blob_stream_end(&s, path, put_lines(&s, f, e), e);
}
