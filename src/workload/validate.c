/* The rules across keys: what cannot work is refused before any work, what probably is a mistake is
 * said. */
#include "workload/framework_costs.h"
#include "workload/key.h"
#include "workload/validate.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/str.h"
#include "workload/backend.h"
#include "workload/feature.h"
#include "workload/recorded_file.h"
#include "workload/tables.h"
#include "workload/time_draw.h"

/* Names that DLIO or MLPerf Storage has besides those of the tables: they exist, but not in this
 * version, and get another message than a misspelt one. */
static const char *const other_formats[] = {"hdf5_opt", NULL};
static const char *const other_loaders[] = {"custom", NULL};

#define LENGTH(a) (sizeof(a) / sizeof((a)[0]))
#define LARGEST_BYTES 9.2e18 /* just below 2^63 */

static int check_name(const struct workload *w, const char *key, const char *value,
		      const char *const *others, struct err *e)
{
	const char *known[FEATURE_VALUES_MAX + 2];
	size_t n = feature_values(key, known);
	struct buf list = {0};
	const char *near;
	int rc;

	for (; *others; others++)
		known[n++] = *others;
	for (size_t i = 0; i < n; i++) {
		if (strcmp(known[i], value) == 0) {
			buf_release(&list);
			return 0;
		}
		buf_printf(&list, "%s%s", i ? ", " : "", known[i]);
	}
	near = str_nearest(value, known, n);
	rc = workload_key_error(w, ERR_USAGE, e, key, "%s '%.64s' is not one of %s", key, value,
				list.data);
	if (near) {
		struct err rest = *e;

		err_set(e, rc, "did you mean %.60s? %.900s", near, rest.text);
	}
	buf_release(&list);
	return rc;
}

static int check_strings(const struct workload *w, struct err *e)
{
	int rc = check_name(w, "dataset.format", w->dataset.format, other_formats, e);

	if (rc == 0)
		rc = check_name(w, "reader.data_loader", w->reader.data_loader, other_loaders, e);
	if (rc < 0)
		return rc;
	if (strchr(w->dataset.file_prefix, '/'))
		return workload_key_error(
			w, ERR_USAGE, e, "dataset.file_prefix",
			"dataset.file_prefix '%.200s' contains a slash; folders belong in "
			"dataset.data_folder",
			w->dataset.file_prefix);
	if (strlen(w->dataset.file_prefix) > 128)
		return workload_key_error(w, ERR_USAGE, e, "dataset.file_prefix",
					  "dataset.file_prefix is longer than 128 characters");
	if (!w->output.log_file || !w->output.log_file[0] || strchr(w->output.log_file, '/') ||
	    str_ends(w->output.log_file, ".json"))
		return workload_key_error(
			w, ERR_USAGE, e, "output.log_file",
			"output.log_file '%.200s' must be a file name without a slash that does "
			"not end in .json; the file is written to the folder of the results",
			w->output.log_file ? w->output.log_file : "");
	if (!w->storage.store[0])
		return workload_key_error(w, ERR_USAGE, e, "storage.store",
					  "storage.store is empty; use posix for files");
	return 0;
}

static int check_dims(const struct workload *w, struct err *e)
{
	const struct i64_list *dims = &w->dataset.record_dims;
	double bytes = w->elem->bytes;

	if (dims->n > WORKLOAD_DIMS_MAX)
		return workload_key_error(w, ERR_USAGE, e, "dataset.record_dims",
					  "dataset.record_dims has %zu dimensions; at most %d are "
					  "allowed",
					  dims->n, WORKLOAD_DIMS_MAX);
	for (size_t i = 0; i < dims->n; i++)
		bytes *= (double)dims->v[i];
	if (dims->n && bytes > LARGEST_BYTES)
		return workload_key_error(w, ERR_USAGE, e, "dataset.record_dims",
					  "dataset.record_dims makes a sample of %.3g bytes of %s, "
					  "more than 2^63",
					  bytes, w->elem->name);
	if (dims->n && w->dataset.record_length_bytes_stdev > 0)
		return workload_key_error(
			w, ERR_USAGE, e, "dataset.record_dims",
			"dataset.record_dims and dataset.record_length_bytes_stdev "
			"exclude each other: a sample has either a fixed shape or a "
			"varying size");
	if (dims->n > 2 && workload_format(w)->flags & FORMAT_IMAGE)
		return workload_key_error(
			w, ERR_USAGE, e, "dataset.record_dims",
			"%s format does not support more than 2 dimensions, but got "
			"%zu dimensions.",
			w->dataset.format, dims->n);
	return 0;
}

