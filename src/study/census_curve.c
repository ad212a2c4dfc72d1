/* What a curve of readers says of accelerators. */
#include "study/census.h"

#include <math.h>

#include "base/stats.h"

static const double STALLED = 1.5; /* times a rate that another one is */

static double rate_of(const struct census_point *p, bool made)
{
	return made ? p->made_rate : p->rate;
}

/* The first point with at least so many readers; n: none. */
static size_t place(const struct census_curve *c, double readers)
{
	size_t i = 0;

	while (i < c->n && c->point[i].readers < readers)
		i++;
	return i;
}

double census_readers(const struct census_curve *c)
{
	return c->n ? c->point[c->n - 1].readers : 0;
}

double census_supply(const struct census_curve *c, double readers, bool made)
{
	size_t i = place(c, readers);
	double part, a, b;

	if (c->n == 0)
		return NAN;
	if (i == c->n)
		return rate_of(&c->point[c->n - 1], made);
	b = rate_of(&c->point[i], made);
	if (i == 0) /* a mean below one reader: each is alone */
		return b * readers / c->point[0].readers;
	a = rate_of(&c->point[i - 1], made);
	part = log(readers / c->point[i - 1].readers) /
	       log(c->point[i].readers / c->point[i - 1].readers);
	return a * pow(b / a, part);
}

/* Over a factor of two to both sides, as far as there are points. */
double census_slope(const struct census_curve *c, double readers)
{
	double last = c->n ? census_readers(c) : NAN;
	double to = fmin(last, 2 * readers), from = fmin(readers, to) / 2;

	return log(census_supply(c, to, false) / census_supply(c, from, false)) / log(to / from);
}

/* By readers: in the last points some may have had nothing left to read. */
static void sort_points(struct census_curve *c)
{
	for (size_t i = 1; i < c->n; i++)
		for (size_t k = i; k > 0 && c->point[k].readers < c->point[k - 1].readers; k--) {
			struct census_point p = c->point[k];

			c->point[k] = c->point[k - 1];
			c->point[k - 1] = p;
		}
}

/* The run whose rate stands for all: a stall of the machine or of another program only lowers it.
 * `runs`: they agree. */
static size_t typical(const struct census_curve *run, size_t runs, size_t i)
{
	size_t best = 0, worst = 0;

	for (size_t k = 1; k < runs; k++) {
		best = run[k].point[i].rate > run[best].point[i].rate ? k : best;
		worst = run[k].point[i].rate < run[worst].point[i].rate ? k : worst;
	}
	if (run[best].point[i].rate < STALLED * run[worst].point[i].rate)
		return runs;
	return runs == 3 ? 3 - best - worst : best;
}

static void mean_point(const struct census_curve *run, size_t runs, size_t i,
		       struct census_point *out, double *squares)
{
	double log_rate = 0, log_made = 0, part = 1.0 / (double)runs;
	size_t one = typical(run, runs, i);

	*out = (struct census_point){0};
	for (size_t k = 0; k < runs; k++) {
		const struct census_point *p = &run[k].point[i];

		log_rate += part * log(p->rate);
		log_made += part * log(p->made_rate);
		out->readers += part * p->readers;
		out->bytes += part * p->bytes;
		out->requests += part * p->requests;
		out->opens += part * p->opens;
		out->open_share += part * p->open_share;
		out->cpu += part * p->cpu;
	}
	out->rate = exp(log_rate);
	out->made_rate = exp(log_made);
	if (one < runs)
		*out = run[one].point[i];
	for (size_t k = 0; k < runs; k++)
		*squares += pow(log(run[k].point[i].rate / out->rate), 2);
}

bool census_doubtful(const struct census_curve *c)
{
	double most = 0;

	for (size_t i = 0; i < c->n; i++) {
		if (STALLED * c->point[i].rate < most)
			return true;
		most = fmax(most, c->point[i].rate);
	}
	return false;
}

void census_mean(const struct census_curve *run, size_t runs, struct census_curve *out,
		 double *spread)
{
	double squares = 0, free;

	*out = (struct census_curve){.n = runs ? run[0].n : 0};
	*spread = NAN;
	for (size_t k = 1; k < runs; k++)
		out->n = run[k].n < out->n ? run[k].n : out->n;
	for (size_t i = 0; i < out->n; i++)
		mean_point(run, runs, i, &out->point[i], &squares);
	sort_points(out);
	free = (double)out->n * (double)(runs - 1);
	/* the points of a run are not independent: a storage has slow seconds */
	if (runs > 1 && out->n)
		*spread = student_t(0.05, fmax(1, free / 2)) * sqrt(squares / free) /
			  sqrt((double)runs);
}

static const double STEP = 1.002; /* of numbers of accelerators that are tried */

double census_feeds(const struct census_curve *c, double readers, double need, bool *beyond)
{
	double one = census_supply(c, readers, false) / need, most, found;

	*beyond = false;
	if (!(one >= 1))
		return one;
	most = census_readers(c) / readers;
	found = 1;
	for (double a = 1; a <= most; a *= STEP)
		if (census_supply(c, a * readers, false) >= a * need)
			found = a;
	if (found * STEP * STEP < most)
		return found;
	/* more of them have more readers, which get at least as much together */
	one = c->point[c->n - 1].rate / need;
	*beyond = one > most;
	return fmax(found, one);
}
