/* ${...} in the strings of a tree: references, environment, time. */
#include <ctype.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/alloc.h"
#include "conf/override.h"

#define PLACE_MAX 200
#define ACTIVE_MAX 32
#define STEPS_MAX 1000000
#define BYTES_MAX ((size_t)16 << 20)
#define MISSING "\?\?\?" /* OmegaConf's mandatory marker */

struct resolver {
	struct node *root;
	int64_t now_ns;
	const struct node *active[ACTIVE_MAX]; /* strings being resolved, for cycles */
	int depth;
	size_t steps, copies, bytes;
	struct err *e;
};

/* A node with the way to it from the root, which relative references and sentences need. */
struct place {
	struct node *chain[PLACE_MAX];
	int n;
};

static int resolve_tree(struct resolver *r, struct place *at);
static int resolve_string(struct resolver *r, const struct place *at);

static struct node *node_at(const struct place *at)
{
	return at->chain[at->n - 1];
}

static void place_text(const struct place *at, struct buf *out)
{
	for (int i = 1; i < at->n; i++) {
		const struct node *up = at->chain[i - 1];
		size_t k = 0;

		while (k < up->n && up->child[k] != at->chain[i])
			k++;
		if (k == up->n)
			break;
		buf_puts(out, out->len ? "." : "");
		if (up->kind == NODE_MAP)
			buf_puts(out, up->key[k]);
		else
			buf_printf(out, "%zu", k);
	}
}

static int interpolation_error(const struct resolver *r, const struct place *at, const char *fmt,
			       ...) __attribute__((format(printf, 3, 4)));

static int interpolation_error(const struct resolver *r, const struct place *at, const char *fmt,
			       ...)
{
	char why[ERR_TEXT_MAX];
	struct buf key = {0};
	va_list ap;
	int rc;

	va_start(ap, fmt);
	vsnprintf(why, sizeof(why), fmt, ap);
	va_end(ap);
	place_text(at, &key);
	rc = node_refuse(node_at(at), key.len ? key.data : "interpolation", r->e, "%s", why);
	buf_release(&key);
	return rc;
}

static int copy_of(struct resolver *r, const struct place *at, const struct node *from,
		   struct node **out)
{
	r->copies += node_count(from);
	if (r->copies > NODE_COUNT_MAX)
		return interpolation_error(
			r, at, "interpolation makes the configuration larger than %d values",
			NODE_COUNT_MAX);
	if (at->n + node_depth(from) > NODE_DEPTH_MAX * 2)
		return interpolation_error(r, at, "interpolation nests deeper than %d levels",
					   NODE_DEPTH_MAX * 2);
	*out = node_clone(from);
	return 0;
}

/* One step down. A string on the way may itself be an interpolation that gives a container. */
static int step_down(struct resolver *r, struct place *target, const char *part)
{
	struct node *n = node_at(target);
	int rc = n->kind == NODE_STR ? resolve_string(r, target) : 0;

	if (rc != 0)
		return rc;
	n = node_step(n, part);
	if (!n || target->n == PLACE_MAX)
		return 0;
	target->chain[target->n++] = n;
	return 1;
}

/* Walks "a.b[0].c", or ".b" from the container of `at`, "..b" from the one above. 1: found, 0: not.
 */
static int find_target(struct resolver *r, const struct place *at, const char *path,
		       struct place *target)
{
	AUTO_FREE char *copy = NULL;
	char *rest, *part;

	*target = (struct place){.chain = {r->root}, .n = 1};
	if (*path == '.') {
		size_t dots = strspn(path, ".");

		if (dots >= (size_t)at->n)
			return 0;
		*target = *at;
		target->n -= (int)dots;
		path += dots;
	}
	copy = xstrdup(path);
	rest = copy;
	while ((part = strsep(&rest, ".[]"))) {
		int rc = *part ? step_down(r, target, part) : 1;

		if (rc != 1)
			return rc;
	}
	return 1;
}

static int reference(struct resolver *r, const struct place *at, const char *path,
		     struct node **out)
{
	struct place target;
	const struct node *v;
	int rc;

	if (*path == '\0')
		return interpolation_error(r, at, "'${}' does not name a key");
	rc = find_target(r, at, path, &target);
	if (rc < 0)
		return rc;
	if (rc == 0)
		return interpolation_error(
			r, at, "'${%.200s}' names a key that is not in the configuration", path);
	rc = resolve_tree(r, &target);
	if (rc != 0)
		return rc;
	v = node_at(&target);
	if (v->kind == NODE_STR && strcmp(v->s, MISSING) == 0)
		return interpolation_error(r, at,
					   "'${%.200s}' names a key whose value is missing (three "
					   "question marks)",
					   path);
	return copy_of(r, at, v, out);
}

