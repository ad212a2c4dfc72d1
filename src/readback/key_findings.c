/* Key findings: sentences made from the groups, with the figures they rest on. They use the whole
 * wall time, which no prefetch queue can flatter. */
#include "readback/key_findings.h"

#include <math.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "readback/claim.h"
#include "readback/compare.h"

static const double EFFICIENT = 0.8;  /* of perfect scaling that still counts as scaling */
static const double WAIT_LARGE = 10;  /* percent of training time spent waiting that limits */
static const double OTHER_LARGE = 10; /* in barriers */
static const double LEVEL = 0.05;     /* of the tests */

static struct key_finding *new_finding(struct key_findings *k, const char *topic)
{
	struct key_finding *f;

	k->v = xrealloc(k->v, (k->n + 1) * sizeof(*k->v));
	f = &k->v[k->n++];
	*f = (struct key_finding){0};
	snprintf(f->topic, sizeof(f->topic), "%s", topic);
	return f;
}

__attribute__((format(printf, 2, 3))) static void say(struct key_finding *f, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	buf_vprintf(&f->text, fmt, ap);
	va_end(ap);
}

static const char *factors_text(const struct run_group *x)
{
	return x->factors[0] ? x->factors : "no overrides";
}

static const char *plural(size_t n)
{
	return n == 1 ? "" : "s";
}

/* ---- how much of it can be trusted ---- */

/* What the numbers are numbers of, as each run says itself: no headline is kinder than that. */
static void say_measured(struct key_finding *f, const struct run_groups *g)
{
	size_t doubted = 0, known = 0;
	const char *first = NULL;

	for (size_t i = 0; i < g->records; i++) {
		const json_t *m = json_object_get(g->record[i].result, "measured");
		const char *text = claim_text(&g->record[i]);
		const char *storage = claim_storage(&g->record[i]);

		if (!text || !storage)
			continue;
		known++;
		if (strcmp(storage, "yes") == 0 &&
		    json_array_size(json_object_get(m, "taken")) == 0)
			continue;
		doubted++;
		first = first ? first : text;
	}
	if (g->records == 1 && doubted)
		say(f, " Measured: %.400s", first);
	else if (doubted)
		say(f,
		    " %zu of %zu runs did not measure the storage alone, or not what lasts; the "
		    "first of them: %.400s",
		    doubted, known, first);
}

/* Warnings that a reader must not miss: what was read came from memory. Runs that say themselves
 * what they measured are not counted again. */
static void say_cached(struct key_finding *f, const struct run_groups *g)
{
	size_t cached = 0;

	say_measured(f, g);
	for (size_t i = 0; i < g->records; i++)
		for (size_t a = 0; a < g->audit->findings; a++) {
			const struct finding *x = &g->audit->finding[a];

			if (x->record != i || x->level != AUDIT_WARN || !x->about_cache ||
			    claim_storage(&g->record[i]))
				continue;
			cached++;
			break;
		}
	if (cached == 1 && g->records == 1)
		say(f, " The page cache served some or all of its reads.");
	else if (cached)
		say(f, " In %zu run%s, the page cache served some or all of the reads.", cached,
		    plural(cached));
}

static void say_copies(struct key_finding *f, const struct run_groups *g)
{
	size_t copies = 0;

	for (size_t i = 0; i < g->groups; i++)
		copies += g->group[i].copies;
	if (copies)
		say(f, " %zu result%s a copy of another one and not counted as a repetition.",
		    copies, copies == 1 ? " is" : "s are each");
}

/* A check that failed, and the runs in which it did. */
struct failed_check {
	const char *name;
	size_t runs, last_record;
};

static int by_runs(const void *x, const void *y)
{
	const struct failed_check *a = x, *b = y;

	if (a->runs != b->runs)
		return a->runs > b->runs ? -1 : 1;
	return strcmp(a->name, b->name);
}

/* One for each name, with room for all findings; *n of them, on the heap. */
static struct failed_check *failed_checks(const struct audit *a, size_t *n)
{
	struct failed_check *v = xcalloc(a->findings + 1, sizeof(*v));

