/* A hash table of texts, open addressing. */
#include "base/texts.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"

static uint64_t hash_of(const char *s)
{
	uint64_t h = 0xcbf29ce484222325; /* FNV-1a */

	for (; *s; s++)
		h = (h ^ (unsigned char)*s) * 0x100000001b3;
	return h ^ h >> 32;
}

/* Where it is, or where it would be. */
static size_t place_of(const struct texts *t, const char *s)
{
	size_t i = hash_of(s) & (t->slots - 1);

	while (t->slot[i] && strcmp(t->v[t->slot[i] - 1], s) != 0)
		i = (i + 1) & (t->slots - 1);
	return i;
}

/* The list has room for half as many texts as there are slots. */
static void grow(struct texts *t)
{
	t->slots = t->slots ? 2 * t->slots : 16;
	t->v = xrealloc(t->v, t->slots / 2 * sizeof(*t->v));
	free(t->slot);
	t->slot = xcalloc(t->slots, sizeof(*t->slot));
	for (size_t i = 0; i < t->n; i++)
		t->slot[place_of(t, t->v[i])] = (uint32_t)(i + 1);
}

size_t texts_find(const struct texts *t, const char *s)
{
	uint32_t number = t->slots ? t->slot[place_of(t, s)] : 0;

	return number ? number - 1 : TEXT_NONE;
}

size_t texts_add(struct texts *t, const char *s)
{
	size_t at;

	if (2 * (t->n + 1) > t->slots)
		grow(t);
	at = place_of(t, s);
	if (t->slot[at])
		return t->slot[at] - 1;
	assert(t->n < UINT32_MAX - 1);
	t->v[t->n] = xstrdup(s);
	t->slot[at] = (uint32_t)++t->n;
	return t->n - 1;
}

void texts_release(struct texts *t)
{
	for (size_t i = 0; i < t->n; i++)
		free(t->v[i]);
	free(t->v);
	free(t->slot);
	*t = (struct texts){0};
}
