#pragma once
/* The end of what MD5 (RFC 1321) and SHA-256 (FIPS 180-4) digest: a bit that is set, zeros, and the
 * length in bits. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define HASH_BLOCK 64

/* Fills `tail` with the last `left` bytes of a message, fewer than a block, and its end. Returns
 * how many bytes of `tail` are to be digested: one block or two. */
static inline size_t hash_tail(unsigned char tail[2 * HASH_BLOCK], const unsigned char *rest,
			       size_t left, uint64_t message_bytes, bool big_endian)
{
	size_t end = left + 9 <= HASH_BLOCK ? HASH_BLOCK : 2 * HASH_BLOCK;

	memset(tail, 0, 2 * HASH_BLOCK);
	if (left)
		memcpy(tail, rest, left);
	tail[left] = 0x80;
	for (unsigned i = 0; i < 8; i++)
		tail[end - 8 + i] =
			(unsigned char)(message_bytes * 8 >> (8 * (big_endian ? 7 - i : i)));
	return end;
}