static int check_file_bytes(const struct workload *w, struct err *e)
{
	static const char key[] = "dataset.file_bytes";
	int of = workload_set_in(w, key);

	if (!(w->dataset.file_bytes > 0))
		return 0;
	if (w->compat.dlio)
		return workload_key_error(
			w, ERR_USAGE, e, key,
			"dataset.file_bytes is no key of DLIO, whose datasets "
			"compat.dlio=true makes: use dataset.record_length_bytes");
	if (workload_format(w)->flags & FORMAT_NO_IO)
		return workload_key_error(w, ERR_USAGE, e, key,
					  "dataset.file_bytes has no meaning for the format %s, "
					  "whose files hold no samples",
					  w->dataset.format);
	if (w->file_bytes_decide == FILE_BYTES_CONTENT)
		return 0;
	if (w->dataset.record_dims.n)
		return workload_key_error(w, ERR_USAGE, e, key,
					  "dataset.file_bytes and dataset.record_dims both give "
					  "the size of a sample of %s files: remove one of the two",
					  w->dataset.format);
	if (workload_set_in(w, "dataset.record_length_bytes") >= of)
		return workload_key_error(
			w, ERR_USAGE, e, key,
			"dataset.file_bytes and dataset.record_length_bytes both give the size of "
			"a "
			"sample of %s files: remove one of the two (dataset.file_bytes=0 is none)",
			w->dataset.format);
	return 0;
}

/* A number of the dataset must be the recorded one. */
static int check_recorded_count(const struct workload *w, const char *key, int64_t n, uint64_t had,
				struct err *e)
{
	if (n >= 0 && (uint64_t)n == had)
		return 0;
	return workload_key_error(w, ERR_USAGE, e, key,
				  "%s is %" PRId64
				  ", but the job of dataset.recorded_file had %" PRIu64
				  ": set it to that, or use neither dataset.sizes nor reader.order "
				  "recorded",
				  key, n, had);
}

/* Checks one kind of recorded files, of which `n` are wanted. */
static int check_recorded_part(const struct workload *w, int part, const char *key, int64_t n,
			       struct err *e)
{
	const struct recorded_part *p = &w->recorded->part[part];
	bool sizes = w->dataset.sizes == SIZES_RECORDED;
	int rc;

	if (n == 0)
		return 0;
	rc = check_recorded_count(w, key, n, p->files, e);
	if (rc == 0)
		rc = check_recorded_count(w, "dataset.num_samples_per_file",
					  w->dataset.num_samples_per_file, p->samples_per_file, e);
	if (rc == 0 && sizes && !p->bytes)
		rc = workload_key_error(w, ERR_USAGE, e, "dataset.sizes",
					"dataset.recorded_file has no sizes of the files of %s: "
					"use dataset.sizes=computed",
					key);
	return rc;
}

static int check_recorded_sizes(const struct workload *w, struct err *e)
{
	static const char key[] = "dataset.sizes";
	bool image = workload_format(w)->flags & FORMAT_IMAGE;

	if (w->dataset.sizes != SIZES_RECORDED)
		return 0;
	if (w->compat.dlio)
		return workload_key_error(
			w, ERR_USAGE, e, key,
			"dataset.sizes recorded is no key of DLIO, whose datasets "
			"compat.dlio=true makes: use compat.dlio=false");
	if (workload_format(w)->flags & FORMAT_NO_IO)
		return workload_key_error(
			w, ERR_USAGE, e, key,
			"dataset.sizes recorded has no meaning for the format %s, "
			"whose files hold no samples",
			w->dataset.format);
	if (w->dataset.file_bytes > 0 || w->dataset.record_length_bytes_stdev > 0 ||
	    (w->dataset.record_dims.n && !image))
		return workload_key_error(
			w, ERR_USAGE, e, key,
			"dataset.sizes recorded and %s both give the size of files: remove one of "
			"the two",
			w->dataset.file_bytes > 0            ? "dataset.file_bytes"
			: w->dataset.record_dims.n && !image ? "dataset.record_dims"
							     : "dataset.record_length_bytes_stdev");
	return 0;
}

