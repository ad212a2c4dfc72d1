#pragma once
/* A distribution of times as it was measured: quantiles, and beyond them a generalised Pareto tail.
 * All pure. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define DRAWN_POINTS 33
/* A tail is fitted to this part of the values, or to more where they are few: to so many, but not
 * beyond the other part. */
#define DRAWN_TAIL_PART 0.1
#define DRAWN_TAIL_WANTED 50
#define DRAWN_TAIL_MOST 0.25
#define DRAWN_TAIL_LEAST 20
/* The shape of a tail is at most this: with 1 there would be no mean. */
#define DRAWN_SHAPE_MAX 0.9

/* Of the values, the part `tail` lies above at[DRAWN_POINTS - 1]; by how much is a generalised
 * Pareto distribution: P(excess > x) = (1 + shape x / scale)^(-1 / shape), with shape 0 exp(-x /
 * scale). at[i] are the quantiles of the others, equally far apart: at[0] is the least, and values
 * between two are equally likely. All 0: always 0. */
struct drawn {
	double at[DRAWN_POINTS];
	double tail; /* 0: none */
	double scale, shape;
};

/* The value that a part p of all is below, 0 <= p < 1. */
double drawn_quantile(const struct drawn *d, double p);
/* The same with p of a random word. */
double drawn_value(const struct drawn *d, uint64_t word);
double drawn_mean(const struct drawn *d);
/* All values times so much. */
void drawn_scale(struct drawn *d, double by);
/* A constant. */
struct drawn drawn_constant(double value);
/* Of n > 0 values, which are sorted. A tail is fitted where there are enough. */
struct drawn drawn_of(double *values, size_t n);
