#pragma once
/* Statistics of small samples. All pure. */
#include <stddef.h>

struct sample_stat {
	size_t n;
	double mean, stdev; /* of the sample: divided by n - 1; 0 for n < 2 */
	double min, max;
};

struct sample_stat sample_stat_of(const double *v, size_t n);

/* From the least to the greatest. */
void sort_numbers(double *v, size_t n);
/* What would be v[at] of the sorted values, at < n, in time that is linear in n. It moves them:
 * none before v[at] is greater, none behind it less. */
double nth_number(double *v, size_t n, size_t at);

/* The least `error` over *x between low and high, by golden section in so many steps: *x is left
 * there. It is evaluated once more at the end, and may itself search over something else. */
double golden_section(double *x, double low, double high, int steps, double (*error)(void *arg),
		      void *arg);

/* P(|T| > t) for Student's t with `df` degrees of freedom (not only whole ones); by the regularised
 * incomplete beta function (Abramowitz and Stegun 26.5.27, 26.5.8). */
double student_p(double t, double df);
/* The t that |T| exceeds with probability p, for 0 < p < 1. */
double student_t(double p, double df);

/* Welch's test of two means: samples of unequal variance (Welch 1947). */
struct welch {
	double change;    /* mean of b minus mean of a */
	double low, high; /* its 95 % confidence interval */
	double t, df, p;  /* two-sided */
};
/* Both samples need at least 2 values. With no spread at all p is 0 or, for equal means, 1. */
struct welch welch_test(const double *a, size_t na, const double *b, size_t nb);
