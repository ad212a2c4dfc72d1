/* Groups of requests, and a line through all of them. */
#include "predict/misfit.h"

#include <math.h>

static const double LEAST = 4;              /* requests of a group */
static const double SURE = 2.5;             /* standard errors */
static const double LITTLE = 0.08;          /* of a time: laws are not more exact */
static const double MANY = 8;               /* requests of a group whose scatter is known */
static const double SCATTERED = 0.5;        /* of a time: foretold badly, */
static const double NOISE = 1e6;            /* ns: threads wait as long for a processor */
static const double SCATTERS = 4;           /* and times as badly as beside fewer or more */
static const double FALLS = 0.9;            /* of what they got beside fewer */
static const double MOST = 20, LESS = 0.05; /* times as long: no law is used that far */

struct group {
	double n, level, foretold, beyond, square;
};

/* Two groups for each doubling. */
static size_t group_of(uint32_t level)
{
	size_t g = (size_t)(2 * log2(level ? level : 1) + 1e-9);

	return g < MISFIT_LEVELS ? g : MISFIT_LEVELS - 1;
}

static void add_groups(struct misfit *m, const struct group *group, double times)
{
	for (size_t k = 0; k < MISFIT_LEVELS; k++) {
		const struct group *g = &group[k];
		double mean, variance, took;

		if (g->n < LEAST || !(g->foretold > 0))
			continue;
		mean = g->beyond / g->n;
		variance = fmax(0, g->square / g->n - mean * mean) / (g->n - 1);
		took = fmax(0, g->foretold + g->beyond) / g->n;
		m->at[m->count++] = (struct misfit_at){
			.level = times * g->level / g->n,
			.off = g->beyond / g->foretold,
			.sure = sqrt(variance) / (g->foretold / g->n),
			.scatter = sqrt(variance * g->n) > NOISE && took > 0
					   ? sqrt(variance * g->n) / took
					   : 0,
			.n = g->n,
		};
	}
}

struct line {
	double n, x, y, xx, xy, yy; /* sums */
};

static void line_add(struct line *l, double x, double y, double weight)
{
	l->n += weight;
	l->x += weight * x;
	l->y += weight * y;
	l->xx += weight * x * x;
	l->xy += weight * x * y;
	l->yy += weight * y * y;
}

static double slope_of(const struct line *l, double *sure)
{
	double xx = l->xx - l->x * l->x / l->n, xy = l->xy - l->x * l->y / l->n;
	double yy = l->yy - l->y * l->y / l->n;

	*sure = INFINITY;
	if (l->n < 4 || !(xx > 1e-6))
		return 0;
	*sure = sqrt(fmax(0, yy - xy * xy / xx) / (l->n - 2) / xx);
	return xy / xx;
}

/* The slope that is nearest to none without one of the requests: one that differs from all others
 * says nothing. */
static void set_line(struct misfit *m, size_t n, const double *took, const double *beyond,
		     const uint32_t *level, double foretold)
{
	struct line all = {0};
	double sure;

	for (size_t i = 0; i < n; i++)
		if (!isnan(beyond[i]))
			line_add(&all, log(level[i] ? level[i] : 1), beyond[i] / foretold, 1);
	m->slope = slope_of(&all, &m->slope_sure);
	for (size_t i = 0; i < n && isfinite(m->slope_sure); i++) {
		struct line l = all;
		double slope;

		if (isnan(beyond[i]) || !(took[i] > 0))
			continue;
		line_add(&l, log(level[i] ? level[i] : 1), beyond[i] / foretold, -1);
		slope = slope_of(&l, &sure);
		if (fabs(slope) < fabs(m->slope))
			m->slope = slope;
		m->slope_sure = fmax(m->slope_sure, sure);
	}
}

void misfit_of(struct misfit *m, size_t n, const double *took, const double *beyond,
	       const uint32_t *level, double times)
{
	struct group group[MISFIT_LEVELS] = {{0}};
	double foretold = 0, known = 0;

	*m = (struct misfit){.slope_sure = INFINITY};
	for (size_t i = 0; i < n; i++) {
		struct group *g = &group[group_of(level[i])];

		if (isnan(beyond[i]))
			continue;
		g->n++;
		g->level += level[i];
		g->foretold += took[i] - beyond[i];
		g->beyond += beyond[i];
		g->square += beyond[i] * beyond[i];
		foretold += took[i] - beyond[i];
		known++;
	}
	if (!(foretold > 0))
		return;
	add_groups(m, group, times);
	set_line(m, n, took, beyond, level, foretold / known);
}

