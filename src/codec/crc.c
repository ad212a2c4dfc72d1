/* CRC-32 by ISA-L, which has wider multiplications than libdeflate; joined by zlib. */
#include "codec/crc.h"

#include <isa-l/crc.h>
#include <zlib.h>

uint32_t crc32_update(uint32_t crc, const void *bytes, size_t n)
{
	return n ? crc32_gzip_refl(crc, bytes, n) : crc;
}

uint32_t crc32_join(uint32_t crc_a, uint32_t crc_b, uint64_t len_b)
{
	/* x has the order 2^32-1 modulo the CRC's polynomial, so lengths count modulo that; zlib
	 * takes a signed length and would not end for a negative one */
	if (len_b > UINT32_MAX)
		len_b = (len_b - 1) % UINT32_MAX + 1;
	return (uint32_t)crc32_combine64(crc_a, crc_b, (z_off64_t)len_b);
}

/* CRC-32C by ISA-L. */

/* The library counts in int. */
#define PART_MAX ((size_t)1 << 30)

uint32_t crc32c_update(uint32_t crc, const void *bytes, size_t n)
{
	/* it reads only, whatever its prototype says */
	unsigned char *p = (unsigned char *)(uintptr_t)bytes;
	uint32_t state = ~crc;

	while (n > 0) {
		size_t part = n < PART_MAX ? n : PART_MAX;

		state = crc32_iscsi(p, (int)part, state);
		p += part;
		n -= part;
	}
	return ~state;
}

#define POLYNOMIAL 0x82f63b78u /* Castagnoli, reflected: the highest bit is x^0 */

/* a * b modulo the polynomial; `a` is not 0. */
static uint32_t multiply(uint32_t a, uint32_t b)
{
	uint32_t product = 0;

	for (uint32_t bit = 1u << 31; bit; bit >>= 1) {
		if (a & bit)
			product ^= b;
		b = b & 1 ? b >> 1 ^ POLYNOMIAL : b >> 1;
	}
	return product;
}

uint32_t crc32c_join(uint32_t crc_a, uint32_t crc_b, uint64_t len_b)
{
	uint32_t power = 1u << 31, base = 1u << 23; /* x^0 and x^8 */

	for (; len_b; len_b >>= 1) {
		if (len_b & 1)
			power = multiply(power, base);
		base = multiply(base, base);
	}
	return multiply(power, crc_a) ^ crc_b;
}
