/* What a search found, in words and as JSON. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/say.h"
#include "base/str.h"
#include "study/capacity_known.h"
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

const struct capacity_run *capacity_limited(const struct capacity *c)
{
	const struct knee *k = &c->knee;

	for (size_t i = k->gathered; i < k->points; i++)
		if (k->point[i].fit < k->target)
			return capacity_longest(c, k->point[i].accelerators);
	return NULL;
}

/* ---- what the curve itself says ---- */

static const double CEILING_SPREAD = 0.06;     /* of rates that are the same */
static const double CEILING_NUMBERS = 1.2;     /* times the accelerators, that got no more */
static const double LARGE_REQUEST = 512 << 10; /* bytes: their number hardly matters */
static const double SMALL_REQUEST = 8 << 10;   /* nor do the bytes of these */
#define CEILING_MOST 8

/* The largest numbers, where they get the same rate together: the storage has no more to give. */
struct ceiling {
	const struct capacity_run *run[CEILING_MOST]; /* the largest number first */
	size_t n;
	enum cause cause; /* CAUSE_NONE: there is none */
};

static bool tells_of_rate(enum cause c)
{
	return c == CAUSE_BANDWIDTH || c == CAUSE_REQUESTS || c == CAUSE_QUEUE ||
	       c == CAUSE_OPENS || c == CAUSE_METADATA || c == CAUSE_IO_LIMIT ||
	       c == CAUSE_CONTENTION || c == CAUSE_THROTTLED;
}

static void find_ceiling(const struct capacity *c, struct ceiling *out)
{
	const struct knee *k = &c->knee;
	const struct capacity_run *limited = capacity_limited(c);
	double least = INFINITY, most = 0;

	*out = (struct ceiling){0};
	for (size_t i = k->points; i > k->gathered && out->n < CEILING_MOST; i--) {
		const struct capacity_run *r = capacity_longest(c, k->point[i - 1].accelerators);

		if (!r || r->client || !isfinite(r->samples_per_s))
			break;
		least = fmin(least, r->samples_per_s);
		most = fmax(most, r->samples_per_s);
		if (most > (1 + CEILING_SPREAD) * least)
			break;
		out->run[out->n++] = r;
	}
	if (!limited || out->n < 2 || limited->between_au >= k->target ||
	    out->run[0]->accelerators < CEILING_NUMBERS * out->run[out->n - 1]->accelerators)
		return;
	out->cause = tells_of_rate(limited->cause)             ? limited->cause
		     : limited->request_bytes >= LARGE_REQUEST ? CAUSE_BANDWIDTH
		     : limited->request_bytes <= SMALL_REQUEST ? CAUSE_REQUESTS
							       : CAUSE_STORAGE;
}

static void put_ceiling(const struct ceiling *x, struct buf *out)
{
	for (size_t i = x->n; i > 0; i--)
		buf_say(out, "%s%.4g",
			i == x->n ? ""
			: i > 1   ? ", "
				  : " and ",
			x->run[i - 1]->samples_per_s);
	buf_puts(out, " samples/s with ");
	for (size_t i = x->n; i > 0; i--)
		buf_say(out, "%s%u",
			i == x->n ? ""
			: i > 1   ? ", "
				  : " and ",
			x->run[i - 1]->accelerators);
	buf_puts(out, " accelerators: more of them get no more together.");
}

/* What a run tells by itself of what it opens and looks up, and of reads beside others. */
static bool tells_more(enum cause c)
{
	return c == CAUSE_OPENS || c == CAUSE_METADATA || c == CAUSE_CONTENTION ||
	       c == CAUSE_IO_LIMIT || c == CAUSE_CHECKPOINT || c == CAUSE_STALL ||
	       c == CAUSE_THROTTLED || c == CAUSE_REPETITIONS;
}

/* The run of that number after which the storage was probed, where that told of it; NULL. */
static const struct capacity_run *probed(const struct capacity *c, uint32_t accelerators,
					 bool ceiling)
{
	for (size_t i = c->runs; i > 0; i--) {
		const struct capacity_run *r = &c->run[i - 1];

		if (r->probes && r->accelerators == accelerators && r->first < 0 &&
		    (r->probed != CAUSE_NONE || (r->cause == CAUSE_WORKERS && !ceiling) ||
		     (cause_is_of(r->cause) & CAUSE_OF_STORAGE && r->cause != CAUSE_STORAGE)))
			return r;
	}
	return NULL;
}

