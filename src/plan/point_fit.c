#include "plan/point_fit.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/rng.h"

#define PANELS 240 /* of Simpson's rule, even */

static double integrand(double y, double n, double xi, double p)
{
	return -expm1(n * log1p(-p * exp(-y))) * exp(xi * y);
}

double tail_max(double n, double xi, double p)
{
	double end, h, sum;

	assert(n >= 1 && xi >= 0 && xi <= TAIL_SHAPE_MAX && p > 0 && p <= 1);
	/* behind the end the integrand is N p e^(-(1 - xi) y) */
	end = fmax(0, log(n * p)) + 12 / (1 - xi);
	h = end / PANELS;
	/* at y = 0 with p = 1 the logarithm is minus infinity, and the integrand 1 */
	sum = (p < 1 ? integrand(0, n, xi, p) : 1) + integrand(end, n, xi, p);
	for (int i = 1; i < PANELS; i++)
		sum += integrand(i * h, n, xi, p) * (i % 2 ? 4 : 2);
	return sum * h / 3 + n * p * exp(-(1 - xi) * end) / (1 - xi);
}

/* ---- fits ---- */

/* Relative errors of measured figures: published repetitions spread by 0.01 to 1.3 %. */
#define RATE_ERROR 0.01
#define AU_ERROR 0.0075
/* Of the time that is lost, which few rare waits may make up. */
#define WAIT_ERROR 0.15
/* How far another accelerator, or another size of samples beyond what cost() says, changes what the
 * same system gives: published pairs differ by 8 % in the median, by -44 to +72 % at the ends,
 * which is Student's distribution with three degrees of freedom. */
#define OTHER 0.105
/* What AU leaves out, of a step: the median. And the wait that comes with e times as many
 * accelerators as were measured, whatever the wait there: what was rare is seen. */
#define GAP 0.01
#define MORE 0.0015
/* What was not measured loses neither as much as the points nor independently of them: in
 * logarithms, so far on the way from a system that is sized to its target, which loses these parts
 * of what the target allows. Of the same size of samples, it is the less like the points the
 * further what all accelerators need is from what the points' need (by a factor of e: half), and on
 * more hosts, and with another accelerator. And how far from there: one standard deviation. */
#define LIKE_HOSTS 0.6
#define LIKE_PACE 0.8
#define LIKE_OTHER 0.4
#define SIZED_WAIT 0.75
#define SIZED_RATE 0.85 /* with what AU leaves out */
#define SCATTER_SAME 0.4
#define SCATTER_PACE 0.5
#define SCATTER_OTHER 0.4
/* What more hosts, or more storage, may get beyond the end that a point which passes shows: each
 * system is tuned by itself. */
#define TUNED 1.25
/* A point so far below its target is at the end of something. */
#define FAILING 0.05
/* Caps may lie this far beyond the largest rate measured: as good as no end. */
#define CAP_RANGE 300.0
/* A cap so many times above what was measured is one that was not seen. */
#define FAR 3.0
#define WORST 0.15
/* By how much twice the accelerators may take more, where a run was limited by what all share. */
#define CAPPED 0.03

#define CHAINS 12
#define STEPS 12000
#define BURN 4000
#define EACH 40
#define STARTS 4000

/* ---- G(N) in advance ---- */

#define SHAPES 11
#define RARITIES 9
#define SIZES 57 /* N = 2^(i/2) */

struct tail_table {
	double g[SHAPES][RARITIES][SIZES]; /* its logarithm */
};

static struct tail_table *table_make(void)
{
	struct tail_table *t = xcalloc(1, sizeof(*t));

	for (int i = 0; i < SHAPES; i++)
		for (int k = 0; k < RARITIES; k++)
			for (int n = 0; n < SIZES; n++)
				t->g[i][k][n] = log(
					tail_max(exp2(n / 2.0), FIT_SHAPE_MAX * i / (SHAPES - 1),
						 pow(FIT_RARE, (double)k / (RARITIES - 1))));
	return t;
}