static char *trimmed(const char *s, size_t n)
{
	while (n && isspace((unsigned char)*s)) {
		s++;
		n--;
	}
	while (n && isspace((unsigned char)s[n - 1]))
		n--;
	return xstrndup(s, n);
}

/* "name,default": the default is NULL when there is no comma. */
static char *split_default(const char *args, char **fallback)
{
	const char *comma = strchr(args, ',');

	*fallback = comma ? trimmed(comma + 1, strlen(comma + 1)) : NULL;
	return trimmed(args, comma ? (size_t)(comma - args) : strlen(args));
}

static struct node *fallback_node(const char *text, struct node_mark mark)
{
	size_t n = strlen(text);

	if (n >= 2 && (*text == '\'' || *text == '"') && text[n - 1] == *text) {
		AUTO_FREE char *inner = xstrndup(text + 1, n - 2);

		return node_new_str(inner, mark);
	}
	return yaml_plain_scalar(text, mark);
}

static int environment(struct resolver *r, const struct place *at, const char *args,
		       struct node **out)
{
	AUTO_FREE char *fallback = NULL;
	AUTO_FREE char *name = split_default(args, &fallback);
	const char *value = getenv(name);

	if (value)
		*out = yaml_plain_scalar(value, node_at(at)->mark);
	else if (fallback)
		*out = fallback_node(fallback, node_at(at)->mark);
	else
		return interpolation_error(
			r, at,
			"the environment variable '%.100s' is not set: set it, or write "
			"${oc.env:%.100s,DEFAULT}",
			name, name);
	return 0;
}

static int select_key(struct resolver *r, const struct place *at, const char *args,
		      struct node **out)
{
	AUTO_FREE char *fallback = NULL;
	AUTO_FREE char *path = split_default(args, &fallback);
	struct place target;
	int rc = find_target(r, at, path, &target);

	if (rc < 0)
		return rc;
	if (rc == 1)
		return reference(r, at, path, out);
	*out = fallback_node(fallback ? fallback : "null", node_at(at)->mark);
	return 0;
}

static int now(struct resolver *r, const struct place *at, const char *format, struct node **out)
{
	time_t seconds = (time_t)(r->now_ns / 1000000000);
	char text[512];
	struct tm tm;

	if (!localtime_r(&seconds, &tm))
		return interpolation_error(r, at, "the start time cannot be formatted as a date");
	text[0] = '\0';
	/* the compiler cannot check a format that the user wrote; strftime bounds its output */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
	if (*format && strftime(text, sizeof(text), format, &tm) == 0)
		return interpolation_error(
			r, at, "the time format '%.100s' produces no text or more than %zu bytes",
			format, sizeof(text) - 1);
#pragma GCC diagnostic pop
	*out = node_new_str(text, node_at(at)->mark);
	return 0;
}

static int hydra(struct resolver *r, const struct place *at, const char *path, struct node **out)
{
	AUTO_FREE char *full = xasprintf("hydra.%s", path);

	return reference(r, at, full, out);
}

/* The colon after a resolver's name, or NULL when the text is a path. */
static const char *resolver_colon(const char *s)
{
	size_t n = 0;

	while (isalnum((unsigned char)s[n]) || s[n] == '_' || s[n] == '.')
		n++;
	return n && s[n] == ':' ? s + n : NULL;
}

static int dispatch(struct resolver *r, const struct place *at, const char *inner,
		    struct node **out)
{
	static const struct {
		const char *name;
		int (*fn)(struct resolver *, const struct place *, const char *, struct node **);
	} known[] = {
		{"oc.env", environment}, {"oc.select", select_key}, {"now", now}, {"hydra", hydra}};
	AUTO_FREE char *path = trimmed(inner, strlen(inner));
	const char *colon = resolver_colon(path);

	if (!colon)
		return reference(r, at, path, out);
	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		size_t n = strlen(known[i].name);

		if (n == (size_t)(colon - path) && strncmp(path, known[i].name, n) == 0)
			return known[i].fn(r, at, colon + 1, out);
	}
	return interpolation_error(
		r, at,
		"'${%.100s}': the resolver '%.*s' is unknown (oc.env, oc.select, hydra, now)", path,
		(int)(colon - path < 60 ? colon - path : 60), path);
}

static int append_value(struct resolver *r, const struct place *at, const struct node *v,
			struct buf *out)
{
	char number[NODE_FLOAT_TEXT_MAX];

	if (v->kind == NODE_LIST || v->kind == NODE_MAP)
		return interpolation_error(
			r, at, "an interpolation inside other text must give text, not %s",
			node_kind_name(v->kind));
	if (v->kind == NODE_STR)
		buf_puts(out, v->s);
	else if (v->kind == NODE_NULL)
		buf_puts(out, "None");
	else if (v->kind == NODE_BOOL)
		buf_puts(out, v->b ? "True" : "False");
	else if (v->kind == NODE_INT)
		buf_printf(out, "%" PRId64, v->i);
	else
		buf_puts(out, node_float_text(v->f, number, sizeof(number)));
	r->bytes += out->len;
	if (r->bytes > BYTES_MAX)
		return interpolation_error(
			r, at, "interpolation produces more than %zu MiB of text", BYTES_MAX >> 20);
	return 0;
}

