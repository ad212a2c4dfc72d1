/* Laws against what was measured. */
#include "predict/criticism.h"

#include <math.h>

#define SETTLES 6
static const double MISFIT = 5;          /* points: an explanation that is further off is none */
static const double SETTLED = 0.02;      /* of the requests under way: no longer any change */
static const double COUNTS = 0.1;        /* of a batch's time: requests that matter */
static const double REFUTED = 0.25;      /* of the time of a request: an explanation is wrong, */
static const double REFUTED_BURST = 0.5; /* and where requests are let through many at once */
static const double MISSED = 0.25;       /* of what a law is off by: the correction may be off */

double variant_corrected(const struct outlook *out, const struct variant *v, double au)
{
	double left = v->reproduced.au < 100 ? (100 - au) / (100 - v->reproduced.au) : 0;

	left = left > 1 ? 1 : left;
	au += (out->measured_au - v->reproduced.au) * left;
	return au > 100 ? 100 : au < 0 ? 0 : au;
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

static struct missed missed_at(const struct variants *v, const struct variant *one, double more)
{
	double reads = v->costs.law.reads.concurrency, opens = v->costs.law.opens.concurrency;

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

		*f = missed_at(v, one, more);
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

double criticism_put_right(const struct outlook *out, const struct variants *v,
			   const struct variant *one, const struct model *m, double au,
			   const struct modeled *made, double *off)
{
	double now = under_way(&one->m, &one->reproduced), most, least, right, few;
	struct missed at_least, at_most;
	struct modeled end;

	if (!(now > 0))
		return au;
	least = under_way(m, made) / now;
	most = fmax(least, (double)m->ranks * (m->workers ? m->workers : 1) / now);
	at_least = missed_at(v, one, least);
	at_most = missed_at(v, one, most);
	if (is_one(&at_least) && is_one(&at_most))
		return au;
	/* a loader begins with all its workers reading */
	right = settle(out, v, one, m, now, most, &at_most);
	few = settle(out, v, one, m, now, least, &at_least);
	*off = fabs(right - few) +
	       (one->tabled ? 0 : MISSED * times_beyond(v, most) * fabs(right - au));
	*off += fmax(
		fabs(right - slowed(out, one, m, at_most.reads.high, at_most.opens.high, &end)),
		fabs(right - slowed(out, one, m, at_least.reads.low, at_least.opens.low, &end)));
	return right;
}

static bool law_refuted(const struct read_rates *r, const struct read_law *law, bool tabled)
{
	double by = r->burst ? REFUTED_BURST : REFUTED;

	return (!r->burst && misfit_scatters(&r->misfit)) ||
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

bool criticism_refutes(const struct outlook *out, const struct variants *v,
		       const struct variant *one)
{
	const struct costs *c = &v->costs;

	return (c->reads > COUNTS * c->service &&
		law_refuted(&one->rates, &c->law.reads, one->tabled)) ||
	       (c->open > COUNTS * c->service &&
		law_refuted(&one->opens, &c->law.opens, one->tabled)) ||
	       !meets_itself(out, v, one);
}
