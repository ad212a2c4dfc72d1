#pragma once
/* CRC-32 (IEEE 802.3, as zip, gzip and PNG use it), by the fastest library in the build. */
#include <stddef.h>
#include <stdint.h>

/* The CRC of `n` bytes continuing `crc` (0 to begin). Pure. */
uint32_t crc32_update(uint32_t crc, const void *bytes, size_t n);
/* The CRC of the concatenation of A (crc_a) and B (crc_b, len_b bytes). Pure. */
uint32_t crc32_join(uint32_t crc_a, uint32_t crc_b, uint64_t len_b);
