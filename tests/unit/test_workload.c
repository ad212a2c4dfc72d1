/* Loading workloads: every shipped one, the search order, defaults lists, overrides, origins. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "workload/workload.h"

#define CONFIG TEST_DATA "/workload-config"

static int load_with(struct workload *w, const char *name, const char *config_dir,
		     const char *const *overrides, size_t n, struct err *e)
{
	struct workload_request req = {
		.workload = name,
		.overrides = overrides,
		.override_count = n,
		.config_dir = config_dir,
		.inspect = true,
		.start_wall_ns = 1700000000LL * NS_PER_S,
	};

	return workload_load(w, &req, e);
}

static void load_ok(struct workload *w, const char *name, const char *config_dir,
		    const char *const *overrides, size_t n)
{
	struct err e = {0};

	if (load_with(w, name, config_dir, overrides, n, &e) < 0)
		fail_msg("%s: %s", name ? name : "(none)", e.text);
}

#define LOAD(w, name, dir, ...)                                                                    \
	do {                                                                                       \
		const char *const list_[] = {NULL, ##__VA_ARGS__};                                 \
		load_ok(&(w), name, dir, list_ + 1, sizeof(list_) / sizeof(list_[0]) - 1);         \
	} while (0)

static bool warned(const struct workload *w, const char *part)
{
	for (size_t i = 0; i < w->warnings.n; i++)
		if (strstr(w->warnings.v[i], part))
			return true;
	return false;
}

static int origin_of(const struct workload *w, const char *key)
{
	const struct opt *row = opt_find(workload_rows, workload_row_count, key);

	assert_non_null(row);
	return (int)w->origin[row - workload_rows].source;
}

/* No unknown key in any shipped file; aliases only where the seed study's spelling is kept. */
static void test_shipped(void **state)
{
	size_t count = 0;

	(void)state;
	for (const char *const *name = workload_builtin_names(); *name; name++, count++) {
		struct workload w;

		LOAD(w, *name, NULL);
		assert_string_equal(w.choice, *name);
		assert_non_null(w.elem);
		assert_non_null(w.reader.data_loader);
		for (size_t i = 0; i < w.warnings.n; i++) {
			if (strstr(w.warnings.v[i], "is not a key"))
				fail_msg("%s: %s", *name, w.warnings.v[i]);
			if (strstr(w.warnings.v[i], "no effect without"))
				fail_msg("%s: %s", *name, w.warnings.v[i]);
			if (strstr(w.warnings.v[i], "is read as") && !strstr(*name, "_custom"))
				fail_msg("%s: %s", *name, w.warnings.v[i]);
		}
		if (name != workload_builtin_names())
			assert_true(strcmp(name[-1], name[0]) < 0);
		workload_release(&w);
	}
	assert_true(count >= 45);
	assert_null(workload_builtin_text("no such"));
}

static void test_values(void **state)
{
	struct workload w;

	(void)state;
	LOAD(w, "unet3d_h100", NULL);
	assert_int_equal(w.framework, FRAMEWORK_PYTORCH);
	assert_int_equal(w.reader.batch_size, 7);
	assert_int_equal(w.reader.sample_shuffle, SHUFFLE_SEED);
	assert_int_equal(w.dataset.num_files_train, 168);
	assert_true(w.dataset.record_length_bytes == 146600628.0);
	assert_int_equal(w.model.model_size_bytes, 499153191);
	assert_int_equal(w.train.computation_time.kind, TIME_CONSTANT);
	assert_true(w.train.computation_time.a == 0.323);
	assert_string_equal(w.dataset.data_folder, "data/unet3d");
	assert_int_equal(w.train.seed, 123);
	assert_int_equal(w.reader.prefetch_size, 2);
	assert_int_equal(origin_of(&w, "reader.batch_size"), ORIGIN_FILE);
	assert_int_equal(origin_of(&w, "reader.prefetch_size"), ORIGIN_DEFAULT);
	workload_release(&w);

	LOAD(w, "dlrm_mi355", NULL);
	assert_true(w.train.computation_time.a == 0.0005625);
	assert_int_equal(w.dataset.num_samples_per_file, 4718592);
	assert_int_equal(w.dataset.parquet.columns->n, 200);
	workload_release(&w);
}