static int check_recorded_order(const struct workload *w, struct err *e)
{
	static const char key[] = "reader.order";

	if (w->reader.order != ORDER_RECORDED)
		return 0;
	if (workload_format(w)->flags & FORMAT_STREAM &&
	    workload_loader(w)->flags & LOADER_ITERATES)
		return workload_key_error(
			w, ERR_USAGE, e, key,
			"reader.order recorded is not supported by reader.data_loader %s with "
			"format %s, which decides the order while it reads: leave reader.order out",
			w->reader.data_loader, w->dataset.format);
	if (w->workflow.train && w->recorded->part[RECORDED_TRAIN].epochs == 0)
		return workload_key_error(w, ERR_USAGE, e, key,
					  "dataset.recorded_file has no order of training: choose "
					  "another reader.order");
	return 0;
}

static int check_recorded_access(const struct workload *w, struct err *e)
{
	static const char key[] = "reader.access";

	if (w->reader.access != READ_AS_RECORDED)
		return 0;
	if (workload_loader(w)->flags & (LOADER_ITERATES | LOADER_READS_AS_DALI))
		return workload_key_error(w, ERR_USAGE, e, key,
					  "reader.access recorded is not supported by "
					  "reader.data_loader %s, which reads in its own way",
					  w->reader.data_loader);
	if (workload_format(w)->flags & FORMAT_NO_IO)
		return workload_key_error(
			w, ERR_USAGE, e, key,
			"reader.access recorded has no meaning for the format %s, "
			"whose samples are not read",
			w->dataset.format);
	if (w->reader.decode == 1)
		return workload_key_error(w, ERR_USAGE, e, "reader.decode",
					  "reader.decode verify needs reader.access framework or "
					  "native: recorded requests do not tell what they read");
	if ((w->workflow.train && !w->recorded->part[RECORDED_TRAIN].requests) ||
	    (w->workflow.evaluation && !w->recorded->part[RECORDED_EVAL].requests))
		return workload_key_error(
			w, ERR_USAGE, e, key,
			"dataset.recorded_file has no requests of %s: choose "
			"another reader.access",
			w->workflow.train && !w->recorded->part[RECORDED_TRAIN].requests
				? "training"
				: "evaluation");
	return 0;
}

static int check_recorded_work(const struct workload *w, struct err *e)
{
	static const char key[] = "reader.recorded_work";

	if (!w->reader.recorded_work)
		return 0;
	if (w->reader.access != READ_AS_RECORDED)
		return workload_key_error(w, ERR_USAGE, e, key,
					  "reader.recorded_work needs reader.access recorded");
	/* not there where a result is read back */
	if (!w->recorded)
		return 0;
	if (time_dist_waits(&w->reader.preprocess_time))
		return workload_key_error(w, ERR_USAGE, e, key,
					  "reader.recorded_work takes the place of "
					  "reader.preprocess_time: give one of them");
	if (!w->recorded->part[RECORDED_TRAIN].work && !w->recorded->part[RECORDED_EVAL].work)
		return workload_key_error(w, ERR_USAGE, e, key,
					  "dataset.recorded_file does not have what the job's "
					  "workers computed: leave out reader.recorded_work");
	return 0;
}

static int check_recorded(struct workload *w, struct err *e)
{
	int rc = check_recorded_work(w, e);

	if (rc < 0)
		return rc;
	if (!w->recorded) {
		if (workload_is_set(w, "dataset.recorded_file"))
			workload_warn(w, "dataset.recorded_file has no effect: it is for "
					 "dataset.sizes, reader.order and reader.access recorded");
		return 0;
	}
	return check_recorded_sizes(w, e) ?:
	       check_recorded_order(w, e) ?:
	       check_recorded_access(w, e) ?:
	       check_recorded_part(w, RECORDED_TRAIN, "dataset.num_files_train",
				   w->dataset.num_files_train, e) ?:
	       check_recorded_part(w, RECORDED_EVAL, "dataset.num_files_eval",
				   w->dataset.num_files_eval, e);
}

static double sample_bytes(const struct workload *w)
{
	double bytes = w->elem->bytes;

	if (!w->dataset.record_dims.n)
		return w->dataset.record_length_bytes * bytes; /* DLIO's files are this large */
	for (size_t i = 0; i < w->dataset.record_dims.n; i++)
		bytes *= (double)w->dataset.record_dims.v[i];
	return bytes;
}

