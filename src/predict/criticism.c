/* Laws against what was measured. */
#include "predict/criticism.h"

#include <math.h>

#define SETTLES 6
static const double MISFIT = 5;          /* points: an explanation that is further off is none */
static const double SETTLED = 0.02;      /* of the requests under way: no longer any change */
static const double COUNTS = 0.1;        /* of a batch's time: requests that matter */
static const double REFUTED = 0.25;      /* of the time of a request: an explanation is wrong, */
static const double REFUTED_BURST = 0.5; /* and where requests are let through many at once */
static const double VARIES = 2;          /* standard errors of the mean time of a batch */
static const double NO_VARIATION = 0.02; /* of it */
static const double MORE = 1.1;          /* times the requests that were under way */
static const double UNKNOWN = 100;       /* points */
static const double MISSED = 0.25;       /* of what a law is off by: the correction may be off, */
static const double MISSED_PROBED = 0.1; /* and where a probe measured it */
static const double AT_STORE = 0.1;      /* of a batch's time, at least */

double au_corrected(double measured, double reproduced, double au)
{
	double left = reproduced < 100 ? (100 - au) / (100 - reproduced) : 0;

	left = left > 1 ? 1 : left;
	au += (measured - reproduced) * left;
	return au > 100 ? 100 : au < 0 ? 0 : au;
}

double variant_corrected(const struct outlook *out, const struct variant *v, double au)
{
	return au_corrected(out->measured_au, v->reproduced.au, au);
}

double model_batches(const struct model *m, double au)
{
	double compute = 0;

	for (uint32_t i = 0; i < m->computes; i++)
		compute += m->compute[i] / m->computes;
	return compute > 0 ? au / 100 / compute * m->ranks : 0;
}

/* The store takes so many times as long: for requests for bytes, and for opens. */
static void slow_store(const struct variant *v, double reads, double opens, struct model *m)
{
	double samples = v->m.samples > 0 ? m->samples / v->m.samples : 1;

	m->delay_s += samples * (v->latency * (reads - 1) + v->open_latency * (opens - 1));
	/* of what a change has left of them */
	m->delay_s = fmax(0, m->delay_s);
	m->bytes *= reads;
	model_queue_slow(&m->read, reads);
	model_queue_slow(&m->open, opens);
}

/* The time of all readers in batches, in s of each s. */
static double under_way(const struct model *m, const struct modeled *made)
{
	return model_batches(m, made->au) * made->service_s * fmax(1, m->runs);
}

/* What a law is off by where a change leads, for reads and for opens. */
struct missed {
	struct misfit_range reads, opens;
};

static double readers_of(const struct model *m)
{
	return (double)m->ranks * (m->workers ? m->workers : 1);
}

/* Readers at the store that one of them meets there, itself included, when on average so many of
 * all are under way. */
static double met(const struct variants *v, const struct model *m, double under_way)
{
	const struct costs *c = &v->costs;
	double part = (c->open + c->close + c->reads + c->later) / c->service;
	double others = (readers_of(m) - 1) / readers_of(m);

	return 1 + under_way * fmin(1, fmax(AT_STORE, part)) * others;
}

/* In `m`, where `more` times as many readers are under way as the `now` of the run. */
static struct missed missed_at(const struct variants *v, const struct variant *one,
			       const struct model *m, double now, double more)
{
	double reads = v->costs.law.reads.concurrency, opens = v->costs.law.opens.concurrency;

	if (one->curve.count) {
		struct misfit_range r = probe_curve_from_to(&one->curve, met(v, &one->m, now),
							    met(v, m, now * more));

		return (struct missed){r, r};
	}
	return (struct missed){
		misfit_from_to(&one->rates.misfit, reads, fmax(1, reads * more)),
		misfit_from_to(&one->opens.misfit, opens, fmax(1, opens * more)),
	};
}

static double slowed(const struct outlook *out, const struct variant *one, const struct model *m,
		     double reads, double opens, struct modeled *made)
{
	struct model slow = *m;

	slow_store(one, reads, opens, &slow);
	*made = model_run(&slow);
	return variant_corrected(out, one, made->au);
}

static bool is_one(const struct missed *f)
{
	return f->reads.low >= 1 && f->reads.high <= 1 && f->opens.low >= 1 && f->opens.high <= 1;
}

/* A slower store has more requests under way, which may make it slower: where that ends, when
 * `more` times as many as in the run are under way first. */
