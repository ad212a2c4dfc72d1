/* Names, shapes and sizes of a dataset: those that DLIO gives it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dataset/dataset.h"
#include "dataset_fixture.h"

static void assert_path(const struct dataset *d, enum dataset_kind kind, uint64_t index,
			const char *want)
{
	char path[DATASET_PATH_MAX];
	struct err e;

	assert_int_equal(dataset_path(d, kind, index, path, sizeof(path), &e), 0);
	assert_string_equal(path, want);
}

static void build(struct dataset *d, const struct workload *w)
{
	struct err e;

	if (dataset_init(d, w, &e) < 0)
		fail_msg("%s", e.text);
}

static void names(void **state)
{
	struct workload w = fixture_workload("npy", "data/set", 168, 8);
	struct dataset d;

	(void)state;
	build(&d, &w);
	assert_path(&d, DATASET_TRAIN, 3, "data/set/train/img_003_of_168.npy");
	assert_path(&d, DATASET_TRAIN, 167, "data/set/train/img_167_of_168.npy");
	assert_path(&d, DATASET_EVAL, 7, "data/set/valid/img_7_of_8.npy");
	dataset_release(&d);
	w.dataset.num_subfolders_train = 10;
	w.dataset.num_subfolders_eval = 2;
	w.storage.storage_root = (char *)(uintptr_t) "/mnt/x/";
	w.dataset.file_prefix = (char *)(uintptr_t) "part";
	build(&d, &w);
	assert_path(&d, DATASET_TRAIN, 13, "/mnt/x/data/set/train/03/part_013_of_168.npy");
	assert_path(&d, DATASET_EVAL, 7, "/mnt/x/data/set/valid/1/part_7_of_8.npy");
	dataset_release(&d);
	w.dataset.num_subfolders_train = 1;
	w.dataset.num_files_train = 64;
	w.dataset.num_subfolders_eval = 0;
	build(&d, &w);
	assert_path(&d, DATASET_TRAIN, 0, "/mnt/x/data/set/train/part_00_of_64.npy");
	assert_path(&d, DATASET_EVAL, 0, "/mnt/x/data/set/valid/part_0_of_8.npy");
	dataset_release(&d);
}

static void long_names(void **state)
{
	char folder[DATASET_PATH_MAX + 8], path[64];
	struct workload w;
	struct dataset d;
	struct err e;

	(void)state;
	memset(folder, 'f', sizeof(folder));
	folder[sizeof(folder) - 1] = '\0';
	w = fixture_workload("npy", folder, 1, 0);
	assert_int_equal(dataset_init(&d, &w, &e), -ENAMETOOLONG);
	assert_non_null(strstr(e.text, "data_folder"));
	folder[40] = '\0';
	build(&d, &w);
	for (size_t n = 0; n <= 63; n++) /* 40 + "/train/img_0_of_1.npy" is 61 */
		assert_int_equal(dataset_path(&d, DATASET_TRAIN, 0, path, n, &e),
				 n > 61 ? 0 : -ENAMETOOLONG);
	dataset_release(&d);
}

static void check_drawn(double length, double stdev, const json_t *want, uint64_t files)
{
	struct workload w = fixture_workload("npy", "d", (int64_t)files, 0);
	struct file_spec f;
	struct dataset d;

	w.dataset.record_length_bytes = length;
	w.dataset.record_length_bytes_stdev = stdev;
	build(&d, &w);
	for (uint64_t i = 0; i < files; i++) {
		dataset_file_spec(&d, DATASET_TRAIN, i, &f);
		assert_int_equal(f.ndims, 2);
		for (size_t k = 0; k < 2; k++)
			assert_int_equal(f.dims[k], (uint64_t)json_number_value(
							    json_array_get(want, 2 * i + k)));
	}
	dataset_release(&d);
}

static void drawn_dims(void **state)
{
	json_t *root = json_load_file(TEST_DATA "/vectors/dlio-order.json", 0, NULL), *c;
	json_t *unet = json_load_file(TEST_DATA "/vectors/rng-vectors.json",
				      JSON_DECODE_INT_AS_REAL, NULL);
	size_t i;

	(void)state;
	assert_int_equal(json_array_size(json_object_get(root, "size_jitter_dims")), 3);
	json_array_foreach(json_object_get(root, "size_jitter_dims"), i, c) check_drawn(
		json_number_value(json_object_get(c, "record_length")),
		json_number_value(json_object_get(c, "stdev")), json_object_get(c, "dims"),
		(uint64_t)json_integer_value(json_object_get(c, "num_files")));
	c = json_object_get(unet, "dlio unet3d file dims: seed(10); normal(12107,ds,2*168)");
	assert_int_equal(json_array_size(json_object_get(c, "values")), 336);
	check_drawn(146600628, 68341808, json_object_get(c, "values"), 168);
	json_decref(root);
	json_decref(unet);
}

