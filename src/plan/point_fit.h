#pragma once
/* What measured points say of hosts and storage, with how sure it is: many sets of parameters, each
 * of which agrees with the points as well as they were measured.
 *
 * For N accelerators on H hosts that take batches of B samples of b bytes and compute C seconds:
 *
 *   X     = min(N c_rank, H c_host, c_store) / cost(b)
 *                                                samples/s that can be had (operational bounds);
 *                                                c_rank: what the readers of one accelerator ask
 *   D     = N B / X                              s a step takes at least, for all ranks together
 *   w     = C (s (1 - t + t G(N) / G(n)) + m ln(N / n_most))
 *                                                s of exposed wait in a step, barrier included;
 *                                                the last term beyond the points alone
 *   T     = max(C + w, D), rounded at the corner AU as DLIO defines it = C / T
 *   T + g C                                      share by rate = C / (T + g C)
 *
 * G is the expected maximum over N ranks of waits with a generalised Pareto tail (tail_max),
 * t the part of the wait that is of single ranks, n the smallest number among the points, g the
 * part of an epoch that AU leaves out. cost(b) = 1 - f + f b / b_plan: so much a sample and so much
 * a byte.
 *
 * A point has no distribution of waits. Its shape is taken from a range that published results
 * span, the same for all (assumed, not measured): xi from 0 to 0.5, waits in 0.3 to 100 % of the
 * steps, t mostly small. The other parameters are of every size. Points narrow all of them: a
 * Metropolis walk over the parameters, the same for the same points.
 *
 * Each set gives no larger a share to more accelerators, and no smaller a one to more hosts; so do
 * quantiles over the sets. */
#include "plan/point.h"

#define FIT_SHAPE_MAX 0.5
#define FIT_RARE 0.003

enum fit_param {
	FIT_SHAPE, /* xi */
	FIT_RARITY,
	FIT_ALONE, /* t */
	FIT_WAIT,  /* s */
	FIT_MORE,  /* m */
	FIT_GAP,   /* g */
	FIT_RANK,  /* c_rank, in samples/s of the plan */
	FIT_HOST,  /* c_host */
	FIT_STORE, /* c_store */
	FIT_SIZE,  /* f */
	FIT_PARAMS
};

#define FIT_OTHERS 5
/* One set: values, not their logarithms. */
struct fit_draw {
	double v[FIT_PARAMS];
	/* How caps, and waits, of another accelerator or size differ (a Student's and a standard
	 * normal number), another measurement of the rate and of waits, and what AU leaves out. */
	double other[FIT_OTHERS];
};

struct tail_table;

struct point_fit {
	struct fit_draw *draw; /* heap */
	size_t draws;
	struct duty plan;
	double smallest, largest;     /* accelerators of the points */
	double least_need, most_need; /* samples/s that all of a point's need */
	double hosts_least, hosts_most;
	double a_host_most; /* accelerators on a host */
	/* Whether the points saw the end of what the readers of an accelerator, a host and the
	 * storage give; else only how much it was at least. */
	bool rank_seen, host_seen, store_seen;
	bool one_host_count; /* all points have the same number of hosts: which of both it was is
			      * not known */
	bool grows;          /* the storage of the plan has as much more as hosts */
	bool other_accelerator, other_size; /* than any point */
	bool one_size;                      /* all points have samples of one size */
	bool ended;                         /* a point shows the end of what its system gives */
	bool in_bytes;  /* a sample costs as its bytes do: a result knows its requests */
	bool same_pace; /* a point's accelerators take as many samples/s of the same size */
	double worst;   /* largest relative difference between a point and the best set */
	size_t worst_point;
	const struct point *point; /* borrowed */
	size_t points;
	struct tail_table *table;
};

/* ERR_USAGE when the points cannot be of one system: no set comes within 15 % of all of them.
 * Release in any case. */
int point_fit_find(struct point_fit *f, const struct point *p, size_t n, const struct duty *plan,
		   bool grows, struct err *e);
void point_fit_release(struct point_fit *f);

/* What is taken where the end of a cap was not seen. */
enum fit_unseen {
	FIT_AT_LEAST, /* no more than was measured */
	FIT_OPEN,     /* no end */
};

enum fit_limit {
	FIT_LIMIT_NONE,
	FIT_LIMIT_WAITS,
	FIT_LIMIT_RANK,
	FIT_LIMIT_HOST,
	FIT_LIMIT_STORE,
	FIT_LIMITS
};

struct fit_result {
	double au;    /* as DLIO defines it, 0 to 1 */
	double share; /* by rate */
	double samples_per_s;
	double waits; /* the share of a step that is w; 0 where a cap decides */
	enum fit_limit limit;
};

/* The plan's workload on `n` accelerators and `hosts` hosts, by set `i`. `noise`: with what differs
 * from one measurement to another. */
struct fit_result point_fit_at(const struct point_fit *f, size_t i, double n, double hosts,
			       enum fit_unseen unseen, bool noise);
/* AU, or the share by rate, by the first point's alone and what systems are sized to. */
double point_fit_tuned(const struct point_fit *f, bool by_rate, double n, double hosts);
/* The most accelerators whose AU, of which `part` is point_fit_tuned's, reaches `target`, at most
 * `most` on a host; with FIT_OPEN as many on each host. 0: not even one on each. */
double point_fit_most(const struct point_fit *f, size_t i, double hosts, double target, double most,
		      enum fit_unseen unseen, double part);

/* ---- the tail of waits ---- */

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
