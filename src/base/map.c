#include "base/map.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"

/* ---- numbers ---- */

struct map_slot {
	int64_t a, b;
	uint32_t value; /* + 1; 0: free */
};

/* Where a key belongs before others are in its place. */
static size_t home_of(const struct map *m, int64_t a, int64_t b)
{
	uint64_t h = (uint64_t)a * UINT64_C(0x9e3779b97f4a7c15) ^
		     (uint64_t)b * UINT64_C(0xc2b2ae3d27d4eb4f) ^ m->key;

	h = (h ^ h >> 32) * UINT64_C(0xbf58476d1ce4e5b9);
	return (size_t)(h ^ h >> 29) & (m->room - 1);
}

static size_t slot_of(const struct map *m, int64_t a, int64_t b)
{
	size_t i = home_of(m, a, b);

	while (m->slot[i].value && (m->slot[i].a != a || m->slot[i].b != b))
		i = (i + 1) & (m->room - 1);
	return i;
}

uint32_t map_get2(const struct map *m, int64_t a, int64_t b)
{
	return m->room ? m->slot[slot_of(m, a, b)].value - 1 : MAP_NONE;
}

uint32_t map_get(const struct map *m, int64_t key)
{
	return map_get2(m, key, 0);
}

static void map_grow(struct map *m)
{
	struct map old = *m;

	m->room = old.room ? 2 * old.room : 64;
	m->slot = xcalloc(m->room, sizeof(*m->slot));
	for (size_t i = 0; i < old.room; i++)
		if (old.slot[i].value)
			m->slot[slot_of(m, old.slot[i].a, old.slot[i].b)] = old.slot[i];
	free(old.slot);
}

void map_put2(struct map *m, int64_t a, int64_t b, uint32_t value)
{
	size_t i;

	assert(value < MAP_NONE);
	if (2 * (m->n + 1) > m->room)
		map_grow(m);
	i = slot_of(m, a, b);
	m->n += !m->slot[i].value;
	m->slot[i] = (struct map_slot){a, b, value + 1};
}

void map_put(struct map *m, int64_t key, uint32_t value)
{
	map_put2(m, key, 0, value);
}

uint32_t map_take2(struct map *m, int64_t a, int64_t b)
{
	size_t mask = m->room - 1, i;
	uint32_t value;

	if (map_get2(m, a, b) == MAP_NONE)
		return MAP_NONE;
	i = slot_of(m, a, b);
	value = m->slot[i].value - 1;
	/* those behind it that do not belong behind the free place move up into it */
	for (size_t k = (i + 1) & mask; m->slot[k].value; k = (k + 1) & mask) {
		size_t home = home_of(m, m->slot[k].a, m->slot[k].b);

		if (((k - home) & mask) < ((k - i) & mask))
			continue;
		m->slot[i] = m->slot[k];
		i = k;
	}
	m->slot[i].value = 0;
	m->n--;
	return value;
}

void map_release(struct map *m)
{
	free(m->slot);
	*m = (struct map){.key = m->key};
}

/* ---- texts ---- */

/* Where it is, or where it would be. */
static size_t place_of(const struct texts *t, const char *s)
{
	uint64_t h = fnv1a_text(FNV_START, s);
	size_t i = (h ^ h >> 32) & (t->slots - 1);

	while (t->slot[i] && strcmp(t->v[t->slot[i] - 1], s) != 0)
		i = (i + 1) & (t->slots - 1);
	return i;
}

/* The list has room for half as many texts as there are slots. */
static void texts_grow(struct texts *t)
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
		texts_grow(t);
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
