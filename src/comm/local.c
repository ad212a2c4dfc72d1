/* Ranks that are threads of this process: a generation-counting barrier on a futex, and reductions
 * through one slot a rank. */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "comm/comm.h"

/* How long a waiter may miss a comm_wake that came between its check and its sleep. */
#define RECHECK_NS (NS_PER_S / 2)

struct comm_group {
	uint32_t size;
	const struct stop_flag *stop;
	_Atomic uint32_t generation;
	_Atomic uint32_t arrived;
	int64_t *slot;
	pthread_mutex_t lock; /* of the three below */
	uint32_t failed_rank;
	int failed_rc;
	struct err failed;
};

int comm_local_create(struct comm_group **out, struct comm *ranks, uint32_t size,
		      const struct stop_flag *stop, struct err *e)
{
	struct comm_group *g = xcalloc(1, sizeof(*g));

	g->slot = try_calloc(size, sizeof(*g->slot), "rank slots", e);
	if (!g->slot) {
		free(g);
		return -ENOMEM;
	}
	g->size = size;
	g->stop = stop;
	g->failed_rank = UINT32_MAX;
	pthread_mutex_init(&g->lock, NULL);
	for (uint32_t r = 0; r < size; r++)
		ranks[r] = (struct comm){.group = g, .rank = r, .size = size};
	*out = g;
	return 0;
}

void comm_local_destroy(struct comm_group *g)
{
	if (!g)
		return;
	pthread_mutex_destroy(&g->lock);
	free(g->slot);
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

int comm_max_i64(struct comm *c, int64_t value, int64_t *out)
{
	struct comm_group *g = c->group;
	int64_t best;
	int rc;

	g->slot[c->rank] = value;
	rc = comm_barrier(c);
	if (rc)
		return rc;
	best = g->slot[0];
	for (uint32_t r = 1; r < g->size; r++)
		if (g->slot[r] > best)
			best = g->slot[r];
	/* nobody may overwrite a slot before all have read it */
	rc = comm_barrier(c);
	if (rc == 0)
		*out = best;
	return rc;
}

int comm_agree(struct comm *c, int rc, struct err *e)
{
	struct comm_group *g = c->group;
	int agreed;

	if (rc < 0) {
		pthread_mutex_lock(&g->lock);
		if (c->rank < g->failed_rank) {
			g->failed_rank = c->rank;
			g->failed_rc = rc;
			g->failed = *e;
		}
		pthread_mutex_unlock(&g->lock);
	}
	agreed = comm_barrier(c);
	if (agreed)
		return agreed;
	if (g->failed_rank != UINT32_MAX) {
		*e = g->failed;
		if (g->size > 1)
			err_wrap(e, "rank %u", g->failed_rank);
		return g->failed_rc;
	}
	return 0;
}
