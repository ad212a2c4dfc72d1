#pragma once
/* Adler-32, the checksum of zlib streams, by the fastest library in the build. */
#include <stddef.h>
#include <stdint.h>

#define ADLER32_BEGIN 1u

/* The checksum of n bytes continuing `adler` (ADLER32_BEGIN to begin). Pure. */
uint32_t adler32_update(uint32_t adler, const void *bytes, size_t n);
