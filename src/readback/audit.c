/* The checks of an audit, by subject: times, data, configuration; and the run over all of them. */
#include "readback/audit.h"
#include "readback/record_measures.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/alloc.h"
#include "base/str.h"
#include "base/texts.h"
#include "judge/verdict.h"
#include "readback/derivation.h"

/* ---- the list of findings ---- */

static int by_record(const void *a, const void *b)
{
	const struct finding *x = a, *y = b;

	if (x->record != y->record)
		return x->record < y->record ? -1 : 1;
	if (x->level != y->level)
		return x->level > y->level ? -1 : 1;
	return strcmp(x->check, y->check);
}

/* ---- times: is the window steady, do the ranks agree, can the numbers be ---- */

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

/* So few steps that the batches prefetched before the window fill most of it. */
static void check_steady(struct audit *a, size_t i)
{
	const struct run_record *r = &a->record[i];
	uint64_t steps = record_steps(r), window = record_window(r), out = excluded_steps(r);
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
static void check_window(struct audit *a, size_t i)
{
	const struct run_record *r = &a->record[i];
	double steps = (double)record_steps(r), gap = r->au.mean - record_whole_run_au(r), left;
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

static void check_rank_spread(struct audit *a, size_t i)
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

static void check_possible(struct audit *a, size_t i)
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
					    (unsigned long long)record_steps(r),
					    plural(record_steps(r)));
			finding_advise(f, "Discard the value, and use more steps per epoch.");
			break;
		}
	}
}

/* DLIO counts two steps fewer than it made, whatever it excludes from the time. */
static void check_rate_formula(struct audit *a, size_t i)
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

static void check_compute_time(struct audit *a, size_t i)
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
	finding_say(
		f,
		"An emulated compute step took %.3g s on average instead of the configured %.3g "
		"s (%.1f %% more): late wake-ups are counted as useful work in AU.",
		mean, want->a, 100 * (mean / want->a - 1));
	finding_advise(f, "Leave some processors free for the emulation, or use longer steps.");
}

static void check_few_epochs(struct audit *a, size_t i)
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

static void check_evaluation(struct audit *a, size_t i)
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

/* ---- what was read: the page cache, the dataset on disk, checkpoints, the rate in bytes ---- */

static const double HELD_SHARE = 0.95;   /* of the dataset in the page cache: all of it */
static const double GROWTH_SHARE = 0.05; /* of the dataset that the cache grew by: nothing read */
static const double EXCESS = 2;          /* times the dataset in the page cache: it holds more */
static const double SAME_RATE = 0.03;    /* samples/s that are equal */
static const double OTHER_SIZE = 1.2;    /* factor between records that are not equal */
static const double CHECKPOINT_SHARE = 0.5;

static double dataset_bytes(const struct run_record *r)
{
	if (!r->has_workload)
		return NAN;
	return (double)r->workload.dataset.num_files_train *
	       (double)r->workload.dataset.num_samples_per_file * record_sample_bytes(r);
}

static const char *size_text(double v, char out[32])
{
	return str_bytes(v, out, 32);
}

