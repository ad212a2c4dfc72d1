/* Latencies drawn from a counter-based generator. */
#include "store/latency.h"

#include <errno.h>
#include <math.h>

#include "base/clock.h"
#include "base/rng.h"

/* A Poisson draw takes about this many steps at most. */
#define POISSON_MAX 10000.0

struct draw {
	uint64_t key, i;
};

/* (0, 1), never an end */
static double uniform(struct draw *d)
{
	return ((double)(rng_word(d->key, d->i++) >> 12) + 0.5) * 0x1p-52;
}

static double gauss(struct draw *d)
{
	double r = sqrt(-2 * log(uniform(d)));

	return r * cos(2 * M_PI * uniform(d));
}

/* Marsaglia and Tsang's squeeze; shapes below 1 by a power of a uniform number. */
static double gamma_of(struct draw *d, double shape)
{
	double b, c, boost = 1;

	if (shape <= 0)
		return 0;
	if (shape < 1) {
		boost = pow(uniform(d), 1 / shape);
		shape += 1;
	}
	b = shape - 1.0 / 3;
	c = 1 / sqrt(9 * b);
	for (;;) {
		double x = gauss(d), v = 1 + c * x;

		if (v <= 0)
			continue;
		v = v * v * v;
		if (log(uniform(d)) < 0.5 * x * x + b * (1 - v + log(v)))
			return b * v * boost;
	}
}

/* Products of uniform numbers, in portions whose exponential does not underflow. */
static double poisson(struct draw *d, double mean)
{
	double count = 0;

	while (mean > 0) {
		double part = mean < 16 ? mean : 16;
		double floor_ = exp(-part);

		for (double p = uniform(d); p > floor_; p *= uniform(d))
			count++;
		mean -= part;
	}
	return count;
}

int latency_check(const struct time_dist *d, const char *key, struct err *e)
{
	if (!isfinite(d->a) || !isfinite(d->b))
		return err_set(e, ERR_USAGE, "%s: the numbers must be finite", key);
	if (d->kind == TIME_GAMMA && d->a < 0)
		return err_set(e, ERR_USAGE, "%s: the shape is %g; it must be 0 or more", key,
			       d->a);
	if (d->kind == TIME_POISSON && !(d->a >= 0 && d->a <= POISSON_MAX))
		return err_set(e, ERR_USAGE, "%s: lam is %g; it must be from 0 to %g seconds", key,
			       d->a, POISSON_MAX);
	return 0;
}

int64_t latency_draw_ns(const struct time_dist *d, uint64_t key, uint64_t number)
{
	struct draw at = {rng_key(key, number, 0), 0};
	double s = 0;

	switch (d->kind) {
	case TIME_NONE:
		return 0;
	case TIME_CONSTANT:
		s = d->a;
		break;
	case TIME_NORMAL:
		s = d->a + d->b * gauss(&at);
		break;
	case TIME_UNIFORM:
		s = d->a + (d->b - d->a) * uniform(&at);
		break;
	case TIME_GAMMA:
		s = gamma_of(&at, d->a) * d->b;
		break;
	case TIME_EXPONENTIAL:
		s = -log(uniform(&at)) * d->a;
		break;
	case TIME_PARETO:
		s = d->b * pow(uniform(&at), -1 / d->a);
		break;
	case TIME_POISSON:
		s = poisson(&at, d->a);
		break;
	}
	s = fabs(s) * (double)NS_PER_S;
	return s < (double)LATENCY_MAX_NS ? (int64_t)s : LATENCY_MAX_NS;
}
