/* Types of unquoted words in overrides, and the cast functions. */
#include <ctype.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/str.h"
#include "conf/override_text.h"

/* digit (_? digit)* */
static const char *skip_digits(const char *s)
{
	if (!isdigit((unsigned char)*s))
		return NULL;
	while (isdigit((unsigned char)*s) || (*s == '_' && isdigit((unsigned char)s[1])))
		s++;
	return s;
}

/* 0 | [1-9] (_? digit)* */
static const char *skip_unsigned(const char *s)
{
	return *s == '0' ? s + 1 : skip_digits(s);
}

static const char *skip_sign(const char *s)
{
	return *s == '+' || *s == '-' ? s + 1 : s;
}

static bool is_int(const char *s)
{
	const char *end = skip_unsigned(skip_sign(s));

	return end && *end == '\0';
}

static bool is_float(const char *s)
{
	const char *p = skip_sign(s), *q;

	if (strcasecmp(p, "inf") == 0 || strcasecmp(p, "nan") == 0)
		return true;
	q = skip_unsigned(p);
	if (!q && *p != '.')
		return false;
	p = q ? q : p;
	if (*p == '.') {
		const char *fraction = skip_digits(p + 1);

		if (!q && !fraction)
			return false;
		p = fraction ? fraction : p + 1;
	}
	if (*p == 'e' || *p == 'E')
		p = skip_digits(skip_sign(p + 1));
	return p && *p == '\0';
}

static double float_value(const char *text)
{
	AUTO_FREE char *plain = xstrdup(text);
	char *o = plain;

	for (const char *s = text; *s; s++) {
		if (*s != '_')
			*o++ = *s;
	}
	*o = '\0';
	return strtod(plain, NULL);
}

struct node *override_scalar(const char *text, struct node_mark mark)
{
	struct node *n;

	if (is_int(text))
		return yaml_plain_scalar(text, mark);
	if (strcasecmp(text, "null") == 0)
		return node_new(NODE_NULL, mark);
	n = node_new_str(text, mark);
	if (is_float(text)) {
		n->kind = NODE_FLOAT;
		n->f = float_value(text);
	} else if (strcasecmp(text, "true") == 0 || strcasecmp(text, "false") == 0) {
		n->kind = NODE_BOOL;
		n->b = tolower((unsigned char)*text) == 't';
	}
	return n;
}

bool override_is_cast(const char *name)
{
	return strcmp(name, "int") == 0 || strcmp(name, "float") == 0 || strcmp(name, "str") == 0 ||
	       strcmp(name, "bool") == 0;
}

static int refuse_cast(const struct override_text *t, const char *name, const struct node *v)
{
	char q[NODE_QUOTE_MAX];

	return override_fail(t, "%s() cannot convert %s", name, node_quote(v, q, sizeof(q)));
}

static void set_number(struct node *v, enum node_kind kind, double f, int64_t i)
{
	struct node *n = node_new(kind, v->mark);

	n->f = f;
	n->i = i;
	node_become(v, n);
}

/* The number that a scalar holds, as Python's float() and int() see it. */
static bool numeric(const struct node *v, double *f)
{
	struct node *n;
	bool ok;

	if (v->kind == NODE_BOOL)
		*f = v->b;
	else if (v->kind == NODE_INT || v->kind == NODE_FLOAT)
		*f = v->f;
	if (v->kind != NODE_STR)
		return v->kind != NODE_NULL;
	n = override_scalar(v->s, v->mark);
	ok = n->kind == NODE_INT || n->kind == NODE_FLOAT;
	*f = n->f;
	node_free(n);
	return ok || str_to_f64(v->s, f);
}

static int cast_int(const struct override_text *t, struct node *v)
{
	int64_t i;
	double f;

	if (v->kind == NODE_INT)
		return 0;
	if (v->kind == NODE_STR && str_to_i64(v->s, &i)) {
		set_number(v, NODE_INT, (double)i, i);
		return 0;
	}
	if (!numeric(v, &f) || !isfinite(f) || fabs(f) >= 0x1p63 ||
	    (v->kind == NODE_STR && (f != floor(f) || strpbrk(v->s, ".eExX"))))
		return refuse_cast(t, "int", v);
	set_number(v, NODE_INT, trunc(f), (int64_t)f);
	return 0;
}

static int cast_float(const struct override_text *t, struct node *v)
{
	double f;

	if (!numeric(v, &f) || (v->kind == NODE_STR && strpbrk(v->s, "xX")))
		return refuse_cast(t, "float", v);
	set_number(v, NODE_FLOAT, f, 0);
	return 0;
}

static int cast_bool(const struct override_text *t, struct node *v)
{
	struct node *n;
	bool b;

	if (v->kind == NODE_BOOL)
		return 0;
	if (v->kind == NODE_INT || v->kind == NODE_FLOAT)
		b = v->f != 0;
	else if (v->kind == NODE_STR && strcasecmp(v->s, "true") == 0)
		b = true;
	else if (v->kind == NODE_STR && strcasecmp(v->s, "false") == 0)
		b = false;
	else
		return refuse_cast(t, "bool", v);
	n = node_new(NODE_BOOL, v->mark);
	n->b = b;
	node_become(v, n);
	return 0;
}

static int cast_str(struct node *v)
{
	char number[NODE_FLOAT_TEXT_MAX];
	struct node *n;

	if (v->kind == NODE_STR)
		return 0;
	if (v->kind == NODE_INT) {
		AUTO_FREE char *text = xasprintf("%" PRId64, v->i);

		n = node_new_str(text, v->mark);
	} else if (v->kind == NODE_FLOAT) {
		n = node_new_str(node_float_text(v->f, number, sizeof(number)), v->mark);
	} else {
		n = node_new_str(v->kind == NODE_NULL ? "null" : v->b ? "true" : "false", v->mark);
	}
	n->quoted = true;
	node_become(v, n);
	return 0;
}

int override_cast(const struct override_text *t, const char *name, struct node *v)
{
	if (v->kind == NODE_LIST || v->kind == NODE_MAP) {
		int rc = 0;

		for (size_t i = 0; i < v->n && rc == 0; i++)
			rc = override_cast(t, name, v->child[i]);
		return rc;
	}
	if (strcmp(name, "int") == 0)
		return cast_int(t, v);
	if (strcmp(name, "float") == 0)
		return cast_float(t, v);
	return strcmp(name, "bool") == 0 ? cast_bool(t, v) : cast_str(v);
}
