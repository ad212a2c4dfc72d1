#include "base/say.h"

#include <assert.h>
#include <ctype.h>
#include <limits.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include "base/str.h"

/* ---- one character ---- */

#define UNIT_MAX 12

/* Marks that change the direction of writing, separators of lines and paragraphs. */
static bool misleads(uint32_t c)
{
	return c == 0x061c || c == 0x200e || c == 0x200f || (c >= 0x2028 && c <= 0x202e) ||
	       (c >= 0x2066 && c <= 0x2069);
}

/* The length of a sequence that sets colours at the start of `s`, or 0. */
static size_t look_length(const char *s, size_t n)
{
	size_t i = 2;

	if (n < 3 || s[0] != '\033' || s[1] != '[')
		return 0;
	while (i < n && (isdigit((unsigned char)s[i]) || s[i] == ';'))
		i++;
	return i < n && s[i] == 'm' ? i + 1 : 0;
}

/* The escaped form of what `s` begins with. Returns its length, 0 when `s` is to be copied; `used`:
 * bytes of s. */
static size_t escape_unit(const char *s, size_t n, enum say_keep keep, char out[UNIT_MAX],
			  size_t *used)
{
	uint32_t c;
	size_t look;

	*used = utf8_decode(s, n, &c);
	if (*used == 0) {
		*used = 1;
		return (size_t)snprintf(out, UNIT_MAX, "\\x%02x", (unsigned char)*s);
	}
	if (c >= 0x20 && c < 0x7f)
		return 0;
	if (c == '\n' && keep != SAY_LINE)
		return 0;
	if (c == '\033' && keep == SAY_LOOKS && (look = look_length(s, n)) > 0) {
		*used = look;
		return 0;
	}
	if (c == '\n' || c == '\r' || c == '\t')
		return (size_t)snprintf(out, UNIT_MAX, "\\%c",
					c == '\n'   ? 'n'
					: c == '\r' ? 'r'
						    : 't');
	if (c < 0x80)
		return (size_t)snprintf(out, UNIT_MAX, "\\x%02x", (unsigned)c);
	if (c < 0xa0 || misleads(c))
		return (size_t)snprintf(out, UNIT_MAX, "\\u%04x", (unsigned)c);
	return 0;
}

void buf_put_said(struct buf *b, const char *s, size_t n, enum say_keep keep)
{
	size_t from = 0, at = 0;

	while (at < n) {
		char unit[UNIT_MAX];
		size_t used, length = escape_unit(s + at, n - at, keep, unit, &used);

		if (length) {
			buf_append(b, s + from, at - from);
			buf_append(b, unit, length);
			from = at + used;
		}
		at += used;
	}
	buf_append(b, s + from, n - from);
}

size_t say_escape(char *out, size_t size, const char *s, size_t n, enum say_keep keep)
{
	size_t to = 0, at = 0;

	assert(size > 0);
	while (at < n) {
		char unit[UNIT_MAX];
		size_t used, length = escape_unit(s + at, n - at, keep, unit, &used);

		if (to + (length ? length : used) >= size)
			break;
		memcpy(out + to, length ? unit : s + at, length ? length : used);
		to += length ? length : used;
		at += used;
	}
	out[to] = '\0';
	return to;
}

/* ---- formats ---- */

struct spec {
	char text[32]; /* as in the format, stars replaced by their numbers */
	bool left;
	int width, precision; /* precision -1: none */
	char length;          /* of the argument: 0, h, H (hh), l, L (ll), z, j, t */
	char conversion;
};

/* Characters of valid text. */
static size_t characters(const char *s, size_t n)
{
	size_t count = 0;

	for (size_t i = 0; i < n; i++)
		count += ((unsigned char)s[i] & 0xc0) != 0x80;
	return count;
}

static void put_string(struct buf *b, const struct spec *f, const char *s)
{
	struct buf text = {0};
	size_t n, wide, pad = 0;

	if (!s)
		s = "(null)";
	n = f->precision >= 0 ? strnlen(s, (size_t)f->precision) : strlen(s);
	if (f->precision >= 0 && n == (size_t)f->precision)
		n = utf8_whole(s, n);
	if (f->width == 0) {
		buf_put_said(b, s, n, SAY_LINE);
		return;
	}
	buf_put_said(&text, s, n, SAY_LINE);
	wide = characters(text.data, text.len);
	if (wide < (size_t)f->width)
		pad = (size_t)f->width - wide;
	if (!f->left)
		buf_printf(b, "%*s", (int)pad, "");
	buf_append(b, text.data, text.len);
	if (f->left)
		buf_printf(b, "%*s", (int)pad, "");
	buf_release(&text);
}

