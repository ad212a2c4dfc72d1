#include "plan/sizing.h"

#include <assert.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/compare.h"
#include "base/str.h"
#include "plan/bounds.h"
#include "workload/need.h"

/* Of a share: effects below are no reason. */
#define EFFECT_LEAST 0.01
/* Of an estimate from one point that passes, with samples of the same size: so much is by the
 * point's loss and what systems are sized to. Rows that are published are each tuned to their
 * target. */
#define TUNED_PART 0.75

/* ---- values of all sets ---- */

static int by_value(const void *a, const void *b)
{
	const double *x = a, *y = b;

	return ORDER(*x, *y);
}

static double quantile(const double *sorted, size_t n, double p)
{
	double at = p * (double)(n - 1);
	size_t i = (size_t)at;

	return i + 1 < n ? sorted[i] + (sorted[i + 1] - sorted[i]) * (at - (double)i)
			 : sorted[n - 1];
}

/* More hosts than in any point on the same storage, whose end was not seen. */
static bool is_beyond(const struct point_fit *f, double hosts)
{
	return !f->store_seen && !f->grows && hosts > f->hosts_most;
}

/* `open`, by set: the median and the high end; `least`: the low end. Both are reordered. */
static struct sizing_range range_of(const struct point_fit *f, double *least, double *open)
{
	struct sizing_range r;

	qsort(least, f->draws, sizeof(*least), by_value);
	qsort(open, f->draws, sizeof(*open), by_value);
	r.low = quantile(least, f->draws, 0.05);
	r.mid = quantile(open, f->draws, 0.5);
	r.high = quantile(open, f->draws, 0.95);
	r.low = fmin(r.low, r.mid);
	return r;
}

/* How far the mean of `value` is apart between sets with a small and a large key. */
static double effect_of(const double *value, const double *key, size_t n)
{
	AUTO_FREE double *sorted = xcalloc(n, sizeof(*sorted));
	double sum[2] = {0, 0}, middle;
	size_t count[2] = {0, 0};

	memcpy(sorted, key, n * sizeof(*key));
	qsort(sorted, n, sizeof(*sorted), by_value);
	middle = sorted[n / 2];
	for (size_t i = 0; i < n; i++) {
		sum[key[i] >= middle] += value[i];
		count[key[i] >= middle]++;
	}
	if (!count[0] || !count[1])
		return 0;
	return fabs(sum[1] / (double)count[1] - sum[0] / (double)count[0]);
}

/* ---- a row from points ---- */

struct sets {
	double *au[2], *share[2], *rate[2]; /* by enum fit_unseen */
	double *key;
	size_t limits[FIT_LIMITS];
	size_t n;
};

static void sets_begin(struct sets *s, const struct point_fit *f, double n, double hosts)
{
	*s = (struct sets){.n = f->draws, .key = xcalloc(f->draws, sizeof(double))};
	for (int u = 0; u < 2; u++) {
		s->au[u] = xcalloc(f->draws, sizeof(double));
		s->share[u] = xcalloc(f->draws, sizeof(double));
		s->rate[u] = xcalloc(f->draws, sizeof(double));
		for (size_t i = 0; i < f->draws; i++) {
			struct fit_result r =
				point_fit_at(f, i, n, hosts, (enum fit_unseen)u, true);

			s->au[u][i] = r.au;
			s->share[u][i] = r.share;
			s->rate[u][i] = r.samples_per_s;
			s->limits[r.limit] += u == FIT_OPEN;
		}
	}
}

static void sets_release(struct sets *s)
{
	for (int u = 0; u < 2; u++) {
		free(s->au[u]);
		free(s->share[u]);
		free(s->rate[u]);
	}
	free(s->key);
}

static const char *limit_text(const struct point_fit *f, const struct sets *s, double share)
{
	enum fit_limit most = FIT_LIMIT_NONE;

	for (int k = 0; k < FIT_LIMITS; k++)
		if (s->limits[k] > s->limits[most])
			most = (enum fit_limit)k;
	if (most == FIT_LIMIT_HOST || most == FIT_LIMIT_STORE) {
		if (f->one_host_count)
			return "the hosts or the storage: no point shows which";
		return most == FIT_LIMIT_HOST ? "what each host gets" : "the storage";
	}
	if (most == FIT_LIMIT_RANK)
		return "what the readers of each accelerator get";
	if (most == FIT_LIMIT_WAITS && share < 0.98)
		return "waits for data, the slowest accelerator's in each step";
	return "nothing that was measured: computation";
}

