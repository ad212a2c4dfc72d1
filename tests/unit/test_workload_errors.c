/* Each kind of bad input gives its sentence, with the file and the line, before any work. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "workload_file.h"

#define CONFIG TEST_DATA "/workload-config"
/* A workload without fault; each case adds a line or an override to it. */
#define GOOD                                                                                       \
	"framework: pytorch\n"                                                                     \
	"model: {name: m}\n"                                                                       \
	"dataset: {format: npz, num_files_train: 8}\n"
#define FIVE(x) x "0: 1, " x "1: 1, " x "2: 1, " x "3: 1, " x "4: 1, "
#define MANY FIVE("a") FIVE("b") FIVE("c") FIVE("d") FIVE("e") FIVE("f") FIVE("g")
#define TOO_MANY MANY FIVE("h") FIVE("i") FIVE("j") FIVE("k") FIVE("l") FIVE("m")

static int load_text(const char *text, const char *const *overrides, bool strict, int64_t ranks,
		     struct workload *w, struct err *e)
{
	return load_request(text, overrides,
			    (struct workload_request){.strict = strict, .ranks = ranks}, w, e);
}

struct bad {
	const char *text;
	const char *overrides[4];
	int code;
	const char *part[3];
	bool strict;
	int64_t ranks;
};

#pragma GCC diagnostic ignored "-Wmissing-field-initializers"
static const struct bad bad[] = {
	/* the file */
	{"a: [1, 2\n", {0}, ERR_USAGE, {"w.yaml", "line"}},
	{"- a\n- b\n", {0}, ERR_USAGE, {"w.yaml", "a map of sections"}},
	{"framework: pytorch\nframework: pytorch\n", {0}, ERR_USAGE, {"w.yaml", "line 2"}},
	{"defaults: unet3d\n", {0}, ERR_USAGE, {"line 1", "'defaults' is a list"}},
	{"defaults: [[a]]\n", {0}, ERR_USAGE, {"line 1", "_self_"}},
	{"defaults: [{reader: x}]\n", {0}, ERR_USAGE, {"line 1", "_self_"}},
	{"defaults: [unet3d_h10]\n", {0}, ERR_USAGE, {"w.yaml", "did you mean 'unet3d_h100'"}},
	{"defaults: [./w.yaml]\n", {0}, ERR_USAGE, {"w.yaml: ", "refers back to it"}},
	/* types, ranges, choices */
	{GOOD "reader: {batch_size: 0}\n",
	 {0},
	 ERR_USAGE,
	 {"w.yaml: line 4: reader.batch_size", "allowed: 1"}},
	{GOOD "reader: {recorded_work: true}\n",
	 {0},
	 ERR_USAGE,
	 {"line 4: reader.recorded_work", "needs reader.access recorded"}},
	{GOOD "reader: {batch_size: two}\n", {0}, ERR_USAGE, {"line 4", "not a whole number"}},
	{GOOD "reader:\n  sample_shuffle: sead\n",
	 {0},
	 ERR_USAGE,
	 {"line 5: reader.sample_shuffle", "off, seed, random", "seed"}},
	{GOOD "train: {computation_time: {mean: x}}\n",
	 {0},
	 ERR_USAGE,
	 {"line 4: train.computation"}},
	{GOOD, {"reader.read_type=memry"}, ERR_USAGE, {"command line", "memory"}},
	{GOOD, {"++workload.dataset.num_files_train=-1"}, ERR_USAGE, {"command line", "-1"}},
	{GOOD "train: 5\n", {0}, ERR_USAGE, {"line 4: train is a section"}},
	{GOOD "data_reader: 5\n", {0}, ERR_USAGE, {"line 4: data_reader is a section"}},
	{GOOD "metric: {au: 90}\n", {0}, ERR_USAGE, {"line 4: metric.au", "0 to 1"}},
	{GOOD,
	 {"dataset.record_element_type=int7"},
	 ERR_USAGE,
	 {"command line", "not a NumPy type"}},
	{GOOD, {"reader.transformed_record_element_type=x"}, ERR_USAGE, {"not a NumPy type"}},
	/* unknown keys */
	{GOOD "reader: {bach_size: 4}\n",
	 {0},
	 ERR_USAGE,
	 {"did you mean reader.batch_size? reader.bach_size is not a key (", "w.yaml: line 4)"},
	 .strict = true},
	{GOOD "raeder: {batch_size: 4}\n",
	 {0},
	 ERR_USAGE,
	 {"did you mean reader.batch_size? raeder.batch_size is not a key (", "line 4)"},
	 .strict = true},
	{GOOD "chekpoint: {seed: 4}\n",
	 {0},
	 ERR_USAGE,
	 {"did you mean checkpoint.seed?"},
	 .strict = true},
	{GOOD "foo: {bar: {x: 4}}\n",
	 {0},
	 ERR_USAGE,
	 {"foo is not a key (", "line 4)"},
	 .strict = true},
	/* no section has so many keys */
	{GOOD "raeder: {batch_size: 4, " TOO_MANY "}\n",
	 {0},
	 ERR_USAGE,
	 {"raeder is not a key ("},
	 .strict = true},
	{GOOD,
	 {"++storage.throtle.bandwidth=4"},
	 ERR_USAGE,
	 {"did you mean storage.throttle.bandwidth? storage.throtle.bandwidth is not a key ("},
	 .strict = true},
	{GOOD, {"++reader=4"}, ERR_USAGE, {"reader is a section, a map of keys"}},
	{GOOD "storage: {trottle: {x: 1}}\n", {0}, ERR_USAGE, {"storage.trottle"}, .strict = true},
	{GOOD "dataset2: null\n", {0}, ERR_USAGE, {"dataset2"}, .strict = true},
	/* overrides */
	{GOOD, {"foo"}, ERR_USAGE, {"foo"}},
	{GOOD,
	 {"workload.reader.bach_size=4"},
	 ERR_USAGE,
	 {"did you mean 'reader.batch_size'? command line: 'workload.reader.bach_size=4': "}},
	{GOOD, {"workload=default"}, ERR_USAGE, {"two workloads are given"}},
	{GOOD, {"~workload=default"}, ERR_USAGE, {"name of a workload"}},
	{GOOD, {"workload=3"}, ERR_USAGE, {"name of a workload"}},
	{GOOD, {"~workload.nope"}, ERR_USAGE, {"nope"}},
	{GOOD, {"+workload.framework=pytorch"}, ERR_USAGE, {"framework"}},
	{GOOD, {"++workload.output.folder=${nope.nope}"}, ERR_USAGE, {"nope.nope"}},
	{GOOD, {"hydra.run.dir=null"}, ERR_USAGE, {"hydra.run.dir"}},
	{GOOD, {"hydra.output_subdir=3"}, ERR_USAGE, {"hydra.output_subdir"}},
	/* names */
	{GOOD,
	 {"dataset.format=npx"},
	 ERR_USAGE,
	 {"dataset.format 'npx'", "npz", "is not one of npz, hdf5"}},
	{GOOD, {"reader.data_loader=torch"}, ERR_USAGE, {"reader.data_loader 'torch'", "pytorch"}},
	{GOOD, {"dataset.file_prefix=a/b"}, ERR_USAGE, {"dataset.file_prefix", "slash"}},
	{GOOD, {"storage.store="}, ERR_USAGE, {"storage.store is empty"}},
	/* shapes and sizes */
	{GOOD, {"dataset.record_dims=[4, 0]"}, ERR_USAGE, {"dataset.record_dims", "0"}},
	{GOOD,
	 {"dataset.record_dims=[1,1,1,1,1,1,1,1,1]"},
	 ERR_USAGE,
	 {"9 dimensions", "at most 8"}},
	{GOOD, {"dataset.record_dims=[10000000000,10000000000]"}, ERR_USAGE, {"more than 2^63"}},
	{GOOD,
	 {"dataset.record_dims=[4]", "dataset.record_length_bytes_stdev=1"},
	 ERR_USAGE,
	 {"exclude each other"}},
	{GOOD,
	 {"dataset.format=png", "dataset.record_dims=[4,4,3]"},
	 ERR_USAGE,
	 {"png format does not support more than 2 dimensions, but got 3 dimensions."}},
	{GOOD,
	 {"dataset.format=hdf5", "dataset.hdf5.num_dset_per_record=3"},
	 ERR_USAGE,
	 {"needs dataset.record_dims"}},
	{GOOD,
	 {"dataset.format=hdf5", "dataset.hdf5.num_dset_per_record=3", "dataset.record_dims=[4]"},
	 ERR_USAGE,
	 {"3 does not divide dataset.record_dims[0], 4"}},
	{GOOD, {"dataset.num_samples_per_file=1000000000000000"}, ERR_USAGE, {"more than 2^63"}},
	{GOOD,
	 {"dataset.num_samples_per_file=1000000", "dataset.num_files_train=1000000000000000",
	  "dataset.record_length_bytes=1"},
	 ERR_USAGE,
	 {"1000000000000000 files", "2^63"}},
	/* steps */
	{GOOD, {"dataset.num_files_train=0"}, ERR_USAGE, {"nothing to train on"}},
	{GOOD,
	 {"reader.batch_size=9"},
	 ERR_USAGE,
	 {"8 training samples (8 files of 1)", "batch_size 9 on 1 rank"}},
	{GOOD, {"reader.batch_size=4"}, ERR_USAGE, {"batch_size 4 on 3 ranks"}, .ranks = 3},
	{GOOD,
	 {"reader.batch_size=1000000000000000"},
	 ERR_USAGE,
	 {"do not make one step"},
	 .ranks = INT64_MAX},
	{GOOD,
	 {"train.total_training_steps=9"},
	 ERR_USAGE,
	 {"9 is more than the dataset provides: 8 steps"}},
	/* combinations */
	{GOOD,
	 {"framework=tensorflow", "reader.data_loader=pytorch"},
	 ERR_USAGE,
	 {"cannot be used with framework tensorflow"}},
	{GOOD,
	 {"reader.data_loader=tensorflow"},
	 ERR_USAGE,
	 {"cannot be used with framework pytorch"}},
	{GOOD,
	 {"dataset.format=tfrecord", "compat.dlio=true"},
	 ERR_USAGE,
	 {"tfrecord cannot be read by"}},
	{GOOD, {"reader.data_loader=custom"}, ERR_USAGE, {"needs reader.data_loader_classname"}},
	{GOOD,
	 {"storage.storage_type=aistore", "dataset.format=png"},
	 ERR_USAGE,
	 {"npz, npy or parquet files"}},
	{GOOD,
	 {"workflow.checkpoint=true", "model.num_layers=2", "model.parallelism.pipeline=4"},
	 ERR_USAGE,
	 {"model.num_layers 2 is less than"}},
	{GOOD,
	 {"workflow.checkpoint=true", "model.parallelism.zero_stage=3",
	  "model.parallelism.pipeline=4"},
	 ERR_USAGE,
	 {"not compatible"}},
	{GOOD,
	 {"workflow.checkpoint=true", "model.parallelism.data=3"},
	 ERR_USAGE,
	 {"unless checkpoint.mode is subset"}},
	{GOOD,
	 {"workflow.checkpoint=true", "checkpoint.mode=subset"},
	 ERR_USAGE,
	 {"needs model.parallelism.data"}},
	{GOOD,
	 {"workflow.checkpoint=true", "checkpoint.num_checkpoints_write=1",
	  "checkpoint.num_checkpoints_read=2"},
	 ERR_USAGE,
	 {"2 is more than num_checkpoints_write 1"}},
	{GOOD,
	 {"workflow.checkpoint=true", "checkpoint.ksm={await_time: 3}"},
	 ERR_USAGE,
	 {"randomize_tensor false"}},
	{GOOD,
	 {"reader.data_loader=native_dali", "dataset.format=npz"},
	 ERR_USAGE,
	 {"dataset.format npz", "npy, png, jpeg and tfrecord", "data_loader dali"}},
	{GOOD,
	 {"reader.data_loader=native_dali", "dataset.format=npy", "dataset.num_samples_per_file=2"},
	 ERR_USAGE,
	 {"num_samples_per_file is 2", "for one sample"}},
	{GOOD,
	 {"reader.data_loader=native_dali", "dataset.format=npy", "reader.order=distributed"},
	 ERR_USAGE,
	 {"reader.order", "leave reader.order out"}},
	{GOOD, {"reader.order=sharded"}, ERR_USAGE, {"native_dali"}},
	{GOOD,
	 {"reader.order=random"},
	 ERR_USAGE,
	 {"RandomSampler", "use distributed"},
	 .ranks = 2},
	/* features of later versions */
	{GOOD,
	 {"dataset.format=hdf5_opt"},
	 ERR_ABSENT,
	 {"command line: dataset.format hdf5_opt is not supported", "npz, hdf5, "}},
	{GOOD, {"dataset.compression=xz"}, ERR_ABSENT, {"dataset.compression xz"}},
	{GOOD,
	 {"reader.data_loader_sampler=iterative"},
	 ERR_USAGE,
	 {"reader.data_loader_sampler iterative", "derive, index"}},
	{GOOD,
	 {"reader.odirect=true", "storage.store=throttle+mmap"},
	 ERR_USAGE,
	 {"reader.odirect", "throttle+mmap"}},
	{GOOD,
	 {"storage.storage_type=s3", "reader.access=object", "reader.data_loader=mds"},
	 ERR_USAGE,
	 {"reader.access object is for reader.data_loader pytorch or webdataset, not for mds"}},
	{GOOD,
	 {"storage.storage_type=s3", "reader.access=object", "framework=tensorflow"},
	 ERR_USAGE,
	 {"pytorch or webdataset, not for tensorflow"}},
	{GOOD "storage: {storage_type: s3, storage_library: boto3}\n",
	 {0},
	 ERR_USAGE,
	 {"w.yaml: line 4: storage.storage_library 'boto3' is none of s3dlio, s3torchconnector"}},
	{GOOD,
	 {"storage.storage_type=s3", "storage.storage_options.storage_library=[minio]"},
	 ERR_USAGE,
	 {"storage.storage_options.storage_library is not a name"}},
	/* canonical nodes are made equal by repeating samples: 8 are 10 */
	{GOOD,
	 {"reader.data_loader=mds", "reader.canonical_nodes=5", "reader.batch_size=11"},
	 ERR_USAGE,
	 {"8 training samples", "do not make one step"}},
	{GOOD, {"storage.storage_type=aistore"}, ERR_ABSENT, {"storage.storage_type aistore"}},
	{GOOD, {"reader.reader_classname=a.B"}, ERR_ABSENT, {"Python class"}},
	{GOOD,
	 {"workflow.checkpoint=true", "checkpoint.checkpoint_mechanism_classname=a.B"},
	 ERR_ABSENT,
	 {"Python class"}},
	{"model: {name: m}\ndataset: {num_files_train: 4}\n",
	 {"reader.data_loader_sampler=index"},
	 ERR_USAGE,
	 {"reader.data_loader_sampler index", "tensorflow", "derive, iterative"}},
};

