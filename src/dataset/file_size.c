/* From the size of a file to the shape of its samples. */
#include "dataset/file_size.h"

#include <inttypes.h>
#include <math.h>

#include "dataset/each.h"
#include "dataset/verify.h"

/* Shapes looked at, for one that is nearer than the square. */
#define SHAPES_TRIED 64u

static double size_of(const struct dataset *d, uint64_t rows, uint64_t columns)
{
	struct file_spec f = d->form;
	uint64_t bytes;

	f.ndims = 2;
	f.dims[0] = rows;
	f.dims[1] = columns;
	bytes = d->format->file_bytes(&f);
	if (bytes == UINT64_MAX && d->format->file_bytes_estimate)
		bytes = d->format->file_bytes_estimate(&f);
	return (double)bytes;
}

static double square_of(const struct dataset *d, uint64_t side)
{
	return size_of(d, side, side);
}

/* The largest square whose file is no larger than `want`; 0: none is. */
static uint64_t largest_square(const struct dataset *d, double want)
{
	uint64_t low = 0, high = 1;

	while (high < UINT32_MAX / 2 && square_of(d, high) <= want) {
		low = high;
		high *= 2;
	}
	while (high - low > 1) {
		uint64_t middle = low + (high - low) / 2;

		if (square_of(d, middle) <= want)
			low = middle;
		else
			high = middle;
	}
	return low;
}

/* The most columns with which a file of so many rows is no larger than `want`; at least 1. */
static uint64_t most_columns(const struct dataset *d, uint64_t rows, uint64_t from, double want)
{
	uint64_t low = from, high = from + 1;

	while (high < UINT32_MAX / 2 && size_of(d, rows, high) <= want) {
		low = high;
		high += high - from;
	}
	while (high - low > 1) {
		uint64_t middle = low + (high - low) / 2;

		if (size_of(d, rows, middle) <= want)
			low = middle;
		else
			high = middle;
	}
	return low;
}

int file_size_shape(const struct dataset *d, double want, uint64_t dims[2], struct err *e)
{
	bool image = d->format->is.flags & FORMAT_IMAGE;
	uint64_t side = largest_square(d, want), rows, columns;
	double best = INFINITY;

	if (side == 0)
		return err_set(e, ERR_USAGE,
			       "dataset.file_bytes %.0f is less than the %.0f bytes of a %s file "
			       "with samples of a single element",
			       want, square_of(d, 1), d->format->is.name);
	dims[0] = dims[1] = side;
	for (uint64_t i = 0; i < SHAPES_TRIED && i <= side / 2 && best > 0; i++) {
		rows = side - i;
		columns = most_columns(d, rows, side, want);
		for (uint64_t k = 0; k < 2; k++) {
			double off = size_of(d, rows, columns + k) - want;

			/* what an image has too much is taken from its noise */
			if (image && off < 0)
				continue;
			if (fabs(off) < best) {
				best = fabs(off);
				dims[0] = rows;
				dims[1] = columns + k;
			}
		}
	}
	return 0;
}

int file_sizes_look(struct dataset *d, struct store *store, struct err *e)
{
	struct io io = {.store = store};
	char path[DATASET_PATH_MAX];
	int rc = 0;

	for (int k = 0; k < DATASET_KINDS; k++) {
		enum dataset_kind kind = (enum dataset_kind)k;
		uint64_t n = d->files[k] < PRESENCE_STATS_MAX ? d->files[k] : PRESENCE_STATS_MAX;
		uint64_t bytes = 0;

		for (uint64_t i = 0; rc == 0 && i < n; i++) {
			struct store_stat st;

			rc = dataset_path(d, kind, each_spread(d, kind, n, i), path, sizeof(path),
					  e);
			if (rc == 0)
				rc = io_stat_path(&io, path, &st, e);
			if (rc == 0)
				bytes += st.bytes;
		}
		if (rc < 0)
			return rc;
		d->seen_files[k] = n;
		d->seen_bytes[k] = bytes;
	}
	return 0;
}
