/* The manifest: what was written is read back, and nothing else is taken for one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "dataset/manifest.h"
#include "dataset_fixture.h"

static void roundtrip(void **state)
{
	struct workload w = fixture_workload("npy", "/d/set", 7, 3);
	struct io io = {.store = fixture_store("memory", NULL)};
	struct manifest m;
	struct dataset d;

	(void)state;
	w.dataset.file_prefix = (char *)(uintptr_t) "a\"b\\\xc3\xa4";
	w.dataset.num_subfolders_train = 4;
	w.dataset.seed = -5;
	fixture_dataset(&d, &w);
	assert_int_equal(store_mkdirs(io.store, "/d/set", NULL), 0);
	assert_int_equal(manifest_read(&io, d.folder, &m, NULL), 0);
	assert_false(m.found);
	for (int s = MANIFEST_COMPLETE; s <= MANIFEST_CLEARING; s++) {
		assert_int_equal(manifest_write(&io, &d, (enum manifest_state)s, NULL), 0);
		assert_int_equal(manifest_read(&io, d.folder, &m, NULL), 0);
		assert_true(m.found);
		assert_int_equal(m.state, s);
		assert_int_equal(m.complete, s == MANIFEST_COMPLETE);
	}
	assert_string_equal(m.format, "npy");
	assert_string_equal(m.elem, "uint8");
	assert_string_equal(m.compression, "none");
	assert_string_equal(m.prefix, d.prefix);
	assert_string_equal(m.shape, "64 x 64");
	assert_int_equal(m.files[DATASET_TRAIN], 7);
	assert_int_equal(m.files[DATASET_EVAL], 3);
	assert_int_equal(m.subfolders[DATASET_TRAIN], 4);
	assert_int_equal(m.subfolders[DATASET_EVAL], 0);
	assert_int_equal(m.samples_per_file, 1);
	assert_true(m.total_bytes == d.total_bytes);
	assert_true(m.config_hash == d.config_hash);
	assert_true(m.seed == (uint64_t)-5);
	assert_int_equal(strlen(m.created), 26);
	assert_true(manifest_matches(&m, &d, NULL));
	dataset_release(&d);
	store_destroy(io.store);
}

static void a_name_that_is_no_text(void **state)
{
	struct workload w = fixture_workload("npy", "/d", 1, 0);
	struct io io = {.store = fixture_store("memory", NULL)};
	struct dataset d;
	struct err e;

	(void)state;
	w.dataset.file_prefix = (char *)(uintptr_t) "\xff\xfe";
	fixture_dataset(&d, &w);
	assert_int_equal(store_mkdirs(io.store, "/d", NULL), 0);
	assert_int_equal(manifest_write(&io, &d, MANIFEST_COMPLETE, &e), ERR_USAGE);
	assert_non_null(strstr(e.text, "UTF-8"));
	dataset_release(&d);
	store_destroy(io.store);
}

static char *example(size_t *n)
{
	struct workload w = fixture_workload("npy", "/d", 7, 3);
	struct io io = {.store = fixture_store("memory", NULL)};
	struct dataset d;
	char *text;

	fixture_dataset(&d, &w);
	assert_int_equal(store_mkdirs(io.store, "/d", NULL), 0);
	assert_int_equal(manifest_write(&io, &d, MANIFEST_COMPLETE, NULL), 0);
	text = fixture_get(io.store, "/d/" MANIFEST_NAME, n);
	assert_non_null(text);
	dataset_release(&d);
	store_destroy(io.store);
	return text;
}

static void refused(const char *text, size_t n)
{
	struct manifest m;
	struct err e = {0};

	if (manifest_parse(text, n, "/d/m.json", &m, &e) != ERR_DATA)
		fail_msg("taken for a manifest: %.*s", (int)n, text);
	assert_false(m.found);
	assert_non_null(strstr(e.text, "/d/m.json"));
}

static void truncated_and_hostile(void **state)
{
	static const char *const texts[] = {
		"",
		"{}",
		"[]",
		"null",
		"{\"kind\": \"stoker dataset\"}",
		"\xff\xff",
		"{\"kind\": 1}",
		"{\"kind\": \"stoker dataset\", \"version\": 99}",
	};
	size_t n, depth = 100000;
	char *text = example(&n), *deep = malloc(depth);

	(void)state;
	for (size_t cut = 0; cut < n; cut++)
		refused(text, cut);
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		refused(texts[i], strlen(texts[i]));
	memset(deep, '[', depth);
	refused(deep, depth);
	free(deep);
	free(text);
}

/* Replaces the value of `key` and expects the sentence to name the key. */
static void with_value(const char *text, const char *key, const char *value)
{
	char quoted[64], changed[8192];
	const char *at, *end;
	struct manifest m;
	struct err e;

	snprintf(quoted, sizeof(quoted), "\"%s\": ", key);
	at = strstr(text, quoted);
	assert_non_null(at);
	at += strlen(quoted);
	end = at + strcspn(at, ",\n");
	snprintf(changed, sizeof(changed), "%.*s%s%s", (int)(at - text), text, value, end);
	if (manifest_parse(changed, strlen(changed), "m", &m, &e) != ERR_DATA)
		fail_msg("\"%s\" may not be %s", key, value);
	if (!strstr(e.text, key))
		fail_msg("%s=%s: %s", key, value, e.text);
}

