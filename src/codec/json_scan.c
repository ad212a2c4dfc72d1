/* JSON value by value. */
#include "codec/json_scan.h"

#include <inttypes.h>
#include <string.h>

static int not_json(const struct json_scan *s, const char *want, struct err *e)
{
	if (s->at >= s->n)
		return err_set(e, ERR_DATA, "the JSON text ends at offset %zu, where %s should be",
			       s->at, want);
	return err_set(e, ERR_DATA, "the JSON text lacks %s at offset %zu", want, s->at);
}

void json_scan_begin(struct json_scan *s, const char *text, size_t n)
{
	*s = (struct json_scan){.text = text, .n = n};
}

/* The first character of the next value, 0 at the end. */
static char kind_of(struct json_scan *s)
{
	while (s->at < s->n && memchr(" \t\r\n", s->text[s->at], 4))
		s->at++;
	return s->at < s->n ? s->text[s->at] : '\0';
}

int json_scan_enter(struct json_scan *s, char open, struct err *e)
{
	if (kind_of(s) != open)
		return not_json(s, open == '{' ? "an object" : "a list", e);
	if (s->depth == JSON_SCAN_DEPTH)
		return err_set(e, ERR_DATA,
			       "the JSON text is nested more than %d times at offset %zu",
			       JSON_SCAN_DEPTH, s->at);
	s->at++;
	s->depth++;
	s->first = true;
	return 0;
}

int json_scan_more(struct json_scan *s, char close, struct err *e)
{
	char c = kind_of(s);

	if (c == close) {
		s->at++;
		s->depth--;
		s->first = false;
		return 0;
	}
	if (!s->first) {
		if (c != ',')
			return not_json(s, "a comma or the end of its object or list", e);
		s->at++;
	}
	s->first = false;
	return 1;
}

/* Four hexadecimal digits. */
static bool hex4(struct json_scan *s, uint32_t *out)
{
	*out = 0;
	for (int i = 0; i < 4; i++, s->at++) {
		static const char digit[] = "0123456789abcdef";
		const char *p = s->at < s->n && s->text[s->at]
					? strchr(digit, s->text[s->at] | 0x20)
					: NULL;

		if (!p)
			return false;
		*out = *out << 4 | (uint32_t)(p - digit);
	}
	return true;
}

static size_t put_utf8(uint32_t c, char out[4])
{
	if (c < 0x80) {
		out[0] = (char)c;
		return 1;
	}
	if (c < 0x800) {
		out[0] = (char)(0xc0 | c >> 6);
		out[1] = (char)(0x80 | (c & 0x3f));
		return 2;
	}
	if (c < 0x10000) {
		out[0] = (char)(0xe0 | c >> 12);
		out[1] = (char)(0x80 | (c >> 6 & 0x3f));
		out[2] = (char)(0x80 | (c & 0x3f));
		return 3;
	}
	out[0] = (char)(0xf0 | c >> 18);
	out[1] = (char)(0x80 | (c >> 12 & 0x3f));
	out[2] = (char)(0x80 | (c >> 6 & 0x3f));
	out[3] = (char)(0x80 | (c & 0x3f));
	return 4;
}

/* What stands behind a backslash: how many bytes it makes, 0 when it is nothing. */
static size_t escaped(struct json_scan *s, char out[4])
{
	static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
	uint32_t c, low;
	const char *p;

	if (s->at == s->n)
		return 0;
	p = s->text[s->at] ? strchr(from, s->text[s->at]) : NULL;
	s->at++;
	if (p) {
		out[0] = to[p - from];
		return 1;
	}
	if (s->text[s->at - 1] != 'u' || !hex4(s, &c) || (c & 0xfc00) == 0xdc00)
		return 0;
	if ((c & 0xfc00) == 0xd800) {
		if (s->n - s->at < 6 || memcmp(s->text + s->at, "\\u", 2) != 0)
			return 0;
		s->at += 2;
		if (!hex4(s, &low) || (low & 0xfc00) != 0xdc00)
			return 0;
		c = 0x10000 + ((c & 0x3ff) << 10 | (low & 0x3ff));
	}
	return put_utf8(c, out);
}

