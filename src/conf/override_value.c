/* The value side of an override: words, quotes, lists, maps, casts. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "conf/override.h"
#include "conf/override_text.h"

#define KEYS_MAX 10000

/* Besides letters and digits. Bytes of UTF-8 sequences are accepted too, which Hydra refuses. */
#define WORD_CHARS "_/-+.$%*@?| \t"
#define ESCAPABLE "\\()[]{}:=, \t"

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
		return override_fail(t, "the value holds more than %d items", NODE_COUNT_MAX);
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
		return override_fail(t, "a key is written without quotes");
	rc = read_word(t, false, w);
	if (rc != 0)
		return rc;
	if (w->keep && strstr(w->text.data, "${"))
		return override_fail(t, "a key cannot hold '${'");
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
		rc = override_fail(t, "a map holds more than %d keys", KEYS_MAX);
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
			return override_fail(
				t,
				"%s() describes several runs (a sweep): a run takes one "
				"value, a list is written [a,b]",
				name);
	}
	if (!override_is_cast(name))
		return override_fail(
			t,
			"the function '%s' is unknown (int, float, str, bool): text with "
			"parentheses needs quotes",
			name);
	t->at = strchr(t->at, '(') + 1;
	skip_space(t);
	rc = read_element(t, depth + 1, out);
	if (rc == 0)
		rc = next_item(t, ')', "call", &done);
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

int override_read_value(struct override_text *t, struct node **out)
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
	rc = read_element(t, 1, out);
	if (rc == 0)
		rc = check_end(t, value);
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
