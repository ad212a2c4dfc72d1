/* SHA-256, block by block. */
#include "codec/digest.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

/* The end of what MD5 (RFC 1321) and SHA-256 (FIPS 180-4) digest: a bit that is set, zeros, and the
 * length in bits. */

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

#if defined(__x86_64__)
#include <cpuid.h>
#include <immintrin.h>
#endif

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

void sha256_blocks_plain(uint32_t state[8], const unsigned char *p, size_t blocks)
{
	for (; blocks; blocks--, p += HASH_BLOCK) {
		uint32_t w[64], s[8];

		for (int i = 0; i < 16; i++)
			w[i] = word_at(p + 4 * i);
		for (int i = 16; i < 64; i++) {
			uint32_t a = w[i - 15], b = w[i - 2];

			w[i] = w[i - 16] + (rotated(a, 7) ^ rotated(a, 18) ^ a >> 3) + w[i - 7] +
			       (rotated(b, 17) ^ rotated(b, 19) ^ b >> 10);
		}
		memcpy(s, state, sizeof(s));
		/* the eight words change places with each round: here the names do */
		for (int i = 0; i < 64; i++) {
			uint32_t *a = &s[(64 - i) & 7], *b = &s[(65 - i) & 7],
				 *c = &s[(66 - i) & 7], *d = &s[(67 - i) & 7],
				 *e = &s[(68 - i) & 7], *f = &s[(69 - i) & 7],
				 *g = &s[(70 - i) & 7], *h = &s[(71 - i) & 7];
			uint32_t one = *h + (rotated(*e, 6) ^ rotated(*e, 11) ^ rotated(*e, 25)) +
				       ((*e & *f) ^ (~*e & *g)) + round_constants[i] + w[i];
			uint32_t two = (rotated(*a, 2) ^ rotated(*a, 13) ^ rotated(*a, 22)) +
				       ((*a & *b) ^ (*a & *c) ^ (*b & *c));

			*d += one;
			*h = one + two;
		}
		for (int i = 0; i < 8; i++)
			state[i] += s[i];
	}
}

#if defined(__x86_64__)
/* The processor's own rounds, two to an instruction: a tenth of the time. The words are held as
 * A, B, E, F and C, D, G, H. */
__attribute__((target("sha,sse4.1"))) static void take_blocks_sha(uint32_t state[8],
								  const unsigned char *p,
								  size_t blocks)
{
	const __m128i swap = _mm_set_epi64x(0x0c0d0e0f08090a0b, 0x0405060700010203);
	__m128i low = _mm_loadu_si128((const __m128i *)(const void *)state);
	__m128i high = _mm_loadu_si128((const __m128i *)(const void *)(state + 4));
	__m128i abef, cdgh;

	low = _mm_shuffle_epi32(low, 0xb1);
	high = _mm_shuffle_epi32(high, 0x1b);
	abef = _mm_alignr_epi8(low, high, 8);
	cdgh = _mm_blend_epi16(high, low, 0xf0);
	for (; blocks; blocks--, p += HASH_BLOCK) {
		__m128i abef_was = abef, cdgh_was = cdgh, w[4];

		for (int i = 0; i < 16; i++) {
			__m128i m, k;

			if (i < 4) {
				m = _mm_loadu_si128((const __m128i *)(const void *)(p + 16 * i));
				m = _mm_shuffle_epi8(m, swap);
			} else {
				__m128i last = w[(i + 3) & 3], before = w[(i + 2) & 3];

				m = _mm_sha256msg1_epu32(w[i & 3], w[(i + 1) & 3]);
				m = _mm_add_epi32(m, _mm_alignr_epi8(last, before, 4));
				m = _mm_sha256msg2_epu32(m, last);
			}
			w[i & 3] = m;
			k = _mm_loadu_si128(
				(const __m128i *)(const void *)(round_constants + 4 * i));
			m = _mm_add_epi32(m, k);
			cdgh = _mm_sha256rnds2_epu32(cdgh, abef, m);
			abef = _mm_sha256rnds2_epu32(abef, cdgh, _mm_shuffle_epi32(m, 0x0e));
		}
		abef = _mm_add_epi32(abef, abef_was);
		cdgh = _mm_add_epi32(cdgh, cdgh_was);
	}
	low = _mm_shuffle_epi32(abef, 0x1b);
	high = _mm_shuffle_epi32(cdgh, 0xb1);
	_mm_storeu_si128((__m128i *)(void *)state, _mm_blend_epi16(low, high, 0xf0));
	_mm_storeu_si128((__m128i *)(void *)(state + 4), _mm_alignr_epi8(high, low, 8));
}

