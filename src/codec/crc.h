#pragma once
/* CRC-32 (IEEE 802.3: zip, gzip, PNG) and CRC-32C (Castagnoli: iSCSI, TFRecord), by the
 * widest instructions of the processor. All pure. */
#include <stddef.h>
#include <stdint.h>

/* The CRC of `n` bytes continuing `crc` (0 to begin). */
uint32_t crc32_update(uint32_t crc, const void *bytes, size_t n);
/* The CRC of the concatenation of A (crc_a) and B (crc_b, len_b bytes). */
uint32_t crc32_join(uint32_t crc_a, uint32_t crc_b, uint64_t len_b);

/* The CRC of `n` bytes continuing `crc` (0 to begin). */
uint32_t crc32c_update(uint32_t crc, const void *bytes, size_t n);
/* The CRC of the concatenation of A (crc_a) and B (crc_b, len_b bytes). */
uint32_t crc32c_join(uint32_t crc_a, uint32_t crc_b, uint64_t len_b);
/* TFRecord's form of a CRC, so that checksums of data that hold checksums stay apart. */
static inline uint32_t crc32c_masked(uint32_t crc)
{
	return (crc >> 15 | crc << 17) + 0xa282ead8u;
}
