/* A format for a test: eight letters, then the samples one after another. */
#include <string.h>

#include "format/blob_stream.h"
#include "format/reader.h"

#define HEAD "TOYTOYS\n"
#define HEAD_BYTES (sizeof(HEAD) - 1)

struct reader {
	struct reader_base base;
	unsigned char *sample;
};

static uint64_t payload_bytes(const struct file_spec *f)
{
	return file_spec_sample_bytes(f) * f->samples;
}

static int toy_check(const struct file_spec *f, struct err *e)
{
	if (f->ndims > 4)
		return err_set(e, ERR_USAGE, "toys have at most 4 dimensions");
	return 0;
}

static uint64_t toy_file_bytes(const struct file_spec *f)
{
	return HEAD_BYTES + payload_bytes(f);
}

static int toy_put(struct blob_stream *s, const struct file_spec *f,
		   const struct content_source *content, void *scratch, struct err *e)
{
	int rc = blob_stream_put(s, HEAD, HEAD_BYTES, e);

	(void)scratch;
	return rc < 0 ? rc : blob_stream_payload(s, content, f->file_index, 0, payload_bytes(f), e);
}

static void lay_out(struct carver *c, const struct reader_config *config, const struct store *s,
		    struct reader *r)
{
	reader_base_lay_out(c, config, s, &r->base);
	r->sample = carve(c, config->max_sample_bytes);
}

FORMAT_READER(toy, lay_out, reader_start_nothing)

static int contents(struct reader *r, const struct file_spec *f, uint64_t index, struct sample *out,
		    struct err *e)
{
	uint64_t n = file_spec_sample_bytes(f), at = index * n;
	char head[HEAD_BYTES];
	int rc = io_pread_full(r->base.io, IO_META, r->base.blob, NULL, head, sizeof(head), 0, e);

	if (rc == 0 && memcmp(head, HEAD, HEAD_BYTES) != 0)
		rc = err_set(e, ERR_DATA, "it does not begin as toys do");
	if (rc == 0)
		rc = io_pread_full(r->base.io, IO_DATA, r->base.blob, NULL, r->sample, n,
				   HEAD_BYTES + at, e);
	if (rc == 0 && r->base.config.decode == DECODE_VERIFY)
		rc = expectation_check(&r->base.expect, f->file_index, at, HEAD_BYTES + at,
				       r->sample, n, e);
	out->data = r->sample;
	return rc;
}

FORMAT_READ(toy, contents)

const struct format_ops format_toy = {
	.is.name = "toy",
	.is.help = "Toys, one after another.",
	.is.extension = "toys",
	.check = toy_check,
	.file_bytes = toy_file_bytes,
	.put = toy_put,
	.reader_bytes = toy_reader_bytes,
	.reader_init = toy_reader_init,
	.read = toy_read,
	.reader_close = reader_close_nothing,
};
