/* CRC-32C against published values and against a table of its own. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "base/rng.h"
#include "codec/crc.h"
#include "codec/crc_fold.h"

/* One bit at a time. */
static uint32_t slow(uint32_t crc, const unsigned char *p, size_t n)
{
	crc = ~crc;
	for (size_t i = 0; i < n; i++) {
		crc ^= p[i];
		for (int bit = 0; bit < 8; bit++)
			crc = crc >> 1 ^ (crc & 1 ? 0x82f63b78u : 0);
	}
	return ~crc;
}

static void published(void **state)
{
	unsigned char b[48];

	(void)state;
	assert_int_equal(crc32c_update(0, "123456789", 9), 0xe3069283);
	assert_int_equal(crc32c_masked(0xe3069283), 0xc78ab0e5);
	assert_int_equal(crc32c_update(0, "", 0), 0);
	assert_int_equal(crc32c_update(77, NULL, 0), 77);
	/* RFC 3720, B.4 */
	memset(b, 0, 32);
	assert_int_equal(crc32c_update(0, b, 32), 0x8a9136aa);
	memset(b, 0xff, 32);
	assert_int_equal(crc32c_update(0, b, 32), 0x62a8ab43);
	for (int i = 0; i < 32; i++)
		b[i] = (unsigned char)i;
	assert_int_equal(crc32c_update(0, b, 32), 0x46dd794e);
	for (int i = 0; i < 32; i++)
		b[i] = (unsigned char)(31 - i);
	assert_int_equal(crc32c_update(0, b, 32), 0x113fdb5c);
}

static void any_length_and_place(void **state)
{
	unsigned char *p = xmalloc(4200);

	(void)state;
	for (size_t i = 0; i < 4200; i++)
		p[i] = (unsigned char)rng_word(5, i);
	for (size_t n = 0; n < 300; n++) {
		for (size_t at = 0; at < 17; at++)
			assert_int_equal(crc32c_update(0, p + at, n), slow(0, p + at, n));
	}
	for (size_t cut = 0; cut <= 4200; cut += 37)
		assert_int_equal(crc32c_update(crc32c_update(0, p, cut), p + cut, 4200 - cut),
				 slow(0, p, 4200));
	free(p);
}

/* Also those that a faster one hides on this processor. */
static void each_way(void **state)
{
	static struct crc_poly poly[2] = {{.polynomial = 0xedb88320u}, {.polynomial = 0x82f63b78u}};
	unsigned char *p = xmalloc(4200);

	(void)state;
	for (size_t i = 0; i < 4200; i++)
		p[i] = (unsigned char)rng_word(6, i);
	for (int k = 0; k < 2; k++) {
		crc_poly_init(&poly[k]);
		for (size_t n = 1; n < 4100; n += n < 700 ? 1 : 97) {
			const unsigned char *at = p + n % 19;
			uint32_t want = crc_fold(&poly[k], CRC_TABLES, (uint32_t)n, at, n);

			for (int way = CRC_FOLDS; way <= (int)poly[k].way; way++)
				assert_int_equal(
					crc_fold(&poly[k], (enum crc_way)way, (uint32_t)n, at, n),
					want);
		}
	}
	assert_int_equal(~crc_fold(&poly[1], CRC_TABLES, UINT32_MAX, p, 4200), slow(0, p, 4200));
	free(p);
}

static void joins(void **state)
{
	static const unsigned char none[5000];

	(void)state;
	for (size_t n = 0; n < sizeof(none); n += 1 + n / 3) {
		uint32_t a = slow(0, (const unsigned char *)"head", 4), b = slow(0, none, n);

		assert_int_equal(crc32c_join(a, b, n), slow(a, none, n));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(published),
		cmocka_unit_test(any_length_and_place),
		cmocka_unit_test(each_way),
		cmocka_unit_test(joins),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