/* What limits: by a probe, by the curve where it tells, else by the run. `text` is appended. */
static enum cause find_limit(const struct capacity *c, struct buf *text)
{
	const struct capacity_run *r = capacity_limited(c);
	const struct capacity_run *told;
	struct ceiling x;

	if (!r)
		return CAUSE_NONE;
	find_ceiling(c, &x);
	if (x.cause != CAUSE_NONE)
		put_ceiling(&x, text);
	/* more accelerators are more workers */
	told = probed(c, r->accelerators, x.cause != CAUSE_NONE);
	if (told) {
		r = told;
		x.cause = told->cause;
	}
	if (told && told->probed != CAUSE_NONE && !tells_more(told->cause)) {
		buf_say(text, "%s%s", text->len ? " " : "", told->probed_text);
		x.cause = told->probed;
	}
	if (x.cause == CAUSE_NONE || x.cause == r->cause)
		buf_say(text, "%s%s", text->len ? " " : "", r->text);
	return x.cause == CAUSE_NONE ? r->cause : x.cause;
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
	for (size_t i = 0; i < c->o->others; i++)
		buf_say(out, "%s%u of %s", i ? " and " : " beside ", c->o->other[i].accelerators,
			c->o->other[i].name);
}

static void put_label(struct buf *out, const char *label, struct buf *text)
{
	buf_say(out, "  %-*s", LABEL, label);
	buf_wrap(out, text->data ? text->data : "", LABEL + 2, LABEL + 2, COLUMNS);
	buf_release(text);
}

