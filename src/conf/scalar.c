/* The type of a plain YAML 1.1 scalar as OmegaConf's loader sees it: PyYAML's rules, without dates
 * and with exponents that need no point. */
#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "conf/node.h"

#define HEX_DIGITS "0123456789abcdefABCDEF"

static bool one_of(const char *s, const char *const *words)
{
	for (; *words; words++) {
		if (strcmp(s, *words) == 0)
			return true;
	}
	return false;
}

static bool is_null(const char *s)
{
	static const char *const words[] = {"", "~", "null", "Null", "NULL", NULL};

	return one_of(s, words);
}

static bool is_true(const char *s)
{
	static const char *const words[] = {"true", "True", "TRUE", "yes", "Yes",
					    "YES",  "on",   "On",   "ON",  NULL};

	return one_of(s, words);
}

static bool is_false(const char *s)
{
	static const char *const words[] = {"false", "False", "FALSE", "no",  "No",
					    "NO",    "off",   "Off",   "OFF", NULL};

	return one_of(s, words);
}

static const char *skip_sign(const char *s)
{
	return *s == '+' || *s == '-' ? s + 1 : s;
}

/* Skips characters of `set`; NULL when there is none. */
static const char *some_of(const char *s, const char *set)
{
	size_t n = strspn(s, set);

	return n ? s + n : NULL;
}

/* "(:[0-5]?[0-9])+" */
static const char *skip_sixties(const char *s)
{
	const char *start = s;

	while (*s == ':' && isdigit((unsigned char)s[1])) {
		if (isdigit((unsigned char)s[2])) {
			if (s[1] > '5')
				return NULL;
			s += 3;
		} else {
			s += 2;
		}
	}
	return s == start ? NULL : s;
}

static bool is_int(const char *s)
{
	const char *p = skip_sign(s), *q;

	if (p[0] == '0' && p[1] == 'b')
		return (q = some_of(p + 2, "01_")) && *q == '\0' && strpbrk(p + 2, "01");
	if (p[0] == '0' && p[1] == 'x')
		return (q = some_of(p + 2, HEX_DIGITS "_")) && *q == '\0' &&
		       strpbrk(p + 2, HEX_DIGITS);
	if (p[0] == '0')
		return p[1 + strspn(p + 1, "01234567_")] == '\0';
	if (!isdigit((unsigned char)*p))
		return false;
	p += strspn(p, "0123456789_");
	if (*p == '\0')
		return true;
	q = skip_sixties(p);
	return q && *q == '\0';
}

static const char *skip_exponent(const char *s, bool sign_needed)
{
	if (*s != 'e' && *s != 'E')
		return s;
	s++;
	if (sign_needed && *s != '+' && *s != '-')
		return NULL;
	return some_of(skip_sign(s), "0123456789");
}

static bool is_special(const char *s)
{
	static const char *const inf[] = {".inf", ".Inf", ".INF", NULL};
	static const char *const nan[] = {".nan", ".NaN", ".NAN", NULL};

	return one_of(s, nan) || one_of(skip_sign(s), inf);
}

static bool is_float(const char *s)
{
	const char *p = skip_sign(s), *q;

	if (is_special(s))
		return true;
	if (*s == '.')
		return (q = some_of(s + 1, "0123456789_")) && (q = skip_exponent(q, true)) &&
		       *q == '\0';
	if (!isdigit((unsigned char)*p))
		return false;
	p += strspn(p, "0123456789_");
	if (*p == '.') {
		p += 1 + strspn(p + 1, "0123456789_");
		q = skip_exponent(p, false);
		return q && *q == '\0';
	}
	if (*p == ':') {
		q = skip_sixties(p);
		return q && *q == '.' && q[1 + strspn(q + 1, "0123456789_")] == '\0';
	}
	q = *p ? skip_exponent(p, false) : NULL;
	return q && *q == '\0';
}

