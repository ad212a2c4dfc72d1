/* What is written from the rows: the man page section, show config, the hash. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/str.h"
#include "workload/backend.h"
#include "workload/workload.h"

/* Keys and aliases are unique, and every row has a sentence. */
static void test_rows(void **state)
{
	(void)state;
	for (size_t i = 0; i < workload_row_count; i++) {
		const struct opt *row = &workload_rows[i];

		assert_ptr_equal(opt_find(workload_rows, workload_row_count, row->key), row);
		if (row->alias)
			assert_ptr_equal(opt_find(workload_rows, workload_row_count, row->alias),
					 row);
		if (!str_ends(row->help, "."))
			fail_msg("%s: its help is not a sentence", row->key);
		if (strchr(row->help, '|'))
			fail_msg("%s: its help breaks the table", row->key);
		if (row->type == OPT_ENUM)
			assert_non_null(row->choices);
	}
}

/* Sizes, counts, rates and times: none is negative, but for -1 that means none, nor without an end.
 */
static void expect_range(const char *section, const struct opt *row)
{
	if (row->type != OPT_I64 && row->type != OPT_F64 && row->type != OPT_TIME &&
	    row->type != OPT_I64_LIST)
		return;
	if (!isfinite(row->max) || row->max <= row->min || (row->min < 0 && row->min != -1))
		fail_msg("%s%s: %g to %g", section, row->key, row->min, row->max);
}

static void test_ranges(void **state)
{
	(void)state;
	for (size_t i = 0; i < workload_row_count; i++)
		expect_range("", &workload_rows[i]);
	for (size_t i = 0; store_facts_table[i]; i++)
		for (size_t k = 0; k < store_facts_table[i]->option_count; k++)
			expect_range(store_facts_table[i]->name, &store_facts_table[i]->options[k]);
}

static void test_man(void **state)
{
	struct buf out = {0};

	(void)state;
	workload_man(&out);
	assert_non_null(strstr(out.data, "\n.B reader.batch_size\n"));
	for (const char *p = out.data; (p = strchr(p, '\n')); p++)
		if (p[1] == '.')
			assert_true(str_starts(p + 1, ".TP\n") || str_starts(p + 1, ".B "));
	buf_release(&out);
}

static int load(struct workload *w, const char *const *overrides, size_t n)
{
	struct workload_request req = {.workload = "default",
				       .overrides = overrides,
				       .override_count = n,
				       .inspect = true};
	struct err e = {0};
	int rc = workload_load(w, &req, &e);

	if (rc < 0)
		fail_msg("%s", e.text);
	return rc;
}

static void test_print(void **state)
{
	const char *const overrides[] = {"reader.batch_size=5"};
	struct buf all = {0}, set = {0};
	struct workload w;

	(void)state;
	load(&w, overrides, 1);
	workload_print(&w, false, &all);
	workload_print(&w, true, &set);
	const char *line = strstr(set.data, "reader.batch_size ");

	assert_non_null(line);
	assert_non_null(strstr(line, " 5 "));
	assert_non_null(strstr(line, "command line\n"));
	assert_non_null(strstr(set.data, "built-in/default.yaml: line "));
	assert_null(strstr(set.data, "prefetch_size"));
	assert_non_null(strstr(all.data, "reader.prefetch_size"));
	assert_non_null(strstr(all.data, " default\n"));
	buf_release(&all);
	buf_release(&set);
	workload_release(&w);
}

static uint64_t hash_with(const char *override)
{
	struct workload w;

	load(&w, &override, override ? 1 : 0);
	uint64_t h = workload_dataset_hash(&w);

	workload_release(&w);
	return h;
}

static void test_hash(void **state)
{
	static const char *const same[] = {
		"reader.batch_size=2",
		"dataset.data_folder=/x",
		"train.seed=5",
		"dataset.record_length_bytes_resize=100",
		"dataset.compression_level=9",
		"dataset.record_element_type=u1",
		"workflow.generate_data=true",
	};
	static const char *const differ[] = {
		"dataset.num_files_train=65",
		"dataset.num_files_eval=9",
		"dataset.format=npy",
		"dataset.record_length_bytes=4097",
		"dataset.record_length_bytes_stdev=1",
		"dataset.num_samples_per_file=2",
		"dataset.num_subfolders_train=3",
		"dataset.file_prefix=x",
		"dataset.record_element_type=int8",
		"dataset.seed=1",
		"dataset.record_dims=[64, 64]",
		"dataset.num_subfolders_eval=0",
	};
	const uint64_t base = hash_with(NULL);

	(void)state;
	for (size_t i = 0; i < sizeof(same) / sizeof(same[0]); i++)
		if (hash_with(same[i]) != base)
			fail_msg("%s changes the hash", same[i]);
	for (size_t i = 0; i < sizeof(differ) / sizeof(differ[0]); i++)
		if (hash_with(differ[i]) == base)
			fail_msg("%s does not change the hash", differ[i]);
	assert_int_equal(hash_with("dataset.num_subfolders_train=0"),
			 hash_with("dataset.num_subfolders_train=1"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rows), cmocka_unit_test(test_ranges),
		cmocka_unit_test(test_man),  cmocka_unit_test(test_print),
		cmocka_unit_test(test_hash),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
