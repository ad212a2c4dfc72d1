#pragma once
/* A store that reads files beside a run and leaves the page cache as it was: with O_DIRECT, and
 * where the file system refuses that or reads through the cache all the same, by dropping again
 * what a read brought in. Dirty pages of a file are written out. What a server or a device below
 * keeps of what was read cannot be undone. Read only; any thread. */
#include "store/store.h"

struct aside_store {
	struct store base;
};
/* It needs no release. */
void aside_init(struct aside_store *s);
