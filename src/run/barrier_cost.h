#pragma once
/* What a barrier of all ranks costs by itself, measured before training. Private to run/. */
#include "comm/comm.h"
#include "result/result.h"

/* Collective, by all ranks: a few dozen barriers one after the other; after a fifth of a second, no
 * more than a dozen. The first rank of each process fills `out`. ERR_CANCELED as comm_barrier. */
int barrier_cost_measure(struct comm *c, const struct net *net, struct barrier_cost *out);
