#include "http/response.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#define EXTRA_MAX 16384 /* extensions of chunks, and trailers */

static bool is_token(unsigned char c)
{
	return c > 32 && c < 127 && !strchr("()<>@,;:\\\"/[]?={}", c);
}

/* The end of a line: behind its \n; NULL when it is not there yet. *text_n is without \r\n. */
static const char *line_end(const char *at, const char *end, size_t *text_n)
{
	const char *lf = memchr(at, '\n', (size_t)(end - at));

	if (!lf)
		return NULL;
	*text_n = (size_t)(lf - at);
	if (*text_n && at[*text_n - 1] == '\r')
		--*text_n;
	return lf + 1;
}

static int take_status(struct http_head *h, const char *at, size_t n, bool *old, struct err *e)
{
	if (n < 12 || strncmp(at, "HTTP/1.", 7) != 0 || !isdigit((unsigned char)at[7]) ||
	    at[8] != ' ' || !isdigit((unsigned char)at[9]) || !isdigit((unsigned char)at[10]) ||
	    !isdigit((unsigned char)at[11]) || (n > 12 && at[12] != ' ') || at[9] == '0')
		return err_set(e, ERR_DATA, "sent no answer of HTTP/1.1");
	h->status = (at[9] - '0') * 100 + (at[10] - '0') * 10 + (at[11] - '0');
	*old = at[7] == '0';
	return 0;
}

static bool value_has(const char *value, size_t n, const char *word)
{
	size_t word_n = strlen(word);

	for (size_t i = 0; i < n;) {
		size_t item = 0;

		while (i < n && (value[i] == ' ' || value[i] == '\t' || value[i] == ','))
			i++;
		while (i + item < n && value[i + item] != ',')
			item++;
		n = i + item < n ? n : i + item;
		size_t trimmed = item;
		while (trimmed && (value[i + trimmed - 1] == ' ' || value[i + trimmed - 1] == '\t'))
			trimmed--;
		if (trimmed == word_n && strncasecmp(value + i, word, word_n) == 0)
			return true;
		i += item;
	}
	return false;
}

static int take_length(struct http_head *h, const char *value, size_t n, struct err *e)
{
	uint64_t v = 0;

	if (n == 0 || n > 19)
		return err_set(e, ERR_DATA, "sent an impossible Content-Length");
	for (size_t i = 0; i < n; i++) {
		if (!isdigit((unsigned char)value[i]))
			return err_set(e, ERR_DATA, "sent an impossible Content-Length");
		v = v * 10 + (uint64_t)(value[i] - '0');
	}
	if (v > INT64_MAX || (h->has_length && h->length != v))
		return err_set(e, ERR_DATA, "sent an impossible Content-Length");
	h->has_length = true;
	h->length = v;
	return 0;
}

static int take_header(struct http_head *h, const char *at, size_t n, struct err *e)
{
	size_t name_n = 0, value_n;
	const char *value;

	while (name_n < n && is_token((unsigned char)at[name_n]))
		name_n++;
	if (name_n == 0 || name_n == n || at[name_n] != ':' || memchr(at, '\0', n) ||
	    memchr(at, '\r', n))
		return err_set(e, ERR_DATA, "sent a malformed header line");
	value = at + name_n + 1;
	value_n = n - name_n - 1;
	while (value_n && (*value == ' ' || *value == '\t'))
		value++, value_n--;
	while (value_n && (value[value_n - 1] == ' ' || value[value_n - 1] == '\t'))
		value_n--;
#define IS(word) (name_n == sizeof(word) - 1 && strncasecmp(at, word, name_n) == 0)
	if (IS("content-length"))
		return take_length(h, value, value_n, e);
	if (IS("transfer-encoding")) {
		if (value_n == 7 && strncasecmp(value, "chunked", 7) == 0)
			h->chunked = true;
		else if (value_n != 8 || strncasecmp(value, "identity", 8) != 0)
			return err_set(e, ERR_DATA, "sent an unknown Transfer-Encoding");
	} else if (IS("connection")) {
		if (value_has(value, value_n, "close"))
			h->keep = false;
		else if (value_has(value, value_n, "keep-alive"))
			h->keep = true;
	}
#undef IS
	return 0;
}

ssize_t http_head_parse(struct http_head *h, const char *text, size_t n, struct err *e)
{
	const char *at = text, *end = text + (n < HTTP_HEAD_MAX ? n : HTTP_HEAD_MAX), *next;
	size_t line_n = 0;
	bool old = false;
	int rc;

	memset(h, 0, sizeof(*h));
	next = line_end(at, end, &line_n);
	if (next || end - at >= 12) {
		rc = take_status(h, at, next ? line_n : 12, &old, e);
		if (rc < 0)
			return rc;
	}
	/* whole heads alone are looked at */
	for (const char *p = next; p; p = next) {
		next = line_end(p, end, &line_n);
		if (next && line_n == 0) {
			n = (size_t)(next - text);
			break;
		}
	}
	if (!next) {
		if (n >= HTTP_HEAD_MAX)
			return err_set(e, ERR_DATA, "sent more than %d bytes of headers",
				       HTTP_HEAD_MAX);
		return 0;
	}
	end = text + n;
	h->keep = !old;
	h->lines = line_end(at, end, &line_n);
	h->lines_n = (size_t)(end - h->lines);
	for (at = h->lines; (next = line_end(at, end, &line_n)) && line_n > 0; at = next) {
		rc = take_header(h, at, line_n, e);
		if (rc < 0)
			return rc;
	}
	if (h->chunked && h->has_length) { /* RFC 9112, 6.3: the length is void, and suspicious */
		h->has_length = false;
		h->length = 0;
		h->keep = false;
	}
	return (ssize_t)n;
}

