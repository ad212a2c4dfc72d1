#include "base/alloc.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23 /* of Linux 5.14 */
#endif

static void *must(void *p, size_t size)
{
	if (!p && size) {
		fprintf(stderr, "stoker: out of memory: the system refused %zu bytes\n", size);
		_exit(1);
	}
	return p;
}

void out_of_memory(void)
{
	fputs("stoker: out of memory\n", stderr);
	_exit(1);
}

void *xmalloc(size_t size)
{
	return must(malloc(size), size);
}

void *xcalloc(size_t count, size_t size)
{
	return must(calloc(count, size), count * size);
}

void *xrealloc(void *p, size_t size)
{
	return must(realloc(p, size), size);
}

char *xstrdup(const char *s)
{
	return must(strdup(s), strlen(s) + 1);
}

char *xstrndup(const char *s, size_t n)
{
	return must(strndup(s, n), n + 1);
}

char *xvasprintf(const char *fmt, va_list ap)
{
	char *s = NULL;
	int n = vasprintf(&s, fmt, ap);

	return must(n < 0 ? NULL : s, 1);
}

char *xasprintf(const char *fmt, ...)
{
	va_list ap;
	char *s;

	va_start(ap, fmt);
	s = xvasprintf(fmt, ap);
	va_end(ap);
	return s;
}

void *try_calloc(size_t count, size_t size, const char *what, struct err *e)
{
	size_t total;
	void *p;

	if (__builtin_mul_overflow(count, size, &total)) {
		err_set(e, -ENOMEM, "%s: %zu elements of %zu bytes do not fit in memory", what,
			count, size);
		return NULL;
	}
	p = calloc(count ? count : 1, size ? size : 1);
	if (!p)
		err_set(e, -ENOMEM, "%s: the system refused %zu bytes of memory", what, total);
	return p;
}

/* Touches every page. MAP_POPULATE would do it as well, but does not tell when it could not. */
static int populate(unsigned char *p, size_t size)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);

	if (madvise(p, size, MADV_POPULATE_WRITE) == 0)
		return 0;
	if (errno == ENOMEM || errno == EHWPOISON)
		return -ENOMEM;
	/* Linux before 5.14, or interrupted: a page that cannot be had ends the process here, and
	 * not while time is measured */
	for (size_t at = 0; at < size; at += page)
		((volatile unsigned char *)p)[at] = 0;
	return 0;
}

void *buffer_alloc(size_t size, const char *what, struct err *e)
{
	size_t bytes = size ? size : 1;
	void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p != MAP_FAILED && populate(p, bytes) < 0) {
		munmap(p, bytes);
		p = MAP_FAILED;
	}
	if (p == MAP_FAILED) {
		err_set(e, -ENOMEM, "%s: the system refused %zu bytes of memory", what, size);
		return NULL;
	}
	return p;
}

void buffer_free(void *p, size_t size)
{
	if (p)
		munmap(p, size ? size : 1);
}

void auto_free(void *pp)
{
	free(*(void **)pp);
}

bool bytes_are_zero(const void *p, size_t n)
{
	const unsigned char *b = p;

	return n == 0 || (b[0] == 0 && memcmp(b, b + 1, n - 1) == 0);
}
