/* Trees as text: YAML files as OmegaConf writes them, and one-line values as overrides are typed.
 */
#include <ctype.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <yaml.h>

#include "base/alloc.h"
#include "base/str.h"
#include "conf/node.h"

/* PyYAML's dates: a string that looks like one is quoted although OmegaConf never reads dates. */
static bool looks_like_date(const char *s)
{
	int y, m, d, used = 0;

	if (strspn(s, "0123456789-tT:. +Z\t") != strlen(s))
		return false;
	return sscanf(s, "%4d-%2d-%2d%n", &y, &m, &d, &used) == 3 && used >= 8 && s[4] == '-' &&
	       (s[used] == '\0' || (strchr("tT \t", s[used]) && strchr(s + used, ':')));
}

/* Python's int() and float() take more than YAML's rules: "010", "1e3", "nan", "1_0". */
static bool python_number(const char *s)
{
	AUTO_FREE char *plain = xstrdup(s);
	char *o = plain;
	double v;

	if (!*s || strpbrk(s, "xXpP("))
		return false;
	for (const char *start = s; *s; s++) {
		if (*s != '_' || s == start || !isdigit((unsigned char)s[-1]) ||
		    !isdigit((unsigned char)s[1]))
			*o++ = *s;
	}
	*o = '\0';
	return str_to_f64(plain, &v);
}

static bool is_bool_word(const char *s)
{
	return (s[1] == '\0' && strchr("yYnN", s[0])) || yaml_plain_kind(s) == NODE_BOOL;
}

static bool plain_is_ambiguous(const char *s)
{
	return yaml_plain_kind(s) != NODE_STR || is_bool_word(s) || python_number(s) ||
	       looks_like_date(s) || strcmp(s, "=") == 0 || strcmp(s, "<<") == 0;
}

static char *scalar_text(const struct node *n)
{
	char text[NODE_FLOAT_TEXT_MAX];

	if (n->kind == NODE_NULL)
		return xstrdup("null");
	if (n->kind == NODE_BOOL)
		return xstrdup(n->b ? "true" : "false");
	if (n->kind == NODE_INT)
		return xasprintf("%" PRId64, n->i);
	if (n->kind == NODE_STR)
		return xstrdup(n->s);
	if (isnan(n->f) || isinf(n->f))
		return xstrdup(isnan(n->f) ? ".nan" : n->f < 0 ? "-.inf" : ".inf");
	/* an integer beyond 64 bits */
	if (n->s && fabs(n->f) >= 0x1p63 && n->s[strspn(n->s, "-0123456789")] == '\0')
		return xstrdup(n->s);
	node_float_text(n->f, text, sizeof(text));
	if (strchr(text, 'e') && !strchr(text, '.')) {
		char *exponent = strchr(text, 'e');

		return xasprintf("%.*s.0%s", (int)(exponent - text), text, exponent);
	}
	return xstrdup(text);
}

/* YAML cannot hold other bytes than UTF-8, and libyaml would end the document at the first one. */
static int write_text(yaml_emitter_t *em, const char *text, bool quote)
{
	yaml_scalar_style_t style = quote ? YAML_SINGLE_QUOTED_SCALAR_STYLE : YAML_ANY_SCALAR_STYLE;
	AUTO_FREE char *valid = utf8_valid(text, UTF8_AS_REPLACEMENT);
	yaml_event_t event;

	if (!yaml_scalar_event_initialize(&event, NULL, NULL, (yaml_char_t *)valid,
					  (int)strlen(valid), !quote, 1, style))
		return 0;
	return yaml_emitter_emit(em, &event);
}

static int write_node(yaml_emitter_t *em, const struct node *n)
{
	bool list = n->kind == NODE_LIST;
	yaml_event_t event;
	int ok;

	if (!list && n->kind != NODE_MAP) {
		AUTO_FREE char *text = scalar_text(n);

		return write_text(em, text, n->kind == NODE_STR && plain_is_ambiguous(text));
	}
	ok = list ? yaml_sequence_start_event_initialize(&event, NULL, NULL, 1,
							 YAML_BLOCK_SEQUENCE_STYLE)
		  : yaml_mapping_start_event_initialize(&event, NULL, NULL, 1,
							YAML_BLOCK_MAPPING_STYLE);
	if (!ok || !yaml_emitter_emit(em, &event))
		return 0;
	for (size_t i = 0; i < n->n; i++) {
		if (!list && !write_text(em, n->key[i], plain_is_ambiguous(n->key[i])))
			return 0;
		if (!write_node(em, n->child[i]))
			return 0;
	}
	ok = list ? yaml_sequence_end_event_initialize(&event)
		  : yaml_mapping_end_event_initialize(&event);
	return ok && yaml_emitter_emit(em, &event);
}