/* What the other workloads had with the answer, and with what misses the target. */
static void put_others(const struct capacity *c, struct buf *out)
{
	const struct capacity_run *met = capacity_longest(c, c->knee.accelerators),
				  *limited = capacity_limited(c);
	struct buf text = {0};

	for (size_t i = 0; i < c->o->others; i++) {
		const struct capacity_other *x = &c->o->other[i];

		buf_say(&text, "%u of %s, target %.4g %%:", x->accelerators, x->name, x->target);
		if (met)
			buf_say(&text, " AU %.1f %% with %u", met->other[i].au, met->accelerators);
		if (limited)
			buf_say(&text, "%s %.1f %% with %u%s", met ? "," : " AU",
				limited->other[i].au, limited->accelerators,
				limited->first == (int)i ? ": it misses its target first" : "");
		put_label(out, "beside it", &text);
	}
	if (c->o->others && limited && limited->first >= 0) {
		buf_say(&text, "AU %.1f %% with %u", limited->own_au, limited->accelerators);
		put_label(out, "itself", &text);
	}
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
	struct buf text = {0}, why = {0};
	enum cause cause;

	if (!r) {
		if (c->warms)
			buf_puts(&text, "a cache: what was read before tells nothing of the "
					"storage, and nothing else was left to read");
		else if (c->stopped_by[0])
			buf_say(&text, "%s", c->stopped_by);
		else
			buf_say(&text, "%s: no more were tried",
				c->complete ? "--max" : "the search was interrupted");
		put_label(out, "ended by", &text);
		return;
	}
	cause = find_limit(c, &why);
	buf_say(&text, "%s, from %u accelerator%s on. %s",
		cause != CAUSE_NONE ? cause_text(cause, (char[32]){0}) : "not known",
		r->accelerators, plural(r->accelerators), why.data ? why.data : "");
	buf_release(&why);
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
	if (c->warms) {
		buf_puts(&text, "reading the same data again was faster: a cache of the storage "
				"warms. Runs that it may have served do not count, so that the "
				"answer is of data that is read for the first time");
		if (c->knee.points && !c->knee.bracketed)
			buf_puts(&text, ". Numbers within the interval were not measured so: name "
					"an empty folder for data (dataset.data_folder), which is "
					"then made anew for each run");
		put_label(out, "note", &text);
	}
	if (c->helped && !c->warms) {
		buf_puts(&text,
			 "many reads of data that was read before were far faster than those "
			 "of the first run: a cache of the storage has some of it. Name an "
			 "empty folder for data (dataset.data_folder), which is then made "
			 "anew for each run");
		put_label(out, "note", &text);
	}
	if (c->least_s > 0) {
		buf_say(&text,
			"the storage stalls, or its speed varies: runs of less than %.3g s do not "
			"count",
			c->least_s);
		put_label(out, "note", &text);
	}
	if (c->knee.gathered) {
		buf_say(&text,
			"%u accelerator%s miss%s the target, and more of them meet it: the storage "
			"serves several readers better than one",
			c->knee.point[c->knee.gathered - 1].accelerators,
			plural(c->knee.point[c->knee.gathered - 1].accelerators),
			c->knee.point[c->knee.gathered - 1].accelerators == 1 ? "es" : "");
		put_label(out, "note", &text);
	}
	if (c->knee.points && c->knee.high == UINT32_MAX && !c->knee.at_least) {
		buf_puts(&text, "the interval has no upper end: no number that was measured surely "
				"misses the target");
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

/* With other workloads a column for each, too. */
static int cell_width(const char *name)
{
	return (int)fmax(6, (double)strlen(name));
}

static void put_heads(const struct capacity *c, struct buf *out)
{
	if (c->o->others)
		buf_say(out, "  %*s", cell_width(c->o->name), c->o->name);
	for (size_t i = 0; i < c->o->others; i++)
		buf_say(out, "  %*s", cell_width(c->o->other[i].name), c->o->other[i].name);
}

static void put_cells(const struct capacity *c, const struct capacity_run *r, struct buf *out)
{
	if (c->o->others)
		buf_say(out, "  %*.1f", cell_width(c->o->name), r ? r->own_au : NAN);
	for (size_t i = 0; i < c->o->others; i++)
		buf_say(out, "  %*.1f", cell_width(c->o->other[i].name), r ? r->other[i].au : NAN);
}

static void put_curve(const struct capacity *c, struct buf *out)
{
	buf_say(out, "\n  %12s  %6s  %-14s", "accelerators", "AU %", "95 %");
	put_heads(c, out);
	buf_say(out, " %4s  %10s  %11s  %s\n", "runs", "samples/s", "bytes/s", "limited by");
	for (size_t i = 0; i < c->knee.points; i++) {
		const struct knee_point *p = &c->knee.point[i];
		const struct capacity_run *r = capacity_longest(c, p->accelerators);
		char interval[32], rate[48] = "-";

		snprintf(interval, sizeof(interval), "%.1f to %.1f", p->low, p->high);
		if (r && isfinite(r->bytes_per_s))
			need_rate_text(r->bytes_per_s, rate, sizeof(rate));
		buf_say(out, "  %12u  %6.1f  %-14s", p->accelerators, p->au, interval);
		put_cells(c, r, out);
		buf_say(out, " %4zu  %10s  %11s  %s%s\n", p->runs,
			NUMBER(r ? r->samples_per_s : NAN, 4), rate,
			r ? cause_text(r->cause, (char[32]){0}) : "",
			p->accelerators == c->knee.accelerators ? "  <" : "");
	}
	if (c->o->others)
		buf_say(out,
			"\n  AU is of the workload that is nearest to its target, or most below "
			"it, "
			"as a share\n  of that target times %.4g %%\n",
			c->knee.target);
}

/* What checkpoints take, with the answer or the smallest number. */
static void put_beside(const struct capacity *c, struct buf *out)
{
	uint32_t n = c->knee.accelerators ? c->knee.accelerators : c->knee.point[0].accelerators;
	const struct capacity_run *r = capacity_longest(c, n);
	struct buf text = {0};
	char stall[32];

	if (!r || (r->saves <= 0 && r->save_every_s <= 0))
		return;
	buf_say(&text, "in AU: each stops training for %s, ",
		str_seconds(r->stall_s, stall, sizeof(stall)));
	if (r->save_every_s > 0)
		buf_say(&text, "every %.4g s", r->save_every_s);
	else
		buf_say(&text, "%.0f in %.0f steps", r->saves, r->whole_steps);
	buf_say(&text, ". AU between them is %.1f %% with %u accelerator%s", r->between_au, n,
		plural(n));
	put_label(out, "checkpoints", &text);
}

void capacity_text(const struct capacity *c, struct buf *out)
{
	struct buf text = {0};
	char took[32];

	buf_say(out, "%s: ", c->o->name);
	capacity_put_answer(c, out);
	buf_say(out, " at AU %.4g %%%s\n", c->knee.target,
		c->complete ? "" : ", as far as the search got");
	if (c->left_out[0]) {
		buf_say(&text, "%s", c->left_out);
		put_label(out, "left out", &text);
	}
	if (c->knee.points == 0)
		return;
	put_others(c, out);
	put_beside(c, out);
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
			plural(r->accelerators), r->own_au);
	else
		buf_say(out, "%u writer%s", r->accelerators, plural(r->accelerators));
	if (isfinite(r->bytes_per_s))
		buf_say(out, ", %s", need_rate_text(r->bytes_per_s, rate, sizeof(rate)));
	for (int i = 0; i < r->others; i++)
		buf_say(out, "%s%.1f", i ? ", " : ", beside it ", r->other[i].au);
	if (r->others)
		buf_puts(out, " %");
	if (r->au < 95 && r->cause != CAUSE_NONE)
		buf_say(out, ", %s", cause_text(r->cause, (char[32]){0}));
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
	json_put_real(o, "between_checkpoints_au_percent", r->between_au);
	if (r->others) {
		json_t *list = json_array();

		json_put_real(o, "own_au_percent", r->own_au);
		for (int i = 0; i < r->others; i++) {
			json_t *one = json_object();

			json_put_real(one, "au_percent", r->other[i].au);
			json_put_real(one, "au_error_points", r->other[i].error);
			json_array_append_new(list, one);
		}
		json_put(o, "others", list);
	}
	json_put_real(o, "checkpoint_stall_s", r->stall_s);
	json_put_real(o, "measured_s", r->measured_s);
	json_put_real(o, "varies_s", r->varies_s);
	json_put_real(o, "slowed_s", r->slowed_s);
	json_put_real(o, "batch_read_s", r->read_s);
	json_put_bool(o, "warms", r->warm);
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

/* What runs beside it; AU with the answer, and with the smallest number that misses the target. */
static json_t *others_json(const struct capacity *c)
{
	const struct capacity_run *met = capacity_longest(c, c->knee.accelerators),
				  *limited = capacity_limited(c);
	json_t *list = json_array();

	for (size_t i = 0; i < c->o->others; i++) {
		const struct capacity_other *x = &c->o->other[i];
		json_t *one = json_object();

		json_put_text(one, "workload", x->name);
		json_put_int(one, "accelerators", x->accelerators);
		json_put_real(one, "target_percent", x->target);
		json_put_real(one, "au_percent", met ? met->other[i].au : NAN);
		json_put_real(one, "next_au_percent", limited ? limited->other[i].au : NAN);
		json_put_bool(one, "misses_first", limited && limited->first == (int)i);
		json_array_append_new(list, one);
	}
	return list;
}

json_t *capacity_json(const struct capacity *c)
{
	const struct capacity_run *limited = capacity_limited(c), *fast = fastest(c);
	const struct capacity_run *busy = limited ? limited : fast;
	json_t *root = json_object(), *points = json_array(), *runs = json_array();
	struct buf answer = {0}, limit = {0};
	enum cause cause = find_limit(c, &limit);

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
	if (c->o->others)
		json_put(root, "others", others_json(c));
	json_put_bool(root, "client_limits", limited && limited->client);
	json_put_text(root, "cause", limited ? cause_name(cause) : NULL);
	json_put_text(root, "limit", limited ? limit.data : NULL);
	json_put_text(root, "left_out", c->left_out[0] ? c->left_out : NULL);
	json_put_text(root, "ended_by", c->stopped_by[0] ? c->stopped_by : NULL);
	json_put_real(root, "delivered_bytes_per_s", fast ? fast->bytes_per_s : NAN);
	json_put_real(root, "delivered_samples_per_s", fast ? fast->samples_per_s : NAN);
	json_put_real(root, "need_samples_per_s", c->need_samples);
	json_put_real(root, "need_bytes_per_s", c->need_bytes);
	json_put_real(root, "client_busy_percent", busy ? 100 * busy->client_busy : NAN);
	json_put_real(root, "run_busy_percent", busy ? 100 * busy->run_busy : NAN);
	json_put_bool(root, "changed", c->changed);
	json_put_bool(root, "reversed", c->knee.reversed);
	json_put_bool(root, "warms", c->warms);
	json_put_bool(root, "cache_helped", c->helped);
	json_put_int(root, "gathered_points", (json_int_t)c->knee.gathered);
	json_put_real(root, "least_s", c->least_s);
	json_put_real(root, "time_s", c->o->time_s);
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
	buf_release(&limit);
	return root;
}
