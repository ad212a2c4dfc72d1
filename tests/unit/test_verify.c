/* Verification finds every wrong byte; the check before a run finds every wrong dataset. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>

#include "base/log.h"
#include "dataset/generate.h"
#include "dataset/listing.h"
#include "dataset/manifest.h"
#include "dataset/presence.h"
#include "dataset_fixture.h"

static void must_generate(const struct dataset *d, struct store *s)
{
	struct generate_options o = {.threads = 2};
	struct err e;

	if (dataset_generate(d, s, &o, &e) < 0)
		fail_msg("%s", e.text);
}

static void flip(struct store *s, const char *path, uint64_t offset)
{
	struct io io = {.store = s};
	struct blob *b = store_blob_new(s, NULL);
	unsigned char byte;

	assert_int_equal(io_open(&io, path, STORE_READ | STORE_WRITE, b, NULL), 0);
	assert_int_equal(io_pread(&io, IO_DATA, b, &byte, 1, offset, NULL), 1);
	byte ^= 0x10;
	assert_int_equal(io_pwrite(&io, b, &byte, 1, offset, NULL), 1);
	io_close(&io, b, NULL);
	free(b);
}

static void every_byte(void **state)
{
	struct workload w = fixture_workload("npy", "/data", 5, 3);
	struct store *s = fixture_store("memory", NULL);
	struct verify_result r;
	struct dataset d;
	struct err e;

	(void)state;
	w.dataset.record_length_bytes = 100;
	fixture_dataset(&d, &w);
	must_generate(&d, s);
	assert_int_equal(dataset_verify(&d, s, 3, NULL, NULL, &r, &e), 0);
	assert_int_equal(r.files, 8);
	assert_int_equal(r.bytes, d.total_bytes);
	assert_int_equal(r.bad_files, 0);
	assert_int_equal(r.first.code, 0);
	for (uint64_t at = 0; at < d.max_file_bytes; at += 7) {
		char want[32];

		flip(s, "/data/train/img_3_of_5.npy", at);
		assert_int_equal(dataset_verify(&d, s, 2, NULL, NULL, &r, &e), ERR_DATA);
		assert_int_equal(r.bad_files, 1);
		assert_int_equal(r.files, 8);
		assert_non_null(strstr(e.text, "/data/train/img_3_of_5.npy"));
		snprintf(want, sizeof(want), "%llu", (unsigned long long)at);
		assert_non_null(strstr(e.text, want));
		flip(s, "/data/train/img_3_of_5.npy", at);
	}
	dataset_release(&d);
	store_destroy(s);
}

static void the_first_of_several(void **state)
{
	struct workload w = fixture_workload("npy", "/data", 9, 3);
	struct store *s = fixture_store("memory", NULL);
	_Atomic uint64_t progress = 0;
	struct stop_flag stop = {1};
	struct verify_result r;
	struct dataset d;
	struct err e;

	(void)state;
	fixture_dataset(&d, &w);
	must_generate(&d, s);
	flip(s, "/data/valid/img_0_of_3.npy", 5);
	flip(s, "/data/train/img_7_of_9.npy", 300);
	fixture_put(s, "/data/train/img_8_of_9.npy", "", 0);
	assert_int_equal(store_remove(s, "/data/train/img_4_of_9.npy", NULL), 0);
	for (unsigned threads = 0; threads < 6; threads++) {
		assert_int_equal(dataset_verify(&d, s, threads, NULL, &progress, &r, &e), ERR_DATA);
		assert_int_equal(r.bad_files, 4);
		assert_int_equal(r.files, 12);
		assert_non_null(strstr(r.first.text, "img_4_of_9"));
		assert_non_null(strstr(e.text, "img_4_of_9"));
		assert_non_null(strstr(e.text, "3 more of 12"));
	}
	assert_true(progress > 0);
	assert_int_equal(dataset_verify(&d, s, 2, &stop, NULL, &r, &e), ERR_CANCELED);
	dataset_release(&d);
	store_destroy(s);
}

/* The lower number speaks, also when it is found later. */
static void a_slow_first_one(void **state)
{
	struct workload w = fixture_workload("npy", "/data", 6, 0);
	struct store *s = fixture_store("fault+memory",
					"fault: {op: open, nth: 2, path: img_0, action: delay, "
					"delay: 0.1}");
	struct verify_result r;
	struct dataset d;
	struct err e;

	(void)state;
	fixture_dataset(&d, &w);
	must_generate(&d, s);
	flip(s->lower, "/data/train/img_0_of_6.npy", 5);
	flip(s->lower, "/data/train/img_5_of_6.npy", 5);
	assert_int_equal(dataset_verify(&d, s, 2, NULL, NULL, &r, &e), ERR_DATA);
	assert_int_equal(r.bad_files, 2);
	assert_non_null(strstr(e.text, "img_0_of_6"));
	dataset_release(&d);
	store_destroy(s);
}