/* 5 train and 2 eval files of DLIO's, and the payload of its 168 of the 3D U-Net. */
static void drawn_over_both_kinds(void **state)
{
	static const uint64_t want[14] = {79, 75, 59, 69, 74, 64, 71, 70, 70, 68, 73, 78, 63, 77};
	struct workload w = fixture_workload("npy", "d", 5, 2);
	struct file_spec f;
	struct dataset d;
	uint64_t sum = 0, largest = 0;

	(void)state;
	w.dataset.record_length_bytes = 5000;
	w.dataset.record_length_bytes_stdev = 1000;
	build(&d, &w);
	for (uint64_t i = 0; i < 7; i++) {
		dataset_file_spec(&d, i < 5 ? DATASET_TRAIN : DATASET_EVAL, i < 5 ? i : i - 5, &f);
		assert_int_equal(f.file_index, i);
		assert_int_equal(f.dims[0], want[2 * i]);
		assert_int_equal(f.dims[1], want[2 * i + 1]);
	}
	dataset_release(&d);
	w = fixture_workload("npy", "d", 168, 0);
	w.dataset.record_length_bytes = 146600628;
	w.dataset.record_length_bytes_stdev = 68341808;
	build(&d, &w);
	for (uint64_t i = 0; i < 168; i++) {
		uint64_t n = dataset_sample_bytes(&d, DATASET_TRAIN, i);

		sum += n;
		largest = n > largest ? n : largest;
	}
	assert_int_equal(sum, 25285981919u);
	assert_int_equal(d.max_sample_bytes, largest);
	assert_int_equal(d.total_bytes, 25285981919u + 168 * 128);
	dataset_release(&d);
}

static void a_part_of_a_larger_dataset(void **state)
{
	struct workload w = fixture_workload("npy", "d", 5, 2);
	uint64_t total[DATASET_KINDS] = {50, 20};
	struct dataset all, part;
	struct file_spec a, b;

	(void)state;
	w.dataset.record_length_bytes_stdev = 1000;
	build(&part, &w);
	w.dataset.num_files_train = 50;
	w.dataset.num_files_eval = 20;
	build(&all, &w);
	assert_true(part.config_hash == all.config_hash);
	assert_int_equal(dataset_set_name_total(&part, total, NULL), 0);
	assert_path(&part, DATASET_TRAIN, 3, "d/train/img_03_of_50.npy");
	assert_path(&part, DATASET_EVAL, 1, "d/valid/img_01_of_20.npy");
	for (int k = 0; k < DATASET_KINDS; k++)
		for (uint64_t i = 0; i < part.files[k]; i++) {
			dataset_file_spec(&part, (enum dataset_kind)k, i, &a);
			dataset_file_spec(&all, (enum dataset_kind)k, i, &b);
			assert_memory_equal(&a, &b, sizeof(a));
		}
	assert_int_equal(dataset_samples(&part, DATASET_TRAIN), 5);
	assert_int_equal(dataset_file_index_end(&part), 70);
	total[0] = UINT64_MAX;
	assert_true(dataset_set_name_total(&part, total, NULL) < 0);
	assert_path(&part, DATASET_TRAIN, 3, "d/train/img_03_of_50.npy");
	dataset_release(&part);
	dataset_release(&all);
}

static void element_sizes(void **state)
{
	struct workload w = fixture_workload("npy", "d", 2, 0);
	struct dataset d;
	uint64_t uint8_hash, honest;

	(void)state;
	w.dataset.record_length_bytes = 1048576;
	build(&d, &w);
	assert_int_equal(d.dims[0], 1024);
	uint8_hash = d.config_hash;
	dataset_release(&d);
	w.compat.dlio = true;
	build(&d, &w);
	assert_int_equal(d.dims[0], 1024);
	assert_true(d.config_hash == uint8_hash);
	dataset_release(&d);
	w.elem = elem_find("float32");
	build(&d, &w);
	assert_int_equal(d.dims[0], 1024);
	assert_int_equal(d.max_sample_bytes, 4u << 20);
	honest = d.config_hash;
	dataset_release(&d);
	w.compat.dlio = false;
	build(&d, &w);
	assert_int_equal(d.dims[0], 512);
	assert_int_equal(d.max_sample_bytes, 1u << 20);
	assert_true(d.config_hash != honest);
	dataset_release(&d);
}

