#include "codec/crc_fold.h"

#include <string.h>

#if defined(__x86_64__)
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#include <sys/auxv.h>
#endif

uint32_t crc_multiply(uint32_t polynomial, uint32_t a, uint32_t b)
{
	uint32_t product = 0;

	for (uint32_t bit = 1u << 31; bit; bit >>= 1) {
		if (a & bit)
			product ^= b;
		b = b & 1 ? b >> 1 ^ polynomial : b >> 1;
	}
	return product;
}

uint32_t crc_power(uint32_t polynomial, uint64_t n)
{
	uint32_t power = 1u << 31, base = 1u << 30; /* x^0 and x^1 */

	for (; n; n >>= 1) {
		if (n & 1)
			power = crc_multiply(polynomial, power, base);
		base = crc_multiply(polynomial, base, base);
	}
	return power;
}

/* The product of two reflected numbers of 64 bits ends one bit low, which the factor makes up for.
 */
static void fold_factors(uint32_t polynomial, unsigned int bits, uint64_t factors[2])
{
	factors[0] = (uint64_t)crc_power(polynomial, bits + 32) << 1;
	factors[1] = (uint64_t)crc_power(polynomial, bits - 32) << 1;
}

static enum crc_way fastest_way(void)
{
#if defined(__x86_64__)
	__builtin_cpu_init();
	if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("vpclmulqdq"))
		return CRC_WIDE_FOLDS;
	return __builtin_cpu_supports("avx") && __builtin_cpu_supports("pclmul") ? CRC_FOLDS
										 : CRC_TABLES;
#elif defined(__aarch64__)
	return getauxval(AT_HWCAP) & HWCAP_PMULL ? CRC_FOLDS : CRC_TABLES;
#else
	return CRC_TABLES;
#endif
}

void crc_poly_init(struct crc_poly *p)
{
	for (uint32_t i = 0; i < 256; i++) {
		uint32_t c = i;

		for (int bit = 0; bit < 8; bit++)
			c = c & 1 ? c >> 1 ^ p->polynomial : c >> 1;
		p->table[0][i] = c;
	}
	for (int k = 1; k < 8; k++)
		for (uint32_t i = 0; i < 256; i++)
			p->table[k][i] =
				p->table[k - 1][i] >> 8 ^ p->table[0][p->table[k - 1][i] & 0xff];
	fold_factors(p->polynomial, 128, p->fold_128);
	fold_factors(p->polynomial, 256, p->fold_256);
	fold_factors(p->polynomial, 512, p->fold_512);
	fold_factors(p->polynomial, 1024, p->fold_1024);
	fold_factors(p->polynomial, 2048, p->fold_2048);
	p->way = fastest_way();
}

static uint32_t by_tables(const struct crc_poly *p, uint32_t state, const uint8_t *b, size_t n)
{
	for (; n >= 8; b += 8, n -= 8) {
		uint32_t low, high;

		memcpy(&low, b, 4);
		memcpy(&high, b + 4, 4);
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
		low = __builtin_bswap32(low);
		high = __builtin_bswap32(high);
#endif
		low ^= state;
		state = p->table[7][low & 0xff] ^ p->table[6][low >> 8 & 0xff] ^
			p->table[5][low >> 16 & 0xff] ^ p->table[4][low >> 24] ^
			p->table[3][high & 0xff] ^ p->table[2][high >> 8 & 0xff] ^
			p->table[1][high >> 16 & 0xff] ^ p->table[0][high >> 24];
	}
	for (; n; b++, n--)
		state = state >> 8 ^ p->table[0][(state ^ *b) & 0xff];
	return state;
}

#if defined(__x86_64__)
#define CASTAGNOLI 0x82f63b78u

/* The processor's own instruction for CRC-32C, which needs no multiplication. */
__attribute__((target("sse4.2"))) static uint32_t by_instruction(uint32_t state, const uint8_t *b,
								 size_t n)
{
	uint64_t sum = state, word;

	for (; n >= 8; b += 8, n -= 8) {
		memcpy(&word, b, 8);
		sum = _mm_crc32_u64(sum, word);
	}
	for (state = (uint32_t)sum; n; b++, n--)
		state = _mm_crc32_u8(state, *b);
	return state;
}
#endif

/* A few bytes. */
static uint32_t by_bytes(const struct crc_poly *p, uint32_t state, const uint8_t *b, size_t n)
{
#if defined(__x86_64__)
	/* every processor that multiplies has the instruction, too */
	if (p->way != CRC_TABLES && p->polynomial == CASTAGNOLI)
		return by_instruction(state, b, n);
#endif
	return by_tables(p, state, b, n);
}

#if defined(__x86_64__) || defined(__aarch64__)

#define FEW 64  /* bytes that are not worth folding */
#define LANES 8 /* independent sums, so that multiplications overlap */

#if defined(__x86_64__)
#define FOLDS __attribute__((target("avx,pclmul")))
typedef __m128i block;
#define LOAD(p) _mm_loadu_si128((const block *)(const void *)(p))
#define STORE(p, v) _mm_storeu_si128((block *)(void *)(p), v)
#define ADD(a, b) _mm_xor_si128(a, b)
#define STATE(s) _mm_cvtsi32_si128((int)(s))
#define FOLD(v, k) _mm_xor_si128(_mm_clmulepi64_si128(v, k, 0x00), _mm_clmulepi64_si128(v, k, 0x11))
#else
#define FOLDS __attribute__((target("+crypto")))
typedef uint64x2_t block;
#define LOAD(p) vreinterpretq_u64_u8(vld1q_u8((const uint8_t *)(p)))
#define STORE(p, v) vst1q_u8((uint8_t *)(p), vreinterpretq_u8_u64(v))
#define ADD(a, b) veorq_u64(a, b)
#define STATE(s) vsetq_lane_u64(s, vdupq_n_u64(0), 0)
#define FOLD(v, k)                                                                                 \
	veorq_u64(vreinterpretq_u64_p128(vmull_p64((poly64_t)vgetq_lane_u64(v, 0),                 \
						   (poly64_t)vgetq_lane_u64(k, 0))),               \
		  vreinterpretq_u64_p128(                                                          \
			  vmull_high_p64(vreinterpretq_p64_u64(v), vreinterpretq_p64_u64(k))))
