/* The two files of a rank: AU and rates from the times of the steps, these from the stamps. */
#include <math.h>
#include <stdio.h>

#include "readback/derivation.h"

/* Stamps and the times between them are of two clocks, read one after the other by a thread that
 * may be stopped between. */
static const double STAMP_S = 0.1;
/* DLIO writes to its log between reading the two clocks, which are therefore further apart. */
static const double STAMP_DLIO_S = 0.25;
static const double STAMP_SHARE = 0.01; /* of the time between them: clocks are slewed */
static const double STEP_S = 2e-6;      /* DLIO's parts of a step are differences of its clock */
static const double HUNDREDTH = 0.0051; /* durations have two decimals */
static const double HOUR = 3600;        /* stamps are local times: summer time ends */

/* One phase, and where it is. */
struct place {
	struct derive *d;
	const struct run_record *r;
	uint32_t rank;
	size_t epoch;
	const char *name;
	const struct record_phase *p;
	uint64_t lo, hi; /* the measured steps */
	bool eval;
	int64_t batch; /* configured */
	bool cut;      /* the epoch was not finished */
	bool full;     /* every batch has all its samples */
};

static double stamp_slack(const struct place *at)
{
	double share = isfinite(at->p->wall_s) ? STAMP_SHARE * fabs(at->p->wall_s) : 0;

	return (at->r->ours ? STAMP_S : STAMP_DLIO_S) + share;
}

/* The parts of each step, and all steps within the phase. */
static void check_parts(const struct place *at)
{
	const struct record_phase *p = at->p;
	double slack = at->r->ours ? STEP_S : 1e-3, sum = 0;
	bool parts = true, sane = true;
	size_t bad = 0;

	derive_holds(at->d, p->loads == p->computes && p->computes == p->procs,
		     "%u_output.json has %zu, %zu and %zu times of steps (load, compute, proc) of "
		     "%s in epoch %zu.",
		     at->rank, p->loads, p->computes, p->procs, at->name, at->epoch + 1);
	if (p->loads != p->computes || p->computes != p->procs)
		return;
	for (size_t s = 0; s < p->procs; s++) {
		sum += p->proc[s];
		sane = sane && p->load[s] >= -slack && p->compute[s] >= -slack;
		if (parts && p->proc[s] + slack + 0.01 * p->proc[s] < p->load[s] + p->compute[s]) {
			parts = false;
			bad = s;
		}
	}
	derive_holds(at->d, sane, "%u_output.json has negative times of steps of %s in epoch %zu.",
		     at->rank, at->name, at->epoch + 1);
	if (p->procs)
		derive_holds(at->d, parts,
			     "%u_output.json: step %zu of %s in epoch %zu took %.9g s (proc), but "
			     "its parts add up to %.9g s (load + compute).",
			     at->rank, bad + 1, at->name, at->epoch + 1, p->proc[bad],
			     p->load[bad] + p->compute[bad]);
	/* a clock that was put forward or back by an hour is summer time */
	if (fabs(fabs(p->wall_s - sum) - HOUR) > HOUR / 60)
		derive_at_most(at->d, sum, p->wall_s, stamp_slack(at),
			       "the time between its stamps in N_per_epoch_stats.json",
			       "the sum of the steps of %u_output.json, %s, epoch %zu (s)",
			       at->rank, at->name, at->epoch + 1);
}

/* AU is 100 x compute / time of the window: that time must fit the stamps, and the rate. */
static void check_rates(const struct place *at)
{
	const struct record_phase *p = at->p;
	double compute = 0, outside = 0, window, wall, least, steps, batch, most, fewest;

	if (p->loads != p->computes || p->computes != p->procs || p->procs == 0)
		return;
	for (size_t s = 0; s < p->procs; s++) {
		if (s >= at->lo && s < at->hi)
			compute += p->compute[s];
		else
			outside += p->proc[s];
	}
	if (!isfinite(p->au) || !(compute > 0)) {
		derive_holds(at->d, !(p->au > 0),
			     "%u_output.json states an AU of %.6g %% for %s in epoch %zu, but the "
			     "measured steps hold no computation.",
			     at->rank, p->au, at->name, at->epoch + 1);
		return;
	}
	if (!(p->au > 0)) {
		derive_equal(at->d, p->au, 100 * compute / (p->wall_s - outside),
			     "the times of its steps", "AU (%%) of %u_output.json, %s, epoch %zu",
			     at->rank, at->name, at->epoch + 1);
		return;
	}
	window = 100 * compute / p->au;
	wall = p->wall_s - outside;
	least = stamp_slack(at);
	if (fabs(fabs(window - wall) - HOUR) > HOUR / 60)
		derive_near(at->d, p->au, 100 * compute / wall,
			    fmax(p->au, 100 * compute / fmax(wall, 1e-9)) * least /
				    fmax(fmin(window, wall), least),
			    "the times of its steps and stamps",
			    "AU (%%) of %u_output.json, %s, epoch %zu", at->rank, at->name,
			    at->epoch + 1);
	if (!isfinite(p->throughput) || at->batch <= 0)
		return;
	steps = (double)p->procs;
	if (at->eval) {
		batch = p->throughput * (window + outside) / steps;
	} else {
		steps = derive_as_dlio(at->r) ? steps - 2 : (double)(at->hi - at->lo);
		batch = p->throughput * window / steps;
	}
	if (steps == 0)
		return;
	/* DLIO multiplies by the batch size; we by the samples that were delivered: the last batch
	 * of an epoch may have fewer, and one is delivered for a step that a stop cut off */
	most = (double)at->batch * (at->cut ? 1 + 1.5 / (double)p->procs : 1);
	fewest = (double)at->batch * (at->full ? 1 - 1e-6 : 1 - 1.5 / (double)p->procs) - 1e-6;
	if (derive_as_dlio(at->r) && !at->eval)
		derive_equal(at->d, p->throughput, steps * (double)at->batch / window,
			     "its AU, steps and the batch size",
			     "samples/s of %u_output.json, %s, epoch %zu", at->rank, at->name,
			     at->epoch + 1);
	else
		derive_holds(at->d, batch <= most * (1 + 1e-6) + 1e-9 && batch > fewest,
			     "%u_output.json states %.9g samples/s for %s in epoch %zu, but its AU "
			     "and the times of its steps give %.9g with batches of %lld.",
			     at->rank, p->throughput, at->name, at->epoch + 1,
			     p->throughput * (double)at->batch / batch, (long long)at->batch);
}

