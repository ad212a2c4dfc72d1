#include "base/buf.h"

#include <assert.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"

static void reserve(struct buf *b, size_t extra)
{
	size_t cap = b->cap ? b->cap : 64;
	size_t want;

	assert(b->data ? b->len < b->cap : b->len == 0);
	if (__builtin_add_overflow(b->len + 1, extra, &want))
		want = SIZE_MAX; /* which xrealloc refuses with a sentence */
	if (want <= b->cap)
		return;
	while (cap < want)
		cap = cap > SIZE_MAX / 2 ? want : cap * 2;
	b->data = xrealloc(b->data, cap);
	b->cap = cap;
}

void buf_append(struct buf *b, const void *bytes, size_t n)
{
	reserve(b, n);
	if (n)
		memcpy(b->data + b->len, bytes, n);
	b->len += n;
	b->data[b->len] = '\0';
}

void buf_puts(struct buf *b, const char *s)
{
	buf_append(b, s, strlen(s));
}

void buf_putc(struct buf *b, char c)
{
	buf_append(b, &c, 1);
}

void buf_vprintf(struct buf *b, const char *fmt, va_list ap)
{
	va_list again;
	int n;

	va_copy(again, ap);
	n = vsnprintf(NULL, 0, fmt, ap);
	if (n >= 0) {
		reserve(b, (size_t)n);
		vsnprintf(b->data + b->len, (size_t)n + 1, fmt, again);
		b->len += (size_t)n;
	}
	va_end(again);
}

void buf_printf(struct buf *b, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	buf_vprintf(b, fmt, ap);
	va_end(ap);
}

void buf_put_roff(struct buf *b, const char *s)
{
	if (*s == '.' || *s == '\'')
		buf_puts(b, "\\&");
	for (; *s; s++) {
		if (*s == '\\')
			buf_puts(b, "\\e");
		else if (*s == '-')
			buf_puts(b, "\\-");
		else
			buf_putc(b, *s);
	}
}

bool buf_room(struct buf *b, size_t n)
{
	char *p;

	if (n >= SIZE_MAX - b->len)
		return false;
	if (b->len + n + 1 <= b->cap)
		return true;
	p = realloc(b->data, b->len + n + 1);
	if (!p && alloc_spend())
		p = realloc(b->data, b->len + n + 1);
	if (!p)
		return false;
	b->data = p;
	b->cap = b->len + n + 1;
	return true;
}

char *buf_take(struct buf *b)
{
	char *s;

	reserve(b, 0);
	b->data[b->len] = '\0';
	s = b->data;
	*b = (struct buf){0};
	return s;
}

void buf_reset(struct buf *b)
{
	b->len = 0;
	if (b->data)
		b->data[0] = '\0';
}

void buf_release(struct buf *b)
{
	free(b->data);
	*b = (struct buf){0};
}
