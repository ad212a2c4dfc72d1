#pragma once
/* A dataset: names, shapes and content of every file as pure functions of the workload. Nothing here
 * keeps a string or a struct per file; with record_length_bytes_stdev the drawn dimensions are kept, 8
 * bytes a file. Read-only after dataset_init and shared by all ranks. */
#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "format/format.h"
#include "workload/workload.h"

enum dataset_kind { DATASET_TRAIN, DATASET_EVAL, DATASET_KINDS };
extern const char *const dataset_kind_folder[DATASET_KINDS]; /* "train", "valid" */

#define DATASET_PATH_MAX 1024

struct dataset {
	const struct format_ops *format;
	const struct elem_type *elem;
	char *folder;                    /* storage_root joined with data_folder */
	char *prefix;
	uint64_t files[DATASET_KINDS];
	uint64_t subfolders[DATASET_KINDS];
	uint64_t samples_per_file;
	uint32_t ndims;
	uint64_t dims[FORMAT_DIMS_MAX];  /* when all files have the same */
	uint32_t *drawn;                 /* 2 per file (train then eval), or NULL */
	const char *compression;
	struct content_source content;
	uint64_t config_hash;
	uint64_t total_bytes;            /* of all blobs; UINT64_MAX when it depends on content */
	uint64_t max_sample_bytes, max_file_bytes;
};

/* Builds it from a loaded workload, drawing dimensions as DLIO does (seed 10, 2 normals per file over
 * train and eval files; `reference`: dlio.md 3.1). Checks that format and shapes agree and that no
 * size overflows. */
int dataset_init(struct dataset *d, const struct workload *w, struct err *e);
void dataset_release(struct dataset *d);

/* The spec of file `index` of a kind. */
void dataset_file_spec(const struct dataset *d, enum dataset_kind kind, uint64_t index,
		       struct file_spec *out);
/* "<folder>/train/0/img_003_of_168.npz" into out; -ENAMETOOLONG when it does not fit. */
int dataset_path(const struct dataset *d, enum dataset_kind kind, uint64_t index, char *out,
		 size_t out_size, struct err *e);
uint64_t dataset_samples(const struct dataset *d, enum dataset_kind kind);
/* Payload bytes of one sample of a file. */
uint64_t dataset_sample_bytes(const struct dataset *d, enum dataset_kind kind, uint64_t file);
