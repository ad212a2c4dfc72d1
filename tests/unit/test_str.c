/* Strings, conversions, suggestions, units. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/str.h"

static void test_affixes(void **state)
{
	(void)state;
	assert_true(str_starts("abc", ""));
	assert_true(str_starts("abc", "abc"));
	assert_false(str_starts("abc", "abcd"));
	assert_false(str_starts("", "a"));
	assert_true(str_ends("abc", ""));
	assert_true(str_ends("abc", "bc"));
	assert_false(str_ends("abc", "xabc"));
	assert_false(str_ends("abc", "ab"));
}

static void test_i64(void **state)
{
	static const char *const bad[] = {"",
					  " 1",
					  "1 ",
					  "1.0",
					  "0x10",
					  "-",
					  "--1",
					  "1e3",
					  "ten",
					  "9223372036854775808",
					  "-9223372036854775809",
					  "99999999999999999999999"};
	int64_t v = 5;

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		if (str_to_i64(bad[i], &v))
			fail_msg("'%s' was taken for %lld", bad[i], (long long)v);
	assert_int_equal(v, 5);
	assert_true(str_to_i64("9223372036854775807", &v) && v == INT64_MAX);
	assert_true(str_to_i64("-9223372036854775808", &v) && v == INT64_MIN);
	assert_true(str_to_i64("-0", &v) && v == 0);
	assert_true(str_to_i64("007", &v) && v == 7);
}

static void test_u64(void **state)
{
	static const char *const bad[] = {"", "-1", "+1", " 1", "1 ", "18446744073709551616", "1k"};
	uint64_t v = 5;

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_false(str_to_u64(bad[i], &v));
	assert_true(v == 5);
	assert_true(str_to_u64("18446744073709551615", &v) && v == UINT64_MAX);
	assert_true(str_to_u64("0", &v) && v == 0);
}

static void test_f64(void **state)
{
	static const char *const bad[] = {"", " 1", "1 ", "1.0.0", "1e", "1e400", "-1e400", "one"};
	double v = 5;

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_false(str_to_f64(bad[i], &v));
	assert_true(v == 5);
	assert_true(str_to_f64("0.323", &v) && v == 0.323);
	assert_true(str_to_f64("-1e-3", &v) && v == -0.001);
	assert_true(str_to_f64(".5", &v) && v == 0.5);
	assert_true(str_to_f64("1e-400", &v) && v == 0);
}

static void test_distance(void **state)
{
	char long_a[100], long_b[100];

	(void)state;
	assert_int_equal(str_distance("", ""), 0);
	assert_int_equal(str_distance("abc", "ABC"), 0);
	assert_int_equal(str_distance("", "abc"), 3);
	assert_int_equal(str_distance("abc", ""), 3);
	assert_int_equal(str_distance("kitten", "sitting"), 3);
	assert_int_equal(str_distance("batch_size", "bacth_size"), 1);
	assert_int_equal(str_distance("ab", "ba"), 1);
	memset(long_a, 'a', 99);
	memset(long_b, 'b', 99);
	long_a[99] = long_b[99] = '\0';
	assert_int_equal(str_distance(long_a, long_a), 64);
	long_a[64] = long_b[64] = '\0';
	assert_int_equal(str_distance(long_a, long_b), 64);
}

static void test_nearest(void **state)
{
	static const char *const names[] = {"batch_size", "read_threads", "model_size_bytes",
					    "seed"};

	(void)state;
	assert_string_equal(str_nearest("bacth_size", names, 4), "batch_size");
	assert_string_equal(str_nearest("Read_Thread", names, 4), "read_threads");
	assert_string_equal(str_nearest("seed", names, 4), "seed");
	assert_string_equal(str_nearest("sed", names, 4), "seed");
	assert_null(str_nearest("computation", names, 4));
	assert_null(str_nearest("", names, 4));
	assert_null(str_nearest("seed", names, 0));
}

static void check_bytes(double v, const char *want)
{
	char out[64];

	assert_string_equal(str_bytes(v, out, sizeof(out)), want);
}

static void test_bytes(void **state)
{
	char small[4], large[400];

	(void)state;
	check_bytes(0, "0 B");
	check_bytes(12, "12 B");
	check_bytes(100, "100 B");
	check_bytes(1023, "1023 B");
	check_bytes(1024, "1 KiB");
	check_bytes(1536, "1.5 KiB");
	check_bytes(10 * 1024, "10 KiB");
	check_bytes(1048575, "1 MiB");
	check_bytes(1.5 * 0x1p30, "1.5 GiB");
	check_bytes(980 * 0x1p20, "980 MiB");
	check_bytes(1.4649 * 0x1p30, "1.46 GiB");
	check_bytes(9.999 * 0x1p30, "10 GiB");
	check_bytes(25.34 * 0x1p40, "25.3 TiB");
	check_bytes(2000 * 0x1p50, "2000 PiB");
	check_bytes(-1536, "-1.5 KiB");
	assert_string_equal(str_bytes(123456, small, sizeof(small)), "121");
	/* no such size, but no harm either */
	assert_int_equal(strlen(str_bytes(1e300, large, sizeof(large))), 285 + 4);
	assert_string_equal(str_bytes(INFINITY, large, sizeof(large)), "inf PiB");
}

static void check_number(double v, unsigned digits, const char *want)
{
	char out[32];

	assert_string_equal(str_number(v, digits, out, sizeof(out)), want);
	assert_string_equal(NUMBER(v, digits), want);
}

/* No power of ten where people read it. */
static void test_numbers(void **state)
{
	(void)state;
	check_number(0, 3, "0");
	check_number(1400, 3, "1400");
	check_number(1403.4, 2, "1403");
	check_number(123456789, 4, "123456789");
	check_number(123.45, 3, "123");
	check_number(123.45, 4, "123.5");
	check_number(12.3456, 3, "12.3");
	check_number(10.04, 3, "10");
	check_number(1.4, 3, "1.4");
	check_number(0.99996, 3, "1");
	check_number(999.96, 4, "1000");
	check_number(0.000012345, 3, "0.0000123");
	check_number(-0.0251, 2, "-0.025");
	check_number(1.25e-10, 3, "1.25e-10");
	check_number(2e20, 3, "2e+20");
	check_number(NAN, 3, "nan");
	check_number(-INFINITY, 3, "-inf");
}

static void check_seconds(double v, const char *want)
{
	char out[64];

	assert_string_equal(str_seconds(v, out, sizeof(out)), want);
}

static void test_seconds(void **state)
{
	(void)state;
	check_seconds(0, "0 ms");
	check_seconds(0.31, "310 ms");
	check_seconds(0.9994, "999 ms");
	check_seconds(0.9996, "1.0 s");
	check_seconds(4.2, "4.2 s");
	check_seconds(59.94, "59.9 s");
	check_seconds(59.96, "1 min 00 s");
	check_seconds(185, "3 min 05 s");
	check_seconds(3599.6, "1 h 00 min");
	check_seconds(3720, "1 h 02 min");
	check_seconds(3600.0 * 24 * 400, "9600 h 00 min");
	check_seconds(1e13, "2777777777 h 47 min");
	check_seconds(-5, "-5.0 s");
	check_seconds(INFINITY, "inf s");
	check_seconds(1e300, "1e+300 s");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_affixes),  cmocka_unit_test(test_i64),
		cmocka_unit_test(test_u64),      cmocka_unit_test(test_f64),
		cmocka_unit_test(test_distance), cmocka_unit_test(test_nearest),
		cmocka_unit_test(test_numbers),  cmocka_unit_test(test_bytes),
		cmocka_unit_test(test_seconds),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
