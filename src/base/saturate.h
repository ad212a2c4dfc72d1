#pragma once
/* Sums and products of counts that stop at the greatest number: for bounds, which must not wrap to
 * small, and for counts that somebody else wrote. */
#include <stdint.h>

static inline uint64_t u64_sum(uint64_t a, uint64_t b)
{
	uint64_t v;

	return __builtin_add_overflow(a, b, &v) ? UINT64_MAX : v;
}

static inline uint64_t u64_product(uint64_t a, uint64_t b)
{
	uint64_t v;

	return __builtin_mul_overflow(a, b, &v) ? UINT64_MAX : v;
}

/* Of numbers that are 0 at least. */
static inline int64_t i64_sum(int64_t a, int64_t b)
{
	int64_t v;

	return __builtin_add_overflow(a, b, &v) ? INT64_MAX : v;
}
