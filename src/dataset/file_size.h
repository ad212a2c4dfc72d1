#pragma once
/* dataset.file_bytes: samples with which files come out at a given size; and the sizes that files
 * have. */
#include "dataset/dataset.h"

/* The two dimensions of a sample with which a file of d->form (whose own dimensions do not matter)
 * has about `want` bytes: the shape nearest to a square whose file comes nearest to it, for images
 * the smallest near a square whose noise alone takes that much. A file of content-dependent size
 * counts as its estimate. ERR_USAGE when even a single element takes more, or none takes so much.
 */
int file_size_shape(const struct dataset *d, double want, uint64_t dims[2], struct err *e);

/* Sizes of up to PRESENCE_STATS_MAX files of each kind, spread evenly, into d->seen_files and
 * seen_bytes. Files must be there. */
int file_sizes_look(struct dataset *d, struct store *store, struct err *e);
