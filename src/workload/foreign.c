#include "workload/foreign.h"

#include <inttypes.h>
#include <string.h>
#include <strings.h>

#include "base/str.h"
#include "workload/key.h"
#include "workload/workload.h"

#define SAME(n, f, k, t) {n, f, k, FOREIGN_SAME, t},
#define HINT(n, f, t) {n, f, NULL, FOREIGN_HINT, t},

#define USE_N "use -n N for the number of accelerators"
#define PIN                                                                                        \
	"it has no effect without an accelerator; reader.pin_thread=true emulates the copy into "  \
	"locked memory"

/* clang-format off */
const struct foreign_name foreign_names[] = {
	/* torch.utils.data.DataLoader */
	SAME("num_workers", "PyTorch", "reader.read_threads", NULL)
	{"prefetch_factor", "PyTorch", "reader.prefetch_size", FOREIGN_PER_WORKER,
	 "batches of each worker, times the workers"},
	SAME("persistent_workers", "PyTorch", "reader.persistent_workers", NULL)
	SAME("batch_size", "PyTorch", "reader.batch_size", "of one accelerator")
	{"shuffle", "PyTorch", "reader.sample_shuffle", FOREIGN_SHUFFLE, NULL},
	SAME("pin_memory", "PyTorch", "reader.pin_memory", PIN)
	{"drop_last", "PyTorch", NULL, FOREIGN_DROP_LAST, NULL},
	SAME("in_order", "PyTorch", "reader.in_order", NULL)
	SAME("multiprocessing_context", "PyTorch", "reader.multiprocessing_context", NULL)
	HINT("sampler", "PyTorch",
	     "set reader.order=distributed or random, and reader.sample_shuffle")
	HINT("batch_sampler", "PyTorch", "set reader.order and reader.batch_size")
	HINT("collate_fn", "PyTorch", "set reader.preprocess_time to the time it takes")
	HINT("worker_init_fn", "PyTorch", "set reader.worker_init_time to the time it takes")
	HINT("transform", "PyTorch", "set reader.preprocess_time to the time it takes")
	HINT("num_replicas", "PyTorch", USE_N)
	HINT("world_size", "PyTorch", USE_N)
	HINT("nproc_per_node", "torchrun", USE_N)
	HINT("num_gpus", "training scripts", USE_N)
	HINT("gpus", "training scripts", USE_N)
	HINT("devices", "training scripts", USE_N)
	HINT("num_accelerators", "training scripts", USE_N)
	HINT("accelerators", "training scripts", USE_N)
	HINT("ranks", "training scripts", USE_N)
	/* training scripts: argparse, Hugging Face, Lightning */
	SAME("dataloader_num_workers", "Hugging Face", "reader.read_threads", NULL)
	{"dataloader_prefetch_factor", "Hugging Face", "reader.prefetch_size", FOREIGN_PER_WORKER,
	 "batches of each worker, times the workers"},
	SAME("dataloader_persistent_workers", "Hugging Face", "reader.persistent_workers", NULL)
	SAME("dataloader_pin_memory", "Hugging Face", "reader.pin_memory", PIN)
	{"dataloader_drop_last", "Hugging Face", NULL, FOREIGN_DROP_LAST, NULL},
	SAME("per_device_train_batch_size", "Hugging Face", "reader.batch_size", NULL)
	SAME("per_device_eval_batch_size", "Hugging Face", "reader.batch_size_eval", NULL)
	SAME("num_train_epochs", "Hugging Face", "train.epochs", NULL)
	SAME("save_steps", "Hugging Face", "checkpoint.steps_between_checkpoints", NULL)
	SAME("train_batch_size", "training scripts", "reader.batch_size", "of one accelerator")
	SAME("micro_batch_size", "training scripts", "reader.batch_size", NULL)
	SAME("local_batch_size", "training scripts", "reader.batch_size", NULL)
	SAME("eval_batch_size", "training scripts", "reader.batch_size_eval", NULL)
	SAME("val_batch_size", "training scripts", "reader.batch_size_eval", NULL)
	HINT("global_batch_size", "training scripts",
	     "set reader.batch_size to the batch of one accelerator, the global batch divided by "
	     "-n")
	HINT("gradient_accumulation_steps", "training scripts",
	     "set train.computation_time to the time of one batch: accelerators synchronize "
	     "after each batch here")
	SAME("workers", "training scripts", "reader.read_threads", "workers of one accelerator")
	SAME("epochs", "training scripts", "train.epochs", NULL)
	SAME("num_epochs", "training scripts", "train.epochs", NULL)
	SAME("n_epochs", "training scripts", "train.epochs", NULL)
	SAME("max_epochs", "training scripts", "train.epochs", NULL)
	SAME("max_steps", "training scripts", "train.total_training_steps", NULL)
	SAME("num_steps", "training scripts", "train.total_training_steps", NULL)
	SAME("train_steps", "training scripts", "train.total_training_steps", NULL)
	SAME("max_iters", "training scripts", "train.total_training_steps", NULL)
	HINT("steps_per_epoch", "training scripts",
	     "set dataset.num_files_train for the length of an epoch, or "
	     "train.total_training_steps for the steps of the run")
	SAME("seed", "training scripts", "train.seed", NULL)
	SAME("random_seed", "training scripts", "train.seed", NULL)
	SAME("manual_seed", "training scripts", "train.seed", NULL)
	SAME("compute_time", "training scripts", "train.computation_time",
	     "the time of one step without any waiting for data")
	SAME("step_time", "training scripts", "train.computation_time",
	     "the time of one step without any waiting for data")
	SAME("data_folder", "training scripts", "dataset.data_folder", NULL)
	SAME("data_dir", "training scripts", "dataset.data_folder", NULL)
	SAME("data_path", "training scripts", "dataset.data_folder", NULL)
	SAME("data_root", "training scripts", "dataset.data_folder", NULL)
	SAME("dataset_dir", "training scripts", "dataset.data_folder", NULL)
	SAME("dataset_path", "training scripts", "dataset.data_folder", NULL)
	SAME("checkpoint_dir", "training scripts", "checkpoint.checkpoint_folder", NULL)
	SAME("checkpoint_path", "training scripts", "checkpoint.checkpoint_folder", NULL)
	SAME("ckpt_dir", "training scripts", "checkpoint.checkpoint_folder", NULL)
	SAME("checkpoint_interval", "training scripts", "checkpoint.steps_between_checkpoints",
	     "in steps")
	SAME("save_interval", "training scripts", "checkpoint.steps_between_checkpoints",
	     "in steps")
	SAME("output_dir", "training scripts", "output.folder", NULL)
	SAME("file_format", "training scripts", "dataset.format", NULL)
	SAME("format", "training scripts", "dataset.format", NULL)
	SAME("num_files", "training scripts", "dataset.num_files_train", NULL)
	SAME("samples_per_file", "training scripts", "dataset.num_samples_per_file", NULL)
	SAME("sample_size", "training scripts", "dataset.record_length_bytes", NULL)
	SAME("sample_bytes", "training scripts", "dataset.record_length_bytes", NULL)
	SAME("file_size", "training scripts", "dataset.file_bytes", "the mean")
	SAME("record_size", "training scripts", "dataset.record_length_bytes", NULL)
	HINT("num_samples", "training scripts",
	     "set dataset.num_files_train and dataset.num_samples_per_file, whose product it is")
	HINT("dataset_size", "training scripts",
	     "set dataset.num_files_train, dataset.num_samples_per_file and "
	     "dataset.record_length_bytes")
	SAME("direct_io", "training scripts", "reader.odirect", NULL)
	SAME("o_direct", "training scripts", "reader.odirect", NULL)
	/* tf.data */
	{"num_parallel_calls", "tf.data", "reader.computation_threads", FOREIGN_AUTO, "of map"},
	SAME("num_parallel_reads", "tf.data", "reader.read_threads", "files that are interleaved")
	SAME("cycle_length", "tf.data", "reader.read_threads", "files that are interleaved")
	{"prefetch", "tf.data", "reader.prefetch_size", FOREIGN_AUTO, "in batches"},
	{"prefetch_buffer_size", "tf.data", "reader.prefetch_size", FOREIGN_AUTO, "in batches"},
	SAME("shuffle_buffer_size", "tf.data", "reader.shuffle_size", "in samples")
	SAME("shuffle_buffer", "tf.data", "reader.shuffle_size", "in samples")
	SAME("reshuffle_each_iteration", "tf.data", "train.seed_change_epoch", NULL)
	SAME("deterministic", "tf.data", "reader.in_order", NULL)
	{"drop_remainder", "tf.data", NULL, FOREIGN_DROP_LAST, NULL},
	HINT("buffer_size", "tf.data",
	     "set reader.prefetch_size (batches) for the buffer of prefetch, or "
	     "reader.shuffle_size (samples) for that of shuffle")
	SAME("block_length", "tf.data", "reader.block_length", NULL)
	HINT("cache", "tf.data",
	     "set reader.read_type=memory to keep files open, or storage.page_cache for the page "
	     "cache: samples are not kept in memory")
	/* DALI */
	SAME("num_threads", "DALI", "reader.read_threads", NULL)
	SAME("py_num_workers", "DALI", "reader.read_threads", NULL)
	SAME("prefetch_queue_depth", "DALI", "reader.prefetch_size", "in batches")
	SAME("py_start_method", "DALI", "reader.multiprocessing_context", NULL)
	{"random_shuffle", "DALI", "reader.sample_shuffle", FOREIGN_SHUFFLE, NULL},
	SAME("initial_fill", "DALI", "reader.shuffle_size", "in samples")
	SAME("use_o_direct", "DALI", "reader.odirect", NULL)
	HINT("num_shards", "DALI", USE_N)
	HINT("shard_id", "DALI", "leave it out: each accelerator has its shard; " USE_N)
	HINT("last_batch_policy", "DALI",
	     "leave it out: a short batch at the end of an epoch is dropped")
	{.name = NULL},
};
/* clang-format on */

