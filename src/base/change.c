/* Changes of level, trends and alternation in short series. */
#include "base/change.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "base/stats.h"

static const double LEAST_NOISE = 0.02; /* 2 %: a series is never taken to be more exact */
static const double CLIP_DEVIATIONS = 6;
static const double MAD_TO_DEVIATION = 1.4826;
static const double GROUPS_APART = 4; /* deviations within groups, between their means */
static const double RUNS_FEWER = 3;   /* deviations of the runs test */
static const double EVENLY = 0.3;     /* of the mean distance */
static const double OFF_PERIOD = 0.2; /* of the period, a distance from its multiple */
static const size_t EVEN_PHASES = 5;  /* high values at even distances */
static const size_t LONG_PHASES = 4;  /* the same of more than single values, */
static const double LONG = 1.5;       /* so many of them, */
static const double EXACTLY = 0.1;    /* at distances that differ by so much */
static const size_t SIDE_LEAST = 3;   /* values on each side of a split */
static const double FINER = 0.25;     /* of the squares: what splitting both sides again leaves */

static double enough(size_t n)
{
	return n < 12 ? 11 : n < 32 ? 9 : 7;
}

static double median(const double *x, size_t n)
{
	double v[CHANGE_MOST], high;

	memcpy(v, x, n * sizeof(*v));
	if (n % 2)
		return nth_number(v, n, n / 2);
	high = nth_number(v, n, n / 2);
	return 0.5 * (nth_number(v, n / 2, n / 2 - 1) + high);
}

/* Logarithms, clipped around their median. */
static void logs(const double *x, size_t n, double *y)
{
	double middle, off[CHANGE_MOST], clip;

	for (size_t i = 0; i < n; i++)
		y[i] = log(x[i] > 1e-12 ? x[i] : 1e-12);
	middle = median(y, n);
	for (size_t i = 0; i < n; i++)
		off[i] = fabs(y[i] - middle);
	clip = fmax(CLIP_DEVIATIONS * MAD_TO_DEVIATION * median(off, n), log(2));
	for (size_t i = 0; i < n; i++)
		y[i] = fmin(middle + clip, fmax(middle - clip, y[i]));
}

/* Of residuals: their deviation with `dof` degrees of freedom, larger where neighbours are alike,
 * because then there are fewer independent ones. */
static double noise_of(const double *r, size_t n, size_t dof)
{
	double squares = 0, pairs = 0, alike;

	for (size_t i = 0; i < n; i++) {
		squares += r[i] * r[i];
		pairs += i ? r[i] * r[i - 1] : 0;
	}
	alike = squares > 0 ? fmin(0.9, fmax(0, 1.2 * pairs / squares)) : 0;
	return sqrt(fmax(LEAST_NOISE * LEAST_NOISE, squares / (double)dof) * (1 + alike) /
		    (1 - alike));
}

/* The place in y[0..n) where two means leave the least squares; 0: none is allowed. */
static size_t split_of(const double *y, size_t n, double *rest)
{
	size_t side = n / 10 > SIDE_LEAST ? n / 10 : SIDE_LEAST, at = 0;
	double sum = 0, squares = 0, left = 0;

	for (size_t i = 0; i < n; i++) {
		sum += y[i];
		squares += y[i] * y[i];
	}
	*rest = fmax(0, squares - sum * sum / (double)n);
	for (size_t i = 1; i < n; i++) {
		double remains;

		left += y[i - 1];
		remains = squares - left * left / (double)i -
			  (sum - left) * (sum - left) / (double)(n - i);
		if (i >= side && n - i >= side && (at == 0 || remains < *rest)) {
			*rest = fmax(0, remains);
			at = i;
		}
	}
	return at;
}

static double mean_of(const double *y, size_t n)
{
	double sum = 0;

	for (size_t i = 0; i < n; i++)
		sum += y[i];
	return sum / (double)n;
}

static void subtract_mean(const double *y, size_t n, double *r)
{
	double mean = mean_of(y, n);

	for (size_t i = 0; i < n; i++)
		r[i] = y[i] - mean;
}

/* What the mean of y leaves, or two means where these leave far less: a further change is no noise.
 */
