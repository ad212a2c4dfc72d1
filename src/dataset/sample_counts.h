#pragma once
/* How many samples each file of a kind has, where files that others wrote have different numbers of
 * them. The samples of file f are numbered from f * stride on, whatever it has: numbers of places
 * that a file lacks are nobody's. So file and place follow from a number by division everywhere. */
#include <stdint.h>

struct sample_counts {
	uint64_t files, stride; /* stride: of the file that has most */
	uint64_t *first;        /* files + 1: samples of the files before */
};

/* NULL: every file has `each`. */
static inline uint64_t samples_in_file(const struct sample_counts *c, uint64_t file, uint64_t each)
{
	return c ? c->first[file + 1] - c->first[file] : each;
}

/* The place in an ascending list of n + 1 sums, from 0 on, at which `nth`, below the last, falls:
 * the last whose sum is at most `nth`. */
static inline uint64_t place_of_sum(const uint64_t *sum, uint64_t n, uint64_t nth)
{
	uint64_t low = 0, high = n;

	while (high - low > 1) {
		uint64_t middle = low + (high - low) / 2;

		if (sum[middle] <= nth)
			low = middle;
		else
			high = middle;
	}
	return low;
}

/* The number of the nth sample of all, nth below their sum. */
static inline uint64_t sample_number(const struct sample_counts *c, uint64_t nth)
{
	uint64_t file;

	if (!c)
		return nth;
	file = place_of_sum(c->first, c->files, nth);
	return file * c->stride + (nth - c->first[file]);
}