/* The growth of the wait from the points to here, by each set. */
static void shape_keys(const struct point_fit *f, double *key)
{
	for (size_t i = 0; i < f->draws; i++) {
		const double *v = f->draw[i].v;

		key[i] = v[FIT_ALONE] * (v[FIT_SHAPE] / FIT_SHAPE_MAX - log(v[FIT_RARITY]) / 3);
	}
}

static double param_effect(struct sets *s, const struct point_fit *f, enum fit_param k)
{
	for (size_t i = 0; i < f->draws; i++)
		s->key[i] = f->draw[i].v[k];
	return effect_of(s->share[FIT_OPEN], s->key, f->draws);
}

/* The most samples/s that one accelerator of a point got, if all its cost goes with bytes. */
static double fastest(const struct point_fit *f)
{
	double most = 0;

	for (size_t i = 0; i < f->points; i++) {
		const struct point *p = &f->point[i];

		most = fmax(most, p->samples_per_s / p->accelerators *
					  fmin(1, p->of.sample_bytes / f->plan.sample_bytes));
	}
	return most;
}

static enum sizing_reason find_reason(struct sets *s, const struct point_fit *f, double caps,
				      double n, double hosts)
{
	enum sizing_reason best = REASON_POINTS;
	double effect[REASON_RUN] = {[REASON_POINTS] = EFFECT_LEAST};

	/* as many on a host as were there already leave only the storage */
	if (!f->rank_seen && !f->same_pace && duty_need(&f->plan) > 1.02 * fastest(f))
		effect[REASON_RANK] = caps;
	else if (!f->store_seen && hosts > f->hosts_most && !f->grows)
		effect[REASON_STORAGE] = caps;
	else if (!f->host_seen && n / hosts > f->a_host_most * 1.01)
		effect[REASON_HOST] = caps;
	else if (!f->store_seen)
		effect[REASON_STORAGE] = caps;
	if (f->one_host_count && hosts != f->hosts_most && !f->grows &&
	    s->limits[FIT_LIMIT_HOST] + s->limits[FIT_LIMIT_STORE] > f->draws / 4) {
		effect[REASON_EITHER] =
			fmax(param_effect(s, f, FIT_STORE), param_effect(s, f, FIT_HOST));
		effect[REASON_EITHER] = fmax(effect[REASON_EITHER], caps);
		effect[REASON_STORAGE] = effect[REASON_HOST] = 0;
	}
	shape_keys(f, s->key);
	effect[REASON_SHAPE] = effect_of(s->share[FIT_OPEN], s->key, f->draws);
	effect[REASON_GAP] = param_effect(s, f, FIT_GAP);
	if (f->other_size)
		effect[REASON_SIZE] = param_effect(s, f, FIT_SIZE);
	if (f->other_accelerator || f->other_size) {
		for (size_t i = 0; i < f->draws; i++)
			s->key[i] = f->draw[i].other[f->other_size];
		effect[f->other_size ? REASON_SIZE : REASON_OTHER] =
			fmax(effect[REASON_SIZE], effect_of(s->share[FIT_OPEN], s->key, f->draws));
	}
	for (int k = 0; k < REASON_RUN; k++)
		if (effect[k] > effect[best])
			best = (enum sizing_reason)k;
	return best;
}

/* Bytes/s of the fastest. */
static double rate_most(const struct point *p, size_t n)
{
	double most = 0;

	for (size_t i = 0; i < n; i++)
		most = fmax(most, p[i].samples_per_s * p[i].of.sample_bytes);
	return most;
}

