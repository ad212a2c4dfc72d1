#pragma once
/* Long requests of one thread, each weighed by its length: what the code that runs after them may
 * depend on. */
#include <math.h>
#include <stdint.h>

#include "base/clock.h"

#define IO_WAIT_LEAST_NS 100000 /* shorter requests count as none */

struct io_waits {
	double scale_s; /* above 0: a request much longer than this weighs 1 */
	double all;     /* the sum of the weights */
	double most;    /* the largest of them */
	int64_t ns;     /* the sum of the times */
};

/* The weight of a wait: 1 - exp(-wait_s / scale_s); 0 if there was none. Pure. */
static inline double io_wait_weight(double wait_s, double scale_s)
{
	return wait_s > 0 ? -expm1(-wait_s / scale_s) : 0;
}

static inline void io_waits_add(struct io_waits *w, int64_t took_ns)
{
	double weight;

	if (took_ns < IO_WAIT_LEAST_NS)
		return;
	weight = io_wait_weight((double)took_ns / NS_PER_S, w->scale_s);
	w->all += weight;
	w->most = fmax(w->most, weight);
	w->ns += took_ns;
}
