#include "result/json_room.h"

#include <assert.h>
#include <stdint.h>
#include <stdlib.h>

#include "base/alloc.h"

/* The trees of a result of two accelerators and a few epochs. */
#define ROOM_BYTES ((size_t)2 << 20)
#define ALIGNMENT ((size_t)16)

struct room {
	char *block; /* NULL: never used */
	size_t used, last;
	size_t values; /* that were not freed */
	bool in_use;
};
static _Thread_local struct room room;

/* Sanitizers see each value only where it is an allocation. */
#ifdef __SANITIZE_ADDRESS__
static const bool may_use = false;
#else
static const bool may_use = true;
#endif

static bool lies_in(const void *p)
{
	return room.block && (uintptr_t)p - (uintptr_t)room.block < ROOM_BYTES;
}

void *json_room_alloc(size_t size)
{
	size_t need = (size + ALIGNMENT - 1) & ~(ALIGNMENT - 1);

	if (!room.in_use || need == 0 || need > ROOM_BYTES - room.used)
		return xmalloc(size);
	room.last = room.used;
	room.used += need;
	room.values++;
	return room.block + room.last;
}

void json_room_free(void *p)
{
	if (!lies_in(p)) {
		free(p);
		return;
	}
	room.values--;
	if (p == room.block + room.last)
		room.used = room.last;
}

void json_room_use(bool use)
{
	if (use && may_use && !room.block)
		room.block = xmalloc(ROOM_BYTES);
	room.in_use = use && may_use;
}

void json_room_clear(void)
{
	assert(room.values == 0);
	room.used = room.last = 0;
}

void json_room_release(void)
{
	json_room_clear();
	free(room.block);
	room = (struct room){0};
}
