/* Rows as a table: lookup, suggestions, defaults, and values back as text. */
#include "conf/opt.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/str.h"
#include "conf/override.h"

const struct opt *opt_find(const struct opt *rows, size_t n, const char *key)
{
	for (size_t i = 0; i < n; i++) {
		if (strcmp(rows[i].key, key) == 0)
			return &rows[i];
	}
	for (size_t i = 0; i < n; i++) {
		if (rows[i].alias && strcmp(rows[i].alias, key) == 0)
			return &rows[i];
	}
	return NULL;
}

static const char *last_part(const char *key)
{
	const char *dot = strrchr(key, '.');

	return dot ? dot + 1 : key;
}

static bool same_section(const char *a, const char *b)
{
	size_t n = (size_t)(last_part(a) - a), m = (size_t)(last_part(b) - b);

	return n == m && strncasecmp(a, b, n) == 0;
}

#define FAR 1000u

/* How unlikely it is that `key` means `known`; FAR when it does not. */
static unsigned key_distance(const char *key, const char *known)
{
	const char *a = last_part(key), *b = last_part(known);
	size_t n = strlen(a), m = strlen(b), shorter = n < m ? n : m;
	unsigned section = same_section(key, known) ? 0 : 2;
	unsigned d = str_distance(a, b), whole = str_distance(key, known);
	unsigned allowed = 1 + (unsigned)shorter / 3,
		 elsewhere = shorter < 6 ? (unsigned)shorter / 3 : 2;

	if (shorter >= 4 && strncasecmp(a, b, shorter) == 0 && d > 2)
		d = 2;
	if (d <= (section ? elsewhere : allowed) && (d == 0 || d < n))
		return d + section;
	return whole <= 1 + strlen(key) / 6 ? whole + 2 : FAR;
}

const char *opt_nearest_key(const struct opt *rows, size_t n, const char *key)
{
	const char *best = NULL;
	unsigned best_d = FAR;

	for (size_t i = 0; i < n; i++) {
		unsigned d = key_distance(key, rows[i].key);

		if (d < best_d) {
			best = rows[i].key;
			best_d = d;
		}
	}
	return best;
}

static struct node *default_node(const struct opt *row, struct err *e)
{
	struct node_mark mark = {.file = "defaults"};

	if (!row->def)
		return node_new(NODE_NULL, mark);
	if (row->type == OPT_STR || row->type == OPT_ENUM)
		return node_new_str(row->def, mark);
	if (row->def[0] == '[' || row->def[0] == '{')
		return override_parse_value(row->def, e);
	return yaml_plain_scalar(row->def, mark);
}

int opt_set_defaults(const struct opt *rows, size_t n, void *base, struct err *e)
{
	for (size_t i = 0; i < n; i++) {
		struct node *v = default_node(&rows[i], e);
		int rc = v ? opt_set_node(&rows[i], v, base, e) : ERR_USAGE;

		node_free(v);
		if (rc != 0)
			return rc;
	}
	return 0;
}

static struct node *number_node(double v)
{
	struct node *n = node_new(NODE_FLOAT, (struct node_mark){0});

	n->f = v;
	if (v == floor(v) && fabs(v) < 1e15) {
		n->kind = NODE_INT;
		n->i = (int64_t)v;
	}
	return n;
}

static struct node *i64_node(int64_t v)
{
	struct node *n = node_new(NODE_INT, (struct node_mark){0});

	n->i = v;
	n->f = (double)v;
	return n;
}

static struct node *str_node(const char *s)
{
	struct node_mark mark = {0};

	return s ? node_new_str(s, mark) : node_new(NODE_NULL, mark);
}

static struct node *time_node(const struct time_dist *d)
{
	AUTO_FREE char *python = NULL;

	if (d->kind == TIME_CONSTANT)
		return number_node(d->a);
	/* Python's dict is YAML's flow style, except that a reader has to take the quotes off */
	python = time_dist_python(d);
	return yaml_parse(python, strlen(python), "defaults", NULL);
}

static struct node *field_node(const struct opt *row, const void *field)
{
	const struct i64_list *numbers = field;
	const struct str_list *texts = field;
	struct node *n;

	switch (row->type) {
	case OPT_BOOL:
		n = node_new(NODE_BOOL, (struct node_mark){0});
		n->b = *(const bool *)field;
		return n;
	case OPT_I64:
		return i64_node(*(const int64_t *)field);
	case OPT_F64:
		return number_node(*(const double *)field);
	case OPT_STR:
		return str_node(*(char *const *)field);
	case OPT_ENUM:
		return str_node(row->choices[*(const int *)field]);
	case OPT_I64_LIST:
		n = node_new(NODE_LIST, (struct node_mark){0});
		for (size_t i = 0; i < numbers->n; i++)
			node_append(n, i64_node(numbers->v[i]));
		return n;
	case OPT_STR_LIST:
		n = node_new(NODE_LIST, (struct node_mark){0});
		for (size_t i = 0; i < texts->n; i++)
			node_append(n, str_node(texts->v[i]));
		return n;
	case OPT_TIME:
		return time_node(field);
	case OPT_MAP:
		n = node_clone(*(struct node *const *)field);
		return n ? n : str_node(NULL);
	}
	return str_node(NULL);
}

char *opt_get_text(const struct opt *row, const void *base)
{
	struct node *n = field_node(row, (const char *)base + row->offset);
	struct buf text = {0};

	if (row->type == OPT_ENUM)
		buf_puts(&text, n->s);
	else
		node_emit_flow(n, &text);
	node_free(n);
	return buf_take(&text);
}

void str_list_add(struct str_list *list, char *text)
{
	list->v = xrealloc(list->v, (list->n + 1) * sizeof(*list->v));
	list->v[list->n++] = text;
}

void str_list_release(struct str_list *list)
{
	for (size_t i = 0; i < list->n; i++)
		free(list->v[i]);
	free(list->v);
	*list = (struct str_list){0};
}
