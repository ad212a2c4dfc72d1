#include "page/trace_scan.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#include "base/alloc.h"
#include "base/file.h"

#define CHUNK 65536u
#define DEPTH_MAX 64

int trace_scan_open(struct trace_scan *s, const char *path, struct err *e)
{
	int fd = file_open(path, NULL, e);

	*s = (struct trace_scan){.line = 1};
	if (fd < 0)
		return fd;
	s->file = gzdopen(fd, "rb");
	if (!s->file) {
		close(fd);
		return err_set(e, -ENOMEM, "there is no memory to read the trace '%s'", path);
	}
	s->path = xstrdup(path);
	s->chunk = xmalloc(CHUNK);
	return 0;
}

void trace_scan_close(struct trace_scan *s)
{
	gzclose(s->file);
	free(s->chunk);
	free(s->path);
}

int trace_scan_bad(struct trace_scan *s, struct err *e, const char *what)
{
	return err_set(e, ERR_DATA, "trace '%s', line %llu: %s", s->path,
		       (unsigned long long)s->line, what);
}

static int fill_chunk(struct trace_scan *s)
{
	int n, zlib = Z_OK;

	errno = 0;
	n = gzread(s->file, s->chunk, CHUNK);
	if (n < 0)
		gzerror(s->file, &zlib);
	if (zlib == Z_ERRNO)
		s->failed = errno ? errno : EIO;
	s->used = 0;
	s->have = n > 0 ? (unsigned)n : 0;
	return n > 0;
}

int trace_scan_peek(struct trace_scan *s)
{
	if (s->used == s->have && !fill_chunk(s))
		return TRACE_END;
	return s->chunk[s->used];
}

int trace_scan_take(struct trace_scan *s)
{
	int c = trace_scan_peek(s);

	if (c == TRACE_END)
		return TRACE_END;
	s->used++;
	s->line += c == '\n';
	return c;
}

int trace_scan_blanks(struct trace_scan *s, bool commas)
{
	int c = trace_scan_peek(s);

	while (c == ' ' || c == '\t' || c == '\n' || c == '\r' || (commas && c == ',')) {
		trace_scan_take(s);
		c = trace_scan_peek(s);
	}
	return c;
}

/* ---- values ---- */

int trace_scan_early(struct trace_scan *s)
{
	s->cut = true;
	return TRACE_END;
}

static void keep_byte(struct trace_text *t, int c)
{
	if (t->n + 1 < sizeof(t->s))
		t->s[t->n++] = (char)c;
}

static void keep_code_point(struct trace_text *t, unsigned u)
{
	if (u < 0x80) {
		keep_byte(t, (int)u);
	} else if (u < 0x800) {
		keep_byte(t, (int)(0xc0 | u >> 6));
		keep_byte(t, (int)(0x80 | (u & 0x3f)));
	} else {
		keep_byte(t, (int)(0xe0 | u >> 12));
		keep_byte(t, (int)(0x80 | (u >> 6 & 0x3f)));
		keep_byte(t, (int)(0x80 | (u & 0x3f)));
	}
}

