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
/* What misses the target is said to be so far below, as figures are printed. */
#define MISSED 0.001

static bool same_steps(const struct duty *a, const struct duty *b)
{
	struct duty as = *b;

	as.step_s = a->step_s;
	return duty_same(a, &as);
}

/* Steps of the same samples as the point's, computed no faster: they wait no longer. */
static bool no_harder(const struct sizing *s, const struct point *p)
{
	return same_steps(&p->of, &s->plan) && s->plan.step_s >= 0.99 * p->of.step_s;
}

/* The same, computed no slower: they wait as long. */
static bool no_easier(const struct sizing *s, const struct point *p)
{
	return same_steps(&p->of, &s->plan) && s->plan.step_s <= 1.01 * p->of.step_s;
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

/* The same the other way: so many on `hosts` hosts hold all of `n` accelerators on the point's, or,
 * on more hosts, as many on each, which get no more of the storage, nor of one that grows. */
static double whole_of(const struct point *p, double n, double hosts)
{
	return n * fmax(1, hosts / p->hosts);
}

/* The target that a point's `largest` is about is no higher than the plan's. */
static bool is_largest(const struct sizing *s, const struct point *p)
{
	return p->largest && p->of.target > 0 && p->of.target <= s->plan.target + 1e-9;
}

/* The fewest that miss the target because one more on each host of the point did. */
static double too_many(const struct point *p, double hosts)
{
	return whole_of(p, p->accelerators + p->hosts, hosts);
}

static void move(struct sizing_range *r, const struct sizing_row *row, const struct sizing *s,
		 bool by_rate)
{
	double n = row->accelerators, least = 0, low = 0, most = 1, high = 1;

	for (size_t i = 0; i < s->points; i++) {
		const struct point *p = &s->point[i];
		double v = measured(p, by_rate), off = ENDS * error_of(p, by_rate);
		double here = fmin(n, part_of(p, row->hosts)) / n;
		double there = fmax(1, whole_of(p, p->accelerators, row->hosts) / n);
		double above = ENDS * error_of(p, by_rate);

		if (no_easier(s, p) && is_largest(s, p) && n >= too_many(p, row->hosts))
			most = high = fmin(most, s->plan.target - MISSED);
		if (isnan(v))
			continue;
		if (no_harder(s, p)) {
			off += row->hosts < p->hosts ? PART_ERROR : 0;
			low = fmax(low, v * (1 - off) * here);
			least = fmax(least, row->hosts >= p->hosts ? v * here : 0);
		}
		if (no_easier(s, p)) {
			above += row->hosts > p->hosts ? PART_ERROR : 0;
			most = fmin(most, v * there);
			high = fmin(high, v * (1 + above) * there);
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

/* The AU with such a share by rate: what AU leaves out is at most as long as in a point. */
static double au_with(const struct sizing *s, double share)
{
	double gap = 0;

	for (size_t i = 0; i < s->points; i++) {
		const struct point *p = &s->point[i];

		if (!isnan(p->au))
			gap = fmax(gap, 1 / point_share(p) - 1 / p->au);
	}
	return share / fmax(share, 1 - gap * share);
}

static bool is_measured(const struct sizing_row *r, const struct sizing *s)
{
	for (size_t i = 0; i < s->points; i++)
		if (duty_same(&s->point[i].of, &s->plan) &&
		    s->point[i].accelerators == r->accelerators && s->point[i].hosts == r->hosts)
			return true;
	return false;
}

void bounds_apply(struct sizing_row *r, const struct sizing *s)
{
	double seen = bytes_seen(s, r->hosts) / r->full_bytes;

	/* nobody knows of more than was measured */
	r->share.low = fmin(r->share.low, seen);
	r->au.low = fmin(r->au.low, au_with(s, seen));
	move(&r->share, r, s, true);
	move(&r->au, r, s, false);
	r->bounded = r->bounded || is_measured(r, s);
	r->samples_per_s = (struct sizing_range){r->share.low * r->full_samples,
						 r->share.mid * r->full_samples,
						 r->share.high * r->full_samples};
}

enum sizing_answer bounds_answer(const struct sizing_row *r, const struct sizing *s, bool by_rate)
{
	double n = r->accelerators, target = s->plan.target;
	enum sizing_answer found = SIZING_UNKNOWN;

	for (size_t i = 0; i < s->points; i++) {
		const struct point *p = &s->point[i];
		double v = measured(p, by_rate);

		if (isnan(v))
			continue;
		if (no_harder(s, p) && n <= part_of(p, r->hosts) && v >= target)
			return SIZING_YES;
		if (!no_easier(s, p))
			continue;
		if ((n >= whole_of(p, p->accelerators, r->hosts) && v < target) ||
		    (n >= too_many(p, r->hosts) && is_largest(s, p)))
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

		if (v >= s->plan.target && no_harder(s, p))
			low = fmax(low, floor(part_of(p, hosts) / hosts) * hosts);
		if (!no_easier(s, p))
			continue;
		if (v < s->plan.target)
			high = fmin(high, ceil(whole_of(p, p->accelerators, hosts)) - 1);
		if (is_largest(s, p))
			high = fmin(high, ceil(too_many(p, hosts)) - 1);
	}
	high = floor(high / hosts) * hosts;
	m->n.low = fmax(low, fmin(m->n.low, high));
	m->n.mid = fmax(m->n.low, fmin(m->n.mid, high));
	m->n.high = fmax(m->n.mid, fmin(m->n.high, high));
	m->bounded = m->bounded || m->n.low == m->n.high;
}
