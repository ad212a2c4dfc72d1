#pragma once
/* Numbers of 1 to 8 bytes, the lowest first. Pure; any address. */
#include <stddef.h>
#include <stdint.h>

static inline uint64_t le_get(const unsigned char *p, size_t n)
{
	uint64_t v = 0;

	while (n-- > 0)
		v = v << 8 | p[n];
	return v;
}

/* Returns what follows them. */
static inline unsigned char *le_put(unsigned char *p, uint64_t v, size_t n)
{
	for (size_t i = 0; i < n; i++, v >>= 8)
		p[i] = (unsigned char)v;
	return p + n;
}