static bool has_sha(void)
{
	unsigned a, b, c, d;

	return __get_cpuid(1, &a, &b, &c, &d) && (c & bit_SSE4_1) && (c & bit_SSSE3) &&
	       __get_cpuid_count(7, 0, &a, &b, &c, &d) && (b & bit_SHA);
}
#endif

static void take_blocks(uint32_t state[8], const unsigned char *p, size_t blocks)
{
#if defined(__x86_64__)
	static _Atomic int known; /* 0: not asked yet */
	int is = atomic_load_explicit(&known, memory_order_relaxed);

	if (is == 0) {
		is = has_sha() ? 1 : -1;
		atomic_store_explicit(&known, is, memory_order_relaxed);
	}
	if (is > 0) {
		take_blocks_sha(state, p, blocks);
		return;
	}
#endif
	sha256_blocks_plain(state, p, blocks);
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
		take_blocks(h->state, h->block, 1);
	}
	if (n >= sizeof(h->block)) {
		size_t blocks = n / sizeof(h->block);

		take_blocks(h->state, p, blocks);
		p += blocks * sizeof(h->block);
		n -= blocks * sizeof(h->block);
	}
	if (n)
		memcpy(h->block, p, n);
}

static void sha256_finish(struct sha256 *h)
{
	unsigned char tail[2 * HASH_BLOCK];
	size_t end = hash_tail(tail, h->block, h->bytes % HASH_BLOCK, h->bytes, true);

	take_blocks(h->state, tail, end / HASH_BLOCK);
}

static void sha256_end_bytes(struct sha256 *h, unsigned char out[SHA256_BYTES])
{
	sha256_finish(h);
	for (int i = 0; i < SHA256_BYTES; i++)
		out[i] = (unsigned char)(h->state[i / 4] >> (24 - 8 * (i % 4)));
}

void sha256_end(struct sha256 *h, char hex[SHA256_HEX])
{
	sha256_finish(h);
	for (int i = 0; i < 8; i++)
		snprintf(hex + 8 * i, 9, "%08x", h->state[i]);
}

void hmac_sha256(const void *key, size_t key_n, const void *data, size_t n,
		 unsigned char out[SHA256_BYTES])
{
	unsigned char pad[HASH_BLOCK] = {0}, inner[SHA256_BYTES];
	struct sha256 h;

	sha256_begin(&h);
	if (key_n > HASH_BLOCK) {
		sha256_add(&h, key, key_n);
		sha256_end_bytes(&h, pad);
		sha256_begin(&h);
	} else {
		memcpy(pad, key, key_n);
	}
	for (size_t i = 0; i < HASH_BLOCK; i++)
		pad[i] ^= 0x36;
	sha256_add(&h, pad, HASH_BLOCK);
	sha256_add(&h, data, n);
	sha256_end_bytes(&h, inner);
	for (size_t i = 0; i < HASH_BLOCK; i++)
		pad[i] ^= 0x36 ^ 0x5c;
	sha256_begin(&h);
	sha256_add(&h, pad, HASH_BLOCK);
	sha256_add(&h, inner, sizeof(inner));
	sha256_end_bytes(&h, out);
}

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

static uint32_t le_word_at(const unsigned char *p)
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
		f += a + sines[i] + le_word_at(p + 4 * g);
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
