#include "predict/alone_fit.h"

#include <assert.h>
#include <math.h>

#define WIDTHS 12

static const double PI = 3.14159265358979323846;
static const double SPECIAL = 0.03; /* of the times: anything may have happened */
static const double WIDER = 2;      /* each width tried, of the one before */

static double density(double distance, double width)
{
	double x = distance / width;

	return 1 / (PI * width * (1 + x * x));
}

static double nats_of(double d, double longest)
{
	return -log((1 - SPECIAL) * d + SPECIAL / longest);
}

double alone_fit_errors(const double *error, size_t n, double least, double longest)
{
	double best = INFINITY, width = least;

	assert(least > 0 && longest > 0);
	for (int w = 0; w < WIDTHS; w++, width *= WIDER) {
		double sum = 0, known = 0;

		for (size_t i = 0; i < n; i++) {
			if (isnan(error[i]))
				continue;
			sum += nats_of(density(error[i], width), longest);
			known++;
		}
		if (known > 0)
			best = fmin(best, sum * (double)n / known);
	}
	return best;
}

double alone_fit_times(const double *time, size_t n, double least, double longest)
{
	double best = INFINITY, width = least;

	assert(n >= 2 && least > 0 && longest > 0);
	for (int w = 0; w < WIDTHS; w++, width *= WIDER) {
		double sum = 0;

		for (size_t i = 0; i < n; i++) {
			double d = 0;

			for (size_t j = 0; j < n; j++)
				d += j == i ? 0 : density(time[i] - time[j], width);
			sum += nats_of(d / (double)(n - 1), longest);
		}
		best = fmin(best, sum);
	}
	return best;
}
