/* Every name of a framework, on the command line and in a file, in its own section and in that of a
 * loader; all errors of a workload at once; sections that are switched off. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "workload_file.h"

#include "base/str.h"
#include "workload/foreign.h"
#include "workload/key.h"

/* The epoch is long enough for any batch below. */
#define GOOD                                                                                       \
	"framework: pytorch\n"                                                                     \
	"model: {name: m}\n"                                                                       \
	"dataset: {format: npz, num_files_train: 100000}\n"

/* Nothing of the dataset is set: that the names do. */
#define BARE                                                                                       \
	"framework: pytorch\n"                                                                     \
	"model: {name: m}\n"                                                                       \
	"workflow: {train: false}\n"

static int load(const char *text, const char *const *overrides, struct workload *w, struct err *e)
{
	return load_request(text, overrides, (struct workload_request){.inspect = true}, w, e);
}

static bool says(const struct str_list *list, const char *part)
{
	for (size_t i = 0; i < list->n; i++)
		if (strstr(list->v[i], part))
			return true;
	return false;
}

/* A value that the row takes and that is not its default, and what it becomes. */
static void sample_value(const struct opt *row, const struct foreign_name *f, const char **value,
			 const char **becomes)
{
	*value = *becomes = "3";
	if (f->how == FOREIGN_PER_WORKER)
		*becomes = "12"; /* with 4 workers */
	else if (f->how == FOREIGN_SHUFFLE)
		*value = "true", *becomes = "seed";
	else if (row->type == OPT_BOOL)
		*value = *becomes = strcmp(row->def, "true") == 0 ? "false" : "true";
	else if (row->type == OPT_ENUM)
		*value = *becomes = row->choices[1];
	else if (row->type == OPT_STR)
		*value = *becomes = strcmp(row->key, "dataset.format") == 0 ? "npy" : "/x";
}

static void check(const struct workload *w, const struct opt *row, const char *typed,
		  const char *becomes)
{
	AUTO_FREE char *text = opt_get_text(row, w);

	if (strcmp(text, becomes) != 0)
		fail_msg("%s: %s is %s, not %s", typed, row->key, text, becomes);
	if (w->origin[row - workload_rows].source == ORIGIN_DEFAULT)
		fail_msg("%s: %s has no origin", typed, row->key);
	if (!says(&w->notes, typed) || !says(&w->notes, row->key))
		fail_msg("%s: no note, but: %s", typed, w->notes.n ? w->notes.v[0] : "(none)");
}

static void accepted(const struct foreign_name *f)
{
	const struct opt *row = workload_key_row(f->key);
	const char *value, *becomes;
	struct err e = {0};
	struct workload w;

	if (!row)
		fail_msg("%s: there is no key %s", f->name, f->key);
	sample_value(row, f, &value, &becomes);
	/* on the command line it replaces what the file says */
	const char *name = strchr(row->key, '.') + 1;
	AUTO_FREE char *section = xstrndup(row->key, strcspn(row->key, "."));
	bool own = workload_key_row(f->name) != NULL;
	bool workers = f->how == FOREIGN_PER_WORKER;
	AUTO_FREE char *typed = xasprintf("%s=%s", f->name, value);
	const char *const overrides[] = {typed, workers ? "num_workers=4" : NULL, NULL};
	bool twice = strcmp(section, "dataset") == 0; /* GOOD has it */
	AUTO_FREE char *text =
		twice ? xstrdup(GOOD) : xasprintf(GOOD "%s: {%s: null}\n", section, name);

	assert_false(own);
	if (load(text, overrides, &w, &e) < 0)
		fail_msg("%s: %s", typed, e.text);
	check(&w, row, f->name, becomes);
	workload_release(&w);
	/* in a file, in the section of a loader */
	AUTO_FREE char *loader = xasprintf(BARE "dataloader: {%s%s: %s}\n",
					   workers ? "num_workers: 4, " : "", f->name, value);

	if (load(loader, NULL, &w, &e) < 0)
		fail_msg("%s in a file: %s", typed, e.text);
	check(&w, row, f->name, becomes);
	assert_true(says(&w.notes, "w.yaml: line 4: dataloader."));
	workload_release(&w);
	/* at the top of a file */
	AUTO_FREE char *top =
		xasprintf(BARE "%s%s: %s\n", workers ? "num_workers: 4\n" : "", f->name, value);

	if (load(top, NULL, &w, &e) < 0)
		fail_msg("%s at the top: %s", typed, e.text);
	check(&w, row, f->name, becomes);
	assert_int_equal(w.warnings.n, says(&w.warnings, " effect") ? w.warnings.n : 0);
	workload_release(&w);
}

