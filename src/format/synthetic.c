/* The synthetic format: a file that holds its own number in decimal. Reading a sample touches no
 * storage, which measures everything but the storage. */
#include <inttypes.h>
#include <stdio.h>

#include "format/blob_stream.h"
#include "format/reader.h"

#define TEXT_MAX 24

struct reader {
	struct reader_config config;
};

static size_t text_of(const struct file_spec *f, char text[TEXT_MAX])
{
	return (size_t)snprintf(text, TEXT_MAX, "%" PRIu64, f->file_index);
}

static int synthetic_check(const struct file_spec *f, struct err *e)
{
	uint64_t bytes = f->elem->bytes;

	for (uint32_t i = 0; i < f->ndims; i++) {
		if (__builtin_mul_overflow(bytes, f->dims[i], &bytes) || bytes > INT64_MAX)
			return err_set(e, ERR_USAGE,
				       "a sample of these dimensions has more bytes than "
				       "a 64-bit number can count");
	}
	return 0;
}

static uint64_t synthetic_file_bytes(const struct file_spec *f)
{
	char text[TEXT_MAX];

	return text_of(f, text);
}

static int synthetic_put(struct blob_stream *s, const struct file_spec *f,
			 const struct content_source *content, void *scratch, struct err *e)
{
	char text[TEXT_MAX];

	(void)content;
	(void)scratch;
	return blob_stream_put(s, text, text_of(f, text), e);
}

static size_t synthetic_reader_bytes(const struct reader_config *c, const struct store *s)
{
	(void)c;
	(void)s;
	return sizeof(struct reader);
}

static int synthetic_reader_init(void *memory, const struct reader_config *c, const struct io *io,
				 struct reader **out, struct err *e)
{
	struct reader *r = memory;

	(void)io;
	(void)e;
	r->config = *c;
	*out = r;
	return 0;
}

static int synthetic_read(struct reader *r, const char *path, const struct file_spec *f,
			  uint64_t index, struct sample *out, struct err *e)
{
	(void)r;
	if (index >= f->samples)
		return err_set(e, ERR_USAGE,
			       "'%s' has %" PRIu64 " samples: there is no sample %" PRIu64, path,
			       f->samples, index);
	out->data = NULL;
	out->payload_bytes = 0;
	return 0;
}

const struct format_ops format_synthetic = {
	.is.name = "synthetic",
	.is.help =
		"Files that hold only their own number; reading samples issues no request, which "
		"measures everything but the storage.",
	.is.extension = "synthetic",
	.is.flags = FORMAT_NO_IO,
	.is.dlio_reader = "SyntheticReader",
	.check = synthetic_check,
	.file_bytes = synthetic_file_bytes,
	.put = synthetic_put,
	.reader_bytes = synthetic_reader_bytes,
	.reader_init = synthetic_reader_init,
	.read = synthetic_read,
	.reader_close = reader_close_nothing,
};
