#pragma once
/* Every file of a dataset once, over threads: generating, verifying and surveying are this. */
#include "base/thread.h"
#include "dataset/dataset.h"
#include "store/batch.h"

/* What one thread has for itself. */
struct each_worker {
	struct io io;
	struct blob *blob;
	void *scratch;
	size_t scratch_bytes;
	uint64_t number; /* of the file, over train then evaluation files of the dataset */
	char path[DATASET_PATH_MAX];
	void *own; /* of the job's `begin`, `file` and `end` */
	struct err err;
};

struct each_job {
	const struct dataset *dataset;
	struct store *store;
	unsigned threads;             /* 0 counts as 1 */
	uint32_t part, parts;         /* only files part, part + parts, ...; parts 0 counts as 1 */
	size_t scratch_bytes;         /* 0: none */
	const struct stop_flag *stop; /* may be NULL */
	_Atomic uint64_t *moved;      /* grows with every file that is done; may be NULL */
	/* NULL: every file; else that many of each kind, spread as each_spread does, or all if
	 * there are fewer. */
	const uint64_t *picks;
	/* NULL: each_spread. Else: file number i of n that are picked of a kind. */
	uint64_t (*pick)(void *arg, enum dataset_kind kind, uint64_t n, uint64_t i);
	/* Does its work for file `index` of `kind`, at w->path. Negative: no further file is begun.
	 */
	int (*file)(void *arg, enum dataset_kind kind, uint64_t index, struct each_worker *w,
		    struct err *e);
	/* May be NULL. In the thread of the files: before its first file, and after its last one
	 * (`rc`: how that ended) whenever `begin` was successful. */
	int (*begin)(void *arg, struct each_worker *w, struct err *e);
	int (*end)(void *arg, struct each_worker *w, int rc, struct err *e);
	void *arg;
};

/* Number of the `i`th of n files picked evenly out of `files` (n at most files, i below n): the
 * first and the last are among them. */
uint64_t each_even(uint64_t files, uint64_t n, uint64_t i);
/* Number of the `i`th of n files picked out of a kind (n at most its files, i below n), no file
 * twice: evenly over its subfolders, all of them if n is at least their number, and over the files
 * in each. Without subfolders as each_even. */
uint64_t each_spread(const struct dataset *d, enum dataset_kind kind, uint64_t n, uint64_t i);
/* The file at a place of the order in which all files of subfolder 0 come first, then those of 1,
 * and so on. */
uint64_t each_by_folder(const struct dataset *d, enum dataset_kind kind, uint64_t place);
/* 0 when all files were done; else the failure of the lowest-numbered file that failed, or
 * ERR_CANCELED when the stop flag was set. On return no thread is left. */
int each_file(const struct each_job *job, struct err *e);

/* A store over another whose reads and writes fail with ERR_CANCELED once the flag is set, so that
 * large files do not delay a stop. Counts the bytes that pass. It needs no release. */
struct stoppable_store {
	struct store base;
	const struct stop_flag *stop; /* may be NULL */
	_Atomic uint64_t *bytes;      /* may be NULL */
};
void stoppable_init(struct stoppable_store *s, struct store *lower, const struct stop_flag *stop,
		    _Atomic uint64_t *bytes);

/* Companion files of a dataset's blobs (format.h): written before their blob gets its name, so that
 * they are there whenever it is. */

/* 1 when every companion of the blob at `path` is there with its size, else 0. Adds the sizes of
 * those that are there to *bytes. */
int sidecars_whole(const struct dataset *d, const struct io *io, const char *path,
		   const struct file_spec *f, uint64_t *bytes, struct err *e);
/* Writes the companions of the blob at w->path into the batch; with `missing` only those that are
 * not there with their size. w->blob is closed. */
int sidecars_write(const struct dataset *d, struct each_worker *w, struct store_batch *batch,
		   const struct file_spec *f, bool missing, struct err *e);
/* Compares every companion of the blob at w->path. */
int sidecars_verify(const struct dataset *d, struct each_worker *w, const struct file_spec *f,
		    struct err *e);
/* Removes every companion of the blob at `path`; those that are not there are no error. */
int sidecars_remove(const struct dataset *d, struct store *store, const char *path, struct err *e);
/* Calls fn for the folders that the companions of blobs in `folder` lie in, and for the folder
 * above each, where those are not `folder` itself. */
int sidecar_folders(const struct dataset *d, struct store *store, const char *folder,
		    int (*fn)(struct store *s, const char *path, struct err *e), struct err *e);
