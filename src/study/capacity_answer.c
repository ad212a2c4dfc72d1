/* What a search found, in words and as JSON. */
#include <math.h>
#include <stdio.h>

#include "base/say.h"
#include "base/str.h"
#include "study/capacity.h"
#include "readback/curves.h"
#include "result/json_out.h"
#include "workload/need.h"

#define COLUMNS 100
#define LABEL 14

/* ---- which runs say what ---- */

static const struct capacity_run *capacity_longest(const struct capacity *c, uint32_t accelerators)
{
	const struct capacity_run *best = NULL;

	for (size_t i = 0; i < c->runs; i++) {
		const struct capacity_run *r = &c->run[i];

		if (!r->outdated && r->accelerators == accelerators &&
		    (!best || r->steps >= best->steps))
			best = r;
	}
	return best;
}

/* The run that tells best why more accelerators miss the target: the longest of the smallest number
 * that does; NULL: none does. */
static const struct capacity_run *capacity_limited(const struct capacity *c)
{
	const struct knee *k = &c->knee;

	for (size_t i = 0; i < k->points; i++)
		if (k->point[i].fit < k->target)
			return capacity_longest(c, k->point[i].accelerators);
	return NULL;
}

/* With the highest rate of those that are not outdated. */
static const struct capacity_run *fastest(const struct capacity *c)
{
	const struct capacity_run *best = NULL;

	for (size_t i = 0; i < c->runs; i++)
		if (!c->run[i].outdated && isfinite(c->run[i].samples_per_s) &&
		    (!best || c->run[i].samples_per_s > best->samples_per_s))
			best = &c->run[i];
	return best;
}

static const char *plural(uint32_t n)
{
	return n == 1 ? "" : "s";
}

/* ---- words ---- */

static void capacity_put_answer(const struct capacity *c, struct buf *out)
{
	struct knee known = c->knee;

	/* what was not tried yet may meet the target, too */
	known.at_least = known.at_least || (!c->complete && !known.bracketed && known.accelerators);
	if (known.points == 0)
		buf_puts(out, "nothing is known");
	else
		curve_put_answer(&known, out);
}

static void put_label(struct buf *out, const char *label, struct buf *text)
{
	buf_say(out, "  %-*s", LABEL, label);
	buf_wrap(out, text->data ? text->data : "", LABEL + 2, LABEL + 2, COLUMNS);
	buf_release(text);
}

static void put_percents(struct buf *out, double share)
{
	if (isfinite(share))
		buf_say(out, "%.0f %%", 100 * share);
	else
		buf_puts(out, "not known");
}

static void put_delivered(const struct capacity *c, struct buf *out)
{
	const struct capacity_run *r = fastest(c);
	struct buf text = {0};
	char rate[48], need[96];
	bool limits = capacity_limited(c) && !capacity_limited(c)->client;

	if (!r)
		return;
	buf_say(&text, "%s %s (%s samples/s) to %u accelerator%s",
		limits ? "delivers" : "delivered at least",
		need_rate_text(r->bytes_per_s, rate, sizeof(rate)), NUMBER(r->samples_per_s, 4),
		r->accelerators, plural(r->accelerators));
	if (isfinite(c->need_bytes))
		buf_say(&text, "; one needs %s at 100 %%",
			need_rate_text(c->need_bytes, need, sizeof(need)));
	put_label(out, "the storage", &text);
}

static void put_limit(const struct capacity *c, struct buf *out)
{
	const struct capacity_run *r = capacity_limited(c);
	struct buf text = {0};

	if (!r) {
		if (c->stopped_by[0])
			buf_say(&text, "%s", c->stopped_by);
		else
			buf_say(&text, "%s: no more were tried",
				c->complete ? "--max" : "the search was interrupted");
		put_label(out, "ended by", &text);
		return;
	}
	buf_say(&text, "%s, from %u accelerators on. %s",
		r->cause != CAUSE_NONE ? cause_name(r->cause) : "not known", r->accelerators,
		r->text);
	put_label(out, "limited by", &text);
}

static void put_client(const struct capacity *c, struct buf *out)
{
	const struct capacity_run *limited = capacity_limited(c), *r;
	struct buf text = {0};

	r = limited ? limited : fastest(c);
	if (!r)
		return;
	put_percents(&text, r->run_busy);
	buf_say(&text, " of the processors busy with %u accelerator%s, ", r->accelerators,
		plural(r->accelerators));
	put_percents(&text, r->client_busy);
	buf_puts(&text, " with all programs");
	if (limited && limited->client)
		buf_puts(&text, ": the client limits, and the storage may feed more");
	put_label(out, "client", &text);
}

