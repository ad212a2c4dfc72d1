/* What the library needs of string.h, of its own: functions of libc may be those of a sanitizer in
 * the program, which follow memory and know nothing of ours, and libc's own need more stack. The
 * names are hidden in the library, so that the compiler's calls come here, too. */
#include <string.h>

/* Or the compiler makes a loop the call that it is the body of. */
#define OPAQUE() __asm__ volatile("" : : : "memory")

void *memcpy(void *restrict to, const void *restrict from, size_t n)
{
	unsigned char *t = to;
	const unsigned char *f = from;

	for (; n >= 8; n -= 8, t += 8, f += 8) {
		__builtin_memcpy(t, f, 8);
		OPAQUE();
	}
	for (; n > 0; n--) {
		*t++ = *f++;
		OPAQUE();
	}
	return to;
}

void *memset(void *to, int c, size_t n)
{
	for (unsigned char *t = to; n > 0; n--) {
		*t++ = (unsigned char)c;
		OPAQUE();
	}
	return to;
}

int memcmp(const void *a, const void *b, size_t n)
{
	const unsigned char *x = a, *y = b;

	for (; n > 0; n--, x++, y++)
		if (*x != *y)
			return *x < *y ? -1 : 1;
	return 0;
}

void *memchr(const void *s, int c, size_t n)
{
	for (const unsigned char *p = s; n > 0; n--, p++)
		if (*p == (unsigned char)c)
			return (void *)(size_t)p;
	return NULL;
}

size_t strnlen(const char *s, size_t most)
{
	size_t n = 0;

	while (n < most && s[n])
		n++;
	return n;
}

size_t strlen(const char *s)
{
	size_t n = 0;

	while (s[n]) {
		n++;
		OPAQUE();
	}
	return n;
}

int strncmp(const char *a, const char *b, size_t n)
{
	for (; n > 0; n--, a++, b++)
		if (*a != *b || !*a)
			return (unsigned char)*a - (unsigned char)*b;
	return 0;
}

int strcmp(const char *a, const char *b)
{
	return strncmp(a, b, (size_t)-1);
}

char *strchr(const char *s, int c)
{
	for (; *s != (char)c; s++)
		if (!*s)
			return NULL;
	return (char *)(size_t)s;
}

char *strrchr(const char *s, int c)
{
	const char *found = NULL;

	for (;; s++) {
		if (*s == (char)c)
			found = s;
		if (!*s)
			return (char *)(size_t)found;
	}
}

char *strstr(const char *s, const char *part)
{
	size_t n = strlen(part);

	for (;; s++) {
		if (strncmp(s, part, n) == 0)
			return (char *)(size_t)s;
		if (!*s)
			return NULL;
	}
}