	*n = 0;
	for (size_t i = 0; i < a->findings; i++) {
		const struct finding *f = &a->finding[i];
		size_t k = 0;

		if (f->level != AUDIT_FAIL)
			continue;
		while (k < *n && strcmp(v[k].name, f->check) != 0)
			k++;
		if (k == *n)
			v[(*n)++].name = f->check;
		else if (v[k].last_record == f->record)
			continue;
		v[k].last_record = f->record;
		v[k].runs++;
	}
	qsort(v, *n, sizeof(*v), by_runs);
	return v;
}

static size_t failed_runs(const struct run_groups *g)
{
	size_t bad = 0, last = SIZE_MAX;

	/* findings are in the order of the records */
	for (size_t i = 0; i < g->audit->findings; i++) {
		const struct finding *f = &g->audit->finding[i];

		if (f->level != AUDIT_FAIL || f->record == last)
			continue;
		last = f->record;
		bad += g->record[f->record].trained;
	}
	return bad;
}

static void find_trust(struct key_findings *k, const struct run_groups *g)
{
	size_t runs = 0, bad = failed_runs(g), n;
	struct failed_check *failed;
	struct key_finding *f = new_finding(k, "verdict");

	for (size_t i = 0; i < g->records; i++)
		runs += g->record[i].trained;
	if (bad == 0) {
		if (runs == 0)
			say(f, "0 training runs: nothing to check.");
		else if (runs == 1)
			say(f, "No check failed for this run.");
		else
			say(f, "No check failed for any of the %zu runs.", runs);
		say_cached(f, g);
		say_copies(f, g);
		return;
	}
	failed = failed_checks(g->audit, &n);
	say(f, "%zu of %zu run%s %s invalid results:", bad, runs, plural(runs),
	    bad == 1 ? "has" : "have");
	for (size_t c = 0; c < n; c++)
		say(f, "%s %s (%zu)", c ? "," : "", failed[c].name, failed[c].runs);
	say(f, ". Their AU and MB/s do not describe the storage.");
	say_cached(f, g);
	say_copies(f, g);
	free(failed);
}

/* ---- the best ---- */

static double rate_of(const struct run_group *x)
{
	return sample_stat_of(x->throughput_v, x->throughput_n).mean;
}

/* Memory or the page cache served a run of the group: by its own words, or where it has none by the
 * audit. */
static bool from_memory(const struct run_groups *g, const struct run_group *x)
{
	for (size_t i = 0; i < x->records; i++) {
		if (claim_from_memory(&g->record[x->record[i]]))
			return true;
		for (size_t a = 0; a < g->audit->findings; a++) {
			const struct finding *f = &g->audit->finding[a];

			if (f->record == x->record[i] && f->about_cache &&
			    (f->level == AUDIT_WARN || f->level == AUDIT_FAIL) &&
			    !claim_storage(&g->record[f->record]))
				return true;
		}
	}
	return false;
}

static bool emulated(const struct run_groups *g, const struct run_group *x)
{
	const char *storage = claim_storage(&g->record[x->record[0]]);

	return storage && strcmp(storage, "emulated") == 0;
}

static double computation_of(const struct run_record *r)
{
	return r->has_workload ? time_dist_mean(&r->workload.train.computation_time) : NAN;
}

/* The groups of one model that are ranked, and what makes their figures unlike. */
struct ranking {
	const struct run_group *au, *rate;
	size_t all, ranked, left_out; /* groups; left out because of memory */
	bool sound, memory;           /* some are sound; none but those from memory is left */
	size_t emulated;
	double bytes[2], computation[2]; /* least and most: of a sample, s of a step */
};

static void spread(double range[2], double v)
{
	if (!isfinite(v))
		return;
	range[0] = fmin(range[0], v);
	range[1] = fmax(range[1], v);
}

static bool wide(const double range[2])
{
	return range[1] > range[0] * 1.001;
}