static void refused(const struct foreign_name *f)
{
	AUTO_FREE char *typed = xasprintf("%s=3", f->name);
	AUTO_FREE char *text = xasprintf(GOOD "training: {%s: 3}\n", f->name);
	const char *const overrides[] = {typed, NULL};
	struct err e = {0};
	struct workload w;

	assert_int_equal(load(GOOD, overrides, &w, &e), ERR_USAGE);
	if (!str_starts(e.text, f->note) || !strstr(e.text, typed))
		fail_msg("%s: %s", typed, e.text);
	print_message("%s\n", e.text);
	workload_release(&w);
	assert_int_equal(load(text, NULL, &w, &e), ERR_USAGE);
	if (!str_starts(e.text, f->note) || !strstr(e.text, "w.yaml: line 4"))
		fail_msg("%s: %s", typed, e.text);
	workload_release(&w);
}

static void test_names(void **state)
{
	(void)state;
	for (const struct foreign_name *f = foreign_names; f->name; f++) {
		for (const struct foreign_name *g = foreign_names; g != f; g++)
			if (strcmp(f->name, g->name) == 0)
				fail_msg("%s is there twice", f->name);
		if (f->how == FOREIGN_HINT)
			refused(f);
		else if (f->key)
			accepted(f);
	}
}

static void load_ok(const char *text, const char *const *overrides, struct workload *w)
{
	struct err e = {0};

	if (load(text, overrides, w, &e) < 0)
		fail_msg("%s", e.text);
}

#define OVERRIDES(...) ((const char *const[]){__VA_ARGS__, NULL})

