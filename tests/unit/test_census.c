/* What a curve of readers says of accelerators, against stores whose capacity follows by
 * arithmetic; and the small files that stand for those of a workload. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "metric/host_io.h"
#include "study/census.h"

/* 1, 2, 4, ... readers that get `each` samples/s each and at most `all` together. */
static struct census_curve curve_of(double each, double all)
{
	struct census_curve c = {.n = 7};

	for (size_t i = 0; i < c.n; i++) {
		double rate = fmin(all, each * (double)(1u << i));

		c.point[i] = (struct census_point){
			.readers = (double)(1u << i), .rate = rate, .made_rate = 2 * rate};
	}
	return c;
}

static void test_supply(void **state)
{
	struct census_curve c = curve_of(10, 80);

	(void)state;
	assert_float_equal(census_supply(&c, 3, false), 30, 1e-9);
	assert_float_equal(census_supply(&c, 3, true), 60, 1e-9);
	assert_float_equal(census_supply(&c, 0.5, false), 5, 1e-9);
	assert_float_equal(census_supply(&c, 16, false), 80, 1e-9);
	assert_float_equal(census_supply(&c, 1000, false), 80, 1e-9);
	assert_float_equal(census_slope(&c, 2), 1, 1e-9);
	assert_float_equal(census_slope(&c, 32), 0, 1e-9);
	assert_float_equal(census_slope(&c, 1000), 0, 1e-9);
}

static void test_feeds(void **state)
{
	struct census_curve shared = curve_of(10, 80), alone = curve_of(10, 1e9), less;
	bool beyond;

	(void)state;
	/* 20 samples/s for one: 4 of them, who have readers enough */
	assert_float_equal(census_feeds(&shared, 4, 20, &beyond), 4, 0.02);
	assert_false(beyond);
	/* one with two readers gets 20 of 25 */
	assert_float_equal(census_feeds(&shared, 2, 25, &beyond), 0.8, 1e-9);
	assert_false(beyond);
	/* each has what it needs, however many there are: the 64 readers are all that is known */
	assert_true(census_feeds(&alone, 4, 20, &beyond) >= 32);
	assert_true(beyond);
	/* more than there are readers for, but the rate is known: it does not grow */
	assert_float_equal(census_feeds(&shared, 2, 1, &beyond), 80, 1e-9);
	assert_true(beyond);
	/* a storage that gives less to more */
	less = shared;
	less.point[4].rate = less.point[5].rate = less.point[6].rate = 40;
	assert_float_equal(census_feeds(&less, 4, 20, &beyond), 2.7, 0.3);
}

static void test_mean(void **state)
{
	struct census_curve run[2] = {curve_of(10, 80), curve_of(10, 80)}, mean;
	double spread;

	(void)state;
	census_mean(run, 1, &mean, &spread);
	assert_true(isnan(spread));
	census_mean(run, 2, &mean, &spread);
	assert_float_equal(spread, 0, 1e-12);
	for (size_t i = 0; i < run[1].n; i++)
		run[1].point[i].rate *= 1.21;
	run[1].n--;
	census_mean(run, 2, &mean, &spread);
	assert_int_equal(mean.n, 6);
	assert_float_equal(mean.point[0].rate, 11, 1e-9);
	/* s = ln 1.21 / sqrt 2; of two runs, with Student's t for 3 degrees of freedom */
	assert_float_equal(spread, 3.182F * logf(1.21F) / 2, 0.001F);
}

static void test_stall(void **state)
{
	struct census_curve run[3] = {curve_of(10, 80), curve_of(10, 80), curve_of(10, 80)}, mean;
	double spread;

	(void)state;
	assert_false(census_doubtful(&run[0]));
	run[0].point[5].rate = 1;
	assert_true(census_doubtful(&run[0]));
	census_mean(run, 2, &mean, &spread);
	assert_float_equal(mean.point[5].rate, 80, 1e-9);
	assert_true(spread > 0.5);
	run[1].point[5].rate = 20;
	census_mean(run, 3, &mean, &spread);
	assert_float_equal(mean.point[5].rate, 20, 1e-9);
}

