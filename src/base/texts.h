#pragma once
/* Texts with numbers: equal texts have one number, in the order in which they came. A hash table,
 * so that a thousand times as many take a thousand times as long. */
#include <stddef.h>
#include <stdint.h>

struct texts {
	char **v; /* by number */
	size_t n;
	uint32_t *slot; /* number + 1; 0: free */
	size_t slots;
};

#define TEXT_NONE SIZE_MAX

/* The number of `s`, which is copied when it is new: then it is t->n - 1. At most 2^32 - 2. */
size_t texts_add(struct texts *t, const char *s);
/* Its number; TEXT_NONE. */
size_t texts_find(const struct texts *t, const char *s);
void texts_release(struct texts *t);