static void check_phase(struct place *at, double epoch_begin, double epoch_end)
{
	const struct record_phase *p = at->p;

	derive_near(at->d, p->duration_s, p->wall_s, HUNDREDTH + 1e-9 * fabs(p->duration_s),
		    "its stamps", "the duration (s) of %s in %u_per_epoch_stats.json, epoch %zu",
		    at->name, at->rank, at->epoch + 1);
	derive_at_most(at->d, epoch_begin, p->begin_s, 1e-3, "the begin of that phase",
		       "the begin of epoch %zu in %u_per_epoch_stats.json (s of the run, %s)",
		       at->epoch + 1, at->rank, at->name);
	derive_at_most(at->d, p->begin_s + p->wall_s, epoch_end, at->r->ours ? 1e-3 : 0.05,
		       "the end of the epoch",
		       "the end of %s in %u_per_epoch_stats.json, epoch %zu (s of the run)",
		       at->name, at->rank, at->epoch + 1);
	if (at->r->has_workload && !at->r->stamps_alone) {
		check_parts(at);
		check_rates(at);
	}
}

/* Samples that fill the batches of all ranks: none has fewer. */
static bool batches_are_full(const struct run_record *r, bool eval)
{
	const struct workload *w = &r->workload;
	int64_t batch = eval ? w->reader.batch_size_eval : w->reader.batch_size;
	int64_t samples = workload_samples(w, eval), together;

	/* of files of different length each worker of a stream has its own */
	return batch > 0 && samples > 0 && samples < INT64_MAX && !workload_files_differ(w) &&
	       !__builtin_mul_overflow(batch, (int64_t)r->ranks, &together) && together > 0 &&
	       samples % together == 0;
}

static void check_epoch(struct derive *d, const struct run_record *r, uint32_t k, size_t e)
{
	const struct record_epoch *ep = &r->rank[k].epoch[e];
	uint64_t before = 0;
	char name[32];

	for (size_t b = 0; b < ep->blocks; b++) {
		struct place at = {d, r, k, e, name, &ep->block[b], 0, 0, false, 0, false, false};

		snprintf(name, sizeof(name), "block %zu", b + 1);
		if (r->has_workload) {
			at.batch = r->workload.reader.batch_size;
			at.cut = e >= derive_epochs(r);
			at.full = !at.cut && (b + 1 < ep->blocks || batches_are_full(r, false));
			derive_window(r, at.p->computes, before, derive_total_steps(r, k, e, false),
				      &at.lo, &at.hi);
		}
		before += at.p->computes;
		check_phase(&at, ep->begin_s, ep->end_s);
	}
	if (ep->has_eval) {
		struct place at = {d,    r, k,     e,    "the evaluation", &ep->eval, 0, 0,
				   true, 0, false, false};

		if (r->has_workload) {
			at.batch = r->workload.reader.batch_size_eval;
			at.cut = e >= derive_epochs(r);
			at.full = !at.cut && batches_are_full(r, true);
			derive_window(r, at.p->computes, 0, derive_total_steps(r, k, e, true),
				      &at.lo, &at.hi);
		}
		check_phase(&at, ep->begin_s, ep->end_s);
	}
	if (e > 0)
		derive_at_most(d, r->rank[k].epoch[e - 1].end_s, ep->begin_s, 1e-3,
			       "the begin of the next epoch",
			       "the end of epoch %zu in %u_per_epoch_stats.json (s of the run)", e,
			       k);
}

void derive_steps(struct audit *a, size_t i)
{
	const struct run_record *r = &a->record[i];
	struct derive d =
		derive_begin(a, i, "figures", "steps",
			     "AU, rates and durations of each rank, block and evaluation from the "
			     "times of their steps and stamps");

	if (!r->trained)
		derive_unchecked(&d, "nothing was trained");
	else if (r->stamps_alone)
		derive_unchecked(&d, "no rank has the times of its steps: only stamps of rank 0 "
				     "were compared");
	else if (r->ranks_found == 0)
		derive_unchecked(&d, "no rank has its files");
	else if (!r->has_workload)
		derive_unchecked(&d, "the configuration is unknown: only stamps were compared");
	else if (r->ranks_found < r->ranks)
		derive_unchecked(&d, "the files of %u of %u ranks are missing",
				 r->ranks - r->ranks_found, r->ranks);
	for (uint32_t k = 0; k < r->ranks; k++)
		for (size_t e = 0; e < r->rank[k].epochs; e++)
			check_epoch(&d, r, k, e);
}
