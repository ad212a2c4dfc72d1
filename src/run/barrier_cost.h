#pragma once
/* What a barrier of all ranks costs by itself, measured before training. Private to run/. */
#include "comm/comm.h"
#include "result/result.h"
#include "run/together.h"

/* Collective, by all ranks: a few dozen barriers one after the other; after a fifth of a second, no
 * more than a dozen. The first rank of each process fills `out`. ERR_CANCELED as comm_barrier. */
int barrier_cost_measure(struct comm *c, const struct net *net, struct barrier_cost *out);

struct fabric;
/* Collective, by all processes, before there are ranks: carries out comm.barrier. `fabric`: the
 * launcher's MPI, or NULL. Fills what it measures and the library of `out`. */
int barrier_choose(const struct run_place *at, struct fabric *fabric, struct barrier_cost *out,
		   const struct workload *w, const struct stop_flag *stop, struct err *e);