static void check_page_cache(struct audit *a, size_t i)
{
	const struct run_record *r = &a->record[i];
	const struct record_rank *k = r->ranks ? &r->rank[0] : NULL;
	double data = dataset_bytes(r), cached, growth;
	char b1[32], b2[32], b3[32];
	struct finding *f;

	if (r->ours || !r->trained || !(data > 0) || !(r->host_memory_bytes > 0))
		return;
	/* every host sees its share of an epoch, another one each time it is shuffled */
	if (data / r->hosts > r->host_memory_bytes)
		return;
	f = audit_add(a, i, "cache", AUDIT_WARN);
	f->about_cache = true;
	finding_say(f, "The dataset (%s) fits in the host's memory (%s)", size_text(data, b1),
		    size_text(r->host_memory_bytes, b2));
	cached = k && k->epochs ? k->epoch[0].cached_bytes : NAN;
	growth = k && k->epochs > 1 ? k->epoch[k->epochs - 1].cached_bytes - cached : NAN;
	if (cached >= HELD_SHARE * data && !(growth > GROWTH_SHARE * data)) {
		f->level = AUDIT_FAIL;
		finding_say(f, ", and the page cache held %s before the first epoch%s",
			    size_text(cached, b3),
			    isfinite(growth) ? " and did not grow over the epochs: the data came "
					       "from memory, and the storage was hardly used"
					     : ", enough for the whole dataset");
		if (cached > EXCESS * data)
			finding_say(
				f,
				". That is %.1f times the configured dataset size: the files may "
				"be larger than configured, or the cache also holds other files",
				cached / data);
	} else if (isfinite(cached)) {
		finding_say(f,
			    "; the page cache held %s before the first epoch and may have served "
			    "later epochs",
			    size_text(cached, b3));
	}
	finding_say(f, ".");
	finding_advise(
		f,
		"Use a dataset several times larger than memory, drop the page cache before each "
		"epoch, or read with O_DIRECT; compare with the bytes that the device delivered.");
}

/* ---- another dataset than the configured one ---- */

static bool generated_only(const struct run_record *r)
{
	return r->has_workload && r->workload.workflow.generate_data && !r->trained;
}

static bool other_size(double x, double y)
{
	return x > 0 && y > 0 && (x / y > OTHER_SIZE || y / x > OTHER_SIZE);
}

static void time_text(double s, char *out, size_t out_size)
{
	time_t t = (time_t)s;
	struct tm tm;

	if (!isfinite(s) || !localtime_r(&t, &tm) ||
	    strftime(out, out_size, "%Y-%m-%d %H:%M:%S", &tm) == 0)
		snprintf(out, out_size, "an unknown time");
}

/* ---- results of one folder of data and one host, compared ---- */

/* Results that may have read one dataset: indexes of records. */
struct place {
	size_t *generation; /* that wrote it, by their begin */
	size_t generations;
	size_t *shape; /* that trained there, by ranks, batch size, size of a sample, samples/s */
	size_t shapes;
};

struct places {
	const struct run_record *record;
	struct texts name;
	size_t *of; /* of each record; TEXT_NONE: it has no folder of data */
	struct place *v;
};

static int by_index(size_t a, size_t b)
{
	return a < b ? -1 : a > b;
}

static int by_begin(const void *x, const void *y, void *record)
{
	const struct run_record *r = record;
	size_t i = *(const size_t *)x, k = *(const size_t *)y;

	if (r[i].begin_s < r[k].begin_s || r[i].begin_s > r[k].begin_s)
		return r[i].begin_s < r[k].begin_s ? -1 : 1;
	return by_index(i, k);
}

static int by_numbers(const double *a, const double *b, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (a[i] < b[i] || a[i] > b[i])
			return a[i] < b[i] ? -1 : 1;
	return 0;
}

static int by_shape(const void *x, const void *y, void *record)
{
	size_t i = *(const size_t *)x, k = *(const size_t *)y;
	const struct run_record *r = record;
	const double a[] = {r[i].ranks, (double)r[i].facts.batch, r[i].facts.sample_bytes,
			    r[i].throughput.mean};
	const double b[] = {r[k].ranks, (double)r[k].facts.batch, r[k].facts.sample_bytes,
			    r[k].throughput.mean};
	int order = by_numbers(a, b, sizeof(a) / sizeof(a[0]));

	return order ? order : by_index(i, k);
}

static void add_index(size_t **v, size_t *n, size_t i)
{
	/* doubled at powers of two */
	if ((*n & (*n - 1)) == 0)
		*v = xrealloc(*v, (*n ? 2 * *n : 1) * sizeof(**v));
	(*v)[(*n)++] = i;
}