static int check_size(const struct workload *w, struct err *e)
{
	double file = sample_bytes(w) * (double)w->dataset.num_samples_per_file;
	double files = (double)w->dataset.num_files_train + (double)w->dataset.num_files_eval;

	if (file > LARGEST_BYTES)
		return workload_key_error(w, ERR_USAGE, e, "dataset.num_samples_per_file",
					  "dataset.num_samples_per_file %" PRId64
					  " makes files of %.3g bytes, more than 2^63",
					  w->dataset.num_samples_per_file, file);
	if (file * files > LARGEST_BYTES ||
	    files * (double)w->dataset.num_samples_per_file > LARGEST_BYTES)
		return workload_key_error(
			w, ERR_USAGE, e, "dataset.num_files_train",
			"%.0f files of %.3g bytes make a dataset of more than 2^63 "
			"bytes or samples",
			files, file);
	return 0;
}

static void warn_subfolders(struct workload *w, const char *kind, int64_t folders, int64_t files)
{
	if (files > 0 && folders > files)
		workload_warn(w,
			      "dataset.num_subfolders_%s %" PRId64 " is more than the %" PRId64
			      " files of dataset.num_files_%s: %" PRId64 " folders stay empty",
			      kind, folders, files, kind, folders - files);
}

/* TensorFlow's way is iterative, that of all others an index. */
static bool sampler_fits(const struct workload *w)
{
	bool iterates = workload_loader(w)->flags & LOADER_ITERATES;

	return w->reader.data_loader_sampler != (iterates ? SAMPLER_INDEX : SAMPLER_ITERATIVE);
}

static int check_loader(struct workload *w, struct err *e)
{
	const struct loader_facts *loader = workload_loader(w);
	const char *framework = workload_framework_names[w->framework];

	if (loader->default_of && !(loader->default_of & 1u << w->framework))
		return workload_key_error(
			w, ERR_USAGE, e, "reader.data_loader",
			"reader.data_loader %s cannot be used with framework %s: set "
			"reader.data_loader=%s too, or framework=%s",
			loader->name, framework, framework, loader->name);
	if (!sampler_fits(w))
		return workload_key_error(
			w, ERR_USAGE, e, "reader.data_loader_sampler",
			"reader.data_loader_sampler %s cannot be used with reader.data_loader "
			"%s, which supports derive, %s",
			w->reader.data_loader_sampler == SAMPLER_INDEX ? "index" : "iterative",
			w->reader.data_loader,
			loader->flags & LOADER_ITERATES ? "iterative" : "index");
	/* DLIO has no such reader; ours streams the file */
	if (w->compat.dlio && workload_format(w)->flags & FORMAT_STREAM &&
	    !(workload_format(w)->flags & FORMAT_GROUPS) &&
	    loader->default_of & 1u << FRAMEWORK_PYTORCH)
		return workload_key_error(
			w, ERR_USAGE, e, "dataset.format",
			"dataset.format %s cannot be read by reader.data_loader %s in DLIO: use "
			"another format, such as npz, or compat.dlio=false",
			w->dataset.format, loader->name);
	if (strcmp(w->reader.data_loader, "custom") == 0 && !w->reader.data_loader_classname)
		return workload_key_error(w, ERR_USAGE, e, "reader.data_loader",
					  "reader.data_loader custom needs "
					  "reader.data_loader_classname");
	workload_warn_of_costs(w);
	return 0;
}

/* The emulated libraries wait for each of their requests. */
static int check_depth(const struct workload *w, struct err *e)
{
	if (w->reader.queue_depth == 1 || w->reader.access == 1)
		return 0;
	return workload_key_error(w, ERR_USAGE, e, "reader.queue_depth",
				  "reader.queue_depth %" PRId64
				  " needs reader.access native: the frameworks' libraries wait for "
				  "each request before they make the next",
				  w->reader.queue_depth);
}

/* The root of all files would be filled, and by keep_files=false searched for what to remove. */
static int check_folder(const struct workload *w, struct err *e)
{
	const char *root = w->storage.storage_root, *folder = w->dataset.data_folder;
	const char *first = folder && folder[0] == '/' ? folder : root && root[0] ? root : folder;

	if (!first || first[0] != '/' || first[strspn(first, "/.")] != '\0' ||
	    (first != folder && folder && folder[strspn(folder, "/.")] != '\0'))
		return 0;
	return workload_key_error(
		w, ERR_USAGE, e, "dataset.data_folder",
		"dataset.data_folder is '/', the root of all files: use a folder of its own for "
		"the dataset");
}

/* ---- the reader ---- */

