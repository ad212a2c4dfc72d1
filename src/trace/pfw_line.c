#include "trace/pfw_line.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"

#define DEPTH_MAX 64
#define NUMBER_MAX 32

#define FIELD_KEY(number, key) {key, sizeof(key) - 1},
static const struct {
	const char *text;
	size_t n;
} keys[PFW_FIELDS] = {PFW_FIELDS_OF(FIELD_KEY)};

/* ---- objects ---- */

/* NULL, for what ends at `at`. */
static const char *wrong(struct pfw_line *l, const char *at, const char *what)
{
	if (!l->wrong) {
		l->wrong = what;
		l->at = at;
	}
	return NULL;
}

static const char *blanks(const char *p)
{
	while (*p == ' ' || *p == '\t' || *p == '\r' || *p == '\n')
		p++;
	return p;
}

static void check_escape(struct pfw_line *l, const char *p)
{
	if (!*p || !strchr("\"\\/bfnrtu", *p))
		wrong(l, p, "a string contains an escape that is not valid in JSON");
	for (int i = 1; *p == 'u' && i <= 4; i++)
		if (!isxdigit((unsigned char)p[i])) {
			wrong(l, p + i, "\\u must be followed by four hexadecimal digits");
			return;
		}
}

/* Just past the string whose opening quote is at p; NULL: it is not closed. */
static const char *string_end(struct pfw_line *l, const char *p)
{
	static const char open[] = "a string is not terminated on its line";

	for (p++; *p && *p != '"'; p++) {
		if ((unsigned char)*p < ' ')
			wrong(l, p, open);
		if (*p != '\\')
			continue;
		check_escape(l, p + 1);
		if (p[1])
			p++;
	}
	return *p ? p + 1 : wrong(l, p, open);
}

/* Behind a string, or a number, true, false or null; NULL: it is none. */
static const char *scalar_end(struct pfw_line *l, const char *p)
{
	const char *begin = p;

	if (*p == '"')
		return string_end(l, p);
	while (isalnum((unsigned char)*p) || *p == '-' || *p == '+' || *p == '.')
		p++;
	return p > begin ? p : wrong(l, p, "expected a JSON value");
}

/* Behind a value of any kind; NULL: it has no end. What is in lists needs its brackets and strings
 * to be whole, no more. */
static const char *value_end(struct pfw_line *l, const char *p)
{
	char open[DEPTH_MAX];
	int depth = 0;

	do {
		if (*p == '[' || *p == '{') {
			if (depth == DEPTH_MAX)
				return wrong(l, p, "values are nested more than 64 levels deep");
			open[depth++] = *p++ == '[' ? ']' : '}';
		} else if (depth && (*p == ']' || *p == '}')) {
			if (open[--depth] != *p)
				wrong(l, p, "a closing bracket does not match any opening bracket");
			p++;
		} else if (depth && (*p == ',' || *p == ':')) {
			p++;
		} else if (!(p = scalar_end(l, p))) {
			return NULL;
		}
		if (depth)
			p = blanks(p);
	} while (depth);
	return p;
}

static void take(struct pfw_line *l, bool args, const char *key, size_t n, const char *p,
		 const char *end)
{
	bool quoted = *p == '"';

	for (int i = args ? A_NAME : 0; i < (args ? PFW_FIELDS : A_NAME); i++) {
		if (keys[i].n != n || keys[i].text[0] != *key || memcmp(keys[i].text, key, n) != 0)
			continue;
		if (*p != '[' && *p != '{')
			l->f[i] = (struct pfw_text){p + quoted, (size_t)(end - p) - 2 * quoted,
						    true, quoted};
		return;
	}
}

/* The members of an object that begins behind its brace. Behind it; NULL: it is none, or is cut. */
static const char *members(struct pfw_line *l, const char *p, bool args)
{
	static const char inner[] = "args";

	for (p = blanks(p); *p != '}'; p = blanks(p)) {
		const char *key = p + 1, *end;
		size_t n;

		if (*p != '"')
			return wrong(l, p, "expected a quoted object key");
		p = string_end(l, p);
		if (!p)
			return NULL;
		n = (size_t)(p - key) - 1;
		p = blanks(p);
		if (*p != ':')
			return wrong(l, p, "expected a colon after a key");
		p = blanks(p + 1);
		if (!args && *p == '{' && n == sizeof(inner) - 1 && memcmp(key, inner, n) == 0)
			end = members(l, p + 1, true);
		else if ((end = value_end(l, p)))
			take(l, args, key, n, p, end);
		if (!end)
			return NULL;
		p = blanks(end);
		if (*p == ',')
			p++;
		else if (*p != '}')
			return wrong(l, p, "expected a comma or a closing brace in an object");
	}
	return p + 1;
}

