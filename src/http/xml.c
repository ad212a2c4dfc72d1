#include "http/xml.h"

#include <stdint.h>
#include <string.h>

static int malformed(struct err *e, const char *what)
{
	return err_set(e, ERR_DATA, "malformed XML: %s", what);
}

void xml_begin(struct xml *x, const char *text, size_t n)
{
	memset(x, 0, sizeof(*x));
	x->at = text;
	x->end = text + n;
}

void xml_end(struct xml *x)
{
	buf_release(&x->text);
}

const char *xml_text(const struct xml *x)
{
	return x->text.data ? x->text.data : "";
}

bool xml_is(const struct xml *x, const char *path)
{
	for (int i = 0; i < x->depth; i++) {
		size_t n = strcspn(path, "/");

		if (!(n == 1 && *path == '*') &&
		    (strlen(x->name[i]) != n || strncmp(x->name[i], path, n) != 0))
			return false;
		path += n;
		if (i + 1 < x->depth) {
			if (*path != '/')
				return false;
			path++;
		}
	}
	return x->depth > 0 && *path == '\0';
}

static bool is_space(char c)
{
	return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

static bool starts(const struct xml *x, const char *word)
{
	size_t n = strlen(word);

	return (size_t)(x->end - x->at) >= n && memcmp(x->at, word, n) == 0;
}

static const char *find(const struct xml *x, const char *word)
{
	return memmem(x->at, (size_t)(x->end - x->at), word, strlen(word));
}

static void put_character(struct buf *out, uint32_t c)
{
	if (c < 0x80) {
		buf_putc(out, (char)c);
	} else if (c < 0x800) {
		buf_putc(out, (char)(0xc0 | c >> 6));
		buf_putc(out, (char)(0x80 | (c & 63)));
	} else if (c < 0x10000) {
		buf_putc(out, (char)(0xe0 | c >> 12));
		buf_putc(out, (char)(0x80 | (c >> 6 & 63)));
		buf_putc(out, (char)(0x80 | (c & 63)));
	} else {
		buf_putc(out, (char)(0xf0 | c >> 18));
		buf_putc(out, (char)(0x80 | (c >> 12 & 63)));
		buf_putc(out, (char)(0x80 | (c >> 6 & 63)));
		buf_putc(out, (char)(0x80 | (c & 63)));
	}
}

/* x->at is behind "&#". */
static int take_number(struct xml *x, size_t n, struct err *e)
{
	bool hex = n && *x->at == 'x';
	uint32_t c = 0;

	if (n - hex == 0 || n - hex > 7)
		return malformed(e, "a character by an impossible number");
	for (size_t i = hex; i < n; i++) {
		char d = x->at[i];
		unsigned digit = d >= '0' && d <= '9' ? (unsigned)(d - '0')
				 : hex && (d | 32) >= 'a' && (d | 32) <= 'f'
					 ? (unsigned)((d | 32) - 'a' + 10)
					 : 99;

		if (digit == 99)
			return malformed(e, "a character by an impossible number");
		c = c * (hex ? 16 : 10) + digit;
	}
	if (c == 0 || c > 0x10ffff || (c >= 0xd800 && c < 0xe000))
		return malformed(e, "a character by an impossible number");
	put_character(&x->text, c);
	return 0;
}

static int take_entity(struct xml *x, struct err *e)
{
	static const struct {
		const char *name;
		char c;
	} five[] = {{"amp", '&'}, {"lt", '<'}, {"gt", '>'}, {"quot", '"'}, {"apos", '\''}};
	size_t room = (size_t)(x->end - x->at), n;
	const char *semicolon = memchr(x->at, ';', room < 12 ? room : 12);

	if (!semicolon)
		return malformed(e, "an entity without its end");
	n = (size_t)(semicolon - x->at);
	if (n > 1 && *x->at == '#') {
		int rc;

		x->at++;
		rc = take_number(x, n - 1, e);
		x->at = semicolon + 1;
		return rc;
	}
	for (size_t i = 0; i < sizeof(five) / sizeof(five[0]); i++)
		if (strlen(five[i].name) == n && memcmp(x->at, five[i].name, n) == 0) {
			buf_putc(&x->text, five[i].c);
			x->at = semicolon + 1;
			return 0;
		}
	return malformed(e, "an entity that is not known");
}

/* A name at x->at without its prefix. */
static int take_name(struct xml *x, char out[XML_NAME_MAX], struct err *e)
{
	const char *from = x->at;
	size_t n;

	while (x->at < x->end && !is_space(*x->at) && !strchr("/><=\"'&", *x->at)) {
		if (*x->at == ':')
			from = x->at + 1;
		x->at++;
	}
	n = (size_t)(x->at - from);
	if (n == 0 || n >= XML_NAME_MAX || memchr(from, '\0', n))
		return malformed(e, "a name that is empty or too long");
	memcpy(out, from, n);
	out[n] = '\0';
	return 0;
}

static int take_open(struct xml *x, struct err *e)
{
	char quote = '\0';
	int rc;

	if (x->depth == 0 && x->begun)
		return malformed(e, "more than one root");
	if (x->depth == XML_DEPTH_MAX)
		return malformed(e, "elements nested too deep");
	rc = take_name(x, x->name[x->depth], e);
	if (rc < 0)
		return rc;
	x->depth++;
	x->begun = true;
	buf_reset(&x->text);
	for (; x->at < x->end && (quote || (*x->at != '>' && *x->at != '<')); x->at++) {
		if (quote)
			quote = *x->at == quote ? '\0' : quote;
		else if (*x->at == '"' || *x->at == '\'')
			quote = *x->at;
	}
	if (x->at == x->end || *x->at != '>')
		return malformed(e, "a tag without its end");
	x->empty = x->at[-1] == '/';
	x->at++;
	return XML_OPEN;
}

static int take_close(struct xml *x, struct err *e)
{
	char name[XML_NAME_MAX];
	int rc = take_name(x, name, e);

	if (rc < 0)
		return rc;
	while (x->at < x->end && is_space(*x->at))
		x->at++;
	if (x->depth == 0 || strcmp(name, x->name[x->depth - 1]) != 0 || x->at == x->end ||
	    *x->at != '>')
		return malformed(e, "an end tag in the wrong place");
	x->at++;
	x->pop = true;
	return XML_CLOSE;
}

/* Comments, processing instructions, CDATA: 1 when something was taken. */
static int take_special(struct xml *x, struct err *e)
{
	const char *end;

	if (starts(x, "<?")) {
		end = find(x, "?>");
		x->at = end ? end + 2 : x->end;
	} else if (starts(x, "<!--")) {
		end = find(x, "-->");
		x->at = end ? end + 3 : x->end;
	} else if (starts(x, "<![CDATA[") && x->depth > 0) {
		x->at += 9;
		end = find(x, "]]>");
		if (end && (size_t)(end - x->at) + x->text.len <= XML_TEXT_MAX)
			buf_append(&x->text, x->at, (size_t)(end - x->at));
		x->at = end ? end + 3 : x->end;
	} else if (starts(x, "<!")) {
		return malformed(e, "a document type, which is refused");
	} else {
		return 0;
	}
	return end ? 1 : malformed(e, "a comment or section without its end");
}

/* Up to the next tag or entity. */
static void take_text(struct xml *x)
{
	size_t n = 0, room = (size_t)(x->end - x->at);

	if (room > XML_TEXT_MAX - x->text.len)
		room = XML_TEXT_MAX - x->text.len;
	while (n < room && x->at[n] != '<' && x->at[n] != '&')
		n++;
	buf_append(&x->text, x->at, n);
	x->at += n;
}

int xml_next(struct xml *x, struct err *e)
{
	if (x->empty) {
		x->empty = false;
		x->pop = true;
		return XML_CLOSE;
	}
	if (x->pop) {
		x->pop = false;
		x->depth--;
		buf_reset(&x->text);
	}
	while (x->at < x->end) {
		if (*x->at == '<') {
			int rc = take_special(x, e);

			if (rc < 0)
				return rc;
			if (rc > 0)
				continue;
			x->at++;
			if (x->at < x->end && *x->at == '/') {
				x->at++;
				return take_close(x, e);
			}
			return take_open(x, e);
		}
		if (x->depth == 0) {
			bool mark = !x->begun && starts(x, "\xef\xbb\xbf");

			if (!is_space(*x->at) && !mark)
				return malformed(e, "text outside of the root");
			x->at += mark ? 3 : 1;
			continue;
		}
		if (x->text.len >= XML_TEXT_MAX)
			return malformed(e, "a text that is too long");
		if (*x->at == '&') {
			int rc;

			x->at++;
			rc = take_entity(x, e);
			if (rc < 0)
				return rc;
			continue;
		}
		take_text(x);
	}
	if (x->depth > 0 || !x->begun)
		return malformed(e, "it ends too early");
	return XML_END;
}