static int check_dali(const struct workload *w, struct err *e)
{
	const struct format_facts *f = workload_format(w);
	struct err why;

	if (format_check_dali(f, w->dataset.num_samples_per_file, &why) == 0)
		return 0;
	return workload_key_error(w, why.code, e,
				  f->dali == DALI_NONE ? "dataset.format"
						       : "dataset.num_samples_per_file",
				  "%s", why.text);
}

static const char *loader_that_shards(void)
{
	for (size_t i = 0; loader_facts_table[i]; i++)
		if (loader_facts_table[i]->flags & LOADER_SHARDS)
			return loader_facts_table[i]->name;
	return "none";
}

/* Files of a kind, of which each worker of each rank needs one. */
static int check_stream_files(const struct workload *w, const char *key, int64_t files,
			      int64_t ranks, struct err *e)
{
	int64_t workers = w->reader.read_threads > 0 ? w->reader.read_threads : 1;
	const char *each = workers == 1 ? "worker" : "workers";

	if (files / ranks / workers > 0)
		return 0;
	return workload_key_error(w, ERR_USAGE, e, key,
				  "%s is %" PRId64
				  ", but reader.data_loader %s gives every worker shards of its "
				  "own, and each rank has %" PRId64 " %s (-n %" PRId64
				  "): use more files or fewer reader.read_threads",
				  key, files, w->reader.data_loader, workers, each, ranks);
}

/* What a loader with an order of its own does not go with. */
static int check_own_order(const struct workload *w, struct err *e)
{
	if (w->compat.dlio && !(workload_loader(w)->flags & LOADER_GROUPS))
		return workload_key_error(w, ERR_USAGE, e, "reader.data_loader",
					  "reader.data_loader %s is no loader of DLIO, which "
					  "compat.dlio=true emulates: use compat.dlio=false",
					  w->reader.data_loader);
	if (w->reader.order != ORDER_SHUFFLED)
		return workload_key_error(w, ERR_USAGE, e, "reader.order",
					  "reader.data_loader %s has an order of its own, which "
					  "reader.file_shuffle and sample_shuffle decide: leave "
					  "reader.order out",
					  w->reader.data_loader);
	return 0;
}

static int check_streams(const struct workload *w, int64_t ranks, struct err *e)
{
	int rc = check_own_order(w, e);

	if (rc == 0 && w->workflow.train)
		rc = check_stream_files(w, "dataset.num_files_train", w->dataset.num_files_train,
					ranks, e);
	if (rc == 0 && w->workflow.evaluation && w->dataset.num_files_eval > 0)
		rc = check_stream_files(w, "dataset.num_files_eval", w->dataset.num_files_eval,
					ranks, e);
	return rc;
}

/* Orders and formats that do not go with the loader. */
static int check_reader(const struct workload *w, int64_t ranks, struct err *e)
{
	const struct loader_facts *loader = workload_loader(w);

	if (loader->flags & LOADER_READS_AS_DALI) {
		int rc = check_dali(w, e);

		if (rc < 0)
			return rc;
	}
	if (loader->flags & LOADER_GROUPS && !(workload_format(w)->flags & FORMAT_GROUPS))
		return workload_key_error(w, ERR_USAGE, e, "reader.data_loader",
					  "reader.data_loader %s reads groups of samples, which "
					  "files of format %s do not have: use another loader",
					  loader->name, w->dataset.format);
	if (loader->flags & LOADER_STREAMS) {
		int rc = check_streams(w, ranks, e);

		if (rc < 0)
			return rc;
	}
	if (loader->deal != DEAL_NONE) {
		int rc = check_own_order(w, e);

		if (rc < 0)
			return rc;
	}
	if (loader->check_keys) {
		int rc = loader->check_keys(w, ranks, e);

		if (rc < 0)
			return rc;
	}
	if (loader->flags & LOADER_SHARDS && w->reader.order != ORDER_SHARDED)
		return workload_key_error(w, ERR_USAGE, e, "reader.order",
					  "reader.data_loader %s supports only reader.order "
					  "sharded: leave reader.order out",
					  loader->name);
	if (!(loader->flags & LOADER_SHARDS) && w->reader.order == ORDER_SHARDED)
		return workload_key_error(
			w, ERR_USAGE, e, "reader.order",
			"reader.order sharded is not supported by reader.data_loader %s, only by "
			"%s: choose another order",
			w->reader.data_loader, loader_that_shards());
	if (w->reader.order == ORDER_RANDOM && ranks > 1)
		return workload_key_error(
			w, ERR_USAGE, e, "reader.order",
			"reader.order random is PyTorch's RandomSampler, which does not divide "
			"samples among ranks: with %" PRId64 " ranks use distributed",
			ranks);
	return 0;
}