static void rank_group(struct ranking *k, const struct run_groups *g, const struct run_group *x)
{
	const struct run_record *r = &g->record[x->record[0]];

	k->ranked++;
	k->emulated += emulated(g, x);
	spread(k->bytes, record_sample_bytes(r));
	spread(k->computation, computation_of(r));
	if (x->whole_au_n && (!k->au || x->whole_au.mean > k->au->whole_au.mean))
		k->au = x;
	if (x->throughput_n && (!k->rate || rate_of(x) > rate_of(k->rate)))
		k->rate = x;
}

static struct ranking rank_groups(const struct run_groups *g, const char *model)
{
	struct ranking k = {.memory = true,
			    .bytes = {INFINITY, -INFINITY},
			    .computation = {INFINITY, -INFINITY}};

	for (size_t i = 0; i < g->groups; i++)
		if (strcmp(g->group[i].model, model) == 0) {
			k.sound = k.sound || !g->group[i].unsound;
			k.all++;
		}
	for (size_t i = 0; i < g->groups; i++)
		if (strcmp(g->group[i].model, model) == 0 && !(k.sound && g->group[i].unsound))
			k.memory = k.memory && from_memory(g, &g->group[i]);
	for (size_t i = 0; i < g->groups; i++) {
		const struct run_group *x = &g->group[i];

		if (strcmp(x->model, model) != 0 || (k.sound && x->unsound))
			continue;
		if (!k.memory && from_memory(g, x))
			k.left_out++;
		else
			rank_group(&k, g, x);
	}
	return k;
}

static void say_ranking(struct key_finding *f, const struct ranking *k, const char *model)
{
	const struct run_group *au = k->au, *rate = k->rate;

	say(f,
	    "%s: accelerator utilization is highest with %u process%s and %s (%.1f %% of the wall "
	    "time)",
	    model, au->ranks, au->ranks == 1 ? "" : "es", factors_text(au), au->whole_au.mean);
	if (wide(k->bytes))
		say(f,
		    ". Throughput in samples/s is not ranked: a sample has %.0f to %.0f bytes in "
		    "these configurations.",
		    k->bytes[0], k->bytes[1]);
	else if (rate == au)
		say(f, ", where throughput is also highest (%.1f samples/s).", rate_of(rate));
	else
		say(f,
		    "; throughput is highest with %u process%s and %s (%.1f samples/s, at %.1f "
		    "%%).",
		    rate->ranks, rate->ranks == 1 ? "" : "es", factors_text(rate), rate_of(rate),
		    rate->whole_au.mean);
}

static void find_best(struct key_findings *k, const struct run_groups *g, const char *model)
{
	struct ranking x = rank_groups(g, model);
	struct key_finding *f;

	if (!x.au || !x.rate || x.all < 2)
		return;
	f = new_finding(k, "best");
	if (x.ranked > 1)
		say_ranking(f, &x, model);
	else
		say(f, "%s: only one configuration can be ranked (%s, %.1f %% of the wall time).",
		    model, factors_text(x.au), x.au->whole_au.mean);
	if (x.memory)
		say(f, " In all of them, the page cache or memory served reads: these are not "
		       "figures of the storage.");
	if (x.left_out)
		say(f, " %zu configuration%s not ranked: the page cache or memory served %s reads.",
		    x.left_out, x.left_out == 1 ? " is" : "s are",
		    x.left_out == 1 ? "its" : "their");
	if (x.emulated && x.emulated < x.ranked)
		say(f, " %zu of the %zu read from a store inside Stoker, not from storage.",
		    x.emulated, x.ranked);
	if (wide(x.computation))
		say(f,
		    " The accelerators differ (train.computation_time of %g to %g s), so AU does "
		    "not compare storage.",
		    x.computation[0], x.computation[1]);
	if (!x.sound)
		say(f, " Every configuration of this model has a failed check, so these figures "
		       "cannot be trusted.");
	if (isfinite(x.au->target) && x.au->whole_au.mean < x.au->target)
		say(f, " No configuration reaches the target of %.0f %%.", x.au->target);
}

