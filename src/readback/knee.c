#include "readback/knee.h"

#include <math.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/rng.h"
#include "base/stats.h"

#define CURVES 2000u
static const double CERTAIN = 0.05;
static const double ERROR_LEAST = 0.05; /* points: of clocks and of the program itself */
static const double REVERSED_POINTS = 3;
static const double SATURATED = 99; /* percent: repeated runs cannot differ upwards */

struct draws {
	uint64_t word;
};

/* Uniform in (0, 1). */
static double uniform(struct draws *d)
{
	return (philox_at(0x6375727665, 0, d->word++) + 0.5) / 4294967296.0;
}

static double normal(struct draws *d)
{
	double u = uniform(d), v = uniform(d);

	return sqrt(-2 * log(u)) * cos(2 * M_PI * v);
}

/* Student's t: a normal over the root of a mean of squares. Of three and more squares, the mean by
 * Wilson and Hilferty (1931). */
static double student(struct draws *d, double df)
{
	double sum = 0, z = normal(d), part;

	if (df >= 3) {
		part = 2 / (9 * df);
		sum = pow(fmax(0.01, 1 - part + normal(d) * sqrt(part)), 3);
		return z / sqrt(sum);
	}
	for (int i = 0; i < (df < 2 ? 1 : 2); i++)
		sum += pow(normal(d), 2);
	return z / sqrt(sum / (df < 2 ? 1 : 2));
}

static double error_of(const struct knee_run *r)
{
	double e = isfinite(r->error) ? r->error : 2;

	return fmax(e, ERROR_LEAST);
}

static double freedom(const struct knee_run *r)
{
	return r->blocks >= 2 ? r->blocks - 1 : 1;
}

/* ---- points ---- */

static int by_number(const void *a, const void *b)
{
	const struct knee_run *x = a, *y = b;

	if (x->accelerators != y->accelerators)
		return x->accelerators < y->accelerators ? -1 : 1;
	return x->index < y->index ? -1 : x->index > y->index;
}

/* Runs that count, sorted; *n gets how many. */
static struct knee_run *sorted(const struct knee_run *run, size_t runs, size_t *n)
{
	struct knee_run *v = xcalloc(runs + 1, sizeof(*v));

	*n = 0;
	for (size_t i = 0; i < runs; i++)
		if (isfinite(run[i].au) && run[i].accelerators > 0)
			v[(*n)++] = run[i];
	qsort(v, *n, sizeof(*v), by_number);
	return v;
}

/* Weight of a run among those of its number: one whose threads had no processor says little. */
static double weight_of(const struct knee_run *r)
{
	return 1 / (pow(error_of(r), 2) + pow(KNEE_SPREAD_LEAST * r->au, 2));
}

static double mean_of(const struct knee_run *v, size_t n)
{
	double sum = 0, weights = 0;

	for (size_t i = 0; i < n; i++) {
		sum += weight_of(&v[i]) * v[i].au;
		weights += weight_of(&v[i]);
	}
	return sum / weights;
}

static size_t same_number(const struct knee_run *v, size_t n, size_t from)
{
	size_t end = from;

	while (end < n && v[end].accelerators == v[from].accelerators)
		end++;
	return end - from;
}

/* Standard deviation of runs of one number, as a share of their AU, all numbers together: what is
 * beyond the errors of the runs themselves. */
static double spread_of(const struct knee_run *v, size_t n)
{
	double squares = 0, freedoms = 0;

	for (size_t i = 0, runs; i < n; i += runs) {
		double mean, beyond = 0;

		runs = same_number(v, n, i);
		mean = mean_of(v + i, runs);
		if (runs < 2 || !(mean > 0) || mean > SATURATED)
			continue;
		for (size_t k = i; k < i + runs; k++)
			beyond += pow(v[k].au - mean, 2) - pow(error_of(&v[k]), 2);
		squares += fmax(0, beyond) / mean / mean;
		freedoms += (double)(runs - 1);
	}
	/* as much again as if one more pair had differed by the least */
	return fmax(KNEE_SPREAD_LEAST,
		    sqrt((squares + KNEE_SPREAD_LEAST * KNEE_SPREAD_LEAST) / (freedoms + 1)));
}

