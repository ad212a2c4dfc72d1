#pragma once
/* How well times go with a prediction, and how well with no more than a distribution from which
 * each is drawn by itself. Both are minus the logarithm of a density: Cauchy's, of the width that
 * suits best, with a part of its own for times that are special. They compare with each other. */
#include <stddef.h>

/* Of distances from the prediction; NAN: none is known, and counts as the mean of the others.
 * No width is less than `least` > 0; times go up to `longest`. */
double alone_fit_errors(const double *error, size_t n, double least, double longest);
/* Of times, each by the density of the others; n >= 2. */
double alone_fit_times(const double *time, size_t n, double least, double longest);
