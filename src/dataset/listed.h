#pragma once
/* Files that others wrote, taken as they are (dataset.names listed): names by listing the folder,
 * samples by each file's own index, whatever the workload's keys say. */
#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/thread.h"
#include "dataset/dataset.h"
#include "dataset/sample_counts.h"

struct listed_file {
	char *path; /* below the dataset's folder */
	uint64_t bytes;
	struct file_look look;
};

struct listed_kind {
	uint64_t files;
	struct listed_file *file;         /* by their paths, ascending; NULL: dataset_recall */
	uint64_t samples, bytes, payload; /* payload: decoded bytes of all samples */
	struct sample_counts counts;
	bool differ; /* in their samples, from one another or from those of the other kind */
};

struct listed_name {
	uint64_t file; /* of training */
	char *path;
};

struct listed_files {
	struct listed_kind kind[DATASET_KINDS];
	uint64_t stride; /* samples of the file that has most */
	uint64_t index_bytes;
	struct listed_name *name; /* after dataset_recall: the paths that are still known */
	size_t names;
};

/* What a result keeps of them. */
struct listed_totals {
	uint64_t samples[DATASET_KINDS], bytes[DATASET_KINDS], payload[DATASET_KINDS];
	uint64_t max_sample_bytes, max_file_bytes;
};

/* What all indexes together may take. */
#define LISTED_INDEX_MAX (1ull << 30)

/* Lists the files of the format in d->folder and below it, and has the format look at each one. A
 * folder or a first word of a name that says validation or test ("test-00000-of-00001.parquet")
 * makes it a file to evaluate on, if there are others. Hidden files, and those that begin with '_',
 * are none. `d`, made by dataset_init, takes names, numbers of files and of samples, and sizes from
 * what was found: before it is shared. ERR_DATA names a file that cannot be used and says why.
 * `done` (may be NULL) counts files. */
int dataset_find(struct dataset *d, struct store *store, unsigned threads,
		 const struct stop_flag *stop, _Atomic uint64_t *done, struct err *e);
/* Whether the keys of the workload say what was found: ERR_USAGE tells what they should. */
int dataset_found_agrees(const struct dataset *d, struct err *e);
struct listed_totals dataset_listed_totals(const struct dataset *d);
/* The other way round, for a result that is read back long after: `d` as dataset_find left it, but
 * that nothing is known of single files: each has the mean of all, and a path only those of `name`,
 * of which there are `names`, and which, with their paths, are the dataset's from now on. Any
 * totals will do. */
void dataset_recall(struct dataset *d, const struct listed_totals *t, struct listed_name *name,
		    size_t names);
void listed_release(struct listed_files *l);
