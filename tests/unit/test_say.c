#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/say.h"
#include "base/str.h"

static void check(const char *in, enum say_keep keep, const char *want)
{
	struct buf b = {0};
	char out[128];

	buf_puts(&b, "");
	buf_put_said(&b, in, strlen(in), keep);
	assert_string_equal(b.data, want);
	assert_int_equal(say_escape(out, sizeof(out), in, strlen(in), keep), strlen(want));
	assert_string_equal(out, want);
	/* what was escaped stays as it is */
	buf_reset(&b);
	buf_put_said(&b, want, strlen(want), keep);
	assert_string_equal(b.data, want);
	buf_release(&b);
}

static void test_characters(void **state)
{
	(void)state;
	check("plain text, \xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80 \\", SAY_LINE,
	      "plain text, \xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80 \\");
	check("a\nb\tc\rd", SAY_LINE, "a\\nb\\tc\\rd");
	check("a\nb\tc\rd", SAY_LINES, "a\nb\\tc\\rd");
	check("\x01\x1b]0;x\x07\x7f", SAY_LINES, "\\x01\\x1b]0;x\\x07\\x7f");
	check("\xc2\x80\xc2\x85\xc2\x9b\xc2\x9f\xc2\xa0", SAY_LINE,
	      "\\u0080\\u0085\\u009b\\u009f\xc2\xa0");
	check("\xe2\x80\xae|\xe2\x80\xa8\xe2\x80\xa9|\xe2\x81\xa6\xe2\x81\xa9|\xe2\x80\x8e",
	      SAY_LINE, "\\u202e|\\u2028\\u2029|\\u2066\\u2069|\\u200e");
	/* alone, cut, overlong, a surrogate, beyond the last character */
	check("\xff \x80 \xc3 \xe2\x82 \xc0\xaf \xed\xa0\x80 \xf4\x90\x80\x80", SAY_LINE,
	      "\\xff \\x80 \\xc3 \\xe2\\x82 \\xc0\\xaf \\xed\\xa0\\x80 \\xf4\\x90\\x80\\x80");
}

static void test_colours(void **state)
{
	(void)state;
	check("\x1b[1;31mFAIL\x1b[0m", SAY_LOOKS, "\x1b[1;31mFAIL\x1b[0m");
	check("\x1b[1;31mFAIL\x1b[0m", SAY_LINES, "\\x1b[1;31mFAIL\\x1b[0m");
	check("\x1b[2J\x1b[1;31\x1b]52;c;\x1b[", SAY_LOOKS, "\\x1b[2J\\x1b[1;31\\x1b]52;c;\\x1b[");
}

static void test_array(void **state)
{
	char out[8];

	(void)state;
	/* whole characters and whole escapes only */
	assert_int_equal(say_escape(out, 8, "123456\xc3\xa9", 8, SAY_LINE), 6);
	assert_string_equal(out, "123456");
	assert_int_equal(say_escape(out, 8, "12345\x1b", 6, SAY_LINE), 5);
	assert_int_equal(say_escape(out, 8, "123456789", 9, SAY_LINE), 7);
	assert_int_equal(say_escape(out, 1, "1", 1, SAY_LINE), 0);
	assert_int_equal(utf8_whole("12\xe2\x82", 4), 2);
	assert_int_equal(utf8_whole("12\xe2\x82\xac", 5), 5);
	assert_int_equal(utf8_whole("\x82\x82", 2), 2);
	assert_int_equal(utf8_whole("\xf0", 1), 0);
	assert_int_equal(utf8_whole("", 0), 0);
}

__attribute__((format(printf, 2, 3))) static void formatted(const char *want, const char *fmt, ...)
{
	struct buf b = {0}, same = {0};
	va_list ap;

	va_start(ap, fmt);
	buf_vsay(&b, fmt, ap);
	va_end(ap);
	assert_string_equal(b.data, want);
	/* the C library agrees where nothing is to be escaped */
	va_start(ap, fmt);
	buf_vprintf(&same, fmt, ap);
	va_end(ap);
	if (!strpbrk(want, "\\\xc3"))
		assert_string_equal(same.data, want);
	buf_release(&b);
	buf_release(&same);
}

static void test_format(void **state)
{
	(void)state;
	formatted("", "%s", "");
	formatted("text\n", "%s\n", "text");
	formatted("a\\nb\n\x1b[1m", "%s\n\x1b[1m", "a\nb");
	formatted("[  ab][ab  ][   x][1]", "[%4s][%-4s][%*s][%c]", "ab", "ab", 4, "x", '1');
	formatted("\\x1b", "%c", '\x1b');
	formatted("[\xc3\xa9  ]", "[%-3s]", "\xc3\xa9");
	formatted("[12]", "[%.2s]", "1234");
	formatted("[\xc3\xa9]", "[%.3s]", "\xc3\xa9\xc3\xa9"); /* not half of the second one */
	formatted("[12][1 ]", "[%.*s][%-*.*s]", 2, "1234", 2, 1, "12");
	formatted("-1 1 ff FF 7 +1  1 007", "%d %u %x %X %o %+d % d %03d", -1, 1u, 255u, 255u, 7u,
		  1, 1, 7);
	formatted("-9223372036854775808 18446744073709551615 -5 6 7", "%lld %llu %ld %zu %jd",
		  (long long)INT64_MIN, (unsigned long long)UINT64_MAX, -5L, (size_t)6,
		  (intmax_t)7);
	formatted("    42|42    |1.50|1e+09|+3|100 %", "%6d|%-6d|%.2f|%g|%+.3g|%.0f %%", 42, 42,
		  1.5, 1e9, 3.0, 100.0);
	formatted("   1.5|0x1f", "%*.*f|%#x", 6, 1, 1.5, 31u);
	formatted("[ab  ]", "[%*s]", -4, "ab");
}

static void test_wrap(void **state)
{
	struct buf b = {0};

	(void)state;
	buf_wrap(&b, "one two\nthree \x1b[31mfour\xff", 0, 2, 12);
	assert_string_equal(b.data, "one two\n  three\n  \\x1b[31mfour\\xff\n");
	buf_release(&b);
}

static void word(const char *in, const char *want)
{
	struct buf b = {0};

	shell_put_word(&b, in);
	assert_string_equal(b.data, want);
	buf_release(&b);
}

static void test_shell(void **state)
{
	(void)state;
	word("a/b-c_d.e=f,g:1@2%", "a/b-c_d.e=f,g:1@2%");
	word("", "''");
	word("a b$(c)`d`\"e\"", "'a b$(c)`d`\"e\"'");
	word("it's", "'it'\\''s'");
	word("\xc3\xa9", "'\xc3\xa9'");
	word("a\n'\\\x1b[1\xff\xe2\x80\xae", "$'a\\n\\'\\\\\\033[1\\377\\342\\200\\256'");
}

static void test_markup(void **state)
{
	struct buf b = {0};

	(void)state;
	buf_put_markup(&b, "<!--<script a=\"b\" c='d'>&\n\x1b\xff");
	assert_string_equal(
		b.data, "&lt;!--&lt;script a=&quot;b&quot; c=&#39;d&#39;&gt;&amp;\\n\\x1b\\xff");
	buf_release(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_characters), cmocka_unit_test(test_colours),
		cmocka_unit_test(test_array),      cmocka_unit_test(test_format),
		cmocka_unit_test(test_wrap),       cmocka_unit_test(test_shell),
		cmocka_unit_test(test_markup),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