static void find_places(struct places *p, const struct run_record *record, size_t n)
{
	*p = (struct places){.record = record, .of = xcalloc(n + 1, sizeof(*p->of))};
	for (size_t i = 0; i < n; i++) {
		const struct run_record *r = &record[i];
		AUTO_FREE char *name = xasprintf("%s\n%s", r->facts.data_folder, r->hostname);

		p->of[i] = r->facts.data_folder && r->facts.data_folder[0]
				   ? texts_add(&p->name, name)
				   : TEXT_NONE;
	}
	p->v = xcalloc(p->name.n + 1, sizeof(*p->v));
	for (size_t i = 0; i < n; i++) {
		const struct run_record *r = &record[i];
		struct place *x = p->of[i] == TEXT_NONE ? NULL : &p->v[p->of[i]];

		if (x && r->facts.generates && !isnan(r->begin_s))
			add_index(&x->generation, &x->generations, i);
		if (x && r->trained && r->facts.sample_bytes > 0 && isfinite(r->throughput.mean))
			add_index(&x->shape, &x->shapes, i);
	}
	for (size_t i = 0; i < p->name.n; i++) {
		struct place *x = &p->v[i];

		if (x->generations)
			qsort_r(x->generation, x->generations, sizeof(*x->generation), by_begin,
				(void *)(uintptr_t)record);
		if (x->shapes)
			qsort_r(x->shape, x->shapes, sizeof(*x->shape), by_shape,
				(void *)(uintptr_t)record);
	}
}

static void release_places(struct places *p)
{
	for (size_t i = 0; i < p->name.n; i++) {
		free(p->v[i].generation);
		free(p->v[i].shape);
	}
	free(p->v);
	free(p->of);
	texts_release(&p->name);
}

/* The last result before this one that wrote the folder's dataset; of equal begins the first. */
static const struct run_record *last_generation(const struct places *p, const struct place *x,
						const struct run_record *r)
{
	const struct run_record *last = NULL;
	size_t low = 0, high = x->generations;

	while (low < high) {
		size_t middle = (low + high) / 2;

		if (p->record[x->generation[middle]].begin_s < r->begin_s)
			low = middle + 1;
		else
			high = middle;
	}
	while (low-- > 0) {
		const struct run_record *g = &p->record[x->generation[low]];

		if (last && g->begin_s < last->begin_s)
			break;
		last = g;
	}
	return last;
}

/* The first in the list from `from` on that is not before ranks, batch, size and rate of `key`. */
static size_t first_shape(const struct places *p, const struct place *x, size_t from,
			  const double key[4], size_t parts)
{
	size_t high = x->shapes;

	while (from < high) {
		size_t middle = (from + high) / 2;
		const struct run_record *r = &p->record[x->shape[middle]];
		const double its[] = {r->ranks, (double)r->facts.batch, r->facts.sample_bytes,
				      r->throughput.mean};

		if (by_numbers(its, key, parts) < 0)
			from = middle + 1;
		else
			high = middle;
	}
	return from;
}

/* The first run of the same shape whose records have another size and that was as fast in samples:
 * for each size, only those of about the rate are looked at. */
static const struct run_record *equally_fast(const struct places *p, const struct place *x,
					     const struct run_record *r)
{
	double rate = r->throughput.mean, low = rate * (1 - 2 * SAME_RATE);
	double key[] = {r->ranks, (double)r->facts.batch, -INFINITY, 0};
	size_t best = SIZE_MAX, i;

	if (!isfinite(rate) || !(r->facts.sample_bytes > 0))
		return NULL;
	if (low > rate)
		low = rate * (1 + 2 * SAME_RATE);
	for (i = first_shape(p, x, 0, key, 3); i < x->shapes;) {
		const struct run_record *o = &p->record[x->shape[i]];

		if (o->ranks != r->ranks || o->facts.batch != r->facts.batch)
			break;
		key[2] = o->facts.sample_bytes;
		key[3] = low;
		if (other_size(key[2], r->facts.sample_bytes))
			i = first_shape(p, x, i, key, 4);
		for (; other_size(key[2], r->facts.sample_bytes) && i < x->shapes; i++) {
			double its;

			o = &p->record[x->shape[i]];
			its = o->throughput.mean;
			if (by_numbers(&o->facts.sample_bytes, &key[2], 1) != 0 ||
			    o->facts.batch != r->facts.batch || o->ranks != r->ranks ||
			    its > rate + 2 * SAME_RATE * fabs(rate))
				break;
			if (fabs(its / rate - 1) < SAME_RATE && x->shape[i] < best)
				best = x->shape[i];
		}
		key[3] = INFINITY;
		i = first_shape(p, x, i, key, 4);
	}
	return best == SIZE_MAX ? NULL : &p->record[best];
}

