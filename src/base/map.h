#pragma once
/* Hash tables by open addressing, at most half full: numbers by numbers, and numbers of texts. The
 * same calls give the same answers, whatever the addresses and the process. A zeroed struct is
 * empty. They are small amounts of memory in the sense of base/alloc.h. */
#include <stddef.h>
#include <stdint.h>

/* ---- FNV-1a, 64 bits (Fowler, Noll, Vo) ---- */

#define FNV_START UINT64_C(0xcbf29ce484222325)

static inline uint64_t fnv1a(uint64_t h, const void *bytes, size_t n)
{
	const unsigned char *p = bytes;

	for (size_t i = 0; i < n; i++)
		h = (h ^ p[i]) * UINT64_C(0x100000001b3);
	return h;
}

static inline uint64_t fnv1a_text(uint64_t h, const char *s)
{
	for (; *s; s++)
		h = (h ^ (unsigned char)*s) * UINT64_C(0x100000001b3);
	return h;
}

/* ---- numbers by one or two numbers, 24 bytes an entry ---- */

#define MAP_NONE UINT32_MAX

struct map_slot;

struct map {
	struct map_slot *slot;
	size_t n, room;
	uint64_t key; /* part of each hash; where a file may choose keys, one that it cannot know */
};

uint32_t map_get(const struct map *m, int64_t key); /* MAP_NONE */
/* `value` is less than MAP_NONE. */
void map_put(struct map *m, int64_t key, uint32_t value);
/* The same by two numbers; one alone is a pair with 0. */
uint32_t map_get2(const struct map *m, int64_t a, int64_t b);
void map_put2(struct map *m, int64_t a, int64_t b, uint32_t value);
/* Takes an entry out: its value, or MAP_NONE. */
uint32_t map_take2(struct map *m, int64_t a, int64_t b);
void map_release(struct map *m); /* the key stays */

/* ---- texts with numbers: equal texts have one number, in the order in which they came ---- */

#define TEXT_NONE SIZE_MAX

struct texts {
	char **v; /* by number */
	size_t n;
	uint32_t *slot; /* number + 1; 0: free */
	size_t slots;
};

/* The number of `s`, which is copied when it is new: then it is t->n - 1. At most 2^32 - 2. */
size_t texts_add(struct texts *t, const char *s);
/* Its number; TEXT_NONE. */
size_t texts_find(const struct texts *t, const char *s);
void texts_release(struct texts *t);
