#pragma once
/* A dataset: names, shapes and content of every file as pure functions of the workload. Nothing
 * here keeps a string or a struct per file; with record_length_bytes_stdev the drawn dimensions are
 * kept, 8 bytes a file; with dataset.sizes recorded the workload has a size of each besides.
 * Read-only after dataset_init (and dataset_check) and shared by all ranks.
 */
#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "format/format.h"
#include "workload/workload.h"

enum dataset_kind { DATASET_TRAIN, DATASET_EVAL, DATASET_KINDS };
extern const char *const dataset_kind_folder[DATASET_KINDS]; /* "train", "valid" */

#define DATASET_PATH_MAX 1024

struct listed_files;
struct sample_counts;

struct dataset {
	const struct workload *workload; /* borrowed; what it was built from */
	const struct format_ops *format;
	const struct elem_type *elem;
	char *folder; /* storage_root joined with data_folder */
	char *prefix;
	uint64_t files[DATASET_KINDS]; /* that this workload uses */
	/* The N of "_of_N" in the names: how many files the dataset was generated with. The same as
	 * files until dataset_check finds a larger one, of which the first `files` are used. */
	uint64_t name_total[DATASET_KINDS];
	uint64_t subfolders[DATASET_KINDS]; /* 0: files lie flat in the kind's folder */
	uint64_t samples_per_file;          /* of the file that has most */
	/* dataset.names listed, after dataset_find: files that others wrote (listed.h); else NULL
	 */
	struct listed_files *listed;
	uint32_t ndims;
	uint64_t dims[FORMAT_DIMS_MAX]; /* when all files have the same */
	double drawn_mean, drawn_stdev; /* of a dimension, in elements; 0: nothing is drawn */
	uint32_t *drawn;             /* 2 per file (train then eval, name_total of each), or NULL */
	double file_bytes_per_pixel; /* of images whose files should have a size; else 0 */
	/* dataset.sizes recorded: what the format cannot meet, or where that depends on content
	 * is not sure to. */
	uint64_t sizes_missed, sizes_missed_most; /* files; bytes of the one that is farthest off */
	const char *compression;
	const char *extension; /* of its files' names */
	struct file_spec form; /* of every file, without its number and drawn dimensions */
	void *own;             /* of the format's own keys; form points to it */
	struct content_source content;
	uint64_t config_hash; /* of all that decides bytes and names but the number of files */
	/* Of the used blobs and their companion files; UINT64_MAX when it depends on content, and
	 * then likely_bytes is an estimate (else the same). */
	uint64_t total_bytes, likely_bytes;
	uint64_t kind_bytes[DATASET_KINDS]; /* of likely_bytes, those of each kind */
	/* Files of each kind whose size dataset_check asked for, and the sum: what files really
	 * have where that depends on content. 0: nobody looked. */
	uint64_t seen_files[DATASET_KINDS], seen_bytes[DATASET_KINDS];
	uint64_t max_sample_bytes;
	uint64_t max_file_bytes; /* UINT64_MAX when it depends on content */
};

/* Builds it from a loaded workload, drawing dimensions as DLIO does (seed 10, 2 normals per
 * file over train and eval files). Without record_dims a sample is a square of
 * int(sqrt(record_length_bytes / element size)) elements; under compat.dlio the element size
 * is left out, as DLIO does, and files of wider elements are that much larger. With
 * dataset.file_bytes the shape, or the noise of an image, follows from the size of files
 * (format/format.h). Checks that format and shapes agree and that no size overflows.
 * Nothing to release after a failure. */
int dataset_init(struct dataset *d, const struct workload *w, struct err *e);
/* The same with nothing drawn: every file has the mean dimensions. This is what a workload
 * describes, whichever files there are, and it takes no time and no memory per file. Not to make or
 * to read files with. */
int dataset_init_typical(struct dataset *d, const struct workload *w, struct err *e);
/* Accepts a zeroed struct. */
void dataset_release(struct dataset *d);