static int64_t ceil_div(int64_t a, int64_t b)
{
	return a / b + (a % b != 0);
}

/* Canonical nodes are made equal first, physical ones then, ranks at last: each time samples are
 * repeated (deal_steps). */
static int64_t mds_steps(const struct workload *w, int64_t samples, int64_t batch, int64_t ranks)
{
	int64_t nodes = ranks % w->reader.nodes ? 1 : w->reader.nodes, each, per_node;
	int64_t canonical = w->reader.canonical_nodes;

	if (canonical == 0)
		canonical = nodes * workload_canonical_of(w->reader.shuffle_algorithm);
	if (samples < canonical || (samples == canonical && canonical < nodes))
		return 0;
	each = ceil_div(samples, canonical);
	if (canonical < nodes)
		each = ceil_div(each, nodes / canonical) * (nodes / canonical);
	if (__builtin_mul_overflow(each, canonical, &per_node))
		return samples / ranks / batch;
	return ceil_div(per_node / nodes, ranks / nodes) / batch;
}

/* Steps of an epoch that `samples` give every rank, in the workload's order. */
static int64_t epoch_steps(const struct workload *w, int64_t samples, int64_t batch, int64_t ranks)
{
	int order = w->reader.order;
	int64_t workers = w->reader.read_threads > 0 ? w->reader.read_threads : 1;
	int64_t per_file = w->dataset.num_samples_per_file, files, steps = 0;

	/* of files of different length the plan knows more */
	if (workload_loader(w)->flags & LOADER_STREAMS && workload_files_differ(w))
		return samples / batch / ranks;
	/* of the last rank, which has fewest; short batches of each worker are dropped */
	if (workload_loader(w)->flags & LOADER_STREAMS) {
		files = samples / per_file / ranks;
		for (int64_t k = 0; k < workers; k++)
			steps += (files / workers + (files % workers > k)) * per_file / batch;
		return steps;
	}
	if (workload_loader(w)->deal == DEAL_LITDATA)
		return samples / batch / ranks;
	if (workload_loader(w)->deal == DEAL_MDS)
		return mds_steps(w, samples, batch, ranks);
	bool repeats =
		order == ORDER_DISTRIBUTED
			? !w->reader.drop_last
			: order == ORDER_SHARDED && w->reader.pad_last_batch && samples >= ranks;

	return (samples / ranks + (repeats && samples % ranks != 0)) / batch;
}

static int check_train_steps(struct workload *w, int64_t ranks, struct err *e)
{
	int64_t batch = w->reader.batch_size, samples, per_step;
	int64_t wanted = w->train.total_training_steps;
	int64_t excluded =
		w->output.metric.exclude_start_steps + w->output.metric.exclude_end_steps;

	if (w->dataset.num_files_train == 0)
		return workload_key_error(
			w, ERR_USAGE, e, "dataset.num_files_train",
			"dataset.num_files_train is 0 while workflow.train is on: "
			"there is nothing to train on");
	/* check_size tells, now or after the other errors were mended */
	samples = workload_samples(w, false);
	if (samples == INT64_MAX)
		return 0;
	if (w->reader.order == ORDER_RECORDED && w->recorded)
		samples = (int64_t)recorded_visits_least(w->recorded, RECORDED_TRAIN);
	if (__builtin_mul_overflow(batch, ranks, &per_step) ||
	    epoch_steps(w, samples, batch, ranks) == 0)
		return workload_key_error(
			w, ERR_USAGE, e, "reader.batch_size",
			"%" PRId64 " training samples (%" PRId64 " files of %s%" PRId64
			") do not make one step of reader.batch_size %" PRId64 " on %" PRId64
			" %s%s: use more files or a smaller batch",
			samples, w->dataset.num_files_train,
			workload_files_differ(w) ? "up to " : "", w->dataset.num_samples_per_file,
			batch, ranks, ranks == 1 ? "rank" : "ranks",
			workload_loader(w)->flags & LOADER_STREAMS
				? ", each of whose workers has files of its own"
				: "");
	int64_t steps = epoch_steps(w, samples, batch, ranks);

	if (wanted > 0 && (double)wanted > (double)steps * (double)w->train.epochs)
		return workload_key_error(w, ERR_USAGE, e, "train.total_training_steps",
					  "train.total_training_steps %" PRId64
					  " is more than the dataset provides: %" PRId64
					  " steps in each of %" PRId64 " epochs",
					  wanted, steps, w->train.epochs);
	if (wanted > 0 && wanted < steps)
		steps = wanted;
	if (excluded >= steps)
		workload_warn(w,
			      "output.metric.exclude_start_steps %" PRId64
			      " and exclude_end_steps %" PRId64 " exclude all %" PRId64
			      " %s of an epoch: utilization and throughput cannot be computed",
			      w->output.metric.exclude_start_steps,
			      w->output.metric.exclude_end_steps, steps,
			      steps == 1 ? "step" : "steps");
	return 0;
}

