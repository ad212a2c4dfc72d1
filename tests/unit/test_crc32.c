/* CRC-32: known values, pieces, and joins of any length. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "base/rng.h"
#include "codec/crc.h"

/* Bit by bit, from the polynomial. */
static uint32_t slow_crc(const unsigned char *p, size_t n)
{
	uint32_t c = UINT32_MAX;

	for (size_t i = 0; i < n; i++) {
		c ^= p[i];
		for (int k = 0; k < 8; k++)
			c = (c >> 1) ^ ((0u - (c & 1)) & 0xedb88320u);
	}
	return ~c;
}

/* a * b modulo the polynomial; the highest bit is x^0. */
static uint32_t multiply(uint32_t a, uint32_t b)
{
	uint32_t product = 0;

	for (uint32_t m = 1u << 31; m; m >>= 1) {
		if (a & m)
			product ^= b;
		b = (b >> 1) ^ ((0u - (b & 1)) & 0xedb88320u);
	}
	return product;
}

/* crc_a * x^(8 len) + crc_b, by squaring. */
static uint32_t slow_join(uint32_t crc_a, uint32_t crc_b, uint64_t len)
{
	uint32_t power = 1u << 23; /* x^8 */

	for (; len; len >>= 1) {
		if (len & 1)
			crc_a = multiply(crc_a, power);
		power = multiply(power, power);
	}
	return crc_a ^ crc_b;
}

static void test_known(void **state)
{
	(void)state;
	assert_int_equal(crc32_update(0, "123456789", 9), 0xcbf43926);
	assert_int_equal(crc32_update(0, "", 0), 0);
	assert_int_equal(crc32_update(0, NULL, 0), 0);
	assert_int_equal(crc32_update(0xcbf43926, NULL, 0), 0xcbf43926);
}

static void test_pieces(void **state)
{
	enum { N = 3000 };
	unsigned char data[N];

	(void)state;
	for (size_t i = 0; i < N; i++)
		data[i] = (unsigned char)rng_word(1, i);
	for (size_t cut = 0; cut <= N; cut += cut < 70 ? 1 : 211) {
		uint32_t whole = slow_crc(data, N);
		uint32_t a = crc32_update(0, data, cut);
		uint32_t b = crc32_update(0, data + cut, N - cut);

		assert_int_equal(crc32_update(a, data + cut, N - cut), whole);
		assert_int_equal(crc32_join(a, b, N - cut), whole);
	}
}

static void test_long_joins(void **state)
{
	static const uint64_t edge[] = {0,
					1,
					UINT32_MAX - 1ull,
					UINT32_MAX,
					1ull << 32,
					1ull << 40,
					2ull * UINT32_MAX,
					INT64_MAX,
					1ull << 63,
					UINT64_MAX - 1,
					UINT64_MAX};

	(void)state;
	for (uint64_t i = 0; i < 400; i++) {
		uint32_t a = (uint32_t)rng_word(2, i), b = (uint32_t)rng_word(3, i);
		size_t k = i % (sizeof(edge) / sizeof(edge[0]));
		uint64_t len = i < 100 ? edge[k] : rng_word(4, i) >> (i % 64);

		assert_int_equal(crc32_join(a, b, len), slow_join(a, b, len));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_known),
		cmocka_unit_test(test_pieces),
		cmocka_unit_test(test_long_joins),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
