/* Text of csv files: numbers to text and back, rows made, rows read in pieces. */
#include "format/csv/csv_text.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "format/blob_stream.h"

/* Numbers to text and back. */

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

void csv_text_start(struct csv_text *t, const struct file_spec *f,
		    const struct content_source *content, unsigned char *elements)
{
	*t = (struct csv_text){.f = f,
			       .content = content,
			       .put = csv_put_of(f->elem),
			       .elements = elements,
			       .columns = file_spec_elements(f),
			       .rows_left = f->samples};
	assert(t->put);
	t->bytes = strcmp(f->elem->name, "uint8") == 0;
	for (unsigned v = 0; t->bytes && v < 256; v++) {
		unsigned char byte = (unsigned char)v;
		char text[CSV_NUMBER_MAX] = {0}, *end = t->put(text, &byte);

		*end++ = ',';
		memcpy(t->byte_texts[v], text, 4);
		t->byte_chars[v] = (unsigned char)(end - text);
	}
}

static void make_elements(struct csv_text *t)
{
	uint64_t left = (t->columns * t->rows_left - t->column) * t->f->elem->bytes;

	t->end = left < CSV_ELEMENTS ? (size_t)left : CSV_ELEMENTS;
	t->at = 0;
	t->content->fill(t->content, t->f->file_index, t->offset, t->elements, t->end);
	t->offset += t->end;
}

/* n elements of one row, each with a comma. */
static char *put_run(const struct csv_text *t, char *out, size_t n)
{
	const unsigned char *p = t->elements + t->at;
	size_t bytes = t->f->elem->bytes;

	for (size_t i = 0; i < n; i++) {
		out = t->put(out, p + i * bytes);
		*out++ = ',';
	}
	return out;
}

/* The same for bytes, the usual case: four characters are stored and as many kept as count. */
static char *put_bytes(const struct csv_text *t, char *out, size_t n)
{
	const unsigned char *p = t->elements + t->at;

	for (size_t i = 0; i < n; i++) {
		memcpy(out, t->byte_texts[p[i]], 4);
		out += t->byte_chars[p[i]];
	}
	return out;
}

size_t csv_text_next(struct csv_text *t, char *out, size_t room)
{
	const char *end = out + room;
	char *p = out;

	assert(room >= CSV_NUMBER_MAX);
	while (t->rows_left && (size_t)(end - p) >= CSV_NUMBER_MAX) {
		size_t n = (size_t)(end - p) / CSV_NUMBER_MAX, bytes = t->f->elem->bytes;

		if (t->columns == 0) {
			*p++ = '\n';
			t->rows_left--;
			continue;
		}
		if (t->at == t->end)
			make_elements(t);
		if (n > (t->end - t->at) / bytes)
			n = (t->end - t->at) / bytes;
		if (n > t->columns - t->column)
			n = (size_t)(t->columns - t->column);
		p = t->bytes ? put_bytes(t, p, n) : put_run(t, p, n);
		t->at += n * bytes;
		t->column += n;
		if (t->column == t->columns) {
			p[-1] = '\n';
			t->column = 0;
			t->rows_left--;
		}
	}
	return (size_t)(p - out);
}

/* Looks at csv text. */

#define COUNT_DIGITS_MAX 18 /* fit into 63 bits */

void csv_scan_start(struct csv_scan *s, enum read_decode decode, const struct file_spec *f,
		    uint64_t rows, const struct content_source *content, char *expect,
		    unsigned char *elements)
{
	assert(decode != DECODE_VERIFY || (content && expect && elements));
	*s = (struct csv_scan){.decode = decode,
			       .f = f,
			       .compressed = strcmp(f->compression, "none") != 0,
			       .rows_wanted = rows,
			       .columns = file_spec_elements(f),
			       .expect = expect};
	if (decode == DECODE_VERIFY) {
		csv_text_start(&s->text, f, content, elements);
		s->text.rows_left = rows;
	}
}

static int bad_text(const struct csv_scan *s, uint64_t offset, const char *what, struct err *e)
{
	if (s->compressed)
		return err_set(e, ERR_DATA,
			       "byte %" PRIu64 " of the text (compressed in the file) %s", offset,
			       what);
	return err_set(e, ERR_DATA, "the byte at offset %" PRIu64 " %s", offset, what);
}

/* ---- compare ---- */

static int compare_text(struct csv_scan *s, const char *text, size_t n, struct err *e)
{
	for (size_t done = 0; done < n;) {
		size_t part, same;

		if (s->at == s->end) {
			s->end = csv_text_next(&s->text, s->expect, CSV_EXPECT_BYTES);
			s->at = 0;
		}
		if (s->end == 0)
			return s->stops ? 1
					: bad_text(s, s->offset + done,
						   "is past the end of the generated data", e);
		part = s->end - s->at < n - done ? s->end - s->at : n - done;
		same = first_difference(text + done, s->expect + s->at, part);
		if (same < part)
			return bad_text(s, s->offset + done + same,
					"differs from the generated data", e);
		s->at += part;
		done += part;
	}
	/* the last piece may have ended with the last row */
	if (s->stops && s->at == s->end && s->text.rows_left == 0)
		return 1;
	return 0;
}

static int compare_end(struct csv_scan *s, struct err *e)
{
	if (s->at == s->end && s->text.rows_left == 0)
		return 0;
	return err_set(e, ERR_DATA,
		       "the text ends after %" PRIu64
		       " bytes, before the end of the generated data: the file is truncated or "
		       "belongs to another dataset",
		       s->offset);
}