static int to_buf(void *out, unsigned char *bytes, size_t n)
{
	buf_append(out, bytes, n);
	return 1;
}

static int write_document(yaml_emitter_t *em, const struct node *n)
{
	yaml_event_t event;

	return yaml_stream_start_event_initialize(&event, YAML_UTF8_ENCODING) &&
	       yaml_emitter_emit(em, &event) &&
	       yaml_document_start_event_initialize(&event, NULL, NULL, NULL, 1) &&
	       yaml_emitter_emit(em, &event) && write_node(em, n) &&
	       yaml_document_end_event_initialize(&event, 1) && yaml_emitter_emit(em, &event) &&
	       yaml_stream_end_event_initialize(&event) && yaml_emitter_emit(em, &event);
}

static bool emit(const struct node *n, struct buf *out)
{
	yaml_emitter_t em;
	bool whole;

	if (!yaml_emitter_initialize(&em))
		return false;
	yaml_emitter_set_output(&em, to_buf, out);
	yaml_emitter_set_unicode(&em, 1);
	whole = write_document(&em, n);
	yaml_emitter_delete(&em);
	return whole;
}

void yaml_emit(const struct node *n, struct buf *out)
{
	size_t had = out->len;

	/* a tree in UTF-8 cannot be refused for another reason, and half a document is none */
	while (!emit(n, out)) {
		if (!alloc_spend())
			out_of_memory();
		out->len = had;
	}
}

/* What the override grammar reads as the same text without quotes. */
static bool bare_in_override(const char *s)
{
	size_t n = strlen(s);

	if (n == 0 || s[0] == ' ' || s[n - 1] == ' ' || strstr(s, "${"))
		return false;
	for (; *s; s++) {
		if (!isalnum((unsigned char)*s) && !strchr("_/-+.$%*@?|: ", *s) &&
		    (unsigned char)*s < 0x80)
			return false;
	}
	return true;
}

/* Backslashes count only before a quote, where each has to be doubled. */
static void emit_quoted(const char *s, struct buf *out)
{
	buf_putc(out, '\'');
	for (; *s; s++) {
		size_t slashes = strspn(s, "\\");

		if (slashes && (s[slashes] == '\'' || s[slashes] == '\0'))
			buf_append(out, s, slashes);
		if (slashes)
			buf_append(out, s, slashes);
		s += slashes;
		if (*s == '\0')
			break;
		if (*s == '\'')
			buf_putc(out, '\\');
		buf_putc(out, *s);
	}
	buf_putc(out, '\'');
}

static void emit_flow_str(const char *s, struct buf *out)
{
	/* numbers of both grammars, and words that look typed to a reader of either */
	if (bare_in_override(s) && yaml_plain_kind(s) != NODE_NULL && !python_number(s) &&
	    strcasecmp(s, "true") != 0 && strcasecmp(s, "false") != 0 && strcasecmp(s, "null") != 0)
		buf_puts(out, s);
	else
		emit_quoted(s, out);
}

/* Keys cannot be quoted in overrides: what would end one is escaped. */
static void emit_flow_key(const char *s, struct buf *out)
{
	size_t n = strlen(s);

	for (size_t i = 0; i < n; i++) {
		bool edge = i == 0 || i + 1 == n;

		if (strchr("\\()[]{}:=,", s[i]) || (edge && (s[i] == ' ' || s[i] == '\t')))
			buf_putc(out, '\\');
		buf_putc(out, s[i]);
	}
}

void node_emit_flow(const struct node *n, struct buf *out)
{
	bool list = n->kind == NODE_LIST;
	char text[NODE_FLOAT_TEXT_MAX];

	if (n->kind == NODE_STR) {
		emit_flow_str(n->s, out);
	} else if (n->kind == NODE_FLOAT) {
		buf_puts(out, node_float_text(n->f, text, sizeof(text)));
	} else if (!list && n->kind != NODE_MAP) {
		AUTO_FREE char *scalar = scalar_text(n);

		buf_puts(out, scalar);
	} else {
		buf_putc(out, list ? '[' : '{');
		for (size_t i = 0; i < n->n; i++) {
			buf_puts(out, i ? ", " : "");
			if (!list) {
				emit_flow_key(n->key[i], out);
				buf_puts(out, ": ");
			}
			node_emit_flow(n->child[i], out);
		}
		buf_putc(out, list ? ']' : '}');
	}
}
