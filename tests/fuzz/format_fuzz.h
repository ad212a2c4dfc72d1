#pragma once
/* Reads arbitrary bytes as a file of two samples of (4, 5) uint8, in every mode, with readers that
 * live through all inputs: whatever the bytes, a read ends with 0 or a sentence. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../tools/test_content.h"
#include "base/alloc.h"
#include "format/format.h"

#define FUZZ_READERS 12

static struct {
	const struct format_ops *format;
	struct io io;
	struct blob *blob;
	struct content_source content;
	struct file_spec spec;
	struct reader *reader[FUZZ_READERS];
	void *scratch;
} fuzz;

static inline void fuzz_begin(const char *name)
{
	if (fuzz.format)
		return;
	fuzz.format = format_find(name);
	fuzz.spec = (struct file_spec){.elem = elem_find("uint8"),
				       .ndims = 2,
				       .dims = {4, 5},
				       .samples = 2,
				       .compression = "none"};
	fuzz.content = test_content(fuzz.spec.elem);
	if (!fuzz.format || store_create(&fuzz.io.store, "memory", NULL, NULL) < 0)
		abort();
	fuzz.blob = store_blob_new(fuzz.io.store, NULL);
	fuzz.scratch = xmalloc(FORMAT_WRITE_SCRATCH);
	for (int i = 0; i < FUZZ_READERS; i++) {
		struct reader_config c = {.access = (enum read_access)(i % 2),
					  .decode = (enum read_decode)(i / 2 % 3),
					  .python = i < 6 ? 311 : 314,
					  .buffer_bytes = i < 6 ? 16 : 0,
					  .max_sample_bytes = 20,
					  .max_file_bytes = fuzz.format->file_bytes(&fuzz.spec),
					  .samples_per_file = 2,
					  .files = 1,
					  .content = &fuzz.content};
		size_t bytes = fuzz.format->reader_bytes(&c, fuzz.io.store);
		void *memory = aligned_alloc(4096, (bytes + 4095) & ~(size_t)4095);

		if (!memory)
			abort();
		memset(memory, 0, bytes);
		if (fuzz.format->reader_init(memory, &c, &fuzz.io, &fuzz.reader[i], NULL) < 0)
			abort();
	}
}

static inline void fuzz_ended(int rc, const struct err *e)
{
	if (rc == 0)
		return;
	if (rc != ERR_DATA || strncmp(e->text, "'f': ", 5) != 0) {
		fprintf(stderr, "code %d: %s\n", rc, e->text);
		abort();
	}
}

static inline void fuzz_read(const char *name, const uint8_t *data, size_t size)
{
	struct err e;

	fuzz_begin(name);
	if (io_open(&fuzz.io, "f", STORE_WRITE | STORE_CREATE, fuzz.blob, NULL) < 0 ||
	    (size && io_pwrite(&fuzz.io, fuzz.blob, data, size, 0, NULL) < 0) ||
	    io_close(&fuzz.io, fuzz.blob, NULL) < 0)
		abort();
	for (int i = 0; i < FUZZ_READERS; i++) {
		struct sample s;

		fuzz_ended(fuzz.format->read(fuzz.reader[i], "f", &fuzz.spec, 1, &s, &e), &e);
	}
	fuzz_ended(format_verify(fuzz.format, &fuzz.io, "f", &fuzz.spec, &fuzz.content,
				 fuzz.scratch, FORMAT_WRITE_SCRATCH, &e),
		   &e);
}