/* Without a step nothing is evaluated. DLIO makes an evaluation of 0 steps where there are files at
 * all, and a run that only evaluates has nothing to do, which its plan refuses. */
static void check_evaluation(struct workload *w, int64_t ranks)
{
	int64_t samples = workload_samples(w, true), per_step;

	if (!w->workflow.evaluation || workload_only_evaluates(w))
		return;
	if (w->dataset.num_files_eval == 0) {
		workload_warn(w,
			      "workflow.evaluation is on but dataset.num_files_eval is 0: nothing "
			      "is evaluated");
	} else if (!w->compat.dlio &&
		   (__builtin_mul_overflow(w->reader.batch_size_eval, ranks, &per_step) ||
		    epoch_steps(w, samples, w->reader.batch_size_eval, ranks) == 0)) {
		workload_warn(w,
			      "workflow.evaluation is on but %" PRId64 " evaluation samples do not "
			      "make one step of reader.batch_size_eval %" PRId64 " on %" PRId64
			      " %s: nothing is evaluated",
			      samples, w->reader.batch_size_eval, ranks,
			      ranks == 1 ? "rank" : "ranks");
	} else {
		return;
	}
	w->workflow.evaluation = false;
}

static int check_checkpoint(const struct workload *w, struct err *e)
{
	const int64_t pipeline = w->model.parallelism.pipeline, data = w->model.parallelism.data;
	const bool subset = w->checkpoint.mode == 1;

	if (w->model.num_layers > 0 && w->model.num_layers < pipeline)
		return workload_key_error(w, ERR_USAGE, e, "model.num_layers",
					  "model.num_layers %" PRId64 " is less than "
					  "model.parallelism.pipeline %" PRId64
					  ": some ranks would hold no layer",
					  w->model.num_layers, pipeline);
	if (pipeline > 1 && w->model.parallelism.zero_stage == 3)
		return workload_key_error(w, ERR_USAGE, e, "model.parallelism.zero_stage",
					  "model.parallelism.zero_stage 3 is not compatible with "
					  "model.parallelism.pipeline %" PRId64,
					  pipeline);
	if (!subset && data > 0)
		return workload_key_error(
			w, ERR_USAGE, e, "model.parallelism.data",
			"model.parallelism.data is derived from the number of ranks "
			"unless checkpoint.mode is subset");
	if (subset && data <= 0)
		return workload_key_error(
			w, ERR_USAGE, e, "checkpoint.mode",
			"checkpoint.mode subset needs model.parallelism.data, the "
			"copies of the model in the whole job");
	if (w->checkpoint.num_checkpoints_write > 0 &&
	    w->checkpoint.num_checkpoints_read > w->checkpoint.num_checkpoints_write)
		return workload_key_error(
			w, ERR_USAGE, e, "checkpoint.num_checkpoints_read",
			"checkpoint.num_checkpoints_read %" PRId64 " is more than "
			"num_checkpoints_write %" PRId64,
			w->checkpoint.num_checkpoints_read, w->checkpoint.num_checkpoints_write);
	if (w->workflow.train && w->checkpoint.seconds_between_checkpoints > 0 &&
	    w->checkpoint.steps_between_checkpoints >= 0)
		return workload_key_error(w, ERR_USAGE, e, "checkpoint.seconds_between_checkpoints",
					  "checkpoint.seconds_between_checkpoints %g and "
					  "checkpoint.steps_between_checkpoints %" PRId64
					  " both schedule "
					  "checkpoints: set the steps to -1 or the seconds to 0",
					  w->checkpoint.seconds_between_checkpoints,
					  w->checkpoint.steps_between_checkpoints);
	if (w->checkpoint.ksm && w->checkpoint.randomize_tensor)
		return workload_key_error(w, ERR_USAGE, e, "checkpoint.ksm",
					  "checkpoint.ksm merges equal pages and needs "
					  "checkpoint.randomize_tensor false");
	return 0;
}

