#include "base/shell.h"

#include <ctype.h>
#include <string.h>

#include "base/say.h"

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
