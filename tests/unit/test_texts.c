/* Texts with numbers: each text has one, in the order in which they came. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "base/texts.h"

#define MANY 100000

static void test_numbers(void **state)
{
	struct texts t = {0};
	char text[32];

	(void)state;
	assert_true(texts_find(&t, "") == TEXT_NONE);
	assert_true(texts_add(&t, "") == 0);
	for (size_t i = 1; i < MANY; i++) {
		snprintf(text, sizeof(text), "%zu", i);
		assert_true(texts_find(&t, text) == TEXT_NONE);
		assert_true(texts_add(&t, text) == i);
	}
	for (size_t i = 1; i < MANY; i++) {
		snprintf(text, sizeof(text), "%zu", i);
		assert_true(texts_add(&t, text) == i);
		assert_true(texts_find(&t, text) == i);
		assert_string_equal(t.v[i], text);
	}
	assert_true(t.n == MANY && texts_find(&t, "") == 0);
	texts_release(&t);
	assert_true(t.n == 0 && texts_find(&t, "1") == TEXT_NONE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_numbers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