static void check_dataset(struct audit *a, size_t i, const struct places *p)
{
	const struct run_record *r = &a->record[i], *g, *o;
	const struct place *x;
	char when[40], b1[32], b2[32];
	struct finding *f;

	/* ours compares the files with the manifest before it reads */
	if (r->ours || !r->trained || p->of[i] == TEXT_NONE || r->facts.generates)
		return;
	x = &p->v[p->of[i]];
	g = last_generation(p, x, r);
	o = equally_fast(p, x, r);
	if (g && !other_size(record_sample_bytes(g), record_sample_bytes(r)) &&
	    g->facts.train_files >= r->facts.train_files)
		return;
	if (!g && !o)
		return;
	f = audit_add(a, i, "dataset", g ? AUDIT_FAIL : AUDIT_WARN);
	finding_say(f, "The files in '%s' probably do not match this configuration.",
		    r->facts.data_folder);
	if (g) {
		time_text(g->begin_s, when, sizeof(when));
		finding_say(f,
			    " Among these results, the last one to generate data there, at %s "
			    "('%s'), wrote %lld files with records of %s; this run was configured "
			    "for %lld files with records of %s but generated none.",
			    when, g->name, (long long)g->facts.train_files,
			    size_text(record_sample_bytes(g), b1), (long long)r->facts.train_files,
			    size_text(record_sample_bytes(r), b2));
	}
	if (o)
		finding_say(
			f,
			" '%s' is configured for records of %s instead of %s, but the two runs "
			"reached %.1f and %.1f samples/s: equal rates with record sizes that "
			"differ by a factor of %.2f mean that both read the same files. MB/s is "
			"wrong by that factor.",
			o->name, size_text(record_sample_bytes(o), b1),
			size_text(record_sample_bytes(r), b2), o->throughput.mean,
			r->throughput.mean,
			fmax(record_sample_bytes(o) / record_sample_bytes(r),
			     record_sample_bytes(r) / record_sample_bytes(o)));
	finding_advise(f,
		       "Whenever the format, record size or number of files changes, generate the "
		       "dataset again in a separate folder; check it with stoker verify.");
}

/* ---- bytes and checkpoints ---- */

static void check_nominal_bytes(struct audit *a, size_t i)
{
	const struct run_record *r = &a->record[i];
	double off, rate;
	char b1[32];
	struct finding *f;

	if (r->ours || !r->trained || !r->has_workload || !isfinite(r->io.mean))
		return;
	rate = r->throughput.mean * record_sample_bytes(r) / 0x1p20;
	if (!(rate > 0))
		return;
	off = r->io.mean / rate;
	f = audit_add(a, i, "bytes", AUDIT_NOTE);
	if (fabs(off - 1) < 0.01) {
		finding_say(f,
			    "%.0f MB/s is samples/s times the configured record size (%s), in MiB; "
			    "no bytes were counted%s.",
			    r->io.mean, size_text(record_sample_bytes(r), b1),
			    r->workload.dataset.record_length_bytes_stdev > 0
				    ? ", and the files differ in size"
				    : "");
	} else {
		f->level = AUDIT_FAIL;
		finding_say(
			f,
			"%.4g MB/s is not samples/s times the configured record size (%.4g): the "
			"tool used a different record length.",
			r->io.mean, rate);
	}
	finding_advise(f, "Use the device's own counters for its data rate.");
}