/* Sections of other programs, and those of ours in which such a name is no surprise. */
static const char *const their_sections[] = {"dataloader",   "data_loader", "loader",
					     "train_loader", "training",    "trainer",
					     "data",         "pipeline",    NULL};
static const char *const our_sections[] = {"reader",  "data_reader", "train",
					   "dataset", "checkpoint",  NULL};

static bool listed(const char *const *list, const char *s, size_t n)
{
	for (; *list; list++)
		if (strlen(*list) == n && strncmp(*list, s, n) == 0)
			return true;
	return false;
}

bool foreign_section(const char *section)
{
	return listed(their_sections, section, strlen(section));
}

const struct foreign_name *foreign_find(const char *key)
{
	const char *dot = strchr(key, '.'), *name = dot ? dot + 1 : key;
	size_t n = dot ? (size_t)(dot - key) : 0;

	if (workload_key_row(key) || strchr(name, '.') ||
	    (dot && !listed(their_sections, key, n) && !listed(our_sections, key, n)))
		return NULL;
	for (const struct foreign_name *f = foreign_names; f->name; f++)
		if (strcmp(f->name, name) == 0)
			return n == strlen("checkpoint") && str_starts(key, "checkpoint.") &&
					       (!f->key || !str_starts(f->key, "checkpoint."))
				       ? NULL
				       : f;
	return NULL;
}

