/* The document tree: growth, lookup, copies, deep merge. */
#include "conf/node.h"
#include "conf/override.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/str.h"
#include "base/map.h"

const char *node_file_name(const char *file)
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	static struct texts names;
	const char *name;
	size_t number;

	pthread_mutex_lock(&lock);
	number = texts_add(&names, file); /* may move the list, but no text */
	name = names.v[number];
	pthread_mutex_unlock(&lock);
	return name;
}

char *node_mark_text(struct node_mark mark, char *out, size_t out_size)
{
	if (!mark.file)
		snprintf(out, out_size, "configuration");
	else if (strcmp(mark.file, NODE_COMMAND_LINE) == 0)
		snprintf(out, out_size, "%s", override_place());
	else if (mark.line > 0)
		snprintf(out, out_size, "%s: line %d", mark.file, mark.line);
	else
		snprintf(out, out_size, "%s", mark.file);
	return out;
}

/* The exponent of the shortest form decides between plain and scientific, as in Python. */
char *node_float_text(double v, char *out, size_t out_size)
{
	char digits[40], mantissa[32];
	int precision = 0, exponent, n;

	if (isnan(v) || isinf(v)) {
		snprintf(out, out_size, isnan(v) ? "nan" : v < 0 ? "-inf" : "inf");
		return out;
	}
	do {
		snprintf(digits, sizeof(digits), "%.*e", precision, v);
	} while (strtod(digits, NULL) != v && ++precision < 17);
	exponent = (int)strtol(strchr(digits, 'e') + 1, NULL, 10);
	if (exponent >= -4 && exponent < 16) {
		int decimals = precision - exponent;

		snprintf(out, out_size, "%.*f", decimals > 1 ? decimals : 1, v);
		return out;
	}
	n = (int)(strchr(digits, 'e') - digits);
	snprintf(mantissa, sizeof(mantissa), "%.*s", n, digits);
	snprintf(out, out_size, "%se%c%02d", mantissa, exponent < 0 ? '-' : '+', abs(exponent));
	return out;
}

char *node_quote(const struct node *v, char *out, size_t out_size)
{
	const int cut = 60;

	if (v->kind == NODE_LIST || v->kind == NODE_MAP || v->kind == NODE_NULL)
		snprintf(out, out_size, "%s", node_kind_name(v->kind));
	else if (v->kind == NODE_STR && strlen(v->s) > (size_t)cut)
		snprintf(out, out_size, "'%.*s...'", cut, v->s);
	else if (v->kind == NODE_STR)
		snprintf(out, out_size, "'%s'", v->s);
	else if (v->s)
		snprintf(out, out_size, "%.*s", cut, v->s);
	else if (v->kind == NODE_BOOL)
		snprintf(out, out_size, "%s", v->b ? "true" : "false");
	else if (v->kind == NODE_INT)
		snprintf(out, out_size, "%" PRId64, v->i);
	else
		node_float_text(v->f, out, out_size);
	return out;
}

int node_refuse(const struct node *v, const char *key, struct err *e, const char *fmt, ...)
{
	char where[512];
	va_list ap;

	if (!e)
		return ERR_USAGE;
	va_start(ap, fmt);
	err_vset(e, ERR_USAGE, fmt, ap);
	va_end(ap);
	return err_wrap(e, "%s: %s", node_mark_text(v->mark, where, sizeof(where)), key);
}

struct node *node_new(enum node_kind kind, struct node_mark mark)
{
	struct node *n = xcalloc(1, sizeof(*n));

	n->kind = kind;
	n->mark = mark;
	return n;
}

struct node *node_new_str(const char *s, struct node_mark mark)
{
	struct node *n = node_new(NODE_STR, mark);

	n->s = xstrdup(s);
	return n;
}

static void release_content(struct node *n)
{
	for (size_t i = 0; i < n->n; i++) {
		node_free(n->child[i]);
		if (n->key)
			free(n->key[i]);
	}
	free(n->child);
	free(n->key);
	free(n->key_mark);
	free(n->s);
}