static int hex_digit(int c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

static int read_escape(struct trace_scan *s, struct trace_text *t, struct err *e)
{
	static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
	int c = trace_scan_take(s);
	const char *at;
	unsigned u = 0;

	if (c == TRACE_END)
		return trace_scan_early(s);
	if (c != 'u') {
		at = c ? strchr(from, c) : NULL;
		if (!at)
			return trace_scan_bad(
				s, e, "a string contains an escape that is not valid in JSON");
		keep_byte(t, to[at - from]);
		return 0;
	}
	for (int i = 0; i < 4; i++) {
		c = trace_scan_take(s);
		if (c == TRACE_END)
			return trace_scan_early(s);
		if (hex_digit(c) < 0)
			return trace_scan_bad(s, e,
					      "\\u must be followed by four hexadecimal digits");
		u = u * 16 + (unsigned)hex_digit(c);
	}
	/* halves of a pair, and NUL, stand for nothing that a name needs */
	keep_code_point(t, u == 0 || (u >= 0xd800 && u <= 0xdfff) ? '?' : u);
	return 0;
}

static bool is_plain(unsigned char c)
{
	return c >= 0x20 && c != '"' && c != '\\';
}

/* 0, TRACE_END when the file ends, or an error. The opening quote is next. */
static int read_string(struct trace_scan *s, struct trace_text *t, struct err *e)
{
	int rc = 0;

	t->n = 0;
	trace_scan_take(s);
	while (rc == 0) {
		int c;

		/* what means nothing but itself, without going through every test */
		while (s->used < s->have && is_plain(s->chunk[s->used]))
			keep_byte(t, s->chunk[s->used++]);
		c = trace_scan_take(s);

		if (c == TRACE_END)
			return trace_scan_early(s);
		if (c == '"')
			break;
		if (c == '\\')
			rc = read_escape(s, t, e);
		else if (c < 0x20)
			return trace_scan_bad(s, e, "a string is not terminated on its line");
		else
			keep_byte(t, c);
	}
	t->s[t->n] = '\0';
	return rc;
}

static bool is_word_byte(int c)
{
	return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
	       c == '-' || c == '+' || c == '.';
}

int trace_scan_scalar(struct trace_scan *s, struct trace_text *t, struct err *e)
{
	int c = trace_scan_peek(s);

	if (c == '"')
		return read_string(s, t, e);
	t->n = 0;
	while (is_word_byte(c)) {
		keep_byte(t, c);
		assert(s->used < s->have); /* trace_scan_peek saw it */
		s->used++;
		c = trace_scan_peek(s);
	}
	t->s[t->n] = '\0';
	if (c == TRACE_END)
		return trace_scan_early(s);
	return t->n ? 0 : trace_scan_bad(s, e, "expected a JSON value");
}

int trace_scan_skip(struct trace_scan *s, struct err *e)
{
	char open[DEPTH_MAX];
	int depth = 0, rc;

	for (;;) {
		/* what is left out needs its brackets and texts to be whole, no more */
		int c = trace_scan_blanks(s, false);

		if (c == TRACE_END)
			return trace_scan_early(s);
		if (c == '{' || c == '[') {
			if (depth == DEPTH_MAX)
				return trace_scan_bad(s, e,
						      "values are nested more than 64 levels deep");
			open[depth++] = c == '{' ? '}' : ']';
			trace_scan_take(s);
		} else if (c == '}' || c == ']') {
			if (depth == 0 || open[--depth] != c)
				return trace_scan_bad(
					s, e,
					"a closing bracket does not match any opening bracket");
			trace_scan_take(s);
		} else if (depth && (c == ',' || c == ':')) {
			trace_scan_take(s);
			continue;
		} else {
			rc = trace_scan_scalar(s, &s->word, e);
			if (rc < 0)
				return rc;
		}
		if (depth == 0)
			return 0;
	}
}

int trace_scan_key(struct trace_scan *s, bool first, struct err *e)
{
	int c = trace_scan_blanks(s, false), rc;

	if (c == TRACE_END)
		return trace_scan_early(s);
	if (c == '}') {
		trace_scan_take(s);
		return 0;
	}
	if (!first) {
		if (c != ',')
			return trace_scan_bad(s, e,
					      "expected a comma or a closing brace in an object");
		trace_scan_take(s);
		c = trace_scan_blanks(s, false);
	}
	if (c == TRACE_END)
		return trace_scan_early(s);
	if (c != '"')
		return trace_scan_bad(s, e, "expected a quoted object key");
	rc = read_string(s, &s->word, e);
	if (rc < 0)
		return rc;
	c = trace_scan_blanks(s, false);
	if (c == TRACE_END)
		return trace_scan_early(s);
	if (c != ':')
		return trace_scan_bad(s, e, "expected a colon after a key");
	trace_scan_take(s);
	return trace_scan_blanks(s, false) == TRACE_END ? trace_scan_early(s) : 1;
}
