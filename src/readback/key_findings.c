/* Key findings: sentences made from the groups, with the figures they rest on. They use the whole
 * wall time, which no prefetch queue can flatter. */
#include "readback/groups.h"
#include "readback/record_measures.h"

#include <math.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/map.h"
#include "readback/sides.h"
#include "readback/compare.h"
#include "readback/effects.h"
#include "readback/reach.h"

static const double EFFICIENT = 0.8;  /* of perfect scaling that still counts as scaling */
static const double WAIT_LARGE = 10;  /* percent of training time spent waiting that limits */
static const double OTHER_LARGE = 10; /* that is neither that nor computation */
#define TIES_NAMED 3
#define LINE_MAX_POINTS 64
#define FACTORS_SAID 12
#define SAME_SAID 8

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
		const char *text = claim_text(&g->record[i]);
		const char *storage = claim_storage(&g->record[i]);

		if (!text || !storage)
			continue;
		known++;
		if (strcmp(storage, "yes") == 0 && g->record[i].facts.taken.n == 0)
			continue;
		doubted++;
		first = first ? first : text;
	}
	if (g->records == 1 && doubted)
		say(f, " Measured: %.400s", first);
	else if (doubted)
		say(f,
		    " In %zu of %zu runs, the numbers are not those of the storage alone. The "
		    "first of "
		    "these runs measured: %.400s",
		    doubted, known, first);
}

/* Of several runs, what can be said of all: of DLIO's, sizes alone are known. */
static const char *served_word(const char *before, const struct run_record *r)
{
	return r->ours ? before : "may have served";
}

/* Warnings that a reader must not miss: what was read came from memory, or may have. Runs that say
 * themselves what they measured are not counted again. */
static void say_cached(struct key_finding *f, const struct run_groups *g)
{
	size_t cached = 0, maybe = 0, checkpoints = 0;

	say_measured(f, g);
	for (size_t i = 0; i < g->records; i++) {
		const struct run_record *r = &g->record[i];
		size_t n;
		const struct finding *x = audit_of(g->audit, i, &n);

		while (n && (x->level != AUDIT_WARN || !x->about_cache)) {
			n--;
			x++;
		}
		if (n == 0 || claim_storage(r))
			continue;
		*(r->ours ? &cached : r->trained ? &maybe : &checkpoints) += 1;
	}
	if (cached + maybe == 1 && g->records == 1)
		say(f, " The page cache %s some or all of its reads.",
		    cached ? "served" : "may have served");
	else if (cached + maybe)
		say(f, " In %zu run%s, the page cache %s some or all of the reads.", cached + maybe,
		    plural(cached + maybe), maybe ? "may have served" : "served");
	if (checkpoints)
		say(f,
		    " In %zu result%s of checkpoints, the page cache may have served what was "
		    "read back.",
		    checkpoints, plural(checkpoints));
}

/* What a table of runs of training does not have. */
static void say_untrained(struct key_finding *f, const struct run_groups *g, size_t untrained)
{
	size_t failed = 0;

	for (size_t i = 0; i < g->records; i++)
		failed += g->standing[i] == RUN_UNTRAINED &&
			  audit_worst_of(g->audit, i) == AUDIT_FAIL;
	if (failed)
		say(f, " Of %zu result%s without training, %zu %s invalid.", untrained,
		    plural(untrained), failed, failed == 1 ? "is" : "are");
}

