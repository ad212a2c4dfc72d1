#pragma once
/* A file of given bytes in memory, read by an image format. */
#include <stdlib.h>
#include <string.h>

#include "../tools/test_content.h"
#include "base/alloc.h"
#include "format/format.h"

struct image_case {
	const struct format_ops *format;
	struct io io;
	struct blob *blob;
	struct content_source content;
	struct file_spec spec;
	struct err e;
	void *scratch;
	uint64_t max_file_bytes; /* 0: as the format says */
	unsigned char
		pixels[1 << 16]; /* of the last read, where a png reader has the whole image */
	uint64_t payload_bytes;
};

static inline void image_case_begin(struct image_case *t, const char *format, uint64_t rows,
				    uint64_t columns)
{
	memset(t, 0, sizeof(*t));
	t->format = format_find(format);
	t->spec = (struct file_spec){.elem = elem_find("uint8"),
				     .ndims = 2,
				     .dims = {rows, columns},
				     .samples = 1,
				     .compression = "none"};
	t->content = test_content(t->spec.elem);
	if (!t->format || store_create(&t->io.store, "memory", NULL, &t->e) < 0)
		abort();
	t->blob = store_blob_new(t->io.store, NULL);
	t->scratch = buffer_alloc(FORMAT_WRITE_SCRATCH, "scratch", &t->e);
}

static inline void image_case_end(struct image_case *t)
{
	buffer_free(t->scratch, FORMAT_WRITE_SCRATCH);
	free(t->blob);
	store_destroy(t->io.store);
}

static inline void image_case_put(struct image_case *t, const void *bytes, size_t n)
{
	if (io_open(&t->io, "f", STORE_WRITE | STORE_CREATE, t->blob, &t->e) < 0 ||
	    (n && io_pwrite(&t->io, t->blob, bytes, n, 0, &t->e) < 0) ||
	    io_close(&t->io, t->blob, &t->e) < 0)
		abort();
}

/* Writes the spec's file; its bytes, to be freed. */
static inline unsigned char *image_case_write(struct image_case *t, size_t *n)
{
	struct store_stat st;
	unsigned char *p;

	if (io_open(&t->io, "f", STORE_WRITE | STORE_CREATE, t->blob, &t->e) < 0 ||
	    format_write(t->format, &t->io, t->blob, "f", &t->spec, &t->content, t->scratch,
			 FORMAT_WRITE_SCRATCH, &t->e) < 0 ||
	    io_close(&t->io, t->blob, &t->e) < 0 ||
	    io_open(&t->io, "f", STORE_READ, t->blob, &t->e) < 0 ||
	    io_stat_blob(&t->io, t->blob, &st, &t->e) < 0)
		abort();
	p = xmalloc(st.bytes + 64);
	if (io_pread(&t->io, IO_DATA, t->blob, p, st.bytes, 0, &t->e) != (ssize_t)st.bytes)
		abort();
	io_close(&t->io, t->blob, NULL);
	*n = st.bytes;
	return p;
}

static inline int image_case_read(struct image_case *t, enum read_access access,
				  enum read_decode decode)
{
	struct reader_config c = {.access = access,
				  .decode = decode,
				  .python = 311,
				  .block_bytes = 65536,
				  .max_sample_bytes = file_spec_sample_bytes(&t->spec),
				  .max_file_bytes = t->max_file_bytes
							    ? t->max_file_bytes
							    : t->format->file_bytes(&t->spec),
				  .samples_per_file = 1,
				  .files = 1,
				  .content = &t->content};
	size_t bytes = t->format->reader_bytes(&c, t->io.store);
	void *memory = buffer_alloc(bytes, "a reader", &t->e);
	struct reader *r;
	struct sample s;
	int rc;

	if (!memory)
		abort();
	memset(memory, 0, bytes);
	memset(&t->e, 0, sizeof(t->e));
	rc = t->format->reader_init(memory, &c, &t->io, &r, &t->e);
	if (rc < 0)
		abort();
	rc = t->format->read(r, "f", &t->spec, 0, &s, &t->e);
	if (rc == 0) {
		t->payload_bytes = s.payload_bytes;
		if (decode != DECODE_NONE && strcmp(t->format->is.name, "png") == 0 &&
		    s.payload_bytes <= sizeof(t->pixels) &&
		    s.payload_bytes + t->spec.dims[0] <= c.max_file_bytes)
			memcpy(t->pixels, s.data, s.payload_bytes);
	}
	t->format->reader_close(r, NULL);
	buffer_free(memory, bytes);
	return rc;
}
