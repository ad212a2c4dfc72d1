#pragma once
/* Adler-32, the checksum of zlib streams (RFC 1950), by the widest instructions of the processor.
 */
#include <stddef.h>
#include <stdint.h>

#define ADLER32_BEGIN 1u

/* The checksum of `n` bytes continuing `sum` (ADLER32_BEGIN to begin). Pure. */
uint32_t adler32_update(uint32_t sum, const void *bytes, size_t n);
