/* Draws delays for emulated computation and preprocessing. */
#include "workload/time_draw.h"

#include <math.h>

/* Above this NumPy's own result would not fit an int64. */
#define POISSON_LAM_MAX 9.2e18

static double draw_seconds(const struct time_dist *d, struct rng_np *r)
{
	switch (d->kind) {
	case TIME_NONE:
		return 0;
	case TIME_CONSTANT:
		return d->a;
	case TIME_NORMAL:
		return d->b >= 0 ? rng_np_normal(r, d->a, d->b) : 0;
	case TIME_UNIFORM:
		return rng_np_uniform(r, d->a, d->b);
	case TIME_GAMMA:
		return d->a >= 0 && d->b >= 0 ? rng_np_gamma(r, d->a, d->b) : 0;
	case TIME_EXPONENTIAL:
		return d->a >= 0 ? rng_np_exponential(r, d->a) : 0;
	case TIME_PARETO:
		return d->b * pow(1 - rng_np_double(r), -1 / d->a);
	case TIME_POISSON:
		return d->a >= 0 && d->a < POISSON_LAM_MAX ? (double)rng_np_poisson(r, d->a) : 0;
	}
	return 0;
}

int64_t time_draw_ns(const struct time_dist *d, struct rng_np *r)
{
	double ns = fabs(draw_seconds(d, r)) * 1e9;

	if (!(ns > 0))
		return 0;
	return ns < (double)TIME_DRAW_MAX_NS ? (int64_t)llrint(ns) : TIME_DRAW_MAX_NS;
}

bool time_dist_waits(const struct time_dist *d)
{
	return d->kind != TIME_NONE && !(d->kind == TIME_CONSTANT && d->a == 0);
}

bool time_dist_varies(const struct time_dist *d)
{
	return d->kind != TIME_NONE && d->kind != TIME_CONSTANT;
}
