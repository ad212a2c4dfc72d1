#include "plan/sizing.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "predict/fleet.h"

#define SEED 1
#define POOLED_MOST 8

/* The fleet with another workload, in bytes: requests are as large, and as long for each byte, as
 * in the run, and files are opened for each sample. */
static void carry(struct fleet *f, const struct duty *from, const struct duty *to)
{
	double samples = to->batch / from->batch;
	double bytes = samples * to->sample_bytes / from->sample_bytes;

	f->samples *= samples;
	f->bytes *= bytes;
	f->requests *= bytes;
	f->opens *= samples;
	f->delay_s *= bytes;
	f->cpu_s *= bytes;
	drawn_scale(&f->compute, to->step_s / from->step_s);
}

static struct point carried(const struct point *from, const struct duty *to)
{
	struct point p = *from;
	double pace =
		duty_need(to) * to->sample_bytes / duty_need(&from->of) / from->of.sample_bytes;

	p.samples_per_s *= from->of.sample_bytes / to->sample_bytes;
	p.of = *to;
	/* an accelerator that needs other bytes/s is another one */
	p.au = fabs(log(pace)) < 0.05 ? p.au : NAN;
	return p;
}

/* Of the plan's workload; of another (`other`), where there is none of that. */
static const struct sizing_run *choose(const struct sizing_runs *a, double n, bool other)
{
	const struct sizing_run *best = NULL;

	for (size_t i = 0; i < a->runs; i++) {
		const struct sizing_run *r = &a->run[i];
		bool fits = r->point->accelerators <= n;

		if (duty_same(&r->point->of, a->plan) == other || !r->basis.known)
			continue;
		if (!best || (fits && best->point->accelerators > n) ||
		    (fits && r->point->accelerators > best->point->accelerators) ||
		    (!fits && best->point->accelerators > n &&
		     r->point->accelerators < best->point->accelerators))
			best = r;
	}
	return best;
}

static void note_once(const struct sizing_runs *a, char *text)
{
	for (size_t i = 0; i < a->notes->n; i++)
		if (strcmp(a->notes->v[i], text) == 0) {
			free(text);
			return;
		}
	str_list_add(a->notes, text);
}

/* Why none of the runs can be simulated. */
static void note_unknown(const struct sizing_runs *a)
{
	for (size_t i = 0; i < a->runs; i++)
		if (!a->run[i].basis.known) {
			note_once(a, xasprintf("no simulation from '%s', so the plan goes by its "
					       "rate and AU alone: %s",
					       a->run[i].point->from, a->run[i].basis.why));
			return;
		}
}

static void say_next(struct sizing_row *r, const struct point *p, const struct fleet_prediction *f)
{
	double more = fmin(r->accelerators, fmax(2 * p->accelerators,
						 ceil(sqrt(p->accelerators * r->accelerators))));
	double each = ceil(p->accelerators / p->hosts);

	if (r->hosts > p->hosts)
		snprintf(
			r->next, sizeof(r->next),
			"a run on %.0f hosts with %.4g accelerator%s on each: it shows whether the "
			"hosts or the storage limit",
			2 * p->hosts, each, each == 1 ? "" : "s");
	else if (f->at_most)
		snprintf(r->next, sizeof(r->next),
			 "a run with %.0f accelerators, or with more readers: it shows how the "
			 "storage serves more requests at once",
			 more);
	else if (more <= p->accelerators)
		snprintf(r->next, sizeof(r->next), "a run with more steps");
	else
		snprintf(r->next, sizeof(r->next),
			 "a run with more steps, or with %.0f accelerators", more);
}

static void fill(struct sizing_row *r, const struct point *p, const struct fleet_prediction *f)
{
	double measured = fmin(1, p->samples_per_s / r->full_samples);

	r->au = (struct sizing_range){f->au_low / 100, f->best.au / 100, f->au_high / 100};
	r->share = (struct sizing_range){f->au_rate_low / 100, f->best.au_rate / 100,
					 f->au_rate_high / 100};
	/* a twentieth for what runs differ by; that more accelerators do not take fewer samples/s
	 * is what every cap says */
	r->share.low = fmax(r->share.low, fmin(r->share.mid, 0.95 * measured));
	r->bounded = !f->at_most;
	/* the run itself had that AU, or more, with no fewer accelerators on no more hosts */
	if (isfinite(p->au) && r->accelerators <= p->accelerators && r->hosts >= p->hosts)
		r->au.low = fmax(r->au.low, fmin(r->au.mid, 0.95 * p->au));
	if (f->at_most) {
		/* no more than was measured is sure */
		r->au.low = fmin(r->au.low, measured);
		r->share.low = fmin(r->share.low, measured);
	}
	/* AU leaves out the start, in which accelerators wait */
	r->au.low = fmax(r->au.low, fmin(r->au.mid, r->share.low));
	r->samples_per_s = (struct sizing_range){r->share.low * r->full_samples,
						 r->share.mid * r->full_samples,
						 r->share.high * r->full_samples};
	snprintf(r->limit, sizeof(r->limit), "%s", fleet_limit_names[f->best.limit]);
	snprintf(r->assumption, sizeof(r->assumption), "%s",
		 f->assumption[0] ? f->assumption
				  : "none: what the run measured of its storage and loader");
	say_next(r, p, f);
}

