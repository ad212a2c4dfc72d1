#include "base/str.h"

#include <assert.h>
#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"

#define NEAREST_MAX 64

bool str_starts(const char *s, const char *prefix)
{
	return strncmp(s, prefix, strlen(prefix)) == 0;
}

bool str_ends(const char *s, const char *suffix)
{
	size_t n = strlen(s), m = strlen(suffix);

	return n >= m && memcmp(s + n - m, suffix, m) == 0;
}

void str_append(char *out, size_t size, const char *fmt, ...)
{
	size_t n = strlen(out);
	va_list ap;

	assert(n < size);
	va_start(ap, fmt);
	vsnprintf(out + n, size - n, fmt, ap);
	va_end(ap);
}

bool str_to_i64(const char *s, int64_t *out)
{
	char *end;
	long long v;

	if (*s == '\0' || isspace((unsigned char)*s))
		return false;
	errno = 0;
	v = strtoll(s, &end, 10);
	if (*end != '\0' || errno)
		return false;
	*out = v;
	return true;
}

bool str_to_u64(const char *s, uint64_t *out)
{
	char *end;
	unsigned long long v;

	if (!isdigit((unsigned char)*s))
		return false;
	errno = 0;
	v = strtoull(s, &end, 10);
	if (*end != '\0' || errno)
		return false;
	*out = v;
	return true;
}

bool str_to_f64(const char *s, double *out)
{
	char *end;
	double v;

	if (*s == '\0' || isspace((unsigned char)*s))
		return false;
	errno = 0;
	v = strtod(s, &end);
	if (*end != '\0' || (errno == ERANGE && isinf(v)))
		return false;
	*out = v;
	return true;
}

unsigned str_distance(const char *a, const char *b)
{
	size_t n = strlen(a), m = strlen(b);
	unsigned row[3][NEAREST_MAX + 1];

	if (n > NEAREST_MAX || m > NEAREST_MAX)
		return NEAREST_MAX;
	for (size_t j = 0; j <= m; j++)
		row[0][j] = (unsigned)j;
	for (size_t i = 1; i <= n; i++) {
		unsigned *cur = row[i % 3], *prev = row[(i - 1) % 3], *prev2 = row[(i + 1) % 3];

		cur[0] = (unsigned)i;
		for (size_t j = 1; j <= m; j++) {
			int ca = tolower((unsigned char)a[i - 1]);
			int cb = tolower((unsigned char)b[j - 1]);
			unsigned best = prev[j - 1] + (ca != cb);

			if (prev[j] + 1 < best)
				best = prev[j] + 1;
			if (cur[j - 1] + 1 < best)
				best = cur[j - 1] + 1;
			if (i > 1 && j > 1 && ca == tolower((unsigned char)b[j - 2]) &&
			    tolower((unsigned char)a[i - 2]) == cb && prev2[j - 2] + 1 < best)
				best = prev2[j - 2] + 1;
			cur[j] = best;
		}
	}
	return row[n % 3][m];
}

const char *str_nearest(const char *word, const char *const *names, size_t n)
{
	const char *best = NULL;
	unsigned best_d = 1 + (unsigned)strlen(word) / 3;

	for (size_t i = 0; i < n; i++) {
		unsigned d = str_distance(word, names[i]);

		if (d <= best_d && (!best || d < best_d)) {
			best = names[i];
			best_d = d;
		}
	}
	return best;
}

/* Those behind the point, and then the point. */
static void drop_zeros(char *number)
{
	size_t n = strlen(number);

	while (strchr(number, '.') && (number[n - 1] == '0' || number[n - 1] == '.'))
		number[--n] = '\0';
}

char *str_number(double v, unsigned digits, char *out, size_t out_size)
{
	double size = fabs(v);
	int decimals = 0;

	if (!(size < 1e15) || (size < 1e-9 && size > 0)) {
		snprintf(out, out_size, "%.*g", (int)digits, v);
		return out;
	}
	if (size > 0 && v != floor(v))
		decimals = (int)digits - 1 - (int)floor(log10(size));
	snprintf(out, out_size, "%.*f", decimals > 0 ? decimals : 0, v);
	drop_zeros(out);
	return out;
}