/* Of the nearest shape and rarity, between two N. */
static double table_at(const struct tail_table *t, double xi, double p, double n)
{
	int i = (int)lround(xi / FIT_SHAPE_MAX * (SHAPES - 1));
	int k = (int)lround(log(p) / log(FIT_RARE) * (RARITIES - 1));
	double at = 2 * log2(n);
	int low = at >= SIZES - 1 ? SIZES - 2 : (int)at;
	const double *g = t->g[i][k];

	return exp(g[low] + (g[low + 1] - g[low]) * (at - low));
}

/* ---- one set of parameters ---- */

static double square(double x)
{
	return x * x;
}

static double cost(const struct point_fit *f, const double *v, const struct duty *d)
{
	return 1 - v[FIT_SIZE] + v[FIT_SIZE] * d->sample_bytes / f->plan.sample_bytes;
}

/* Which ends are taken to be there. */
struct caps {
	double rank, host, store;
};

static struct caps caps_of(const double *v)
{
	return (struct caps){v[FIT_RANK], v[FIT_HOST], v[FIT_STORE]};
}

/* Of the waits of single ranks, from the smallest number among the points to `n`. */
static double growth_to(const struct point_fit *f, const double *v, double n)
{
	if (n == f->smallest)
		return 1;
	return table_at(f->table, v[FIT_SHAPE], v[FIT_RARITY], n) /
	       table_at(f->table, v[FIT_SHAPE], v[FIT_RARITY], f->smallest);
}

/* The larger of both, a little more where they are alike: their norm of exponent 16. */
static double rounded(double a, double b)
{
	double longer = fmax(a, b), part = square(square(square(square(fmin(a, b) / longer))));

	return longer * sqrt(sqrt(sqrt(sqrt(1 + part))));
}

static struct fit_result forward(const struct point_fit *f, const double *v, struct caps caps,
				 const struct duty *d, double n, double hosts)
{
	double unit = cost(f, v, d);
	double growth = growth_to(f, v, n);
	double more = n > f->largest ? v[FIT_MORE] * log(n / f->largest) : 0;
	double wait = d->step_s * (v[FIT_WAIT] * (1 - v[FIT_ALONE] + v[FIT_ALONE] * growth) + more);
	double of_hosts = caps.host * hosts, of_store = caps.store * (f->grows ? hosts : 1);
	double of_ranks = caps.rank * n;
	double busy = n * d->batch * unit / fmin(of_ranks, fmin(of_hosts, of_store));
	double alone = d->step_s + wait, step = rounded(busy, alone);
	double all = step + v[FIT_GAP] * d->step_s;
	struct fit_result r = {.au = d->step_s / step,
			       .share = d->step_s / all,
			       .samples_per_s = n * d->batch / all};

	if (busy > alone && of_ranks < fmin(of_hosts, of_store))
		r.limit = FIT_LIMIT_RANK;
	else if (busy > alone)
		r.limit = of_hosts < of_store ? FIT_LIMIT_HOST : FIT_LIMIT_STORE;
	else
		r.limit = wait > 0.01 * d->step_s ? FIT_LIMIT_WAITS : FIT_LIMIT_NONE;
	r.waits = busy > alone ? 0 : wait / alone;
	return r;
}

static double target_of(const struct point_fit *f, const struct point *p)
{
	return p->of.target > 0 ? p->of.target : f->plan.target;
}

