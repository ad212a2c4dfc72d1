#pragma once
/* Numbers and checksums in HDF5 files. */
#include <stddef.h>
#include <stdint.h>

/* An address that is none. */
#define HDF5_UNDEFINED UINT64_MAX

/* Checksum of metadata (Jenkins' lookup3) and of raw data (Fletcher). */
uint32_t hdf5_checksum(const void *bytes, size_t n);
uint32_t hdf5_fletcher32(const void *bytes, size_t n);

static inline uint64_t hdf5_get(const unsigned char *p, size_t n)
{
	uint64_t v = 0;

	for (size_t i = n; i > 0; i--)
		v = v << 8 | p[i - 1];
	return v;
}

static inline unsigned char *hdf5_put(unsigned char *p, uint64_t v, size_t n)
{
	for (size_t i = 0; i < n; i++, v >>= 8)
		p[i] = (unsigned char)v;
	return p + n;
}

/* Bytes that hold v; at least 1. */
static inline uint32_t hdf5_bytes_for(uint64_t v)
{
	return v ? (uint32_t)(63 - __builtin_clzll(v) + 8) / 8 : 1;
}
