#pragma once
/* A store of one file whose bytes are in memory already, so that a format's reader can decode what
 * another way of reading brought. */
#include "store/store.h"

struct held_store {
	struct store base;
	const unsigned char *data; /* of the file's bytes [begin, begin + n) */
	uint64_t begin, n;
	uint64_t file_bytes;
};

void held_store_init(struct held_store *s);