/* Formats are literals of the program, which the compiler checked where they stand. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"

/* The numbers of a width or precision of a format, which the compiler checked. */
static int number_of(const char **p)
{
	int v = 0;

	for (; isdigit((unsigned char)**p); ++*p)
		v = v > INT_MAX / 16 ? v : v * 10 + (**p - '0');
	return v;
}

#define PUT_INTEGER(kind_signed, kind_unsigned)                                                    \
	do {                                                                                       \
		if (f->conversion == 'd' || f->conversion == 'i')                                  \
			buf_printf(b, f->text, va_arg(*ap, kind_signed));                          \
		else                                                                               \
			buf_printf(b, f->text, va_arg(*ap, kind_unsigned));                        \
	} while (0)

static void put_argument(struct buf *b, const struct spec *f, va_list *ap)
{
	char one[2] = "";

	switch (f->conversion) {
	case '%':
		buf_putc(b, '%');
		return;
	case 's':
		put_string(b, f, va_arg(*ap, const char *));
		return;
	case 'c':
		one[0] = (char)va_arg(*ap, int);
		put_string(b, f, one);
		return;
	case 'e':
	case 'E':
	case 'f':
	case 'F':
	case 'g':
	case 'G':
		buf_printf(b, f->text, va_arg(*ap, double));
		return;
	default:
		break;
	}
	assert(strchr("diuxXo", f->conversion));
	if (f->length == 'l')
		PUT_INTEGER(long, unsigned long);
	else if (f->length == 'L')
		PUT_INTEGER(long long, unsigned long long);
	else if (f->length == 'z')
		PUT_INTEGER(ssize_t, size_t);
	else if (f->length == 'j')
		PUT_INTEGER(intmax_t, uintmax_t);
	else if (f->length == 't')
		PUT_INTEGER(ptrdiff_t, size_t);
	else
		PUT_INTEGER(int, unsigned);
}

/* The specification behind a percent sign; `p` is moved behind it. */
static void take_spec(const char **p, struct spec *f, va_list *ap)
{
	const char *s = *p;
	char flags[8] = "", number[2][16] = {"", ""};
	size_t n = 0;

	*f = (struct spec){.precision = -1};
	for (; strchr("-+ #0", *s) && *s; s++)
		if (n + 1 < sizeof(flags))
			flags[n++] = *s;
	f->left = strchr(flags, '-') != NULL;
	if (*s == '*') {
		f->width = va_arg(*ap, int);
		if (f->width < 0) {
			f->left = true;
			f->width = f->width == INT_MIN ? 0 : -f->width;
			if (n + 1 < sizeof(flags))
				flags[n] = '-';
		}
		s++;
	} else {
		f->width = number_of(&s);
	}
	if (*s == '.') {
		s++;
		if (*s == '*') {
			f->precision = va_arg(*ap, int);
			s++;
		} else {
			f->precision = number_of(&s);
		}
	}
	for (; *s && strchr("hlzjt", *s); s++)
		f->length = f->length == 'l' && *s == 'l' ? 'L' : *s;
	f->conversion = *s;
	if (*s)
		s++;
	if (f->width)
		snprintf(number[0], sizeof(number[0]), "%d", f->width);
	if (f->precision >= 0)
		snprintf(number[1], sizeof(number[1]), ".%d", f->precision);
	snprintf(f->text, sizeof(f->text), "%%%s%.10s%.11s%s%c", flags, number[0], number[1],
		 f->length == 'L'   ? "ll"
		 : f->length == 'l' ? "l"
		 : f->length == 'z' ? "z"
		 : f->length == 'j' ? "j"
		 : f->length == 't' ? "t"
				    : "",
		 f->conversion);
	*p = s;
}

#pragma GCC diagnostic pop

void buf_vsay(struct buf *b, const char *fmt, va_list args)
{
	const char *s = fmt;
	va_list ap;

	buf_puts(b, "");
	va_copy(ap, args);
	while (*s) {
		size_t n = strcspn(s, "%");
		struct spec f;

		buf_append(b, s, n);
		s += n;
		if (!*s)
			break;
		s++;
		take_spec(&s, &f, &ap);
		put_argument(b, &f, &ap);
	}
	va_end(ap);
}

void buf_say(struct buf *b, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	buf_vsay(b, fmt, ap);
	va_end(ap);
}

