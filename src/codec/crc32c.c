/* CRC-32C by ISA-L. */
#include "codec/crc32c.h"

#include <isa-l/crc.h>

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
