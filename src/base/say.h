#pragma once
/* Text for people. Names of files, texts of results, keys of a workload and the like may hold what
 * commands a terminal or misleads a reader: control characters (C0, DEL, C1), characters that
 * change the direction of writing, separators of lines, and bytes that are no UTF-8. They are shown
 * as \n, \r, \t, \x1b (a byte) or \u202e (a character) wherever text reaches a terminal, stderr or
 * a log. A backslash is left as it is, so that text that was escaped already stays the same. */
#include <stdarg.h>
#include <stdio.h>

#include "base/buf.h"

enum say_keep {
	SAY_LINE,  /* one line: a line break is escaped, too */
	SAY_LINES, /* line breaks are kept */
	SAY_LOOKS, /* so are the sequences that set colours, ESC [ ... m */
};

/* Appends `n` bytes, escaped. */
void buf_put_said(struct buf *b, const char *s, size_t n, enum say_keep keep);
/* The same into an array, as many whole characters as there is room for; NUL-terminated. Returns
 * the length. */
size_t say_escape(char *out, size_t size, const char *s, size_t n, enum say_keep keep);

/* As buf_printf, but what %s and %c insert is on one line and escaped, while the format is text of
 * the program. A precision of %s is in bytes and cuts no character; a width is in characters.
 * Conversions: d i u x X o c s f F e E g G %, with any length but L. */
void buf_say(struct buf *b, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void buf_vsay(struct buf *b, const char *fmt, va_list ap) __attribute__((format(printf, 2, 0)));

/* A name or a path on one line, escaped; of one longer than about `most` bytes the begin and the
 * end, with "..." between them. */
void buf_say_middle(struct buf *b, const char *s, int most);

/* Words of `s`, escaped, and a line end, in lines of at most `columns` where words are no longer,
 * all but the first indented. `at`: the column reached. */
void buf_wrap(struct buf *b, const char *s, size_t at, size_t indent, size_t columns);

/* Appends text of an HTML or XML element, or of an attribute in quotes: escaped as above on one
 * line, and < > & " ' as entities. */
void buf_put_markup(struct buf *b, const char *s);

/* Formats as buf_say and writes it to a stream. */
void say(FILE *out, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Writes composed text of several lines to a stream. Colours are kept where the stream is a
 * terminal. */
void say_text(FILE *out, const struct buf *text);

/* ---- words of shell commands ---- */

/* Appends a word as bash takes it from a script or a terminal, quoted where it must be. A word with
 * control characters, characters that mislead (say.h) or bytes that are no UTF-8 gets the form
 * $'\x1b', so that the command shows what it holds and still names the same bytes. */
void shell_put_word(struct buf *out, const char *word);