/* -2 ln of the likelihood. */
static double misfit(const struct point_fit *f, const double *v)
{
	const struct caps caps = caps_of(v);
	double sum = 0;

	for (size_t i = 0; i < f->points; i++) {
		const struct point *p = &f->point[i];
		struct fit_result r = forward(f, v, caps, &p->of, p->accelerators, p->hosts);
		/* waits differ from run to run, a cap does not */
		double lost = WAIT_ERROR * r.waits;
		double least = fmax(RATE_ERROR, isnan(p->spread) ? 0 : p->spread);
		double error = hypot(least, lost), au_error = hypot(AU_ERROR, lost);

		sum += square(log(r.samples_per_s / p->samples_per_s) / error);
		sum += 2 * log(error / least);
		if (!isnan(p->au))
			sum += square(log(r.au / fmin(1, p->au)) / au_error) +
			       2 * log(au_error / AU_ERROR);
		if (p->largest && target_of(f, p) > 0) {
			r = forward(f, v, caps, &p->of, p->accelerators + p->hosts, p->hosts);
			sum += square(fmax(0, r.au - target_of(f, p)) / 0.003);
		}
		if (p->capped) {
			r = forward(f, v, caps, &p->of, 2 * p->accelerators, p->hosts);
			sum += square(fmax(0, log(r.samples_per_s / p->samples_per_s)) / CAPPED);
		}
	}
	return sum;
}

static double furthest(const struct point_fit *f, const double *v, size_t *which)
{
	const struct caps caps = caps_of(v);
	double most = 0;

	for (size_t i = 0; i < f->points; i++) {
		const struct point *p = &f->point[i];
		struct fit_result r = forward(f, v, caps, &p->of, p->accelerators, p->hosts);
		double away = fabs(log(r.samples_per_s / p->samples_per_s));

		if (!isnan(p->au))
			away = fmax(away, fabs(log(r.au / p->au)));
		if (away > most) {
			most = away;
			*which = i;
		}
	}
	return most;
}

/* ---- what is possible: each parameter from a number between 0 and 1 ---- */

struct room {
	double rank[2], host[2],
		store[2];  /* samples/s of the plan: the least and the most that caps are */
	double size_ratio; /* of the point whose samples differ most from the plan's; 1: none */
};

/* Of a logistic distribution with a standard deviation of `sigma`, the quantile. */
static double spread(double u, double sigma)
{
	return sigma * sqrt(3) / M_PI * log(u / (1 - u));
}

static void parameters(const struct point_fit *f, const struct room *room, const double *u,
		       double *v)
{
	double x;

	v[FIT_SHAPE] = FIT_SHAPE_MAX * u[FIT_SHAPE];
	v[FIT_RARITY] = pow(FIT_RARE, u[FIT_RARITY]);
	v[FIT_ALONE] = square(square(square(u[FIT_ALONE])));
	v[FIT_WAIT] = 3 * square(square(u[FIT_WAIT]));
	/* published: 0.15 to 2.2 points in the median of a workload, up to 15 */
	v[FIT_GAP] = GAP * exp(spread(u[FIT_GAP], 1.3));
	v[FIT_MORE] = MORE * exp(spread(u[FIT_MORE], 1));
	v[FIT_RANK] = room->rank[0] * pow(room->rank[1] / room->rank[0], u[FIT_RANK]);
	v[FIT_HOST] = room->host[0] * pow(room->host[1] / room->host[0], u[FIT_HOST]);
	v[FIT_STORE] = room->store[0] * pow(room->store[1] / room->store[0], u[FIT_STORE]);
	/* a cost that goes with bytes^x, x from 0 to 1: between so much a sample and so much a
	 * byte, evenly on a logarithmic scale, and a tenth at each end */
	x = f->in_bytes ? 1 : fmin(1, fmax(0, 1.25 * u[FIT_SIZE] - 0.125));
	v[FIT_SIZE] = fabs(log(room->size_ratio)) < 0.01
			      ? x
			      : (pow(room->size_ratio, x) - 1) / (room->size_ratio - 1);
}

/* ---- the walk ---- */

struct walk {
	uint64_t key, next;
};

static double uniform(struct walk *w)
{
	return ((double)(rng_word(w->key, w->next++) >> 11) + 0.5) * 0x1p-53;
}

static double normal(struct walk *w)
{
	double r = sqrt(-2 * log(uniform(w)));

	return r * cos(2 * M_PI * uniform(w));
}

/* Mirrored at both ends. */
static double reflected(double u)
{
	u = fabs(fmod(u, 2));
	u = u > 1 ? 2 - u : u;
	return fmin(fmax(u, 1e-9), 1 - 1e-9);
}

