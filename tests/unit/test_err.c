/* Errors as sentences: codes, truncation, wrapping, no error wanted. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/err.h"

static void test_set(void **state)
{
	struct err e = {0};

	(void)state;
	assert_int_equal(err_set(&e, ERR_DATA, "file '%s' at %d", "x", 7), ERR_DATA);
	assert_int_equal(e.code, ERR_DATA);
	assert_string_equal(e.text, "file 'x' at 7");
	assert_int_equal(err_set(&e, -ENOMEM, "other"), -ENOMEM);
	assert_string_equal(e.text, "other");
}

static void test_sys(void **state)
{
	struct err e = {0};

	(void)state;
	assert_int_equal(err_sys(&e, ENOENT, "cannot open '%s'", "a"), -ENOENT);
	assert_int_equal(e.code, -ENOENT);
	assert_string_equal(e.text, "cannot open 'a': No such file or directory");
	assert_int_equal(err_sys(&e, 99999, "odd"), -99999);
	assert_memory_equal(e.text, "odd: ", 5);
}

static void test_wrap(void **state)
{
	struct err e = {0};

	(void)state;
	err_set(&e, ERR_USAGE, "inner");
	assert_int_equal(err_wrap(&e, "line %d", 3), ERR_USAGE);
	assert_int_equal(err_wrap(&e, "%s", "f.yaml"), ERR_USAGE);
	assert_string_equal(e.text, "f.yaml: line 3: inner");
}

/* A sentence is given the name of its file once, whichever layer knows it first. */
static void test_name(void **state)
{
	struct err e = {0};

	(void)state;
	err_set(&e, -EIO, "reading failed");
	assert_false(e.named);
	assert_int_equal(err_name(-EIO, &e, "'%s'", "a/b"), -EIO);
	assert_int_equal(err_name(-EIO, &e, "'%s'", "a/b"), -EIO);
	assert_string_equal(e.text, "'a/b': reading failed");
	err_wrap(&e, "rank 3");
	assert_true(e.named);
	err_set(&e, -EIO, "cannot open 'c'");
	assert_int_equal(err_named(-EIO, &e), -EIO);
	err_name(-EIO, &e, "the file '%s'", "c");
	assert_string_equal(e.text, "cannot open 'c'");
	err_set(&e, -EIO, "another");
	assert_false(e.named);
	assert_int_equal(err_name(-EIO, NULL, "a"), -EIO);
}

static void test_nobody_listens(void **state)
{
	(void)state;
	assert_int_equal(err_set(NULL, ERR_DATA, "%d", 1), ERR_DATA);
	assert_int_equal(err_sys(NULL, EIO, "%d", 1), -EIO);
}

static void test_long_text_is_cut(void **state)
{
	struct {
		struct err e;
		char guard[8];
	} box = {.guard = "guard"};
	char text[3 * ERR_TEXT_MAX];

	(void)state;
	memset(text, 'x', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	err_set(&box.e, ERR_DATA, "%s", text);
	assert_int_equal(strlen(box.e.text), ERR_TEXT_MAX - 1);
	err_sys(&box.e, EIO, "%s", text);
	assert_int_equal(strlen(box.e.text), ERR_TEXT_MAX - 1);
	err_wrap(&box.e, "%s", text);
	assert_int_equal(strlen(box.e.text), ERR_TEXT_MAX - 1);
	err_wrap(&box.e, "outer");
	assert_memory_equal(box.e.text, "outer: xxx", 10);
	assert_int_equal(strlen(box.e.text), ERR_TEXT_MAX - 1);
	assert_string_equal(box.guard, "guard");
}

static void test_exit_status(void **state)
{
	(void)state;
	assert_int_equal(err_exit_status(0), 0);
	assert_int_equal(err_exit_status(17), 0);
	assert_int_equal(err_exit_status(ERR_USAGE), 2);
	assert_int_equal(err_exit_status(ERR_TARGET), 3);
	assert_int_equal(err_exit_status(ERR_DATA), 1);
	assert_int_equal(err_exit_status(-ENOENT), 1);
	assert_int_equal(err_exit_status(INT32_MIN), 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_set),
		cmocka_unit_test(test_sys),
		cmocka_unit_test(test_wrap),
		cmocka_unit_test(test_name),
		cmocka_unit_test(test_nobody_listens),
		cmocka_unit_test(test_long_text_is_cut),
		cmocka_unit_test(test_exit_status),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