static void test_seed_study(void **state)
{
	struct workload w;

	(void)state;
	LOAD(w, NULL, NULL, "workload=unet3d_h100_custom", "++workload.workflow.generate_data=True",
	     "++workload.reader.file_shuffle=off", "++workload.reader.batch_size=14",
	     "++workload.dataset.record_length_bytes=536870912",
	     "++workload.workflow.checkpoint=False");
	/* another spelling, which is worth a word only in a file of the user's */
	assert_int_equal(w.model.model_size_bytes, 499153191);
	assert_false(warned(&w, "model.model_size is read as model.model_size_bytes"));
	assert_false(warned(&w, "checkpoint"));
	assert_int_equal(w.reader.file_shuffle, SHUFFLE_OFF);
	assert_int_equal(w.reader.batch_size, 14);
	assert_true(w.workflow.generate_data);
	assert_true(w.dataset.record_length_bytes == 536870912.0);
	assert_int_equal(origin_of(&w, "reader.batch_size"), ORIGIN_OVERRIDE);
	assert_int_equal(w.overrides.n, 6);
	assert_string_equal(w.overrides.v[0], "workload=unet3d_h100_custom");
	assert_string_equal(w.overrides.v[3], "++workload.reader.batch_size=14");
	assert_string_equal(w.choice, "unet3d_h100_custom");
	workload_release(&w);

	/* Evaluation without evaluation files is said and switched off. */
	LOAD(w, "default_custom", NULL, "dataset.num_files_eval=0");
	assert_false(w.workflow.evaluation);
	assert_true(warned(&w, "dataset.num_files_eval is 0"));
	workload_release(&w);
}

static void test_search_order(void **state)
{
	struct workload w;

	(void)state;
	LOAD(w, "unet3d_a100", CONFIG);
	assert_int_equal(w.reader.batch_size, 3); /* ours, on top of the built-in one */
	assert_int_equal(w.reader.read_threads, 4);
	workload_release(&w);
	LOAD(w, "unet3d_a100.yaml", CONFIG);
	assert_int_equal(w.reader.batch_size, 3);
	workload_release(&w);
	LOAD(w, "unet3d_a100", NULL);
	assert_int_equal(w.reader.batch_size, 7);
	workload_release(&w);
	LOAD(w, "flat", CONFIG);
	assert_string_equal(w.model.name, "flat");
	assert_int_equal(w.reader.sample_shuffle, SHUFFLE_OFF);
	assert_int_equal(w.train.computation_time.kind, TIME_NORMAL);
	assert_string_equal(w.elem->name, "float32");
	assert_int_equal(w.dataset.record_element_bytes, 4);
	workload_release(&w);
	LOAD(w, CONFIG "/workload/saved.yaml", NULL);
	assert_int_equal(w.dataset.num_files_train, 5);
	workload_release(&w);
	LOAD(w, CONFIG "/workload/saved", NULL);
	assert_string_equal(w.model.name, "saved");
	workload_release(&w);
	LOAD(w, NULL, NULL);
	assert_string_equal(w.choice, "default");
	workload_release(&w);
}

static void test_packages(void **state)
{
	struct workload w;

	(void)state;
	LOAD(w, "global", CONFIG);
	assert_int_equal(w.dataset.num_files_train, 6);
	assert_string_equal(w.dataset.format, "npy");
	assert_string_equal(w.run_dir, "/tmp/flat/6");
	assert_null(node_get(w.tree, "hydra"));
	assert_null(node_get(w.composed, "hydra"));
	workload_release(&w);
	LOAD(w, NULL, CONFIG, "workload=[flat,default]");
	assert_string_equal(w.model.name, "default");
	assert_int_equal(w.dataset.record_dims.n, 2);
	assert_string_equal(w.choice, "flat,default");
	workload_release(&w);
}

