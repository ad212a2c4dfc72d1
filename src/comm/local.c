/* Ranks that are threads of this process: a generation-counting barrier on a futex. */
#include "comm/comm.h"

#include <stdlib.h>

#include "base/alloc.h"
#include "base/clock.h"

/* How long a waiter may miss a comm_wake that came between its check and its sleep. */
#define RECHECK_NS (NS_PER_S / 2)

struct comm_group {
	uint32_t size;
	const struct stop_flag *stop;
	_Atomic uint32_t generation;
	_Atomic uint32_t arrived;
};

struct comm_group *comm_local_create(struct comm *ranks, uint32_t size,
				     const struct stop_flag *stop)
{
	struct comm_group *g = xcalloc(1, sizeof(*g));

	g->size = size;
	g->stop = stop;
	for (uint32_t r = 0; r < size; r++)
		ranks[r] = (struct comm){.group = g, .rank = r, .size = size};
	return g;
}

void comm_local_destroy(struct comm_group *g)
{
	free(g);
}

void comm_wake(struct comm_group *g)
{
	thread_wake(&g->generation, -1);
}

int comm_barrier(struct comm *c)
{
	struct comm_group *g = c->group;
	uint32_t seen = atomic_load_explicit(&g->generation, memory_order_acquire);

	if (atomic_load_explicit(&g->stop->set, memory_order_relaxed))
		return ERR_CANCELED;
	if (g->size == 1)
		return 0;
	/* acq_rel: what a rank wrote before it arrived is visible to all that leave */
	if (atomic_fetch_add_explicit(&g->arrived, 1, memory_order_acq_rel) + 1 == g->size) {
		/* reset before the generation moves: nobody can arrive for the next barrier earlier
		 */
		atomic_store_explicit(&g->arrived, 0, memory_order_relaxed);
		atomic_fetch_add_explicit(&g->generation, 1, memory_order_acq_rel);
		thread_wake(&g->generation, -1);
		return 0;
	}
	while (atomic_load_explicit(&g->generation, memory_order_acquire) == seen) {
		if (atomic_load_explicit(&g->stop->set, memory_order_relaxed))
			return ERR_CANCELED;
		thread_wait(&g->generation, seen, RECHECK_NS);
	}
	return 0;
}