static void put(char out[SIZING_TEXT], const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static void put(char out[SIZING_TEXT], const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(out, SIZING_TEXT, fmt, ap);
	va_end(ap);
}

static void say_reason(struct sizing_row *r, const struct point_fit *f, enum sizing_reason why)
{
	double a_host = r->accelerators / r->hosts;
	char rate[32], size[32];

	need_rate_text(rate_most(f->point, f->points), rate, sizeof(rate));
	str_bytes(f->plan.sample_bytes, size, sizeof(size));
	switch (why) {
	case REASON_RANK:
		put(r->assumption,
		    "that the readers of an accelerator can ask for %.4g samples/s: the points "
		    "did not need as many",
		    duty_need(&f->plan));
		put(r->next, "a run of '%.60s' on the same system", f->plan.name);
		break;
	case REASON_HOST:
		put(r->assumption,
		    "that a host gets more than was measured: the points have at most %.4g "
		    "accelerators on a host, and this plan has %.4g",
		    f->a_host_most, a_host);
		put(r->next,
		    "a run with %.0f accelerators on one host: it shows what a host can get",
		    ceil(a_host));
		break;
	case REASON_STORAGE:
		put(r->assumption,
		    "that the storage gives more than %s, the most that was measured: no point "
		    "shows its limit",
		    rate);
		put(r->next,
		    "a run on %.0f hosts with %.4g on each: whether all get what one got shows "
		    "what the storage gives",
		    f->hosts_most < 2 ? 2 : fmin(r->hosts, 2 * f->hosts_most),
		    fmax(1, fmin(a_host, f->a_host_most)));
		break;
	case REASON_EITHER:
		put(r->assumption,
		    "whether the hosts or the storage limited the rate to %s: all points "
		    "have %.0f host%s",
		    rate, f->hosts_most, f->hosts_most == 1 ? "" : "s");
		put(r->next,
		    "the same accelerators on %.0f hosts: a higher rate means that it was the "
		    "hosts",
		    2 * f->hosts_most);
		break;
	case REASON_SHAPE:
		put(r->assumption,
		    "how the wait for the slowest accelerator grows from %.0f to %.0f of them: "
		    "points have no distribution of waits, a tail between exponential (ln N) "
		    "and a Pareto of index 2 (the root of N) is assumed",
		    f->largest, r->accelerators);
		put(r->next,
		    "a run of this program on that system (--from): it records each wait; or a "
		    "point with about %.0f accelerators",
		    fmax(f->largest + 1, ceil(sqrt(f->largest * r->accelerators))));
		break;
	case REASON_SIZE:
		if (f->in_bytes)
			put(r->assumption,
			    "that samples of %s get as many bytes/s as those that were measured: "
			    "no point has that size",
			    size);
		else
			put(r->assumption,
			    "what part of the cost of a sample goes with its bytes: no point has "
			    "samples of %s",
			    size);
		put(r->next,
		    "a run on the same system with samples of %s; with two sizes, the cost of "
		    "a sample and of a byte are known",
		    size);
		break;
	case REASON_OTHER:
		put(r->assumption,
		    "that the system gives as many bytes/s to this accelerator as to the "
		    "points': published pairs differ by a fifth, a few by half");
		put(r->next, "a run of '%.60s' on the same system", f->plan.name);
		break;
	case REASON_GAP:
		put(r->assumption,
		    "what AU leaves out, such as the start of an epoch, is as long as in the "
		    "points");
		put(r->next, "%s",
		    isnan(f->point[0].au) ? "the AU of the points (au=)"
					  : "a run with as many steps in an epoch");
		break;
	case REASON_POINTS:
	case REASON_RUN:
		put(r->assumption, "none: what was measured, and how exactly");
		break;
	}
}

static enum sizing_answer answer(const struct sizing *s, const struct point_fit *f,
				 const struct sizing_row *r, bool by_rate)
{
	enum sizing_answer found = bounds_answer(r, s, by_rate);
	const struct sizing_range *range = by_rate ? &r->share : &r->au;

	if (found != SIZING_UNKNOWN)
		return found;
	if (range->low >= s->plan.target)
		return SIZING_YES;
	/* what a sample costs of another size is a guess from one size, and no reason for a no */
	if (f->other_size && f->one_size && !f->in_bytes)
		return SIZING_UNKNOWN;
	return range->high < s->plan.target ? SIZING_NO : SIZING_UNKNOWN;
}

static double tuned_part(const struct point_fit *f)
{
	return f->points == 1 && !f->ended && !f->other_size ? TUNED_PART : 0;
}

static void move_mid(struct sizing_range *r, double by)
{
	r->mid += by;
	r->low = fmin(r->low, r->mid);
	r->high = fmax(r->high, r->mid);
}

static void tune_mid(struct sizing_range *r, const struct sizing_row *row,
		     const struct point_fit *f, bool by_rate)
{
	if (tuned_part(f) > 0 && (by_rate || !isnan(f->point[0].au)))
		move_mid(r,
			 TUNED_PART * (point_fit_tuned(f, by_rate, row->accelerators, row->hosts) -
				       r->mid));
}

static void row_from_points(struct sizing_row *r, const struct point_fit *f)
{
	struct sets s;
	double caps;

	sets_begin(&s, f, r->accelerators, r->hosts);
	caps = 0;
	for (size_t i = 0; i < s.n; i++)
		caps += (s.share[FIT_OPEN][i] - s.share[FIT_AT_LEAST][i]) / (double)s.n;
	/* the sets are in one order until they are sorted */
	say_reason(r, f, find_reason(&s, f, caps, r->accelerators, r->hosts));
	r->au = range_of(f, s.au[FIT_AT_LEAST], s.au[FIT_OPEN]);
	r->share = range_of(f, s.share[FIT_AT_LEAST], s.share[FIT_OPEN]);
	tune_mid(&r->share, r, f, true);
	tune_mid(&r->au, r, f, false);
	move_mid(&r->au, fmax(0, r->share.mid - r->au.mid));
	r->samples_per_s = range_of(f, s.rate[FIT_AT_LEAST], s.rate[FIT_OPEN]);
	r->bounded = caps < 0.01 && !is_beyond(f, r->hosts);
	snprintf(r->limit, sizeof(r->limit), "%s", limit_text(f, &s, r->share.mid));
	sets_release(&s);
}

/* ---- storage that grows is no less than the one that was measured ---- */

static void at_least(struct sizing_range *r, const struct sizing_range *other)
{
	r->low = fmax(r->low, other->low);
	r->mid = fmax(r->mid, other->mid);
	r->high = fmax(r->high, other->high);
}

static void at_most(struct sizing_range *r, const struct sizing_range *other)
{
	r->low = fmin(r->low, other->low);
	r->mid = fmin(r->mid, other->mid);
	r->high = fmin(r->high, other->high);
}

/* `r` is of storage that grows with the hosts, `other` of the one that was measured. It is more of
 * it on no fewer hosts than any point has, and less on no more. */
static void order_range(struct sizing_range *r, const struct sizing_range *other,
			const struct point_fit *f, double hosts)
{
	if (hosts >= f->hosts_most)
		at_least(r, other);
	if (hosts <= f->hosts_least)
		at_most(r, other);
}

/* ---- what simpler rules say ---- */

static const struct point *nearest(const struct point *p, size_t n, double accelerators)
{
	const struct point *best = p;

	for (size_t i = 1; i < n; i++)
		if (fabs(log(p[i].accelerators / accelerators)) <
		    fabs(log(best->accelerators / accelerators)))
			best = &p[i];
	return best;
}

static void find_baselines(struct sizing_row *r, const struct sizing *s)
{
	const struct point *p = nearest(s->point, s->points, r->accelerators);
	double most = rate_most(s->point, s->points);

	if (s->grows)
		most *= r->hosts / p->hosts;
	r->linear_share = fmin(1, point_share(p));
	r->cap_share = fmin(r->linear_share, most / r->full_bytes);
}

/* ---- needs ---- */

static void find_needs(struct sizing_row *r, const struct sizing *s)
{
	double target = s->plan.target > 0 ? s->plan.target : 1, requests = NAN, opens = NAN;

	r->full_samples = r->accelerators * duty_need(&s->plan);
	r->full_bytes = r->full_samples * s->plan.sample_bytes;
	r->need_samples = r->full_samples * target;
	r->need_bytes = r->full_bytes * target;
	for (size_t i = 0; i < s->points; i++)
		if (s->point[i].is_result && duty_same(&s->point[i].of, &s->plan)) {
			requests = s->point[i].requests_per_sample;
			opens = s->point[i].opens_per_sample;
		}
	/* a file is opened once for all of its samples, where nothing says how often it was */
	if (isnan(opens))
		opens = 1 / s->plan.file_samples;
	r->need_opens = opens * r->need_samples;
	r->need_requests = requests * r->need_samples;
}

/* ---- what is refused ---- */

static int check_question(const struct sizing *s, double n, double hosts, struct err *e)
{
	if (hosts > n)
		return err_set(e, ERR_USAGE,
			       "%.0f accelerator%s on %.0f hosts: each host needs one or more", n,
			       n == 1 ? "" : "s", hosts);
	if (s->points == 0)
		return err_set(e, ERR_USAGE,
			       "there is nothing to plan from: name results with "
			       "--from, or points with --point");
	return 0;
}

/* Points only: a simulation knows its own bounds. */
static int check_reach(const struct point_fit *f, double n, double hosts, struct err *e)
{
	if (n > SIZING_FAR * f->largest)
		return err_set(
			e, ERR_DATA,
			"%.0f accelerators are %.0f times the %.0f that were measured: how "
			"waits grow is not known beyond %d times (up to %.0f); measure about "
			"%.0f",
			n, n / f->largest, f->largest, SIZING_FAR, SIZING_FAR * f->largest,
			ceil(n / SIZING_FAR));
	if (n * SIZING_FAR < f->smallest)
		return err_set(e, ERR_DATA,
			       "%.0f accelerators are %.0f times fewer than the %.0f that were "
			       "measured: a run of them is quick, and tells more",
			       n, f->smallest / n, f->smallest);
	if (hosts > SIZING_FAR * f->hosts_most)
		return err_set(e, ERR_DATA,
			       "%.0f hosts are %.0f times the %.0f that were measured: the points "
			       "say nothing about that (up to %.0f)",
			       hosts, hosts / f->hosts_most, f->hosts_most,
			       SIZING_FAR * f->hosts_most);
	return 0;
}

/* ---- all of it ---- */

/* As many on each host as in the nearest point. */
static double hosts_for(const struct sizing *s, double n)
{
	const struct point *p = nearest(s->point, s->points, n);
	double hosts = ceil(n / (p->accelerators / p->hosts) - 1e-9);

	return fmax(1, fmin(hosts, n));
}

static void most_from_points(struct sizing_most *m, const struct sizing *s,
			     const struct point_fit *f, double hosts)
{
	double most = floor(SIZING_FAR * f->largest / hosts), au = f->point[0].au;
	double part = isnan(au) ? 0 : tuned_part(f), target = s->plan.target;
	AUTO_FREE double *least = xcalloc(f->draws, sizeof(*least));
	AUTO_FREE double *open = xcalloc(f->draws, sizeof(*open));
	AUTO_FREE double *mid = xcalloc(f->draws, sizeof(*mid));

	if (target <= 0 || most < 1)
		return;
	for (size_t i = 0; i < f->draws; i++) {
		least[i] = point_fit_most(f, i, hosts, target, most, FIT_AT_LEAST, 0);
		open[i] = point_fit_most(f, i, hosts, target, most, FIT_OPEN, 0);
		mid[i] = point_fit_most(f, i, hosts, target, most, FIT_OPEN, part);
	}
	qsort(mid, f->draws, sizeof(*mid), by_value);
	m->known = true;
	m->n = range_of(f, least, open);
	move_mid(&m->n, quantile(mid, f->draws, 0.5) - m->n.mid);
	/* not even one on each host */
	m->n.low = m->n.low < hosts ? 0 : floor(m->n.low);
	m->n.mid = floor(m->n.mid / hosts) * hosts;
	m->n.high = ceil(m->n.high / hosts) * hosts;
	m->searched = most * hosts;
	m->bounded = !is_beyond(f, hosts) && m->n.mid < m->searched &&
		     m->n.mid - quantile(least, f->draws, 0.5) <= fmax(hosts, 0.05 * m->n.mid);
}

/* ---- the same by simulation, which takes a while ---- */

#define TRIED_MAX 48
#define TRIED_ACCELERATORS 60000.0 /* of all that are tried: large ones take seconds each */

struct search {
	const struct sizing *s;
	const struct sizing_question *q;
	double hosts;
	struct sizing_row tried[TRIED_MAX];
	size_t count;
	size_t most;
	bool failed;
};

static const struct sizing_row *try(struct search *x, double n)
{
	struct sizing_row *r = &x->tried[x->count];
	struct err why = {0};

	for (size_t i = 0; i < x->count; i++)
		if (x->tried[i].accelerators == n)
			return &x->tried[i];
	if (x->count == x->most) {
		x->failed = true;
		return &x->tried[x->most - 1];
	}
	*r = (struct sizing_row){.accelerators = n, .hosts = x->hosts};
	find_needs(r, x->s);
	if (x->q->tell)
		x->q->tell(r);
	x->failed = x->failed || x->q->simulate(x->q->arg, r, &why) != 1;
	x->count++;
	return r;
}

static double value_of(const struct sizing_row *r, int which)
{
	return which == 0 ? r->au.mid : which < 0 ? r->au.low : r->au.high;
}

/* The most whose estimate (0), low (-1) or high end (1) reaches the target. */
static double search_most(struct search *x, int which, double low, double high)
{
	double target = x->s->plan.target;

	while (high - low > fmax(1, 0.02 * low) && !x->failed) {
		double n = floor((low + high) / 2);

		if (value_of(try(x, n * x->hosts), which) >= target)
			low = n;
		else
			high = n;
	}
	return low;
}

static void find_most_simulated(struct sizing_most *m, const struct sizing *s,
				const struct sizing_question *q, double largest)
{
	struct search x = {.s = s, .q = q, .hosts = s->row[0].hosts};
	double most = 0, end, low, mid, high;

	if (s->plan.target <= 0)
		return;
	for (size_t i = 0; i < s->rows; i++)
		most = fmax(most, s->row[i].accelerators);
	end = floor(fmin(SIZING_FAR * largest, 4 * fmax(most, largest)) / x.hosts) + 1;
	for (size_t i = 0; i < s->rows; i++)
		if (s->row[i].passes == SIZING_NO && s->row[i].hosts == x.hosts)
			end = fmin(end, floor(s->row[i].accelerators / x.hosts) + 1);
	x.most = (size_t)fmax(4, fmin(TRIED_MAX, TRIED_ACCELERATORS / (end * x.hosts)));
	mid = search_most(&x, 0, 0, end);
	low = search_most(&x, -1, 0, mid + 1);
	high = search_most(&x, 1, mid, end);
	if (x.failed)
		return;
	*m = (struct sizing_most){.known = true,
				  .n = {low * x.hosts, mid * x.hosts, high * x.hosts},
				  .bounded =
					  mid + 1 < end && try(&x, fmax(1, mid) * x.hosts)->bounded,
				  .searched = (end - 1) * x.hosts};
}

/* By simulation of the storage that was measured; where that cannot say, or with `points`, by the
 * points. */
static int fill_row(struct sizing_row *r, const struct sizing_question *q,
		    const struct point_fit *f, bool points, struct err *e)
{
	int rc = 0;

	if (q->simulate && q->tell && !points)
		q->tell(r);
	if (q->simulate && !points)
		rc = q->simulate(q->arg, r, e);
	if (rc < 0)
		return rc;
	r->simulated = rc == 1;
	if (r->simulated)
		return 0;
	rc = check_reach(f, r->accelerators, r->hosts, e);
	if (rc == 0)
		row_from_points(r, f);
	return rc;
}

/* `other`: of the storage as it was measured, where the plan's grows; NULL: there is none.
 * *simulated: what it says is. */
static int find_row(struct sizing *s, const struct sizing_question *q, const struct point_fit *f,
		    const struct point_fit *other, struct sizing_row *r, bool *simulated,
		    struct err *e)
{
	int rc = check_question(s, r->accelerators, r->hosts, e);
	struct sizing_row same;
	struct err ignored = {0};

	if (rc < 0)
		return rc;
	find_needs(r, s);
	find_baselines(r, s);
	same = *r;
	rc = fill_row(r, q, f, s->grows, e);
	if (rc < 0)
		return rc;
	*simulated = r->simulated;
	if (other && fill_row(&same, q, other, false, &ignored) == 0) {
		*simulated = same.simulated;
		order_range(&r->au, &same.au, f, r->hosts);
		order_range(&r->share, &same.share, f, r->hosts);
		if (r->hosts == f->hosts_least && r->hosts == f->hosts_most)
			r->bounded = same.bounded;
	}
	bounds_apply(r, s);
	if (s->plan.target > 0) {
		r->passes = answer(s, f, r, false);
		r->enough = answer(s, f, r, true);
	}
	return 0;
}

/* `other`, as for a row; `simulated`: by simulation of the storage that was measured. */
static void find_most(struct sizing *s, const struct sizing_question *q, const struct point_fit *f,
		      const struct point_fit *other, bool simulated)
{
	double hosts = s->row[0].hosts;
	struct sizing_most same = {.known = false};

	if (simulated)
		find_most_simulated(&same, s, q, f->largest);
	else
		most_from_points(&same, s, other ? other : f, hosts);
	if (!s->grows) {
		s->most = same;
	} else {
		most_from_points(&s->most, s, f, hosts);
		if (same.known)
			order_range(&s->most.n, &same.n, f, hosts);
	}
	if (s->most.known)
		bounds_most(&s->most, s, hosts);
}

/* Points of the same accelerators, hosts and workload that differ in rate. */
static int check_twins(const struct point *p, size_t n, struct err *e)
{
	for (size_t i = 0; i < n; i++)
		for (size_t k = i + 1; k < n; k++) {
			double by = p[i].samples_per_s / p[k].samples_per_s;

			if (p[i].accelerators != p[k].accelerators || p[i].hosts != p[k].hosts ||
			    !duty_same(&p[i].of, &p[k].of) || fabs(log(by)) < 0.25)
				continue;
			return err_set(
				e, ERR_USAGE,
				"%s and %s contradict each other: %.4g and %.4g samples/s with the "
				"same %.0f accelerators on %.0f host%s",
				p[i].from, p[k].from, p[i].samples_per_s, p[k].samples_per_s,
				p[i].accelerators, p[i].hosts, p[i].hosts == 1 ? "" : "s");
		}
	return 0;
}

int sizing_find(struct sizing *s, const struct sizing_question *q, const struct point *p, size_t n,
		struct err *e)
{
	struct point_fit f = {0}, measured = {0};
	const struct point_fit *other = NULL;
	struct err ignored = {0};
	int rc = check_twins(p, n, e);
	bool simulated = false;

	*s = (struct sizing){.plan = *q->plan,
			     .point = p,
			     .points = n,
			     .grows = q->grows,
			     .row = xcalloc(q->count, sizeof(*s->row)),
			     .rows = q->count};
	assert(q->count > 0);
	if (rc == 0)
		rc = check_question(s, q->accelerators[0], q->hosts, e);
	if (rc == 0)
		rc = point_fit_find(&f, p, n, q->plan, q->grows, e);
	if (rc == 0 && q->grows && point_fit_find(&measured, p, n, q->plan, false, &ignored) == 0)
		other = &measured;
	for (size_t i = 0; rc == 0 && i < q->count; i++) {
		struct sizing_row *r = &s->row[i];

		r->accelerators = q->accelerators[i];
		r->hosts = q->hosts > 0 ? q->hosts : hosts_for(s, r->accelerators);
		r->passes = r->enough = SIZING_UNKNOWN;
		rc = find_row(s, q, &f, other, r, i ? &(bool){false} : &simulated, e);
	}
	if (rc == 0)
		find_most(s, q, &f, other, simulated);
	point_fit_release(&f);
	point_fit_release(&measured);
	return rc;
}

void sizing_release(struct sizing *s)
{
	free(s->row);
	str_list_release(&s->notes);
	*s = (struct sizing){0};
}