static void test_old_style(void **state)
{
	struct workload w;

	(void)state;
	LOAD(w, "old_style", CONFIG);
	assert_string_equal(w.model.name, "unet3d");
	assert_true(w.dataset.record_length_bytes == 1000);
	assert_true(w.dataset.record_length_bytes_stdev == 10);
	assert_true(w.dataset.record_length_bytes_resize == 500);
	assert_int_equal(w.model.model_size_bytes, 499153191);
	assert_true(warned(&w, "checkpoint.model_size is read as model.model_size_bytes"));
	workload_release(&w);
	/* DLIO knows none of these spellings. */
	LOAD(w, "old_style", CONFIG, "compat.dlio=true");
	assert_true(w.dataset.record_length_bytes == 65536);
	assert_int_equal(w.model.model_size_bytes, 10240);
	assert_true(warned(&w, "checkpoint.model_size has no effect with compat.dlio"));
	workload_release(&w);
	LOAD(w, "default", NULL, "++workload.model.model_size=7", "++workload.compat.dlio=True");
	assert_int_equal(w.model.model_size_bytes, 10240);
	assert_true(warned(&w, "model.model_size has no effect with compat.dlio, as in DLIO"));
	workload_release(&w);
	LOAD(w, "default", NULL, "model.model_size=7", "compat.dlio=true", "compat.dlio=false");
	assert_int_equal(w.model.model_size_bytes, 7);
	workload_release(&w);
	LOAD(w, "unet3d_h100", NULL, "compat.dlio=true", "model.model_size_bytes=5");
	assert_int_equal(w.model.model_size_bytes, 5);
	workload_release(&w);
	LOAD(w, "unet3d_h100", NULL, "compat.dlio=true");
	assert_int_equal(w.model.model_size_bytes, 10240);
	workload_release(&w);
	/* The override of the real key wins over an alias in the file, and an alias typed wins too.
	 */
	LOAD(w, "old_style", CONFIG, "++workload.dataset.record_length_bytes=64");
	assert_true(w.dataset.record_length_bytes == 64);
	assert_true(warned(&w, "record_length is ignored"));
	workload_release(&w);
	LOAD(w, "unet3d_h100", CONFIG, "++workload.dataset.record_length=64");
	assert_true(w.dataset.record_length_bytes == 64);
	workload_release(&w);
}

static void test_overrides(void **state)
{
	struct workload w;

	(void)state;
	LOAD(w, "default", NULL, "reader.read_threads=4", "+workload.storage.storage_root=/data",
	     "~workload.profiling", "dataset.record_dims=[4, 5]", "framework=pytorch",
	     "train.computation_time={type: uniform, min: 0.1, max: 0.2}",
	     "storage.store=throttle+posix", "storage.throttle.bandwidth=1000",
	     "++workload.reader={batch_size: 2, sample_shuffle: random}");
	assert_int_equal(w.reader.read_threads, 4);
	assert_int_equal(w.reader.batch_size, 2);
	assert_int_equal(w.reader.batch_size_eval, 1);
	assert_int_equal(w.reader.sample_shuffle, SHUFFLE_RANDOM);
	assert_string_equal(w.storage.storage_root, "/data");
	assert_int_equal(w.dataset.record_dims.n, 2);
	assert_int_equal(w.dataset.record_dims.v[1], 5);
	assert_int_equal(w.train.computation_time.kind, TIME_UNIFORM);
	assert_true(w.train.computation_time.b == 0.2);
	assert_int_equal(node_path(w.tree, "workload.storage.throttle.bandwidth")->i, 1000);
	assert_null(node_path(w.tree, "workload.profiling"));
	assert_int_equal(w.warnings.n, 0);
	workload_release(&w);

	LOAD(w, "default", NULL, "++workload.reader.bach_size=9");
	assert_int_equal(w.reader.batch_size, 4);
	assert_true(warned(&w, "reader.bach_size is not a key"));
	assert_true(warned(&w, "did you mean reader.batch_size?"));
	workload_release(&w);
}

static void test_stdev(void **state)
{
	struct workload w;

	(void)state;
	LOAD(w, "default", NULL, "train.computation_time_stdev=0.5", "reader.preprocess_time=0.25",
	     "reader.preprocess_time_stdev=0.1", "evaluation.eval_time_stdev=0.2");
	assert_int_equal(w.train.computation_time.kind, TIME_NORMAL);
	assert_true(w.train.computation_time.a == 1.0 && w.train.computation_time.b == 0.5);
	assert_int_equal(w.reader.preprocess_time.kind, TIME_NORMAL);
	assert_true(w.evaluation.eval_time.b == 0.2);
	workload_release(&w);
}