bool pfw_object(const char *p, bool args, struct pfw_line *l)
{
	*l = (struct pfw_line){0};
	return (*p == '{' ? members(l, p + 1, args) : wrong(l, p, "expected an object")) != NULL;
}

/* ---- values ---- */

bool pfw_is(const struct pfw_text *t, const char *what)
{
	return t->n == strlen(what) && memcmp(t->p, what, t->n) == 0;
}

/* The text with a NUL behind it; false: it is empty, or longer than numbers are. */
static bool terminated(const struct pfw_text *t, char copy[NUMBER_MAX])
{
	if (!t->n || t->n >= NUMBER_MAX)
		return false;
	memcpy(copy, t->p, t->n);
	copy[t->n] = '\0';
	return true;
}

bool pfw_number(const struct pfw_text *t, int64_t *v)
{
	char copy[NUMBER_MAX], *end;

	if (!terminated(t, copy))
		return false;
	errno = 0;
	*v = strtoll(copy, &end, 10);
	return end != copy && (*end == '\0' || *end == '.') && !errno;
}

/* A double does not hold those since 1970, but what is written with an exponent is no such. */
bool pfw_ns(const struct pfw_text *t, int64_t *ns)
{
	int64_t scale = 100;
	char copy[NUMBER_MAX];
	const char *s = copy;
	double d;

	if (!terminated(t, copy))
		return false;
	if (strpbrk(s, "eE-")) {
		if (!str_to_f64(s, &d) || !(d > -1e15 && d < 1e15))
			return false;
		*ns = (int64_t)(d * 1000);
		return true;
	}
	for (*ns = 0; *s >= '0' && *s <= '9' && *ns <= PFW_NS_MAX / 10 - 10000; s++)
		*ns = *ns * 10 + (*s - '0') * 1000;
	if (*s == '.')
		for (s++; *s >= '0' && *s <= '9'; s++, scale /= 10)
			*ns += (*s - '0') * scale;
	return !*s && !pfw_is(t, ".");
}

static void put_code_point(struct buf *out, unsigned u)
{
	int more = u < 0x80 ? 0 : u < 0x800 ? 1 : u < 0x10000 ? 2 : 3;

	buf_putc(out, (char)(more ? 0xff00 >> (more + 1) | u >> 6 * more : u));
	while (more-- > 0)
		buf_putc(out, (char)(0x80 | (u >> 6 * more & 63)));
}

/* The number behind `\u`, of at least four characters; 0: it is none. */
static unsigned code_of(const char *p, const char *end)
{
	unsigned v;

	return end - p >= 6 && p[0] == '\\' && p[1] == 'u' && sscanf(p + 2, "%4x", &v) == 1 ? v : 0;
}

const char *pfw_plain(const struct pfw_text *t, struct buf *out)
{
	static const char letters[] = "nrtbf", meant[] = "\n\r\t\b\f";
	const char *p = t->there ? t->p : "", *end = p + t->n, *slash;

	buf_reset(out);
	while (t->quoted && (slash = memchr(p, '\\', (size_t)(end - p))) && slash + 1 < end) {
		const char *letter = strchr(letters, slash[1]);
		unsigned u = code_of(slash, end), low;

		buf_append(out, p, (size_t)(slash - p));
		p = slash + 2;
		if (slash[1] != 'u' || end - slash < 6) {
			buf_putc(out, letter ? meant[letter - letters] : slash[1]);
			continue;
		}
		p += 4;
		low = u >> 10 == 0x36 ? code_of(p, end) : 0;
		if (low >> 10 == 0x37) {
			u = 0x10000 + ((u & 0x3ff) << 10 | (low & 0x3ff));
			p += 6;
		}
		put_code_point(out, u == 0 || u >> 11 == 0x1b ? '?' : u);
	}
	buf_append(out, p, (size_t)(end - p));
	return out->data;
}