static void put_cache(const struct capacity *c, struct buf *out)
{
	double most = -1;
	struct buf text = {0};

	for (size_t i = 0; i < c->runs; i++)
		if (c->run[i].cached_share > most)
			most = c->run[i].cached_share;
	if (most < 0.01)
		return;
	buf_say(&text, "up to %.0f %% of the bytes came from it", 100 * most);
	if (most > 0.1)
		buf_puts(&text, ": this is not what the storage alone would feed");
	put_label(out, "page cache", &text);
}

static void put_doubts(const struct capacity *c, struct buf *out)
{
	const struct capacity_run *r = capacity_limited(c);
	struct buf text = {0};

	if (c->changed) {
		buf_say(&text,
			"the storage changed while it was measured: %u accelerator%s had AU %.1f "
			"%% "
			"and later %.1f %%. The answer is of the later state",
			c->changed_at, plural(c->changed_at), c->changed_from, c->changed_to);
		put_label(out, "note", &text);
	}
	if (c->knee.reversed) {
		buf_puts(&text, "more accelerators had a higher AU at least once: other programs "
				"use the storage, or its speed varies");
		put_label(out, "note", &text);
	}
	if (r && r->failed[0]) {
		buf_say(&text, "the check '%s' of the run with %u accelerators fails: %s/%u/%u",
			r->failed, r->accelerators, c->o->folder, r->accelerators, r->repeat);
		put_label(out, "FAIL", &text);
	}
}

static void put_curve(const struct capacity *c, struct buf *out)
{
	buf_say(out, "\n  %12s  %6s  %-14s %4s  %10s  %11s  %s\n", "accelerators", "AU %", "95 %",
		"runs", "samples/s", "bytes/s", "limited by");
	for (size_t i = 0; i < c->knee.points; i++) {
		const struct knee_point *p = &c->knee.point[i];
		const struct capacity_run *r = capacity_longest(c, p->accelerators);
		char interval[32], rate[48] = "-";

		snprintf(interval, sizeof(interval), "%.1f to %.1f", p->low, p->high);
		if (r && isfinite(r->bytes_per_s))
			need_rate_text(r->bytes_per_s, rate, sizeof(rate));
		buf_say(out, "  %12u  %6.1f  %-14s %4zu  %10s  %11s  %s%s\n", p->accelerators,
			p->au, interval, p->runs, NUMBER(r ? r->samples_per_s : NAN, 4), rate,
			r ? cause_name(r->cause) : "",
			p->accelerators == c->knee.accelerators ? "  <" : "");
	}
}

void capacity_text(const struct capacity *c, struct buf *out)
{
	struct buf text = {0};
	char took[32];

	buf_say(out, "%s: ", c->o->name);
	capacity_put_answer(c, out);
	buf_say(out, " at AU %.4g %%%s\n", c->knee.target,
		c->complete ? "" : ", as far as the search got");
	if (c->knee.points == 0)
		return;
	if (c->knee.accelerators == 0 && !c->knee.falls_short) {
		buf_say(&text, "AU %.1f %% (95 %%: %.1f to %.1f)", c->knee.point[0].au,
			c->knee.point[0].low, c->knee.point[0].high);
		put_label(out, "with one", &text);
	}
	put_delivered(c, out);
	put_limit(c, out);
	put_client(c, out);
	put_cache(c, out);
	put_doubts(c, out);
	buf_say(&text, "%zu in %s; results: %s", c->runs,
		str_seconds(c->seconds, took, sizeof(took)), c->o->folder);
	put_label(out, "runs", &text);
	put_curve(c, out);
}

void capacity_put_run(const struct capacity_run *r, struct buf *out)
{
	char rate[48], took[32];

	if (isfinite(r->au))
		buf_say(out, "%u accelerator%s: AU %.1f %%", r->accelerators,
			plural(r->accelerators), r->au);
	else
		buf_say(out, "%u writer%s", r->accelerators, plural(r->accelerators));
	if (isfinite(r->bytes_per_s))
		buf_say(out, ", %s", need_rate_text(r->bytes_per_s, rate, sizeof(rate)));
	if (r->au < 95 && r->cause != CAUSE_NONE)
		buf_say(out, ", %s", cause_name(r->cause));
	if (isfinite(r->seconds))
		buf_say(out, " (%s)", str_seconds(r->seconds, took, sizeof(took)));
}

