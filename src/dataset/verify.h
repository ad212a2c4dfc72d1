#pragma once
/* Proof that a dataset on a store is what the workload says. */
#include "base/thread.h"
#include "dataset/dataset.h"

struct verify_result {
	uint64_t files, bytes;   /* compared */
	uint64_t bad_files;
	struct err first;        /* of the lowest-numbered bad file */
};

/* Compares every byte of every file, `threads` files at a time. 0 when all agree; ERR_DATA when some
 * do not (`e` is the first difference: file and offset). */
int dataset_verify(const struct dataset *d, struct store *store, unsigned threads,
		   const struct stop_flag *stop, struct verify_result *out, struct err *e);

enum presence {
	PRESENCE_MANIFEST, /* a complete manifest matches */
	PRESENCE_SIZES,    /* no manifest (a dataset of DLIO's); names and sizes agree where checked */
};
struct presence_result {
	enum presence how;
	uint64_t files_found, sizes_checked;
	char note[512]; /* a sentence for the verdict */
};

/* Before a run: is the dataset there and is it this workload's? Quick: reads the manifest, and stats
 * up to 1,000 files spread evenly over each kind. Missing files, a manifest of another dataset, an
 * unfinished generation and a file of another size are errors that say which and what to do.
 * `need_eval`: whether evaluation files matter. */
int dataset_check(const struct dataset *d, struct store *store, bool need_eval,
		  struct presence_result *out, struct err *e);