static void test_values(void **state)
{
	struct err e = {0};
	struct workload w;

	(void)state;
	load_ok(GOOD,
		OVERRIDES("num_parallel_calls=tf.data.AUTOTUNE", "prefetch=AUTOTUNE",
			  "shuffle=False", "drop_last=True"),
		&w);
	assert_int_equal(w.reader.computation_threads, -1);
	assert_int_equal(w.reader.prefetch_size, -1);
	assert_int_equal(w.reader.sample_shuffle, SHUFFLE_OFF);
	assert_false(w.reader.drop_last);
	assert_true(says(&w.notes, "drop_last=True is what happens in any case"));
	workload_release(&w);
	/* the last one typed counts, by whatever name */
	load_ok(GOOD, OVERRIDES("num_workers=2", "reader.read_threads=3"), &w);
	assert_int_equal(w.reader.read_threads, 3);
	workload_release(&w);
	load_ok(GOOD, OVERRIDES("reader.prefetch_size=9", "num_workers=5", "prefetch_factor=2"),
		&w);
	assert_int_equal(w.reader.prefetch_size, 10);
	workload_release(&w);
	load_ok(GOOD, OVERRIDES("prefetch_factor=None", "num_workers=5"), &w);
	assert_int_equal(w.reader.prefetch_size, 2);
	workload_release(&w);
	/* a name of the file gives way to what is typed, and to its own key */
	load_ok(GOOD "reader: {num_workers: 4}\n", OVERRIDES("read_threads=6"), &w);
	assert_int_equal(w.reader.read_threads, 6);
	assert_int_equal(w.warnings.n, 0);
	workload_release(&w);
	load_ok(GOOD "reader: {num_workers: 4, read_threads: 2}\n", NULL, &w);
	assert_int_equal(w.reader.read_threads, 2);
	assert_true(says(&w.warnings, "reader.num_workers is ignored because reader.read_threads"));
	workload_release(&w);
	assert_int_equal(load(GOOD "reader: {num_workers: 4, num_threads: 2}\n", NULL, &w, &e),
			 ERR_USAGE);
	assert_true(str_starts(e.text, "remove one of two names: "));
	workload_release(&w);
	assert_int_equal(load(GOOD, OVERRIDES("prefetch_factor=2", "num_workers=0"), &w, &e),
			 ERR_USAGE);
	assert_true(str_starts(e.text, "set reader.read_threads (num_workers) to at least 1"));
	workload_release(&w);
	assert_int_equal(load(GOOD, OVERRIDES("drop_last=False"), &w, &e), ERR_USAGE);
	assert_true(str_starts(e.text, "leave it out: "));
	workload_release(&w);
	/* several sections have it */
	assert_int_equal(load(GOOD, OVERRIDES("access=native"), &w, &e), ERR_USAGE);
	assert_true(str_starts(e.text,
			       "write one of reader.access, checkpoint.access: 'access' alone"));
	workload_release(&w);
	/* it may mean another thing than the one key that ends so */
	assert_int_equal(load(GOOD, OVERRIDES("mmap=true"), &w, &e), ERR_USAGE);
	assert_true(str_starts(e.text, "write checkpoint.mmap: 'mmap' alone is not a key"));
	workload_release(&w);
	load_ok(GOOD "mmap: true\n", NULL, &w);
	assert_true(says(&w.warnings, "write checkpoint.mmap: "));
	workload_release(&w);
	load_ok(GOOD, OVERRIDES("computation_time={mean: 30ms, stdev: 5ms}"), &w);
	assert_true(w.train.computation_time.a == 0.03 && w.train.computation_time.b == 0.005);
	workload_release(&w);
	/* a checkpoint has no batch */
	assert_int_equal(load(GOOD, OVERRIDES("checkpoint.batch_size=3"), &w, &e), ERR_USAGE);
	assert_true(str_starts(e.text, "did you mean 'reader.batch_size'?"));
	workload_release(&w);
	/* misspelt */
	assert_int_equal(load(GOOD, OVERRIDES("num_wrokers=3"), &w, &e), ERR_USAGE);
	assert_true(str_starts(e.text, "did you mean 'reader.read_threads'?"));
	workload_release(&w);
}

/* Every error of the file and of the command line, each once, with its place. */
static void test_all_errors(void **state)
{
	static const char *const wanted[] = {"w.yaml: line 4: reader.batch_size: ",
					     "w.yaml: line 5: train.epochs: ",
					     "w.yaml: line 6: metric is a section",
					     "use -n N",
					     "command line: 'x=1,2': ",
					     "'reader.bach_size=3'",
					     "command line: dataset.format: text is needed"};
	struct err e = {0};
	struct workload w;

	(void)state;
	assert_int_equal(load(GOOD "reader: {batch_size: 0}\n"
				   "train: {epochs: 1.5}\n"
				   "metric: 3\n",
			      OVERRIDES("world_size=4", "x=1,2", "reader.bach_size=3",
					"dataset.format=[npz]"),
			      &w, &e),
			 ERR_USAGE);
	for (size_t i = 0; i < sizeof(wanted) / sizeof(wanted[0]); i++)
		if (!says(&w.errors, wanted[i]))
			fail_msg("not found: %s", wanted[i]);
	assert_int_equal(w.errors.n, sizeof(wanted) / sizeof(wanted[0]));
	assert_string_equal(e.text, w.errors.v[0]);
	workload_release(&w);
	/* rules across keys */
	assert_int_equal(load(GOOD,
			      OVERRIDES("reader.queue_depth=4", "reader.batch_size=200000",
					"reader.order=sharded", "storage.store=throttle+posix",
					"dataset.data_folder=/"),
			      &w, &e),
			 ERR_USAGE);
	assert_int_equal(w.errors.n, 1); /* the folder; the rest needs it to be right */
	workload_release(&w);
	assert_int_equal(load(GOOD,
			      OVERRIDES("reader.queue_depth=4", "reader.batch_size=200000",
					"reader.order=sharded"),
			      &w, &e),
			 ERR_USAGE);
	assert_int_equal(w.errors.n, 3);
	workload_release(&w);
	assert_int_equal(
		load(GOOD,
		     OVERRIDES("storage.store=throttle+posix", "storage.throttle.bandwidth=100MB",
			       "storage.throttle.latency=-1", "output.log_file=a/b"),
		     &w, &e),
		ERR_USAGE);
	assert_true(says(&w.errors, "bandwidth: write 100MB/s"));
	workload_release(&w);
}

