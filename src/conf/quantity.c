#include "conf/quantity.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/str.h"

enum family { COUNT, SIZE, RATE, TIME, FRACTION };

#define UNIT_TEXT_MAX 32

/* A text cut into its number and what stands behind it. */
struct quantity {
	long double number;
	char number_text[UNIT_TEXT_MAX];
	const char *rest; /* the unit, without blanks before it */
};

static enum family family_of(const char *unit)
{
	static const struct {
		const char *unit;
		enum family family;
	} families[] = {{"bytes", SIZE},
			{"bytes/s", RATE},
			{"s", TIME},
			{"ms", TIME},
			{QUANTITY_FRACTION, FRACTION}};

	for (size_t i = 0; unit && i < sizeof(families) / sizeof(families[0]); i++)
		if (strcmp(unit, families[i].unit) == 0)
			return families[i].family;
	return COUNT;
}

static const char *const family_units[] = {
	[SIZE] = "B, KB, MB, GB, TB, PB, KiB, MiB, GiB, TiB, PiB",
	[RATE] = "B/s, KB/s, MB/s, GB/s, KiB/s, MiB/s, GiB/s",
	[TIME] = "ns, us, ms, s, min, h",
	[FRACTION] = "%",
};

/* ---- the number ---- */

static const char *skip_digits(const char *s)
{
	while (isdigit((unsigned char)*s))
		s++;
	return s;
}

/* The end of a decimal number at the start of `s`, or NULL. */
static const char *number_end(const char *s)
{
	const char *p = s + (*s == '+' || *s == '-'), *digits = p, *e;

	p = skip_digits(p);
	if (*p == '.')
		p = skip_digits(p + 1);
	if (p == digits || (p == digits + 1 && *digits == '.'))
		return NULL;
	if (*p != 'e' && *p != 'E')
		return p;
	e = p + 1 + (p[1] == '+' || p[1] == '-');
	return isdigit((unsigned char)*e) ? skip_digits(e) : p;
}

static bool split(const char *text, struct quantity *q)
{
	const char *end = number_end(text);
	size_t n = end ? (size_t)(end - text) : 0;

	if (!end || *end == '\0' || n >= sizeof(q->number_text))
		return false;
	memcpy(q->number_text, text, n);
	q->number_text[n] = '\0';
	q->number = strtold(q->number_text, NULL);
	q->rest = end + strspn(end, " \t");
	return q->rest[0] != '\0';
}

/* ---- units ---- */

static bool is_word(const char *s, size_t n, const char *const *words)
{
	for (; *words; words++)
		if (strlen(*words) == n && strncasecmp(s, *words, n) == 0)
			return true;
	return false;
}

enum size_word { NO_SIZE, BYTES, BITS, BARE_PREFIX };

/* The unit of a size, `n` characters: what it is, and its bytes (of BITS and BARE_PREFIX: its power
 * of 1000). */
static enum size_word size_word(const char *s, size_t n, long double *factor)
{
	static const char prefixes[] = "kmgtpe";
	static const char *const bytes[] = {"b", "byte", "bytes", NULL};
	static const char *const bits[] = {"bit", "bits", NULL};
	const char *p = n ? strchr(prefixes, tolower((unsigned char)s[0])) : NULL;
	bool binary;

	*factor = 1;
	if (n == 1 && s[0] == 'b')
		return BITS;
	if (is_word(s, n, bytes))
		return BYTES;
	if (is_word(s, n, bits))
		return BITS;
	if (!p || !*p)
		return NO_SIZE;
	binary = n > 1 && tolower((unsigned char)s[1]) == 'i';
	for (; p >= prefixes; p--)
		*factor *= binary ? 1024 : 1000;
	if (n == 1)
		return BARE_PREFIX;
	if (n == 2 && binary)
		return BYTES;
	s += 1 + binary;
	n -= 1 + (size_t)binary;
	if (is_word(s, n, bits))
		return BITS;
	/* "Mb" is a megabit; who writes no capitals at all means "MB" */
	if (n == 1 && s[0] == 'b' && isupper((unsigned char)s[-1 - binary]))
		return BITS;
	return is_word(s, n, bytes) ? BYTES : NO_SIZE;
}

