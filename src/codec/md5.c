#include "codec/md5.h"

#include <stdint.h>

#include "codec/hash_tail.h"

/* RFC 1321: floor(2^32 * |sin(i + 1)|), i in radians. */
static const uint32_t sines[64] = {
	0xd76aa478, 0xe8c7b756, 0x242070db, 0xc1bdceee, 0xf57c0faf, 0x4787c62a, 0xa8304613,
	0xfd469501, 0x698098d8, 0x8b44f7af, 0xffff5bb1, 0x895cd7be, 0x6b901122, 0xfd987193,
	0xa679438e, 0x49b40821, 0xf61e2562, 0xc040b340, 0x265e5a51, 0xe9b6c7aa, 0xd62f105d,
	0x02441453, 0xd8a1e681, 0xe7d3fbc8, 0x21e1cde6, 0xc33707d6, 0xf4d50d87, 0x455a14ed,
	0xa9e3e905, 0xfcefa3f8, 0x676f02d9, 0x8d2a4c8a, 0xfffa3942, 0x8771f681, 0x6d9d6122,
	0xfde5380c, 0xa4beea44, 0x4bdecfa9, 0xf6bb4b60, 0xbebfbc70, 0x289b7ec6, 0xeaa127fa,
	0xd4ef3085, 0x04881d05, 0xd9d4d039, 0xe6db99e5, 0x1fa27cf8, 0xc4ac5665, 0xf4292244,
	0x432aff97, 0xab9423a7, 0xfc93a039, 0x655b59c3, 0x8f0ccc92, 0xffeff47d, 0x85845dd1,
	0x6fa87e4f, 0xfe2ce6e0, 0xa3014314, 0x4e0811a1, 0xf7537e82, 0xbd3af235, 0x2ad7d2bb,
	0xeb86d391,
};

static const unsigned char turns[4][4] = {
	{7, 12, 17, 22}, {5, 9, 14, 20}, {4, 11, 16, 23}, {6, 10, 15, 21}};

static uint32_t word_at(const unsigned char *p)
{
	return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

static void block(uint32_t state[4], const unsigned char *p)
{
	uint32_t a = state[0], b = state[1], c = state[2], d = state[3];

	for (unsigned i = 0; i < 64; i++) {
		unsigned round = i / 16, turn = turns[round][i % 4], g;
		uint32_t f;

		switch (round) {
		case 0:
			f = (b & c) | (~b & d);
			g = i;
			break;
		case 1:
			f = (d & b) | (~d & c);
			g = (5 * i + 1) % 16;
			break;
		case 2:
			f = b ^ c ^ d;
			g = (3 * i + 5) % 16;
			break;
		default:
			f = c ^ (b | ~d);
			g = 7 * i % 16;
			break;
		}
		f += a + sines[i] + word_at(p + 4 * g);
		a = d;
		d = c;
		c = b;
		b += f << turn | f >> (32 - turn);
	}
	state[0] += a;
	state[1] += b;
	state[2] += c;
	state[3] += d;
}

void md5(const void *data, size_t n, unsigned char out[16])
{
	uint32_t state[4] = {0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476};
	const unsigned char *p = data;
	unsigned char tail[2 * HASH_BLOCK];
	size_t left = n % HASH_BLOCK;
	size_t end = hash_tail(tail, left ? p + n - left : p, left, n, false);

	for (size_t i = 0; i < n / HASH_BLOCK; i++)
		block(state, p + i * HASH_BLOCK);
	for (size_t i = 0; i < end; i += HASH_BLOCK)
		block(state, tail + i);
	for (unsigned i = 0; i < 16; i++)
		out[i] = (unsigned char)(state[i / 4] >> (8 * (i % 4)));
}