/* Makes the names, shapes and contents those of a dataset generated with other numbers of files
 * (each at least files[kind], or equal to 0 where files[kind] is 0). On failure `d` is as before.
 */
int dataset_set_name_total(struct dataset *d, const uint64_t total[DATASET_KINDS], struct err *e);

/* The spec of file `index` of a kind. */
void dataset_file_spec(const struct dataset *d, enum dataset_kind kind, uint64_t index,
		       struct file_spec *out);
/* Size of its blob; UINT64_MAX when it depends on content. */
uint64_t dataset_file_bytes(const struct dataset *d, enum dataset_kind kind, uint64_t index);
/* Number of the file over train then eval files: file_spec.file_index, and their bound. */
uint64_t dataset_file_index(const struct dataset *d, enum dataset_kind kind, uint64_t index);
uint64_t dataset_file_index_end(const struct dataset *d);
/* "<folder>/train/0" (subfolder `sub`; none with flat files) into out. */
int dataset_folder(const struct dataset *d, enum dataset_kind kind, uint64_t sub, char *out,
		   size_t out_size, struct err *e);
/* "<folder>/train/0/img_003_of_168.npz" into out; -ENAMETOOLONG when it does not fit. */
int dataset_path(const struct dataset *d, enum dataset_kind kind, uint64_t index, char *out,
		 size_t out_size, struct err *e);
uint64_t dataset_samples(const struct dataset *d, enum dataset_kind kind);
/* How many each file has; NULL: all have samples_per_file. The samples of file f are numbered from
 * f * samples_per_file on (sample_counts.h). */
const struct sample_counts *dataset_counts(const struct dataset *d, enum dataset_kind kind);
uint64_t dataset_file_samples(const struct dataset *d, enum dataset_kind kind, uint64_t index);
/* How well the mean size of files is known. */
enum dataset_sizes {
	SIZES_UNKNOWN, /* there are no such files */
	SIZES_EXACT,   /* it follows from the workload */
	SIZES_SEEN,    /* it depends on content, and dataset_check asked the files */
	SIZES_LIKELY   /* it depends on content: an estimate */
};
/* Bytes in files for one sample of a kind: those of the used files, with headers, indexes and
 * companion files, divided by their samples. NAN when SIZES_UNKNOWN. `how` may be NULL. */
double dataset_sample_file_bytes(const struct dataset *d, enum dataset_kind kind,
				 enum dataset_sizes *how);
/* The same of the dataset that a workload would have; as the workload says it where its format is
 * not in this version (*how is SIZES_LIKELY), 0 where nothing is read. */
double dataset_bytes_of_sample(const struct workload *w, enum dataset_kind kind,
			       enum dataset_sizes *how);
/* Mean size of the used files of a kind, without companion files; NAN when there are none. */
double dataset_mean_file_bytes(const struct dataset *d, enum dataset_kind kind,
			       enum dataset_sizes *how);
/* Decoded bytes of one sample of a kind, in the mean over its files: what reading it delivers. NAN
 * when there are none. */
double dataset_mean_sample_bytes(const struct dataset *d, enum dataset_kind kind);
/* Bytes of files, each taken once, for each decoded byte of their samples: near 1 but in encoded,
 * compressed and text files. 1 when there are no such files, and for a NULL `d`. */
double dataset_file_share(const struct dataset *d, enum dataset_kind kind);
/* Payload bytes of one sample of a file. */
uint64_t dataset_sample_bytes(const struct dataset *d, enum dataset_kind kind, uint64_t file);
/* "12107 x 12107", "12107 +- 2822.205 square", "224 x 224 x 3". Returns `out`. */
char *dataset_shape_text(const struct dataset *d, char *out, size_t out_size);
/* Bytes of all companion files of one blob; UINT64_MAX when they are more than a 64-bit number can
 * count. */
uint64_t sidecar_bytes(const struct dataset *d, const struct file_spec *f);