static void record_dims(void **state)
{
	int64_t dims[9] = {3, 224, 225, 1, 1, 1, 1, 1, 1};
	struct workload w = fixture_workload("npy", "d", 2, 0);
	struct dataset d;
	char text[64];
	struct err e;

	(void)state;
	w.dataset.record_dims.v = dims;
	w.dataset.record_dims.n = 3;
	w.elem = elem_find("int16");
	build(&d, &w);
	assert_int_equal(d.ndims, 3);
	assert_int_equal(dataset_sample_bytes(&d, DATASET_TRAIN, 1), 3 * 224 * 225 * 2);
	assert_string_equal(dataset_shape_text(&d, text, sizeof(text)), "3 x 224 x 225");
	assert_int_equal(strlen(dataset_shape_text(&d, text, 6)), 5);
	dataset_release(&d);
	dims[1] = 0;
	assert_int_equal(dataset_init(&d, &w, &e), ERR_USAGE);
	dims[1] = -5;
	assert_int_equal(dataset_init(&d, &w, &e), ERR_USAGE);
	assert_non_null(strstr(e.text, "-5"));
	dims[1] = 224;
	w.dataset.record_dims.n = 9;
	assert_int_equal(dataset_init(&d, &w, &e), ERR_USAGE);
	w.dataset.record_dims.n = 3;
	w.dataset.record_length_bytes_stdev = 5;
	assert_int_equal(dataset_init(&d, &w, &e), ERR_USAGE);
}

static void what_is_too_large(void **state)
{
	int64_t dims[3] = {INT64_MAX, INT64_MAX, 3};
	struct workload w = fixture_workload("npy", "d", 2, 0);
	struct dataset d;
	struct err e;

	(void)state;
	w.dataset.record_dims.v = dims;
	w.dataset.record_dims.n = 3;
	assert_int_equal(dataset_init(&d, &w, &e), ERR_USAGE);
	dims[0] = dims[1] = (int64_t)1 << 31;
	dims[2] = 1;
	w.dataset.num_samples_per_file = 4;
	assert_int_equal(dataset_init(&d, &w, &e), ERR_USAGE);
	w.dataset.record_dims.n = 0;
	w.dataset.num_samples_per_file = INT64_MAX;
	assert_int_equal(dataset_init(&d, &w, &e), ERR_USAGE);
	w.dataset.num_samples_per_file = 1;
	w.dataset.num_files_train = INT64_MAX;
	assert_int_equal(dataset_init(&d, &w, &e), ERR_USAGE);
	assert_non_null(strstr(e.text, "2^63"));
	w.dataset.record_length_bytes_stdev = 100;
	assert_true(dataset_init(&d, &w, &e) < 0);
	w.dataset.num_files_train = 5;
	w.dataset.record_length_bytes_stdev = 1e30;
	assert_int_equal(dataset_init(&d, &w, &e), ERR_USAGE);
	w.dataset.record_length_bytes_stdev = 0;
	w.dataset.record_length_bytes = 1e30;
	assert_int_equal(dataset_init(&d, &w, &e), ERR_USAGE);
	w.dataset.record_length_bytes = 0.5;
	assert_int_equal(dataset_init(&d, &w, &e), ERR_USAGE);
	w.dataset.record_length_bytes = NAN;
	assert_int_equal(dataset_init(&d, &w, &e), ERR_USAGE);
	w.dataset.record_length_bytes = 10;
	w.dataset.num_files_eval = -1;
	assert_int_equal(dataset_init(&d, &w, &e), ERR_USAGE);
	w.dataset.num_files_eval = 0;
	w.dataset.format = (char *)(uintptr_t) "npyy";
	assert_int_equal(dataset_init(&d, &w, &e), ERR_ABSENT);
	assert_non_null(strstr(e.text, "did you mean npy"));
}

/* The only format whose files of one shape differ in size: by the digits of their number. */
static void sizes_that_depend_on_the_number(void **state)
{
	struct workload w = fixture_workload("synthetic", "d", 95, 1010);
	uint64_t sum = 0;
	struct dataset d;

	(void)state;
	build(&d, &w);
	for (int k = 0; k < DATASET_KINDS; k++)
		for (uint64_t i = 0; i < d.files[k]; i++)
			sum += dataset_file_bytes(&d, (enum dataset_kind)k, i);
	assert_int_equal(d.total_bytes, sum);
	assert_int_equal(d.max_file_bytes, 4);
	dataset_release(&d);
	w.dataset.num_files_train = 0;
	w.dataset.num_files_eval = 0;
	build(&d, &w);
	assert_int_equal(d.total_bytes, 0);
	dataset_release(&d);
	w.dataset.num_files_train = (int64_t)1 << 55;
	build(&d, &w);
	assert_int_equal(d.max_file_bytes, 17);
	dataset_release(&d);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names),
		cmocka_unit_test(long_names),
		cmocka_unit_test(drawn_dims),
		cmocka_unit_test(drawn_over_both_kinds),
		cmocka_unit_test(a_part_of_a_larger_dataset),
		cmocka_unit_test(element_sizes),
		cmocka_unit_test(record_dims),
		cmocka_unit_test(what_is_too_large),
		cmocka_unit_test(sizes_that_depend_on_the_number),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
