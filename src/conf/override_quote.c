/* The reverse of the parser for one value: text that must arrive as it is. */
#include <string.h>

#include "base/alloc.h"
#include "conf/override.h"

char *override_quote(const char *text)
{
	char *out = xcalloc(3 * strlen(text) + 3, 1), *to = out;

	*to++ = '\'';
	for (const char *at = text;; at++) {
		size_t run = strspn(at, "\\");
		bool special;

		at += run;
		special = *at == '\'' || (at[0] == '$' && at[1] == '{');
		/* a backslash is itself unless a quote, the end or an interpolation follows */
		for (size_t i = 0; i < run * (special || !*at ? 2 : 1) + special; i++)
			*to++ = '\\';
		if (!*at)
			break;
		*to++ = *at;
	}
	*to = '\'';
	return out;
}