/* Repetitions of a run: those that look like it. */
static bool repeats(const struct sizing_run *run, const struct sizing_run *other)
{
	return other->basis.known && other->point->accelerators == run->point->accelerators &&
	       other->point->hosts == run->point->hosts &&
	       duty_same(&other->point->of, &run->point->of);
}

struct pooled {
	double mid, low, high; /* sums: of figures, of squares of the distances to them */
	double square;
};

static void pool_add(struct pooled *p, double low, double mid, double high)
{
	p->mid += mid;
	p->square += mid * mid;
	p->low += (mid - low) * (mid - low);
	p->high += (high - mid) * (high - mid);
}

/* The variance of the mean: the model's own error, averaged, as it is common to all repetitions,
 * plus the variance between them. */
static void pool_end(const struct pooled *p, double n, double *low, double *mid, double *high)
{
	double between = n > 1 ? fmax(0, (p->square - p->mid * p->mid / n) / (n - 1)) : 0;

	*mid = p->mid / n;
	*low = fmax(0, *mid - sqrt(p->low / n + between));
	*high = fmin(100, *mid + sqrt(p->high / n + between));
}

static struct fleet_prediction fleet_of(const struct sizing_runs *a, const struct sizing_run *run,
					const struct sizing_row *row)
{
	const struct duty *from = &run->point->of;
	uint32_t ranks = (uint32_t)row->accelerators, hosts = (uint32_t)row->hosts;
	struct fleet_prediction f;
	struct basis *b;

	if (duty_same(from, a->plan))
		return fleet_predict(&run->basis, ranks, hosts, 0, SEED);
	b = xcalloc(1, sizeof(*b));
	*b = run->basis;
	for (uint32_t i = 0; i < b->count; i++)
		carry(&b->one[i], from, a->plan);
	f = fleet_predict(b, ranks, hosts, 0, SEED);
	free(b);
	return f;
}

/* The mean of what repetitions of the run say; *like: the mean of what they measured. */
static struct fleet_prediction predict(const struct sizing_runs *a, const struct sizing_run *run,
				       const struct sizing_row *row, struct point *like)
{
	struct fleet_prediction all = {.known = false};
	struct pooled au = {0}, rate = {0};
	double n = 0, samples = 0, measured = 0;

	*like = *run->point;
	for (size_t i = 0; i < a->runs && n < POOLED_MOST; i++) {
		const struct sizing_run *one = &a->run[i];
		struct fleet_prediction f;

		if (!repeats(run, one))
			continue;
		f = fleet_of(a, one, row);
		if (!f.known && all.known)
			continue;
		if (!all.known)
			all = f;
		if (!f.known)
			continue;
		all.at_most = all.at_most || f.at_most;
		pool_add(&au, f.au_low, f.best.au, f.au_high);
		pool_add(&rate, f.au_rate_low, f.best.au_rate, f.au_rate_high);
		samples += one->point->samples_per_s;
		measured += one->point->au;
		n++;
	}
	if (n <= 1)
		return all;
	pool_end(&au, n, &all.au_low, &all.best.au, &all.au_high);
	pool_end(&rate, n, &all.au_rate_low, &all.best.au_rate, &all.au_rate_high);
	like->samples_per_s = samples / n;
	like->au = measured / n;
	note_once(a, xasprintf("the mean of %.0f runs of %.0f accelerators", n,
			       run->point->accelerators));
	return all;
}

int sizing_by_run(void *arg, struct sizing_row *row, struct err *e)
{
	const struct sizing_runs *a = arg;
	const struct sizing_run *same = choose(a, row->accelerators, false);
	const struct sizing_run *run = same ? same : choose(a, row->accelerators, true);
	struct fleet_prediction f;
	struct point like;

	if (!run) {
		note_unknown(a);
		return 0;
	}
	if (row->accelerators > SIZING_SIMULATED_FAR * run->point->accelerators)
		return err_set(e, ERR_DATA,
			       "%.0f accelerators are %.0f times the %.0f of '%s': a simulation "
			       "from it is trusted up to %d times (%.0f); measure %.0f or more",
			       row->accelerators, row->accelerators / run->point->accelerators,
			       run->point->accelerators, run->point->from, SIZING_SIMULATED_FAR,
			       SIZING_SIMULATED_FAR * run->point->accelerators,
			       ceil(row->accelerators / SIZING_SIMULATED_FAR));
	f = predict(a, run, row, &like);
	if (!f.known && row->accelerators > SIZING_FAR * run->point->accelerators)
		return err_set(e, ERR_DATA, "%.0f accelerators from the %.0f of '%s': %s",
			       row->accelerators, run->point->accelerators, run->point->from,
			       f.why);
	if (!f.known) {
		note_once(a, xasprintf("no simulation of %.0f accelerators from '%s', so that plan "
				       "goes by its rate and AU alone: %s",
				       row->accelerators, run->point->from, f.why));
		return 0;
	}
	if (!same) {
		like = carried(&like, a->plan);
		note_once(a, xasprintf("'%s' measured '%s': what '%s' gets follows from bytes, "
				       "with requests as large as there",
				       run->point->from, run->point->of.name, a->plan->name));
	}
	fill(row, &like, &f);
	return 1;
}