static void test_bad_input(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		const struct bad *b = &bad[i];
		struct workload w;
		struct err e = {0};
		int rc = load_text(b->text, b->overrides, b->strict, b->ranks, &w, &e);

		if (rc != b->code)
			fail_msg("case %zu (%s): code %d, wanted %d: %s", i, b->part[0], rc,
				 b->code, e.text);
		for (size_t k = 0; k < 3 && b->part[k]; k++)
			if (!strstr(e.text, b->part[k]))
				fail_msg("case %zu: '%s' is not in: %s", i, b->part[k], e.text);
		workload_release(&w);
	}
}

/* What the bad cases are variants of is not bad itself, and near misses of the rules pass. */
static void test_good_neighbours(void **state)
{
	static const struct {
		const char *overrides[4];
		int64_t ranks;
	} good[] = {
		{{0}},
		{{"reader.batch_size=8"}},
		{{"reader.batch_size=2"}, 4},
		{{"dataset.record_dims=[1,1,1,1,1,1,1,1]"}},
		{{"train.total_training_steps=8"}},
		{{"train.total_training_steps=16", "train.epochs=2"}},
		{{"dataset.num_files_train=0", "workflow.train=false"}},
		{{"dataset.format=hdf5", "workflow.train=false"}},
		{{"reader.data_loader=dali", "workflow.train=false",
		  "workflow.generate_data=true"}},
		{{"storage.storage_type=parallel_fs"}},
		{{"storage.storage_type=s3", "reader.access=object"}},
		{{"reader.data_loader=mds", "reader.canonical_nodes=5", "reader.batch_size=10"}},
		{{"storage.storage_type=s3", "storage.storage_library=boto3",
		  "storage.s3.client=arrow"}},
		{{"storage.storage_library=boto3"}},
		{{"model.num_layers=2", "model.parallelism.pipeline=4"}},
		{{"++workload.storage.throttle={bandwidth: 1}"}},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		struct workload w;
		struct err e = {0};

		if (load_text(GOOD, good[i].overrides, true, good[i].ranks, &w, &e) != 0)
			fail_msg("case %zu: %s", i, e.text);
		workload_release(&w);
	}
}