/* "._" and "._e+1" match the rule of a float but have no digit: Python's float() refuses them. */
static bool has_digit(const char *s)
{
	return is_special(s) || isdigit((unsigned char)s[strcspn(s, "0123456789eE")]);
}

enum node_kind yaml_plain_kind(const char *text)
{
	if (is_null(text))
		return NODE_NULL;
	if (is_true(text) || is_false(text))
		return NODE_BOOL;
	if (is_int(text))
		return NODE_INT;
	if (is_float(text) && has_digit(text))
		return NODE_FLOAT;
	return NODE_STR;
}

static char *without_underscores(const char *s)
{
	char *out = xmalloc(strlen(s) + 1), *o = out;

	for (; *s; s++) {
		if (*s != '_')
			*o++ = *s;
	}
	*o = '\0';
	return out;
}

static bool digits_to_i64(const char *digits, int base, bool negative, int64_t *out)
{
	unsigned long long v;

	errno = 0;
	v = *digits ? strtoull(digits, NULL, base) : 0;
	if (errno || v > (unsigned long long)INT64_MAX + negative)
		return false;
	*out = negative ? (int64_t)(0 - v) : (int64_t)v;
	return true;
}

static double sixties(const char *digits)
{
	double total = 0;
	char *end;

	for (;; digits = end + 1) {
		total = total * 60 + strtod(digits, &end);
		if (*end != ':')
			return total;
	}
}

/* False when the value does not fit: such a number is kept as a float. */
static bool int_value(const char *text, int64_t *out)
{
	AUTO_FREE char *plain = without_underscores(text);
	const char *digits = skip_sign(plain);
	bool negative = *plain == '-';

	if (strchr(digits, ':')) {
		double v = sixties(digits);

		if (v >= 0x1p53)
			return false;
		*out = negative ? -(int64_t)v : (int64_t)v;
		return true;
	}
	if (digits[0] == '0' && digits[1] == 'b')
		return digits_to_i64(digits + 2, 2, negative, out);
	if (digits[0] == '0' && digits[1] == 'x')
		return digits_to_i64(digits + 2, 16, negative, out);
	return digits_to_i64(digits, digits[0] == '0' ? 8 : 10, negative, out);
}

/* An integer too large for int64_t, whatever its base. */
static double int_as_float(const char *text)
{
	AUTO_FREE char *plain = without_underscores(text);
	const char *digits = skip_sign(plain);
	double v = 0;
	int base = 10;

	if (strchr(digits, ':')) {
		v = sixties(digits);
	} else if (digits[0] != '0') {
		v = strtod(digits, NULL);
	} else {
		base = digits[1] == 'b' ? 2 : digits[1] == 'x' ? 16 : 8;
		for (digits += base == 8 ? 1 : 2; *digits; digits++) {
			int c = tolower((unsigned char)*digits);

			v = v * base + (isdigit(c) ? c - '0' : c - 'a' + 10);
		}
	}
	return *plain == '-' ? -v : v;
}

static double float_value(const char *text)
{
	AUTO_FREE char *plain = without_underscores(text);
	const char *digits = skip_sign(plain);
	double v;

	if (strcasecmp(digits, ".inf") == 0)
		v = INFINITY;
	else if (strcasecmp(digits, ".nan") == 0)
		v = NAN;
	else if (strchr(digits, ':'))
		v = sixties(digits);
	else
		v = strtod(digits, NULL);
	return *plain == '-' ? -v : v;
}

struct node *yaml_plain_scalar(const char *text, struct node_mark mark)
{
	struct node *n = node_new(yaml_plain_kind(text), mark);

	if (n->kind == NODE_NULL)
		return n;
	n->s = xstrdup(text);
	if (n->kind == NODE_BOOL)
		n->b = is_true(text);
	if (n->kind == NODE_INT) {
		if (int_value(text, &n->i)) {
			n->f = (double)n->i;
		} else {
			n->kind = NODE_FLOAT;
			n->f = int_as_float(text);
		}
	} else if (n->kind == NODE_FLOAT) {
		n->f = float_value(text);
	}
	return n;
}
