/* Checksums in HDF5 files. */
#include <string.h>

#include "format/hdf5/hdf5_bytes.h"

static inline uint32_t rotate(uint32_t v, int k)
{
	return v << k | v >> (32 - k);
}

static uint32_t word(const unsigned char *p)
{
	return (uint32_t)hdf5_get(p, 4);
}

/* lookup3's hash of bytes, beginning with 0. */
uint32_t hdf5_checksum(const void *bytes, size_t n)
{
	static const int mix_by[6] = {4, 6, 8, 16, 19, 4};
	static const int end_by[7] = {14, 11, 25, 16, 4, 14, 24};
	const unsigned char *p = bytes;
	unsigned char tail[12] = {0};
	uint32_t s[3]; /* a, b, c */

	s[0] = s[1] = s[2] = 0xdeadbeefu + (uint32_t)n;
	if (n == 0)
		return s[2];
	for (; n > 12; n -= 12, p += 12) {
		for (int i = 0; i < 3; i++)
			s[i] += word(p + 4 * i);
		for (int i = 0; i < 6; i++) {
			uint32_t *x = &s[i % 3], *y = &s[(i + 1) % 3], *z = &s[(i + 2) % 3];

			*x -= *z;
			*x ^= rotate(*z, mix_by[i]);
			*z += *y;
		}
	}
	memcpy(tail, p, n);
	for (int i = 0; i < 3; i++)
		s[i] += word(tail + 4 * i);
	for (int i = 0; i < 7; i++) {
		uint32_t *x = &s[(i + 2) % 3], *y = &s[(i + 1) % 3];

		*x ^= *y;
		*x -= rotate(*y, end_by[i]);
	}
	return s[2];
}

uint32_t hdf5_fletcher32(const void *bytes, size_t n)
{
	const unsigned char *p = bytes;
	size_t words = n / 2;
	uint32_t a = 0, b = 0;

	while (words > 0) {
		/* as many as cannot overflow the sums */
		size_t part = words < 360 ? words : 360;

		words -= part;
		for (; part > 0; part--, p += 2) {
			a += (uint32_t)p[0] << 8 | p[1];
			b += a;
		}
		a = (a & 0xffff) + (a >> 16);
		b = (b & 0xffff) + (b >> 16);
	}
	if (n % 2) {
		a += (uint32_t)*p << 8;
		b += a;
		a = (a & 0xffff) + (a >> 16);
		b = (b & 0xffff) + (b >> 16);
	}
	a = (a & 0xffff) + (a >> 16);
	b = (b & 0xffff) + (b >> 16);
	return b << 16 | a;
}