/* Whether a test of chance can be made of two groups. */
static bool testable(const struct run_group *a, const struct run_group *b)
{
	return a->records >= COMPARE_RUNS_NEEDED && b->records >= COMPARE_RUNS_NEEDED &&
	       a->whole_au_n >= 2 && b->whole_au_n >= 2;
}

/* ---- scaling ---- */

static void find_scaling(struct key_findings *k, const struct run_groups *g, const char *model)
{
	const struct run_group *line[64];
	const struct run_group *last;
	size_t n = 0, stop = 0;
	struct key_finding *f;

	for (size_t i = 0; i < g->groups && n < 64; i++)
		if (strcmp(g->group[i].model, model) == 0 && !g->group[i].factors[0] &&
		    g->group[i].throughput_n)
			line[n++] = &g->group[i]; /* sorted by ranks */
	if (n < 2)
		return;
	for (size_t i = 1; i < n; i++) {
		double perfect = (double)line[i]->ranks / line[0]->ranks;

		if (rate_of(line[i]) / rate_of(line[0]) < EFFICIENT * perfect)
			break;
		stop = i;
	}
	last = line[n - 1];
	f = new_finding(k, "scaling");
	say(f,
	    "%s: from %u to %u processes, throughput changes by a factor of %.2f (%.0f %% of "
	    "linear scaling)",
	    model, line[0]->ranks, last->ranks, rate_of(last) / rate_of(line[0]),
	    100 * rate_of(last) / rate_of(line[0]) * line[0]->ranks / last->ranks);
	if (stop == n - 1) {
		say(f, "; scaling did not end within this range.");
		return;
	}
	say(f, "; it falls below %.0f %% of linear scaling beyond %u processes", 100 * EFFICIENT,
	    line[stop]->ranks);
	if (testable(line[stop], line[stop + 1]) && line[stop]->throughput_n > 1 &&
	    line[stop + 1]->throughput_n > 1) {
		struct welch w =
			welch_test(line[stop]->throughput_v, line[stop]->throughput_n,
				   line[stop + 1]->throughput_v, line[stop + 1]->throughput_n);

		say(f,
		    ": %u processes reach %.1f samples/s, a change of %+.1f samples/s (95 %% "
		    "confidence interval %+.1f to %+.1f)",
		    line[stop + 1]->ranks, rate_of(line[stop + 1]), w.change, w.low, w.high);
	}
	say(f, ".");
}

/* ---- factors ---- */

static const struct run_group *base_of(const struct run_groups *g, const struct run_group *x)
{
	for (size_t i = 0; i < g->groups; i++)
		if (g->group[i].ranks == x->ranks && !g->group[i].factors[0] &&
		    strcmp(g->group[i].model, x->model) == 0)
			return &g->group[i];
	return NULL;
}

/* By the test, or without one by whether the values of the two overlap. */
static bool differ(const struct run_group *base, const struct run_group *x, struct welch *w)
{
	if (!testable(base, x))
		return x->whole_au.min > base->whole_au.max || x->whole_au.max < base->whole_au.min;
	*w = welch_test(base->whole_au_v, base->whole_au_n, x->whole_au_v, x->whole_au_n);
	return w->p < LEVEL;
}

static void find_factor(struct key_findings *k, const struct run_groups *g,
			const struct run_group *x)
{
	const struct run_group *base = base_of(g, x);
	struct key_finding *f;
	struct welch w;

	if (!x->factors[0] || !base || x->whole_au_n < 2 || base->whole_au_n < 2 ||
	    !differ(base, x, &w))
		return;
	f = new_finding(k, "factor");
	say(f, "%s, %u processes: %s changes whole-run AU from %.1f %% to %.1f %%", x->model,
	    x->ranks, x->factors, base->whole_au.mean, x->whole_au.mean);
	if (testable(base, x))
		say(f, " (%+.1f points, 95 %% confidence interval %+.1f to %+.1f, over runs).",
		    w.change, w.low, w.high);
	else
		say(f,
		    " (%+.1f points; a test of chance needs %d runs each, there %s %zu and %zu).",
		    x->whole_au.mean - base->whole_au.mean, COMPARE_RUNS_NEEDED,
		    base->records == 1 ? "is" : "are", base->records, x->records);
	if (x->unsound || base->unsound)
		say(f, " At least one of the two failed a check.");
	if (from_memory(g, x) != from_memory(g, base))
		say(f, " The page cache or memory served reads of only one of them.");
}