static void test_sections(void **state)
{
	struct workload w;

	(void)state;
	load_ok(GOOD "checkpoint: {steps_between_checkpoints: 5, fsync: true}\n", NULL, &w);
	assert_int_equal(w.warnings.n, 1);
	assert_true(str_starts(w.warnings.v[0], "checkpoint.* has no effect without "
						"workflow.checkpoint=true (/tmp/"));
	assert_string_equal(strstr(w.warnings.v[0], "w.yaml: "),
			    "w.yaml: line 4: checkpoint.steps_between_checkpoints, "
			    "checkpoint.fsync)");
	workload_release(&w);
	load_ok(GOOD "checkpoint: {fsync: true}\nworkflow: {checkpoint: true}\n", NULL, &w);
	assert_int_equal(w.warnings.n, 0);
	workload_release(&w);
	/* switched off on purpose */
	load_ok(GOOD "checkpoint: {fsync: true}\nworkflow: {checkpoint: false}\n", NULL, &w);
	assert_int_equal(w.warnings.n, 0);
	assert_true(says(&w.notes, "checkpoint.fsync has no effect because workflow.checkpoint is "
				   "false"));
	workload_release(&w);
	load_ok(GOOD "checkpoint: {fsync: true}\nworkflow: {checkpoint: true}\n",
		OVERRIDES("workflow.checkpoint=false"), &w);
	assert_int_equal(w.warnings.n, 0);
	workload_release(&w);
	/* what is typed was meant, if the file switched it off */
	load_ok(GOOD "workflow: {checkpoint: false}\n", OVERRIDES("checkpoint.fsync=true"), &w);
	assert_int_equal(w.warnings.n, 1);
	workload_release(&w);
	load_ok(GOOD "evaluation: {eval_time: 30ms}\n", OVERRIDES("reader.batch_size_eval=3"), &w);
	assert_int_equal(w.warnings.n, 2);
	assert_true(says(&w.warnings, "evaluation.eval_time has no effect"));
	assert_true(says(&w.warnings, "reader.batch_size_eval has no effect"));
	workload_release(&w);
	load_ok(GOOD "workflow: {train: false}\n", OVERRIDES("train.computation_time=30ms"), &w);
	assert_true(says(&w.warnings, "train.computation_time has no effect without "
				      "workflow.train=true (command line)"));
	workload_release(&w);
}

/* A key of one format is no key of another. */
static void test_formats(void **state)
{
	struct workload w;

	(void)state;
	load_ok(GOOD,
		OVERRIDES("reader.parquet_requests=pyarrow", "dataset.arrow.batch_rows=7",
			  "dataset.hdf5.num_dset_per_record=1"),
		&w);
	assert_int_equal(w.warnings.n, 3);
	assert_true(says(&w.warnings, "reader.parquet_requests has no effect: it is for "
				      "dataset.format parquet"));
	assert_true(says(&w.warnings, "dataset.arrow.batch_rows has no effect: it is for "
				      "dataset.format arrow_stream"));
	workload_release(&w);
	load_ok(GOOD, OVERRIDES("dataset.format=parquet", "reader.parquet_requests=pyarrow"), &w);
	assert_int_equal(w.warnings.n, 0);
	workload_release(&w);
	/* nothing reads */
	load_ok(GOOD "workflow: {train: false, generate_data: true}\n",
		OVERRIDES("reader.parquet_requests=pyarrow"), &w);
	assert_int_equal(w.warnings.n, 0);
	workload_release(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_names),      cmocka_unit_test(test_values),
		cmocka_unit_test(test_all_errors), cmocka_unit_test(test_sections),
		cmocka_unit_test(test_formats),
	};

	return cmocka_run_group_tests(tests, make_folder, drop_folder);
}