static void check_checkpoints(struct audit *a, size_t i)
{
	const struct run_record *r = &a->record[i];
	double want, got = r->checkpoint_gib * 0x1p30;
	char b1[32], b2[32];
	struct finding *f;

	if (r->ours || !r->has_workload || !isfinite(got) || !r->trained)
		return;
	want = (double)r->workload.model.model_size_bytes;
	if (!(want > 0) || got >= CHECKPOINT_SHARE * want)
		return;
	f = audit_add(a, i, "checkpoint", AUDIT_FAIL);
	finding_say(f, "Checkpoints held %s, but the workload specifies %s", size_text(got, b1),
		    size_text(want, b2));
	for (uint32_t k = 0; r->rank && k < 1; k++)
		for (size_t e = 0; e < r->rank[k].epochs; e++)
			for (size_t c = 0; c < r->rank[k].epoch[e].checkpoints; c++) {
				const struct record_checkpoint *one =
					&r->rank[k].epoch[e].checkpoint[c];

				finding_say(f, "; %s took %.3f s (%.4f GiB/s)", one->name,
					    one->seconds, one->gib_per_s);
				goto said;
			}
said:
	finding_say(f, ". Neither the time nor the rate represents a real checkpoint.");
	finding_advise(f, "Set model.model_size_bytes, the key that DLIO reads.");
}

static void check_complete(struct audit *a, size_t i)
{
	const struct run_record *r = &a->record[i];

	if (generated_only(r) || r->trained || r->ours)
		return;
	struct finding *f = audit_add(a, i, "complete", AUDIT_WARN);

	finding_say(f, "The result has no training figures although the configuration is not for "
		       "data generation only: the run failed or was killed.");
	finding_advise(f, "Check its log, and repeat the run.");
}

/* ---- configuration: keys without effect ---- */

struct walk_keys {
	struct audit *a;
	size_t record;
	const struct run_record *r;
};

/* DLIO reads a key only under its own spelling: our aliases and additions are unknown to it. */
static bool known_to_dlio(const char *key)
{
	const struct opt *row = opt_find(workload_rows, workload_row_count, key);

	return row && strcmp(row->key, key) == 0 && !(row->flags & OPT_STOKER);
}

/* A map that is a row's value, such as train.computation_time. */
static bool value_below(const char *key)
{
	const struct opt *row = opt_find(workload_rows, workload_row_count, key);

	return row && (row->type == OPT_MAP || row->type == OPT_TIME);
}

static void report_ignored_key(struct walk_keys *w, const char *key, const struct node *v)
{
	const struct opt *row = opt_find(workload_rows, workload_row_count, key);
	const char *near = row && strcmp(row->key, key) != 0
				   ? row->key
				   : opt_nearest_key(workload_rows, workload_row_count, key);
	char value[NODE_QUOTE_MAX];
	struct finding *f = audit_add(w->a, w->record, "config", AUDIT_WARN);

	finding_say(f, "The key %s (%s) had no effect: DLIO has no such key", key,
		    node_quote(v, value, sizeof(value)));
	if (near)
		finding_say(f, "; the closest match is %s", near);
	finding_say(f, ".");
	if (near)
		finding_advise(f, "Use %s.", near);
}

static void walk_keys(struct walk_keys *w, const struct node *map, const char *prefix)
{
	for (size_t i = 0; map->kind == NODE_MAP && i < map->n; i++) {
		char key[256];
		const struct node *v = map->child[i];

		snprintf(key, sizeof(key), "%s%s%s", prefix, prefix[0] ? "." : "", map->key[i]);
		if (strcmp(key, "hydra") == 0)
			continue;
		if (v->kind == NODE_MAP && !value_below(key))
			walk_keys(w, v, key);
		else if (!known_to_dlio(key))
			report_ignored_key(w, key, v);
	}
}

static void check_keys(struct audit *a, size_t i)
{
	struct walk_keys w = {a, i, &a->record[i]};
	const struct node *sections = node_get(w.r->config, "workload");

	if (!w.r->ours && sections && w.r->trained)
		walk_keys(&w, sections, "");
}

