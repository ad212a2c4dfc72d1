/* Checks of the times a result reports: is the window steady, do the ranks agree, can the numbers
 * be. */
#include <math.h>
#include <stddef.h>

#include "readback/audit_parts.h"

static const double GAP_POINTS = 2;       /* AU above whole-run AU that the window explains */
static const double START_POINTS = 5;     /* above it although the window is long enough */
static const double SPREAD_POINTS = 5;    /* of AU over ranks */
static const double RATE_SHARE = 0.05;    /* samples/s off by the formula */
static const double COMPUTE_SHARE = 0.02; /* emulated step longer than configured */
static const double RATE_OF_SPREAD = 0.02;

static uint64_t excluded_steps(const struct run_record *r)
{
	int64_t first = r->has_workload ? r->workload.output.metric.exclude_start_steps : 1;
	int64_t last = r->has_workload ? r->workload.output.metric.exclude_end_steps : 0;

	return (uint64_t)(first > 0 ? first : 0) + (uint64_t)(last > 0 ? last : 0);
}

/* The trap: so few steps that the batches read before the window opens fill most of it. */
static void steady(struct audit *a, size_t i)
{
	const struct run_record *r = &a->record[i];
	uint64_t steps = record_steps(r), window = record_window(r), out = excluded_steps(r);
	double whole = record_whole_au_mean(r), gap = r->au.mean - whole;
	struct finding *f;

	if (!r->trained || r->ours || steps == 0)
		return;
	if (steps <= out) {
		f = audit_add(a, i, "steady", AUDIT_FAIL);
		audit_say(f,
			  "An epoch has %llu steps and %llu are excluded from the measurement: "
			  "nothing was measured.",
			  (unsigned long long)steps, (unsigned long long)out);
		audit_advise(f, "Use more files, a smaller batch or fewer processes, so that an "
				"epoch has many times more steps than are excluded.");
		return;
	}
	if (window > 0 && steps - out <= window) {
		f = audit_add(a, i, "steady", !(gap <= GAP_POINTS) ? AUDIT_FAIL : AUDIT_WARN);
		audit_say(
			f,
			"The measured window is the prefetch queue: an epoch has %llu steps, %llu "
			"excluded, and each rank reads %llu batches ahead, so every batch of the "
			"window was asked for before the window began.",
			(unsigned long long)steps, (unsigned long long)out,
			(unsigned long long)window);
		if (isfinite(whole))
			audit_say(f,
				  " AU is reported as %.1f %%; compute was %.1f %% of the epochs' "
				  "wall time.",
				  r->au.mean, whole);
		audit_advise(f,
			     "Train with at least %llu steps an epoch (more files, a smaller batch "
			     "or fewer processes) and report the whole-run figure beside AU.",
			     (unsigned long long)(10 * (window + out)));
	} else if (gap > START_POINTS) {
		f = audit_add(a, i, "steady", AUDIT_WARN);
		audit_say(
			f,
			"AU is reported as %.1f %%; compute was %.1f %% of the epochs' wall time: "
			"what the excluded steps cost is not in the AU.",
			r->au.mean, whole);
		audit_advise(f, "Use longer epochs, or report the whole-run figure beside AU.");
	}
}

static void rank_spread(struct audit *a, size_t i)
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
	audit_say(
		f,
		"The mean of %.1f %% hides the ranks: rank %u has %.1f %%, rank %u %.1f %% (means "
		"over the epochs).",
		r->au.mean, high, most, low, least);
	audit_advise(f,
		     "Report the slowest rank too; with a barrier at each step it sets the pace.");
}

static const char *impossible(double v, bool percent)
{
	if (v < 0)
		return "negative";
	if (percent && v > 100.5)
		return "above 100 %";
	return NULL;
}

static void possible(struct audit *a, size_t i)
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
			audit_say(f, "The %s of epoch %zu is %s: %.1f %s.", series[k].name, e + 1,
				  what, v, series[k].unit);
			if (v < 0)
				audit_say(f,
					  " DLIO divides (steps - 2) by the time left after the "
					  "excluded steps; with %llu steps that is below zero.",
					  (unsigned long long)record_steps(r));
			audit_advise(f, "Throw the number away; use more steps an epoch.");
			break;
		}
	}
}

/* DLIO counts two steps fewer than it made, whatever it excludes from the time. */
static void rate_formula(struct audit *a, size_t i)
{
	const struct run_record *r = &a->record[i];
	uint64_t steps = record_steps(r), out = excluded_steps(r);
	double off;
	struct finding *f;

	if (r->ours || !r->trained || steps <= 2 || steps <= out || out == 2)
		return;
	off = (double)(steps - 2) / (double)(steps - out) - 1;
	if (fabs(off) < RATE_SHARE)
		return;
	f = audit_add(a, i, "throughput", AUDIT_WARN);
	audit_say(f,
		  "Throughput is %.0f %% too %s by its formula: it counts %llu of %llu steps over "
		  "the time of %llu.",
		  fabs(off) * 100, off < 0 ? "low" : "high", (unsigned long long)(steps - 2),
		  (unsigned long long)steps, (unsigned long long)(steps - out));
	if (isfinite(record_whole_throughput(r)))
		audit_say(f,
			  " %.1f samples/s are reported; over the epochs' wall time it was %.1f.",
			  r->throughput.mean, record_whole_throughput(r));
	audit_advise(f, "Compute samples/s from the steps and the wall time of the epoch.");
}

static void compute_time(struct audit *a, size_t i)
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
	audit_say(f,
		  "An emulated step took %.3g s on average where %.3g s were configured (%.1f %% "
		  "more): late waking counts as useful work in the AU.",
		  mean, want->a, 100 * (mean / want->a - 1));
	audit_advise(f, "Leave processors free for the emulation, or use longer steps.");
}

static void few_epochs(struct audit *a, size_t i)
{
	const struct run_record *r = &a->record[i];
	struct finding *f;

	if (r->ours || r->au.n == 0)
		return;
	if (r->au.n == 1) {
		f = audit_add(a, i, "repeats", AUDIT_NOTE);
		audit_say(f, "One epoch: the spread of 0 is not a spread.");
		audit_advise(f, "Repeat the run, or train several epochs.");
	} else if (r->au.stdev < RATE_OF_SPREAD * r->au.mean && r->au.n < 5) {
		f = audit_add(a, i, "repeats", AUDIT_NOTE);
		audit_say(f,
			  "The spread is over %zu epochs of one run; it says nothing about another "
			  "run.",
			  r->au.n);
		audit_advise(f, "Repeat whole runs (study run --repeat) to know their spread.");
	}
}

static void evaluation(struct audit *a, size_t i)
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
		audit_say(f, "Evaluation is on and made no step: its AU of 0 and its verdict "
			     "\"fail\" judge nothing.");
		audit_advise(f, "Set dataset.num_files_eval, or workflow.evaluation=False.");
	} else if (any && !r->ours && r->ranks > 1) {
		f = audit_add(a, i, "evaluation", AUDIT_NOTE);
		audit_say(f,
			  "DLIO's evaluation AU is each rank's value divided by the %u ranks; the "
			  "true one is %u times as large.",
			  r->ranks, r->ranks);
		audit_advise(f, "Multiply it, or do not use it.");
	}
}

const audit_check audit_time_checks[] = {steady,       rank_spread, possible,   rate_formula,
					 compute_time, few_epochs,  evaluation, NULL};
