/* JSON values that are always valid JSON, and whole files of them. */
#include "result/json_out.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/program.h"
#include "base/say.h"
#include "base/str.h"

void json_put(json_t *object, const char *key, json_t *value)
{
	AUTO_FREE char *valid = NULL;

	/* a key of a workload may hold any bytes, too */
	for (const char *c = key; *c && !valid; c += utf8_length(c))
		if (utf8_length(c) == 0)
			valid = utf8_valid(key, UTF8_AS_HEX);
	json_object_set_new(object, valid ? valid : key, value);
}

json_t *json_number(double v)
{
	return isfinite(v) ? json_real(v) : json_null();
}

json_t *json_count(uint64_t v)
{
	return v <= INT64_MAX ? json_integer((json_int_t)v) : json_real((double)v);
}

json_t *json_text(const char *s)
{
	json_t *v = s ? json_string(s) : json_null();
	AUTO_FREE char *plain = NULL;

	if (v)
		return v;
	/* file names and hosts may hold any bytes; the rest of the result is worth more than they
	 */
	plain = utf8_valid(s, UTF8_AS_HEX);
	return json_string(plain);
}

void json_put_real(json_t *object, const char *key, double v)
{
	if (isfinite(v))
		json_put(object, key, json_real(v));
}

void json_put_int(json_t *object, const char *key, uint64_t v)
{
	json_put(object, key, json_count(v));
}

void json_put_bool(json_t *object, const char *key, bool v)
{
	json_put(object, key, json_boolean(v));
}

void json_put_text(json_t *object, const char *key, const char *s)
{
	json_put(object, key, json_text(s));
}

void json_put_mark(json_t *object)
{
	json_put_text(object, "program", PROGRAM_MARK);
}

void json_put_time(json_t *object, const char *key, int64_t wall_ns)
{
	char text[64];

	clock_timestamp(wall_ns, text, sizeof(text));
	json_put_text(object, key, text);
}

json_t *json_pairs(const struct sysinfo_pair *pairs, size_t n)
{
	json_t *map = json_object();

	for (size_t i = 0; i < n; i++)
		json_put_text(map, pairs[i].key, pairs[i].value);
	return map;
}

json_t *json_texts(const struct str_list *list)
{
	json_t *out = json_array();

	for (size_t i = 0; i < list->n; i++)
		json_array_append_new(out, json_text(list->v[i]));
	return out;
}

json_t *json_stat(const struct sample_stat *s)
{
	json_t *o = json_object();

	json_put_int(o, "values", s->n);
	if (s->n == 0)
		return o;
	json_put_real(o, "mean", s->mean);
	json_put_real(o, "stdev", s->stdev);
	json_put_real(o, "min", s->min);
	json_put_real(o, "max", s->max);
	return o;
}

int json_write(json_t *object, const char *folder, const char *name, struct err *e)
{
	AUTO_FREE char *path = path_join(folder, name);
	AUTO_FREE char *text = json_file_text(object);

	json_decref(object);
	if (!text)
		return err_set(e, -ENOMEM, "no memory to write '%s'", path);
	return file_write_ours(path, text, strlen(text), e);
}

static int add_piece(const char *piece, size_t n, void *text)
{
	buf_append(text, piece, n);
	return 0;
}

char *json_dump_text(const json_t *value, size_t flags)
{
	struct buf text = {0};

	if (json_dump_callback(value, add_piece, &text, flags) == 0)
		return buf_take(&text);
	buf_release(&text);
	return NULL;
}

char *json_file_text(const json_t *object)
{
	/* 15 digits: every time in ns and every percentage, without the noise of the binary form */
	return json_dump_text(object, JSON_INDENT(4) | JSON_REAL_PRECISION(15));
}

#define LINE_MOST 160

#define DIGITS 12       /* a hundred seconds to the ns */
#define DIGITS_EXACT 17 /* the same double again */

struct lines {
	struct buf *b;
	const char *exact; /* the key of what is written in full */
	bool in_full;      /* within that */
};

static char *dump(const struct lines *l, const json_t *v)
{
	return json_dump_text(v, JSON_ENCODE_ANY | JSON_COMPACT |
					 JSON_REAL_PRECISION(l->in_full ? DIGITS_EXACT : DIGITS));
}

static bool put_lines(struct lines *l, const json_t *v, unsigned depth);

/* An entry of a list, or of an object when it has a key, below the line that begins at `from`.
 * Short ones fill lines, but those of the document itself. */
