#pragma once
/* Taking a dataset away again. */
#include "dataset/dataset.h"

/* Removes the files of this dataset by their exact names, its manifest, and the folders that are
 * empty then. Anything else in them stays. Files that are not there are no error. */
int dataset_remove(const struct dataset *d, struct store *store, struct err *e);