/* Of their mean. */
static double point_error(const struct knee_run *v, size_t n, double spread)
{
	double squares = 0, weights = 0, most = 0;

	for (size_t i = 0; i < n; i++) {
		squares += pow(weight_of(&v[i]) * error_of(&v[i]), 2);
		weights += weight_of(&v[i]);
		most = fmax(most, weight_of(&v[i]));
	}
	return hypot(sqrt(squares) / weights, spread * mean_of(v, n) * sqrt(most / weights));
}

static double point_freedom(const struct knee_run *v, size_t n)
{
	double df = 0;

	for (size_t i = 0; i < n; i++)
		df += freedom(&v[i]);
	return df;
}

/* ---- the curve ---- */

/* The nonincreasing sequence nearest to v, in place. */
static void pool_violators(double *v, const double *weight, size_t n)
{
	double *mean = xcalloc(n + 1, sizeof(*mean)), *w = xcalloc(n + 1, sizeof(*w));
	size_t *count = xcalloc(n + 1, sizeof(*count)), top = 0, at = 0;

	for (size_t i = 0; i < n; i++) {
		mean[top] = v[i];
		w[top] = weight[i];
		count[top++] = 1;
		while (top > 1 && mean[top - 2] < mean[top - 1]) {
			mean[top - 2] = (mean[top - 2] * w[top - 2] + mean[top - 1] * w[top - 1]) /
					(w[top - 2] + w[top - 1]);
			w[top - 2] += w[top - 1];
			count[top - 2] += count[top - 1];
			top--;
		}
	}
	for (size_t i = 0; i < top; i++)
		for (size_t k = 0; k < count[i]; k++)
			v[at++] = mean[i];
	free(mean);
	free(w);
	free(count);
}

/* The largest whole number at which the curve is not below the target. *beyond: the last point is
 * not, either. */
static uint32_t read_knee(const struct knee_point *p, const double *au, size_t n, double target,
			  bool *beyond)
{
	size_t i = 0;
	double share;

	while (i < n && au[i] >= target)
		i++;
	*beyond = i == n;
	if (i == n)
		return n ? p[n - 1].accelerators : 0;
	if (i == 0) /* nothing was measured below: none, as far as is known */
		return 0;
	share = (1 / target - 1 / au[i - 1]) / (1 / au[i] - 1 / au[i - 1]);
	return p[i - 1].accelerators +
	       (uint32_t)floor(share * (p[i].accelerators - p[i - 1].accelerators) - 1e-9 > 0
				       ? share * (p[i].accelerators - p[i - 1].accelerators) - 1e-9
				       : 0);
}

static int by_value(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return x < y ? -1 : x > y;
}

/* All curves drawn anew; the ends of the interval. */
static void draw_interval(struct knee *k, const struct knee_run *v, const double *weight)
{
	uint32_t *found = xcalloc(CURVES, sizeof(*found));
	double *au = xcalloc(k->points + 1, sizeof(*au));
	size_t from = k->gathered, skipped = 0;
	struct draws d = {0};

	for (size_t i = 0; i < from; i++)
		skipped += k->point[i].runs;
	for (unsigned c = 0; c < CURVES; c++) {
		const struct knee_run *run = v + skipped;
		bool beyond;

		for (size_t i = from; i < k->points; run += k->point[i++].runs) {
			const struct knee_point *p = &k->point[i];

			au[i] = p->au + student(&d, point_freedom(run, p->runs)) *
						point_error(run, p->runs, k->spread);
			au[i] = fmin(100, fmax(0.01, au[i]));
		}
		pool_violators(au + from, weight + from, k->points - from);
		found[c] =
			read_knee(k->point + from, au + from, k->points - from, k->target, &beyond);
		if (beyond)
			found[c] = UINT32_MAX;
	}
	qsort(found, CURVES, sizeof(*found), by_value);
	k->low = found[(unsigned)(CERTAIN / 2 * CURVES)];
	k->high = found[(unsigned)((1 - CERTAIN / 2) * CURVES) - 1];
	free(found);
	free(au);
}

/* The first points that miss the target where the next one meets it, without a doubt. */
static size_t count_gathered(const struct knee *k)
{
	size_t n = 0;

	while (n < k->points && k->point[n].high < k->target)
		n++;
	return n < k->points && k->point[n].low >= k->target &&
			       k->point[n].accelerators <= KNEE_GATHERED_MOST
		       ? n
		       : 0;
}

