#include "format/parquet/parquet_keys.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "format/parquet/parquet_ranges.h"
#include "workload/key.h"
#include "workload/workload.h"

#define SIZE_MAX_OF_COLUMN (1 << 30)
#define TEXT_BYTES_MAX 8192
#define WORKERS_MAX 1024 /* requests of a queue */
#define WINDOW_MAX 65536
#define STRING_BYTES 12 /* DLIO's are "s_" and up to ten digits */

static int64_t size_of(const struct node *column)
{
	const struct node *n = node_get(column, "size");

	return n && n->kind == NODE_INT ? n->i : n ? -1 : 1;
}

static int read_column(const struct node *n, struct parquet_column *c, struct err *e)
{
	static const char key[] = "dataset.parquet.columns";
	const struct node *name = n, *dtype = NULL, *read = NULL;
	int64_t size = 1;

	if (n->kind == NODE_MAP) {
		name = node_get(n, "name");
		dtype = node_get(n, "dtype");
		read = node_get(n, "read");
		size = size_of(n);
	}
	if ((name && name->kind != NODE_STR) || (dtype && dtype->kind != NODE_STR))
		return node_refuse(n, key, e, "a column has a name and a dtype that are text");
	if (name && (strlen(name->s) >= sizeof(c->name) || !name->s[0]))
		return node_refuse(n, key, e, "the name of a column has 1 to %zu bytes",
				   sizeof(c->name) - 1);
	if (size < 1 || size > SIZE_MAX_OF_COLUMN)
		return node_refuse(n, key, e, "the size of a column is a number from 1 to %d",
				   SIZE_MAX_OF_COLUMN);
	snprintf(c->name, sizeof(c->name), "%s", name ? name->s : "data");
	c->marked = read && read->kind == NODE_BOOL && read->b;
	c->size = (uint64_t)size;
	c->elem = dtype ? elem_find(dtype->s) : elem_find("float32");
	c->list = size > 1;
	if (dtype && strcmp(dtype->s, "string") == 0) {
		c->text = TEXT_STRING;
		c->size = STRING_BYTES;
	} else if (dtype && strcmp(dtype->s, "binary") == 0) {
		c->text = TEXT_BINARY;
	} else if (c->elem && c->elem->class == ELEM_BOOL) {
		/* DLIO makes one, whatever the size */
		c->size = 1;
		c->list = false;
	} else if (dtype && strcmp(dtype->s, "list") == 0) {
		c->elem = elem_find("float32");
		c->list = true;
	} else if (!c->elem || c->elem->class == ELEM_COMPLEX) {
		/* DLIO makes a list of float32 of any other word */
		return node_refuse(n, key, e,
				   "the dtype '%.60s' is not supported: write int8 to int64, uint8 "
				   "to uint64, float16, float32, float64, bool, string, binary or "
				   "list",
				   dtype->s);
	}
	if (c->text && c->size > TEXT_BYTES_MAX)
		return node_refuse(n, key, e, "the size of a binary column is at most %d",
				   TEXT_BYTES_MAX);
	if (c->text) {
		c->elem = elem_find("uint8");
		c->list = false;
	}
	return parquet_complete_column(c, e);
}

static int check_names(const struct parquet_shape *s, const struct node *columns, struct err *e)
{
	for (uint32_t i = 0; i < s->columns; i++)
		for (uint32_t k = 0; k < i && s->columns < 5000; k++)
			if (strcmp(s->column[i].name, s->column[k].name) == 0)
				return node_refuse(columns->child[i], "dataset.parquet.columns", e,
						   "two columns have the name '%s'",
						   s->column[i].name);
	return 0;
}

/* ---- reading ---- */

static int count_option(const struct node *options, const char *key, int64_t least, int64_t most,
			uint64_t *out, struct err *e)
{
	AUTO_FREE char *name = xasprintf("storage.storage_options.%s", key);
	const struct node *n = options ? node_get(options, key) : NULL;

	if (!n || n->kind == NODE_NULL)
		return 0;
	if (n->kind != NODE_INT || n->i < least || n->i > most)
		return node_refuse(n, name, e, "a number from %" PRId64 " to %" PRId64 " is needed",
				   least, most);
	*out = (uint64_t)n->i;
	return 0;
}

/* storage_options.columns, as DLIO's readers look at it. */
static int choose_columns(struct parquet_shape *s, const struct node *names, struct err *e)
{
	static const char key[] = "storage.storage_options.columns";
	uint32_t chosen = 0;

	if (!names || names->kind == NODE_NULL || (names->kind == NODE_LIST && names->n == 0))
		return 0;
	if (names->kind != NODE_LIST)
		return node_refuse(names, key, e, "it is a list of names of columns");
	for (uint32_t i = 0; i < s->columns; i++)
		s->column[i].skipped = true;
	for (size_t k = 0; k < names->n; k++) {
		const struct node *n = names->child[k];
		uint32_t i = 0;

		if (n->kind != NODE_STR)
			return node_refuse(n, key, e, "it is a list of names of columns");
		while (i < s->columns && strcmp(s->column[i].name, n->s) != 0)
			i++;
		if (i == s->columns)
			return node_refuse(n, key, e,
					   "dataset.parquet.columns has no column '%.60s'", n->s);
		s->column[i].skipped = false;
		chosen++;
	}
	return chosen ? 0 : node_refuse(names, key, e, "no column is chosen");
}

