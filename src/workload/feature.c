/* The one list of what this version has, of the keys whose values it does not all have. */
#include "workload/feature.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

static const struct {
	const char *key, *value;
} features[] = {
	{"dataset.format", "npz"},
	{"dataset.format", "npy"},
	{"dataset.format", "hdf5"},
	{"dataset.format", "png"},
	{"dataset.format", "jpeg"},
	{"dataset.format", "indexed_binary"},
	{"dataset.format", "mmap_indexed_binary"},
	{"dataset.format", "synthetic"},
	{"dataset.format", "tfrecord"},
	{"dataset.format", "csv"},
	{"dataset.compression", "none"},
	{"dataset.compression", "zip"},
	{"dataset.compression", "gzip"},
	{"dataset.compression", "lzf"},
	{"reader.data_loader", "pytorch"},
	{"reader.data_loader", "tensorflow"},
	{"reader.data_loader", "dali"},
	{"reader.data_loader", "native_dali"},
	{"reader.data_loader", "synthetic"},
	{"reader.data_loader_sampler", "derive"},
	{"reader.data_loader_sampler", "index"},
	{"reader.data_loader_sampler", "iterative"},
	{"storage.storage_type", "local_fs"},
	{"storage.storage_type", "parallel_fs"},
	{"workflow.checkpoint", "false"},
	{"workflow.checkpoint", "true"},
	{"profiling.profiler", "none"},
	{"profiling.profiler", "iostat"},
};

bool feature_has(const char *key, const char *value)
{
	for (size_t i = 0; i < sizeof(features) / sizeof(features[0]); i++)
		if (strcmp(features[i].key, key) == 0 && strcmp(features[i].value, value) == 0)
			return true;
	return false;
}

char *feature_list(const char *key, char *out, unsigned long out_size)
{
	size_t at = 0;

	out[0] = '\0';
	for (size_t i = 0; i < sizeof(features) / sizeof(features[0]); i++) {
		if (strcmp(features[i].key, key) != 0)
			continue;
		int n = snprintf(out + at, out_size - at, "%s%s", at ? ", " : "",
				 features[i].value);
		if (n < 0 || (size_t)n >= out_size - at)
			break;
		at += (size_t)n;
	}
	return out;
}