static void check_profiler(struct audit *a, size_t i)
{
	const struct run_record *r = &a->record[i];
	const struct node *p = node_path(r->config, "workload.profiling.profiler");
	struct finding *f;

	if (r->ours || !p || !r->has_workload || r->workload.workflow.profiling || !r->trained)
		return;
	f = audit_add(a, i, "config", AUDIT_NOTE);
	finding_say(f,
		    "profiling.profiler is set but workflow.profiling is off: the device was not "
		    "monitored.");
	finding_advise(f, "Set workflow.profiling=True.");
}

/* DLIO's index loader of PyTorch asks for the samples in ascending order whatever is shuffled. */
static void check_shuffle(struct audit *a, size_t i)
{
	const struct run_record *r = &a->record[i];
	struct finding *f;

	if (r->ours || !r->trained || !r->has_workload ||
	    !(workload_loader(&r->workload)->default_of & 1u << FRAMEWORK_PYTORCH) ||
	    (r->workload.reader.sample_shuffle == SHUFFLE_OFF &&
	     r->workload.reader.file_shuffle == SHUFFLE_OFF))
		return;
	f = audit_add(a, i, "order", AUDIT_NOTE);
	finding_say(f, "Shuffling is on but does not change the read order: DLIO's PyTorch loader "
		       "reads each rank's files in sorted order, the same in every epoch.");
	finding_advise(f, "Do not use this result to compare shuffle settings.");
}

/* ---- the run over all checks ---- */

/* What our own run said of itself, with more knowledge than its files show afterwards. */
static void copy_verdicts(struct audit *a, size_t i)
{
	const json_t *list = json_object_get(a->record[i].result, "verdicts");

	for (size_t k = 0; k < json_array_size(list); k++) {
		const json_t *v = json_array_get(list, k);
		const char *check = json_string_value(json_object_get(v, "check"));
		const char *level = json_string_value(json_object_get(v, "level"));
		const char *text = json_string_value(json_object_get(v, "text"));
		const struct verdict_ops *row;
		struct finding *f;

		if (!check || !level || !text)
			continue;
		if (strcmp(level, "fail") != 0 && strcmp(level, "warn") != 0)
			continue;
		f = audit_add(a, i, check, level[0] == 'f' ? AUDIT_FAIL : AUDIT_WARN);
		row = verdict_find(check);
		f->about_cache = row && row->about_cache;
		finding_say(f, "%s", text);
	}
}

static void report_missing_files(struct audit *a, size_t i)
{
	const struct run_record *r = &a->record[i];

	for (size_t k = 0; k < r->notes.n; k++) {
		struct finding *f = audit_add(a, i, "complete", AUDIT_WARN);

		finding_say(f, "%s.", r->notes.v[k]);
		finding_advise(f, "Keep all files of a result folder; checks that need the missing "
				  "files were skipped.");
	}
}

/* Nothing else is said of it: the figures that are left cannot be checked. */
static void report_broken(struct audit *a, size_t i)
{
	struct finding *f = audit_add(a, i, "complete", AUDIT_FAIL);
	struct derive d;

	f->damage = true;
	finding_say(f, "%s.", a->record[i].broken);
	finding_advise(f, "Restore the file as the run left it, or repeat the run.");
	d = derive_begin(a, i, "complete", "everything", "all figures of the result");
	derive_unchecked(&d, "the result cannot be read in full");
}

static void report_damage(struct audit *a, size_t i)
{
	const struct run_record *r = &a->record[i];

	for (size_t k = 0; k < r->damage.n; k++) {
		struct finding *f = audit_add(a, i, "complete", AUDIT_FAIL);

		f->damage = true;
		finding_say(f, "%s.", r->damage.v[k]);
		finding_advise(f, "Restore the file as the run left it, or repeat the run.");
	}
}

/* A check looks at one record of the audit; those that compare look at the others too. */
typedef void (*audit_check)(struct audit *a, size_t i);

static const audit_check checks[] = {
	check_steady,       check_window,        check_rank_spread, check_possible,
	check_rate_formula, check_compute_time,  check_few_epochs,  check_evaluation,
	check_page_cache,   check_nominal_bytes, check_checkpoints, check_complete,
	check_keys,         check_profiler,      check_shuffle,     derive_digests,
	derive_origin,      derive_steps,        derive_summary,    derive_result,
	derive_bytes,       derive_verdicts,     derive_judged,     derive_log,
};