/* The same of files that others wrote, which have columns of their own. */
static int check_choice(struct parquet_shape *s, const struct node *names, struct err *e)
{
	static const char key[] = "storage.storage_options.columns";

	if (!names || names->kind == NODE_NULL || (names->kind == NODE_LIST && names->n == 0))
		return 0;
	if (names->kind != NODE_LIST)
		return node_refuse(names, key, e, "it is a list of names of columns");
	for (size_t i = 0; i < names->n; i++)
		if (names->child[i]->kind != NODE_STR)
			return node_refuse(names->child[i], key, e,
					   "it is a list of names of columns");
	s->choice = names;
	return 0;
}

static int choose_marked(const struct workload *w, struct parquet_shape *s, struct err *e)
{
	uint32_t marked = 0;

	for (uint32_t i = 0; i < s->columns; i++) {
		marked += s->column[i].marked;
		s->column[i].skipped = !s->column[i].marked;
	}
	return marked ? 0
		      : workload_key_error(w, ERR_USAGE, e, "reader.parquet_columns",
					   "reader.parquet_columns is marked, but no column of "
					   "dataset.parquet.columns has read: true");
}

static bool is_s3dlio(const struct workload *w, const struct node *options)
{
	const struct node *n = options ? node_get(options, "storage_library") : NULL;
	const char *name = n && n->kind == NODE_STR ? n->s : w->storage.storage_library;

	return name && strcmp(name, "s3dlio") == 0;
}

/* The library whose requests readers make, and its options. */
static int read_pattern(const struct workload *w, struct parquet_shape *s, struct err *e)
{
	const struct node *options = w->storage.storage_options;
	uint64_t coalesce, workers, window = 0, outstanding = 1024;
	int which = w->reader.parquet_requests, rc = 0;

	if (options && options->kind != NODE_MAP)
		options = NULL;
	/* 0: what DLIO would take */
	s->pattern = parquet_pattern_at(which ? (unsigned)which - 1 : is_s3dlio(w, options));
	coalesce = s->pattern->coalesce;
	workers = s->pattern->workers;
	if (s->pattern->python_file || s->pattern->capped_tail)
		rc = count_option(options, "prefetch_workers", 1, WORKERS_MAX, &workers, e);
	if (rc == 0 && s->pattern->python_file)
		rc = count_option(options, "prefetch_window", 1, WINDOW_MAX, &window, e);
	if (rc == 0 && s->pattern->capped_tail) {
		rc = count_option(options, "max_outstanding", 1, WINDOW_MAX, &outstanding, e);
		window = workers = workers < outstanding ? workers : outstanding;
		if (rc < 0)
			return rc;
		rc = count_option(options, "coalesce_rgs", 1, 1 << 20, &coalesce, e);
		s->footer_cap = 4u << 20;
		if (rc == 0)
			rc = count_option(options, "footer_cap", 12, 1 << 30, &s->footer_cap, e);
	}
	s->coalesce = (uint32_t)coalesce;
	s->workers = (uint32_t)workers;
	s->window = (uint32_t)window;
	if (rc == 0 && w->dataset.names == NAMES_LISTED)
		rc = check_choice(s, options ? node_get(options, "columns") : NULL, e);
	else if (rc == 0 && s->columns > 0 && w->reader.parquet_columns)
		rc = choose_marked(w, s, e);
	else if (rc == 0 && s->columns > 0 && options)
		rc = choose_columns(s, node_get(options, "columns"), e);
	for (uint32_t i = 0; i < s->columns; i++)
		s->row_bytes += s->column[i].skipped ? 0 : s->column[i].row_bytes;
	return rc;
}

struct parquet_shape *parquet_shape_of(const struct workload *w, struct err *e)
{
	const struct node *columns = w->dataset.parquet.columns;
	size_t n = columns && columns->kind == NODE_LIST ? columns->n : 0;
	struct parquet_shape *s;
	int rc = 0;

	if (columns && columns->kind != NODE_LIST && columns->kind != NODE_NULL) {
		node_refuse(columns, "dataset.parquet.columns", e,
			    "it is a list of columns: [{name: x, dtype: float32, size: 1}]");
		return NULL;
	}
	if (n > PARQUET_COLUMNS_MAX) {
		node_refuse(columns, "dataset.parquet.columns", e, "at most %u are allowed",
			    PARQUET_COLUMNS_MAX);
		return NULL;
	}
	s = xcalloc(1, sizeof(*s) + n * sizeof(s->column[0]));
	s->columns = (uint32_t)n;
	s->writer = (enum parquet_writer)w->dataset.parquet.writer;
	s->group_rows = (uint64_t)w->dataset.parquet.row_group_size;
	s->batch_rows = (uint64_t)w->dataset.parquet.generation_batch_size;
	for (size_t i = 0; rc == 0 && i < n; i++)
		rc = read_column(columns->child[i], &s->column[i], e);
	if (rc == 0)
		rc = check_names(s, columns, e);
	if (rc == 0)
		rc = read_pattern(w, s, e);
	if (rc == 0)
		return s;
	free(s);
	return NULL;
}
