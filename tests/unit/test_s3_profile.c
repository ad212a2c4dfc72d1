/* How clients of S3 split what they read. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "store/s3_profile.h"

#define MIB (UINT64_C(1) << 20)

struct s3_split {
	uint64_t part; /* bytes; a read of no more than that is one request */
	unsigned ranges;
};

static struct s3_split s3_profile_split(const struct s3_profile *p, uint64_t bytes,
					unsigned processors)
{
	unsigned ranges = p->ranges ? p->ranges : processors > 4 ? processors : 4;

	if (bytes < p->split_from)
		return (struct s3_split){.part = bytes, .ranges = 1};
	if (!p->ranges && bytes > 512 * MIB)
		ranges = 2 * processors > 8 ? 2 * processors : 8;
	return (struct s3_split){.part = bytes > p->large_from ? p->large_part : p->part,
				 .ranges = ranges};
}

static const struct s3_profile *named(const char *name)
{
	for (int i = 0; s3_profile_names[i]; i++) {
		assert_string_equal(s3_profile_names[i], s3_profiles[i].name);
		if (strcmp(s3_profile_names[i], name) == 0)
			return &s3_profiles[i];
	}
	fail_msg("no row %s", name);
	return &s3_profiles[0];
}

static void expect(const char *name, uint64_t bytes, unsigned cores, uint64_t part, unsigned ranges)
{
	struct s3_split s = s3_profile_split(named(name), bytes, cores);

	assert_int_equal(s.part, part);
	assert_int_equal(s.ranges, ranges);
}

/* As the clients were seen to ask. */
static void test_splits(void **state)
{
	static const char *const whole[] = {"native", "arrow", "minio"};

	(void)state;
	for (int i = 0; i < 3; i++)
		expect(whole[i], 300 * MIB, 2, 300 * MIB, 1);
	for (int i = 0; i < 2; i++) {
		const char *name = i ? "s3dlio-0.10" : "s3dlio-0.9";

		expect(name, 20 * MIB, 2, 20 * MIB, 1);
		expect(name, 40 * MIB, 2, 4 * MIB, 4);
		expect(name, 100 * MIB, 16, 4 * MIB, 16);
		expect(name, 300 * MIB, 2, 8 * MIB, 4);
		expect(name, 600 * MIB, 16, 8 * MIB, 32);
		expect(name, 600 * MIB, 2, 8 * MIB, 8);
	}
	expect("s3torchconnector-1.5", 8 * MIB, 2, 8 * MIB, 1);
	expect("s3torchconnector-1.5", 10 * MIB, 2, 8 * MIB, 25);
	expect("s3fs", 50 * MIB, 2, 50 * MIB, 1);
	expect("s3fs", 100 * MIB, 2, 50 * MIB, 10);
	expect("tfio", 60000000, 2, 50000000, 25);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_splits)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
