#pragma once
/* Reads every file that DLIO itself generated in a folder of tests/data/dlio-data. Their content is
 * random, so each must be as long as ours, readable in every mode but verify, and unlike ours
 * there. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../tools/test_content.h"
#include "base/alloc.h"
#include "format/format.h"

static inline void dlio_read_file(const struct format_ops *format, const char *path,
				  const struct file_spec *f)
{
	struct content_source content = test_content(f->elem);
	struct io io = {0};
	struct store_stat st;
	struct err e;

	assert_int_equal(store_create(&io.store, "posix", NULL, &e), 0);
	if (io_stat_path(&io, path, &st, &e) < 0)
		fail_msg("%s", e.text);
	if (format->file_bytes(f) != UINT64_MAX)
		assert_int_equal(st.bytes, format->file_bytes(f));
	for (int mode = 0; mode < 12; mode++) {
		struct reader_config c = {.access = (enum read_access)(mode % 2),
					  .decode = (enum read_decode)(mode / 2 % 3),
					  .python = mode < 6 ? 311 : 314,
					  .max_file_bytes = st.bytes,
					  .max_sample_bytes = file_spec_sample_bytes(f),
					  .samples_per_file = f->samples,
					  .files = f->file_index + 1,
					  .content = &content};
		size_t bytes = format->reader_bytes(&c, io.store);
		void *memory = buffer_alloc(bytes, "a reader", &e);
		struct reader *r;
		struct sample s;

		assert_non_null(memory);
		memset(memory, 0, bytes);
		assert_int_equal(format->reader_init(memory, &c, &io, &r, &e), 0);
		for (uint64_t i = 0; i < f->samples; i++) {
			int rc = format->read(r, path, f, i, &s, &e);

			if (c.decode == DECODE_VERIFY)
				assert_int_equal(rc, ERR_DATA);
			else if (rc < 0)
				fail_msg("%s", e.text);
		}
		assert_int_equal(format->reader_close(r, &e), 0);
		buffer_free(memory, bytes);
	}
	store_destroy(io.store);
}

static inline void dlio_read_compressed(const char *name, const char *folder, const uint64_t *dims,
					uint32_t ndims, const char *elem, uint64_t samples,
					uint64_t files, const char *compression)
{
	struct file_spec f = {.elem = elem_find(elem),
			      .ndims = ndims,
			      .samples = samples,
			      .compression = compression};
	char path[1024];

	memcpy(f.dims, dims, ndims * sizeof(dims[0]));
	for (f.file_index = 0; f.file_index < files; f.file_index++) {
		snprintf(path, sizeof(path),
			 "%s/dlio-data/%s/train/img_%" PRIu64 "_of_%" PRIu64 ".%s", TEST_DATA,
			 folder, f.file_index, files, name);
		dlio_read_file(format_find(name), path, &f);
	}
}

static inline void dlio_read(const char *name, const char *folder, const uint64_t *dims,
			     uint32_t ndims, const char *elem, uint64_t samples, uint64_t files)
{
	dlio_read_compressed(name, folder, dims, ndims, elem, samples, files, "none");
}
