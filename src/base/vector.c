#include "base/vector.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>

#include "base/alloc.h"

#define FIRST 8

/* Doubled, or more where that is not enough. Bytes: SIZE_MAX where it is more than any memory,
 * which every system refuses. */
static size_t next_room(size_t room, size_t n, size_t more, size_t size, size_t *bytes)
{
	size_t next = room < FIRST / 2 ? FIRST : room > SIZE_MAX / 2 ? SIZE_MAX : 2 * room, want;

	if (__builtin_add_overflow(n, more, &want))
		want = SIZE_MAX;
	next = next < want ? want : next;
	if (__builtin_mul_overflow(next, size, bytes))
		*bytes = SIZE_MAX;
	return next;
}

/* The address of the array is that of a pointer of any type. */
static void *array_at(const void *at)
{
	void *v;

	memcpy(&v, at, sizeof(v));
	return v;
}

void vector_grow(void *at, size_t *room, size_t n, size_t more, size_t size)
{
	size_t bytes, next = next_room(*room, n, more, size, &bytes);
	void *v = xrealloc(array_at(at), bytes);

	memcpy(at, &v, sizeof(v));
	*room = next;
}

int vector_try(void *at, size_t *room, size_t n, size_t more, size_t size, const char *what,
	       struct err *e)
{
	size_t bytes, next = next_room(*room, n, more, size, &bytes);
	void *v = realloc(array_at(at), bytes);

	if (!v)
		return err_set(e, -ENOMEM, "%s: the system refused %zu bytes of memory", what,
			       bytes);
	memcpy(at, &v, sizeof(v));
	*room = next;
	return 0;
}

void vector_too_long(void)
{
	out_of_memory_for("a list is longer than it can be");
}
