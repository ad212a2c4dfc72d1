/* The clients of S3 that storage.s3.client names. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

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

static const struct s3_profile *row(const char *name)
{
	const struct s3_profile *p = s3_profiles;

	while (strcmp(p->name, name) != 0)
		p++;
	return p;
}

/* Sizes around the limits. */
static void test_splits(void **state)
{
	static const struct {
		const char *name;
		uint64_t bytes, part;
		unsigned ranges; /* with 2 processors; with 16 */
		unsigned of_many;
	} want[] = {
		{"native", 1u << 30, UINT64_MAX, 1, 1},
		{"minio", 1u << 30, UINT64_MAX, 1, 1},
		{"s3dlio-0.9", (32u << 20) - 1, UINT64_MAX, 1, 1},
		{"s3dlio-0.9", 32u << 20, 4u << 20, 4, 16},
		{"s3dlio-0.10", 256u << 20, 8u << 20, 4, 16},
		{"s3dlio-0.10", 600u << 20, 8u << 20, 8, 32},
		{"s3dlio-0.10", UINT64_MAX, UINT64_MAX, 1, 1},
		{"s3torchconnector-1.5", 1, 8u << 20, 25, 25},
		{"s3torchconnector-1.5", UINT64_MAX, 8u << 20, 1, 1},
		{"s3fs", 50u << 20, UINT64_MAX, 1, 1},
		{"s3fs", (50u << 20) + 1, 50u << 20, 10, 10},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(want) / sizeof(want[0]); i++) {
		const struct s3_profile *p = row(want[i].name);
		struct s3_split few = s3_profile_split(p, want[i].bytes, 2);
		struct s3_split many = s3_profile_split(p, want[i].bytes, 16);

		assert_int_equal(few.part, want[i].part);
		assert_int_equal(many.part, want[i].part);
		assert_int_equal(few.ranges, want[i].ranges);
		assert_int_equal(many.ranges, want[i].of_many);
		assert_true(s3_profile_most_ranges(p, 16) >= many.ranges);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_names),
					   cmocka_unit_test(test_splits)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