/* ---- more forms ---- */

void buf_say_middle(struct buf *b, const char *s, int most)
{
	const char *end = s + strlen(s);

	if (end - s <= most) {
		buf_say(b, "%s", s);
		return;
	}
	end -= most / 2;
	while (((unsigned char)*end & 0xc0) == 0x80)
		end++;
	buf_say(b, "%.*s...%s", most / 2, s, end);
}

void buf_wrap(struct buf *b, const char *s, size_t at, size_t indent, size_t columns)
{
	bool begun = at > indent;
	struct buf word = {0};

	while (*s) {
		size_t n, wide;

		s += strspn(s, " \n\t");
		n = strcspn(s, " \n\t");
		if (n == 0)
			break;
		/* a percent sign stays with its number */
		if (s[n] == ' ' && s[n + 1] == '%')
			n += 1 + strcspn(s + n + 1, " \n\t");
		buf_reset(&word);
		buf_put_said(&word, s, n, SAY_LINE);
		wide = characters(word.data, word.len);
		if (begun && at + 1 + wide > columns) {
			buf_printf(b, "\n%*s", (int)indent, "");
			at = indent;
		} else if (begun) {
			buf_putc(b, ' ');
			at++;
		}
		buf_append(b, word.data, word.len);
		at += wide;
		s += n;
		begun = true;
	}
	buf_release(&word);
	buf_putc(b, '\n');
}

void buf_put_markup(struct buf *b, const char *s)
{
	struct buf text = {0};

	buf_put_said(&text, s, strlen(s), SAY_LINE);
	for (const char *c = text.data; c && *c; c++) {
		if (*c == '<')
			buf_puts(b, "&lt;");
		else if (*c == '>')
			buf_puts(b, "&gt;");
		else if (*c == '&')
			buf_puts(b, "&amp;");
		else if (*c == '"')
			buf_puts(b, "&quot;");
		else if (*c == '\'')
			buf_puts(b, "&#39;");
		else
			buf_putc(b, *c);
	}
	buf_release(&text);
}

/* ---- streams ---- */

void say(FILE *out, const char *fmt, ...)
{
	struct buf text = {0};
	va_list ap;

	va_start(ap, fmt);
	buf_vsay(&text, fmt, ap);
	va_end(ap);
	fwrite(text.data, 1, text.len, out);
	buf_release(&text);
}

void say_text(FILE *out, const struct buf *text)
{
	/* the program's own streams may have no descriptor of theirs (cli/main.c) */
	int fd = out == stdout ? STDOUT_FILENO : out == stderr ? STDERR_FILENO : fileno(out);
	struct buf safe = {0};

	if (!text->data)
		return;
	buf_put_said(&safe, text->data, text->len, isatty(fd) ? SAY_LOOKS : SAY_LINES);
	fwrite(safe.data, 1, safe.len, out);
	buf_release(&safe);
}

/* ---- words of shell commands ---- */

static bool is_plain(const char *s)
{
	if (!*s)
		return false;
	for (; *s; s++)
		if (!isascii((unsigned char)*s) ||
		    (!isalnum((unsigned char)*s) && !strchr("/._-+=:,@%", *s)))
			return false;
	return true;
}

/* Every byte that is not plain ASCII as an escape: right whatever the locale of the shell is. */
static void put_escaped(struct buf *out, const char *s)
{
	buf_puts(out, "$'");
	for (; *s; s++) {
		unsigned char c = (unsigned char)*s;

		if (c == '\\' || c == '\'')
			buf_putc(out, '\\');
		if (c == '\n')
			buf_puts(out, "\\n");
		else if (c < 0x20 || c >= 0x7f)
			/* three digits: what follows is never taken for one more */
			buf_printf(out, "\\%03o", c);
		else
			buf_putc(out, *s);
	}
	buf_putc(out, '\'');
}

void shell_put_word(struct buf *out, const char *word)
{
	struct buf seen = {0};
	bool same;

	if (is_plain(word)) {
		buf_puts(out, word);
		return;
	}
	buf_puts(&seen, "");
	buf_put_said(&seen, word, strlen(word), SAY_LINE);
	same = strcmp(seen.data, word) == 0;
	buf_release(&seen);
	if (!same) {
		put_escaped(out, word);
		return;
	}
	buf_putc(out, '\'');
	for (; *word; word++)
		if (*word == '\'')
			buf_puts(out, "'\\''");
		else
			buf_putc(out, *word);
	buf_putc(out, '\'');
}