static void residuals(const double *y, size_t n, double *r)
{
	double whole = 0, rest = 0;
	size_t at = n >= 2 * SIDE_LEAST ? split_of(y, n, &rest) : 0;

	subtract_mean(y, n, r);
	for (size_t i = 0; i < n; i++)
		whole += r[i] * r[i];
	if (at == 0 || rest >= FINER * whole)
		return;
	subtract_mean(y, at, r);
	subtract_mean(y + at, n - at, r + at);
}

/* The best split of y[0..n): its place, score and the rest. 0: none is allowed. */
static size_t best_split(const double *y, size_t n, double *score, double *rest)
{
	size_t at = n >= 2 * SIDE_LEAST ? split_of(y, n, rest) : 0;
	double r[CHANGE_MOST];

	if (at == 0)
		return 0;
	residuals(y, at, r);
	residuals(y + at, n - at, r + at);
	*score = fabs(mean_of(y + at, n - at) - mean_of(y, at)) /
		 (noise_of(r, n, n - 2) * sqrt(1.0 / (double)at + 1.0 / (double)(n - at)));
	return at;
}

static bool ratio_reached(double a, double b, double ratio)
{
	return a > 0 && b > 0 && (a >= ratio * b || b >= ratio * a);
}

bool change_level(const double *x, size_t n, double ratio, struct change_point *out)
{
	double y[CHANGE_MOST], score, rest;
	size_t from = 0, at;

	assert(n <= CHANGE_MOST && ratio > 1);
	*out = (struct change_point){0};
	if (n < CHANGE_LEAST)
		return false;
	logs(x, n, y);
	while ((at = best_split(y + from, n - from, &score, &rest))) {
		double before = median(x + from, at), after = median(x + from + at, n - from - at);

		if (score < enough(n - from) || !ratio_reached(before, after, ratio))
			break;
		if (from == 0)
			out->rest = rest;
		from += at;
		out->score = score;
		if (n - from < CHANGE_LEAST)
			break;
	}
	if (from == 0)
		return false;
	out->at = from;
	out->before = median(x, from);
	out->after = median(x + from, n - from);
	return true;
}

bool change_trend(const double *x, size_t n, double ratio, struct change_line *out)
{
	double y[CHANGE_MOST], r[CHANGE_MOST], mean = 0, slope = 0, spread = 0, middle;

	assert(n <= CHANGE_MOST && ratio > 1);
	*out = (struct change_line){0};
	if (n < CHANGE_LEAST)
		return false;
	logs(x, n, y);
	middle = 0.5 * (double)(n - 1);
	for (size_t i = 0; i < n; i++) {
		double d = (double)i - middle;

		mean += y[i] / (double)n;
		slope += d * y[i];
		spread += d * d;
	}
	slope /= spread;
	for (size_t i = 0; i < n; i++) {
		r[i] = y[i] - mean - slope * ((double)i - middle);
		out->rest += r[i] * r[i];
	}
	out->first = exp(mean - slope * middle);
	out->last = exp(mean + slope * middle);
	out->score = fabs(slope) * sqrt(spread) / noise_of(r, n, n - 2);
	return out->score >= enough(n) && ratio_reached(out->first, out->last, ratio);
}

/* The border between two groups of sorted v that leaves the least squares. */
static size_t border(const double *v, size_t n, double *within)
{
	double sum = 0, squares = 0, left = 0;
	size_t at = 0;

	*within = INFINITY;
	for (size_t i = 0; i < n; i++) {
		sum += v[i];
		squares += v[i] * v[i];
	}
	for (size_t i = 1; i < n; i++) {
		double rest;

		left += v[i - 1];
		rest = squares - left * left / (double)i -
		       (sum - left) * (sum - left) / (double)(n - i);
		if (rest < *within) {
			*within = rest;
			at = i;
		}
	}
	return at;
}

