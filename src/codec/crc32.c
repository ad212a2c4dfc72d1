/* CRC-32 by ISA-L, which has wider multiplications than libdeflate; joined by zlib. */
#include "codec/crc32.h"

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