static void propose(struct walk *w, const double *u, double *to)
{
	static const double steps[] = {0.3, 0.1, 0.03, 0.01, 0.003, 0.001};
	double step = steps[(int)(uniform(w) * 6)];
	int only = uniform(w) < 0.5 ? (int)(uniform(w) * FIT_PARAMS) : -1;
	bool anew = uniform(w) < 0.2;

	for (int k = 0; k < FIT_PARAMS; k++) {
		to[k] = u[k];
		if (only >= 0 && k != only)
			continue;
		if (only < 0 && uniform(w) < 0.5)
			continue;
		to[k] = anew && only >= 0 ? uniform(w) : reflected(u[k] + step * normal(w));
	}
}

/* The best of many tries. */
static double begin_walk(const struct point_fit *f, const struct room *room, struct walk *w,
			 double *u)
{
	double best = INFINITY, v[FIT_PARAMS], try[FIT_PARAMS];

	for (int i = 0; i < STARTS; i++) {
		double now;

		for (int k = 0; k < FIT_PARAMS; k++)
			try[k] = uniform(w);
		parameters(f, room, try, v);
		now = misfit(f, v);
		if (now < best) {
			best = now;
			memcpy(u, try, sizeof(try));
		}
	}
	return best;
}

struct chain {
	double best;
	double best_v[FIT_PARAMS];
	size_t first; /* its draws begin here */
};

static void keep(struct point_fit *f, struct walk *w, const double *v)
{
	struct fit_draw *d = &f->draw[f->draws++];

	memcpy(d->v, v, sizeof(d->v));
	for (int k = 0; k < FIT_OTHERS; k++)
		d->other[k] = normal(w);
	/* Student's, with three degrees of freedom */
	d->other[0] /= sqrt((square(normal(w)) + square(normal(w)) + square(normal(w))) / 3);
}

static void walk_chain(struct point_fit *f, const struct room *room, uint64_t number,
		       struct chain *c)
{
	struct walk w = {.key = rng_key(20, number, 0)};
	double u[FIT_PARAMS], to[FIT_PARAMS], v[FIT_PARAMS], v_to[FIT_PARAMS];
	double now = begin_walk(f, room, &w, u);

	c->best = INFINITY;
	c->first = f->draws;
	parameters(f, room, u, v);
	for (int i = 0; i < STEPS; i++) {
		/* hot at first, so that it does not stay in a corner */
		double heat = i < BURN ? 1 + 30 * square(1 - (double)i / BURN) : 1, then;

		propose(&w, u, to);
		parameters(f, room, to, v_to);
		then = misfit(f, v_to);
		if (then <= now || log(uniform(&w)) < (now - then) / 2 / heat) {
			now = then;
			memcpy(u, to, sizeof(u));
			memcpy(v, v_to, sizeof(v));
		}
		if (now < c->best) {
			c->best = now;
			memcpy(c->best_v, v, sizeof(v));
		}
		if (i >= BURN && i % EACH == 0)
			keep(f, &w, v);
	}
}

/* Chains that found no set as good as the best are left out: they were caught. */
static void drop_caught(struct point_fit *f, const struct chain *c, double best)
{
	size_t kept = 0, each = f->draws / CHAINS;

	for (int i = 0; i < CHAINS; i++) {
		if (c[i].best > best + 12)
			continue;
		memmove(&f->draw[kept], &f->draw[c[i].first], each * sizeof(*f->draw));
		kept += each;
	}
	f->draws = kept;
}

/* The largest rates measured, in samples/s of the plan, by one set. */
static struct caps floor_of(const struct point_fit *f, const double *v)
{
	struct caps floor = {0, 0, 0};

	for (size_t i = 0; i < f->points; i++) {
		const struct point *p = &f->point[i];
		double rate = p->samples_per_s * cost(f, v, &p->of);

		floor.rank = fmax(floor.rank, rate / p->accelerators);
		floor.host = fmax(floor.host, rate / p->hosts);
		floor.store = fmax(floor.store, f->grows ? rate / p->hosts : rate);
	}
	return floor;
}