/* *length gets what it would have needed; `zero` whether it holds one. */
static int text_of(struct json_scan *s, char *out, size_t room, size_t *length, bool *zero,
		   struct err *e)
{
	*length = 0;
	*zero = false;
	if (kind_of(s) != '"')
		return not_json(s, "a string", e);
	s->at++;
	while (s->at < s->n && s->text[s->at] != '"') {
		char piece[4] = {s->text[s->at++]};
		size_t n = 1;

		if ((unsigned char)piece[0] < 0x20 ||
		    (piece[0] == '\\' && (n = escaped(s, piece)) == 0))
			return err_set(e, ERR_DATA,
				       "the JSON text has a string with a bad character before "
				       "offset %zu",
				       s->at);
		*zero = *zero || piece[0] == '\0';
		for (size_t i = 0; i < n; i++, ++*length)
			if (*length + 1 < room)
				out[*length] = piece[i];
	}
	if (s->at == s->n)
		return not_json(s, "the end of a string", e);
	s->at++;
	if (room)
		out[*length < room ? *length : room - 1] = '\0';
	return 0;
}

int json_scan_key(struct json_scan *s, char *out, size_t room, struct err *e)
{
	size_t length;
	bool zero;
	int rc = text_of(s, out, room, &length, &zero, e);

	if (rc < 0)
		return rc;
	if (kind_of(s) != ':')
		return not_json(s, "a colon", e);
	s->at++;
	return 0;
}

int json_scan_string(struct json_scan *s, char *out, size_t room, struct err *e)
{
	size_t length, from = s->at;
	bool zero;
	int rc = text_of(s, out, room, &length, &zero, e);

	if (rc == 0 && (length >= room || zero))
		return err_set(e, ERR_DATA, "the string at offset %zu of the JSON text %s", from,
			       zero ? "holds a zero" : "is too long");
	return rc;
}

int json_scan_u64(struct json_scan *s, uint64_t *out, struct err *e)
{
	char c = kind_of(s);

	*out = 0;
	if (c < '0' || c > '9')
		return not_json(s, "a whole number", e);
	while (s->at < s->n && s->text[s->at] >= '0' && s->text[s->at] <= '9')
		if (__builtin_mul_overflow(*out, (uint64_t)10, out) ||
		    __builtin_add_overflow(*out, (uint64_t)(s->text[s->at++] - '0'), out))
			return err_set(e, ERR_DATA,
				       "the number before offset %zu of the JSON text is too large",
				       s->at);
	if (s->at < s->n && memchr(".eE+-", s->text[s->at], 5))
		return not_json(s, "a whole number", e);
	return 0;
}

static bool word(struct json_scan *s, const char *w)
{
	size_t n = strlen(w);

	kind_of(s);
	if (s->n - s->at < n || memcmp(s->text + s->at, w, n) != 0)
		return false;
	s->at += n;
	return true;
}

int json_scan_null(struct json_scan *s)
{
	return word(s, "null");
}

static int skip_plain(struct json_scan *s, struct err *e)
{
	size_t from, length;
	bool zero;

	if (kind_of(s) == '"')
		return text_of(s, NULL, 0, &length, &zero, e);
	if (word(s, "null") || word(s, "true") || word(s, "false"))
		return 0;
	from = s->at;
	while (s->at < s->n && s->text[s->at] && strchr("0123456789.eE+-", s->text[s->at]))
		s->at++;
	return s->at > from ? 0 : not_json(s, "a value", e);
}

int json_scan_skip(struct json_scan *s, struct err *e)
{
	char close[JSON_SCAN_DEPTH], key[2];
	unsigned open = 0;

	for (;;) {
		char c = kind_of(s);
		int rc;

		if (c == '{' || c == '[') {
			rc = json_scan_enter(s, c, e);
			if (rc < 0)
				return rc;
			close[open++] = c == '{' ? '}' : ']';
		} else {
			rc = skip_plain(s, e);
			if (rc < 0)
				return rc;
		}
		while (open && (rc = json_scan_more(s, close[open - 1], e)) == 0)
			open--;
		if (rc < 0 || open == 0)
			return rc < 0 ? rc : 0;
		if (close[open - 1] == '}' && (rc = json_scan_key(s, key, sizeof(key), e)) < 0)
			return rc;
	}
}

int json_scan_end(struct json_scan *s, struct err *e)
{
	return kind_of(s) == '\0' && s->at == s->n
		       ? 0
		       : err_set(e, ERR_DATA, "the JSON text goes on at offset %zu", s->at);
}
