/* SHA-256, block by block. */
#include "codec/sha256.h"

#include <stdio.h>
#include <string.h>

#include "codec/hash_tail.h"

static const uint32_t round_constants[64] = {
	0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4,
	0xab1c5ed5, 0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe,
	0x9bdc06a7, 0xc19bf174, 0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f,
	0x4a7484aa, 0x5cb0a9dc, 0x76f988da, 0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7,
	0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967, 0x27b70a85, 0x2e1b2138, 0x4d2c6dfc,
	0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85, 0xa2bfe8a1, 0xa81a664b,
	0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070, 0x19a4c116,
	0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
	0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7,
	0xc67178f2};

static uint32_t rotated(uint32_t x, int by)
{
	return x >> by | x << (32 - by);
}

static uint32_t word_at(const unsigned char *p)
{
	return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | (uint32_t)p[3];
}

static void take_block(struct sha256 *h, const unsigned char *block)
{
	uint32_t w[64], s[8];

	for (int i = 0; i < 16; i++)
		w[i] = word_at(block + 4 * i);
	for (int i = 16; i < 64; i++) {
		uint32_t a = w[i - 15], b = w[i - 2];

		w[i] = w[i - 16] + (rotated(a, 7) ^ rotated(a, 18) ^ a >> 3) + w[i - 7] +
		       (rotated(b, 17) ^ rotated(b, 19) ^ b >> 10);
	}
	memcpy(s, h->state, sizeof(s));
	for (int i = 0; i < 64; i++) {
		uint32_t one = s[7] + (rotated(s[4], 6) ^ rotated(s[4], 11) ^ rotated(s[4], 25)) +
			       ((s[4] & s[5]) ^ (~s[4] & s[6])) + round_constants[i] + w[i];
		uint32_t two = (rotated(s[0], 2) ^ rotated(s[0], 13) ^ rotated(s[0], 22)) +
			       ((s[0] & s[1]) ^ (s[0] & s[2]) ^ (s[1] & s[2]));

		memmove(s + 1, s, 7 * sizeof(*s));
		s[4] += one;
		s[0] = one + two;
	}
	for (int i = 0; i < 8; i++)
		h->state[i] += s[i];
}

void sha256_begin(struct sha256 *h)
{
	static const uint32_t start[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
					  0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};

	memset(h, 0, sizeof(*h));
	memcpy(h->state, start, sizeof(start));
}

void sha256_add(struct sha256 *h, const void *data, size_t n)
{
	const unsigned char *p = data;
	size_t held = h->bytes % sizeof(h->block);

	h->bytes += n;
	if (held) {
		size_t part = sizeof(h->block) - held;

		part = part < n ? part : n;
		memcpy(h->block + held, p, part);
		p += part;
		n -= part;
		if (held + part < sizeof(h->block))
			return;
		take_block(h, h->block);
	}
	for (; n >= sizeof(h->block); n -= sizeof(h->block), p += sizeof(h->block))
		take_block(h, p);
	if (n)
		memcpy(h->block, p, n);
}

void sha256_end(struct sha256 *h, char hex[SHA256_HEX])
{
	unsigned char tail[2 * HASH_BLOCK];
	size_t end = hash_tail(tail, h->block, h->bytes % HASH_BLOCK, h->bytes, true);

	for (size_t i = 0; i < end; i += HASH_BLOCK)
		take_block(h, tail + i);
	for (int i = 0; i < 8; i++)
		snprintf(hex + 8 * i, 9, "%08x", h->state[i]);
}
