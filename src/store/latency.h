#pragma once
/* Draws from a duration distribution without state, so that threads need no lock and the n-th
 * request of a run waits the same time whenever it is repeated. */
#include <stdint.h>

#include "base/err.h"
#include "conf/opt.h"

/* Longest wait ever drawn. */
#define LATENCY_MAX_NS 1000000000000000LL

/* Whether the parameters can be drawn from; the sentence names `key`. */
int latency_check(const struct time_dist *d, const char *key, struct err *e);
/* The absolute value of draw `number` of the sequence named by `key`, in ns. */
int64_t latency_draw_ns(const struct time_dist *d, uint64_t key, uint64_t number);
