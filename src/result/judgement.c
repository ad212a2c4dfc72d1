/* What judging a result yields: names, forms, and its end. */
#include "result/judgement.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *const time_part_names[TIME_PARTS] = {
	[TIME_COMPUTE] = "compute",
	[TIME_WAIT + WAIT_START] = "start_up",
	[TIME_WAIT + WAIT_STARVED] = "starved",
	[TIME_WAIT + WAIT_QUEUE] = "queueing",
	[TIME_WAIT + WAIT_OPEN] = "open_metadata",
	[TIME_WAIT + WAIT_DATA] = "data",
	[TIME_WAIT + WAIT_DECODE] = "decode",
	[TIME_WAIT + WAIT_PREPROCESS] = "preprocess",
	[TIME_WAIT + WAIT_TRANSPORT] = "transport",
	[TIME_FRAMEWORK] = "framework",
	[TIME_NO_CPU] = "no_processor",
	[TIME_WAIT + WAIT_OTHER] = "unknown_wait",
	[TIME_SKEW] = "barrier_wait",
	[TIME_COLLECTIVE] = "collective",
	[TIME_CHECKPOINT] = "checkpoint",
	[TIME_OTHER] = "other",
};

const char *const steady_change_names[] = {
	[CHANGE_NONE] = "none",
	[CHANGE_LEVEL] = "level",
	[CHANGE_TREND] = "trend",
	[CHANGE_ALTERNATE] = "alternating",
};

const char *const taken_names[TAKEN_KINDS] = {"storage", "part",   "checkpoint", "lasting",
					      "window",  "client", "content",    "end",
					      "origin",  "target"};

const char *const measured_names[MEASURED_KINDS] = {
	[MEASURED_STORAGE] = "yes",       [MEASURED_PART] = "part",
	[MEASURED_EMULATED] = "emulated", [MEASURED_NOT] = "no",
	[MEASURED_UNKNOWN] = "unknown",
};

const char *const ledger_keys[LEDGER_LINES] = {
	[LEDGER_WANTED] = "wanted",
	[LEDGER_ASKED] = "asked",
	[LEDGER_RETURNED] = "returned",
	[LEDGER_REMOTE] = "downloaded",
	[LEDGER_CALLS] = "process_calls",
	[LEDGER_CHARGED] = "process_fetched",
	[LEDGER_CLIENT] = "client_returned",
	[LEDGER_FETCHED] = "client_fetched",
	[LEDGER_DEVICE] = "device",
	[LEDGER_DISKS] = "disks_below",
	[LEDGER_NETWORK] = "network_received",
};

const char *const ledger_titles[LEDGER_LINES] = {
	[LEDGER_WANTED] = "sample data delivered (decoded)",
	[LEDGER_ASKED] = "bytes in files, requested",
	[LEDGER_RETURNED] = "bytes in files, returned",
	[LEDGER_REMOTE] = "downloaded into the cache",
	[LEDGER_CALLS] = "returned by read calls of the process",
	[LEDGER_CHARGED] = "fetched for the process by the kernel",
	[LEDGER_CLIENT] = "returned by the file system client",
	[LEDGER_FETCHED] = "fetched from its servers",
	[LEDGER_DEVICE] = "read from the device",
	[LEDGER_DISKS] = "read from the disks below it",
	[LEDGER_NETWORK] = "received from the network",
};

const struct level_look level_looks[LEVEL_LOOKS] = {
	{VERDICT_FAIL, "FAIL", "\033[1;31m"},
	{VERDICT_WARN, "WARN", "\033[33m"},
	{VERDICT_UNKNOWN, "?", "\033[33m"},
	{VERDICT_PASS, "ok", "\033[32m"},
};

static bool gives_more(const struct what_if *a, const struct what_if *b)
{
	return a->known != b->known ? a->known : a->known && a->au > b->au;
}

void what_if_order(const struct outlook *o, uint32_t order[WHAT_IF_MAX])
{
	for (uint32_t i = 0; i < o->changes; i++) {
		uint32_t at = i;

		for (; at > 0 && gives_more(&o->change[i], &o->change[order[at - 1]]); at--)
			order[at] = order[at - 1];
		order[at] = i;
	}
}

