#pragma once
/* A workload filled by hand, for tests of datasets. */
#include <string.h>

#include "workload/workload.h"

/* Files of 64 x 64 bytes; the strings are literals, so it is not to be released. */
static inline struct workload fixture_workload(const char *format, const char *folder,
					       int64_t train, int64_t eval)
{
	struct workload w = {0};

	w.storage.storage_root = (char *)(uintptr_t)"";
	w.storage.store = (char *)(uintptr_t)"posix";
	w.dataset.record_length_bytes = 4096;
	w.dataset.num_files_train = train;
	w.dataset.num_files_eval = eval;
	w.dataset.num_samples_per_file = 1;
	w.dataset.data_folder = (char *)(uintptr_t)folder;
	w.dataset.file_prefix = (char *)(uintptr_t)"img";
	w.dataset.format = (char *)(uintptr_t)format;
	w.dataset.record_element_type = (char *)(uintptr_t)"uint8";
	w.dataset.record_element_bytes = 1;
	w.dataset.hdf5.num_dset_per_record = 1;
	w.dataset.seed = 42;
	w.elem = elem_find("uint8");
	return w;
}