static void wrong_values(void **state)
{
	static const char *const texts[] = {"format",      "element_type", "shape", "compression",
					    "file_prefix", "config_hash",  "state", "kind"};
	static const char *const numbers[] = {"files_train",     "files_eval", "subfolders_train",
					      "subfolders_eval", "version",    "samples_per_file",
					      "total_bytes"};
	char longest[400] = "\"";
	size_t n;
	char *text = example(&n);

	(void)state;
	memset(longest + 1, 'x', 300);
	strcpy(longest + 301, "\"");
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		with_value(text, texts[i], "17");
		with_value(text, texts[i], "null");
		with_value(text, texts[i], longest);
	}
	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
		with_value(text, numbers[i], "-1");
		with_value(text, numbers[i], "1.5");
		with_value(text, numbers[i], "\"7\"");
	}
	with_value(text, "version", "65537");
	with_value(text, "config_hash", "\"123456789abcdefg\"");
	with_value(text, "config_hash", "\"+23456789abcdef0\"");
	with_value(text, "config_hash", "\"123\"");
	with_value(text, "state", "\"done\"");
	with_value(text, "content_seed", "\"42\"");
	free(text);
}

static void too_large_a_file(void **state)
{
	struct io io = {.store = fixture_store("memory", NULL)};
	size_t n = (1u << 20) + 1;
	char *spaces = malloc(n);
	struct manifest m;
	struct err e;

	(void)state;
	memset(spaces, ' ', n);
	assert_int_equal(store_mkdirs(io.store, "/d", NULL), 0);
	fixture_put(io.store, "/d/" MANIFEST_NAME, spaces, n);
	assert_int_equal(manifest_read(&io, "/d", &m, &e), ERR_DATA);
	assert_non_null(strstr(e.text, "too large for a manifest"));
	free(spaces);
	store_destroy(io.store);
}

static void differs_in(const struct manifest *m, const struct workload *w, const char *word)
{
	struct buf why = {0};
	struct dataset d;

	fixture_dataset(&d, w);
	if (manifest_compare(m, &d, true, &why) != MANIFEST_OTHER || !why.data ||
	    !strstr(why.data, word))
		fail_msg("expected a difference in %s: %s", word, why.data ? why.data : "none");
	assert_false(manifest_matches(m, &d, NULL));
	buf_release(&why);
	dataset_release(&d);
}

