/* UTF-8 as YAML and JSON demand it: no overlong forms, no surrogates, nothing beyond U+10FFFF. */
#include "base/utf8.h"

#include "base/buf.h"

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