void node_free(struct node *n)
{
	if (!n)
		return;
	release_content(n);
	free(n);
}

void node_become(struct node *n, struct node *from)
{
	release_content(n);
	*n = *from;
	free(from);
}

static void node_grow(struct node *n)
{
	if (n->n < n->cap)
		return;
	n->cap = n->cap ? 2 * n->cap : 4;
	n->child = xrealloc(n->child, n->cap * sizeof(*n->child));
	if (n->kind != NODE_MAP)
		return;
	n->key = xrealloc(n->key, n->cap * sizeof(*n->key));
	n->key_mark = xrealloc(n->key_mark, n->cap * sizeof(*n->key_mark));
}

void node_append(struct node *list, struct node *v)
{
	assert(list->kind == NODE_LIST && v);
	node_grow(list);
	list->child[list->n++] = v;
}

void node_add(struct node *map, const char *key, struct node_mark key_mark, struct node *v)
{
	assert(map->kind == NODE_MAP && v);
	node_grow(map);
	map->child[map->n] = v;
	map->key[map->n] = xstrdup(key);
	map->key_mark[map->n] = key_mark;
	map->n++;
}

struct node *node_clone(const struct node *n)
{
	struct node *c;

	if (!n)
		return NULL;
	c = node_new(n->kind, n->mark);
	c->b = n->b;
	c->i = n->i;
	c->f = n->f;
	c->quoted = n->quoted;
	c->literal = n->literal;
	c->s = n->s ? xstrdup(n->s) : NULL;
	for (size_t i = 0; i < n->n; i++) {
		if (n->kind == NODE_MAP)
			node_add(c, n->key[i], n->key_mark[i], node_clone(n->child[i]));
		else
			node_append(c, node_clone(n->child[i]));
	}
	return c;
}

const char *node_kind_name(enum node_kind kind)
{
	static const char *const name[] = {
		[NODE_NULL] = "null",          [NODE_BOOL] = "a boolean",
		[NODE_INT] = "a whole number", [NODE_FLOAT] = "a real number",
		[NODE_STR] = "text",           [NODE_LIST] = "a list",
		[NODE_MAP] = "a map",
	};

	return name[kind];
}

static bool find_key(const struct node *map, const char *key, size_t *at)
{
	if (!map || map->kind != NODE_MAP)
		return false;
	for (size_t i = 0; i < map->n; i++) {
		if (strcmp(map->key[i], key) == 0) {
			*at = i;
			return true;
		}
	}
	return false;
}

struct node *node_get(const struct node *map, const char *key)
{
	size_t at;

	return find_key(map, key, &at) ? map->child[at] : NULL;
}

void node_set(struct node *map, const char *key, struct node *v)
{
	size_t at;

	if (!find_key(map, key, &at)) {
		node_add(map, key, v->mark, v);
		return;
	}
	node_free(map->child[at]);
	map->child[at] = v;
	map->key_mark[at] = v->mark;
}

bool node_unset(struct node *map, const char *key)
{
	size_t at, rest;

	if (!find_key(map, key, &at))
		return false;
	node_free(map->child[at]);
	free(map->key[at]);
	rest = map->n - at - 1;
	memmove(map->child + at, map->child + at + 1, rest * sizeof(*map->child));
	memmove(map->key + at, map->key + at + 1, rest * sizeof(*map->key));
	memmove(map->key_mark + at, map->key_mark + at + 1, rest * sizeof(*map->key_mark));
	map->n--;
	return true;
}

struct node *node_step(const struct node *n, const char *component)
{
	uint64_t at;

	if (!n)
		return NULL;
	if (n->kind == NODE_MAP)
		return node_get(n, component);
	if (n->kind == NODE_LIST && str_to_u64(component, &at) && at < n->n)
		return n->child[at];
	return NULL;
}

