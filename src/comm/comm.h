#pragma once
/* Ranks. Each rank holds one `struct comm`; calls are collective: every rank of the group makes the
 * same calls in the same order. All return 0, or ERR_CANCELED once the group was told to stop (then
 * every rank gets it, and no rank stays behind in a call). */
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
int comm_local_create(struct comm_group **out, struct comm *ranks, uint32_t size,
		      const struct stop_flag *stop, struct err *e);
void comm_local_destroy(struct comm_group *g);
/* Releases everyone who waits in a call; call after setting the stop flag. Any thread. */
void comm_wake(struct comm_group *g);

int comm_barrier(struct comm *c);
/* Largest value over the ranks. */
int comm_max_i64(struct comm *c, int64_t value, int64_t *out);
/* After a phase: rc is 0 only if it is 0 on every rank; otherwise every rank gets the code and the
 * sentence of the lowest failing rank, with "rank N: " before it when there are several ranks. */
int comm_agree(struct comm *c, int rc, struct err *e);