static void test_folders(void **state)
{
	struct workload_request req = {.workload = "unet3d_h100", .config_dir = "/nonexistent/x"};
	struct workload w;
	struct err e = {0};

	(void)state;
	assert_int_equal(workload_load(&w, &req, &e), ERR_USAGE);
	assert_non_null(strstr(e.text, "'/nonexistent/x' does not exist"));
	workload_release(&w);

	req = (struct workload_request){.workload = "flta", .config_dir = CONFIG};
	assert_int_equal(workload_load(&w, &req, &e), ERR_USAGE);
	assert_non_null(strstr(e.text, "there is no workload 'flta' (did you mean 'flat'?)"));
	assert_non_null(strstr(e.text, "'stoker show workloads'"));
	workload_release(&w);

	req.workload = "circle_a";
	assert_int_equal(workload_load(&w, &req, &e), ERR_USAGE);
	assert_non_null(strstr(e.text, "circle_b.yaml"));
	workload_release(&w);

	req = (struct workload_request){.workload = "no/such.yaml"};
	assert_int_equal(workload_load(&w, &req, &e), ERR_USAGE);
	assert_non_null(strstr(e.text, "there is no workload file 'no/such.yaml'"));
	workload_release(&w);

	req = (struct workload_request){.workload = ""};
	assert_int_equal(workload_load(&w, &req, NULL), ERR_USAGE);
	workload_release(&w);
	workload_release(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_bad_input),
		cmocka_unit_test(test_good_neighbours),
		cmocka_unit_test(test_folders),
	};

	return cmocka_run_group_tests(tests, make_folder, drop_folder);
}
