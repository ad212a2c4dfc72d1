#pragma once
/* What one file of a dataset is, apart from its bytes. */
#include <stdint.h>

#include "base/elem.h"

#define FORMAT_DIMS_MAX 8

#define FILE_ROOMS 4

/* Everything a blob's bytes depend on besides its content stream. */
struct file_spec {
	const struct elem_type *elem;
	uint32_t ndims; /* dims of one sample */
	uint64_t dims[FORMAT_DIMS_MAX];
	uint64_t samples;    /* in this file */
	uint64_t file_index; /* global: train files, then evaluation files */
	/* Images alone: what the file should have, by how much of the image is noise; it comes out
	 * within 256 bytes (png), or exactly but for small images (jpeg). 0: all of it is noise.
	 * With FORMAT_FILLED the least that the file has. */
	uint64_t want_bytes;
	const char *compression; /* "none", "zip", "gzip", ... */
	/* hdf5; zeros: one dataset, contiguous unless compressed */
	uint32_t compression_level;
	uint32_t datasets; /* that each sample is spread over; 0 is 1 */
	uint32_t chunk_ndims, max_ndims;
	uint64_t chunk[FORMAT_DIMS_MAX + 1]; /* with the sample axis */
	uint64_t max_dims[FORMAT_DIMS_MAX];  /* without it */
	const void *own; /* what format_ops.own made of the keys; NULL: their defaults */
	/* Files that others wrote alone (dataset.names listed); else NULL and 0. */
	const void *index; /* what format_ops.look made of the file's own index */
	uint64_t bytes;    /* of the file; in what all have in common, of the largest */
	uint64_t room[FILE_ROOMS]; /* in what all have in common: file_look.room */
};
/* Elements in one sample: the product of dims. Checked for overflow when specs are built (by
 * check). */
uint64_t file_spec_elements(const struct file_spec *f);
uint64_t file_spec_sample_bytes(const struct file_spec *f);
/* The same, before a check: UINT64_MAX where 64 bits do not hold it. */
uint64_t file_spec_sample_bytes_checked(const struct file_spec *f);
/* The label of a sample, in formats that have one: below 1000, as in ImageNet. */
uint64_t file_spec_label(const struct file_spec *f, uint64_t sample);
