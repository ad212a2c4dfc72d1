/* Times: is the window steady, do the ranks agree, can the numbers be. */
#include "readback/audit_checks.h"

#include <math.h>

#include "base/str.h"
#include "readback/record_measures.h"

static const double GAP_POINTS = 2;       /* AU above whole-run AU that the window explains */
static const double WINDOW_SHARE = 0.2;   /* of the steps, left out by choice */
static const double START_POINTS = 5;     /* above it although the window is long enough */
static const double SPREAD_POINTS = 5;    /* of AU over ranks */
static const double RATE_SHARE = 0.05;    /* samples/s off by the formula */
static const double COMPUTE_SHARE = 0.02; /* emulated step longer than configured */
static const double RATE_OF_SPREAD = 0.02;

static const char *plural(uint64_t n)
{
	return n == 1 ? "" : "s";
}

static uint64_t excluded_steps(const struct run_record *r)
{
	int64_t first = r->has_workload ? r->workload.output.metric.exclude_start_steps : 1;
	int64_t last = r->has_workload ? r->workload.output.metric.exclude_end_steps : 0;

	return (uint64_t)(first > 0 ? first : 0) + (uint64_t)(last > 0 ? last : 0);
}

/* Means over the epochs of rank 0: from begin to end, and of the steps. */
static void mean_walls(const struct run_record *r, double *epoch, double *steps)
{
	const struct record_rank *k = &r->rank[0];

	*epoch = *steps = 0;
	for (size_t e = 0; e < k->epochs; e++) {
		*epoch += k->epoch[e].train_wall_s / (double)k->epochs;
		for (size_t b = 0; b < k->epoch[e].blocks; b++)
			*steps += k->epoch[e].block[b].wall_s / (double)k->epochs;
	}
}

/* AU against what was configured to be computed, by the stamps of the epochs. */
static void say_outside(struct finding *f, const struct run_record *r)
{
	double epoch, steps;

	mean_walls(r, &epoch, &steps);
	finding_say(f,
		    "The reported AU is %.1f %%, but the configured computation takes %.1f %% of "
		    "the epochs' wall time. ",
		    r->au.mean, record_whole_run_au(r));
	if (epoch - steps > 0.01 * epoch)
		finding_say(f,
			    "Of %.0f s of an epoch, %.0f s are before the first or after the last "
			    "step of rank 0: loaders are made%s, and the slowest rank is waited "
			    "for. AU leaves out that time and the first step.",
			    epoch, epoch - steps,
			    r->has_workload && r->workload.workflow.checkpoint
				    ? ", checkpoints written"
				    : "");
	else
		finding_say(f, "AU leaves out the first step.");
	finding_advise(f, "Use longer epochs, or report whole-run AU next to AU.");
}

