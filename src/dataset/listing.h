#pragma once
/* The contents of a dataset's folders. */
#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/thread.h"
#include "dataset/dataset.h"

/* Called for each entry; a negative return ends the listing. */
typedef int (*listing_fn)(void *arg, const char *folder, const char *name, bool is_dir);

/* Every entry of a kind's folder (flat) or subfolders. A folder that does not exist is empty. */
int listing_each(const struct dataset *d, struct store *store, enum dataset_kind kind,
		 listing_fn fn, void *arg, struct err *e);

/* "img_03_of_64.npz" with this dataset's prefix and extension: 3 and 64. False for other names.
 * Names of formats with is.numbered say no total. */
#define LISTING_ANY_TOTAL UINT64_MAX
bool listing_parse(const struct dataset *d, const char *name, uint64_t *index, uint64_t *total);

/* Of a long listing; both may be NULL. */
struct listing_watch {
	const struct stop_flag *stop; /* ERR_CANCELED soon after it is set */
	_Atomic uint64_t *done;       /* counts entries */
};

/* What "_of_N" names there are. */
#define LISTING_TOTALS_MAX 16
struct listing_totals {
	unsigned n;
	struct {
		uint64_t total;  /* N */
		uint64_t wanted; /* entries with an index below files[kind] */
	} of[LISTING_TOTALS_MAX];
	uint64_t folders, others; /* entries that are folders; files of other names */
};
int listing_totals(const struct dataset *d, struct store *store, enum dataset_kind kind,
		   const struct listing_watch *watch, struct listing_totals *out, struct err *e);

/* How many of the dataset's files are there by name, and the lowest index that is not (files[kind]
 * when all are). */
int listing_missing(const struct dataset *d, struct store *store, enum dataset_kind kind,
		    const struct listing_watch *watch, uint64_t *found, uint64_t *first_missing,
		    struct err *e);

/* What a folder of files is, seen from outside: nothing of it is known but its path, and no file is
 * opened. */

/* Files of a kind whose names are those of a dataset of DLIO or this program. */
struct found_kind {
	uint64_t files;      /* with such a name */
	uint64_t total;      /* the N of "_of_N"; 0: none, or not the same in all */
	uint64_t subfolders; /* folders that hold them, below the kind's own; 0: it holds them */
	char prefix[128];    /* "" when not the same in all */
};

struct found {
	bool exists, manifest;
	const struct format_facts *format; /* that most files have by their extension; NULL: none */
	uint64_t files;                    /* of it */
	uint64_t others, folders;          /* other files; folders with files of the format */
	/* Of the sizes of the files looked at: all of up to 4096, else one in 64. */
	double mean_bytes, stdev_bytes;
	struct found_kind kind[DATASET_KINDS];
	char example[DATASET_PATH_MAX]; /* a file of the format */
};

/* Lists the folder and those below it. A folder that does not exist is no error. */
int found_look(const char *folder, struct found *out, struct err *e);
/* Whether a dataset, or a part of one, is in the folder: a manifest, or anything in "train" or
 * "valid". What a file system keeps there (lost+found, .snapshot), locks and texts are none. Looks
 * at few entries. ERR_SYS when a folder cannot be listed; one that does not exist has none. */
int found_any(const char *folder, bool *any, struct err *e);
/* Whether a file of any format lies in the folder itself. The same errors. */
int found_loose(const char *folder, bool *any, struct err *e);
/* Whether the names are those of a dataset: every training file of one set is there. */
bool found_is_dataset(const struct found *f);
