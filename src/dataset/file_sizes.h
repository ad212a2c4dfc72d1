#pragma once
/* The sizes that the files of a dataset have. */
#include "dataset/dataset.h"

/* Sizes of presence_looks() files of each kind, spread evenly, into d->seen_files and
 * seen_bytes. Files must be there. */
int file_sizes_look(struct dataset *d, struct store *store, struct err *e);