/* Whether the points say where the caps end: of a cap of which only the low end is known, most sets
 * have one far above what was measured. */
static void find_seen(struct point_fit *f)
{
	size_t rank = 0, host = 0, store = 0;

	for (size_t i = 0; i < f->draws; i++) {
		const struct caps caps = caps_of(f->draw[i].v);
		struct caps floor = floor_of(f, f->draw[i].v);

		rank += caps.rank > FAR * floor.rank;
		host += caps.host > FAR * floor.host;
		store += caps.store > FAR * floor.store;
	}
	f->rank_seen = rank * 20 < f->draws;
	f->host_seen = host * 20 < f->draws;
	f->store_seen = store * 20 < f->draws;
}

/* A sample costs something between as much as one of the plan, and its bytes. */
static void widen(double room[2], double rate, double ratio)
{
	room[0] = fmax(room[0], 0.2 * rate * fmin(1, ratio));
	room[1] = fmax(room[1], CAP_RANGE * rate * fmax(1, ratio));
}

static struct room room_of(const struct point_fit *f)
{
	struct room room = {.size_ratio = 1};

	for (size_t i = 0; i < f->points; i++) {
		const struct point *p = &f->point[i];
		double ratio = p->of.sample_bytes / f->plan.sample_bytes;
		double rate = p->samples_per_s;

		if (fabs(log(ratio)) > fabs(log(room.size_ratio)))
			room.size_ratio = ratio;
		widen(room.rank, rate / p->accelerators, ratio);
		widen(room.host, rate / p->hosts, ratio);
		widen(room.store, f->grows ? rate / p->hosts : rate, ratio);
	}
	return room;
}

/* Whether a point shows the end of what it gets, beyond that it is the largest that passes. */
static bool ends(const struct point_fit *f, const struct point *p)
{
	double target = target_of(f, p) > 0 ? target_of(f, p) : 0.9;

	return p->capped || (isnan(p->au) ? point_share(p) : p->au) < target - FAILING;
}

static double need_of(const struct point *p)
{
	return p->accelerators * duty_need(&p->of);
}

static void find_scope(struct point_fit *f)
{
	bool same_accelerator = false, same_size = false;

	f->smallest = INFINITY;
	f->one_host_count = f->one_size = true;
	for (size_t i = 0; i < f->points; i++) {
		const struct point *p = &f->point[i];

		f->smallest = fmin(f->smallest, p->accelerators);
		f->largest = fmax(f->largest, p->accelerators);
		f->least_need = i ? fmin(f->least_need, need_of(p)) : need_of(p);
		f->most_need = fmax(f->most_need, need_of(p));
		f->hosts_least = i ? fmin(f->hosts_least, p->hosts) : p->hosts;
		f->hosts_most = fmax(f->hosts_most, p->hosts);
		f->a_host_most = fmax(f->a_host_most, p->accelerators / p->hosts);
		f->one_host_count = f->one_host_count && p->hosts == f->point[0].hosts;
		f->in_bytes = f->in_bytes || p->is_result;
		f->ended = f->ended || ends(f, p);
		f->one_size = f->one_size &&
			      fabs(log(p->of.sample_bytes / f->point[0].of.sample_bytes)) < 0.05;
		bool size = fabs(log(p->of.sample_bytes / f->plan.sample_bytes)) < 0.05;
		bool pace = fabs(log(duty_need(&p->of) / duty_need(&f->plan))) < 0.05;

		same_size = same_size || size;
		same_accelerator = same_accelerator || pace;
		f->same_pace = f->same_pace || (size && pace);
	}
	/* with another size of samples, that accelerators differ, too, is no news */
	f->other_size = !same_size;
	f->other_accelerator = same_size && !same_accelerator;
}

