#pragma once
/* Writing a dataset: in parallel, resumable after a kill at any moment, never leaving a file under its
 * final name that is not whole. */
#include <stdatomic.h>
#include <stdint.h>

#include "base/thread.h"
#include "dataset/dataset.h"

struct generate_progress {
	_Atomic uint64_t files_done, files_skipped, bytes_done;
	uint64_t files_total, bytes_total;
};

struct generate_options {
	unsigned threads;
	const struct stop_flag *stop;      /* may be NULL */
	struct generate_progress *progress;/* may be NULL */
};

/* Makes folders, checks free space and files (ERR with the sizes before anything is written), writes
 * the manifest as incomplete, writes each file under a temporary name and renames it, syncs folders,
 * and marks the manifest complete. Files of an interrupted generation of the same dataset that are
 * whole are kept. A complete matching dataset whose files all have their size is left alone.
 * A dataset of another workload in the folder is replaced file by file, with a warning. */
int dataset_generate(const struct dataset *d, struct store *store, const struct generate_options *o,
		     struct err *e);
