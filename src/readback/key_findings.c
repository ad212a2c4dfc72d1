/* Key findings: sentences made from the groups, with the figures they rest on. They use the whole
 * wall time, which no prefetch queue can flatter. */
#include "readback/key_findings.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"

static const double EFFICIENT = 0.8;  /* of perfect scaling that still counts as scaling */
static const double WAIT_LARGE = 10;  /* percent of training time spent waiting that limits */
static const double OTHER_LARGE = 10; /* in barriers */
static const double LEVEL = 0.05;     /* of the tests */

static struct key_finding *add(struct key_findings *k, const char *topic)
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
	size_t n = strlen(f->text);
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(f->text + n, sizeof(f->text) - n, fmt, ap);
	va_end(ap);
}

static const char *named(const struct run_group *x)
{
	return x->factors[0] ? x->factors : "no overrides";
}

static const char *plural(size_t n)
{
	return n == 1 ? "" : "s";
}

/* ---- how much of it can be trusted ---- */

/* Warnings that a reader must not miss: what was read came from memory. */
static void say_cached(struct key_finding *f, const struct run_groups *g)
{
	size_t cached = 0;

	for (size_t i = 0; i < g->records; i++)
		for (size_t a = 0; a < g->audit->findings; a++) {
			const struct finding *x = &g->audit->finding[a];

			if (x->record != i || x->level != AUDIT_WARN ||
			    (strcmp(x->check, "bytes") != 0 && strcmp(x->check, "cache") != 0))
				continue;
			cached++;
			break;
		}
	if (cached == 1 && g->records == 1)
		say(f, " The page cache served part of what it read, or all of it.");
	else if (cached)
		say(f, " In %zu of them the page cache served part of what was read, or all of it.",
		    cached);
}

static void trust(struct key_findings *k, const struct run_groups *g)
{
	size_t runs = 0, bad = 0, fails[8] = {0};
	static const char *const checks[] = {"steady",   "cache",  "bytes",      "dataset",
					     "possible", "config", "checkpoint", "order"};
	struct key_finding *f;

	for (size_t i = 0; i < g->records; i++) {
		bool one = false, seen[8] = {0};

		runs += g->record[i].trained;
		for (size_t a = 0; a < g->audit->findings; a++) {
			const struct finding *x = &g->audit->finding[a];

			if (x->record != i || x->level != AUDIT_FAIL)
				continue;
			one = true;
			for (size_t c = 0; c < 8; c++)
				seen[c] = seen[c] || strcmp(x->check, checks[c]) == 0;
		}
		bad += one && g->record[i].trained;
		for (size_t c = 0; c < 8; c++)
			fails[c] += seen[c];
	}
	f = add(k, "verdict");
	if (bad == 0) {
		if (runs == 1)
			say(f, "No check failed in the run.");
		else
			say(f, "No check failed in the %zu runs.", runs);
		say_cached(f, g);
		return;
	}
	say(f, "%zu of %zu run%s do not mean what they say:", bad, runs, plural(runs));
	for (size_t c = 0, said = 0; c < 8; c++)
		if (fails[c])
			say(f, "%s %s (%zu)", said++ ? "," : "", checks[c], fails[c]);
	say(f, ". Their AU and MB/s are not evidence about the storage.");
	say_cached(f, g);
}

/* ---- the best ---- */

static void best(struct key_findings *k, const struct run_groups *g, const char *model)
{
	const struct run_group *au = NULL, *rate = NULL;
	bool sound = false;
	struct key_finding *f;
	size_t n = 0;

	for (size_t i = 0; i < g->groups; i++)
		if (strcmp(g->group[i].model, model) == 0) {
			sound = sound || !g->group[i].unsound;
			n++;
		}
	for (size_t i = 0; i < g->groups; i++) {
		const struct run_group *x = &g->group[i];

		if (strcmp(x->model, model) != 0 || (sound && x->unsound))
			continue;
		if (x->whole_au_n && (!au || x->whole_au.mean > au->whole_au.mean))
			au = x;
		if (x->throughput_n &&
		    (!rate || sample_stat_of(x->throughput_v, x->throughput_n).mean >
				      sample_stat_of(rate->throughput_v, rate->throughput_n).mean))
			rate = x;
	}
	if (!au || !rate || n < 2)
		return;
	f = add(k, "best");
	say(f, "%s: accelerators are busiest with %u process%s and %s (%.1f %% of the wall time)",
	    model, au->ranks, au->ranks == 1 ? "" : "es", named(au), au->whole_au.mean);
	if (rate == au)
		say(f, ", which is also the fastest (%.1f samples/s).",
		    sample_stat_of(rate->throughput_v, rate->throughput_n).mean);
	else
		say(f, "; most samples a second come from %u process%s and %s (%.1f, at %.1f %%).",
		    rate->ranks, rate->ranks == 1 ? "" : "es", named(rate),
		    sample_stat_of(rate->throughput_v, rate->throughput_n).mean,
		    rate->whole_au.mean);
	if (!sound)
		say(f, " Every run of it has a failed check, so this is the best of what cannot be "
		       "trusted.");
	if (isfinite(au->target) && au->whole_au.mean < au->target)
		say(f, " None reaches the target of %.0f %%.", au->target);
}

