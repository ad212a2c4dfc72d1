/* The one list of what this version has, of the keys whose values it does not all have. */
#include "workload/feature.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "workload/backend.h"

static const struct {
	const char *key, *value;
} features[] = {
	{"reader.data_loader_sampler", "derive"},
	{"reader.data_loader_sampler", "index"},
	{"reader.data_loader_sampler", "iterative"},
	{"storage.storage_type", "local_fs"},
	{"storage.storage_type", "parallel_fs"},
	{"storage.storage_type", "direct_fs"},
	{"storage.storage_type", "s3"},
	{"profiling.profiler", "none"},
	{"profiling.profiler", "iostat"},
};

struct values {
	const char **at;
	size_t n;
};

static void add_value(struct values *v, const char *value)
{
	for (size_t i = 0; i < v->n; i++)
		if (strcmp(v->at[i], value) == 0)
			return;
	assert(v->n < FEATURE_VALUES_MAX);
	v->at[v->n++] = value;
}

#define ADD_NAMES(v, table)                                                                        \
	for (size_t i = 0; (table)[i]; i++)                                                        \
	add_value(v, (table)[i]->name)

static void add_compressions(struct values *v)
{
	add_value(v, "none");
	for (size_t i = 0; format_facts_table[i]; i++) {
		const char *const *c = format_facts_table[i]->compressions;

		for (; c && *c; c++)
			add_value(v, *c);
	}
}

size_t feature_values(const char *key, const char *out[FEATURE_VALUES_MAX])
{
	struct values v = {.at = out};

	if (strcmp(key, "storage.store") == 0)
		ADD_NAMES(&v, store_facts_table);
	else if (strcmp(key, "dataset.format") == 0)
		ADD_NAMES(&v, format_facts_table);
	else if (strcmp(key, "reader.data_loader") == 0)
		ADD_NAMES(&v, loader_facts_table);
	else if (strcmp(key, "checkpoint.format") == 0) {
		add_value(&v, "auto");
		ADD_NAMES(&v, checkpoint_facts_table);
	} else if (strcmp(key, "dataset.compression") == 0)
		add_compressions(&v);
	for (size_t i = 0; i < sizeof(features) / sizeof(features[0]); i++)
		if (strcmp(features[i].key, key) == 0)
			add_value(&v, features[i].value);
	return v.n;
}

char *feature_list(const char *key, char *out, size_t out_size)
{
	const char *value[FEATURE_VALUES_MAX];
	size_t n = feature_values(key, value), at = 0;

	out[0] = '\0';
	for (size_t i = 0; i < n; i++) {
		int len = snprintf(out + at, out_size - at, "%s%s", i ? ", " : "", value[i]);

		if (len < 0 || (size_t)len >= out_size - at)
			break;
		at += (size_t)len;
	}
	return out;
}

bool feature_has(const char *key, const char *value)
{
	const char *has[FEATURE_VALUES_MAX];
	size_t n = feature_values(key, has);

	for (size_t i = 0; i < n; i++)
		if (strcmp(has[i], value) == 0)
			return true;
	return n == 0;
}