static void a_failing_store(void **state)
{
	struct workload w = fixture_workload("npy", "/data", 4, 0);
	struct store *s =
		fixture_store("fault+memory", "fault: {op: read, nth: 1, path: img_2, errno: EIO}");
	struct verify_result r;
	struct dataset d;
	struct err e;

	(void)state;
	fixture_dataset(&d, &w);
	must_generate(&d, s);
	assert_int_equal(dataset_verify(&d, s, 2, NULL, NULL, &r, &e), ERR_DATA);
	assert_int_equal(r.bad_files, 1);
	assert_non_null(strstr(e.text, "img_2_of_4"));
	dataset_release(&d);
	store_destroy(s);
}

/* What dataset_check says of a workload on a store: code and sentence (the note when it is 0). */
static int check(const struct workload *w, struct store *s, bool need_eval, struct dataset *d,
		 char *text)
{
	struct presence_result r;
	struct err e = {0};
	int rc;

	fixture_dataset(d, w);
	rc = dataset_check(d, s, need_eval, NULL, &r, &e);
	strcpy(text, rc < 0 ? e.text : r.note);
	assert_true(strlen(text) > 20);
	return rc;
}

static void says(const struct workload *w, struct store *s, bool need_eval, int code,
		 const char *word)
{
	char text[ERR_TEXT_MAX];
	struct dataset d;
	int rc = check(w, s, need_eval, &d, text);

	if (rc != code || !strstr(text, word))
		fail_msg("wanted %d and '%s', got %d: %s", code, word, rc, text);
	dataset_release(&d);
}

static void with_a_manifest(void **state)
{
	struct workload w = fixture_workload("npy", "/data", 6, 2), other = w;
	struct store *s = fixture_store("memory", NULL);
	struct io io = {.store = s};
	char padded[4225] = {0};
	struct dataset d;

	(void)state;
	says(&w, s, true, -ENOENT, "img_0_of_6.npy");
	says(&w, s, true, -ENOENT, "stoker generate");
	fixture_dataset(&d, &w);
	must_generate(&d, s);
	says(&w, s, true, 0, "manifest matches");
	other.dataset.record_length_bytes = 147000000;
	says(&other, s, true, ERR_DATA, "64 x 64");
	says(&other, s, true, ERR_DATA, "generate_data=true");
	other = w;
	other.dataset.num_files_train = 7;
	says(&other, s, true, ERR_DATA, "num_files_train is 6");
	other = w;
	other.dataset.num_files_eval = 5;
	says(&other, s, true, ERR_DATA, "num_files_eval is 2");
	says(&other, s, false, 0, "manifest matches");
	assert_int_equal(manifest_write(&io, &d, MANIFEST_WRITING, NULL), 0);
	says(&w, s, true, ERR_DATA, "and not completed: complete it with");
	assert_int_equal(manifest_write(&io, &d, MANIFEST_COMPLETE, NULL), 0);
	/* One byte too many, one file too few; bytes themselves are not looked at. */
	fixture_put(s, "/data/train/img_0_of_6.npy", padded, sizeof(padded));
	says(&w, s, true, ERR_DATA, "img_0_of_6.npy' has 4225 bytes");
	fixture_put(s, "/data/train/img_0_of_6.npy", padded, sizeof(padded) - 1);
	flip(s, "/data/train/img_5_of_6.npy", 7);
	says(&w, s, true, 0, "manifest matches");
	fixture_put(s, "/data/train/img_5_of_6.npy", "short", 5);
	says(&w, s, true, ERR_DATA, "img_5_of_6.npy' has 5 bytes");
	assert_int_equal(store_remove(s, "/data/valid/img_1_of_2.npy", NULL), 0);
	says(&w, s, true, ERR_DATA, "img_5_of_6.npy' has 5 bytes");
	fixture_put(s, "/data/train/img_5_of_6.npy", "", 0);
	assert_int_equal(store_remove(s, "/data/train/img_5_of_6.npy", NULL), 0);
	says(&w, s, true, -ENOENT, "5 of the 6");
	says(&w, s, true, -ENOENT, "/data/train/img_5_of_6.npy");
	must_generate(&d, s);
	says(&w, s, true, 0, "manifest matches");
	fixture_put(s, "/data/" MANIFEST_NAME, "{", 1);
	says(&w, s, true, ERR_DATA, "line 1: invalid JSON");
	dataset_release(&d);
	store_destroy(s);
}

