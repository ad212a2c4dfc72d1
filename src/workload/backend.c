/* Facts of backends: by name, and of what a workload names. */
#include "workload/backend.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "workload/extension.h"
#include "workload/workload.h"

const struct store_facts *store_facts_find(const char *name)
{
	for (size_t i = 0; store_facts_table[i]; i++)
		if (strcmp(store_facts_table[i]->name, name) == 0)
			return store_facts_table[i];
	return NULL;
}

const struct format_facts *workload_format(const struct workload *w)
{
	static const struct format_facts unknown = {.name = "", .help = "", .extension = ""};
	const char *name = w->dataset.format;

	for (size_t i = 0; name && format_facts_table[i]; i++)
		if (strcmp(format_facts_table[i]->name, name) == 0)
			return format_facts_table[i];
	return &unknown;
}

const struct loader_facts *workload_loader(const struct workload *w)
{
	static const struct loader_facts unknown = {.name = "", .help = ""};
	const char *name = w->reader.data_loader;

	for (size_t i = 0; name && loader_facts_table[i]; i++)
		if (strcmp(loader_facts_table[i]->name, name) == 0)
			return loader_facts_table[i];
	return &unknown;
}

/* The next part of an expression, without blanks: its length, and where it begins. *at is moved
 * behind it; NULL after the last. */
static size_t next_part(const char **at, const char **part)
{
	const char *end = strchrnul(*at, '+');
	size_t n;

	*part = *at + strspn(*at, " \t");
	*at = *end ? end + 1 : NULL;
	for (n = *part < end ? (size_t)(end - *part) : 0;
	     n && ((*part)[n - 1] == ' ' || (*part)[n - 1] == '\t');)
		n--;
	return n;
}

bool store_expression_has(const char *expression, const char *name)
{
	const char *part;

	while (expression) {
		size_t n = next_part(&expression, &part);

		if (strlen(name) == n && strncmp(part, name, n) == 0)
			return true;
	}
	return false;
}

const struct store_facts *workload_base_store(const struct workload *w)
{
	static const struct store_facts unknown = {.name = "", .help = ""};
	const char *rest = w->storage.store, *part = "";
	size_t n = 0;

	while (rest)
		n = next_part(&rest, &part);
	for (size_t i = 0; store_facts_table[i]; i++)
		if (strlen(store_facts_table[i]->name) == n &&
		    strncmp(store_facts_table[i]->name, part, n) == 0)
			return store_facts_table[i];
	return &unknown;
}

static bool compresses(const struct format_facts *f, const char *compression)
{
	for (const char *const *c = f->compressions; c && *c; c++)
		if (strcmp(*c, compression) == 0)
			return true;
	return strcmp(compression, "none") == 0;
}

static bool ends_in(const char *name, const char *extension)
{
	size_t n = strlen(name), m = strlen(extension);

	return m > 0 && n > m && name[n - m - 1] == '.' && strcasecmp(name + n - m, extension) == 0;
}

bool format_has_extension(const struct format_facts *f, const char *name)
{
	if (!f->extension)
		return false;
	if (ends_in(name, f->extension))
		return true;
	for (const char *const *o = f->other_extensions; o && *o; o++)
		if (ends_in(name, *o))
			return true;
	return false;
}

int format_check_compression(const struct format_facts *f, const char *compression, struct err *e)
{
	struct buf list = {0};

	if (compresses(f, compression))
		return 0;
	for (const char *const *c = f->compressions; c && *c; c++)
		buf_printf(&list, ", %s", *c);
	err_set(e, ERR_USAGE,
		"dataset.compression %s is not supported for %s files; use one of: none%s",
		compression, f->name, list.len ? list.data : "");
	buf_release(&list);
	return ERR_USAGE;
}

void format_list(bool (*has)(const struct format_facts *f), const char *word, struct buf *out)
{
	const char *last = NULL;

	for (size_t i = 0; format_facts_table[i]; i++) {
		if (!has(format_facts_table[i]))
			continue;
		if (last)
			buf_printf(out, "%s%s", out->len ? ", " : "", last);
		last = format_facts_table[i]->name;
	}
	if (out->len)
		buf_printf(out, " %s ", word);
	buf_puts(out, last ? last : "none");
}

static bool has_dali_reader(const struct format_facts *f)
{
	return f->dali != DALI_NONE;
}

int format_check_dali(const struct format_facts *f, int64_t samples_per_file, struct err *e)
{
	struct buf formats = {0};

	if (f->dali == DALI_NONE) {
		format_list(has_dali_reader, "and", &formats);
		err_set(e, ERR_USAGE,
			"dataset.format %s cannot be read by DALI's own readers, which support "
			"%s: use reader.data_loader dali, which reads any format through Python",
			f->name, formats.data);
		buf_release(&formats);
		return ERR_USAGE;
	}
	if (f->dali == DALI_TFRECORD || samples_per_file == 1)
		return 0;
	return err_set(e, ERR_USAGE,
		       "dataset.num_samples_per_file is %" PRId64
		       ", but DALI's own readers take each %s file for one sample: set it to 1, "
		       "or reader.data_loader to dali",
		       samples_per_file, f->name);
}

void *workload_store_config(const struct workload *w, const struct store_facts *s, struct err *e)
{
	AUTO_FREE char *path = xasprintf("workload.storage.%s", s->name);
	void *config = xcalloc(1, s->config_bytes ? s->config_bytes : 1);
	const struct node *given = node_path(w->tree, path);
	int rc = opt_set_defaults(s->options, s->option_count, config, e);

	for (size_t i = 0; rc == 0 && given && given->kind == NODE_MAP && i < s->option_count;
	     i++) {
		const struct node *v = node_get(given, s->options[i].key);

		if (v)
			rc = opt_set_node(&s->options[i], v, config, e);
	}
	if (rc == 0)
		return config;
	opt_release(s->options, s->option_count, config);
	free(config);
	return NULL;
}
