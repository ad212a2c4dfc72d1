/* Small-sample statistics. */
#include "base/stats.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>

#include "base/compare.h"

enum { SELECT_ROUNDS = 64 };

struct sample_stat sample_stat_of(const double *v, size_t n)
{
	struct sample_stat s = {.n = n};
	double squares = 0;

	for (size_t i = 0; i < n; i++) {
		double d = v[i] - s.mean;

		s.mean += d / (double)(i + 1);
		squares += d * (v[i] - s.mean);
		s.min = i == 0 || v[i] < s.min ? v[i] : s.min;
		s.max = i == 0 || v[i] > s.max ? v[i] : s.max;
	}
	s.stdev = n > 1 ? sqrt(squares / (double)(n - 1)) : 0;
	return s;
}

static int by_value(const void *x, const void *y)
{
	const double *a = x, *b = y;

	return ORDER(*a, *b);
}

void sort_numbers(double *v, size_t n)
{
	if (n > 0)
		qsort(v, n, sizeof(*v), by_value);
}

double nth_number(double *v, size_t n, size_t at)
{
	size_t low = 0, high = n;

	assert(at < n);
	/* by Hoare: parts that never shrink enough, which only made-up values are, are sorted */
	for (int rounds = 0; high - low > 1; rounds++) {
		double a = v[low], b = v[low + (high - low) / 2], c = v[high - 1];
		double pivot = fmax(fmin(a, b), fmin(fmax(a, b), c));
		size_t i = low, j = high;

		if (rounds == SELECT_ROUNDS) {
			sort_numbers(v + low, high - low);
			break;
		}
		for (;;) {
			double swap;

			while (v[i] < pivot)
				i++;
			do
				j--;
			while (pivot < v[j]);
			if (i >= j)
				break;
			swap = v[i];
			v[i++] = v[j];
			v[j] = swap;
		}
		/* v[low, i) is at most the pivot, the rest at least it */
		if (at < i)
			high = i;
		else if (i > low)
			low = i;
		else if (at > low)
			low++; /* the pivot itself is there, the least */
		else
			break;
	}
	return v[at];
}

double golden_section(double *x, double low, double high, int steps, double (*error)(void *arg),
		      void *arg)
{
	const double g = 0.6180339887498949;
	double at[2] = {high - g * (high - low), low + g * (high - low)}, e[2];

	for (int i = 0; i < 2; i++) {
		*x = at[i];
		e[i] = error(arg);
	}
	for (int n = 0; n < steps; n++) {
		int worse = e[0] < e[1];

		if (worse) {
			high = at[1];
			at[1] = at[0];
			e[1] = e[0];
			at[0] = high - g * (high - low);
		} else {
			low = at[0];
			at[0] = at[1];
			e[0] = e[1];
			at[1] = low + g * (high - low);
		}
		*x = at[!worse];
		e[!worse] = error(arg);
	}
	*x = e[0] < e[1] ? at[0] : at[1];
	return error(arg);
}

/* The continued fraction of the incomplete beta function, by Lentz's method. */
static double beta_fraction(double a, double b, double x)
{
	const double tiny = 1e-300;
	double c = 1, d = 1 - (a + b) * x / (a + 1), h;

	d = 1 / (fabs(d) < tiny ? tiny : d);
	h = d;
	for (int m = 1; m < 500; m++) {
		double even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m));
		double odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1));
		double step;

		d = 1 + even * d;
		c = 1 + even / c;
		d = 1 / (fabs(d) < tiny ? tiny : d);
		h *= d * (fabs(c) < tiny ? tiny : c);
		d = 1 + odd * d;
		c = 1 + odd / c;
		d = 1 / (fabs(d) < tiny ? tiny : d);
		step = d * (fabs(c) < tiny ? tiny : c);
		h *= step;
		if (fabs(step - 1) < 1e-15)
			break;
	}
	return h;
}

static double beta_regular(double a, double b, double x)
{
	double front;

	if (x <= 0)
		return 0;
	if (x >= 1)
		return 1;
	front = exp(lgamma(a + b) - lgamma(a) - lgamma(b) + a * log(x) + b * log1p(-x));
	/* the fraction converges fast on one side of the mean only */
	if (x < (a + 1) / (a + b + 2))
		return front * beta_fraction(a, b, x) / a;
	return 1 - front * beta_fraction(b, a, 1 - x) / b;
}

double student_p(double t, double df)
{
	if (!isfinite(t))
		return 0;
	return beta_regular(df / 2, 0.5, df / (df + t * t));
}

double student_t(double p, double df)
{
	double low = 0, high = 1;

	while (student_p(high, df) > p && high < 1e12)
		high *= 2;
	for (int i = 0; i < 200 && high - low > 1e-12 * high; i++) {
		double mid = (low + high) / 2;

		if (student_p(mid, df) > p)
			low = mid;
		else
			high = mid;
	}
	return (low + high) / 2;
}

struct welch welch_test(const double *a, size_t na, const double *b, size_t nb)
{
	struct sample_stat sa = sample_stat_of(a, na), sb = sample_stat_of(b, nb);
	double va = sa.stdev * sa.stdev / (double)na, vb = sb.stdev * sb.stdev / (double)nb;
	struct welch w = {.change = sb.mean - sa.mean};
	double error = sqrt(va + vb), reach;

	if (error <= 0) {
		w.low = w.high = w.change;
		w.df = (double)(na + nb - 2);
		w.t = w.change == 0 ? 0 : INFINITY;
		w.p = w.change == 0 ? 1 : 0;
		return w;
	}
	w.df = (va + vb) * (va + vb) / (va * va / (double)(na - 1) + vb * vb / (double)(nb - 1));
	w.t = w.change / error;
	w.p = student_p(w.t, w.df);
	reach = student_t(0.05, w.df) * error;
	w.low = w.change - reach;
	w.high = w.change + reach;
	return w;
}