/* 64 files generated, 8 used: they have the names, shapes and contents of the 64. */
static void a_part(struct workload *w, bool manifest)
{
	struct store *s = fixture_store("memory", NULL);
	struct dataset all, part;
	char text[ERR_TEXT_MAX];
	struct verify_result r;
	struct err e;

	w->dataset.num_files_train = 64;
	w->dataset.num_files_eval = 12;
	fixture_dataset(&all, w);
	must_generate(&all, s);
	if (!manifest)
		assert_int_equal(store_remove(s, "/data/" MANIFEST_NAME, NULL), 0);
	w->dataset.num_files_train = 8;
	w->dataset.num_files_eval = 3;
	if (check(w, s, true, &part, text) < 0)
		fail_msg("%s", text);
	if (manifest)
		assert_non_null(strstr(text, "first 8 + 3"));
	assert_int_equal(part.name_total[DATASET_TRAIN], 64);
	assert_int_equal(part.name_total[DATASET_EVAL], 12);
	assert_int_equal(part.files[DATASET_TRAIN], 8);
	if (dataset_verify(&part, s, 2, NULL, NULL, &r, &e) < 0)
		fail_msg("%s", e.text);
	assert_int_equal(r.files, 11);
	dataset_release(&all);
	dataset_release(&part);
	store_destroy(s);
}

static void a_part_of_a_larger_one(void **state)
{
	(void)state;
	for (int drawn = 0; drawn < 2; drawn++)
		for (int manifest = 0; manifest < 2; manifest++)
			for (int subfolders = 0; subfolders < 4; subfolders += 3) {
				struct workload w = fixture_workload("npy", "/data", 0, 0);

				w.dataset.num_subfolders_train = subfolders;
				if (drawn)
					w.dataset.record_length_bytes_stdev = 1500;
				a_part(&w, manifest);
			}
}

static void without_a_manifest(void **state)
{
	struct workload w = fixture_workload("npy", "/data", 6, 2), other;
	struct store *s = fixture_store("memory", NULL);
	char padded[4096 + 128 + 700] = {0};
	struct dataset d;

	(void)state;
	fixture_dataset(&d, &w);
	must_generate(&d, s);
	assert_int_equal(store_remove(s, "/data/" MANIFEST_NAME, NULL), 0);
	says(&w, s, true, 0, "no manifest");
	/* Another library's header may be longer; another record is not a header. */
	fixture_put(s, "/data/train/img_2_of_6.npy", padded, sizeof(padded));
	says(&w, s, true, 0, "8 files, 1 of them only approximately");
	other = w;
	other.dataset.record_length_bytes = 147000;
	says(&other, s, true, ERR_DATA, "img_0_of_6.npy' has 4224 bytes");
	other = w;
	other.dataset.num_files_train = 60;
	says(&other, s, true, -ENOENT, "files there belong to a dataset of 6");
	other = w;
	other.dataset.num_subfolders_train = 3;
	says(&other, s, true, -ENOENT, "0 of the 6");
	assert_int_equal(store_remove(s, "/data/train/img_3_of_6.npy", NULL), 0);
	says(&w, s, true, -ENOENT, "5 of the 6");
	says(&w, s, true, -ENOENT, "/data/train/img_3_of_6.npy");
	dataset_release(&d);
	w.dataset.num_subfolders_train = 3;
	w.dataset.data_folder = (char *)(uintptr_t) "/other";
	fixture_dataset(&d, &w);
	must_generate(&d, s);
	assert_int_equal(store_remove(s, "/other/" MANIFEST_NAME, NULL), 0);
	says(&w, s, true, 0, "no manifest");
	w.dataset.num_subfolders_train = 1;
	says(&w, s, true, -ENOENT, "num_subfolders_train");
	dataset_release(&d);
	store_destroy(s);
}

