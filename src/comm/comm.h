#pragma once
/* Ranks. Each rank holds one `struct comm`; calls are collective: every rank of the group makes the
 * same calls in the same order. All return 0, or ERR_CANCELED once the group was told to stop: then
 * no rank stays behind in a call, though of those in the same call some may already have got their
 * 0. */
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/thread.h"

struct comm_group; /* all ranks of this process */

struct comm {
	struct comm_group *group;
	uint32_t rank, size;
};

/* A group of `size` ranks that are threads of this process. Fills ranks[0..size). */
struct comm_group *comm_local_create(struct comm *ranks, uint32_t size,
				     const struct stop_flag *stop);
void comm_local_destroy(struct comm_group *g);
/* Releases everyone who waits in a call; call after setting the stop flag. Any thread. */
void comm_wake(struct comm_group *g);

int comm_barrier(struct comm *c);
