#pragma once
/* Sums and products of counts that stop at UINT64_MAX: for bounds, which must not wrap to small. */
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