void what_if_put(struct buf *out, const struct what_if *w)
{
	if (w->keys[0])
		buf_puts(out, w->keys);
	else
		words_put(out, &w->what, WORDS_SHORT);
}

/* points: wider, a figure stands with its interval */
static const double FIGURE_ALONE = 6;
static const double OTHER = 1; /* points: less is the same figure */

/* "torch 1.13" of "torch-1.13". */
static void name_profile(const char *name, char *out, size_t size)
{
	char *dash;

	snprintf(out, size, "%s", name);
	dash = strrchr(out, '-');
	if (dash && dash[1] >= '0' && dash[1] <= '9')
		*dash = ' ';
}

struct fact costs_effect_fact(const struct costs_effect *c)
{
	bool wide = c->high - c->low > FIGURE_ALONE;
	double low = wide ? c->low : NAN, high = wide ? c->high : NAN;
	double dlio = fabs(c->dlio_au - c->au) >= OTHER ? c->dlio_au : NAN;
	double loop = fabs(c->loop_au - c->au) >= OTHER ? c->loop_au : NAN;
	char whose[sizeof(c->profile)];
	struct fact f;

	if (isnan(c->au))
		f = c->spent ? FACT(COSTS_WITHOUT_RANGE, c->low, c->high)
			     : FACT(COSTS_WITH_RANGE, c->low, c->high);
	else
		f = c->spent ? FACT(COSTS_WITHOUT, c->au, low, high)
			     : FACT(COSTS_WITH, c->au, low, high, dlio, loop);
	name_profile(c->profile, whose, sizeof(whose));
	return fact_with(f, 0, whose);
}

static const struct {
	const char *name;
	unsigned of;
} causes[CAUSES] = {
	[CAUSE_NONE] = {"", 0},
#define CAUSE(id, name, of) [CAUSE_##id] = {name, of},
#include "result/causes.def"
#undef CAUSE
};

const char *cause_name(enum cause cause)
{
	return causes[cause].name;
}

const char *cause_text(enum cause cause, char out[32])
{
	snprintf(out, 32, "%s", causes[cause].name);
	for (char *c = out; *c; c++)
		*c = *c == '_' ? ' ' : *c;
	return out;
}

enum cause cause_of(const char *name)
{
	for (int i = CAUSE_NONE + 1; name && i < CAUSES; i++)
		if (strcmp(causes[i].name, name) == 0)
			return (enum cause)i;
	return CAUSE_NONE;
}

void limit_put(struct buf *out, const struct limit *l)
{
	words_put_all(out, &l->facts, 0, l->facts.count, WORDS_LONG);
	if (l->facts.count && l->effects.count)
		buf_putc(out, ' ');
	words_put_all(out, &l->effects, 0, l->effects.count, WORDS_LONG);
}

unsigned cause_is_of(enum cause cause)
{
	return causes[cause].of;
}

void judgement_release(struct judgement *j)
{
	free(j->verdict);
	free(j->epoch);
	free(j->basis);
	*j = (struct judgement){0};
}

/* Appends the names of the verdicts that take one of `takes`: " (cache, bytes)". */
static void put_names(struct buf *out, const struct judgement *j, unsigned takes)
{
	const char *before = " (";

	for (uint32_t i = 0; i < j->verdicts; i++) {
		if (!(j->verdict[i].takes & takes))
			continue;
		buf_printf(out, "%s%s", before, j->verdict[i].check);
		before = ", ";
	}
	buf_puts(out, before[0] == ',' ? ")" : "");
}

char *measured_instead(const struct measured *m, char *out, unsigned size)
{
	return words_of(&(const struct fact){.reason = m->instead}, WORDS_SHORT, out, size);
}

void measured_put(struct buf *out, const struct judgement *j)
{
	const struct measured *m = &j->measured;

	for (uint32_t i = 0; i < m->facts.count; i++) {
		buf_puts(out, i ? "; " : "");
		words_put(out, &m->facts.fact[i], WORDS_SHORT);
		put_names(out, j, m->by[i]);
	}
	buf_putc(out, '.');
}