/* Between the neighbours in the logarithm; the nearest beyond all of them. */
static struct misfit_at look(const struct misfit *m, double level)
{
	struct misfit_at found = {.level = level};
	uint32_t i = 0;
	double part;

	while (i < m->count && m->at[i].level < level)
		i++;
	if (i == m->count || i == 0)
		return m->at[i ? i - 1 : 0];
	part = log(level / m->at[i - 1].level) / log(m->at[i].level / m->at[i - 1].level);
	found.off = (1 - part) * m->at[i - 1].off + part * m->at[i].off;
	found.sure = fmax(m->at[i - 1].sure, m->at[i].sure);
	return found;
}

static bool is_off(double off, double sure)
{
	return fabs(off) > LITTLE && fabs(off) > SURE * sure;
}

static double within(double factor)
{
	return fmin(MOST, fmax(LESS, factor));
}

struct misfit_range misfit_from_to(const struct misfit *m, double from, double to)
{
	struct misfit_range r = {1, 1, 1};
	struct misfit_at a, b;
	double off = 0, sure = 0, apart = log(to / from), line;

	if (m->count) {
		a = look(m, from);
		b = look(m, to);
		if (is_off(b.off - a.off, hypot(a.sure, b.sure))) {
			off = (b.off - a.off) / (1 + fmax(a.off, LESS - 1));
			sure = SURE * hypot(a.sure, b.sure);
			apart = log(to / b.level);
		}
	}
	r.factor = within(1 + off);
	r.low = within(1 + off - sure);
	r.high = within(1 + off + sure);
	/* beyond what was seen, or between groups of few */
	if (!isfinite(m->slope_sure) || !is_off(m->slope * apart, m->slope_sure * fabs(apart)))
		return r;
	line = m->slope * apart;
	r.low = within(fmin(r.low, r.factor + line - SURE * m->slope_sure * fabs(apart)));
	r.high = within(fmax(r.high, r.factor + line + SURE * m->slope_sure * fabs(apart)));
	return r;
}

bool misfit_refutes(const struct misfit *m, double from, double by)
{
	struct misfit_at a;

	if (m->count < 2)
		return false;
	a = look(m, from);
	for (uint32_t i = 0; i < m->count; i++) {
		double off = m->at[i].off - a.off;

		if (fabs(off) > by && is_off(off, hypot(a.sure, m->at[i].sure)))
			return true;
	}
	return false;
}

double misfit_misplaced(size_t n, const double *took, const double *beyond, const uint8_t *group)
{
	double have[MISFIT_LEVELS] = {0}, foretold[MISFIT_LEVELS] = {0}, all = 0, said = 0, off = 0;

	for (size_t i = 0; i < n; i++) {
		if (isnan(beyond[i]))
			continue;
		have[group[i]] += took[i];
		foretold[group[i]] += took[i] - beyond[i];
		all += took[i];
		said += took[i] - beyond[i];
	}
	if (!(all > 0) || !(said > 0))
		return 0;
	for (size_t k = 0; k < MISFIT_LEVELS; k++)
		off += fabs(have[k] / all - foretold[k] / said);
	return off / 2;
}

double misfit_falls(const struct misfit *m)
{
	const struct misfit_at *last = NULL;
	double falls = 1;

	for (uint32_t i = 0; i < m->count; i++)
		last = m->at[i].n >= MANY ? &m->at[i] : last;
	for (uint32_t i = 0; last && &m->at[i] < last; i++) {
		const struct misfit_at *a = &m->at[i];
		double before = a->level / (1 + a->off + SURE * a->sure);
		double now = last->level / fmax(LESS, 1 + last->off - SURE * last->sure);

		if (a->n >= MANY && now < FALLS * before)
			falls = fmin(falls, now / before);
	}
	return falls;
}

bool misfit_scatters(const struct misfit *m)
{
	double least = INFINITY, most = 0;

	for (uint32_t i = 0; i < m->count; i++)
		if (m->at[i].n >= MANY) {
			least = fmin(least, m->at[i].scatter);
			most = fmax(most, m->at[i].scatter);
		}
	return most > SCATTERED && most > SCATTERS * least;
}