static bool time_word(const char *s, long double *seconds)
{
	static const struct {
		const char *name;
		long double seconds;
	} words[] = {{"ns", 1e-9L},  {"us", 1e-6L},   {"\xc2\xb5s", 1e-6L}, {"\xce\xbcs", 1e-6L},
		     {"ms", 1e-3L},  {"s", 1},        {"sec", 1},           {"secs", 1},
		     {"second", 1},  {"seconds", 1},  {"min", 60},          {"mins", 60},
		     {"minute", 60}, {"minutes", 60}, {"h", 3600},          {"hour", 3600},
		     {"hours", 3600}};

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (strcmp(s, words[i].name) == 0) {
			*seconds = words[i].seconds;
			return true;
		}
	return false;
}

/* "MB/s", "MBps": the length of the size in it; 0: no rate. */
static size_t rate_length(const char *s)
{
	size_t n = strlen(s);

	if (n > 2 && (strcmp(s + n - 2, "/s") == 0 || strcmp(s + n - 2, "ps") == 0))
		return n - 2;
	return n > 4 && strcmp(s + n - 4, "/sec") == 0 ? n - 4 : 0;
}

/* ---- sentences ---- */

/* "1234", "0.25", "1.5e+30": to be typed again. */
static void plain(long double v, char *out, size_t out_size)
{
	if (v == floorl(v) && fabsl(v) < 1e18L)
		snprintf(out, out_size, "%.0Lf", v);
	else
		snprintf(out, out_size, "%.12Lg", v);
}

/* "a size", what it was. */
static const char *kind_name(enum family f)
{
	static const char *const names[] = {[COUNT] = "a count",
					    [SIZE] = "a size",
					    [RATE] = "a rate",
					    [TIME] = "a time",
					    [FRACTION] = "a share"};

	return names[f];
}

static const char *example_of(enum family f)
{
	static const char *const examples[] = {[COUNT] = "10",
					       [SIZE] = "64KiB or 40KB",
					       [RATE] = "100MB/s or 1GiB/s",
					       [TIME] = "0.03 or 30ms",
					       [FRACTION] = "0.9 or 90%"};

	return examples[f];
}

static int not_a_unit(const struct quantity *q, enum family want, const char *text, char *why)
{
	if (strchr(q->rest, ',') == q->rest)
		snprintf(why, QUANTITY_WHY_MAX,
			 "write the number without commas: '%.60s' is not a number", text);
	else if (want == COUNT)
		snprintf(why, QUANTITY_WHY_MAX,
			 "write a plain number, without '%.20s': '%.60s' is not a number", q->rest,
			 text);
	else
		snprintf(why, QUANTITY_WHY_MAX,
			 "write it like %s: '%.20s' in '%.60s' is not a unit of this key (%s)",
			 example_of(want), q->rest, text, family_units[want]);
	return -1;
}

static int other_family(enum family want, enum family is, const char *unit, const char *text,
			char *why)
{
	if (want == COUNT)
		snprintf(why, QUANTITY_WHY_MAX, "write a plain number%s%s: '%.60s' is %s",
			 unit ? " of " : "", unit ? unit : "", text, kind_name(is));
	else
		snprintf(why, QUANTITY_WHY_MAX, "write %s, such as %s: '%.60s' is %s",
			 kind_name(want), example_of(want), text, kind_name(is));
	return -1;
}

/* "10k" of what has no unit, or "40K" of bytes. */
static int bare_prefix(const struct quantity *q, enum family want, long double factor,
		       const char *unit, const char *text, char *why)
{
	char number[UNIT_TEXT_MAX];
	char letter = (char)toupper((unsigned char)q->rest[0]);
	const char *per = want == RATE ? "/s" : "";

	plain(q->number * factor, number, sizeof(number));
	if (want == SIZE || want == RATE)
		snprintf(why, QUANTITY_WHY_MAX,
			 "write %s%cB%s (powers of 1000) or %s%ciB%s (powers of 1024): '%.60s' "
			 "can mean either",
			 q->number_text, letter, per, q->number_text, letter, per, text);
	else if (want == COUNT)
		snprintf(why, QUANTITY_WHY_MAX, "write %s: %s%s without a unit, not '%.60s'",
			 number, unit ? unit : "this key takes a number",
			 unit ? " are counted" : "", text);
	else
		return not_a_unit(q, want, text, why);
	return -1;
}

