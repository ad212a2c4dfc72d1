/* Counting values in buckets whose width grows with the value. */
#include "base/hist.h"

#include <assert.h>
#include <string.h>

#include "base/alloc.h"

#define SUB (1u << HIST_SUB_BITS)

void hist_init(struct hist *h)
{
	/* pages that were never written take no memory: do not touch them */
	if (!bytes_are_zero(h, sizeof(*h)))
		memset(h, 0, sizeof(*h));
}

size_t hist_bucket_of(uint64_t v)
{
	unsigned top;
	size_t b;

	if (v < SUB)
		return (size_t)v;
	/* the highest bit chooses the power of two, the HIST_SUB_BITS below it the sub-bucket */
	top = 63u - (unsigned)__builtin_clzll(v);
	b = (size_t)(top - HIST_SUB_BITS + 1) << HIST_SUB_BITS;
	b += (v >> (top - HIST_SUB_BITS)) & (SUB - 1);
	return b < HIST_BUCKETS ? b : HIST_BUCKETS - 1;
}

uint64_t hist_bucket_low(size_t bucket)
{
	size_t group = bucket >> HIST_SUB_BITS;
	uint64_t sub = bucket & (SUB - 1);

	assert(bucket <= HIST_BUCKETS); /* one past the end: the upper edge of the last */
	if (group == 0)
		return sub;
	return (SUB + sub) << (group - 1);
}

void hist_add(struct hist *h, uint64_t v)
{
	uint32_t *c = &h->count[hist_bucket_of(v)];

	if (*c != UINT32_MAX)
		(*c)++;
	if (h->total == 0 || v < h->min)
		h->min = v;
	if (h->total == 0 || v > h->max)
		h->max = v;
	h->total++;
	h->sum += (double)v;
}

void hist_merge(struct hist *into, const struct hist *from)
{
	if (from->total == 0)
		return;
	for (size_t i = 0; i < HIST_BUCKETS; i++) {
		uint32_t room = UINT32_MAX - into->count[i];

		if (from->count[i] == 0)
			continue;
		into->count[i] += from->count[i] < room ? from->count[i] : room;
	}
	if (into->total == 0 || from->min < into->min)
		into->min = from->min;
	if (into->total == 0 || from->max > into->max)
		into->max = from->max;
	into->total += from->total;
	into->sum += from->sum;
}

uint64_t hist_quantile(const struct hist *h, double fraction)
{
	uint64_t seen = 0;
	/* a little less, so that a product rounded up (0.07 * 100) does not ask for one value more
	 */
	double want = fraction * (double)h->total * (1.0 - 0x1p-50);

	if (h->total == 0)
		return 0;
	for (size_t i = 0; i < HIST_BUCKETS; i++) {
		seen += h->count[i];
		if (h->count[i] && (double)seen >= want) {
			uint64_t high = hist_bucket_low(i + 1) - 1;

			if (i == HIST_BUCKETS - 1 || high > h->max)
				high = h->max;
			return high < h->min ? h->min : high;
		}
	}
	return h->max;
}
