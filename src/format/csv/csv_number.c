/* Numbers to text and back. */
#include "format/csv/csv_number.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

typedef unsigned __int128 wide;

/* ---- integers ---- */

static char *put_u64(char *out, uint64_t v)
{
	static const char pairs[] = "00010203040506070809101112131415161718192021222324252627282930"
				    "31323334353637383940414243444546474849505152535455565758596061"
				    "62636465666768697071727374757677787980818283848586878889909192"
				    "93949596979899";
	char text[20], *p = text + sizeof(text);
	size_t n;

	while (v >= 100) {
		p -= 2;
		memcpy(p, pairs + 2 * (v % 100), 2);
		v /= 100;
	}
	if (v >= 10) {
		p -= 2;
		memcpy(p, pairs + 2 * v, 2);
	} else {
		*--p = (char)('0' + v);
	}
	n = (size_t)(text + sizeof(text) - p);
	memcpy(out, p, n);
	return out + n;
}

static char *put_i64(char *out, int64_t v)
{
	if (v >= 0)
		return put_u64(out, (uint64_t)v);
	*out++ = '-';
	return put_u64(out, -(uint64_t)v);
}

#define PUT_INT(name, type, put)                                                                   \
	static char *put_##name(char *out, const unsigned char *element)                           \
	{                                                                                          \
		type v;                                                                            \
                                                                                                   \
		memcpy(&v, element, sizeof(v));                                                    \
		return put(out, v);                                                                \
	}

PUT_INT(uint8, uint8_t, put_u64)
PUT_INT(uint16, uint16_t, put_u64)
PUT_INT(uint32, uint32_t, put_u64)
PUT_INT(uint64, uint64_t, put_u64)
PUT_INT(int8, int8_t, put_i64)
PUT_INT(int16, int16_t, put_i64)
PUT_INT(int32, int32_t, put_i64)
PUT_INT(int64, int64_t, put_i64)

static char *put_bool(char *out, const unsigned char *element)
{
	size_t n = *element ? 4 : 5;

	memcpy(out, *element ? "True" : "False", n);
	return out + n;
}

/* ---- floats ---- */

static const uint64_t tens[] = {
	UINT64_C(1),
	UINT64_C(10),
	UINT64_C(100),
	UINT64_C(1000),
	UINT64_C(10000),
	UINT64_C(100000),
	UINT64_C(1000000),
	UINT64_C(10000000),
	UINT64_C(100000000),
	UINT64_C(1000000000),
	UINT64_C(10000000000),
	UINT64_C(100000000000),
	UINT64_C(1000000000000),
	UINT64_C(10000000000000),
	UINT64_C(100000000000000),
	UINT64_C(1000000000000000),
	UINT64_C(10000000000000000),
	UINT64_C(100000000000000000),
	UINT64_C(1000000000000000000),
	UINT64_C(10000000000000000000),
};

static wide ten_to(unsigned n)
{
	return n < 20 ? (wide)tens[n] : (wide)tens[19] * tens[n - 19];
}

struct float_type {
	unsigned bits;         /* of the significand */
	unsigned places_first; /* decimal places of which fewer never say more, below 1 */
	unsigned digits;       /* that always suffice */
};
static const struct float_type half = {11, 3, 5}, single = {24, 7, 9}, twice = {53, 15, 17};

/* k / 2^bits in [1e-4, 1) as "0.ddd": the fewest places that are nearer to it than half its
 * distance to the next value of the type. NULL when that must be found out otherwise: where a power
 * of two has a nearer neighbour below. */
