#include "codec/crc32.h"

#include <libdeflate.h>
#include <zlib.h>

uint32_t crc32_update(uint32_t crc, const void *bytes, size_t n)
{
	return libdeflate_crc32(crc, bytes, n);
}

uint32_t crc32_join(uint32_t crc_a, uint32_t crc_b, uint64_t len_b)
{
	return (uint32_t)crc32_combine64(crc_a, crc_b, (z_off64_t)len_b);
}
