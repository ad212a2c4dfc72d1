#pragma once
/* A workload filled by hand, for tests of datasets. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "conf/node.h"
#include "dataset/dataset.h"
#include "store/store.h"
#include "workload/workload.h"

/* Files of 64 x 64 bytes; the strings are literals, so it is not to be released. */
static inline struct workload fixture_workload(const char *format, const char *folder,
					       int64_t train, int64_t eval)
{
	struct workload w = {0};

	w.storage.storage_root = (char *)(uintptr_t) "";
	w.storage.store = (char *)(uintptr_t) "posix";
	w.dataset.record_length_bytes = 4096;
	w.dataset.num_files_train = train;
	w.dataset.num_files_eval = eval;
	w.dataset.num_samples_per_file = 1;
	w.dataset.data_folder = (char *)(uintptr_t)folder;
	w.dataset.file_prefix = (char *)(uintptr_t) "img";
	w.dataset.format = (char *)(uintptr_t)format;
	w.dataset.record_element_type = (char *)(uintptr_t) "uint8";
	w.dataset.record_element_bytes = 1;
	w.dataset.hdf5.num_dset_per_record = 1;
	w.dataset.seed = 42;
	w.elem = elem_find("uint8");
	return w;
}

static inline void fixture_dataset(struct dataset *d, const struct workload *w)
{
	struct err e;

	if (dataset_init(d, w, &e) < 0)
		fail_msg("%s", e.text);
}

/* `options` as YAML: "fault: {op: write, nth: 3}"; or NULL. */
static inline struct store *fixture_store(const char *expression, const char *options)
{
	struct node *storage = NULL;
	struct store *s = NULL;
	struct err e = {0};

	if (options) {
		storage = yaml_parse(options, strlen(options), "test", &e);
		if (!storage)
			fail_msg("%s", e.text);
	}
	if (store_create(&s, expression, storage, &e) < 0)
		fail_msg("%s", e.text);
	node_free(storage);
	return s;
}

static inline void fixture_put(struct store *s, const char *path, const void *bytes, size_t n)
{
	struct io io = {.store = s};
	struct blob *b = store_blob_new(s, NULL);
	struct err e;

	assert_non_null(b);
	if (io_open(&io, path, STORE_WRITE | STORE_CREATE, b, &e) < 0)
		fail_msg("%s", e.text);
	assert_int_equal(io_pwrite(&io, b, bytes, n, 0, NULL), n);
	assert_int_equal(io_close(&io, b, NULL), 0);
	free(b);
}

/* The bytes at a path, ended by a NUL; NULL when there is none. Heap. */
static inline char *fixture_get(struct store *s, const char *path, size_t *n)
{
	struct io io = {.store = s};
	struct blob *b = store_blob_new(s, NULL);
	struct store_stat st;
	char *out = NULL;

	if (io_open(&io, path, STORE_READ, b, NULL) == 0) {
		assert_int_equal(io_stat_blob(&io, b, &st, NULL), 0);
		out = malloc(st.bytes + 1);
		*n = (size_t)st.bytes;
		assert_int_equal(io_pread(&io, IO_DATA, b, out, *n, 0, NULL), *n);
		out[*n] = '\0';
		io_close(&io, b, NULL);
	}
	free(b);
	return out;
}