static void differences(void **state)
{
	struct workload w = fixture_workload("npy", "/d", 7, 3), other;
	int64_t dims[2] = {64, 64};
	struct buf why = {0};
	struct manifest m;
	struct dataset d;
	size_t n;
	char *text = example(&n);

	(void)state;
	assert_int_equal(manifest_parse(text, n, "m", &m, NULL), 0);
	free(text);
	other = w;
	other.dataset.seed = 43;
	differs_in(&m, &other, "seed");
	other = w;
	other.dataset.num_samples_per_file = 2;
	differs_in(&m, &other, "num_samples_per_file is 1 in the manifest and 2");
	other = w;
	other.dataset.record_length_bytes = 147000000;
	differs_in(&m, &other, "shape");
	other = w;
	other.elem = elem_find("int8");
	other.dataset.record_element_type = (char *)(uintptr_t) "int8";
	differs_in(&m, &other, "record_element_type");
	other = w;
	other.dataset.format = (char *)(uintptr_t) "synthetic";
	differs_in(&m, &other, "format");
	other = w;
	other.dataset.file_prefix = (char *)(uintptr_t) "x";
	differs_in(&m, &other, "file_prefix is img in the manifest and x");
	other = w;
	other.dataset.num_files_train = 8;
	differs_in(&m, &other, "num_files_train is 7 in the manifest and 8");
	other = w;
	other.dataset.num_subfolders_eval = 2;
	differs_in(&m, &other, "num_subfolders_eval");
	other = w;
	other.dataset.num_files_train = 9;
	other.dataset.seed = 1;
	differs_in(&m, &other, "; num_files_train");

	/* What makes the same bytes is the same. */
	other = w;
	other.dataset.record_length_bytes = 4099;
	fixture_dataset(&d, &other);
	assert_true(manifest_matches(&m, &d, NULL));
	dataset_release(&d);
	other.dataset.record_dims.v = dims;
	other.dataset.record_dims.n = 2;
	fixture_dataset(&d, &other);
	assert_true(manifest_matches(&m, &d, NULL));
	/* What the words do not show, the hash does. */
	d.config_hash++;
	assert_int_equal(manifest_compare(&m, &d, true, &why), MANIFEST_OTHER);
	assert_non_null(strstr(why.data, "hash"));
	buf_release(&why);
	dataset_release(&d);

	other = w;
	other.dataset.num_files_train = 5;
	other.dataset.num_files_eval = 9;
	fixture_dataset(&d, &other);
	assert_int_equal(manifest_compare(&m, &d, true, NULL), MANIFEST_OTHER);
	assert_int_equal(manifest_compare(&m, &d, false, NULL), MANIFEST_LARGER);
	dataset_release(&d);
	other.dataset.num_files_eval = 3;
	fixture_dataset(&d, &other);
	assert_int_equal(manifest_compare(&m, &d, true, NULL), MANIFEST_LARGER);
	assert_false(manifest_matches(&m, &d, &why));
	assert_non_null(strstr(why.data, "7 + 3"));
	buf_release(&why);
	dataset_release(&d);
}

/* Whatever fails while it is replaced, the old manifest or the new one is there, whole. */
static void a_failed_write_keeps_the_old(void **state)
{
	struct workload w = fixture_workload("npy", "/d", 7, 3);
	struct dataset d;
	int rc = -1;

	(void)state;
	fixture_dataset(&d, &w);
	for (int nth = 1; rc < 0; nth++) {
		struct manifest m;
		struct err e = {0};
		struct io io = {0};
		char options[64];

		snprintf(options, sizeof(options), "fault: {nth: %d, path: .part}", nth);
		io.store = fixture_store("fault+memory", options);
		io.stat = NULL;
		assert_int_equal(store_mkdirs(io.store, "/d", NULL), 0);
		rc = manifest_write(&io, &d, MANIFEST_WRITING, &e);
		if (rc < 0) {
			assert_true(strlen(e.text) > 10);
			assert_int_equal(manifest_read(&io, "/d", &m, NULL), 0);
			assert_false(m.found);
			assert_int_equal(manifest_write(&io, &d, MANIFEST_COMPLETE, NULL), 0);
			assert_int_equal(manifest_read(&io, "/d", &m, NULL), 0);
			assert_true(m.complete);
		} else {
			assert_true(nth > 3);
		}
		store_destroy(io.store);
		assert_true(nth < 50);
	}
	dataset_release(&d);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(roundtrip),
		cmocka_unit_test(a_name_that_is_no_text),
		cmocka_unit_test(truncated_and_hostile),
		cmocka_unit_test(wrong_values),
		cmocka_unit_test(too_large_a_file),
		cmocka_unit_test(differences),
		cmocka_unit_test(a_failed_write_keeps_the_old),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
