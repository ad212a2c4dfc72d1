#include "capacity/tail.h"

#include <assert.h>
#include <math.h>

#define PANELS 240 /* of Simpson's rule, even */

static double at(double y, double n, double xi, double p)
{
	return -expm1(n * log1p(-p * exp(-y))) * exp(xi * y);
}

double tail_max(double n, double xi, double p)
{
	double end, h, sum;

	assert(n >= 1 && xi >= 0 && xi <= TAIL_SHAPE_MAX && p > 0 && p <= 1);
	/* behind the end the integrand is N p e^(-(1 - xi) y) */
	end = fmax(0, log(n * p)) + 12 / (1 - xi);
	h = end / PANELS;
	/* at y = 0 with p = 1 the logarithm is minus infinity, and the integrand 1 */
	sum = (p < 1 ? at(0, n, xi, p) : 1) + at(end, n, xi, p);
	for (int i = 1; i < PANELS; i++)
		sum += at(i * h, n, xi, p) * (i % 2 ? 4 : 2);
	return sum * h / 3 + n * p * exp(-(1 - xi) * end) / (1 - xi);
}
