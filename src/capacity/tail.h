#pragma once
/* The longest of many waits: what a barrier over N ranks waits for. All pure.
 *
 * A rank waits in a step with probability p; how long is a generalised Pareto distribution of scale
 * 1 and shape xi: P(wait > x) = p (1 + xi x)^(-1/xi), for xi = 0 p e^(-x). */

#define TAIL_SHAPE_MAX 0.9

/* E max over N independent ranks, in units of the scale:
 *   integral over y >= 0 of (1 - (1 - p e^-y)^N) e^(xi y) dy        (x = (e^(xi y) - 1) / xi)
 * For p = 1 that is (Gamma(N + 1) Gamma(1 - xi) / Gamma(N + 1 - xi) - 1) / xi, and for xi = 0 the
 * harmonic number 1 + 1/2 + ... + 1/N. It grows as ln N for xi = 0 and as N^xi for large N
 * otherwise. 0 <= xi <= TAIL_SHAPE_MAX, 0 < p <= 1, 1 <= N. Relative error below 1e-3. */
double tail_max(double n, double xi, double p);
