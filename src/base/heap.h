#pragma once
/* A binary heap in an array of any elements: none goes before the first. `before(a, b, of)` says
 * whether element a goes before b; it must decide between any two different ones where the order in
 * which they leave is to be the same on every machine. All is inline, so that a compiler that knows
 * `before` calls nothing. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

typedef bool heap_before(const void *a, const void *b, const void *of);

#define HEAP_INLINE static inline __attribute__((always_inline))

HEAP_INLINE void heap_swap(char *a, char *b, size_t size)
{
	for (size_t i = 0, part; i < size; i += part) {
		uint64_t c;

		part = size - i < sizeof(c) ? size - i : sizeof(c);
		memcpy(&c, a + i, part);
		memcpy(a + i, b + i, part);
		memcpy(b + i, &c, part);
	}
}

/* Element i of n moves down to its place: it was changed, or took the place of another. */
HEAP_INLINE void heap_sink(void *v, size_t n, size_t size, size_t i, heap_before *before,
			   const void *of)
{
	char *p = v;
	size_t child;

	for (; (child = 2 * i + 1) < n; i = child) {
		if (child + 1 < n && before(p + (child + 1) * size, p + child * size, of))
			child++;
		if (!before(p + child * size, p + i * size, of))
			return;
		heap_swap(p + i * size, p + child * size, size);
	}
}

/* The last of n, which has just been added, moves up to its place. */
HEAP_INLINE void heap_add(void *v, size_t n, size_t size, heap_before *before, const void *of)
{
	char *p = v;

	for (size_t i = n - 1, up; i > 0; i = up) {
		up = (i - 1) / 2;
		if (!before(p + i * size, p + up * size, of))
			return;
		heap_swap(p + i * size, p + up * size, size);
	}
}

/* The first of n goes to the end; the n - 1 before it are a heap. */
HEAP_INLINE void heap_take(void *v, size_t n, size_t size, heap_before *before, const void *of)
{
	if (n < 2)
		return;
	heap_swap(v, (char *)v + (n - 1) * size, size);
	heap_sink(v, n - 1, size, 0, before, of);
}

/* Puts n elements in order. */
HEAP_INLINE void heap_make(void *v, size_t n, size_t size, heap_before *before, const void *of)
{
	for (size_t i = n / 2; i-- > 0;)
		heap_sink(v, n, size, i, before, of);
}