static void say_copies(struct key_finding *f, const struct run_groups *g)
{
	size_t copies = 0;

	for (size_t i = 0; i < g->groups; i++)
		copies += g->group[i].copies;
	if (copies)
		say(f,
		    " %zu result%s a copy of another one and not counted as a repetition; audit "
		    "calls both invalid.",
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
static struct failed_check *failed_checks(const struct run_groups *g, size_t *n)
{
	const struct audit *a = g->audit;
	struct failed_check *v = xcalloc(a->findings + 1, sizeof(*v));
	struct texts names = {0};

	*n = 0;
	for (size_t i = 0; i < a->findings; i++) {
		const struct finding *f = &a->finding[i];
		size_t k;

		if (f->level != AUDIT_FAIL ||
		    (g->standing[f->record] != RUN_FAILED && g->standing[f->record] != RUN_BROKEN))
			continue;
		k = texts_add(&names, f->check);
		if (k == *n)
			v[(*n)++].name = f->check;
		else if (v[k].last_record == f->record)
			continue;
		v[k].last_record = f->record;
		v[k].runs++;
	}
	texts_release(&names);
	if (*n)
		qsort(v, *n, sizeof(*v), by_runs);
	return v;
}

/* Runs that each reason leaves out. */
static void count_standing(const struct run_groups *g, size_t n[RUN_UNTRAINED + 1])
{
	for (size_t i = 0; i < g->records; i++)
		n[g->standing[i]]++;
}

/* One set of runs for all sentences, and which it is. */
static void say_counted(struct key_finding *f, const struct run_groups *g,
			const size_t n[RUN_UNTRAINED + 1])
{
	const char *served = "served";

	for (size_t i = 0; i < g->records; i++)
		if (g->standing[i] == RUN_FROM_MEMORY)
			served = served_word(served, &g->record[i]);
	if (n[RUN_IMPOSSIBLE])
		say(f, " %zu run%s %s left out: the whole-run AU is unknown or impossible.",
		    n[RUN_IMPOSSIBLE], plural(n[RUN_IMPOSSIBLE]),
		    n[RUN_IMPOSSIBLE] == 1 ? "is" : "are");
	if (n[RUN_FROM_MEMORY])
		say(f,
		    " %zu run%s that the page cache or memory %s %s left out: other runs of "
		    "the model were not served from there.",
		    n[RUN_FROM_MEMORY], plural(n[RUN_FROM_MEMORY]), served,
		    n[RUN_FROM_MEMORY] == 1 ? "is" : "are");
	if (n[RUN_COUNTS] == 0 && n[RUN_FAILED] + n[RUN_BROKEN] + n[RUN_IMPOSSIBLE] > 1)
		say(f, " No run is left to base findings on.");
	else if (n[RUN_COUNTS] &&
		 (n[RUN_FAILED] || n[RUN_BROKEN] || n[RUN_IMPOSSIBLE] || n[RUN_FROM_MEMORY]))
		say(f, " The findings below are based on the other %zu run%s.", n[RUN_COUNTS],
		    plural(n[RUN_COUNTS]));
}

static void find_trust(struct key_findings *k, const struct run_groups *g)
{
	size_t standing[RUN_UNTRAINED + 1] = {0}, runs, bad, n;
	struct failed_check *failed;
	struct key_finding *f = new_finding(k, "verdict");

	count_standing(g, standing);
	runs = g->records - standing[RUN_UNTRAINED] - standing[RUN_COPY];
	bad = standing[RUN_FAILED] + standing[RUN_BROKEN];
	if (bad) {
		failed = failed_checks(g, &n);
		say(f, "%zu of %zu run%s %s invalid results:", bad, runs, plural(runs),
		    bad == 1 ? "has" : "have");
		for (size_t c = 0; c < n; c++)
			say(f, "%s %s (%zu)", c ? "," : "", failed[c].name, failed[c].runs);
		say(f, ". Their AU and MB/s do not describe the storage, and they are left out.");
		free(failed);
	} else if (runs == 0) {
		say(f, "0 training runs: nothing to check.");
	} else if (runs == 1) {
		say(f, "No check failed for this run.");
	} else {
		say(f, "No check failed for any of the %zu runs.", runs);
	}
	say_untrained(f, g, standing[RUN_UNTRAINED]);
	say_counted(f, g, standing);
	say_cached(f, g);
	say_copies(f, g);
}

/* ---- configurations in words ---- */

static const char *factors_text(const struct run_group *x)
{
	if (x->factors[0])
		return x->factors;
	return x->shared ? "no other overrides" : "no overrides";
}

static const char *accelerators(uint32_t n)
{
	return n == 1 ? "accelerator" : "accelerators";
}

static double rate_of(const struct run_group *x)
{
	return x->whole_rate.mean;
}

/* What a test of chance says, or nothing. */
static void say_interval(struct key_finding *f, const struct effect *e, const struct run_group *a,
			 const struct run_group *b)
{
	if (e->tested)
		say(f, "; 95 %% confidence interval %+.1f to %+.1f, over %zu and %zu runs",
		    e->test.low, e->test.high, a->counted, b->counted);
}

/* ---- limits ---- */

/* Of `all` configurations, those that lost most to one thing; those that are none are left out. */
static void say_limits(struct key_finding *f, size_t all, size_t data, size_t own, size_t other)
{
	static const char others[] = "(barriers, the start and the end of epochs)";
	size_t compute = all - data - other;

	say(f, "Of %zu configurations, ", all);
	if (data)
		say(f, "%zu lost most time to waiting for data", data);
	if (own)
		say(f, " (in %zu of them, the largest part is the framework's own code)", own);
	if (other)
		say(f, "%s%zu lost most time to other things %s", data ? ", " : "", other, others);
	if (compute == 0)
		say(f, ".");
	else if (data || other)
		say(f, ", and %zu lost at most %.0f %% in any one way.", compute, WAIT_LARGE);
	else
		say(f,
		    "none lost more than %.0f %% of the time to waiting for data or to other "
		    "things %s.",
		    WAIT_LARGE, others);
}

static void find_limits(struct key_findings *k, const struct run_groups *g)
{
	size_t data = 0, own = 0, other = 0, compute = 0, all;
	const struct run_group *worst = NULL;
	struct key_finding *f;

	for (size_t i = 0; i < g->groups; i++) {
		const struct run_group *x = &g->group[i];

		if (!x->counted || !isfinite(x->wait_share))
			continue;
		if (x->wait_share > WAIT_LARGE && x->wait_share >= x->other_share) {
			data++;
			own += g->record[x->record[0]].facts.cause == CAUSE_FRAMEWORK;
		} else if (x->other_share > OTHER_LARGE) {
			other++;
		} else {
			compute++;
		}
		if (!worst || x->wait_share > worst->wait_share)
			worst = x;
	}
	all = data + other + compute;
	if (!worst)
		return;
	f = new_finding(k, "limit");
	if (all == 1) {
		const char *others = worst->other_share > OTHER_LARGE
					     ? g->record[worst->record[0]].facts.others
					     : "";

		say(f,
		    "The configuration waited for data for %.1f %% of the training time; %.1f %% "
		    "was spent on neither waiting nor computation%s%s%s.",
		    worst->wait_share, worst->other_share, others[0] ? " (" : "", others,
		    others[0] ? ")" : "");
		if (own)
			say(f, " The largest part of the lost time is the framework's own code.");
		return;
	}
	say_limits(f, all, data, own, other);
	if (data)
		say(f, " The longest wait was %.1f %%: %s, %u %s, %s.", worst->wait_share,
		    worst->model, worst->ranks, accelerators(worst->ranks), factors_text(worst));
}

/* Of a single configuration, what its first run says of the framework's own code. */
static void find_costs(struct key_findings *k, const struct run_groups *g)
{
	const struct run_group *x = g->groups == 1 && g->group[0].counted ? &g->group[0] : NULL;
	const char *text = x ? g->record[x->record[0]].facts.costs_text : "";

	if (text[0])
		say(new_finding(k, "framework"), "%s", text);
}

/* ---- the best ---- */

static bool emulated(const struct run_groups *g, const struct run_group *x)
{
	const char *storage = claim_storage(&g->record[x->record[0]]);

	return storage && strcmp(storage, "emulated") == 0;
}

static double computation_of(const struct run_record *r)
{
	return r->facts.step_s;
}

/* The groups of one model that are ranked, and what makes their figures unlike. */
struct ranking {
	const struct run_group *au, *rate;
	size_t ranked;                  /* groups */
	size_t memory, failed, unknown; /* groups without a run that counts, by the reason */
	bool from_memory;               /* all that are ranked */
	const char *served, *out;       /* "served" or "may have served": of these, of `memory` */
	size_t emulated;                /* of those ranked */
	size_t hit, hit_by_dlio; /* that reach their target: by whole-run AU, by that of DLIO */
	double bytes[2], computation[2]; /* least and most: of a sample, s of a step */
	double target[2];                /* percent */
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
	k->hit += isfinite(x->target) && x->whole_au.mean >= x->target;
	k->hit_by_dlio += isfinite(x->target) && x->au.mean >= x->target;
	k->from_memory = k->from_memory && run_from_memory(g, x->record[0]);
	if (k->from_memory)
		k->served = served_word(k->served, r);
	spread(k->bytes, r->facts.sample_bytes);
	spread(k->computation, computation_of(r));
	spread(k->target, x->target);
	if (x->whole_au_n && (!k->au || x->whole_au.mean > k->au->whole_au.mean))
		k->au = x;
	if (x->throughput_n && (!k->rate || rate_of(x) > rate_of(k->rate)))
		k->rate = x;
}

static bool has_standing(const struct run_groups *g, const struct run_group *x, enum run_standing s)
{
	for (size_t r = 0; r < x->records; r++)
		if (g->standing[x->record[r]] == s)
			return true;
	return false;
}

static struct ranking rank_groups(const struct run_groups *g, const char *model)
{
	struct ranking k = {.from_memory = true,
			    .served = "served",
			    .out = "served",
			    .bytes = {INFINITY, -INFINITY},
			    .computation = {INFINITY, -INFINITY},
			    .target = {INFINITY, -INFINITY}};

	for (size_t i = 0; i < g->groups; i++) {
		const struct run_group *x = &g->group[i];

		if (strcmp(x->model, model) != 0)
			continue;
		if (x->counted)
			rank_group(&k, g, x);
		else if (has_standing(g, x, RUN_FROM_MEMORY)) {
			k.memory++;
			k.out = served_word(k.out, &g->record[x->record[0]]);
		} else if (has_standing(g, x, RUN_FAILED) || has_standing(g, x, RUN_BROKEN))
			k.failed++;
		else
			k.unknown++;
	}
	return k;
}

/* The configurations whose difference from the best is not beyond the error: a ranking would be
 * chance. */
static void say_ties(struct key_finding *f, const struct run_groups *g,
		     const struct run_group *best, enum effect_measure m)
{
	const struct run_group *tie[TIES_NAMED];
	size_t ties = 0;

	for (size_t i = 0; i < g->groups; i++) {
		const struct run_group *x = &g->group[i];

		if (x == best || !x->counted || strcmp(x->model, best->model) != 0 ||
		    effect_of(best, x, m).differs)
			continue;
		if (ties < TIES_NAMED)
			tie[ties] = x;
		ties++;
	}
	if (ties == 0) {
		say(f, ".");
		return;
	}
	say(f, "; %zu other%s not differ from it beyond the error:", ties,
	    ties == 1 ? " does" : "s do");
	for (size_t i = 0; i < ties && i < TIES_NAMED; i++)
		say(f, "%s %u %s and %s (%.1f%s)", i ? "," : "", tie[i]->ranks,
		    accelerators(tie[i]->ranks), factors_text(tie[i]),
		    m == EFFECT_WHOLE_AU ? tie[i]->whole_au.mean : rate_of(tie[i]),
		    m == EFFECT_WHOLE_AU ? " %" : "");
	if (ties > TIES_NAMED)
		say(f, ", and %zu more", ties - TIES_NAMED);
	say(f, ".");
}

static void say_ranking(struct key_finding *f, const struct run_groups *g, const struct ranking *k,
			const char *model)
{
	const struct run_group *au = k->au, *rate = k->rate;

	say(f, "%s: whole-run AU is highest with %u %s and %s (%.1f %%)", model, au->ranks,
	    accelerators(au->ranks), factors_text(au), au->whole_au.mean);
	say_ties(f, g, au, EFFECT_WHOLE_AU);
	if (wide(k->bytes)) {
		say(f,
		    " Throughput in samples/s is not ranked: a sample has %.0f to %.0f bytes in "
		    "these configurations.",
		    k->bytes[0], k->bytes[1]);
	} else if (rate == au) {
		say(f, " Throughput is highest there, too (%.1f samples/s)", rate_of(rate));
		say_ties(f, g, rate, EFFECT_WHOLE_RATE);
	} else if (rate) {
		say(f, " Throughput is highest with %u %s and %s (%.1f samples/s, at %.1f %%)",
		    rate->ranks, accelerators(rate->ranks), factors_text(rate), rate_of(rate),
		    rate->whole_au.mean);
		say_ties(f, g, rate, EFFECT_WHOLE_RATE);
	}
}

/* The rules of MLPerf Storage go by its own AU: where the two answers differ, both are said. */
static void say_targets(struct key_finding *f, const struct ranking *k)
{
	if (!(k->target[0] <= k->target[1]))
		return;
	say(f, " By whole-run AU, ");
	if (k->hit)
		say(f, "%zu of %zu reach", k->hit, k->ranked);
	else
		say(f, "no configuration reaches");
	if (wide(k->target))
		say(f, " %s target (%.0f to %.0f %%)", k->hit ? "their" : "its", k->target[0],
		    k->target[1]);
	else
		say(f, " the target of %.0f %%", k->target[0]);
	if (k->hit_by_dlio != k->hit)
		say(f, "; by AU as DLIO and MLPerf define it, %zu of %zu do", k->hit_by_dlio,
		    k->ranked);
	say(f, ".");
}

static void say_unranked(struct key_finding *f, size_t n, const char *before, const char *behind)
{
	if (n)
		say(f, " %zu configuration%s not ranked: %s %s %s.", n, n == 1 ? " is" : "s are",
		    before, n == 1 ? "its" : "their", behind);
}

/* Of a model without a run that counts. */
static void say_nothing(struct key_finding *f, const struct run_groups *g, const char *model)
{
	double range[2] = {INFINITY, -INFINITY};
	size_t runs = 0;

	for (size_t i = 0; i < g->groups; i++) {
		if (strcmp(g->group[i].model, model) != 0)
			continue;
		runs += g->group[i].records;
		for (size_t r = 0; r < g->group[i].records; r++)
			spread(range, record_whole_run_au(&g->record[g->group[i].record[r]]));
	}
	if (runs == 1)
		say(f, "%s: nothing is concluded, because the run is left out.", model);
	else
		say(f, "%s: nothing is concluded, because all %zu runs are left out.", model, runs);
	if (runs == 1 && range[0] <= range[1])
		say(f, " Whole-run AU was %.1f %%.", range[0]);
	else if (range[0] <= range[1])
		say(f, " Whole-run AU was %.1f to %.1f %%.", range[0], range[1]);
}

static void find_best(struct key_findings *k, const struct run_groups *g, const char *model)
{
	struct ranking x = rank_groups(g, model);
	struct key_finding *f;

	if (x.ranked == 1 && x.memory + x.failed + x.unknown == 0)
		return;
	f = new_finding(k, "best");
	if (!x.ranked || !x.au) {
		say_nothing(f, g, model);
		return;
	}
	if (x.ranked > 1)
		say_ranking(f, g, &x, model);
	else
		say(f, "%s: only one configuration can be ranked (%u %s and %s, %.1f %%).", model,
		    x.au->ranks, accelerators(x.au->ranks), factors_text(x.au),
		    x.au->whole_au.mean);
	if (x.from_memory)
		say(f,
		    " In all of them, the page cache or memory %s reads: these are not figures of "
		    "the storage.",
		    x.served);
	say_unranked(f, x.failed, "a check failed in each of", "runs");
	say_unranked(f, x.unknown, "the whole-run AU of", "runs is unknown or impossible");
	say_unranked(f, x.memory,
		     x.out[0] == 's' ? "the page cache or memory served"
				     : "the page cache or memory may have served",
		     "reads");
	if (x.emulated && x.emulated < x.ranked)
		say(f, " %zu of the %zu read from a store inside Stoker, not from storage.",
		    x.emulated, x.ranked);
	if (wide(x.computation))
		say(f,
		    " The accelerators differ (train.computation_time of %g to %g s), so AU does "
		    "not compare storage.",
		    x.computation[0], x.computation[1]);
	say_targets(f, &x);
}

/* ---- scaling ---- */

/* Groups of one model that differ in the number of accelerators alone. */
struct line {
	const struct run_group *v[LINE_MAX_POINTS];
	size_t n;
	struct str_list out; /* numbers of accelerators that are left out, with the reason */
};

static void put_on_line(struct line *l, const struct run_groups *g, const struct run_group *x)
{
	AUTO_FREE char *other = NULL;

	if (!x->counted) {
		str_list_add(&l->out, xasprintf("%u (%s)", x->ranks,
						run_standing_name(g->standing[x->record[0]])));
		return;
	}
	if (!x->throughput_n || l->n == LINE_MAX_POINTS)
		return;
	other = l->n ? other_difference(g, l->v[0], x, NULL) : NULL;
	if (other)
		str_list_add(&l->out, xasprintf("%u (it also differs in %s)", x->ranks, other));
	else
		l->v[l->n++] = x; /* sorted by ranks */
}

static void line_of(struct line *l, const struct run_groups *g, const char *model,
		    const char *factors)
{
	*l = (struct line){0};
	for (size_t i = 0; i < g->groups; i++)
		if (strcmp(g->group[i].model, model) == 0 &&
		    strcmp(g->group[i].factors, factors) == 0)
			put_on_line(l, g, &g->group[i]);
}

/* Without overrides, or else with those of most numbers of accelerators. `g`: the groups of the
 * model, of which those with the same overrides are neighbors. */
static void choose_line(struct line *l, const struct run_groups *g, const char *model)
{
	struct run_groups alike;

	line_of(l, g, model, "");
	for (size_t i = 0; i < g->groups && (l->n < 2 || l->v[0]->factors[0]); i += alike.groups) {
		struct line other;

		alike = *g;
		alike.group += i;
		for (alike.groups = 1; i + alike.groups < g->groups; alike.groups++)
			if (strcmp(alike.group[alike.groups].factors, alike.group->factors) != 0)
				break;
		line_of(&other, &alike, model, alike.group->factors);
		if (other.n > l->n) {
			str_list_release(&l->out);
			*l = other;
		} else {
			str_list_release(&other.out);
		}
	}
}

/* Up to which number of accelerators it stays above EFFICIENT: index in the line. */
static size_t last_efficient(const struct line *l)
{
	size_t stop = 0;

	for (size_t i = 1; i < l->n; i++) {
		double linear = (double)l->v[i]->ranks / l->v[0]->ranks;

		if (rate_of(l->v[i]) / rate_of(l->v[0]) < EFFICIENT * linear)
			break;
		stop = i;
	}
	return stop;
}

static void say_growth(struct key_finding *f, const struct line *l)
{
	const struct run_group *a = l->v[0], *b = l->v[l->n - 1];
	struct effect e = effect_of(a, b, EFFECT_WHOLE_RATE);
	double factor = rate_of(b) / rate_of(a);

	say(f, "%s%s%s: from %u to %u accelerators, throughput ", a->model,
	    a->factors[0] ? ", " : "", a->factors, a->ranks, b->ranks);
	if (!e.differs)
		say(f, "does not change beyond the error (%.1f and %.1f samples/s", rate_of(a),
		    rate_of(b));
	else if (factor < 1)
		say(f, "falls to %.0f %% (from %.1f to %.1f samples/s", 100 * factor, rate_of(a),
		    rate_of(b));
	else
		say(f, "rises %.2f times (from %.1f to %.1f samples/s", factor, rate_of(a),
		    rate_of(b));
	say_interval(f, &e, a, b);
	say(f, "), which is %.0f %% of linear scaling", 100 * factor * a->ranks / b->ranks);
}

static void find_scaling(struct key_findings *k, const struct run_groups *g, const char *model)
{
	const struct run_group *last, *peak;
	struct key_finding *f;
	struct line l;
	size_t stop;

	choose_line(&l, g, model);
	if (l.n < 2) {
		str_list_release(&l.out);
		return;
	}
	stop = last_efficient(&l);
	last = peak = l.v[l.n - 1];
	for (size_t i = 0; i < l.n; i++)
		if (rate_of(l.v[i]) > rate_of(peak))
			peak = l.v[i];
	f = new_finding(k, "scaling");
	say_growth(f, &l);
	if (stop == l.n - 1)
		say(f, "; it stays above %.0f %% of it throughout.", 100 * EFFICIENT);
	else if (stop == 0)
		say(f, "; with %u it is below %.0f %% of it.", l.v[1]->ranks, 100 * EFFICIENT);
	else
		say(f, "; it stays above %.0f %% of it up to %u.", 100 * EFFICIENT,
		    l.v[stop]->ranks);
	if (peak != last && effect_of(peak, last, EFFECT_WHOLE_RATE).differs)
		say(f, " It is highest with %u (%.1f samples/s).", peak->ranks, rate_of(peak));
	if (l.v[0]->whole_au_n && last->whole_au_n)
		say(f, " Whole-run AU goes from %.1f %% to %.1f %%.", l.v[0]->whole_au.mean,
		    last->whole_au.mean);
	for (size_t i = 0; i < l.out.n; i++)
		say(f, "%s %s%s", i ? "," : " Left out:", l.out.v[i], i + 1 == l.out.n ? "." : "");
	str_list_release(&l.out);
}

/* ---- factors ---- */

/* "unet3d, 4 accelerators, reader.batch_size=4" */
static void say_where(struct key_finding *f, const struct family *x)
{
	say(f, "%s, %u %s%s%s", x->group[0]->model, x->group[0]->ranks,
	    accelerators(x->group[0]->ranks), x->rest[0] ? ", " : "", x->rest);
}

static void say_reference(struct key_finding *f, const struct family *x)
{
	const struct run_group *base = x->group[0];

	say(f, "whole-run AU is %.1f %% ", base->whole_au.mean);
	if (x->base && !x->value[0])
		say(f, "without %s", x->key);
	else
		say(f, "with %s=%s%s", x->key, x->value, x->base ? " (no override)" : "");
}

static double largest_change(const struct family *x)
{
	double most = 0;

	for (size_t i = 1; i < x->groups; i++) {
		struct effect e = effect_of(x->group[0], x->group[i], EFFECT_WHOLE_AU);

		if (e.differs)
			most = fmax(most, fabs(e.change));
	}
	return most;
}

static void say_limits_of(struct key_finding *f, const struct family *x, const struct run_groups *g)
{
	struct buf text = {0};

	if (limits_put(&text, x, g))
		say(f, " What limits the runs: %s.", text.data);
	buf_release(&text);
}

static void find_factor(struct key_findings *k, const struct family *x, const struct run_groups *g)
{
	struct key_finding *f = new_finding(k, "factor");
	const struct run_group *base = x->group[0];
	size_t same = 0;

	say_where(f, x);
	say(f, ": ");
	say_reference(f, x);
	say(f, ".");
	for (size_t i = 1; i < x->groups; i++) {
		const struct run_group *y = x->group[i];
		struct effect e = effect_of(base, y, EFFECT_WHOLE_AU);

		same += !e.differs;
		if (!e.differs)
			continue;
		say(f, " It %s to %.1f %% with %s (%+.1f points", e.change < 0 ? "falls" : "rises",
		    y->whole_au.mean, family_value(x, y), e.change);
		say_interval(f, &e, base, y);
		say(f, ").");
	}
	for (size_t i = 1, said = 0; same && i < x->groups; i++) {
		const struct run_group *y = x->group[i];

		if (effect_of(base, y, EFFECT_WHOLE_AU).differs)
			continue;
		say(f, "%s %s (%.1f %%)", said++ ? "," : " No difference is shown with",
		    family_value(x, y), y->whole_au.mean);
	}
	if (same)
		say(f, ".");
	for (size_t i = 0; i < x->unlike.n; i++)
		say(f, "%s %s%s", i ? "," : " Not compared:", x->unlike.v[i],
		    i + 1 == x->unlike.n ? "." : "");
	say_limits_of(f, x, g);
}

/* Where a curve over a number becomes flat. */
static bool find_reach(struct key_findings *k, const struct family *x, const struct run_groups *g)
{
	struct buf text = {0};
	struct key_finding *f;
	bool said = reach_put(&text, x, g);

	if (said) {
		f = new_finding(k, "reach");
		say_where(f, x);
		say(f, ": %s", text.data);
	}
	buf_release(&text);
	return said;
}

/* Those without a difference are listed in one sentence: one for each would hide the others. */
static void find_no_difference(struct key_findings *k, const struct families *all)
{
	struct key_finding *f = NULL;
	size_t more = 0, said = 0;

	for (size_t i = 0; i < all->n; i++) {
		const struct family *x = &all->v[i];

		if (x->groups < 2 || largest_change(x) > 0)
			continue;
		if (said++ >= SAME_SAID) {
			more++;
			continue;
		}
		if (!f) {
			f = new_finding(k, "same");
			say(f, "No difference in whole-run AU is shown for");
		} else {
			say(f, ";");
		}
		say(f, " ");
		say_where(f, x);
		say(f, ": %s of ", x->key);
		for (size_t m = 0; m < x->groups; m++)
			say(f, "%s%s (%.1f %%)", m ? ", " : "",
			    m || x->value[0] ? family_value(x, x->group[m]) : "no override",
			    x->group[m]->whole_au.mean);
	}
	if (more)
		say(f, "; and %zu more comparison%s", more, plural(more));
	if (f)
		say(f, ".");
}

static void say_untested(struct key_findings *k, const struct families *all)
{
	for (size_t i = 0; i < all->n; i++)
		for (size_t m = 1; m < all->v[i].groups; m++)
			if (!effect_of(all->v[i].group[0], all->v[i].group[m], EFFECT_WHOLE_AU)
				     .tested) {
				say(new_finding(k, "untested"),
				    "Changes without an interval are based on fewer than %d runs "
				    "of a "
				    "configuration; stoker study run --repeat %d adds the missing "
				    "ones.",
				    COMPARE_RUNS_NEEDED, COMPARE_RUNS_NEEDED);
				return;
			}
}

/* A family with a difference. */
struct ranked_family {
	const struct family *family;
	double change; /* the largest */
	size_t turn;   /* how many of the same model and key have a larger one */
};

static int by_change(const void *a, const void *b)
{
	const struct ranked_family *x = a, *y = b;

	if (x->turn != y->turn)
		return x->turn < y->turn ? -1 : 1;
	if (x->change < y->change || x->change > y->change)
		return x->change < y->change ? 1 : -1;
	return x->family < y->family ? -1 : x->family > y->family;
}

static int by_key(const void *a, const void *b)
{
	const struct ranked_family *x = a, *y = b;
	int order = strcmp(x->family->group[0]->model, y->family->group[0]->model);

	if (order == 0)
		order = strcmp(x->family->key, y->family->key);
	if (order == 0 && (x->change < y->change || x->change > y->change))
		order = x->change > y->change ? -1 : 1;
	return order ? order : x->family < y->family ? -1 : x->family > y->family;
}

/* Each factor of each model first with its largest change: many numbers of accelerators with one
 * factor would hide the others. */
static void rank_families(struct ranked_family *v, size_t n)
{
	if (n == 0)
		return;
	qsort(v, n, sizeof(*v), by_key);
	for (size_t i = 1; i < n; i++) {
		const struct family *x = v[i - 1].family, *y = v[i].family;

		if (strcmp(x->group[0]->model, y->group[0]->model) == 0 &&
		    strcmp(x->key, y->key) == 0)
			v[i].turn = v[i - 1].turn + 1;
	}
	qsort(v, n, sizeof(*v), by_change);
}

static void find_factors(struct key_findings *k, const struct run_groups *g)
{
	struct families all;
	struct ranked_family *v;
	double rest = 0;
	size_t n = 0;

	families_find(&all, g);
	v = xcalloc(all.n + 1, sizeof(*v));
	for (size_t i = 0; i < all.n; i++) {
		double change = largest_change(&all.v[i]);

		if (change > 0)
			v[n++] = (struct ranked_family){&all.v[i], change, 0};
	}
	rank_families(v, n);
	for (size_t i = 0, said = 0; i < all.n && said < FACTORS_SAID; i++)
		said += find_reach(k, &all.v[i], g);
	for (size_t i = 0; i < n && i < FACTORS_SAID; i++)
		find_factor(k, v[i].family, g);
	for (size_t i = FACTORS_SAID; i < n; i++)
		rest = fmax(rest, v[i].change);
	if (n > FACTORS_SAID)
		say(new_finding(k, "more"),
		    "%zu more comparison%s of one factor show%s a difference, of at most %.1f "
		    "points: see the table.",
		    n - FACTORS_SAID, plural(n - FACTORS_SAID), n - FACTORS_SAID == 1 ? "s" : "",
		    rest);
	find_no_difference(k, &all);
	say_untested(k, &all);
	free(v);
	families_release(&all);
}

void key_findings_build(struct key_findings *k, const struct run_groups *g)
{
	struct run_groups part = *g; /* those of one model: they are neighbors */

	*k = (struct key_findings){0};
	find_trust(k, g);
	find_limits(k, g);
	find_costs(k, g);
	for (size_t i = 0; i < g->groups; i += part.groups) {
		const char *model = g->group[i].model;

		part.group = &g->group[i];
		for (part.groups = 1; i + part.groups < g->groups; part.groups++)
			if (strcmp(part.group[part.groups].model, model) != 0)
				break;
		find_best(k, &part, model);
		find_scaling(k, &part, model);
	}
	find_factors(k, g);
}

void key_findings_release(struct key_findings *k)
{
	for (size_t i = 0; i < k->n; i++)
		buf_release(&k->v[i].text);
	free(k->v);
	*k = (struct key_findings){0};
}