const char *foreign_nearest_key(const char *key)
{
	const char *near = opt_nearest_key(workload_rows, workload_row_count, key);
	const char *dot = strrchr(key, '.'), *names[128];
	size_t n = 0;

	if (near)
		return near;
	for (const struct foreign_name *f = foreign_names; f->name && n < 128; f++)
		if (f->key)
			names[n++] = f->name;
	near = str_nearest(dot ? dot + 1 : key, names, n);
	for (const struct foreign_name *f = foreign_names; near && f->name; f++)
		if (strcmp(f->name, near) == 0)
			return f->key;
	return NULL;
}

static bool ends_in(const char *key, const char *name)
{
	const char *dot = key ? strrchr(key, '.') : NULL;

	return dot && strcmp(dot + 1, name) == 0;
}

/* Sections whose keys are what the name alone means to anybody. */
static const char *const plain_sections[] = {"dataset", "reader",   "train", "evaluation",
					     "metric",  "workflow", NULL};

const char *foreign_bare_key(const char *name, char *several, size_t several_size)
{
	const char *found = NULL;
	bool one = true;

	several[0] = '\0';
	for (size_t i = 0; i < workload_row_count; i++) {
		const struct opt *row = &workload_rows[i];

		if (!ends_in(row->key, name) && !ends_in(row->alias, name))
			continue;
		str_append(several, several_size, "%s%s", found ? ", " : "", row->key);
		one = !found;
		found = row->key;
	}
	one = one && found && listed(plain_sections, found, strcspn(found, "."));
	return one ? found : NULL;
}