/* What DLIO wrote for the same keys has the names and exactly the sizes that ours would have. */
static void dlios_own_files(void **state)
{
	static int64_t f32_dims[] = {4, 8, 8}, f16_dims[] = {16, 16};
	static const struct {
		const char *folder, *format, *elem;
		int64_t per_file, eval, subfolders;
		double stdev;
		struct i64_list dims;
	} cases[] = {
		{"npy", "npy", "uint8", 1, 0, 0, 0, {NULL, 0}},
		{"npy_4x4", "npy", "uint8", 4, 0, 0, 0, {NULL, 0}},
		{"npy_f32_dims", "npy", "float32", 1, 0, 0, 0, {f32_dims, 3}},
		{"npz", "npz", "uint8", 1, 0, 0, 0, {NULL, 0}},
		{"npz_4x4", "npz", "uint8", 4, 0, 0, 0, {NULL, 0}},
		{"npz_stdev", "npz", "uint8", 1, 0, 0, 256, {NULL, 0}},
		{"npz_subfolders", "npz", "uint8", 1, 2, 2, 0, {NULL, 0}},
		{"npz_f16_dims", "npz", "float16", 1, 0, 0, 0, {f16_dims, 2}},
		{"synthetic", "synthetic", "uint8", 1, 0, 0, 0, {NULL, 0}},
	};
	struct store *s = fixture_store("posix", NULL);
	char folder[512], want[64];

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct workload w;

		snprintf(folder, sizeof(folder), TEST_DATA "/dlio-data/%s", cases[i].folder);
		w = fixture_workload(cases[i].format, folder, 4, cases[i].eval);
		w.elem = elem_find(cases[i].elem);
		w.dataset.num_samples_per_file = cases[i].per_file;
		w.dataset.num_subfolders_train = cases[i].subfolders;
		w.dataset.record_length_bytes = 1024;
		w.dataset.record_length_bytes_stdev = cases[i].stdev;
		w.dataset.record_dims = cases[i].dims;
		snprintf(want, sizeof(want), "%d files, 0 of them only approximately",
			 4 + (int)cases[i].eval);
		says(&w, s, true, 0, want);
		w.dataset.num_files_train = 3;
		snprintf(want, sizeof(want), "%d files, 0 of them only approximately",
			 3 + (int)cases[i].eval);
		says(&w, s, true, 0, want);
		w.dataset.num_files_train = 5;
		says(&w, s, true, -ENOENT, "dataset of 4, of which 4");
	}
	store_destroy(s);
}

static void at_most_1000_are_asked_for(void **state)
{
	struct workload w = fixture_workload("synthetic", "/data", 2500, 0);
	struct store *s = fixture_store("memory", NULL);
	struct presence_result r;
	struct dataset d;
	struct err e;

	(void)state;
	fixture_dataset(&d, &w);
	must_generate(&d, s);
	assert_int_equal(dataset_check(&d, s, true, NULL, &r, &e), 0);
	assert_int_equal(r.sizes_checked, 1000);
	assert_int_equal(r.files_found, 2500);
	assert_int_equal(store_remove(s, "/data/train/img_2499_of_2500.synthetic", NULL), 0);
	assert_int_equal(dataset_check(&d, s, true, NULL, &r, &e), -ENOENT);
	dataset_release(&d);
	store_destroy(s);
}

static void names(void **state)
{
	static const char *const bad[] = {
		"img_3_of_64.npy",
		"img_64_of_64.npy",
		"img_03_of_64.npyx",
		"img_03_of_64",
		"img_03_of_064.npy",
		".img_03_of_64.npy",
		"img_03_of_64.npy.part",
		"img__of_.npy",
		"img_-3_of_64.npy",
		"imgs_03_of_64.npy",
		"img_03_of_64.NPY",
		"img_00000000000000000003_of_99999999999999999999.npy",
		"img_0_of_0.npy",
		"",
		"img_",
	};
	struct workload w = fixture_workload("npy", "/data", 6, 0);
	uint64_t index, total;
	struct dataset d;

	(void)state;
	fixture_dataset(&d, &w);
	assert_true(listing_parse(&d, "img_03_of_64.npy", &index, &total));
	assert_int_equal(index, 3);
	assert_int_equal(total, 64);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		if (listing_parse(&d, bad[i], &index, &total))
			fail_msg("'%s' is not a name of a file", bad[i]);
	dataset_release(&d);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_byte),
		cmocka_unit_test(the_first_of_several),
		cmocka_unit_test(a_slow_first_one),
		cmocka_unit_test(a_failing_store),
		cmocka_unit_test(with_a_manifest),
		cmocka_unit_test(a_part_of_a_larger_one),
		cmocka_unit_test(without_a_manifest),
		cmocka_unit_test(dlios_own_files),
		cmocka_unit_test(at_most_1000_are_asked_for),
		cmocka_unit_test(names),
	};

	log_set_level(LOG_ERROR);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