static void make_points(struct knee *k, const struct knee_run *v, size_t n)
{
	for (size_t i = 0, runs; i < n; i += runs) {
		struct knee_point *p = &k->point[k->points++];
		double half;

		runs = same_number(v, n, i);
		*p = (struct knee_point){
			.accelerators = v[i].accelerators, .runs = runs, .client = true};
		for (size_t j = i; j < i + runs; j++)
			p->client = p->client && v[j].client;
		p->au = mean_of(v + i, runs);
		half = point_error(v + i, runs, k->spread) *
		       student_t(CERTAIN, point_freedom(v + i, runs));
		p->low = fmax(0, p->au - half);
		p->high = fmin(100, p->au + half);
	}
}

static void judge_knee(struct knee *k)
{
	bool beyond;
	double *fit = xcalloc(k->points + 1, sizeof(*fit));
	size_t from = k->gathered, i = from;

	for (size_t j = 0; j < k->points; j++)
		fit[j] = k->point[j].fit;
	k->accelerators =
		read_knee(k->point + from, fit + from, k->points - from, k->target, &beyond);
	while (i < k->points && fit[i] >= k->target)
		i++;
	k->at_least = beyond || (i < k->points && k->point[i].client);
	k->bracketed = i > from && i < k->points &&
		       k->point[i].accelerators == k->point[i - 1].accelerators + 1;
	k->falls_short = i == 0 && k->points && k->point[0].accelerators > 1;
	for (size_t j = from; j + 1 < k->points; j++)
		for (size_t m = j + 1; m < k->points; m++)
			k->reversed =
				k->reversed || k->point[m].low - k->point[j].high > REVERSED_POINTS;
	free(fit);
}

void knee_find(const struct knee_run *run, size_t runs, double target, struct knee *out)
{
	size_t n;
	struct knee_run *v = sorted(run, runs, &n);
	double *fit, *weight;

	*out = (struct knee){.target = target, .point = xcalloc(n + 1, sizeof(*out->point))};
	out->spread = spread_of(v, n);
	make_points(out, v, n);
	fit = xcalloc(out->points + 1, sizeof(*fit));
	weight = xcalloc(out->points + 1, sizeof(*weight));
	for (size_t i = 0, at = 0; i < out->points; at += out->point[i++].runs) {
		fit[i] = out->point[i].au;
		weight[i] = 1 / pow(point_error(v + at, out->point[i].runs, out->spread), 2);
	}
	out->gathered = count_gathered(out);
	pool_violators(fit + out->gathered, weight + out->gathered, out->points - out->gathered);
	for (size_t i = 0; i < out->points; i++)
		out->point[i].fit = fit[i];
	judge_knee(out);
	if (out->points)
		draw_interval(out, v, weight);
	out->low = out->low < out->accelerators ? out->low : out->accelerators;
	out->high = out->high > out->accelerators ? out->high : out->accelerators;
	if (out->at_least)
		out->high = UINT32_MAX;
	free(fit);
	free(weight);
	free(v);
}

void knee_release(struct knee *k)
{
	free(k->point);
	*k = (struct knee){0};
}

static double decided_mean(const struct knee_run *run, size_t runs, double *half)
{
	size_t n;
	struct knee_run *v = sorted(run, runs, &n);
	double mean = n ? mean_of(v, n) : NAN;

	*half = n ? point_error(v, n, spread_of(v, n)) * student_t(CERTAIN, point_freedom(v, n))
		  : INFINITY;
	free(v);
	return mean;
}

double knee_mean(const struct knee_run *run, size_t runs)
{
	double half;

	return decided_mean(run, runs, &half);
}

int knee_decides(const struct knee_run *run, size_t runs, double target)
{
	double half, mean = decided_mean(run, runs, &half);

	return mean - half >= target ? 1 : mean + half < target ? -1 : 0;
}

uint32_t knee_guess(uint32_t accelerators, double au, double target)
{
	double n = accelerators * au / target;

	return n >= UINT32_MAX ? UINT32_MAX : (uint32_t)floor(n);
}