/* ---- JSON ---- */

static json_t *run_json(const struct capacity_run *r)
{
	char folder[48];
	json_t *o = json_object();

	snprintf(folder, sizeof(folder), "%u/%u", r->accelerators, r->repeat);
	json_put_int(o, "accelerators", r->accelerators);
	json_put_text(o, "folder", folder);
	run_name_put(o, &r->name);
	json_put_int(o, "steps", r->steps);
	json_put_real(o, "au_percent", r->au);
	json_put_real(o, "au_error_points", r->error);
	json_put_real(o, "no_processor_percent", r->disturbed);
	json_put_real(o, "whole_run_au_percent", r->whole_au);
	json_put_real(o, "step_s", r->step_s);
	json_put_real(o, "samples_per_s", r->samples_per_s);
	json_put_real(o, "bytes_per_s", r->bytes_per_s);
	json_put_real(o, "client_busy_percent", 100 * r->client_busy);
	json_put_real(o, "run_busy_percent", 100 * r->run_busy);
	json_put_real(o, "page_cache_percent", 100 * r->cached_share);
	json_put_text(o, "cause", cause_name(r->cause));
	json_put_text(o, "limit", r->text);
	json_put_text(o, "failed_verdict", r->failed[0] ? r->failed : NULL);
	json_put_bool(o, "client_limits", r->client);
	json_put_bool(o, "outdated", r->outdated);
	json_put_real(o, "seconds", r->seconds);
	return o;
}

json_t *capacity_json(const struct capacity *c)
{
	const struct capacity_run *limited = capacity_limited(c), *fast = fastest(c);
	const struct capacity_run *busy = limited ? limited : fast;
	json_t *root = json_object(), *points = json_array(), *runs = json_array();
	struct buf answer = {0};

	capacity_put_answer(c, &answer);
	json_put_mark(root);
	json_put_text(root, "workload", c->o->name);
	json_put_bool(root, "complete", c->complete);
	json_put_real(root, "target_percent", c->o->target);
	json_put_text(root, "answer", answer.data);
	json_put_int(root, "accelerators", c->knee.accelerators);
	json_put_int(root, "low_95", c->knee.low);
	if (c->knee.high == UINT32_MAX)
		json_put(root, "high_95", json_null());
	else
		json_put_int(root, "high_95", c->knee.high);
	json_put_bool(root, "at_least", c->knee.at_least);
	json_put_bool(root, "client_limits", limited && limited->client);
	json_put_text(root, "cause", limited ? cause_name(limited->cause) : NULL);
	json_put_text(root, "limit", limited ? limited->text : NULL);
	json_put_text(root, "ended_by", c->stopped_by[0] ? c->stopped_by : NULL);
	json_put_real(root, "delivered_bytes_per_s", fast ? fast->bytes_per_s : NAN);
	json_put_real(root, "delivered_samples_per_s", fast ? fast->samples_per_s : NAN);
	json_put_real(root, "need_samples_per_s", c->need_samples);
	json_put_real(root, "need_bytes_per_s", c->need_bytes);
	json_put_real(root, "client_busy_percent", busy ? 100 * busy->client_busy : NAN);
	json_put_real(root, "run_busy_percent", busy ? 100 * busy->run_busy : NAN);
	json_put_bool(root, "changed", c->changed);
	json_put_bool(root, "reversed", c->knee.reversed);
	json_put_real(root, "spread_percent", 100 * c->knee.spread);
	json_put_real(root, "seconds", c->seconds);
	for (size_t i = 0; i < c->knee.points; i++) {
		const struct knee_point *p = &c->knee.point[i];
		json_t *o = json_object();

		json_put_int(o, "accelerators", p->accelerators);
		json_put_int(o, "runs", p->runs);
		json_put_real(o, "au_percent", p->au);
		json_put_real(o, "low_95", p->low);
		json_put_real(o, "high_95", p->high);
		json_put_real(o, "fit_percent", p->fit);
		json_array_append_new(points, o);
	}
	json_put(root, "points", points);
	for (size_t i = 0; i < c->runs; i++)
		json_array_append_new(runs, run_json(&c->run[i]));
	json_put(root, "runs", runs);
	buf_release(&answer);
	return root;
}