static char *put_fraction(char *out, uint64_t k, const struct float_type *t)
{
	unsigned length = 64 - (unsigned)__builtin_clzll(k), places;
	uint64_t q = 0;

	if ((k & (k - 1)) == 0)
		return NULL;
	for (places = t->places_first; places < 22; places++) {
		wide scaled = k * ten_to(places), back, error;

		q = (uint64_t)((scaled + ((wide)1 << (t->bits - 1))) >> t->bits);
		back = (wide)q << t->bits;
		error = back > scaled ? back - scaled : scaled - back;
		if (error << (t->bits + 1 - length) < ten_to(places))
			break;
	}
	if (places == 22)
		return NULL;
	for (; q % 10 == 0; places--)
		q /= 10;
	out[0] = '0';
	out[1] = '.';
	for (unsigned i = places + 1; i > 1; i--) {
		out[i] = (char)('0' + q % 10);
		q /= 10;
	}
	return out + 2 + places;
}

static double half_value(uint16_t h)
{
	int exponent = h >> 10 & 0x1f;
	double f = h & 0x3ff, v;

	if (exponent == 31)
		v = f != 0 ? (double)NAN : (double)INFINITY;
	else
		v = exponent ? ldexp(f + 1024, exponent - 25) : ldexp(f, -24);
	return h & 0x8000 ? -v : v;
}

/* Whether a reader of the type takes `text` for v > 0. */
static bool reads_back(const char *text, double v, const struct float_type *t)
{
	double got = strtod(text, NULL);
	int exponent;

	if (t == &twice)
		return got == v;
	if (t == &single)
		return strtof(text, NULL) == (float)v;
	/* nearer than half the step of halves around v; below a power of two the step is half as
	 * wide */
	frexp(v, &exponent);
	exponent = exponent < -13 ? -13 : exponent;
	if (got < v && v == ldexp(1, exponent - 1) && exponent > -13)
		exponent--;
	return fabs(got - v) < ldexp(1, exponent - 12);
}

/* Any value > 0, by trying. Python's notation: 0.0001 <= v < 1e16 without an exponent. */
static char *put_slowly(char *out, double v, const struct float_type *t)
{
	char text[40], digits[24] = {0};
	int exponent, n = 0;

	for (int p = 0; p < (int)t->digits; p++) {
		snprintf(text, sizeof(text), "%.*e", p, v);
		if (reads_back(text, v, t))
			break;
	}
	for (const char *c = text; *c != 'e'; c++)
		if (*c != '.')
			digits[n++] = *c;
	exponent = (int)strtol(strchr(text, 'e') + 1, NULL, 10);
	if (exponent < -4 || exponent >= 16) {
		*out++ = digits[0];
		if (n > 1) {
			*out++ = '.';
			memcpy(out, digits + 1, (size_t)n - 1);
			out += n - 1;
		}
		return out + snprintf(out, 8, "e%c%02d", exponent < 0 ? '-' : '+', abs(exponent));
	}
	for (int i = exponent < 0 ? exponent : 0; i < n || i <= exponent + 1; i++) {
		*out++ = i >= 0 && i < n ? digits[i] : '0';
		if (i == exponent)
			*out++ = '.';
	}
	return out;
}

static char *put_float(char *out, double v, const struct float_type *t)
{
	double scaled = ldexp(v, (int)t->bits);
	char *end;

	if (v >= 1e-4 && v < 1 && scaled == trunc(scaled)) {
		end = put_fraction(out, (uint64_t)scaled, t);
		if (end)
			return end;
	}
	if (isnan(v)) {
		memcpy(out, "nan", 3);
		return out + 3;
	}
	if (signbit(v)) {
		*out++ = '-';
		v = -v;
	}
	if (isinf(v) || v == 0) {
		memcpy(out, v == 0 ? "0.0" : "inf", 3);
		return out + 3;
	}
	return put_slowly(out, v, t);
}

static char *put_float16(char *out, const unsigned char *element)
{
	uint16_t h;

	memcpy(&h, element, sizeof(h));
	return put_float(out, half_value(h), &half);
}

static char *put_float32(char *out, const unsigned char *element)
{
	float v;

	memcpy(&v, element, sizeof(v));
	return put_float(out, v, &single);
}

static char *put_float64(char *out, const unsigned char *element)
{
	double v;

	memcpy(&v, element, sizeof(v));
	return put_float(out, v, &twice);
}