static double settle(const struct outlook *out, const struct variants *v, const struct variant *one,
		     const struct model *m, double now, double more, struct missed *f)
{
	double right = 0;

	for (int i = 0; i < SETTLES; i++) {
		struct modeled made;
		double next;

		*f = missed_at(v, one, m, now, more);
		right = slowed(out, one, m, f->reads.factor, f->opens.factor, &made);
		next = under_way(m, &made) / now;
		if (fabs(next - more) <= SETTLED * more)
			break;
		more = next;
	}
	return right;
}

/* 1, and more where a change leads to more requests under way than were ever seen: twice as much
 * again for each doubling. */
static double times_beyond(const struct variants *v, double more)
{
	const struct read_law *law = &v->costs.law.reads;
	double times = law->most > 0 ? law->concurrency * more / law->most : 1;

	return 1 + 2 * log2(fmax(1, times));
}

/* Where requests get less together the more there are, how little more than were ever under way
 * would get is not known. */
static bool unseen(const struct variants *v, const struct variant *one, const struct model *m)
{
	const struct costs *c = &v->costs;
	const struct read_law *law = &c->law.reads;

	return one->curve.count == 0 && law->count > 0 && c->reads > COUNTS * c->service &&
	       law->falls < 1 && readers_of(m) > MORE * law->most &&
	       readers_of(m) > readers_of(&one->m);
}

double criticism_put_right(const struct outlook *out, const struct variants *v,
			   const struct variant *one, const struct model *m, double au,
			   const struct modeled *made, double *off)
{
	double now = under_way(&one->m, &one->reproduced), most, least, right, few, missed, wide;
	struct missed at_least, at_most;
	struct modeled end;

	if (!(now > 0))
		return au;
	least = under_way(m, made) / now;
	most = fmax(least, readers_of(m) / now);
	if (unseen(v, one, m))
		*off = UNKNOWN;
	at_least = missed_at(v, one, m, now, least);
	at_most = missed_at(v, one, m, now, most);
	if (is_one(&at_least) && is_one(&at_most))
		return au;
	/* a loader begins with all its workers reading */
	right = settle(out, v, one, m, now, most, &at_most);
	few = settle(out, v, one, m, now, least, &at_least);
	missed = one->curve.count ? MISSED_PROBED : MISSED * times_beyond(v, most);
	wide = fabs(right - few) + (one->tabled ? 0 : missed * fabs(right - au));
	wide += fmax(
		fabs(right - slowed(out, one, m, at_most.reads.high, at_most.opens.high, &end)),
		fabs(right - slowed(out, one, m, at_least.reads.low, at_least.opens.low, &end)));
	*off = fmax(*off, wide);
	return right;
}

static bool law_refuted(const struct read_rates *r, const struct read_law *law,
			const struct probe *probe, bool tabled)
{
	double by = r->burst ? REFUTED_BURST : REFUTED;

	/* times that differ whoever is there, as of files or threads, are drawn as they were */
	return (!r->burst && !(probe && probe_scales(probe)) && misfit_scatters(&r->misfit)) ||
	       (!tabled && misfit_refutes(&r->misfit, law->concurrency, by));
}

/* Whether it still says what was measured once it is put right. */
static bool meets_itself(const struct outlook *out, const struct variants *v,
			 const struct variant *one)
{
	double off = 0;

	return fabs(criticism_put_right(out, v, one, &one->m, out->measured_au, &one->reproduced,
					&off) -
		    out->measured_au) <= MISFIT;
}

double criticism_varies(const struct outlook *out, const struct variants *v,
			const struct variant *one, const struct model *m, double au)
{
	double by = VARIES * v->service_sure, most = 0;
	struct modeled made;

	if (by < NO_VARIATION)
		return 0;
	by = fmin(by, 0.5);
	most = fabs(slowed(out, one, m, 1 + by, 1 + by, &made) - au);
	return fmax(most, fabs(slowed(out, one, m, 1 - by, 1 - by, &made) - au));
}

bool criticism_refutes(const struct outlook *out, const struct variants *v,
		       const struct variant *one)
{
	const struct costs *c = &v->costs;

	return (c->reads > COUNTS * c->service &&
		law_refuted(&one->rates, &c->law.reads, c->law.probe, one->tabled)) ||
	       (c->open > COUNTS * c->service &&
		law_refuted(&one->opens, &c->law.opens, c->law.probe, one->tabled)) ||
	       !meets_itself(out, v, one);
}
