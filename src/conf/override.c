/* One override as typed: operation, key, value by Hydra's grammar; and a text as such a value. */
#include "conf/override.h"

#include <ctype.h>
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/str.h"
#include "conf/opt.h"

#define KEYS_MAX 10000

/* Besides letters and digits. Bytes of UTF-8 sequences are accepted too, which Hydra refuses. */
#define WORD_CHARS "_/-+.$%*@?| \t"
#define ESCAPABLE "\\()[]{}:=, \t"

/* A position in the typed text, and where its errors go. */
struct override_text {
	const char *whole; /* as typed, for sentences */
	const char *at;
	size_t nodes;
	struct err *e;
};

static _Thread_local const char *place = "command line";

void override_place_set(const char *now)
{
	place = now;
}

const char *override_place(void)
{
	return place;
}

/* ERR_USAGE: "command line: 'TEXT': column N: sentence", for the character at `t->at`. */
static int override_fail(const struct override_text *t, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

static int override_fail(const struct override_text *t, const char *fmt, ...)
{
	size_t n = strlen(t->whole);
	va_list ap;

	if (!t->e)
		return ERR_USAGE;
	va_start(ap, fmt);
	err_vset(t->e, ERR_USAGE, fmt, ap);
	va_end(ap);
	return err_wrap(t->e, "%s: '%.120s%s': column %zu", place, t->whole, n > 120 ? "..." : "",
			(size_t)(t->at - t->whole) + 1);
}

/* ---- unquoted words and casts ---- */

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

static struct node *override_scalar(const char *text, struct node_mark mark)
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

static bool override_is_cast(const char *name)
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
	double f = 0;

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

static int override_cast(const struct override_text *t, const char *name, struct node *v)
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

/* ---- values ---- */

static int read_element(struct override_text *t, int depth, struct node **out);

static struct node_mark here(const struct override_text *t)
{
	return (struct node_mark){NODE_COMMAND_LINE, 0, (int)(t->at - t->whole) + 1};
}

static void skip_space(struct override_text *t)
{
	t->at += strspn(t->at, " \t");
}

static int count_node(struct override_text *t)
{
	if (++t->nodes > NODE_COUNT_MAX)
		return override_fail(t, "the value has more than %d items", NODE_COUNT_MAX);
	return 0;
}

/* From "${" past the brace that closes it. */
static const char *skip_interpolation(const char *s)
{
	int open = 0;

	for (; *s; s++) {
		if (s[0] == '$' && s[1] == '{') {
			open++;
			s++;
		} else if (*s == '{') {
			open++;
		} else if (*s == '}' && --open == 0) {
			return s + 1;
		}
	}
	return NULL;
}

static int copy_interpolation(struct override_text *t, struct buf *text)
{
	const char *end = skip_interpolation(t->at);

	if (!end)
		return override_fail(t, "'${' is not closed by '}'");
	buf_append(text, t->at, (size_t)(end - t->at));
	t->at = end;
	return 0;
}

/* Backslashes count only before the quote, in pairs; an odd one makes the quote part of the text.
 */
static int read_quoted(struct override_text *t, struct node **out)
{
	struct override_text open = *t;
	struct node_mark mark = here(t);
	struct buf text = {0};
	char quote = *t->at++;
	int rc = 0;

	while (rc == 0 && *t->at != quote) {
		size_t slashes = strspn(t->at, "\\");

		if (*t->at == '\0') {
			rc = override_fail(&open, "the quote is not closed");
		} else if (slashes && t->at[slashes] == quote) {
			buf_append(&text, t->at, slashes / 2);
			t->at += slashes;
			if (slashes % 2)
				buf_putc(&text, *t->at++);
		} else if (slashes) {
			buf_append(&text, t->at, slashes);
			t->at += slashes;
		} else if (t->at[0] == '$' && t->at[1] == '{' && skip_interpolation(t->at)) {
			rc = copy_interpolation(t, &text);
		} else {
			buf_putc(&text, *t->at++);
		}
	}
	if (rc == 0) {
		t->at++;
		*out = node_new_str(text.data ? text.data : "", mark);
		(*out)->quoted = true;
	}
	buf_release(&text);
	return rc;
}

static bool is_word_char(char c)
{
	return isalnum((unsigned char)c) || (unsigned char)c >= 0x80 ||
	       (c && strchr(WORD_CHARS, c));
}

struct word {
	struct buf text;
	size_t keep; /* length without the white space at the end */
	bool escaped;
};

/* Collects an unquoted run of characters. It stops before the first one that cannot be part of it.
 */
static int read_word(struct override_text *t, bool colon_ok, struct word *w)
{
	for (;;) {
		char c = *t->at;

		if (c == '\\' && t->at[1] && strchr(ESCAPABLE, t->at[1])) {
			buf_putc(&w->text, t->at[1]);
			t->at += 2;
			w->escaped = true;
			w->keep = w->text.len;
			continue;
		}
		if (c == '$' && t->at[1] == '{') {
			int rc = copy_interpolation(t, &w->text);

			if (rc != 0)
				return rc;
			w->escaped = true;
			w->keep = w->text.len;
			continue;
		}
		if (c != '\\' && !is_word_char(c) && !(c == ':' && colon_ok))
			return 0;
		buf_putc(&w->text, c);
		t->at++;
		if (c != ' ' && c != '\t')
			w->keep = w->text.len;
	}
}

static int unexpected(const struct override_text *t)
{
	unsigned char c = (unsigned char)*t->at;

	if (c == '\0')
		return override_fail(t, "a value is missing at the end");
	if (strchr(",]})", c))
		return override_fail(t, "a value is missing before '%c'", c);
	if (c < 0x20)
		return override_fail(t, "a control character is not allowed outside quotes");
	return override_fail(t, "'%c' is not allowed here: put the text in quotes", c);
}

static int read_primitive(struct override_text *t, struct node **out)
{
	struct node_mark mark = here(t);
	struct word w = {0};
	int rc = read_word(t, true, &w);

	if (rc == 0 && w.keep == 0)
		rc = unexpected(t);
	if (rc == 0) {
		w.text.data[w.keep] = '\0';
		*out = w.escaped ? node_new_str(w.text.data, mark)
				 : override_scalar(w.text.data, mark);
	}
	buf_release(&w.text);
	return rc;
}

/* After an item: true at the closing character, which is consumed. */
static int next_item(struct override_text *t, char close, const char *what, bool *done)
{
	skip_space(t);
	*done = *t->at == close;
	if (*done || *t->at == ',') {
		t->at++;
		skip_space(t);
		return 0;
	}
	if (*t->at == '\0')
		return override_fail(t, "the %s is not closed by '%c'", what, close);
	return override_fail(t, "'%c' is not allowed here: put the text in quotes", *t->at);
}

static int read_list(struct override_text *t, int depth, struct node **out)
{
	bool done;
	int rc = 0;

	*out = node_new(NODE_LIST, here(t));
	t->at++;
	skip_space(t);
	done = *t->at == ']';
	if (done)
		t->at++;
	while (!done && rc == 0) {
		struct node *v = NULL;

		rc = read_element(t, depth + 1, &v);
		if (v)
			node_append(*out, v);
		if (rc == 0)
			rc = next_item(t, ']', "list", &done);
	}
	return rc;
}

static int read_map_key(struct override_text *t, struct word *w)
{
	int rc;

	if (*t->at == '\'' || *t->at == '"')
		return override_fail(t, "a key must be written without quotes");
	rc = read_word(t, false, w);
	if (rc != 0)
		return rc;
	if (w->keep && strstr(w->text.data, "${"))
		return override_fail(t, "a key cannot contain '${'");
	if (*t->at != ':')
		return override_fail(t, "'key: value' is expected in a map");
	if (w->keep == 0)
		return override_fail(t, "a key is missing before ':'");
	w->text.data[w->keep] = '\0';
	t->at++;
	skip_space(t);
	return 0;
}

static int read_pair(struct override_text *t, int depth, struct node *map)
{
	struct word key = {0};
	struct node *v = NULL;
	int rc = read_map_key(t, &key);

	if (rc == 0 && map->n >= KEYS_MAX)
		rc = override_fail(t, "a map has more than %d keys", KEYS_MAX);
	if (rc == 0)
		rc = read_element(t, depth + 1, &v);
	if (v)
		node_set(map, key.text.data, v);
	buf_release(&key.text);
	return rc;
}

static int read_map(struct override_text *t, int depth, struct node **out)
{
	bool done;
	int rc = 0;

	*out = node_new(NODE_MAP, here(t));
	t->at++;
	skip_space(t);
	done = *t->at == '}';
	if (done)
		t->at++;
	while (!done && rc == 0) {
		rc = read_pair(t, depth, *out);
		if (rc == 0)
			rc = next_item(t, '}', "map", &done);
	}
	return rc;
}

/* The length of "name (" or 0. */
static size_t function_name(const char *s, char *name, size_t size)
{
	size_t n = 0;

	while (isalnum((unsigned char)s[n]) || s[n] == '_' || (n && s[n] == '-'))
		n++;
	if (n == 0 || n >= size || isdigit((unsigned char)*s) || s[n + strspn(s + n, " \t")] != '(')
		return 0;
	snprintf(name, size, "%.*s", (int)n, s);
	return n + strspn(s + n, " \t") + 1;
}

static int read_function(struct override_text *t, int depth, const char *name, struct node **out)
{
	static const char *const sweeps[] = {"choice", "range",   "interval", "glob",
					     "sort",   "shuffle", "tag"};
	struct override_text start = *t;
	bool done;
	int rc;

	for (size_t i = 0; i < sizeof(sweeps) / sizeof(sweeps[0]); i++) {
		if (strcmp(name, sweeps[i]) == 0)
			return override_fail(t,
					     "%s() describes several runs (a sweep), but a run "
					     "takes one value; a list is written [a,b]",
					     name);
	}
	if (!override_is_cast(name))
		return override_fail(
			t,
			"unknown function '%s' (int, float, str and bool are supported): "
			"text with parentheses needs quotes",
			name);
	t->at = strchr(t->at, '(') + 1;
	skip_space(t);
	rc = read_element(t, depth + 1, out) ?: next_item(t, ')', "call", &done);
	if (rc == 0 && !done)
		rc = override_fail(t, "%s() takes one value", name);
	return rc ? rc : override_cast(&start, name, *out);
}

/* On failure *out may hold a part, which the caller frees. */
static int read_element(struct override_text *t, int depth, struct node **out)
{
	char name[32];
	int rc = count_node(t);

	if (rc != 0)
		return rc;
	if (depth > NODE_DEPTH_MAX)
		return override_fail(t, "nesting is deeper than %d levels", NODE_DEPTH_MAX);
	if (*t->at == '[')
		return read_list(t, depth, out);
	if (*t->at == '{')
		return read_map(t, depth, out);
	if (*t->at == '\'' || *t->at == '"')
		return read_quoted(t, out);
	if (function_name(t->at, name, sizeof(name)))
		return read_function(t, depth, name, out);
	return read_primitive(t, out);
}

static int check_end(struct override_text *t, const char *value)
{
	int prefix = (int)(value - t->whole);

	skip_space(t);
	if (*t->at == '\0')
		return 0;
	if (*t->at == ',')
		return override_fail(t,
				     "the comma makes the value ambiguous: a list is written "
				     "%.*s[%.60s], text with a comma %.*s'%.60s'",
				     prefix > 60 ? 0 : prefix, t->whole, value,
				     prefix > 60 ? 0 : prefix, t->whole, value);
	return unexpected(t);
}

static int override_read_value(struct override_text *t, struct node **out)
{
	const char *value;
	int rc;

	skip_space(t);
	value = t->at;
	if (*value == '\0') {
		*out = node_new_str("", here(t));
		(*out)->quoted = true;
		return 0;
	}
	rc = read_element(t, 1, out) ?: check_end(t, value);
	if (rc != 0) {
		node_free(*out);
		*out = NULL;
	}
	return rc;
}

struct node *override_parse_value(const char *text, struct err *e)
{
	struct override_text t = {.whole = text, .at = text, .e = e};
	struct node *v = NULL;

	return override_read_value(&t, &v) == 0 ? v : NULL;
}

/* ---- a whole override ---- */

static int check_utf8(struct override_text *t)
{
	while (*t->at) {
		size_t n = utf8_length(t->at);

		if (n == 0)
			return override_fail(t, "the text is not UTF-8");
		t->at += n;
	}
	t->at = t->whole;
	return 0;
}

static size_t component_length(const char *s)
{
	size_t n = 0;

	if (isdigit((unsigned char)*s)) {
		while (isdigit((unsigned char)s[n]))
			n++;
		return *s == '0' ? 1 : n;
	}
	while (isalpha((unsigned char)s[n]) || s[n] == '_' || s[n] == '$' ||
	       (n && (isdigit((unsigned char)s[n]) || s[n] == '-')))
		n++;
	return n;
}

static int read_key(struct override_text *t, char **out)
{
	const char *start = t->at;
	int parts = 0;

	for (;;) {
		size_t n = component_length(t->at);

		if (n == 0 && t->at == start)
			return override_fail(
				t, "a key such as workload.reader.batch_size is expected");
		if (n == 0)
			return override_fail(t, "a part of the key is missing or starts with a "
						"character that is not allowed in keys");
		if (++parts > NODE_DEPTH_MAX)
			return override_fail(t, "the key has more than %d parts", NODE_DEPTH_MAX);
		t->at += n;
		if (*t->at == '\0' || *t->at == '=')
			break;
		if (!strchr("./@", *t->at))
			return override_fail(t, "'%c' cannot be part of a key", *t->at);
		t->at++;
	}
	*out = xstrndup(start, (size_t)(t->at - start));
	return 0;
}

static enum override_op read_op(struct override_text *t)
{
	if (*t->at == '~') {
		t->at++;
		return OVERRIDE_DELETE;
	}
	if (*t->at != '+')
		return OVERRIDE_SET;
	t->at++;
	if (*t->at != '+')
		return OVERRIDE_ADD;
	t->at++;
	return OVERRIDE_FORCE;
}

static int read_override(struct override_text *t, struct override *o)
{
	int rc = check_utf8(t);

	if (rc != 0)
		return rc;
	o->op = read_op(t);
	rc = read_key(t, &o->key);
	if (rc != 0)
		return rc;
	if (*t->at == '=') {
		t->at++;
		return override_read_value(t, &o->value);
	}
	if (o->op != OVERRIDE_DELETE)
		return override_fail(t, "'=' is missing: write %.60s=VALUE", t->whole);
	return 0;
}

int override_parse(const char *text, struct override *out, struct err *e)
{
	struct override_text t = {.whole = text, .at = text, .e = e};
	int rc;

	*out = (struct override){.text = xstrdup(text)};
	rc = read_override(&t, out);
	if (rc != 0)
		override_release(out);
	return rc;
}

void override_release(struct override *o)
{
	free(o->key);
	node_free(o->value);
	free(o->text);
	*o = (struct override){0};
}

/* ---- the reverse, for one value: text that must arrive as it is ---- */

static char *override_quote(const char *text)
{
	char *out = xcalloc(3 * strlen(text) + 3, 1), *to = out;

	*to++ = '\'';
	for (const char *at = text;; at++) {
		size_t run = strspn(at, "\\");
		bool special;

		at += run;
		special = *at == '\'' || (at[0] == '$' && at[1] == '{');
		/* a backslash is itself unless a quote, the end or an interpolation follows */
		for (size_t i = 0; i < run * (special || !*at ? 2 : 1) + special; i++)
			*to++ = '\\';
		if (!*at)
			break;
		*to++ = *at;
	}
	*to = '\'';
	return out;
}

void override_put(struct str_list *list, const char *key, const char *fmt, ...)
{
	struct buf text = {0};
	va_list ap;

	buf_printf(&text, "++workload.%s=", key);
	va_start(ap, fmt);
	buf_vprintf(&text, fmt, ap);
	va_end(ap);
	str_list_add(list, buf_take(&text));
}

void override_put_text(struct str_list *list, const char *key, const char *value)
{
	AUTO_FREE char *quoted = override_quote(value);

	override_put(list, key, "%s", quoted);
}
