#pragma once
/* Writing a dataset: in parallel, resumable after a kill at any moment, never leaving a file under
 * its final name that is not whole. */
#include <stdatomic.h>
#include <stdint.h>

#include "base/thread.h"
#include "comm/comm.h"
#include "dataset/dataset.h"

/* Written by the generating threads, read by whoever shows progress. */
struct generate_progress {
	_Atomic uint64_t files_done, files_skipped; /* written now; whole before */
	_Atomic uint64_t bytes_done;                /* written now, of the files not yet done too */
	_Atomic uint64_t files_total;               /* done + skipped at the end */
	_Atomic uint64_t bytes_total;               /* to be written now; 0: not known beforehand */
	_Atomic uint64_t moved; /* grows with every file and name that was looked at or written */
	_Atomic uint32_t
		asking; /* not 0: the storage is asked; else other processes are waited for */
};

struct generate_options {
	unsigned threads;                   /* files at a time; 0 counts as 1 */
	const struct stop_flag *stop;       /* may be NULL */
	struct generate_progress *progress; /* may be NULL; zeroed by the caller */
	/* Of processes that generate one dataset together: each rank writes its part of the files,
	 * and rank 0 does all else. NULL: this process alone. All return the same. */
	struct comm *together;
};

/* Makes folders, checks free space and files (ERR with the sizes before anything is written),
 * writes the manifest as incomplete, writes the files, syncs folders, and marks the manifest
 * complete. Files of an interrupted generation of the same dataset that are whole are kept. A
 * complete matching dataset whose files all have their size is left alone. With another dataset's
 * manifest, or none, files that have this dataset's names are removed first, with a warning; all
 * other files stay.
 *
 * Every file is synced before it gets its name, so that a name means a whole file even after a
 * power loss, which is what resuming relies on. Each thread syncs many small files together
 * (store/batch.h, which states the bounds: at most 1,000 files, about 32 MiB or what was written in
 * a second); that many are lost when it is killed. What a killed one leaves under temporary names,
 * where there are any, is removed by the next one.
 *
 * Once the stop flag is set, no further request is made: ERR_CANCELED, and what is there can be
 * resumed, as after any failure. */
int dataset_generate(const struct dataset *d, struct store *store, const struct generate_options *o,
		     struct err *e);

/* Taking a dataset away again. */

/* Removes the files of this dataset by their exact names, its manifest, and the folders that are
 * empty then. Anything else in them stays. Files that are not there are no error. */
int dataset_remove(const struct dataset *d, struct store *store, struct err *e);
