/* Comparing derived figures; what several topics derive. */
#include "readback/derivation.h"

#include <assert.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"

#define LISTED 3 /* differences that a finding gives in full */
/* Of sums of 15 digits: far above their rounding, far below any change worth making. */
static const double EQUAL_SHARE = 1e-9;
static const double EQUAL_LEAST = 1e-9;

/* ---- topics ---- */

static struct audit_topic *topic_of(const struct derive *d)
{
	return &d->audit->topic[d->topic];
}

struct derive derive_begin(struct audit *a, size_t i, const char *check, const char *name,
			   const char *what)
{
	struct audit_topic *t = audit_add_topic(a, i);

	t->name = name;
	t->what = what;
	return (struct derive){a, i, a->topics - 1, check};
}

void derive_unchecked(struct derive *d, const char *fmt, ...)
{
	struct audit_topic *t = topic_of(d);
	va_list ap;

	if (t->unchecked)
		return;
	va_start(ap, fmt);
	t->unchecked = xvasprintf(fmt, ap);
	va_end(ap);
}

void derive_by_digest(struct derive *d, const char *what)
{
	topic_of(d)->by_digest = what;
}

/* The place for the next difference; NULL when enough are listed. */
static struct finding *next_difference(struct derive *d)
{
	struct audit_topic *t = topic_of(d);
	struct finding *f;

	if (t->differ++ == 0) {
		f = audit_add(d->audit, d->record, d->check, AUDIT_FAIL);
		finding_advise(f, "Restore the files as the run left them, or repeat the run: "
				  "figures that contradict each other were not measured together.");
		t->finding = d->audit->findings;
		return f;
	}
	f = &d->audit->finding[t->finding - 1];
	if (t->differ > LISTED)
		return NULL;
	finding_say(f, " ");
	return f;
}

__attribute__((format(printf, 3, 0))) static const char *place(char *out, size_t size,
							       const char *fmt, va_list ap)
{
	vsnprintf(out, size, fmt, ap);
	return out;
}

__attribute__((format(printf, 6, 0))) static bool compare(struct derive *d, double stated,
							  double derived, double least,
							  const char *source, const char *fmt,
							  va_list ap)
{
	struct finding *f;
	char where[200];

	if (isnan(stated) || isnan(derived))
		return true;
	topic_of(d)->compared++;
	if (fabs(stated - derived) <= least)
		return true;
	f = next_difference(d);
	if (f)
		finding_say(f, "%s is %.10g, but %s gives %.10g.",
			    place(where, sizeof(where), fmt, ap), stated, source, derived);
	return false;
}

bool derive_equal(struct derive *d, double stated, double derived, const char *source,
		  const char *fmt, ...)
{
	va_list ap;
	bool same;

	va_start(ap, fmt);
	same = compare(d, stated, derived,
		       EQUAL_SHARE * fmax(fabs(stated), fabs(derived)) + EQUAL_LEAST, source, fmt,
		       ap);
	va_end(ap);
	return same;
}

bool derive_near(struct derive *d, double stated, double derived, double least, const char *source,
		 const char *fmt, ...)
{
	va_list ap;
	bool same;

	va_start(ap, fmt);
	same = compare(d, stated, derived, least, source, fmt, ap);
	va_end(ap);
	return same;
}

bool derive_at_most(struct derive *d, double stated, double bound, double least, const char *source,
		    const char *fmt, ...)
{
	struct finding *f;
	char where[200];
	va_list ap;

	if (isnan(stated) || isnan(bound))
		return true;
	topic_of(d)->compared++;
	if (stated <= bound + least)
		return true;
	f = next_difference(d);
	va_start(ap, fmt);
	if (f)
		finding_say(f, "%s is %.10g, but %s is only %.10g.",
			    place(where, sizeof(where), fmt, ap), stated, source, bound);
	va_end(ap);
	return false;
}

bool derive_text(struct derive *d, const char *stated, const char *derived, const char *source,
		 const char *fmt, ...)
{
	struct finding *f;
	char where[200];
	va_list ap;

	if (!stated || !derived)
		return true;
	topic_of(d)->compared++;
	if (strcmp(stated, derived) == 0)
		return true;
	f = next_difference(d);
	va_start(ap, fmt);
	if (f)
		finding_say(f, "%s is '%.80s', but %s has '%.80s'.",
			    place(where, sizeof(where), fmt, ap), stated, source, derived);
	va_end(ap);
	return false;
}

bool derive_holds(struct derive *d, bool holds, const char *fmt, ...)
{
	struct finding *f;
	char sentence[400];
	va_list ap;

	topic_of(d)->compared++;
	if (holds)
		return true;
	f = next_difference(d);
	va_start(ap, fmt);
	if (f)
		finding_say(f, "%s", place(sentence, sizeof(sentence), fmt, ap));
	va_end(ap);
	return false;
}

/* ---- what several topics derive ---- */

struct derive_stat derive_stat_of(const double *v, size_t n)
{
	struct derive_stat s = {.min = INFINITY, .max = -INFINITY};
	double sum = 0, squares = 0;

	for (size_t i = 0; i < n; i++) {
		if (!isfinite(v[i]))
			continue;
		s.n++;
		sum += v[i];
		s.min = fmin(s.min, v[i]);
		s.max = fmax(s.max, v[i]);
	}
	if (s.n == 0)
		return (struct derive_stat){0, NAN, NAN, NAN, NAN};
	s.mean = sum / (double)s.n;
	for (size_t i = 0; i < n; i++)
		squares += isfinite(v[i]) ? (v[i] - s.mean) * (v[i] - s.mean) : 0;
	s.stdev = sqrt(squares / (double)s.n);
	return s;
}