#endif

/* The sum of what was folded so far and of the whole blocks that follow, as a message of 16 bytes;
 * then the rest. */
FOLDS static uint32_t fold_end(const struct crc_poly *p, block sum, const uint8_t *b, size_t n)
{
	const block near = LOAD(p->fold_128);
	uint8_t last[16];

	for (; n >= 16; b += 16, n -= 16)
		sum = ADD(FOLD(sum, near), LOAD(b));
	STORE(last, sum);
	return by_bytes(p, by_bytes(p, 0, last, 16), b, n);
}

FOLDS static uint32_t by_folds(const struct crc_poly *p, uint32_t state, const uint8_t *b, size_t n)
{
	const block near = LOAD(p->fold_128), far = LOAD(p->fold_1024);
	block sum[LANES];

	if (n < 16 * LANES) {
		sum[0] = ADD(LOAD(b), STATE(state));
		return fold_end(p, sum[0], b + 16, n - 16);
	}
	for (int i = 0; i < LANES; i++)
		sum[i] = LOAD(b + 16 * i);
	sum[0] = ADD(sum[0], STATE(state));
	for (b += 16 * LANES, n -= 16 * LANES; n >= 16 * LANES; b += 16 * LANES, n -= 16 * LANES)
		for (int i = 0; i < LANES; i++)
			sum[i] = ADD(FOLD(sum[i], far), LOAD(b + 16 * i));
	/* in pairs, whose multiplications overlap too */
	for (int i = 0; i < LANES; i += 2)
		sum[i] = ADD(FOLD(sum[i], near), sum[i + 1]);
	for (int i = 0; i < LANES; i += 4)
		sum[i] = ADD(FOLD(sum[i], LOAD(p->fold_256)), sum[i + 2]);
	return fold_end(p, ADD(FOLD(sum[0], LOAD(p->fold_512)), sum[4]), b, n);
}
#endif

#if defined(__x86_64__)
#define WIDE_LANES 8
#define WIDE_FOLDS __attribute__((target("avx2,vpclmulqdq,pclmul")))
#define WIDE_LOAD(p) _mm256_loadu_si256((const __m256i *)(const void *)(p))
#define WIDE_FOLD(v, k)                                                                            \
	_mm256_xor_si256(_mm256_clmulepi64_epi128(v, k, 0x00), _mm256_clmulepi64_epi128(v, k, 0x11))

/* At least 32 * WIDE_LANES bytes. */
WIDE_FOLDS static uint32_t by_wide_folds(const struct crc_poly *p, uint32_t state, const uint8_t *b,
					 size_t n)
{
	const __m256i by_1 = _mm256_broadcastsi128_si256(LOAD(p->fold_256));
	const __m256i by_2 = _mm256_broadcastsi128_si256(LOAD(p->fold_512));
	const __m256i by_4 = _mm256_broadcastsi128_si256(LOAD(p->fold_1024));
	const __m256i far = _mm256_broadcastsi128_si256(LOAD(p->fold_2048));
	__m256i sum[WIDE_LANES];
	block one;

	for (int i = 0; i < WIDE_LANES; i++)
		sum[i] = WIDE_LOAD(b + 32 * i);
	sum[0] = _mm256_xor_si256(sum[0], _mm256_zextsi128_si256(STATE(state)));
	b += 32 * WIDE_LANES;
	n -= 32 * WIDE_LANES;
	for (; n >= 32 * WIDE_LANES; b += 32 * WIDE_LANES, n -= 32 * WIDE_LANES)
		for (int i = 0; i < WIDE_LANES; i++)
			sum[i] = _mm256_xor_si256(WIDE_FOLD(sum[i], far), WIDE_LOAD(b + 32 * i));
	for (int i = 0; i < WIDE_LANES; i += 2)
		sum[i] = _mm256_xor_si256(WIDE_FOLD(sum[i], by_1), sum[i + 1]);
	for (int i = 0; i < WIDE_LANES; i += 4)
		sum[i] = _mm256_xor_si256(WIDE_FOLD(sum[i], by_2), sum[i + 2]);
	sum[0] = _mm256_xor_si256(WIDE_FOLD(sum[0], by_4), sum[4]);
	one = _mm256_castsi256_si128(sum[0]);
	one = ADD(FOLD(one, LOAD(p->fold_128)), _mm256_extracti128_si256(sum[0], 1));
	return fold_end(p, one, b, n);
}
#endif

uint32_t crc_fold(const struct crc_poly *p, enum crc_way way, uint32_t state, const void *bytes,
		  size_t n)
{
#if defined(__x86_64__)
	if (way == CRC_WIDE_FOLDS && n >= 32 * WIDE_LANES)
		return by_wide_folds(p, state, bytes, n);
#endif
#if defined(__x86_64__) || defined(__aarch64__)
	if (way != CRC_TABLES && n >= FEW)
		return by_folds(p, state, bytes, n);
	if (way != CRC_TABLES)
		return by_bytes(p, state, bytes, n);
#endif
	return by_tables(p, state, bytes, n);
}