/* ---- scaling ---- */

static double rate_of(const struct run_group *x)
{
	return sample_stat_of(x->throughput_v, x->throughput_n).mean;
}

static void scaling(struct key_findings *k, const struct run_groups *g, const char *model)
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
	f = add(k, "scaling");
	say(f, "%s: from %u to %u processes samples/s grow %.2f times (%.0f %% of perfect scaling)",
	    model, line[0]->ranks, last->ranks, rate_of(last) / rate_of(line[0]),
	    100 * rate_of(last) / rate_of(line[0]) * line[0]->ranks / last->ranks);
	if (stop == n - 1) {
		say(f, "; no end of scaling was reached.");
		return;
	}
	say(f, "; it falls below %.0f %% after %u", 100 * EFFICIENT, line[stop]->ranks);
	if (line[stop]->throughput_n > 1 && line[stop + 1]->throughput_n > 1) {
		struct welch w =
			welch_test(line[stop]->throughput_v, line[stop]->throughput_n,
				   line[stop + 1]->throughput_v, line[stop + 1]->throughput_n);

		say(f,
		    ": with %u it is %.1f samples/s, a change of %+.1f (95 %% interval %+.1f to "
		    "%+.1f)",
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

static void factor(struct key_findings *k, const struct run_groups *g, const struct run_group *x)
{
	const struct run_group *base = base_of(g, x);
	struct key_finding *f;
	struct welch w;

	if (!x->factors[0] || !base || x->whole_au_n < 2 || base->whole_au_n < 2)
		return;
	w = welch_test(base->whole_au_v, base->whole_au_n, x->whole_au_v, x->whole_au_n);
	if (w.p >= LEVEL)
		return;
	f = add(k, "factor");
	say(f,
	    "%s, %u processes: %s changes the whole-run AU from %.1f %% to %.1f %% (%+.1f "
	    "points, 95 %% interval %+.1f to %+.1f, over %s).",
	    x->model, x->ranks, x->factors, base->whole_au.mean, x->whole_au.mean, w.change, w.low,
	    w.high, x->records > 1 && base->records > 1 ? "runs" : "epochs of one run each");
	if (x->unsound || base->unsound)
		say(f, " A check of one of the two failed.");
}

/* What shows no difference is said together: a list of sentences that say nothing hides the others.
 */
static void no_difference(struct key_findings *k, const struct run_groups *g,
			  const struct run_group *base)
{
	struct key_finding *f = NULL;
	double least = 1;

	for (size_t i = 0; i < g->groups; i++) {
		const struct run_group *x = &g->group[i];
		struct welch w;

		if (!x->factors[0] || base_of(g, x) != base || x->whole_au_n < 2)
			continue;
		w = welch_test(base->whole_au_v, base->whole_au_n, x->whole_au_v, x->whole_au_n);
		if (w.p < LEVEL)
			continue;
		if (!f) {
			f = add(k, "factor");
			say(f, "%s, %u processes: no difference of the whole-run AU is shown by",
			    base->model, base->ranks);
		}
		say(f, "%s %s", f->text[strlen(f->text) - 1] == 'y' && least == 1 ? "" : ",",
		    x->factors);
		least = w.p < least ? w.p : least;
	}
	if (f)
		say(f, " (least p = %.2g, against %.1f %%).", least, base->whole_au.mean);
}

/* ---- limits ---- */

static void limits(struct key_findings *k, const struct run_groups *g)
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
	f = add(k, "limit");
	if (all == 1 && data == 0)
		say(f, "The configuration %s.",
		    barrier ? "lost its time between the ranks" : "computed most of the time");
	else if (all == 1)
		say(f, "The configuration waited for data for over %.0f %% of the training time.",
		    WAIT_LARGE);
	else
		say(f,
		    "%zu of %zu configurations waited for data for over %.0f %% of the training "
		    "time, %zu for the other ranks, and %zu computed.",
		    data, all, WAIT_LARGE, barrier, compute);
	if (data)
		say(f, " The longest wait was %.0f %%: %s, %u processes, %s.", worst->wait_share,
		    worst->model, worst->ranks, named(worst));
}

void key_findings_build(struct key_findings *k, const struct run_groups *g)
{
	const char *model = NULL;

	*k = (struct key_findings){0};
	trust(k, g);
	limits(k, g);
	for (size_t i = 0; i < g->groups; i++) {
		if (model && strcmp(g->group[i].model, model) == 0)
			continue;
		model = g->group[i].model;
		best(k, g, model);
		scaling(k, g, model);
	}
	for (size_t i = 0; i < g->groups; i++)
		factor(k, g, &g->group[i]);
	for (size_t i = 0; i < g->groups; i++)
		if (!g->group[i].factors[0] && g->group[i].whole_au_n > 1)
			no_difference(k, g, &g->group[i]);
}

void key_findings_release(struct key_findings *k)
{
	free(k->v);
	*k = (struct key_findings){0};
}
