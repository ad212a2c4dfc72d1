/* The growing byte string. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/buf.h"

static void test_empty(void **state)
{
	struct buf b = {0};
	char *s;

	(void)state;
	buf_reset(&b);
	buf_release(&b);
	s = buf_take(&b);
	assert_string_equal(s, "");
	free(s);
	assert_null(b.data);
	buf_append(&b, NULL, 0);
	assert_int_equal(b.len, 0);
	assert_string_equal(b.data, "");
	buf_release(&b);
	assert_null(b.data);
}

/* Every length around the doublings, always terminated. */
static void test_growth(void **state)
{
	struct buf b = {0};

	(void)state;
	for (size_t i = 0; i < 5000; i++) {
		buf_putc(&b, (char)('a' + i % 26));
		assert_int_equal(b.len, i + 1);
		assert_true(b.len < b.cap);
		assert_int_equal(b.data[i + 1], '\0');
	}
	for (size_t i = 0; i < 5000; i++)
		assert_int_equal(b.data[i], 'a' + i % 26);
	buf_release(&b);
}

static void test_bytes_and_text(void **state)
{
	struct buf b = {0};
	char *s;

	(void)state;
	buf_append(&b, "a\0b", 3);
	buf_puts(&b, "");
	buf_puts(&b, "cd");
	buf_printf(&b, "%s%d", "", 42);
	buf_printf(&b, "%s", "");
	assert_int_equal(b.len, 7);
	assert_memory_equal(b.data, "a\0bcd42", 8);
	s = buf_take(&b);
	assert_memory_equal(s, "a\0bcd42", 8);
	assert_int_equal(b.len, 0);
	free(s);
}

static void test_printf_longer_than_the_room(void **state)
{
	struct buf b = {0};

	(void)state;
	for (int width = 60; width < 70; width++) {
		buf_reset(&b);
		buf_printf(&b, "%*d", width, 7);
		assert_int_equal(b.len, width);
		assert_int_equal(b.data[width - 1], '7');
		assert_int_equal(b.data[width], '\0');
		buf_release(&b);
	}
	buf_printf(&b, "%100000d", 7);
	assert_int_equal(b.len, 100000);
	buf_release(&b);
}

static void test_reset_keeps_memory(void **state)
{
	struct buf b = {0};
	size_t cap;

	(void)state;
	buf_printf(&b, "%1000d", 1);
	cap = b.cap;
	buf_reset(&b);
	assert_int_equal(b.len, 0);
	assert_string_equal(b.data, "");
	buf_puts(&b, "x");
	assert_int_equal(b.cap, cap);
	assert_string_equal(b.data, "x");
	buf_release(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_empty),
		cmocka_unit_test(test_growth),
		cmocka_unit_test(test_bytes_and_text),
		cmocka_unit_test(test_printf_longer_than_the_room),
		cmocka_unit_test(test_reset_keeps_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