static void check_record(struct audit *a, size_t i)
{
	if (a->record[i].broken) {
		report_broken(a, i);
		return;
	}
	report_damage(a, i);
	report_missing_files(a, i);
	if (a->record[i].ours)
		copy_verdicts(a, i);
	for (size_t k = 0; k < sizeof(checks) / sizeof(checks[0]); k++)
		checks[k](a, i);
}

/* The checks of results that belong together; then the list is complete. */
static void compare_and_sort(struct audit *a)
{
	struct places p;

	find_places(&p, a->record, a->records);
	for (size_t i = 0; i < a->records; i++)
		if (!a->record[i].broken)
			check_dataset(a, i, &p);
	release_places(&p);
	if (a->findings)
		qsort(a->finding, a->findings, sizeof(*a->finding), by_record);
	a->first = xcalloc(a->records + 1, sizeof(*a->first));
	a->first_topic = xcalloc(a->records + 1, sizeof(*a->first_topic));
	for (size_t k = 0; k < a->findings; k++)
		a->first[a->finding[k].record + 1]++;
	for (size_t k = 0; k < a->topics; k++)
		a->first_topic[a->topic[k].record + 1]++;
	for (size_t i = 0; i < a->records; i++) {
		a->first[i + 1] += a->first[i];
		a->first_topic[i + 1] += a->first_topic[i];
	}
}

void audit_run(struct audit *a, const struct run_record *record, size_t n)
{
	*a = (struct audit){.record = record, .records = n};
	for (size_t i = 0; i < n; i++)
		check_record(a, i);
	compare_and_sort(a);
}

void audit_alone(struct run_record *r)
{
	struct audit a;

	audit_run(&a, r, 1);
	for (size_t i = 0; i < a.findings; i++) {
		const struct finding *f = &a.finding[i];
		struct buf text = {0};

		if (f->damage || strcmp(f->check, "digest") == 0) {
			finding_sentence(&a, f, &text);
			buf_putc(&text, '.');
			str_list_add(f->damage ? &r->alone.damage : &r->alone.changed,
				     buf_take(&text));
		}
		if (f->level == AUDIT_FAIL)
			str_list_add(&r->alone.failed, xstrdup(f->check));
	}
	audit_release(&a);
}

/* ---- one result at a time ---- */

/* Each result has an audit of its own, until it is its turn. */
struct reading {
	struct audit *all, *one;
	const struct record_visit *also;
};

static void begin_reading(void *arg, size_t n)
{
	struct reading *d = arg;

	d->one = xcalloc(n + 1, sizeof(*d->one));
	d->all->records = n;
	if (d->also && d->also->begin)
		d->also->begin(d->also->arg, n);
}

static void look(void *arg, size_t i, struct run_record *r)
{
	struct reading *d = arg;
	struct audit *a = &d->one[i];

	*a = (struct audit){.record = r, .records = 1};
	check_record(a, 0);
	if (d->also && d->also->look)
		d->also->look(d->also->arg, i, r);
}

static void take(void *arg, size_t i, struct run_record *r)
{
	struct reading *d = arg;
	struct audit *one = &d->one[i];

	audit_append(d->all, one, i);
	if (d->also && d->also->take)
		d->also->take(d->also->arg, i, r);
}

int audit_read(struct audit *a, struct records *out, const char *const *path, size_t n,
	       const struct record_visit *also, struct err *e)
{
	struct reading d = {.all = a, .also = also};
	const struct record_visit v = {.arg = &d,
				       .texts = also ? also->texts : NULL,
				       .begin = begin_reading,
				       .look = look,
				       .take = take};
	int rc;

	*a = (struct audit){0};
	rc = records_visit(out, path, n, &v, e);
	free(d.one);
	a->record = out->v;
	if (rc == 0)
		compare_and_sort(a);
	return rc;
}
