#pragma once
/* What a folder of files is, seen from outside: nothing of it is known but its path, and no file is
 * opened. */
#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "dataset/dataset.h"

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
/* Whether the names are those of a dataset: every training file of one set is there. */
bool found_is_dataset(const struct found *f);