double derive_number(const json_t *o, const char *key)
{
	const json_t *v = json_object_get(o, key);

	return json_is_number(v) ? json_number_value(v) : NAN;
}

const char *derive_string(const json_t *o, const char *key)
{
	return json_string_value(json_object_get(o, key));
}

bool derive_has_null(const json_t *list)
{
	for (size_t i = 0; i < json_array_size(list); i++)
		if (json_is_null(json_array_get(list, i)))
			return true;
	return false;
}

bool derive_as_dlio(const struct run_record *r)
{
	const char *definition = figure_text(record_part(r, F_RUN_TRAINING), F_TRAINING_DEFINITION);

	return !r->ours || (r->has_workload && r->workload.compat.dlio) ||
	       (definition && strcmp(definition, "stoker") != 0);
}

size_t derive_epochs(const struct run_record *r)
{
	double stated = r->ours ? figure(record_part(r, F_RUN_TRAINING), F_TRAINING_EPOCHS_DONE)
				: derive_number(r->summary, "epochs");
	size_t least = SIZE_MAX;

	for (uint32_t k = 0; k < r->ranks; k++)
		if (r->rank[k].found && r->rank[k].epochs < least)
			least = r->rank[k].epochs;
	if (least == SIZE_MAX)
		return 0;
	return stated >= 0 && stated < (double)least ? (size_t)stated : least;
}

static bool derive_is_lost(const struct run_record *r, uint32_t rank)
{
	return figure_flag(part_at(record_part(r, F_RUN_RANKS), rank), F_RANK_LOST);
}

bool derive_all_ranks(const struct run_record *r)
{
	if (r->ranks_found == 0)
		return false;
	for (uint32_t k = 0; k < r->ranks; k++)
		if (!r->rank[k].found && !derive_is_lost(r, k))
			return false;
	return true;
}

static uint64_t not_negative(int64_t v)
{
	return v > 0 ? (uint64_t)v : 0;
}

static uint64_t least_of(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* A file may claim any number; no run makes more steps than this. */
static uint64_t whole_steps(double steps)
{
	return (uint64_t)fmin(steps, 1e15);
}

uint64_t derive_total_steps(const struct run_record *r, uint32_t rank, size_t epoch, bool eval)
{
	const struct record_epoch *ep = &r->rank[rank].epoch[epoch];
	const struct workload *w = &r->workload;
	uint64_t steps = 0;
	double samples, planned;

	for (size_t b = 0; b < ep->blocks && !eval; b++)
		steps += ep->block[b].computes;
	if (derive_as_dlio(r)) {
		int64_t batch = eval ? w->reader.batch_size_eval : w->reader.batch_size;

		if (!eval && w->train.total_training_steps > 0)
			return (uint64_t)w->train.total_training_steps;
		samples = (double)workload_samples(w, eval);
		return batch > 0 && samples > 0 ? whole_steps(samples / (double)batch / r->ranks)
						: 0;
	}
	if (eval)
		return ep->eval.computes;
	planned = figure(record_part(r, F_RUN_TRAINING), F_TRAINING_STEPS_PER_EPOCH);
	return w->train.total_training_steps > 0 || !(planned >= 0) ? steps : whole_steps(planned);
}

void derive_window(const struct run_record *r, uint64_t steps, uint64_t before, uint64_t total,
		   uint64_t *lo, uint64_t *hi)
{
	uint64_t start = not_negative(r->workload.output.metric.exclude_start_steps);
	uint64_t end = not_negative(r->workload.output.metric.exclude_end_steps);

	/* DLIO excludes steps in every block */
	if (derive_as_dlio(r))
		before = 0;
	*lo = least_of(start > before ? start - before : 0, steps);
	end = total > end ? total - end : 0;
	*hi = least_of(end > before ? end - before : 0, steps);
	if (*hi < *lo)
		*hi = *lo;
}

struct derive_rank derive_rank_epoch(const struct run_record *r, uint32_t rank, size_t epoch)
{
	const struct record_epoch *ep = &r->rank[rank].epoch[epoch];
	uint64_t total = derive_total_steps(r, rank, epoch, false), before = 0;
	struct derive_rank out = {NAN, NAN, 0, 0, 0};
	double weights = 0, au = 0, rate = 0, alone = 0;

	assert(epoch < r->rank[rank].epochs);
	for (size_t b = 0; b < ep->blocks; b++) {
		const struct record_phase *p = &ep->block[b];
		double weight = (double)p->computes;
		uint64_t lo, hi;

		for (size_t s = 0; s < p->computes; s++)
			out.compute_s += p->compute[s];
		for (size_t s = 0; s < p->loads; s++)
			out.load_s += p->load[s];
		derive_window(r, p->computes, before, total, &lo, &hi);
		before += p->computes;
		out.steps += p->computes;
		if (!derive_as_dlio(r))
			weight = (double)(hi - lo);
		if (!isfinite(p->au) || !isfinite(p->throughput) || !(weight > 0)) {
			/* AU of a single step is 0 in DLIO, and counts */
			alone += derive_as_dlio(r) && p->computes == 1 && !isfinite(p->au);
			continue;
		}
		weights += weight;
		au += weight * p->au;
		rate += weight * p->throughput;
	}
	if (weights > 0) {
		out.au = au / (weights + alone);
		out.throughput = rate / weights;
	}
	return out;
}