char *str_bytes(double bytes, char *out, size_t out_size)
{
	static const char *const unit[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
	size_t u = 0;

	char number[340]; /* any double */
	double size;

	/* what rounds to 1024 is the next unit's 1 */
	while (fabs(bytes) >= 1023.5 && u + 1 < sizeof(unit) / sizeof(unit[0])) {
		bytes /= 1024.0;
		u++;
	}
	size = u == 0 ? 1000 : fabs(bytes);
	snprintf(number, sizeof(number), "%.*f", size < 9.995 ? 2 : size < 99.95, bytes);
	drop_zeros(number);
	snprintf(out, out_size, "%s %s", number, unit[u]);
	return out;
}

char *str_seconds(double s, char *out, size_t out_size)
{
	long long whole;

	/* each form ends where it would round to the next one's first value */
	if (!(fabs(s) < 1e15)) {
		snprintf(out, out_size, "%g s", s);
	} else if (fabs(s) < 0.9995) {
		snprintf(out, out_size, "%.0f ms", s * 1e3);
	} else if (s < 59.95) {
		snprintf(out, out_size, "%.1f s", s);
	} else if (s < 3599.5) {
		whole = llround(s);
		snprintf(out, out_size, "%lld min %02lld s", whole / 60, whole % 60);
	} else {
		whole = llround(s / 60);
		snprintf(out, out_size, "%lld h %02lld min", whole / 60, whole % 60);
	}
	return out;
}

/* UTF-8 as YAML and JSON demand it: no overlong forms, no surrogates, nothing beyond U+10FFFF. */

size_t utf8_decode(const char *text, size_t n, uint32_t *code)
{
	const unsigned char *s = (const unsigned char *)text;
	size_t length = 0;
	uint32_t c;

	if (n == 0)
		return 0;
	c = *s;
	if (c < 0x80)
		length = 1;
	else if (c >= 0xc2 && c < 0xe0)
		length = 2;
	else if (c >= 0xe0 && c < 0xf0)
		length = 3;
	else if (c >= 0xf0 && c < 0xf5)
		length = 4;
	if (length > n)
		return 0;
	if (length > 1)
		c &= 0x7fu >> length;
	for (size_t i = 1; i < length; i++) {
		if ((s[i] & 0xc0) != 0x80)
			return 0;
		c = c << 6 | (s[i] & 0x3f);
	}
	if ((length == 3 && (c < 0x800 || (c >= 0xd800 && c < 0xe000))) ||
	    (length == 4 && (c < 0x10000 || c > 0x10ffff)))
		return 0;
	*code = c;
	return length;
}

size_t utf8_length(const char *text)
{
	uint32_t code;
	size_t n = 1;

	if (*text == '\0')
		return 1;
	while (n < 4 && text[n] != '\0')
		n++;
	return utf8_decode(text, n, &code);
}

size_t utf8_whole(const char *text, size_t n)
{
	size_t tail = 0, want;
	unsigned char lead;

	while (tail < 3 && tail < n && ((unsigned char)text[n - 1 - tail] & 0xc0) == 0x80)
		tail++;
	if (tail == n)
		return n;
	lead = (unsigned char)text[n - 1 - tail];
	want = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : lead >= 0xc0 ? 2 : 1;
	return want > tail + 1 ? n - 1 - tail : n;
}

char *utf8_valid(const char *text, enum utf8_others how)
{
	struct buf out = {0};

	for (size_t n; *text; text += n ? n : 1) {
		n = utf8_length(text);
		if (n)
			buf_append(&out, text, n);
		else if (how == UTF8_AS_HEX)
			buf_printf(&out, "\\x%02x", (unsigned char)*text);
		else
			buf_puts(&out, "\xef\xbf\xbd");
	}
	return buf_take(&out);
}
