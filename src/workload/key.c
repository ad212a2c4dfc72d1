/* Keys: which there are, where they were set, and what is said about them. */
#include "workload/key.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/str.h"
#include "workload/backend.h"
#include "workload/compose.h"
#include "workload/tables.h"

const struct opt *workload_key_row(const char *key)
{
	const struct opt *row = opt_find(workload_rows, workload_row_count, key);

	if (row)
		return row;
	for (const struct workload_alias *a = workload_aliases; a->alias; a++)
		if (strcmp(a->alias, key) == 0)
			return opt_find(workload_rows, workload_row_count, a->key);
	return NULL;
}

static bool is_below(const char *key, const char *section)
{
	size_t n = strlen(section);

	return key && strncmp(key, section, n) == 0 && key[n] == '.';
}

bool workload_section_known(const char *key)
{
	if (strcmp(key, "data_reader") == 0)
		return true;
	for (size_t i = 0; i < workload_row_count; i++)
		if (is_below(workload_rows[i].key, key))
			return true;
	return false;
}

bool workload_store_section(const char *key)
{
	return str_starts(key, "storage.") && store_facts_find(key + 8);
}

bool workload_key_known(const char *key)
{
	if (workload_key_row(key) || workload_store_section(key) || workload_section_known(key))
		return true;
	/* Below a map that is one value to the rows, or that a store reads. */
	AUTO_FREE char *above = xstrdup(key);

	for (char *dot; (dot = strrchr(above, '.'));) {
		*dot = '\0';
		const struct opt *row = workload_key_row(above);

		if (workload_store_section(above) ||
		    (row &&
		     (row->type == OPT_MAP || row->type == OPT_NODES || row->type == OPT_TIME)))
			return true;
	}
	return false;
}

const char *workload_alias_of(const char *key)
{
	const struct opt *row = workload_key_row(key);

	return row && strcmp(row->key, key) != 0 ? row->key : NULL;
}

const char *workload_place(const struct node_mark *m, char *out, size_t size)
{
	char text[200];

	out[0] = '\0';
	if (m->file)
		snprintf(out, size, "%s: ", node_mark_text(*m, text, sizeof(text)));
	return out;
}

const char *workload_place_behind(const struct node_mark *m, char *out, size_t size)
{
	char text[200];

	out[0] = '\0';
	if (m->file)
		snprintf(out, size, " (%s)", node_mark_text(*m, text, sizeof(text)));
	return out;
}

char *workload_where(const struct workload *w, const char *key, char *out, size_t out_size)
{
	const struct opt *row = opt_find(workload_rows, workload_row_count, key);

	out[0] = '\0';
	if (row && w->origin[row - workload_rows].source != ORIGIN_DEFAULT)
		workload_place(&w->origin[row - workload_rows].mark, out, out_size);
	return out;
}

int workload_key_error(const struct workload *w, int code, struct err *e, const char *key,
		       const char *fmt, ...)
{
	char where[256], text[ERR_TEXT_MAX];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	return err_set(e, code, "%s%s", workload_where(w, key, where, sizeof(where)), text);
}

int workload_set_in(const struct workload *w, const char *key)
{
	const struct opt *row = opt_find(workload_rows, workload_row_count, key);

	assert(row); /* a misspelt key would never count as set */
	return (int)w->origin[row - workload_rows].source;
}

bool workload_is_set(const struct workload *w, const char *key)
{
	return workload_set_in(w, key) != ORIGIN_DEFAULT;
}

bool workload_is_chosen(const struct workload *w, const char *key)
{
	const struct opt *row = opt_find(workload_rows, workload_row_count, key);
	const struct node_mark *at;

	if (!workload_is_set(w, key))
		return false;
	at = &w->origin[row - workload_rows].mark;
	return workload_set_in(w, key) == ORIGIN_OVERRIDE || !at->file ||
	       !str_starts(at->file, WORKLOAD_BUILTIN_PREFIX);
}

bool workload_only_evaluates(const struct workload *w)
{
	const struct opt *row = opt_find(workload_rows, workload_row_count, "workflow.evaluation");

	assert(row);
	return !w->workflow.train && w->workflow.evaluation && !w->workflow.checkpoint &&
	       (!w->workflow.generate_data ||
		(w->origin && w->origin[row - workload_rows].source == ORIGIN_OVERRIDE));
}

bool workload_reads(const struct workload *w)
{
	return w->workflow.train || workload_only_evaluates(w);
}

void workload_warn(struct workload *w, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	str_list_add(&w->warnings, xvasprintf(fmt, ap));
	va_end(ap);
}

void workload_note(struct workload *w, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	str_list_add(&w->notes, xvasprintf(fmt, ap));
	va_end(ap);
}

int workload_keep_error(struct workload *w, const struct err *e)
{
	for (size_t i = 0; i < w->errors.n; i++)
		if (strcmp(w->errors.v[i], e->text) == 0)
			return 0;
	if (w->errors.n == 0)
		w->error_code = e->code;
	str_list_add(&w->errors, xstrdup(e->text));
	return 0;
}

int workload_first_error(const struct workload *w, struct err *e)
{
	return w->errors.n ? err_set(e, w->error_code, "%s", w->errors.v[0]) : 0;
}