static bool is_autotune(const struct node *v)
{
	return v->kind == NODE_STR &&
	       (strcasecmp(v->s, "AUTOTUNE") == 0 || strcasecmp(v->s, "auto") == 0 ||
		strcasecmp(v->s, "tf.data.AUTOTUNE") == 0 ||
		strcasecmp(v->s, "tf.data.experimental.AUTOTUNE") == 0);
}

static struct node *number_node(int64_t i, struct node_mark mark)
{
	struct node *n = node_new(NODE_INT, mark);

	n->i = i;
	n->f = (double)i;
	return n;
}

/* "HINT (command line: shuffle=1000, from PyTorch)" */
static struct node *refuse(const struct foreign_name *f, const struct node *v, const char *hint,
			   const char *typed, struct err *e)
{
	char where[256], q[NODE_QUOTE_MAX];

	err_set(e, ERR_USAGE, "%s (%s%.80s=%s, from %s)", hint,
		workload_place(&v->mark, where, sizeof(where)), typed, node_quote(v, q, sizeof(q)),
		f->from);
	return NULL;
}

static struct node *shuffle_value(const struct foreign_name *f, const struct node *v,
				  const char *typed, struct err *e)
{
	if (v->kind == NODE_BOOL)
		return node_new_str(v->b ? "seed" : "off", v->mark);
	if (v->kind == NODE_INT && v->i > 1)
		return refuse(f, v,
			      "set reader.sample_shuffle=seed, and reader.shuffle_size to the "
			      "samples of the shuffle buffer",
			      typed, e);
	return node_clone(v);
}

static struct node *per_worker(const struct foreign_name *f, const struct node *v, int64_t workers,
			       const char *typed, struct err *e)
{
	if (v->kind == NODE_NULL || (v->kind == NODE_STR && strcmp(v->s, "None") == 0))
		return node_new(NODE_NULL, v->mark); /* the default, as there */
	if (v->kind != NODE_INT || v->i < 0 || v->i > 65536)
		return refuse(f, v, "write a whole number of batches per worker", typed, e);
	if (workers < 1)
		return refuse(f, v,
			      "set reader.read_threads (num_workers) to at least 1: without "
			      "workers nothing is read ahead",
			      typed, e);
	return number_node(v->i * workers, v->mark);
}

struct node *foreign_value(const struct foreign_name *f, const struct node *v, int64_t workers,
			   const char *typed, struct err *e)
{
	switch (f->how) {
	case FOREIGN_SAME:
		return node_clone(v);
	case FOREIGN_AUTO:
		return is_autotune(v) ? number_node(-1, v->mark) : node_clone(v);
	case FOREIGN_SHUFFLE:
		return shuffle_value(f, v, typed, e);
	case FOREIGN_PER_WORKER:
		return per_worker(f, v, workers, typed, e);
	case FOREIGN_DROP_LAST:
		if (v->kind == NODE_BOOL && v->b)
			return node_clone(v);
		return refuse(f, v,
			      "leave it out: a short batch at the end of an epoch is always "
			      "dropped",
			      typed, e);
	case FOREIGN_HINT:
		break;
	}
	return refuse(f, v, f->note, typed, e);
}