/* Those without a difference are listed in one sentence: one for each would hide the others. */
static void find_no_difference(struct key_findings *k, const struct run_groups *g,
			       const struct run_group *base, bool tested)
{
	struct key_finding *f = NULL;
	double least = 1;
	size_t listed = 0;

	for (size_t i = 0; i < g->groups; i++) {
		const struct run_group *x = &g->group[i];
		struct welch w;

		if (!x->factors[0] || base_of(g, x) != base || x->whole_au_n < 2 ||
		    testable(base, x) != tested || differ(base, x, &w))
			continue;
		if (!f) {
			f = new_finding(k, "factor");
			say(f, "%s, %u processes: no %s in whole-run AU with", base->model,
			    base->ranks,
			    tested ? "significant difference" : "difference beyond the spread");
		}
		say(f, "%s %s", listed++ ? "," : "", x->factors);
		if (tested)
			least = w.p < least ? w.p : least;
	}
	if (f && tested)
		say(f, " (lowest p = %.2g, baseline %.1f %%).", least, base->whole_au.mean);
	else if (f)
		say(f, " (baseline %.1f %%; too few runs for a test of chance).",
		    base->whole_au.mean);
}

/* ---- limits ---- */

static void find_limits(struct key_findings *k, const struct run_groups *g)
{
	size_t data = 0, barrier = 0, compute = 0, all = 0;
	const struct run_group *worst = NULL;
	struct key_finding *f;

	for (size_t i = 0; i < g->groups; i++) {
		const struct run_group *x = &g->group[i];

		if (!isfinite(x->wait_share))
			continue;
		all++;
		if (x->wait_share > WAIT_LARGE && x->wait_share >= x->other_share)
			data++;
		else if (x->other_share > OTHER_LARGE)
			barrier++;
		else
			compute++;
		if (!worst || x->wait_share > worst->wait_share)
			worst = x;
	}
	if (!worst)
		return;
	f = new_finding(k, "limit");
	if (all == 1 && data == 0)
		say(f, "The configuration %s.",
		    barrier ? "spent most of the lost time synchronizing its ranks"
			    : "spent most of its time computing");
	else if (all == 1)
		say(f,
		    "The configuration waited for data for more than %.0f %% of the training time.",
		    WAIT_LARGE);
	else
		say(f,
		    "%zu of %zu configurations waited for data for more than %.0f %% of the "
		    "training time, %zu waited for other ranks, and %zu %s limited by "
		    "computation.",
		    data, all, WAIT_LARGE, barrier, compute, compute == 1 ? "was" : "were");
	if (data)
		say(f, " The longest wait was %.0f %%: %s, %u processes, %s.", worst->wait_share,
		    worst->model, worst->ranks, factors_text(worst));
}

void key_findings_build(struct key_findings *k, const struct run_groups *g)
{
	const char *model = NULL;

	*k = (struct key_findings){0};
	find_trust(k, g);
	find_limits(k, g);
	for (size_t i = 0; i < g->groups; i++) {
		if (model && strcmp(g->group[i].model, model) == 0)
			continue;
		model = g->group[i].model;
		find_best(k, g, model);
		find_scaling(k, g, model);
	}
	for (size_t i = 0; i < g->groups; i++)
		find_factor(k, g, &g->group[i]);
	for (size_t i = 0; i < g->groups; i++)
		if (!g->group[i].factors[0] && g->group[i].whole_au_n > 1) {
			find_no_difference(k, g, &g->group[i], true);
			find_no_difference(k, g, &g->group[i], false);
		}
}

void key_findings_release(struct key_findings *k)
{
	for (size_t i = 0; i < k->n; i++)
		buf_release(&k->v[i].text);
	free(k->v);
	*k = (struct key_findings){0};
}
