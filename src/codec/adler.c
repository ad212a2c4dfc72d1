#include "codec/adler.h"

#include <stdbool.h>

#if defined(__x86_64__)
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif

#define PRIME 65521u
#define STEP 64 /* bytes whose products are added up at once */
/* The most bytes, a multiple of STEP, after which no sum of 32 bits has run over: 255 n (n + 1) / 2
 * + (n + 1) (PRIME - 1) < 2^32 (RFC 1950 names 5,552). */
#define SAFE 5504

/* A part of at most SAFE bytes: `a` is the sum of bytes, `b` the sum of those sums. */
static void by_bytes(uint32_t *a, uint32_t *b, const uint8_t *p, size_t n)
{
	for (; n; p++, n--) {
		*a += *p;
		*b += *a;
	}
}

#if defined(__x86_64__)
#define WIDE __attribute__((target("avx2")))

WIDE static uint32_t total(__m256i v)
{
	__m128i s = _mm_add_epi32(_mm256_castsi256_si128(v), _mm256_extracti128_si256(v, 1));

	s = _mm_add_epi32(s, _mm_shuffle_epi32(s, _MM_SHUFFLE(1, 0, 3, 2)));
	return (uint32_t)_mm_cvtsi128_si32(
		_mm_add_epi32(s, _mm_shuffle_epi32(s, _MM_SHUFFLE(2, 3, 0, 1))));
}

/* `n` is a multiple of STEP. A byte i of a step adds (64 - i) times itself to `b`, and each earlier
 * step's bytes 64 times. */
WIDE static void by_steps(uint32_t *a, uint32_t *b, const uint8_t *p, size_t n)
{
	const __m256i zero = _mm256_setzero_si256(), ones = _mm256_set1_epi16(1);
	const __m256i low =
		_mm256_setr_epi8(32, 31, 30, 29, 28, 27, 26, 25, 24, 23, 22, 21, 20, 19, 18, 17, 16,
				 15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1);
	const __m256i high = _mm256_add_epi8(low, _mm256_set1_epi8(32));
	__m256i bytes = zero, earlier = zero, products = zero;

	*b += *a * (uint32_t)n;
	for (; n; p += STEP, n -= STEP) {
		const __m256i x = _mm256_loadu_si256((const __m256i *)(const void *)p);
		const __m256i y = _mm256_loadu_si256((const __m256i *)(const void *)(p + 32));
		/* at most 255 * (64 + 63) + 255 * (32 + 31) > 2^15 - 1: not added before they are
		 * widened */
		const __m256i px = _mm256_madd_epi16(_mm256_maddubs_epi16(x, high), ones);
		const __m256i py = _mm256_madd_epi16(_mm256_maddubs_epi16(y, low), ones);

		earlier = _mm256_add_epi32(earlier, bytes);
		products = _mm256_add_epi32(products, _mm256_add_epi32(px, py));
		bytes = _mm256_add_epi32(bytes, _mm256_add_epi32(_mm256_sad_epu8(x, zero),
								 _mm256_sad_epu8(y, zero)));
	}
	*a += total(bytes);
	*b += total(products) + total(earlier) * STEP;
}

static bool has_steps(void)
{
	__builtin_cpu_init();
	return __builtin_cpu_supports("avx2");
}
#elif defined(__aarch64__)
static void by_steps(uint32_t *a, uint32_t *b, const uint8_t *p, size_t n)
{
	uint32x4_t bytes = vdupq_n_u32(0), earlier = bytes;
	uint16x8_t column[8];
	uint32_t products = 0;

	for (int i = 0; i < 8; i++)
		column[i] = vdupq_n_u16(0);
	*b += *a * (uint32_t)n;
	for (; n; p += STEP, n -= STEP) {
		uint16x8_t pairs = vdupq_n_u16(0);

		earlier = vaddq_u32(earlier, bytes);
		for (int i = 0; i < 4; i++) {
			const uint8x16_t x = vld1q_u8(p + 16 * i);

			pairs = vpadalq_u8(pairs, x);
			/* at most SAFE / STEP of them: 86 * 255 < 2^16 */
			column[2 * i] = vaddw_u8(column[2 * i], vget_low_u8(x));
			column[2 * i + 1] = vaddw_u8(column[2 * i + 1], vget_high_u8(x));
		}
		bytes = vpadalq_u16(bytes, pairs);
	}
	for (uint32_t i = 0; i < STEP; i++)
		products += (STEP - i) * ((const uint16_t *)column)[i];
	*a += vaddvq_u32(bytes);
	*b += products + vaddvq_u32(earlier) * STEP;
}

static bool has_steps(void)
{
	return true;
}
#else
static void by_steps(uint32_t *a, uint32_t *b, const uint8_t *p, size_t n)
{
	by_bytes(a, b, p, n);
}

static bool has_steps(void)
{
	return false;
}
#endif

uint32_t adler32_update(uint32_t sum, const void *bytes, size_t n)
{
	const bool wide = has_steps();
	const uint8_t *p = bytes;
	uint32_t a = sum & 0xffff, b = sum >> 16;

	while (n) {
		const size_t part = n < SAFE ? n : SAFE;
		const size_t steps = wide ? part - part % STEP : 0;

		if (steps)
			by_steps(&a, &b, p, steps);
		by_bytes(&a, &b, p + steps, part - steps);
		a %= PRIME;
		b %= PRIME;
		p += part;
		n -= part;
	}
	return b << 16 | a;
}
