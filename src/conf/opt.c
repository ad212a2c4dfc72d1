/* Rows as a table: lookup, suggestions, fields set from nodes, defaults, values back as text. */
#include "conf/opt.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/str.h"
#include "conf/override.h"
#include "conf/quantity.h"

#define NO_LIMIT 9e18 /* a maximum of this size stands for "none" */

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

/* 0: the same section; 1: a misspelt one; 2: another. */
static unsigned section_distance(const char *a, const char *b)
{
	AUTO_FREE char *x = xstrndup(a, (size_t)(last_part(a) - a));
	AUTO_FREE char *y = xstrndup(b, (size_t)(last_part(b) - b));

	if (strcasecmp(x, y) == 0)
		return 0;
	return strlen(x) > 4 && str_distance(x, y) <= 2 ? 1 : 2;
}

#define FAR 1000u

/* How unlikely it is that `key` means `known`; FAR when it does not. */
static unsigned key_distance(const char *key, const char *known)
{
	const char *a = last_part(key), *b = last_part(known);
	size_t n = strlen(a), m = strlen(b), shorter = n < m ? n : m;
	unsigned section = section_distance(key, known);
	unsigned d = str_distance(a, b), whole = str_distance(key, known);
	unsigned allowed = 1 + (unsigned)shorter / 3,
		 elsewhere = shorter < 6 ? (unsigned)shorter / 3 : 2;

	if (shorter >= 4 && strncasecmp(a, b, shorter) == 0 && d > 2)
		d = 2;
	/* "checkpoint.folder" for "checkpoint.checkpoint_folder" */
	if (section == 0 && n >= 4 && m > n && b[m - n - 1] == '_' && strcasecmp(b + m - n, a) == 0)
		return 1;
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

/* ---- from a node to the C field that a row describes ---- */

/* The unit that a text may have: a number from 0 to 1 without one is a fraction. */
static const char *unit_of(const struct opt *row)
{
	bool fraction = row->type == OPT_F64 && !row->unit && row->min == 0 && row->max == 1;

	return fraction ? QUANTITY_FRACTION : row->unit;
}

static void limit_text(double v, char *out, size_t out_size)
{
	if (v == floor(v) && fabs(v) < 1e15)
		snprintf(out, out_size, "%.0f", v);
	else
		snprintf(out, out_size, "%g", v);
}

static int out_of_range(const struct opt *row, const struct node *v, bool below, struct err *e)
{
	const char *unit = row->unit ? row->unit : "", *space = row->unit ? " " : "";
	char min[40], max[40], q[NODE_QUOTE_MAX];

	limit_text(row->min, min, sizeof(min));
	limit_text(row->max, max, sizeof(max));
	node_quote(v, q, sizeof(q));
	if (row->max >= NO_LIMIT && below)
		return node_refuse(v, row->key, e,
				   "%s is below the minimum %s (allowed: %s%s%s or more)", q, min,
				   min, space, unit);
	if (strcmp(unit_of(row) ? unit_of(row) : "", QUANTITY_FRACTION) == 0 && v->f >= 2 &&
	    v->f <= 100)
		return node_refuse(
			v, row->key, e,
			"write %g for %g %%: %s is above the maximum 1 (allowed: 0 to 1)",
			v->f / 100, v->f, q);
	return node_refuse(v, row->key, e, "%s is %s %s (allowed: %s to %s%s%s)", q,
			   below ? "below the minimum" : "above the maximum", below ? min : max,
			   min, max, space, unit);
}

static int check_range(const struct opt *row, const struct node *v, double value, struct err *e)
{
	if (row->min == 0 && row->max == 0)
		return 0;
	if (value < row->min)
		return out_of_range(row, v, true, e);
	if (value > row->max)
		return out_of_range(row, v, false, e);
	return 0;
}

/* The number that a text with a unit stands for, as a node of the same place. 0: `v` is no such
 * text. */
static int with_unit(const struct opt *row, const struct node *v, struct node *out, struct err *e)
{
	char why[QUANTITY_WHY_MAX];
	long double value;
	int rc = v->kind == NODE_STR ? quantity_read(v->s, unit_of(row), &value, why) : 0;

	if (rc < 0)
		return node_refuse(v, row->key, e, "%s", why);
	if (rc == 0)
		return 0;
	if (!isfinite((double)value))
		return node_refuse(v, row->key, e, "'%.60s' is too large", v->s);
	/* the sentences of the range quote what was written */
	*out = (struct node){.kind = NODE_FLOAT, .mark = v->mark, .f = (double)value, .s = v->s};
	if (value == floorl(value) && fabsl(value) < 0x1p63L) {
		out->kind = NODE_INT;
		out->i = (int64_t)value;
	}
	return 1;
}

static int to_bool(const struct opt *row, const struct node *v, bool *out, struct err *e)
{
	char q[NODE_QUOTE_MAX];

	if (v->kind == NODE_BOOL) {
		*out = v->b;
		return 0;
	}
	if (v->kind == NODE_INT && (v->i == 0 || v->i == 1)) {
		*out = v->i == 1;
		return 0;
	}
	if (v->kind == NODE_STR &&
	    (strcasecmp(v->s, "true") == 0 || strcasecmp(v->s, "false") == 0)) {
		*out = strcasecmp(v->s, "true") == 0;
		return 0;
	}
	return node_refuse(v, row->key, e, "%s is not a boolean: write true or false",
			   node_quote(v, q, sizeof(q)));
}

static int to_i64(const struct opt *row, const struct node *v, int64_t *out, struct err *e)
{
	struct node number;
	char q[NODE_QUOTE_MAX];
	int rc = with_unit(row, v, &number, e);

	if (rc < 0)
		return rc;
	v = rc == 1 ? &number : v;
	node_quote(v, q, sizeof(q));
	if (v->kind == NODE_STR && v->quoted && yaml_plain_kind(v->s) == NODE_INT)
		return node_refuse(v, row->key, e,
				   "%s is text, but a whole number is needed: remove the quotes",
				   q);
	if (v->kind != NODE_INT && (v->kind != NODE_FLOAT || v->f != floor(v->f) || isinf(v->f)))
		return node_refuse(v, row->key, e, "%s is not a whole number%s%s%s", q,
				   rc == 1 ? " of " : "", rc == 1 ? row->unit : "",
				   v->kind == NODE_STR ? quantity_example(row->unit) : "");
	/* the sentence of the range says more than that 64 bits are too few */
	rc = check_range(row, v, v->f, e);
	if (rc != 0)
		return rc;
	if (v->kind == NODE_FLOAT && (v->f < -0x1p63 || v->f >= 0x1p63))
		return node_refuse(v, row->key, e, "%s does not fit into a 64-bit integer", q);
	*out = v->kind == NODE_INT ? v->i : (int64_t)v->f;
	return 0;
}

static int to_f64(const struct opt *row, const struct node *v, double *out, struct err *e)
{
	bool inf_ok = isinf(row->min) || isinf(row->max);
	struct node number;
	char q[NODE_QUOTE_MAX];
	int rc = with_unit(row, v, &number, e);

	if (rc < 0)
		return rc;
	v = rc == 1 ? &number : v;
	node_quote(v, q, sizeof(q));
	if (v->kind == NODE_STR && v->quoted &&
	    (yaml_plain_kind(v->s) == NODE_INT || yaml_plain_kind(v->s) == NODE_FLOAT))
		return node_refuse(v, row->key, e,
				   "%s is text, but a number is needed: remove the quotes", q);
	if (v->kind != NODE_INT && v->kind != NODE_FLOAT)
		return node_refuse(v, row->key, e, "%s is not a number%s", q,
				   v->kind == NODE_STR ? quantity_example(row->unit) : "");
	if (isnan(v->f) || (isinf(v->f) && !inf_ok))
		return node_refuse(v, row->key, e, "%s is not a finite number", q);
	rc = check_range(row, v, v->f, e);
	if (rc == 0)
		*out = v->f;
	return rc;
}

/* The text of any scalar: a file prefix 2024 or a name 1e3 is meant as written. */
static const char *scalar_text(const struct node *v)
{
	if (v->kind == NODE_BOOL)
		return v->s ? v->s : v->b ? "true" : "false";
	return v->kind == NODE_LIST || v->kind == NODE_MAP ? NULL : v->s;
}

static int to_str(const struct opt *row, const struct node *v, char **out, struct err *e)
{
	const char *text = scalar_text(v);

	if (!text && v->kind != NODE_NULL)
		return node_refuse(v, row->key, e, "text is needed here, not %s",
				   node_kind_name(v->kind));
	free(*out);
	*out = text ? xstrdup(text) : NULL;
	return 0;
}

static int choice_index(const struct opt *row, const char *text)
{
	for (int i = 0; text && row->choices[i]; i++) {
		if (strcasecmp(row->choices[i], text) == 0)
			return i;
	}
	return -1;
}

static int bad_choice(const struct opt *row, const struct node *v, struct err *e)
{
	const char *near = NULL, *text = scalar_text(v);
	struct buf names = {0};
	char q[NODE_QUOTE_MAX];
	size_t n = 0;
	int rc;

	for (; row->choices[n]; n++)
		buf_printf(&names, "%s%s", n ? ", " : "", row->choices[n]);
	if (text)
		near = str_nearest(text, row->choices, n);
	rc = node_refuse(v, row->key, e, "%s is not one of %s", node_quote(v, q, sizeof(q)),
			 names.data ? names.data : "(none)");
	buf_release(&names);
	if (near && e) {
		struct err rest = *e;

		err_set(e, rc, "did you mean %.60s? %.900s", near, rest.text);
	}
	return rc;
}

static int to_enum(const struct opt *row, const struct node *v, int *out, struct err *e)
{
	int at = -1;

	if (v->kind == NODE_BOOL)
		at = choice_index(row, v->b ? "on" : "off");
	if (v->kind == NODE_BOOL && at < 0)
		at = choice_index(row, v->b ? "true" : "false");
	else if (v->kind == NODE_NULL)
		at = choice_index(row, "none");
	if (at < 0)
		at = choice_index(row, scalar_text(v));
	if (at < 0)
		return bad_choice(row, v, e);
	*out = at;
	return 0;
}

static int to_i64_list(const struct opt *row, const struct node *v, struct i64_list *out,
		       struct err *e)
{
	struct i64_list list = {0};
	char q[NODE_QUOTE_MAX];

	if (v->kind != NODE_LIST && v->kind != NODE_NULL)
		return node_refuse(v, row->key, e, "a list such as [4, 4] is needed, not %s",
				   node_quote(v, q, sizeof(q)));
	if (v->n) {
		list.v = try_calloc(v->n, sizeof(*list.v), row->key, e);
		if (!list.v)
			return -ENOMEM;
	}
	for (; list.n < v->n; list.n++) {
		int rc = to_i64(row, v->child[list.n], &list.v[list.n], e);

		if (rc != 0) {
			free(list.v);
			return rc;
		}
	}
	free(out->v);
	*out = list;
	return 0;
}

static int to_str_list(const struct opt *row, const struct node *v, struct str_list *out,
		       struct err *e)
{
	struct node *const one = (struct node *)(uintptr_t)v;
	struct node *const *item = v->kind == NODE_LIST ? v->child : &one;
	size_t n = v->kind == NODE_LIST ? v->n : v->kind != NODE_NULL;
	struct str_list list = {0};

	if (v->kind == NODE_MAP)
		return node_refuse(v, row->key, e, "a list of texts is needed, not a map");
	list.v = n ? xcalloc(n, sizeof(*list.v)) : NULL;
	for (; list.n < n; list.n++) {
		const char *text = scalar_text(item[list.n]);

		if (!text) {
			str_list_release(&list);
			return node_refuse(item[list.n], row->key, e,
					   "an item is %s, but every item must be text",
					   node_kind_name(item[list.n]->kind));
		}
		list.v[list.n] = xstrdup(text);
	}
	str_list_release(out);
	*out = list;
	return 0;
}

static int to_map(const struct opt *row, const struct node *v, struct node **out, struct err *e)
{
	enum node_kind kind = row->type == OPT_MAP ? NODE_MAP : NODE_LIST;
	char q[NODE_QUOTE_MAX];

	if (v->kind != kind && v->kind != NODE_NULL)
		return node_refuse(v, row->key, e, "%s is needed, not %s", node_kind_name(kind),
				   node_quote(v, q, sizeof(q)));
	node_free(*out);
	*out = v->kind == kind ? node_clone(v) : NULL;
	return 0;
}

static void set_zero(const struct opt *row, void *field)
{
	if (row->type == OPT_BOOL)
		*(bool *)field = false;
	else if (row->type == OPT_I64)
		*(int64_t *)field = 0;
	else if (row->type == OPT_F64)
		*(double *)field = 0;
	else if (row->type == OPT_ENUM)
		*(int *)field = 0;
}

static bool null_resets(const struct opt *row)
{
	return !row->def && (row->type == OPT_BOOL || row->type == OPT_I64 ||
			     row->type == OPT_F64 || row->type == OPT_ENUM);
}

int opt_set_node(const struct opt *row, const struct node *v, void *base, struct err *e)
{
	void *field = (char *)base + row->offset;

	if (v->kind == NODE_NULL && null_resets(row)) {
		set_zero(row, field);
		return 0;
	}
	switch (row->type) {
	case OPT_BOOL:
		return to_bool(row, v, field, e);
	case OPT_I64:
		return to_i64(row, v, field, e);
	case OPT_F64:
		return to_f64(row, v, field, e);
	case OPT_STR:
		return to_str(row, v, field, e);
	case OPT_ENUM:
		return to_enum(row, v, field, e);
	case OPT_I64_LIST:
		return to_i64_list(row, v, field, e);
	case OPT_STR_LIST:
		return to_str_list(row, v, field, e);
	case OPT_TIME:
		return time_dist_set_node(field, v, row, e);
	case OPT_MAP:
	case OPT_NODES:
		return to_map(row, v, field, e);
	}
	return err_set(e, ERR_USAGE, "%s: the option table holds an unknown type", row->key);
}

void opt_release(const struct opt *rows, size_t n, void *base)
{
	for (size_t i = 0; i < n; i++) {
		void *field = (char *)base + rows[i].offset;

		if (rows[i].type == OPT_STR) {
			free(*(char **)field);
			*(char **)field = NULL;
		} else if (rows[i].type == OPT_I64_LIST) {
			free(((struct i64_list *)field)->v);
			*(struct i64_list *)field = (struct i64_list){0};
		} else if (rows[i].type == OPT_STR_LIST) {
			str_list_release(field);
		} else if (rows[i].type == OPT_MAP || rows[i].type == OPT_NODES) {
			node_free(*(struct node **)field);
			*(struct node **)field = NULL;
		}
	}
}

/* ---- defaults, and back to text ---- */

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
	struct node *n;

	if (d->kind == TIME_CONSTANT)
		return number_node(d->a);
	/* Python's dict is YAML's flow style, except that a reader has to take the quotes off */
	python = time_dist_python(d);
	n = yaml_parse(python, strlen(python), "defaults", NULL);
	if (!n)
		out_of_memory();
	return n;
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
	case OPT_NODES:
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

void str_list_copy(struct str_list *list, const struct str_list *from)
{
	for (size_t i = 0; i < from->n; i++)
		str_list_add(list, xstrdup(from->v[i]));
}

void str_list_put_first(struct str_list *list, const struct str_list *other, size_t from)
{
	struct str_list all = {0};

	for (size_t i = from; i < other->n; i++)
		str_list_add(&all, xstrdup(other->v[i]));
	str_list_copy(&all, list);
	str_list_release(list);
	*list = all;
}

void str_list_release(struct str_list *list)
{
	for (size_t i = 0; i < list->n; i++)
		free(list->v[i]);
	free(list->v);
	*list = (struct str_list){0};
}