/* So few steps that the batches prefetched before the window fill most of it. */
void audit_steady(struct audit *a, size_t i)
{
	const struct run_record *r = &a->record[i];
	uint64_t steps = r->facts.steps, window = record_window(r), out = excluded_steps(r);
	double whole = record_whole_run_au(r), gap = r->au.mean - whole;
	struct finding *f;

	if (!r->trained || r->ours || steps == 0)
		return;
	if (steps <= out) {
		f = audit_add(a, i, "steady", AUDIT_FAIL);
		finding_say(f,
			    "An epoch has %llu step%s, of which %llu %s excluded from the "
			    "measurement: nothing was measured.",
			    (unsigned long long)steps, plural(steps), (unsigned long long)out,
			    out == 1 ? "is" : "are");
		finding_advise(f,
			       "Use more files, a smaller batch size or fewer processes, so that "
			       "an epoch has many more steps than are excluded.");
		return;
	}
	if (window > 0 && steps - out <= window) {
		f = audit_add(a, i, "steady", !(gap <= GAP_POINTS) ? AUDIT_FAIL : AUDIT_WARN);
		finding_say(
			f,
			"The measured window covers only the prefetch queue: an epoch has %llu "
			"steps, %llu of them excluded, and each rank prefetches %llu batches, so "
			"every batch in the window was requested before the window began.",
			(unsigned long long)steps, (unsigned long long)out,
			(unsigned long long)window);
		if (isfinite(whole))
			finding_say(f,
				    " The reported AU is %.1f %%; compute took %.1f %% of the "
				    "epochs' wall time.",
				    r->au.mean, whole);
		finding_advise(f,
			       "Train with at least %llu steps per epoch (more files, a smaller "
			       "batch size or fewer processes) and report whole-run AU next to AU.",
			       (unsigned long long)(10 * (window + out)));
	} else if (gap > START_POINTS && r->stamps_alone) {
		say_outside(audit_add(a, i, "steady", AUDIT_WARN), r);
	} else if (gap > START_POINTS) {
		f = audit_add(a, i, "steady", AUDIT_WARN);
		finding_say(f,
			    "The reported AU is %.1f %%, but compute took %.1f %% of the epochs' "
			    "wall time: AU leaves out the time lost in the excluded steps.",
			    r->au.mean, whole);
		finding_advise(f, "Use longer epochs, or report whole-run AU next to AU.");
	}
}

/* Steps left out by choice, beyond DLIO's default. */
void audit_window(struct audit *a, size_t i)
{
	const struct run_record *r = &a->record[i];
	double steps = (double)r->facts.steps, gap = r->au.mean - record_whole_run_au(r), left;
	int64_t first, last;
	struct finding *f;

	if (r->ours || !r->trained || !r->has_workload || !(steps > 0))
		return;
	first = r->workload.output.metric.exclude_start_steps;
	last = r->workload.output.metric.exclude_end_steps;
	left = (double)excluded_steps(r) - 1;
	if ((first <= 1 && last <= 0) || left >= steps ||
	    (left <= WINDOW_SHARE * steps && !(fabs(gap) > START_POINTS)))
		return;
	f = audit_add(a, i, "window", AUDIT_FAIL);
	finding_say(f,
		    "AU leaves out the first %lld and the last %lld of %.0f steps of an epoch "
		    "(output.metric.exclude_start_steps, exclude_end_steps): it is %.1f %%",
		    (long long)first, (long long)last, steps, r->au.mean);
	if (isfinite(gap))
		finding_say(f, ", over all steps %.1f %%", record_whole_run_au(r));
	finding_say(f, ".");
	finding_advise(f,
		       "Measure with the default window, which leaves out the first step alone.");
}

void audit_rank_spread(struct audit *a, size_t i)
{
	const struct run_record *r = &a->record[i];
	double least = INFINITY, most = -INFINITY;
	uint32_t low = 0, high = 0;
	struct finding *f;

	if (r->ours || r->ranks < 2)
		return;
	for (uint32_t k = 0; k < r->ranks; k++) {
		double sum = 0;
		size_t n = 0;

		for (size_t e = 0; e < r->rank[k].epochs; e++)
			for (size_t b = 0; b < r->rank[k].epoch[e].blocks; b++) {
				double au = r->rank[k].epoch[e].block[b].au;

				if (isfinite(au)) {
					sum += au;
					n++;
				}
			}
		if (n == 0)
			continue;
		if (sum / (double)n < least) {
			least = sum / (double)n;
			low = k;
		}
		if (sum / (double)n > most) {
			most = sum / (double)n;
			high = k;
		}
	}
	if (!(most - least > SPREAD_POINTS))
		return;
	f = audit_add(a, i, "ranks", AUDIT_WARN);
	finding_say(
		f,
		"The mean AU of %.1f %% hides a large spread between ranks: rank %u has %.1f %%, "
		"rank %u has %.1f %% (means over the epochs).",
		r->au.mean, high, most, low, least);
	finding_advise(f, "Report the slowest rank as well: with a barrier after each step, it "
			  "limits all ranks.");
}