int point_fit_find(struct point_fit *f, const struct point *p, size_t n, const struct duty *plan,
		   bool grows, struct err *e)
{
	struct chain chain[CHAINS];
	struct room room;
	int best = 0;

	assert(n > 0);
	*f = (struct point_fit){.point = p, .points = n, .plan = *plan, .grows = grows};
	f->table = table_make();
	f->draw = xcalloc((size_t)CHAINS * (STEPS / EACH), sizeof(*f->draw));
	find_scope(f);
	room = room_of(f);
	for (int i = 0; i < CHAINS; i++) {
		walk_chain(f, &room, (uint64_t)i, &chain[i]);
		if (chain[i].best < chain[best].best)
			best = i;
	}
	drop_caught(f, chain, chain[best].best);
	find_seen(f);
	f->worst = furthest(f, chain[best].best_v, &f->worst_point);
	if (f->worst > WORST)
		return err_set(e, ERR_USAGE,
			       "the points cannot be of one system: %s is %.0f %% away from what "
			       "the others allow (more accelerators do not take fewer samples/s, "
			       "and the same ones take as many)",
			       p[f->worst_point].from, 100 * expm1(f->worst));
	return 0;
}

void point_fit_release(struct point_fit *f)
{
	free(f->draw);
	free(f->table);
	*f = (struct point_fit){0};
}

/* ---- what follows ---- */

/* Of the computation, what waits may take with the target of a workload. */
static double allowed(double target)
{
	return 1 / (target > 0 && target < 0.99 ? target : 0.9) - 1;
}

/* What the plan loses, of the computation, where the points lose `lost` and a system of that size
 * `sized`. More accelerators lose no less by it, and more hosts no more. */
static double like_sized(const struct point_fit *f, double lost, double sized, double n,
			 double hosts)
{
	double like = f->other_accelerator ? LIKE_PACE : 1, need = n * duty_need(&f->plan);

	lost = fmax(1e-4, lost);
	if (lost > sized && hosts > f->hosts_most)
		like *= LIKE_HOSTS;
	like /= 1 + fmax(0, log(lost < sized ? need / f->most_need : f->least_need / need));
	/* several points show how much they differ */
	like = f->other_size ? LIKE_OTHER : pow(like, pow((double)f->points, -4));
	return pow(lost, like) * pow(sized, 1 - like);
}

double point_fit_tuned(const struct point_fit *f, bool by_rate, double n, double hosts)
{
	const struct point *p = &f->point[0];
	double lost = 1 / (by_rate ? fmin(1, point_share(p)) : p->au) - 1;
	double allows = allowed(f->plan.target);

	lost *= allows / allowed(p->of.target);
	return 1 /
	       (1 + like_sized(f, lost, (by_rate ? SIZED_RATE : SIZED_WAIT) * allows, n, hosts));
}

/* What no point tells that is not of the same accelerators, size and number: of caps, and of waits.
 */
static double unlike(const struct point_fit *f, const struct fit_draw *d, double *v, double n,
		     double hosts)
{
	bool other = f->other_accelerator || f->other_size;
	double scatter = f->other_size          ? SCATTER_OTHER
			 : f->other_accelerator ? SCATTER_PACE
						: SCATTER_SAME / (double)(f->points * f->points);
	double allows = allowed(f->plan.target);
	const struct point *p = &f->point[0];

	/* all that the points lose, where their caps are not the plan's */
	if ((other || f->grows) && !f->ended)
		v[FIT_WAIT] =
			1 / forward(f, v, caps_of(v), &p->of, p->accelerators, p->hosts).au - 1;
	/* points that fail show what their system is, and it is not sized to its target */
	if (!f->ended) {
		v[FIT_WAIT] = like_sized(f, v[FIT_WAIT] * allows / allowed(p->of.target),
					 SIZED_WAIT * allows, n, hosts);
		v[FIT_GAP] = like_sized(f, v[FIT_GAP], GAP, n, hosts);
	}
	v[FIT_WAIT] *= exp(scatter * d->other[1]);
	v[FIT_GAP] *= exp(scatter * d->other[4]);
	return other ? exp(OTHER * d->other[0]) : 1;
}

