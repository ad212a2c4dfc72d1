#include "plan/bounds.h"

#include <math.h>

#include "workload/need.h"

/* The ends of 90 % of what is normal. */
#define ENDS 1.645
/* One standard deviation of a measurement: of the rate, of AU. */
#define RATE_ERROR 0.01
#define AU_ERROR 0.0075
/* Fewer hosts are set up, and measured, by themselves. */
#define PART_ERROR 0.03

static bool is_of(const struct sizing *s, const struct point *p)
{
	return duty_same(&p->of, &s->plan);
}

/* NAN: not known. */
static double measured(const struct point *p, bool by_rate)
{
	return by_rate ? fmin(1, point_share(p)) : p->au;
}

static double error_of(const struct point *p, bool by_rate)
{
	double least = by_rate ? RATE_ERROR : AU_ERROR;

	return fmax(least, isnan(p->spread) ? 0 : p->spread);
}

/* So many accelerators on `hosts` hosts are a part of the point, with as many on each. */
static double part_of(const struct point *p, double hosts)
{
	return fmin(p->accelerators, hosts * p->accelerators / p->hosts);
}

static void move(struct sizing_range *r, const struct sizing_row *row, const struct sizing *s,
		 bool by_rate)
{
	double n = row->accelerators, least = 0, low = 0, most = 1, high = 1;

	for (size_t i = 0; i < s->points; i++) {
		const struct point *p = &s->point[i];
		double v = measured(p, by_rate), off = ENDS * error_of(p, by_rate);
		double here = fmin(n, part_of(p, row->hosts)) / n;
		double there = fmax(1, p->accelerators / n);

		if (!is_of(s, p) || isnan(v))
			continue;
		low = fmax(low, v * (1 - off - (row->hosts < p->hosts ? PART_ERROR : 0)) * here);
		if (row->hosts >= p->hosts)
			least = fmax(least, v * here);
		if (row->hosts <= p->hosts) {
			most = fmin(most, v * there);
			high = fmin(high, v * (1 + off) * there);
		}
	}
	/* what was measured as much as it was counts more than what others had no more of */
	r->mid = fmax(least, fmin(r->mid, most));
	r->low = fmin(r->mid, fmax(low, fmin(r->low, high)));
	r->high = fmax(r->mid, fmin(1, fmax(low, fmin(r->high, high))));
}

/* The most bytes/s of any point, with as much more storage as the plan has. */
static double bytes_seen(const struct sizing *s, double hosts)
{
	double most = 0;

	for (size_t i = 0; i < s->points; i++) {
		const struct point *p = &s->point[i];

		most = fmax(most, p->samples_per_s * p->of.sample_bytes *
					  (s->grows ? hosts / p->hosts : 1));
	}
	return most;
}

static bool is_measured(const struct sizing_row *r, const struct sizing *s)
{
	for (size_t i = 0; i < s->points; i++)
		if (is_of(s, &s->point[i]) && s->point[i].accelerators == r->accelerators &&
		    s->point[i].hosts == r->hosts)
			return true;
	return false;
}

void bounds_apply(struct sizing_row *r, const struct sizing *s)
{
	double seen = bytes_seen(s, r->hosts) / r->full_bytes;

	/* nobody knows of more than was measured */
	r->share.low = fmin(r->share.low, seen);
	if (!r->bounded)
		r->au.low = fmin(r->au.low, seen * fmax(1, r->au.mid / r->share.mid));
	move(&r->share, r, s, true);
	move(&r->au, r, s, false);
	r->bounded = r->bounded || is_measured(r, s);
	r->samples_per_s = (struct sizing_range){r->share.low * r->full_samples,
						 r->share.mid * r->full_samples,
						 r->share.high * r->full_samples};
}

/* The target that a point's `largest` is about is no higher than the plan's. */
static bool is_largest(const struct sizing *s, const struct point *p)
{
	return p->largest && p->of.target > 0 && p->of.target <= s->plan.target + 1e-9;
}

enum sizing_answer bounds_answer(const struct sizing_row *r, const struct sizing *s, bool by_rate)
{
	double n = r->accelerators, target = s->plan.target;
	enum sizing_answer found = SIZING_UNKNOWN;

	for (size_t i = 0; i < s->points; i++) {
		const struct point *p = &s->point[i];
		double v = measured(p, by_rate);

		if (!is_of(s, p) || isnan(v))
			continue;
		if (n <= part_of(p, r->hosts) && v >= target)
			return SIZING_YES;
		if (r->hosts <= p->hosts && n >= p->accelerators && v < target)
			found = SIZING_NO;
		if (r->hosts <= p->hosts && n >= p->accelerators + p->hosts && is_largest(s, p) &&
		    !by_rate)
			found = SIZING_NO;
	}
	return found;
}

void bounds_most(struct sizing_most *m, const struct sizing *s, double hosts)
{
	double high = INFINITY, low = 0;

	for (size_t i = 0; i < s->points; i++) {
		const struct point *p = &s->point[i];
		double v = isnan(p->au) ? measured(p, true) : p->au;

		if (!is_of(s, p))
			continue;
		if (v >= s->plan.target)
			low = fmax(low, floor(part_of(p, hosts) / hosts) * hosts);
		else if (hosts <= p->hosts)
			high = fmin(high, p->accelerators - 1);
		if (hosts <= p->hosts && is_largest(s, p))
			high = fmin(high, p->accelerators + p->hosts - 1);
	}
	high = floor(high / hosts) * hosts;
	m->n.low = fmax(low, fmin(m->n.low, high));
	m->n.mid = fmax(m->n.low, fmin(m->n.mid, high));
	m->n.high = fmax(m->n.mid, fmin(m->n.high, high));
	m->bounded = m->bounded || m->n.low == m->n.high;
}
