/* Workloads as text: show config, and the hash of what decides a dataset. */
#include <assert.h>
#include <inttypes.h>
#include <stdio.h>

#include "base/alloc.h"
#include "base/say.h"
#include "workload/backend.h"
#include "workload/workload.h"

static void origin_text(const struct opt_origin *origin, char *out, size_t out_size)
{
	if (origin->source == ORIGIN_DEFAULT)
		snprintf(out, out_size, "default");
	else
		node_mark_text(origin->mark, out, out_size);
}

static void print_line(const char *key, const char *value, const struct opt_origin *origin,
		       struct buf *out)
{
	char text[256];

	origin_text(origin, text, sizeof(text));
	buf_say(out, "%-42s %-28s %s\n", key, value, text);
}

/* The options of a store in use. In place of a value that the store would refuse is why. */
static void print_store(const struct workload *w, const struct store_facts *s, bool only_set,
			struct buf *out)
{
	AUTO_FREE char *path = xasprintf("workload.storage.%s", s->name);
	AUTO_FREE void *config = xcalloc(1, s->config_bytes ? s->config_bytes : 1);
	const struct node *given = node_path(w->tree, path);
	struct err ignored;

	if (opt_set_defaults(s->options, s->option_count, config, &ignored) < 0)
		return;
	for (size_t i = 0; i < s->option_count; i++) {
		const struct opt *row = &s->options[i];
		const struct node *v =
			given && given->kind == NODE_MAP ? node_get(given, row->key) : NULL;
		struct opt_origin origin = {.source = ORIGIN_DEFAULT};
		bool valid = !v || opt_set_node(row, v, config, &ignored) == 0;

		if (v)
			origin = (struct opt_origin){ORIGIN_FILE, v->mark};
		else if (only_set)
			continue;
		AUTO_FREE char *key = xasprintf("storage.%s.%s", s->name, row->key);
		AUTO_FREE char *value = valid ? opt_get_text(row, config) : xstrdup(ignored.text);

		print_line(key, value, &origin, out);
	}
	opt_release(s->options, s->option_count, config);
}

void workload_print(const struct workload *w, bool only_set, struct buf *out)
{
	for (size_t i = 0; i < workload_row_count; i++) {
		if (only_set && w->origin[i].source == ORIGIN_DEFAULT)
			continue;
		AUTO_FREE char *value = opt_get_text(&workload_rows[i], w);

		print_line(workload_rows[i].key, value, &w->origin[i], out);
	}
	for (size_t i = 0; store_facts_table[i]; i++)
		if (store_expression_has(w->storage.store, store_facts_table[i]->name))
			print_store(w, store_facts_table[i], only_set, out);
}

/* FNV-1a, 64 bits. */
static uint64_t hash_text(uint64_t h, const char *text)
{
	for (; *text; text++)
		h = (h ^ (unsigned char)*text) * 0x100000001b3u;
	return h;
}

/* Keys of the rows whose text goes into the hash as it is. */
static const char *const dataset_keys[] = {
	"dataset.format",         "dataset.num_files_train",
	"dataset.num_files_eval", "dataset.num_samples_per_file",
	"dataset.file_prefix",    "dataset.compression",
	"dataset.seed",
};
static const char *const square_keys[] = {
	"dataset.record_length_bytes",
	"dataset.record_length_bytes_stdev",
};
static void put_keys(const struct workload *w, const char *const *keys, size_t n, struct buf *out)
{
	for (size_t i = 0; i < n; i++) {
		const struct opt *row = opt_find(workload_rows, workload_row_count, keys[i]);

		assert(row); /* the hash would lose a key of the dataset */
		AUTO_FREE char *value = opt_get_text(row, w);

		buf_printf(out, "%s=%s\n", keys[i], value);
	}
}

uint64_t workload_dataset_hash(const struct workload *w)
{
	static const char *const dims[] = {"dataset.record_dims"};
	static const char *const level[] = {"dataset.compression_level"};
	static const char *const file_bytes[] = {"dataset.file_bytes"};
	struct buf text = {0};
	uint64_t h;

	/* What has no influence on a byte or a name stays out: 0 and 1 subfolders are the same, a
	 * fixed shape hides the record length, and so on. */
	put_keys(w, dataset_keys, sizeof(dataset_keys) / sizeof(dataset_keys[0]), &text);
	buf_printf(&text, "elem=%s\nsubfolders=%" PRId64 ",%" PRId64 "\n",
		   w->elem ? w->elem->name : w->dataset.record_element_type,
		   w->dataset.num_subfolders_train > 1 ? w->dataset.num_subfolders_train : 0,
		   w->dataset.num_subfolders_eval > 1 && w->dataset.num_files_eval > 0
			   ? w->dataset.num_subfolders_eval
			   : 0);
	if (w->dataset.record_dims.n)
		put_keys(w, dims, 1, &text);
	else
		put_keys(w, square_keys, 2, &text);
	if (w->dataset.compression != 0)
		put_keys(w, level, 1, &text);
	/* of others the size of a sample says all */
	if (w->dataset.file_bytes > 0 && workload_format(w)->flags & FORMAT_IMAGE)
		put_keys(w, file_bytes, 1, &text);
	for (const char *const *key = workload_format(w)->keys; key && *key; key++)
		put_keys(w, key, 1, &text);
	h = hash_text(0xcbf29ce484222325u, text.data);
	buf_release(&text);
	return h;
}