static double open_cap(const struct point_fit *f, double cap, double floor, double other)
{
	/* that the points pass says nothing of another accelerator, or another size */
	if (cap > FAR * floor || ((f->other_accelerator || f->other_size) && !f->ended))
		return INFINITY;
	return cap * other;
}

/* By one set. A cap that explains the points stays where it is; of one that lies far above them
 * nothing is known but that it is not below: it is left out, or, with FIT_AT_LEAST, nobody gets
 * more than was measured. In both, no set gives more to fewer hosts, or less to more. */
static struct fit_result at(const struct point_fit *f, const struct fit_draw *d, double n,
			    double hosts, enum fit_unseen unseen, bool noise)
{
	struct caps caps = caps_of(d->v), floor = floor_of(f, d->v);
	double v[FIT_PARAMS], other, most = INFINITY;
	struct fit_result r;

	memcpy(v, d->v, sizeof(v));
	other = unlike(f, d, v, n, hosts);
	/* what AU leaves out stays as long as it was */
	if (unseen == FIT_AT_LEAST && !f->other_size)
		v[FIT_GAP] = d->v[FIT_GAP];
	if (noise)
		v[FIT_WAIT] *= exp(WAIT_ERROR * d->other[3]);
	caps.rank = open_cap(f, caps.rank, floor.rank, other);
	caps.host = open_cap(f, caps.host, floor.host, other);
	caps.store = open_cap(f, caps.store, floor.store, other);
	if (!f->ended && !f->other_accelerator && !f->other_size &&
	    (f->grows || (hosts > f->hosts_most && !f->store_seen))) {
		caps.host *= TUNED;
		caps.store *= TUNED;
	}
	/* whether it was the storage or the hosts is not known, and the hosts are more */
	if (unseen == FIT_OPEN && !f->store_seen && !f->grows && hosts > f->hosts_most) {
		caps.host = fmin(caps.host, caps.store / f->hosts_most);
		caps.store = INFINITY;
	}
	r = forward(f, v, caps, &f->plan, n, hosts);
	if (unseen == FIT_OPEN)
		return r;
	if (!f->rank_seen && !f->same_pace)
		most = floor.rank * n;
	if (!f->host_seen)
		most = fmin(most, floor.host * hosts);
	if (!f->store_seen)
		most = fmin(most, floor.store * (f->grows ? hosts : 1));
	most *= fmin(1, other);
	if (r.samples_per_s > most) {
		double all = n * f->plan.batch / most;

		r.au = fmin(r.au, f->plan.step_s / (all - v[FIT_GAP] * f->plan.step_s));
		r.share = f->plan.step_s / all;
		r.waits = 0;
		r.samples_per_s = most;
	}
	return r;
}

struct fit_result point_fit_at(const struct point_fit *f, size_t i, double n, double hosts,
			       enum fit_unseen unseen, bool noise)
{
	const struct fit_draw *d = &f->draw[i];
	struct fit_result r = at(f, d, n, hosts, unseen, noise);
	double by = noise ? exp(RATE_ERROR * d->other[2]) : 1;

	r.au = fmin(1, r.au * by);
	r.share = fmin(1, r.share * by);
	r.samples_per_s = r.share * n * duty_need(&f->plan);
	return r;
}

double point_fit_most(const struct point_fit *f, size_t i, double hosts, double target, double most,
		      enum fit_unseen unseen, double part)
{
	const struct fit_draw *d = &f->draw[i];
	/* what is certain need not be the same on each host */
	double each = unseen == FIT_OPEN ? hosts : 1;
	double low = 0, high = floor(most * hosts / each) + 1;

	/* AU falls with every accelerator more */
	while (high - low > 1) {
		double n = floor((low + high) / 2);
		double au = at(f, d, n * each, hosts, unseen, false).au;

		if (part > 0)
			au += part * (point_fit_tuned(f, false, n * each, hosts) - au);
		if (au >= target)
			low = n;
		else
			high = n;
	}
	return low * each;
}