/* *p stands on "${"; afterwards behind its "}". Inner interpolations are resolved first. */
static int evaluate(struct resolver *r, const struct place *at, const char **p, int depth,
		    struct node **out)
{
	struct buf inner = {0};
	int rc = 0;

	if (depth > 16)
		return interpolation_error(r, at, "'${' is nested deeper than 16 levels");
	for (*p += 2; rc == 0 && **p && **p != '}';) {
		struct node *v = NULL;

		if ((*p)[0] != '$' || (*p)[1] != '{') {
			buf_putc(&inner, *(*p)++);
			continue;
		}
		rc = evaluate(r, at, p, depth + 1, &v) ?: append_value(r, at, v, &inner);
		node_free(v);
	}
	if (rc == 0 && **p == '\0')
		rc = interpolation_error(r, at, "'${' is not closed by '}'");
	if (rc == 0) {
		++*p;
		rc = dispatch(r, at, inner.data ? inner.data : "", out);
	}
	buf_release(&inner);
	return rc;
}

/* "\${" is a plain "${", and backslashes before it count in pairs. */
static int expand(struct resolver *r, const struct place *at, const char *p, struct buf *out)
{
	while (*p) {
		size_t slashes = strspn(p, "\\");
		bool opens = p[slashes] == '$' && p[slashes + 1] == '{';
		struct node *v = NULL;
		int rc;

		if (!opens) {
			buf_append(out, p, slashes ? slashes : 1);
			p += slashes ? slashes : 1;
			continue;
		}
		buf_append(out, p, slashes / 2);
		p += slashes;
		if (slashes % 2) {
			buf_puts(out, "${");
			p += 2;
			continue;
		}
		rc = evaluate(r, at, &p, 1, &v) ?: append_value(r, at, v, out);
		node_free(v);
		if (rc != 0)
			return rc;
	}
	return 0;
}

static void mark_literal(struct node *n)
{
	if (n->kind == NODE_STR)
		n->literal = true;
	for (size_t i = 0; i < n->n; i++)
		mark_literal(n->child[i]);
}

static int resolve_value(struct resolver *r, const struct place *at)
{
	struct node *n = node_at(at), *v = NULL;
	struct buf text = {0};
	int rc;

	if (n->s[0] == '$' && n->s[1] == '{') {
		const char *p = n->s;

		rc = evaluate(r, at, &p, 1, &v);
		if (rc == 0 && *p == '\0') {
			v->mark = n->mark;
			mark_literal(v);
			node_become(n, v);
			return 0;
		}
		node_free(v);
		if (rc != 0)
			return rc;
	}
	rc = expand(r, at, n->s, &text);
	if (rc == 0) {
		v = node_new_str(text.data ? text.data : "", n->mark);
		v->quoted = n->quoted;
		v->literal = true;
		node_become(n, v);
	}
	buf_release(&text);
	return rc;
}

static int resolve_string(struct resolver *r, const struct place *at)
{
	const struct node *n = node_at(at);
	int rc;

	if (n->literal || !strstr(n->s, "${"))
		return 0;
	for (int i = 0; i < r->depth; i++) {
		if (r->active[i] == n)
			return interpolation_error(
				r, at, "the interpolation '%.200s' refers to itself", n->s);
	}
	if (r->depth == ACTIVE_MAX)
		return interpolation_error(
			r, at, "a chain of interpolations has more than %d steps", ACTIVE_MAX);
	r->active[r->depth++] = n;
	rc = resolve_value(r, at);
	r->depth--;
	return rc;
}

static int resolve_tree(struct resolver *r, struct place *at)
{
	struct node *n = node_at(at);
	int rc = 0;

	if (++r->steps > STEPS_MAX)
		return interpolation_error(
			r, at, "resolving the interpolations takes more than %d steps", STEPS_MAX);
	if (n->kind == NODE_STR)
		return resolve_string(r, at);
	if (n->n && at->n == PLACE_MAX)
		return interpolation_error(r, at, "nesting is deeper than %d levels", PLACE_MAX);
	for (size_t i = 0; i < n->n && rc == 0; i++) {
		at->chain[at->n++] = n->child[i];
		rc = resolve_tree(r, at);
		at->n--;
	}
	return rc;
}

int node_interpolate(struct node *root, int64_t start_wall_ns, struct err *e)
{
	struct resolver r = {.root = root, .now_ns = start_wall_ns, .e = e};
	struct place at = {.chain = {root}, .n = 1};

	return resolve_tree(&r, &at);
}
