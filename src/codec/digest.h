#pragma once
/* Digests: SHA-256 (FIPS 180-4) of result files, MD5 (RFC 1321) for the names of DFTracer's hashes.
 */
#include <stddef.h>
#include <stdint.h>

#define SHA256_BYTES 32
#define SHA256_HEX 65 /* with the terminating zero */

struct sha256 {
	uint32_t state[8];
	uint64_t bytes;          /* taken so far */
	unsigned char block[64]; /* the bytes that are no whole block yet, at its front */
};

void sha256_begin(struct sha256 *h);
void sha256_add(struct sha256 *h, const void *data, size_t n);
/* Writes 64 hexadecimal digits, in lower case, and a zero; `h` is used up. */
void sha256_end(struct sha256 *h, char hex[SHA256_HEX]);
/* HMAC (RFC 2104) with SHA-256. */
void hmac_sha256(const void *key, size_t key_n, const void *data, size_t n,
		 unsigned char out[SHA256_BYTES]);
/* Takes whole blocks of 64 bytes into a state, without the processor's own instructions for that:
 * what sha256_add does where it has none. The tests compare both. */
void sha256_blocks_plain(uint32_t state[8], const unsigned char *p, size_t blocks);

void md5(const void *data, size_t n, unsigned char out[16]);