static const char *impossible(double v, bool percent)
{
	if (v < 0)
		return "negative";
	if (percent && v > 100.5)
		return "above 100 %";
	return NULL;
}

void audit_possible(struct audit *a, size_t i)
{
	const struct run_record *r = &a->record[i];
	const struct {
		const struct record_series *s;
		const char *name, *unit;
		bool percent;
	} series[] = {
		{&r->throughput, "throughput", "samples/s", false},
		{&r->au, "AU", "%", true},
		{&r->eval_throughput, "evaluation throughput", "samples/s", false},
		{&r->eval_au, "evaluation AU", "%", true},
	};

	for (size_t k = 0; k < sizeof(series) / sizeof(series[0]); k++) {
		for (size_t e = 0; e < series[k].s->n; e++) {
			double v = series[k].s->v[e];
			const char *what = impossible(v, series[k].percent);
			struct finding *f;

			if (!what)
				continue;
			f = audit_add(a, i, "possible", AUDIT_FAIL);
			finding_say(f, "The %s of epoch %zu is %s: %.1f %s.", series[k].name, e + 1,
				    what, v, series[k].unit);
			if (v < 0)
				finding_say(f,
					    " DLIO divides (steps - 2) by the time that remains "
					    "after the excluded steps; with %llu step%s, the "
					    "result is negative.",
					    (unsigned long long)r->facts.steps,
					    plural(r->facts.steps));
			finding_advise(f, "Discard the value, and use more steps per epoch.");
			break;
		}
	}
}

/* DLIO counts two steps fewer than it made, whatever it excludes from the time. */
/* DLIO 2.0 leaves the first step out of AU, but not out of samples/s. */
static void audit_first_step(struct audit *a, size_t i)
{
	const struct run_record *r = &a->record[i];
	double batch = (double)r->facts.batch * r->ranks;
	double by_rate = 100 * r->throughput.mean * r->facts.step_s / batch;
	double steps = (double)r->facts.steps, all, first;
	struct finding *f;

	if (!(by_rate > 0 && steps > 1 && r->au.mean > 0) ||
	    fabs(r->au.mean / by_rate - 1) < RATE_SHARE)
		return;
	all = steps * batch / r->throughput.mean;
	first = all - (steps - 1) * r->facts.step_s / (r->au.mean / 100);
	f = audit_add(a, i, "throughput", AUDIT_WARN);
	finding_say(f,
		    "AU and rate do not agree: with steps of %.4g s, %.1f samples/s is an AU of "
		    "%.1f %%, not %.1f %%.",
		    r->facts.step_s, r->throughput.mean, by_rate, r->au.mean);
	if (first > 0)
		finding_say(f,
			    " DLIO leaves the first step of an epoch out of AU, but not out of the "
			    "rate: about %.0f s of %.0f s.",
			    first, all);
	finding_advise(f, "Report the AU that the rate means, or whole-run AU, next to AU.");
}

void audit_rate_formula(struct audit *a, size_t i)
{
	const struct run_record *r = &a->record[i];
	uint64_t steps = r->facts.steps, out = excluded_steps(r);
	double off;
	struct finding *f;

	if (r->dlio == DLIO_2_0 && r->trained && r->has_workload) {
		audit_first_step(a, i);
		return;
	}
	if (r->ours || r->dlio == DLIO_UNKNOWN || !r->trained || steps <= 2 || steps <= out ||
	    out == 2)
		return;
	off = (double)(steps - 2) / (double)(steps - out) - 1;
	if (fabs(off) < RATE_SHARE)
		return;
	f = audit_add(a, i, "throughput", AUDIT_WARN);
	finding_say(f,
		    "DLIO's formula makes throughput %.0f %% too %s: it divides %llu of %llu steps "
		    "by the time of %llu steps.",
		    fabs(off) * 100, off < 0 ? "low" : "high", (unsigned long long)(steps - 2),
		    (unsigned long long)steps, (unsigned long long)(steps - out));
	if (isfinite(record_whole_throughput(r)))
		finding_say(
			f,
			" The reported rate is %.1f samples/s; over the epochs' wall time it was "
			"%.1f.",
			r->throughput.mean, record_whole_throughput(r));
	finding_advise(
		f, "Calculate samples/s from the number of steps and the wall time of the epoch.");
}