static void test_source(void **state)
{
	struct host_io_source plain = {.file_system = "ext4"}, loop = plain, memory = plain,
			      server = plain;
	struct census_origin o = {.returned = 100, .device = 100, .disks = 100, .delivered = NAN};
	double below;

	(void)state;
	strcpy(loop.tree.cached, "loop0 is the file /srv/x.img");
	strcpy(memory.tree.memory, "loop0 is a file in memory");
	server.client.local_server = true;
	assert_int_equal(census_source_of(&loop, &o, &below), CENSUS_STORAGE);
	assert_true(isnan(below));
	o.disks = 0;
	/* disks that report nothing are no cache, without a file between */
	assert_int_equal(census_source_of(&plain, &o, &below), CENSUS_STORAGE);
	assert_int_equal(census_source_of(&loop, &o, &below), CENSUS_CACHE_BELOW);
	assert_float_equal(below, 1, 1e-9);
	o.disks = 57;
	assert_int_equal(census_source_of(&loop, &o, &below), CENSUS_CACHE_BELOW);
	assert_float_equal(below, 0.43, 1e-9);
	o.disks = NAN;
	assert_int_equal(census_source_of(&loop, &o, &below), CENSUS_STORAGE);
	assert_int_equal(census_source_of(&memory, &o, &below), CENSUS_DEVICE_IN_MEMORY);
	o = (struct census_origin){.returned = 100, .device = 0, .disks = NAN, .delivered = 2};
	assert_int_equal(census_source_of(&server, &o, &below), CENSUS_LOCAL_SERVER);
	assert_float_equal(below, 0.98, 1e-9);
	o.delivered = 95;
	assert_int_equal(census_source_of(&server, &o, &below), CENSUS_STORAGE);
	o.delivered = NAN;
	assert_int_equal(census_source_of(&server, &o, &below), CENSUS_STORAGE);
}

static void test_shape(void **state)
{
	struct census_pattern volume = {
		.sample_bytes = 146600628, .per_file = 1, .ranks = 4, .batch = 7};
	struct census_pattern stream = {
		.sample_bytes = 2500, .per_file = 313532, .streams = true, .ranks = 5, .batch = 48};
	struct census_pattern inside = {
		.sample_bytes = 671088640, .per_file = 1024, .ranks = 16, .batch = 1};

	(void)state;
	census_shape(&volume, 200u << 20);
	assert_int_equal(volume.files, 50);
	assert_float_equal(volume.made_bytes, (float)(4 << 20), 1);
	census_shape(&stream, 200u << 20);
	assert_float_equal(stream.made_bytes, 2500, 0);
	assert_in_range(stream.made_per_file * 2500, (8 << 20) - 2500, 8 << 20);
	assert_in_range(stream.files, 24, 26);
	census_shape(&inside, 200u << 20);
	assert_int_equal(inside.files, 1);
	assert_int_equal(inside.made_per_file, 25);
	for (uint64_t bytes = 24u << 20; bytes <= 200u << 20; bytes += 8u << 20) {
		census_shape(&volume, bytes);
		census_shape(&stream, bytes);
		census_shape(&inside, bytes);
		/* large samples take 72 MiB at least */
		assert_in_range(volume.bytes, bytes / 2,
				(bytes < 72u << 20 ? 72u << 20 : bytes) * 11 / 10);
		assert_in_range(stream.bytes, bytes / 2,
				(bytes < 72u << 20 ? 72u << 20 : bytes) * 11 / 10);
		assert_in_range(inside.bytes, bytes / 2, bytes + bytes / 10);
	}
}

static void test_list(void **state)
{
	const char *const key[] = {"reader.read_threads=16"};
	struct census_options o = {.only = "h100", .base = {.overrides = key, .override_count = 1}};
	struct census s = {.o = &o};
	struct err e;

	(void)state;
	assert_int_equal(census_list(&s, &e), 0);
	/* under two names, with other files, from object storage: once */
	assert_int_equal(s.rows, 3);
	assert_string_equal(s.row[0].model, "3D-UNet");
	assert_string_equal(s.row[1].model, "ResNet-50");
	assert_string_equal(s.row[2].model, "CosmoFlow");
	assert_string_equal(s.row[2].kind, "H100");
	assert_int_equal(s.patterns, 3);
	assert_float_equal(s.row[0].readers, 16, 0);
	census_release(&s);
	o.only = "no such";
	s.o = &o;
	assert_int_equal(census_list(&s, &e), ERR_USAGE);
	assert_non_null(strstr(e.text, "has 'no such' in its name"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_supply), cmocka_unit_test(test_feeds),
		cmocka_unit_test(test_mean),   cmocka_unit_test(test_stall),
		cmocka_unit_test(test_source), cmocka_unit_test(test_shape),
		cmocka_unit_test(test_list)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