bool http_head_get(const struct http_head *h, const char *name, char *out, size_t size)
{
	const char *at = h->lines, *end = at + h->lines_n, *next;
	size_t n = 0, name_n = strlen(name);

	out[0] = '\0';
	for (; at && at < end && (next = line_end(at, end, &n)) && n > 0; at = next) {
		const char *value;
		size_t value_n;

		if (n <= name_n || at[name_n] != ':' || strncasecmp(at, name, name_n) != 0)
			continue;
		value = at + name_n + 1;
		value_n = n - name_n - 1;
		while (value_n && (*value == ' ' || *value == '\t'))
			value++, value_n--;
		while (value_n && (value[value_n - 1] == ' ' || value[value_n - 1] == '\t'))
			value_n--;
		value_n = strnlen(value, value_n < size ? value_n : size - 1);
		memcpy(out, value, value_n);
		out[value_n] = '\0';
		return true;
	}
	return false;
}

bool http_head_has_body(const struct http_head *h, bool asked_head)
{
	return !asked_head && h->status >= 200 && h->status != 204 && h->status != 304;
}

int64_t http_date(const char *text)
{
	static const char months[] = "JanFebMarAprMayJunJulAugSepOctNovDec";
	static const int before[] = {0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334};
	int day, year, hour, minute, second, m;
	char month[4];
	const char *found;
	int64_t days;

	if (sscanf(text, "%*3s, %2d %3s %4d %2d:%2d:%2d GMT", &day, month, &year, &hour, &minute,
		   &second) != 6)
		return -1;
	found = strlen(month) == 3 ? strstr(months, month) : NULL;
	if (!found || (found - months) % 3 || year < 1970 || day < 1 || day > 31 || hour < 0 ||
	    hour > 23 || minute < 0 || minute > 59 || second < 0 || second > 60)
		return -1;
	m = (int)(found - months) / 3;
	days = (year - 1970) * 365LL + (year - 1969) / 4 - (year - 1901) / 100 +
	       (year - 1601) / 400 + before[m] + day - 1;
	if (m > 1 && ((year % 4 == 0 && year % 100) || year % 400 == 0))
		days++;
	return ((days * 24 + hour) * 60 + minute) * 60 + second;
}

/* ---- chunks ---- */

enum { SIZE, EXTENSION, DATA, DATA_CR, DATA_LF, TRAILER_START, TRAILER, LAST_LF };

static int hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

static int malformed(struct err *e)
{
	return err_set(e, ERR_DATA, "sent a malformed body in chunks");
}

static int size_ended(struct http_chunks *c, struct err *e)
{
	if (c->digits == 0)
		return malformed(e);
	c->state = c->left ? DATA : TRAILER_START;
	c->digits = 0;
	return 0;
}

static int take_byte(struct http_chunks *c, char in, struct err *e)
{
	int digit;

	switch (c->state) {
	case SIZE:
		digit = hex_digit(in);
		if (digit >= 0) {
			if (++c->digits > 15)
				return malformed(e);
			c->left = c->left << 4 | (unsigned)digit;
			return 0;
		}
		if (in == '\n')
			return size_ended(c, e);
		if (in != '\r' && in != ';' && in != ' ' && in != '\t')
			return malformed(e);
		c->state = EXTENSION;
		return 0;
	case EXTENSION:
		if (in == '\n')
			return size_ended(c, e);
		return ++c->extra > EXTRA_MAX ? malformed(e) : 0;
	case DATA_CR:
		c->state = in == '\n' ? SIZE : DATA_LF;
		return in == '\r' || in == '\n' ? 0 : malformed(e);
	case DATA_LF:
		c->state = SIZE;
		return in == '\n' ? 0 : malformed(e);
	case TRAILER_START:
		if (in == '\n')
			c->done = true;
		c->state = in == '\r' ? LAST_LF : TRAILER;
		return 0;
	case TRAILER:
		if (in == '\n')
			c->state = TRAILER_START;
		return ++c->extra > EXTRA_MAX ? malformed(e) : 0;
	default: /* LAST_LF */
		if (in != '\n')
			return malformed(e);
		c->done = true;
		return 0;
	}
}

ssize_t http_chunks_take(struct http_chunks *c, const char *in, size_t n, const char **piece,
			 size_t *piece_n, struct err *e)
{
	size_t i = 0;

	*piece = in;
	*piece_n = 0;
	while (i < n && c->state != DATA && !c->done) {
		int rc = take_byte(c, in[i++], e);

		if (rc < 0)
			return rc;
	}
	if (i < n && c->state == DATA) {
		*piece = in + i;
		*piece_n = n - i < c->left ? n - i : (size_t)c->left;
		c->left -= *piece_n;
		i += *piece_n;
		if (c->left == 0)
			c->state = DATA_CR;
	}
	return (ssize_t)i;
}
