/* UTF-8 as YAML demands it: no overlong forms, no surrogates, nothing beyond U+10FFFF. */
#include "conf/utf8.h"

size_t utf8_length(const char *text)
{
	const unsigned char *s = (const unsigned char *)text;
	size_t n = 0;

	if (*s < 0x80)
		return 1;
	if (*s >= 0xc2 && *s < 0xe0)
		n = 2;
	else if (*s >= 0xe0 && *s < 0xf0)
		n = 3;
	else if (*s >= 0xf0 && *s < 0xf5)
		n = 4;
	for (size_t i = 1; i < n; i++) {
		if ((s[i] & 0xc0) != 0x80)
			return 0;
	}
	if ((*s == 0xe0 && s[1] < 0xa0) || (*s == 0xed && s[1] >= 0xa0) ||
	    (*s == 0xf0 && s[1] < 0x90) || (*s == 0xf4 && s[1] >= 0x90))
		return 0;
	return n;
}
