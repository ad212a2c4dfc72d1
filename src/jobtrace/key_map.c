/* A hash table by open addressing; nothing is taken out. */
#include "jobtrace/key_map.h"

#include <stdlib.h>

#include "base/alloc.h"

struct key_map_slot {
	int64_t a, b;
	uint32_t value; /* + 1; 0: free */
};

static size_t slot_of(const struct key_map *m, int64_t a, int64_t b)
{
	uint64_t h = (uint64_t)a * UINT64_C(0x9e3779b97f4a7c15) ^
		     (uint64_t)b * UINT64_C(0xc2b2ae3d27d4eb4f);
	size_t i = (size_t)((h ^ h >> 32) * UINT64_C(0xbf58476d1ce4e5b9) >> 20) & (m->room - 1);

	while (m->slot[i].value && (m->slot[i].a != a || m->slot[i].b != b))
		i = (i + 1) & (m->room - 1);
	return i;
}

uint32_t key_map_get2(const struct key_map *m, int64_t a, int64_t b)
{
	return m->room ? m->slot[slot_of(m, a, b)].value - 1 : KEY_MAP_NONE;
}

uint32_t key_map_get(const struct key_map *m, int64_t key)
{
	return key_map_get2(m, key, 0);
}

void key_map_put2(struct key_map *m, int64_t a, int64_t b, uint32_t value)
{
	size_t i;

	if (2 * (m->n + 1) > m->room) {
		struct key_map old = *m;

		m->room = old.room ? 2 * old.room : 64;
		m->slot = xcalloc(m->room, sizeof(*m->slot));
		for (i = 0; i < old.room; i++)
			if (old.slot[i].value)
				m->slot[slot_of(m, old.slot[i].a, old.slot[i].b)] = old.slot[i];
		free(old.slot);
	}
	i = slot_of(m, a, b);
	m->n += !m->slot[i].value;
	m->slot[i] = (struct key_map_slot){a, b, value + 1};
}

void key_map_put(struct key_map *m, int64_t key, uint32_t value)
{
	key_map_put2(m, key, 0, value);
}

void key_map_release(struct key_map *m)
{
	free(m->slot);
	*m = (struct key_map){0};
}