static const struct {
	const char *name;
	csv_put_fn put;
	unsigned mean_chars, gzip_bytes;
} types[] = {
	{"uint8", put_uint8, 358, 132},      {"int8", put_int8, 365, 134},
	{"uint16", put_uint16, 584, 264},    {"int16", put_int16, 617, 269},
	{"uint32", put_uint32, 1075, 514},   {"int32", put_int32, 1099, 524},
	{"uint64", put_uint64, 2040, 981},   {"int64", put_int64, 2040, 984},
	{"bool", put_bool, 551, 24},         {"float16", put_float16, 673, 213},
	{"float32", put_float32, 1063, 450}, {"float64", put_float64, 1928, 884},
};

csv_put_fn csv_put_of(const struct elem_type *elem)
{
	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++)
		if (strcmp(types[i].name, elem->name) == 0)
			return types[i].put;
	return NULL;
}

unsigned csv_mean_chars(const struct elem_type *elem)
{
	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++)
		if (strcmp(types[i].name, elem->name) == 0)
			return types[i].mean_chars;
	return 0;
}

unsigned csv_mean_gzip_bytes(const struct elem_type *elem)
{
	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++)
		if (strcmp(types[i].name, elem->name) == 0)
			return types[i].gzip_bytes;
	return 0;
}

/* ---- text to numbers ---- */

static bool parse_word(const char *p, size_t n, double *out)
{
	static const struct {
		const char *text;
		double value;
	} words[] = {
		{"true", 1}, {"false", 0}, {"nan", NAN}, {"inf", INFINITY}, {"infinity", INFINITY}};

	if (n == 0) {
		*out = NAN;
		return true;
	}
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		if (strlen(words[i].text) == n && strncasecmp(p, words[i].text, n) == 0) {
			*out = words[i].value;
			return true;
		}
	}
	return false;
}

static double scale_by_ten_to(double v, int64_t exponent)
{
	/* beyond these a double is 0 or infinite whatever its digits */
	if (exponent > 400)
		exponent = 400;
	if (exponent < -400)
		exponent = -400;
	for (; exponent >= 19; exponent -= 19)
		v *= 1e19;
	for (; exponent <= -19; exponent += 19)
		v /= 1e19;
	return exponent < 0 ? v / (double)tens[-exponent] : v * (double)tens[exponent];
}

bool csv_parse(const char *p, size_t n, double *out)
{
	const char *end = p + n;
	uint64_t digits = 0;
	int64_t exponent = 0, e = 0;
	bool minus, e_minus, any = false, point = false;

	minus = p < end && *p == '-';
	p += p < end && (*p == '-' || *p == '+');
	if (p == end || ((*p < '0' || *p > '9') && *p != '.'))
		return (n == 0 || p < end) && parse_word(p, (size_t)(end - p), out) &&
		       (*out = minus ? -*out : *out, true);
	for (; p < end && ((*p >= '0' && *p <= '9') || (*p == '.' && !point)); p++) {
		if (*p == '.') {
			point = true;
			continue;
		}
		any = true;
		/* digits that a double does not hold only move the point */
		if (digits < UINT64_MAX / 10 - 1) {
			digits = digits * 10 + (uint64_t)(*p - '0');
			exponent -= point;
		} else {
			exponent += !point;
		}
	}
	if (!any)
		return false;
	if (p < end && (*p == 'e' || *p == 'E')) {
		p++;
		e_minus = p < end && *p == '-';
		p += p < end && (*p == '-' || *p == '+');
		if (p == end)
			return false;
		for (; p < end && *p >= '0' && *p <= '9'; p++)
			e = e < 100000 ? e * 10 + (*p - '0') : e;
		exponent += e_minus ? -e : e;
	}
	if (p != end)
		return false;
	*out = scale_by_ten_to((double)digits, exponent);
	if (minus)
		*out = -*out;
	return true;
}
