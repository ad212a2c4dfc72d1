#pragma once
/* Numbers by one or two numbers: a hash table of 24 bytes an entry, at most half full. A zeroed
 * struct is empty. */
#include <stddef.h>
#include <stdint.h>

#define KEY_MAP_NONE UINT32_MAX

struct key_map_slot;

struct key_map {
	struct key_map_slot *slot;
	size_t n, room;
};

uint32_t key_map_get(const struct key_map *m, int64_t key); /* KEY_MAP_NONE */
/* `value` is less than KEY_MAP_NONE. */
void key_map_put(struct key_map *m, int64_t key, uint32_t value);
/* The same by two numbers; one alone is a pair with 0. */
uint32_t key_map_get2(const struct key_map *m, int64_t a, int64_t b);
void key_map_put2(struct key_map *m, int64_t a, int64_t b, uint32_t value);
void key_map_release(struct key_map *m);