/* High runs that do not touch an end, and how evenly they come. */
static bool look_at_runs(const bool *high, size_t n, size_t highs, struct change_phases *out)
{
	double expected, deviation, lows = (double)(n - highs), h = (double)highs, all = (double)n;
	size_t runs = 1, begins = 0, first = 0, last = 0, *begin = out->begin;
	double spread = 0;

	for (size_t i = 1; i < n; i++) {
		runs += high[i] != high[i - 1];
		if (high[i] && !high[i - 1])
			begin[begins++] = i;
	}
	/* a high run at the very begin is one, too, but its begin is not seen */
	out->phases = begins + high[0];
	out->begins = begins;
	if (begins < 2 || out->phases < 2 + (high[n - 1] ? 1u : 0u))
		return false;
	first = begin[0];
	last = begin[begins - 1];
	out->period = (double)(last - first) / (double)(begins - 1);
	for (size_t i = 1; i < begins; i++) {
		double off = (double)(begin[i] - begin[i - 1]) - out->period;

		spread += off * off / (double)(begins - 1);
	}
	out->length = h / (double)out->phases;
	/* two outliers are no phases */
	if (out->phases < 3 && out->length < 3)
		return false;
	expected = 1 + 2 * h * lows / all;
	deviation = sqrt((expected - 1) * (expected - 2) / (all - 1));
	if (deviation > 0 && ((double)runs - expected) / deviation <= -RUNS_FEWER)
		return true;
	if (begins >= LONG_PHASES && out->length >= LONG && sqrt(spread) <= EXACTLY * out->period)
		return true;
	return begins >= EVEN_PHASES && out->period >= 2 && sqrt(spread) <= EVENLY * out->period;
}

bool change_alternates(const double *x, size_t n, double ratio, struct change_phases *out)
{
	double y[CHANGE_MOST], v[CHANGE_MOST], within, low = 0, high = 0, limit, deviation;
	double lows[CHANGE_MOST], highs[CHANGE_MOST];
	bool is_high[CHANGE_MOST];
	size_t at, a = 0, b = 0;

	assert(n <= CHANGE_MOST && ratio > 1);
	*out = (struct change_phases){0};
	if (n < 2 * CHANGE_LEAST)
		return false;
	for (size_t i = 0; i < n; i++)
		y[i] = log(x[i] > 1e-12 ? x[i] : 1e-12);
	memcpy(v, y, n * sizeof(*v));
	sort_numbers(v, n);
	at = border(v, n, &within);
	if (at == 0)
		return false;
	limit = 0.5 * (v[at - 1] + v[at]);
	for (size_t i = 0; i < n; i++) {
		is_high[i] = y[i] > limit;
		*(is_high[i] ? &high : &low) += y[i];
		if (is_high[i])
			highs[b++] = x[i];
		else
			lows[a++] = x[i];
	}
	if (a == 0 || b == 0)
		return false;
	deviation = sqrt(fmax(LEAST_NOISE * LEAST_NOISE, within / (double)n));
	out->low = median(lows, a);
	out->high = median(highs, b);
	out->high_values = b;
	if (!ratio_reached(out->low, out->high, ratio) ||
	    high / (double)b - low / (double)a < GROUPS_APART * deviation)
		return false;
	return look_at_runs(is_high, n, b, out);
}

/* The mean distance, when each is a multiple of about `unit`; else 0. */
static double period_by(const double *x, size_t n, double unit)
{
	double all = 0;
	size_t single = 0;

	for (size_t i = 1; i < n; i++) {
		double times = fmax(1, round((x[i] - x[i - 1]) / unit));

		all += times;
		single += times < 1.5;
	}
	if (2 * single < n - 1)
		return 0;
	unit = (x[n - 1] - x[0]) / all;
	for (size_t i = 1; i < n; i++) {
		double times = fmax(1, round((x[i] - x[i - 1]) / unit));

		if (fabs(x[i] - x[i - 1] - times * unit) > OFF_PERIOD * unit)
			return 0;
	}
	return unit;
}

double change_period(const double *x, size_t n)
{
	double d[CHANGE_MOST], period;

	assert(n <= CHANGE_MOST);
	if (n < 3)
		return 0;
	for (size_t i = 1; i < n; i++)
		d[i - 1] = x[i] - x[i - 1];
	sort_numbers(d, n - 1);
	if (!(d[0] > 0))
		return 0;
	period = period_by(x, n, median(d, n - 1));
	/* of few distances the median may be between one and two periods */
	return period > 0 ? period : period_by(x, n, d[0]);
}

bool change_goes_on(const double *x, size_t n, double share)
{
	double before = 0;

	assert(n <= CHANGE_MOST);
	if (n < 4 * SIDE_LEAST)
		return false;
	for (size_t q = 0; q < 4; q++) {
		size_t from = q * n / 4, to = (q + 1) * n / 4;
		double now = median(x + from, to - from);

		if (q && now < (1 + share) * before)
			return false;
		before = now;
	}
	return true;
}
