/* Any bytes as the three files of an indexed binary: two numbers of bytes for the companions, the
 * companions, and the data. Read by reading and through maps. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../tools/test_content.h"
#include "base/alloc.h"
#include "format/indexed/indexed.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define READERS 8

static struct {
	struct io io;
	struct blob *blob;
	struct content_source content;
	struct file_spec spec;
	const struct format_ops *format[READERS];
	struct reader_config config[READERS];
	size_t bytes[READERS];
	void *memory[READERS];
	void *scratch;
	char dir[64], path[96];
} fuzz;

static void leave(void)
{
	char companion[INDEXED_PATH_MAX];

	for (uint32_t i = 0; i < INDEXED_COMPANIONS; i++)
		if (indexed_path(fuzz.path, i, companion, NULL) == 0)
			unlink(companion);
	unlink(fuzz.path);
	rmdir(fuzz.dir);
}

static void begin(void)
{
	strcpy(fuzz.dir, "/tmp/stoker-fuzz-XXXXXX");
	if (!mkdtemp(fuzz.dir) || store_create(&fuzz.io.store, "posix", NULL, NULL) < 0)
		abort();
	snprintf(fuzz.path, sizeof(fuzz.path), "%s/f", fuzz.dir);
	atexit(leave);
	fuzz.spec = (struct file_spec){.elem = elem_find("uint8"),
				       .ndims = 2,
				       .dims = {4, 5},
				       .samples = 3,
				       .compression = "none"};
	fuzz.content = test_content(fuzz.spec.elem);
	fuzz.blob = store_blob_new(fuzz.io.store, NULL);
	fuzz.scratch = xmalloc(FORMAT_WRITE_SCRATCH);
	for (int i = 0; i < READERS; i++) {
		fuzz.format[i] = format_find(i % 2 ? "mmap_indexed_binary" : "indexed_binary");
		fuzz.config[i] =
			(struct reader_config){.access = ACCESS_FRAMEWORK,
					       .decode = i / 2 % 2 ? DECODE_VERIFY : DECODE_FULL,
					       .dlio = i / 4 % 2,
					       .python = 311,
					       .buffer_bytes = 16,
					       .max_sample_bytes = 20,
					       .max_file_bytes = 60,
					       .samples_per_file = 3,
					       .files = 1,
					       .content = &fuzz.content};
		fuzz.bytes[i] = fuzz.format[i]->reader_bytes(&fuzz.config[i], fuzz.io.store);
		fuzz.memory[i] = aligned_alloc(4096, (fuzz.bytes[i] + 4095) & ~(size_t)4095);
		if (!fuzz.memory[i])
			abort();
	}
}

static void put(const char *path, const uint8_t *data, size_t size)
{
	if (io_open(&fuzz.io, path, STORE_WRITE | STORE_CREATE, fuzz.blob, NULL) < 0 ||
	    (size && io_pwrite(&fuzz.io, fuzz.blob, data, size, 0, NULL) < 0) ||
	    io_close(&fuzz.io, fuzz.blob, NULL) < 0)
		abort();
}

static void ended(int rc, const struct err *e)
{
	if (rc == 0)
		return;
	if (rc != ERR_DATA || strncmp(e->text, "'/tmp/", 6) != 0) {
		fprintf(stderr, "code %d: %s\n", rc, e->text);
		abort();
	}
}

/* Twice, so that the reader works after errors. */
static void read_all(int i)
{
	struct reader *r;
	struct sample s;
	struct err e;

	memset(fuzz.memory[i], 0, fuzz.bytes[i]);
	if (fuzz.format[i]->reader_init(fuzz.memory[i], &fuzz.config[i], &fuzz.io, &r, NULL) < 0)
		abort();
	for (uint64_t k = 0; k < 6; k++)
		ended(fuzz.format[i]->read(r, fuzz.path, &fuzz.spec, k % 3, &s, &e), &e);
	fuzz.format[i]->reader_close(r, NULL);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char companion[INDEXED_PATH_MAX];
	struct err e;
	size_t used = 2;

	if (size < 2 || size > 4096)
		return 0;
	if (!fuzz.scratch)
		begin();
	for (uint32_t i = 0; i < INDEXED_COMPANIONS; i++) {
		size_t n = data[i] < size - used ? data[i] : size - used;

		indexed_path(fuzz.path, i, companion, NULL);
		put(companion, data + used, n);
		used += n;
		ended(format_sidecar_verify(format_find("indexed_binary"), &fuzz.io, companion,
					    &fuzz.spec, i, fuzz.scratch, FORMAT_WRITE_SCRATCH, &e),
		      &e);
	}
	put(fuzz.path, data + used, size - used);
	for (int i = 0; i < READERS; i++)
		read_all(i);
	ended(format_verify(format_find("indexed_binary"), &fuzz.io, fuzz.path, &fuzz.spec,
			    &fuzz.content, fuzz.scratch, FORMAT_WRITE_SCRATCH, &e),
	      &e);
	return 0;
}
