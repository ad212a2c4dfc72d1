#pragma once
/* Proof that a dataset on a store is what the workload says. */
#include "base/thread.h"
#include "dataset/dataset.h"
#include "dataset/survey.h"

struct verify_result {
	uint64_t files, bytes; /* compared */
	uint64_t bad_files;
	struct err first; /* of the lowest-numbered bad file; code 0 when there is none */
};

/* Compares every byte of every file, `threads` files at a time, to the end also when some are bad.
 * 0 when all agree; ERR_DATA when some do not or are missing (`e` is the first difference: file and
 * offset, and how many more). `progress` (may be NULL) counts bytes while they are read. */
int dataset_verify(const struct dataset *d, struct store *store, unsigned threads,
		   const struct stop_flag *stop, _Atomic uint64_t *progress,
		   struct verify_result *out, struct err *e);

enum presence {
	PRESENCE_MANIFEST, /* a complete manifest matches */
	PRESENCE_SIZES, /* no manifest (a dataset of DLIO's); names and sizes agree where checked */
	PRESENCE_ASSUMED, /* the store keeps nothing and the format reads nothing */
	PRESENCE_LISTED,  /* files that others wrote, as they are */
};
struct presence_result {
	enum presence how;
	uint64_t files_found, sizes_checked;
	char note[512]; /* a sentence for the verdict */
	/* dataset_check fills what it learns of names; dataset_survey the rest. */
	struct survey survey;
};

/* How many of the `files` of a kind dataset_check asks for their size: 1,000, or by
 * dataset.listing_validation_interval. */
#define PRESENCE_STATS_MAX 1000
#define PRESENCE_LOOKS_MAX 1000000
uint64_t presence_looks(const struct workload *w, uint64_t files);

/* Before a run: is the dataset there and is it this workload's? Quick: reads the manifest (without
 * one, the names), and stats presence_looks() files spread evenly over each kind. Missing files, a
 * manifest of another dataset, an unfinished generation and a file of another size are errors that
 * say which and what to do. Without a manifest a size may be off by 1/64 or 4 KiB (less in small
 * files), for what libraries put around the payload.
 *
 * A dataset generated with more files and otherwise the same is fine: its first ones are used, and
 * `d` takes its names and shapes (dataset_set_name_total). Call it before `d` is shared.
 * `need_eval`: whether evaluation files matter. `o` may be NULL. A store that keeps nothing has
 * every dataset whose format issues no request, and no other. */
struct presence_options {
	unsigned threads;             /* of the stats; 0 counts as 1 */
	const struct stop_flag *stop; /* may be NULL; ERR_CANCELED soon after it is set */
	_Atomic uint64_t *done;       /* may be NULL: counts what was looked at, while it goes on */
};
int dataset_check(struct dataset *d, struct store *store, bool need_eval,
		  const struct presence_options *o, struct presence_result *out, struct err *e);

/* The sizes that the files of a dataset have. */

/* Sizes of presence_looks() files of each kind, spread evenly, into d->seen_files and
 * seen_bytes. Files must be there. */
int file_sizes_look(struct dataset *d, struct store *store, struct err *e);