static void test_data_reader(void **state)
{
	struct workload w;

	(void)state;
	LOAD(w, "default", NULL, "++workload.data_reader.batch_size=2");
	assert_int_equal(w.reader.batch_size, 2);
	assert_int_equal(w.reader.batch_size_eval, 1);
	assert_true(warned(&w, "the section reader is ignored"));
	workload_release(&w);
}

static void test_derived(void **state)
{
	struct workload w;

	(void)state;
	LOAD(w, "default", NULL, "~workload.reader.data_loader");
	assert_string_equal(w.reader.data_loader, "pytorch");
	assert_int_equal(w.reader.order, ORDER_SHUFFLED);
	workload_release(&w);
	LOAD(w, "default", NULL, "framework=tensorflow", "reader.data_loader=none",
	     "compat.dlio=true");
	assert_string_equal(w.reader.data_loader, "tensorflow");
	assert_int_equal(w.reader.order, ORDER_DLIO);
	workload_release(&w);
	LOAD(w, "default", NULL, "compat.dlio=true", "reader.order=stoker",
	     "reader.pin_memory=false");
	assert_int_equal(w.reader.order, ORDER_SHUFFLED);
	assert_true(warned(&w, "keys without effect: reader.pin_memory"));
	workload_release(&w);
	LOAD(w, "default", NULL, "compat.dlio=true", "reader.read_type=on_demand");
	assert_int_equal(w.reader.read_type, READ_MEMORY);
	workload_release(&w);
	LOAD(w, "default", NULL, "compat.dlio=true");
	assert_int_equal(w.reader.read_type, READ_ON_DEMAND);
	workload_release(&w);
	LOAD(w, "default", NULL, "dataset.format=jpeg", "dataset.record_element_type=float32");
	assert_string_equal(w.elem->name, "uint8");
	assert_true(warned(&w, "replaced by uint8"));
	workload_release(&w);
	LOAD(w, "default", NULL, "reader.odirect=true", "storage.store=throttle+ posix");
	assert_string_equal(w.storage.store, "throttle+ direct");
	assert_int_equal(w.reader.access, 1); /* native */
	workload_release(&w);
	LOAD(w, "default", NULL, "reader.odirect=true", "reader.access=framework",
	     "storage.page_cache=drop_behind");
	assert_string_equal(w.storage.store, "drop_behind+direct");
	assert_int_equal(w.reader.access, 0);
	workload_release(&w);
	LOAD(w, "default", NULL, "storage.page_cache=drop_behind",
	     "storage.store=throttle+drop_behind+posix");
	assert_string_equal(w.storage.store, "throttle+drop_behind+posix");
	workload_release(&w);
	/* null keeps a default that cannot be null; ??? counts as absent */
	LOAD(w, "default", NULL, "++workload.reader.batch_size=null", "dataset.file_prefix=null",
	     "reader.read_type=memory", "++workload.train.epochs=???");
	assert_int_equal(w.reader.batch_size, 1);
	assert_string_equal(w.dataset.file_prefix, "img");
	assert_int_equal(w.reader.read_type, READ_MEMORY);
	assert_int_equal(w.train.epochs, 1);
	workload_release(&w);
}

/* DLIO's readers of objects are for its own loader. */
static void test_objects(void **state)
{
	struct workload w;

	(void)state;
	unsetenv("DLIO_STORAGE_LIBRARY");
	LOAD(w, "default", NULL, "storage.storage_type=s3", "storage.storage_library=minio");
	assert_int_equal(w.reader.access, READ_OBJECTS);
	workload_release(&w);
	LOAD(w, "default", NULL, "storage.storage_type=s3", "storage.storage_library=minio",
	     "reader.data_loader=mds");
	assert_int_equal(w.reader.access, 0); /* framework */
	workload_release(&w);
	LOAD(w, "default", NULL, "storage.storage_type=s3",
	     "storage.storage_options.prefetch_window=4", "storage.s3.stagger_workers=false",
	     "reader.access=native");
	assert_true(warned(&w, "storage.storage_options.prefetch_window has no effect"));
	assert_true(warned(&w, "storage.s3.stagger_workers has no effect"));
	workload_release(&w);
	LOAD(w, "default", NULL, "storage.storage_type=s3", "storage.s3.prefetch_window=4",
	     "reader.access=object");
	assert_false(warned(&w, "prefetch_window"));
	workload_release(&w);
}

