/* An outlook in facts: what more workers give, and which of the changes is the best. */
#include <assert.h>
#include <math.h>
#include <stdio.h>

#include "predict/outlook.h"

struct fact outlook_probe_would(const struct outlook *o)
{
	return fact_with(FACT(EFFECT_PROBE), 0,
			 o->probe_evicts ? "storage.page_cache=cold_epochs" : "");
}

/* Why it is not known, and what could tell. */
static void add_untold(const struct outlook *o, struct fact_list *to)
{
	if (o->untold.reason != REASON_NONE)
		fact_add(to, o->untold);
	if (o->probe_can)
		fact_add(to, outlook_probe_would(o));
}

/* A job that preprocesses on the hosts of the run does not get what waits are told to give. */
static void add_here(const struct outlook *o, uint32_t workers, double here, struct fact_list *to)
{
	if (!isnan(here))
		fact_add(to,
			 FACT(EFFECT_WORKERS_HERE, workers * o->ranks_each, o->processors, here));
}

void outlook_tell_workers(const struct outlook *o, uint32_t have, struct fact_list *to)
{
	bool untold = o->untold.reason != REASON_NONE;

	if (!o->known)
		return;
	if (!o->needed_known || (untold && !o->workers_needed && !o->workers_best)) {
		fact_add(to, FACT(EFFECT_WORKERS_UNTOLD));
		add_untold(o, to);
	} else if (o->workers_needed > have && o->needed_sure > o->measured_au) {
		fact_add(to, FACT(EFFECT_WORKERS, o->workers_needed, o->needed_au, o->needed_low,
				  o->needed_high));
		add_here(o, o->workers_needed, o->needed_here, to);
	} else if (o->workers_best > have) {
		fact_add(to, o->needed_high < OUTLOOK_GOAL
				     ? FACT(EFFECT_WORKERS_BELOW, o->workers_best, o->needed_au,
					    o->needed_low, o->needed_high)
				     : FACT(EFFECT_WORKERS_ENOUGH, o->workers_best, o->needed_au,
					    o->needed_low, o->needed_high));
		add_here(o, o->workers_best, o->needed_here, to);
	} else if (o->workers_needed == 0 && o->measured_au < OUTLOOK_GOAL) {
		fact_add(to, FACT(EFFECT_WORKERS_NEVER));
	}
}

void outlook_tell_window(const struct outlook *o, uint64_t window, struct fact_list *to)
{
	if (!o->known)
		return;
	if (!isnan(o->window_au))
		fact_add(to, FACT(EFFECT_WINDOW, (double)window, o->window_au, o->window_low,
				  o->window_high));
	if (!isnan(o->unordered_au))
		fact_add(to, FACT(EFFECT_UNORDERED, o->unordered_au, o->unordered_low,
				  o->unordered_high));
}

/* ---- the best of them ---- */

/* More than what a second run may differ by anyway. */
static bool is_worth(const struct outlook *o, double au, double low)
{
	return au >= o->measured_au + OUTLOOK_WORTH && low > o->measured_au;
}

/* The first of those that are as good as the best: of a table, the smallest change. */
static const struct what_if *best_of(const struct outlook *o, bool settings, uint32_t workers_most)
{
	static const double AS_GOOD = 2; /* points */
	const struct what_if *best = NULL;

	for (uint32_t i = 0; i < o->changes; i++) {
		const struct what_if *w = &o->change[i];

		if (!w->known || !is_worth(o, w->au, w->sure) ||
		    !(settings ? w->of_setting : w->of_storage))
			continue;
		if (w->workers > workers_most)
			continue;
		if (!best || w->au > best->au + AS_GOOD)
			best = w;
	}
	return best;
}

/* One without a figure, where checkpoints are what would have to change. */
static const struct what_if *unknown_of_checkpoints(const struct outlook *o)
{
	for (uint32_t i = 0; i < o->changes && o->stalled_share > (1 - o->measured_au / 100) / 2;
	     i++)
		if (o->change[i].of_checkpoints && !o->change[i].known)
			return &o->change[i];
	return NULL;
}

static struct fact remedy_of(const struct what_if *w)
{
	switch (w->what.reason) {
	case REASON_CHANGE_PACKED:
		return fact_with(FACT(REMEDY_PACKED, w->what.figure[0], w->what.figure[1], w->au,
				      w->low, w->high),
				 0, w->what.text[0]);
	case REASON_CHANGE_ASYNC_COPY:
		return FACT(REMEDY_ASYNC_COPY, w->au, w->low, w->high);
	case REASON_CHANGE_LATENCY:
		return FACT(REMEDY_LATENCY, w->au, w->low, w->high);
	case REASON_CHANGE_BANDWIDTH:
		return FACT(REMEDY_BANDWIDTH, w->au, w->low, w->high);
	case REASON_CHANGE_REQUESTS:
		return FACT(REMEDY_REQUESTS, w->au, w->low, w->high);
	case REASON_CHANGE_STORAGE:
		return FACT(REMEDY_STORAGE, w->au, w->low, w->high);
	default:
		return fact_with(FACT(REMEDY_KEYS, w->au, w->low, w->high), 0, w->keys);
	}
}

void outlook_tell_best(const struct outlook *o, uint32_t have, bool crowded, bool brief,
		       struct fact_list *to)
{
	uint32_t workers = o->workers_needed ? o->workers_needed : o->workers_best;
	uint32_t most = crowded ? have : UINT32_MAX;
	const struct what_if *w, *doubted;

	if (!o->known)
		return;
	w = best_of(o, true, most);
	if (workers > have && !crowded && is_worth(o, o->needed_au, o->needed_sure) &&
	    (!w || w->au <= o->needed_au + OUTLOOK_WORTH)) {
		fact_add(to, FACT(REMEDY_WORKERS, workers, o->needed_au, o->needed_low,
				  o->needed_high));
		add_here(o, workers, o->needed_here, to);
	} else if (!w && (doubted = unknown_of_checkpoints(o))) {
		fact_add(to, fact_with(FACT(REMEDY_UNTOLD_KEYS), 0, doubted->keys));
		fact_add(to, fact_of(doubted->why, 0, NULL));
		return;
	} else if (!w && o->untold.reason != REASON_NONE) {
		fact_add(to, FACT(REMEDY_UNTOLD));
		add_untold(o, to);
		return;
	} else {
		w = w ? w : best_of(o, false, most);
		if (!w)
			return;
		fact_add(to, remedy_of(w));
		add_here(o, w->workers, w->here, to);
	}
	if (brief)
		fact_add(to, FACT(REMEDY_SHORT_RUN));
}
