#pragma once
/* A growing byte string. A zeroed struct is an empty buffer. `data` is NUL-terminated after any
 * append and NULL before the first. */
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>

struct buf {
	char *data;
	size_t len;
	size_t cap;
};

void buf_append(struct buf *b, const void *bytes, size_t n);
void buf_puts(struct buf *b, const char *s);
void buf_putc(struct buf *b, char c);
void buf_printf(struct buf *b, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void buf_vprintf(struct buf *b, const char *fmt, va_list ap) __attribute__((format(printf, 2, 0)));
/* `s` as text of a manual page: a leading dot or quote is a command there, a backslash an escape, a
 * plain - a hyphen. */
void buf_put_roff(struct buf *b, const char *s);
/* Makes room for n bytes behind the present ones, which may then be written at data + len. False
 * when the system refuses, for sizes that a file says. */
bool buf_room(struct buf *b, size_t n);
/* The contents as a heap string ("" when empty); the buffer is empty afterwards. */
char *buf_take(struct buf *b);
void buf_reset(struct buf *b);
/* Frees the memory. Accepts a zeroed struct. */
void buf_release(struct buf *b);