static int bits(const struct quantity *q, enum family want, long double factor, const char *text,
		char *why)
{
	static const struct {
		long double factor;
		const char *unit;
	} units[] = {{1e15L, "PB"}, {1e12L, "TB"}, {1e9L, "GB"},
		     {1e6L, "MB"},  {1e3L, "KB"},  {1, "B"}};
	long double bytes = q->number * factor / 8;
	char number[UNIT_TEXT_MAX];
	size_t i = 0;

	while (i + 1 < sizeof(units) / sizeof(units[0]) && fabsl(bytes) < units[i].factor)
		i++;
	plain(bytes / units[i].factor, number, sizeof(number));
	snprintf(why, QUANTITY_WHY_MAX,
		 "write %s%s%s if bits are meant: this key is in bytes, and the lower-case b of "
		 "'%.60s' stands for bits",
		 number, units[i].unit, want == RATE ? "/s" : "", text);
	return -1;
}

static int read_size(const struct quantity *q, enum family want, const char *unit, const char *text,
		     bool *mine, long double *out, char *why)
{
	size_t rate = rate_length(q->rest), n = rate ? rate : strlen(q->rest);
	enum family is = rate ? RATE : SIZE;
	long double factor;
	enum size_word word = size_word(q->rest, n, &factor);

	*mine = word != NO_SIZE;
	if (word == BARE_PREFIX && (is == want || !rate))
		return bare_prefix(q, want, factor, unit, text, why);
	if (word == BITS && (want == SIZE || want == RATE))
		return bits(q, want, factor, text, why);
	if (want == RATE && is == SIZE) {
		snprintf(why, QUANTITY_WHY_MAX,
			 "write %s/s: this key is a rate, and '%.60s' is a size", text, text);
		return -1;
	}
	if (is != want)
		return other_family(want, is, unit, text, why);
	*out = q->number * factor;
	return 1;
}

/* A decimal fraction times a power of ten is whole but for rounding. */
static long double settled(long double v)
{
	long double near = roundl(v);

	return fabsl(v - near) <= 1e-15L * fabsl(v) ? near : v;
}

int quantity_read(const char *text, const char *unit, long double *out, char why[QUANTITY_WHY_MAX])
{
	enum family want = family_of(unit);
	struct quantity q;
	long double seconds;
	bool size;
	int rc;

	if (!split(text, &q))
		return 0;
	if (time_word(q.rest, &seconds)) {
		if (want != TIME)
			return other_family(want, TIME, unit, text, why);
		*out = q.number * seconds * (strcmp(unit, "ms") == 0 ? 1000 : 1);
		return 1;
	}
	if (want == TIME && strcmp(q.rest, "m") == 0) {
		snprintf(why, QUANTITY_WHY_MAX,
			 "write %smin for minutes or %sms for milliseconds: '%.60s' leaves open "
			 "which is meant",
			 q.number_text, q.number_text, text);
		return -1;
	}
	if (strcmp(q.rest, "%") == 0) {
		if (want != FRACTION)
			return other_family(want, FRACTION, unit, text, why);
		*out = q.number / 100;
		return 1;
	}
	rc = read_size(&q, want, unit, text, &size, out, why);
	if (!size)
		return not_a_unit(&q, want, text, why);
	if (rc == 1)
		*out = settled(*out);
	return rc;
}

const char *quantity_example(const char *unit)
{
	switch (family_of(unit)) {
	case SIZE:
		return ", such as 65536, 64KiB or 40KB";
	case RATE:
		return ", such as 100e6, 100MB/s or 1GiB/s";
	case TIME:
		return ", such as 0.03 or 30ms";
	case FRACTION:
		return ", such as 0.9 or 90%";
	case COUNT:
		break;
	}
	return "";
}

bool quantity_number(const char *text, const char *unit, double *out)
{
	char why[QUANTITY_WHY_MAX];
	long double v = 0;

	if (str_to_f64(text, out))
		return true;
	if (!unit || quantity_read(text, unit, &v, why) != 1)
		return false;
	*out = (double)v;
	return true;
}
