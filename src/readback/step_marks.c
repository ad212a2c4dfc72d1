/* Runs known again by the order of the times of their steps. */
#include "readback/step_marks.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/compare.h"
#include "workload/time_draw.h"

#define STEPS_LEAST 32
#define PAIRS_LEAST 24
#define APART 8 /* pairs are that part of all apart */
static const double SAME = 0.9;
/* Of the first pairs, that chance hardly gives: most runs are told apart by them. */
#define FIRST_PAIRS 16
static const double FIRST_SAME = 0.6;

enum mark { WAIT, COMPUTE, REST, MARKS };

struct step_marks {
	uint64_t steps; /* of all ranks */
	uint32_t ranks, n;
	bool drawn; /* times of computation are */
	float ns[MARKS][STEP_MARKS_KEPT];
	uint8_t order[MARKS][STEP_MARKS_KEPT]; /* by these times */
};

static uint64_t steps_of(const struct run_record *r)
{
	uint64_t n = 0;

	for (uint32_t k = 0; k < r->ranks; k++)
		for (size_t e = 0; e < r->rank[k].epochs; e++)
			for (size_t b = 0; b < r->rank[k].epoch[e].blocks; b++) {
				const struct record_phase *p = &r->rank[k].epoch[e].block[b];

				if (p->loads != p->computes || p->procs != p->loads)
					return 0;
				n += p->loads;
			}
	return n;
}

/* Whole ns, so that the noise of sums of seconds is none. */
static float ns_of(double s)
{
	return (float)round(s * 1e9);
}

static void take_step(struct step_marks *m, const struct record_phase *p, size_t i)
{
	m->ns[WAIT][m->n] = ns_of(p->load[i]);
	m->ns[COMPUTE][m->n] = ns_of(p->compute[i]);
	m->ns[REST][m->n] = ns_of(p->proc[i] - p->load[i] - p->compute[i]);
	m->n++;
}

static int by_time(const void *a, const void *b, void *of)
{
	const float *ns = of;
	uint8_t x = *(const uint8_t *)a, y = *(const uint8_t *)b;

	return ORDER(ns[x], ns[y]) ?: ORDER(x, y);
}

struct step_marks *step_marks_find(const struct run_record *r)
{
	uint64_t steps = r->rank ? steps_of(r) : 0, at = 0;
	struct step_marks *m;

	if (steps < STEPS_LEAST)
		return NULL;
	m = xcalloc(1, sizeof(*m));
	*m = (struct step_marks){.steps = steps, .ranks = r->ranks, .drawn = true};
	if (r->has_workload)
		m->drawn = time_dist_varies(&r->workload.train.computation_time);
	for (uint32_t k = 0; k < r->ranks; k++)
		for (size_t e = 0; e < r->rank[k].epochs; e++)
			for (size_t b = 0; b < r->rank[k].epoch[e].blocks; b++) {
				const struct record_phase *p = &r->rank[k].epoch[e].block[b];

				for (size_t i = 0; i < p->loads; i++, at++)
					if (m->n < STEP_MARKS_KEPT &&
					    at * STEP_MARKS_KEPT >= m->n * steps)
						take_step(m, p, i);
			}
	for (int k = 0; k < MARKS; k++) {
		for (uint32_t i = 0; i < m->n; i++)
			m->order[k][i] = (uint8_t)i;
		qsort_r(m->order[k], m->n, 1, by_time, m->ns[k]);
	}
	return m;
}

/* The share of pairs in the same order; NaN: too few pairs differ. */
static double same_order(const struct step_marks *a, const struct step_marks *b, enum mark k)
{
	uint32_t apart = a->n / APART, pairs = 0, same = 0;
	const float *x = a->ns[k], *y = b->ns[k];

	for (uint32_t i = 0; i + apart < a->n; i++) {
		uint8_t low = a->order[k][i], high = a->order[k][i + apart];

		if (!(x[low] < x[high]) || !(y[low] < y[high] || y[low] > y[high]))
			continue;
		pairs++;
		same += y[low] < y[high];
		if (pairs == FIRST_PAIRS && same < FIRST_SAME * pairs)
			return 0;
	}
	return pairs >= PAIRS_LEAST ? (double)same / pairs : NAN;
}

bool step_marks_same(const struct step_marks *a, const struct step_marks *b)
{
	double of[MARKS];

	if (!a || !b || a->steps != b->steps || a->ranks != b->ranks || a->n != b->n)
		return false;
	/* what chance alone decides first */
	for (int k = MARKS - 1; k >= 0; k--) {
		of[k] = same_order(a, b, (enum mark)k);
		if (of[k] < SAME)
			return false;
	}
	return (isfinite(of[REST]) || !a->drawn) &&
	       isfinite(of[COMPUTE]) + isfinite(of[REST]) + isfinite(of[WAIT]) >= 2 &&
	       (isfinite(of[COMPUTE]) || isfinite(of[REST]));
}
