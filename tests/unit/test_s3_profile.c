/* The clients of S3 that storage.s3.client names. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "store/s3_profile.h"

/* The names that the key accepts are those of the rows, in their order. */
static void test_names(void **state)
{
	(void)state;
	for (int i = 0; s3_profile_names[i]; i++)
		assert_string_equal(s3_profile_names[i], s3_profiles[i].name);
	assert_string_equal(s3_profiles[S3_NATIVE].name, "native");
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_names)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