struct node *node_path(const struct node *root, const char *dotted)
{
	AUTO_FREE char *copy = xstrdup(dotted);
	char *rest = copy, *part;
	struct node *found = NULL;

	while ((part = strsep(&rest, "."))) {
		found = node_step(root, part);
		if (!found)
			return NULL;
		root = found;
	}
	return found;
}

void node_merge(struct node *into, const struct node *from)
{
	if (into->kind != NODE_MAP || from->kind != NODE_MAP) {
		node_become(into, node_clone(from));
		return;
	}
	for (size_t i = 0; i < from->n; i++) {
		size_t at;

		if (!find_key(into, from->key[i], &at)) {
			node_add(into, from->key[i], from->key_mark[i], node_clone(from->child[i]));
			continue;
		}
		node_merge(into->child[at], from->child[i]);
		into->key_mark[at] = from->key_mark[i];
	}
}

bool node_equal(const struct node *a, const struct node *b)
{
	bool numbers = (a->kind == NODE_INT || a->kind == NODE_FLOAT) &&
		       (b->kind == NODE_INT || b->kind == NODE_FLOAT);

	if (numbers && a->kind == NODE_INT && b->kind == NODE_INT)
		return a->i == b->i;
	if (numbers)
		return a->f == b->f;
	if (a->kind != b->kind || a->n != b->n)
		return false;
	if (a->kind == NODE_BOOL)
		return a->b == b->b;
	if (a->kind == NODE_STR)
		return strcmp(a->s, b->s) == 0;
	for (size_t i = 0; i < a->n; i++) {
		const struct node *other =
			a->kind == NODE_MAP ? node_get(b, a->key[i]) : b->child[i];

		if (!other || !node_equal(a->child[i], other))
			return false;
	}
	return true;
}

static void add_component(struct buf *path, const struct node *n, size_t i)
{
	const char *dot = path->len ? "." : "";

	if (n->kind == NODE_MAP)
		buf_printf(path, "%s%s", dot, n->key[i]);
	else
		buf_printf(path, "%s%zu", dot, i);
}

/* Of what only one tree has, the first value that is no map. */
static const struct node *first_value(const struct node *n, struct buf *path)
{
	while (n->kind == NODE_MAP && n->n) {
		add_component(path, n, 0);
		n = n->child[0];
	}
	return n;
}

/* What is at place `i` of `a` in another node of its kind. */
static const struct node *same_place(const struct node *a, size_t i, const struct node *b)
{
	if (a->kind == NODE_MAP)
		return node_get(b, a->key[i]);
	return i < b->n ? b->child[i] : NULL;
}

bool node_first_difference(const struct node *a, const struct node *b, struct buf *path,
			   const struct node **x, const struct node **y)
{
	bool inside = a->kind == b->kind && (a->kind == NODE_MAP || a->kind == NODE_LIST);

	*x = a;
	*y = b;
	if (node_equal(a, b))
		return false;
	for (size_t i = 0; inside && i < a->n; i++) {
		const struct node *other = same_place(a, i, b);

		if (other && node_equal(a->child[i], other))
			continue;
		add_component(path, a, i);
		if (other)
			return node_first_difference(a->child[i], other, path, x, y);
		*x = first_value(a->child[i], path);
		*y = NULL;
		return true;
	}
	for (size_t i = 0; inside && i < b->n; i++) {
		if (same_place(b, i, a))
			continue;
		add_component(path, b, i);
		*x = NULL;
		*y = first_value(b->child[i], path);
		return true;
	}
	return true;
}

size_t node_count(const struct node *n)
{
	size_t total = 1;

	for (size_t i = 0; i < n->n; i++)
		total += node_count(n->child[i]);
	return total;
}

int node_depth(const struct node *n)
{
	int deepest = 0;

	for (size_t i = 0; i < n->n; i++) {
		int d = node_depth(n->child[i]);

		if (d > deepest)
			deepest = d;
	}
	return deepest + 1;
}
