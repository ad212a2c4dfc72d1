#pragma once
/* Does a series of positive numbers change, beyond its noise? Works on logarithms, so that a change
 * is a ratio, and clips what lies far from the median, so that one outlier is no change. Pure. */
#include <stdbool.h>
#include <stddef.h>

/* Longer series are an error of the caller; shorter ones than CHANGE_LEAST have no change. */
#define CHANGE_MOST 128
#define CHANGE_LEAST 6

struct change_point {
	size_t at;            /* the first value of the last level */
	double before, after; /* medians: of all before it, of all from there */
	double score;         /* of the difference, in its standard errors */
	double rest;          /* sum of squares that a single step leaves, of the logarithms */
};

/* The last moment at which the level of x[0..n) changes by at least `ratio` (above 1), up or down.
 * The best split by least squares; then again in what follows it. A split counts when it is 7
 * standard errors (9 of fewer than 32 values, 11 of fewer than 12), where noise that is like its
 * neighbours (lag 1) makes these larger, and when both sides have a tenth of the values and three
 * of them. */
bool change_level(const double *x, size_t n, double ratio, struct change_point *out);

struct change_line {
	double first, last; /* of the fitted line, at both ends */
	double score;       /* of the slope, in its standard errors */
	double rest;        /* sum of squares that it leaves */
};

/* Whether x[0..n) grows or falls steadily, by `ratio` from one end to the other. Score as above. */
bool change_trend(const double *x, size_t n, double ratio, struct change_line *out);

struct change_phases {
	size_t phases;    /* runs of high values */
	double low, high; /* medians of both kinds */
	double length;    /* of a high run, in values; mean */
	double period;    /* from the begin of one to that of the next; mean */
	size_t high_values;
	size_t begins;             /* high runs whose begin is seen */
	size_t begin[CHANGE_MOST]; /* where they begin, in values */
};

/* Whether x[0..n) alternates between two levels that are `ratio` apart: values fall in two groups,
 * four deviations apart, and those of a group follow each other (runs test, 3 deviations), or high
 * values come at even distances (5 of them; standard deviation at most 0.3 of the distance; or 4 of
 * 1.5 values on average, at most 0.1). At
 * least two high runs that have low ones on both sides, of three values each, or three. */
bool change_alternates(const double *x, size_t n, double ratio, struct change_phases *out);

/* What x[0..n), moments that ascend, are multiples of: some may be missing. 0 unless there are
 * three of them, half of the distances are the period itself, and none is off by over 0.2 of it. */
double change_period(const double *x, size_t n);

/* Whether x[0..n) still grows in its last part: the median of each quarter is above that of the
 * one before by `share`. A level that changed once is no growth. */
bool change_goes_on(const double *x, size_t n, double share);