static bool put_entry(struct lines *l, const char *key, const json_t *v, unsigned depth,
		      size_t *from)
{
	json_t *name = key ? json_string(key) : NULL;
	bool before = l->in_full, whole;
	AUTO_FREE char *quoted = key ? dump(l, name) : NULL, *one = dump(l, v);
	size_t n = (quoted ? strlen(quoted) + 1 : 0) + (one ? strlen(one) : 0);
	bool is_short = n <= LINE_MOST / 2;

	json_decref(name);
	if (!one || (key && !quoted))
		return false;
	if (!*from || !is_short || depth == 0 || l->b->len - *from + n > LINE_MOST) {
		buf_printf(l->b, "\n%*s", (int)depth + 1, "");
		*from = l->b->len;
	}
	if (key)
		buf_printf(l->b, "%s:", quoted);
	if (is_short) {
		buf_append(l->b, one, strlen(one));
		return true;
	}
	l->in_full = before || (key && strcmp(key, l->exact) == 0);
	whole = put_lines(l, v, depth + 1);
	l->in_full = before;
	return whole;
}

/* A value as one line where that is short, else its entries in lines of their own. False: no
 * memory. */
static bool put_lines(struct lines *l, const json_t *v, unsigned depth)
{
	AUTO_FREE char *line = dump(l, v);
	bool list = json_is_array(v);
	size_t from = 0, n = 0;
	const char *key;
	json_t *part;

	if (!line || strlen(line) <= LINE_MOST / 2 || !(list || json_is_object(v))) {
		buf_puts(l->b, line ? line : "");
		return line != NULL;
	}
	buf_putc(l->b, list ? '[' : '{');
	for (; n < json_array_size(v); n++) {
		buf_puts(l->b, n ? "," : "");
		if (!put_entry(l, NULL, json_array_get(v, n), depth, &from))
			return false;
	}
	json_object_foreach((json_t *)(uintptr_t)v, key, part)
	{
		buf_puts(l->b, n++ ? "," : "");
		if (!put_entry(l, key, part, depth, &from))
			return false;
	}
	buf_printf(l->b, "\n%*s%c", (int)depth, "", list ? ']' : '}');
	return true;
}

char *json_short_lines(const json_t *object, const char *exact)
{
	struct buf b = {0};
	struct lines l = {.b = &b, .exact = exact};

	if (put_lines(&l, object, 0))
		return buf_take(&b);
	buf_release(&b);
	return NULL;
}

/* One character behind `s`, in a text that jansson made: it quotes every string, and escapes
 * nothing in it but quotes, backslashes and the controls below a blank. */
static size_t escape_json(const char *s, size_t n, enum json_shape shape, struct buf *out)
{
	uint32_t c = 0;
	size_t used = utf8_decode(s, n, &c);
	struct buf seen = {0};
	bool plain;

	if (c == '\\' && n >= 6 && s[1] == 'u') {
		if (shape == JSON_SHOWN)
			buf_printf(out, "\\\\x%.2s", s + 4); /* \u001b */
		else
			buf_append(out, s, 6);
		return 6;
	}
	if (c == '\\' && n >= 2) {
		if (shape == JSON_SHOWN && s[1] != '"' && s[1] != '\\' && s[1] != '/')
			buf_putc(out, '\\'); /* \n */
		buf_append(out, s, 2);
		return 2;
	}
	if (used == 0)
		used = 1;
	if (shape == JSON_SHOWN && c && strchr("<>&", (int)c) && used == 1) {
		buf_printf(out, "\\u%04x", c);
		return 1;
	}
	buf_put_said(&seen, s, used, SAY_LINES);
	plain = seen.len == used && memcmp(seen.data, s, used) == 0;
	if (plain)
		buf_append(out, s, used);
	else if (shape == JSON_SHOWN)
		buf_printf(out, "\\%s", seen.data);
	else
		buf_printf(out, "\\u%04x", c);
	buf_release(&seen);
	return used;
}

void json_put_dump(struct buf *out, const json_t *value, size_t flags, enum json_shape shape)
{
	char *dump = json_dump_text(value, flags);
	size_t n = dump ? strlen(dump) : 0, from = 0, at = 0;

	buf_puts(out, "");
	while (at < n) {
		unsigned char c = (unsigned char)dump[at];

		if (c != '\\' && c < 0x7f && (shape == JSON_EXACT || !strchr("<>&", c))) {
			at++;
			continue;
		}
		buf_append(out, dump + from, at - from);
		at += escape_json(dump + at, n - at, shape, out);
		from = at;
	}
	buf_append(out, dump ? dump + from : "", n - from);
	free(dump);
}

void json_put_document(struct buf *out, json_t *value)
{
	size_t had = out->len;

	json_put_dump(out, value, JSON_INDENT(4), JSON_EXACT);
	json_decref(value);
	if (out->len == had)
		out_of_memory();
	buf_putc(out, '\n');
}