/* ---- parse ---- */

static int end_row(struct csv_scan *s, struct err *e)
{
	if (s->column != s->columns)
		return err_set(e, ERR_DATA,
			       "row %" PRIu64 " (from 0) has %" PRIu64
			       " numbers, and a sample of the workload has %" PRIu64
			       ": the file is damaged or belongs to another dataset",
			       s->row, s->column, s->columns);
	s->row++;
	s->column = 0;
	return s->stops && s->row == s->rows_wanted;
}

static int put_field(struct csv_scan *s, const char *p, size_t n, uint64_t offset, struct err *e)
{
	double v;

	if (!csv_parse(p, n, &v))
		return bad_text(s, offset, "does not begin a number", e);
	s->sum += v;
	/* so that a file of one endless row ends somewhere */
	if (++s->column > s->columns)
		return end_row(s, e);
	return 0;
}

/* A field and its separator `c`. */
static int end_field(struct csv_scan *s, const char *p, size_t n, char c, uint64_t offset,
		     struct err *e)
{
	int rc;

	if (c == '\n' && n > 0 && p[n - 1] == '\r')
		n--;
	/* like pandas: an empty line is no row, unless there is nothing in one */
	if (c == '\n' && n == 0 && s->column == 0)
		return s->columns == 0 ? end_row(s, e) : 0;
	rc = put_field(s, p, n, offset, e);
	if (rc == 0 && c == '\n')
		rc = end_row(s, e);
	return rc;
}

static int hold_field(struct csv_scan *s, const char *p, size_t n, uint64_t offset, struct err *e)
{
	if (n > CSV_FIELD_MAX - s->held)
		return bad_text(s, offset, "is in a field that is too long for a number", e);
	memcpy(s->field + s->held, p, n);
	s->held += n;
	return 0;
}

static size_t field_length(const char *p, const char *end)
{
	const char *at = p;

	while (at < end && *at != ',' && *at != '\n')
		at++;
	return (size_t)(at - p);
}

/* The rest of a field that the last piece began; *used gets what it took of this one. */
static int finish_held(struct csv_scan *s, const char *text, size_t n, size_t *used, struct err *e)
{
	size_t rest = field_length(text, text + n);
	uint64_t start = s->offset - s->held;
	int rc = hold_field(s, text, rest, s->offset, e);

	*used = rest;
	if (rc < 0 || rest == n)
		return rc;
	*used = rest + 1;
	rc = end_field(s, s->field, s->held, text[rest], start, e);
	s->held = 0;
	return rc;
}

static int parse_rows(struct csv_scan *s, const char *text, size_t n, struct err *e)
{
	const char *p = text, *end = text + n;
	size_t used = 0;
	int rc = 0;

	if (s->held) {
		rc = finish_held(s, text, n, &used, e);
		p += used;
	}
	while (rc == 0 && p < end) {
		const char *start = p;
		uint64_t v = 0;

		/* nearly all fields are a few digits and a separator */
		while (p < end && (unsigned char)(*p - '0') <= 9)
			v = v * 10 + (uint64_t)(*p++ - '0');
		if (p < end && p > start && *p == ',' && p - start <= COUNT_DIGITS_MAX &&
		    s->column < s->columns) {
			s->sum += (double)v;
			s->column++;
			p++;
			continue;
		}
		p += field_length(p, end);
		if (p == end) {
			rc = hold_field(s, start, (size_t)(p - start),
					s->offset + (uint64_t)(start - text), e);
			break;
		}
		rc = end_field(s, start, (size_t)(p - start), *p,
			       s->offset + (uint64_t)(start - text), e);
		p++;
	}
	return rc;
}

static int parse_end(struct csv_scan *s, struct err *e)
{
	int rc = 0;

	/* the last line may lack its end */
	if (s->held || s->column)
		rc = end_field(s, s->field, s->held, '\n', s->offset - s->held, e);
	s->held = 0;
	if (rc != 0)
		return rc;
	if (s->row == s->rows_wanted)
		return 0;
	return err_set(e, ERR_DATA,
		       "the file has %" PRIu64 " rows and should have %" PRIu64
		       ": it is damaged or belongs to another dataset",
		       s->row, s->rows_wanted);
}

/* ---- count ---- */

static int count_rows(struct csv_scan *s, const char *text, size_t n)
{
	const char *p = text, *end = text + n;

	if (!s->stops)
		return 0;
	while (p < end && (p = memchr(p, '\n', (size_t)(end - p)))) {
		p++;
		if (++s->row == s->rows_wanted)
			return 1;
	}
	return 0;
}

int csv_scan_feed(struct csv_scan *s, const char *text, size_t n, struct err *e)
{
	int rc = s->decode == DECODE_VERIFY ? compare_text(s, text, n, e)
		 : s->decode == DECODE_FULL ? parse_rows(s, text, n, e)
					    : count_rows(s, text, n);

	s->offset += n;
	return rc;
}

int csv_scan_end(struct csv_scan *s, struct err *e)
{
	int rc = s->decode == DECODE_VERIFY ? compare_end(s, e)
		 : s->decode == DECODE_FULL ? parse_end(s, e)
					    : 0;

	return rc < 0 ? rc : 0;
}