/* Of the options of the stores in use the first that is wrong: each store reads its own. */
static int check_store_options(const struct workload *w, struct err *e)
{
	for (size_t i = 0; store_facts_table[i]; i++) {
		const struct store_facts *s = store_facts_table[i];
		struct err why = {0};
		void *config;

		if (!store_expression_has(w->storage.store, s->name))
			continue;
		config = workload_store_config(w, s, &why);
		if (!config)
			return err_set(e, why.code, "storage.%s: %s", s->name, why.text);
		opt_release(s->options, s->option_count, config);
		free(config);
	}
	return 0;
}

int workload_validate(struct workload *w, int64_t ranks, struct err *e)
{
	struct err why = {0};
#define KEEP(check)                                                                                \
	if ((check) < 0)                                                                           \
	workload_keep_error(w, &why)

	KEEP(check_strings(w, &why));
	KEEP(check_folder(w, &why));
	KEEP(check_store_options(w, &why));
	/* the others need a format and a loader */
	if (w->errors.n)
		return workload_first_error(w, e);
	KEEP(check_dims(w, &why));
	KEEP(check_file_bytes(w, &why));
	KEEP(check_recorded(w, &why));
	KEEP(workload_check_listed(w, &why));
	if (!w->errors.n)
		KEEP(check_size(w, &why));
	if (workload_format(w)->check_keys)
		KEEP(workload_format(w)->check_keys(w, &why));
	KEEP(check_depth(w, &why));
	KEEP(workload_check_objects(w, &why));
	if (workload_reads(w)) {
		KEEP(check_loader(w, &why));
		KEEP(check_reader(w, ranks, &why));
	}
	if (w->workflow.train)
		KEEP(check_train_steps(w, ranks, &why));
	if (w->workflow.checkpoint)
		KEEP(check_checkpoint(w, &why));
#undef KEEP
	if (w->errors.n)
		return workload_first_error(w, e);
	check_evaluation(w, ranks);
	warn_subfolders(w, "train", w->dataset.num_subfolders_train, w->dataset.num_files_train);
	warn_subfolders(w, "eval", w->dataset.num_subfolders_eval, w->dataset.num_files_eval);
	workload_warn_of_unused_keys(w);
	if (workload_reads(w))
		workload_warn_of_object_keys(w);
	return 0;
}

static int check_feature(const struct workload *w, const char *key, struct err *e)
{
	const struct opt *row = opt_find(workload_rows, workload_row_count, key);

	assert(row);
	char *value = opt_get_text(row, w);
	char has[1024];
	int rc = 0;

	if (!feature_has(key, value))
		rc = workload_key_error(w, ERR_ABSENT, e, key,
					"%s %s is not supported; supported: %s", key, value,
					feature_list(key, has, sizeof(has)));
	free(value);
	return rc;
}

int workload_check_features(const struct workload *w, struct err *e)
{
	static const char *const data_keys[] = {"storage.storage_type", "dataset.format",
						"dataset.compression"};
	static const char *const reader_keys[] = {"reader.data_loader",
						  "reader.data_loader_sampler"};
	bool data = workload_reads(w) || w->workflow.generate_data;
	int rc = 0;

	if (w->workflow.checkpoint && w->checkpoint.checkpoint_mechanism_classname)
		return workload_key_error(w, ERR_ABSENT, e,
					  "checkpoint.checkpoint_mechanism_classname",
					  "checkpoint.checkpoint_mechanism_classname names a "
					  "Python class; this program runs no Python");
	if (workload_reads(w) && (w->reader.data_loader_classname || w->reader.reader_classname))
		return workload_key_error(
			w, ERR_ABSENT, e,
			w->reader.reader_classname ? "reader.reader_classname"
						   : "reader.data_loader_classname",
			"reader.%s names a Python class; this program runs no Python",
			w->reader.reader_classname ? "reader_classname" : "data_loader_classname");
	for (size_t i = 0; rc == 0 && data && i < LENGTH(data_keys); i++)
		rc = check_feature(w, data_keys[i], e);
	for (size_t i = 0; rc == 0 && workload_reads(w) && i < LENGTH(reader_keys); i++)
		rc = check_feature(w, reader_keys[i], e);
	return rc;
}