void audit_compute_time(struct audit *a, size_t i)
{
	const struct run_record *r = &a->record[i];
	const struct time_dist *want;
	double sum = 0, mean;
	size_t n = 0;
	struct finding *f;

	if (!r->has_workload || r->ours)
		return;
	want = &r->workload.train.computation_time;
	for (uint32_t k = 0; k < r->ranks; k++)
		for (size_t e = 0; e < r->rank[k].epochs; e++)
			for (size_t b = 0; b < r->rank[k].epoch[e].blocks; b++) {
				const struct record_phase *p = &r->rank[k].epoch[e].block[b];

				for (size_t s = 0; s < p->computes; s++, n++)
					sum += p->compute[s];
			}
	if (n == 0 || want->kind != TIME_CONSTANT || want->a <= 0)
		return;
	mean = sum / (double)n;
	if (mean / want->a - 1 <= COMPUTE_SHARE)
		return;
	f = audit_add(a, i, "compute", AUDIT_WARN);
	finding_say(f,
		    "An emulated compute step took %s s on average instead of the configured %s "
		    "s (%.1f %% more): late wake-ups are counted as useful work in AU.",
		    NUMBER(mean, 3), NUMBER(want->a, 3), 100 * (mean / want->a - 1));
	finding_advise(f, "Leave some processors free for the emulation, or use longer steps.");
}

void audit_few_epochs(struct audit *a, size_t i)
{
	const struct run_record *r = &a->record[i];
	struct finding *f;

	if (r->ours || r->au.n == 0)
		return;
	if (r->au.n == 1) {
		f = audit_add(a, i, "repeats", AUDIT_NOTE);
		finding_say(f, "The run has only one epoch, so its standard deviation of 0 is "
			       "meaningless.");
		finding_advise(f, "Repeat the run, or train for several epochs.");
	} else if (r->au.stdev < RATE_OF_SPREAD * r->au.mean && r->au.n < 5) {
		f = audit_add(a, i, "repeats", AUDIT_NOTE);
		finding_say(
			f,
			"The standard deviation is over %zu epochs of a single run; it does not "
			"cover the variation between runs.",
			r->au.n);
		finding_advise(
			f,
			"Repeat whole runs (stoker study run --repeat) to measure that variation.");
	}
}

void audit_evaluation(struct audit *a, size_t i)
{
	const struct run_record *r = &a->record[i];
	struct finding *f;
	uint64_t steps = 0;
	bool any = false;

	for (uint32_t k = 0; k < r->ranks; k++)
		for (size_t e = 0; e < r->rank[k].epochs; e++)
			if (r->rank[k].epoch[e].has_eval) {
				any = true;
				steps += r->rank[k].epoch[e].eval.computes;
			}
	if (any && steps == 0) {
		f = audit_add(a, i, "evaluation", AUDIT_WARN);
		finding_say(f, "Evaluation is on but ran no steps: its AU of 0 and its verdict "
			       "\"fail\" are meaningless.");
		finding_advise(f, "Set dataset.num_files_eval, or workflow.evaluation=False.");
	} else if (any && !r->ours && r->ranks > 1) {
		f = audit_add(a, i, "evaluation", AUDIT_NOTE);
		finding_say(
			f,
			"DLIO divides each rank's evaluation AU by the number of ranks (%u); the "
			"correct value is %u times the reported one.",
			r->ranks, r->ranks);
		finding_advise(f, "Multiply it by the number of ranks, or do not use it.");
	}
}
