#include "metric/drawn.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/stats.h"

#define GRID_LEAST 30          /* values of theta that are weighed, and the square root of n */
static const double PRIOR = 3; /* quartiles: the width of their prior */
static const double SHAPE_LIKELY = 0.25, SHAPE_DEV = 0.25; /* before anything is seen */
static const double ZERO = 1e-6;                           /* shapes nearer to 0 are exponential */

double drawn_quantile(const struct drawn *d, double p)
{
	double at, rest, part = 1 - d->tail;
	int i;

	assert(p >= 0 && p < 1);
	if (p < part) {
		at = p / part * (DRAWN_POINTS - 1);
		i = (int)at;
		i = i < DRAWN_POINTS - 2 ? i : DRAWN_POINTS - 2;
		return d->at[i] + (at - i) * (d->at[i + 1] - d->at[i]);
	}
	rest = (1 - p) / d->tail;
	if (fabs(d->shape) < ZERO)
		return d->at[DRAWN_POINTS - 1] - d->scale * log(rest);
	return d->at[DRAWN_POINTS - 1] + d->scale * (pow(rest, -d->shape) - 1) / d->shape;
}

double drawn_value(const struct drawn *d, uint64_t word)
{
	return drawn_quantile(d, ((double)(word >> 12) + 0.5) * 0x1p-52);
}

double drawn_mean(const struct drawn *d)
{
	double sum = (d->at[0] + d->at[DRAWN_POINTS - 1]) / 2;

	for (int i = 1; i < DRAWN_POINTS - 1; i++)
		sum += d->at[i];
	sum *= (1 - d->tail) / (DRAWN_POINTS - 1);
	if (d->tail > 0)
		sum += d->tail * (d->at[DRAWN_POINTS - 1] + d->scale / (1 - d->shape));
	return sum;
}

void drawn_scale(struct drawn *d, double by)
{
	for (int i = 0; i < DRAWN_POINTS; i++)
		d->at[i] *= by;
	d->scale *= by;
}

struct drawn drawn_constant(double value)
{
	struct drawn d = {.tail = 0};

	for (int i = 0; i < DRAWN_POINTS; i++)
		d.at[i] = value;
	return d;
}

/* The shape that fits best for theta = -shape / scale. */
static double shape_for(const double *x, size_t n, double theta)
{
	double sum = 0;

	for (size_t i = 0; i < n; i++)
		sum += log1p(-theta * x[i]);
	return sum / (double)n;
}

/* The shape and scale of a generalised Pareto distribution, of n >= 5 excesses, sorted, none
 * negative: Zhang and Stephens, Technometrics 51 (2009) 316, with a normal prior of the shape, 0.25
 * and its deviation 0.25, which matters where excesses are few (as Martins and Stedinger, Water
 * Resources Research 36 (2000) 737). False where they are all alike. */
static bool drawn_fit_tail(const double *x, size_t n, double *scale, double *shape)
{
	size_t m = GRID_LEAST + (size_t)sqrt((double)n);
	double quartile = x[(size_t)((double)n / 4 + 0.5) - 1], most = x[n - 1];
	double *theta = NULL, *like, best = -INFINITY, sum = 0, mean = 0;

	assert(n >= 5);
	if (!(most > 0) || !(most > x[0]))
		return false;
	quartile = quartile > 0 ? quartile : most / (double)n;
	theta = xcalloc(2 * m, sizeof(*theta));
	like = theta + m;
	for (size_t j = 0; j < m; j++) {
		double k;

		theta[j] = 1 / most + (1 - sqrt((double)m / ((double)j + 0.5))) / PRIOR / quartile;
		k = shape_for(x, n, theta[j]);
		/* the profile likelihood: n (log(-theta / k) - k - 1) */
		like[j] = (double)n * (log(-theta[j] / k) - k - 1) -
			  (k - SHAPE_LIKELY) * (k - SHAPE_LIKELY) / 2 / SHAPE_DEV / SHAPE_DEV;
		if (isnan(like[j]))
			like[j] = -INFINITY;
		best = fmax(best, like[j]);
	}
	for (size_t j = 0; j < m; j++) {
		double weight = exp(like[j] - best);

		sum += weight;
		mean += weight * theta[j];
	}
	mean /= sum;
	free(theta);
	*shape = shape_for(x, n, mean);
	*scale = fabs(mean) > 0 ? -*shape / mean : most / (double)n;
	if (!isfinite(*shape) || !isfinite(*scale) || !(*scale > 0))
		return false;
	*shape = fmin(*shape, DRAWN_SHAPE_MAX);
	return true;
}

/* The p-quantile of sorted values, between two of them in proportion. */
static double quantile_of(const double *v, size_t n, double p)
{
	double at = p * (double)(n - 1);
	size_t i = (size_t)at;

	return i + 1 < n ? v[i] + (at - (double)i) * (v[i + 1] - v[i]) : v[n - 1];
}

struct drawn drawn_of(double *v, size_t n)
{
	struct drawn d = {.tail = 0};
	double part = fmax(DRAWN_TAIL_PART, fmin(DRAWN_TAIL_MOST, DRAWN_TAIL_WANTED / (double)n));
	size_t above = (size_t)(part * (double)n), body;
	double threshold;

	assert(n > 0);
	sort_numbers(v, n);
	body = n;
	if (above >= DRAWN_TAIL_LEAST) {
		double *excess = xcalloc(above, sizeof(*excess));

		threshold = v[n - above - 1];
		for (size_t i = 0; i < above; i++)
			excess[i] = v[n - above + i] - threshold;
		if (drawn_fit_tail(excess, above, &d.scale, &d.shape)) {
			d.tail = (double)above / (double)n;
			body = n - above;
		}
		free(excess);
	}
	for (int i = 0; i < DRAWN_POINTS; i++)
		d.at[i] = quantile_of(v, body, (double)i / (DRAWN_POINTS - 1));
	return d;
}
