#pragma once
/* Log-linear histogram of 64-bit values (HDR layout): 32 sub-buckets per power of two, so a value
 * is kept within 1/32 of itself, below 2^44. Larger values count in the last bucket. Fixed size, no
 * allocation, one writer per struct; histograms merge by adding. */
#include <stddef.h>
#include <stdint.h>

#define HIST_SUB_BITS 5
#define HIST_BUCKETS (((43 - HIST_SUB_BITS) + 2) << HIST_SUB_BITS)

struct hist {
	uint64_t total;
	uint64_t min, max; /* exact; meaningless while total is 0 */
	double sum;
	uint32_t count[HIST_BUCKETS];
};

void hist_init(struct hist *h);
/* Counts one value. A bucket saturates at 2^32-1. */
void hist_add(struct hist *h, uint64_t v);
void hist_merge(struct hist *into, const struct hist *from);
/* Smallest value v such that at least `fraction` (0..1) of all values are <= v, within one bucket
 * and never above max; 0 when empty. */
uint64_t hist_quantile(const struct hist *h, double fraction);
/* Lower bound of a bucket, inclusive; the upper bound is that of bucket + 1, exclusive. */
uint64_t hist_bucket_low(size_t bucket);
size_t hist_bucket_of(uint64_t v);
