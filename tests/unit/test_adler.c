/* Adler-32 against zlib's, for any length, place and beginning. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <zlib.h>

#include "base/alloc.h"
#include "base/rng.h"
#include "codec/adler.h"

static void published(void **state)
{
	(void)state;
	assert_int_equal(adler32_update(ADLER32_BEGIN, "Wikipedia", 9), 0x11e60398);
	assert_int_equal(adler32_update(ADLER32_BEGIN, NULL, 0), 1);
}

static void any_length_and_place(void **state)
{
	enum { MOST = 20000 };
	unsigned char *p = xmalloc(MOST + 64);

	(void)state;
	for (size_t i = 0; i < MOST + 64; i++)
		p[i] = (unsigned char)rng_word(5, i);
	for (size_t n = 0; n < 300; n++) {
		for (size_t at = 0; at < 33; at++)
			assert_int_equal(adler32_update(ADLER32_BEGIN, p + at, n),
					 adler32(1, p + at, (uInt)n));
	}
	for (size_t n = 5400; n < MOST; n += 61)
		assert_int_equal(adler32_update(0xfff0fff0, p + n % 64, n),
				 adler32(0xfff0fff0, p + n % 64, (uInt)n));
	free(p);
}

/* The largest bytes after the largest sums: nothing runs over. */
static void largest(void **state)
{
	const size_t most = 1 << 20;
	unsigned char *p = xmalloc(most);

	(void)state;
	memset(p, 0xff, most);
	for (size_t n = 5000; n < 17000; n++)
		assert_int_equal(adler32_update(0xfff0fff0, p, n), adler32(0xfff0fff0, p, (uInt)n));
	assert_int_equal(adler32_update(0xfff0fff0, p, most), adler32(0xfff0fff0, p, (uInt)most));
	free(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(published),
		cmocka_unit_test(any_length_and_place),
		cmocka_unit_test(largest),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
