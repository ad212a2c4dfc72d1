/* The rules across the keys of the reader: which order, format and extras go with which loader. */
#include <inttypes.h>
#include <string.h>

#include "workload/validate.h"

#define LENGTH(a) (sizeof(a) / sizeof((a)[0]))

int64_t workload_steps(const struct workload *w, int64_t samples, int64_t batch, int64_t ranks)
{
	int order = w->reader.order;
	bool repeats =
		order == ORDER_DISTRIBUTED
			? !w->reader.drop_last
			: order == ORDER_SHARDED && w->reader.pad_last_batch && samples >= ranks;

	return (samples / ranks + (repeats && samples % ranks != 0)) / batch;
}

/* DALI's own readers know few formats, and all but one take a file for a sample. */
static int check_native_dali(const struct workload *w, struct err *e)
{
	const char *format = w->dataset.format;
	bool tfrecord = strcmp(format, "tfrecord") == 0;

	if (!tfrecord && strcmp(format, "npy") != 0 && strcmp(format, "jpeg") != 0 &&
	    strcmp(format, "png") != 0)
		return workload_key_error(
			w, ERR_USAGE, e, "dataset.format",
			"dataset.format %s has no reader of DALI's own, which are for npy, "
			"tfrecord, jpeg and png; reader.data_loader dali reads it through Python",
			format);
	if (!tfrecord && w->dataset.num_samples_per_file != 1)
		return workload_key_error(
			w, ERR_USAGE, e, "dataset.num_samples_per_file",
			"dataset.num_samples_per_file is %" PRId64
			", and DALI's own readers take each %s file for one sample: set it to 1, "
			"or reader.data_loader to dali",
			w->dataset.num_samples_per_file, format);
	return 0;
}

int workload_check_reader(const struct workload *w, int64_t ranks, struct err *e)
{
	const char *loader = w->reader.data_loader;

	if (strcmp(loader, "native_dali") == 0) {
		int rc = check_native_dali(w, e);

		if (rc < 0)
			return rc;
	}
	if ((strcmp(loader, "native_dali") == 0) != (w->reader.order == ORDER_SHARDED))
		return workload_key_error(
			w, ERR_USAGE, e, "reader.order",
			"reader.order sharded is that of reader.data_loader native_dali, and the "
			"only one it has: leave reader.order out");
	if (w->reader.order == ORDER_RANDOM && ranks > 1)
		return workload_key_error(
			w, ERR_USAGE, e, "reader.order",
			"reader.order random is PyTorch's RandomSampler, which knows nothing of "
			"other ranks: with %" PRId64 " ranks use distributed",
			ranks);
	return 0;
}

void workload_warn_reader(struct workload *w)
{
	const char *loader = w->reader.data_loader;
	bool pytorch = strcmp(loader, "pytorch") == 0 && w->reader.read_threads > 0;
	bool workers = pytorch || (strcmp(loader, "dali") == 0 && w->reader.read_threads > 0);
	bool native = strcmp(loader, "native_dali") == 0;
	const struct {
		const char *key;
		bool used;
		const char *user;
	} keys[] = {
		{"reader.transport", pytorch, "workers of reader.data_loader pytorch"},
		{"reader.pin_thread", pytorch, "workers of reader.data_loader pytorch"},
		{"reader.worker_start_time", workers, "workers of data loaders pytorch and dali"},
		{"reader.worker_init_time", workers, "workers of data loaders pytorch and dali"},
		{"reader.worker_resume_time", workers, "workers of data loaders pytorch and dali"},
		{"reader.drop_last", w->reader.order == ORDER_DISTRIBUTED,
		 "reader.order distributed"},
		{"reader.stick_to_shard", native, "reader.data_loader native_dali"},
		{"reader.pad_last_batch", native, "reader.data_loader native_dali"},
		{"reader.read_ahead", native && !w->reader.dont_use_mmap,
		 "mapped files of reader.data_loader native_dali"},
	};

	for (size_t i = 0; i < LENGTH(keys); i++)
		if (workload_is_set(w, keys[i].key) && !keys[i].used)
			workload_warn(w, "%s has no effect: it is for %s", keys[i].key,
				      keys[i].user);
}
