#pragma once
/* One delay out of a configured distribution, as DLIO draws it: the absolute value of one draw from
 * NumPy's legacy generator. */
#include <stdbool.h>
#include <stdint.h>

#include "base/rng.h"
#include "conf/opt.h"

/* Nanoseconds, never negative and at most TIME_DRAW_MAX_NS. Constants and TIME_NONE draw nothing.
 * Parameters that NumPy refuses (a negative scale, not a number) give 0. */
int64_t time_draw_ns(const struct time_dist *d, struct rng_np *r);
/* Whether a delay can be other than 0. */
bool time_dist_waits(const struct time_dist *d);
/* Whether delays differ from draw to draw: a generator is needed. */
bool time_dist_varies(const struct time_dist *d);

/* About 31 years: keeps deadlines within int64. */
#define TIME_DRAW_MAX_NS (1000000000LL * 1000000000LL)