static void test_run_dir(void **state)
{
	struct workload w;

	(void)state;
	assert_int_equal(setenv("TZ", "UTC", 1), 0);
	assert_int_equal(setenv("STOKER_TEST_SECRET", "s3cret", 1), 0);
	LOAD(w, "default", NULL, "++workload.output.folder=${oc.env:STOKER_TEST_SECRET}/x");
	assert_string_equal(w.run_dir, "./hydra_log/default/2023-11-14-22-13-20");
	assert_string_equal(w.hydra_subdir, ".hydra");
	assert_string_equal(w.output.folder, "s3cret/x");
	assert_string_equal(node_path(w.composed, "workload.output.folder")->s,
			    "${oc.env:STOKER_TEST_SECRET}/x");
	workload_release(&w);

	LOAD(w, "default", NULL, "~workload.model");
	assert_string_equal(w.run_dir, "./hydra_log/default/2023-11-14-22-13-20");
	assert_string_equal(w.model.name, "default");
	assert_int_equal(origin_of(&w, "model.name"), ORIGIN_DEFAULT);
	assert_null(node_path(w.tree, "workload.model"));
	workload_release(&w);
	LOAD(w, CONFIG "/workload/saved.yaml", NULL, "~workload.model.name");
	assert_string_equal(w.run_dir, "./hydra_log/saved/2023-11-14-22-13-20");
	assert_int_equal(origin_of(&w, "model.name"), ORIGIN_DEFAULT);
	assert_null(node_path(w.tree, "workload.model.name"));
	workload_release(&w);

	LOAD(w, "default", NULL, "hydra.run.dir=out/${workload.reader.batch_size}",
	     "++hydra.output_subdir=null", "++hydra.job.chdir=true");
	assert_string_equal(w.run_dir, "out/4");
	assert_null(w.hydra_subdir);
	assert_int_equal(w.overrides.n, 0);
	assert_int_equal(w.hydra_overrides.n, 3);
	assert_true(warned(&w, "hydra.job.chdir=true' has no effect"));
	workload_release(&w);
}

static void test_steps(void **state)
{
	struct workload w;

	(void)state;
	LOAD(w, "default", NULL, "output.metric.exclude_start_steps=16");
	assert_true(warned(&w, "exclude all 16 steps"));
	workload_release(&w);
	LOAD(w, "default", NULL, "output.metric.exclude_start_steps=15");
	assert_int_equal(w.warnings.n, 0);
	workload_release(&w);
	LOAD(w, "default", NULL, "train.total_training_steps=1");
	assert_true(warned(&w, "exclude all 1 step "));
	workload_release(&w);
	LOAD(w, "default", NULL, "dataset.num_subfolders_train=65");
	assert_true(warned(&w, "1 folders stay empty"));
	workload_release(&w);
	LOAD(w, "default", NULL, "reader.batch_size_eval=9");
	assert_false(w.workflow.evaluation);
	workload_release(&w);
	LOAD(w, "default", NULL, "reader.batch_size_eval=9", "reader.data_loader=mds",
	     "reader.canonical_nodes=3");
	assert_true(w.workflow.evaluation);
	workload_release(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_shipped),     cmocka_unit_test(test_values),
		cmocka_unit_test(test_seed_study),  cmocka_unit_test(test_search_order),
		cmocka_unit_test(test_packages),    cmocka_unit_test(test_old_style),
		cmocka_unit_test(test_overrides),   cmocka_unit_test(test_stdev),
		cmocka_unit_test(test_data_reader), cmocka_unit_test(test_derived),
		cmocka_unit_test(test_objects),     cmocka_unit_test(test_run_dir),
		cmocka_unit_test(test_steps),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
